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

from kernelatoms.engine.gpu.arrays.norm_kernels import squared_norms_of_float32  # noqa: E402
from kernelatoms.engine.gpu.arrays.work import compiles_for  # noqa: E402
from kernelatoms.engine.gpu.greedy import exact as greedy_exact  # noqa: E402
from kernelatoms.engine.gpu.greedy import half_precision, many_atoms, screens, sources  # noqa: E402
from kernelatoms.engine.gpu.greedy import kernels as greedy_kernels  # noqa: E402
from kernelatoms.engine.gpu.greedy import omp as greedy  # noqa: E402
from kernelatoms.engine.gpu.greedy import steps as greedy_steps  # noqa: E402
from kernelatoms.engine.greedy_limits import limits_of  # noqa: E402

DEVICE = torch.device("cuda" if ON_CARD else "cpu")
# Features, atoms, nonzeros, signals.
SHAPES = [(12, 20, 3, 6), (40, 33, 6, 4), (17, 300, 4, 3), (9, 12, 2, 4)]


@pytest.fixture(params=[128, 256])
def tile(request, monkeypatch):
    """Tiles of 128 atoms, or of 256, as for very many atoms."""
    if request.param == 256:
        monkeypatch.setattr(many_atoms, "_MOST_SMALL_TILES", 0)
    return request.param


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


def in_torch(gram, corr, until, n_nonzero, use_ols=False, positive=False, limits=None):
    """Code by plain torch in the type of the correlations."""
    limits = limits or limits_of(torch.finfo(corr.dtype).eps)
    rules = sources.Rules(use_ols, positive, limits)
    source = sources.GramRows(gram, gram.diagonal().contiguous()[None], rules, corr)
    return greedy_steps.pursue(source, until, n_nonzero)


def in_float64(signals, atoms, n_nonzero, **options):
    """Code by plain torch in float64; atoms ascending."""
    wide, own = atoms.double(), signals.double()
    gram = wide @ wide.T
    until = options.pop("until", endless(signals))
    picked, values, counts, explained, _ = in_torch(gram, own @ wide.T, until, n_nonzero, **options)
    last = torch.where(picked < 0, 1 << 30, picked)
    order = last.argsort(dim=1)
    return picked.gather(1, order).int(), values.gather(1, order), counts, explained


def code_by_gram(signals, atoms, n_nonzero, until=None, **options):
    gram = atoms @ atoms.T
    until = endless(signals) if until is None else until
    ready = half_precision.ready_gram(gram)
    return greedy_kernels.code_gram(ready, signals @ atoms.T, until, n_nonzero, **options)


def code_by_rows(signals, atoms, n_nonzero, until=None, **options):
    until = endless(signals) if until is None else until
    ready = half_precision.ready_gram(atoms @ atoms.T)
    halves = half_precision.ready_atoms(atoms, ready.norms2)
    return greedy_kernels.code_rows(ready, halves, signals, until, n_nonzero, **options)


def code_by_screens(signals, atoms, n_nonzero, until=None, **options):
    until = endless(signals) if until is None else until
    ready = screens.ready_atoms(atoms)
    return many_atoms.code_rows(ready, signals, until, n_nonzero, **options)


CODERS = {"gram": code_by_gram, "rows": code_by_rows, "screens": code_by_screens}


def code_by_engine(coder, signals, atoms, n_nonzero, **options):
    """Code by the engine's functions, which code what kernels leave unsettled once more."""
    energy = signals.double().square().sum(dim=1)

    def products(start, stop):
        return signals[start:stop] @ atoms.T, energy[start:stop]

    if coder == "screens":
        return greedy.omp_without_gram(
            None, atoms.square().sum(dim=1), None, len(signals), n_nonzero, rows=(signals, atoms),
            **options,
        )  # fmt: skip
    rows = (signals, atoms) if coder == "rows" else None
    return greedy.omp(atoms @ atoms.T, products, len(signals), n_nonzero, rows=rows, **options)


def check_same(coded, expected, tol=1e-4):
    """Compare settled signals; return how many there are."""
    settled = coded.unsettled == 0
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


def nearly_tied(signals, atoms, after, gap, positive):
    """Move signals until the best two atoms after some steps differ by about so much."""
    draw = torch.Generator().manual_seed(5)
    own, wide = signals.double(), atoms.double()
    for _ in range(3):
        chosen = wide[in_float64(own, wide, after, positive=positive)[0].long()] if after else None
        spans = None if chosen is None else torch.linalg.qr(chosen.mT)[0]
        left = own if spans is None else own - (spans @ (spans.mT @ own[:, :, None]))[:, :, 0]
        corr = left @ wide.T
        first, second = (corr if positive else corr.abs()).topk(2, dim=1).indices.T
        signs = corr.sign()
        apart = signs.gather(1, first[:, None]) * wide[first]
        apart -= signs.gather(1, second[:, None]) * wide[second]
        if spans is not None:  # the steps before are to stay as they are
            apart -= (spans @ (spans.mT @ apart[:, :, None]))[:, :, 0]
        wanted = gap * torch.randn(len(own), 1, generator=draw, dtype=torch.float64).to(DEVICE)
        move = (left * apart).sum(dim=1, keepdim=True) - wanted
        own = own - move * apart / (apart * apart).sum(dim=1, keepdim=True)
    return own.float()


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("after", [0, 2])
@pytest.mark.parametrize("coder", CODERS)
def test_picks_closer_than_float32_tells_apart(coder, after, positive):
    """Correlations of 1 that differ by 1e-7: in float32 many of these picks would be wrong."""
    signals, atoms = gaussian(24, 70, 16, seed=2)
    signals = nearly_tied(signals, atoms, after, 1e-7, positive)
    indices = code_by_engine(coder, signals, atoms, after + 1, positive=positive)[0]
    wide = atoms.double()
    gram, corr = wide @ wide.T, signals.double() @ wide.T
    if coder == "gram":  # all that is known are products in float32
        gram, corr = (atoms @ atoms.T).double(), (signals @ atoms.T).double()
    picked = in_torch(gram, corr, endless(signals), after + 1, positive=positive)[0]
    assert torch.equal(indices.long(), picked.sort(dim=1).values)


@pytest.mark.skipif(
    DEVICE.type == "cuda" and not screens.is_hopper(DEVICE), reason="no numbers of 8 bits"
)
def test_such_picks_after_screens_of_8_bits():
    """There two atoms are looked at together, often of two tiles."""
    signals, atoms = gaussian(64, 600, 16, seed=2)
    signals = nearly_tied(signals, atoms, 0, 1e-7, positive=False)
    ready = screens.ready_atoms(atoms, eight_bits=True)
    coded = many_atoms.code_rows(ready, signals, endless(signals), 1)
    exact = (signals.double() @ atoms.double().T).abs()
    assert torch.equal(coded.indices[:, 0].long(), exact.argmax(dim=1))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("kind", [gaussian, clustered])
def test_exact_steps_are_those_of_plain_torch(kind, positive, shape):
    n_features, n_atoms, n_nonzero, n_signals = shape
    signals, atoms = kind(n_features, n_atoms, n_signals)
    wide = atoms.double()
    coded = greedy_exact.code_exactly(
        wide @ wide.T, signals.double() @ wide.T, endless(signals), n_nonzero, positive=positive
    )
    expected = in_float64(signals, atoms, n_nonzero, positive=positive)
    assert check_same(coded, expected, tol=1e-6) == n_signals


def test_exact_steps_end_where_they_should():
    """By their goal, with nothing left, at atoms that the picked ones span, at zeros."""
    signals, atoms = gaussian(6, 20, 5)
    atoms[7] = 0
    signals[1], signals[2] = 0, 2 * atoms[9]
    energy = signals.double().square().sum(dim=1)
    until = endless(signals)
    until[0] = 0.5 * energy[0]
    wide = atoms.double()
    coded = greedy_exact.code_exactly(wide @ wide.T, signals.double() @ wide.T, until, 10)
    assert coded.counts.tolist()[1:3] == [0, 1]
    assert int(coded.counts[3]) == int(coded.counts[4]) == 6  # all of the space
    assert 1 <= int(coded.counts[0]) < 6
    assert float(coded.explained[0]) >= 0.5 * float(energy[0])
    check_same(coded, in_float64(signals, atoms, 10, until=until), tol=1e-5)


def test_exact_steps_take_for_rounding_what_float32_does():
    """An atom that the first spans but for 9e-6 of it; 1e-6 of a signal; codes of 80 and -80."""
    base = torch.eye(4, device=DEVICE)

    def beside(left):
        return torch.stack([base[0], (1 - left) ** 0.5 * base[0] + left**0.5 * base[1]])

    cases = [
        (beside(9e-6), base[0] + 0.05 * base[1]),
        (base[:2], base[0] + 1e-6 * base[1]),
        (beside(4e-5), base[0] + 0.5 * base[1]),
    ]
    for atoms, signal in cases:
        gram, corr = atoms @ atoms.T, (signal @ atoms.T)[None]
        until = endless(corr)
        plain = in_torch(gram, corr, until, 2)
        coded = greedy_exact.code_exactly(gram.double(), corr.double(), until, 2)
        assert int(coded.counts[0]) == int(plain[2][0]) == 1


@pytest.mark.parametrize("positive", [False, True])
def test_exact_steps_take_the_digits_of_float64(positive):
    """Atoms two degrees from each other: products in float32 end the pursuit, and that is told."""
    signals, atoms = gaussian(12, 40, 20, seed=5)
    atoms = atoms[0] + 0.035 * atoms
    atoms = atoms / atoms.norm(dim=1, keepdim=True)
    if positive:
        signals = signals.abs() @ atoms[:12] + 0.05 * signals
    wide = atoms.double()
    gram, corr = wide @ wide.T, signals.double() @ wide.T
    until = endless(signals)
    found = greedy_exact.code_exactly(gram, corr, until, 8, positive=positive, exact=True)
    limits = limits_of(torch.finfo(torch.float64).eps, exact=True)
    expected = in_float64(signals, atoms, 8, positive=positive, limits=limits)
    assert check_same(found, expected, tol=1e-5) == len(signals)
    rounded = greedy_exact.code_exactly(gram, corr, until, 8, positive=positive)
    short = rounded.counts < found.counts
    assert bool(short.any()) or positive
    assert bool((rounded.unsettled > 0)[short].all())


def test_bounds_of_halved_numbers_are_what_rounding_can_do():
    """Numbers in the middle of two halves are off by all of 2^-11 of themselves."""
    middle = 0.5 * (1 + 2.0**-11)
    gram = torch.full((40, 40), middle, device=DEVICE).fill_diagonal_(1.0)
    ready = half_precision.ready_gram(gram)
    unit, bound, size = ready.numbers.tolist()
    off = (ready.half[:, :40].float() * unit - gram).abs().max().item()
    assert size == pytest.approx(middle)
    assert 0.99 * bound <= off <= bound
    # Rows of such numbers: both factors are off, all in the same direction.
    row = torch.full((1, 64), middle, device=DEVICE)
    atoms = half_precision.ready_atoms(row, row.square().sum(dim=1))
    unit, bound = atoms.numbers.tolist()
    off = (row.half().double() @ atoms.half.double().T * unit - row.double().square().sum())[0, 0]
    assert 0.95 * bound * row.norm().item() <= abs(off.item()) <= bound * row.norm().item()


def saturated(n_features, n_atoms, n_signals, seed=0):
    """Rows of few different values, so that many entries round alike."""
    draw = torch.Generator().manual_seed(seed)
    rows = torch.rand(n_atoms + n_signals, n_features, generator=draw)
    rows = unit_rows((rows * 4).floor().clamp(max=2.0) + (rows > 0.99))
    return rows[n_atoms:].to(DEVICE), rows[:n_atoms].to(DEVICE)


def halfway(n_features, n_atoms, n_signals):
    """Rows whose every entry is in the middle of two numbers of half precision, or nearly so."""
    sizes = 1 + 2.0**-11 * (1 - torch.linspace(1e-4, 1e-2, n_atoms + n_signals)[:, None])
    rows = (sizes * torch.ones(1, n_features)).to(DEVICE)
    return rows[n_atoms:], rows[:n_atoms]


def rounded_products(signals, atoms, eight_bits):
    """Return products as screens make them, those of float64, and what they may be off by."""
    ready = screens.ready_atoms(atoms, eight_bits=eight_bits)
    rounded = screens.round_rows(signals, ready)
    screens.rotate(rounded, ready)
    low = ready.low[: len(atoms)].double()
    screened = (rounded.low.double() @ low.T).abs() * rounded.units[:, None]
    return screened, (signals.double() @ atoms.double().T).abs(), rounded.slacks.double()[:, None]


@pytest.mark.parametrize("eight_bits", [False, True])
@pytest.mark.parametrize("kind", [gaussian, clustered, saturated, halfway])
def test_screens_hide_no_more_than_is_said(kind, eight_bits):
    signals, atoms = kind(250, 300, 40)
    screened, exact, slack = rounded_products(signals, atoms, eight_bits)
    assert (exact <= screened + slack).all()
    # Atoms in doubt cost time: 2^-10 of both norms and what sums lose.
    both = signals.norm(dim=1, keepdim=True) * atoms.norm(dim=1).max()
    assert (slack <= both * (2.0**-6 if eight_bits else 1.1 * 2.0**-10)).all()
    assert not eight_bits or (screened <= 1.01 * exact + slack).all()


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("eight_bits", [False, True])
@pytest.mark.parametrize(("n_rows", "n_atoms"), [(1, 300), (130, 256), (300, 1000)])
def test_screens_name_the_two_largest_of_every_128_atoms(n_rows, n_atoms, eight_bits, positive):
    """Small whole numbers, with many ties: no product is rounded, and the first of equals leads."""
    draw = torch.Generator().manual_seed(n_atoms)
    signals, atoms = (
        torch.randint(-8, 9, (n, 40), generator=draw).float().to(DEVICE) for n in (n_rows, n_atoms)
    )
    ready = screens.ready_atoms(atoms, eight_bits=eight_bits)
    rounded = screens.round_rows(signals, ready)
    screens.rotate(rounded, ready)
    keys = torch.empty((n_rows, ready.n_parts, 2), dtype=torch.int32, device=DEVICE)
    screens.screen(rounded, ready, keys, positive)
    products = rounded.low.double() @ ready.low.double().T
    products = products.clamp(min=0) if positive else products.abs()
    order = products.reshape(n_rows, -1, 128).sort(dim=2, descending=True, stable=True).indices
    starts = 128 * torch.arange(order.shape[1], device=DEVICE)[:, None]
    first_two = (order[..., :2] + starts) % 256
    named = (-keys if eight_bits else 255 - keys) & 255
    assert torch.equal(named.flatten(1), first_two.flatten(1).int())


def test_the_bound_of_half_precision_is_reached():
    """All entries of both rows round down by 2^-11 of themselves: little is left to spare."""
    screened, exact, slack = rounded_products(*halfway(256, 4, 3), eight_bits=False)
    assert ((exact - screened) / slack).max() > 0.9


def test_spread_of_8_bits_is_that_of_a_random_rotation():
    """``SURE`` standard deviations, for each of the two rounding errors."""
    signals, atoms = saturated(500, 400, 40)
    draw = torch.Generator().manual_seed(0)
    signals *= torch.randint(0, 2, (500,), generator=draw).to(DEVICE) * 2.0 - 1
    screened, exact, slack = rounded_products(signals, atoms, eight_bits=True)
    root_mean_square = (screened - exact).square().mean().sqrt() / slack.mean()
    assert 0.5 < root_mean_square * screens.SURE < 1.0


@pytest.mark.parametrize("eight_bits", [False, True])
@pytest.mark.parametrize("low", [torch.bfloat16, torch.float16])
def test_rows_that_round_alike_do_not_mislead(low, eight_bits, tile):
    """The best atom rounds down in all its entries, the next one on the average up."""
    _, atoms = gaussian(256, 300, 1)
    bit = torch.finfo(low).eps / 2
    atoms[17] = (1 + 0.99 * bit) / 16
    atoms[250, ::2] = (1 + 1.02 * bit) / 16
    atoms[250, 1::2] = (1 + 0.55 * bit) / 16
    signals = torch.full((1, 256), 1 + 0.99 * bit, device=DEVICE)
    assert int((signals.double() @ atoms.double().T).argmax()) == 17
    assert int((signals.to(low).double() @ atoms.to(low).double().T).argmax()) == 250
    ready = screens.ready_atoms(atoms, eight_bits=eight_bits)
    coded = many_atoms.code_rows(ready, signals, endless(signals), 1)
    assert coded.indices.tolist() == [[17]]


@pytest.mark.parametrize("eight_bits", [False, True])
@pytest.mark.parametrize("positive", [False, True])
def test_rows_of_few_values_are_coded_as_in_float64(positive, eight_bits, tile):
    signals, atoms = saturated(60, 600, 6, seed=4)
    ready = screens.ready_atoms(atoms, eight_bits=eight_bits)
    coded = many_atoms.code_rows(ready, signals, endless(signals), 4, positive=positive)
    settled = check_same(coded, in_float64(signals, atoms, 4, positive=positive))
    assert settled == len(signals) or positive


@pytest.mark.parametrize("eight_bits", [False, True])
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("spread", [1e-2, 1e-3])
def test_little_left_of_nearly_constant_rows(spread, positive, eight_bits):
    """After one atom float32 of the signal tells few picks apart: its residual is made exact."""
    draw = torch.Generator().manual_seed(0)
    rows = unit_rows(1 + spread * torch.randn(410, 100, generator=draw)).to(DEVICE)
    signals, atoms = rows[:10], rows[10:]
    ready = screens.ready_atoms(atoms, eight_bits=eight_bits)
    coded = many_atoms.code_rows(ready, signals, endless(signals), 5, positive=positive)
    expected = in_float64(signals, atoms, 5, positive=positive)
    settled = coded.unsettled == 0
    assert torch.equal(coded.indices[settled], expected[0][settled])
    # What 8 bits may be off by is more than all correlations: which are positive is not known.
    assert int(settled.sum()) >= 8 or spread < 1e-2 or (positive and eight_bits)


@pytest.mark.parametrize("after", [0, 1])
def test_three_that_float32_does_not_tell_apart(after):
    """The best of three is none of the two that float32 prefers, or the signal is not settled."""
    signals, atoms = gaussian(40, 80, 12, seed=6)
    for place in (20, 60, 75):
        atoms[place] = unit_rows((atoms[5] + 3e-8 * atoms[place])[None])[0]
    signals = 3 * atoms[5] + 0.1 * signals + (10 * atoms[7] if after else 0)
    options = {"leave_unsettled": True}
    indices, *_, unsettled = code_by_engine("screens", signals, atoms, 1 + after, **options)
    exact = in_float64(signals, atoms, 1 + after)[0]
    assert torch.equal(indices[~unsettled], exact[~unsettled])
    assert (indices[unsettled] != exact[unsettled]).any()  # believed, they would be wrong


def test_a_third_atom_of_a_tile_is_found(tile):
    """Two of a tile are named; where a third may be the pick, all of the tile is looked at."""
    signals, plain = gaussian(32, 600, 1, seed=1)
    base, places = unit_rows(signals)[0], (300, 310, 300 + tile // 2, 383)
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
    indices = code_by_engine(coder, signals, atoms, 1)[0]
    assert int(indices[0, 0]) == 8


@pytest.mark.parametrize("coder", CODERS)
def test_stops_by_residual(coder):
    signals, atoms = gaussian(16, 60, 8)
    energy = signals.double().square().sum(dim=1)
    until = energy * torch.linspace(0.0, 0.95, 8, dtype=torch.float64, device=DEVICE)
    coded = CODERS[coder](signals, atoms, 10, until)
    check_same(coded, in_float64(signals, atoms, 10, until=until))
    assert int(coded.counts[0]) == 0
    assert int(coded.counts.max()) > int(coded.counts.min()) + 1
    settled = coded.unsettled == 0
    assert (coded.explained >= until * (1 - 1e-6))[settled].all()


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
    from kernelatoms.engine.gpu.greedy import coders as greedy_coders

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
