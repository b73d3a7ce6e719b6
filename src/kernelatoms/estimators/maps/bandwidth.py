"""The width of a kernel, chosen by what comes back of held-out rows."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from kernelatoms.similarity import Kernel

Array = NDArray[Any]

# Rows to try on, more if the atoms asked for need them, and the passes of every trial.
_ROWS = 800
_ROWS_AN_ATOM = 2
_PASSES = 3
_HELD_OUT = 0.25
# From kernels so wide that rows at the median distance look alike to kernels so narrow that they
# look unrelated: gamma times the median of what it multiplies.
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

    Every candidate learns briefly from some rows, with as many atoms as were asked for where
    these rows allow it (two rows an atom). Other rows are coded, decoded, and compared with what
    they were, in input space: feature spaces of different gammas have no common measure. Nor has
    ``alpha``: the same weight leaves many nonzeros under one gamma and none under another. So the
    candidates are compared at equal mean nonzeros a row, each with the alpha that leads there: at
    the median of what they use at the alpha asked for, at least 1.

    Parameters
    ----------
    learner : KSCDL
        The learner whose gamma is looked for.
    kernel : Kernel
        Its kernel, of any gamma.
    X : array of shape (n_samples, n_features)
        Training rows.
    rng : RandomState
        Chooses the rows to try on.

    Returns
    -------
    gamma : float
        Of the smallest error; of those within a quarter of it, the one that needs the alpha
        nearest to that asked for.
    scores : dict of arrays of shape (n_tried,)
        ``gamma``; ``error``, the share of held-out squared norm that is lost; ``n_nonzero``, the
        mean nonzeros a row there; ``alpha``, the weight that led to them.
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
            trials.append(trial.fit(train))
    used = [_n_nonzero(trial, test) for trial in trials]
    budget = max(1.0, float(np.median(used)))
    errors = []
    for trial in trials:
        codes = _code_within(trial, test, budget)
        missed = test - trial.inverse_transform(codes)
        errors.append(float(np.vdot(missed, missed)))
    scores = {
        "gamma": gammas,
        "error": np.array(errors) / (float(np.vdot(test, test)) or 1.0),
        "n_nonzero": np.array([_n_nonzero(trial, test) for trial in trials]),
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


def _n_nonzero(trial: Any, rows: Array) -> float:
    return float(trial._encode(rows).to_csr().nnz / len(rows))


def _code_within(trial: Any, rows: Array, budget: float) -> Any:
    """Set the smallest alpha whose codes have at most ``budget`` nonzeros a row; return them."""
    start = float(trial.alpha)
    high = start  # few enough nonzeros
    while _n_nonzero(trial.set_params(alpha=high), rows) > budget:
        high *= _FACTOR
    low = high / _FACTOR
    for _ in range(_WIDENINGS):
        if _n_nonzero(trial.set_params(alpha=low), rows) > budget:
            break
        high, low = low, low / _FACTOR
    for _ in range(_HALVINGS):
        middle = float(np.sqrt(low * high))
        if _n_nonzero(trial.set_params(alpha=middle), rows) > budget:
            low = middle
        else:
            high = middle
    return trial.set_params(alpha=high)._encode(rows).to_csr()


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
