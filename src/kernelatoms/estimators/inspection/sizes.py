"""``choose_sizes``: how many atoms and how many nonzeros, by cross-validation."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.model_selection import KFold, StratifiedKFold

from kernelatoms.engine import Array
from kernelatoms.estimators.devices.border import on_cpu
from kernelatoms.estimators.validation import check_count

#: What is tried where nothing else is said.
N_ATOMS, N_NONZEROS = (10, 20, 50, 100, 200), (1, 2, 5, 10)
_ATOMS, _NONZEROS = ("n_atoms", "n_atoms_per_class"), ("n_nonzero_coefs",)


@dataclass(frozen=True)
class Sizes:
    """What cross-validation found of sizes.

    Parameters
    ----------
    n_atoms : tuple of int
        The numbers of atoms that were tried.
    n_nonzero_coefs : tuple of int
        The numbers of nonzeros that were tried; (0,) for a model that has no such parameter.
    scores : array of shape (len(n_atoms), len(n_nonzero_coefs), cv)
        The score of every fold: accuracy, or the share of energy that codes keep.
    parameters : dict of str to int
        The sizes that were chosen, by the names under which the model has them.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelatoms import Sizes
    >>> sizes = Sizes((5, 10), (1,), np.array([[[0.7, 0.9]], [[0.9, 0.9]]]), {"n_atoms": 5})
    >>> print(sizes.means)
    [[0.8]
     [0.9]]
    """

    n_atoms: tuple[int, ...]
    n_nonzero_coefs: tuple[int, ...]
    scores: Array
    parameters: dict[str, int]

    @property
    def means(self) -> Array:
        """The mean score of every pair of sizes, (len(n_atoms), len(n_nonzero_coefs))."""
        return self.scores.mean(axis=2)


def choose_sizes(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    n_atoms: Sequence[int] = N_ATOMS,
    n_nonzero_coefs: Sequence[int] = N_NONZEROS,
    cv: int = 3,
    random_state: Any = 0,
    on_step: Callable[[int, int, str], None] = lambda done, total, words: None,
) -> Sizes:
    """Try numbers of atoms and of nonzeros by cross-validation; return the scores and a choice.

    The choice is the fewest atoms, then the fewest nonzeros, whose mean score is within one
    standard error of the best. ``report.sizes_figure`` draws the curves.

    Parameters
    ----------
    model : estimator
        What has, or holds what has, a parameter ``n_atoms`` or ``n_atoms_per_class``; not changed.
    X : array of shape (n_samples, n_features)
        Rows.
    y : array of shape (n_samples,), optional
        Their labels, for classifiers.
    n_atoms : sequence of int
        Numbers of atoms to try, per class where each has a dictionary of its own.
    n_nonzero_coefs : sequence of int
        Numbers of nonzeros to try; passed over where the model has no such parameter.
    cv : int, default=3
        How many folds.
    random_state : int, RandomState or None
        Seeds the folds.
    on_step : callable
        Called with ``(done, of_all, words)`` before every fit.

    Returns
    -------
    Sizes

    Examples
    --------
    >>> from kernelatoms import choose_sizes, make_preset
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> sizes = choose_sizes(
    ...     make_preset("lkdl", random_state=0), X, y, n_atoms=(5, 20), n_nonzero_coefs=(2, 4)
    ... )
    >>> sizes.scores.shape
    (2, 2, 3)
    >>> tuned = make_preset("lkdl").set_params(**sizes.parameters)
    """
    _, X, y = on_cpu("choose_sizes", model=model, X=X, y=y)
    atoms_name, nonzeros_name = size_parameters(model)
    atoms = tuple(sorted(check_count("n_atoms", n) for n in n_atoms))
    nonzeros = tuple(sorted(check_count("n_nonzero_coefs", n) for n in n_nonzero_coefs))
    nonzeros = nonzeros if nonzeros_name else (0,)
    if not atoms or not nonzeros:
        raise ValueError("n_atoms and n_nonzero_coefs must name at least one size each.")
    check_count("cv", cv, low=2)
    X = np.asarray(X)
    y = None if y is None else np.asarray(y)
    if is_classifier(model) and y is None:
        raise ValueError("y must be given: the model classifies, and is scored by its labels.")
    kind = StratifiedKFold if y is not None else KFold
    folds = list(kind(cv, shuffle=True, random_state=random_state).split(X, y))
    scores = np.empty((len(atoms), len(nonzeros), cv))
    for done, (i, j, fold) in enumerate(np.ndindex(scores.shape)):
        words = f"{atoms[i]} atoms" + f", {nonzeros[j]} nonzeros" * bool(nonzeros_name)
        on_step(done, scores.size, words)
        tried = clone(model).set_params(**{atoms_name: atoms[i]})
        if nonzeros_name:
            tried.set_params(**{nonzeros_name: nonzeros[j]})
        train, test = folds[fold]
        with warnings.catch_warnings():
            # Sizes that the rows do not allow are clipped: they score as the largest allowed.
            warnings.simplefilter("ignore")
            if y is None:
                scores[i, j, fold] = tried.fit(X[train]).score(X[test])
            else:
                scores[i, j, fold] = tried.fit(X[train], y[train]).score(X[test], y[test])
    i, j = smallest_of_the_best(scores)
    chosen = {atoms_name: atoms[i]}
    if nonzeros_name:
        chosen[nonzeros_name] = nonzeros[j]
    return Sizes(atoms, nonzeros, scores, chosen)


def smallest_of_the_best(scores: Array) -> tuple[int, int]:
    """Return the first place, row by row, whose mean is within a standard error of the best."""
    means = scores.mean(axis=2)
    best = np.unravel_index(means.argmax(), means.shape)
    error = scores[best].std(ddof=1) / np.sqrt(scores.shape[2])
    i, j = np.argwhere(means >= means[best] - error)[0]
    return int(i), int(j)


def size_parameters(model: Any) -> tuple[str, str | None]:
    """Return the full names of a model's numbers of atoms and of nonzeros."""
    names = model.get_params()
    atoms, nonzeros = (_nearest(names, ends) for ends in (_ATOMS, _NONZEROS))
    if atoms is None:
        raise ValueError(
            f"model must have a parameter n_atoms, or hold a learner that has one; "
            f"{type(model).__name__} has none."
        )
    return atoms, nonzeros


def _nearest(names: Any, ends: tuple[str, ...]) -> str | None:
    """Return the name with such an end that is the least deep."""
    found = [name for name in names if name.split("__")[-1] in ends]
    return min(found, key=lambda name: (name.count("__"), name), default=None)
