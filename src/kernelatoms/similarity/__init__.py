"""Anything that compares rows.

- ``base``: ``Kernel``, what a kernel knows of itself and what is asked of it.
- ``named``: the kernels by name, one class each, and their table ``KERNELS``.
- ``given``: functions, objects and classes of users, precomputed values; ``make_kernel``, which
  turns whatever ``kernel=`` may be into a ``Kernel``.
- ``gradients``: how kernel values change when a row moves.
- ``inversion``: how k(x, a) depends on x, where that helps to find an x.
- ``missing``: what the observed entries of a row tell of norms, inner products and distances.
"""

from kernelatoms.similarity.base import Kernel
from kernelatoms.similarity.given import (
    PrecomputedKernel,
    UserKernel,
    as_anchors,
    kernel_from_path,
    make_kernel,
    names_of_kernels,
)
from kernelatoms.similarity.gradients import Slopes
from kernelatoms.similarity.named import (
    KERNELS,
    AdditiveChi2Kernel,
    Chi2Kernel,
    CosineKernel,
    LaplacianKernel,
    LinearKernel,
    PolynomialKernel,
    RBFKernel,
    SigmoidKernel,
)

__all__ = [
    "KERNELS",
    "AdditiveChi2Kernel",
    "Chi2Kernel",
    "CosineKernel",
    "Kernel",
    "LaplacianKernel",
    "LinearKernel",
    "PolynomialKernel",
    "PrecomputedKernel",
    "RBFKernel",
    "SigmoidKernel",
    "Slopes",
    "UserKernel",
    "as_anchors",
    "kernel_from_path",
    "make_kernel",
    "names_of_kernels",
]
