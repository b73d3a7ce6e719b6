"""Codes: what a pursuit returns, the coefficients of every signal.

``PaddedCodes`` have a bounded number of nonzeros per signal, ``RaggedCodes`` as many as an error
bound or a penalty asks for, and ``DenseCodes`` (ridge) all coefficients.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from kernelatoms.engine import Array, is_device_array, machine

# Signals whose codes a thread moves at once.
_ROWS_AT_ONCE = 1 << 15


@dataclass(kw_only=True)
class Codes:
    """What all kinds of codes have.

    ``error`` is the squared residual of every signal, in float64; less the energy k(x, x) where
    that is not known. ``gap`` is the duality gap, where the pursuit has one; ``n_passes`` and
    ``n_updates`` count passes of coordinate descent and coefficients computed in them, where it
    counts.
    """

    n_atoms: int
    error: Array
    gap: Array | None = None
    n_passes: NDArray[np.int64] | None = None
    n_updates: NDArray[np.int64] | None = None

    _coefficients: ClassVar[str] = "values"  # the attribute that holds them

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the coefficients."""
        return getattr(self, self._coefficients).dtype

    @property
    def n_signals(self) -> int:
        """How many signals are coded."""
        return len(self.error)

    @property
    def n_nonzero(self) -> int:
        """How many coefficients are not 0, over all signals."""
        return int(self.uses().sum())

    def compressed(self) -> tuple[NDArray[np.int64], NDArray[np.integer], Array]:
        """Return the coefficients signal after signal: where those of each begin, atoms, values."""
        W = self.to_csr()
        return W.indptr, W.indices, W.data

    def to_csr(self) -> scipy.sparse.csr_array:
        """Return the (n_signals, n_atoms) matrix of coefficients, indices sorted."""
        raise NotImplementedError

    def to_dense(self) -> Array:
        """Return the (n_signals, n_atoms) array of coefficients."""
        return self.to_csr().toarray()

    def astype(self, dtype: Any) -> Self:
        """Return the same codes with coefficients in another type."""
        if self.dtype == dtype:
            return self
        values = _rounded(self, getattr(self, self._coefficients), np.dtype(dtype))
        changed: dict[str, Any] = {self._coefficients: values}
        return replace(self, **changed)

    def take(self, rows: NDArray[np.intp]) -> Self:
        """Return the codes of some signals."""
        raise NotImplementedError

    def uses(self) -> NDArray[np.intp]:
        """Return how many signals use each atom, (n_atoms,)."""
        raise NotImplementedError

    def l1_norm(self) -> float:
        """Return the sum of all |coefficients|."""
        return float(np.abs(getattr(self, self._coefficients)).sum(dtype=np.float64))


@dataclass(kw_only=True)
class PaddedCodes(Codes):
    """Row s uses atoms ``indices[s]``, ascending, with ``values[s]``; ends in -1 and 0."""

    indices: NDArray[np.int32]
    values: Array

    def compressed(self) -> tuple[NDArray[np.int64], NDArray[np.integer], Array]:
        """Return the coefficients signal after signal: where those of each begin, atoms, values."""
        n, k = self.indices.shape
        if k and bool((self.indices[:, -1] >= 0).all()):  # most common: no places to look for
            indptr = np.arange(0, n * k + 1, k, dtype=np.int64, like=self.indices)
            return indptr, self.indices.reshape(-1), self.values.reshape(-1)
        indptr = row_starts((self.indices >= 0).sum(axis=1))
        indices = np.empty(int(indptr[-1]), np.int32, like=self.indices)
        values = np.empty(len(indices), self.dtype, like=self.values)

        def work(start: int, stop: int) -> None:
            own, part = slice(int(indptr[start]), int(indptr[stop])), slice(start, stop)
            used = self.indices[part] >= 0
            indices[own], values[own] = self.indices[part][used], self.values[part][used]

        machine(values).for_rows(n, _ROWS_AT_ONCE, work)
        return indptr, indices, values

    def to_csr(self) -> scipy.sparse.csr_array:
        """Return the (n_signals, n_atoms) matrix of coefficients, indices sorted."""
        indptr, indices, values = self.compressed()
        return as_csr(values, indices, indptr, self.n_atoms)

    def to_ragged(self) -> "RaggedCodes":
        """Return the same codes without their padding."""
        return ragged(self.to_csr(), self.error)

    def take(self, rows: NDArray[np.intp]) -> "PaddedCodes":
        """Return the codes of some signals."""
        return PaddedCodes(
            n_atoms=self.n_atoms, error=self.error[rows], indices=self.indices[rows],
            values=self.values[rows],
        )  # fmt: skip

    def uses(self) -> NDArray[np.intp]:
        """Return how many signals use each atom."""
        return machine(self.indices).count_values(self.indices, self.n_atoms)


@dataclass(kw_only=True)
class RaggedCodes(Codes):
    """Signal s uses atoms ``indices[indptr[s]:indptr[s + 1]]``, ascending, with those values."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    values: Array

    def compressed(self) -> tuple[NDArray[np.int64], NDArray[np.integer], Array]:
        """Return the coefficients signal after signal: where those of each begin, atoms, values."""
        return self.indptr, self.indices, self.values

    def to_csr(self) -> scipy.sparse.csr_array:
        """Return the (n_signals, n_atoms) matrix of coefficients, indices sorted."""
        return as_csr(self.values, self.indices, self.indptr, self.n_atoms)

    def to_padded(self) -> PaddedCodes:
        """Return the same codes, padded to the length of the longest."""
        counts = np.diff(self.indptr)
        places = np.arange(max(int(counts.max(initial=0)), 1)) < counts[:, None]
        indices = np.full(places.shape, -1, np.int32, like=self.indices)
        values = np.zeros(places.shape, self.dtype, like=self.values)
        indices[places], values[places] = self.indices, self.values
        return PaddedCodes(n_atoms=self.n_atoms, error=self.error, indices=indices, values=values)

    def take(self, rows: NDArray[np.intp]) -> "RaggedCodes":
        """Return the codes of some signals."""
        return ragged(self.to_csr()[rows], self.error[rows])

    def uses(self) -> NDArray[np.intp]:
        """Return how many signals use each atom."""
        return machine(self.indices).count_values(self.indices, self.n_atoms)


@dataclass(kw_only=True)
class DenseCodes(Codes):
    """Every signal uses every atom: ``weights`` of shape (n_signals, n_atoms)."""

    weights: Array
    _coefficients: ClassVar[str] = "weights"

    def to_csr(self) -> scipy.sparse.csr_array:
        """Return the (n_signals, n_atoms) matrix of coefficients, indices sorted."""
        return dense_as_csr(self.weights)

    def to_dense(self) -> Array:
        """Return the (n_signals, n_atoms) array of coefficients."""
        return self.weights

    def take(self, rows: NDArray[np.intp]) -> "DenseCodes":
        """Return the codes of some signals."""
        return DenseCodes(n_atoms=self.n_atoms, error=self.error[rows], weights=self.weights[rows])

    def uses(self) -> NDArray[np.intp]:
        """Return how many signals use each atom."""
        return np.count_nonzero(self.weights, axis=0)


def _rounded(codes: Codes, values: Array, dtype: np.dtype[Any]) -> Array:
    """Return the coefficients in another type, or refuse if they overflow or underflow."""
    with np.errstate(over="ignore", under="ignore"):
        rounded = values.astype(dtype)
    if not np.isfinite(rounded).all():
        raise ValueError(
            f"The codes overflow {dtype.name}: coefficients reach {np.abs(values).max():.2g}; "
            "scale X down, choose smaller kernel parameters, or use float64."
        )
    tiny = np.finfo(dtype).tiny
    if np.any((np.abs(values) < tiny) & (values != 0)):
        padded = codes.to_padded().values if isinstance(codes, RaggedCodes) else values
        largest = np.abs(padded).max(axis=1, initial=0)
        if np.any((largest < tiny) & (largest > 0)):
            raise ValueError(
                f"The codes underflow {dtype.name}: those of some rows stay below "
                f"{float(tiny):.2g}; scale X up, choose larger kernel parameters, or use float64."
            )
    return rounded


def stack_rows(parts: Sequence[tuple[NDArray[np.intp], Codes]]) -> Codes:
    """Return greedy codes of one kind as one; ``parts`` holds signal numbers and their codes."""
    order, every = np.argsort(np.concatenate([rows for rows, _ in parts])), [c for _, c in parts]
    error = np.concatenate([codes.error for codes in every])[order]
    padded = [codes for codes in every if isinstance(codes, PaddedCodes)]
    if not padded:
        return ragged(stacked_csr([codes.to_csr() for codes in every])[order], error)
    indices = np.concatenate([codes.indices for codes in padded])[order]
    values = np.concatenate([codes.values for codes in padded])[order]
    return PaddedCodes(n_atoms=padded[0].n_atoms, error=error, indices=indices, values=values)


def replace_rows(codes: Codes, rows: NDArray[np.intp], others: Codes) -> Codes:
    """Return greedy codes with those of some signals, ascending, replaced by others of the kind."""
    numbers = {}  # one per signal
    for name in ("error", "gap", "n_passes", "n_updates"):
        old, new = getattr(codes, name), getattr(others, name)
        if old is not None:
            numbers[name] = old.copy()
            numbers[name][rows] = new
    if isinstance(codes, PaddedCodes):
        assert isinstance(others, PaddedCodes)
        indices, values = codes.indices.copy(), codes.values.copy()
        indices[rows], values[rows] = others.indices, others.values
        return replace(codes, indices=indices, values=values, **numbers)
    assert isinstance(codes, RaggedCodes)
    assert isinstance(others, RaggedCodes)
    counts = np.diff(codes.indptr)
    ours = np.ones(len(counts), bool, like=counts)
    ours[rows] = False
    kept = np.repeat(ours, counts)
    counts[rows] = np.diff(others.indptr)
    here = np.repeat(ours, counts)
    indices = np.empty(len(here), np.int32, like=codes.indices)
    values = np.empty(len(here), codes.dtype, like=codes.values)
    indices[here], values[here] = codes.indices[kept], codes.values[kept]
    indices[~here], values[~here] = others.indices, others.values
    return replace(codes, indptr=row_starts(counts), indices=indices, values=values, **numbers)


def scaled(codes: Codes, exponent: int) -> Codes:
    """Return the greedy or l1 codes of signals at 2^exponent of these."""
    assert isinstance(codes, PaddedCodes | RaggedCodes)
    with np.errstate(under="ignore"):
        squares = {
            name: np.ldexp(getattr(codes, name), 2 * exponent)
            for name in ("error", "gap") if getattr(codes, name) is not None
        }  # fmt: skip
        return replace(codes, values=np.ldexp(codes.values, exponent), **squares)


def ragged(matrix: scipy.sparse.csr_array, error: Array) -> RaggedCodes:
    """Return the codes that a CSR matrix (n_signals, n_atoms), its indices sorted, holds."""
    return RaggedCodes(
        n_atoms=matrix.shape[1], error=error, indptr=matrix.indptr.astype(np.int64),
        indices=matrix.indices.astype(np.int32), values=matrix.data,
    )  # fmt: skip


def stacked_csr(parts: Sequence[Any]) -> Any:
    """Return CSR matrices of the same columns under each other."""
    if scipy.sparse.issparse(parts[0]):
        return scipy.sparse.csr_array(scipy.sparse.vstack(parts, format="csr"))
    return machine(parts[0]).stacked(list(parts))


def row_starts(counts: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return where rows with these numbers of nonzeros begin, and where the last ends."""
    return np.concatenate([np.zeros(1, np.int64, like=counts), np.cumsum(counts)])


def dense_as_csr(weights: Array) -> Any:
    """Return the nonzeros of a matrix as a CSR matrix."""
    engine = machine(weights)
    indptr = row_starts(engine.map_rows(lambda rows: np.count_nonzero(rows, axis=1), weights))
    columns = np.empty(int(indptr[-1]), np.int32, like=weights)
    values = np.empty(len(columns), weights.dtype, like=weights)

    def work(start: int, stop: int) -> None:
        part, own = weights[start:stop], slice(int(indptr[start]), int(indptr[stop]))
        places = np.nonzero(part)
        columns[own], values[own] = places[1], part[places]

    engine.for_blocks(len(weights), 4 * weights.shape[1], 8, work)
    return as_csr(values, columns, indptr, weights.shape[1])


def as_csr(
    values: Array, indices: NDArray[np.integer], indptr: NDArray[np.integer], n_atoms: int
) -> Any:
    """Return coefficients, signal after signal, as a CSR matrix: scipy's, or the machine's own."""
    if is_device_array(values):
        return machine(values).csr(values, indices, indptr, n_atoms)
    index_type = np.int32 if indptr[-1] < np.iinfo(np.int32).max else np.int64
    matrix = scipy.sparse.csr_array(
        (values, indices.astype(index_type, copy=False), indptr.astype(index_type, copy=False)),
        shape=(len(indptr) - 1, n_atoms),
    )
    matrix.has_sorted_indices = True
    return matrix
