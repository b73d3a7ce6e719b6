"""Sums and products of kernels, and kernels per channel of images.

See docs/decisions/036-kscdl-steps.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from kernelatoms.engine import Array
from kernelatoms.similarity.base import Kernel, check_number, check_whole
from kernelatoms.similarity.columns import Channels, Part
from kernelatoms.similarity.combined import CombinedKernel


@dataclass(frozen=True, eq=False)
class SumKernel(CombinedKernel):
    """k(x, y) = sum_i w_i k_i(x_i, y_i), where x_i are the columns of x that kernel i sees.

    Rows are similar if they are so in some of the parts: one that differs takes only its share.

    Parameters
    ----------
    parts : sequence of (kernel, columns) pairs
        Kernels as ``make_kernel`` takes them (a name, an object, a function; not "precomputed"),
        and the columns that each sees: a slice, a list of column numbers, or ``Channels`` of
        images. A kernel alone sees all columns. Parts may overlap, and need not see all columns.
    weights : sequence of float, optional
        From 0, one per part; None is 1 each. A part of weight 0 is left out.

    Notes
    -----
    Every part has its own gamma; "scale" and the like are taken from its own columns of the
    training rows, and models keep the numbers in ``fitted_kernel_``. A part by name has "scale"
    in an estimator. The ``gamma`` of an estimator is for its own kernel by name, and not for this.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelatoms.similarity import RBFKernel, SumKernel
    >>> kernel = SumKernel([("linear", [0, 1]), (RBFKernel(1.0), slice(2, 4))], weights=[1, 0.5])
    >>> x, y = np.array([[1.0, 2.0, 0.0, 0.0]]), np.array([[3.0, 4.0, 1.0, 0.0]])
    >>> kernel(x, y).round(3)  # 3 + 8 + exp(-1) / 2
    array([[11.184]])
    >>> kernel.semidefinite
    True
    """

    parts: Any
    weights: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.weights is not None:
            object.__setattr__(self, "weights", _checked_weights(self.weights, len(self.parts)))

    def combine(self, values: Sequence[Array]) -> Array:
        """Return the weighted sum."""
        weights = self._used_weights
        total = values[0] * weights[0]
        for own, weight in zip(values[1:], weights[1:], strict=True):
            total += own * weight
        return total

    def factors(self, values: Sequence[Array]) -> Sequence[Any]:
        """Return the weights."""
        return self._used_weights

    @property
    def used(self) -> list[Part]:
        """The parts whose weight is not 0."""
        return [part for part in super().used if self._all_weights[part.place] > 0]

    def exact_preimage(self, weights: Any, rows: Array) -> Array | None:
        """Return the parts' own and sums of unseen columns, if all have one and none overlap."""
        sees = self._sees(rows.shape[1])
        if (sees.sum(axis=0) > 1).any():
            return None
        preimage = np.asarray(weights @ rows)
        for part in self.used:
            own = part.kernel.exact_preimage(weights, part.rows(rows))
            if own is None:
                return None
            preimage[:, part.index(rows.shape[1])] = own
        return preimage

    def _one_of_all(self, n_features: int) -> Kernel | None:
        # Half of a Gaussian is none: all of its vectors have norm 1.
        return super()._one_of_all(n_features) if self._used_weights[0] == 1 else None

    def _of_used(self, parts: list[Any]) -> Kernel:
        return SumKernel(parts, self._used_weights)

    def _key(self) -> tuple[Any, ...]:
        return (*super()._key(), self._all_weights)

    @property
    def _all_weights(self) -> tuple[float, ...]:
        return (1.0,) * len(self.parts) if self.weights is None else self.weights

    @property
    def _used_weights(self) -> tuple[float, ...]:
        return tuple(weight for weight in self._all_weights if weight > 0)


@dataclass(frozen=True, eq=False)
class ProductKernel(CombinedKernel):
    """k(x, y) = prod_i k_i(x_i, y_i), where x_i are the columns of x that kernel i sees.

    Rows are alike if they are in all of the parts. A product of RBF kernels is the RBF kernel of
    rows whose columns are scaled, each part's by the root of its gamma.

    Parameters
    ----------
    parts : sequence of (kernel, columns) pairs
        As in ``SumKernel``; every part has its own gamma.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelatoms.similarity import ProductKernel, RBFKernel
    >>> kernel = ProductKernel([(RBFKernel(1.0), [0]), (RBFKernel(0.1), [1])])
    >>> x, y = np.array([[0.0, 0.0]]), np.array([[1.0, 10.0]])
    >>> bool(np.isclose(kernel(x, y)[0, 0], np.exp(-(1 * 1 + 0.1 * 100))))
    True
    """

    parts: Any

    def combine(self, values: Sequence[Array]) -> Array:
        """Return the product."""
        total = values[0].copy()
        for own in values[1:]:
            total *= own
        return total

    def factors(self, values: Sequence[Array]) -> Sequence[Any]:
        """Return the products of all other parts."""
        one: Any = 1.0
        before = accumulate(values[:-1], np.multiply, initial=one)
        after = list(accumulate(values[:0:-1], np.multiply, initial=one))[::-1]
        return [ours * others for ours, others in zip(before, after, strict=True)]


def channel_kernel(
    kernel: Any,
    n_channels: int,
    *,
    by: str = "sum",
    weights: Any = None,
    channels_first: bool = False,
) -> CombinedKernel:
    """Return a kernel per channel of images, combined into one.

    Parameters
    ----------
    kernel : str, callable, object, or list of them
        One kernel for all channels, or a list of one each; as ``make_kernel`` takes them.
        By name, or as ``RBFKernel("scale")``, every channel gets the gamma that fits its own
        values.
    n_channels : int
        How many channels images have; the length of rows must be a multiple of it.
    by : {"sum", "product"}
        How channels come together.
    weights : sequence of float, optional
        For the sum: from 0, one per channel.
    channels_first : bool
        False: rows are flattened arrays (height, width, n_channels), as image readers give them.
        True: they are planes, one after another: (n_channels, height, width).

    Returns
    -------
    SumKernel or ProductKernel

    Examples
    --------
    >>> import numpy as np
    >>> from kernelatoms import KernelLinearizer
    >>> from kernelatoms.similarity import RBFKernel, channel_kernel
    >>> images = np.random.default_rng(0).random((20, 5, 5, 4)) * [1, 1, 1, 1000]
    >>> kernel = channel_kernel(RBFKernel("scale"), 4)
    >>> linearizer = KernelLinearizer(kernel).fit(images.reshape(20, -1))
    >>> [f"{part.gamma:.0e}" for part, _ in linearizer.fitted_kernel_.parts]
    ['5e-01', '5e-01', '5e-01', '5e-07']
    """
    check_whole("n_channels", n_channels, 1)
    several = isinstance(kernel, list | tuple)
    kernels = list(kernel) if several else [kernel] * n_channels
    if len(kernels) != n_channels:
        raise ValueError(
            f"kernel must be one kernel, or a list of n_channels={n_channels}, got {len(kernels)}."
        )
    parts = [
        (own, Channels(number, n_channels, channels_first)) for number, own in enumerate(kernels)
    ]
    if by == "sum":
        return SumKernel(parts, weights)
    if by != "product":
        raise ValueError(f"by must be 'sum' or 'product', got {by!r}.")
    if weights is not None:
        raise ValueError("weights are for by='sum': a factor changes nothing in a product.")
    return ProductKernel(parts)


def _checked_weights(weights: Any, n_parts: int) -> tuple[float, ...]:
    """Return the weights of a sum."""
    listed = list(weights) if isinstance(weights, list | tuple | np.ndarray) else None
    if listed is None or len(listed) != n_parts:
        got = f"{weights!r}" if listed is None else f"{len(listed)} of them"
        raise ValueError(f"weights must be {n_parts} numbers, one per part, or None; got {got}.")
    for i, weight in enumerate(listed):
        check_number(f"weights[{i}]", weight)
        if weight < 0:
            raise ValueError(f"weights[{i}] must be a number from 0, got {weight!r}.")
    if not any(listed):
        raise ValueError("weights must not all be 0.")
    return tuple(map(float, listed))
