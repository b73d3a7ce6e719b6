"""``store_codes``: rows as the nonzeros of their codes, the compression of the FKSC paper (A.7)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils.validation import check_is_fitted

from kernelatoms.engine import Array
from kernelatoms.estimators.validation import check_count, check_real


@dataclass(frozen=True)
class StoredCodes:
    """Codes as two columns: where the nonzeros of vec(W) are, and what they are.

    Parameters
    ----------
    index : int array of shape (n_nonzero,)
        Ascending places in vec(W): row i, atom j is at i n_atoms + j. int64 where int32 is short.
    value : float32 array of shape (n_nonzero,)
        The coefficients; what is 0 in float32 is left out.
    n_rows, n_features, n_atoms : int
        What was coded, and over how many atoms.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelatoms import StoredCodes
    >>> StoredCodes.of([[0.0, 2.0, 0.0], [1.0, 0.0, 4.0]], n_features=6).index
    array([1, 3, 5], dtype=int32)
    """

    index: Array
    value: Array
    n_rows: int
    n_features: int
    n_atoms: int

    @classmethod
    def of(cls, codes: Any, n_features: int) -> "StoredCodes":
        """Return codes, dense or sparse, so stored; steps 2 and 3 of A.7.

        Parameters
        ----------
        codes : array of shape (n_rows, n_atoms)
            Coefficients.
        n_features : int
            How many values a row has.
        """
        check_count("n_features", n_features)
        wide = scipy.sparse.csr_array(codes)
        if wide.ndim != 2:
            raise ValueError(f"codes must have shape (n_rows, n_atoms), got shape {wide.shape}.")
        wide.sum_duplicates()
        _check_size(wide.data)
        wide = wide.astype(np.float32)
        wide.eliminate_zeros()
        where = _rows_of(wide) * wide.shape[1] + wide.indices
        kind = np.int32 if wide.shape[0] * wide.shape[1] <= 2**31 else np.int64
        n_rows, n_atoms = wide.shape
        return cls(where.astype(kind), wide.data, n_rows, n_features, n_atoms)

    @property
    def ratio(self) -> float:
        """The paper's compression ratio: values over nonzeros, each nonzero counted once."""
        return self.n_rows * self.n_features / max(len(self.index), 1)

    @property
    def n_bytes(self) -> int:
        """The bytes of both columns; a reader needs the dictionary too."""
        return int(self.index.nbytes + self.value.nbytes)

    def codes(self) -> scipy.sparse.csr_array:
        """Return the codes, in float64; steps 4 and 5 of A.7."""
        shape = self.n_rows, self.n_atoms
        where = np.divmod(self.index.astype(np.int64), self.n_atoms)
        return scipy.sparse.csr_array((self.value.astype(np.float64), where), shape=shape)

    def decode(self, learner: Any) -> Array:
        """Return the rows that come back, by (19); step 6 of A.7.

        Parameters
        ----------
        learner : estimator
            The fitted learner that coded them.

        Returns
        -------
        rows : array of shape (n_rows, n_features)
        """
        _check_learner(learner)
        return np.asarray(learner.inverse_transform(self.codes()))


def store_codes(X: Any, learner: Any, *, ratio: float | None = None) -> StoredCodes:
    """Compress rows to the nonzeros of their codes, as A.7 of the FKSC paper does.

    There is no bound on what comes back; for files within a bound there is ``compress``.

    Parameters
    ----------
    X : array of shape (n_rows, n_features)
        Rows; in the paper's tables each has unit norm.
    learner : estimator
        A fitted learner, whose ``transform`` codes and whose ``inverse_transform`` decodes: in the
        paper ``KSCDL(method="fksc", change_tol=1e-3)``, whose ``alpha`` sets the nonzeros.
    ratio : float, optional
        From 1 to n_features: keep only the n_features / ``ratio`` largest |w| of every row.

    Returns
    -------
    StoredCodes

    Examples
    --------
    >>> import numpy as np
    >>> from kernelatoms import KSCDL, store_codes
    >>> phase = np.random.default_rng(0).uniform(0, 2 * np.pi, (300, 1))
    >>> waves = np.sin(np.linspace(0, 6, 40) + phase)
    >>> learner = KSCDL(method="fksc", change_tol=1e-3, alpha=0.01, random_state=0).fit(waves[:200])
    >>> stored = store_codes(waves[200:], learner, ratio=10)
    >>> stored.ratio >= 10, stored.n_bytes == 8 * len(stored.index)
    (True, True)
    >>> back = stored.decode(learner)
    >>> bool(np.abs(back - waves[200:]).mean() < 0.05)
    True
    """
    _check_learner(learner)
    check_is_fitted(learner, "n_features_in_")
    n_features = int(learner.n_features_in_)
    asked = None if ratio is None else check_real("ratio", ratio, low=1, high=n_features)
    codes = scipy.sparse.csr_array(learner.transform(X))
    if asked is not None:
        n_kept = round(n_features / asked)
        codes = _largest(codes, n_kept if n_features / n_kept >= asked else n_kept - 1)
    return StoredCodes.of(codes, n_features)


def _largest(codes: scipy.sparse.csr_array, n_kept: int) -> scipy.sparse.csr_array:
    """Return codes cut to the largest |w| of every row, of equal ones the first."""
    rows = _rows_of(codes)
    order = np.lexsort((-np.abs(codes.data), rows))
    rank = np.arange(codes.nnz) - codes.indptr[rows]
    kept = np.sort(order[rank < n_kept])
    where = rows[kept], codes.indices[kept]
    return scipy.sparse.csr_array((codes.data[kept], where), shape=codes.shape)


def _rows_of(codes: scipy.sparse.csr_array) -> Array:
    return np.repeat(np.arange(codes.shape[0], dtype=np.int64), np.diff(codes.indptr))


def _check_size(values: Array) -> None:
    """Refuse coefficients that float32 does not hold, or that are all so small that it rounds."""
    least, most = float(np.finfo(np.float32).tiny), float(np.finfo(np.float32).max)
    largest = float(np.abs(values).max(initial=0.0))
    if not (largest == 0 or least <= largest <= most):
        raise ValueError(
            f"codes are stored in float32, which holds {least:.0e} to {most:.0e}, and the "
            f"largest |w| is {largest:.1e}: scale the rows."
        )


def _check_learner(learner: Any) -> None:
    if not (hasattr(learner, "transform") and hasattr(learner, "inverse_transform")):
        raise TypeError(
            "learner must have transform and inverse_transform, such as a fitted KSCDL, got "
            f"{type(learner).__name__}."
        )
