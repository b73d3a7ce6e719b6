"""What a device holds of models of the host, so that calls after the first bring nothing."""

import weakref
from collections.abc import Callable
from typing import Any

from kernelatoms.engine.cpu import checksum


class StandIn:
    """Whom views of one model stand for: what is remembered for them goes with it."""


class Brought:
    """Arrays of models on a device, as long as the arrays of the host that they copy.

    Arrays count as the same by their bytes, so that a model fitted anew or edited in place is
    brought again. Methods that leave a model as it is may share them.
    """

    def __init__(self) -> None:
        self._arrays: dict[int, tuple[Any, Any, Any]] = {}
        self._stand_ins: weakref.WeakKeyDictionary[Any, StandIn] = weakref.WeakKeyDictionary()

    def array(self, array: Any, device: Any, bring: Callable[[Any], Any]) -> Any:
        """Return ``bring(array)``, the array on a device: as it was brought before, if it was."""
        name = id(array)
        key = (device, array.shape, array.dtype.str, checksum(array))
        _, known, there = self._arrays.get(name, (None, None, None))
        if known != key:
            there = bring(array)
            ending = weakref.ref(array, lambda _: self._arrays.pop(name, None))
            self._arrays[name] = (ending, key, there)
        return there

    def stand_in(self, model: Any) -> StandIn:
        """Return what all views of a model stand for."""
        return self._stand_ins.setdefault(model, StandIn())

    @property
    def n_bytes(self) -> int:
        """How much memory the arrays take on their device."""
        return sum(there.nbytes for _, _, there in list(self._arrays.values()))

    def forget(self) -> None:
        """Let all of it go."""
        self._arrays.clear()
        self._stand_ins.clear()
