"""A stand-in for pynndescent that finds the nearest of a random half of the atoms."""

import sys
import types

import numpy as np


class HalfBlind:
    """Its seed decides which half, so that another seed, or other atoms, show in what it finds."""

    def __init__(self, data, *, random_state, **options):
        rng = np.random.default_rng(random_state)
        self.seed = random_state
        self.data, self.seen = data, np.sort(rng.permutation(len(data))[: -(-len(data) // 2)])

    def prepare(self):
        pass

    def query(self, X, k):
        far = ((X[:, None] - self.data[self.seen]) ** 2).sum(axis=2)
        order = np.argsort(far, axis=1, kind="stable")[:, :k]
        found = np.full((len(X), k), -1)
        found[:, : order.shape[1]] = self.seen[order]
        return found, far


def half_blind_search(monkeypatch):
    """Have ``search="approximate"`` use it."""
    module = types.ModuleType("pynndescent")
    module.NNDescent = HalfBlind
    monkeypatch.setitem(sys.modules, "pynndescent", module)
