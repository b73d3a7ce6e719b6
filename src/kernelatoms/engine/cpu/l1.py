"""l1 coding of many signals: blocks, threads, warm starts and certificates around the solvers.

    min 1/2 |x - D w|^2 + alpha |w|_1                       (eq. (6) of the FKSC paper)

through the Gram matrix, the correlations b = D'x and the energies k(x, x), in float64 whatever the
signals' type: supports of nearly parallel atoms need the digits. What is returned is certified as
it is returned: the gap of a float32 code is that of its rounded coefficients.

Every function here returns ``(indptr, indices, values, error, gap, missed)``: codes signal after
signal, squared residuals as they come out (rounding may make them slightly negative), duality gaps,
and whether the solver stopped short of the gap asked for.

See docs/decisions/025-l1-active-sets.md.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.engine.cpu.lasso_loops import (
    certify,
    certify_gradient,
    certify_local,
    solve_lasso,
    solve_lasso_local,
)
from kernelatoms.engine.cpu.products import block_rows, check_shape, rows_in_memory
from kernelatoms.engine.cpu.scale import Array
from kernelatoms.engine.cpu.threads import each_block, fair_share, in_short_parts

#: ``products(start, stop) -> (corr, energy)``.
Products = Callable[[int, int], tuple[Array, Array | None]]
#: Codes a block in place: ``solve(gram, b, energy, w, start, stop)``; w holds the warm start.
Solve = Callable[[Array, Array, Array, Array, int, int], None]
#: What every function here returns.
Coded = tuple[NDArray[np.int64], NDArray[np.int32], Array, Array, Array, NDArray[np.bool_]]

# From so many active atoms on, coordinate descent goes on where the active set stopped: the factor
# of a larger one costs more than passes over the atoms that screening leaves, unless these are
# very many passes.
MOST_ACTIVE, MOST_ACTIVE_AT_ALL = 256, 2048
MOST_PASSES = 100_000
# What is left of an atom below this share counts as spanned by the active ones.
_ROUNDING = 1e-11
# Signals per block: most; least, if there are so many; least of signals times atoms.
_MOST_ROWS, _FEWEST_ROWS, _WORTH_A_BLOCK = 256, 4, 1 << 15
# Signals between two looks at whether to stop: at least, and what they times atoms are.
_FEWEST_AT_ONCE, _WORTH_A_CALL = 16, 1 << 16
# Without a Gram matrix: numbers held at once by a block, and atoms that join a working set.
_BUDGET = 16 << 20
_FIRST_CANDIDATES, _FEWEST_NEW = 32, 16
_GRADIENT_ROUNDING = 32.0
# Codes within this share of the energy of the minimum are not worse than none.
_SMALL_GAP = 1e-5


def lasso(
    gram: Array,
    products: Products,
    n_signals: int,
    dtype: Any,
    alpha: float,
    *,
    positive: bool = False,
    gap_tol: float = 1e-6,
    start: Array | None = None,
) -> Coded:
    """Code signals over all atoms.

    - ``gram`` (n_atoms, n_atoms): inner products of the atoms.
    - ``products(start, stop)``: correlations (n, n_atoms) and energies (n,).
    - ``dtype``: the type of the codes returned.
    - ``alpha``, ``positive``: weight of |w|_1; no negative coefficients.
    - ``gap_tol``: the gap to reach, as a share of the energy.
    - ``start`` (n_signals, n_atoms): codes to start from.
    """
    limits = _limits(alpha, positive, gap_tol)

    def solve(gram: Array, b: Array, energy: Array, w: Array, first: int, stop: int) -> None:
        if positive:
            np.maximum(w, 0.0, out=w)
        in_short_parts(
            len(b),
            at_once(len(gram)),
            lambda part: solve_lasso(gram, b[part], energy[part], *limits, w[part]),
        )

    return code_blocks(
        gram, products, n_signals, dtype, alpha, solve, positive=positive, gap_tol=gap_tol,
        start=start,
    )  # fmt: skip


def code_blocks(
    gram: Array,
    products: Products,
    n_signals: int,
    dtype: Any,
    alpha: float,
    solve: Solve,
    *,
    positive: bool = False,
    gap_tol: float = 1e-6,
    start: Array | None = None,
) -> Coded:
    """Code signals by any l1 solver, block by block on all threads, and certify the codes."""
    n_atoms = len(gram)
    check_shape(gram, "Gram matrix", (n_atoms, n_atoms))
    if start is not None:
        check_shape(start, "codes to start from", (n_signals, n_atoms))
    gram = rows_in_memory(gram.astype(np.float64, copy=False))
    usable = np.diagonal(gram) > 0
    out = _Collected(n_signals, dtype, alpha, gap_tol)

    def work(first: int, stop: int) -> None:
        b, energy = _as_float64(*products(first, stop), (stop - first, n_atoms))
        w = np.zeros(b.shape)
        if start is not None:  # zero atoms get no weight
            np.multiply(start[first:stop], usable, out=w)
        solve(gram, b, energy, w, first, stop)

        def certified(rows: Any, codes: Array, gaps: Array, errors: Array) -> None:
            certify(gram, b[rows], energy[rows], float(alpha), positive, codes, gaps, errors)

        out.take(first, stop, w, energy, certified)

    rows = min(block_rows(n_signals, n_atoms, 8, _fewest_rows(n_atoms)), _MOST_ROWS)
    each_block(n_signals, rows, lambda: work)
    return out.coded()


def lasso_local(
    local: Callable[[int, int], tuple[Array, Array, Array | None]],
    candidates: NDArray[np.int32],
    dtype: Any,
    alpha: float,
    *,
    positive: bool = False,
    gap_tol: float = 1e-6,
    start: Callable[[int, int], Array] | None = None,
) -> Coded:
    """Code each signal over its own candidates (n_signals, K), -1 where a list is shorter.

    ``local(start, stop)`` returns Gram matrices (n, K, K), correlations (n, K), zeros where a list
    is padded, and energies; ``start(start, stop)`` codes to start from, (n, K). Gaps are those
    among the candidates.
    """
    n_signals, width = candidates.shape
    limits = _limits(alpha, positive, gap_tol)
    out = _Collected(n_signals, dtype, alpha, gap_tol)

    def work(first: int, stop: int) -> None:
        grams, corr, energies = local(first, stop)
        b, energy = _as_float64(corr, energies, (stop - first, width))
        check_shape(grams, "local Gram matrices", (stop - first, width, width))
        grams = np.ascontiguousarray(grams, np.float64)
        w = np.zeros(b.shape)
        if start is not None:
            w[...] = start(first, stop)
            w[np.diagonal(grams, axis1=1, axis2=2) <= 0] = 0.0
            if positive:
                np.maximum(w, 0.0, out=w)
        in_short_parts(
            len(b),
            at_once(width * width),
            lambda part: solve_lasso_local(grams[part], b[part], energy[part], *limits, w[part]),
        )

        def certified(rows: Any, codes: Array, gaps: Array, errors: Array) -> None:
            certify_local(
                grams[rows], b[rows], energy[rows], float(alpha), positive, codes, gaps, errors
            )

        out.take(first, stop, w, energy, certified, candidates[first:stop])

    rows = min(block_rows(n_signals, width * width, 8, _fewest_rows(width * width)), _MOST_ROWS)
    rows = max(1, min(rows, (4 << 20) // (8 * width * width)))
    each_block(n_signals, rows, lambda: work)
    return out.coded()


def lasso_without_gram(
    products: Products,
    local: Callable[[int, int, NDArray[np.int32]], tuple[Array, Array]],
    gram_times: Callable[[Array, NDArray[np.int32]], Array],
    n_signals: int,
    n_atoms: int,
    dtype: Any,
    alpha: float,
    *,
    positive: bool = False,
    gap_tol: float = 1e-6,
    rows: tuple[Array, Array] | None = None,
) -> Coded:
    """Code signals over very many atoms: no (n_atoms, n_atoms) matrix.

    Rounds of small problems: each signal is solved over its own working set of atoms
    (``local(start, stop, candidates)``), then its gradient over all atoms is looked at, c = b - G w
    (``gram_times(weights, candidates)`` returns G w for codes on candidates), and the atoms that
    violate |c| <= alpha most join, until none does. ``rows`` are signals and atoms, where inner
    products are those of rows: other machines work on them.
    """
    # Gradients over all atoms are as precise as the atoms are.
    gap_tol = max(gap_tol, _GRADIENT_ROUNDING * float(np.finfo(dtype).eps))
    limits = _limits(alpha, positive, gap_tol)
    out = _Collected(n_signals, dtype, alpha, gap_tol)

    def work(first: int, stop: int) -> None:
        n = stop - first
        b, energy = _as_float64(*products(first, stop), (n, n_atoms))
        candidates = _worst_atoms(b, alpha, positive, np.empty((n, 0), np.int32), _FIRST_CANDIDATES)
        w = np.zeros(candidates.shape)
        reached = np.full(n, np.inf)
        while True:
            grams, corr = local(first, stop, candidates)
            check_shape(corr, "local correlations", candidates.shape)
            check_shape(grams, "local Gram matrices", (*candidates.shape, candidates.shape[1]))
            grams = np.ascontiguousarray(grams, np.float64)
            solve_lasso_local(grams, corr.astype(np.float64), energy, *limits, w)
            with np.errstate(over="ignore", invalid="ignore"):  # its certificate is looked at
                c = b - gram_times(w.astype(dtype, copy=False), candidates)
            gaps, errors = _certified_over_all(b, c, energy, alpha, positive, w, candidates)
            with np.errstate(over="ignore", invalid="ignore"):
                objective = errors / 2 + alpha * np.abs(w).sum(axis=1)
            n_new = max(_FEWEST_NEW, int((w != 0).sum(axis=1).max(initial=0)))
            new = _worst_atoms(c, alpha, positive, candidates, n_new)
            # Every round lowers the objective, but for rounding, and where there is no minimum.
            new[(gaps <= gap_tol * energy) | ~(objective < reached)] = -1
            reached = objective
            if not (new >= 0).any():
                break
            # Atoms at zero leave, so that working sets stay small; what is in use comes first.
            candidates, w = _merge(candidates, w, new)

        def certified(rows: Any, codes: Array, its_gaps: Array, its_errors: Array) -> None:
            its = candidates[rows]
            with np.errstate(over="ignore", invalid="ignore"):
                gradient = b[rows] - gram_times(codes.astype(dtype, copy=False), its)
            its_gaps[...], its_errors[...] = _certified_over_all(
                b[rows], gradient, energy[rows], alpha, positive, codes, its
            )

        out.take(first, stop, w, energy, certified, candidates)

    n_rows = max(1, min(_BUDGET // max(n_atoms, 1), 64, fair_share(n_signals, _FEWEST_ROWS)))
    each_block(n_signals, n_rows, lambda: work)
    return out.coded()


def _fewest_rows(n_atoms: int) -> int:
    """Return how many signals are worth a block: the fewer, the more work each of them is."""
    return max(_FEWEST_ROWS, _WORTH_A_BLOCK // max(n_atoms, 1))


def at_once(n_atoms: int) -> int:
    """Return how many signals to code between two looks at whether to stop."""
    return max(_FEWEST_AT_ONCE, _WORTH_A_CALL // max(n_atoms, 1))


def _limits(alpha: float, positive: bool, gap_tol: float) -> tuple[Any, ...]:
    most = (MOST_ACTIVE, MOST_ACTIVE_AT_ALL)
    return float(alpha), positive, float(gap_tol), most, _ROUNDING, MOST_PASSES


def _as_float64(corr: Array, energy: Array | None, shape: tuple[int, int]) -> tuple[Array, Array]:
    assert energy is not None  # the pursuit asks before
    check_shape(corr, "correlations", shape)
    check_shape(energy, "energies", shape[:1])
    b, energy = np.ascontiguousarray(corr, np.float64), energy.astype(np.float64)
    if not (np.isfinite(b).all() and np.isfinite(energy).all()):
        raise ValueError(
            "The inner products of signals and atoms overflow or are undefined; scale the data "
            "down, use float64, or choose smaller kernel parameters."
        )
    return b, energy


def _worst_atoms(
    c: Array, alpha: float, positive: bool, known: NDArray[np.int32], count: int
) -> NDArray[np.int32]:
    """Return the unknown atoms that violate |c| <= alpha most, -1 where there are fewer."""
    size = c.copy() if positive else np.abs(c)
    rows, places = np.nonzero(known >= 0)
    size[rows, known[rows, places]] = 0.0
    count = min(count, c.shape[1])
    chosen = np.argpartition(-size, count - 1, axis=1)[:, :count]
    violates = np.take_along_axis(size, chosen, axis=1) > alpha * (1 + 1e-9)
    return np.where(violates, chosen, -1).astype(np.int32)


def _merge(
    candidates: NDArray[np.int32], w: Array, new: NDArray[np.int32]
) -> tuple[NDArray[np.int32], Array]:
    """Return working sets of the atoms in use and the new ones, no wider than needed."""
    atoms = np.concatenate([np.where(w != 0, candidates, -1), new], axis=1)
    weights = np.concatenate([w, np.zeros(new.shape)], axis=1)
    order = np.argsort(atoms < 0, axis=1, kind="stable")
    width = int((atoms >= 0).sum(axis=1).max())
    order = order[:, :width]
    return np.take_along_axis(atoms, order, axis=1), np.take_along_axis(weights, order, axis=1)


def _certified_over_all(
    b: Array, c: Array, energy: Array, alpha: float, positive: bool, w: Array, candidates: Array
) -> tuple[Array, Array]:
    dense = np.zeros(b.shape)
    rows, places = np.nonzero(w)
    dense[rows, candidates[rows, places]] = w[rows, places]
    gaps, errors = np.empty(len(b)), np.empty(len(b))
    certify_gradient(b, c, energy, float(alpha), positive, dense, gaps, errors)
    return gaps, errors


class _Collected:
    """Codes of finished blocks, put together in the order of the signals."""

    def __init__(self, n_signals: int, dtype: Any, alpha: float, gap_tol: float) -> None:
        self._dtype, self._alpha, self._gap_tol = np.dtype(dtype), float(alpha), gap_tol
        self._counts = np.zeros(n_signals, np.int64)
        self._error, self._gap = np.empty(n_signals), np.empty(n_signals)
        self._missed = np.zeros(n_signals, np.bool_)
        self._blocks: dict[int, tuple[NDArray[np.int32], Array]] = {}

    def take(
        self,
        first: int,
        stop: int,
        w: Array,
        energy: Array,
        certified: Callable[[Any, Array, Array, Array], None],
        candidates: NDArray[np.int32] | None = None,
    ) -> None:
        """Round a block of float64 codes to the type asked for, certify and keep them."""
        with np.errstate(over="ignore", under="ignore"):
            codes = w.astype(self._dtype, copy=False).astype(np.float64, copy=False)
        gap, error = self._gap[first:stop], self._error[first:stop]
        certified(slice(None), codes, gap, error)
        # A gap_tol of inf asks for no gap; times an energy of 0 it is NaN, which no gap is above.
        with np.errstate(over="ignore", invalid="ignore"):
            enough = self._gap_tol * energy * (1 + 1e-6)
        # What rounding has made worse than no code, or numbers of this type do not hold.
        doubtful = np.flatnonzero(~(gap <= np.minimum(enough, _SMALL_GAP * energy)))
        if len(doubtful):
            with np.errstate(over="ignore", invalid="ignore"):
                objective = error[doubtful] / 2 + self._alpha * np.abs(codes[doubtful]).sum(axis=1)
                worse = ~(objective <= (0.5 + 1e-9) * energy[doubtful])
            spoilt = doubtful[worse | ~np.isfinite(gap[doubtful])]
            codes[spoilt], w[spoilt] = 0.0, 0.0
            some = np.empty(len(spoilt)), np.empty(len(spoilt))
            certified(spoilt, codes[spoilt], *some)
            gap[spoilt], error[spoilt] = some
        beyond = np.flatnonzero(gap > enough)
        if len(beyond) and self._dtype != np.float64:
            # Rounding alone may take a code beyond the gap that the solver did reach.
            before, errors = np.empty(len(beyond)), np.empty(len(beyond))
            certified(beyond, np.ascontiguousarray(w[beyond]), before, errors)
            beyond = beyond[before > enough[beyond]]
        self._missed[first + beyond] = True
        if candidates is not None:  # by ascending atom
            order = np.argsort(candidates, axis=1, kind="stable")
            codes = np.take_along_axis(codes, order, axis=1)
            candidates = np.take_along_axis(candidates, order, axis=1)
        # Of a mask in one row: of numbers in rows it takes six times as long.
        places = np.flatnonzero(codes != 0)
        rows, columns = np.divmod(places, codes.shape[1])
        self._counts[first:stop] = np.bincount(rows, minlength=stop - first)
        indices = columns if candidates is None else candidates[rows, columns]
        values = codes.ravel()[places]
        self._blocks[first] = indices.astype(np.int32), values.astype(self._dtype)

    def coded(self) -> Coded:
        """Return all codes."""
        parts = [self._blocks[first] for first in sorted(self._blocks)]
        empty = np.empty(0, np.int32), np.empty(0, self._dtype)
        indices, values = (
            (np.concatenate(part) for part in zip(*parts, strict=True)) if parts else empty
        )
        indptr = np.concatenate([[0], np.cumsum(self._counts)])
        return indptr, indices, values, self._error, self._gap, self._missed
