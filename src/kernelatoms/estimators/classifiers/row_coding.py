"""Signals coded over training rows: the fitted state of representation classifiers.

A ``RowCoder`` holds the training rows as a dictionary, which of them a signal may use, and the
weight of a code's size. It writes signals in training rows and says what each class's part leaves:

- ``RidgeCoder``: ridge codes (CRC); ``SparseRowCoder``: l1 or greedy codes (SRC);
- ``RobustCoder``: codes that allow a few entries of a signal to be wrong.
"""

from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from kernelatoms.coding.class_residuals import (
    ClassParts,
    parts_of_dense_codes,
    parts_of_sparse_codes,
    parts_of_vectors,
)
from kernelatoms.coding.closed_form import inverse_gram
from kernelatoms.coding.codes import Codes, as_csr, dense_as_csr, ragged, row_starts
from kernelatoms.coding.lasso import lasso
from kernelatoms.coding.omp import omp
from kernelatoms.coding.robust import RobustDictionary
from kernelatoms.engine import Array, machine
from kernelatoms.estimators.classifiers.training_dictionary import (
    Locality,
    LocalProblems,
    TrainingDictionary,
)

Near = NDArray[np.int32]

# Signals that a thread works on at once: their kernel values stay at some ten MiB, their small Gram
# matrices, of which there are a few copies, at half of that, and their own atoms at twice that.
_VALUES_AT_ONCE, _GRAM_VALUES_AT_ONCE, _ATOM_VALUES_AT_ONCE = 2_000_000, 1_000_000, 4_000_000
_FEWEST_ROWS = 4


class Represented(NamedTuple):
    """Signals written in training rows: what each class's part leaves of them, and the codes.

    Robust codes have ``errors``, what they leave unexplained, and duality ``gaps``.
    """

    parts: ClassParts
    codes: Callable[[], scipy.sparse.csr_array]  # most callers want scores alone
    errors: Array | None = None
    gaps: Array | None = None


@dataclass(eq=False)
class RowCoder:
    """Codes signals over training rows; subclasses say how."""

    dictionary: TrainingDictionary
    locality: Locality | None  # which training rows a signal may use; None for all
    weight: float  # of a code's size
    # Whether a row was coded, and with it computed what all rows need: threads would wait for that.
    _is_prepared: bool = field(default=False, init=False)

    def in_blocks(
        self, X: Array, scaled: Callable[[Array], Array], see: Callable[[Array, Near | None], Any]
    ) -> list[Any]:
        """Return ``see(rows, near)`` of every block of signals, on all threads.

        Rows are ``scaled`` first; ``near`` are the atoms that each may use, None for all.
        """
        dictionary, locality = self.dictionary, self.locality
        found: dict[int, Any] = {}

        def rows_of(start: int, stop: int) -> Array:
            return scaled(X[start:stop].astype(dictionary.rows.dtype, copy=False))

        def work(start: int, stop: int) -> None:
            rows, near = rows_of(start, stop), None
            if locality is not None:
                with lock or nullcontext():
                    near = dictionary.neighbors(rows, locality)
            found[start] = see(rows, near)

        # An index of pynndescent has threads of its own.
        lock = Lock() if locality is not None and locality.seed is not None else None
        if locality is not None:
            dictionary.expect(len(X), locality.n_neighbors)
        if not self._is_prepared and len(X) > 1:
            rows = rows_of(0, 1)
            self.code(rows, None if locality is None else dictionary.neighbors(rows, locality))
            self._is_prepared = True
        self._for_blocks(X, work)
        return [found[start] for start in sorted(found)]

    def _for_blocks(self, X: Array, work: Callable[[int, int], None]) -> None:
        """Call ``work(start, stop)`` for blocks of signals, on all threads."""
        most = _VALUES_AT_ONCE // self.dictionary.n_atoms
        if self.locality is not None:
            own = self.locality.n_neighbors
            most = min(
                _GRAM_VALUES_AT_ONCE // (own * own), _ATOM_VALUES_AT_ONCE // (own * X.shape[1])
            )
        machine(X).for_rows(len(X), max(most, _FEWEST_ROWS), work)

    def code(self, rows: Array, near: Near | None) -> Represented:
        """Code signals over all atoms, or over each one's own atoms ``near`` (n, K)."""
        return self._over_all(rows) if near is None else self._over_own(rows, near)

    def owners(self, near: Near) -> NDArray[np.int64]:
        """Return the classes of each signal's own atoms; -1 fills shorter lists."""
        return self.dictionary.owners(self.dictionary.labels, near)

    def whole(self, rows: Array, near: Near | None, codes: scipy.sparse.csr_array) -> ClassParts:
        """Return what codes as a whole leave of signals, as if all atoms were of one class."""
        raise NotImplementedError

    def _over_all(self, rows: Array) -> Represented:
        raise NotImplementedError

    def _over_own(self, rows: Array, near: Near) -> Represented:
        raise NotImplementedError

    def _as_codes(self, weights: Array, near: Near) -> scipy.sparse.csr_array:
        """Return coefficients (n, K) of each signal's own atoms as codes over all atoms."""
        used = near >= 0
        starts = row_starts(used.sum(axis=1))
        return as_csr(weights[used], near[used], starts, self.dictionary.n_atoms)


class SquaredCoder(RowCoder):
    """Codes of least squares; subclasses say which weights |w| has (``_weights``)."""

    def _weights(self, local: LocalProblems) -> Array:
        """Return the coefficients (n, K) of small problems."""
        raise NotImplementedError

    def _over_own(self, rows: Array, near: Near) -> Represented:
        local = self.dictionary.local_problems(rows, near)
        weights = self._weights(local)
        parts = _local_parts(local, weights, self.owners(near), self.dictionary.n_classes)
        return Represented(parts, lambda: self._as_codes(weights, near))

    def whole(self, rows: Array, near: Near | None, codes: scipy.sparse.csr_array) -> ClassParts:
        """Return what codes as a whole leave of signals, as if all atoms were of one class."""
        one = np.zeros(self.dictionary.n_atoms, np.intp)
        if near is None:
            coded = ragged(codes, np.zeros(len(rows)))
            return parts_of_sparse_codes(self.dictionary.problem(rows), coded, one, 1)
        local = self.dictionary.local_problems(rows, near)
        owners = self.dictionary.owners(one, near)
        return _local_parts(local, _weights_of(codes, near), owners, 1)


class RidgeCoder(SquaredCoder):
    """Ridge codes: min |y - D w|^2 + weight |w|^2."""

    @cached_property
    def _inverse(self) -> Array:
        return inverse_gram(self.dictionary.coded_gram, self.weight)

    def _over_all(self, rows: Array) -> Represented:
        corr, energies = self.dictionary.problem(rows).products(0, len(rows))
        assert energies is not None  # fit refuses kernels that do not know them
        corr = corr.astype(np.float64, copy=False)
        weights = corr @ self._inverse
        parts = parts_of_dense_codes(corr, energies, weights, *self.dictionary.class_grams)
        return Represented(parts, lambda: dense_as_csr(weights))

    def _for_blocks(self, X: Array, work: Callable[[int, int], None]) -> None:
        if self.locality is not None:
            super()._for_blocks(X, work)
        else:
            machine(X).for_blocks(len(X), 2 * self.dictionary.n_atoms, 8, work)

    def _weights(self, local: LocalProblems) -> Array:
        engine = machine(local.corrs)
        return engine.ridge_local(local.grams, local.corrs, self.weight, local.columns)


@dataclass(eq=False)
class SparseRowCoder(SquaredCoder):
    """l1 codes, min 1/2 |y - D w|^2 + weight |w|_1, or greedy codes of ``n_nonzero`` rows."""

    n_nonzero: int | None

    def _over_all(self, rows: Array) -> Represented:
        problem = self.dictionary.problem(rows)
        codes: Codes
        if self.n_nonzero is None:
            codes = lasso(problem, self.weight)
        else:
            codes = omp(problem, self.n_nonzero)
        labels, n_classes = self.dictionary.labels, self.dictionary.n_classes
        return Represented(parts_of_sparse_codes(problem, codes, labels, n_classes), codes.to_csr)

    def _weights(self, local: LocalProblems) -> Array:
        grams, corrs, energies = local.grams, local.corrs, local.energies
        if local.columns:  # inner products of the columns
            grams, corrs = grams.astype(np.float64), corrs.astype(np.float64)
            corrs, grams = (grams @ corrs[:, :, None])[:, :, 0], grams @ grams
        n_signals, n_own = corrs.shape
        missing = np.diagonal(grams, axis1=1, axis2=2) <= 0
        places = np.where(missing, -1, np.arange(n_own)).astype(np.int32)

        def problems(start: int, stop: int) -> tuple[Array, Array, Array]:
            return grams[start:stop], corrs[start:stop], energies[start:stop]

        engine, weights = machine(corrs), np.zeros((n_signals, n_own + 1), like=corrs)
        if self.n_nonzero is not None:
            indices, values, _ = engine.omp_local(problems, places, self.n_nonzero)
            np.put_along_axis(weights, indices, values, axis=1)  # -1 is the last
        else:
            indptr, indices, values, *_ = engine.lasso_local(
                problems, places, corrs.dtype, self.weight
            )
            weights[np.repeat(np.arange(n_signals), np.diff(indptr)), indices] = values
        return weights[:, :-1]


@dataclass(eq=False)
class RobustCoder(RowCoder):
    """Robust codes: min |e|_1 + weight |w| with y = D w + e; the norm of w is the ``penalty``."""

    penalty: str
    tol: float

    @cached_property
    def _all_rows(self) -> RobustDictionary:
        return RobustDictionary(self.dictionary.atom_vectors, self.weight, self.penalty)

    def _over_all(self, rows: Array) -> Represented:
        dictionary = self.dictionary
        signals, atoms = dictionary.vectors(rows)
        found = self._all_rows.code(signals, self.tol)
        # r_i = |y - D_i x_i - e| / |x_i| (Algorithm 2, step 6)
        parts = parts_of_vectors(
            signals - found.errors, atoms, found.weights, dictionary.labels, dictionary.n_classes
        )
        return Represented(
            parts, lambda: scipy.sparse.csr_array(found.weights), found.errors, found.gap
        )

    def _over_own(self, rows: Array, near: Near) -> Represented:
        owners, n_classes = self.owners(near), self.dictionary.n_classes
        weights, gaps, each, errors = np.zeros(near.shape), np.zeros(len(near)), [], []
        for i, (signal, atoms, places) in enumerate(self.dictionary.local_vectors(rows, near)):
            robust = RobustDictionary(atoms, self.weight, self.penalty)
            found = robust.code(signal[None], self.tol)
            gaps[i] = found.gap[0]
            weights[i, places] = found.weights[0]
            trusted = signal[None] - found.errors
            owner = owners[i, places]
            each.append(parts_of_vectors(trusted, atoms, found.weights, owner, n_classes))
            errors.append(found.errors[0])
        longest = max(len(error) for error in errors)
        padded = [np.pad(error, (0, longest - len(error))) for error in errors]
        return Represented(
            _stacked(each), lambda: self._as_codes(weights, near), np.stack(padded), gaps
        )

    def whole(self, rows: Array, near: Near | None, codes: scipy.sparse.csr_array) -> ClassParts:
        """Return what codes as a whole leave of signals, as if all atoms were of one class."""
        one = np.zeros(self.dictionary.n_atoms, np.intp)
        if near is None:
            return parts_of_vectors(*self.dictionary.vectors(rows), codes.toarray(), one, 1)
        weights = _weights_of(codes, near)
        local = zip(self.dictionary.local_vectors(rows, near), weights, strict=True)
        return _stacked(
            parts_of_vectors(signal[None], atoms, code[None, some], one[: len(atoms)], 1)
            for (signal, atoms, some), code in local
        )


def _weights_of(codes: scipy.sparse.csr_array, near: Near) -> Array:
    """Return codes over each signal's own atoms as coefficients (n, K)."""
    weights = np.zeros(near.shape)
    weights[near >= 0] = codes.data
    return weights


def _local_parts(
    local: LocalProblems, weights: Array, owners: NDArray[Any], n_classes: int
) -> ClassParts:
    left, norms2 = machine(weights).class_parts_local(
        local.grams, local.corrs, local.energies, weights, owners, n_classes, local.columns
    )
    return ClassParts(left, norms2, local.energies)


def _stacked(each: Iterable[ClassParts]) -> ClassParts:
    """Return the parts of signals, one by one, as those of all."""
    parts = list(each)
    return ClassParts(
        np.concatenate([one.residuals2 for one in parts]),
        np.concatenate([one.norms2 for one in parts]),
        np.concatenate([one.energies for one in parts]),
    )
