"""l1 coding on tensors: against the CPU engine, the textbook, and each other."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles import lasso as book

torch = pytest.importorskip("torch")

import lasso_cases  # noqa: E402
from kernelatoms.engine.gpu.arrays import work  # noqa: E402
from kernelatoms.engine.gpu.l1 import lasso as l1  # noqa: E402
from kernelatoms.engine.gpu.l1 import rounds as l1_rounds  # noqa: E402
from kernelatoms.engine.gpu.l1 import screening as l1_screening  # noqa: E402
from kernelatoms.engine.gpu.l1 import solvers as l1_solvers  # noqa: E402
from lasso_cases import FORMS, alpha_of, check_certified, draw, problems  # noqa: E402
from machines import TensorMachine  # noqa: E402


@pytest.fixture(autouse=True)
def _one_thread():
    """Small tensors gain nothing from threads, which wait for each other where cores are busy."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


MACHINE = TensorMachine("cpu")


def tensor(array):
    return torch.from_numpy(np.array(array))


def products_of(X, D):
    products = lasso_cases.products_of(MACHINE, X, D)
    return lambda start, stop: tuple(part.tensor for part in products(start, stop))


def code(form, X, D, alpha, **options):
    return lasso_cases.code(MACHINE, form, X, D, alpha, **options)


def unpacked(coded, n_signals, n_atoms):
    return lasso_cases.unpacked(
        MACHINE, list(map(MACHINE.gpu.DeviceArray, coded)), n_signals, n_atoms
    )


@pytest.mark.parametrize("positive", [False, True])
def test_gaps_are_the_textbooks_of_any_codes(positive):
    """Far from the minimum too: no code, codes that rebuild the signal, that point away from it."""
    X, D = draw(2, 6, 8, 12, "unit")
    W = np.random.default_rng(2).standard_normal((6, 12))
    W = np.abs(W) if positive else W
    W[0] = 0
    X[1] = W[1] @ D
    X[2], X[3] = -W[2] @ D, 0.9 * W[3] @ D
    for alpha in (1e-3, 0.3, 100.0):
        R = X - W @ D
        C = R @ D.T
        largest = np.maximum(C, 0).max(axis=1) if positive else np.abs(C).max(axis=1)
        seen = ((R**2).sum(axis=1), (X * R).sum(axis=1), largest, W)
        found = l1_rounds.measure(*map(tensor, seen), alpha)
        gaps = [book.duality_gap(x, D, w, alpha, positive) for x, w in zip(X, W, strict=True)]
        np.testing.assert_allclose(found.gap, gaps, rtol=1e-9, atol=1e-12)
    assert seen[1][3] < 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_codes_are_certified_by_their_gap_and_by_no_code(dtype):
    # Near enough; just too far; worse than none; as bad as that but for rounding; no number.
    gap = torch.tensor([1e-6, 1.1e-6, 1e-3, 5e-6, torch.nan], dtype=torch.float64)
    objective = torch.tensor([0.3, 0.3, 0.501, 0.5 + 1e-6, 0.3], dtype=torch.float64)
    weights, energy = torch.ones(5, 1, dtype=torch.float64), torch.ones(5, dtype=torch.float64)
    lists = torch.zeros(5, 1, dtype=torch.int32)

    def certified(gap_tol, before):
        """``before`` is the gap of codes that rounding has not touched; 0.2 that of no code."""

        def again(rows, its):
            its_gap = torch.where(its[:, 0] == 0, 0.2, before).double()
            return l1_rounds.Measured(its_gap, torch.ones_like(its_gap), objective[rows])

        goal = l1_rounds.Goal(0.1, False, gap_tol, dtype)
        found = l1_rounds.Measured(gap, objective / 2, objective)
        part = l1_rounds.certify(
            torch.arange(5), lists, weights.clone(), energy, found, goal, again
        )
        assert part.values.dtype == dtype
        spoilt = part.values[:, 0] == 0
        torch.testing.assert_close(part.gap, torch.where(spoilt, 0.2, gap), equal_nan=True)
        assert (part.error[spoilt] == 1).all()
        return spoilt.tolist(), part.missed.tolist()

    assert certified(1e-6, 1.0) == (
        [False, False, True, True, True],
        [False, True, True, True, True],
    )
    assert certified(1e-5, 1.0) == (
        [False, False, True, False, True],
        [False, False, True, False, True],
    )
    assert certified(1e-2, 1.0) == (
        [False, False, True, False, True],
        [False, False, True, False, True],
    )
    # What the solver did reach, and rounding to float32 took away, is not missed.
    rounded = certified(1e-6, 0.0)[1][1]
    assert rounded == (dtype == torch.float64)


@given(**problems)
def test_float32_codes_of_rows_are_certified_as_they_are(
    seed, n_features, n_atoms, kind, share, positive
):
    """The gap is that of rounded codes over the atoms given, whatever solved for them."""
    X, D = (a.astype(np.float32) for a in draw(seed, 4, n_features, n_atoms, kind))
    alpha = alpha_of(X, D, share)
    coded = code("rows", X, D, alpha, positive=positive, gap_tol=1e-4)
    assert coded[0].dtype == np.float32
    # Rounding alone moves the objective by so much: weights that cancel are larger than signals.
    sizes = np.abs(coded[0]).astype(np.float64) @ np.linalg.norm(D.astype(np.float64), axis=1)
    rounding = 1e-6 * (sizes / np.linalg.norm(X, axis=1)).max() ** 2
    check_certified(X, D, alpha, positive, coded, gap_tol=1e-4 + rounding)


@pytest.mark.parametrize("form", FORMS)
def test_parts_change_nothing(form, monkeypatch):
    """Blocks of one signal, and of few atoms: what little memory leads to."""
    X, D = draw(7, 9, 15, 140, "unit")
    whole = code(form, X, D, 0.4, gap_tol=1e-10)
    monkeypatch.setattr(work, "_HOST_BYTES", 1 << 12)
    monkeypatch.setattr(l1_screening, "_ATOMS_AT_ONCE", 23)
    monkeypatch.setattr(l1, "_MOST_ASKED", 2)
    parts = code(form, X, D, 0.4, gap_tol=1e-10)
    np.testing.assert_allclose(parts[0], whole[0], atol=1e-9)
    check_certified(X, D, 0.4, False, parts, gap_tol=1e-10)


def set_memory(monkeypatch, most):
    """Let memory run out where more than so many small problems are solved together."""
    solve, tried = l1_solvers.solve_small, []

    def limited(grams, *more, **options):
        tried.append(len(grams))
        if len(grams) > most:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return solve(grams, *more, **options)

    for module in (l1, l1_rounds):
        monkeypatch.setattr(module, "solve_small", limited)
    return tried


@pytest.mark.parametrize("form", [*FORMS, "candidates"])
@pytest.mark.parametrize("n_atoms", [20, 140])
def test_without_memory_blocks_are_halved(form, n_atoms, monkeypatch):
    """Codes of a block that were done before memory ran out are not kept twice."""
    X, D = draw(7, 30, 15, n_atoms, "unit")
    X[::4] *= 0.01  # nothing to code
    whole = code(form, X, D, 0.4)
    tried = set_memory(monkeypatch, 4)
    parts = code(form, X, D, 0.4)
    assert tried[0] > 4
    for found, expected in zip(parts, whole, strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("form", [*FORMS, "candidates"])
def test_no_memory_at_all_is_said_in_words(form, monkeypatch):
    tried = set_memory(monkeypatch, 0)
    X, D = draw(7, 9, 15, 140, "unit")
    with pytest.raises(MemoryError, match="no memory left to code even one signal at a time"):
        code(form, X, D, 0.4)
    assert tried == [9, 5, 3, 2, 1]


def test_what_all_blocks_share_may_not_fit(monkeypatch):
    def out_of_memory(atoms):
        raise torch.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr(l1, "half_atoms", out_of_memory)
    with pytest.raises(MemoryError, match="no memory left"):
        code("rows", *draw(7, 3, 15, 140, "unit"), 0.4)


@pytest.mark.parametrize("kind", ["unit", "clusters"])
def test_screens_may_round_as_they_like(kind, monkeypatch):
    """Atoms in three digits find other lists, and the same codes."""

    def rough(atoms):
        return l1_screening.HalfAtoms((atoms.bfloat16()).float(), 1.0)

    X, D = (a.astype(np.float32) for a in draw(8, 6, 30, 400, kind))
    alpha = alpha_of(X, D, 0.1)
    exact = code("rows", X, D, alpha)
    monkeypatch.setattr(l1, "half_atoms", rough)
    rounded = code("rows", X, D, alpha)
    check_certified(X, D, alpha, False, rounded, gap_tol=1e-5)
    np.testing.assert_allclose(rounded[0], exact[0], atol=1e-4)


@given(**problems, n_candidates=st.integers(1, 12), started=st.booleans())
def test_candidates_are_a_smaller_dictionary(
    seed, n_features, n_atoms, kind, share, positive, n_candidates, started
):
    X, D = draw(seed, 4, n_features, n_atoms, kind)
    alpha = alpha_of(X, D, share)
    rng = np.random.default_rng(seed)
    lists = tensor(rng.integers(-1, n_atoms, (4, n_candidates)).astype(np.int32))
    some = tensor(rng.standard_normal((4, n_candidates)))
    energy = tensor((X**2).sum(axis=1))

    def local(first, stop):
        own = D[np.maximum(lists.numpy(), 0)] * (lists.numpy() >= 0)[:, :, None]
        own, x = own[first:stop], X[first:stop]
        corr = np.einsum("nkp,np->nk", own, x)
        return tensor(own @ own.transpose(0, 2, 1)), tensor(corr), energy[first:stop]

    coded = l1.lasso_local(
        local, lists, np.float64, alpha, positive=positive,
        start=(lambda first, stop: some[first:stop]) if started else None,
    )  # fmt: skip
    indptr, indices, values, error, gap, missed = (part.numpy() for part in coded)
    assert not missed.any()
    for s in range(4):
        its = slice(indptr[s], indptr[s + 1])
        w = np.zeros(n_atoms)
        np.add.at(w, indices[its], values[its])
        mine = np.unique(lists[s][lists[s] >= 0])
        assert not np.delete(w, mine).any()
        np.testing.assert_allclose(error[s], ((X[s] - w @ D) ** 2).sum(), atol=1e-8 * energy[s])
        if len(mine):
            true = book.duality_gap(X[s], D[mine], w[mine], alpha, positive)
            np.testing.assert_allclose(gap[s], true, atol=1e-8 * energy[s])
            assert gap[s] <= 1e-6 * energy[s]


@pytest.mark.parametrize(
    ("dtype", "exponent"),
    [(np.float32, -60), (np.float32, 60), (np.float64, -200), (np.float64, 200)],
)
def test_powers_of_two_change_nothing(dtype, exponent):
    """Of signals, of atoms: rows whose squares, or they themselves, float32 does not hold."""
    X, D = (a.astype(dtype) for a in draw(14, 5, 20, 150, "unit"))
    plain = code("rows", X, D, 0.5)[0]
    scale = dtype(2.0**exponent)
    signals = code("rows", X * scale, D, 0.5 * float(scale))[0]
    np.testing.assert_allclose(signals, plain * scale, rtol=1e-4, atol=1e-6 * float(scale))
    atoms = code("rows", X, D * scale, 0.5 * float(scale))[0]
    np.testing.assert_allclose(atoms, plain / scale, rtol=1e-4, atol=1e-6 / float(scale))


def test_grams_of_no_vectors_give_no_code_that_is_worse_than_none():
    rng = np.random.default_rng(0)
    D = rng.standard_normal((140, 3))
    gram = np.tanh(D @ D.T)  # indefinite
    corr, energy = rng.standard_normal((6, 140)), np.ones(6)

    def products(start, stop):
        return tensor(corr[start:stop]), tensor(energy[start:stop])

    for n_atoms in (30, 140):

        def some(start, stop, n_atoms=n_atoms):
            corr, energy = products(start, stop)
            return corr[:, :n_atoms], energy

        coded = l1.lasso(tensor(gram[:n_atoms, :n_atoms]), some, 6, np.float64, 0.3)
        W, error, gap, missed = unpacked(coded, 6, n_atoms)
        assert np.isfinite(gap).all()
        assert (error / 2 + 0.3 * np.abs(W).sum(axis=1) <= 0.5 + 1e-6).all()
        np.testing.assert_array_equal(missed, gap > 1e-6 * (1 + 1e-6))


def test_bad_arguments_are_named():
    X, D = draw(15, 4, 6, 10, "plain")
    gram, products = tensor(D @ D.T), products_of(X, D)
    for message, call in {
        "Gram matrix must have shape": lambda: l1.lasso(gram[:5], products, 4, float, 0.1),
        "correlations must have shape": lambda: l1.lasso(gram[:5, :5], products, 4, float, 0.1),
        r"start from must have shape \(4, 10\)": lambda: l1.lasso(
            gram, products, 4, float, 0.1, start=torch.zeros(4, 9)
        ),
        "atoms must have shape": lambda: l1.lasso_without_gram(
            None, None, None, 4, 10, float, 0.1, rows=(tensor(X), tensor(D[:, :5]))
        ),
        "local Gram matrices must have shape": lambda: l1.lasso_without_gram(
            products, lambda start, stop, lists: (torch.zeros(4, 2, 2), torch.zeros(lists.shape)),
            lambda weights, lists: weights.new_zeros(4, 10), 4, 10, float, 0.1,
        ),
        "overflow": lambda: code("rows", 1e200 * X, D, 0.1),
    }.items():  # fmt: skip
        with pytest.raises(ValueError, match=message):
            call()


@given(**problems)
def test_small_problems_are_solved_to_the_last_digits(
    seed, n_features, n_atoms, kind, share, positive
):
    """1e-10 of the energy, from any gradients, one Gram matrix for all or one each."""
    X, D = draw(seed, 5, n_features, n_atoms, kind)
    alpha = alpha_of(X, D, share)
    gram, b = tensor(D @ D.T), tensor(X @ D.T)
    shared = gram.expand(5, -1, -1)
    W = l1_solvers.solve_small(shared, b, alpha, positive, tol=1e-11)
    gaps = [book.duality_gap(x, D, w, alpha, positive) for x, w in zip(X, W.numpy(), strict=True)]
    assert max(gaps) <= 1e-10 * (X**2).sum(axis=1).max()
    start = torch.linspace(-1, 1, n_atoms, dtype=torch.float64).expand(5, -1)
    again = l1_solvers.solve_small(
        shared.contiguous(), b - start @ gram, alpha, positive, start, tol=1e-11
    )
    for x, w in zip(X, again.numpy(), strict=True):
        assert book.duality_gap(x, D, w, alpha, positive) <= 1e-10 * (X**2).sum(axis=1).max()


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_atoms_that_float32_can_hardly_tell_apart(seed, positive):
    """Rounding has made their Gram matrix that of no vectors; the gap is reached all the same."""
    X, D = draw(seed, 20, 20, 50, "unit")
    noise = 1e-7 * np.random.default_rng(seed).standard_normal((25, 20))
    D[1::2] = D[::2] + (noise if seed else 0)
    X, D = X.astype(np.float32), D.astype(np.float32)
    alpha = alpha_of(X, D, 1e-3)
    _, _, gap, missed = code("gram", X, D, alpha, positive=positive)
    assert not missed.any()
    assert (gap <= 3e-6 * (X.astype(np.float64) ** 2).sum(axis=1)).all()  # of rounded codes


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("kind", ["unit", "clusters"])
def test_paths_may_begin_at_any_code(kind, positive):
    X, D = draw(5, 12, 20, 40, kind)
    gram, b = tensor(D @ D.T), tensor(X @ D.T)
    alpha = 0.1 * float(b.abs().max())
    grams, b = gram.expand(12, -1, -1), b / alpha
    whole, _ = l1_solvers.follow_paths(grams, b, positive, 1e-11)
    anything = torch.linspace(-2, 2, 480, dtype=torch.float64).view(12, 40)
    anything = anything.clamp(min=0) if positive else anything
    begins = {"0": 0 * whole, "the end": whole, "anything": anything * (whole == 0)}
    for begin in begins.values():
        w, left = l1_solvers.follow_paths(grams, b, positive, 1e-11, begin)
        assert (left <= 1e-10).all()
        torch.testing.assert_close(w, whole, rtol=0, atol=1e-9 * float(whole.abs().max()))


def test_paths_that_begin_near_their_end_are_short(monkeypatch):
    X, D = draw(5, 6, 60, 80, "unit")
    gram, b = tensor(D @ D.T), tensor(X @ D.T)
    b = b / (0.05 * b.abs().max())
    grams, steps, go_on = gram.expand(6, -1, -1), [], l1_solvers._Path.go_on

    def counted(path, positive):
        steps.append(1)
        go_on(path, positive)

    monkeypatch.setattr(l1_solvers._Path, "go_on", counted)
    whole, _ = l1_solvers.follow_paths(grams, b, False, 1e-11)
    from_zero = len(steps)
    l1_solvers.follow_paths(grams, 1.01 * b, False, 1e-11, whole)
    assert (whole != 0).sum(1).min() > 3 * l1_solvers._BREAKS_PER_CHECK
    assert len(steps) - from_zero <= from_zero / 2


def test_a_start_of_dependent_atoms_is_none():
    """Twins that are both used have no tableau; nor does a start of no numbers lead anywhere."""
    X, D = draw(5, 3, 10, 12, "unit")
    D[7] = D[2]
    gram, b = tensor(D @ D.T), tensor(X @ D.T)
    grams, alpha = gram.expand(3, -1, -1), 0.1 * float(b.abs().max())
    start = torch.zeros((3, 12), dtype=torch.float64)
    start[0, [2, 7]], start[1, 4] = 1.0, torch.nan
    floors = 1e-11 * gram.diagonal().expand(3, -1)
    w, signs, tableaux = l1_solvers._begin(grams, floors, torch.nan_to_num(start, nan=2.0))
    assert not w[0].any()
    assert torch.equal(tableaux[0], gram)
    assert signs[1].tolist() == [0, 0, 0, 0, 1, *[0] * 7]
    given = b - torch.nan_to_num(start) @ gram
    W = l1_solvers.solve_small(grams, given, alpha, False, torch.nan_to_num(start), tol=1e-11)
    expected = l1_solvers.solve_small(grams, b, alpha, False, tol=1e-11)
    torch.testing.assert_close(W @ tensor(D), expected @ tensor(D), rtol=0, atol=1e-9)


@pytest.mark.parametrize("positive", [False, True])
def test_signals_that_lose_their_path_go_on_by_steps(positive, monkeypatch):
    monkeypatch.setattr(l1_solvers, "_TURNS", 0)
    X, D = draw(16, 4, 20, 30, "clusters")
    alpha = alpha_of(X, D, 0.1)
    coded = code("gram", X, D, alpha, positive=positive)
    check_certified(X, D, alpha, positive, coded)


def test_rounds_end(monkeypatch):
    """Signals that are given up keep what they have, and say that it is not enough."""
    monkeypatch.setattr(l1_rounds, "_MOST_ROUNDS", 2)
    X, D = draw(17, 5, 60, 400, "unit")
    alpha = alpha_of(X, D, 0.05)
    W, _, gap, missed = code("gram", X, D, alpha, gap_tol=1e-9)
    energy = (X**2).sum(axis=1)
    assert missed.any()
    np.testing.assert_array_equal(missed, gap > 1e-9 * energy * (1 + 1e-6))
    for x, w, its in zip(X, W, gap, strict=True):
        np.testing.assert_allclose(its, book.duality_gap(x, D, w, alpha), atol=1e-9 * energy.max())
