"""What scikit-learn's containers hold: pipelines, unions, column transformers."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils.validation import check_is_fitted

from kernelatoms.estimators.state_checks import held
from kernelatoms.files.models.sklearn_rules import equal, fault
from kernelatoms.similarity.base import is_whole


def require_fitted(estimator: Any) -> None:
    """Refuse an estimator that is not fitted, or has a part that is not."""
    check_is_fitted(estimator)
    parts = []
    if isinstance(estimator, Pipeline):
        parts = estimator.steps
    elif isinstance(estimator, FeatureUnion):
        parts = estimator.transformer_list
    for _, part in parts:
        if isinstance(part, BaseEstimator):
            require_fitted(part)


def check_pipeline(pipeline: Any) -> None:
    """Check the steps of a ``Pipeline``: all but the last can transform."""
    steps = held(pipeline, "steps")
    _check_names(pipeline, "steps", steps, 2)
    for _, step in steps[:-1]:
        _check_part(pipeline, "steps", step, None)
    _check_part(pipeline, "steps", steps[-1][1], None, method="fit")
    if pipeline.transform_input is not None:
        raise fault(pipeline, "transform_input", "None")


def check_union(union: Any) -> None:
    """Check the parts of a ``FeatureUnion``: all can transform."""
    _check_names(union, "transformer_list", held(union, "transformer_list"), 2)
    for _, transformer in union.transformer_list:
        _check_part(union, "transformer_list", transformer)
    _check_weights(union, [name for name, _ in union.transformer_list])


def check_columns(transformer: Any, n_features: int) -> None:
    """Check which columns each part of a ``ColumnTransformer`` gets."""
    parts, given = held(transformer, "transformers_"), held(transformer, "transformers")
    _check_names(transformer, "transformers_", parts, 3, reserved=False)
    _check_names(transformer, "transformers", given, 3)
    for _, part, _ in given:
        _check_part(transformer, "transformers", part)
    names = [name for name, _, _ in given]
    remainder = held(transformer, "_remainder")
    if type(remainder) is not tuple or len(remainder) != 3 or remainder[0] != "remainder":
        raise fault(transformer, "_remainder", "a name, a transformer and columns")
    _check_part(transformer, "_remainder", remainder[1])
    found = [name for name, _, _ in parts]
    if found not in (names, [*names, "remainder"]):
        raise fault(transformer, "transformers_", "the transformers, and perhaps a remainder")
    column_names = vars(transformer).get("feature_names_in_")
    known = [] if column_names is None else column_names.tolist()
    places = {}
    for name, part, columns in [*parts, *[remainder] * ("remainder" not in found)]:
        places[name] = _places(transformer, columns, n_features, known)
        _check_part(transformer, "transformers_", part)
        if places[name] and isinstance(part, BaseEstimator):
            require_fitted(part)
    indices = held(transformer, "_transformer_to_input_indices")
    if type(indices) is not dict or list(indices) != list(places) or not all(
        equal(indices[name], places[name]) for name in places
    ):  # fmt: skip
        raise fault(transformer, "_transformer_to_input_indices", "what the transformers say")
    if not _equal_lists(held(transformer, "_columns"), [c for n, _, c in parts if n in names]):
        raise fault(transformer, "_columns", "the columns of the transformers")
    _check_slices(transformer, set(places))
    _check_weights(transformer, names)
    if type(transformer.verbose_feature_names_out) is not bool:
        raise fault(transformer, "verbose_feature_names_out", "True or False")


def _places(transformer: Any, columns: Any, n_features: int, names: list[str]) -> Sequence[int]:
    """Return the indices of selected columns."""
    chosen = columns.tolist() if type(columns) is np.ndarray else columns
    if isinstance(chosen, int | str) and not isinstance(chosen, bool):
        chosen = [chosen]
    wrong = fault(transformer, "transformers_", f"of columns among the {n_features}")
    if isinstance(chosen, slice):
        start, stop = (
            names.index(side) + last if side in names else side
            for last, side in enumerate((chosen.start, chosen.stop))
        )
        whole = all(side is None or is_whole(side) for side in (start, stop, chosen.step))
        if not whole or chosen.step == 0:
            raise wrong
        return range(n_features)[start : stop : chosen.step]  # not a list: it may be long
    if type(chosen) is not list:
        raise wrong
    if chosen and all(type(entry) is bool for entry in chosen):
        if len(chosen) != n_features:
            raise wrong
        return np.flatnonzero(chosen).tolist()
    if all(isinstance(entry, str) for entry in chosen):
        place_of = {name: i for i, name in enumerate(names)}
        if not set(chosen) <= set(place_of):
            raise wrong
        return [place_of[entry] for entry in chosen]
    if not all(is_whole(entry) and -n_features <= entry < n_features for entry in chosen):
        raise wrong
    return [entry % n_features for entry in chosen]


def _check_slices(transformer: Any, names: set[str]) -> None:
    """Check that the parts' output columns are consecutive slices that cover the output."""
    slices = held(transformer, "output_indices_")
    if type(slices) is not dict or set(slices) != names:
        raise fault(transformer, "output_indices_", "one slice a transformer")
    end = 0
    for part in slices.values():
        sides = [part.start, part.stop] if isinstance(part, slice) and part.step is None else []
        if not sides or not all(is_whole(side) and side >= 0 for side in sides):
            raise fault(transformer, "output_indices_", "slices of whole numbers")
        if sides == [0, 0]:
            continue
        if sides[0] != end or sides[1] < end:
            raise fault(transformer, "output_indices_", "slices one behind the other")
        end = sides[1]


def _check_names(
    owner: Any, attribute: str, parts: Any, length: int, *, reserved: bool = True
) -> None:
    """Check that parts are tuples of a length, each with a different name first."""
    right = isinstance(parts, list) and parts and all(
        isinstance(part, tuple | list) and len(part) == length and isinstance(part[0], str)
        for part in parts
    )  # fmt: skip
    if not right:
        raise fault(owner, attribute, f"a list of tuples of {length}, each with a name")
    names = [part[0] for part in parts]
    if len(set(names)) < len(names) or any("__" in name for name in names):
        raise fault(owner, attribute, "of different names without two underscores in a row")
    if reserved and set(names) & set(owner._get_param_names()):
        raise fault(owner, attribute, "of other names than the parameters have")


def _check_part(
    owner: Any, attribute: str, part: Any, word: str | None = "drop", *, method: str = "transform"
) -> None:
    """Check that a part is an estimator with a method, "passthrough", or another word."""
    if part is None or isinstance(part, str):
        if part not in (word, "passthrough"):
            raise fault(owner, attribute, f"of estimators or one of {(word, 'passthrough')}")
    elif not isinstance(part, BaseEstimator) or not hasattr(part, method):
        raise fault(owner, attribute, f"of estimators with the method {method}")


def _check_weights(owner: Any, names: list[str]) -> None:
    weights = {} if owner.transformer_weights is None else owner.transformer_weights
    known = type(weights) is dict and set(weights) <= set(names)
    if not known or not all(type(w) in (int, float) and np.isfinite(w) for w in weights.values()):
        raise fault(owner, "transformer_weights", "a number for some of the transformers, or None")


def _equal_lists(found: Any, expected: list[Any]) -> bool:
    """Return whether selections of columns are the same, in whatever form."""
    if type(found) is not list or len(found) != len(expected):
        return False
    return all(
        type(one) is type(other) and repr(one) == repr(other)
        for one, other in zip(found, expected, strict=True)
    )
