"""Labels as rows of the signals, against the whole stack of eq. (10)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelatoms import KSVD
from kernelatoms.coding.problem import LinearProblem, linear_problems
from kernelatoms.coding.pursuits import OMP
from kernelatoms.learning.ksvd import (
    KSVDUpdate,
    allocate_atoms,
    atoms_with_map,
    class_atoms,
    label_map,
    split_joint_atoms,
    with_labels,
)
from kernelatoms.learning.loop import learn
from kernelatoms.learning.state import LearnerState
from oracles.supervised import ridge_map, stacked


def learned(rows, start, passes):
    state = LearnerState.start(start)
    learn(
        linear_problems, rows, OMP(3), KSVDUpdate(), state,
        max_iter=passes, tol=0,
    )  # fmt: skip
    return state


class TestOneRowAClass:
    """One weighted row per class is all of Q and H."""

    @pytest.mark.parametrize(("alpha", "beta"), [(0.3, 0.0), (0.0, 0.5), (0.3, 0.5)])
    @pytest.mark.parametrize("counts", [(3, 3, 3), (2, 5, 3)])
    def test_it_learns_what_the_whole_stack_learns(self, alpha, beta, counts, rng):
        counts = np.array(counts)
        owners, labels = np.repeat(np.arange(3), counts), np.repeat(np.arange(3), 20)
        X = rng.standard_normal((60, 8)) + 2 * np.eye(8)[labels]
        atoms = class_atoms(X, labels, counts, 3, max_iter=3, tol=0, seeds=np.arange(3))
        codes = OMP(3)(LinearProblem(X, atoms))
        theta = label_map(codes, labels, 3, 0.1)
        weights = alpha * counts + beta

        whole = stacked(X, labels, owners, alpha, beta).T.copy()
        T = np.sqrt(alpha) * theta[owners]
        start = np.hstack([atoms, T.T, np.sqrt(beta) * theta.T])
        theirs = learned(whole, start / np.linalg.norm(start, axis=1, keepdims=True), 6)
        ours = learned(with_labels(X, labels, weights), atoms_with_map(atoms, theta, weights), 6)

        np.testing.assert_allclose(ours.objective, theirs.objective, rtol=1e-9)
        got, map_ = split_joint_atoms(ours.best, weights)
        D = theirs.best[:, :8]
        norms = np.linalg.norm(D, axis=1, keepdims=True)
        np.testing.assert_allclose(got, D / norms, atol=1e-8)
        if beta:
            H_part = theirs.best[:, -3:] / norms / np.sqrt(beta)
            np.testing.assert_allclose(map_, H_part.T, atol=1e-7)
        if alpha:
            Q_part = theirs.best[:, 8 : 8 + len(owners)] / norms / np.sqrt(alpha)
            np.testing.assert_allclose(map_[owners], Q_part.T, atol=1e-7)


class TestClassAtoms:
    def test_they_are_ksvds_of_every_class(self, rng):
        """As many passes as asked, and no more nonzeros than the class has atoms."""
        labels, counts = np.repeat([0, 1], [20, 9]), np.array([6, 2])
        X = rng.standard_normal((29, 7))
        got = class_atoms(X, labels, counts, 4, max_iter=5, tol=0, seeds=np.array([3, 4]))
        for c, own in enumerate((slice(0, 6), slice(6, 8))):
            ksvd = KSVD(
                int(counts[c]), n_nonzero_coefs=min(4, int(counts[c])), max_iter=5, tol=0,
                random_state=3 + c,
            ).fit(X[labels == c])  # fmt: skip
            np.testing.assert_allclose(got[own], ksvd.components_, atol=1e-10)


class TestScalings:
    def test_joint_and_apart_are_inverse(self, rng):
        atoms = rng.standard_normal((7, 5))
        atoms /= np.linalg.norm(atoms, axis=1, keepdims=True)
        map_, weights = rng.standard_normal((3, 7)), np.array([0.5, 2.0, 0.1])
        joint = atoms_with_map(atoms, map_, weights)
        np.testing.assert_allclose(np.linalg.norm(joint, axis=1), 1)
        got, back = split_joint_atoms(joint, weights)
        np.testing.assert_allclose(got, atoms)
        np.testing.assert_allclose(back, map_)

    def test_nothing_comes_of_no_weight_or_no_atom(self):
        joint = np.array([[0.6, 0.0, 0.8, 0.0], [0.0, 0.0, 1.0, 0.0]])
        atoms, map_ = split_joint_atoms(joint, np.array([4.0, 0.0]))
        np.testing.assert_array_equal(atoms, [[1, 0], [0, 0]])
        np.testing.assert_allclose(map_, [[0.8 / 2 / 0.6, 0], [0, 0]])

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_rounding_is_no_atom(self, dtype):
        """Brought to unit norm it would be a direction like any other."""
        eps = np.finfo(dtype).eps
        joint = np.array([[40 * eps, 30 * eps, 1], [400 * eps, 300 * eps, 1]], dtype)
        before = joint.copy()
        atoms, map_ = split_joint_atoms(joint, np.array([1.0]))
        np.testing.assert_allclose(atoms, [[0, 0], [0.8, 0.6]], rtol=1e-6)
        np.testing.assert_allclose(map_, [[0, 1 / (500 * eps)]], rtol=1e-6)
        np.testing.assert_array_equal(joint, before)

    def test_marks_are_roots_of_weights(self):
        rows = with_labels(np.ones((2, 2), np.float32), np.array([1, 0]), np.array([4.0, 9.0]))
        np.testing.assert_array_equal(rows, [[1, 1, 0, 3], [1, 1, 2, 0]])
        assert rows.dtype == np.float32


class TestLabelMap:
    def test_it_is_the_ridge_regression(self, rng):
        X, atoms = rng.standard_normal((40, 6)), rng.standard_normal((9, 6))
        labels = np.arange(40) % 3
        codes = OMP(3)(LinearProblem(X, atoms))
        np.testing.assert_allclose(
            label_map(codes, labels, 3, 0.7), ridge_map(codes.to_dense(), labels, 0.7), atol=1e-10
        )


class TestSharedOut:
    @given(st.lists(st.integers(1, 40), min_size=2, max_size=8), st.data())
    def test_every_class_gets_its_part(self, sizes, data):
        sizes = np.array(sizes)
        n_atoms = data.draw(st.integers(len(sizes), int(sizes.sum())))
        counts = allocate_atoms(n_atoms, sizes)
        assert counts.sum() == n_atoms
        assert (counts >= 1).all()
        assert (counts <= sizes).all()
        # A larger class never has fewer.
        order = np.argsort(sizes, kind="stable")
        assert (np.diff(counts[order])[np.diff(sizes[order]) > 0] >= 0).all()

    def test_examples(self):
        np.testing.assert_array_equal(allocate_atoms(6, np.array([10, 20, 30])), [1, 2, 3])
        np.testing.assert_array_equal(allocate_atoms(4, np.array([1, 1, 98])), [1, 1, 2])
        np.testing.assert_array_equal(allocate_atoms(5, np.array([10, 10])), [3, 2])
        np.testing.assert_array_equal(allocate_atoms(12, np.array([2, 10])), [2, 10])


def test_unused_atoms_become_rows_of_their_class(rng):
    """The worst represented rows are of class 1, and still class 0 gets one of its own."""
    X = np.vstack([rng.standard_normal((10, 4)), 100 * rng.standard_normal((10, 4))])
    labels, owners = np.repeat([0, 1], 10), np.array([0, 0, 1, 1])
    start = np.vstack([np.zeros((1, 4)), np.eye(4)[:1], np.eye(4)[1:3]])  # the first is never used
    state = LearnerState.start(start)
    learn(
        linear_problems, X, OMP(1), KSVDUpdate(), state,
        max_iter=1, tol=0, groups=(labels, owners),
    )  # fmt: skip
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    nearest = np.abs(unit @ state.dictionary[0]).argmax()
    assert np.abs(unit @ state.dictionary[0]).max() == pytest.approx(1)
    assert labels[nearest] == 0
