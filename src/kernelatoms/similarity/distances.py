"""Distances of rows: ``Distance``, the base class, and distances of vectors.

A distance computes descriptors of rows (``featurize``), such as gradients of images, once, and
compares them (``compare``) as often as needed. ``fitted_to`` takes what it needs from training
rows.

See docs/decisions/013-fitted-kernels.md.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from kernelatoms.engine import Array, is_array, machine
from kernelatoms.similarity.base import attribute_of, check_number
from kernelatoms.similarity.decaying import squared_distances
from kernelatoms.similarity.inner import in_float64

# Pairs of so many rows tell the typical size of a distance.
_ROWS_LOOKED_AT = 256


class Distance:
    """A distance of rows. Subclasses define ``compare``, and ``featurize`` if needed.

    Attributes
    ----------
    non_negative : bool
        Whether it is defined on rows without negative values only.
    takes_stacks : bool
        Whether it also compares stacks, A (..., n, p) with B (..., m, p).
    semidefinite_to : float
        The largest power up to which exp(-gamma d^power) is known to be positive semi-definite on
        any rows; 0 where none is known.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelatoms.similarity import make_distance
    >>> l2 = make_distance("l2")
    >>> l2.compare(l2.featurize(np.zeros((1, 2))), l2.featurize(np.array([[3.0, 4.0]])))
    array([[5.]])
    """

    non_negative: bool = False
    takes_stacks: bool = False
    semidefinite_to: float = 0

    def featurize(self, rows: Array) -> Any:
        """Return descriptors of rows (n, n_features), an array of length n: the rows themselves.

        Those of the library's distances are two-dimensional, (n, n_descriptors).
        """
        return rows

    def compare(self, A: Any, B: Any) -> Array:
        """Return the distances of all descriptors in A (n, ...) and B (m, ...): (n, m), from 0."""
        raise NotImplementedError(f"{type(self).__name__} must define compare(A, B).")

    def fitted_to(self, rows: Array) -> Self:
        """Return the distance fitted to training rows (n, n_features); itself if it is already."""
        return self

    @property
    def parts(self) -> tuple["Distance", ...]:
        """The distances whose nearest rows, together, are the neighbours of a row: itself."""
        return (self,)


@dataclass(frozen=True)
class UserDistance(Distance):
    """A user's object with ``featurize``, ``compare`` and optionally more of ``Distance``."""

    given: Any

    def featurize(self, rows: Array) -> Any:
        """Return what the object returns."""
        return self.given.featurize(rows)

    def compare(self, A: Any, B: Any) -> Array:
        """Return what the object returns."""
        return self.given.compare(A, B)

    def fitted_to(self, rows: Array) -> Self:
        """Return what the object returns; itself if it has no such method."""
        own = getattr(self.given, "fitted_to", None)
        other = self.given if own is None else own(rows)
        return self if other is self.given else type(self)(other)

    @property
    def parts(self) -> tuple[Distance, ...]:
        """The object's; itself if it has none."""
        return tuple(getattr(self.given, "parts", (self,)))

    non_negative = attribute_of("given", "non_negative", False)
    takes_stacks = attribute_of("given", "takes_stacks", False)
    semidefinite_to = attribute_of("given", "semidefinite_to", 0)


class VectorDistance(Distance):
    """A distance of the library whose descriptors are rows of numbers, also in stacks."""

    takes_stacks = True

    def featurize(self, rows: Array) -> Array:
        """Return the rows (n, n_features) themselves."""
        return as_rows(rows)


@dataclass(frozen=True)
class L2(VectorDistance):
    """The Euclidean distance, |a - b|."""

    semidefinite_to = 2

    def compare(self, A: Array, B: Array) -> Array:
        """Return |a - b| for all pairs: (..., n, m)."""
        return np.sqrt(squared_distances(A, B))


@dataclass(frozen=True)
class L1(VectorDistance):
    """The city block distance, sum_i |a_i - b_i|."""

    semidefinite_to = 1

    def compare(self, A: Array, B: Array) -> Array:
        """Return the distances of all pairs: (..., n, m)."""
        return machine(A).l1_distances(A, B)


@dataclass(frozen=True)
class LInf(VectorDistance):
    """The chessboard distance, max_i |a_i - b_i|."""

    def compare(self, A: Array, B: Array) -> Array:
        """Return the distances of all pairs: (..., n, m)."""
        return machine(A).linf_distances(A, B)


@dataclass(frozen=True)
class Correlation(VectorDistance):
    """1 - cos(a, b), from 0 to 2: without centring. A zero row has distance 1 to all but zero rows.

    Half of the squared Euclidean distance of the rows over their norms.
    """

    semidefinite_to = 1

    def featurize(self, rows: Array) -> Array:
        """Return unit rows with one more column, 1 for zero rows: (n, n_features + 1)."""
        rows = as_rows(rows)
        unit = machine(rows).unit_rows(rows)
        # A separate direction, so that zero rows need no special case in compare.
        return np.column_stack([unit, ~rows.any(axis=1)]).astype(rows.dtype, copy=False)

    def compare(self, A: Array, B: Array) -> Array:
        """Return 1 - a'b for all pairs of unit rows: (..., n, m)."""
        return squared_distances(A, B) / 2


@dataclass(frozen=True)
class Chi2(VectorDistance):
    """Half of sum_i (a_i - b_i)^2 / (a_i + b_i), 0/0 = 0, for rows without negative values."""

    non_negative = True
    semidefinite_to = 1

    def featurize(self, rows: Array) -> Array:
        """Return the rows (n, n_features) themselves; refuse negative values."""
        rows = as_rows(rows)
        if rows.min(initial=0) < 0:
            raise ValueError(
                f"distance 'chi2' takes no negative values, and rows hold {rows.min():.3g}; "
                "shift or scale them, or choose another distance."
            )
        return rows

    def compare(self, A: Array, B: Array) -> Array:
        """Return the distances of all pairs: (..., n, m)."""
        return 0.5 * machine(A).chi2_distances(A, B)


@dataclass(frozen=True, eq=False)
class Mahalanobis(VectorDistance):
    """The Euclidean distance after training rows have been made uncorrelated, of variance 1.

    d(a, b)^2 = (a - b)' (S + ridge v I)^-1 (a - b), with S the covariance of the training rows and
    v the mean variance of a feature. ``fitted_to(rows)`` takes it from rows.

    Parameters
    ----------
    ridge : float
        From 0. Directions in which training rows hardly vary count for less the larger it is, and
        rows fewer than features need one above 0. On images of digits and faces 1 had the fewest
        errors of 0.001 to 10; with 0.01, noise counted for most.
    whitening : array of shape (n_features, n_features), optional
        The matrix that rows are multiplied by; None until fitted.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelatoms.similarity import make_distance
    >>> rows = np.random.default_rng(0).normal(size=(2000, 2)) * [1, 100]
    >>> far = make_distance("mahalanobis", ridge=0).fitted_to(rows)
    >>> A, B = far.featurize(np.zeros((1, 2))), far.featurize(np.array([[1.0, 0.0], [0.0, 100.0]]))
    >>> far.compare(A, B).round(1)
    array([[1., 1.]])
    """

    ridge: float = 1.0
    whitening: Any = None
    semidefinite_to = 2

    def __post_init__(self) -> None:
        check_number("ridge", self.ridge, low=0)
        W = self.whitening
        if W is not None and not (
            type(W) is np.ndarray and W.dtype in (np.float32, np.float64) and W.ndim == 2
            and W.shape[0] == W.shape[1] and np.isfinite(W).all()
        ):  # fmt: skip
            raise ValueError("whitening must be a square array of finite floats, or None.")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mahalanobis):
            return NotImplemented
        return self.ridge == other.ridge and np.array_equal(self.whitening, other.whitening)

    def __hash__(self) -> int:
        return hash((Mahalanobis, self.ridge))

    def fitted_to(self, rows: Array) -> Self:
        """Return the distance with the covariance of rows (n, n_features)."""
        if self.whitening is not None:
            return self
        rows = in_float64(as_rows(rows))
        with machine(rows).one_blas_thread():  # the same sums, however many there are
            return type(self)(self.ridge, self._whitening_of(rows))

    def _whitening_of(self, rows: Array) -> Array:
        centred = rows - rows.mean(axis=0)
        covariance = centred.T @ centred / len(rows)
        variance = float(np.trace(covariance)) / len(covariance)
        if not 0 < variance < np.inf:
            raise ValueError(
                "distance 'mahalanobis' needs training rows that differ, in numbers whose squares "
                f"are no overflow: their mean variance is {variance:.3g}."
            )
        covariance /= variance
        covariance.flat[:: len(covariance) + 1] += self.ridge
        try:
            factor = np.linalg.cholesky(covariance)
        except np.linalg.LinAlgError:
            raise ValueError(
                f"distance 'mahalanobis': the covariance of {len(rows)} training rows of "
                f"{rows.shape[1]} features has no inverse; use a ridge above {self.ridge:g}."
            ) from None
        return np.ascontiguousarray(np.linalg.inv(factor).T / np.sqrt(variance))

    def featurize(self, rows: Array) -> Array:
        """Return rows (n, n_features) times the whitening matrix."""
        rows = as_rows(rows)
        if self.whitening is None:
            raise ValueError(
                "distance 'mahalanobis' takes a covariance from training rows: use "
                "distance.fitted_to(rows)."
            )
        if rows.shape[1] != len(self.whitening):
            raise ValueError(
                f"distance 'mahalanobis' was fitted to rows of {len(self.whitening)} features, "
                f"and these have {rows.shape[1]}."
            )
        with machine(rows).one_blas_thread():
            return rows @ self.whitening.astype(rows.dtype, copy=False)

    def compare(self, A: Array, B: Array) -> Array:
        """Return |a - b| for all pairs of descriptors: (..., n, m)."""
        return np.sqrt(squared_distances(A, B))


def as_rows(rows: Any) -> Array:
    """Return rows (n, n_features) of float32 or float64."""
    rows = rows if is_array(rows) else np.asarray(rows)
    if rows.ndim != 2:
        raise ValueError(f"rows must be a matrix (n, n_features), got shape {rows.shape}.")
    return rows if rows.dtype in (np.float32, np.float64) else rows.astype(np.float64)


def mean_of_pairs(distance: Any, rows: Array, power: float = 1) -> float:
    """Return the mean of d^power over pairs of at most 256 evenly spaced rows; 0 for one row."""
    some = np.unique(np.linspace(0, len(rows) - 1, _ROWS_LOOKED_AT).astype(np.intp))
    A = distance.featurize(rows[some])
    far = np.asarray(distance.compare(A, A), np.float64) ** power
    pairs = len(some) * (len(some) - 1)
    return float((far.sum() - np.trace(far)) / pairs) if pairs else 0.0
