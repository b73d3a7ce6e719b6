"""Steps of greedy pursuits (OMP, OLS, non-negative or not), all signals of a block together.

The head of ``engine/cpu/greedy_loops.py`` explains a step and its rounding; the arithmetic here is
the same, with one row per signal. Finished signals keep their rows until fewer than half go on;
then those that do are compacted. Per step the host reads five numbers: how many signals go on, how
many atoms they have, and the counts of rare cases.

Plain torch, on any device, in float32 and float64; signals that faster coders leave unsettled are
coded here too.

See docs/decisions/011-gpu-programs.md.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from kernelatoms.engine.cpu.greedy_loops import CHECKED_DOUBT
from kernelatoms.engine.gpu.greedy.nonnegative import new_direction, nonnegative_steps
from kernelatoms.engine.gpu.greedy.sources import Live, Source

#: Atoms in the order of picks (n, k) int64, then -1; coefficients (n, k), then 0; how many they
#: are (n,) int64; what they explain (n,) float64; whether rounding ended the pursuit (n,) bool.
Picks = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]

# Initial room for atoms per code; bytes for small matrices of signals in rare cases.
_FIRST_ROOM = 16
_BYTES_FOR_FEW = 64 << 20


def pursue(source: Source, until: Tensor, n_nonzero: int) -> Picks:
    """Code the signals of a block: take steps until no signal goes on.

    Parameters
    ----------
    source : Source
        The inner products of signals and atoms.
    until : (n_signals,) float64
        Stop when this much energy is explained; infinite to stop on sparsity alone.
    n_nonzero : int
        The most atoms of a code.
    """
    most = min(n_nonzero, source.n_atoms)
    live = source.start(until, min(most, _FIRST_ROOM))
    ended: list[tuple[Tensor, ...]] = []
    # The most atoms of a signal that goes on, and how many signals do: no more than all.
    k, n_going = 0, len(until) if most else 0
    while n_going:
        if 2 * n_going < len(live.which):
            ended.append(_results(live, ~live.going))
            live = live.take(live.going.nonzero()[:, 0])
        if k == live.picked.shape[1]:
            live.grow(min(2 * k, most))
        k, n_going = _step_all(source, live, k, most)
    ended.append(_results(live, torch.ones_like(live.going)))
    return _concatenated(ended, until)


@dataclass
class _Step:
    """One step of every signal; zeros where it is not ``taken``."""

    atom: Tensor  # (n,) int64: the atom picked
    at: Tensor  # (n,) int64: its place in the code
    direction: Tensor  # (n, k + 1): the new direction in picked atoms
    z: Tensor  # (n,): how far to go there
    coefs: Tensor  # (n, k + 1): what that adds to the code
    total: Tensor  # (n,) float64: what is explained then
    wanted: Tensor  # (n,) bool: the atom explains more than rounding
    ended: Tensor  # (n,) bool: it does not; OLS may have overlooked atoms
    taken: Tensor  # (n,) bool
    doubtful: Tensor  # (n,) bool: rounding shows; to be checked
    negative: Tensor  # (n,) bool: it would make coefficients negative


def _step_all(source: Source, live: Live, k: int, most: int) -> tuple[int, int]:
    """Take a step of all signals that go on, of at most k atoms so far.

    Returns the most atoms of a signal that goes on, and how many signals do.
    """
    step = _next_step(source, live, k)
    going = step.taken & (live.counts + 1 < most) & (step.total < live.until)
    numbers = [
        going.sum(), torch.where(going, live.counts + 1, 0).max(), step.doubtful.sum(),
        step.negative.sum(), step.ended.sum(),
    ]  # fmt: skip
    n_going, longest, n_doubtful, n_negative, n_ended = torch.stack(numbers).tolist()
    for rows in _few(step.ended, n_ended, live, k):
        few = live.take(rows)
        live.unsettled[rows] = source.any_above(few, source.limits.vanishing * few.first)
    for rows in _few(step.doubtful, n_doubtful, live, k):
        step.taken[rows] = _check(source, live, step, rows, k)
    plain = step.taken & ~step.negative
    _take(live, step, plain)
    for rows in _few(step.negative, n_negative, live, k):
        few = live.take(rows)
        step.taken[rows] = nonnegative_steps(source, few, step.atom[rows], k)
        live.put(rows, few, "counts", "picked", "code", "directions", "explained")
    live.unsettled |= step.wanted & ~step.taken
    live.going = step.taken & (live.counts < most) & (live.explained < live.until)
    if n_doubtful or n_negative:
        numbers = [live.going.sum(), torch.where(live.going, live.counts, 0).max()]
        n_going, longest = torch.stack(numbers).tolist()
    if n_going:
        source.ask(live)
        still = (live.going & plain)[:, None]
        step.coefs, step.direction = step.coefs * still, step.direction * still
        source.advance(live, step.coefs, step.direction, step.z)
        for rows in _few(step.negative & live.going, n_negative, live, k):
            few = live.take(rows)
            source.restart(few, longest)
            live.put(rows, few, "rest", "beyond")
    return longest, n_going


def _next_step(source: Source, live: Live, k: int) -> _Step:
    """Return the next step of every signal that goes on."""
    limits = source.limits
    atom, corr = source.best(live)
    norms = source.norms(live.which, atom[:, None])[:, 0]
    # Signals that are done may have more than k atoms.
    at = live.counts.clamp(max=k)
    cross = source.inner(live.which, live.picked[:, :k], atom)
    direction, is_new = new_direction(live.directions[:, :k, :k], cross, norms, at, limits.spanned)
    filled = torch.arange(k, device=atom.device) < live.counts[:, None]
    again = (filled & (live.picked[:, :k] == atom[:, None])).any(dim=1)
    wanted, chosen, ended = _more_than_rounding(source, live, atom, corr, norms)
    taken = chosen & is_new & ~again
    z = torch.where(taken, corr * direction.gather(1, at[:, None])[:, 0], 0)
    direction = torch.where(taken[:, None], direction, 0)
    coefs = z[:, None] * direction
    gained = z.double() ** 2
    total = live.explained + gained

    code = live.code[:, : k + 1]
    picked = live.picked[:, : k + 1].scatter(1, at[:, None], atom[:, None])
    sizes = code.abs() + coefs.abs()
    size2 = (sizes * sizes * source.norms(live.which, picked)).sum(dim=1, dtype=torch.float64)
    negative = torch.zeros_like(taken)
    if source.positive:
        there = torch.arange(k + 1, device=atom.device) <= live.counts[:, None]
        negative = taken & (there & (code + coefs <= 0)).any(dim=1)
    doubtful = taken & ~negative & (limits.eps * size2 > CHECKED_DOUBT * total)
    hopeless = doubtful & (limits.eps * size2 > limits.largest_doubt * total)
    return _Step(
        atom, at, direction, z, coefs, total, wanted, ended, taken & ~hopeless,
        doubtful & ~hopeless, negative,
    )  # fmt: skip


def _more_than_rounding(
    source: Source, live: Live, atom: Tensor, corr: Tensor, norms: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return where the best atom explains more than rounding, where it is picked, who ends."""
    square, vanishing = corr.double() ** 2, source.limits.vanishing * live.first
    # What the best atom explains is rounding: the residual is zero, or orthogonal to every atom.
    if not source.use_ols:
        chosen = live.going & (square > vanishing * norms)
        if source.positive:
            chosen &= corr > 0
        return chosen, chosen, torch.zeros_like(chosen)
    beyond = live.beyond.gather(1, atom[:, None])[:, 0]
    wanted = live.going & (square > vanishing * beyond)
    if source.positive:
        wanted &= corr > 0
    # OLS does not look at atoms that the picked ones span, but for rounding; of those that they
    # nearly span, it may pick one by rounding alone.
    chosen = wanted & (square > source.limits.spanned**2 * live.first * norms)
    return wanted, chosen, live.going & ~wanted


def _check(source: Source, live: Live, step: _Step, rows: Tensor, k: int) -> Tensor:
    """Set what doubtful steps truly explain, 2 t'w - w'S w in float64; return which ones help."""
    which, atom, at = live.which[rows], step.atom[rows], step.at[rows]
    picked = live.picked[rows, : k + 1].scatter(1, at[:, None], atom[:, None])
    w = (live.code[rows, : k + 1] + step.coefs[rows]).double()
    targets = source.targets(which, picked).double()
    inner = 2 * targets - (source.grams(which, picked) * w[:, None, :]).sum(dim=2)
    step.total[rows] = (w * inner).sum(dim=1)
    return step.total[rows] - live.explained[rows] > 0.5 * step.z[rows].double() ** 2


def _take(live: Live, step: _Step, plain: Tensor) -> None:
    """Take the steps that are no rare case."""
    width = step.coefs.shape[1]
    one, at = plain[:, None], step.at[:, None]
    live.first = torch.where(plain & (live.counts == 0), step.z.double() ** 2, live.first)
    live.picked.scatter_(1, at, torch.where(one, step.atom[:, None], live.picked.gather(1, at)))
    live.code[:, :width] += step.coefs * one
    place = (torch.arange(len(plain), device=plain.device), step.at, slice(0, width))
    live.directions[place] = torch.where(one, step.direction, live.directions[place])
    live.explained = torch.where(plain, step.total, live.explained)
    live.counts = live.counts + plain.long()


def _few(wanted: Tensor, n_wanted: int, live: Live, k: int) -> tuple[Tensor, ...]:
    """Return the rows of some signals, in parts whose small matrices fit into memory."""
    if not n_wanted:
        return ()
    of_signal = live.rest.element_size() * (live.rest.shape[1] + live.beyond.shape[1])
    n_bytes = 64 * (k + 1) ** 2 + of_signal
    return tuple(wanted.nonzero()[:, 0].split(max(1, _BYTES_FOR_FEW // n_bytes)))


def _results(live: Live, rows: Tensor) -> tuple[Tensor, ...]:
    found = live.which, live.counts, live.explained, live.unsettled, live.picked, live.code
    return tuple(part[rows] for part in found)


def _concatenated(ended: list[tuple[Tensor, ...]], until: Tensor) -> Picks:
    """Return the results of all signals of a block in its order."""
    n, k = len(until), ended[-1][4].shape[1]
    which, counts, explained, unsettled = (torch.cat([part[i] for part in ended]) for i in range(4))
    picked = torch.full((n, k), -1, dtype=torch.int64, device=until.device)
    values = ended[-1][5].new_zeros((n, k))
    for here, _, _, _, its_picked, its_code in ended:
        room = its_picked.shape[1]
        picked[here, :room], values[here, :room] = its_picked, its_code
    order = which.argsort()
    counts = counts[order]
    empty = torch.arange(k, device=until.device) >= counts[:, None]
    return picked.masked_fill_(empty, -1), values, counts, explained[order], unsettled[order]
