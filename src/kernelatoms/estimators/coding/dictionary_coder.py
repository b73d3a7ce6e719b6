"""``DictionaryCoder``: what has atoms and codes rows over them, however these were learned."""

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.callback import CallbackSupportMixin
from sklearn.utils.validation import check_is_fitted

from kernelatoms.coding.atom_products import LinearAtoms
from kernelatoms.coding.codes import Codes
from kernelatoms.coding.missing_and_tiny import split_missing
from kernelatoms.coding.problem import CodingProblem, LinearProblem
from kernelatoms.coding.pursuits import Pursuit, code_over_nearest
from kernelatoms.engine import Array, machine
from kernelatoms.estimators.base import Bring, Estimator, unnamed
from kernelatoms.estimators.devices.border import at_once, block_worker, by_rows
from kernelatoms.estimators.devices.source_columns import note_columns
from kernelatoms.estimators.validation import check_codes, validate_new, wants_frame
from kernelatoms.features.expansion import Expansion
from kernelatoms.features.linear_algebra import check_squares
from kernelatoms.features.memory import check_dense_fits
from kernelatoms.rows import RowSource
from kernelatoms.similarity.inner import LinearKernel


@unnamed
class DictionaryCoder(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, CallbackSupportMixin, Estimator
):
    """Code rows over atoms, and back.

    A subclass defines how rows are coded (``_pursuit``). Atoms are rows, ``components_``, unless
    it has another fitted state (``_make_fitted``), which makes the coding problem of rows.
    """

    sparse_output: bool
    components_: Array
    n_atoms_: int
    n_features_in_: int

    def transform(self, X: Any) -> scipy.sparse.csr_array | Array:
        """Return the sparse codes of X over the dictionary.

        Parameters
        ----------
        X : array or RowSource of shape (n_samples, n_features)
            Signals; k(new, train) with ``kernel="precomputed"``. Those with missing values (NaN)
            are coded by their observed entries, from which kernels are estimated; "chi2",
            "additive_chi2", "precomputed" and functions refuse NaN, and so do l1 codes.

        Returns
        -------
        codes : CSR array of shape (n_samples, n_atoms_), dense with ``sparse_output=False``
            Of tensors, a tensor where they are (``torch.sparse_csr``, or dense); of a source of
            rows a source, whose blocks are computed when they are read.
        """
        return by_rows(self._transform, X, self, frames=True)

    def _transform(self, X: Any) -> scipy.sparse.csr_array | Array:
        X = self._validated(X)
        sparse = self.sparse_output and not wants_frame(self)
        if not sparse:
            check_dense_fits(len(X), self.n_atoms_, X.itemsize, like=X)
        codes = self._encode(X)
        return codes.to_csr() if sparse else codes.to_dense()

    def inverse_transform(self, codes: Any) -> Array:
        """Return the signals that codes represent: ``codes @ components_``.

        Under a kernel, learned ridge pre-images (``KSCDL`` has its own); see ``preimage``, too.

        Parameters
        ----------
        codes : dense or CSR array of shape (n_samples, n_atoms_)
            Coefficients, as ``transform`` returns them.

        Returns
        -------
        rows : array of shape (n_samples, n_features)
        """
        return by_rows(self._inverse_transform, codes, self, name="codes")

    def _inverse_transform(self, codes: Any) -> Array:
        codes = self._check_codes(codes)
        if "components_" not in vars(self):
            raise ValueError(
                "inverse_transform needs the training rows, which kernel='precomputed' does not "
                "give."
            )
        atoms = self._fitted(codes).components.astype(codes.dtype, copy=False)
        return np.asarray(codes @ atoms, like=atoms)

    def score(self, X: Any, y: Any = None) -> float:
        """Return the share of the signals' energy that their codes keep.

        Parameters
        ----------
        X : array or RowSource of shape (n_samples, n_features)
            Signals; of those with missing values (NaN), observed entries count.
        y : ignored

        Returns
        -------
        float
            1 less the sum of the squared residuals over that of the k(x, x); 1 is lossless.
        """
        return at_once(self._score, X, self)

    def _score(self, X: Any) -> float:
        if isinstance(X, RowSource):
            worker = block_worker(self)
            sums = X.reduce(lambda rows, _: worker._squares(rows), block_rows=X.default_block_rows)
            note_columns(self, X, reset=False)
        else:
            sums = self._squares(X)
        error, energy = sums.tolist()
        check_squares(energy, X if isinstance(X, RowSource) else [self._validated(X)])
        return 1.0 - error / energy if energy > 0 else 1.0

    def _squares(self, X: Any) -> NDArray[np.float64]:
        """Return the sums of the squared residuals, and of the k(x, x)."""
        X = self._validated(X)
        if not self._problem(X).knows_energy:
            raise ValueError("score needs k(x, x), which kernel='precomputed' does not give.")
        error = float(np.sum(self._encode(X).error, dtype=np.float64))
        return np.array([error, float(np.nansum(self._energies(X), dtype=np.float64))])

    def _problem(self, X: Array) -> CodingProblem:
        """Return the problem of coding validated rows over the atoms."""
        problem: CodingProblem = self._fitted(X).problem(X)
        return problem

    def _make_fitted(self, bring: Bring) -> Any:
        return LinearState(bring(self.components_))

    def _pursuit(self) -> Pursuit:
        """Return how rows are coded."""
        raise NotImplementedError

    def _encode(self, X: Array, n_neighbors: int | None = None) -> Codes:
        """Return the codes of validated rows over all atoms, or the nearest few of each row."""
        return code_over_nearest(self._pursuit(), self._problem(X), n_neighbors).astype(X.dtype)

    def _energies(self, X: Array) -> Array:
        """Return k(x, x) of validated rows; of those coded by observed entries, what these have."""
        problem = self._problem(X)
        energies, parts = problem.energy(0, len(X)), split_missing(problem)
        assert energies is not None
        if parts is not None:
            observed = np.nan_to_num(parts.partial.signals)
            energies[parts.partial_rows] = machine(observed).squared_norms(observed)
        return energies

    def _dictionaries(self) -> "list[DictionaryCoder]":
        """Return the coders that hold the atoms."""
        return [self]

    def _deciding_codes(self, X: Array) -> scipy.sparse.csr_array:
        """Return the codes of validated rows over the atoms of all dictionaries."""
        return self._encode(X).to_csr()

    def _gram(self) -> Array:
        """Return the inner products of the atoms."""
        return self._problem(np.zeros((1, self.n_features_in_))).gram

    def _expansion(self) -> Expansion:
        """Return the atoms as vectors of a feature space."""
        expansion: Expansion = self._fitted().expansion
        return expansion

    def _validated(self, X: Any) -> Array:
        check_is_fitted(self)
        return validate_new(self, X)

    def _check_codes(self, codes: Any) -> Any:
        check_is_fitted(self)
        return check_codes(codes, self.n_atoms_)

    @property
    def _n_features_out(self) -> int:
        return self.n_atoms_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True  # in rows to code; fit leaves such rows out
        tags.input_tags.sparse = True  # dense inside
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class LinearState:
    """The fitted state of what codes over rows: the atoms, ready to be coded over."""

    def __init__(self, components: Array) -> None:
        self.components = components
        self._atoms: dict[Any, LinearAtoms] = {}

    @property
    def expansion(self) -> Expansion:
        """The atoms as vectors of the space of rows."""
        return Expansion(LinearKernel(), self.components)

    def problem(self, X: Array) -> CodingProblem:
        """Return the problem of coding rows over the atoms, in the type of the rows."""
        if X.dtype not in self._atoms:
            self._atoms[X.dtype] = LinearAtoms(self.components.astype(X.dtype, copy=False))
        return LinearProblem(X, self._atoms[X.dtype])
