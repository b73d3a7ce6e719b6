"""Greedy pursuits (OMP, OLS, non-negative or not) of many signals: blocks, threads, memory.

``omp`` has the whole Gram matrix, ``omp_local`` a small one per signal, and ``omp_without_gram``
rows on request. The steps themselves are in ``greedy_loops``. Signals whose squares would leave the
range of numbers are scaled by a power of two (``scale``), which changes no digit of their codes.

Inner products of similar atoms lose their difference in float32. Signals whose codes show that can
be returned to the caller (``leave_unsettled``), who may have inner products of the same float32
numbers in float64 (``exact``).

See docs/decisions/005-compiled-functions.md.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelatoms.engine.cpu.greedy_loops import MEMORY, code_block, code_block_local, step_block
from kernelatoms.engine.cpu.products import block_rows, check_shape, padded, padded_memory
from kernelatoms.engine.cpu.scale import (
    Array,
    all_in_safe_range,
    in_safe_range,
    rescale_rows,
    scale_back,
)
from kernelatoms.engine.cpu.threads import each_block, fair_share, one_blas_thread
from kernelatoms.engine.greedy_limits import (
    check_arguments,
    energy_to_explain,
    limits_of,
    refuse_undefined_energies,
)

#: ``products(start, stop)``: correlations (n, n_atoms) of these signals, energies (n,) or None.
Products = Callable[[int, int], tuple[Array, Array | None]]

#: ``local(start, stop)``: Gram matrices (n, K, K), correlations (n, K), energies (n,) or None.
Local = Callable[[int, int], tuple[Array, Array, Array | None]]

#: ``gram_rows(atoms)``: inner products (m, n_atoms) of atoms (m,) with all atoms.
GramRows = Callable[[NDArray[np.intp]], Array]

#: ``energy(start, stop)``: squared norms (n,) of these signals, or None.
Energy = Callable[[int, int], Array | None]

#: Indices, values and what is left, padded; or indptr, indices, values and what is left. Then which
#: signals are not settled, if they are left to the caller.
Coded = tuple[Array, ...]


class BlockCodes(NamedTuple):
    """Where the codes of a block of signals go, as ``code_block`` of ``greedy_loops`` says."""

    indices: NDArray[np.int32]
    values: Array
    left: NDArray[np.float64]
    unsettled: NDArray[np.bool_]


#: ``code(start, stop, out)`` codes signals start..stop.
Coder = Callable[[int, int, BlockCodes], None]

# Bytes that the Gram matrices of a block of local problems may take, and those that a thread may
# use for a block of signals without a Gram matrix.
_LOCAL_BYTES = 4 << 20
_BYTES_WITHOUT_GRAM = 128 << 20


def omp(
    gram: Array,
    products: Products,
    n_signals: int,
    n_nonzero: int,
    *,
    stop_at: NDArray[np.float64] | None = None,
    relative: bool = True,
    use_ols: bool = False,
    positive: bool = False,
    ragged: bool = False,
    leave_unsettled: bool = False,
    exact: bool = False,
    rows: tuple[Array, Array] | None = None,
    energy: Energy | None = None,
) -> Coded:
    """Code signals over one dictionary whose Gram matrix is known.

    Arguments that all pursuits here have:

    - ``n_nonzero``: the most atoms that a signal may use.
    - ``stop_at`` (n_signals,): stop earlier once |residual| <= stop_at |x|, or <= stop_at if
      ``relative`` is False. Needs energies.
    - ``use_ols``: pick the atom of largest residual decrease (OLS), not of largest correlation
      (OMP).
    - ``positive``: codes are non-negative: pick among positive correlations, coefficients by
      non-negative least squares on the support; atoms whose coefficient becomes zero leave it.
    - ``ragged``: return compressed sparse rows: memory for the nonzeros found, not those allowed.
    - ``leave_unsettled``: end the pursuit of a signal once rounding shows in its code, and tell of
      which signals.
    - ``exact``: inner products, in float64, are those of float32 numbers: codes are to be good in
      float32.

    Those of this one:

    - ``gram`` (n_atoms, n_atoms): inner products of the atoms; codes have its type.
    - ``products(start, stop)``: inner products (n, n_atoms) of these signals with the atoms, and
      squared norms (n,) or None where they are not known. Called from worker threads.
    - ``rows``, ``energy``: signals (n_signals, n_features) and atoms (n_atoms, n_features), where
      inner products are those of rows, and ``energy(start, stop)``, squared norms: for machines
      that work on rows.

    Result: ``indices`` (n_signals, n_nonzero), atoms ascending, then -1; ``values``, their
    coefficients, then 0; ``left`` (n_signals,), energy less what is explained, as it comes out
    (rounding may make it slightly negative), or its negative where energies are not known. With
    ``ragged``: indptr (n_signals + 1,), indices and values (n_nonzeros,), left. With
    ``leave_unsettled`` one more, last: unsettled (n_signals,).
    """
    n_atoms, dtype = len(gram), gram.dtype
    if gram.shape != (n_atoms, n_atoms):
        raise ValueError(f"The Gram matrix must be square, got shape {gram.shape}.")
    check_arguments(dtype.name, n_signals, n_nonzero, stop_at)
    whole = padded_memory(gram)
    norms2, names = _padded_row(np.diagonal(gram)), np.arange(n_atoms, dtype=np.int32)
    options = _options(dtype, use_ols, positive, leave_unsettled, exact)
    longest = float(norms2.max(initial=0))

    def code(start: int, stop: int, out: BlockCodes) -> None:
        corr, energy = products(start, stop)
        check_shape(corr, "correlations", (stop - start, n_atoms))
        until = _until(energy, slice(start, stop), stop_at, relative)
        corr, until, exponents = _ready(corr, energy, until, longest, dtype)
        code_block(names, whole, norms2, corr, until, *options, *out)
        _finish(out, energy, exponents, longest)

    block = block_rows(n_signals, len(norms2), dtype.itemsize)
    return _in_blocks(lambda: code, n_signals, n_nonzero, block, dtype, ragged, leave_unsettled)


def omp_local(
    local: Local,
    candidates: NDArray[np.int32],
    n_nonzero: int,
    *,
    stop_at: NDArray[np.float64] | None = None,
    relative: bool = True,
    use_ols: bool = False,
    positive: bool = False,
    ragged: bool = False,
    leave_unsettled: bool = False,
    exact: bool = False,
) -> Coded:
    """Code signals, each over its own list of atoms; results as of ``omp``.

    - ``local(start, stop)``: Gram matrices (n, K, K) of the lists' atoms, their inner products
      (n, K) with the signals, and the signals' squared norms (n,) or None; zeros where a list is
      padded. Called from worker threads.
    - ``candidates`` (n_signals, K): the atoms that each signal may use; -1 pads shorter lists.
      Indices in the result are entries of it.
    """
    n_signals, n_local = candidates.shape
    candidates = np.require(candidates, np.int32, ["C", "W"])
    fits = _LOCAL_BYTES // max(8 * n_local * padded(n_local), 1)
    block = max(1, min(fits, 1024, fair_share(n_signals)))
    # The first block says what numbers the others will be.
    with one_blas_thread():
        first = local(0, min(block, n_signals)) if n_signals else None
    dtype = np.dtype(np.float64) if first is None else first[0].dtype
    check_arguments(dtype.name, n_signals, n_nonzero, stop_at)
    options = _options(dtype, use_ols, positive, leave_unsettled, exact)

    def code(start: int, stop: int, out: BlockCodes) -> None:
        grams, corr, energy = first if start == 0 and first is not None else local(start, stop)
        check_shape(grams, "local Gram matrices", (stop - start, n_local, n_local))
        check_shape(corr, "local correlations", (stop - start, n_local))
        grams = np.require(grams, dtype, ["C", "W"])
        longest = float(np.diagonal(grams, axis1=1, axis2=2).max(initial=0))
        until = _until(energy, slice(start, stop), stop_at, relative)
        corr, until, exponents = _ready(corr, energy, until, longest, dtype)
        own = candidates[start:stop]
        code_block_local(grams, padded(n_local), own, corr, until, *options, *out)
        _finish(out, energy, exponents, longest)

    return _in_blocks(lambda: code, n_signals, n_nonzero, block, dtype, ragged, leave_unsettled)


def omp_without_gram(
    gram_rows: GramRows,
    norms2: Array,
    products: Products,
    n_signals: int,
    n_nonzero: int,
    *,
    stop_at: NDArray[np.float64] | None = None,
    relative: bool = True,
    use_ols: bool = False,
    positive: bool = False,
    ragged: bool = False,
    leave_unsettled: bool = False,
    exact: bool = False,
    rows: tuple[Array, Array] | None = None,
    energy: Energy | None = None,
) -> Coded:
    """Code signals over very many atoms, with rows of their Gram matrix computed when needed.

    The signals of a block take their steps together, so that the rows of all atoms that a step has
    picked are one request. A thread works in about 128 MiB. As ``omp``, but for ``gram_rows``,
    called from worker threads, and ``norms2`` (n_atoms,), squared norms of the atoms; codes have
    its type.
    """
    n_atoms, dtype = len(norms2), norms2.dtype
    check_arguments(dtype.name, n_signals, n_nonzero, stop_at)
    wide_norms2, names = _padded_row(norms2), np.arange(n_atoms, dtype=np.int32)
    options = _options(dtype, use_ols, positive, leave_unsettled, exact)
    most = min(n_nonzero, n_atoms)
    longest = float(norms2.max(initial=0))
    # Correlations twice (as they are, and with the residual), the rows of all but the last atom,
    # and rows on their way.
    a_signal = (most + 3 + use_ols) * len(wide_norms2) * dtype.itemsize
    block = max(1, min(_BYTES_WITHOUT_GRAM // a_signal, 1024, fair_share(n_signals)))

    def make_coder() -> Coder:
        rows = np.empty((block * max(most - 1, 1), len(wide_norms2)), dtype)
        a = np.zeros((block, len(wide_norms2)), dtype)
        h = np.empty((block, len(wide_norms2) if use_ols else 0), dtype)

        def code(start: int, stop: int, out: BlockCodes) -> None:
            n = stop - start
            corr, energy = products(start, stop)
            check_shape(corr, "correlations", (n, n_atoms))
            until = _until(energy, slice(start, stop), stop_at, relative)
            corr, until, exponents = _ready(corr, energy, until, longest, dtype)
            going, counts = np.ones(n, bool), np.zeros(n, np.intp)
            picked, ids = np.zeros((n, most), np.uintp), np.zeros((n, most), np.uintp)
            codes, step = np.zeros((n, most), dtype), np.zeros((n, most), dtype)
            directions, memory = np.empty((n, most, most), dtype), np.zeros((n, MEMORY))
            places = np.full(n_atoms, -1)
            while True:
                step_block(
                    names, rows, wide_norms2, corr, until, *options, going, counts, picked, ids,
                    codes, directions, a[:n], h[:n], step, memory, *out,
                )  # fmt: skip
                if not going.any():
                    break
                used = going[:, None] & (np.arange(most) < counts[:, None])
                _fetch(gram_rows, np.unique(picked[used]).astype(np.intp), places, rows, n_atoms)
                ids[used] = places[picked[used]]
            _finish(out, energy, exponents, longest)

        return code

    return _in_blocks(make_coder, n_signals, n_nonzero, block, dtype, ragged, leave_unsettled)


def _fetch(gram_rows: GramRows, needed: Array, places: Array, rows: Array, n_atoms: int) -> None:
    """Fetch the Gram rows of the needed atoms into ``rows``, that of atom i into ``places[i]``."""
    new = needed[places[needed] < 0]
    if not len(new):
        return
    held = np.flatnonzero(places >= 0)
    if len(held) + len(new) > len(rows):
        places[np.setdiff1d(held, needed)] = -1
        held = np.flatnonzero(places >= 0)
    free = np.setdiff1d(np.arange(len(rows)), places[held])[: len(new)]
    found = gram_rows(new)
    check_shape(found, "Gram rows", (len(new), n_atoms))
    rows[free, :n_atoms] = found
    rows[free, n_atoms:] = 0
    places[new] = free


def _in_blocks(
    make_coder: Callable[[], Coder],
    n_signals: int,
    n_nonzero: int,
    block: int,
    dtype: np.dtype[Any],
    ragged: bool,
    leave_unsettled: bool,
) -> Coded:
    """Code blocks of signals on all threads, each with a coder of its own; return all codes."""
    left, unsettled = np.empty(n_signals), np.empty(n_signals, np.bool_)
    last = (left, unsettled) if leave_unsettled else (left,)
    rows = 0 if ragged else n_signals
    indices, values = np.empty((rows, n_nonzero), np.int32), np.empty((rows, n_nonzero), dtype)
    counts = np.zeros(n_signals + 1, np.int64)
    found: dict[int, tuple[Array, Array]] = {}

    def make_worker() -> Callable[[int, int], None]:
        code = make_coder()
        into = indices, values
        if ragged:  # the same memory for one block after another
            into = np.empty((block, n_nonzero), np.int32), np.empty((block, n_nonzero), dtype)

        def work(start: int, stop: int) -> None:
            part = slice(start, stop)
            here = slice(0, stop - start) if ragged else part
            out = BlockCodes(into[0][here], into[1][here], left[part], unsettled[part])
            code(start, stop, out)
            if ragged:
                used = out.indices >= 0
                counts[start + 1 : stop + 1] = used.sum(axis=1)
                found[start] = out.indices[used], out.values[used]

        return work

    each_block(n_signals, block, make_worker)
    if not ragged:
        return indices, values, *last
    parts = [(indices[:0, 0], values[:0, 0]), *(found[start] for start in sorted(found))]
    return (np.cumsum(counts), *map(np.concatenate, zip(*parts, strict=True)), *last)


def _options(
    dtype: np.dtype[Any], use_ols: bool, positive: bool, leave_unsettled: bool, exact: bool
) -> tuple[Array, float, float, float, float, bool, bool]:
    """Return the options of the loops, in their order."""
    bits = np.int32 if dtype == np.float32 else np.int64
    masks = np.array([-1 if positive else np.iinfo(bits).max], bits)
    limits = limits_of(float(np.finfo(dtype).eps), leave_unsettled, exact)
    return masks, *limits, bool(use_ols), bool(positive)


def _until(
    energy: Array | None, part: slice, stop_at: NDArray[np.float64] | None, relative: bool
) -> NDArray[np.float64]:
    """Return how much energy of each signal of a part to explain; infinite without a goal."""
    n = part.stop - part.start
    if energy is not None:
        check_shape(energy, "energies", (n,))
        energy = energy.astype(np.float64)
    if stop_at is None:
        return np.full(n, np.inf)
    return energy_to_explain(energy, stop_at[part], relative)


def _ready(
    corr: Array, energy: Array | None, until: Array, longest: float, dtype: np.dtype[Any]
) -> tuple[Array, NDArray[np.float64], NDArray[np.int32] | None]:
    """Return correlations and goals as the loops want them, and the exponents that this took.

    Signals whose squared norm is in the safe range stay as they are, if that of the longest atom
    is. Others come at a power of two at which one atom explains about 1 of them. Without any such,
    exponents are None.
    """
    near_one = all_in_safe_range(np.asarray(longest), dtype)
    if near_one and energy is not None and all_in_safe_range(energy, dtype):
        return np.require(corr, dtype, ["C", "W"]), until, None
    if energy is None:
        largest = np.abs(corr).max(axis=1, initial=0).astype(np.float64)
        with np.errstate(all="ignore"):
            outside = ~in_safe_range(largest**2 / longest, dtype)
    else:
        if not np.isfinite(energy).all():
            refuse_undefined_energies()
        outside = ~in_safe_range(energy, dtype)
    if not near_one:
        outside = np.ones(len(corr), np.bool_)
    near, exponents = rescale_rows(corr, outside, dtype, np.frexp(longest)[1] // 2)
    near = np.require(near, dtype, ["C", "W"])
    if exponents is not None:
        with np.errstate(over="ignore", under="ignore"):  # as good as no goal, or reached at once
            until = np.ldexp(until, -2 * exponents)
    return near, until, exponents


def _finish(
    out: BlockCodes, energy: Array | None, exponents: NDArray[np.int32] | None, longest: float
) -> None:
    """Scale codes back; turn what is explained into what is left, its negative without energies."""
    scale_back(exponents, longest, energy, out.values, out.left)
    np.subtract(0.0 if energy is None else energy, out.left, out=out.left)


def _padded_row(values: Array) -> Array:
    row = np.zeros(padded(len(values)), values.dtype)
    row[: len(values)] = values
    return row
