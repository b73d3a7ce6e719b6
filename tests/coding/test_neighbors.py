"""Neighbours of signals among atoms: exact, coarse to fine, and approximate."""

import sys
import types

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelatoms.coding import Expansion, GivenProblem, KernelProblem, LinearProblem, neighbors
from kernelatoms.coding.neighbors import (
    ApproximateNeighbors,
    ascending,
    featurize_by,
    nearest_by,
    nearest_in_space,
    refine,
)
from kernelatoms.similarity import Distance, DistanceKernel, make_distance, make_kernel
from oracles import local as book

seeds = st.integers(0, 2**31)


def draw(seed, n, m, dtype=np.float64, n_features=4):
    """Whole numbers: distances are exact, and there are ties."""
    rng = np.random.default_rng(seed)
    return tuple(rng.integers(-2, 3, (k, n_features)).astype(dtype) for k in (n, m))


def squares(X, D):
    return ((X[:, None].astype(float) - D) ** 2).sum(axis=2)


@given(
    seed=seeds, n=st.integers(0, 9), m=st.integers(1, 40), K=st.integers(1, 40),
    dtype=st.sampled_from([np.float32, np.float64]),
)  # fmt: skip
def test_neighbours_in_space_are_those_of_all_distances(seed, n, m, K, dtype):
    X, D = draw(seed, n, m, dtype)
    K = min(K, m)
    expected = book.nearest(squares(X, D), K)
    gaussian = make_kernel("rbf", gamma=0.25)
    for problem in (
        LinearProblem(X, D),
        KernelProblem(X, Expansion(make_kernel("linear"), D)),
        KernelProblem(X, Expansion(gaussian, D)),
        KernelProblem(X, Expansion(DistanceKernel("l2", power=0.5), D)),
        GivenProblem(D @ D.T, X @ D.T),
    ):
        found = nearest_in_space(problem, K)
        assert found.dtype == np.int32
        np.testing.assert_array_equal(found, expected)


def test_other_kernels_have_neighbours_of_their_own(rng):
    X, D = rng.standard_normal((7, 3)), rng.standard_normal((30, 3))
    kernel = make_kernel("poly", degree=2, coef0=1.0)
    far = kernel.diag(D) - 2 * kernel(X, D)
    found = nearest_in_space(KernelProblem(X, Expansion(kernel, D)), 5)
    np.testing.assert_array_equal(found, book.nearest(far, 5))


def test_learned_atoms_are_compared_as_vectors_of_feature_space(rng):
    X, D = rng.standard_normal((7, 3)), rng.standard_normal((30, 3))
    coef, kernel = rng.standard_normal((30, 12)), make_kernel("rbf", gamma=0.3)
    K = kernel(D, D)
    far = np.diagonal(coef.T @ K @ coef) - 2 * kernel(X, D) @ coef
    found = nearest_in_space(KernelProblem(X, Expansion(kernel, D, coef)), 4)
    np.testing.assert_array_equal(found, book.nearest(far, 4))


def test_blocks_do_not_show(rng, monkeypatch):
    X, D = draw(1, 700, 150)
    whole = nearest_in_space(LinearProblem(X, D), 20)
    by_l2 = nearest_by("l2", featurize_by("l2", X), featurize_by("l2", D), 20)
    monkeypatch.setattr(neighbors, "_ATOMS", 7)
    np.testing.assert_array_equal(nearest_in_space(LinearProblem(X, D), 20), whole)
    A, B = featurize_by("l2", X), featurize_by("l2", D)
    np.testing.assert_array_equal(nearest_by("l2", A, B, 20), by_l2)
    np.testing.assert_array_equal(whole, book.nearest(squares(X, D), 20))


@pytest.mark.parametrize("scale", [1e-25, 1e25])
def test_signals_far_from_one_have_the_same_neighbours(scale, rng):
    """Squares and products of such leave the range of float32."""
    X, D = rng.standard_normal((9, 5)), rng.standard_normal((40, 5)).astype(np.float32)
    X = (scale * X).astype(np.float32)
    far = (D.astype(float) ** 2).sum(axis=1) - 2 * X.astype(float) @ D.T.astype(float)
    found = nearest_in_space(LinearProblem(X, D), 1)
    exact = np.take_along_axis(far, found.astype(int), axis=1)[:, 0]
    np.testing.assert_allclose(exact, far.min(axis=1), rtol=1e-5)


@pytest.mark.parametrize("name", ["l2", "chi2"])
def test_neighbours_by_a_distance(name, rng):
    X, D = np.abs(rng.standard_normal((6, 5))), np.abs(rng.standard_normal((30, 5)))
    A, B = featurize_by(name, X), featurize_by(name, D)
    far = make_distance(name).compare(X, D)
    np.testing.assert_array_equal(nearest_by(name, A, B, 7), book.nearest(far, 7))


class Union(Distance):
    """Neighbours by either of two coordinates."""

    class Part(Distance):
        def __init__(self, column):
            self.column = column

        def featurize(self, rows):
            return rows[:, [self.column]]

        def compare(self, A, B):
            return np.abs(A - B.T)

    parts = (Part(0), Part(1))

    def featurize(self, rows):
        raise AssertionError("parts describe rows")

    compare = featurize


def test_a_union_holds_the_nearest_by_every_part():
    X = np.array([[0.0, 0.0], [10.0, 10.0]])
    D = np.array([[0.0, 5.0], [1.0, 0.0], [5.0, 1.0], [10.0, 10.0], [9.0, 9.5]])
    A, B = featurize_by(Union(), X), featurize_by(Union(), D)
    found = nearest_by(Union(), A, B, 2)
    # By the first: 0, 1 and 3, 4; by the second: 1, 2 and 3, 4. Each once, -1 at the end.
    assert found.tolist() == [[0, 1, 2, -1], [3, 4, -1, -1]]
    own = np.array([[4, 2, 0], [0, 1, -1]], np.int32)
    assert refine(Union(), A, B, own, 1).tolist() == [[0, 2], [1, 0]]
    assert refine(Union(), A, B, own, 3).tolist()[1] == [1, 0, -1, -1, -1, -1]


@given(seed=seeds, n=st.integers(0, 6), m=st.integers(1, 20), stacks=st.booleans())
def test_refined_candidates_are_the_nearest_of_their_own(seed, n, m, stacks):
    class Own:
        takes_stacks = stacks

        def featurize(self, rows):
            return rows

        def compare(self, A, B):
            assert A.ndim == B.ndim == (3 if stacks else 2)
            return ((A[..., :, None, :] - B[..., None, :, :]) ** 2).sum(axis=-1)

    rng = np.random.default_rng(seed)
    X, D = draw(seed, n, m)
    candidates = rng.permuted(np.tile(np.arange(m, dtype=np.int32), (n, 1)), axis=1)
    lengths = rng.integers(1, m + 1, n)
    candidates[np.arange(m) >= lengths[:, None]] = -1
    K = int(rng.integers(1, m + 1))
    found = refine(Own(), featurize_by(Own(), X), featurize_by(Own(), D), candidates, K)
    assert found.shape == (n, K)
    for x, own, k, got in zip(X, candidates, lengths, found, strict=True):
        order = np.argsort(squares(x[None], D[own[:k]])[0], kind="stable")[:K]
        assert got.tolist() == [*own[order], *[-1] * (K - len(order))]


def test_a_distance_must_be_finite():
    class Lost(Union.Part):
        def compare(self, A, B):
            return np.full((len(A), len(B)), np.nan)

    X = np.ones((3, 2))
    with pytest.raises(ValueError, match="distance returned NaN or infinity"):
        nearest_by(Lost(0), featurize_by(Lost(0), X), featurize_by(Lost(0), X), 2)
    with pytest.raises(ValueError, match="distance returned NaN or infinity"):
        refine(Lost(0), (X,), (X,), np.zeros((3, 2), np.int32), 1)


def test_codes_want_ascending_candidates():
    lists = np.array([[5, -1, 2, 0], [-1, -1, -1, -1]], np.int32)
    assert ascending(lists).tolist() == [[0, 2, 5, -1], [-1, -1, -1, -1]]
    assert ascending(lists).dtype == np.int32


BAD = [(0, ValueError), (4, ValueError), (True, TypeError), (2.0, TypeError)]


@pytest.mark.parametrize(("n_neighbors", "error"), BAD)
def test_as_many_neighbours_as_there_are_atoms(n_neighbors, error):
    X = np.ones((2, 3))
    with pytest.raises(error, match="n_neighbors must be"):
        nearest_in_space(LinearProblem(X, np.ones((3, 3))), n_neighbors)
    with pytest.raises(error, match="n_neighbors must be"):
        nearest_by("l2", (X,), (np.ones((3, 3)),), n_neighbors)
    with pytest.raises(error, match="n_neighbors must be"):
        refine("l2", (X,), (X,), np.zeros((2, 3), np.int32), n_neighbors)


def test_signals_with_missing_values_have_no_neighbours_among_rows():
    X = np.array([[1.0, np.nan]])
    with pytest.raises(ValueError, match="missing values"):
        nearest_in_space(LinearProblem(X, np.eye(2)), 1)
    kernel = make_kernel("rbf", gamma=1.0)
    problem = KernelProblem(X, Expansion(kernel, np.array([[0.0, 0.0], [1.0, 5.0]])))
    assert nearest_in_space(problem, 1).tolist() == [[1]]


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
