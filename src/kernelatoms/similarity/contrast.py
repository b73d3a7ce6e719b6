"""Check on a few training rows that a kernel is neither 0 nor constant between different rows.

See docs/decisions/012-gamma-defaults.md.
"""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from kernelatoms.engine import Array, to_numpy
from kernelatoms.similarity.base import Kernel
from kernelatoms.similarity.combined import CombinedKernel
from kernelatoms.similarity.inner import InnerProductKernel

# All pairs of 64 rows are compared. If they look unrelated, 16 of them are compared with all rows,
# in blocks: under a narrow kernel only rows outside of a small sample may be near.
_ROWS, _ROWS_AGAIN, _BLOCK = 64, 16, 4096
# Fewer different rows allow no conclusion.
_FEWEST = 10
_NEARLY_ALL = 0.9


@dataclass(frozen=True)
class Limits:
    """Shares of k(x, x) by which k(x, y) must differ from it (``alike``), and from 0."""

    alike: float = 0.0
    unrelated: float = 0.0


AT_ROUNDING = Limits()


def warn_if_blind(kernel: Kernel, X: Array, limits: Limits = AT_ROUNDING) -> None:
    """Warn if nearly all kernel values between different complete rows are 0, or nearly all are 1.

    That is relative to sqrt(k(x, x) k(y, y)), of kernels with a gamma or parts of combined ones.
    """
    blind = blind_part(kernel, X, limits)
    if blind is None:
        return
    place, part, found = blind
    values, whose, fault = {
        "alike": ("equal: k(x, y) is k(x, x)", "it", "small"),
        "unrelated": ("unrelated: k(x, y) is 0", "k(x, x)", "large"),
    }[found]
    limit = getattr(limits, found)
    to = "rounding" if limit <= _rounding(X) else f"{limit:.3g} of {whose}"
    gamma: float = part.gamma  # type: ignore[attr-defined]
    warnings.warn(
        f"{place}kernel {part.name!r} sees nothing in these rows: nearly all pairs of different "
        f"ones are {values}, to {to}. gamma={gamma:.3g} is too {fault} for them. Use "
        "gamma='scale', or scale the rows (sklearn.preprocessing.StandardScaler).",
        UserWarning,
        stacklevel=3,
    )


def blind_part(
    kernel: Kernel, X: Array, limits: Limits = AT_ROUNDING
) -> tuple[str, Kernel, str] | None:
    """Return place, kernel and fault ("alike" or "unrelated") of the first such part."""
    for place, part, rows in _parts(kernel, X):
        found = blind_spot(part, rows, limits) if part.has_gamma else None
        if found is not None:
            return place, part, found
    return None


def _parts(kernel: Kernel, X: Array) -> Iterator[tuple[str, Kernel, Array]]:
    """Yield the kernel and all columns, or the parts of a combined one and theirs."""
    if not isinstance(kernel, CombinedKernel):
        yield "", kernel, X
        return
    for part in kernel.used:
        for place, own, rows in _parts(part.kernel, part.rows(X)):
            yield f"parts[{part.place}]: {place}", own, rows


def blind_spot(kernel: Kernel, X: Array, limits: Limits = AT_ROUNDING) -> str | None:
    """Return "alike" or "unrelated" where nearly all different complete rows are so, else None."""
    rows = X[np.unique(np.linspace(0, len(X) - 1, min(len(X), _ROWS)).astype(np.intp))]
    rows = rows[np.sort(np.unique(to_numpy(rows), axis=0, return_index=True)[1])]
    if len(rows) < _FEWEST:
        return None
    try:
        return _look(kernel, X, rows, limits)
    except ValueError:  # the kernel refuses these rows: fit raises that if it compares them
        return None


def _look(kernel: Kernel, X: Array, rows: Array, limits: Limits) -> str | None:
    equal, zero = _blanks(kernel, rows, rows, limits)
    n_pairs = len(rows) * (len(rows) - 1)
    n_equal = int(equal.sum()) - int(np.trace(equal))
    if n_equal >= _NEARLY_ALL * n_pairs:
        return "alike"
    if int(zero.sum()) + n_equal < _NEARLY_ALL * n_pairs:
        return None
    some = rows[np.linspace(0, len(rows) - 1, min(len(rows), _ROWS_AGAIN)).astype(np.intp)]
    lonely = np.ones(len(some), bool)
    for start in range(0, len(X), _BLOCK):
        block = X[start : start + _BLOCK]
        _, zero = _blanks(kernel, some, block, limits)
        # A row finds itself, with any value if gamma is large and rounding matters.
        for i in np.flatnonzero(lonely & ~zero.all(axis=1)):
            seen = to_numpy(block[np.flatnonzero(~zero[i])])
            lonely[i] = bool((seen == to_numpy(some[i])).all())
    return "unrelated" if lonely.mean() >= _NEARLY_ALL else None


def _rounding(X: Array) -> float:
    return max(float(np.sqrt(np.finfo(np.float64).eps)), 10 * float(np.finfo(X.dtype).eps))


def _blanks(kernel: Kernel, X: Array, Y: Array, limits: Limits) -> tuple[Array, Array]:
    """Return which pairs of rows are the same vector, and which are orthogonal, to rounding."""
    rounding = _rounding(X)
    with np.errstate(all="ignore"):
        wide, others = X.astype(np.float64), Y.astype(np.float64)
        K = to_numpy(kernel(wide, others))
        one, two = (to_numpy(kernel.diag(rows)) for rows in (wide, others))
        apart = np.abs(one[:, None] + two - 2 * K)  # |phi(x) - phi(y)|^2
        one, two = np.abs(one), np.abs(two)
        equal = apart <= max(rounding, 2 * limits.alike) * np.maximum(one[:, None], two)
        zero = np.abs(K) <= max(rounding, limits.unrelated) * np.sqrt(one)[:, None] * np.sqrt(two)
    if isinstance(kernel, InnerProductKernel):  # of which 0 is no fault
        zero = np.zeros_like(zero)
    return equal, zero & ~equal
