"""Does a kernel tell rows apart, and does it find any alike? A look at a few training rows."""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.engine import on_host
from kernelatoms.similarity.base import Kernel
from kernelatoms.similarity.combined import CombinedKernel
from kernelatoms.similarity.inner import InnerProductKernel

Array = NDArray[Any]

# All pairs of so many rows are looked at. Where they look unrelated, so many of them are compared
# with all rows, in blocks: a narrow kernel may see neighbours that are no part of a few rows.
_ROWS, _LOOKED_AT_AGAIN, _BLOCK = 64, 16, 4096
# Fewer different rows may be anything.
_FEWEST = 10
_NEARLY_ALL = 0.9


def warn_if_blind(kernel: Kernel, X: Array) -> None:
    """Warn if nearly all kernel values between different rows are 0, or nearly all are 1.

    That is relative to sqrt(k(x, x) k(y, y)), and to rounding. Only kernels with a gamma are looked
    at: what others make of rows is as it should be. Of combined kernels every part is, on the
    columns that it sees, and the first that is blind is named.

    Parameters
    ----------
    kernel : Kernel
        With its gamma as a number.
    X : array of shape (n, n_features)
        Complete training rows.
    """
    blind = blind_part(kernel, X)
    if blind is None:
        return
    place, part, found = blind
    values, fault = {
        "alike": ("equal: k(x, y) is k(x, x)", "small"),
        "unrelated": ("unrelated: k(x, y) is 0", "large"),
    }[found]
    gamma: float = part.gamma  # type: ignore[attr-defined]
    warnings.warn(
        f"{place}kernel {part.name!r} sees nothing in these rows: nearly all pairs of different "
        f"ones are {values}, to rounding. gamma={gamma:.3g} is too {fault} for them. Use "
        "gamma='scale', or scale the rows (sklearn.preprocessing.StandardScaler).",
        UserWarning,
        stacklevel=3,
    )


def blind_part(kernel: Kernel, X: Array) -> tuple[str, Kernel, str] | None:
    """Return where, which kernel and what it misses, of the first part that sees nothing."""
    for place, part, rows in _parts(kernel, X):
        found = what_it_misses(part, rows) if part.has_gamma else None
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


def what_it_misses(kernel: Kernel, X: Array) -> str | None:
    """Return "alike" or "unrelated" where nearly all different rows are; None where they are not.

    Parameters
    ----------
    kernel : Kernel
        With its gamma as a number.
    X : array of shape (n, n_features)
        Complete rows.
    """
    rows = X[np.unique(np.linspace(0, len(X) - 1, min(len(X), _ROWS)).astype(np.intp))]
    rows = rows[np.sort(np.unique(on_host(rows), axis=0, return_index=True)[1])]
    if len(rows) < _FEWEST:
        return None
    try:
        return _look(kernel, X, rows)
    except ValueError:  # rows that the kernel does not take: fit says so, if it compares them
        return None


def _look(kernel: Kernel, X: Array, rows: Array) -> str | None:
    equal, zero = _blanks(kernel, rows, rows)
    n_pairs = len(rows) * (len(rows) - 1)
    n_equal = int(equal.sum()) - int(np.trace(equal))
    if n_equal >= _NEARLY_ALL * n_pairs:
        return "alike"
    if int(zero.sum()) + n_equal < _NEARLY_ALL * n_pairs:
        return None
    some = rows[np.linspace(0, len(rows) - 1, min(len(rows), _LOOKED_AT_AGAIN)).astype(np.intp)]
    lonely = np.ones(len(some), bool)
    for start in range(0, len(X), _BLOCK):
        equal, zero = _blanks(kernel, some, X[start : start + _BLOCK])
        lonely &= (equal | zero).all(axis=1)
    return "unrelated" if lonely.mean() >= _NEARLY_ALL else None


def _blanks(kernel: Kernel, X: Array, Y: Array) -> tuple[Array, Array]:
    """Tell which pairs of rows are the same vector to rounding, and which have nothing in common.

    Inner products of rows that are 0 are no fault of a kernel's.
    """
    eps = float(np.finfo(X.dtype).eps)
    rounding = max(float(np.sqrt(np.finfo(np.float64).eps)), 10 * eps)
    with np.errstate(all="ignore"):
        wide, others = X.astype(np.float64), Y.astype(np.float64)
        K = on_host(kernel(wide, others))
        one, two = (np.abs(on_host(kernel.diag(rows))) for rows in (wide, others))
        larger = np.maximum(one[:, None], two)
        equal = one[:, None] + two - 2 * K <= rounding * larger
        zero = np.abs(K) <= rounding * np.sqrt(one)[:, None] * np.sqrt(two)
    if isinstance(kernel, InnerProductKernel):
        zero = np.zeros_like(zero)
    return equal, zero & ~equal
