"""Anything that compares rows.

- ``base``: ``Kernel``, what a kernel knows of itself and what is asked of it.
- ``inner``, ``decaying``: the kernels by name, one class each: of inner products and angles, and
  of distances; ``named``: their table ``KERNELS``.
- ``users``: functions and objects of users as kernels, precomputed values.
- ``given``: ``make_kernel``, which turns whatever ``kernel=`` may be into a ``Kernel``.
- ``distances``: distances of rows, their table ``DISTANCES``, and kernels made of them.
- ``gradients``: how kernel values change when a row moves.
- ``inversion``: how k(x, a) depends on x, where that helps to find an x.
- ``missing``: what the observed entries of a row tell of norms, inner products and distances.
"""

from kernelatoms.similarity.base import Kernel
from kernelatoms.similarity.decaying import (
    AdditiveChi2Kernel,
    Chi2Kernel,
    LaplacianKernel,
    RBFKernel,
)
from kernelatoms.similarity.distances import (
    DISTANCES,
    L2,
    Chi2,
    Distance,
    DistanceKernel,
    make_distance,
)
from kernelatoms.similarity.given import (
    as_anchors,
    kernel_from_path,
    make_kernel,
)
from kernelatoms.similarity.gradients import Slopes
from kernelatoms.similarity.inner import CosineKernel, LinearKernel, PolynomialKernel, SigmoidKernel
from kernelatoms.similarity.named import KERNELS, names_of_kernels
from kernelatoms.similarity.users import PrecomputedKernel, UserKernel

#: The types that objects of this room are made of: model files may hold them.
OWN_TYPES: tuple[type, ...] = (
    *dict.fromkeys(KERNELS.values()),
    PrecomputedKernel,
    DistanceKernel,
    *DISTANCES.values(),
)

__all__ = [
    "DISTANCES",
    "KERNELS",
    "L2",
    "OWN_TYPES",
    "AdditiveChi2Kernel",
    "Chi2",
    "Chi2Kernel",
    "CosineKernel",
    "Distance",
    "DistanceKernel",
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
    "make_distance",
    "make_kernel",
    "names_of_kernels",
]
