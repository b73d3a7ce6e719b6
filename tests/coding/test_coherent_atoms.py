"""float32 greedy codes over atoms that are much alike: as good as those of float64, and as told."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles.pursuits
from kernelatoms import residual_norms, sparse_encode
from kernelatoms.coding import GivenProblem, LinearProblem, omp
from kernelatoms.coding.class_residuals import class_residuals
from kernelatoms.coding.codes import PaddedCodes, replace_rows
from kernelatoms.coding.problem import KernelProblem
from kernelatoms.engine import cpu
from kernelatoms.features.expansion import Expansion
from kernelatoms.similarity import make_kernel

# What is left in float32 is this share of a signal's norm more than in float64, at most.
MORE_LEFT = 6e-3

degrees = st.sampled_from([4.0, 2.0, 1.0, 0.5, 0.25])


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def cone(rng, n_atoms, n_features, angle, n_cones=1):
    """Return unit rows, those of a cone at about ``angle`` degrees from each other."""
    axes = unit(rng.standard_normal((n_cones, n_features)))[rng.integers(n_cones, size=n_atoms)]
    sides = unit(rng.standard_normal((n_atoms, n_features)))
    return unit(axes + np.tan(np.radians(angle) / np.sqrt(2)) * sides)


def coherent(family, rng, angle, n_atoms=40, n_features=20, n_signals=6):
    """Return signals and atoms of float32."""
    if family == "sines":
        t, n = np.linspace(0, 1, n_features), n_atoms + n_signals
        rate, phase = rng.uniform(3, 6, (n, 1)), rng.uniform(0, 2 * np.pi, (n, 1))
        rows = unit(np.sin(2 * np.pi * rate * t + phase))
        X, D = rows[n_atoms:], rows[:n_atoms]
    elif family == "offset":
        rows = rng.uniform(1, 3, (n_atoms + n_signals, n_features)) + 300 / angle
        X, D = rows[n_atoms:], unit(rows[:n_atoms])
    else:
        D = cone(rng, n_atoms, n_features, angle, 3 if family == "cones" else 1)
        X = rng.standard_normal((n_signals, n_features))
        if family == "inside":
            X = rng.random((n_signals, n_atoms)) @ D
    return X.astype(np.float32), D.astype(np.float32)


families = st.sampled_from(["cone", "cones", "inside", "sines", "offset"])
seeds = st.integers(0, 2**32 - 1)


def left_over(X, D, W):
    """Return what codes leave of signals, as shares of their norms."""
    X = X.astype(np.float64)
    return np.linalg.norm(X - W @ D.astype(np.float64), axis=1) / np.linalg.norm(X, axis=1)


def textbook(X, D, n_nonzero, selection, positive):
    """Return what the textbook's codes leave, in float64."""
    X, D = X.astype(np.float64), D.astype(np.float64)
    W = np.zeros((len(X), len(D)))
    for w, x in zip(W, X, strict=True):
        pursue = oracles.pursuits.nonnegative_omp if positive else oracles.pursuits.omp
        support, values = pursue(x, D, n_nonzero, ols=selection == "ols")
        w[support] = values
    return left_over(X, D, W)


@given(seed=seeds, angle=degrees, family=families, n_nonzero=st.integers(2, 20))
def test_omp_leaves_no_more_than_the_textbook(seed, angle, family, n_nonzero):
    X, D = coherent(family, np.random.default_rng(seed), angle)
    codes = omp(LinearProblem(X, D), n_nonzero)
    assert codes.dtype == np.float32
    left = left_over(X, D, codes.to_dense())
    # A near tie may pick another atom, after which more may be left, or less.
    more = left - textbook(X, D, n_nonzero, "omp", False)
    assert (more < MORE_LEFT).mean() > 0.8
    assert more.mean() < MORE_LEFT
    norms = np.linalg.norm(X.astype(np.float64), axis=1)
    np.testing.assert_allclose(np.sqrt(codes.error) / norms, left, atol=2e-3)


@given(seed=seeds, angle=degrees, family=families)
def test_ols_leaves_no_more_than_the_textbook(seed, angle, family):
    X, D = coherent(family, np.random.default_rng(seed), angle, 20, 10, 3)
    codes = omp(LinearProblem(X, D), 6, selection="ols")
    more = left_over(X, D, codes.to_dense()) - textbook(X, D, 6, "ols", False)
    assert more.mean() < MORE_LEFT


@pytest.mark.parametrize("selection", ["omp", "ols"])
@given(seed=seeds, angle=degrees, family=families)
def test_nonnegative_codes_leave_no_more_than_the_textbook(selection, seed, angle, family):
    X, D = coherent(family, np.random.default_rng(seed), angle, 20, 10, 3)
    codes = omp(LinearProblem(X, D), 4, selection=selection, positive=True)
    W = codes.to_dense()
    assert (W >= 0).all()
    assert (left_over(X, D, W) - textbook(X, D, 4, selection, True)).mean() < MORE_LEFT


@pytest.mark.parametrize("selection", ["omp", "ols"])
@pytest.mark.parametrize("listed", [False, True])
@given(seed=seeds, angle=degrees)
def test_signals_that_miss_values(selection, listed, seed, angle):
    X, D = coherent("cone", np.random.default_rng(seed), angle)
    X[:, :4] = np.nan
    wide = X.astype(np.float64), D.astype(np.float64)
    lists = np.tile(np.arange(30, dtype=np.int32), (len(X), 1)) if listed else None
    left = []
    for rows, atoms in ((X, D), wide):
        codes = omp(LinearProblem(rows, atoms), 14, selection=selection, candidates=lists)
        W = codes.to_dense()
        assert W.dtype == rows.dtype
        left.append(left_over(wide[0][:, 4:], wide[1][:, 4:], W))
    assert (left[0] - left[1]).mean() < MORE_LEFT


@pytest.mark.parametrize("selection", ["omp", "ols"])
@given(seed=seeds, angle=degrees, n_nonzero=st.integers(2, 20))
def test_coefficients_are_those_of_least_squares(selection, seed, angle, n_nonzero):
    X, D = coherent("cone", np.random.default_rng(seed), angle)
    W = omp(LinearProblem(X, D), n_nonzero, selection=selection).to_dense()
    best = np.zeros(W.shape)
    for s, w in enumerate(W):
        used = np.flatnonzero(w)
        best[s, used] = np.linalg.lstsq(D[used].T.astype(float), X[s].astype(float))[0]
    assert (left_over(X, D, W) < left_over(X, D, best) + 1e-3).all()


def test_two_degrees_apart():
    """Two degrees are far apart: float32 stopped at half of the signal here."""
    rng = np.random.default_rng(0)
    D = cone(rng, 60, 30, 2.0).astype(np.float32)
    X = rng.standard_normal((50, 30)).astype(np.float32)
    for selection in ("omp", "ols"):
        W = sparse_encode(X, D, n_nonzero_coefs=30, selection=selection)
        assert left_over(X, D, W).max() < 2e-3
        ragged = sparse_encode(X, D, max_residual=0.01, selection=selection)
        assert left_over(X, D, ragged).max() < 0.0101


@pytest.mark.parametrize("span", [10, 20])
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("selection", ["omp", "ols"])
def test_atoms_of_very_different_norms(selection, positive, span, rng):
    """Rounding in the correlations of long atoms is more than all of those of short ones."""
    D = unit(rng.standard_normal((100, 64))) * 2.0 ** rng.uniform(-span, span, (100, 1))
    X, D = rng.standard_normal((20, 64)).astype(np.float32), D.astype(np.float32)
    coded = {"n_nonzero_coefs": 60, "selection": selection, "positive": positive}
    W = sparse_encode(X, D, **coded)
    exact = sparse_encode(X.astype(np.float64), D.astype(np.float64), **coded)
    more = left_over(X, D, W) - left_over(X, D, exact)
    assert np.median(more) < 1e-4
    assert more.mean() < 0.05


@pytest.mark.parametrize("selection", ["omp", "ols"])
def test_atoms_that_float32_takes_for_one(selection):
    """A tenth of a degree apart: to float32 the first spans the second."""
    D = np.array([[1.0, 0.0, 0.0], [1.0, 0.002, 0.0]], np.float32)
    X = np.array([[1.0, 0.5, 0.0], [2.0, -0.3, 0.0]], np.float32)
    W = omp(LinearProblem(X, D), 2, selection=selection).to_dense()
    assert (W != 0).all()
    assert left_over(X, D, W).max() < 1e-4


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "cosine"])
def test_under_kernels(kernel, rng):
    """Rows near each other under a wide kernel: values differ in the fourth digit."""
    D = cone(rng, 40, 10, 4.0).astype(np.float32)
    X = cone(rng, 10, 10, 40.0).astype(np.float32)
    bound = make_kernel(kernel, gamma=1.0 if kernel in ("rbf", "poly") else None)
    codes, wide = (
        omp(KernelProblem(rows, Expansion(bound, atoms)), 8)
        for rows, atoms in ((X, D), (X.astype(np.float64), D.astype(np.float64)))
    )
    energy = bound.diag(X.astype(np.float64))
    assert codes.dtype == np.float32
    assert (codes.error < wide.error + MORE_LEFT**2 * energy + 2e-4 * wide.error).mean() > 0.8
    wide_problem = KernelProblem(X.astype(np.float64), Expansion(bound, D.astype(np.float64)))
    one = np.zeros(40, np.intp)
    true = class_residuals(wide_problem, codes.astype(np.float64), one, 1)[:, 0]
    np.testing.assert_allclose(codes.error, true, atol=1e-5 * energy.max())


def test_inner_products_that_were_given_have_no_more_digits(rng):
    """They end where rounding shows, and the error told is the true one."""
    X, D = coherent("cone", rng, 2.0)
    codes = omp(GivenProblem(D @ D.T, X @ D.T, np.vecdot(X, X)), 20)
    left = left_over(X, D, codes.to_dense())
    assert (left <= 1 + 1e-3).all()
    np.testing.assert_allclose(codes.error / np.vecdot(X, X), left**2, atol=1e-3)


def test_kernels_of_users_may_have_no_more_digits(rng):
    """A kernel that computes in float32 whatever comes in: its noise is not taken for digits."""

    def rounded(A, B):
        return (A.astype(np.float32) @ B.T.astype(np.float32)).astype(np.float64)

    X, D = coherent("cone", rng, 0.25)
    codes = omp(KernelProblem(X, Expansion(make_kernel(rounded), D)), 20)
    left = left_over(X, D, codes.to_dense())
    assert (left <= 1 + 1e-3).all()
    np.testing.assert_allclose(codes.error / np.vecdot(X, X), left**2, atol=1e-3)


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("selection", ["omp", "ols"])
def test_all_forms_code_alike(selection, positive, monkeypatch, rng):
    """Over lists of all atoms, without a Gram matrix, and a part of the signals at a time."""
    X, D = coherent("cone", rng, 2.0, n_signals=40)
    if positive:
        X, D = np.abs(X), np.abs(D)
    X[::3] = D[:14] + D[1:15]  # some that float32 settles
    options = {"selection": selection, "positive": positive}

    def left_by(codes):
        return left_over(X, D, codes.to_dense())

    expected = left_by(omp(LinearProblem(X, D), 12, **options))
    lists = np.tile(np.arange(len(D), dtype=np.int32), (len(X), 1))
    listed = omp(LinearProblem(X, D), 12, candidates=lists, **options)
    np.testing.assert_allclose(left_by(listed), expected, atol=MORE_LEFT)
    parts = [omp(LinearProblem(X[s : s + 1], D), 12, **options) for s in range(len(X))]
    alone = np.concatenate([part.to_dense() for part in parts])
    np.testing.assert_allclose(left_over(X, D, alone), expected, atol=MORE_LEFT)
    monkeypatch.setattr(cpu, "prefers_no_gram", lambda *_: True)
    without = omp(LinearProblem(X, D), 12, **options)
    np.testing.assert_allclose(left_by(without), expected, atol=MORE_LEFT)


def test_the_number_of_threads_changes_no_bit(monkeypatch, rng):
    X, D = coherent("cone", rng, 2.0, n_signals=500)
    X[::2] = D[rng.integers(40, size=250)] + D[rng.integers(40, size=250)]
    found = []
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("KERNELATOMS_NUM_THREADS", threads)
        found.append(omp(LinearProblem(X, D), 10, max_residual=0.02))
    for other in found[1:]:
        for name in ("indptr", "indices", "values", "error"):
            np.testing.assert_array_equal(getattr(other, name), getattr(found[0], name))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("selection", ["omp", "ols"])
def test_more_nonzeros_than_rank_stop_at_an_exact_code(selection, dtype, rng):
    """With two of three atoms, all others explain the rest alike, some by rounding alone."""
    basis = rng.standard_normal((3, 20))
    D = (rng.standard_normal((30, 3)) @ basis).astype(dtype)
    X = (rng.standard_normal((400, 3)) @ basis).astype(dtype)
    codes = omp(LinearProblem(X, D), 12, selection=selection)
    conditions = [np.linalg.cond(D[row[row >= 0]].astype(float)) ** 2 for row in codes.indices]
    # The pursuit ends where what is left is 100 eps.
    bound = np.finfo(dtype).eps * np.maximum(10 * np.array(conditions), 200)
    assert (left_over(X, D, codes.to_dense()) < bound).all()
    counts = (codes.indices >= 0).sum(axis=1)
    assert counts.max() <= (4 if selection == "ols" else 3)
    assert (counts <= 3).mean() > 0.98


@pytest.mark.parametrize("form", ["padded", "ragged"])
def test_residuals_of_long_codes_keep_their_digits(form, rng):
    """Coefficients of 1e3 and more, which nearly cancel: squares of 1e6 in float32 would not."""
    D = cone(rng, 30, 20, 0.25).astype(np.float32)
    X = rng.standard_normal((10, 20)).astype(np.float32)
    codes = omp(LinearProblem(X, D), 12)
    W = codes.to_dense().astype(np.float64)
    assert np.linalg.norm(W, axis=1).max() > 100
    wide = X.astype(np.float64)
    if form == "ragged":
        norms = residual_norms(X, D, codes.to_csr())
        np.testing.assert_allclose(norms, np.linalg.norm(wide - W @ D, axis=1), rtol=1e-3)
        return
    owner = np.arange(30) % 3
    squares = class_residuals(LinearProblem(X, D), codes, owner, 3)
    for c in range(3):
        own = wide - (W * (owner == c)) @ D
        np.testing.assert_allclose(squares[:, c], np.vecdot(own, own), rtol=1e-4)


@pytest.mark.parametrize("max_residual", [None, 0.1])
def test_codes_of_some_signals_are_replaced(max_residual, rng):
    X, D = rng.standard_normal((9, 6)), rng.standard_normal((12, 6))
    some = np.array([0, 4, 8])
    first = omp(LinearProblem(X, D), 5, max_residual=max_residual)
    other = omp(LinearProblem(X[some], D), 2 if max_residual else 5, max_residual=max_residual)
    other.values *= 3
    both = replace_rows(first, some, other)
    expected, error = first.to_dense(), first.error.copy()
    expected[some], error[some] = other.to_dense(), other.error
    np.testing.assert_array_equal(both.to_dense(), expected)
    np.testing.assert_array_equal(both.error, error)
    assert isinstance(both, PaddedCodes) == (max_residual is None)
