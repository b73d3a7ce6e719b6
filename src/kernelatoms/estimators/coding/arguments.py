"""Arguments of coding: the problem that rows, dictionary and kernel make, and its options."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from kernelatoms.coding.problem import CodingProblem, GivenProblem, KernelProblem, LinearProblem
from kernelatoms.engine import Array
from kernelatoms.estimators.coding.dictionary_coder import DictionaryCoder
from kernelatoms.estimators.devices.conversion import to_machine
from kernelatoms.estimators.validation import (
    FLOATS,
    check_any,
    check_count,
    check_dictionary,
    check_real,
    clip_count,
    is_default,
    validate_new,
)
from kernelatoms.features.expansion import Expansion
from kernelatoms.features.imputation import consistent_estimates
from kernelatoms.features.memory import check_fits
from kernelatoms.similarity import make_kernel
from kernelatoms.similarity.factory import check_kernel, check_machine, is_precomputed
from kernelatoms.similarity.inner import LinearKernel
from kernelatoms.similarity.missing import rows_with_missing
from kernelatoms.similarity.user_kernels import PrecomputedKernel

#: Methods of ``sparse_encode`` that minimise half of |x - D w|^2 plus alpha |w|_1.
L1_METHODS = ("lasso", "ksc", "fksc")
#: What ``method`` may be, of those that are more than a comparison.
METHODS = ("omp", "lasso", "ridge", "threshold")
#: Which methods of ``sparse_encode`` take which of its arguments; all others belong to any method.
TAKEN_BY = {
    "n_nonzero_coefs": ("omp",),
    "max_residual": ("omp",),
    "absolute": ("omp",),
    "selection": ("omp",),
    "candidates": METHODS,
    "alpha": (*L1_METHODS, "threshold"),
    "mu": ("ridge",),
    "positive": ("omp", "lasso", "threshold"),
    "gap_tol": L1_METHODS,
    "change_tol": ("ksc", "fksc"),
    "start": L1_METHODS,
    "energy": ("omp", *L1_METHODS),
    "return_gap": L1_METHODS,
}


def refuse_of_other_methods(method: str, takes: Any, given: Mapping[str, Any]) -> None:
    """Refuse what another method takes, unless it is at its default in ``takes``."""
    for name, value in given.items():
        if method not in TAKEN_BY[name] and not is_default(takes, name, value):
            takers = " or ".join(repr(taker) for taker in TAKEN_BY[name])
            raise ValueError(f"{name} belongs to method={takers}, not to {method!r}.")


def make_problem(
    X: Array,
    dictionary: Any,
    kernel: Any,
    energy: Any = None,
    complete: bool = False,
    **parameters: Any,
) -> CodingProblem:
    """Return the problem of coding X; ``parameters`` are gamma, degree, coef0, kernel_params.

    ``complete`` rows are known to miss no values.
    """
    if energy is not None and not is_precomputed(kernel):
        raise ValueError("energy belongs to kernel='precomputed'; other kernels know k(x, x).")
    if isinstance(dictionary, DictionaryCoder):
        unset = {"gamma": "scale", "degree": 3, "coef0": 1, "kernel_params": None}
        if not (isinstance(kernel, str) and kernel == "linear") or parameters != unset:
            raise ValueError(
                "Leave kernel and its parameters (gamma, degree, coef0, kernel_params) out: a "
                "fitted learner has its own."
            )
        check_is_fitted(dictionary)
        return dictionary._problem(validate_new(dictionary, X))
    bound = make_kernel(kernel, **parameters)
    if isinstance(bound, PrecomputedKernel):
        bound.refuse_missing(X)
        with np.errstate(invalid="ignore"):  # infinities are refused, without a warning before
            gram = check_any(dictionary, dtype=X.dtype, order="C", input_name="dictionary")
        if gram.shape != (X.shape[1], X.shape[1]):
            raise ValueError(
                "With kernel='precomputed', X is k(signals, atoms) and dictionary is the square "
                f"k(atoms, atoms): expected shape {(X.shape[1],) * 2}, got {gram.shape}."
            )
        return GivenProblem(gram, X, _check_energy(energy, X, np.diagonal(gram)))
    atoms = to_machine(check_dictionary("dictionary", dictionary, X.shape[1], X.dtype), X)
    if isinstance(bound, LinearKernel):
        return LinearProblem(X, atoms, complete=complete)
    check_machine(bound, X)
    bound = bound.with_gamma_from(atoms)
    check_kernel(bound, atoms)
    missing = rows_with_missing(X)
    if len(missing):
        bound.refuse_missing(X)
        check_fits(
            24.0 * len(atoms) ** 2, f"estimates of incomplete signals over {len(atoms)} atoms",
            "Impute what is missing, or code over fewer atoms.",
        )  # fmt: skip
        bound = consistent_estimates(bound, atoms, X[missing])
    return KernelProblem(X, Expansion(bound, atoms))


def _check_energy(energy: Any, corr: Array, norms2: Array) -> Array | None:
    """Return energies that the signals' products with the atoms allow."""
    if energy is None:
        return None
    n_signals = len(corr)
    values = check_any(energy, ensure_2d=False, dtype=np.float64, input_name="energy")
    if values.shape != (n_signals,):
        raise ValueError(
            f"energy must hold k(x, x) of each of the {n_signals} signals, got shape "
            f"{values.shape}."
        )
    values = np.asarray(values, like=corr)
    if (values < 0).any():
        raise ValueError(f"energy must not be negative, got {values.min():g}.")
    # What the best single atom explains of a signal is part of its energy.
    lengths = np.sqrt(np.where(norms2 > 0, norms2, np.inf).astype(np.float64))
    explained = np.square(corr / lengths).max(axis=1, initial=0)
    slack = np.sqrt(np.finfo(corr.dtype).eps)
    for s in np.flatnonzero(explained * (1 - slack) > values)[:1]:
        raise ValueError(
            f"energy[{s}] = {values[s]:.6g} is less than the {explained[s]:.6g} that one atom "
            f"alone explains of signal {s}: energy must hold k(x, x) of the signals, under the "
            "kernel of X and dictionary."
        )
    return values


def check_candidates(candidates: Any, problem: CodingProblem) -> NDArray[np.int32] | None:
    """Return lists of atoms (n_signals, n_candidates), each atom once, -1 where one is shorter."""
    if candidates is None:
        return None
    lists = np.asarray(candidates, like=problem.like)
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
    ordered = np.sort(lists, axis=1)
    twice = np.flatnonzero(
        ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any(axis=1)
    )
    if len(twice):
        raise ValueError(
            f"candidates must name an atom once per signal, but row {twice[0]} names one twice."
        )
    return np.ascontiguousarray(lists, dtype=np.int32, like=lists)


def check_codes_of(name: str, codes: Any, problem: CodingProblem) -> Any:
    """Return codes, dense or in CSR, with a coefficient for each signal and atom."""
    codes = check_any(codes, accept_sparse="csr", dtype=FLOATS, input_name=name)
    if codes.shape != (problem.n_signals, problem.n_atoms):
        raise ValueError(
            f"{name} must have shape {(problem.n_signals, problem.n_atoms)}, a coefficient for "
            f"each signal and atom, got {codes.shape}."
        )
    return codes


def check_start(start: Any, problem: CodingProblem) -> Array | None:
    """Return codes to start from as a dense array."""
    if start is None:
        return None
    codes = check_codes_of("start", start, problem)
    dense = codes.toarray() if hasattr(codes, "toarray") else codes
    return np.asarray(dense, like=problem.like)


def check_max_residual(value: Any, absolute: bool, problem: CodingProblem) -> Any:
    """Return None, a number or one for each signal."""
    if value is None:
        if absolute:
            raise ValueError("absolute=True tells what max_residual means; give max_residual too.")
        return None
    high = np.inf if absolute else 1.0
    if np.ndim(value) == 0:
        return check_real("max_residual", value, low=0, high=high)
    bounds = check_any(value, ensure_2d=False, dtype=np.float64, input_name="max_residual")
    if bounds.shape != (problem.n_signals,):
        raise ValueError(
            f"max_residual must be a number, or one for each of the {problem.n_signals} signals, "
            f"got shape {bounds.shape}."
        )
    for outside in np.flatnonzero((bounds < 0) | (bounds > high))[:1]:
        check_real(f"max_residual[{outside}]", float(bounds[outside]), low=0, high=high)
    return bounds


def choose_n_nonzero(
    asked: int | None, bounded: bool, problem: CodingProblem, n_features: int
) -> int:
    """Return the most atoms a signal may use: as asked, all that help, or a tenth of features."""
    limited = isinstance(problem, LinearProblem)  # there is nothing left after all features
    limit = problem.n_atoms if not limited else min(problem.n_atoms, n_features)
    if asked is not None:
        count = check_count("n_nonzero_coefs", asked)
        return clip_count("n_nonzero_coefs", count, limit, "atoms or features")
    return limit if bounded else min(max(1, n_features // 10), limit)


def check_alpha(method: str, alpha: Any) -> float:
    """Return the weight of the l1 penalty."""
    if alpha is None:
        raise ValueError(f"method={method!r} needs alpha, the weight of |w|_1, such as alpha=0.1.")
    return check_real("alpha", alpha, low=0, low_open=True)
