"""Masked OMP and OLS against the textbook, and against OMP where they must agree."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles.observed
import oracles.pursuits
from kernelatoms.coding import omp
from kernelatoms.coding.problem import KernelProblem, LinearProblem
from kernelatoms.engine import cpu
from kernelatoms.features.expansion import Expansion
from kernelatoms.similarity import make_kernel


def random_problem(seed, n_signals, n_features, n_atoms, missing, dtype=np.float64, unit=True):
    """Signals with missing values, at least one value each, and atoms."""
    rng = np.random.default_rng(seed)
    D = rng.standard_normal((n_atoms, n_features))
    if unit:
        D /= np.linalg.norm(D, axis=1, keepdims=True)
    X = rng.standard_normal((n_signals, n_features))
    gone = rng.random(X.shape) < missing
    gone[np.arange(n_signals), rng.integers(0, n_features, n_signals)] = False
    X[gone] = np.nan
    return X.astype(dtype), D.astype(dtype)


def masked_omp(X, D, n_nonzero, **options):
    """Code by observed entries, whole signals too: of one more value, which all of them miss."""
    X = np.column_stack([X, np.full(len(X), np.nan, X.dtype)])
    D = np.column_stack([D, np.zeros(len(D), D.dtype)])
    return omp(LinearProblem(X, D), n_nonzero, **options)


def check(codes, s, x, D, support, w, exact=True):
    """Signal s has this code, or, where a tie was broken differently, one that is as good."""
    seen = ~np.isnan(x)
    found = codes.indices[s][codes.indices[s] >= 0]
    order = np.argsort(support)
    if exact or found.tolist() == sorted(support):
        assert found.tolist() == sorted(support)
        scale = max(1.0, float(np.abs(w).max(initial=0)))
        np.testing.assert_allclose(codes.values[s, : len(found)], w[order], atol=1e-6 * scale)
    left = (x - codes.values[s, : len(found)] @ D[found])[seen]
    expected = (x - w @ D[support])[seen]
    energy = x[seen] @ x[seen]
    np.testing.assert_allclose(left @ left, expected @ expected, atol=1e-8 * energy)
    np.testing.assert_allclose(codes.error[s], expected @ expected, atol=1e-8 * energy)


shapes = {
    "seed": st.integers(0, 2**32 - 1),
    "n_signals": st.integers(1, 25),
    "n_features": st.integers(2, 40),
    "n_atoms": st.integers(1, 100),
    "n_nonzero": st.integers(1, 10),
    "missing": st.sampled_from([0.0, 0.1, 0.5, 0.9]),
    "unit": st.booleans(),
    "selection": st.sampled_from(["omp", "ols"]),
}


@given(**shapes)
def test_agrees_with_the_textbook(
    seed, n_signals, n_features, n_atoms, n_nonzero, missing, unit, selection
):
    X, D = random_problem(seed, n_signals, n_features, n_atoms, missing, unit=unit)
    codes = masked_omp(X, D, n_nonzero, selection=selection)
    for s, x in enumerate(X):
        if (~np.isnan(x)).sum() == 1:
            # Every atom explains a single value wholly: all ties.
            assert codes.error[s] == 0
            assert (codes.indices[s] >= 0).sum() == 1
            continue
        support, w = oracles.pursuits.omp_of_observed(x, D, n_nonzero, ols=selection == "ols")
        # As many atoms as values leave nothing, whichever is last: then ties are all there is.
        exact = len(support) < (~np.isnan(x)).sum() and selection == "omp"
        check(codes, s, x, D, support, w, exact)


@given(
    seed=st.integers(0, 2**32 - 1),
    n_atoms=st.integers(2, 60),
    n_nonzero=st.integers(1, 5),
    dtype=st.sampled_from([np.float32, np.float64]),
    selection=st.sampled_from(["omp", "ols"]),
    size=st.floats(1e-3, 1e3),
)
def test_atoms_that_are_rounding_on_the_observed_entries_are_never_picked(
    seed, n_atoms, n_nonzero, dtype, selection, size
):
    """At unit norm on those entries they would look like all the others."""
    X, D = random_problem(seed, 8, 30, n_atoms, 0)
    rng = np.random.default_rng(seed)
    rounding = rng.random(n_atoms) < 0.5
    eps = float(np.finfo(dtype).eps)
    D[np.ix_(rounding, range(12))] *= eps * rng.uniform(0, 30, (rounding.sum(), 1))
    X[:, 12:] = np.nan
    X, D = X.astype(dtype), (size * D).astype(dtype)
    codes = masked_omp(X, D, n_nonzero, selection=selection)
    assert not np.isin(codes.indices, np.flatnonzero(rounding)).any()
    for s, x in enumerate(X):
        support, _ = oracles.pursuits.omp_of_observed(
            x.astype(float), D.astype(float), n_nonzero, eps, ols=selection == "ols"
        )
        assert not rounding[support].any()
        assert (codes.indices[s] >= 0).sum() == len(support)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("selection", ["omp", "ols"])
def test_one_observed_entry_has_no_enormous_coefficient(selection, dtype):
    """Of orthonormal atoms, computed, only the third has more than rounding at entry 0."""
    D = np.eye(5, dtype=dtype)[[1, 2, 0, 3, 4]]
    D[[0, 1, 3, 4], 0] = np.finfo(dtype).eps * np.array([1, -0.5, 3, 0.25], dtype)
    X = np.full((2, 5), np.nan, dtype)
    X[:, 0] = 1, -2
    codes = masked_omp(X, D, 3, selection=selection)
    np.testing.assert_array_equal(codes.to_dense(), [[0, 0, 1, 0, 0], [0, 0, -2, 0, 0]])
    others = np.delete(D, 2, axis=0)
    codes = masked_omp(X, others, 3, selection=selection)
    assert (codes.indices == -1).all()
    np.testing.assert_array_equal(codes.error, [1, 4])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_small_is_not_rounding(dtype):
    """A thousand epsilons of the whole norm are seen; the floor is no opinion about size."""
    D = np.array([[1e3 * np.finfo(dtype).eps, 1]], dtype)
    codes = masked_omp(np.array([[1, np.nan]], dtype), D, 1)
    np.testing.assert_allclose(codes.values, [[1 / D[0, 0]]], rtol=1e-5)


@given(**shapes)
def test_float32_is_near_float64(
    seed, n_signals, n_features, n_atoms, n_nonzero, missing, unit, selection
):
    X, D = random_problem(seed, n_signals, n_features, n_atoms, missing, np.float32, unit)
    single = masked_omp(X, D, n_nonzero, selection=selection)
    double = masked_omp(X.astype(np.float64), D.astype(np.float64), n_nonzero, selection=selection)
    assert (single.values.dtype, single.error.dtype) == (np.float32, np.float64)
    energy = np.nansum(X**2, axis=1)
    # A near tie may pick another atom of the same use, so the errors agree and not the supports.
    np.testing.assert_allclose(single.error, double.error, atol=0.05 * energy.max())
    same = (single.indices == double.indices).all(axis=1)
    np.testing.assert_allclose(
        single.error[same], double.error[same], atol=2e-5 * energy.max(), rtol=1e-3
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("selection", ["omp", "ols"])
def test_nothing_missing_is_omp(selection, dtype, rng):
    X, D = random_problem(rng, 200, 30, 90, 0, dtype)
    masked = masked_omp(X, D, 6, selection=selection)
    plain = omp(LinearProblem(X, D), 6, selection=selection)
    same = (masked.indices == plain.indices).all(axis=1)
    assert same.all() if dtype == np.float64 else same.mean() > 0.98
    tolerance = 1e-10 if dtype == np.float64 else 1e-3
    np.testing.assert_allclose(masked.values[same], plain.values[same], atol=tolerance)
    np.testing.assert_allclose(masked.error[same], plain.error[same], atol=tolerance)


@pytest.mark.parametrize("selection", ["omp", "ols"])
def test_masking_is_dropping_columns(selection, rng):
    X, D = random_problem(rng, 100, 30, 80, 0)
    gone = rng.permutation(30)[:12]
    X[:, gone] = np.nan
    masked = masked_omp(X, D, 5, selection=selection)
    less, shorter = np.delete(X, gone, axis=1), np.delete(D, gone, axis=1)
    norms = np.linalg.norm(shorter, axis=1)
    dropped = omp(LinearProblem(less, shorter / norms[:, None]), 5, selection=selection)
    assert (masked.indices == dropped.indices).all()
    np.testing.assert_allclose(masked.values * norms[masked.indices], dropped.values, atol=1e-10)
    np.testing.assert_allclose(masked.error, dropped.error, atol=1e-10)


@given(
    seed=st.integers(0, 2**32 - 1),
    max_residual=st.floats(0.05, 0.95),
    selection=st.sampled_from(["omp", "ols"]),
)
def test_stops_at_the_residual_asked_for(seed, max_residual, selection):
    X, D = random_problem(seed, 12, 15, 40, 0.3)
    codes = masked_omp(X, D, 15, max_residual=max_residual, selection=selection)
    norms = np.sqrt(np.nansum(X**2, axis=1))
    left = np.sqrt(np.nansum((X - codes.to_dense() @ D) ** 2, axis=1))
    assert (left <= max_residual * norms * (1 + 1e-9)).all()
    for s, n in enumerate(np.diff(codes.indptr)):
        if n > 1:  # one atom fewer would not have been enough
            shorter = masked_omp(X[s : s + 1], D, n - 1, selection=selection)
            assert np.sqrt(shorter.error[0]) > max_residual * norms[s]


@pytest.mark.parametrize("selection", ["omp", "ols"])
def test_candidate_lists_are_local_dictionaries(selection, rng):
    X, D = random_problem(rng, 40, 20, 60, 0.4)
    lists = np.array([rng.permutation(60)[:15] for _ in X], np.int32)
    lists[rng.random(lists.shape) < 0.2] = -1
    X[::5] = 1.0  # complete signals take the other way
    codes = omp(LinearProblem(X, D), 4, candidates=lists, selection=selection)
    for s, x in enumerate(X):
        support, w = oracles.pursuits.omp_of_observed(
            x, D, 4, candidates=lists[s], ols=selection == "ols"
        )
        check(codes, s, x, D, support, w)
    none = np.full((40, 2), -1, np.int32)
    assert (masked_omp(X, D, 4, candidates=none).indices == -1).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("selection", ["omp", "ols"])
def test_complete_signals_have_the_codes_they_had(dtype, selection, rng):
    """To the bit: they are coded as ever."""
    X, D = random_problem(rng, 300, 24, 70, 0.03, dtype)
    complete = ~np.isnan(X).any(axis=1)
    assert 0 < complete.sum() < 300
    problem = LinearProblem(X, D)
    ours = omp(problem, 5, max_residual=0.2, selection=selection)
    plain = omp(LinearProblem(X[complete], D), 5, max_residual=0.2, selection=selection)
    masked = omp(LinearProblem(X[~complete], D), 5, max_residual=0.2, selection=selection)
    for rows, theirs in ((complete, plain), (~complete, masked)):
        np.testing.assert_array_equal(ours.to_dense()[rows], theirs.to_dense())
        np.testing.assert_array_equal(ours.error[rows], theirs.error)
    everything = omp(LinearProblem(X[complete], D), 5, selection=selection)
    same = omp(LinearProblem(X[complete], D), 5, selection=selection)
    np.testing.assert_array_equal(everything.values, same.values)


@pytest.mark.parametrize("selection", ["omp", "ols"])
def test_a_linear_kernel_is_the_linear_method(selection, rng):
    # With as few observed entries as nonzeros any atom would leave nothing, and rounding choose.
    X, D = random_problem(rng, 60, 20, 30, 0.2)
    anchors = np.linalg.qr(rng.standard_normal((20, 20)))[0]
    expansion = Expansion(make_kernel("linear"), anchors, anchors @ D.T)
    ours = omp(KernelProblem(X, expansion), 3, selection=selection)
    rows = omp(LinearProblem(X, D), 3, selection=selection)
    np.testing.assert_allclose(ours.to_dense(), rows.to_dense(), atol=1e-8)
    np.testing.assert_allclose(ours.error, rows.error, atol=1e-8)


@pytest.mark.parametrize("selection", ["omp", "ols"])
def test_batch_is_one_by_one(selection, rng):
    X, D = random_problem(rng, 150, 20, 50, 0.5)
    together = masked_omp(X, D, 4, selection=selection)
    for s in range(0, 150, 11):
        alone = masked_omp(X[s : s + 1], D, 4, selection=selection)
        assert alone.indices[0].tolist() == together.indices[s].tolist()
        np.testing.assert_allclose(alone.values[0], together.values[s], atol=1e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("selection", ["omp", "ols"])
class TestDegenerateProblems:
    def test_zero_signals_use_no_atoms(self, dtype, selection, rng):
        _, D = random_problem(rng, 1, 5, 9, 0, dtype)
        X = np.where(np.eye(5) > 0, np.nan, 0).astype(dtype)
        codes = masked_omp(X, D, 4, selection=selection)
        assert (codes.indices == -1).all()
        assert not codes.values.any()
        assert not codes.error.any()

    def test_atoms_that_the_observed_entries_do_not_see_are_never_picked(self, dtype, selection):
        D = np.eye(6, dtype=dtype)
        X = np.array([[1, 2, 3, np.nan, np.nan, np.nan]], dtype)
        codes = masked_omp(X, D, 6, selection=selection)
        np.testing.assert_array_equal(codes.to_dense(), [[1, 2, 3, 0, 0, 0]])
        assert codes.error[0] == 0

    def test_zero_and_duplicate_atoms_are_never_picked_twice(self, dtype, selection, rng):
        X, D = random_problem(rng, 40, 6, 8, 0.3, dtype)
        D = np.concatenate([np.zeros((2, 6), dtype), D, D, 2 * D[:3]])
        codes = masked_omp(X, D, 6, selection=selection)
        used = [set(row[row >= 0].tolist()) for row in codes.indices]
        assert all(not {0, 1} & atoms for atoms in used)
        classes = [{(i - 2) % 8 for i in atoms} for atoms in used]
        assert all(len(c) == len(a) for c, a in zip(classes, used, strict=True))
        assert np.isfinite(codes.values).all()

    def test_no_more_atoms_than_values(self, dtype, selection, rng):
        X, D = random_problem(rng, 50, 12, 40, 0.6, dtype)
        codes = masked_omp(X, D, 12, selection=selection)
        observed = (~np.isnan(X)).sum(axis=1)
        assert ((codes.indices >= 0).sum(axis=1) <= observed).all()
        left = np.nansum((X - codes.to_dense() @ D) ** 2, axis=1)
        assert (left <= 1e4 * np.finfo(dtype).eps * np.nansum(X**2, axis=1)).all()

    def test_a_sparse_signal_is_recovered_whole(self, dtype, selection, rng):
        """Inpainting: what was not observed comes back."""
        _, D = random_problem(rng, 1, 100, 120, 0, dtype)
        W = np.zeros((1, 120), dtype)
        W[0, [7, 50]] = 2, -3
        whole = W @ D
        X = whole.copy()
        X[0, ::2] = np.nan
        codes = masked_omp(X, D, 10, selection=selection)
        assert codes.to_csr().indices.tolist() == [7, 50]
        np.testing.assert_allclose(codes.to_dense(), W, atol=1e-4)
        np.testing.assert_allclose(codes.to_dense() @ D, whole, atol=1e-4)

    @pytest.mark.parametrize("factor", [1e-30, 1e-18, 1e17, 1e30])
    def test_scale_does_not_matter(self, dtype, selection, factor, rng):
        X, D = random_problem(rng, 20, 20, 50, 0.4, dtype)
        plain = masked_omp(X, D, 4, selection=selection)
        scaled = [((X * factor).astype(dtype), D, 1 / factor)]
        if dtype == np.float64 or 1e-20 < factor < 1e20:  # else atoms are refused
            scaled.append((X, (D * factor).astype(dtype), factor))
        for signals, atoms, back in scaled:
            scaled = masked_omp(signals, atoms, 4, selection=selection)
            assert (scaled.indices == plain.indices).all()
            np.testing.assert_allclose(scaled.values * back, plain.values, rtol=1e-2, atol=1e-5)


def test_overflow_is_refused(rng):
    X, D = random_problem(rng, 20, 20, 50, 0.3, np.float32)
    with pytest.raises(ValueError, match="squared norm overflows float64; scale X down"):
        masked_omp(X.astype(np.float64) * 1e160, D.astype(np.float64), 4)
    with pytest.raises(ValueError, match="atoms whose squared norm overflows float32"):
        masked_omp(X, (D * 1e25).astype(np.float32), 4)


def test_limits_of_signals(rng):
    X, D = random_problem(rng, 40, 20, 30, 0.3)
    limits = rng.integers(1, 7, 40)
    columns, none = np.ascontiguousarray(D.T), np.empty((40, 0), np.int32)
    indices, values, *_ = cpu.omp_observed(X, D, columns, 6, candidates=none, limits=limits)
    for s, x in enumerate(X):
        support, w = oracles.pursuits.omp_of_observed(x, D, int(limits[s]))
        assert indices[s][indices[s] >= 0].tolist() == sorted(support)
        np.testing.assert_allclose(values[s, : len(w)], w[np.argsort(support)], atol=1e-8)


@pytest.mark.parametrize("n_nonzero", [3, 12])
def test_estimates_are_exact_where_nothing_is_missing(n_nonzero, rng):
    X, D = random_problem(rng, 60, 30, 50, 0, unit=False)
    columns, none = np.ascontiguousarray(D.T), np.empty((60, 0), np.int32)
    exact = cpu.omp_observed(X, D, columns, n_nonzero, candidates=none)
    quick = cpu.omp_observed(X, D, columns, n_nonzero, candidates=none, gram=D @ D.T)
    np.testing.assert_array_equal(quick[0], exact[0])
    np.testing.assert_allclose(quick[1], exact[1], atol=1e-10)


def test_codes_by_estimates_are_the_best_on_their_atoms(rng):
    X, D = random_problem(rng, 60, 30, 50, 0.4)
    codes = masked_omp(X, D, 5, sparing=True)
    for s, x in enumerate(X):
        seen, found = ~np.isnan(x), codes.indices[s][codes.indices[s] >= 0]
        assert len(found) == oracles.observed.sparing_limit(np.append(x, np.nan), 5)
        w = np.linalg.lstsq(D[found][:, seen].T, x[seen], rcond=None)[0]
        np.testing.assert_allclose(codes.values[s, : len(found)], w, atol=1e-8)
    assert codes.error.sum() < 1.5 * masked_omp(X, D, int(codes.n_nonzero / 60)).error.sum()
