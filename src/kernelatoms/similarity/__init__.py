"""Kernels and distances: anything that compares rows.

- ``base``: ``Kernel``, the base class: values, and whatever else a kernel knows about itself.
- ``gammas``: the values that gamma may have, and what "scale" and "spread" take from rows.
- ``inner``, ``decaying``: the kernels by name, one class each: of inner products and angles, and
  of distances.
- ``combined``: kernels made of kernels, each of its own ``columns``; ``sums_products``: their sums,
  products, and kernels per channel of images.
- ``user_kernels``: functions and objects of users as kernels, precomputed values.
- ``factory``: the table ``KERNELS``; ``make_kernel``, which turns whatever ``kernel=`` may be into
  a ``Kernel``.
- ``distances``: ``Distance``, and those of vectors; ``images``: those of images;
  ``named_distances``: the table ``DISTANCES``, ``make_distance`` and the unified measure;
  ``distance_kernels``: kernels made of them.
- ``contrast``: a check that kernel values of training rows differ.
- ``gradients``: how kernel values change when a row moves, and how to find a row from them.
- ``missing``: norms, inner products and distances estimated from the observed entries of a row.
"""

from kernelatoms.similarity.base import Kernel
from kernelatoms.similarity.columns import Channels
from kernelatoms.similarity.decaying import RBFKernel
from kernelatoms.similarity.distance_kernels import CentredKernel, DistanceKernel
from kernelatoms.similarity.distances import Distance
from kernelatoms.similarity.factory import KERNELS, kernel_from_path, make_kernel
from kernelatoms.similarity.gradients import Slopes
from kernelatoms.similarity.named_distances import DISTANCES, make_distance
from kernelatoms.similarity.sums_products import ProductKernel, SumKernel, channel_kernel
from kernelatoms.similarity.user_kernels import PrecomputedKernel

#: The types of this room's objects: model files may hold them.
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
    "CentredKernel",
    "Channels",
    "Distance",
    "DistanceKernel",
    "Kernel",
    "ProductKernel",
    "RBFKernel",
    "Slopes",
    "SumKernel",
    "channel_kernel",
    "kernel_from_path",
    "make_distance",
    "make_kernel",
]
