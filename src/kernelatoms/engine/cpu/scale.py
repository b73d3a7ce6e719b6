"""Squared norms that fit, and signals scaled by powers of two.

Pursuits and learners multiply inner products, up to fourth powers of the data, and compare what
is left with rounding. In float32 that leaves the range of numbers from signals of 1e-10 or 1e10 on.
Multiplying by a power of two changes no digit, so signals out of range are coded at a size near 1
and scaled back: the same codes, bit for bit, at any scale. Other data are not touched.

See docs/decisions/023-numbers-far-from-one.md.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.engine.cpu.jit import jit
from kernelatoms.engine.cpu.threads import each_block

#: An array of numbers.
Array = NDArray[Any]

# Bytes of rows that a thread works on at once; fewer are not worth to wake a thread.
_AT_ONCE = 2 << 20

# Squared norms of signals and of atoms that the loops can work with as they are. Their product must
# not overflow, and what is rounding in it, (100 eps)^2 of it, must not vanish.
_FLOAT32, _FLOAT64 = (2.0**-40, 2.0**60), (2.0**-400, 2.0**500)


def safe_range(dtype: Any) -> tuple[float, float]:
    """Return the least and the largest squared norm for loops in a dtype."""
    return _FLOAT32 if dtype == np.float32 else _FLOAT64


def in_safe_range(squares: Array, dtype: np.dtype[Any]) -> NDArray[np.bool_]:
    """Return for which squared norms the loops can work in a dtype without rescaling."""
    low, high = safe_range(dtype)
    return (squares >= low) & (squares <= high)


def all_in_safe_range(squares: Array, dtype: np.dtype[Any]) -> bool:
    """Whether the loops can work in a dtype with all of these squared norms."""
    return bool(in_safe_range(squares, dtype).all())


@jit(fastmath=True)
def _square(rows, out):
    """Add up squares in float64: a call of its own, because numpy's steps wait for each other."""
    for s in range(len(rows)):
        total = 0.0
        for i in range(rows.shape[1]):
            value = np.float64(rows[s, i])
            total += value * value
        out[s] = total


def squared_norms(rows: Array) -> NDArray[np.float64]:
    """Return |x|^2 of rows (n, n_features): float64, which squares of float32 fit in."""
    squares, found = np.empty(len(rows)), np.ascontiguousarray(rows)
    _for_rows(found, lambda start, stop: _square(found[start:stop], squares[start:stop]))
    if rows.dtype == np.float32 or all_in_safe_range(squares, rows.dtype):
        return squares
    near, exponents = rescale_rows(rows, ~in_safe_range(squares, rows.dtype), rows.dtype)
    if exponents is not None:
        _square(near, squares)
        with np.errstate(over="ignore", under="ignore"):
            squares = np.ldexp(squares, 2 * exponents)
    return squares


def rescale_rows(
    rows: Array, outside: NDArray[np.bool_], dtype: np.dtype[Any], size: int = 0
) -> tuple[Array, NDArray[np.int32] | None]:
    """Bring some rows to a size near 1, each by a power of two of its own.

    - ``rows`` (n, m), ``outside`` (n,): numbers of signals, and which of them are too large or too
      small; rows of zeros do not count.
    - ``dtype``: the type of the result.
    - ``size``: the largest number of a row becomes about 2^size.
    - result: a copy of the rows, where row s is divided by 2^exponents[s], and the exponents (n,);
      the rows themselves and None if there is nothing to do.
    """
    if not outside.any():
        return rows, None
    some = np.flatnonzero(outside)
    largest = np.abs(rows[some]).max(axis=1, initial=0)
    some, largest = some[largest > 0], largest[largest > 0]
    if not len(some):
        return rows, None
    exponents = np.zeros(len(rows), np.int32)
    exponents[some] = np.frexp(largest)[1] - size
    with np.errstate(over="ignore", under="ignore"):
        near = np.array(rows, dtype, order="C")
        near[some] = np.ldexp(rows[some], -exponents[some, None])
    return near, exponents


def rescale_if_needed(rows: Array) -> tuple[Array, NDArray[np.int32] | None]:
    """Return ``rescale_rows`` of all rows whose squared norm is out of the safe range."""
    squares = squared_norms(rows)
    if all_in_safe_range(squares, rows.dtype):
        return rows, None
    return rescale_rows(rows, ~in_safe_range(squares, rows.dtype), rows.dtype)


def unit_rows(rows: Array) -> Array:
    """Return rows, also in stacks, at unit norm; zero rows stay zero."""
    flat = rows.reshape(-1, rows.shape[-1])
    out = np.empty(flat.shape, flat.dtype)

    def work(start: int, stop: int) -> None:
        near, _ = rescale_if_needed(flat[start:stop])
        norms = np.linalg.norm(near, axis=1, keepdims=True)
        np.divide(near, np.where(norms > 0, norms, 1), out=out[start:stop])

    _for_rows(flat, work)
    return out.reshape(rows.shape)


def _for_rows(rows: Array, work: Callable[[int, int], None]) -> None:
    """Call ``work(start, stop)`` for blocks of rows, on all threads where there are many."""
    at_once = max(1, _AT_ONCE * len(rows) // max(rows.nbytes, 1))
    if len(rows) <= at_once:
        work(0, len(rows))
    else:
        each_block(len(rows), at_once, lambda: work)


def scale_back(
    exponents: Array | None, longest: float, energy: Array | None, values: Array, squares: Array
) -> None:
    """Bring codes (n, n_nonzero) and squares (n,) to the scale of their signals, in place.

    Codes that do not fit their type are refused. ``longest`` is the largest |d|^2 of an atom.
    """
    if exponents is None:
        return
    coded = values.any(axis=1)
    with np.errstate(over="ignore", under="ignore"):
        np.ldexp(values, exponents[:, None], out=values)
        np.ldexp(squares, 2 * exponents, out=squares)
    sizes = squares if energy is None else energy
    check_scaled_codes(
        np.finfo(values.dtype),
        values.dtype.name,
        longest,
        bool(np.isfinite(values).all()),
        float(sizes.min(initial=np.inf, where=coded)),
    )


def check_scaled_codes(
    numbers: Any, name: str, longest: float, are_finite: bool, shortest2: float
) -> None:
    """Refuse codes that do not fit their type: ``numbers``, as of ``finfo``, and its name.

    ``shortest2`` is the least squared norm of a signal that has a code.
    """
    length = math.sqrt(max(longest, 0.0))
    if not are_finite:
        raise ValueError(
            f"The codes overflow {name}: the signals are too long for atoms of norm "
            f"{length:.2g} at most; scale X down, or the dictionary up, or use float64."
        )
    # Coefficients are multiples of the smallest number. Over atoms of norm up to 2 that rounds a
    # signal about as much as its own entries are.
    blur = float(numbers.smallest_normal) * float(numbers.eps) * length
    if longest > 4 and blur > float(numbers.eps) * math.sqrt(max(shortest2, 0.0)):
        raise ValueError(
            f"The codes underflow {name}: the signals are too short for atoms of norm "
            f"{length:.2g}; scale X up, or the dictionary down, or use float64."
        )
