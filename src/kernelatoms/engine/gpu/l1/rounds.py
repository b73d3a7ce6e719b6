"""Rounds of l1 coding: look at all atoms, solve small problems, look again; certified codes.

A signal's list holds the atoms that its code may use. A look at all atoms tells which others
violate |c| <= alpha, or nearly do; they join the list, atoms that are at 0 and far from it leave,
and the problem among the list is solved. A code is done when a precise look at it, rounded as it
will be returned, finds a duality gap that is small enough. Signals whose lists are of one size go
on together, those that are done leave.

On an H200 a signal of 768 numbers over 16,384 atoms costs about: a screen 25 MFLOP on tensor cores
and 32 KiB of gradients written and read; a precise look the same in float64, 128 KiB; a small
problem of 64 atoms 300 KiB of atoms, from cache mostly, and as many pivots of its tableau as the
code has nonzeros. Two or three screens and one precise look are enough for most.

See docs/decisions/026-gpu-l1-codes.md.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor

from kernelatoms.engine.gpu.l1.parts import in_parts
from kernelatoms.engine.gpu.l1.screening import Look, View
from kernelatoms.engine.gpu.l1.solvers import solve_small

Record = TypeVar("Record", Look, "Measured")

# Atoms of the first list, and the fewest that may join one at a time.
_FIRST, _FEWEST_NEW = 64, 32
# Lists have one of these lengths: this one, twice that and so on.
_SHORTEST = 16
# Gradients from this share of alpha on are worth a place in the list.
_NEAR = 0.95
# The next look is a precise one when all of them have a place, and none is above so many alphas.
_NEARLY_DONE = 2.0
# The stage from which on small problems are exact, and codes are given up that do not get better.
_EXACT = 3
# Screens at most, and rounds at most.
_MOST_SCREENS, _MOST_ROUNDS = 12, 200
# Codes within this share of the energy of the minimum are not worse than none.
_SMALL_GAP = 1e-5


class Goal(NamedTuple):
    """What codes are to minimise, and how far."""

    alpha: float
    positive: bool
    gap_tol: float
    dtype: torch.dtype

    @property
    def distance(self) -> float:
        """How far from alpha gradients may be in small problems: near is cheap, once in reach."""
        return min(max(1e-3 * self.gap_tol, 1e-12), 1e-6)


class Part(NamedTuple):
    """Codes of some signals of a block as they are returned.

    Atoms (n, K) int32, -1 pads; values (n, K); errors and gaps (n,) float64; whether the gap asked
    for was missed, and the atoms.
    """

    who: Tensor
    atoms: Tensor
    values: Tensor
    error: Tensor
    gap: Tensor
    missed: Tensor


class Measured(NamedTuple):
    """Duality gap, squared residual and objective of codes, (n,) float64."""

    gap: Tensor
    error: Tensor
    objective: Tensor


class Lists(NamedTuple):
    """Signals with lists of one length, (n, K), and what their next look is to be.

    ``stage`` 0: a screen; 1 and 2: a precise look at codes rounded as they will be returned;
    3: a precise look at them as they are, after an exact small problem.
    """

    who: Tensor
    atoms: Tensor
    weights: Tensor
    residuals: Tensor | None
    stage: int

    def some(self, rows: slice | Tensor) -> "Lists":
        """Return some of them."""
        left = None if self.residuals is None else self.residuals[rows]
        return Lists(self.who[rows], self.atoms[rows], self.weights[rows], left, self.stage)


def no_codes(view: View) -> Lists:
    """Return all signals of a block with empty lists."""
    n, device = len(view.energy), view.energy.device
    return Lists(
        torch.arange(n, device=device),
        torch.empty((n, 0), dtype=torch.int32, device=device),
        torch.empty((n, 0), dtype=torch.float64, device=device),
        None, 0 if view.screens else 1,
    )  # fmt: skip


def measure(error: Tensor, fit: Tensor, largest: Tensor, weights: Tensor, alpha: float) -> Measured:
    """Return the duality gap of codes, by what ``engine.cpu.lasso_loops`` says of it.

    Parameters
    ----------
    error, fit, largest : (n,) float64
        |r|^2 as it comes out, x'r, and the largest gradient.
    weights : (n, K) float64
        The codes.
    alpha : float
        Weight of |w|_1.
    """
    r2 = error.clamp(min=0.0)
    t = torch.where(largest > alpha, alpha / largest, 1.0)
    best = torch.where(r2 > 0, (fit / r2).clamp(min=0.0), torch.where(fit < 0, 0.0, 1.0))
    t = torch.minimum(t, best)
    objective = r2 / 2 + alpha * weights.abs().sum(1)
    # NaN and infinity have no gap; NaN would be lost in the largest.
    gap = objective - (t * fit - t * t * r2 / 2)
    gap = torch.where(torch.isfinite(objective) & torch.isfinite(largest), gap, torch.nan)
    return Measured(gap, error, objective)


def rounded(weights: Tensor, dtype: torch.dtype) -> Tensor:
    """Return codes as they will be, in float64."""
    return weights.to(dtype).double()


def code_block(view: View, goal: Goal, begin: Lists) -> Iterator[Part]:
    """Code the signals of a block from the lists they begin with; yield parts as they are done."""
    reached = torch.full_like(view.energy, torch.inf)
    groups = [begin]
    for count in range(_MOST_ROUNDS):
        waiting: dict[tuple[int, int], list[Lists]] = {}
        for lists in groups:
            if lists.stage == 0 and count >= _MOST_SCREENS:
                lists = lists._replace(stage=1)
            step = view.at_once(lists.atoms.shape[1], lists.stage > 0)
            for rows in in_parts(len(lists.who), step):
                some, look = _look(view, goal, lists.some(rows))
                if some.stage > 0:
                    done, found = _judge(view, goal, some, look, reached, count)
                    if len(done):
                        yield _finished(view, goal, some.some(done), _rows(found, done))
                    going = torch.nonzero(_without(done, len(some.who))).flatten()
                    some, look = some.some(going), _rows(look, going)
                for key, its in _longer_lists(view, goal, some, look):
                    waiting.setdefault(key, []).append(its)
        groups = [_solve(view, goal, _together(parts)) for parts in waiting.values()]
        if not groups:
            return


def _look(view: View, goal: Goal, lists: Lists) -> tuple[Lists, Look]:
    """Look at all atoms from codes, and return them as they were looked at."""
    if 0 < lists.stage < _EXACT:
        lists = lists._replace(weights=rounded(lists.weights, goal.dtype))
    n_listed = lists.atoms.shape[1]
    wanted = max(_FEWEST_NEW, n_listed // 2) if n_listed else _FIRST
    look = view.look(
        lists.who, lists.atoms, lists.weights, _NEAR * goal.alpha, min(wanted, view.n_atoms),
        goal.positive, lists.stage > 0,
    )  # fmt: skip
    return lists, look


def _judge(
    view: View, goal: Goal, lists: Lists, look: Look, reached: Tensor, count: int
) -> tuple[Tensor, Measured]:
    """Return which signals are done, and what their codes reach."""
    found = measure(look.error, look.fit, look.largest, lists.weights, goal.alpha)
    done = found.gap <= goal.gap_tol * view.energy[lists.who]
    if lists.stage == _EXACT:
        # Every round lowers the objective, but for rounding, and where there is no minimum.
        done |= ~(found.objective < reached[lists.who])
    if count == _MOST_ROUNDS - 1:
        done = torch.ones_like(done)
    reached[lists.who] = found.objective
    return torch.nonzero(done).flatten(), found


def _without(rows: Tensor, n: int) -> Tensor:
    kept = torch.ones(n, dtype=torch.bool, device=rows.device)
    kept[rows] = False
    return kept


def _rows(record: Record, rows: Tensor) -> Record:
    """Return some rows of all tensors of a record."""
    return type(record)(*(None if x is None else x[rows] for x in record))


def _longer_lists(
    view: View, goal: Goal, lists: Lists, look: Look
) -> Iterator[tuple[tuple[int, int], Lists]]:
    """Yield the lists with the atoms that were found, by length and by what comes next."""
    if not len(lists.who):
        return
    size = look.own if goal.positive else look.own.abs()
    kept = (lists.weights != 0) | (size > _NEAR * goal.alpha)
    atoms = torch.cat([torch.where(kept, lists.atoms, -1), look.found], 1)
    weights = torch.nn.functional.pad(lists.weights, (0, look.found.shape[1]))
    there = atoms >= 0
    counts = there.sum(1)
    # Lists of twice the length belong to the next class.
    halves = (counts.clamp(min=1) / _SHORTEST).log2().ceil().clamp(min=0).long()
    if lists.stage:
        stages = torch.full_like(halves, min(lists.stage + 1, _EXACT))
    else:
        full = (look.found >= 0).all(1)
        stages = (~full & (look.beyond <= _NEARLY_DONE * goal.alpha)).long()
    key = (_EXACT + 1) * halves + stages
    order = torch.argsort(key, stable=True)
    numbers = torch.bincount(key).tolist()
    places = torch.where(there, there.cumsum(1) - 1, -1)
    first = 0
    for at, number in enumerate(numbers):
        if not number:
            continue
        half, stage = divmod(at, _EXACT + 1)
        rows = order[first : first + number]
        first += number
        length = _SHORTEST << half
        # What is not there is written beside the list.
        where = torch.where(there[rows], places[rows], length)
        its_atoms = atoms.new_full((number, length + 1), -1)
        its_weights = weights.new_zeros((number, length + 1))
        its_atoms.scatter_(1, where, atoms[rows])
        its_weights.scatter_(1, where, weights[rows])
        residuals = None if look.residuals is None else look.residuals[rows]
        yield (half, stage), Lists(
            lists.who[rows], its_atoms[:, :length].contiguous(),
            its_weights[:, :length].contiguous(), residuals, stage,
        )  # fmt: skip


def _together(parts: list[Lists]) -> Lists:
    """Return lists of one length and stage as one."""
    if len(parts) == 1:
        return parts[0]
    columns = zip(*(part[:4] for part in parts), strict=True)
    whole = [None if column[0] is None else torch.cat(column) for column in columns]
    return Lists(*whole, stage=parts[0].stage)  # type: ignore[misc, arg-type]


def _solve(view: View, goal: Goal, lists: Lists) -> Lists:
    """Solve the problems among the atoms of the lists."""
    exact = lists.stage == _EXACT
    parts = []
    for rows in in_parts(len(lists.who), view.solved_at_once(lists.atoms.shape[1], exact)):
        some = lists.some(rows)
        small = view.small(some.who, some.atoms, some.weights, some.residuals, exact)
        w = solve_small(
            small.grams, small.gradients, goal.alpha / small.unit, goal.positive, small.start,
            tol=goal.distance,
        )  # fmt: skip
        parts.append(w / small.unit)
    return lists._replace(weights=torch.cat(parts), residuals=None)


def _finished(view: View, goal: Goal, lists: Lists, found: Measured) -> Part:
    """Return codes as they are, or no code where that is better; say where the gap was missed."""
    energy = view.energy[lists.who]

    def again(rows: Tensor | slice, weights: Tensor) -> Measured:
        some = lists.some(rows)
        look = view.look(some.who, some.atoms, weights, torch.inf, 1, goal.positive, True)
        return measure(look.error, look.fit, look.largest, weights, goal.alpha)

    if lists.stage == _EXACT and goal.dtype != torch.float64:  # seen before rounding
        found = again(slice(None), rounded(lists.weights, goal.dtype))
    return finished(lists.who, lists.atoms, lists.weights, energy, found, goal, again)


def finished(
    who: Tensor, atoms: Tensor, weights: Tensor, energy: Tensor, found: Measured, goal: Goal,
    again: Callable[[Tensor, Tensor], Measured],
) -> Part:  # fmt: skip
    """Do that for codes however found.

    ``again(rows, weights)`` measures the codes of some of them anew; ``found`` is what codes
    rounded to their type reach.
    """
    values = weights.to(goal.dtype)
    gap, error = found.gap.clone(), found.error.clone()
    enough = goal.gap_tol * energy * (1 + 1e-6)
    doubtful = ~(gap <= torch.minimum(enough, _SMALL_GAP * energy))
    # What rounding has made worse than no code, or numbers of this type do not hold.
    worse = ~(found.objective <= (0.5 + 1e-9) * energy) | ~torch.isfinite(gap)
    spoilt = torch.nonzero(doubtful & worse).flatten()
    missed = torch.zeros_like(doubtful)
    if len(spoilt):
        values[spoilt] = 0.0
        none = again(spoilt, torch.zeros_like(weights[spoilt]))
        gap[spoilt], error[spoilt] = none.gap, none.error
        missed[spoilt] = none.gap > enough[spoilt]
    beyond = gap > enough
    beyond[spoilt] = False
    beyond = torch.nonzero(beyond).flatten()
    if len(beyond) and goal.dtype != torch.float64:
        # Rounding alone may take a code beyond the gap that the solver did reach.
        before = again(beyond, weights[beyond]).gap
        beyond = beyond[~(before <= enough[beyond])]
    missed[beyond] = True
    return Part(who, atoms, values, error, gap, missed)
