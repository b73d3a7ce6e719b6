"""Descent on atoms of numpy arrays: what the contract of all machines does not say."""

import numpy as np
import pytest

from kernelatoms.engine.cpu import descend_atoms


def random_sums(rng, n_atoms, n_features):
    """Return W'W, W'X and atoms in the unit ball; half of the coefficients are nonzero."""
    W = np.where(rng.random((60, n_atoms)) < 0.5, rng.standard_normal((60, n_atoms)), 0)
    X, D = rng.standard_normal((60, n_features)), rng.standard_normal((n_atoms, n_features))
    return W.T @ W, W.T @ X, D / np.maximum(np.linalg.norm(D, axis=1, keepdims=True), 1)


def test_any_memory_layout_and_no_sweeps(rng):
    A, B, D = random_sums(rng, 30, 7)
    expected, fortran = D.copy(), np.asfortranarray(D)
    descend_atoms(A, B, expected, 3)
    descend_atoms(np.asfortranarray(A), np.asfortranarray(B), fortran, 3)
    np.testing.assert_allclose(fortran, expected, rtol=1e-12)
    same = D.copy()
    assert descend_atoms(A, B, same, 0) == 0
    np.testing.assert_array_equal(same, D)


def test_shapes_that_do_not_fit_are_refused(rng):
    A, B, D = random_sums(rng, 30, 7)
    for gram, cross in ((A[:29], B), (A[:29, :29], B), (A, B[:, :6]), (A, B[:29])):
        with pytest.raises(ValueError, match=r"needs gram of shape \(30, 30\) and cross of the"):
            descend_atoms(gram, cross, D, 1)
