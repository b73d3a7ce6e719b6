"""``Kernel``, the base class of kernels, and checks of their parameters and values.

A kernel returns inner products of rows in some feature space. Subclasses must define
``values(X, Y) -> (n, m)`` alone; everything else that is known of a kernel has a default here.

See docs/decisions/013-fitted-kernels.md.
"""

import copy
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from kernelatoms.engine import Array, is_array, machine
from kernelatoms.similarity import gammas
from kernelatoms.similarity.gradients import Inversion, Slopes, gradient_in_plane
from kernelatoms.similarity.missing import rows_with_missing


def _defines(name: str) -> property:
    """Return a property: whether a subclass defines this method."""
    return property(lambda self: getattr(type(self), name) is not getattr(Kernel, name))


class Kernel:
    """Inner products in a feature space. Subclasses define ``values``; all else has a default.

    A kernel is called with rows X (n, n_features) and Y (m, n_features): ``kernel(X, Y)`` is
    ``values(X, Y)`` in the dtype of X, checked, and estimated where rows of X have missing values
    (NaN) if the kernel can.

    Attributes
    ----------
    semidefinite : bool or None
        True: it is positive semi-definite on any rows. False or None (not known): it is checked
        where it matters.
    bounded : bool
        Whether k(x, x) is bounded. Learners bound the norms of atoms under other kernels.
    non_negative : bool
        Whether it is defined on rows without negative values only.
    takes_stacks : bool
        Whether it also compares stacks, X (..., n, n_features) with Y (..., m, n_features).
    exact_in_float64 : bool
        Whether values of float64 rows have the precision of float64.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelatoms.similarity import Kernel
    >>> class Common(Kernel):
    ...     def values(self, X, Y):
    ...         return np.minimum(X[:, None], Y).sum(axis=2)
    >>> Common().diag(np.array([[1.0, 2.0], [0.5, 0.0]]))
    array([3. , 0.5])
    """

    semidefinite: bool | None = None
    bounded: bool = False
    non_negative: bool = False
    takes_stacks: bool = False
    exact_in_float64: bool = False
    _own = False  # of the library: values of other kernels are checked at every call

    def values(self, X: Array, Y: Array) -> Array:
        """Return k(x, y) for all complete rows x of X (n, n_features) and y of Y: (n, m).

        Kernels by name take stacks too: X (..., n, n_features) and Y (..., m, n_features).
        """
        raise NotImplementedError(f"{type(self).__name__} must define values(X, Y).")

    def __call__(self, X: Array, Y: Array) -> Array:
        """Return k(x, y) for all rows x of X and y of Y; estimates where x has missing values."""
        X, Y = _floats(X), _floats(Y)
        self._check_rows(X)
        self._check_rows(Y)
        incomplete = self._incomplete(X)
        if not len(incomplete):
            return self._checked(X, Y)
        stacked = Y.ndim > 2 and Y.ndim == X.ndim
        K = np.empty((*X.shape[:-1], Y.shape[-2]), X.dtype)
        part = Y[incomplete] if stacked else Y
        with np.errstate(over="ignore", invalid="ignore"):  # callers check
            K[incomplete] = self.values_from_parts(X[incomplete], part)
        complete = np.delete(np.arange(len(X)), incomplete)
        if len(complete):
            K[complete] = self._checked(X[complete], Y[complete] if stacked else Y)
        return K

    def diag(self, X: Array) -> Array:
        """Return k(x, x) for all rows of X (n, n_features): (n,); estimates from parts of rows."""
        X = _floats(X)
        self._check_rows(X)
        incomplete = self._incomplete(X)
        if not len(incomplete):
            return machine(X).map_rows(self._diag, X) if self._own else self._diag(X)
        out = np.empty(X.shape[:-1], X.dtype)
        with np.errstate(over="ignore", invalid="ignore"):
            out[incomplete] = self.diag_from_parts(X[incomplete])
        complete = np.delete(np.arange(len(X)), incomplete)
        out[complete] = self._diag(X[complete])
        return out

    @property
    def name(self) -> str:
        """What the kernel is called in messages."""
        return type(self).__name__

    # What it takes from rows

    def fitted_to(self, rows: Array) -> Self:
        """Return the kernel with all that it takes from training rows but gamma: itself."""
        return self

    def featurize(self, rows: Array) -> Any:
        """Return what ``for_features`` compares, of rows (..., n_features): the rows themselves."""
        return rows

    #: Whether it compares descriptors of rows.
    featurizes = _defines("featurize")

    def for_features(self, n_features: int) -> "Kernel":
        """Return the same kernel of ``featurize(rows)``, so that these are computed only once."""
        return self

    def into_domain(self, rows: Array) -> Array:
        """Return the nearest rows in its domain: 0 for negative values, if it takes none."""
        return np.maximum(rows, 0) if self.non_negative else rows

    # Gradients: how it changes when a row moves, to learn atoms

    #: Whether ``slopes`` is known.
    has_gradient = _defines("slopes")

    def why_no_gradient(self) -> str:
        """Return which kernel has no gradient, and why."""
        if self.non_negative:
            return f"{self.name!r}, which takes no negative values, and a step may lead there"
        return f"{self.name!r}, whose gradient is not known"

    def slopes(self, X: Array, Y: Array) -> Slopes:
        """Return k(x, y) and the factors a, b of its gradient a x + b y in y; see ``gradients``."""
        raise ValueError(f"kernel {self.name} has no gradient.")

    def weighted_gradient(
        self, weights: Any, X: Array, Y: Array, slopes: Slopes | None = None
    ) -> Array:
        """Return the sums over i of weights[i, j] d k(x_i, y_j) / d y_j; weights may be CSR."""
        slopes = self.slopes(X, Y) if slopes is None else slopes
        return gradient_in_plane(weights, X, Y, slopes)

    def column_sizes(self, Y: Array) -> Array | None:
        """Return how much steeper than ``slopes`` it is along each column; None for 1 each."""
        return None

    # Parts of rows: estimates for rows with missing values

    #: Whether ``values_from_parts`` is known.
    takes_missing = _defines("values_from_parts")

    def values_from_parts(self, X: Array, Y: Array) -> Array:
        """Estimate k(x, y) for rows x (n, n_features) that hold NaN and complete rows y: (n, m)."""
        raise ValueError(f"kernel {self.name} needs complete rows.")

    def diag_from_parts(self, X: Array) -> Array:
        """Estimate k(x, x) for rows (n, n_features) that hold NaN: (n,)."""
        raise ValueError(f"kernel {self.name} needs complete rows.")

    # The way back: how to find a row with given kernel values

    def inversion(self, n_features: int) -> Inversion | None:
        """Return how k(x, a) depends on x, if that helps to find an x."""
        return None

    def exact_preimage(self, weights: Any, rows: Array) -> Array | None:
        """Return rows x with phi(x) = sum_j w_j phi(a_j), if these always exist: (m, n_features).

        ``weights`` w (m, n), maybe CSR, has one row per vector; ``rows`` a are (n, n_features).
        """
        return None

    # Gamma

    @property
    def has_gamma(self) -> bool:
        """Whether there is a parameter gamma."""
        return hasattr(self, "gamma")

    def default_gamma(self, n_features: int) -> float:
        """Return the gamma of ``gamma=None``."""
        return 1 / n_features

    def what_gamma_multiplies(self, X: Array, Y: Array) -> Array | None:
        """Return what gamma multiplies, row by row of X and Y, (n,); None where that is not known.

        Squared distances, l1 distances, inner products: a search for gamma begins with their size.
        """
        return None

    def with_gamma(self, gamma: float | str | None) -> Self:
        """Return the same kernel with another gamma."""
        gammas.check_gamma(gamma)
        other = copy.copy(self)
        object.__setattr__(other, "gamma", gamma)
        return other

    def with_gamma_from(self, X: Array) -> Self:
        """Return the kernel with its gamma as a number, taken from rows X where that is asked.

        "scale" is ``scale_gamma(X)``; "spread" is log 2 over the mean of what gamma multiplies,
        over pairs of at most 256 evenly spaced rows, so that typical values of RBF are 0.5. None
        and "auto" (1 / n_features) need no rows.
        """
        if not self.has_gamma:
            return self
        gamma: Any = self.gamma  # type: ignore[attr-defined]
        if gamma == "spread":
            return self.with_gamma(gammas.gamma_by_mean(self._mean_size(X), float(np.log(2))))
        if gamma == "scale":
            return self.with_gamma(float(self.scale_gamma(X)))
        return self.with_gamma(self.gamma_for(X.shape[1]))

    def scale_gamma(self, X: Array) -> float:
        """Return what ``gamma="scale"`` is on rows X: 1 / (n_features * X.var()), as in ``SVC``.

        Kernels whose gamma does not multiply squares return 1 over the mean of what it multiplies.
        """
        return gammas.gamma_by_variance(X)

    def gamma_for(self, n_features: int) -> float:
        """Return gamma as a number, for rows with ``n_features`` features."""
        gamma: Any = self.gamma  # type: ignore[attr-defined]
        if gamma is None:
            return float(self.default_gamma(n_features))
        if gamma == "auto":
            return 1 / n_features
        if isinstance(gamma, str):
            raise ValueError(
                f"gamma={gamma!r} is taken from rows: kernel.with_gamma_from(X) does so."
            )
        return float(gamma)

    def _mean_size(self, X: Array) -> float:
        """Return the mean of what gamma multiplies, over pairs of rows."""
        return gammas.mean_over_pairs(self.what_gamma_multiplies, X, f"kernel {self.name}")

    # Checks

    def refuse_missing(self, X: Array) -> None:
        """Refuse rows that hold NaN, if the kernel cannot be estimated from parts of rows."""
        self._incomplete(X)

    def _incomplete(self, X: Array) -> NDArray[np.intp]:
        """Return which rows hold NaN, if any may."""
        rows = rows_with_missing(X)
        if len(rows) and not self.takes_missing:
            raise ValueError(
                f"X contains NaN, but {self._who()} needs complete rows: impute the missing "
                "values, or use a kernel that can be estimated from parts of rows, such as 'rbf' "
                "or 'linear'."
            )
        return rows

    def _who(self) -> str:
        return f"kernel {self.name!r}"

    def _check_rows(self, X: Array) -> None:
        if self.non_negative and X.size and np.nanmin(X) < 0:
            raise ValueError(
                f"{self._who()} takes no negative values, and its rows hold {np.nanmin(X):.3g}; "
                "shift or scale them (MinMaxScaler), or choose another kernel."
            )

    def _checked(self, X: Array, Y: Array) -> Array:
        """Return values of complete rows, checked."""
        who = f"{self._who()} called with shapes {X.shape} and {Y.shape}"
        K = check_values(self.values(X, Y), (*X.shape[:-1], Y.shape[-2]), who)
        return K.astype(X.dtype, copy=False)

    def _diag(self, X: Array) -> Array:
        """Read k(x, x) of complete rows off small square blocks."""
        if X.ndim > 2:
            return self._diag(X.reshape(-1, X.shape[-1])).reshape(X.shape[:-1])
        blocks = [
            np.diagonal(self._checked(X[i : i + 64], X[i : i + 64])) for i in range(0, len(X), 64)
        ]
        return np.concatenate(blocks) if blocks else np.empty(0, X.dtype, like=X)


def _floats(X: Array) -> Array:
    return X if X.dtype.kind == "f" else X.astype(np.float64)


def attribute_of(holder: str, name: str, default: Any) -> property:
    """Return a property: the attribute ``name`` of the attribute ``holder``, or a default."""
    return property(lambda self: getattr(getattr(self, holder), name, default))


def check_values(values: Any, shape: tuple[int, ...], who: str) -> Array:
    """Return kernel values as an array; refuse wrong shapes, NaN and other types than numbers."""
    K = values if is_array(values) else np.asarray(values)
    if K.shape != shape:
        raise ValueError(
            f"kernel must return one value for each pair of rows: {who} it should return shape "
            f"{shape}, but it returned {K.shape}."
        )
    if K.dtype.kind not in "fiub":
        raise ValueError(f"kernel must return real numbers, but it returned {K.dtype}.")
    if not np.isfinite(K).all():
        raise ValueError("kernel returned NaN or infinity; it must be finite on finite rows.")
    return K


def check_number(name: str, value: Any, *, low: float = -np.inf, above: float = -np.inf) -> None:
    """Refuse anything but a finite number, from ``low`` or above a bound."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number or not np.isfinite(float(value)):
        raise ValueError(f"{name} must be a finite number, got {value!r}.")
    if value < low:
        raise ValueError(f"{name} must be from {low}, got {value!r}.")
    if not value > above:
        raise ValueError(f"{name} must be above {above}, got {value!r}.")


def plain_number(name: str, value: Any) -> Any:
    """Return the number that a tensor of torch holds; anything else as it is."""
    if getattr(value, "shape", None) != () or not hasattr(value, "requires_grad"):
        return value
    if value.requires_grad:
        raise ValueError(
            f"{name} requires gradients, which do not go through codes: give {name}.detach()."
        )
    return value.item()


def is_whole(value: Any) -> bool:
    """Whether a value is a whole number; True and False are none."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def check_whole(name: str, value: Any, low: int) -> None:
    """Refuse anything but a whole number from ``low``."""
    if not is_whole(value) or value < low:
        raise ValueError(f"{name} must be a whole number from {low}, got {value!r}.")


def check_flag(name: str, value: Any) -> bool:
    """Return True or False."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {value!r}.")
    return bool(value)
