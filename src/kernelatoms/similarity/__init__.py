"""Anything that compares rows.

- ``base``: ``Kernel``, what a kernel knows of itself and what is asked of it.
- ``gammas``: what gamma may be, and what "scale" and "spread" take from rows.
- ``inner``, ``decaying``: the kernels by name, one class each: of inner products and angles, and
  of distances; ``named``: their table ``KERNELS``.
- ``combined``: kernels made of kernels, each of columns of its own (``columns``, ``parts``);
  ``sums_products``: their sums, products, and kernels per channel of images.
- ``users``: functions and objects of users as kernels, precomputed values.
- ``given``: ``make_kernel``, which turns whatever ``kernel=`` may be into a ``Kernel``.
- ``distances``: ``Distance``, and those of vectors; ``images``: those of images, of ``textures``,
  ``tangents`` and ``shapes``; ``named_distances``: their table ``DISTANCES``, ``make_distance`` and
  the unified measure; ``distance_kernels``: kernels made of them.
- ``contrast``: whether a kernel sees anything in the training rows.
- ``gradients``: how kernel values change when a row moves.
- ``inversion``: how k(x, a) depends on x, where that helps to find an x.
- ``missing``: what the observed entries of a row tell of norms, inner products and distances.
"""

from kernelatoms.similarity.base import Kernel
from kernelatoms.similarity.columns import Channels
from kernelatoms.similarity.decaying import (
    AdditiveChi2Kernel,
    Chi2Kernel,
    LaplacianKernel,
    RBFKernel,
)
from kernelatoms.similarity.distance_kernels import CentredKernel, DistanceKernel
from kernelatoms.similarity.distances import (
    L1,
    L2,
    Chi2,
    Correlation,
    Distance,
    LInf,
    Mahalanobis,
)
from kernelatoms.similarity.factory import (
    KERNELS,
    as_anchors,
    kernel_from_path,
    make_kernel,
    names_of_kernels,
)
from kernelatoms.similarity.gradients import Slopes
from kernelatoms.similarity.images import LBPChi2, ShapeContext, Tangent
from kernelatoms.similarity.inner import CosineKernel, LinearKernel, PolynomialKernel, SigmoidKernel
from kernelatoms.similarity.named_distances import DISTANCES, Unified, make_distance
from kernelatoms.similarity.sums_products import ProductKernel, SumKernel, channel_kernel
from kernelatoms.similarity.user_kernels import PrecomputedKernel, UserKernel

#: The types that objects of this room are made of: model files may hold them.
OWN_TYPES: tuple[type, ...] = (
    *dict.fromkeys(KERNELS.values()),
    PrecomputedKernel,
    CentredKernel,
    DistanceKernel,
    SumKernel,
    ProductKernel,
    Channels,
    *DISTANCES.values(),
)

__all__ = [
    "DISTANCES",
    "KERNELS",
    "L1",
    "L2",
    "OWN_TYPES",
    "AdditiveChi2Kernel",
    "CentredKernel",
    "Channels",
    "Chi2",
    "Chi2Kernel",
    "Correlation",
    "CosineKernel",
    "Distance",
    "DistanceKernel",
    "Kernel",
    "LBPChi2",
    "LInf",
    "LaplacianKernel",
    "LinearKernel",
    "Mahalanobis",
    "PolynomialKernel",
    "PrecomputedKernel",
    "ProductKernel",
    "RBFKernel",
    "ShapeContext",
    "SigmoidKernel",
    "Slopes",
    "SumKernel",
    "Tangent",
    "Unified",
    "UserKernel",
    "as_anchors",
    "channel_kernel",
    "kernel_from_path",
    "make_distance",
    "make_kernel",
    "names_of_kernels",
]
