"""States of learning as a tree of plain values beside a list of arrays, and back: for files.

A tree is made of None, booleans, numbers, texts, lists and dicts, as JSON has them. What is none of
these is a dict with one key that says what it is: an array is ``{"array": i}``, the i-th of the
list; one that a state holds twice is in the list once, and is one array again afterwards.

See docs/decisions/060-checkpoints.md.
"""

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import scipy.sparse

from kernelatoms.engine import Array, is_array, to_numpy
from kernelatoms.learning.moments import Moments
from kernelatoms.learning.state import CoupledState, LearnerState

#: The types of objects that trees may hold.
_KINDS = {kind.__name__: kind for kind in (LearnerState, CoupledState, Moments)}

_WORDS = 624  # of the state of a Mersenne Twister


class StateWriter:
    """Make trees of states; ``arrays`` are those that the trees name."""

    def __init__(self) -> None:
        self.arrays: list[Array] = []
        self._known: dict[int, tuple[Any, int]] = {}  # the array keeps its id from being used again

    def tree(self, value: Any) -> Any:
        """Return the tree of a value."""
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if is_array(value):
            return {"array": self._number(value)}
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, tuple):
            return {"tuple": [self.tree(part) for part in value]}
        if isinstance(value, list):
            if all(type(part) is float for part in value):
                return {"floats": self._number(np.array(value, np.float64))}
            return [self.tree(part) for part in value]
        if isinstance(value, np.random.RandomState):
            name, words, *place_and_gauss = value.get_state()
            return {"random_state": [name, self.tree(np.array(words)), *place_and_gauss]}
        if scipy.sparse.issparse(value) and value.format == "csr":
            kept = [self.tree(part) for part in (value.data, value.indices, value.indptr)]
            return {"csr": [*kept, list(value.shape)]}
        kind = type(value).__name__
        if is_dataclass(value) and _KINDS.get(kind) is type(value):
            held = {field.name: self.tree(getattr(value, field.name)) for field in fields(value)}
            return {kind: held}
        raise TypeError(
            f"A checkpoint cannot hold a {kind}: what learning adds up over rows must be Moments, "
            "arrays or numbers."
        )

    def _number(self, array: Any) -> int:
        if id(array) not in self._known:
            self._known[id(array)] = array, len(self.arrays)
            self.arrays.append(to_numpy(array))
        return self._known[id(array)][1]


def from_tree(tree: Any, arrays: list[Array]) -> Any:
    """Return the value of a tree; of one that is none, raise ValueError or another exception."""
    if isinstance(tree, list):
        return [from_tree(part, arrays) for part in tree]
    if not isinstance(tree, dict):
        return tree
    ((what, held),) = tree.items()
    if what == "array":
        return arrays[_index(held, arrays)]
    if what == "floats":
        values = arrays[_index(held, arrays)]
        if values.dtype != np.float64 or values.ndim != 1:
            raise ValueError("a list of numbers is none")
        return values.tolist()
    if what == "tuple":
        return tuple(from_tree(part, arrays) for part in held)
    if what == "random_state":
        return _random_state(*(from_tree(part, arrays) for part in held))
    if what == "csr":
        *parts, shape = held
        data, indices, indptr = (from_tree(part, arrays) for part in parts)
        made = scipy.sparse.csr_array((data, indices, indptr), shape=tuple(shape))
        made.check_format(full_check=True)
        return made
    kind = _KINDS[what]
    if set(held) != {field.name for field in fields(kind)}:
        raise ValueError(f"a {what} has other fields")
    return kind(**{name: from_tree(part, arrays) for name, part in held.items()})


def _index(number: Any, arrays: list[Array]) -> int:
    if type(number) is not int or not 0 <= number < len(arrays):
        raise ValueError(f"there is no array {number!r}")
    return number


def _random_state(name: Any, words: Any, place: Any, *gauss: Any) -> np.random.RandomState:
    # numpy looks at neither the place nor the number of words.
    right = name == "MT19937" and words.dtype == np.uint32 and words.shape == (_WORDS,)
    if not right or type(place) is not int or not 0 <= place <= _WORDS:
        raise ValueError("a RandomState is none")
    made = np.random.RandomState(0)
    made.set_state((name, words, place, int(gauss[0]), float(gauss[1])))
    return made
