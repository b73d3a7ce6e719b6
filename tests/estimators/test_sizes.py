"""How many atoms and nonzeros: scores over a grid, and the smallest of the best."""

import numpy as np
import pytest
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline

from kernelatoms import (
    KSVD,
    ClassDictionaryClassifier,
    CRCClassifier,
    FDDLClassifier,
    KernelLinearizer,
    choose_sizes,
)
from kernelatoms.estimators.inspection.sizes import size_parameters, smallest_of_the_best
from kernelatoms.report.figures.scores import sizes_figure


def blobs(rng):
    y = np.repeat([0, 1, 2], 20)
    return rng.normal(size=(60, 5)) + 3 * np.eye(3, 5)[y], y


def test_scores_are_those_of_the_folds(rng):
    X, y = blobs(rng)
    model = ClassDictionaryClassifier(KSVD(max_iter=2), random_state=0)
    sizes = choose_sizes(model, X, y, n_atoms=(4, 2), n_nonzero_coefs=(1, 2), cv=2)
    assert (sizes.n_atoms, sizes.n_nonzero_coefs) == ((2, 4), (1, 2))
    folds = StratifiedKFold(2, shuffle=True, random_state=0).split(X, y)
    for fold, (train, test) in enumerate(folds):
        learner = KSVD(n_atoms=4, n_nonzero_coefs=1, max_iter=2)
        alone = ClassDictionaryClassifier(learner, random_state=0).fit(X[train], y[train])
        assert sizes.scores[1, 0, fold] == alone.score(X[test], y[test])
    assert set(sizes.parameters) == {"dictionary__n_atoms", "dictionary__n_nonzero_coefs"}
    assert model.dictionary.n_atoms is None
    assert len(sizes_figure(sizes).axes[0].lines) >= 2


def test_without_labels_the_energy_kept_counts(rng):
    X = rng.normal(size=(40, 6))
    learner = KSVD(max_iter=2, random_state=0)
    sizes = choose_sizes(learner, X, n_atoms=(4,), n_nonzero_coefs=(1, 3), cv=2)
    train, test = next(KFold(2, shuffle=True, random_state=0).split(X))
    alone = KSVD(n_atoms=4, n_nonzero_coefs=3, max_iter=2, random_state=0).fit(X[train])
    assert sizes.scores[0, 1, 0] == alone.score(X[test])
    assert sizes.parameters == {"n_atoms": 4, "n_nonzero_coefs": 3}


def test_the_smallest_within_a_standard_error_is_chosen():
    scores = np.full((3, 2, 4), 0.5)
    scores[2, 0] = [0.8, 0.9, 0.8, 0.9]  # mean 0.85, standard error 0.0289
    scores[1, 1] = 0.85 - 0.0288
    scores[1, 0] = 0.85 - 0.0290
    assert smallest_of_the_best(scores) == (1, 1)
    scores[1, 1] = 0.85 - 0.0290
    assert smallest_of_the_best(scores) == (2, 0)


def test_names_are_found_in_pipelines():
    model = make_pipeline(KernelLinearizer(), ClassDictionaryClassifier(KSVD()))
    found = size_parameters(model)
    assert [name.split("__", 1)[1] for name in found] == [
        "dictionary__n_atoms", "dictionary__n_nonzero_coefs",
    ]  # fmt: skip
    assert size_parameters(FDDLClassifier()) == ("n_atoms_per_class", None)


def test_bad_arguments_are_named(rng):
    X, y = blobs(rng)
    with pytest.raises(ValueError, match="CRCClassifier has none"):
        choose_sizes(CRCClassifier(), X, y)
    with pytest.raises(ValueError, match="y must be given"):
        choose_sizes(ClassDictionaryClassifier(KSVD()), X)
    with pytest.raises(ValueError, match="n_atoms must be at least 1, got 0"):
        choose_sizes(KSVD(), X, n_atoms=(0,))
    with pytest.raises(ValueError, match="at least one size"):
        choose_sizes(KSVD(), X, n_atoms=())
    with pytest.raises(ValueError, match="cv must be at least 2"):
        choose_sizes(KSVD(), X, cv=1)
