"""The parts of a combined kernel: a kernel and the columns of rows that it sees."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.similarity.base import Kernel
from kernelatoms.similarity.columns import Channels, Columns, Index, check_columns, columns_of, take
from kernelatoms.similarity.factory import is_precomputed, make_kernel
from kernelatoms.similarity.user_kernels import UserKernel

Array = NDArray[Any]


@dataclass(frozen=True)
class Part:
    """A kernel, the columns it sees, and its place among the parts."""

    kernel: Kernel
    columns: Columns
    place: int

    def index(self, n_features: int) -> Index:
        """Return the columns in rows of so many features."""
        with errors_of(self.place):
            return columns_of(self.columns, n_features)

    def rows(self, X: Array) -> Array:
        """Return what the part sees of rows (..., n_features)."""
        return take(X, self.index(X.shape[-1]))

    def both(self, X: Array, Y: Array) -> tuple[Array, Array]:
        """Return what the part sees of two sets of rows, which its kernel may notice are one."""
        rows = self.rows(X)
        return rows, rows if X is Y else self.rows(Y)

    def width(self, n_features: int) -> int:
        """Return how many columns the part sees."""
        return take(np.empty((1, n_features)), self.index(n_features)).shape[1]


def checked_part(part: Any) -> tuple[Any, Columns]:
    """Return a pair of kernel and columns; a kernel alone sees all of them."""
    if isinstance(part, slice | Channels):
        raise ValueError(f"columns belong to a kernel: parts=[(kernel, {part!r}), ...].")
    if isinstance(part, list | tuple) and len(part) != 2:
        raise ValueError(f"a part must be a kernel, or a pair (kernel, columns), got {part!r}.")
    kernel, columns = part if isinstance(part, list | tuple) else (part, slice(None))
    if is_precomputed(kernel):
        raise ValueError(
            "'precomputed' values belong to whole rows and not to columns; combine the matrices "
            "yourself, and give the result with kernel='precomputed'."
        )
    made = as_given(make_kernel(kernel))
    return kernel if isinstance(kernel, str) else made, check_columns(columns)


def as_given(kernel: Kernel) -> Any:
    """Return a user's own function or object instead of its wrapping: model files hold that."""
    plain = isinstance(kernel, UserKernel) and not kernel.params
    return kernel.given if plain else kernel  # type: ignore[attr-defined]


def settled_part(given: Any, rows: Array) -> Any:
    """Return a part's kernel with all that it takes from rows, gamma included; as given if none.

    A name has ``gamma="scale"`` there, as names have in estimators.
    """
    asked = make_kernel(given, gamma="scale" if isinstance(given, str) else None)
    kernel = _settled(asked, rows)
    return given if kernel is asked else as_given(kernel)


def _settled(kernel: Kernel, rows: Array) -> Kernel:
    kernel = kernel.fitted_to(rows)
    gamma: Any = getattr(kernel, "gamma", 1.0)
    return kernel.with_gamma_from(rows) if gamma is None or isinstance(gamma, str) else kernel


@contextmanager
def errors_of(place: int) -> Iterator[None]:
    """Say which part it was that refused something."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"parts[{place}]: {error}") from error
    except TypeError as error:
        raise TypeError(f"parts[{place}]: {error}") from error
