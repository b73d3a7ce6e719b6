"""Anything that compares rows.

- ``kernels``: a kernel by scikit-learn's name, a callable in matrix form, or ``"precomputed"``,
  behind one small contract (``Kernel``).
- ``gradients``: how a kernel by name changes when a row moves.
- ``missing``: estimates of kernel values from the observed entries of rows.
"""

from kernelatoms.similarity.kernels import (
    CallableKernel,
    Kernel,
    NamedKernel,
    PrecomputedKernel,
    as_anchors,
    kernel_from_path,
    make_kernel,
)

__all__ = [
    "CallableKernel",
    "Kernel",
    "NamedKernel",
    "PrecomputedKernel",
    "as_anchors",
    "kernel_from_path",
    "make_kernel",
]
