"""``residual_norms``: what codes leave of signals, in feature space."""

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils import check_array

from kernelatoms.coding.class_residuals import class_residuals
from kernelatoms.coding.codes import Codes, ragged
from kernelatoms.coding.missing_and_tiny import EXPONENT, enlarge, enlarged, tiny_signals
from kernelatoms.coding.problem import CodingProblem
from kernelatoms.engine import Array
from kernelatoms.estimators.coding.arguments import check_codes_of, make_problem
from kernelatoms.estimators.devices.border import on_cpu
from kernelatoms.estimators.validation import FLOATS, check_observed, dense_rows, refuse_unused
from kernelatoms.rows import PairedRows, RowSource, open_rows
from kernelatoms.rows.opening import is_dask


def residual_norms(
    X: Any,
    dictionary: Any,
    codes: Any,
    *,
    kernel: Any = "linear",
    gamma: float | str | None = "scale",
    degree: float = 3,
    coef0: float = 1,
    kernel_params: dict[str, Any] | None = None,
    energy: Any = None,
) -> Any:
    """Return |x - D w| for every signal x and its code w, in the feature space of a kernel.

    Parameters
    ----------
    X : array or RowSource of shape (n_samples, n_features)
        Signals; k(signals, atoms) with ``kernel="precomputed"``. Under the linear kernel, what is
        left of observed entries counts.
    dictionary : array of shape (n_atoms, n_features), or a fitted learner
        Atoms, as in ``sparse_encode``.
    codes : dense or sparse array, or RowSource, of shape (n_samples, n_atoms)
        Coefficients, whoever found them.
    kernel : str, callable, object or class, default="linear"
        As in ``KernelLinearizer``.
    gamma : float, "scale", "auto", "spread" or None, default="scale"
        As in ``sparse_encode``: "scale" is taken from the dictionary.
    degree, coef0 : float
        Parameters of the kernels by name, as in scikit-learn.
    kernel_params : dict, optional
        Further arguments of a function, or the arguments of a class.
    energy : array of shape (n_samples,), optional
        With ``kernel="precomputed"``: k(x, x) of the signals, which is needed then.

    Returns
    -------
    array of shape (n_samples,)
        Norms; their squares below 10 eps of k(x, x) count as 0. Of a source of signals a source,
        whose blocks are computed when they are read.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelatoms import residual_norms, sparse_encode
    >>> atoms = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> codes = sparse_encode([[3.0, 4.0]], atoms, n_nonzero_coefs=1)
    >>> residual_norms([[3.0, 4.0]], atoms, codes)
    array([3.])
    """
    if isinstance(X, RowSource) or is_dask(X):
        refuse_unused(residual_norms, {"energy": energy}, "has an entry per row, and X is a source")
        rows: Any = open_rows(X)
        others: Any = open_rows(codes)

        def of_blocks(rows: Any, own: Any) -> Array:
            return residual_norms(
                rows, dictionary, own, kernel=kernel, gamma=gamma, degree=degree, coef0=coef0,
                kernel_params=kernel_params,
            )  # fmt: skip

        if not is_dask(X):
            return PairedRows(rows, others, of_blocks, rows.dtype)
        if not is_dask(codes):
            raise TypeError(
                "X is a Dask collection, and so must codes be: model.transform(X), or "
                "dask.array.from_array(codes, chunks=...) with the chunks of X."
            )
        from kernelatoms.rows.dask.answers import lazy_answers

        return lazy_answers(
            of_blocks, [rows, others], np.empty(0, rows.dtype), task_name="residual_norms"
        )
    X, dictionary, codes, energy = on_cpu(
        "residual_norms", X=X, dictionary=dictionary, codes=codes, energy=energy
    )
    X = check_array(
        dense_rows(X), dtype=FLOATS, order="C", input_name="X", ensure_all_finite="allow-nan"
    )
    check_observed(X)
    problem = make_problem(
        X, dictionary, kernel, energy, gamma=gamma, degree=degree, coef0=coef0,
        kernel_params=kernel_params,
    )  # fmt: skip
    if not problem.knows_energy:
        raise ValueError("residual_norms needs k(x, x) with kernel='precomputed'; give energy.")
    matrix = scipy.sparse.csr_array(check_codes_of("codes", codes, problem))
    matrix.sort_indices()
    coded = ragged(matrix, np.zeros(len(X)))
    norms = _norms(problem, coded)
    tiny = tiny_signals(problem)
    if len(tiny):
        own = coded.take(tiny)
        larger = _norms(enlarged(problem, tiny), replace(own, values=enlarge(own.values)))
        norms[tiny] = np.ldexp(larger, -EXPONENT)
    return norms.astype(X.dtype, copy=False)


def _norms(problem: CodingProblem, codes: Codes) -> Array:
    """Return the norms of what codes leave."""
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused
        squares = class_residuals(problem, codes, np.zeros(problem.n_atoms, np.intp), 1)[:, 0]
    if not np.isfinite(squares).all():
        raise ValueError("X or codes hold numbers whose squares overflow float64; scale both down.")
    return np.sqrt(np.maximum(squares, 0))
