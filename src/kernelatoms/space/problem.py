"""Coding problems: all that a pursuit needs to know of signals and atoms.

A pursuit sees the Gram matrix of the atoms, the correlations of signals with atoms and the
signals' energies, block by block, and nothing else. Linear coding, kernel coding and coding
from given inner products are therefore three small classes and no pursuit knows which it has.

Missing values (NaN) of signals are the exception: over rows, each signal then sees its own part of
the atoms, and has a Gram matrix of its own. ``parted`` sets those signals apart. Kernels that can
estimate inner products from a part of a row need no exception.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kernelatoms.engine.cpu.omp import padded
from kernelatoms.engine.cpu.products import gram_matrix
from kernelatoms.similarity import LinearKernel, PrecomputedKernel
from kernelatoms.similarity.missing import rows_with_missing
from kernelatoms.space.expansion import Expansion
from kernelatoms.space.gram_check import check_gram

Array = NDArray[Any]


class CodingProblem(Protocol):
    """Signals to be written in atoms, known through inner products only."""

    n_signals: int
    n_atoms: int
    dtype: np.dtype[Any]

    @property
    def gram(self) -> Array:
        """Inner products of the atoms, columns padded with zeros for the engine."""

    def correlate(self, start: int, stop: int, out: Array) -> None:
        """Write the inner products of signals start..stop with all atoms into ``out``."""

    def energy(self, start: int, stop: int) -> Array | None:
        """Return the squared norms of signals start..stop, or None where they are not known."""


@dataclass(frozen=True)
class Parts:
    """A problem in two: its complete signals, and rows over rows for those that miss values."""

    complete_rows: NDArray[np.intp]
    complete: CodingProblem
    partial_rows: NDArray[np.intp]
    partial: "LinearProblem"


def parted(problem: CodingProblem) -> Parts | None:
    """Return a linear problem whose signals miss values in two parts; None for all others."""
    return problem.parts if isinstance(problem, LinearProblem | KernelProblem) else None


class LinearProblem:
    """Rows of ``signals`` over rows of ``atoms``."""

    def __init__(self, signals: Array, atoms: Array) -> None:
        self.signals = signals
        self.atoms = atoms
        self.n_signals, self.n_atoms = len(signals), len(atoms)
        self.dtype = signals.dtype

    @cached_property
    def gram(self) -> Array:
        """Inner products of the atoms."""
        gram = gram_matrix(self.atoms)
        self.check_norms(np.diagonal(gram))
        return gram

    @cached_property
    def columns(self) -> Array:
        """The atoms, transposed: BLAS is faster by up to a quarter with columns in memory."""
        return np.ascontiguousarray(self.atoms.T)

    @cached_property
    def parts(self) -> Parts | None:
        """Complete and incomplete signals apart; None if all are complete."""
        partial = rows_with_missing(self.signals)
        if not len(partial):
            return None
        complete = np.delete(np.arange(self.n_signals), partial)
        return Parts(
            complete, LinearProblem(self.signals[complete], self.atoms),
            partial, LinearProblem(self.signals[partial], self.atoms),
        )  # fmt: skip

    def check_norms(self, norms2: Array) -> None:
        """Refuse atoms whose squared norms overflow."""
        if not np.isfinite(norms2).all():
            raise ValueError(
                f"The dictionary holds atoms whose squared norm overflows {self.dtype.name}; scale "
                "them down or use float64."
            )

    def correlate(self, start: int, stop: int, out: Array) -> None:
        """Write the inner products of signals start..stop with all atoms into ``out``."""
        np.matmul(self.signals[start:stop], self.columns, out=out)

    def energy(self, start: int, stop: int) -> Array:
        """Return the squared norms of signals start..stop."""
        rows = self.signals[start:stop]
        with np.errstate(over="ignore"):  # the pursuit refuses infinite energies in words
            return np.vecdot(rows, rows)


class KernelProblem:
    """Mapped rows phi(x) over the vectors of an expansion; their Gram matrix, where it is known.

    Learners know it from coordinates, more accurately than from kernel values of anchors.
    """

    def __init__(self, signals: Array, atoms: Expansion, gram: Array | None = None) -> None:
        self.signals = signals
        self.atoms = atoms
        self._gram = gram
        self.n_signals, self.n_atoms = len(signals), atoms.n_vectors
        self.dtype = signals.dtype

    @cached_property
    def gram(self) -> Array:
        """Inner products of the atoms in feature space."""
        gram = self.atoms.gram() if self._gram is None else self._gram
        gram = gram.astype(self.dtype, copy=False)
        check_gram(gram, "the kernel on the atoms")
        return _pad_columns(gram)

    @cached_property
    def parts(self) -> Parts | None:
        """Complete and incomplete signals apart, if the kernel is linear; None otherwise."""
        kernel, coef = self.atoms.kernel, self.atoms.coef
        if not isinstance(kernel, LinearKernel):
            return None
        partial = rows_with_missing(self.signals)
        if not len(partial):
            return None
        rows = self.atoms.anchors if coef is None else coef.T @ self.atoms.anchors
        rows = np.ascontiguousarray(rows, dtype=self.dtype)
        complete = np.delete(np.arange(self.n_signals), partial)
        return Parts(
            complete, KernelProblem(self.signals[complete], self.atoms, self._gram),
            partial, LinearProblem(self.signals[partial], rows),
        )  # fmt: skip

    def correlate(self, start: int, stop: int, out: Array) -> None:
        """Write the inner products of signals start..stop with all atoms into ``out``."""
        self.atoms.inner(self.signals[start:stop], out=out)

    def energy(self, start: int, stop: int) -> Array | None:
        """Return k(x, x) of signals start..stop; None for a precomputed kernel."""
        if isinstance(self.atoms.kernel, PrecomputedKernel):
            return None
        return self.atoms.kernel.diag(self.signals[start:stop])


class GivenProblem:
    """Inner products computed by the caller."""

    def __init__(self, gram: Array, corr: Array, energy: Array | None = None) -> None:
        check_gram(gram, "the Gram matrix of the atoms")
        self.gram = _pad_columns(gram)
        self.corr = corr
        self._energy = energy
        self.n_signals, self.n_atoms = corr.shape
        self.dtype = corr.dtype

    def correlate(self, start: int, stop: int, out: Array) -> None:
        """Write the inner products of signals start..stop with all atoms into ``out``."""
        out[...] = self.corr[start:stop]

    def energy(self, start: int, stop: int) -> Array | None:
        """Return the squared norms of signals start..stop, if they were given."""
        return None if self._energy is None else self._energy[start:stop]


def _pad_columns(gram: Array) -> Array:
    n_atoms = len(gram)
    out = np.zeros((n_atoms, padded(n_atoms)), gram.dtype)
    out[:, :n_atoms] = gram
    return out
