"""Few numbers per row: principal components and singular vectors, rounded and packed."""

import math
from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reproduction.codec.data import Table
from reproduction.codec.packing import THOROUGH, zstd_bytes
from reproduction.codec.scalings import scalings
from reproduction.codec.search import Found, Prepared, at_bound, prepare, size_near
from reproduction.codec.streams import Stream
from reproduction.codec.views import views

Array = NDArray[Any]

_FLOAT = 4  # bytes of a number that is not one of many
_STEPS = (8,)  # steps an octave of stored norms
_MOST_RANK = 500
# Ranks to try, relative to the smallest that can hold the bound at all.
_MORE_RANKS = (1, 1.02, 1.1, 1.25, 1.5, 2, 3)


# How much finer than scores components and means are rounded.
_FINER = 2


class Factors(NamedTuple):
    """A matrix as left @ right + middle, columns of ``left`` and rows of ``right`` by size."""

    left: Array
    right: Array
    middle: Array

    @property
    def rank(self) -> int:
        """How many columns and rows there are."""
        return len(self.right)


def smallest_pca(table: Table, bound: float) -> Found | None:
    """Return the smallest file of rounded scores, components and mean that holds the bound."""
    return min(_pca_files(table, bound), default=None)


def smallest_svd(table: Table, bound: float) -> Found | None:
    """Return the smallest file of singular vectors as int8 (or int16) that holds the bound."""
    return min(_svd_files(table, bound), default=None)


def _pca_files(table: Table, bound: float) -> Iterable[Found]:
    for prepared, matrix in _matrices(table, bound):
        factors = factor(matrix, centred=True)
        least = _least_rank(prepared, factors, bound)
        ranks = sorted({min(math.ceil(least * more), factors.rank) for more in _MORE_RANKS})
        size = None
        for rank in ranks:
            stream = _pca_stream(factors, rank, matrix.shape)
            size = size_near(prepared, stream.code, bound, size)
            if (met := at_bound(prepared, stream, bound, size)) is not None:
                yield met


def _svd_files(table: Table, bound: float) -> Iterable[Found]:
    for prepared, matrix in _matrices(table, bound):
        for factors in (factor(matrix, centred=False), factor(matrix, centred=True)):
            for bits in (8, 16):
                if (met := _svd_at_bound(prepared, factors, bits, bound)) is not None:
                    yield met


def _matrices(table: Table, bound: float) -> Iterable[tuple[Prepared, Array]]:
    """Yield the table as matrices of few rows or columns: every cut of every order."""
    for scaling in scalings(table, bound, _STEPS):
        seen = set()
        for view in views(table):
            prepared = prepare(table, view, scaling)
            shape = prepared.array.shape
            for cut in range(1, len(shape)):
                matrix = prepared.array.reshape(math.prod(shape[:cut]), -1).astype(np.float64)
                # In another order of its rows and columns a matrix has the same factors.
                key = (matrix.shape, round(float(np.abs(matrix.sum(axis=0)).max()), 3))
                if min(matrix.shape) <= _MOST_RANK and key not in seen:
                    seen.add(key)
                    yield prepared, matrix


def factor(matrix: Array, centred: bool) -> Factors:
    """Return the singular vectors of a matrix, its mean row taken off first or not."""
    middle = matrix.mean(axis=0) if centred else np.zeros(matrix.shape[1])
    rest = matrix - middle
    if rest.shape[0] >= rest.shape[1]:
        right = np.linalg.eigh(rest.T @ rest)[1].T[::-1]
        return Factors(rest @ right.T, right, middle)
    left = np.linalg.eigh(rest @ rest.T)[1][:, ::-1]
    return Factors(left, left.T @ rest, middle)


def _least_rank(prepared: Prepared, factors: Factors, bound: float) -> int:
    """Return the smallest rank that can hold the bound at all."""
    low, high = 0, factors.rank
    while high - low > 1:
        rank = (low + high) // 2
        decoded = factors.left[:, :rank] @ factors.right[:rank] + factors.middle
        if prepared.errors(decoded.reshape(prepared.array.shape)).max() > bound:
            low = rank
        else:
            high = rank
    return high


def _pca_stream(factors: Factors, rank: int, shape: tuple[int, ...]) -> Stream:
    def code(array: Array, step: float) -> tuple[int, Array]:
        n_bytes, decoded = pca_file(factors, rank, step)
        return n_bytes, decoded.reshape(array.shape)

    return Stream(
        f"{shape[0]} x {shape[1]}, rank {rank}",
        code,
        lambda array, step: pca_file(factors, rank, step, THOROUGH)[0],
    )


def pca_file(
    factors: Factors, rank: int, step: float, level: int | None = None
) -> tuple[int, Array]:
    """Round the scores of the first components to multiples of a step, packed one by one.

    One step for all components: those of small size then have few bits. Where the smaller side is
    the left one, its columns are the components and the right one has the scores. Without a level
    of zstandard, bytes are estimated: the search for steps uses this.
    """
    packed = _rough_bytes if level is None else partial(zstd_bytes, level=level)
    left, right = factors.left[:, :rank], factors.right[:rank]
    tall = len(left) >= right.shape[1]
    scores, components = (left.T, right) if tall else (right, left.T)
    rounded = np.rint(scores / step)
    n_bytes = sum(packed(row) for row in rounded) + 2 * _FLOAT
    # A component's error is multiplied by its scores, whose size decides how fine it must be for
    # its part to be a small one; a power of 2, so that one byte says it.
    sizes = np.maximum(np.sqrt(np.mean(np.square(rounded * step), axis=1)), step)
    finest = step / (_FINER * sizes * np.sqrt(components.shape[1]))
    fine = np.exp2(np.floor(np.log2(finest)))[:, None]
    integers = np.rint(components / fine)
    n_bytes += sum(packed(row) + 1 for row in integers)
    scores, components = rounded * step, integers * fine
    decoded = scores.T @ components if tall else components.T @ scores
    if factors.middle.any():
        mean_step = step / _FINER
        steps = np.rint(factors.middle / mean_step)
        n_bytes += packed(steps)
        decoded += steps * mean_step
    return n_bytes, decoded.astype(np.float32)


def _rough_bytes(integers: Array) -> int:
    """Guess the bytes of integers: the digits of each and a sign."""
    return int((np.log2(1 + np.abs(integers)) + 1).sum() / 8)


def _svd_at_bound(prepared: Prepared, factors: Factors, bits: int, bound: float) -> Found | None:
    """Return the file of the smallest rank that holds the bound; None if the largest does not."""

    def errors(rank: int) -> Array:
        _, decoded = svd_file(factors, rank, bits)
        return prepared.errors(decoded.reshape(prepared.array.shape))

    low, high = 0, factors.rank
    if errors(high).max() > bound:
        return None
    while high - low > 1:
        rank = (low + high) // 2
        if errors(rank).max() > bound:
            low = rank
        else:
            high = rank
    codes, decoded = svd_file(factors, high, bits)
    n_bytes = sum(zstd_bytes(side, THOROUGH) + _FLOAT * high for side in codes)
    n_bytes += prepared.extra_bytes + (_FLOAT * factors.middle.size if factors.middle.any() else 0)
    found = errors(high)
    name = f"{decoded.shape[0]} x {decoded.shape[1]}, rank {high}, int{bits}"
    return Found(n_bytes, float(found.max()), float(found.mean()), f"{prepared.name}; {name}")


def svd_file(factors: Factors, rank: int, bits: int) -> tuple[list[Array], Array]:
    """Round both factors as it is usually done: int8 (int16), every vector with a scale.

    Returns
    -------
    codes : list of array
        The integers of both.
    decoded : array
        What comes back.
    """
    largest = 127 if bits == 8 else 32767
    codes, sides = [], []
    for side in (factors.left[:, :rank].T, factors.right[:rank]):
        scale = np.abs(side).max(axis=1, keepdims=True) / largest
        scale[scale == 0] = 1
        codes.append(np.rint(side / scale))
        sides.append(codes[-1] * scale)
    return codes, (sides[0].T @ sides[1] + factors.middle).astype(np.float32)
