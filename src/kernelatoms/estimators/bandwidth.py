"""The width of a kernel, chosen by what comes back of held-out rows."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from kernelatoms.similarity import Kernel

Array = NDArray[Any]

# Rows to try on, and the passes of every trial.
_MOST_ROWS = 800
_PASSES = 3
_HELD_OUT = 0.25
# From kernels so wide that rows at the median distance look alike to kernels so narrow that they
# look unrelated: gamma times the median of what it multiplies.
_SIZES = np.geomspace(1 / 64, 16, 7)
# Errors this near to the smallest count as equal.
_TIE = 0.01
_PAIRS = 2000


def choose_gamma(
    learner: Any, kernel: Kernel, X: Array, rng: np.random.RandomState
) -> tuple[float, dict[str, Array]]:
    """Return the gamma under which a learner represents held-out rows best, and what was tried.

    Every candidate learns briefly from some rows; others are coded, decoded, and compared with
    what they were, in input space: feature spaces of different gammas have no common measure.
    """
    if len(X) < 4:
        raise ValueError(
            f"gamma='search' holds some rows out to choose by, and needs at least 4; got {len(X)}."
        )
    chosen = rng.permutation(len(X))[:_MOST_ROWS]
    n_test = max(1, round(_HELD_OUT * len(chosen)))
    test, train = X[chosen[:n_test]], X[chosen[n_test:]]
    gammas = _SIZES / _typical_size(kernel, X, rng)
    # As many atoms for every row as in the whole.
    n_atoms = X.shape[1] if learner.n_atoms is None else learner.n_atoms
    n_atoms = min(max(1, round(n_atoms * len(train) / len(X))), len(train))
    seed = rng.randint(np.iinfo(np.int32).max)
    given = isinstance(learner.dict_init, np.ndarray | list)
    errors, nonzeros = [], []
    for gamma in gammas:
        trial = clone(learner).set_params(
            gamma=float(gamma), max_iter=_PASSES, sparse_output=True, random_state=seed
        )
        if not given:
            trial.set_params(n_atoms=n_atoms)
        codes = trial.fit(train).transform(test)
        missed = test - trial.inverse_transform(codes)
        errors.append(float(np.vdot(missed, missed)))
        nonzeros.append(codes.nnz / len(test))
    scores = {
        "gamma": gammas,
        "error": np.array(errors) / (float(np.vdot(test, test)) or 1.0),
        "n_nonzero": np.array(nonzeros),
    }
    near = np.flatnonzero(scores["error"] <= (1 + _TIE) * scores["error"].min())
    return float(gammas[near[scores["n_nonzero"][near].argmin()]]), scores


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
