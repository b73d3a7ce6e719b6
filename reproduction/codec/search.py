"""The smallest file of a rival whose every row is within a bound, over all its settings."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reproduction.codec.data import Table
from reproduction.codec.scalings import Scaling, scalings
from reproduction.codec.streams import Stream, streams
from reproduction.codec.views import View, views

Array = NDArray[Any]

#: Bytes of a header that would say how to read a rival's file: shape, order, kind, bound.
HEADER = 32
# So many scalings, the best in the first order, are tried in all orders.
_SCALINGS = 3
# An order whose first settings look so much worse than the best is not tried with the others.
_FIRST_SETTINGS, _MUCH_WORSE = 3, 1.25
# So many settings are taken to the bound, the best by a first look at all; and the best of every
# setting that is not much worse.
_FINALISTS = 5
_MOST_STEPS = 12
# A largest error this near to the bound is near enough.
_NEAR = 0.002
_TINY = 1e-12


class Found(NamedTuple):
    """The bytes of a file, its largest and mean row error, the setting and the size of error."""

    n_bytes: int
    largest: float
    mean: float
    setting: str
    size: float = 0.0


class Prepared(NamedTuple):
    """A table in one order under one scaling, as an array to code."""

    table: Table
    view: View
    factor: Array
    array: Array
    name: str
    extra_bytes: int

    def errors(self, decoded: Array) -> Array:
        """Return the relative error of every row for a decoded array.

        Where all values are whole numbers, decoded ones are rounded if that is better.
        """
        values = self.view.restore(decoded) * self.factor
        errors = self.table.row_errors(values)
        if not self.table.integers:
            return errors
        return min(errors, self.table.row_errors(np.rint(values)), key=np.max)


def prepare(table: Table, view: View, scaling: Scaling) -> Prepared:
    """Return the table in one order under one scaling; gaps are bridged, their places counted."""
    factor = scaling.factor()
    array = np.ascontiguousarray(view.arrange((table.bridged / factor).astype(np.float32)))
    extra = HEADER + table.gap_bytes + scaling.n_bytes
    return Prepared(table, view, factor, array, f"{view.name}; {scaling.name}", extra)


def smallest_stream(rival: str, table: Table, bound: float) -> Found | None:
    """Return the smallest file of a rival that holds the bound on every row; None if none does."""
    looks = sorted(_first_look(rival, table, bound), key=lambda look: look.expected)
    best_of = {look.stream.name: look for look in reversed(looks)}
    alone = [look for look in best_of.values() if look not in looks[:_FINALISTS]]
    fair = [look for look in alone if look.expected < _MUCH_WORSE * looks[0].expected]
    found = [
        met
        for look in [*looks[:_FINALISTS], *fair]
        if (met := at_bound(prepare(table, look.view, look.scaling), look.stream, bound, look.size))
    ]
    return min(found, default=None)


class _Look(NamedTuple):
    """A setting, the size of error that may meet the bound, and the bytes expected there."""

    view: View
    scaling: Scaling
    stream: Stream
    size: float
    expected: float


def _first_look(rival: str, table: Table, bound: float) -> Iterable[_Look]:
    """Try every order, scaling and setting once, near the bound."""
    arranged = [(view, view.arrange(table.values)) for view in views(table)]
    orders = [view for view, array in arranged if streams(rival, _n_axes(array))]
    default = streams(rival, _n_axes(arranged[0][1]))[0]
    firsts = []
    for scaling in scalings(table, bound):
        prepared = prepare(table, orders[0], scaling)
        size = size_near(prepared, default.code, bound, None)
        firsts.append(_looked(prepared, scaling, default, size, bound))
    ranked = sorted(firsts, key=lambda look: look.expected)
    kept = ranked[:_SCALINGS]
    # Some have errors relative to their neighbourhood and do not need any scaling.
    kept += [] if firsts[0] in kept else firsts[:1]
    best = np.inf
    for first in kept:
        size = first.size
        for view in orders:
            prepared = prepare(table, view, first.scaling)
            settings = streams(rival, _n_axes(prepared.array))
            size = size_near(prepared, settings[0].code, bound, size)
            looks = _looks(prepared, first.scaling, settings[:_FIRST_SETTINGS], size, bound)
            if min(look.expected for look in looks) < _MUCH_WORSE * best:
                rest = settings[_FIRST_SETTINGS:]
                looks += _looks(prepared, first.scaling, rest, size, bound)
            best = min([best, *(look.expected for look in looks)])
            yield from looks


def _n_axes(array: Array) -> int:
    """Return the number of axes longer than 1: SZ3 drops the others."""
    return max(sum(length > 1 for length in array.shape), 1)


def _looks(
    prepared: Prepared, scaling: Scaling, settings: Sequence[Stream], size: float, bound: float
) -> list[_Look]:
    return [_looked(prepared, scaling, stream, size, bound) for stream in settings]


def _looked(
    prepared: Prepared, scaling: Scaling, stream: Stream, size: float, bound: float
) -> _Look:
    """Say how many bytes a setting may need at the bound, from one try near it."""
    n_bytes, decoded = stream.code(prepared.array, size)
    largest = float(prepared.errors(decoded).max())
    # Half the error costs about a bit a value; what twice the error would save is less certain.
    away = float(min(bound / max(largest, _TINY), 1.5))
    expected = n_bytes - np.log2(away) * prepared.array.size / 8 + prepared.extra_bytes
    return _Look(prepared.view, scaling, stream, size * away, float(expected))


def size_near(
    prepared: Prepared,
    code: Callable[[Array, float], tuple[int, Array]],
    bound: float,
    start: float | None,
) -> float:
    """Return a size of error that brings the largest row error near the bound."""
    size = start or bound * float(np.sqrt(np.mean(np.square(prepared.array, dtype=np.float64))))
    best = (np.inf, size)
    for _ in range(4):
        _, decoded = code(prepared.array, size)
        away = bound / max(float(prepared.errors(decoded).max()), _TINY)
        best = min(best, (abs(float(np.log(away))), size))
        if best[0] < 0.1:
            break
        size *= float(np.clip(away, 0.1, 4))
    return best[1]


def at_bound(prepared: Prepared, stream: Stream, bound: float, size: float) -> Found | None:
    """Bring the largest row error as close under the bound as it goes; None if it stays above."""
    best: Found | None = None
    low, high, margin = 0.0, np.inf, _NEAR / 4
    for _ in range(_MOST_STEPS):
        n_bytes, decoded = stream.code(prepared.array, size)
        errors = prepared.errors(decoded)
        largest = float(errors.max())
        if largest <= bound:
            name = f"{prepared.name}; {stream.name}"
            n_bytes += prepared.extra_bytes
            met = Found(n_bytes, largest, float(errors.mean()), name, size)
            best = met if best is None else min(best, met)
            low = max(low, size)
            if largest >= (1 - _NEAR) * bound:
                break
        else:
            # Some move in steps only, so that a small change of the size changes nothing.
            high, margin = min(high, size), 2 * margin
        size *= float(np.clip((1 - margin) * bound / max(largest, _TINY), 0.2, 5))
        if high < np.inf and not low < size < high:
            size = (low + high) / 2
    if best is None or stream.finish is None:
        return best
    return best._replace(n_bytes=stream.finish(prepared.array, best.size) + prepared.extra_bytes)
