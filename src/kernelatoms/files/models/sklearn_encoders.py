"""Rules for encoders, polynomials and imputers whose attributes must agree.

What ``fit`` derives from public attributes is derived again and compared: scikit-learn's
``transform`` believes it, and an index beyond the end of a sparse matrix reads other memory.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from kernelatoms.engine import Array
from kernelatoms.estimators.state_checks import held
from kernelatoms.files.models.sklearn_rules import check_array, check_values, equal, fault
from kernelatoms.limits import MODEL_COLUMNS
from kernelatoms.similarity.base import is_whole


def check_encoder(encoder: Any, n_features: int) -> None:
    """Check categories, and the indices that one-hot and ordinal encoders derive."""
    categories = held(encoder, "categories_")
    if type(categories) is not list or len(categories) != n_features:
        raise fault(encoder, "categories_", f"a list of {n_features} arrays")
    for i, values in enumerate(categories):
        check_values(encoder, f"categories_[{i}]", values)
        if not len(values):
            raise fault(encoder, f"categories_[{i}]", "at least one category")
    _check_dtype(encoder)
    missing = _missing_places(categories) if "_missing_indices" in vars(encoder) else {}
    if vars(encoder).get("_missing_indices", {}) != missing:
        raise fault(encoder, "_missing_indices", f"{missing}, as the categories say")
    lengths = [len(values) - (i in missing) for i, values in enumerate(categories)]
    grouped = _check_groups(encoder, lengths)
    if type(encoder).__name__ == "OneHotEncoder":
        dropped = _check_dropped(encoder, grouped)
        outs = [n - d for n, d in zip(grouped, dropped, strict=True)]
        if not equal(held(encoder, "_n_features_outs"), outs):
            raise fault(encoder, "_n_features_outs", f"{outs[:5]}, as the categories say")
    else:
        _check_ordinal(encoder)


def _check_dtype(encoder: Any) -> None:
    try:
        right = np.dtype(encoder.dtype).kind in "biuf" and encoder.dtype is not None
    except TypeError:
        right = False
    if not right:
        raise fault(encoder, "dtype", "a type of numbers")


def _check_ordinal(encoder: Any) -> None:
    """Check the codes of unknown and missing values."""
    if type(held(encoder, "_missing_indices")) is not dict:
        raise fault(encoder, "_missing_indices", "a dictionary")
    whole = np.dtype(encoder.dtype).kind != "f"
    for name, used in (
        ("unknown_value", encoder.handle_unknown == "use_encoded_value"),
        ("encoded_missing_value", bool(encoder._missing_indices)),
    ):
        value = getattr(encoder, name)
        if used and (type(value) not in (int, float) or (whole and value != value // 1)):
            raise fault(encoder, name, f"a number of dtype {np.dtype(encoder.dtype)}")


def _missing_places(categories: Sequence[Array]) -> dict[int, int]:
    """Return at which place a feature's categories hold NaN, one of the last two if at all."""
    return {
        i: place
        for i, values in enumerate(categories)
        for place, value in enumerate(values[-2:].tolist(), start=max(0, len(values) - 2))
        if value != value  # NaN
    }


def _check_groups(encoder: Any, lengths: list[int]) -> list[int]:
    """Check which categories are infrequent and so are one; return how many are left."""
    own = vars(encoder)
    enabled = own.get("_infrequent_enabled")
    wanted = any(own.get(name) is not None for name in ("max_categories", "min_frequency"))
    if type(enabled) is not bool or (enabled and not wanted):
        raise fault(encoder, "_infrequent_enabled", "what max_categories and min_frequency say")
    names = ("_infrequent_indices", "_default_to_infrequent_mappings")
    if not enabled:
        for name in (name for name in names if name in own):
            raise fault(encoder, name, "missing where no category is infrequent")
        return lengths
    infrequent, mappings = (held(encoder, name) for name in names)
    for name, value in zip(names, (infrequent, mappings), strict=True):
        if type(value) is not list or len(value) != len(lengths):
            raise fault(encoder, name, f"a list of {len(lengths)}")
    grouped = []
    for i, (places, length) in enumerate(zip(infrequent, lengths, strict=True)):
        mapping = None
        if places is not None:
            check_array(encoder, f"{names[0]}[{i}]", places, "iu")
            inside = places.ndim == 1 and len(places) > 0 and places.min() >= 0
            if not inside or places.max() >= length or (np.diff(places) <= 0).any():
                raise fault(encoder, f"{names[0]}[{i}]", f"ascending places below {length}")
            mapping = np.full(length, length - len(places))
            mapping[np.setdiff1d(np.arange(length), places)] = np.arange(length - len(places))
        grouped.append(length if places is None else length - len(places) + 1)
        if not equal(mappings[i], mapping):
            raise fault(encoder, f"{names[1]}[{i}]", "what the infrequent categories say")
    return grouped


def _check_dropped(encoder: Any, grouped: list[int]) -> list[int]:
    """Check which category each feature drops; return how many (0 or 1)."""
    after = held(encoder, "_drop_idx_after_grouping")
    before = held(encoder, "drop_idx_")
    if (after is None) != (encoder.drop is None) or (before is None) != (after is None):
        raise fault(encoder, "drop_idx_", "what drop says")
    if after is None:
        return [0] * len(grouped)
    mappings = vars(encoder).get("_default_to_infrequent_mappings") or [None] * len(grouped)
    for name, places in (("_drop_idx_after_grouping", after), ("drop_idx_", before)):
        check_array(encoder, name, places, "O")
        if places.shape != (len(grouped),):
            raise fault(encoder, name, f"of shape ({len(grouped)},)")
    for i, (place, length) in enumerate(zip(after.tolist(), grouped, strict=True)):
        if place is not None and not (is_whole(place) and 0 <= place < length):
            raise fault(encoder, f"_drop_idx_after_grouping[{i}]", f"a place below {length}")
        grouped_away = place is not None and mappings[i] is not None
        first = int(np.flatnonzero(mappings[i] == place)[0]) if grouped_away else place
        if before[i] != first or not (before[i] is None or is_whole(before[i])):
            raise fault(encoder, f"drop_idx_[{i}]", f"{first}")
    return [int(place is not None) for place in after.tolist()]


def check_polynomial(features: Any, n_features: int) -> None:
    """Check how many columns ``PolynomialFeatures`` makes, and that they are not too many."""
    degree = features.degree
    low, high = (0, degree) if is_whole(degree) else tuple(degree)
    _check_derived(features, _min_degree=low, _max_degree=high)
    if not 0 <= low <= high:
        raise fault(features, "degree", "two whole numbers in ascending order")
    bias = int(not features.include_bias)
    whole = _n_terms(features, n_features, high) - bias
    outs = whole - (_n_terms(features, n_features, low - 1) - 1 if low else 0)
    _check_derived(features, _n_out_full=whole, n_output_features_=outs)


def _check_derived(features: Any, **expected: int) -> None:
    for name, value in expected.items():
        if not is_whole(held(features, name)) or vars(features)[name] != value:
            raise fault(features, name, f"{value!r}, as degree says")


def _n_terms(features: Any, n_features: int, degree: int) -> int:
    """Return the number of products of up to ``degree`` features."""
    if not features.interaction_only:
        return _n_subsets(features, n_features + degree, degree)
    return sum(_n_subsets(features, n_features, n) for n in range(min(degree, n_features) + 1))


def _n_subsets(features: Any, n: int, size: int) -> int:
    """Return the binomial coefficient, if it is a possible number of columns."""
    found = 1
    for i in range(min(size, n - size)):
        found = found * (n - i) // (i + 1)
        if found > MODEL_COLUMNS:
            raise fault(features, "degree", f"one that makes at most {MODEL_COLUMNS:,} columns")
    return found


def check_imputer(imputer: Any, n_features: int) -> None:
    """Check the fill values of ``SimpleImputer`` and their types."""
    for name in ("_fit_dtype", "_fill_dtype"):
        if not isinstance(held(imputer, name), np.dtype) or vars(imputer)[name].kind not in "iufO":
            raise fault(imputer, name, "a dtype of numbers or objects")
    objects = imputer._fit_dtype.kind == "O"
    if imputer._fill_dtype != imputer._fit_dtype:
        raise fault(imputer, "_fill_dtype", f"{imputer._fit_dtype}, as _fit_dtype says")
    if not isinstance(imputer.strategy, str):
        raise fault(imputer, "strategy", "a text")
    values = held(imputer, "statistics_")
    if type(values) is not np.ndarray or values.dtype.kind not in "fO":
        raise fault(imputer, "statistics_", "an array of floats or objects")
    if values.shape != (n_features,):
        raise fault(imputer, "statistics_", f"of shape ({n_features},)")
    kinds = (str, int, float, type(None)) if objects else (int, float)
    if values.dtype.kind == "O" and not all(isinstance(v, kinds) for v in values.tolist()):
        raise fault(imputer, "statistics_", f"values of dtype {imputer._fit_dtype}")
    if not objects and np.isinf(values.astype(float)).any():
        raise fault(imputer, "statistics_", "finite numbers, or NaN")
    if (held(imputer, "indicator_") is None) == imputer.add_indicator:
        raise fault(imputer, "indicator_", "what add_indicator says")
