"""l1 coding of many signals at once, each over some atoms of its own, in plain torch.

    min 1/2 w'G w - b'w + alpha |w|_1          (G, b small, a pair for every signal)

**The path.** With c = b - G w the gradient, w is the minimum where c_j = alpha s_j for the active
atoms (w_j of sign s_j) and |c_j| <= alpha for the others. Where that holds for another b0, it is
kept while b goes from b0 to b along a line: active w and inactive c are linear in between, and at
every break one atom joins the active ones (its |c| is at alpha) or leaves them (its w is at 0).
From w = 0 and b0 = b alpha / max|b| this is the homotopy of Osborne et al. (2000). The same path
from b0 = what a w found so far is the minimum of takes back what rounding did: mostly without a
break, which is iterative refinement.

**The tableau.** A symmetric matrix M, swept over the active atoms A (Goodnight 1979): -G_AA^-1,
G_AA^-1 G_AI and the Schur complement of G_AA. Swept along with it, the slopes of b become those of
w on A and of c elsewhere. A break is one pivot: K^2 operations, no factor to update, and nothing
that depends on how many atoms are active; a signal needs about as many as its code has nonzeros.

An atom whose Schur complement is no more than rounding is spanned by the active ones. It cannot
join, and if its |c| would pass alpha, weight moves onto it until one of those is at 0 and leaves.

See docs/decisions/026-gpu-l1-codes.md.
"""

import importlib
from dataclasses import dataclass, fields
from types import ModuleType

import torch
from torch import Tensor

from kernelatoms.engine.gpu.arrays.work import in_parts, memory_for_a_block

# Bytes of gradients, or of small Gram matrices, that are held at once, and the most of a device's
# free memory, since what is held is not all that is needed.
_BYTES_HELD, _SHARE_OF_FREE = 1 << 30, 1 / 16

# A gradient beyond alpha by this share of it counts as rounding.
_NO_VIOLATION = 1e-9
# Below this share of its squared norm an atom is spanned by the active ones: at least this, and
# what rounding does to inner products, in epsilons of their type.
_ROUNDING, _EPSILONS = 1e-11, 8.0
# Paths from b0 to b: the first finds the code, the others take back rounding.
_TURNS = 6
# Proximal steps for signals whose atoms are too much alike, and their ridge, in epsilons of the
# type of inner products: less does not outweigh their rounding, more needs more steps.
_NUDGES, _RIDGE = 4, 2.0
# Breaks of a path between two checks whether all signals are done.
_BREAKS_PER_CHECK = 8
# Memory for tableaux, in units of what else is held at once: each break is a pass over them.
_TABLEAUX = 4
# Accelerated steps for signals whose path got stuck.
_STEPS = 3000


def kernels_for(tensor: Tensor) -> ModuleType | None:
    """Return the Triton kernels, where they run on the device of a tensor; else None."""
    try:
        kernels = importlib.import_module("kernelatoms.engine.gpu.l1.kernels")
    except ImportError:
        return None
    return kernels if tensor.is_cuda or kernels.IS_INTERPRETED else None


def memory_for(tensor: Tensor | None) -> int:
    """Return how many bytes to hold on a tensor's device; without one, as on a card."""
    if tensor is None:
        return _BYTES_HELD
    return memory_for_a_block(tensor.device, _BYTES_HELD, _SHARE_OF_FREE)


def solve_small(
    grams: Tensor,
    gradients: Tensor,
    alpha: float,
    positive: bool,
    start: Tensor | None = None,
    *,
    tol: float = _NO_VIOLATION,
) -> Tensor:
    """Minimise every signal's own small problem.

    Parameters
    ----------
    grams : (n, K, K)
        Inner products of each signal's atoms; zeros where a list of atoms is padded. All may be
        one matrix, expanded.
    gradients : (n, K)
        b, the inner products of signals and atoms; or b - G w at the codes ``start``.
    alpha : float
        Weight of |w|_1.
    positive : bool
        Allow no negative coefficients.
    start : (n, K), optional
        Codes that the gradients are known at.
    tol : float
        How far from alpha gradients may be, as a share of it.

    Returns
    -------
    (n, K) float64
        The codes; the same, but for rounding, wherever gradients were known.
    """
    c = gradients.double() / alpha
    if not c.numel():
        return c
    w0 = None if start is None else start.double() / alpha
    kernels = kernels_for(c)
    if kernels is None or c.shape[1] > kernels.MOST_ATOMS:
        return alpha * _solve_exactly(grams, c, w0, positive, tol)
    w, left = kernels.follow_paths(grams, c, positive, tol, w0)
    # Atoms too much alike for a tableau of float32; b is at most about that large.
    sizes = c.abs().amax(1) + w.abs().sum(1) * grams.diagonal(dim1=1, dim2=2).amax(1)
    bad = torch.nonzero(~(left <= tol + 1e-13 * sizes)).flatten()
    if len(bad):
        its_start = None if w0 is None else w0[bad]
        w[bad] = _solve_exactly(some_of(grams, bad), c[bad], its_start, positive, tol)
    return alpha * w


def _solve_exactly(
    grams: Tensor, c: Tensor, start: Tensor | None, positive: bool, tol: float
) -> Tensor:
    """Solve small problems with alpha = 1 in float64, whatever it takes."""
    b = c if start is None else c + times(grams, start)
    parts = []
    for rows in in_parts(len(b), _TABLEAUX * memory_for(b) // (32 * b.shape[1] ** 2)):
        G, its_b = grams[rows], b[rows]
        w, left = follow_paths(G, its_b, positive, tol, None if start is None else start[rows])
        near = 100 * _allowed(its_b, positive, tol)
        if start is not None:  # where that led nowhere, all the way from 0
            lost = torch.nonzero(~(left <= near)).flatten()
            if len(lost):
                w[lost], left[lost] = follow_paths(some_of(G, lost), its_b[lost], positive, tol)
        enough = near + 2 * _noise(G) * _sizes(its_b, positive)
        for _ in range(_NUDGES):
            alike = torch.nonzero((left > near) & (left <= enough)).flatten()
            if not len(alike):
                break
            some = (some_of(G, alike), its_b[alike], w[alike])
            w[alike], left[alike] = _nudged(*some, positive, tol)
        stuck = torch.nonzero(~(left <= enough)).flatten()
        if len(stuck):
            w[stuck] = _descend(some_of(G, stuck), its_b[stuck], w[stuck], positive)
        parts.append(w)
    return torch.cat(parts)


def _allowed(b: Tensor, positive: bool, tol: float) -> Tensor:
    """Return how far from 1 gradients may be, (n,): where b is large, rounding is more."""
    return tol + 1e-13 * _sizes(b, positive)


def _noise(grams: Tensor) -> float:
    """Return what rounding may have done to inner products, as a share of squared norms."""
    return _EPSILONS * float(torch.finfo(grams.dtype).eps)


def _sizes(b: Tensor, positive: bool) -> Tensor:
    """Return max|b| of every signal, at least 1: what b is divided by where the path starts."""
    return (b if positive else b.abs()).amax(1).clamp(min=1)


def _excess(c: Tensor, signs: Tensor, positive: bool) -> tuple[Tensor, Tensor]:
    """Return the gradients of the nearest b that w is the minimum of, and the distance to it."""
    near = torch.where(signs != 0, signs, c.clamp(max=1) if positive else c.clamp(-1, 1))
    return near, (c - near).abs().amax(1)


def follow_paths(
    grams: Tensor, b: Tensor, positive: bool, tol: float = _NO_VIOLATION,
    start: Tensor | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Return the codes at alpha = 1, and how far their gradients are from where they should be.

    Parameters
    ----------
    grams : (n, K, K)
        Inner products of the atoms.
    b : (n, K) float64
        Inner products of signals and atoms.
    positive, tol
        No negative coefficients; the distance to reach.
    start : (n, K) float64, optional
        Codes to start from instead of 0: as many breaks as these are away.

    Returns
    -------
    (n, K) float64, (n,) float64
        The second is NaN where there is no code.
    """
    floors = max(_ROUNDING, _noise(grams)) * grams.diagonal(dim1=1, dim2=2).double()
    w, signs, tableaux = _begin(grams, floors, torch.zeros_like(b) if start is None else start)
    sizes, allowed = _sizes(b, positive), _allowed(b, positive, tol)
    # Spanned atoms whose gradients are beyond alpha by rounding of inner products stay where
    # they are.
    bars = 1 + torch.maximum(allowed, _noise(grams) * sizes)
    # From 0 the path begins at b / max|b|: where b is within alpha it has no length.
    first = _excess(b - times(grams, w), signs, positive)[0]
    first = torch.where((signs != 0).any(1, keepdim=True), first, b / sizes[:, None])
    left = (b - times(grams, w) - first).abs().amax(1)
    todo = torch.nonzero(left > allowed).flatten()
    for turn in range(_TURNS):
        if not len(todo):
            break
        G, M, its_w, its_signs = some_of(grams, todo), tableaux[todo], w[todo], signs[todo]
        c = b[todo] - times(G, its_w)
        near = _excess(c, its_signs, positive)[0] if turn else first[todo]
        its_w, its_signs = _follow(M, its_w, c, near, its_signs, floors[todo], positive, bars[todo])
        c = b[todo] - times(G, its_w)
        its_left = _excess(c, its_signs, positive)[1]
        # Who got no nearer is lost, and goes no further.
        nearer = torch.nonzero(its_left < left[todo]).flatten() if turn else slice(None)
        todo = todo[nearer]
        w[todo], signs[todo], tableaux[todo] = its_w[nearer], its_signs[nearer], M[nearer]
        left[todo] = its_left[nearer]
        todo = todo[left[todo] > allowed[todo]]
    return w, left


def _begin(grams: Tensor, floors: Tensor, start: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return codes to begin with, their signs, and tableaux swept over the atoms that they use.

    Where these are not independent, that is no code and the Gram matrix as it is.
    """
    tableaux = grams.double().contiguous().clone()
    active = start != 0
    some = torch.nonzero(active.any(1)).flatten()
    if len(some):
        swept, regular = _swept(tableaux[some], floors[some], active[some])
        tableaux[some[regular]] = swept[regular]
        active[some[~regular]] = False
    w = torch.where(active, start, 0.0)
    return w, w.sign(), tableaux


def _swept(G: Tensor, floors: Tensor, active: Tensor) -> tuple[Tensor, Tensor]:
    """Return Gram matrices swept over active atoms, and where these are independent."""
    row, column = active[:, :, None], active[:, None, :]
    eye = torch.eye(G.shape[1], dtype=G.dtype, device=G.device)
    factors, info = torch.linalg.cholesky_ex(torch.where(row & column, G, eye))
    pivots = factors.diagonal(dim1=1, dim2=2).square()
    regular = (info == 0) & ((pivots > floors) | ~active).all(1)
    factors = torch.where(regular[:, None, None], factors, eye)
    roots = torch.linalg.solve_triangular(factors, eye.expand_as(G), upper=False)
    inverse = torch.where(row & column, roots.mT @ roots, 0.0)
    cross = inverse @ G
    rest = torch.where(column, cross.mT, G - G @ cross)
    return torch.where(row, torch.where(column, -inverse, cross), rest), regular


def times(grams: Tensor, w: Tensor) -> Tensor:
    """Return symmetric matrices (n, K, K) times vectors (n, K) float64."""
    if len(grams) > 1 and grams.stride(0) == 0:  # one for all, which must not be written out
        return w @ grams[0].double()
    return (grams.double() @ w[:, :, None])[:, :, 0]


def some_of(grams: Tensor, rows: Tensor | slice) -> Tensor:
    """Return some of the matrices (n, K, K); one for all stays one for all."""
    if len(grams) > 1 and grams.stride(0) == 0 and not isinstance(rows, slice):
        return grams[:1].expand(len(rows), -1, -1)
    return grams[rows]


def _follow(
    M: Tensor, w: Tensor, c: Tensor, near: Tensor, signs: Tensor, floors: Tensor, positive: bool,
    bars: Tensor,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Go from the gradients ``near`` to ``c``; return codes and signs, and sweep M in place."""
    active = signs != 0
    change = c - near
    values = torch.where(active, w, near)
    inner = times(M, torch.where(active, change, 0.0))
    slopes = torch.where(active, 0.0, change) - inner
    rest, side = torch.ones_like(bars), torch.zeros_like(bars)
    left = torch.full(bars.shape, -1, dtype=torch.int64, device=M.device)
    state = _Path(
        M, values, slopes, signs.clone(), floors, bars, rest, left, left.clone(), side, side.clone()
    )
    everyone = torch.arange(len(M), device=M.device)
    whole, at = state, everyone
    for step in range(4 * M.shape[1] + 50):
        state.go_on(positive)
        if step % _BREAKS_PER_CHECK == _BREAKS_PER_CHECK - 1:
            going = torch.nonzero(state.rest > 0).flatten()
            if 2 * len(going) <= len(at):
                if whole is not state:
                    whole.put(at, state)
                if not len(going):
                    break
                at, state = at[going], state.take(going)
    else:
        if whole is not state:
            whole.put(at, state)
    return torch.where(whole.signs != 0, whole.values, 0.0), whole.signs


@dataclass
class _Path:
    """Signals on their way from one b to another."""

    M: Tensor  # (n, K, K): tableaux
    values: Tensor  # (n, K): w of active atoms, c of the others
    slopes: Tensor  # (n, K): theirs
    signs: Tensor  # (n, K): 0 where inactive
    floors: Tensor  # (n, K): Schur complements up to these are rounding
    bars: Tensor  # (n,): spanned atoms come where |c| would end above
    rest: Tensor  # (n,): what is left of the way
    left: Tensor  # (n,) int64: the atom that left last; -1 if none
    coming: Tensor  # (n,) int64: one that another has made room for; -1 if none
    brings: Tensor  # (n,): its weight
    side: Tensor  # (n,): its sign

    def take(self, rows: Tensor) -> "_Path":
        """Return some signals by themselves."""
        return _Path(*(getattr(self, one.name)[rows] for one in fields(self)))

    def put(self, rows: Tensor, part: "_Path") -> None:
        """Take signals back."""
        for one in fields(self):
            getattr(self, one.name)[rows] = getattr(part, one.name)

    def go_on(self, positive: bool) -> None:
        """Go to the next break, or to the end, and pivot."""
        active = self.signs != 0
        expected = self.coming >= 0
        ways, spanned = self._ways(active, positive)
        way, atom = ways.min(1)
        way = torch.where(expected, 0.0, way)
        atom = torch.where(expected, self.coming, atom)
        breaks = ((way < self.rest) | expected) & (self.rest > 0)
        way = torch.minimum(way, self.rest)
        self.values += way[:, None] * self.slopes
        self.rest = torch.where(breaks, self.rest - way, 0.0)
        side = torch.where(expected, self.side, torch.sign(_at(self.slopes, atom)))
        value = torch.where(expected, self.brings, 0.0)
        # A spanned atom comes when one of those that span it has made room.
        needs_room = breaks & ~expected & _at(spanned, atom)
        leaving, weight = self._make_room(needs_room, atom, side, active)
        self.rest = torch.where(needs_room & (leaving < 0), 0.0, self.rest)
        breaks &= ~(needs_room & (leaving < 0))
        self.coming = torch.where(leaving >= 0, atom, -1)
        self.brings, self.side = weight, side
        self._pivot(breaks, torch.where(leaving >= 0, leaving, atom), value, side)

    def _ways(self, active: Tensor, positive: bool) -> tuple[Tensor, Tensor]:
        """Return how far every atom is from a break, and which inactive ones are spanned."""
        values, slopes = self.values, self.slopes
        spanned = ~active & ~(self.M.diagonal(dim1=1, dim2=2) > self.floors)
        # Spanned atoms move by rounding alone, but for those that would end beyond alpha.
        end = values + self.rest[:, None] * slopes
        beyond = (end if positive else end.abs()) > self.bars[:, None]
        may_come = ~active & (~spanned | (beyond & (self.floors > 0)))
        # Rounding would have the one that just left come back at once, where it left.
        last = self.left.clamp(min=0)
        away = (self.left < 0) | (_at(values, last) * _at(slopes, last) < 0)
        _set(may_come, last, torch.zeros_like(away), ~away)
        ways = torch.where(may_come & (slopes > 0), (1 - values) / slopes, torch.inf)
        if not positive:
            ways = torch.where(may_come & (slopes < 0), (-1 - values) / slopes, ways)
        ways = torch.where(active & (slopes * self.signs < 0), -values / slopes, ways)
        return ways.clamp_(min=0), spanned

    def _make_room(
        self, which: Tensor, atom: Tensor, side: Tensor, active: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Move weight onto spanned atoms until an active one is at 0.

        The atom is G_AA^-1 G_Aj of the active ones: weight x on it and -x times that on those
        changes no gradient. Return which leaves (-1: none would, or none is asked for), and x.
        """
        mix = side[:, None] * _column(self.M, atom)
        lowers = active & (mix * self.signs > 0) & which[:, None]
        weight, leaving = torch.where(lowers, self.values / mix, torch.inf).min(1)
        moves = torch.isfinite(weight)
        weight = torch.where(moves, weight, 0.0)
        self.values -= torch.where(active & moves[:, None], weight[:, None] * mix, 0.0)
        return torch.where(moves, leaving, -1), side * weight

    def _pivot(self, which: Tensor, atom: Tensor, value: Tensor, side: Tensor) -> None:
        """Let an atom join the active ones, with a value and a sign, or leave them."""
        sign, slope = _at(self.signs, atom), _at(self.slopes, atom)
        leaves = sign != 0
        column = _column(self.M, atom)
        over = torch.where(which, 1 / _at(column, atom), 0.0)
        self.M.baddbmm_((column * over[:, None])[:, :, None], column[:, None, :], alpha=-1)
        turned = torch.where(leaves, -over, over)
        row = torch.where(which[:, None], column * turned[:, None], column)
        _set(row, atom, -over, which)
        place = atom[:, None, None]
        self.M.scatter_(1, place.expand(-1, 1, row.shape[1]), row[:, None, :])
        self.M.scatter_(2, place.expand(-1, row.shape[1], 1), row[:, :, None])
        self.slopes -= (slope * over)[:, None] * column
        _set(self.slopes, atom, slope * turned, which)
        # The gradient of one that leaves is where it was: at alpha.
        _set(self.values, atom, torch.where(leaves, sign, value), which)
        _set(self.signs, atom, torch.where(leaves, 0.0, side), which)
        self.left = torch.where(which & leaves & (self.coming < 0), atom, -1)


def _at(x: Tensor, atom: Tensor) -> Tensor:
    """Return one number of every row."""
    return x.gather(1, atom[:, None])[:, 0]


def _set(x: Tensor, atom: Tensor, value: Tensor, which: Tensor) -> None:
    """Write one number of every row, where ``which`` says so."""
    x.scatter_(1, atom[:, None], torch.where(which, value, _at(x, atom))[:, None])


def _column(M: Tensor, atom: Tensor) -> Tensor:
    """Return one column of every matrix, (n, K)."""
    return M.gather(2, atom[:, None, None].expand(-1, M.shape[1], 1))[:, :, 0]


def _nudged(
    grams: Tensor, b: Tensor, w: Tensor, positive: bool, tol: float
) -> tuple[Tensor, Tensor]:
    """Return better codes of atoms that are too much alike, and how far their gradients are off.

    A proximal step (Rockafellar 1976): with |v - w|^2 times what rounding did to inner products in
    the objective, no atom is spanned by others, and the minimum is as near as the path leads to.
    """
    ridge = _RIDGE * torch.finfo(grams.dtype).eps * grams.diagonal(dim1=1, dim2=2).amax(1).double()
    firm = grams.double() + torch.diag_embed(ridge[:, None].expand(-1, w.shape[1]))
    v, _ = follow_paths(firm, b + ridge[:, None] * w, positive, tol)
    return v, _excess(b - times(grams, v), v.sign(), positive)[1]


def _descend(grams: Tensor, b: Tensor, w: Tensor, positive: bool) -> Tensor:
    """Go on from w by accelerated proximal steps, for signals whose path got stuck; alpha = 1.

    Momentum starts afresh where the objective rises (O'Donoghue and Candes 2015).
    """
    grams = grams.double()
    # No eigenvalue is above the largest sum of a row.
    step = 1 / grams.abs().sum(2).amax(1).clamp(min=torch.finfo(torch.float64).tiny)[:, None]
    w = torch.where(torch.isfinite(w).all(1, keepdim=True), w, 0.0)
    objective = _objective(grams, b, w)
    best, lowest = w, objective
    ahead, t = w, torch.ones_like(step)
    for _ in range(_STEPS):
        z = ahead + step * (b - times(grams, ahead))
        new = (z - step).clamp(min=0)
        if not positive:
            new = new - (-z - step).clamp(min=0)
        reached = _objective(grams, b, new)
        rises = ~(reached < objective)[:, None]
        t_new = torch.where(rises, 1.0, (1 + (1 + 4 * t * t).sqrt()) / 2)
        ahead = torch.where(rises, w, new + (t - 1) / t_new * (new - w))
        better = reached < lowest
        best = torch.where(better[:, None], new, best)
        lowest = torch.where(better, reached, lowest)
        w = torch.where(rises & (t > 1), w, new)  # without momentum a rise is rounding
        objective = torch.where(rises[:, 0], objective, reached)
        t = t_new
    return best


def _objective(grams: Tensor, b: Tensor, w: Tensor) -> Tensor:
    return (w * (times(grams, w) / 2 - b)).sum(1) + w.abs().sum(1)
