"""Greedy pursuits on tensors: what the contract of all machines does not say."""

from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles.pursuits

torch = pytest.importorskip("torch")

from greedy_cases import (  # noqa: E402
    FORMS,
    SELECTIONS,
    code,
    energies_of,
    products_of,
    random_problem,
    residual_energies,
)
from kernelatoms.engine.gpu.arrays import work  # noqa: E402
from kernelatoms.engine.gpu.greedy import (  # noqa: E402
    coders,
    nonnegative,
    omp,
    sources,
    steps,
)
from kernelatoms.engine.greedy_limits import limits_of  # noqa: E402
from machines import NUMPY, tensor_machine  # noqa: E402

MACHINE = tensor_machine()
seeds = st.integers(0, 2**32 - 1)


def tensor(array):
    return MACHINE.array(array).tensor


def numpy_of(tensor):
    return tensor.cpu().numpy()


def set_memory(monkeypatch, n_bytes):
    for module in (omp, coders):
        monkeypatch.setattr(module, "memory_for_a_block", lambda _, wanted: min(n_bytes, wanted))


@given(seed=seeds, n=st.integers(1, 7), shift=st.sampled_from([0.0, 0.5, 2.0]))
def test_small_nonnegative_least_squares(seed, n, shift):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((20, n, 10)) + shift
    x = rng.standard_normal((20, 10)) + shift / 2
    allowed = np.arange(n) < rng.integers(1, n + 1, 20)[:, None]
    w, passive, solved = nonnegative.nonnegative_least_squares(
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
    _, _, solved = nonnegative.nonnegative_least_squares(
        tensor(grams), tensor(np.ones((2, 2))), tensor(np.ones((2, 2), bool)),
        tensor(np.zeros(2)), tensor(np.zeros((2, 2))),
    )  # fmt: skip
    assert solved.tolist() == [False, True]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("use_ols", "positive"), SELECTIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ties_between_tiles_go_to_the_lowest_index(
    dtype, use_ols, positive, form, monkeypatch, rng
):
    """Atoms and signals of few bits, so that inner products of twins are equal anywhere."""
    monkeypatch.setattr(sources, "TILE", 16)
    D = (rng.integers(-8, 9, (40, 6)) / 8).astype(dtype)
    X = (rng.integers(-8, 9, (20, 6)) / 8).astype(dtype)
    options = {"use_ols": use_ols, "positive": positive}
    found = code(MACHINE, X, np.concatenate([D, D]), 1, form, **options)
    assert (found[0] == code(NUMPY, X, D, 1, **options)[0]).all()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("ragged", [False, True])
def test_no_atoms_have_no_codes(form, ragged, rng):
    X, D = random_problem(rng, 3, 4, 6, np.float64)
    found = code(MACHINE, X, D[:0], 3, form, ragged=ragged, use_ols=True)
    assert [len(part) for part in found] == ([4, 0, 0, 3] if ragged else [3, 3, 3])
    np.testing.assert_allclose(found[-1], energies_of(X))
    assert ragged or (found[0] == -1).all()


def test_rows_of_other_shapes_are_refused(rng):
    X, D = random_problem(rng, 20, 20, 50, np.float64)
    norms2 = tensor(np.vecdot(D, D))
    with pytest.raises(ValueError, match=r"signals must have shape \(20, 20\), got \(19, 20\)"):
        omp.omp_without_gram(None, norms2, None, 20, 3, rows=(tensor(X[:19]), tensor(D)))
    with pytest.raises(ValueError, match=r"atoms must have shape \(50, 20\), got \(49, 20\)"):
        omp.omp_without_gram(None, norms2, None, 20, 3, rows=(tensor(X), tensor(D[:49])))


@pytest.mark.parametrize("form", ["gram", "local", "asked"])  # of rows energies are rounded
@pytest.mark.parametrize("use_ols", [False, True])
def test_checked_steps_return_the_true_error(use_ols, form, rng):
    """Atoms and signals of few bits, whose inner products float32 holds exactly."""
    D = (4 + rng.integers(-4, 5, (40, 12)) / 8).astype(np.float32)
    X = (rng.integers(-8, 9, (300, 12)) / 8).astype(np.float32)
    indices, values, left = code(MACHINE, X, D, 4, form, use_ols=use_ols)
    explained = energies_of(X) - left
    sizes = (values.astype(float) ** 2 * energies_of(D)[indices] * (indices >= 0)).sum(axis=1)
    # Where rounding shows in codes, it did so in their last steps.
    checked = 2.0**-23 * sizes > 2e-6 * explained
    assert checked.sum() > 100
    true = residual_energies(X, D, indices, values)
    np.testing.assert_allclose(left[checked], true[checked], rtol=1e-9)


class TestMemory:
    @pytest.mark.parametrize(
        ("wanted", "block"), [(2 << 30, 2 << 30), ((2 << 30) + 1, 1 << 30), (1 << 40, 1 << 30)]
    )
    def test_a_card_is_asked_what_is_free_only_for_much_of_it(self, wanted, block, monkeypatch):
        whole = SimpleNamespace(total_memory=64 << 30)
        monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: whole)
        monkeypatch.setattr(torch, "empty", lambda *_, **__: None)
        monkeypatch.setattr(work, "free_bytes", lambda like: 4 << 30)
        assert work.memory_for_a_block(torch.device("cuda"), wanted) == block

    @pytest.mark.parametrize("form", FORMS)
    @pytest.mark.parametrize("n_nonzero", [1, 7, 70])
    def test_ragged_codes_of_several_blocks_are_the_padded_ones(
        self, form, n_nonzero, monkeypatch, rng
    ):
        set_memory(monkeypatch, 1 << 18)
        X, D = random_problem(rng, 90, 20, 70, np.float32)
        X[[0, 5, 89]] = 0
        options = {"stop_at": np.full(90, 0.3)}
        indices, values, left = code(MACHINE, X, D, n_nonzero, form, **options)
        ragged = code(MACHINE, X, D, n_nonzero, form, ragged=True, **options)
        expected = (indices[indices >= 0], values[indices >= 0], left)
        assert (np.diff(ragged[0]) == (indices >= 0).sum(axis=1)).all()
        for ours, theirs in zip(ragged[1:], expected, strict=True):
            np.testing.assert_array_equal(ours, theirs)

    @pytest.mark.parametrize("form", FORMS)
    @pytest.mark.parametrize(("use_ols", "positive"), SELECTIONS)
    def test_blocks_may_be_small(self, form, use_ols, positive, monkeypatch, rng):
        """Also rows of atoms that left are given up where their memory is needed."""
        X, D = random_problem(rng, 60, 10, 100, np.float64, 0.5)
        options = {"use_ols": use_ols, "positive": positive}
        expected = code(MACHINE, X, D, 6, **options)
        for budget in (1, 100_000):
            set_memory(monkeypatch, budget)
            monkeypatch.setattr(sources, "TILE", 7)
            monkeypatch.setattr(steps, "_BYTES_FOR_FEW", budget)
            found = code(MACHINE, X, D, 6, form, **options)
            assert (found[0] == expected[0]).all()
            np.testing.assert_allclose(found[1], expected[1], rtol=1e-6, atol=1e-9)

    def test_without_memory_blocks_are_halved(self, monkeypatch, rng):
        X, D = random_problem(rng, 100, 10, 30, np.float64)
        asked, products = [], products_of(MACHINE, X, D)

        def short_of_memory(start, stop):
            asked.append(stop - start)
            if stop - start > 20:
                raise torch.OutOfMemoryError("CUDA out of memory.")
            return products(start, stop)

        found = MACHINE.omp(MACHINE.array(D @ D.T), short_of_memory, 100, 4)
        assert asked[:4] == [100, 50, 25, 13]
        assert sum(n for n in asked if n <= 20) == 100
        assert (MACHINE.numpy(found[0]) == code(MACHINE, X, D, 4)[0]).all()

    def test_no_memory_at_all_is_said_in_words(self, rng):
        def out_of_memory(start, stop):
            raise torch.OutOfMemoryError("CUDA out of memory.")

        with pytest.raises(MemoryError, match="no memory left to code even one signal at a time"):
            MACHINE.omp(MACHINE.array(np.eye(3)), out_of_memory, 10, 2)

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

        rules = sources.Rules(use_ols, positive, limits_of(np.finfo(np.float64).eps))
        whole = sources.GramRows(gram, gram.diagonal()[None], rules, corr)
        expected = steps.pursue(whole, until, 5)
        requested = sources.RequestedRows(gram_rows, gram.diagonal(), 1, rules, corr)
        found = steps.pursue(requested, until, 5)
        assert asked == [[0, 1], [2], [0], [3]]
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(numpy_of(ours), numpy_of(theirs), rtol=1e-9, atol=1e-12)

    @pytest.mark.parametrize("positive", [False, True])
    def test_rows_make_no_matrix_of_signals_and_atoms(self, positive, monkeypatch, rng):
        X, D = random_problem(rng, 40, 10, 100, np.float64)
        expected = code(MACHINE, X, D, 5, positive=positive)[0]
        widest, matmul = [], sources.matmul

        def watched(a, b):
            widest.append(b.shape[1])
            return matmul(a, b)

        monkeypatch.setattr(sources, "TILE", 16)
        monkeypatch.setattr(sources, "matmul", watched)
        found = code(MACHINE, X, D, 5, "rows", positive=positive)[0]
        assert (found == expected).all()
        assert max(widest) == 16


class TestFastCoders:
    """A coder that does not settle everything, and what becomes of the rest."""

    UNSETTLED: ClassVar = slice(None, None, 3)

    def use_fake(self, monkeypatch, ascending, seen):
        """Plug in the plain coder, with nonsense for every third signal."""
        choose = coders.choose_coder

        def choose_fake(form, shared, asked):
            plain = choose(form, shared, asked).plain

            def fake(*own):
                picked, values, counts, explained, _ = plain.code(*own)
                if ascending:
                    picked, values = coders._sorted_codes(picked, values, None)
                unsettled = torch.zeros_like(counts, dtype=torch.bool)
                unsettled[self.UNSETTLED] = True
                picked[unsettled], values[unsettled], explained[unsettled] = 0, 77.0, 88.0
                # As narrow as what is settled needs.
                width = int(counts[~unsettled].max()) if (~unsettled).any() else 0
                return picked[:, :width].int(), values[:, :width], counts, explained, unsettled

            def again(*own):
                seen.append(len(own[-1]))
                return plain.code(*own)

            fast = coders.Coder(fake, plain.bytes_per_signal, False, ascending)
            return coders.Coders(fast, plain._replace(code=again))

        monkeypatch.setattr(omp, "choose_coder", choose_fake)

    @pytest.mark.parametrize("form", FORMS)
    @pytest.mark.parametrize("ascending", [False, True])
    @pytest.mark.parametrize("ragged", [False, True])
    def test_unsettled_signals_are_coded_again(self, form, ascending, ragged, monkeypatch, rng):
        X, D = random_problem(rng, 50, 20, 40, np.float64)
        # The unsettled ones need more atoms than the others.
        stops = np.full(50, 0.6)
        stops[self.UNSETTLED] = 0.1
        options = {"stop_at": stops, "ragged": ragged}
        expected = code(MACHINE, X, D, 12, form, **options)
        seen = []
        self.use_fake(monkeypatch, ascending, seen)
        found = code(MACHINE, X, D, 12, form, **options)
        assert seen == [17]
        for ours, theirs in zip(found, expected, strict=True):
            assert ours.dtype == theirs.dtype
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)

    def test_they_are_coded_again_in_blocks_of_the_plain_coder(self, monkeypatch, rng):
        X, D = random_problem(rng, 50, 20, 40, np.float64)
        expected = code(MACHINE, X, D, 5)
        seen = []
        self.use_fake(monkeypatch, True, seen)
        monkeypatch.setattr(coders, "memory_for_a_block", lambda *_: 20_000)
        found = code(MACHINE, X, D, 5)
        assert len(seen) > 1
        assert sum(seen) == 17
        assert (found[0] == expected[0]).all()
