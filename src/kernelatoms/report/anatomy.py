"""A fitted model taken apart: its steps, its kind, and the dictionaries in it.

The rows of a pipeline pass through transformers before the kernel map, the kernel map and what
follows it, and the last step, which has the dictionaries.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from kernelatoms.estimators.registry import ESTIMATORS, names_of

Array = NDArray[Any]

# The groups of estimators with classes; and all that can be reported on.
_CLASSIFIERS = ("class dictionaries", "supervised dictionaries", "training rows")
_REPORTED = ("learners", *_CLASSIFIERS, "maps")


@dataclass(frozen=True)
class Anatomy:
    """The fitted steps of a model, in the order that rows pass through them."""

    steps: tuple[Any, ...]

    @property
    def last(self) -> Any:
        """The step of the library that the model ends in."""
        return self.steps[-1]

    @property
    def group(self) -> str:
        """The group of the last step, as in the registry of estimators."""
        return _group(self.last)

    @property
    def _split(self) -> int:
        maps = (i for i, step in enumerate(self.steps) if _group(step) == "maps")
        return next(maps, len(self.steps) - 1)

    @property
    def front(self) -> tuple[Any, ...]:
        """The transformers before the kernel map, or before the last step if there is no map."""
        return self.steps[: self._split]

    @property
    def back(self) -> tuple[Any, ...]:
        """The kernel map and what follows it, without the last step."""
        return self.steps[self._split : -1]

    @property
    def linearizer(self) -> Any:
        """The kernel map, None without one."""
        step = self.steps[self._split]
        return step if _group(step) == "maps" else None

    @property
    def is_classifier(self) -> bool:
        """Whether the model predicts classes."""
        return self.group in _CLASSIFIERS

    @property
    def keeps_rows(self) -> bool:
        """Whether the training rows are the dictionary."""
        return self.group == "training rows"

    @property
    def supervised(self) -> bool:
        """Whether one dictionary was learned with the labels: its atoms belong to classes."""
        return self.group == "supervised dictionaries"

    @property
    def codes_jointly(self) -> bool:
        """Whether rows are coded once, over the dictionaries of all classes together."""
        return getattr(self.last, "scheme", None) == "collective"

    @property
    def learners(self) -> list[Any]:
        """The fitted dictionaries: one per class, one, or none."""
        if self.group == "class dictionaries":
            return list(self.last.dictionaries_)
        return [self.last] if self.group in ("learners", "supervised dictionaries") else []

    @property
    def atoms_by_class(self) -> list[tuple[int, NDArray[np.intp]]]:
        """Which dictionary, and which of its atoms, for every class; or for the only one."""
        if self.supervised:
            owners = self.last.atom_classes_
            return [(0, np.flatnonzero(owners == c)) for c in range(len(self.classes))]
        return [(c, np.arange(learner.n_atoms_)) for c, learner in enumerate(self.learners)]

    @property
    def in_feature_space(self) -> bool:
        """Whether dictionaries live in a kernel's feature space."""
        return self.linearizer is not None or self.kernel_atoms or self.row_atoms

    @property
    def row_atoms(self) -> bool:
        """Whether atoms are rows that a kernel compares with others: places, not directions."""
        return any(registered_name(learner) == "KSCDL" for learner in self.learners)

    @property
    def kernel_atoms(self) -> bool:
        """Whether atoms are vectors of a feature space, expanded over anchors."""
        return any(hasattr(learner, "dual_coef_") for learner in self.learners)

    @property
    def is_precomputed(self) -> bool:
        """Whether the last step takes kernel values instead of rows."""
        kernel = getattr(self.last, "kernel", None)
        return isinstance(kernel, str) and kernel == "precomputed"

    @property
    def classes(self) -> list[Any]:
        """The labels that the model knows, none if it does not classify."""
        return self.last.classes_.tolist() if self.is_classifier else []

    @property
    def n_features(self) -> int | None:
        """How many columns the model takes, where its first step says so."""
        return getattr(self.steps[0], "n_features_in_", None)

    def before_map(self, X: Any) -> Any:
        """Return rows as they come to the kernel map, or to the dictionaries if there is none."""
        for step in self.front:
            X = step.transform(X)
        return X

    def after_map(self, rows: Any) -> Array:
        """Return rows that ``before_map`` returned as they come to the dictionaries."""
        for step in self.back:
            rows = step.transform(rows)
        return as_floats(rows)

    def signals(self, X: Any) -> Array:
        """Return rows as they come to the dictionaries."""
        return self.after_map(self.before_map(X))


def registered_name(step: Any) -> str:
    """Return the name of an estimator in the registry, also of a subclass; else nothing."""
    for kind in type(step).__mro__:
        entry = ESTIMATORS.get(kind.__name__)
        if entry is not None and kind.__module__ == f"kernelatoms.{entry.module}":
            return kind.__name__
    return ""


def _group(step: Any) -> str:
    """Return the group of an estimator; a class of one's own may be written like a learner."""
    name = registered_name(step)
    if name:
        return ESTIMATORS[name].group
    return "learners" if hasattr(step, "n_atoms") and hasattr(step, "transform") else ""


def dissect(model: Any) -> Anatomy:
    """Return the parts of a fitted model, or say why it cannot be reported on."""
    steps = tuple(_flatten(model))
    if not steps or _group(steps[-1]) not in _REPORTED:
        hint = ""
        if hasattr(model, "best_estimator_"):
            hint = " A search holds its model in best_estimator_: pass that."
        what = f"a Pipeline that ends in {type(steps[-1]).__name__}" if len(steps) > 1 else model
        if _group(model) == "coders":
            what = f"{type(model).__name__}, which learned nothing"
        *names, last = names_of(*_REPORTED)
        raise TypeError(
            f"model must be a fitted {', '.join(names)} or {last}, or a Pipeline that ends in one, "
            f"got {what!r}.{hint}"
        )
    for step in steps:
        if _group(step) in _REPORTED:
            try:
                check_is_fitted(step)
            except NotFittedError as error:
                raise NotFittedError(
                    f"model must be fitted before it is reported on, but its "
                    f"{type(step).__name__} is not; call fit first."
                ) from error
    return Anatomy(steps)


def _flatten(model: Any) -> list[Any]:
    if not isinstance(model, Pipeline):
        return [model]
    steps = (step for _, step in model.steps if step is not None and step != "passthrough")
    return [inner for step in steps for inner in _flatten(step)]


def as_floats(rows: Any) -> Array:
    """Return rows as the dictionaries take them; they refuse missing values where they cannot."""
    return check_array(
        rows, dtype=[np.float64, np.float32], order="C", input_name="X",
        ensure_all_finite="allow-nan",
    )  # fmt: skip
