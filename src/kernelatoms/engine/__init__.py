"""Hot loops: arrays in, arrays out; no classes, no scikit-learn.

Everything that knows where numbers live is here: layout, buffers, blocks and threads. A machine is
a sub-package with the functions that its ``__init__`` lists; ``machine(array)`` returns the one
where an array lives, and nothing above the engine asks which that is.

- ``cpu``: numpy arrays; compiled by numba, on one thread pool.

A second machine (``gpu``, for tensors) is a sub-package beside ``cpu`` with the same names, and a
line in ``machine``.
"""

from types import ModuleType
from typing import Any

import numpy as np

from kernelatoms.engine import cpu


def machine(array: Any) -> ModuleType:
    """Return the machine where an array lives: a module of functions over such arrays."""
    if isinstance(array, np.ndarray):
        return cpu
    raise TypeError(f"There is no machine for arrays of type {type(array).__name__}.")
