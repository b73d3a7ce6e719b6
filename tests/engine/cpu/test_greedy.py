"""Greedy pursuits against the textbook: shapes, dtypes, selections, and every form of the Gram."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles.pursuits
from kernelatoms.engine import cpu
from kernelatoms.engine.cpu import greedy_loops

FORMS = ["gram", "local", "rows"]


def random_problem(seed, n_signals, n_features, n_atoms, dtype, unit=True):
    rng = np.random.default_rng(seed)
    D = rng.standard_normal((n_atoms, n_features))
    if unit:
        D /= np.linalg.norm(D, axis=1, keepdims=True)
    return rng.standard_normal((n_signals, n_features)).astype(dtype), D.astype(dtype)


def products_of(X, D, energies=True):
    def products(start, stop):
        rows = X[start:stop]
        with np.errstate(over="ignore"):
            wide = rows.astype(np.float64)
            return rows @ D.T, np.vecdot(wide, wide) if energies else None

    return products


def local_of(X, D, lists, energies=True):
    def local(start, stop):
        own, listed = D[lists[start:stop]], lists[start:stop] >= 0
        own = own * listed[:, :, None]
        corr, energy = products_of(X, D, energies)(start, stop)
        corr = np.take_along_axis(corr, lists[start:stop], axis=1) * listed
        return own @ own.transpose(0, 2, 1), corr, energy

    return local


def code(X, D, n_nonzero, form="gram", energies=True, **options):
    """Code rows of X over rows of D by one of the three functions."""
    products = products_of(X, D, energies)
    if form == "gram":
        return cpu.omp(cpu.gram_matrix(D), products, len(X), n_nonzero, **options)
    if form == "local":
        lists = np.tile(np.arange(len(D), dtype=np.int32), (len(X), 1))
        return cpu.omp_local(local_of(X, D, lists, energies), lists, n_nonzero, **options)
    return cpu.omp_without_gram(
        lambda atoms: D[atoms] @ D.T, np.vecdot(D, D), products, len(X), n_nonzero, **options
    )


def dense(indices, values, n_atoms):
    W = np.zeros((len(indices), n_atoms), values.dtype)
    used = indices >= 0
    W[np.nonzero(used)[0], indices[used]] = values[used]
    return W


def assert_padded_codes(indices, values, left):
    assert indices.dtype == np.int32
    assert left.dtype == np.float64
    assert not values[indices < 0].any()
    for row in indices:
        used = row[row >= 0]
        assert (np.diff(used) > 0).all()
        assert (row[len(used) :] == -1).all()


shapes = {
    "seed": st.integers(0, 2**32 - 1),
    "n_signals": st.integers(1, 30),
    "n_features": st.integers(1, 40),
    "n_atoms": st.integers(1, 150),
    "n_nonzero": st.integers(1, 12),
    "unit": st.booleans(),
}


@given(**shapes, use_ols=st.booleans(), form=st.sampled_from(FORMS))
def test_agrees_with_the_textbook(
    seed, n_signals, n_features, n_atoms, n_nonzero, unit, use_ols, form
):
    X, D = random_problem(seed, n_signals, n_features, n_atoms, np.float64, unit)
    indices, values, left = code(X, D, n_nonzero, form, use_ols=use_ols)
    assert_padded_codes(indices, values, left)
    for s, x in enumerate(X):
        support, w = oracles.pursuits.omp(x, D, n_nonzero, ols=use_ols)
        order = np.argsort(support)
        support, w = [support[i] for i in order], w[order]
        n = len(support)
        found = indices[s][indices[s] >= 0]
        residual = x - values[s, : len(found)] @ D[found]
        expected = x - w @ D[support]
        if not use_ols or np.array_equal(found, support):
            assert found.tolist() == support
            np.testing.assert_allclose(values[s, :n], w, rtol=1e-6, atol=1e-8)
        # Where OLS breaks a tie differently, it must do as well.
        np.testing.assert_allclose(residual @ residual, expected @ expected, atol=1e-8 * (x @ x))
        np.testing.assert_allclose(left[s], expected @ expected, atol=1e-8 * (x @ x))


small_shapes = {
    "seed": st.integers(0, 2**32 - 1),
    "n_signals": st.integers(1, 8),
    "spare": st.integers(2, 10),
    "n_atoms": st.integers(1, 80),
    "n_nonzero": st.integers(1, 5),
    "unit": st.booleans(),
    "shift": st.sampled_from([0.0, 0.5]),
    "use_ols": st.booleans(),
    "form": st.sampled_from(FORMS),
}


@given(**small_shapes)
def test_nonnegative_codes_agree_with_the_textbook(
    seed, n_signals, spare, n_atoms, n_nonzero, unit, shift, use_ols, form
):
    # With one dimension left all atoms explain the same of it, and OLS has many right choices.
    X, D = random_problem(seed, n_signals, n_nonzero + spare, n_atoms, np.float64, unit)
    X, D = X + shift, D + shift  # correlated atoms, of which more leave again
    indices, values, left = code(X, D, n_nonzero, form, use_ols=use_ols, positive=True)
    assert_padded_codes(indices, values, left)
    W = dense(indices, values, n_atoms)
    for s, x in enumerate(X):
        support, w = oracles.pursuits.nonnegative_omp(x, D, n_nonzero, ols=use_ols)
        expected = np.zeros(n_atoms)
        expected[support] = w
        np.testing.assert_allclose(W[s], expected, rtol=1e-6, atol=1e-8)
        residual = x - W[s] @ D
        np.testing.assert_allclose(left[s], residual @ residual, atol=1e-9 * (x @ x))


@given(
    seed=st.integers(0, 2**32 - 1),
    n_features=st.integers(2, 30),
    n_atoms=st.integers(1, 150),
    n_nonzero=st.integers(1, 20),
    dtype=st.sampled_from([np.float32, np.float64]),
    shift=st.sampled_from([0.0, 0.3, 1.0]),
    use_ols=st.booleans(),
    form=st.sampled_from(FORMS),
)
def test_nonnegative_codes_are_optimal_on_their_support(
    seed, n_features, n_atoms, n_nonzero, dtype, shift, use_ols, form
):
    """Karush, Kuhn and Tucker: w > 0 and a zero gradient where an atom is used."""
    X, D = random_problem(seed, 10, n_features, n_atoms, np.float64)
    X, D = (X + shift).astype(dtype), (D + shift).astype(dtype)
    indices, values, left = code(X, D, n_nonzero, form, use_ols=use_ols, positive=True)
    W = dense(indices, values, n_atoms).astype(np.float64)
    assert (values[indices >= 0] > 0).all()
    X, D = X.astype(np.float64), D.astype(np.float64)
    residual, norms = X - W @ D, np.linalg.norm(D, axis=1)
    tolerance = 2e3 * np.finfo(dtype).eps
    size = np.maximum(np.linalg.norm(X, axis=1), (W * norms).sum(axis=1))
    cosines = residual @ D.T / norms / size[:, None]
    assert np.abs(cosines[W > 0]).max(initial=0) < tolerance
    # OMP that could have used another atom found none of positive correlation but such that
    # picked ones nearly span, whose coefficients would be large enough to make rounding visible.
    # (OLS may prefer such an atom to ones that would do: by what is new in it, not by its cosine.)
    # It picks by correlations, not cosines, so that short atoms may have larger ones.
    if not use_ols:
        short = (indices >= 0).sum(axis=1) < min(n_nonzero, n_atoms)
        largest = norms.max() / norms.min() * np.sqrt(1e4 * np.finfo(dtype).eps)
        assert cosines[short].max(initial=0) < largest
    np.testing.assert_allclose(
        left, np.vecdot(residual, residual), atol=tolerance * (size**2).max()
    )


def test_atoms_leave_nonnegative_codes():
    """Two atoms and, between them, a third that is picked first and then of no use."""
    D = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.7, 0.7, 0.2]])
    X = np.array([[1.0, 0.9, -0.1]])
    for form in FORMS:
        for use_ols in (False, True):
            first = code(X, D, 1, form, use_ols=use_ols, positive=True)[0]
            assert first.tolist() == [[2]]
            indices, values, left = code(X, D, 3, form, use_ols=use_ols, positive=True)
            assert indices.tolist() == [[0, 1, -1]]
            np.testing.assert_allclose(values, [[1.0, 0.9, 0.0]])
            np.testing.assert_allclose(left, [0.01])


def test_signals_opposite_to_all_atoms_have_no_nonnegative_code(rng):
    D = rng.random((30, 8))
    for form in FORMS:
        indices, values, left = code(-D[:4], D, 3, form, positive=True)
        assert (indices == -1).all()
        assert not values.any()
        np.testing.assert_allclose(left, np.vecdot(D[:4], D[:4]))


@pytest.mark.parametrize("positive", [False, True])
@given(**shapes, use_ols=st.booleans())
def test_float32_is_near_float64(
    positive, seed, n_signals, n_features, n_atoms, n_nonzero, unit, use_ols
):
    X, D = random_problem(seed, n_signals, n_features, n_atoms, np.float32, unit)
    options = {"use_ols": use_ols, "positive": positive}
    indices, values, left = code(X, D, n_nonzero, **options)
    wide, wide_D = X.astype(np.float64), D.astype(np.float64)
    expected, _, expected_left = code(wide, wide_D, n_nonzero, **options)
    assert values.dtype == np.float32
    energy = np.vecdot(wide, wide)
    residual = wide - dense(indices, values, n_atoms).astype(np.float64) @ wide_D
    sizes = (np.abs(dense(indices, values, n_atoms)) * np.linalg.norm(D, axis=1)).sum(axis=1)
    tolerance = 100 * np.finfo(np.float32).eps * np.maximum(energy, sizes**2)
    assert (np.abs(np.vecdot(residual, residual) - left) <= tolerance).all()
    # A near tie may pick another atom of about the same use, after which all may differ.
    same = (indices == expected).all(axis=1)
    assert (np.abs(left - expected_left) <= tolerance)[same].all()


@pytest.mark.parametrize("use_ols", [False, True])
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_float32_finds_the_supports_of_float64(use_ols, positive, form, rng):
    X, D = random_problem(rng, 300, 64, 200, np.float32)
    options = {"use_ols": use_ols, "positive": positive}
    single = code(X, D, 8, form, **options)
    double = code(X.astype(np.float64), D.astype(np.float64), 8, form, **options)
    same = (single[0] == double[0]).all(axis=1)
    assert same.mean() > 0.98
    np.testing.assert_allclose(single[1][same], double[1][same], rtol=1e-3, atol=1e-4)


@given(
    seed=st.integers(0, 2**32 - 1),
    stop_at=st.floats(0.05, 0.95),
    relative=st.booleans(),
    use_ols=st.booleans(),
    form=st.sampled_from(FORMS),
)
def test_stops_at_the_residual_asked_for(seed, stop_at, relative, use_ols, form):
    X, D = random_problem(seed, 20, 15, 40, np.float64)
    norms = np.linalg.norm(X, axis=1)
    # A goal of its own for every signal.
    goals = stop_at * np.linspace(0.5, 1.0, 20)
    stops = goals if relative else goals * norms
    indices, values, _ = code(X, D, 15, form, stop_at=stops, relative=relative, use_ols=use_ols)
    share = np.linalg.norm(X - dense(indices, values, 40) @ D, axis=1) / norms
    assert (share <= goals * (1 + 1e-9)).all()
    for s in range(20):
        n = int((indices[s] >= 0).sum())
        # One atom fewer would not have been enough.
        shorter = code(X[s : s + 1], D, max(n - 1, 1), use_ols=use_ols)[2]
        assert n == 1 or np.sqrt(shorter[0]) > goals[s] * norms[s]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("positive", [False, True])
def test_a_goal_above_the_signal_needs_no_atoms(form, positive, rng):
    X, D = random_problem(rng, 5, 6, 9, np.float64)
    stops = np.array([100.0, np.inf, 100.0, 100.0, 0.0])
    indices, _, left = code(X, D, 3, form, stop_at=stops, relative=False, positive=positive)
    assert (indices[:4] == -1).all()
    assert (indices[4] >= 0).all()
    np.testing.assert_allclose(left[:4], np.vecdot(X, X)[:4])
    zero = np.zeros((2, 6))
    indices, _, _ = code(zero, D, 3, form, stop_at=np.array([0.0, np.inf]), positive=positive)
    assert (indices == -1).all()


@given(
    seed=st.integers(0, 2**32 - 1),
    n_candidates=st.integers(1, 90),
    use_ols=st.booleans(),
    positive=st.booleans(),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_candidate_lists_are_local_dictionaries(seed, n_candidates, use_ols, positive, dtype):
    X, D = random_problem(seed, 12, 20, 90, dtype)
    rng = np.random.default_rng(seed)
    lists = np.array([rng.permutation(90)[:n_candidates] for _ in X], dtype=np.int32)
    lists[rng.random(lists.shape) < 0.2] = -1
    options = {"use_ols": use_ols, "positive": positive}
    indices, values, left = cpu.omp_local(local_of(X, D, lists), lists, 5, **options)
    assert_padded_codes(indices, values, left)
    assert values.dtype == dtype
    W = dense(indices, values, 90)
    for s in range(len(X)):
        mine = lists[s][lists[s] >= 0]
        if len(mine) == 0:
            assert (indices[s] == -1).all()
            continue
        alone = code(X[s : s + 1], D[mine], 5, **options)
        expected = np.zeros(90)
        expected[mine] = dense(*alone[:2], len(mine))[0]
        tolerance = {"rtol": 1e-7, "atol": 1e-9}
        if dtype == np.float32:
            tolerance = {"rtol": 1e-3, "atol": 1e-4}
            if set(np.flatnonzero(expected)) != set(np.flatnonzero(W[s])):
                continue  # a near tie of float32
        np.testing.assert_allclose(W[s], expected, **tolerance)


@pytest.mark.parametrize("use_ols", [False, True])
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_duplicate_candidates_do_no_harm(use_ols, positive, dtype, rng):
    X, D = random_problem(rng, 30, 12, 60, dtype)
    lists = rng.integers(0, 60, (30, 20)).astype(np.int32)
    twice = np.concatenate([lists, lists[:, ::-1], np.full((30, 3), -1, np.int32)], axis=1)
    options = {"use_ols": use_ols, "positive": positive}
    once = [cpu.omp_local(local_of(X, D, some), some, 9, **options) for some in (lists, twice)]
    assert (once[0][0] == once[1][0]).all()
    np.testing.assert_allclose(once[0][1], once[1][1], rtol=1e-3, atol=1e-5)
    assert_padded_codes(*once[1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("use_ols", [False, True])
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_batch_is_one_by_one(dtype, use_ols, positive, form, rng):
    X, D = random_problem(rng, 200, 30, 130, dtype)
    options = {"use_ols": use_ols, "positive": positive}
    together = code(X, D, 6, form, **options)
    for s in range(0, 200, 7):
        alone = code(X[s : s + 1], D, 6, **options)
        assert alone[0][0].tolist() == together[0][s].tolist()
        np.testing.assert_allclose(alone[1][0], together[1][s], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("n_nonzero", [1, 2, 7, 70])
@pytest.mark.parametrize("form", FORMS)
def test_ragged_codes_are_the_padded_ones(form, n_nonzero, rng):
    X, D = random_problem(rng, 90, 20, 70, np.float32)
    X[[0, 5, 89]] = 0
    options = {"stop_at": np.full(90, 0.3)}
    indices, values, left = code(X, D, n_nonzero, form, **options)
    indptr, some, some_values, same_left = code(X, D, n_nonzero, form, ragged=True, **options)
    assert indptr.dtype == np.int64
    assert some.dtype == np.int32
    np.testing.assert_array_equal(np.diff(indptr), (indices >= 0).sum(axis=1))
    np.testing.assert_array_equal(some, indices[indices >= 0])
    np.testing.assert_array_equal(some_values, values[indices >= 0])
    np.testing.assert_array_equal(same_left, left)


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_no_signals_have_no_codes(form, ragged, rng):
    _, D = random_problem(rng, 1, 4, 6, np.float64)
    found = code(np.empty((0, 4)), D, 3, form, ragged=ragged)
    assert [len(part) for part in found] == ([1, 0, 0, 0] if ragged else [0, 0, 0])


def test_empty_candidate_lists_have_no_codes(rng):
    X, D = random_problem(rng, 5, 4, 6, np.float32)
    lists = np.empty((5, 0), np.int32)
    for positive in (False, True):
        indices, values, left = cpu.omp_local(local_of(X, D, lists), lists, 3, positive=positive)
        assert (indices == -1).all()
        assert not values.any()
        np.testing.assert_allclose(left, np.vecdot(X, X))


def test_supports_are_scikit_learns(rng):
    from sklearn.linear_model import orthogonal_mp_gram

    X, D = random_problem(rng, 300, 64, 200, np.float64)
    theirs = orthogonal_mp_gram(D @ D.T, D @ X.T, n_nonzero_coefs=8).T
    for form in FORMS:
        ours = dense(*code(X, D, 8, form)[:2], 200)
        assert ((ours != 0) == (theirs != 0)).all()
        np.testing.assert_allclose(ours, theirs, atol=1e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("use_ols", [False, True])
@pytest.mark.parametrize("form", FORMS)
class TestDegenerateProblems:
    def test_zero_signals_use_no_atoms(self, dtype, use_ols, form, rng):
        _, D = random_problem(rng, 1, 5, 9, dtype)
        for positive in (False, True):
            indices, values, left = code(
                np.zeros((3, 5), dtype), D, 4, form, use_ols=use_ols, positive=positive
            )
            assert (indices == -1).all()
            assert not values.any()
            assert not left.any()

    @pytest.mark.parametrize("positive", [False, True])
    def test_zero_and_duplicate_atoms_are_never_picked_twice(
        self, dtype, use_ols, form, positive, rng
    ):
        X, D = random_problem(rng, 40, 6, 8, dtype)
        D = np.concatenate([np.zeros((2, 6), dtype), D, D, 2 * D[:3]])
        indices, values, _ = code(X, D, 6, form, use_ols=use_ols, positive=positive)
        used = [set(row[row >= 0].tolist()) for row in indices]
        assert all(not {0, 1} & atoms for atoms in used)
        classes = [{(i - 2) % 8 for i in atoms} for atoms in used]
        assert all(len(c) == len(a) for c, a in zip(classes, used, strict=True))
        assert np.isfinite(values).all()

    def test_ties_go_to_the_lowest_index(self, dtype, use_ols, form, rng):
        X, D = random_problem(rng, 20, 6, 40, dtype)
        D = np.concatenate([D, D])
        assert code(X, D, 3, form, use_ols=use_ols)[0].max() < 40

    def test_more_nonzeros_than_rank_stop_at_an_exact_code(self, dtype, use_ols, form, rng):
        basis = rng.standard_normal((3, 20))
        D = (rng.standard_normal((30, 3)) @ basis).astype(dtype)
        X = (rng.standard_normal((50, 3)) @ basis).astype(dtype)
        indices, values, _ = code(X, D, 12, form, use_ols=use_ols)
        counts = (indices >= 0).sum(axis=1)
        errors = np.linalg.norm(X - dense(indices, values, 30) @ D, axis=1)
        errors /= np.linalg.norm(X, axis=1)
        # The codes solve normal equations, whose condition is that of the atoms squared.
        conditions = [np.linalg.cond(D[row[row >= 0]].astype(float)) ** 2 for row in indices]
        exact = errors < 10 * np.finfo(dtype).eps * np.array(conditions)
        # With two of three atoms, all others explain the rest alike: by rounded ratios the best may
        # be one that the two nearly span, with which OLS stops in float32, or needs a fourth.
        assert exact.mean() > 0.8 if use_ols and dtype == np.float32 else exact.all()
        assert (counts <= 3).mean() > 0.85 if use_ols else counts.max() <= 3
        assert counts.max() <= 4

    def test_what_rounding_ends_is_told(self, dtype, use_ols, form, rng):
        """Of 30 atoms of rank 3: who stops short of an exact code is not settled."""
        basis = rng.standard_normal((3, 20))
        D = (rng.standard_normal((30, 3)) @ basis).astype(dtype)
        X = (rng.standard_normal((200, 3)) @ basis).astype(dtype)
        for ragged in (False, True):
            *found, left, unsettled = code(
                X, D, 12, form, use_ols=use_ols, ragged=ragged, leave_unsettled=True
            )
            assert unsettled.dtype == bool
            assert unsettled.shape == left.shape == (200,)
            if not ragged:
                indices, values = found
        conditions = [np.linalg.cond(D[row[row >= 0]].astype(float)) ** 2 for row in indices]
        errors = np.linalg.norm(X - dense(indices, values, 30) @ D, axis=1)
        errors /= np.linalg.norm(X, axis=1)
        bound = np.finfo(dtype).eps * np.maximum(10 * np.array(conditions), 200)
        assert (errors < bound)[~unsettled].all()
        assert unsettled.mean() < 0.6

    def test_more_nonzeros_than_atoms(self, dtype, use_ols, form, rng):
        X, D = random_problem(rng, 10, 30, 7, dtype)
        indices, values, left = code(X, D, 12, form, use_ols=use_ols)
        assert indices.shape == values.shape == (10, 12)
        expected = X - (X @ np.linalg.pinv(D)) @ D
        np.testing.assert_allclose(left, np.vecdot(expected, expected), rtol=1e-4)

    @pytest.mark.parametrize("positive", [False, True])
    def test_a_sparse_signal_is_recovered_and_the_pursuit_stops(
        self, dtype, use_ols, form, positive, rng
    ):
        _, D = random_problem(rng, 1, 100, 120, dtype)
        W = np.zeros((1, 120), dtype)
        W[0, [7, 50]] = 2, 3 if positive else -3
        indices, values, _ = code(W @ D, D, 10, form, use_ols=use_ols, positive=positive)
        assert sorted(indices[0][indices[0] >= 0].tolist()) == [7, 50]
        np.testing.assert_allclose(dense(indices, values, 120), W, atol=1e-4)

    def test_scale_does_not_matter(self, dtype, use_ols, form, rng):
        X, D = random_problem(rng, 30, 20, 50, dtype)
        for positive in (False, True):
            options = {"use_ols": use_ols, "positive": positive}
            indices = code(X, D, 5, form, **options)[0]
            for factor in (1e-12, 1e12):
                scaled = code((X * factor).astype(dtype), D, 5, form, **options)
                assert (scaled[0] == indices).all()

    def test_one_atom(self, dtype, use_ols, form):
        X = np.array([[3.0, 4.0]], dtype)
        D = np.array([[0.0, 2.0]], dtype)
        indices, values, left = code(X, D, 1, form, use_ols=use_ols)
        assert (indices.tolist(), values.tolist()) == ([[0]], [[2.0]])
        assert left[0] == pytest.approx(9.0)


@given(
    seed=st.integers(0, 2**32 - 1),
    angle=st.floats(-1.0, 1.5),
    n_nonzero=st.integers(10, 30),
    dtype=st.sampled_from([np.float32, np.float64]),
    use_ols=st.booleans(),
    positive=st.booleans(),
    form=st.sampled_from(FORMS),
)
def test_nearly_parallel_atoms_do_no_harm(seed, angle, n_nonzero, dtype, use_ols, positive, form):
    """No code is worse than none, and the error told is the true one.

    Angles around the one at which coefficients grow to where rounding shows.
    """
    rng = np.random.default_rng(seed)
    spread = 10**angle * np.sqrt(1e3 * np.finfo(dtype).eps)
    D = (rng.standard_normal(30) + spread * rng.standard_normal((60, 30))).astype(dtype)
    X = rng.standard_normal((20, 30)).astype(dtype)
    indices, values, left = code(X, D, n_nonzero, form, use_ols=use_ols, positive=positive)
    wide = X.astype(np.float64)
    residual = wide - dense(indices, values, 60).astype(np.float64) @ D.astype(np.float64)
    error, energy = np.vecdot(residual, residual), np.vecdot(wide, wide)
    assert (error <= energy * (1 + 1e-3)).all()
    assert (np.abs(left - error) <= 1e-3 * energy).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("use_ols", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_steps_that_pass_their_check_are_taken(dtype, use_ols, form):
    """Two atoms at an angle at which rounding shows a little; the signal is orthogonal to one."""
    angle = np.sqrt(1e5 * np.finfo(dtype).eps)
    D = np.array([[1.0, 0.0, 0.0], [1.0, angle, 0.0]], dtype)
    X = np.array([[0.3, 1.0, 0.2]], dtype)
    _, values, left = code(X, D, 2, form, use_ols=use_ols)
    np.testing.assert_allclose(values, [[0.3 - 1 / angle, 1 / angle]], rtol=1e-2)
    np.testing.assert_allclose(left, [0.04], atol=1e-3)


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 7), shift=st.sampled_from([0.0, 0.5, 2.0]))
def test_small_nonnegative_least_squares(seed, n, shift):
    rng = np.random.default_rng(seed)
    A, x = rng.standard_normal((n, 10)) + shift, rng.standard_normal(10) + shift / 2
    w = np.zeros(n)
    assert greedy_loops._nonnegative_least_squares(A @ A.T, A @ x, 0.0, n, w, np.zeros(n, bool))
    expected = oracles.pursuits.nonnegative_least_squares(x, A)
    np.testing.assert_allclose(w, expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("span", [6, 12, 20, 26])
def test_ols_does_not_care_about_the_norms_of_atoms(span, dtype, positive, form, rng):
    X, D = random_problem(rng.integers(2**32), 60, 24, 40, dtype)
    exponents = rng.integers(-span, span, len(D), endpoint=True)
    options = {"use_ols": True, "positive": positive, "form": form}
    indices, values, left = code(X, D, 8, **options)
    found, scaled, rest = code(X, np.ldexp(D, exponents[:, None]), 8, **options)
    np.testing.assert_array_equal(found, indices)
    np.testing.assert_allclose(np.ldexp(scaled, exponents[found]), values, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(rest, left, rtol=1e-4)


@pytest.mark.parametrize("form", FORMS)
def test_without_energies_what_is_left_is_known_up_to_them(form, rng):
    X, D = random_problem(rng, 30, 20, 50, np.float64)
    known, unknown = code(X, D, 4, form), code(X, D, 4, form, energies=False)
    assert (known[0] == unknown[0]).all()
    np.testing.assert_allclose(unknown[2] + np.vecdot(X, X), known[2])
    with pytest.raises(ValueError, match="max_residual needs k"):
        code(X, D, 4, form, energies=False, stop_at=np.full(30, 0.1))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("factor", [1e-30, 1e-18, 1e17, 1e30])
def test_float32_codes_signals_far_from_one(factor, form, rng):
    X, D = random_problem(rng, 20, 20, 50, np.float32)
    for positive in (False, True):
        plain = code(X, D, 4, form, positive=positive)
        scaled = code((X * factor).astype(np.float32), D, 4, form, positive=positive)
        assert (scaled[0] == plain[0]).all()
        np.testing.assert_allclose(scaled[1] / factor, plain[1], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("form", FORMS)
class TestBadInput:
    def test_overflowing_signals_are_refused(self, form, rng):
        X, D = random_problem(rng, 20, 20, 50, np.float64)
        with pytest.raises(ValueError, match="squared norm overflows float64, or is undefined"):
            code(X * 1e160, D, 4, form)

    def test_stops_must_fit_the_signals(self, form, rng):
        X, D = random_problem(rng, 20, 20, 50, np.float64)
        with pytest.raises(ValueError, match="one number for each of 20 signals, got shape"):
            code(X, D, 4, form, stop_at=np.ones(19))
        for wrong in (-1.0, np.nan):
            with pytest.raises(ValueError, match="stop_at must not hold negative"):
                code(X, D, 4, form, stop_at=np.full(20, wrong))

    def test_at_least_one_nonzero(self, form, rng):
        X, D = random_problem(rng, 20, 20, 50, np.float64)
        with pytest.raises(ValueError, match="n_nonzero must be at least 1, got 0"):
            code(X, D, 0, form)

    def test_integers_are_refused(self, form):
        X, D = np.ones((3, 4), int), np.eye(4, dtype=int)
        with pytest.raises(TypeError, match="must be float32 or float64, got int64"):
            code(X, D, 1, form)


def test_shapes_that_do_not_fit_are_refused(rng):
    X, D = random_problem(rng, 20, 20, 50, np.float64)
    gram, products = D @ D.T, products_of(X, D)
    with pytest.raises(ValueError, match="Gram matrix must be square"):
        cpu.omp(gram[:, :40], products, 20, 3)
    with pytest.raises(ValueError, match=r"correlations must have shape \(\d+, 40\)"):
        cpu.omp(gram[:40, :40], products, 20, 3)
    with pytest.raises(ValueError, match=r"energies must have shape"):
        cpu.omp(gram, lambda a, b: (X[a:b] @ D.T, np.ones(3)), 20, 3)
    with pytest.raises(ValueError, match=r"Gram rows must have shape \(\d+, 50\)"):
        cpu.omp_without_gram(lambda ids: gram[ids, :40], np.vecdot(D, D), products, 20, 3)
    lists = np.zeros((20, 4), np.int32)
    with pytest.raises(ValueError, match=r"local Gram matrices must have shape \(\d+, 4, 4\)"):
        cpu.omp_local(lambda a, b: (gram[None, :3, :3], X[a:b, :4], None), lists, 3)


def test_inner_products_in_any_layout_code_the_same(rng):
    X, D = random_problem(rng, 40, 20, 50, np.float64)
    expected = code(X, D, 4)
    frozen = D @ D.T
    frozen.flags.writeable = False
    corr = np.asfortranarray(X @ D.T)
    corr.flags.writeable = False
    before = corr.copy()
    energy = np.vecdot(X, X)
    found = cpu.omp(frozen, lambda a, b: (corr[a:b], energy[a:b]), 40, 4)
    assert (found[0] == expected[0]).all()
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-9)
    assert (corr == before).all()


def test_correlations_are_only_read(rng):
    X, D = random_problem(rng, 40, 20, 64, np.float64)
    corr, gram = X @ D.T, D @ D.T
    kept, kept_gram = corr.copy(), gram.copy()
    for positive in (False, True):
        for use_ols in (False, True):
            options = {"positive": positive, "use_ols": use_ols}
            cpu.omp(gram, lambda a, b: (corr[a:b], None), 40, 4, **options)
            cpu.omp_without_gram(
                lambda ids: gram[ids], np.diagonal(gram), lambda a, b: (corr[a:b], None), 40, 4,
                **options,
            )  # fmt: skip
            assert (corr == kept).all()
            assert (gram == kept_gram).all()


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("budget", [1, 40_000, 1 << 27])
def test_blocks_without_a_gram_matrix_may_be_small(budget, positive, monkeypatch, rng):
    """Rows of atoms that left are given up where their memory is needed."""
    monkeypatch.setattr(cpu.greedy, "_BYTES_WITHOUT_GRAM", budget)
    X, D = random_problem(rng, 60, 10, 100, np.float64)
    X, D = X + 0.5, D + 0.5
    for use_ols in (False, True):
        options = {"use_ols": use_ols, "positive": positive}
        expected, found = code(X, D, 6, **options), code(X, D, 6, "rows", **options)
        assert (found[0] == expected[0]).all()
        np.testing.assert_allclose(found[1], expected[1], rtol=1e-6, atol=1e-9)


def test_atoms_that_signals_share_are_fetched_once(rng):
    X, D = random_problem(rng, 30, 10, 20, np.float64)
    asked = []

    def gram_rows(atoms):
        asked.extend(atoms.tolist())
        return D[atoms] @ D.T

    monkey = cpu.omp_without_gram(gram_rows, np.vecdot(D, D), products_of(X, D), 30, 5)
    assert (monkey[0] >= 0).all()
    assert len(asked) <= 20 * 2  # blocks of signals


CODE_OVER_MANY_ATOMS = """
import resource
import numpy as np
from kernelatoms.engine import cpu
rng = np.random.default_rng(0)
D = rng.standard_normal(({n_atoms}, 32), dtype=np.float32)
X = rng.standard_normal(({n_signals}, 32), dtype=np.float32)
def products(start, stop):
    return X[start:stop] @ D.T, np.vecdot(X[start:stop], X[start:stop])
def code(n):
    return cpu.omp_without_gram(lambda ids: D[ids] @ D.T, np.vecdot(D, D), products, n, 10)
code(1)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
code({n_signals})
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


def test_many_atoms_need_no_square_of_memory():
    """25,000 float32 atoms, whose Gram matrix has 2.3 GiB; two threads of 128 MiB."""
    done = subprocess.run(
        [sys.executable, "-c", CODE_OVER_MANY_ATOMS.format(n_atoms=25_000, n_signals=300)],
        env={**os.environ, "KERNELATOMS_NUM_THREADS": "2"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert float(done.stdout) < 400
