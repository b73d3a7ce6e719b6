"""Fitted models and their parts: the steps before the dictionaries, and the dictionaries.

What has dictionaries says so by three private methods, and nothing here asks for its class:

- ``_dictionaries()``: its coders (``DictionaryCoder``), one, or one per class;
- ``_validated(X)``: rows to code, checked;
- ``_deciding_codes(X)``: their codes over the atoms of all dictionaries, counted through.

A coder gives its atoms as vectors of a feature space by ``_expansion()``.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer
from sklearn.utils.validation import check_is_fitted

from kernelatoms.engine import Array
from kernelatoms.estimators.maps.row_normalizer import RowNormalizer


@dataclass(frozen=True)
class UnwrappedPipeline:
    """A fitted model: its steps before the last, in the order of the rows, and the last one."""

    before: tuple[Any, ...]
    last: Any

    @property
    def dictionaries(self) -> list[Any]:
        """The coders that hold the atoms."""
        return list(self.last._dictionaries())

    @property
    def places(self) -> list[tuple[int, int]]:
        """The dictionary of every atom, and its number there; atoms are counted through all."""
        sizes = [coder.n_atoms_ for coder in self.dictionaries]
        return [(i, j) for i, size in enumerate(sizes) for j in range(size)]

    def rows_to_code(self, X: Any) -> Array:
        """Return rows as the dictionaries code them, checked."""
        for step in self.before:
            X = step.transform(X)
        rows: Array = self.last._validated(X)
        return rows


def unwrap_pipeline(model: Any) -> UnwrappedPipeline:
    """Return a fitted model's parts, or say why it has no atoms to look at."""
    *before, last = flat_steps(model) or [model]
    if isinstance(last, type) or not hasattr(last, "_dictionaries"):
        hint = ""
        if hasattr(last, "explain") and not hasattr(model, "best_estimator_"):
            hint = " Its atoms are the training rows, which are not learned."
        raise TypeError(
            "model must be a fitted learner of dictionaries (KSVD, KernelKSVD, LCKSVDClassifier or "
            "ClassDictionaryClassifier, say), or a Pipeline that ends in one, got "
            f"{called(model, last)}{hint}"
        )
    check_is_fitted(last)
    return UnwrappedPipeline(tuple(before), last)


def called(model: Any, last: Any) -> str:
    """Return what errors call a model that ends in ``last``, with a hint for searches."""
    ends = "a Pipeline that ends in " if last is not model else ""
    what = repr(last) if isinstance(last, type | str) else type(last).__name__
    search = hasattr(model, "best_estimator_")
    hint = " A search holds its model in best_estimator_: pass that." if search else ""
    return f"{ends}{what}.{hint}"


def flat_steps(model: Any) -> list[Any]:
    """Return the steps of a model, those of pipelines in pipelines too; itself, if it is none."""
    if not isinstance(model, Pipeline):
        return [model]
    steps = (step for _, step in model.steps if step is not None and step != "passthrough")
    return [inner for step in steps for inner in flat_steps(step)]


def undo_directions(step: Any, directions: Array) -> Array:
    """Return where directions point before a step: its linear inverse; refuse steps without one."""
    if isinstance(step, Normalizer) or (isinstance(step, RowNormalizer) and step.offset is None):
        return directions
    one_way = isinstance(step, FunctionTransformer) and not (
        step.func is None or step.inverse_func is not None
    )
    if not one_way and hasattr(step, "inverse_transform"):
        stack = np.vstack([np.zeros_like(directions[:1]), directions, 2 * directions])
        with np.errstate(all="ignore"):
            back = np.asarray(step.inverse_transform(stack), np.float64)
        once, twice = np.split(back[1:] - back[0], 2)
        size = np.abs(twice).max(initial=0)
        if np.isfinite(size) and np.allclose(twice, 2 * once, rtol=1e-6, atol=1e-9 * size):
            return once
    raise ValueError(
        f"{type(step).__name__} stands between the kernel map and the dictionary and has no linear "
        "inverse, so that atoms cannot be brought back to the map's feature space."
    )
