"""Rounds of l1 coding: screen all atoms, solve small problems, screen again; certify the codes.

Each signal has a list of the atoms that its code may use. Gradients over all atoms show which
others violate |c| <= alpha, or nearly do: they join the list, atoms at 0 far from the bound leave,
and the problem among the list is solved. A code is done when precise gradients at the code, rounded
as it will be returned, give a small enough duality gap. Signals with lists of one length proceed
together.

On an H200 a signal of 768 numbers over 16,384 atoms costs about: a screen 25 MFLOP on tensor cores
and 32 KiB of gradients written and read; precise gradients the same in float64, 128 KiB; a small
problem of 64 atoms 300 KiB of atoms, from cache mostly, and one pivot per nonzero of the code. Most
signals need two or three screens and one pass of precise gradients.

See docs/decisions/026-gpu-l1-codes.md.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor

from kernelatoms.engine.gpu.arrays.work import in_parts
from kernelatoms.engine.gpu.l1.screening import EXACT, Gradients, Lists, View
from kernelatoms.engine.gpu.l1.solvers import solve_small

Record = TypeVar("Record", Gradients, "Measured")

# Atoms of the first list, and the fewest that may join one at a time.
_FIRST, _FEWEST_NEW = 64, 32
# Lists have one of these lengths: this one, twice that and so on.
_SHORTEST = 16
# Atoms with gradients from this share of alpha on join the list.
_NEAR = 0.95
# The next gradients are precise when all of these have joined, and none is above so many alphas.
_NEARLY_DONE = 2.0
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
        """How far from alpha gradients may be in small problems."""
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
    """Return the duality gap of codes; the formula is in ``engine.cpu.lasso_loops``.

    Parameters
    ----------
    error, fit, largest : (n,) float64
        |r|^2 (rounding may make it negative), x'r, and the largest gradient.
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
    """Return codes rounded to a type, in float64."""
    return weights.to(dtype).double()


def code_block(view: View, goal: Goal, begin: Lists) -> Iterator[Part]:
    """Code the signals of a block from initial lists; yield parts as they are done."""
    reached = torch.full_like(view.energy, torch.inf)
    groups = [begin]
    for count in range(_MOST_ROUNDS):
        waiting: dict[tuple[int, int], list[Lists]] = {}
        for lists in groups:
            if lists.stage == 0 and count >= _MOST_SCREENS:
                lists = lists._replace(stage=1)
            step = view.at_once(lists.atoms.shape[1], lists.stage > 0)
            for rows in in_parts(len(lists.who), step):
                some, grads = _all_gradients(view, goal, lists.some(rows))
                if some.stage > 0:
                    done, found = _check_gaps(view, goal, some, grads, reached, count)
                    if len(done):
                        yield _certify_block(view, goal, some.some(done), _rows(found, done))
                    going = torch.nonzero(_all_but(done, len(some.who))).flatten()
                    some, grads = some.some(going), _rows(grads, going)
                for key, its in _longer_lists(view, goal, some, grads):
                    waiting.setdefault(key, []).append(its)
        groups = [_solve(view, goal, _concatenated(parts)) for parts in waiting.values()]
        if not groups:
            return


def _all_gradients(view: View, goal: Goal, lists: Lists) -> tuple[Lists, Gradients]:
    """Return lists, rounded where their stage says so, and gradients at their codes."""
    if 0 < lists.stage < EXACT:
        lists = lists._replace(weights=rounded(lists.weights, goal.dtype))
    n_listed = lists.atoms.shape[1]
    wanted = max(_FEWEST_NEW, n_listed // 2) if n_listed else _FIRST
    above, wanted = _NEAR * goal.alpha, min(wanted, view.n_atoms)
    return lists, view.gradients(lists, above, wanted, goal.positive)


def _check_gaps(
    view: View, goal: Goal, lists: Lists, grads: Gradients, reached: Tensor, count: int
) -> tuple[Tensor, Measured]:
    """Return which signals are done, and the gaps of their codes."""
    found = measure(grads.error, grads.fit, grads.largest, lists.weights, goal.alpha)
    done = found.gap <= goal.gap_tol * view.energy[lists.who]
    if lists.stage == EXACT:
        # Every round lowers the objective, but for rounding, and where there is no minimum.
        done |= ~(found.objective < reached[lists.who])
    if count == _MOST_ROUNDS - 1:
        done = torch.ones_like(done)
    reached[lists.who] = found.objective
    return torch.nonzero(done).flatten(), found


def _all_but(rows: Tensor, n: int) -> Tensor:
    kept = torch.ones(n, dtype=torch.bool, device=rows.device)
    kept[rows] = False
    return kept


def _rows(record: Record, rows: Tensor) -> Record:
    """Return some rows of all tensors of a record."""
    return type(record)(*(None if x is None else x[rows] for x in record))


def _longer_lists(
    view: View, goal: Goal, lists: Lists, grads: Gradients
) -> Iterator[tuple[tuple[int, int], Lists]]:
    """Yield lists with the atoms found, by length and next stage."""
    if not len(lists.who):
        return
    size = grads.own if goal.positive else grads.own.abs()
    kept = (lists.weights != 0) | (size > _NEAR * goal.alpha)
    atoms = torch.cat([torch.where(kept, lists.atoms, -1), grads.found], 1)
    weights = torch.nn.functional.pad(lists.weights, (0, grads.found.shape[1]))
    there = atoms >= 0
    counts = there.sum(1)
    # Lists of twice the length belong to the next class.
    halves = (counts.clamp(min=1) / _SHORTEST).log2().ceil().clamp(min=0).long()
    if lists.stage:
        stages = torch.full_like(halves, min(lists.stage + 1, EXACT))
    else:
        full = (grads.found >= 0).all(1)
        stages = (~full & (grads.beyond <= _NEARLY_DONE * goal.alpha)).long()
    key = (EXACT + 1) * halves + stages
    order = torch.argsort(key, stable=True)
    numbers = torch.bincount(key).tolist()
    places = torch.where(there, there.cumsum(1) - 1, -1)
    first = 0
    for at, number in enumerate(numbers):
        if not number:
            continue
        half, stage = divmod(at, EXACT + 1)
        rows = order[first : first + number]
        first += number
        length = _SHORTEST << half
        # Padding is written to a spare column.
        where = torch.where(there[rows], places[rows], length)
        its_atoms = atoms.new_full((number, length + 1), -1)
        its_weights = weights.new_zeros((number, length + 1))
        its_atoms.scatter_(1, where, atoms[rows])
        its_weights.scatter_(1, where, weights[rows])
        residuals = None if grads.residuals is None else grads.residuals[rows]
        yield (half, stage), Lists(
            lists.who[rows], its_atoms[:, :length].contiguous(),
            its_weights[:, :length].contiguous(), residuals, stage,
        )  # fmt: skip


def _concatenated(parts: list[Lists]) -> Lists:
    """Return lists of one length and stage as one."""
    if len(parts) == 1:
        return parts[0]
    columns = zip(*(part[:4] for part in parts), strict=True)
    whole = [None if column[0] is None else torch.cat(column) for column in columns]
    return Lists(*whole, stage=parts[0].stage)  # type: ignore[misc, arg-type]


def _solve(view: View, goal: Goal, lists: Lists) -> Lists:
    """Solve the problems among the atoms of the lists."""
    exact = lists.stage == EXACT
    parts = []
    for rows in in_parts(len(lists.who), view.solved_at_once(lists.atoms.shape[1], exact)):
        some = lists.some(rows)
        small = view.small_problems(some)
        w = solve_small(
            small.grams, small.gradients, goal.alpha / small.unit, goal.positive, small.start,
            tol=goal.distance,
        )  # fmt: skip
        parts.append(w / small.unit)
    return lists._replace(weights=torch.cat(parts), residuals=None)


def _certify_block(view: View, goal: Goal, lists: Lists, found: Measured) -> Part:
    """Return the codes of a block with their gaps, as ``certify`` does."""

    def again(rows: Tensor | slice, weights: Tensor) -> Measured:
        some = lists.some(rows)._replace(weights=weights)
        grads = view.gradients(some, torch.inf, 1, goal.positive)
        return measure(grads.error, grads.fit, grads.largest, weights, goal.alpha)

    if lists.stage == EXACT and goal.dtype != torch.float64:  # measured before rounding
        found = again(slice(None), rounded(lists.weights, goal.dtype))
    energy = view.energy[lists.who]
    return certify(lists.who, lists.atoms, lists.weights, energy, found, goal, again)


def certify(
    who: Tensor, atoms: Tensor, weights: Tensor, energy: Tensor, found: Measured, goal: Goal,
    again: Callable[[Tensor, Tensor], Measured],
) -> Part:  # fmt: skip
    """Return codes with their gaps, or no code where that is better, and who missed the gap.

    ``again(rows, weights)`` measures codes of some signals; ``found`` are the measures of all codes
    rounded to their type.
    """
    values = weights.to(goal.dtype)
    gap, error = found.gap.clone(), found.error.clone()
    enough = goal.gap_tol * energy * (1 + 1e-6)
    doubtful = ~(gap <= torch.minimum(enough, _SMALL_GAP * energy))
    # Codes that rounding made worse than no code, or that overflow.
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
