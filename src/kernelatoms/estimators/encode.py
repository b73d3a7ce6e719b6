"""``sparse_encode``: codes of signals over a given dictionary."""

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.utils import check_array

from kernelatoms.estimators.checks import (
    FLOATS,
    check_choice,
    check_complete,
    check_count,
    check_dictionary,
    check_observed,
    check_real,
    clip_count,
)
from kernelatoms.pursuit import lasso, omp_of_observed
from kernelatoms.similarity import make_kernel
from kernelatoms.similarity.missing import refuse_missing
from kernelatoms.space.expansion import Expansion
from kernelatoms.space.problem import CodingProblem, GivenProblem, KernelProblem, LinearProblem

Array = NDArray[Any]


def sparse_encode(
    X: Any,
    dictionary: Any,
    *,
    method: str = "omp",
    n_nonzero_coefs: int | None = None,
    max_residual: float | None = None,
    selection: str = "omp",
    candidates: Any = None,
    alpha: float | None = None,
    positive: bool = False,
    kernel: Any = "linear",
    kernel_params: dict[str, Any] | None = None,
    sparse_output: bool = True,
) -> scipy.sparse.csr_array | Array:
    """Write every signal as a combination of few atoms.

    Minimises |x - D w|^2 with at most ``n_nonzero_coefs`` nonzeros in w, or uses as few atoms as
    bring the residual down to ``max_residual`` of the signal's norm, by orthogonal matching
    pursuit; or minimises half of |x - D w|^2 plus ``alpha`` times the sum of the |w_j|
    (``method="lasso"``). With a kernel, signals and atoms are compared in its feature space
    (kernel OMP, kernel sparse coding).

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        Signals; k(signals, atoms) with ``kernel="precomputed"``. A signal with missing values
        (NaN) is coded by the others: under the linear kernel |x - D w|^2 counts observed entries
        only, with atoms scaled to unit norm on them when they are picked; other kernels are
        estimated from the observed entries. Not for "chi2", "additive_chi2", "precomputed" or
        kernels given as functions.
    dictionary : array of shape (n_atoms, n_features)
        Atoms, best at unit norm: OMP picks the largest inner product, so longer atoms come first
        (OLS does not care). k(atoms, atoms) with ``kernel="precomputed"``.
    method : {"omp", "lasso"}
        The pursuit: greedy, or l1 to a duality gap of 1e-6 of the signal's energy, in float64.
    n_nonzero_coefs : int, optional
        The most atoms a signal may use. By default a tenth of the features (at least 1), or all
        atoms if ``max_residual`` is given.
    max_residual : float, optional
        Stop once the residual's norm is at most this share of the signal's norm (0 to 1). Room
        for ``n_nonzero_coefs`` nonzeros a signal is set aside, so bound it on large data. In
        float32, shares below about 3e-3 drown in rounding, and atoms within a quarter of a
        degree of each other count as one: use float64 for nearly parallel atoms.
    selection : {"omp", "ols"}
        Pick the atom with the largest correlation (OMP), or with the largest decrease of the
        residual (orthogonal least squares: smaller residuals for 1.1 to 1.35 times the time).
    candidates : int array of shape (n_samples, n_candidates), optional
        The atoms that each signal may use; -1 pads shorter lists.
    alpha : float, optional
        For ``method="lasso"``: the weight of the penalty. From the largest inner product of a
        signal with an atom on, its code is 0.
    positive : bool, default=False
        For ``method="lasso"``: allow no negative coefficients.
    kernel : str or callable, default="linear"
        As in ``KernelLinearizer``.
    kernel_params : dict, optional
        Its parameters: gamma, degree, coef0 and the like.
    sparse_output : bool, default=True
        Return a CSR array; False gives a dense one.

    Returns
    -------
    codes : (n_samples, n_atoms) CSR array, or dense array
        ``codes @ dictionary`` approximates X (under the linear kernel).

    Examples
    --------
    >>> import numpy as np
    >>> from kernelatoms import sparse_encode
    >>> atoms = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
    >>> sparse_encode([[3.0, 4.0]], atoms, n_nonzero_coefs=1).toarray()
    array([[0., 0., 5.]])
    """
    check_choice("method", method, ("omp", "lasso"))
    check_choice("selection", selection, ("omp", "ols"))
    X = check_array(X, dtype=FLOATS, order="C", input_name="X", ensure_all_finite="allow-nan")
    check_observed(X)
    problem = _make_problem(X, dictionary, kernel, kernel_params)
    if method == "lasso":
        given = {"n_nonzero_coefs": n_nonzero_coefs, "max_residual": max_residual,
                 "candidates": candidates}  # fmt: skip
        codes = lasso(problem, _check_alpha(alpha, X, given), positive=positive)
        return codes.to_csr() if sparse_output else codes.to_dense()
    if alpha is not None or positive:
        raise ValueError("alpha and positive belong to method='lasso'.")
    if max_residual is not None:
        check_real("max_residual", max_residual, low=0, high=1)
    limit = problem.n_atoms if kernel != "linear" else min(problem.n_atoms, X.shape[1])
    if n_nonzero_coefs is not None:
        n_nonzero = check_count("n_nonzero_coefs", n_nonzero_coefs)
        n_nonzero = clip_count("n_nonzero_coefs", n_nonzero, limit, "atoms or features")
    elif max_residual is not None:
        n_nonzero = limit
    else:
        n_nonzero = min(max(1, X.shape[1] // 10), limit)
    chosen = _check_candidates(candidates, problem)
    codes = omp_of_observed(
        problem, n_nonzero, max_residual=max_residual, selection=selection, candidates=chosen
    )
    return codes.to_csr() if sparse_output else codes.to_dense()


def _check_alpha(alpha: Any, X: Array, given: dict[str, Any]) -> float:
    foreign = [name for name, value in given.items() if value is not None]
    if foreign:
        raise ValueError(
            f"{foreign[0]} belongs to method='omp'; method='lasso' is governed by alpha."
        )
    if alpha is None:
        raise ValueError("method='lasso' needs alpha, the weight of |w|_1, such as alpha=0.1.")
    check_complete(X)
    return check_real("alpha", alpha, low=0, low_open=True)


def _make_problem(
    X: Array, dictionary: Any, kernel: Any, kernel_params: dict[str, Any] | None
) -> CodingProblem:
    if isinstance(kernel, str) and kernel == "precomputed":
        refuse_missing(X, "a precomputed kernel")
        gram = check_array(dictionary, dtype=X.dtype, order="C", input_name="dictionary")
        if gram.shape != (X.shape[1], X.shape[1]):
            raise ValueError(
                "With kernel='precomputed', X is k(signals, atoms) and dictionary is the square "
                f"k(atoms, atoms): expected shape {(X.shape[1],) * 2}, got {gram.shape}."
            )
        return GivenProblem(gram, X)
    atoms = check_dictionary("dictionary", dictionary, X.shape[1], X.dtype)
    bound = make_kernel(kernel, kernel_params=kernel_params)
    if isinstance(kernel, str) and kernel == "linear":
        return LinearProblem(X, atoms)
    return KernelProblem(X, Expansion(bound, atoms))


def _check_candidates(candidates: Any, problem: CodingProblem) -> NDArray[np.int32] | None:
    if candidates is None:
        return None
    lists = np.asarray(candidates)
    if lists.ndim != 2 or len(lists) != problem.n_signals or lists.dtype.kind not in "iu":
        raise ValueError(
            "candidates must be whole numbers in shape (n_samples, n_candidates) with "
            f"n_samples = {problem.n_signals}, got {lists.dtype} of shape {lists.shape}."
        )
    lists = lists.astype(np.int64)
    if lists.shape[1] == 0:
        raise ValueError("candidates must name at least one atom (or -1) a signal.")
    if lists.min(initial=-1) < -1 or lists.max(initial=-1) >= problem.n_atoms:
        raise ValueError(
            f"candidates must be atoms 0..{problem.n_atoms - 1}, or -1 for none; found "
            f"{lists.min()}..{lists.max()}."
        )
    return np.ascontiguousarray(lists, dtype=np.int32)
