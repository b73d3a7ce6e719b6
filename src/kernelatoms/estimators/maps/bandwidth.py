"""The width of a kernel, chosen by what comes back of held-out rows."""

import warnings
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import clone

from kernelatoms.coding.problem import CodingProblem
from kernelatoms.engine import Array
from kernelatoms.similarity import Kernel

# Rows to try on, more if the atoms asked for need them, and the passes of every trial.
_ROWS = 800
_ROWS_AN_ATOM = 2
_PASSES = 3
_HELD_OUT = 0.25
# Gamma times the median of what it multiplies: from rows there alike to rows there unrelated.
_SIZES = np.geomspace(1 / 64, 16, 7)
# Errors within this share of the smallest count as equal: other rows would order them otherwise.
_TIE = 0.25
_PAIRS = 2000
# The weight of the penalty is changed by this factor until nonzeros are bracketed, so often at
# most, and the bracket is halved so often.
_FACTOR, _WIDENINGS, _HALVINGS = 4.0, 5, 6


def choose_gamma(
    learner: Any, kernel: Kernel, X: Array, rng: np.random.RandomState
) -> tuple[float, dict[str, Array]]:
    """Return the gamma under which a learner represents held-out rows best, and what was tried.

    Every candidate learns briefly from some rows. Other rows are coded, decoded, and compared with
    what they were, in input space: feature spaces of different gammas have no common measure. Nor
    has ``alpha``, so that all use as many nonzeros per row: the median of what they use at the
    alpha asked for, at least 1. Of the gammas whose error is within a quarter of the smallest, the
    one is chosen that needs the alpha nearest to that asked for.
    """
    if len(X) < 4:
        raise ValueError(
            f"gamma='search' holds some rows out to choose by, and needs at least 4; got {len(X)}."
        )
    n_atoms = X.shape[1] if learner.n_atoms is None else learner.n_atoms
    n_rows = max(_ROWS, int(np.ceil(_ROWS_AN_ATOM * n_atoms / (1 - _HELD_OUT))))
    chosen = rng.permutation(len(X))[:n_rows]
    n_test = max(1, round(_HELD_OUT * len(chosen)))
    test, train = X[chosen[:n_test]], X[chosen[n_test:]]
    gammas = _SIZES / _typical_size(kernel, X, rng)
    seed = rng.randint(np.iinfo(np.int32).max)
    given = isinstance(learner.dict_init, np.ndarray | list)
    fewer = {} if given else {"n_atoms": min(n_atoms, max(1, len(train) // _ROWS_AN_ATOM))}
    trials = []
    with warnings.catch_warnings():  # of kernels that are too narrow: one of them is not chosen
        warnings.simplefilter("ignore", UserWarning)
        for gamma in gammas:
            trial = clone(learner).set_params(
                max_iter=_PASSES, sparse_output=True, random_state=seed,
                **_with_gamma(learner, kernel, float(gamma)), **fewer,
            )  # fmt: skip
            vars(trial).pop("_skl_callbacks", None)  # passes of trials are no passes of the fit
            trials.append(trial.fit(train))
    problems = [trial._problem(test) for trial in trials]
    coded = [_codes(*pair) for pair in zip(trials, problems, strict=True)]
    budget = max(1.0, float(np.median([_n_nonzero(codes) for codes in coded])))
    coded = [_codes_within(*pair, budget) for pair in zip(trials, problems, strict=True)]
    errors = []
    for trial, codes in zip(trials, coded, strict=True):
        missed = test - trial.inverse_transform(codes)
        errors.append(float(np.vdot(missed, missed)))
    scores = {
        "gamma": gammas,
        "error": np.array(errors) / (float(np.vdot(test, test)) or 1.0),
        "n_nonzero": np.array([_n_nonzero(codes) for codes in coded]),
        "alpha": np.array([trial.alpha for trial in trials]),
    }
    near = np.flatnonzero(scores["error"] <= (1 + _TIE) * scores["error"].min())
    far = np.abs(np.log(scores["alpha"][near] / learner.alpha))
    return float(gammas[near[far.argmin()]]), scores


def _with_gamma(learner: Any, kernel: Kernel, gamma: float) -> dict[str, Any]:
    """Return the parameters that give a learner's kernel this gamma."""
    if isinstance(learner.kernel, str):
        return {"gamma": gamma}
    return {"kernel": kernel.with_gamma(gamma), "kernel_params": None, "gamma": None}


def _codes(trial: Any, problem: CodingProblem) -> scipy.sparse.csr_array:
    """Return the codes of a problem at the alpha that a learner has now."""
    return trial._coding_pursuit(problem.n_atoms)(problem).to_csr()


def _n_nonzero(codes: scipy.sparse.csr_array) -> float:
    return float(codes.nnz / codes.shape[0])


def _codes_within(trial: Any, problem: CodingProblem, budget: float) -> scipy.sparse.csr_array:
    """Set the smallest alpha whose codes have at most ``budget`` nonzeros per row; return them."""

    def fits(alpha: float) -> bool:
        return _n_nonzero(_codes(trial.set_params(alpha=alpha), problem)) <= budget

    high = float(trial.alpha)  # few enough nonzeros
    while not fits(high):
        high *= _FACTOR
    low = high / _FACTOR
    for _ in range(_WIDENINGS):
        if not fits(low):
            break
        high, low = low, low / _FACTOR
    for _ in range(_HALVINGS):
        middle = float(np.sqrt(low * high))
        if fits(middle):
            high = middle
        else:
            low = middle
    return _codes(trial.set_params(alpha=high), problem)


def _typical_size(kernel: Kernel, X: Array, rng: np.random.RandomState) -> float:
    """Return the median of what gamma multiplies: distances (RBF squared), or inner products."""
    one, two = rng.randint(len(X), size=(2, _PAIRS))
    sizes = kernel.what_gamma_multiplies(X[one], X[two])
    if sizes is None:
        raise ValueError(
            f"gamma='search': kernel {kernel.name} does not say what its gamma multiplies; give it "
            "what_gamma_multiplies(X, Y), or choose gamma."
        )
    sizes = sizes[sizes > 0]
    return float(np.median(sizes)) if len(sizes) else 1.0
