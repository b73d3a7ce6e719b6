"""Greedy pursuits in Triton, on a card or in Triton's interpreter, against plain torch."""

import importlib.util
import os

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

# On a machine with a card the interpreter is not asked for: kernels are compiled.
ON_CARD = torch.cuda.is_available() and os.environ.get("TRITON_INTERPRET") != "1"
if not ON_CARD and os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("needs a card, or TRITON_INTERPRET=1", allow_module_level=True)
assert importlib.util.find_spec("triton") is not None

from kernelatoms.engine.gpu import greedy, greedy_kernels, greedy_steps, many_atoms  # noqa: E402
from kernelatoms.engine.gpu.kernels import compiles_for  # noqa: E402
from kernelatoms.engine.gpu.norm_kernels import squared_norms_of_float32  # noqa: E402

DEVICE = torch.device("cuda" if ON_CARD else "cpu")
# Features, atoms, nonzeros, signals.
SHAPES = [(12, 20, 3, 6), (40, 33, 6, 4), (17, 300, 4, 3), (9, 12, 2, 4)]


def unit_rows(rows):
    return rows / rows.norm(dim=1, keepdim=True)


def gaussian(n_features, n_atoms, n_signals, seed=0):
    draw = torch.Generator().manual_seed(seed)
    atoms = unit_rows(torch.randn(n_atoms, n_features, generator=draw))
    return torch.randn(n_signals, n_features, generator=draw).to(DEVICE), atoms.to(DEVICE)


def clustered(n_features, n_atoms, n_signals, seed=0, spread=0.35):
    draw = torch.Generator().manual_seed(seed)
    centres = unit_rows(torch.randn(-(-n_atoms // 8), n_features, generator=draw))
    noise = unit_rows(torch.randn(n_atoms, n_features, generator=draw))
    atoms = unit_rows(centres.repeat_interleave(8, 0)[:n_atoms] + spread * noise)
    weights = torch.randn(n_signals, 1, 4, generator=draw)
    used = torch.randint(0, n_atoms, (n_signals, 4), generator=draw)
    signals = (weights @ atoms[used])[:, 0] + 0.1 * torch.randn(
        n_signals, n_features, generator=draw
    ) / n_features**0.5
    return signals.to(DEVICE), atoms.to(DEVICE)


def endless(signals):
    return torch.full((len(signals),), torch.inf, dtype=torch.float64, device=signals.device)


def in_float64(signals, atoms, n_nonzero, **options):
    """Code by plain torch in float64; atoms ascending."""
    wide, own = atoms.double(), signals.double()
    gram = wide @ wide.T
    until = options.pop("until", endless(signals))
    picked, values, counts, explained = greedy_steps.code_gram(
        gram, gram.diagonal().contiguous(), own @ wide.T, until, n_nonzero,
        options.get("use_ols", False), options.get("positive", False),
    )  # fmt: skip
    last = torch.where(picked < 0, 1 << 30, picked)
    order = last.argsort(dim=1)
    return picked.gather(1, order).int(), values.gather(1, order), counts, explained


def code_by_gram(signals, atoms, n_nonzero, until=None, **options):
    gram = atoms @ atoms.T
    until = endless(signals) if until is None else until
    ready = greedy_kernels.ready_gram(gram)
    return greedy_kernels.code_gram(ready, signals @ atoms.T, until, n_nonzero, **options)


def code_by_rows(signals, atoms, n_nonzero, until=None, **options):
    until = endless(signals) if until is None else until
    ready = greedy_kernels.ready_gram(atoms @ atoms.T)
    halves = greedy_kernels.ready_atoms(atoms, ready.unit)
    return greedy_kernels.code_rows(ready, halves, signals, until, n_nonzero, **options)


def code_by_screens(signals, atoms, n_nonzero, until=None, **options):
    until = endless(signals) if until is None else until
    ready = many_atoms.ready_atoms(atoms)
    return many_atoms.code_rows(ready, signals, until, n_nonzero, **options)


CODERS = {"gram": code_by_gram, "rows": code_by_rows, "screens": code_by_screens}


def check_same(coded, expected, tol=1e-4):
    """Compare settled signals; return how many there are."""
    settled = ~coded.unsettled
    indices, values, counts, explained = expected
    width = coded.indices.shape[1]
    assert torch.equal(coded.indices[settled], indices[settled][:, :width])
    scale = values.abs().amax(dim=1, keepdim=True).clamp(min=1e-30)
    assert (((coded.values - values[:, :width]) / scale)[settled].abs() < tol).all()
    assert torch.equal(coded.counts[settled].long(), counts[settled].long())
    assert ((coded.explained - explained).abs() <= tol * explained.clamp(min=1e-30))[settled].all()
    return int(settled.sum())


def test_kernels_are_chosen_here():
    assert compiles_for(DEVICE)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("coder", CODERS)
def test_codes_are_those_of_float64(coder, positive, shape):
    n_features, n_atoms, n_nonzero, n_signals = shape
    signals, atoms = gaussian(n_features, n_atoms, n_signals)
    coded = CODERS[coder](signals, atoms, n_nonzero, positive=positive)
    settled = check_same(coded, in_float64(signals, atoms, n_nonzero, positive=positive))
    assert settled == n_signals or positive


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("positive", [False, True])
def test_ols(positive, shape):
    n_features, n_atoms, n_nonzero, n_signals = shape
    signals, atoms = gaussian(n_features, n_atoms, n_signals)
    options = {"use_ols": True, "positive": positive}
    coded = code_by_gram(signals, atoms, n_nonzero, **options)
    settled = check_same(coded, in_float64(signals, atoms, n_nonzero, **options))
    assert settled == n_signals or positive


@pytest.mark.parametrize("coder", CODERS)
def test_atoms_that_are_alike(coder):
    """Cosines of 0.9: most correlations are ties to half precision, and none to ours."""
    signals, atoms = clustered(48, 96, 8)
    coded = CODERS[coder](signals, atoms, 4)
    assert check_same(coded, in_float64(signals, atoms, 4)) >= 7


@pytest.mark.parametrize("coder", CODERS)
def test_picks_that_rounding_would_turn_around(coder):
    """The second of two atoms is better by 1e-5, ten times less than halves can tell apart."""
    _, atoms = gaussian(32, 40, 1, seed=3)
    better, worse = 21, 4
    apart = unit_rows(torch.ones_like(atoms[:1]))[0]
    atoms[worse] = atoms[better] + 2e-5 * apart
    along = atoms[better] - (atoms[better] @ apart) * apart
    signals = torch.stack([along - 0.5 * apart, -along + 0.5 * apart])
    coded = CODERS[coder](signals, atoms, 1)
    exact = (signals.double() @ atoms.double().T).abs()
    assert torch.equal(coded.indices[:, 0].long(), exact.argmax(dim=1))
    assert (exact[:, better] > exact[:, worse]).all()


def test_a_third_atom_of_a_tile_is_found():
    """Two of a tile are named; where a third may be the pick, all of the tile is looked at."""
    signals, plain = gaussian(32, 600, 1, seed=1)
    base, places = unit_rows(signals)[0], (300, 310, 320, 330)
    found = []
    for best in places:
        atoms = plain.clone()
        for place in places:
            aside = unit_rows((plain[place] - (plain[place] @ base) * base)[None])[0]
            angle = 0.005 if place == best else 0.01  # 4e-5 of a correlation, a hundredth of bf16's
            atoms[place] = unit_rows((base + angle * aside)[None])[0]
        exact = (signals.double() @ atoms.double().T).abs()[0]
        assert int(exact.argmax()) == best
        found.append(int(code_by_screens(signals, atoms, 1).indices[0, 0]))
    assert found == list(places)


@pytest.mark.parametrize("coder", CODERS)
def test_positive_picks_that_rounding_would_make_negative(coder):
    """Halved, 0.5001 is 0.5 and the only positive correlation is gone: no code, if believed."""
    signals = torch.tensor([[0.5001, -0.5, 0.0, 0.0]], device=DEVICE)
    atoms = torch.tensor([[-1.0, 0.0, 0.0, 0.0], [0.5**0.5, 0.5**0.5, 0.0, 0.0]], device=DEVICE)
    assert float((signals @ atoms.T).max()) > 5e-5
    coded = CODERS[coder](signals, atoms, 1, positive=True)
    assert bool(coded.unsettled[0]) or coded.indices.tolist() == [[1]]


@pytest.mark.parametrize("coder", CODERS)
def test_equal_atoms_go_to_the_first(coder):
    signals, atoms = gaussian(20, 50, 4)
    atoms[30] = atoms[8] = atoms[44]
    signals[0] = 3 * atoms[8]
    coded = CODERS[coder](signals, atoms, 1)
    assert int(coded.indices[0, 0]) == 8


@pytest.mark.parametrize("coder", CODERS)
def test_stops_by_residual(coder):
    signals, atoms = gaussian(16, 60, 8)
    energy = signals.double().square().sum(dim=1)
    until = energy * torch.linspace(0.0, 0.95, 8, dtype=torch.float64, device=DEVICE)
    coded = CODERS[coder](signals, atoms, 10, until)
    check_same(coded, in_float64(signals, atoms, 10, until=until))
    assert int(coded.counts[0]) == 0
    assert int(coded.counts.max()) > int(coded.counts.min()) + 1
    assert (coded.explained[~coded.unsettled] >= (until * (1 - 1e-6))[~coded.unsettled]).all()


@pytest.mark.parametrize("coder", CODERS)
def test_signals_and_atoms_of_nothing(coder):
    signals, atoms = gaussian(16, 40, 4)
    signals[1], atoms[5] = 0, 0
    signals[2] = 2 * atoms[9]  # one atom, and nothing is left
    coded = CODERS[coder](signals, atoms, 3)
    assert coded.counts.tolist()[1:3] == [0, 1] or bool(coded.unsettled[2])
    assert coded.indices[1].tolist() == [-1, -1, -1]
    assert not (coded.indices == 5).any()


@pytest.mark.parametrize("size", [1e-12, 1e-3, 1e6, 1e12])
def test_rows_of_any_size(size):
    signals, atoms = gaussian(24, 50, 5)
    plain = code_by_rows(signals, atoms, 4)
    factor = 2.0 ** round(torch.tensor(size).log2().item())
    scaled = code_by_rows(factor * signals, atoms, 4)
    assert torch.equal(plain.indices, scaled.indices)
    torch.testing.assert_close(scaled.values, factor * plain.values, rtol=1e-5, atol=0)


def test_atoms_of_any_norm():
    signals, atoms = gaussian(24, 50, 5)
    lengths = torch.logspace(-2, 3, 50, device=DEVICE)[:, None]
    for coder in CODERS.values():
        coded = coder(signals, lengths * atoms, 3)
        check_same(coded, in_float64(signals, lengths * atoms, 3))


@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("positive", [False, True])
def test_engine_recodes_what_is_not_settled(rows, positive):
    """Many nonzeros of alike atoms: some steps are in doubt, and the answer is right anyway."""
    signals, atoms = clustered(24, 40, 10, spread=0.2)
    gram = atoms @ atoms.T
    energy = signals.double().square().sum(dim=1)
    indices, values, left = greedy.omp(
        gram, lambda i, j: (signals[i:j] @ atoms.T, energy[i:j]), 10, 8, positive=positive,
        rows=(signals, atoms) if rows else None,
    )  # fmt: skip
    rebuilt = (values[:, None] @ atoms[indices.long().clamp(min=0)])[:, 0]
    truth = (signals - rebuilt).double().square().sum(dim=1)
    assert ((left - truth).abs() <= 1e-4 * energy).all()
    best = in_float64(signals, atoms, 8, positive=positive)[3]
    assert (truth <= (energy - best) + 1e-3 * energy).all()
    assert not positive or (values >= 0).all()


def test_more_nonzeros_than_kernels_hold(monkeypatch):
    """Codes of the kernel end at its last place; signals that go on are coded by plain torch."""
    from kernelatoms.engine.gpu import greedy_coders

    monkeypatch.setattr(greedy_coders, "_MOST_NONZERO", 4)
    signals, atoms = gaussian(20, 30, 6)
    gram = atoms @ atoms.T
    energy = signals.double().square().sum(dim=1)
    indices, _, left = greedy.omp(
        gram, lambda i, j: (signals[i:j] @ atoms.T, energy[i:j]), 6, 7, rows=(signals, atoms)
    )
    expected, _, _, explained = in_float64(signals, atoms, 7)
    assert torch.equal(indices, expected)
    assert ((left - (energy - explained)).abs() <= 1e-4 * energy).all()


def test_very_many_atoms_through_the_engine():
    signals, atoms = gaussian(40, 300, 4)
    norms2 = atoms.square().sum(dim=1)

    def never(*_):
        raise AssertionError("rows are at hand")

    indices, _, left = greedy.omp_without_gram(never, norms2, never, 4, 4, rows=(signals, atoms))
    expected, _, _, explained = in_float64(signals, atoms, 4)
    assert torch.equal(indices, expected)
    energy = signals.double().square().sum(dim=1)
    assert ((left - (energy - explained)).abs() <= 1e-5 * energy).all()


@pytest.mark.parametrize("shape", [(5, 3), (3, 130), (9, 128), (0, 4)])
def test_squared_norms(shape):
    rows = torch.randn(shape, generator=torch.Generator().manual_seed(0)).to(DEVICE) * 1e25
    expected = rows.double().square().sum(dim=1)
    torch.testing.assert_close(squared_norms_of_float32(rows), expected, rtol=1e-14, atol=0)
