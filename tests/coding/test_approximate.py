"""Approximate search: our way to pynndescent and back; what it finds, where it is installed."""

import sys
import types

import numpy as np
import pytest

from kernelatoms.coding.neighbors import ApproximateNeighbors


def install(monkeypatch, asked):
    """Put an exact search in the place of pynndescent."""

    class NNDescent:
        def __init__(self, data, **options):
            assert data.dtype == np.float32
            self.data = data
            asked.update(options)

        def prepare(self):
            asked["prepared"] = True

        def query(self, X, k):
            far = ((X[:, None] - self.data) ** 2).sum(axis=2)
            order = np.argsort(far, axis=1)[:, :k]
            return order, np.take_along_axis(far, order, axis=1)

    module = types.ModuleType("pynndescent")
    module.NNDescent = NNDescent
    monkeypatch.setitem(sys.modules, "pynndescent", module)


ATOMS = np.array([[1.0, 0.0], [0.0, 9.0], [3.0, 3.0]])


def test_rows_are_compared_as_they_are_or_by_their_angle(monkeypatch):
    asked = {}
    install(monkeypatch, asked)
    X = np.array([[1.0, 2.0]])
    found = ApproximateNeighbors(ATOMS, random_state=3).nearest(X, 2)
    assert (found.tolist(), found.dtype) == ([[0, 2]], np.int32)
    assert (asked["metric"], asked["random_state"]) == ("euclidean", 3)
    assert asked["prepared"]
    assert ApproximateNeighbors(ATOMS, "correlation").nearest(X, 2).tolist() == [[2, 1]]
    assert ApproximateNeighbors(ATOMS).nearest(X[:0], 2).shape == (0, 2)
    with pytest.raises(ValueError, match="n_neighbors must be from 1 to 3"):
        ApproximateNeighbors(ATOMS).nearest(X, 4)


@pytest.mark.parametrize("n_threads", [1, 3])
def test_queries_share_threads_where_there_are_some(monkeypatch, n_threads):
    asked = {}
    install(monkeypatch, asked)
    monkeypatch.setenv("KERNELATOMS_NUM_THREADS", str(n_threads))
    ApproximateNeighbors(ATOMS)
    assert (asked["n_jobs"], asked["parallel_batch_queries"]) == (n_threads, n_threads > 1)


def test_without_pynndescent_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynndescent", None)
    with pytest.raises(ImportError, match=r"pip install kernelatoms\[ann\]"):
        ApproximateNeighbors(ATOMS)


def test_other_distances_are_refused():
    with pytest.raises(ValueError, match="'l2' and 'correlation', got 'chi2'"):
        ApproximateNeighbors(ATOMS, "chi2")


@pytest.mark.slow  # a minute of compilation
def test_most_neighbours_are_found(rng):
    pytest.importorskip("pynndescent")
    atoms, X = rng.standard_normal((2000, 8)), rng.standard_normal((50, 8))
    exact = np.argsort(((X[:, None] - atoms) ** 2).sum(axis=2), axis=1)[:, :10]
    found = ApproximateNeighbors(atoms, random_state=0).nearest(X, 10)
    recall = np.mean([len(np.intersect1d(a, b)) / 10 for a, b in zip(found, exact, strict=True)])
    assert recall > 0.8
