"""Orders of the values, from which the best one is chosen for each rival."""

from collections.abc import Callable
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reproduction.codec.data import PERIODS, Table

Array = NDArray[Any]


class View(NamedTuple):
    """An order of the values: ``arrange`` takes the table's array there, ``restore`` back."""

    name: str
    arrange: Callable[[Array], Array]
    restore: Callable[[Array], Array]


def views(table: Table) -> list[View]:
    """Return the orders of a table's values that make sense for it.

    Symmetric slices: the entries above the diagonal, slice by slice and entry by entry, and whole
    slices. Others: either axis first, in one line, and by days where there are days.
    """
    shape = table.values.shape
    if table.symmetric:
        return _triangles(shape[1]) + _orders("whole slices", two_alike=True)
    result = [View("rows x columns", _same, _same), View("columns x rows", _turned, _turned)]
    result += [_in_one_line(view, shape) for view in result]
    if table.name in PERIODS:
        days = _orders("days, times, columns", two_alike=False)
        result += [_by_days(view, shape, PERIODS[table.name]) for view in days]
    return result


def _same(array: Array) -> Array:
    return array


def _turned(array: Array) -> Array:
    return array.T


def _in_one_line(view: View, shape: tuple[int, ...]) -> View:
    first = shape if view.arrange is _same else shape[::-1]
    return View(
        f"{view.name}, in one line",
        lambda x: view.arrange(x).ravel(),
        lambda y: view.restore(y.reshape(first)),
    )


def _orders(name: str, two_alike: bool) -> list[View]:
    """Return every order of three axes; of the last two, one order if they are alike."""
    return [
        View(f"{name}, axes {order}", _mover(order), _mover(tuple(np.argsort(order))))
        for order in permutations(range(3))
        if not two_alike or order.index(1) < order.index(2)
    ]


def _mover(order: tuple[int, ...]) -> Callable[[Array], Array]:
    return lambda array: array.transpose(order)


def _by_days(view: View, shape: tuple[int, ...], period: int) -> View:
    """Return the view of (days, times of day, columns); a short first day repeats its first row."""
    n_short = -shape[0] % period

    def arrange(x: Array) -> Array:
        longer = np.concatenate([np.repeat(x[:1], n_short, axis=0), x])
        return view.arrange(longer.reshape(-1, period, shape[1]))

    def restore(y: Array) -> Array:
        return view.restore(y).reshape(-1, shape[1])[n_short:]

    return View(view.name, arrange, restore)


def _triangles(n_nodes: int) -> list[View]:
    one, two = np.triu_indices(n_nodes, 1)
    n = len(one)

    def above(x: Array) -> Array:
        return x[:, one, two]

    def whole(y: Array) -> Array:
        x = np.zeros((len(y), n_nodes, n_nodes), y.dtype)
        x[:, one, two] = y
        x[:, two, one] = y
        return x

    return [
        View("triangle, slices x entries", above, whole),
        View("triangle, entries x slices", lambda x: above(x).T, lambda y: whole(y.T)),
        View(
            "triangle, slice after slice in one line",
            lambda x: above(x).ravel(),
            lambda y: whole(y.reshape(-1, n)),
        ),
        View(
            "triangle, entry after entry in one line",
            lambda x: above(x).T.ravel(),
            lambda y: whole(y.reshape(n, -1).T),
        ),
    ]
