"""The learners of ``ClassDictionaryClassifier``, one per class: made, copied, checked."""

import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state

from kernelatoms.estimators.base import sample_of
from kernelatoms.estimators.kept import state_keepers
from kernelatoms.estimators.learners.base import (
    DictionaryLearner,
    WeightedLearner,
    may_outnumber_rows,
)
from kernelatoms.estimators.learners.linear import KSVD, LinearLearner
from kernelatoms.estimators.maps.kernel_choice import KernelChoice, without_contrast_check
from kernelatoms.estimators.state_checks import held
from kernelatoms.estimators.validation import check_count, clip_count
from kernelatoms.learning.runs import Run
from kernelatoms.rows import RowSource
from kernelatoms.similarity.factory import is_precomputed

_EACH_ITS_OWN = "every class uses as many as it allows"


def make_learners(model: Any, class_sizes: NDArray[np.intp], X: Any) -> list[Any]:
    """Return one unfitted, seeded learner per class, no larger than its class if made of rows."""
    template = _template(model, X)
    start = getattr(template, "dict_init", None)
    rng = check_random_state(model.random_state)
    seeds = [rng.randint(np.iinfo(np.int32).max) for _ in class_sizes]
    learners = [clone(template).set_params(random_state=seed) for seed in seeds]
    if start is None or isinstance(start, str):
        n_atoms, n_nonzero = _asked_sizes(template, model.scheme, class_sizes, X.shape[1])
        for learner, size in zip(learners, class_sizes.tolist(), strict=True):
            most = size if n_atoms is None else min(n_atoms, size)
            if n_atoms is not None and not may_outnumber_rows(template):
                learner.set_params(n_atoms=most)
            if n_nonzero is not None:
                most = min(most, X.shape[1]) if isinstance(template, LinearLearner) else most
                learner.set_params(n_nonzero_coefs=min(n_nonzero, most))
    return learners


def _template(model: Any, X: Any) -> Any:
    """Return the learner that is cloned for every class, with the kernel that all share."""
    template = KSVD() if model.dictionary is None else model.dictionary
    if not isinstance(template, DictionaryLearner):
        raise TypeError(f"dictionary must be a learner such as KSVD() or MOD(), got {template!r}.")
    if state_keepers(template):
        raise ValueError(
            "dictionary has a Checkpoint, which would be that of every class: give it to the "
            "classifier, ClassDictionaryClassifier(...).set_callbacks(Checkpoint(...))."
        )
    gamma = getattr(template, "gamma", None)
    if isinstance(gamma, str) and gamma == "search":
        raise ValueError(
            "dictionary has gamma='search': every class would choose a feature space of its own, "
            "and residuals in different ones cannot be compared; give a number or 'scale'."
        )
    if isinstance(template, KernelChoice):
        X = sample_of(X, model.random_state) if isinstance(X, RowSource) else X
        return clone(template).set_params(**template._shared_parameters(X))
    return template


def _asked_sizes(
    template: Any, scheme: str, class_sizes: NDArray[np.intp], n_features: int
) -> tuple[int | None, int | None]:
    """Return the numbers of atoms and of nonzeros asked for; warn where a class allows fewer."""
    smallest = int(class_sizes.min())
    n_atoms, n_nonzero = template.n_atoms, getattr(template, "n_nonzero_coefs", None)
    if isinstance(n_atoms, float | np.floating):
        n_atoms = None  # a share: each class takes its own
    if n_atoms is not None:
        n_atoms = check_count("n_atoms", n_atoms)
        if not may_outnumber_rows(template):
            reason = "the smallest class has rows"
            clip_count("n_atoms", n_atoms, smallest, reason, _EACH_ITS_OWN)
    if n_nonzero is not None:
        n_nonzero = check_count("n_nonzero_coefs", n_nonzero)
        # In a feature space there are more directions than features.
        n_directions = n_features if isinstance(template, LinearLearner) else smallest
        limit = min(n_directions, smallest, n_atoms or smallest)
        if scheme == "distributive":
            reason = "the smallest class allows"
            clip_count("n_nonzero_coefs", n_nonzero, limit, reason, _EACH_ITS_OWN)
    return n_atoms, n_nonzero


def check_takes_weights(model: Any) -> None:
    """Refuse weights where a class's learner takes none, or calibration would ignore them."""
    if model.dictionary is not None and not isinstance(model.dictionary, WeightedLearner):
        raise ValueError(
            f"dictionary={model.dictionary!r} takes no sample_weight: use KSVD, MOD, KernelKSVD or "
            "KernelMOD, or leave sample_weight out."
        )
    if model.calibrate:
        raise ValueError(
            "calibrate=True learns from rows left out, all of which count the same: leave "
            "sample_weight out, or use calibrate=False."
        )


def with_kernel_looked_at(learning: Run) -> Run:
    """Continue a run; all classes share the kernel, which ``fit`` has examined already."""
    result: Any = None
    while True:
        with without_contrast_check():  # not across a yield: runs alternate
            try:
                request = learning.send(result)
            except StopIteration:
                return
        result = yield request


def copied(learner: Any) -> Any:
    """Return a learner that learns on without changing this one."""
    other = copy.copy(learner)
    vars(other).update(fitted_attributes(learner))
    return other


def fitted_attributes(learner: Any) -> dict[str, Any]:
    """Return what a learner has learned; its state is changed by learning, so a copy of that."""
    known = {name: value for name, value in vars(learner).items() if name.endswith("_")}
    return known | ({"state_": known["state_"].copy()} if "state_" in known else {})


def check_learners(model: Any, widths: list[int]) -> None:
    """Refuse ``dictionaries_`` that are not fitted learners of rows of these widths."""
    learners = held(model, "dictionaries_")
    if (
        not isinstance(learners, list)
        or len(learners) != len(widths)
        or not isinstance(learners[0], DictionaryLearner)
        or any(type(learner) is not type(learners[0]) for learner in learners)
    ):
        raise ValueError(
            f"ClassDictionaryClassifier.dictionaries_ must be a list of {len(widths)} learners of "
            "one type, one per class."
        )
    asked = getattr(model.dictionary, "n_nonzero_coefs", None)
    if asked is not None:
        check_count("n_nonzero_coefs", asked)
    for learner, width in zip(learners, widths, strict=True):
        learner._check_state()
        if is_precomputed(getattr(learner, "kernel", None)) != model._precomputed:
            raise ValueError("dictionary and dictionaries_ must be of one kind of kernel.")
        if learner.n_features_in_ != width:
            raise ValueError(
                f"ClassDictionaryClassifier.dictionaries_ must take {width} features, got one of "
                f"{learner.n_features_in_}."
            )
