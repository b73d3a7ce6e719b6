"""Distances of rows, and kernels made of them.

A distance describes rows once (``describe(rows) -> descriptors``, for images say gradients or
windows) and compares descriptors (``compare(A, B) -> (n, m)``), so that many rows can be compared
with the same ones without describing these again. ``DistanceKernel`` turns any of them into
exp(-gamma d^power). The table ``DISTANCES`` is the only list of names.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.similarity.base import Kernel, check_gamma, check_number, check_values
from kernelatoms.similarity.decaying import chi2_sums, squared_distances

Array = NDArray[Any]


class Distance:
    """How far rows are from each other. Subclasses write ``compare``, and ``describe`` if need be.

    Attributes
    ----------
    non_negative : bool
        Whether it is defined on rows without negative values only.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelatoms.similarity import make_distance
    >>> l2 = make_distance("l2")
    >>> l2.compare(l2.describe(np.zeros((1, 2))), l2.describe(np.array([[3.0, 4.0]])))
    array([[5.]])
    """

    non_negative: bool = False

    def describe(self, rows: Array) -> Any:
        """Return descriptors of rows (n, n_features), an array of length n: the rows themselves."""
        return rows

    def compare(self, A: Any, B: Any) -> Array:
        """Return the distances of all descriptors in A (n, ...) and B (m, ...): (n, m), from 0."""
        raise NotImplementedError(f"{type(self).__name__} must define compare(A, B).")


@dataclass(frozen=True)
class L2(Distance):
    """The Euclidean distance, |a - b|."""

    def compare(self, A: Array, B: Array) -> Array:
        """Return |a - b| for all pairs: (n, m)."""
        return np.sqrt(squared_distances(A, B))


@dataclass(frozen=True)
class Chi2(Distance):
    """Half of sum_i (a_i - b_i)^2 / (a_i + b_i), 0/0 = 0: for rows without negative values."""

    non_negative = True

    def compare(self, A: Array, B: Array) -> Array:
        """Return the distances of all pairs: (n, m)."""
        return 0.5 * chi2_sums(A, B)


DISTANCES: dict[str, type[Distance]] = {"chi2": Chi2, "l2": L2}


def make_distance(distance: Any) -> Any:
    """Return a distance, by name or as it is.

    Parameters
    ----------
    distance : str or object
        A name in ``DISTANCES``, or an object with ``describe(rows)`` and ``compare(A, B)``.

    Returns
    -------
    Distance
    """
    if isinstance(distance, str) and distance in DISTANCES:
        return DISTANCES[distance]()
    methods = (getattr(distance, name, None) for name in ("describe", "compare"))
    if not isinstance(distance, str | type) and all(callable(method) for method in methods):
        return distance
    names = ", ".join(repr(name) for name in DISTANCES)
    raise ValueError(
        f"distance must be one of {names}, or an object with describe(rows) and compare(A, B), "
        f"got {distance!r}."
    )


@dataclass(frozen=True)
class DistanceKernel(Kernel):
    """k(x, y) = exp(-gamma d(x, y)^power): a kernel made of a distance.

    Whether it is positive semi-definite depends on the distance (it is for "l2" up to power 2, and
    for "chi2" at power 1), so it is checked where it matters.

    Parameters
    ----------
    distance : str or object
        A name in ``DISTANCES``, or an object with ``describe(rows)`` and ``compare(A, B)``.
    gamma : float, "scale", "auto" or None
        None is 0.5.
    power : float
        Above 0.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelatoms.similarity import DistanceKernel
    >>> DistanceKernel("l2", gamma=0.5)(np.zeros((1, 1)), np.array([[0.0], [2.0]])).round(3)
    array([[1.   , 0.135]])
    """

    distance: Any = "l2"
    gamma: float | str | None = 0.5
    power: float = 2
    bounded = True

    def __post_init__(self) -> None:
        """Check the parameters."""
        make_distance(self.distance)
        check_gamma(self.gamma)
        check_number("power", self.power)
        if not self.power > 0:
            raise ValueError(f"power must be above 0, got {self.power!r}.")

    @property
    def name(self) -> str:
        """The kernel, of its distance."""
        own = self.distance if isinstance(self.distance, str) else type(self.distance).__name__
        return f"DistanceKernel({own})"

    @property
    def non_negative(self) -> bool:  # type: ignore[override]
        """Whether the distance is defined on rows without negative values only."""
        return bool(getattr(make_distance(self.distance), "non_negative", False))

    def values(self, X: Array, Y: Array) -> Array:
        """Return k(x, y) for all pairs of rows (n, n_features) and (m, n_features)."""
        powers = self._powers(X, Y)
        powers *= -self.gamma_for(X.shape[1])
        return np.exp(powers, out=powers)

    def _diag(self, X: Array) -> Array:
        return np.ones(X.shape[:-1], X.dtype)

    def default_gamma(self, n_features: int) -> float:
        """Return 0.5, whatever the features."""
        return 0.5

    def what_gamma_multiplies(self, X: Array, Y: Array) -> Array:
        """Return d^power, row by row."""
        pairs = (self._powers(X[i : i + 1], Y[i : i + 1]) for i in range(len(X)))
        return np.array([float(pair[0, 0]) for pair in pairs])

    def _powers(self, X: Array, Y: Array) -> Array:
        """Return d^power in float64."""
        distance = make_distance(self.distance)
        far = distance.compare(distance.describe(X), distance.describe(Y))
        far = check_values(far, (len(X), len(Y)), f"the distance of {self.name}")
        if far.min(initial=0) < 0:
            raise ValueError(f"the distance of {self.name} is negative: {far.min():.3g}.")
        return far.astype(np.float64) ** self.power
