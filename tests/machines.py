"""The machines of the engine, for contract suites that run over each of them.

A contract takes the fixture ``machine``. Its half on numpy arrays always runs; that on tensors runs
where torch is: on a card if there is one, else on tensors of the CPU in plain torch, or by Triton's
interpreter (TRITON_INTERPRET=1). ``-k on_numpy`` and ``-k on_tensors`` choose a half.
"""

import importlib.util
from functools import cache

import numpy as np
import pytest

from kernelatoms.engine import cpu, is_array, to_numpy


class NumpyMachine:
    """numpy arrays, on ``engine.cpu``; also all other names of that module."""

    name = "numpy"
    uses_triton = False

    def __getattr__(self, name):
        return getattr(cpu, name)

    def array(self, values):
        """Return the machine's array of a numpy array; None of None."""
        return None if values is None else np.asarray(values)

    def numpy(self, array):
        """Return a numpy array of the machine's array; None of None."""
        return None if array is None else to_numpy(array)

    def run(self, name, *values, **options):
        """Call a function with the machine's arrays of numpy arrays; return numpy arrays."""
        found = getattr(self, name)(*map(self._entered, values), **options)
        return tuple(map(self._left, found)) if isinstance(found, tuple) else self._left(found)

    def _entered(self, value):
        if isinstance(value, list):
            return [self._entered(part) for part in value]
        return self.array(value) if isinstance(value, np.ndarray) else value

    def _left(self, value):
        return self.numpy(value) if is_array(value) else value


class TensorMachine(NumpyMachine):
    """``DeviceArray``s, on ``engine.gpu``."""

    name = "tensors"

    def __init__(self):
        import torch

        from kernelatoms.engine import gpu

        self.torch, self.gpu = torch, gpu
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.uses_triton = gpu.work.compiles_for(torch.device(self.device))

    def __getattr__(self, name):
        return getattr(self.gpu, name)

    def array(self, values):
        if values is None:
            return None
        return self.gpu.DeviceArray(self.torch.from_numpy(np.array(values)).to(self.device))


NUMPY = NumpyMachine()


@cache
def tensor_machine():
    """Return the machine of tensors; skip the test where torch is missing."""
    if importlib.util.find_spec("torch") is None:
        pytest.skip("needs torch")
    return TensorMachine()


@pytest.fixture(params=["on_numpy", "on_tensors"], scope="session")
def machine(request):
    """Each machine in turn."""
    return NUMPY if request.param == "on_numpy" else tensor_machine()


def assert_near(found, expected, rtol):
    """Check numbers, shape and type of a numpy array; ``rtol`` is of the largest number."""
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    size = float(np.abs(expected[np.isfinite(expected)]).max(initial=0))
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol * size)
