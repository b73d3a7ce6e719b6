"""Steps of non-negative pursuits that would make coefficients negative, for many signals at once.

Such a step solves the small non-negative least-squares problem on the atoms picked (Lawson and
Hanson 1974, ch. 23), in float64; atoms whose coefficient becomes zero leave the code, and
directions and correlations are computed afresh. ``engine/cpu/greedy_loops.py`` does the same
signal by signal.
"""

import torch
from torch import Tensor

from kernelatoms.engine.gpu.greedy.sources import Live, Source

# A pivot below this share of its diagonal entry is that of a singular matrix.
SMALLEST_PIVOT = 1e-15


def new_direction(
    directions: Tensor, cross: Tensor, norms: Tensor, at: Tensor, rounding: float
) -> tuple[Tensor, Tensor]:
    """Return an orthonormal direction more in picked atoms, and where there is one.

    Parameters
    ----------
    directions : (n, k, k)
        Those of the atoms picked, as rows.
    cross : (n, k)
        Inner products of the atoms picked with the new one; anything where there is none.
    norms : (n,)
        Squared norms of the new atoms.
    at : (n,) int64
        The place of the new atom among the picked ones, at most k.
    rounding : float
        What is left of an atom is nothing below this share of it.

    Returns
    -------
    direction : (n, k + 1)
        Coefficients of the new direction.
    is_new : (n,) bool
        False where the picked atoms span the new one.
    """
    # Products and sums, not a matrix product, whose float32 a caller's torch may shorten.
    c = (directions * cross[:, None, :]).sum(dim=2)
    left = norms - (c * c).sum(dim=1)
    is_new = left > rounding * norms
    scale = 1 / torch.where(is_new, left, 1).sqrt()
    direction = norms.new_zeros((len(norms), cross.shape[1] + 1))
    direction[:, :-1] = (directions * c[:, :, None]).sum(dim=1) * -scale[:, None]
    direction.scatter_(1, at[:, None], scale[:, None])
    return direction, is_new


def nonnegative_least_squares(
    grams: Tensor, targets: Tensor, allowed: Tensor, vanishing: Tensor, w: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Minimise w'S w - 2 t'w over w >= 0 for many small problems.

    Parameters
    ----------
    grams : (n, k, k) float64
        S: Gram matrices of the atoms.
    targets : (n, k) float64
        t: inner products of atoms and signals.
    allowed : (n, k) bool
        The atoms that there are. At first all of them are in the passive set.
    vanishing : (n,) float64
        slope^2 / S_jj of a slope that is rounding.
    w : (n, k) float64
        Feasible codes to start from.

    Returns
    -------
    w : (n, k) float64
        The codes.
    passive : (n, k) bool
        The atoms that they use.
    solved : (n,) bool
        False where S is singular on them.
    """
    n, k = targets.shape
    passive, w, solved = allowed.clone(), w.clone(), allowed.new_ones(n)
    diagonal = grams.diagonal(dim1=1, dim2=2)
    rounds, busy = 3 * allowed.sum(dim=1), allowed.new_ones(n)
    eye = torch.eye(k, dtype=grams.dtype, device=grams.device)
    # Each round lowers the objective and at most k atoms leave in one: this ends.
    while bool(busy.any()):
        wanted, regular = _solve_on(grams, targets, passive, eye)
        solved &= regular | ~busy
        busy &= regular
        # Towards the least-squares code on the passive set, until an atom reaches zero.
        blocks = passive & (wanted <= 0) & busy[:, None]
        shares = torch.where(blocks, torch.where(w > 0, w / (w - wanted), 0.0), torch.inf)
        share, leaver = shares.min(dim=1)
        short = torch.isfinite(share)
        shrunk = w + torch.where(short, share, 0.0)[:, None] * (wanted - w)
        out = passive & ((shrunk <= 0) | (torch.arange(k, device=w.device) == leaver[:, None]))
        out &= short[:, None]
        arrived = busy & ~short
        w = torch.where(short[:, None] & passive, shrunk, w)
        w = torch.where(arrived[:, None] & passive, wanted, w).masked_fill(out, 0.0)
        passive &= ~out
        # There: the atom of the steepest slope comes back.
        slopes = targets - (grams * w[:, None, :]).sum(dim=2)
        gains = torch.where(allowed & ~passive & (slopes > 0), slopes**2 / diagonal, 0.0)
        gain, back = gains.max(dim=1)
        rounds -= arrived.long()
        returns = arrived & (gain > vanishing) & (rounds > 0)
        passive |= returns[:, None] & (torch.arange(k, device=w.device) == back[:, None])
        busy &= ~arrived | returns
    return w, passive, solved


def _solve_on(
    grams: Tensor, targets: Tensor, passive: Tensor, eye: Tensor
) -> tuple[Tensor, Tensor]:
    """Solve S[P, P] out[P] = t[P] for the passive sets; and tell where S[P, P] is regular."""
    both = passive[:, :, None] & passive[:, None, :]
    factors, info = torch.linalg.cholesky_ex(torch.where(both, grams, eye))
    pivots = factors.diagonal(dim1=1, dim2=2) ** 2
    enough = SMALLEST_PIVOT * grams.diagonal(dim1=1, dim2=2)
    regular = (info == 0) & ((pivots > enough) | ~passive).all(dim=1)
    factors = torch.where(regular[:, None, None], factors, eye)
    out = torch.cholesky_solve((targets * passive)[:, :, None], factors)[:, :, 0]
    return out * passive, regular


def nonnegative_steps(source: Source, live: Live, atom: Tensor, k: int) -> Tensor:
    """Settle steps that would make coefficients negative, but for what is left of the signals.

    Parameters
    ----------
    source : Source
        Inner products.
    live : Live
        The signals whose steps these are. Atoms, codes, directions and energies are changed;
        ``source.restart`` brings ``rest`` and ``beyond`` up to them.
    atom : (n,) int64
        The atom that each picked.
    k : int
        The most atoms that one of them had before.

    Returns
    -------
    (n,) bool
        False where the residual would not shrink: nothing of such a signal is changed.
    """
    picked = live.picked[:, : k + 1].scatter(1, live.counts[:, None], atom[:, None])
    allowed = torch.arange(k + 1, device=atom.device) <= live.counts[:, None]
    grams = source.grams(live.which, picked)
    targets = source.targets(live.which, picked).double()
    w, passive, helped = nonnegative_least_squares(
        grams,
        targets,
        allowed,
        source.limits.vanishing * live.first,
        live.code[:, : k + 1].double(),
    )
    explained = (w * (2 * targets - (grams * w[:, None, :]).sum(dim=2))).sum(dim=1)
    size2 = (w * w * grams.diagonal(dim1=1, dim2=2)).sum(dim=1)
    limits = source.limits
    helped &= explained > live.explained * (1 + limits.eps)
    helped &= limits.eps * size2 <= limits.largest_doubt * explained
    # Those that stay come first, in the order of their picks.
    order = torch.argsort((~passive).to(torch.int8), dim=1, stable=True)
    counts = passive.sum(dim=1)
    grams = grams.gather(1, order[:, :, None].expand_as(grams))
    grams = grams.gather(2, order[:, None, :].expand_as(grams)).to(live.code.dtype)
    directions, independent = _directions_of(grams, counts, limits.spanned)
    helped &= independent
    columns = slice(0, k + 1)
    stays = passive.gather(1, order)
    live.directions[:, columns, columns] = torch.where(
        helped[:, None, None], directions, live.directions[:, columns, columns]
    )
    for kept, new in ((live.picked, picked), (live.code, w.to(live.code.dtype))):
        kept[:, columns] = torch.where(
            helped[:, None], new.gather(1, order) * stays, kept[:, columns]
        )
    live.counts = torch.where(helped, counts, live.counts)
    live.explained = torch.where(helped, explained, live.explained)
    return helped


def _directions_of(grams: Tensor, counts: Tensor, rounding: float) -> tuple[Tensor, Tensor]:
    """Return orthonormal directions (n, k, k) of the first atoms of Gram matrices (n, k, k).

    ``counts`` (n,) says how many they are; also returned is where they are independent.
    """
    directions = torch.zeros_like(grams)
    independent = torch.ones_like(counts, dtype=torch.bool)
    for j in range(grams.shape[1]):
        at = torch.full_like(counts, j)
        row, is_new = new_direction(
            directions[:, :j, :j], grams[:, :j, j], grams[:, j, j], at, rounding
        )
        directions[:, j, : j + 1] = torch.where((j < counts)[:, None], row, 0.0)
        independent &= is_new | (j >= counts)
    return directions, independent
