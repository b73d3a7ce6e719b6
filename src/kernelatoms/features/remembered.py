"""What is computed of a fitted model for later calls, once for every fit."""

import weakref
from collections.abc import Callable
from typing import Any, TypeVar

from kernelatoms.engine import is_array, machine

Made = TypeVar("Made")

# Of every owner, by the function that made it: what it was made of, and what it made.
_REMEMBERED: weakref.WeakKeyDictionary[Any, dict[Any, tuple[Any, Any]]] = (
    weakref.WeakKeyDictionary()
)


def remember(owner: Any, make: Callable[..., Made], *made_of: Any) -> Made:
    """Return ``make(*made_of)``, computed once for an owner as long as ``made_of`` stays the same.

    ``make`` gets nothing else, and so must be a function of a module or a class: a closure could
    see what is not compared. Arrays count as the same by their bytes, so that an edit in place is
    noticed. What is remembered is no attribute of the owner: it is in no copy, pickle or file. A
    view of an estimator (``estimators.devices.tensors``) stands for the estimator.
    """
    key = tuple(
        (part.device, part.shape, part.dtype.str, machine(part).checksum(part))
        if is_array(part) else part
        for part in made_of
    )  # fmt: skip
    all_known = _REMEMBERED.setdefault(_original(owner), {})
    known = all_known.get(make)
    if known is None or not _same(known[0], key):
        known = all_known[make] = (key, make(*made_of))
    made: Made = known[1]
    return made


def forget(owner: Any) -> None:
    """Let all go that is remembered for an owner: a fit begins with nothing."""
    _REMEMBERED.pop(_original(owner), None)


def _original(owner: Any) -> Any:
    return getattr(owner, "_stands_for", owner)


def _same(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    """Whether two keys are equal; kernels that cannot be compared (by their arrays) are not."""
    try:
        return bool(one == other)
    except ValueError:
        return False
