"""Coding problems: all that a pursuit needs to know about signals and atoms.

A pursuit sees inner products of atoms, of signals with atoms, and the signals' energies, block by
block, and nothing else. Linear coding, kernel coding and coding from given inner products are one
small class each, and no pursuit knows which it has.

Missing values (NaN) of signals over rows are the exception: each such signal has a Gram matrix of
its own, that of its observed entries. ``missing_and_tiny`` separates those signals.

See docs/decisions/019-kernel-blind-pursuits.md and docs/decisions/021-many-atoms.md.
"""

from collections.abc import Callable
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from kernelatoms.coding.atom_products import KernelAtoms, LinearAtoms, check_eigenvalues
from kernelatoms.engine import Array, machine
from kernelatoms.features.expansion import Expansion
from kernelatoms.features.linear_algebra import check_gram
from kernelatoms.similarity.base import check_flag
from kernelatoms.similarity.missing import rows_with_missing

Products = tuple[Array, Array | None]

# One inner product by itself takes as long as this many in a matrix product.
_FEW = 4


class CodingProblem(Protocol):
    """Signals to be written in atoms, known through inner products only."""

    n_signals: int
    n_atoms: int
    dtype: np.dtype[Any]
    #: One of its arrays: new arrays are made like it, on its device.
    like: Array

    @property
    def gram(self) -> Array:
        """Inner products of the atoms, (n_atoms, n_atoms)."""

    @property
    def gram_is_known(self) -> bool:
        """Whether ``gram`` has been computed already."""

    @property
    def norms2(self) -> Array:
        """Squared norms of the atoms, (n_atoms,)."""

    @property
    def knows_energy(self) -> bool:
        """Whether the squared norms of signals are known."""

    @property
    def assume_psd(self) -> bool:
        """Whether inner products are taken for those of vectors, without a check."""

    def products(self, start: int, stop: int) -> Products:
        """Return inner products of signals start..stop with all atoms, and their energies.

        (n, n_atoms) and (n,), or None for energies that are not known; of a wider type than
        ``dtype`` where that could not hold them.
        """

    def products_at(
        self, start: int, stop: int, indptr: NDArray[np.int64], indices: NDArray[np.int32]
    ) -> Products:
        """Return the inner products with the atoms that codes use alone, and the energies.

        Signal start + s uses the atoms indptr[s] to indptr[s + 1] of ``indices``: products are one
        list, from indptr[0] to indptr[-1].
        """

    def local(self, start: int, stop: int, candidates: NDArray[np.int32]) -> tuple[Array, Array]:
        """Return what signals start..stop see of their own candidates alone (n, K).

        Gram matrices (n, K, K) and inner products (n, K), 0 where a list is padded with -1.
        """

    def energy(self, start: int, stop: int) -> Array | None:
        """Return the squared norms of signals start..stop, or None where they are not known."""

    def gram_rows(self, atoms: NDArray[np.integer]) -> Array:
        """Return rows of the Gram matrix, without the rest of it."""

    def gram_times(self, weights: Array, candidates: NDArray[np.int32]) -> Array:
        """Return the inner products of combined atoms with all atoms, (n, n_atoms).

        Row s combines the atoms ``candidates[s]`` with ``weights[s]``; -1 has weight 0.
        """

    def check_semidefinite(self) -> None:
        """Refuse atoms whose Gram matrix is not positive semi-definite."""

    @property
    def gains_digits(self) -> bool:
        """Whether inner products in float64 surely have more digits than these of float32."""

    def in_float64(self, signals: NDArray[np.intp]) -> "CodingProblem":
        """Return the problem of some signals, with inner products in float64."""


class _PickedProducts:
    """Problems that pick the inner products of codes' atoms out of those with all atoms."""

    products: Callable[[int, int], Products]

    def products_at(
        self, start: int, stop: int, indptr: NDArray[np.int64], indices: NDArray[np.int32]
    ) -> Products:
        """Return the inner products with the atoms that codes use alone, and the energies."""
        corr, energy = self.products(start, stop)
        rows = np.repeat(np.arange(len(corr), like=indptr), np.diff(indptr))
        return corr[rows, indices[indptr[0] : indptr[-1]]], energy


def _of_atoms(name: str) -> Any:
    return property(lambda self: getattr(self.atoms, name))


class _SignalsOverAtoms(_PickedProducts):
    """Rows of ``signals`` over atoms that can be compared with rows."""

    gram = _of_atoms("gram")
    gram_is_known = _of_atoms("gram_is_known")
    norms2 = _of_atoms("norms2")
    knows_energy = _of_atoms("knows_energy")
    gram_rows = _of_atoms("gram_rows")
    gram_times = _of_atoms("gram_times")
    check_semidefinite = _of_atoms("check_semidefinite")

    def __init__(self, signals: Array, atoms: LinearAtoms | KernelAtoms) -> None:
        self.signals = self.like = signals
        self.atoms = atoms
        self.n_signals, self.n_atoms = len(signals), atoms.n_atoms
        self.dtype = signals.dtype

    @property
    def assume_psd(self) -> bool:
        return True

    def products(self, start: int, stop: int) -> Products:
        rows = self.signals[start:stop]
        return self.atoms.inner(rows), self.atoms.energy(rows)

    def local(self, start: int, stop: int, candidates: NDArray[np.int32]) -> tuple[Array, Array]:
        return self.atoms.local(self.signals[start:stop], candidates)

    def energy(self, start: int, stop: int) -> Array | None:
        return self.atoms.energy(self.signals[start:stop])

    @property
    def gains_digits(self) -> bool:
        return bool(self.dtype == np.float32 and self.atoms.gains_digits)

    def in_float64(self, signals: NDArray[np.intp]) -> Self:
        wide = self.signals[signals].astype(np.float64)
        return type(self)(wide, self.atoms.in_float64)


class LinearProblem(_SignalsOverAtoms):
    """Rows of ``signals`` over rows of ``atoms``; ``complete`` signals have no missing values."""

    atoms: LinearAtoms

    def __init__(
        self, signals: Array, atoms: Array | LinearAtoms, *, complete: bool = False
    ) -> None:
        super().__init__(signals, atoms if isinstance(atoms, LinearAtoms) else LinearAtoms(atoms))
        self.complete = check_flag("complete", complete)

    def products(self, start: int, stop: int) -> Products:
        """Return inner products of signals start..stop with all atoms, and their energies."""
        near, exponents, energy = self._rescaled(start, stop)
        return _scaled(self.atoms.inner(near), exponents), energy

    def products_at(
        self, start: int, stop: int, indptr: NDArray[np.int64], indices: NDArray[np.int32]
    ) -> Products:
        """Return the inner products with the atoms that codes use alone, and the energies."""
        few = _FEW * (indptr[-1] - indptr[0]) < (stop - start) * self.n_atoms
        near, exponents, energy = self._rescaled(start, stop)
        if not few or exponents is not None or near.dtype != self.atoms.rows.dtype:
            return super().products_at(start, stop, indptr, indices)
        return machine(near).products_at(near, self.atoms.rows, indptr, indices), energy

    def local(self, start: int, stop: int, candidates: NDArray[np.int32]) -> tuple[Array, Array]:
        """Return what signals start..stop see of their own candidates alone."""
        near, exponents, _ = self._rescaled(start, stop)
        grams, corr = self.atoms.local(near, candidates)
        return grams, _scaled(corr, exponents)

    def energy(self, start: int, stop: int) -> Array:
        """Return the squared norms of signals start..stop."""
        return self.atoms.energy(self.signals[start:stop])

    def _rescaled(self, start: int, stop: int) -> tuple[Array, NDArray[np.int32] | None, Array]:
        """Return signals whose products fit, powers of two that undo their scale, and energies."""
        rows, energy = self.signals[start:stop], self.energy(start, stop)
        engine = machine(rows)
        if engine.all_in_safe_range(energy, self.dtype):
            return rows, None, energy
        outside = ~engine.in_safe_range(energy, self.dtype)
        return *engine.rescale_rows(rows, outside, self.dtype), energy


def linear_problems(
    dictionary: Array, n_signals: int, *, complete: bool = True
) -> Callable[[Array], LinearProblem]:
    """Return how to pose problems of blocks of rows, ``n_signals`` in all.

    Rows that are not ``complete`` may miss values. What problems share (Gram matrix, transposed
    atoms) is computed here, once and before threads ask.
    """
    atoms = LinearAtoms(dictionary)
    itemsize = dictionary.dtype.itemsize
    if not machine(dictionary).prefers_no_gram(len(dictionary), n_signals, 1, itemsize):
        _ = atoms.gram
    _ = atoms.norms2, atoms.columns
    return lambda rows: LinearProblem(rows, atoms, complete=complete)


def _scaled(corr: Array, exponents: NDArray[np.int32] | None) -> Array:
    """Return inner products of signals divided by powers of two as those of the signals."""
    if exponents is None:
        return corr
    return np.ldexp(corr.astype(np.float64), exponents[:, None])


class KernelProblem(_SignalsOverAtoms):
    """Mapped rows phi(x) over vectors of their feature space."""

    atoms: KernelAtoms

    def __init__(self, signals: Array, atoms: Expansion | KernelAtoms) -> None:
        super().__init__(signals, atoms if isinstance(atoms, KernelAtoms) else KernelAtoms(atoms))

    def products(self, start: int, stop: int) -> Products:
        """Return inner products of signals start..stop with all atoms, and their energies."""
        corr, energy = super().products(start, stop)
        if energy is not None and not energy.all():
            corr = np.where(energy[:, None] == 0, 0, corr)  # of the origin: the rest is rounding
        return corr, energy

    @property
    def assume_psd(self) -> bool:
        """Whether the kernel is positive semi-definite; estimates are as they are."""
        return bool(self.atoms.kernel.semidefinite) or len(rows_with_missing(self.signals)) > 0


class GivenProblem(_PickedProducts):
    """Inner products computed by the caller; with ``assume_psd`` they are not checked."""

    gram_is_known = True
    gains_digits = False

    def __init__(
        self, gram: Array, corr: Array, energy: Array | None = None, *, assume_psd: bool = False
    ) -> None:
        self.assume_psd = check_flag("assume_psd", assume_psd)
        if not assume_psd:
            check_gram(gram, "the Gram matrix of the atoms")
        self.gram = machine(gram).pad_rows(gram)
        self.norms2 = np.diagonal(gram).copy()
        self.corr = self.like = corr
        self._energy = energy
        self.n_signals, self.n_atoms = corr.shape
        self.dtype = corr.dtype

    @property
    def knows_energy(self) -> bool:
        """Whether the squared norms of signals were given."""
        return self._energy is not None

    def products(self, start: int, stop: int) -> Products:
        """Return inner products of signals start..stop with all atoms, and their energies."""
        return self.corr[start:stop], self.energy(start, stop)

    def local(self, start: int, stop: int, candidates: NDArray[np.int32]) -> tuple[Array, Array]:
        """Return what signals start..stop see of their own candidates alone."""
        corr = np.take_along_axis(self.corr[start:stop], np.maximum(candidates, 0), axis=1)
        return machine(self.gram).gather(self.gram, candidates), np.where(candidates < 0, 0, corr)

    def energy(self, start: int, stop: int) -> Array | None:
        """Return the squared norms of signals start..stop, if they were given."""
        return None if self._energy is None else self._energy[start:stop]

    def gram_rows(self, atoms: NDArray[np.integer]) -> Array:
        """Return rows of the Gram matrix."""
        return self.gram[atoms]

    def gram_times(self, weights: Array, candidates: NDArray[np.int32]) -> Array:
        """Return the inner products of combined atoms with all atoms."""
        return (weights[:, None] @ self.gram[candidates])[:, 0]

    def check_semidefinite(self) -> None:
        """Refuse a Gram matrix that is not positive semi-definite."""
        if not self.assume_psd:
            check_eigenvalues(self.gram)

    def in_float64(self, signals: NDArray[np.intp]) -> "GivenProblem":
        """Return the problem of some signals, with the same inner products in float64."""
        energy = None if self._energy is None else self._energy[signals]
        corr = self.corr[signals].astype(np.float64)
        return GivenProblem(self.gram.astype(np.float64), corr, energy, assume_psd=True)


def check_explained(problem: CodingProblem, energies: Array, left: Array) -> None:
    """Refuse signals whose codes explain more than their energy k(x, x), beyond rounding."""
    if problem.assume_psd:
        return
    slack = np.sqrt(np.finfo(problem.dtype).eps) * np.abs(left - energies)
    wrong = np.flatnonzero((left < -slack) | ~np.isfinite(left))
    if len(wrong):
        s = int(wrong[0])
        if isinstance(problem, GivenProblem):
            raise ValueError(
                f"energy[{s}] = {energies[s]:.6g} is less than the {energies[s] - left[s]:.6g} "
                f"that the code of signal {s} explains: energy must hold k(x, x) of the signals, "
                "under the kernel of X and dictionary."
            )
        raise ValueError(
            f"kernel is not positive semi-definite: k(x, x) = {energies[s]:.6g} of signal {s} is "
            f"less than the {energies[s] - left[s]:.6g} that its code explains. Choose another "
            "kernel (sigmoid kernels often are not) or other parameters."
        )


def prefers_no_gram(problem: CodingProblem, n_nonzero: int, *, few: bool = False) -> bool:
    """Whether coding is faster without the Gram matrix; ``few`` if it needs few of its rows."""
    if problem.gram_is_known:
        return False
    if few and 2 * problem.n_signals * n_nonzero < problem.n_atoms:
        return True
    itemsize = np.dtype(problem.dtype).itemsize
    engine = machine(problem.like)
    return bool(engine.prefers_no_gram(problem.n_atoms, problem.n_signals, n_nonzero, itemsize))


def rows_of(problem: CodingProblem) -> tuple[Array, Array] | None:
    """Return signals and atoms of a linear problem; None of others."""
    if not isinstance(problem, LinearProblem):
        return None
    return problem.signals, problem.atoms.rows
