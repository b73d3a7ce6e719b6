"""Training rows as a dictionary: how a representation classifier sees rows, prepared once.

A classifier that keeps its training rows sees a signal in one of two ways. In *feature space*, the
atoms are the mapped rows phi(d), known through kernel values. Through a *projection*, they are
explicit vectors: a row is its inner products with a few vectors of feature space, Psi' k(D, x), or
with all mapped rows, its column of kernel values (Psi = I).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelatoms.coding.atom_products import KernelAtoms, LinearAtoms, falls_with_l2, stack_values
from kernelatoms.coding.class_residuals import Members, members_of
from kernelatoms.coding.neighbors import (
    ApproximateNeighbors,
    ascending,
    featurize_by,
    nearest_by,
    nearest_in_space,
    refine,
)
from kernelatoms.coding.problem import CodingProblem, KernelProblem, LinearProblem
from kernelatoms.engine import Array, machine
from kernelatoms.features.expansion import Expansion
from kernelatoms.similarity import Kernel
from kernelatoms.similarity.distances import L2, Correlation
from kernelatoms.similarity.inner import LinearKernel
from kernelatoms.similarity.user_kernels import PrecomputedKernel

# A Gram matrix of up to so many entries is worth having where it saves time: 1 GiB in float64.
_GRAM_ENTRIES = 1 << 27


@dataclass(frozen=True)
class Locality:
    """Which atoms a signal may use: the nearest by a distance, from a coarse choice if asked."""

    n_neighbors: int
    distance: Any = None  # None: the distance of feature space
    n_coarse: int | None = None
    coarse_distance: Any = "l2"
    seed: int | None = None  # of approximate search; None: search exactly


class LocalProblems(NamedTuple):
    """A small problem for every signal: inner products of its K own atoms and with them.

    ``columns``: the columns of each Gram matrix are the atoms and the inner products the signal.
    Of columns at unit norm the inner products themselves are given.
    """

    grams: Array
    corrs: Array
    energies: Array
    columns: bool


@dataclass(eq=False)
class TrainingDictionary:
    """Rows of some classes, a kernel, and what is computed of them once.

    ``projected`` says whether signals are seen through a projection, ``psi`` (n_atoms,
    n_components) which, None for the identity, and ``unit`` whether atoms that are seen through it
    are scaled to unit norm; signals never are.
    """

    rows: Array  # k(train, train) with a precomputed kernel
    kernel: Kernel  # as fitted
    labels: NDArray[np.intp]  # numbers of classes
    n_classes: int
    projected: bool = False
    psi: Array | None = None
    unit: bool = False
    # By distance: indices for approximate search, and what distances compare.
    _indices: dict[tuple[str, int], ApproximateNeighbors] = field(default_factory=dict, init=False)
    _descriptors: list[tuple[Any, Any]] = field(default_factory=list, init=False)

    @property
    def n_atoms(self) -> int:
        """How many rows there are."""
        return len(self.rows)

    def through(self, psi: Array | None, unit: bool) -> "TrainingDictionary":
        """Return the same rows seen through a projection; what is known of them stays known."""
        other = replace(self, projected=True, psi=psi, unit=unit)
        if "atoms" in vars(self):
            other.atoms = self.atoms
        return other

    @property
    def in_columns(self) -> bool:
        """Whether atoms are whole columns of kernel values."""
        return self.projected and self.psi is None

    @cached_property
    def atoms(self) -> LinearAtoms | KernelAtoms:
        """The mapped rows in feature space."""
        if isinstance(self.kernel, LinearKernel):
            return LinearAtoms(self.rows)
        if isinstance(self.kernel, PrecomputedKernel):
            numbers = np.arange(self.n_atoms, like=self.rows)[:, None]
            return KernelAtoms(Expansion(self.kernel, numbers), self.rows)
        described = self.kernel.for_features(self.rows.shape[1])
        return KernelAtoms(Expansion(described, self.kernel.featurize(self.rows)))

    def in_feature_space(self, X: Array) -> CodingProblem:
        """Return rows X over the mapped rows."""
        if isinstance(self.atoms, LinearAtoms):
            return LinearProblem(X, self.atoms, complete=True)
        return KernelProblem(self.kernel.featurize(X), self.atoms)

    def mapped(self, X: Array) -> Array:
        """Return Psi' k(D, x) of rows, (n, n_components), in float64."""
        corr = self.in_feature_space(X).products(0, len(X))[0].astype(np.float64, copy=False)
        return corr if self.psi is None else corr @ self.psi

    @cached_property
    def mapped_atoms(self) -> LinearAtoms:
        """The training rows, mapped, and at unit norm if asked for; zero ones stay zero."""
        gram = self.atoms.gram.astype(np.float64)
        columns = gram if self.psi is None else gram @ self.psi
        if self.unit:
            columns = machine(columns).unit_rows(columns)
        return LinearAtoms(np.ascontiguousarray(columns, like=columns))

    def problem(self, X: Array) -> CodingProblem:
        """Return what is coded over all atoms."""
        if not self.projected:
            return self.in_feature_space(X)
        return LinearProblem(self.mapped(X), self.mapped_atoms, complete=True)

    def vectors(self, X: Array) -> tuple[Array, Array]:
        """Return signals and atoms as explicit vectors, for codes that look at their entries."""
        return self.mapped(X) if self.projected else X, self.atom_vectors

    def vectors_by(self, some: NDArray[np.intp]) -> Array:
        """Return all rows as explicit vectors, of the kernel values with some of them only."""
        if not self.projected:
            return self.rows
        columns = self.atoms.gram[:, some].astype(np.float64, copy=False)
        return columns if self.psi is None else columns @ self.psi[some]

    @property
    def atom_vectors(self) -> Array:
        """The atoms as explicit vectors."""
        return self.mapped_atoms.rows if self.projected else self.rows

    @cached_property
    def class_grams(self) -> tuple[Members, list[Array]]:
        """The atoms of every class and their inner products, in what is coded over."""
        gram, members = self.coded_gram, members_of(self.labels, self.n_classes)
        return members, [gram[own][:, own].astype(np.float64) for own in members]

    @property
    def coded_gram(self) -> Array:
        """The Gram matrix of what is coded over."""
        return (self.mapped_atoms if self.projected else self.atoms).gram

    # Neighbours

    def expect(self, n_signals: int, n_neighbors: int) -> None:
        """Compute all inner products of atoms at once, if so many signals would need more."""
        fits = self.n_atoms**2 <= _GRAM_ENTRIES
        if fits and n_signals * n_neighbors**2 >= self.n_atoms**2:
            _ = (self.atoms if self.in_columns or not self.projected else self.mapped_atoms).gram

    def owners(self, labels: NDArray[np.intp], near: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return the classes of each signal's own atoms, -1 where its list is filled up."""
        return np.where(near < 0, -1, labels[near])

    def local_problems(self, X: Array, near: NDArray[np.int32]) -> LocalProblems:
        """Return the small problems of rows X over each one's own atoms ``near`` (n, K)."""
        columns = self.in_columns
        problem = self.in_feature_space(X) if columns else self.problem(X)
        grams, corrs = problem.local(0, len(X), near)
        if columns:
            exact = corrs.astype(np.float64, copy=False)
            energies = np.vecdot(exact, exact)
            if self.unit:
                atoms = _unit_columns(grams)
                return LocalProblems(atoms @ atoms.mT, np.matvec(atoms, exact), energies, False)
        else:
            known = problem.energy(0, len(X))
            assert known is not None  # fit refuses kernels that do not know them
            energies = known.astype(np.float64, copy=False)
        return LocalProblems(grams, corrs, energies, columns)

    def local_vectors(
        self, X: Array, near: NDArray[np.int32]
    ) -> Iterator[tuple[Array, Array, NDArray[np.bool_]]]:
        """Yield each signal and its own atoms as explicit vectors, and which of ``near`` they are.

        In columns of kernel values, a signal's entries are those of its own atoms.
        """
        if self.in_columns:
            grams, corrs = self.in_feature_space(X).local(0, len(X), near)
            atoms = _unit_columns(grams) if self.unit else grams
            for own, corr, some in zip(atoms, corrs, near >= 0, strict=True):
                yield corr[some], own[some][:, some], some
            return
        signals, atoms = self.vectors(X)
        for signal, own in zip(signals, near, strict=True):
            yield signal, atoms[own[own >= 0]], own >= 0

    def neighbors(
        self, X: Array, locality: Locality, *, skip: NDArray[np.intp] | None = None
    ) -> NDArray[np.int32]:
        """Return the atoms that each row may use, ascending, (n, K); -1 fills shorter lists.

        ``skip`` names an atom for every row that it may not use: itself, where X are training rows.
        """
        more = 0 if skip is None else 1
        k = min(locality.n_neighbors + more, self.n_atoms)
        coarse = locality.n_coarse
        if coarse is not None:
            k_coarse = min(coarse + more, self.n_atoms)
            near = self._nearest(X, locality.coarse_distance, k_coarse, locality)
            found = self._refined(X, locality.distance, near, min(k, near.shape[1]))
        else:
            found = self._nearest(X, locality.distance, k, locality)
        if skip is not None:
            found = _without(found, skip, locality.n_neighbors)
        return ascending(found)

    def _nearest(self, X: Array, distance: Any, k: int, locality: Locality) -> NDArray[np.int32]:
        if locality.seed is not None:
            name = check_approximate(distance, self.kernel)
            return self._index(name, locality.seed).nearest(X, k)
        if distance is None:
            return nearest_in_space(self.in_feature_space(X), k)
        return nearest_by(distance, featurize_by(distance, X), self._described(distance), k)

    def _index(self, distance: str, seed: int) -> ApproximateNeighbors:
        """Return the index of the rows; kept."""
        if (distance, seed) not in self._indices:
            index = ApproximateNeighbors(self.rows, distance, random_state=seed)
            self._indices[distance, seed] = index
        return self._indices[distance, seed]

    def _refined(
        self, X: Array, distance: Any, near: NDArray[np.int32], k: int
    ) -> NDArray[np.int32]:
        if distance is not None:
            return refine(distance, featurize_by(distance, X), self._described(distance), near, k)
        own = np.maximum(near, 0)
        if isinstance(self.atoms, LinearAtoms):
            corr = np.matvec(self.rows[own], X)
        else:
            signals, anchors = self.kernel.featurize(X), self.atoms.expansion.anchors
            corr = stack_values(self.atoms.kernel, signals[:, None], anchors[own])[:, 0]
        far = self.atoms.norms2[own] - 2.0 * corr  # |phi(x) - phi(d)|^2, up to k(x, x)
        order = np.argsort(np.where(near < 0, np.inf, far), axis=1, kind="stable")[:, :k]
        return np.take_along_axis(near, order, axis=1)

    def _described(self, distance: Any) -> Any:
        for known, descriptors in self._descriptors:
            if known is distance:
                return descriptors
        descriptors = featurize_by(distance, self.rows)
        self._descriptors.append((distance, descriptors))
        return descriptors


def check_approximate(distance: Any, kernel: Kernel) -> str:
    """Return the name of a distance (None: of feature space) for approximate search, or refuse."""
    if isinstance(distance, Correlation):
        return "correlation"
    if isinstance(distance, L2) or (
        distance is None and (isinstance(kernel, LinearKernel) or falls_with_l2(kernel))
    ):
        return "l2"
    raise ValueError(
        "search='approximate' knows the distances 'l2' and 'correlation' only, as distance, or as "
        "coarse_distance with n_coarse; use one of them, or search='exact'."
    )


def _unit_columns(grams: Array) -> Array:
    """Return the columns of each Gram matrix as rows of unit norm, in float64."""
    rows = grams.mT.astype(np.float64)
    flat = np.ascontiguousarray(rows.reshape(-1, rows.shape[-1]), like=rows)
    return machine(flat).unit_rows(flat).reshape(rows.shape)


def _without(found: NDArray[np.int32], skip: NDArray[np.intp], k: int) -> NDArray[np.int32]:
    """Return lists without one atom each, or without their last."""
    kept = found != skip[:, None]
    order = np.argsort(~kept, axis=1, kind="stable")
    moved = np.where(np.take_along_axis(kept, order, 1), np.take_along_axis(found, order, 1), -1)
    return moved[:, : max(found.shape[1] - 1, k)].astype(np.int32)
