"""Hot loops: arrays in, arrays out; no estimators, no scikit-learn.

Layout, buffers, blocks and threads are known here alone. A machine is a sub-package with the
functions that its ``__init__`` lists; ``machine(array)`` returns that of an array, and code above
the engine does not depend on which one it is.

- ``cpu``: numpy arrays; compiled by numba, on one thread pool.
- ``gpu``: ``DeviceArray``s, tensors with numpy's API; by torch and Triton. It is imported when the
  first tensor arrives.

``greedy_limits`` is for both: what counts as rounding in greedy pursuits.

See docs/decisions/008-device-arrays.md.
"""

import sys
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.engine import cpu

#: An array of numbers, of any machine.
Array = NDArray[Any]


def machine(array: Any) -> ModuleType:
    """Return the machine of an array: a module of functions over such arrays."""
    if isinstance(array, np.ndarray):
        return cpu
    if is_device_array(array):
        return sys.modules["kernelatoms.engine.gpu"]
    raise TypeError(
        f"There is no machine for arrays of type {type(array).__name__}. (A model of tensors "
        "becomes one of numpy arrays by kernelatoms.to_device(model, 'cpu').)"
    )


def is_array(value: Any) -> bool:
    """Whether a value is an array of numbers of any machine."""
    return isinstance(value, np.ndarray) or is_device_array(value)


def is_device_array(value: Any) -> bool:
    """Whether a value is an array of a device, dense or in compressed rows."""
    gpu: Any = sys.modules.get("kernelatoms.engine.gpu")
    return gpu is not None and isinstance(value, gpu.DeviceArray | gpu.DeviceCSR)


def call_user(function: Any, *arrays: Any, **options: Any) -> Any:
    """Call a user's function with numpy arrays, or with tensors for arrays of a device."""
    if is_device_array(arrays[0]):
        return machine(arrays[0]).call_user(function, *arrays, **options)
    return function(*arrays, **options)


def to_numpy(array: Any) -> Any:
    """Return an array as a numpy array: itself, or a copy from the device."""
    return array if isinstance(array, np.ndarray) else machine(array).to_numpy(array)
