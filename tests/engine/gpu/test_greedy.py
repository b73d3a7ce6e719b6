"""Greedy pursuits on tensors: against the CPU engine, the textbook, and each other."""

from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles.pursuits
from kernelatoms.engine import cpu

torch = pytest.importorskip("torch")

from kernelatoms.engine.gpu.greedy import omp as greedy  # noqa: E402
from kernelatoms.engine.gpu.greedy import atom_rows as greedy_atoms  # noqa: E402
from kernelatoms.engine.gpu.greedy import blocks as greedy_blocks  # noqa: E402
from kernelatoms.engine.gpu.greedy import coders as greedy_coders  # noqa: E402
from kernelatoms.engine.gpu.greedy import nonnegative as greedy_nonnegative  # noqa: E402
from kernelatoms.engine.gpu.greedy import steps as greedy_steps  # noqa: E402
from kernelatoms.engine.gpu.arrays import work as kernels  # noqa: E402

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"

FORMS = ["gram", "local", "asked", "rows"]
SELECTIONS = [(False, False), (True, False), (False, True), (True, True)]
seeds = st.integers(0, 2**32 - 1)
both = st.booleans()
forms = st.sampled_from(FORMS)
dtypes = st.sampled_from([np.float32, np.float64])


def random_problem(seed, n_signals, n_features, n_atoms, dtype, shift=0.0):
    rng = np.random.default_rng(seed)
    D = rng.standard_normal((n_atoms, n_features))
    D /= np.linalg.norm(D, axis=1, keepdims=True)
    X = rng.standard_normal((n_signals, n_features))
    return (X + shift).astype(dtype), (D + shift).astype(dtype)


def tensor(array):
    return torch.from_numpy(np.array(array)).to(DEVICE)


def numpy_of(tensor):
    return tensor.cpu().numpy()


def set_memory(monkeypatch, n_bytes):
    for module in (greedy_blocks, greedy_coders):
        monkeypatch.setattr(module, "memory_for_a_block", lambda _, wanted: min(n_bytes, wanted))


def products_of(X, D, energies=True):
    def products(start, stop):
        rows = X[start:stop]
        wide = rows.astype(np.float64)
        with np.errstate(over="ignore"):
            energy = tensor(np.vecdot(wide, wide)) if energies else None
            return tensor(rows @ D.T), energy

    return products


def local_of(X, D, lists, energies=True):
    def local(start, stop):
        some = lists[start:stop]
        own = D[some] * (some >= 0)[:, :, None]
        corr, energy = products_of(X, D, energies)(start, stop)
        corr = np.take_along_axis(numpy_of(corr), some, axis=1) * (some >= 0)
        return tensor(own @ own.transpose(0, 2, 1)), tensor(corr), energy

    return local


def code(X, D, n_nonzero, form="gram", energies=True, **options):
    """Code rows of X over rows of D by one of the four ways; numpy in, numpy out."""
    products, n = products_of(X, D, energies), len(X)
    if options.get("stop_at") is not None:
        options["stop_at"] = tensor(options["stop_at"])
    if form == "gram":
        found = greedy.omp(tensor(D @ D.T), products, n, n_nonzero, **options)
    elif form == "local":
        lists = np.tile(np.arange(len(D), dtype=np.int32), (n, 1))
        found = greedy.omp_local(
            local_of(X, D, lists, energies), tensor(lists), n_nonzero, **options
        )
    else:
        rows = (tensor(X), tensor(D)) if form == "rows" else None
        found = greedy.omp_without_gram(
            lambda atoms: tensor(D[numpy_of(atoms)] @ D.T), tensor(np.vecdot(D, D)), products, n,
            n_nonzero, rows=rows, **options,
        )  # fmt: skip
    return tuple(numpy_of(part) for part in found)


def code_on_cpu(X, D, n_nonzero, **options):
    def products(start, stop):
        corr, energy = products_of(X, D)(start, stop)
        return numpy_of(corr), numpy_of(energy)

    return cpu.omp(D @ D.T, products, len(X), n_nonzero, **options)


def dense(indices, values, n_atoms):
    W = np.zeros((len(indices), n_atoms), values.dtype)
    used = indices >= 0
    W[np.nonzero(used)[0], indices[used]] = values[used]
    return W


def energies_of(rows):
    return np.vecdot(rows.astype(np.float64), rows.astype(np.float64))


def residual_energies(X, D, indices, values):
    W = dense(indices, values, len(D)).astype(np.float64)
    return energies_of(X.astype(np.float64) - W @ D.astype(np.float64))


def assert_padded_codes(indices, values, left):
    assert indices.dtype == np.int32
    assert left.dtype == np.float64
    assert not values[indices < 0].any()
    assert np.isfinite(values).all()
    for row in indices:
        used = row[row >= 0]
        assert (np.diff(used) > 0).all()
        assert (row[len(used) :] == -1).all()


@given(
    seed=seeds,
    n_signals=st.integers(1, 40),
    n_features=st.integers(1, 40),
    n_atoms=st.integers(1, 120),
    n_nonzero=st.integers(1, 20),
    stop_at=st.sampled_from([None, 0.0, 0.2, 0.7]),
    relative=both,
    use_ols=both,
    form=forms,
)
def test_agrees_with_the_other_machine(
    seed, n_signals, n_features, n_atoms, n_nonzero, stop_at, relative, use_ols, form
):
    X, D = random_problem(seed, n_signals, n_features, n_atoms, np.float64)
    goals = None if stop_at is None else np.full(n_signals, stop_at)
    options = {"stop_at": goals, "relative": relative, "use_ols": use_ols}
    indices, values, left = code(X, D, n_nonzero, form, **options)
    expected, expected_values, expected_left = code_on_cpu(X, D, n_nonzero, **options)
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
    shift=st.sampled_from([0.0, 0.3, 1.0]),
    stop_at=st.sampled_from([None, 0.0, 0.2, 0.7]),
    use_ols=both,
    form=forms,
)
def test_nonnegative_codes_agree_with_the_other_machine(
    seed, n_signals, spare, n_atoms, n_nonzero, shift, stop_at, use_ols, form
):
    X, D = random_problem(seed, n_signals, n_nonzero + spare, n_atoms, np.float64, shift)
    goals = None if stop_at is None else np.full(n_signals, stop_at)
    options = {"stop_at": goals, "use_ols": use_ols, "positive": True}
    indices, values, left = code(X, D, n_nonzero, form, **options)
    expected, expected_values, expected_left = code_on_cpu(X, D, n_nonzero, **options)
    assert_padded_codes(indices, values, left)
    assert (indices == expected).all()
    np.testing.assert_allclose(values, expected_values, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(left, expected_left, atol=1e-8 * energies_of(X).max())


@given(
    seed=seeds,
    n_signals=st.integers(1, 8),
    n_features=st.integers(1, 30),
    n_atoms=st.integers(1, 60),
    n_nonzero=st.integers(1, 10),
    use_ols=both,
    form=forms,
)
def test_agrees_with_the_textbook(seed, n_signals, n_features, n_atoms, n_nonzero, use_ols, form):
    X, D = random_problem(seed, n_signals, n_features, n_atoms, np.float64)
    indices, values, left = code(X, D, n_nonzero, form, use_ols=use_ols)
    W = dense(indices, values, n_atoms)
    for s, x in enumerate(X):
        support, w = oracles.pursuits.omp(x, D, n_nonzero, ols=use_ols)
        if not (use_ols and n_nonzero >= n_features):
            assert indices[s][indices[s] >= 0].tolist() == sorted(support)
            np.testing.assert_allclose(W[s, support], w, rtol=1e-6, atol=1e-8)
        # Where OLS breaks a tie differently, it must do as well.
        expected = x - w @ D[support]
        np.testing.assert_allclose(left[s], expected @ expected, atol=1e-8 * (x @ x))


@given(
    seed=seeds,
    spare=st.integers(2, 10),
    n_atoms=st.integers(1, 60),
    n_nonzero=st.integers(1, 5),
    shift=st.sampled_from([0.0, 0.5]),
    use_ols=both,
    form=forms,
)
def test_nonnegative_codes_agree_with_the_textbook(
    seed, spare, n_atoms, n_nonzero, shift, use_ols, form
):
    X, D = random_problem(seed, 6, n_nonzero + spare, n_atoms, np.float64, shift)
    W = dense(*code(X, D, n_nonzero, form, use_ols=use_ols, positive=True)[:2], n_atoms)
    for s, x in enumerate(X):
        support, w = oracles.pursuits.nonnegative_omp(x, D, n_nonzero, ols=use_ols)
        expected = np.zeros(n_atoms)
        expected[support] = w
        np.testing.assert_allclose(W[s], expected, rtol=1e-6, atol=1e-8)


@given(
    seed=seeds,
    n_features=st.integers(2, 30),
    n_atoms=st.integers(1, 120),
    n_nonzero=st.integers(1, 20),
    dtype=dtypes,
    shift=st.sampled_from([0.0, 0.3, 1.0]),
    use_ols=both,
    form=forms,
)
def test_nonnegative_codes_are_optimal_on_their_support(
    seed, n_features, n_atoms, n_nonzero, dtype, shift, use_ols, form
):
    """Karush, Kuhn and Tucker: w > 0 and a zero gradient where an atom is used."""
    X, D = random_problem(seed, 10, n_features, n_atoms, dtype, shift)
    indices, values, left = code(X, D, n_nonzero, form, use_ols=use_ols, positive=True)
    W = dense(indices, values, n_atoms).astype(np.float64)
    assert (values[indices >= 0] > 0).all()
    X, D = X.astype(np.float64), D.astype(np.float64)
    residual, norms = X - W @ D, np.linalg.norm(D, axis=1)
    tolerance = 2e3 * np.finfo(dtype).eps
    size = np.maximum(np.linalg.norm(X, axis=1), (W * norms).sum(axis=1))
    cosines = residual @ D.T / norms / size[:, None]
    assert np.abs(cosines[W > 0]).max(initial=0) < tolerance
    np.testing.assert_allclose(left, energies_of(residual), atol=tolerance * (size**2).max())


@given(seed=seeds, n=st.integers(1, 7), shift=st.sampled_from([0.0, 0.5, 2.0]))
def test_small_nonnegative_least_squares(seed, n, shift):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((20, n, 10)) + shift
    x = rng.standard_normal((20, 10)) + shift / 2
    allowed = np.arange(n) < rng.integers(1, n + 1, 20)[:, None]
    w, passive, solved = greedy_nonnegative.nonnegative_least_squares(
        tensor(A @ A.transpose(0, 2, 1)), tensor((A @ x[:, :, None])[:, :, 0]), tensor(allowed),
        tensor(np.zeros(20)), tensor(np.zeros((20, n))),
    )  # fmt: skip
    assert solved.all()
    assert not (passive & ~tensor(allowed)).any()
    for s in range(20):
        own = A[s, allowed[s]]
        expected = oracles.pursuits.nonnegative_least_squares(x[s], own)
        np.testing.assert_allclose(numpy_of(w[s])[allowed[s]], expected, rtol=1e-8, atol=1e-10)
        assert not numpy_of(w[s])[~allowed[s]].any()


def test_singular_small_problems_are_not_solved():
    grams = np.array([np.ones((2, 2)), np.eye(2)])
    _, _, solved = greedy_nonnegative.nonnegative_least_squares(
        tensor(grams), tensor(np.ones((2, 2))), tensor(np.ones((2, 2), bool)),
        tensor(np.zeros(2)), tensor(np.zeros((2, 2))),
    )  # fmt: skip
    assert solved.tolist() == [False, True]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("use_ols", [False, True])
def test_atoms_leave_nonnegative_codes(form, use_ols):
    """Two atoms and, between them, a third that is picked first and then of no use."""
    D = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.7, 0.7, 0.2]])
    X = np.array([[1.0, 0.9, -0.1]])
    assert code(X, D, 1, form, use_ols=use_ols, positive=True)[0].tolist() == [[2]]
    indices, values, left = code(X, D, 3, form, use_ols=use_ols, positive=True)
    assert indices.tolist() == [[0, 1, -1]]
    np.testing.assert_allclose(values, [[1.0, 0.9, 0.0]])
    np.testing.assert_allclose(left, [0.01])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("use_ols", "positive"), SELECTIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_batch_is_one_by_one(dtype, use_ols, positive, form, rng):
    X, D = random_problem(rng, 100, 30, 90, dtype, 0.2)
    options = {"use_ols": use_ols, "positive": positive}
    together = code(X, D, 6, form, **options)
    for s in range(0, 100, 9):
        alone = code(X[s : s + 1], D, 6, form, **options)
        assert alone[0][0].tolist() == together[0][s].tolist()
        np.testing.assert_allclose(alone[1][0], together[1][s], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(("use_ols", "positive"), SELECTIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_all_ways_to_the_atoms_code_the_same(dtype, use_ols, positive, rng):
    """One by one small matrices, asked rows and the atoms themselves: as a Gram matrix."""
    X, D = random_problem(rng, 80, 40, 150, dtype, 0.1)
    options = {"use_ols": use_ols, "positive": positive, "stop_at": np.linspace(0, 0.6, 80)}
    expected = code(X, D, 12, "gram", **options)
    for form in FORMS[1:]:
        found = code(X, D, 12, form, **options)
        assert (found[0] == expected[0]).all()
        tolerance = 1e3 * np.finfo(dtype).eps
        np.testing.assert_allclose(found[1], expected[1], rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("use_ols", "positive"), SELECTIONS)
def test_float32_finds_the_supports_of_float64(use_ols, positive, form, rng):
    X, D = random_problem(rng, 200, 64, 150, np.float32)
    options = {"use_ols": use_ols, "positive": positive}
    single = code(X, D, 8, form, **options)
    double = code(X.astype(np.float64), D.astype(np.float64), 8, form, **options)
    assert single[1].dtype == np.float32
    same = (single[0] == double[0]).all(axis=1)
    assert same.mean() > 0.98
    np.testing.assert_allclose(single[1][same], double[1][same], rtol=1e-3, atol=1e-4)
    left = residual_energies(X, D, *single[:2])
    np.testing.assert_allclose(single[2], left, atol=100 * 2.0**-23 * energies_of(X).max())


@given(seed=seeds, stop_at=st.floats(0.05, 0.95), relative=both, use_ols=both, form=forms)
def test_stops_at_the_residual_asked_for(seed, stop_at, relative, use_ols, form):
    X, D = random_problem(seed, 20, 15, 40, np.float64)
    norms = np.linalg.norm(X, axis=1)
    goals = stop_at * np.linspace(0.5, 1.0, 20)
    stops = goals if relative else goals * norms
    options = {"stop_at": stops, "relative": relative, "use_ols": use_ols}
    indices, values, _ = code(X, D, 15, form, **options)
    share = np.sqrt(residual_energies(X, D, indices, values)) / norms
    assert (share <= goals * (1 + 1e-9)).all()
    counts = (indices >= 0).sum(axis=1)
    for n in np.unique(counts[counts > 1]):
        # One atom fewer would not have been enough.
        shorter = code(X[counts == n], D, int(n) - 1, form, use_ols=use_ols)[2]
        assert (np.sqrt(shorter) > (goals * norms)[counts == n]).all()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("positive", [False, True])
def test_a_goal_above_the_signal_needs_no_atoms(form, positive, rng):
    X, D = random_problem(rng, 5, 6, 9, np.float64)
    stops = np.array([100.0, np.inf, 100.0, 100.0, 0.0])
    indices, _, left = code(X, D, 3, form, stop_at=stops, relative=False, positive=positive)
    assert (indices[:4] == -1).all()
    assert (indices[4] >= 0).any()
    np.testing.assert_allclose(left[:4], energies_of(X)[:4])
    zero = np.zeros((2, 6))
    indices, _, _ = code(zero, D, 3, form, stop_at=np.array([0.0, np.inf]), positive=positive)
    assert (indices == -1).all()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("use_ols", "positive"), SELECTIONS)
def test_signals_that_end_early_and_late_keep_their_codes(use_ols, positive, form, rng):
    """Signals leave at steps 1 to 40, past the room that codes have at first."""
    X, D = random_problem(rng, 120, 60, 100, np.float64)
    options = {
        "use_ols": use_ols, "positive": positive, "stop_at": rng.uniform(0.05, 1.05, 120),
    }  # fmt: skip
    indices, values, left = code(X, D, 40, form, **options)
    expected, expected_values, expected_left = code_on_cpu(X, D, 40, **options)
    counts = (expected >= 0).sum(axis=1)
    assert counts.min() == 0
    assert counts.max() > greedy_steps._FIRST_ROOM
    assert (indices == expected).all()
    np.testing.assert_allclose(values, expected_values, atol=1e-9)
    np.testing.assert_allclose(left, expected_left, atol=1e-9)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("n_nonzero", [1, 7, 70])
def test_ragged_codes_are_the_padded_ones(form, n_nonzero, monkeypatch, rng):
    set_memory(monkeypatch, 1 << 18)  # several blocks
    X, D = random_problem(rng, 90, 20, 70, np.float32)
    X[[0, 5, 89]] = 0
    options = {"stop_at": np.full(90, 0.3)}
    indices, values, left = code(X, D, n_nonzero, form, **options)
    indptr, some, some_values, same_left = code(X, D, n_nonzero, form, ragged=True, **options)
    assert (indptr.dtype, some.dtype, some_values.dtype) == (np.int64, np.int32, np.float32)
    assert (np.diff(indptr) == (indices >= 0).sum(axis=1)).all()
    assert (some == indices[indices >= 0]).all()
    assert (some_values == values[indices >= 0]).all()
    assert (same_left == left).all()


@given(
    seed=seeds,
    n_candidates=st.integers(0, 60),
    use_ols=both,
    positive=both,
    dtype=dtypes,
)  # fmt: skip
def test_candidate_lists_are_local_dictionaries(seed, n_candidates, use_ols, positive, dtype):
    X, D = random_problem(seed, 12, 20, 60, dtype)
    rng = np.random.default_rng(seed)
    lists = np.array([rng.permutation(60)[:n_candidates] for _ in X], dtype=np.int32)
    lists[rng.random(lists.shape) < 0.2] = -1
    options = {"use_ols": use_ols, "positive": positive}
    indices, values, left = (
        numpy_of(part)
        for part in greedy.omp_local(local_of(X, D, lists), tensor(lists), 5, **options)
    )
    assert_padded_codes(indices, values, left)
    assert values.dtype == dtype
    for s in range(len(X)):
        mine = np.sort(lists[s][lists[s] >= 0])
        alone = code(X[s : s + 1], D[mine], 5, **options)
        expected = np.where(alone[0][0] >= 0, mine[alone[0][0]] if len(mine) else -1, -1)
        if dtype == np.float32 and (indices[s] != expected).any():
            continue  # a near tie of float32
        assert indices[s].tolist() == expected.tolist()
        tolerance = 1e3 * np.finfo(dtype).eps
        np.testing.assert_allclose(values[s], alone[1][0], rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("use_ols", "positive"), SELECTIONS)
def test_duplicate_candidates_do_no_harm(use_ols, positive, rng):
    X, D = random_problem(rng, 30, 12, 60, np.float64)
    lists = rng.integers(0, 60, (30, 20)).astype(np.int32)
    twice = np.concatenate([lists, lists[:, ::-1], np.full((30, 3), -1, np.int32)], axis=1)
    options = {"use_ols": use_ols, "positive": positive}
    once, again = (
        greedy.omp_local(local_of(X, D, some), tensor(some), 9, **options)
        for some in (lists, twice)
    )
    assert (once[0] == again[0]).all()
    np.testing.assert_allclose(numpy_of(once[1]), numpy_of(again[1]), atol=1e-9)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("use_ols", "positive"), SELECTIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
class TestDegenerateProblems:
    def test_zero_signals_use_no_atoms(self, dtype, use_ols, positive, form, rng):
        X, D = random_problem(rng, 4, 5, 9, dtype)
        X[:3], X[3] = 0, D[4]
        indices, values, left = code(X, D, 4, form, use_ols=use_ols, positive=positive)
        assert (indices[:3] == -1).all()
        assert indices[3].max() >= 0
        assert not values[:3].any()
        assert not left[:3].any()

    def test_zero_and_duplicate_atoms_are_never_picked_twice(
        self, dtype, use_ols, positive, form, rng
    ):
        X, D = random_problem(rng, 40, 6, 8, dtype)
        D = np.concatenate([np.zeros((2, 6), dtype), D, D, 2 * D[:3]])
        indices, values, left = code(X, D, 6, form, use_ols=use_ols, positive=positive)
        assert_padded_codes(indices, values, left)
        used = [set(row[row >= 0].tolist()) for row in indices]
        assert all(not {0, 1} & atoms for atoms in used)
        classes = [{(i - 2) % 8 for i in atoms} for atoms in used]
        assert all(len(c) == len(a) for c, a in zip(classes, used, strict=True))

    def test_more_nonzeros_than_atoms(self, dtype, use_ols, positive, form, rng):
        X, D = random_problem(rng, 10, 30, 7, dtype)
        indices, values, left = code(X, D, 12, form, use_ols=use_ols, positive=positive)
        assert indices.shape == values.shape == (10, 12)
        _, _, expected = code_on_cpu(
            X.astype(float), D.astype(float), 12, use_ols=use_ols, positive=positive
        )
        np.testing.assert_allclose(left, expected, rtol=1e-4)

    def test_a_sparse_signal_is_recovered_and_the_pursuit_stops(
        self, dtype, use_ols, positive, form, rng
    ):
        _, D = random_problem(rng, 1, 100, 120, dtype)
        W = np.zeros((1, 120), dtype)
        W[0, [7, 50]] = 2, 3 if positive else -3
        indices, values, _ = code(W @ D, D, 10, form, use_ols=use_ols, positive=positive)
        assert sorted(indices[0][indices[0] >= 0].tolist()) == [7, 50]
        np.testing.assert_allclose(dense(indices, values, 120), W, atol=1e-4)

    @pytest.mark.parametrize("factor", [2.0**40, 2.0**-40, 1e-12])
    def test_scale_does_not_matter(self, dtype, use_ols, positive, form, factor, rng):
        X, D = random_problem(rng, 30, 20, 50, dtype)
        options = {"use_ols": use_ols, "positive": positive}
        plain = code(X, D, 5, form, **options)
        scaled = code((X * factor).astype(dtype), D, 5, form, **options)
        assert (scaled[0] == plain[0]).all()
        np.testing.assert_allclose(scaled[1] / factor, plain[1], rtol=1e-3, atol=1e-5)
        longer = code(X, (D * np.sqrt(factor)).astype(dtype), 5, form, **options)
        assert (longer[0] == plain[0]).all()

    def test_one_atom(self, dtype, use_ols, positive, form):
        X, D = np.array([[3.0, 4.0]], dtype), np.array([[0.0, 2.0]], dtype)
        indices, values, left = code(X, D, 1, form, use_ols=use_ols, positive=positive)
        assert (indices.tolist(), values.tolist()) == ([[0]], [[2.0]])
        assert left[0] == pytest.approx(9.0)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("use_ols", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_more_nonzeros_than_rank_stop_at_an_exact_code(dtype, use_ols, form, rng):
    basis = rng.standard_normal((3, 20))
    D = (rng.standard_normal((30, 3)) @ basis).astype(dtype)
    X = (rng.standard_normal((50, 3)) @ basis).astype(dtype)
    indices, values, _ = code(X, D, 12, form, use_ols=use_ols)
    counts = (indices >= 0).sum(axis=1)
    errors = np.sqrt(residual_energies(X, D, indices, values) / energies_of(X))
    # The codes solve normal equations, whose condition is that of the atoms squared.
    conditions = [np.linalg.cond(D[row[row >= 0]].astype(float)) ** 2 for row in indices]
    # A pursuit ends where correlations are 100 eps; of 30 atoms in 3 dimensions one is near.
    exact = errors < np.finfo(dtype).eps * np.maximum(10 * np.array(conditions), 200)
    # With two of three atoms, all others explain the rest alike: by rounded ratios the best may
    # be one that the two nearly span, with which OLS stops in float32, or needs some more.
    assert exact.mean() > 0.8 if use_ols and dtype == np.float32 else exact.all()
    assert (counts <= 3).mean() > 0.85 if use_ols else counts.max() <= 3


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("use_ols", "positive"), SELECTIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ties_go_to_the_lowest_index(dtype, use_ols, positive, form, monkeypatch, rng):
    """Atoms and signals of few bits, so that inner products of twins are equal anywhere."""
    monkeypatch.setattr(greedy_atoms, "TILE", 16)
    D = (rng.integers(-8, 9, (40, 6)) / 8).astype(dtype)
    X = (rng.integers(-8, 9, (20, 6)) / 8).astype(dtype)
    options = {"use_ols": use_ols, "positive": positive}
    once, twice = (code(X, atoms, 1, form, **options) for atoms in (D, np.concatenate([D, D])))
    assert (once[0] == twice[0]).all()
    assert (once[0] == code_on_cpu(X, D, 1, **options)[0]).all()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("use_ols", "positive"), SELECTIONS)
def test_what_rounding_ends_is_told_and_settled_in_float64(use_ols, positive, form, rng):
    """Atoms two degrees from each other: in float32 as on the CPU, in float64 as in float64."""
    D = rng.standard_normal(20) + 0.035 * rng.standard_normal((40, 20))
    D = (D / np.linalg.norm(D, axis=1, keepdims=True)).astype(np.float32)
    X = np.concatenate([rng.standard_normal((20, 20)), rng.random((20, 40)) @ D])
    X = X.astype(np.float32)
    options = {"use_ols": use_ols, "positive": positive}
    *_, unsettled = code(X, D, 8, form, leave_unsettled=True, **options)
    *_, on_cpu = code_on_cpu(X, D, 8, leave_unsettled=True, **options)
    assert unsettled.dtype == bool
    # Kernels leave more to exact steps: positive picks that a screen cannot tell from none.
    screened = positive and form == "rows" and kernels.compiles_for(tensor(X).device)
    agree = unsettled >= on_cpu if screened else unsettled == on_cpu
    assert agree.mean() > 0.8
    assert unsettled.mean() > 0.2 or positive
    wide, atoms = X.astype(np.float64), D.astype(np.float64)
    indices, values, left = code(wide, atoms, 8, form, exact=True, **options)
    expected = code(wide, atoms, 8, form, **options)
    true = residual_energies(wide, atoms, indices, values)
    np.testing.assert_allclose(left, true, atol=1e-9 * energies_of(X).max())
    more = np.sqrt(np.maximum(left, 0)) - np.sqrt(np.maximum(expected[2], 0))
    assert (more < 3e-3 * np.sqrt(energies_of(X))).all()
    ragged = code(X, D, 8, form, leave_unsettled=True, ragged=True, **options)
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
def test_nearly_parallel_atoms_do_no_harm(seed, angle, n_nonzero, dtype, use_ols, positive, form):
    """No code is worse than none, and the error told is the true one.

    Angles around the one at which coefficients grow to where rounding shows.
    """
    rng = np.random.default_rng(seed)
    spread = 10**angle * np.sqrt(1e3 * np.finfo(dtype).eps)
    D = (rng.standard_normal(30) + spread * rng.standard_normal((60, 30))).astype(dtype)
    X = rng.standard_normal((20, 30)).astype(dtype)
    indices, values, left = code(X, D, n_nonzero, form, use_ols=use_ols, positive=positive)
    error, energy = residual_energies(X, D, indices, values), energies_of(X)
    assert (error <= energy * (1 + 1e-3)).all()
    assert (np.abs(left - error) <= 1e-3 * energy).all()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("use_ols", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_steps_that_pass_their_check_are_taken(dtype, use_ols, form):
    """Two atoms at an angle at which rounding shows a little; the signal is orthogonal to one."""
    angle = np.sqrt(1e5 * np.finfo(dtype).eps)
    D = np.array([[1.0, 0.0, 0.0], [1.0, angle, 0.0]], dtype)
    X = np.array([[0.3, 1.0, 0.2]], dtype)
    _, values, left = code(X, D, 2, form, use_ols=use_ols)
    np.testing.assert_allclose(values, [[0.3 - 1 / angle, 1 / angle]], rtol=1e-2)
    np.testing.assert_allclose(left, [0.04], atol=1e-3)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("use_ols", "positive"), SELECTIONS)
@pytest.mark.parametrize(("dtype", "angle"), [(np.float32, 2e-4), (np.float64, 1e-8)])
def test_atoms_that_picked_ones_span_but_for_rounding_are_not_used(
    dtype, angle, use_ols, positive, form
):
    """The second atom is correlated with what the first one leaves, but hardly anything new."""
    D = np.array([[1.0, 0.0, 0.0], [1.0, angle, 0.0]], dtype)
    X = np.array([[1.0, 0.5, 0.2]], dtype)
    indices, values, _ = code(X, D, 2, form, use_ols=use_ols, positive=positive)
    assert indices[0, 1] == -1
    np.testing.assert_allclose(values, [[1.0, 0.0]], rtol=1e-3)
    assert (indices == code_on_cpu(X, D, 2, use_ols=use_ols, positive=positive)[0]).all()


@pytest.mark.parametrize("form", ["gram", "local", "asked"])  # of rows energies are rounded
@pytest.mark.parametrize("use_ols", [False, True])
def test_checked_steps_tell_the_true_error(use_ols, form, rng):
    """Atoms and signals of few bits, whose inner products float32 holds exactly."""
    D = (4 + rng.integers(-4, 5, (40, 12)) / 8).astype(np.float32)
    X = (rng.integers(-8, 9, (300, 12)) / 8).astype(np.float32)
    indices, values, left = code(X, D, 4, form, use_ols=use_ols)
    explained = energies_of(X) - left
    sizes = (values.astype(float) ** 2 * energies_of(D)[indices] * (indices >= 0)).sum(axis=1)
    # Where rounding shows in codes, it did so in their last steps.
    checked = 2.0**-23 * sizes > 2e-6 * explained
    assert checked.sum() > 100
    true = residual_energies(X, D, indices, values)
    np.testing.assert_allclose(left[checked], true[checked], rtol=1e-9)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("factor", [1e-30, 1e-18, 1e17, 1e30])
def test_float32_codes_signals_far_from_one(factor, form, rng):
    X, D = random_problem(rng, 20, 20, 50, np.float32)
    for use_ols, positive in SELECTIONS:
        options = {"use_ols": use_ols, "positive": positive, "stop_at": np.full(20, 0.5)}
        plain = code(X, D, 9, form, **options)
        # The other half stays as it is.
        scales = np.where(np.arange(20) % 2, factor, 1.0)
        far = (X * scales[:, None]).astype(np.float32)
        indices, values, left = code_far(far, D, 9, form, **options)
        assert (indices == plain[0]).all()
        np.testing.assert_allclose(values / scales[:, None], plain[1], rtol=1e-3, atol=1e-5)
        np.testing.assert_allclose(left / scales**2, plain[2], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(("factor", "length"), [(1e30, 1e10), (1e-30, 1e-12)])
def test_correlations_may_be_wider_than_float32_holds(factor, length, rng):
    X, D = random_problem(rng, 20, 20, 50, np.float32)
    for use_ols, positive in SELECTIONS:
        options = {"use_ols": use_ols, "positive": positive, "stop_at": np.full(20, 0.5)}
        plain = code(X, D, 9, **options)
        far, long = X * np.float32(factor), D * np.float32(length)
        indices, values, _ = code_far(far, long, 9, "gram", **options)
        assert (indices == plain[0]).all()
        np.testing.assert_allclose(values / (factor / length), plain[1], rtol=1e-3, atol=1e-5)


def code_far(X, D, n_nonzero, form, **options):
    """As ``code``, with inner products in float64: float32 does not hold them."""
    wide = X.astype(np.float64)

    def products(start, stop):
        rows = wide[start:stop]
        return tensor(rows @ D.T.astype(np.float64)), tensor(np.vecdot(rows, rows))

    if form != "gram":
        return code(X, D, n_nonzero, form, **options)
    options["stop_at"] = tensor(options["stop_at"])
    found = greedy.omp(tensor(D @ D.T), products, len(X), n_nonzero, **options)
    return tuple(numpy_of(part) for part in found)


@pytest.mark.parametrize("form", ["gram", "local", "asked"])
def test_without_energies_what_is_left_is_known_up_to_them(form, rng):
    X, D = random_problem(rng, 30, 20, 50, np.float64)
    known, unknown = code(X, D, 4, form), code(X, D, 4, form, energies=False)
    assert (known[0] == unknown[0]).all()
    np.testing.assert_allclose(unknown[2] + energies_of(X), known[2])
    with pytest.raises(ValueError, match="max_residual needs k"):
        code(X, D, 4, form, energies=False, stop_at=np.full(30, 0.1))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("ragged", [False, True])
def test_no_signals_and_no_atoms_have_no_codes(form, ragged, rng):
    X, D = random_problem(rng, 3, 4, 6, np.float64)
    found = code(X[:0], D, 3, form, ragged=ragged)
    assert [len(part) for part in found] == ([1, 0, 0, 0] if ragged else [0, 0, 0])
    found = code(X, D[:0], 3, form, ragged=ragged, use_ols=True)
    assert [len(part) for part in found] == ([4, 0, 0, 3] if ragged else [3, 3, 3])
    np.testing.assert_allclose(found[-1], energies_of(X))
    assert ragged or (found[0] == -1).all()


@pytest.mark.parametrize("form", FORMS)
class TestBadInput:
    def test_overflowing_signals_are_refused(self, form, rng):
        X, D = random_problem(rng, 20, 20, 50, np.float64)
        with pytest.raises(ValueError, match="squared norm overflows float64, or is undefined"):
            code(X * 1e160, D, 4, form)

    def test_codes_that_do_not_fit_are_refused(self, form, rng):
        X, D = random_problem(rng, 20, 20, 50, np.float32)
        options = {"stop_at": np.full(20, 0.1)}
        with pytest.raises(ValueError, match="codes overflow float32"):
            code_far(X * np.float32(1e30), D * np.float32(1e-15), 4, form, **options)
        with pytest.raises(ValueError, match="codes underflow float32"):
            code_far(X * np.float32(1e-37), D * np.float32(1e8), 4, form, **options)

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
    gram, products, norms2 = tensor(D @ D.T), products_of(X, D), tensor(np.vecdot(D, D))
    with pytest.raises(ValueError, match="Gram matrix must be square"):
        greedy.omp(gram[:, :40], products, 20, 3)
    with pytest.raises(ValueError, match=r"correlations must have shape \(20, 40\)"):
        greedy.omp(gram[:40, :40], products, 20, 3)
    with pytest.raises(ValueError, match=r"energies must have shape \(20,\), got \(3,\)"):
        greedy.omp(gram, lambda a, b: (tensor(X[a:b] @ D.T), tensor(np.ones(3))), 20, 3)
    with pytest.raises(ValueError, match=r"Gram rows must have shape \(\d+, 50\)"):
        greedy.omp_without_gram(lambda atoms: gram[atoms, :40], norms2, products, 20, 3)
    with pytest.raises(ValueError, match=r"signals must have shape \(20, 20\), got \(19, 20\)"):
        greedy.omp_without_gram(None, norms2, None, 20, 3, rows=(tensor(X[:19]), tensor(D)))
    with pytest.raises(ValueError, match=r"atoms must have shape \(50, 20\), got \(49, 20\)"):
        greedy.omp_without_gram(None, norms2, None, 20, 3, rows=(tensor(X), tensor(D[:49])))
    lists = tensor(np.zeros((20, 4), np.int32))
    with pytest.raises(ValueError, match=r"local Gram matrices must have shape \(\d+, 4, 4\)"):
        greedy.omp_local(lambda a, b: (gram[None, :3, :3], tensor(X[a:b, :4]), None), lists, 3)


def test_inner_products_are_only_read_in_any_layout(rng):
    X, D = random_problem(rng, 40, 20, 64, np.float64)
    corr, gram = X @ D.T, D @ D.T
    energy, norms2 = tensor(energies_of(X)), tensor(np.diagonal(gram))
    rows = tensor(X), tensor(D)
    lying, strided = tensor(corr.T).T, tensor(np.repeat(gram, 2, axis=1))[:, ::2]
    for use_ols, positive in SELECTIONS:
        options = {"positive": positive, "use_ols": use_ols}
        expected = code(X, D, 6, **options)
        found = [
            greedy.omp(strided, lambda a, b: (lying[a:b], energy[a:b]), 40, 6, **options),
            greedy.omp_without_gram(
                lambda atoms: strided[atoms], norms2, lambda a, b: (lying[a:b], energy[a:b]), 40, 6,
                **options,
            ),
            greedy.omp_without_gram(None, norms2, None, 40, 6, rows=rows, **options),
        ]  # fmt: skip
        assert all((numpy_of(some[0]) == expected[0]).all() for some in found)
        assert (numpy_of(lying) == corr).all()
        assert (numpy_of(strided) == gram).all()
        assert (numpy_of(rows[0]) == X).all()


class TestMemory:
    @pytest.mark.parametrize(
        ("wanted", "block"), [(2 << 30, 2 << 30), ((2 << 30) + 1, 1 << 30), (1 << 40, 1 << 30)]
    )
    def test_a_card_is_asked_what_is_free_only_for_much_of_it(self, wanted, block, monkeypatch):
        whole = SimpleNamespace(total_memory=64 << 30)
        monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: whole)
        monkeypatch.setattr(torch, "empty", lambda *_, **__: None)
        monkeypatch.setattr(greedy_blocks, "free_bytes", lambda like: 4 << 30)
        assert greedy_blocks.memory_for_a_block(torch.device("cuda"), wanted) == block

    @pytest.mark.parametrize("form", FORMS)
    @pytest.mark.parametrize(("use_ols", "positive"), SELECTIONS)
    def test_blocks_may_be_small(self, form, use_ols, positive, monkeypatch, rng):
        """Also rows of atoms that left are given up where their memory is needed."""
        X, D = random_problem(rng, 60, 10, 100, np.float64, 0.5)
        options = {"use_ols": use_ols, "positive": positive}
        expected = code(X, D, 6, **options)
        for budget in (1, 100_000):
            set_memory(monkeypatch, budget)
            monkeypatch.setattr(greedy_atoms, "TILE", 7)
            monkeypatch.setattr(greedy_steps, "_BYTES_FOR_FEW", budget)
            found = code(X, D, 6, form, **options)
            assert (found[0] == expected[0]).all()
            np.testing.assert_allclose(found[1], expected[1], rtol=1e-6, atol=1e-9)

    def test_without_memory_blocks_are_halved(self, monkeypatch, rng):
        X, D = random_problem(rng, 100, 10, 30, np.float64)
        asked, products = [], products_of(X, D)

        def short_of_memory(start, stop):
            asked.append(stop - start)
            if stop - start > 20:
                raise torch.OutOfMemoryError("CUDA out of memory.")
            return products(start, stop)

        found = greedy.omp(tensor(D @ D.T), short_of_memory, 100, 4)
        assert asked[:4] == [100, 50, 25, 13]
        assert sum(n for n in asked if n <= 20) == 100
        assert (numpy_of(found[0]) == code(X, D, 4)[0]).all()

    def test_no_memory_at_all_is_said_in_words(self, rng):
        def out_of_memory(start, stop):
            raise torch.OutOfMemoryError("CUDA out of memory.")

        with pytest.raises(MemoryError, match="no memory left to code even one signal at a time"):
            greedy.omp(tensor(np.eye(3)), out_of_memory, 10, 2)

    def test_atoms_that_signals_share_are_fetched_once(self, rng):
        X, D = random_problem(rng, 30, 10, 20, np.float64)
        asked = []

        def gram_rows(atoms):
            asked.extend(atoms.tolist())
            return tensor(D[numpy_of(atoms)] @ D.T)

        norms2 = tensor(np.vecdot(D, D))
        found = greedy.omp_without_gram(gram_rows, norms2, products_of(X, D), 30, 5)
        assert (found[0] >= 0).all()
        assert len(asked) == len(set(asked)) <= 20

    @pytest.mark.parametrize(("use_ols", "positive"), SELECTIONS)
    def test_rows_given_up_are_asked_for_again(self, use_ols, positive, rng):
        """The first signal needs atoms 0 and 5; when it is done, the second one comes to 0."""
        D = np.eye(6) + rng.uniform(-0.01, 0.01, (6, 6))
        X = np.array([[3.0, 0, 0, 0, 0, 2], [3, 5, 4, 2, 1, 0]]) @ D
        corr, until = tensor(X @ D.T), tensor(0.999 * energies_of(X))
        until[1] = torch.inf
        gram, asked = tensor(D @ D.T), []

        def gram_rows(atoms):
            asked.append(atoms.tolist())
            return gram[atoms]

        options = {"n_nonzero": 5, "use_ols": use_ols, "positive": positive}
        expected = greedy_steps.code_gram(gram, gram.diagonal(), corr, until, **options)
        found = greedy_steps.code_asked(gram_rows, gram.diagonal(), 1, corr, until, **options)
        assert asked == [[0, 1], [2], [0], [3]]
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(numpy_of(ours), numpy_of(theirs), rtol=1e-9, atol=1e-12)

    @pytest.mark.parametrize("positive", [False, True])
    def test_rows_make_no_matrix_of_signals_and_atoms(self, positive, monkeypatch, rng):
        X, D = random_problem(rng, 40, 10, 100, np.float64)
        expected = code(X, D, 5, positive=positive)[0]
        widest, matmul = [], greedy_atoms.matmul

        def watched(a, b):
            widest.append(b.shape[1])
            return matmul(a, b)

        monkeypatch.setattr(greedy_atoms, "TILE", 16)
        monkeypatch.setattr(greedy_atoms, "matmul", watched)
        found = code(X, D, 5, "rows", positive=positive)[0]
        assert (found == expected).all()
        assert max(widest) == 16


class TestFastCoders:
    """A coder that does not settle everything, and what becomes of the rest."""

    UNSETTLED: ClassVar = slice(None, None, 3)

    def use_fake(self, monkeypatch, ascending, seen):
        """Plug in the plain coder, with nonsense for every third signal."""
        choose = greedy_coders.choose_coder

        def choose_fake(form, shared, asked):
            plain = choose(form, shared, asked).plain

            def fake(*own):
                picked, values, counts, explained, _ = plain.code(*own)
                if ascending:
                    picked, values = greedy_coders._in_order(picked, values, None)
                unsettled = torch.zeros_like(counts, dtype=torch.bool)
                unsettled[self.UNSETTLED] = True
                picked[unsettled], values[unsettled], explained[unsettled] = 0, 77.0, 88.0
                # As narrow as what is settled needs.
                width = int(counts[~unsettled].max()) if (~unsettled).any() else 0
                return picked[:, :width].int(), values[:, :width], counts, explained, unsettled

            def again(*own):
                seen.append(len(own[-1]))
                return plain.code(*own)

            fast = greedy_coders.Coder(fake, plain.bytes_a_signal, False, ascending)
            return greedy_coders.Coders(fast, plain._replace(code=again))

        monkeypatch.setattr(greedy, "choose_coder", choose_fake)

    @pytest.mark.parametrize("form", FORMS)
    @pytest.mark.parametrize("ascending", [False, True])
    @pytest.mark.parametrize("ragged", [False, True])
    def test_unsettled_signals_are_coded_again(self, form, ascending, ragged, monkeypatch, rng):
        X, D = random_problem(rng, 50, 20, 40, np.float64)
        # The unsettled ones need more atoms than the others.
        stops = np.full(50, 0.6)
        stops[self.UNSETTLED] = 0.1
        options = {"stop_at": stops, "ragged": ragged}
        expected = code(X, D, 12, form, **options)
        seen = []
        self.use_fake(monkeypatch, ascending, seen)
        found = code(X, D, 12, form, **options)
        assert seen == [17]
        for ours, theirs in zip(found, expected, strict=True):
            assert ours.dtype == theirs.dtype
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)

    def test_they_are_coded_again_in_blocks_of_the_plain_coder(self, monkeypatch, rng):
        X, D = random_problem(rng, 50, 20, 40, np.float64)
        expected = code(X, D, 5)
        seen = []
        self.use_fake(monkeypatch, True, seen)
        monkeypatch.setattr(greedy_coders, "memory_for_a_block", lambda *_: 20_000)
        found = code(X, D, 5)
        assert len(seen) > 1
        assert sum(seen) == 17
        assert (found[0] == expected[0]).all()
