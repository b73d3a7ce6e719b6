"""``sparse_encode`` and ``lasso_path``: codes of signals over a given dictionary."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from kernelatoms.coding import ksc, lasso, omp
from kernelatoms.coding.closed_form import ridge, threshold
from kernelatoms.coding.codes import Codes
from kernelatoms.coding.lasso import fksc
from kernelatoms.coding.lasso import lasso_path as path_of
from kernelatoms.coding.problem import CodingProblem
from kernelatoms.engine import Array, is_device_array
from kernelatoms.estimators.coding.arguments import (
    METHODS,
    check_alpha,
    check_candidates,
    check_max_residual,
    check_start,
    choose_n_nonzero,
    make_problem,
    refuse_of_other_methods,
)
from kernelatoms.estimators.devices.border import as_labels, at_once, by_rows
from kernelatoms.estimators.validation import (
    FLOATS,
    check_any,
    check_choice,
    check_complete,
    check_count,
    check_real,
    check_signals,
    dense_rows,
    refuse_unused,
)
from kernelatoms.features.memory import check_dense_fits, check_fits
from kernelatoms.rows import RowSource
from kernelatoms.rows.opening import is_dask
from kernelatoms.similarity.base import check_flag

_L1: dict[str, Callable[..., Codes]] = {"lasso": lasso, "ksc": ksc, "fksc": fksc}


def sparse_encode(
    X: Any,
    dictionary: Any,
    *,
    method: str = "omp",
    n_nonzero_coefs: int | None = None,
    max_residual: Any = None,
    absolute: bool = False,
    selection: str = "omp",
    candidates: Any = None,
    alpha: float | None = None,
    mu: float | None = None,
    positive: bool = False,
    gap_tol: float = 1e-6,
    change_tol: float | None = None,
    start: Any = None,
    energy: Any = None,
    kernel: Any = "linear",
    gamma: float | str | None = "scale",
    degree: float = 3,
    coef0: float = 1,
    kernel_params: dict[str, Any] | None = None,
    sparse_output: bool = True,
    return_gap: bool = False,
) -> Any:
    """Write every signal as a combination of few atoms.

    Minimises |x - D w|^2 with at most ``n_nonzero_coefs`` nonzeros in w, or uses as few atoms as
    bring the residual down to ``max_residual`` of the signal's norm, by orthogonal matching
    pursuit; or minimises half of |x - D w|^2 plus ``alpha`` |w|_1 (``method="lasso"``), or plus
    ``mu`` / 2 |w|^2 ("ridge"). With a kernel, signals and atoms are compared in its feature space.

    Parameters
    ----------
    X : array or RowSource of shape (n_samples, n_features)
        Signals; k(signals, atoms) with ``kernel="precomputed"``. Of rows with missing values (NaN)
        the linear kernel counts only what is observed, with atoms scaled to unit norm on that when
        they are picked; other kernels are estimated from it, but for "chi2", "additive_chi2",
        "precomputed" and functions. Tensors are coded on their device, without missing values;
        float16 and bfloat16 in float32.
    dictionary : array of shape (n_atoms, n_features)
        Atoms, best at unit norm: OMP picks longer atoms first (OLS does not care). k(atoms, atoms)
        with ``kernel="precomputed"``. Or a fitted learner, for its atoms and kernel.
    method : {"omp", "lasso", "ridge", "threshold", "ksc", "fksc"}
        The pursuit: greedy ("omp"), or l1 ("lasso"): an active set for small supports, coordinate
        descent for large ones, in float64, to a duality gap; "ridge" uses all atoms. "threshold"
        draws inner products with the atoms towards 0 by ``alpha``: the same as "lasso" over
        orthonormal atoms, a cheap code over others. "ksc" and "fksc" are l1 as the FKSC paper
        publishes it, in one stage and in two: the same minimum, many times slower, to compare with.
    n_nonzero_coefs : int, optional
        The most atoms a signal may use. By default a tenth of the features (at least 1), or all
        atoms if ``max_residual`` is given.
    max_residual : float or array of shape (n_samples,), optional
        Stop once the residual's norm is at most this share of the signal's norm (0 to 1). In
        float32, shares below about 3e-3 drown in rounding, and atoms within a quarter of a degree
        of each other may count as one.
    absolute : bool, default=False
        For "omp": stop once the residual's norm is at most ``max_residual`` itself, not a share.
    selection : {"omp", "ols"}
        For "omp": pick atoms by correlation, or by residual decrease (orthogonal least squares:
        smaller residuals for 1.1 to 1.35 times the time).
    candidates : int array of shape (n_samples, n_candidates), optional
        Not for "ksc" and "fksc": the atoms that each signal may use; -1 pads shorter lists.
    alpha : float, optional
        For the l1 methods and "threshold": the weight of the penalty. From the largest inner
        product of a signal with an atom on, its code is 0.
    mu : float, optional
        For "ridge": the weight of the penalty, above 0.
    positive : bool, default=False
        Not for "ridge", "ksc" and "fksc": allow no negative coefficients. Greedy codes then are
        non-negative least squares on what is picked; atoms that end at zero leave.
    gap_tol : float, default=1e-6
        For the l1 methods: stop at a duality gap of this share of k(x, x). No code is better by
        more than the gap.
    change_tol : float, optional
        For "ksc" and "fksc": stop as the FKSC paper does (at 1e-3) and not at a gap, when a pass
        changes w by no more than this share of |w|, or after 100 passes.
    start : array of shape (n_samples, n_atoms), optional
        For the l1 methods: codes to start from, dense or sparse; the result is the same, sooner.
    energy : array of shape (n_samples,), optional
        With ``kernel="precomputed"``: k(x, x) of the signals, which ``max_residual`` and the l1
        methods need.
    kernel : str, callable, object or class, default="linear"
        As in ``KernelLinearizer``.
    gamma : float, "scale", "auto", "spread" or None, default="scale"
        As in ``KernelLinearizer``, of the dictionary in place of training rows. For atoms learned
        under a kernel, give the model itself, or its ``gamma_``.
    degree, coef0 : float
        Parameters of the kernels by name, as in scikit-learn.
    kernel_params : dict, optional
        Further arguments of a function, or the arguments of a class.
    sparse_output : bool, default=True
        Return a CSR array; False gives a dense one.
    return_gap : bool, default=False
        For the l1 methods: return the duality gaps too.

    Returns
    -------
    codes : (n_samples, n_atoms) CSR array, or dense array
        ``codes @ dictionary`` approximates X (under the linear kernel). Of tensors, a tensor there.
    gap : array of shape (n_samples,)
        Only with ``return_gap=True``: how far each code's objective is from the minimum at most.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelatoms import sparse_encode
    >>> atoms = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
    >>> sparse_encode([[3.0, 4.0]], atoms, n_nonzero_coefs=1).toarray()
    array([[0., 0., 5.]])
    """
    check_choice("method", method, (*METHODS, "ksc", "fksc"))
    check_choice("selection", selection, ("omp", "ols"))
    flags = {
        "positive": positive, "absolute": absolute, "sparse_output": sparse_output,
        "return_gap": return_gap,
    }  # fmt: skip
    for name, flag in flags.items():
        check_flag(name, flag)
    refuse_of_other_methods(method, sparse_encode, {
        "n_nonzero_coefs": n_nonzero_coefs, "max_residual": max_residual, "absolute": absolute,
        "selection": selection, "candidates": candidates, "alpha": alpha, "mu": mu,
        "positive": positive, "gap_tol": gap_tol, "change_tol": change_tol, "start": start,
        "energy": energy, "return_gap": return_gap,
    })  # fmt: skip
    kernel_parameters = {
        "gamma": gamma, "degree": degree, "coef0": coef0, "kernel_params": kernel_params,
    }  # fmt: skip

    if return_gap and (isinstance(X, RowSource) or is_dask(X)):
        raise ValueError(
            "return_gap=True gives two arrays, and X is a source of rows: give its blocks, one "
            "after another (for block in X: ...)."
        )

    def code(
        X: Any, dictionary: Any, max_residual: Any, candidates: Any, start: Any, energy: Any
    ) -> Any:
        X, complete = check_signals(X)
        problem = make_problem(X, dictionary, kernel, energy, complete, **kernel_parameters)
        if not sparse_output or (method in ("ridge", "threshold") and candidates is None):
            check_dense_fits(problem.n_signals, problem.n_atoms, X.itemsize, like=X)
        allowed = check_candidates(candidates, problem)
        if method != "omp":
            check_complete(X)
        if method == "omp":
            stop_at = check_max_residual(max_residual, absolute, problem)
            codes: Codes = omp(
                problem,
                choose_n_nonzero(n_nonzero_coefs, stop_at is not None, problem, X.shape[1]),
                max_residual=stop_at, absolute=absolute, selection=selection, positive=positive,
                candidates=allowed,
            )  # fmt: skip
        elif method == "ridge":
            if mu is None:
                raise ValueError("method='ridge' needs mu, the weight of |w|^2, such as mu=0.01.")
            codes = ridge(problem, check_real("mu", mu, low=0, low_open=True), candidates=allowed)
        elif method == "threshold":
            weight = check_alpha(method, alpha)
            codes = threshold(problem, weight, positive=positive, candidates=allowed)
        else:
            options: dict[str, Any] = {
                "gap_tol": check_real("gap_tol", gap_tol, low=0, low_open=True),
                "start": check_start(start, problem),
            }
            if method == "lasso":
                options |= {"positive": positive, "candidates": allowed}
            else:
                _refuse_devices(method, X)
                options |= _change_stop(change_tol, gap_tol)
            codes = _L1[method](problem, check_alpha(method, alpha), **options)
        # Kernel learners may code float32 in float64.
        coded = codes.to_csr() if sparse_output else codes.to_dense()
        coded = coded.astype(X.dtype, copy=False)
        return (coded, codes.gap) if return_gap else coded

    lines = {
        "max_residual": max_residual, "candidates": candidates, "start": start, "energy": energy
    }  # fmt: skip
    return by_rows(code, X, lines=lines, shared={"dictionary": dictionary})


def _refuse_devices(method: str, X: Array) -> None:
    if is_device_array(X):
        raise ValueError(
            f"method={method!r} is there to compare with and runs on the CPU alone; use "
            "method='lasso', which has the same minimum, or kernelatoms.to_device(X, 'cpu')."
        )


def _change_stop(change_tol: float | None, gap_tol: float) -> dict[str, float]:
    """Return the stop of the FKSC paper as an argument, if it is asked for."""
    if change_tol is None:
        return {}
    refuse_unused(
        sparse_encode, {"gap_tol": gap_tol}, "and change_tol are two stops, give one of them"
    )
    return {"change_tol": check_real("change_tol", change_tol, low=0)}


class LassoPath(NamedTuple):
    """What ``lasso_path`` returns.

    Attributes
    ----------
    alphas : array of shape (n_alphas,)
        The weights of the penalty, largest first.
    codes : list of n_alphas CSR arrays of shape (n_samples, n_atoms)
        The codes at each of them.
    gaps : array of shape (n_alphas, n_samples)
        How far each code's objective is from the minimum at most.
    """

    alphas: Array
    codes: list[scipy.sparse.csr_array]
    gaps: Array


def lasso_path(
    X: Any,
    dictionary: Any,
    *,
    alphas: Any = None,
    n_alphas: int = 20,
    smallest: float = 1e-2,
    positive: bool = False,
    gap_tol: float = 1e-6,
    kernel: Any = "linear",
    gamma: float | str | None = "scale",
    degree: float = 3,
    coef0: float = 1,
    kernel_params: dict[str, Any] | None = None,
) -> LassoPath:
    """Code signals at many weights of the l1 penalty, from sparse to dense.

    Each weight starts from the codes of the one before, so that a whole path costs little more than
    its last point. To see how nonzeros and error go together, and to choose ``alpha``.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        Signals, complete.
    dictionary : array of shape (n_atoms, n_features), or a fitted learner
        Atoms.
    alphas : array of shape (n_alphas,), optional
        The weights, all above 0. By default from the largest inner product of a signal with an
        atom, where all codes are 0, down to ``smallest`` of it, evenly on a logarithmic scale.
    n_alphas : int, default=20
        How many weights; not with ``alphas``.
    smallest : float, default=1e-2
        The smallest weight as a share of the largest; not with ``alphas``.
    positive : bool, default=False
        Allow no negative coefficients.
    gap_tol : float, default=1e-6
        Stop at a duality gap of this share of k(x, x).
    kernel : str, callable, object or class, default="linear"
        As in ``KernelLinearizer``.
    gamma : float, "scale", "auto", "spread" or None, default="scale"
        As in ``sparse_encode``.
    degree, coef0 : float
        Parameters of the kernels by name, as in scikit-learn.
    kernel_params : dict, optional
        Further arguments of a function, or the arguments of a class.

    Returns
    -------
    LassoPath

    Examples
    --------
    >>> import numpy as np
    >>> from kernelatoms import lasso_path
    >>> path = lasso_path([[3.0, 4.0]], np.eye(2), alphas=[4.0, 3.5, 1.0])
    >>> [codes.toarray().round(2).tolist()[0] for codes in path.codes]
    [[0.0, 0.0], [0.0, 0.5], [2.0, 3.0]]
    """
    check_flag("positive", positive)
    check_real("gap_tol", gap_tol, low=0, low_open=True)
    kernel_parameters: dict[str, Any] = {
        "gamma": gamma, "degree": degree, "coef0": coef0, "kernel_params": kernel_params,
    }  # fmt: skip

    def code(X: Any, dictionary: Any) -> LassoPath:
        X = check_any(
            dense_rows(X), dtype=FLOATS, order="C", input_name="X", ensure_all_finite="allow-nan"
        )
        check_complete(X)
        problem = make_problem(X, dictionary, kernel, **kernel_parameters)
        if alphas is None:
            check_real("smallest", smallest, low=0, high=1, low_open=True)
            count = check_count("n_alphas", n_alphas)
            check_fits(8.0 * count * len(X), f"gaps of {count} weights", "Use fewer (n_alphas)")
            weights = _largest_correlation(problem) * np.logspace(0, np.log10(smallest), count)
        else:
            weights = _given_weights(alphas, {"n_alphas": n_alphas, "smallest": smallest})
        found = path_of(problem, weights.tolist(), positive=positive, gap_tol=gap_tol)
        gaps = np.stack([codes.gap for codes in found if codes.gap is not None])
        return LassoPath(weights, [codes.to_csr() for codes in found], gaps)

    return at_once(code, X, shared={"dictionary": dictionary})


def _given_weights(alphas: Any, unused: dict[str, Any]) -> Array:
    """Return weights of the penalty, largest first."""
    refuse_unused(lasso_path, unused, "chooses weights where none are given, and alphas gives them")
    given = check_any(as_labels(alphas), ensure_2d=False, dtype=np.float64, input_name="alphas")
    weights = np.unique(given)[::-1]
    if not weights[-1] > 0:
        raise ValueError(f"alphas must all be above 0, got {weights[-1]:g}.")
    return weights


def _largest_correlation(problem: CodingProblem) -> float:
    """Return the weight from which on all codes are 0."""
    largest = 0.0
    for first in range(0, problem.n_signals, 1024):
        corr, _ = problem.products(first, min(first + 1024, problem.n_signals))
        largest = max(largest, float(np.abs(corr).max()))
    if largest == 0.0:
        raise ValueError(
            "All inner products of signals and atoms are 0, so every code is 0; give alphas."
        )
    return largest
