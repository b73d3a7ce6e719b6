"""Kernels made of distances: exp(-gamma d^power), and inner products that the distance implies."""

import dataclasses
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from kernelatoms.engine import Array
from kernelatoms.similarity.base import Kernel, attribute_of, check_number, check_values
from kernelatoms.similarity.distances import Distance, UserDistance, mean_of_pairs
from kernelatoms.similarity.gammas import check_gamma, gamma_by_mean
from kernelatoms.similarity.inner import in_float64
from kernelatoms.similarity.named_distances import make_distance, name_of


@dataclass(frozen=True)
class KernelOfDistance(Kernel):
    """The base of kernels made of a distance; subclasses define ``of_descriptors``."""

    distance: Any = "l2"
    _own = True

    def __post_init__(self) -> None:
        make_distance(self.distance)
        check_number("power", self.power, above=0)  # type: ignore[attr-defined]

    @property
    def name(self) -> str:
        """The kernel, of its distance."""
        return f"{type(self).__name__}({name_of(self.distance)})"

    # Those of the distance.
    non_negative = attribute_of("_distance", "non_negative", False)
    takes_stacks = attribute_of("_distance", "takes_stacks", False)

    @property
    def semidefinite(self) -> bool | None:  # type: ignore[override]
        """True where the distance knows that -d^power is conditionally positive definite."""
        power: float = self.power  # type: ignore[attr-defined]
        return True if power <= self._distance.semidefinite_to else None

    @property
    def _distance(self) -> Distance:
        return make_distance(self.distance)

    def fitted_to(self, rows: Array) -> Self:
        """Return the kernel with what its distance takes from training rows (n, n_features)."""
        before = self._distance
        after = before.fitted_to(rows)
        if after is before:
            return self
        own = after.given if isinstance(after, UserDistance) else after
        return dataclasses.replace(self, distance=own)

    def featurize(self, rows: Array) -> Any:
        """Return descriptors of rows (..., n_features), which ``for_features`` compares."""
        flat = rows.reshape(-1, rows.shape[-1])
        descriptors = np.asarray(self._distance.featurize(flat))
        if len(descriptors) != len(flat):
            raise ValueError(
                f"{self.name} must featurize {len(flat)} rows as an array of as many entries, and "
                f"it has {len(descriptors)}."
            )
        return descriptors.reshape(*rows.shape[:-1], *descriptors.shape[1:])

    def for_features(self, n_features: int) -> "FeatureKernel":
        """Return the same kernel of descriptors."""
        return FeatureKernel(self)

    def values(self, X: Array, Y: Array) -> Array:
        """Return k(x, y) for all pairs of rows (n, n_features) and (m, n_features)."""
        bound = self._for_features(X.shape[-1])
        A = bound.featurize(X)
        return bound.of_descriptors(A, A if X is Y else bound.featurize(Y))

    def of_descriptors(self, A: Any, B: Any) -> Array:
        """Return k(x, y) for all pairs of descriptors."""
        raise NotImplementedError

    def diag_of_descriptors(self, A: Any) -> Array:
        """Return k(x, x) for all descriptors."""
        raise NotImplementedError

    def _for_features(self, n_features: int) -> Self:
        """Return the kernel for rows with ``n_features`` features."""
        return self

    def _powers(self, A: Any, B: Any) -> Array:
        """Return d^power in float64, checked."""
        distance, shape = self._distance, (len(A), len(B))
        if distance.takes_stacks:
            heads = np.broadcast_shapes(A.shape[:-2], B.shape[:-2])
            shape = (*heads, A.shape[-2], B.shape[-2])
        far = check_values(distance.compare(A, B), shape, f"the distance of {self.name}")
        if far.min(initial=0) < 0:
            raise ValueError(f"the distance of {self.name} is negative: {far.min():.3g}.")
        power: float = self.power  # type: ignore[attr-defined]
        return in_float64(far) ** power


@dataclass(frozen=True)
class DistanceKernel(KernelOfDistance):
    """k(x, y) = exp(-gamma d(x, y)^power): a kernel made of a distance.

    Whether it is positive semi-definite depends on the distance (it is for "l2" up to power 2, and
    for "l1" and "chi2" up to 1), so it is checked where it matters and is not known.

    Parameters
    ----------
    distance : str or object
        A name in ``DISTANCES``, or an object with ``featurize(rows)`` and ``compare(A, B)``.
    gamma : float, "scale", "auto", "spread" or None
        None is 0.5; "scale" is 1 over the mean of d^power between different training rows, of at
        most 256 evenly spaced ones; "auto" is 1 / n_features.
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
        super().__post_init__()
        check_gamma(self.gamma)

    def with_gamma_from(self, X: Array) -> Self:
        """Return the kernel fitted to rows X (n, n_features), its gamma a number."""
        return Kernel.with_gamma_from(self.fitted_to(X), X)

    def scale_gamma(self, X: Array) -> float:
        """Return 1 over the mean of d^power between different rows of X."""
        return gamma_by_mean(self._mean_size(X))

    def _mean_size(self, X: Array) -> float:
        return mean_of_pairs(self._distance, X, self.power)

    def default_gamma(self, n_features: int) -> float:
        """Return 0.5, whatever the features."""
        return 0.5

    def of_descriptors(self, A: Any, B: Any) -> Array:
        """Return k(x, y) for all pairs of descriptors."""
        powers = self._powers(A, B)
        powers *= -self.gamma_for(0)
        return np.exp(powers, out=powers)

    def diag_of_descriptors(self, A: Any) -> Array:
        """Return 1 for every descriptor."""
        return np.ones(A.shape[:-1] if self.takes_stacks else len(A))

    def for_features(self, n_features: int) -> "FeatureKernel":
        """Return the same kernel of descriptors; its gamma must be a number."""
        if isinstance(self.gamma, str):
            raise ValueError(
                f"gamma={self.gamma!r} is taken from rows, not from descriptors: "
                "kernel.with_gamma_from(X) does so."
            )
        return super().for_features(n_features)

    def what_gamma_multiplies(self, X: Array, Y: Array) -> Array:
        """Return d^power, row by row."""
        A, B = self.featurize(X), self.featurize(Y)
        if self.takes_stacks:
            return self._powers(A[:, None], B[:, None])[:, 0, 0]
        return np.array([self._powers(A[[i]], B[[i]])[0, 0] for i in range(len(A))])

    def _for_features(self, n_features: int) -> Self:
        return self.with_gamma(self.gamma_for(n_features))

    def _diag(self, X: Array) -> Array:
        return np.ones(X.shape[:-1], X.dtype)


@dataclass(frozen=True)
class FeatureKernel(Kernel):
    """A kernel made of a distance (``kernel``), of descriptors instead of rows."""

    kernel: KernelOfDistance
    _own = True

    @property
    def name(self) -> str:
        """The name of the kernel of rows."""
        return self.kernel.name

    semidefinite = attribute_of("kernel", "semidefinite", None)
    bounded = attribute_of("kernel", "bounded", False)
    takes_stacks = attribute_of("kernel", "takes_stacks", False)

    def values(self, X: Array, Y: Array) -> Array:
        """Return k(x, y) for all pairs of descriptors."""
        return self.kernel.of_descriptors(X, Y)

    def _diag(self, X: Array) -> Array:
        return self.kernel.diag_of_descriptors(X).astype(X.dtype, copy=False)

    def _checked(self, X: Array, Y: Array) -> Array:
        return self.values(X, Y).astype(X.dtype, copy=False)  # distances are checked


@dataclass(frozen=True, eq=False)
class CentredKernel(KernelOfDistance):
    """k(x, y) = (d(x, o)^p + d(y, o)^p - d(x, y)^p) / 2: the inner products that d^p implies.

    If d^p was a squared Euclidean distance, these were the inner products with o as the origin:
    "l2" at power 2 gives x'y. Positive semi-definite for the powers for which exp(-gamma d^p) is,
    checked where that is not known. Eq. (5) of Liu et al. (2015).

    Parameters
    ----------
    distance : str or object
        A name in ``DISTANCES``, or an object with ``featurize(rows)`` and ``compare(A, B)``.
    power : float
        p, above 0.
    origin : array of shape (n_features,), optional
        The row o; None is the zero row.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelatoms.similarity import CentredKernel
    >>> CentredKernel("l2")(np.array([[1.0, 2.0]]), np.array([[3.0, 1.0]])).round(12)
    array([[5.]])
    """

    distance: Any = "l2"
    power: float = 2
    origin: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.origin is None:
            return
        origin = np.asarray(self.origin)
        if origin.ndim != 1 or origin.dtype.kind not in "fiu" or not np.isfinite(origin).all():
            raise ValueError("origin must be a row of finite numbers (n_features,), or None.")
        object.__setattr__(self, "origin", origin.astype(np.float64))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CentredKernel):
            return NotImplemented
        same = (self.distance, self.power) == (other.distance, other.power)
        return same and np.array_equal(self.origin, other.origin)

    def __hash__(self) -> int:
        return hash((CentredKernel, self.distance, self.power))

    def with_gamma_from(self, X: Array) -> Self:
        """Return the kernel fitted to rows X (n, n_features); it has no gamma."""
        return self.fitted_to(X)

    def featurize(self, rows: Array) -> Array:
        """Return descriptors of rows (..., n_features), and d(x, o)^p as one more number each."""
        origin = np.zeros(rows.shape[-1]) if self.origin is None else self.origin
        if origin.shape != rows.shape[-1:]:
            raise ValueError(
                f"origin must have n_features={rows.shape[-1]} numbers, got {len(origin)}."
            )
        descriptors = super().featurize(rows)
        if descriptors.ndim != rows.ndim:
            raise ValueError(f"{self.name} needs descriptors that are rows of numbers.")
        flat = descriptors.reshape(-1, descriptors.shape[-1])
        centre = super().featurize(origin[None].astype(rows.dtype))
        energy = self._powers(flat, centre).reshape(*rows.shape[:-1], 1)
        return np.concatenate([descriptors, energy.astype(descriptors.dtype)], axis=-1)

    def of_descriptors(self, A: Array, B: Array) -> Array:
        """Return k(x, y) for all pairs of descriptors."""
        same = A is B
        inner, others = in_float64(A[..., -1:]), in_float64(B[..., -1:])
        A = A[..., :-1]
        powers = self._powers(A, A if same else B[..., :-1])
        return (inner + others.mT - powers) / 2

    def diag_of_descriptors(self, A: Array) -> Array:
        """Return d(x, o)^p for every descriptor."""
        return A[..., -1]

    def _diag(self, X: Array) -> Array:
        return self.featurize(X)[..., -1].astype(X.dtype, copy=False)
