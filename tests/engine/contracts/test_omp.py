"""Greedy pursuits on every machine: the textbook, each other, dtypes, and every form."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles.pursuits
from greedy_cases import (
    FORMS,
    SELECTIONS,
    assert_padded_codes,
    code,
    code_local,
    dense,
    energies_of,
    numpy_of,
    products_of,
    random_problem,
    residual_energies,
)
from machines import NUMPY

seeds = st.integers(0, 2**32 - 1)
both = st.booleans()
forms = st.sampled_from(FORMS)
dtypes = st.sampled_from([np.float32, np.float64])
shifts = st.sampled_from([0.0, 0.3, 1.0])
goals = st.sampled_from([None, 0.0, 0.2, 0.7])


@given(
    seed=seeds,
    n_signals=st.integers(1, 30),
    n_features=st.integers(1, 40),
    n_atoms=st.integers(1, 150),
    n_nonzero=st.integers(1, 12),
    unit=both,
    use_ols=both,
    form=forms,
)
def test_agrees_with_the_textbook(
    machine, seed, n_signals, n_features, n_atoms, n_nonzero, unit, use_ols, form
):
    X, D = random_problem(seed, n_signals, n_features, n_atoms, np.float64, unit=unit)
    indices, values, left = code(machine, X, D, n_nonzero, form, use_ols=use_ols)
    assert_padded_codes(indices, values, left)
    W = dense(indices, values, n_atoms)
    for s, x in enumerate(X):
        support, w = oracles.pursuits.omp(x, D, n_nonzero, ols=use_ols)
        found = indices[s][indices[s] >= 0].tolist()
        # With one dimension left, all atoms explain the same of it: OLS has many right choices.
        if not use_ols or n_nonzero < n_features:
            assert found == sorted(support)
        if found == sorted(support):
            np.testing.assert_allclose(W[s, support], w, rtol=1e-6, atol=1e-8)
        # Where OLS breaks a tie differently, it must do as well.
        residual, expected = x - W[s] @ D, x - w @ D[support]
        np.testing.assert_allclose(residual @ residual, expected @ expected, atol=1e-8 * (x @ x))
        np.testing.assert_allclose(left[s], expected @ expected, atol=1e-8 * (x @ x))


@given(
    seed=seeds,
    n_signals=st.integers(1, 40),
    n_features=st.integers(1, 40),
    n_atoms=st.integers(1, 120),
    n_nonzero=st.integers(1, 20),
    stop_at=goals,
    relative=both,
    use_ols=both,
    form=forms,
)
def test_every_form_agrees_with_a_gram_matrix_in_numpy(
    machine, seed, n_signals, n_features, n_atoms, n_nonzero, stop_at, relative, use_ols, form
):
    X, D = random_problem(seed, n_signals, n_features, n_atoms, np.float64)
    stops = None if stop_at is None else np.full(n_signals, stop_at)
    options = {"stop_at": stops, "relative": relative, "use_ols": use_ols}
    indices, values, left = code(machine, X, D, n_nonzero, form, **options)
    expected, expected_values, expected_left = code(NUMPY, X, D, n_nonzero, **options)
    assert_padded_codes(indices, values, left)
    energy = energies_of(X)
    np.testing.assert_allclose(left / energy, expected_left / energy, atol=1e-8)
    np.testing.assert_allclose(
        residual_energies(X, D, indices, values) / energy, left / energy, atol=1e-8
    )
    # With one dimension left, all atoms explain the same of it: OLS has many right choices, among
    # them atoms that the picked ones nearly span.
    if not (use_ols and n_nonzero >= n_features):
        assert (indices == expected).all()
        np.testing.assert_allclose(values, expected_values, rtol=1e-6, atol=1e-8)


@given(
    seed=seeds,
    n_signals=st.integers(1, 40),
    spare=st.integers(2, 30),
    n_atoms=st.integers(1, 120),
    n_nonzero=st.integers(1, 20),
    shift=shifts,
    stop_at=goals,
    use_ols=both,
    form=forms,
)
def test_nonnegative_codes_agree_with_a_gram_matrix_in_numpy(
    machine, seed, n_signals, spare, n_atoms, n_nonzero, shift, stop_at, use_ols, form
):
    X, D = random_problem(seed, n_signals, n_nonzero + spare, n_atoms, np.float64, shift)
    stops = None if stop_at is None else np.full(n_signals, stop_at)
    options = {"stop_at": stops, "use_ols": use_ols, "positive": True}
    indices, values, left = code(machine, X, D, n_nonzero, form, **options)
    expected, expected_values, expected_left = code(NUMPY, X, D, n_nonzero, **options)
    assert_padded_codes(indices, values, left)
    assert (indices == expected).all()
    np.testing.assert_allclose(values, expected_values, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(left, expected_left, atol=1e-8 * energies_of(X).max())


@given(
    seed=seeds,
    n_signals=st.integers(1, 8),
    spare=st.integers(2, 10),
    n_atoms=st.integers(1, 80),
    n_nonzero=st.integers(1, 5),
    unit=both,
    shift=st.sampled_from([0.0, 0.5]),
    use_ols=both,
    form=forms,
)
def test_nonnegative_codes_agree_with_the_textbook(
    machine, seed, n_signals, spare, n_atoms, n_nonzero, unit, shift, use_ols, form
):
    # With one dimension left all atoms explain the same of it, and OLS has many right choices.
    # A shift correlates the atoms, of which more leave again.
    n_features = n_nonzero + spare
    X, D = random_problem(seed, n_signals, n_features, n_atoms, np.float64, shift, unit)
    indices, values, left = code(machine, X, D, n_nonzero, form, use_ols=use_ols, positive=True)
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
    seed=seeds,
    n_features=st.integers(2, 30),
    n_atoms=st.integers(1, 150),
    n_nonzero=st.integers(1, 20),
    dtype=dtypes,
    shift=shifts,
    use_ols=both,
    form=forms,
)
def test_nonnegative_codes_are_optimal_on_their_support(
    machine, seed, n_features, n_atoms, n_nonzero, dtype, shift, use_ols, form
):
    """Karush, Kuhn and Tucker: w > 0 and a zero gradient where an atom is used."""
    X, D = random_problem(seed, 10, n_features, n_atoms, dtype, shift)
    indices, values, left = code(machine, X, D, n_nonzero, form, use_ols=use_ols, positive=True)
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
    np.testing.assert_allclose(left, energies_of(residual), atol=tolerance * (size**2).max())


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("use_ols", [False, True])
def test_atoms_leave_nonnegative_codes(machine, form, use_ols):
    """Two atoms and, between them, a third that is picked first and then of no use."""
    D = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.7, 0.7, 0.2]])
    X = np.array([[1.0, 0.9, -0.1]])
    options = {"use_ols": use_ols, "positive": True}
    assert code(machine, X, D, 1, form, **options)[0].tolist() == [[2]]
    indices, values, left = code(machine, X, D, 3, form, **options)
    assert indices.tolist() == [[0, 1, -1]]
    np.testing.assert_allclose(values, [[1.0, 0.9, 0.0]])
    np.testing.assert_allclose(left, [0.01])


@pytest.mark.parametrize("form", FORMS)
def test_signals_opposite_to_all_atoms_have_no_nonnegative_code(machine, form, rng):
    D = rng.random((30, 8))
    indices, values, left = code(machine, -D[:4], D, 3, form, positive=True)
    assert (indices == -1).all()
    assert not values.any()
    np.testing.assert_allclose(left, energies_of(D[:4]))


@pytest.mark.parametrize("positive", [False, True])
@given(
    seed=seeds,
    n_signals=st.integers(1, 30),
    n_features=st.integers(1, 40),
    n_atoms=st.integers(1, 150),
    n_nonzero=st.integers(1, 12),
    unit=both,
    use_ols=both,
)
def test_float32_is_near_float64(
    machine, positive, seed, n_signals, n_features, n_atoms, n_nonzero, unit, use_ols
):
    X, D = random_problem(seed, n_signals, n_features, n_atoms, np.float32, unit=unit)
    options = {"use_ols": use_ols, "positive": positive}
    indices, values, left = code(machine, X, D, n_nonzero, **options)
    wide, wide_D = X.astype(np.float64), D.astype(np.float64)
    expected, _, expected_left = code(machine, wide, wide_D, n_nonzero, **options)
    assert values.dtype == np.float32
    sizes = (np.abs(dense(indices, values, n_atoms)) * np.linalg.norm(D, axis=1)).sum(axis=1)
    tolerance = 100 * np.finfo(np.float32).eps * np.maximum(energies_of(X), sizes**2)
    assert (np.abs(residual_energies(X, D, indices, values) - left) <= tolerance).all()
    # A near tie may pick another atom of about the same use, after which all may differ.
    same = (indices == expected).all(axis=1)
    assert (np.abs(left - expected_left) <= tolerance)[same].all()


@pytest.mark.parametrize(("use_ols", "positive"), SELECTIONS)
@pytest.mark.parametrize("form", FORMS)
def test_float32_finds_the_supports_of_float64(machine, use_ols, positive, form, rng):
    X, D = random_problem(rng, 300, 64, 200, np.float32)
    options = {"use_ols": use_ols, "positive": positive}
    single = code(machine, X, D, 8, form, **options)
    double = code(machine, X.astype(np.float64), D.astype(np.float64), 8, form, **options)
    assert single[1].dtype == np.float32
    same = (single[0] == double[0]).all(axis=1)
    assert same.mean() > 0.98
    np.testing.assert_allclose(single[1][same], double[1][same], rtol=1e-3, atol=1e-4)
    left = residual_energies(X, D, *single[:2])
    np.testing.assert_allclose(single[2], left, atol=100 * 2.0**-23 * energies_of(X).max())


def test_supports_are_scikit_learns(machine, rng):
    from sklearn.linear_model import orthogonal_mp_gram

    X, D = random_problem(rng, 300, 64, 200, np.float64)
    theirs = orthogonal_mp_gram(D @ D.T, D @ X.T, n_nonzero_coefs=8).T
    for form in FORMS:
        ours = dense(*code(machine, X, D, 8, form)[:2], 200)
        assert ((ours != 0) == (theirs != 0)).all()
        np.testing.assert_allclose(ours, theirs, atol=1e-10)


@given(seed=seeds, stop_at=st.floats(0.05, 0.95), relative=both, use_ols=both, form=forms)
def test_stops_at_the_residual_asked_for(machine, seed, stop_at, relative, use_ols, form):
    X, D = random_problem(seed, 20, 15, 40, np.float64)
    norms = np.linalg.norm(X, axis=1)
    # A goal of its own for every signal.
    goals = stop_at * np.linspace(0.5, 1.0, 20)
    stops = goals if relative else goals * norms
    options = {"stop_at": stops, "relative": relative, "use_ols": use_ols}
    indices, values, _ = code(machine, X, D, 15, form, **options)
    share = np.sqrt(residual_energies(X, D, indices, values)) / norms
    assert (share <= goals * (1 + 1e-9)).all()
    counts = (indices >= 0).sum(axis=1)
    for n in np.unique(counts[counts > 1]):
        # One atom fewer would not have been enough.
        shorter = code(machine, X[counts == n], D, int(n) - 1, form, use_ols=use_ols)[2]
        assert (np.sqrt(shorter) > (goals * norms)[counts == n]).all()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("positive", [False, True])
def test_a_goal_above_the_signal_needs_no_atoms(machine, form, positive, rng):
    X, D = random_problem(rng, 5, 6, 9, np.float64)
    options = {"stop_at": np.array([100.0, np.inf, 100.0, 100.0, 0.0]), "positive": positive}
    indices, _, left = code(machine, X, D, 3, form, relative=False, **options)
    assert (indices[:4] == -1).all()
    assert (indices[4] >= 0).all()
    np.testing.assert_allclose(left[:4], energies_of(X)[:4])
    options["stop_at"] = np.array([0.0, np.inf])
    indices, _, _ = code(machine, np.zeros((2, 6)), D, 3, form, **options)
    assert (indices == -1).all()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("use_ols", "positive"), SELECTIONS)
def test_signals_that_end_early_and_late_keep_their_codes(machine, use_ols, positive, form, rng):
    """Signals leave at steps 1 to 40, past the room that codes have at first."""
    X, D = random_problem(rng, 120, 60, 100, np.float64)
    options = {
        "use_ols": use_ols, "positive": positive, "stop_at": rng.uniform(0.05, 1.05, 120),
    }  # fmt: skip
    indices, values, left = code(machine, X, D, 40, form, **options)
    expected, expected_values, expected_left = code(NUMPY, X, D, 40, **options)
    counts = (expected >= 0).sum(axis=1)
    assert counts.min() == 0
    assert counts.max() > 16
    assert (indices == expected).all()
    np.testing.assert_allclose(values, expected_values, atol=1e-9)
    np.testing.assert_allclose(left, expected_left, atol=1e-9)


@given(seed=seeds, n_candidates=st.integers(0, 90), use_ols=both, positive=both, dtype=dtypes)
def test_candidate_lists_are_local_dictionaries(
    machine, seed, n_candidates, use_ols, positive, dtype
):
    X, D = random_problem(seed, 12, 20, 90, dtype)
    rng = np.random.default_rng(seed)
    lists = np.array([rng.permutation(90)[:n_candidates] for _ in X], dtype=np.int32)
    lists[rng.random(lists.shape) < 0.2] = -1
    options = {"use_ols": use_ols, "positive": positive}
    indices, values, left = code_local(machine, X, D, lists, 5, **options)
    assert_padded_codes(indices, values, left)
    assert values.dtype == dtype
    for s in range(len(X)):
        mine = np.sort(lists[s][lists[s] >= 0])
        if not len(mine):
            assert (indices[s] == -1).all()
            continue
        alone = code(machine, X[s : s + 1], D[mine], 5, **options)
        expected = np.where(alone[0][0] >= 0, mine[alone[0][0]], -1)
        if dtype == np.float32 and (indices[s] != expected).any():
            continue  # a near tie of float32
        assert indices[s].tolist() == expected.tolist()
        rtol, atol = (1e-7, 1e-9) if dtype == np.float64 else (1e3 * 2.0**-23, 1e-4)
        np.testing.assert_allclose(values[s], alone[1][0], rtol=rtol, atol=atol)


def test_empty_candidate_lists_have_no_codes(machine, rng):
    X, D = random_problem(rng, 5, 4, 6, np.float32)
    for positive in (False, True):
        lists = np.empty((5, 0), np.int32)
        indices, values, left = code_local(machine, X, D, lists, 3, positive=positive)
        assert (indices == -1).all()
        assert not values.any()
        np.testing.assert_allclose(left, energies_of(X))


@pytest.mark.parametrize(("use_ols", "positive"), SELECTIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_duplicate_candidates_do_no_harm(machine, use_ols, positive, dtype, rng):
    X, D = random_problem(rng, 30, 12, 60, dtype)
    lists = rng.integers(0, 60, (30, 20)).astype(np.int32)
    twice = np.concatenate([lists, lists[:, ::-1], np.full((30, 3), -1, np.int32)], axis=1)
    options = {"use_ols": use_ols, "positive": positive}
    once, again = (code_local(machine, X, D, some, 9, **options) for some in (lists, twice))
    assert (once[0] == again[0]).all()
    rtol, atol = (1e-7, 1e-9) if dtype == np.float64 else (1e-3, 1e-5)
    np.testing.assert_allclose(once[1], again[1], rtol=rtol, atol=atol)
    assert_padded_codes(*again)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("use_ols", "positive"), SELECTIONS)
@pytest.mark.parametrize("form", FORMS)
def test_batch_is_one_by_one(machine, dtype, use_ols, positive, form, rng):
    X, D = random_problem(rng, 200, 30, 130, dtype, 0.2)
    options = {"use_ols": use_ols, "positive": positive}
    together = code(machine, X, D, 6, form, **options)
    for s in range(0, 200, 13):
        alone = code(machine, X[s : s + 1], D, 6, form, **options)
        assert alone[0][0].tolist() == together[0][s].tolist()
        np.testing.assert_allclose(alone[1][0], together[1][s], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(("use_ols", "positive"), SELECTIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_all_forms_code_the_same(machine, dtype, use_ols, positive, rng):
    X, D = random_problem(rng, 80, 40, 150, dtype, 0.1)
    options = {"use_ols": use_ols, "positive": positive, "stop_at": np.linspace(0, 0.6, 80)}
    expected = code(machine, X, D, 12, "gram", **options)
    for form in FORMS[1:]:
        found = code(machine, X, D, 12, form, **options)
        assert (found[0] == expected[0]).all()
        tolerance = 1e3 * np.finfo(dtype).eps
        np.testing.assert_allclose(found[1], expected[1], rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("n_nonzero", [1, 2, 7, 70])
@pytest.mark.parametrize("form", FORMS)
def test_ragged_codes_are_the_padded_ones(machine, form, n_nonzero, rng):
    X, D = random_problem(rng, 90, 20, 70, np.float32)
    X[[0, 5, 89]] = 0
    options = {"stop_at": np.full(90, 0.3)}
    indices, values, left = code(machine, X, D, n_nonzero, form, **options)
    ragged = code(machine, X, D, n_nonzero, form, ragged=True, **options)
    assert_ragged_are_padded(ragged, indices, values, left)


def assert_ragged_are_padded(ragged, indices, values, left):
    indptr, some, some_values, same_left = ragged
    assert (indptr.dtype, some.dtype, some_values.dtype) == (np.int64, np.int32, values.dtype)
    np.testing.assert_array_equal(np.diff(indptr), (indices >= 0).sum(axis=1))
    np.testing.assert_array_equal(some, indices[indices >= 0])
    np.testing.assert_array_equal(some_values, values[indices >= 0])
    np.testing.assert_array_equal(same_left, left)


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_no_signals_have_no_codes(machine, form, ragged, rng):
    _, D = random_problem(rng, 1, 4, 6, np.float64)
    found = code(machine, np.empty((0, 4)), D, 3, form, ragged=ragged)
    assert [len(part) for part in found] == ([1, 0, 0, 0] if ragged else [0, 0, 0])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("use_ols", "positive"), SELECTIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
class TestDegenerateProblems:
    def test_zero_signals_use_no_atoms(self, machine, dtype, use_ols, positive, form, rng):
        X, D = random_problem(rng, 4, 5, 9, dtype)
        X[:3], X[3] = 0, D[4]
        options = {"use_ols": use_ols, "positive": positive}
        indices, values, left = code(machine, X, D, 4, form, **options)
        assert (indices[:3] == -1).all()
        assert indices[3].max() >= 0
        assert not values[:3].any()
        assert not left[:3].any()

    def test_zero_and_duplicate_atoms_are_never_picked_twice(
        self, machine, dtype, use_ols, positive, form, rng
    ):
        X, D = random_problem(rng, 40, 6, 8, dtype)
        D = np.concatenate([np.zeros((2, 6), dtype), D, D, 2 * D[:3]])
        options = {"use_ols": use_ols, "positive": positive}
        indices, values, left = code(machine, X, D, 6, form, **options)
        assert_padded_codes(indices, values, left)
        used = [set(row[row >= 0].tolist()) for row in indices]
        assert all(not {0, 1} & atoms for atoms in used)
        classes = [{(i - 2) % 8 for i in atoms} for atoms in used]
        assert all(len(c) == len(a) for c, a in zip(classes, used, strict=True))

    def test_ties_go_to_the_lowest_index(self, machine, dtype, use_ols, positive, form, rng):
        """Atoms and signals of few bits, so that inner products of twins are equal anywhere."""
        D = (rng.integers(-8, 9, (40, 6)) / 8).astype(dtype)
        X = (rng.integers(-8, 9, (20, 6)) / 8).astype(dtype)
        options = {"use_ols": use_ols, "positive": positive}
        once, twice = (
            code(machine, X, atoms, 1, form, **options)[0] for atoms in (D, np.concatenate([D, D]))
        )
        assert (once == twice).all()
        assert (once == code(NUMPY, X, D, 1, **options)[0]).all()

    def test_more_nonzeros_than_atoms(self, machine, dtype, use_ols, positive, form, rng):
        X, D = random_problem(rng, 10, 30, 7, dtype)
        options = {"use_ols": use_ols, "positive": positive}
        indices, values, left = code(machine, X, D, 12, form, **options)
        assert indices.shape == values.shape == (10, 12)
        if positive:
            expected = code(NUMPY, X.astype(float), D.astype(float), 12, **options)[2]
        else:
            expected = energies_of(X - (X @ np.linalg.pinv(D)) @ D)
        np.testing.assert_allclose(left, expected, rtol=1e-4)

    def test_a_sparse_signal_is_recovered_and_the_pursuit_stops(
        self, machine, dtype, use_ols, positive, form, rng
    ):
        _, D = random_problem(rng, 1, 100, 120, dtype)
        W = np.zeros((1, 120), dtype)
        W[0, [7, 50]] = 2, 3 if positive else -3
        options = {"use_ols": use_ols, "positive": positive}
        indices, values, _ = code(machine, W @ D, D, 10, form, **options)
        assert sorted(indices[0][indices[0] >= 0].tolist()) == [7, 50]
        np.testing.assert_allclose(dense(indices, values, 120), W, atol=1e-4)

    @pytest.mark.parametrize("factor", [2.0**40, 2.0**-40, 1e-12, 1e12])
    def test_scale_does_not_matter(self, machine, dtype, use_ols, positive, form, factor, rng):
        X, D = random_problem(rng, 30, 20, 50, dtype)
        options = {"use_ols": use_ols, "positive": positive}
        plain = code(machine, X, D, 5, form, **options)
        scaled = code(machine, (X * factor).astype(dtype), D, 5, form, **options)
        assert (scaled[0] == plain[0]).all()
        np.testing.assert_allclose(scaled[1] / factor, plain[1], rtol=1e-3, atol=1e-5)
        longer = code(machine, X, (D * np.sqrt(factor)).astype(dtype), 5, form, **options)
        assert (longer[0] == plain[0]).all()

    def test_one_atom(self, machine, dtype, use_ols, positive, form):
        X, D = np.array([[3.0, 4.0]], dtype), np.array([[0.0, 2.0]], dtype)
        options = {"use_ols": use_ols, "positive": positive}
        indices, values, left = code(machine, X, D, 1, form, **options)
        assert (indices.tolist(), values.tolist()) == ([[0]], [[2.0]])
        assert left[0] == pytest.approx(9.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("use_ols", [False, True])
@pytest.mark.parametrize("form", FORMS)
class TestAtomsOfLowRank:
    """30 atoms in 3 dimensions."""

    def draw(self, dtype, n_signals, rng):
        basis = rng.standard_normal((3, 20))
        D = (rng.standard_normal((30, 3)) @ basis).astype(dtype)
        return (rng.standard_normal((n_signals, 3)) @ basis).astype(dtype), D

    def errors(self, X, D, indices, values):
        """Return relative errors of codes, and the squared conditions of their atoms.

        The codes solve normal equations, whose condition is that of the atoms squared.
        """
        errors = np.sqrt(residual_energies(X, D, indices, values) / energies_of(X))
        return errors, np.array(
            [np.linalg.cond(D[row[row >= 0]].astype(float)) ** 2 for row in indices]
        )

    def test_more_nonzeros_than_rank_stop_at_an_exact_code(
        self, machine, dtype, use_ols, form, rng
    ):
        X, D = self.draw(dtype, 50, rng)
        indices, values, _ = code(machine, X, D, 12, form, use_ols=use_ols)
        counts = (indices >= 0).sum(axis=1)
        errors, conditions = self.errors(X, D, indices, values)
        # A pursuit ends where correlations are 100 eps; of 30 atoms in 3 dimensions one is near.
        least = 0 if machine.name == "numpy" else 200
        exact = errors < np.finfo(dtype).eps * np.maximum(10 * conditions, least)
        # With two of three atoms, all others explain the rest alike: by rounded ratios the best may
        # be one that the two nearly span, with which OLS stops in float32, or needs some more.
        assert exact.mean() > 0.8 if use_ols and dtype == np.float32 else exact.all()
        assert (counts <= 3).mean() > 0.85 if use_ols else counts.max() <= 3
        if machine.name == "numpy":
            assert counts.max() <= 4

    def test_pursuits_that_rounding_ends_are_unsettled(self, machine, dtype, use_ols, form, rng):
        """A signal whose pursuit stops short of an exact code is not settled."""
        X, D = self.draw(dtype, 200, rng)
        options = {"use_ols": use_ols, "leave_unsettled": True}
        indices, values, left, unsettled = code(machine, X, D, 12, form, **options)
        ragged = code(machine, X, D, 12, form, ragged=True, **options)
        np.testing.assert_array_equal(ragged[-1], unsettled)
        assert unsettled.dtype == bool
        assert unsettled.shape == left.shape == (200,)
        errors, conditions = self.errors(X, D, indices, values)
        bound = np.finfo(dtype).eps * np.maximum(10 * conditions, 200)
        assert (errors < bound)[~unsettled].all()
        # Kernels that screen leave such pursuits to exact steps.
        screened = machine.uses_triton and form == "rows"
        assert unsettled.mean() < 0.6 or screened


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("use_ols", "positive"), SELECTIONS)
def test_unsettled_signals_are_settled_in_float64(machine, use_ols, positive, form, rng):
    """Atoms two degrees from each other: in float32 as in numpy, in float64 as in float64."""
    D = rng.standard_normal(20) + 0.035 * rng.standard_normal((40, 20))
    D = (D / np.linalg.norm(D, axis=1, keepdims=True)).astype(np.float32)
    X = np.concatenate([rng.standard_normal((20, 20)), rng.random((20, 40)) @ D])
    X = X.astype(np.float32)
    options = {"use_ols": use_ols, "positive": positive}
    *_, unsettled = code(machine, X, D, 8, form, leave_unsettled=True, **options)
    *_, in_numpy = code(NUMPY, X, D, 8, leave_unsettled=True, **options)
    assert unsettled.dtype == bool
    # Kernels leave more to exact steps: positive picks that a screen cannot tell from none.
    screened = machine.uses_triton and positive and form == "rows"
    agree = unsettled >= in_numpy if screened else unsettled == in_numpy
    assert agree.mean() > 0.8
    assert unsettled.mean() > 0.2 or positive
    wide, atoms = X.astype(np.float64), D.astype(np.float64)
    indices, values, left = code(machine, wide, atoms, 8, form, exact=True, **options)
    expected = code(machine, wide, atoms, 8, form, **options)
    true = residual_energies(wide, atoms, indices, values)
    np.testing.assert_allclose(left, true, atol=1e-9 * energies_of(X).max())
    more = np.sqrt(np.maximum(left, 0)) - np.sqrt(np.maximum(expected[2], 0))
    assert (more < 3e-3 * np.sqrt(energies_of(X))).all()
    ragged = code(machine, X, D, 8, form, leave_unsettled=True, ragged=True, **options)
    np.testing.assert_array_equal(ragged[-1], unsettled)


@given(
    seed=seeds,
    angle=st.floats(-1.0, 1.5),
    n_nonzero=st.integers(10, 30),
    dtype=dtypes,
    use_ols=both,
    positive=both,
    form=forms,
)
def test_nearly_parallel_atoms_do_no_harm(
    machine, seed, angle, n_nonzero, dtype, use_ols, positive, form
):
    """No code is worse than none, and the error returned is the true one.

    Angles around the one at which coefficients grow to where rounding shows.
    """
    rng = np.random.default_rng(seed)
    spread = 10**angle * np.sqrt(1e3 * np.finfo(dtype).eps)
    D = (rng.standard_normal(30) + spread * rng.standard_normal((60, 30))).astype(dtype)
    X = rng.standard_normal((20, 30)).astype(dtype)
    options = {"use_ols": use_ols, "positive": positive}
    indices, values, left = code(machine, X, D, n_nonzero, form, **options)
    error, energy = residual_energies(X, D, indices, values), energies_of(X)
    assert (error <= energy * (1 + 1e-3)).all()
    assert (np.abs(left - error) <= 1e-3 * energy).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("use_ols", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_steps_that_pass_their_check_are_taken(machine, dtype, use_ols, form):
    """Two atoms at an angle at which rounding shows a little; the signal is orthogonal to one."""
    angle = np.sqrt(1e5 * np.finfo(dtype).eps)
    D = np.array([[1.0, 0.0, 0.0], [1.0, angle, 0.0]], dtype)
    X = np.array([[0.3, 1.0, 0.2]], dtype)
    _, values, left = code(machine, X, D, 2, form, use_ols=use_ols)
    np.testing.assert_allclose(values, [[0.3 - 1 / angle, 1 / angle]], rtol=1e-2)
    np.testing.assert_allclose(left, [0.04], atol=1e-3)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("use_ols", "positive"), SELECTIONS)
@pytest.mark.parametrize(("dtype", "angle"), [(np.float32, 2e-4), (np.float64, 1e-8)])
def test_atoms_that_picked_ones_span_but_for_rounding_are_not_used(
    machine, dtype, angle, use_ols, positive, form
):
    """The second atom is correlated with what the first one leaves, but hardly anything new."""
    D = np.array([[1.0, 0.0, 0.0], [1.0, angle, 0.0]], dtype)
    X = np.array([[1.0, 0.5, 0.2]], dtype)
    options = {"use_ols": use_ols, "positive": positive}
    indices, values, _ = code(machine, X, D, 2, form, **options)
    assert indices[0, 1] == -1
    np.testing.assert_allclose(values, [[1.0, 0.0]], rtol=1e-3)
    assert (indices == code(NUMPY, X, D, 2, **options)[0]).all()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("span", [6, 12, 20, 26])
def test_ols_does_not_care_about_the_norms_of_atoms(machine, span, dtype, positive, form, rng):
    X, D = random_problem(rng.integers(2**32), 60, 24, 40, dtype)
    exponents = rng.integers(-span, span, len(D), endpoint=True)
    options = {"use_ols": True, "positive": positive, "form": form}
    indices, values, left = code(machine, X, D, 8, **options)
    found, scaled, rest = code(machine, X, np.ldexp(D, exponents[:, None]), 8, **options)
    np.testing.assert_array_equal(found, indices)
    np.testing.assert_allclose(np.ldexp(scaled, exponents[found]), values, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(rest, left, rtol=1e-4)


@pytest.mark.parametrize("form", ["gram", "local", "asked"])
def test_without_energies_what_is_left_is_known_up_to_them(machine, form, rng):
    X, D = random_problem(rng, 30, 20, 50, np.float64)
    known, unknown = (code(machine, X, D, 4, form, energies=e) for e in (True, False))
    assert (known[0] == unknown[0]).all()
    np.testing.assert_allclose(unknown[2] + energies_of(X), known[2])
    with pytest.raises(ValueError, match="max_residual needs k"):
        code(machine, X, D, 4, form, energies=False, stop_at=np.full(30, 0.1))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("factor", [1e-30, 1e-18, 1e17, 1e30])
def test_float32_codes_signals_far_from_one(machine, factor, form, rng):
    X, D = random_problem(rng, 20, 20, 50, np.float32)
    for use_ols, positive in SELECTIONS:
        options = {"use_ols": use_ols, "positive": positive, "stop_at": np.full(20, 0.5)}
        plain = code(machine, X, D, 9, form, **options)
        # The other half stays as it is.
        scales = np.where(np.arange(20) % 2, factor, 1.0)
        far = (X * scales[:, None]).astype(np.float32)
        indices, values, left = code_far(machine, far, D, 9, form, **options)
        assert (indices == plain[0]).all()
        np.testing.assert_allclose(values / scales[:, None], plain[1], rtol=1e-3, atol=1e-5)
        np.testing.assert_allclose(left / scales**2, plain[2], rtol=1e-3, atol=1e-5)


def code_far(machine, X, D, n_nonzero, form, **options):
    """As ``code``; of a Gram matrix with products in float64, where float32 does not hold them."""
    if form != "gram":
        return code(machine, X, D, n_nonzero, form, **options)
    wide = X.astype(np.float64)

    def products(start, stop):
        rows = wide[start:stop]
        return machine.array(rows @ D.T.astype(np.float64)), machine.array(np.vecdot(rows, rows))

    options["stop_at"] = machine.array(options["stop_at"])
    gram = machine.array(D @ D.T)
    return numpy_of(machine, machine.omp(gram, products, len(X), n_nonzero, **options))


@pytest.mark.parametrize(("factor", "length"), [(1e30, 1e10), (1e-30, 1e-12)])
def test_correlations_may_be_wider_than_float32_holds(machine, factor, length, rng):
    X, D = random_problem(rng, 20, 20, 50, np.float32)
    for use_ols, positive in SELECTIONS:
        options = {"use_ols": use_ols, "positive": positive, "stop_at": np.full(20, 0.5)}
        plain = code(machine, X, D, 9, **options)
        far, long = X * np.float32(factor), D * np.float32(length)
        indices, values, _ = code_far(machine, far, long, 9, "gram", **options)
        assert (indices == plain[0]).all()
        np.testing.assert_allclose(values / (factor / length), plain[1], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("form", FORMS)
class TestBadInput:
    def test_overflowing_signals_are_refused(self, machine, form, rng):
        X, D = random_problem(rng, 20, 20, 50, np.float64)
        with pytest.raises(ValueError, match="squared norm overflows float64, or is undefined"):
            code(machine, X * 1e160, D, 4, form)

    def test_codes_that_do_not_fit_are_refused(self, machine, form, rng):
        X, D = random_problem(rng, 20, 20, 50, np.float32)
        stops = np.full(20, 0.1)
        far, short = X * np.float32(1e30), D * np.float32(1e-15)
        with pytest.raises(ValueError, match="codes overflow float32"):
            code_far(machine, far, short, 4, form, stop_at=stops)
        near, long = X * np.float32(1e-37), D * np.float32(1e8)
        with pytest.raises(ValueError, match="codes underflow float32"):
            code_far(machine, near, long, 4, form, stop_at=stops)

    def test_stops_must_fit_the_signals(self, machine, form, rng):
        X, D = random_problem(rng, 20, 20, 50, np.float64)
        with pytest.raises(ValueError, match="one number for each of 20 signals, got shape"):
            code(machine, X, D, 4, form, stop_at=np.ones(19))
        for wrong in (-1.0, np.nan):
            with pytest.raises(ValueError, match="stop_at must not hold negative"):
                code(machine, X, D, 4, form, stop_at=np.full(20, wrong))

    def test_at_least_one_nonzero(self, machine, form, rng):
        X, D = random_problem(rng, 20, 20, 50, np.float64)
        with pytest.raises(ValueError, match="n_nonzero must be at least 1, got 0"):
            code(machine, X, D, 0, form)

    def test_integers_are_refused(self, machine, form):
        X, D = np.ones((3, 4), int), np.eye(4, dtype=int)
        with pytest.raises(TypeError, match="must be float32 or float64, got int64"):
            code(machine, X, D, 1, form)


def test_shapes_that_do_not_fit_are_refused(machine, rng):
    X, D = random_problem(rng, 20, 20, 50, np.float64)
    A = machine.array
    gram, products, norms2 = A(D @ D.T), products_of(machine, X, D), A(np.vecdot(D, D))
    with pytest.raises(ValueError, match="Gram matrix must be square"):
        machine.omp(gram[:, :40], products, 20, 3)
    with pytest.raises(ValueError, match=r"correlations must have shape \(\d+, 40\)"):
        machine.omp(gram[:40, :40], products, 20, 3)
    with pytest.raises(ValueError, match=r"energies must have shape \(\d+,\), got \(3,\)"):
        machine.omp(gram, lambda a, b: (A(X[a:b] @ D.T), A(np.ones(3))), 20, 3)
    with pytest.raises(ValueError, match=r"Gram rows must have shape \(\d+, 50\)"):
        machine.omp_without_gram(lambda atoms: gram[atoms, :40], norms2, products, 20, 3)
    lists = A(np.zeros((20, 4), np.int32))
    with pytest.raises(ValueError, match=r"local Gram matrices must have shape \(\d+, 4, 4\)"):
        machine.omp_local(lambda a, b: (gram[None, :3, :3], A(X[a:b, :4]), None), lists, 3)


def test_inner_products_are_only_read_in_any_layout(machine, rng):
    X, D = random_problem(rng, 40, 20, 64, np.float64)
    corr, gram = X @ D.T, D @ D.T
    energy, norms2 = machine.array(energies_of(X)), machine.array(np.diagonal(gram))
    rows = machine.array(X.copy()), machine.array(D.copy())
    lying = machine.array(np.ascontiguousarray(corr.T)).T
    strided = machine.array(np.repeat(gram, 2, axis=1))[:, ::2]
    if machine.name == "numpy":
        lying.flags.writeable = strided.flags.writeable = False

    def products(start, stop):
        return lying[start:stop], energy[start:stop]

    def gram_rows(atoms):
        return strided[atoms]

    # Tensors need nothing but the rows.
    asked = (gram_rows, products) if machine.name == "numpy" else (None, None)
    for use_ols, positive in SELECTIONS:
        options = {"positive": positive, "use_ols": use_ols}
        expected = code(machine, X, D, 6, **options)
        for found in (
            machine.omp(strided, products, 40, 6, **options),
            machine.omp(strided, lambda a, b: (lying[a:b], None), 40, 6, **options),
            machine.omp_without_gram(gram_rows, norms2, products, 40, 6, **options),
            machine.omp_without_gram(
                gram_rows, norms2, lambda a, b: (lying[a:b], None), 40, 6, **options
            ),
            machine.omp_without_gram(asked[0], norms2, asked[1], 40, 6, rows=rows, **options),
        ):
            indices, values, _ = numpy_of(machine, found)
            assert (indices == expected[0]).all()
            np.testing.assert_allclose(values, expected[1], rtol=1e-9)
        assert (machine.numpy(lying) == corr).all()
        assert (machine.numpy(strided) == gram).all()
        assert (machine.numpy(rows[0]) == X).all()


def test_atoms_that_signals_share_are_fetched_once(machine, rng):
    X, D = random_problem(rng, 30, 10, 20, np.float64)
    asked = []

    def gram_rows(atoms):
        asked.extend(atoms.tolist())
        return machine.array(D[machine.numpy(atoms)] @ D.T)

    norms2, products = machine.array(np.vecdot(D, D)), products_of(machine, X, D)
    indices, *_ = machine.omp_without_gram(gram_rows, norms2, products, 30, 5)
    assert (indices >= 0).all()
    # numpy's signals travel in two blocks.
    assert len(asked) <= len(set(asked)) * (2 if machine.name == "numpy" else 1)
