"""Which columns of rows a part of a combined kernel sees: slices, column numbers, channels."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.engine import Array
from kernelatoms.similarity.base import Kernel, check_flag, check_whole, is_whole
from kernelatoms.similarity.factory import is_precomputed, make_kernel
from kernelatoms.similarity.user_kernels import UserKernel

Index = slice | NDArray[np.intp]

_WHAT = "a slice, a list of column numbers or Channels"


@dataclass(frozen=True)
class Channels:
    """The columns of some channels, in rows that are images (or signals) of several channels.

    The size of images is not fixed: the length of rows may be any multiple of ``n_channels``.

    Parameters
    ----------
    numbers : int or tuple of int
        Which channels, from 0, each once.
    n_channels : int
        How many channels there are.
    channels_first : bool
        False: rows are flattened arrays (height, width, n_channels), as image readers give them.
        True: they are planes, one after another: (n_channels, height, width).

    Examples
    --------
    >>> import numpy as np
    >>> from kernelatoms.similarity import Channels
    >>> pixels = np.array(["r0", "g0", "d0", "r1", "g1", "d1"])  # two pixels of three channels
    >>> pixels[Channels(2, 3).of_rows(6)]
    array(['d0', 'd1'], dtype='<U2')
    >>> pixels[Channels((0, 1), 3).of_rows(6)]
    array(['r0', 'g0', 'r1', 'g1'], dtype='<U2')
    """

    numbers: Any
    n_channels: int
    channels_first: bool = False

    def __post_init__(self) -> None:
        check_whole("n_channels", self.n_channels, 1)
        check_flag("channels_first", self.channels_first)
        several = isinstance(self.numbers, tuple | list)
        numbers = list(self.numbers) if several else [self.numbers]
        for number in numbers:
            check_whole("each of the numbers of channels", number, 0)
            if number >= self.n_channels:
                raise ValueError(
                    f"numbers must be those of channels, from 0 to {self.n_channels - 1} where "
                    f"n_channels={self.n_channels}, got {number}."
                )
        if not numbers or len(set(numbers)) < len(numbers):
            raise ValueError(f"numbers must name channels, each once, got {self.numbers!r}.")
        object.__setattr__(self, "numbers", tuple(map(int, numbers)) if several else numbers[0])

    def of_rows(self, n_features: int) -> Index:
        """Return the columns, in rows of so many features."""
        if n_features % self.n_channels:
            raise ValueError(
                f"rows of n_channels={self.n_channels} channels must have a multiple of "
                f"{self.n_channels} features, got n_features={n_features}."
            )
        size = n_features // self.n_channels
        if isinstance(self.numbers, tuple):
            numbers, places = np.array(self.numbers, np.intp), np.arange(size)
            if self.channels_first:
                return (numbers[:, None] * size + places).ravel()
            return (places[:, None] * self.n_channels + numbers).ravel()
        if self.channels_first:
            return slice(self.numbers * size, (self.numbers + 1) * size)
        return slice(self.numbers, n_features, self.n_channels)


Columns = slice | NDArray[np.intp] | Channels


def check_columns(columns: Any) -> Columns:
    """Return columns as they are stored: a slice, Channels, or an array of numbers."""
    if isinstance(columns, Channels):
        return columns
    if isinstance(columns, slice):
        for bound in (columns.start, columns.stop, columns.step):
            if bound is not None and not is_whole(bound):
                raise ValueError(f"columns must be a slice of whole numbers, got {columns!r}.")
        if columns.step == 0:
            raise ValueError(f"columns must be a slice whose step is not 0, got {columns!r}.")
        return columns
    if not isinstance(columns, Sequence | np.ndarray) or isinstance(columns, str):
        raise ValueError(f"columns must be {_WHAT}, got {columns!r}.")
    return _from_numbers(columns)


def _from_numbers(columns: Any) -> slice | NDArray[np.intp]:
    given = np.asarray(columns)
    if given.ndim != 1 or not given.size or given.dtype.kind not in "iu":
        hint = " (of a mask, np.flatnonzero(mask))" if given.dtype.kind == "b" else ""
        raise ValueError(
            f"columns must be {_WHAT}, at least one number from 0{hint}, got {columns!r}."
        )
    if given.min() < 0:
        raise ValueError(f"columns must be numbers from 0, got {given.min()}.")
    if len(np.unique(given)) < len(given):
        raise ValueError(f"columns must be named once each within a part, got {columns!r}.")
    numbers = given.astype(np.intp)
    steps = np.diff(numbers)
    if not len(steps) or (steps[0] > 0 and (steps == steps[0]).all()):
        step = int(steps[0]) if len(steps) else 1
        return slice(int(numbers[0]), int(numbers[-1]) + 1, None if step == 1 else step)
    return numbers


def columns_of(columns: Columns, n_features: int) -> Index:
    """Return columns as an index into rows of so many features; refuse those that lie outside."""
    if isinstance(columns, Channels):
        return columns.of_rows(n_features)
    rows = f"of rows with n_features={n_features}"
    if isinstance(columns, slice):
        bounds = [bound for bound in (columns.start, columns.stop) if bound is not None]
        if any(not -n_features <= bound <= n_features for bound in bounds):
            raise ValueError(f"columns must be {rows}; {columns!r} reaches outside.")
        if not len(range(*columns.indices(n_features))):
            raise ValueError(f"columns must be at least one {rows}; {columns!r} is none.")
    elif columns.max() >= n_features:
        raise ValueError(
            f"columns must be {rows}, from 0 to {n_features - 1}, got {columns.max()}."
        )
    return columns


def take(rows: Array, index: Index) -> Array:
    """Return columns of rows (..., n_features), side by side in memory; the rows, if it is all."""
    if isinstance(index, slice) and index.indices(rows.shape[-1]) == (0, rows.shape[-1], 1):
        return rows
    # A channel is a strided view, with which matrix products are slow.
    return np.ascontiguousarray(rows[..., index])


def key_of(columns: Columns) -> Any:
    """Return a key by which columns are compared and hashed."""
    if isinstance(columns, slice):
        return (columns.start, columns.stop, columns.step)
    return columns if isinstance(columns, Channels) else tuple(columns.tolist())


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
        """Return the part's columns of rows (..., n_features)."""
        return take(X, self.index(X.shape[-1]))

    def both(self, X: Array, Y: Array) -> tuple[Array, Array]:
        """Return the part's columns of two sets of rows, one array if the sets are one."""
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
    """Return a user's own function or object instead of its wrapper, as model files store it."""
    plain = isinstance(kernel, UserKernel) and not kernel.params
    return kernel.given if plain else kernel  # type: ignore[attr-defined]


def fitted_part(given: Any, rows: Array) -> Any:
    """Return a part's kernel fitted to rows; a name has ``gamma="scale"``, as in estimators."""
    asked = make_kernel(given, gamma="scale" if isinstance(given, str) else None)
    kernel = _fitted(asked, rows)
    return given if kernel is asked else as_given(kernel)


def _fitted(kernel: Kernel, rows: Array) -> Kernel:
    kernel = kernel.fitted_to(rows)
    gamma: Any = getattr(kernel, "gamma", 1.0)
    return kernel.with_gamma_from(rows) if gamma is None or isinstance(gamma, str) else kernel


@contextmanager
def errors_of(place: int) -> Iterator[None]:
    """Name the part in messages of errors."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"parts[{place}]: {error}") from error
    except TypeError as error:
        raise TypeError(f"parts[{place}]: {error}") from error
