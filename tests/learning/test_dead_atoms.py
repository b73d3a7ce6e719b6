"""Atoms to start from: random rows, zeros last, without a copy of all rows."""

import tracemalloc

import numpy as np
import pytest

from kernelatoms.learning.state import atoms_from_rows


def drawn_rows(X, n_atoms, seed):
    """Return the rows by a copy of all of them, in the order that is drawn."""
    rows = X[np.random.RandomState(seed).permutation(len(X))]
    is_zero = (rows == 0).all(axis=1)
    chosen = np.concatenate([rows[~is_zero], rows[is_zero]])[:n_atoms].astype(X.dtype)
    norms = np.linalg.norm(chosen, axis=1, keepdims=True)
    return chosen / np.where(norms > 0, norms, 1)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_they_are_random_rows_at_unit_norm(dtype, rng):
    for seed in range(20):
        X = rng.standard_normal((30, 4)).astype(dtype)
        X[rng.random(30) < rng.choice([0.0, 0.5, 1.0])] = 0
        n_atoms = int(rng.integers(1, 31))
        found = atoms_from_rows(X, n_atoms, np.random.RandomState(seed))
        assert found.dtype == dtype
        np.testing.assert_allclose(found, drawn_rows(X, n_atoms, seed), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("order", ["C", "F"])
def test_all_rows_are_not_copied(order):
    X = np.asarray(np.random.default_rng(0).standard_normal((50_000, 40)), order=order)
    atoms_from_rows(X, 10, np.random.RandomState(0))  # compiles
    tracemalloc.start()
    atoms_from_rows(X, 10, np.random.RandomState(0))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # Numbers of rows, and which of them are zero: a few integers per row, of 40 numbers.
    assert peak < X.nbytes / 8
