"""Rules for attributes of scikit-learn's estimators, from which ``sklearn_types`` is built.

A rule is called with an estimator, the name of an attribute, and the sizes known so far; it raises
or returns. Sizes have names: ``floats("k", "f")`` is a matrix with one column per feature, whose
number of rows is ``k`` from then on.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from types import FunctionType
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from kernelatoms.engine import Array
from kernelatoms.estimators import state_checks
from kernelatoms.similarity.base import is_whole

Sizes = dict[str, int]
Rule = Callable[[Any, str, Sizes], None]
Rules = dict[str, Rule]


def fault(owner: Any, name: str, right: str) -> ValueError:
    """Return the error of an attribute with a wrong value."""
    return ValueError(f"{type(owner).__name__}.{name} must be {right}.")


def features(owner: Any, name: str, sizes: Sizes) -> None:
    """Check ``n_features_in_`` and ``feature_names_in_``; f is their number."""
    del name
    sizes["f"] = state_checks.check_features(owner)


def anything(owner: Any, name: str, sizes: Sizes) -> None:
    """Accept any value: another rule checks it, or nothing uses it."""
    del sizes
    state_checks.held(owner, name)


def floats(*sides: str | int, low: float | None = None, missing: bool = False) -> Rule:
    """Require numbers of this shape, finite or, with ``missing``, perhaps NaN."""

    def rule(owner: Any, name: str, sizes: Sizes) -> None:
        shape = tuple(sizes.get(side) if isinstance(side, str) else side for side in sides)
        value = state_checks.require_floats(owner, name, shape, low=low, missing=missing)
        _bind(owner, name, value.shape, sides, sizes)

    return rule


def integers(*sides: str | int, below: str = "") -> Rule:
    """Require integers of this shape, from 0 on and below a size."""

    def rule(owner: Any, name: str, sizes: Sizes) -> None:
        value = state_checks.held(owner, name)
        if type(value) is not np.ndarray or value.dtype.kind not in "iu":
            raise fault(owner, name, "an array of whole numbers")
        _bind(owner, name, value.shape, sides, sizes)
        if value.size and (value.min() < 0 or (below and value.max() >= sizes[below])):
            raise fault(owner, name, "numbers from 0" + f" to {sizes.get(below)}" * bool(below))

    return rule


def count(size: str = "", low: int = 0, below: str = "") -> Rule:
    """Require an integer: a known size, or one to be known from here on; or one below a size."""

    def rule(owner: Any, name: str, sizes: Sizes) -> None:
        value = state_checks.require_count(
            owner, name, low=low, high=sizes[below] - 1 if below else None
        )
        if size and sizes.setdefault(size, value) != value:
            raise fault(owner, name, f"{sizes[size]}, as other attributes say")

    return rule


def number(owner: Any, name: str, sizes: Sizes) -> None:
    """Require a finite number."""
    del sizes
    state_checks.require_number(owner, name)


def value_of(is_right: Callable[[Any], bool], right: str) -> Rule:
    """Require a value for which ``is_right`` is true; ``right`` describes it."""

    def rule(owner: Any, name: str, sizes: Sizes) -> None:
        del sizes
        if not is_right(state_checks.held(owner, name)):
            raise fault(owner, name, right)

    return rule


def one_of(*values: str | None) -> Rule:
    """Require one of some texts, or None if listed."""
    return value_of(
        lambda value: isinstance(value, str | None) and value in values,
        f"one of {', '.join(map(repr, values))}",
    )


def none_or(*rules: Rule) -> Rule:
    """Require None, or a value that one of the rules accepts."""

    def rule(owner: Any, name: str, sizes: Sizes) -> None:
        if state_checks.held(owner, name) is not None:
            either(*rules)(owner, name, sizes)

    return rule


def either(*rules: Rule) -> Rule:
    """Require a value that one of the rules accepts; errors are those of the last."""

    def rule(owner: Any, name: str, sizes: Sizes) -> None:
        for tried in rules[:-1]:
            known = dict(sizes)
            try:
                tried(owner, name, known)
            except (ValueError, TypeError):
                continue
            sizes.update(known)
            return
        rules[-1](owner, name, sizes)

    return rule


def both(*rules: Rule) -> Rule:
    """Require a value that all rules accept."""

    def rule(owner: Any, name: str, sizes: Sizes) -> None:
        for each in rules:
            each(owner, name, sizes)

    return rule


def where(parameter: str, rule: Rule, *values: Any) -> Rule:
    """Apply a rule if a parameter is true (or one of ``values``); else accept None, too."""

    def chosen(owner: Any, name: str, sizes: Sizes) -> None:
        value = state_checks.held(owner, parameter)
        needed = value in values if values else bool(value)
        if needed or vars(owner).get(name) is not None:
            rule(owner, name, sizes)

    return chosen


def labels(size: str) -> Rule:
    """Require different labels, numbers in ascending order."""

    def rule(owner: Any, name: str, sizes: Sizes) -> None:
        value = state_checks.held(owner, name)
        check_values(owner, name, value)
        _bind(owner, name, value.shape, (size,), sizes)

    return rule


def list_of(n: str, *sides: str | int) -> Rule:
    """Require a list of arrays of numbers; sides of unknown size may differ."""

    def rule(owner: Any, name: str, sizes: Sizes) -> None:
        arrays = state_checks.held(owner, name)
        if type(arrays) is not list or len(arrays) != sizes[n]:
            raise fault(owner, name, f"a list of {sizes[n]} arrays")
        for i, array in enumerate(arrays):
            check_array(owner, f"{name}[{i}]", array, "f")
            _bind(owner, f"{name}[{i}]", array.shape, sides, dict(sizes))

    return rule


def part(kind: str, **sizes_of: str) -> Rule:
    """Require a fitted estimator of a type, some of whose attributes are sizes."""

    def rule(owner: Any, name: str, sizes: Sizes) -> None:
        value = state_checks.held(owner, name)
        if type(value).__name__ != kind or not isinstance(value, BaseEstimator):
            raise fault(owner, name, f"a {kind}")
        check_is_fitted(value)
        for attribute, size in sizes_of.items():
            count(size, low=1)(value, attribute, sizes)

    return rule


def _are_numbers_by_name(value: Any) -> bool:
    return type(value) is dict and all(
        isinstance(key, str) and isinstance(entry, int | float) and np.isfinite(float(entry))
        for key, entry in value.items()
    )


def _is_function(value: Any) -> bool:
    """Return whether it is None, a function that the user trusts, or NumPy's of one number."""
    plain = isinstance(value, np.ufunc) and (value.nin, value.nout) == (1, 1)
    if plain and any(kind.startswith("d->") for kind in value.types):
        return True
    return isinstance(value, FunctionType | None)


flag = value_of(lambda value: isinstance(value, bool | np.bool_), "True or False")
of_numpy = value_of(  # which has a shape
    lambda value: isinstance(value, np.generic | np.ndarray), "a number or an array of NumPy's"
)
numbers_by_name = value_of(_are_numbers_by_name, "a dictionary of numbers")
function = value_of(_is_function, "a function of numbers")
trusted_function = value_of(  # a file holds none that the user does not trust
    lambda value: isinstance(value, FunctionType), "a name or a function of Python's"
)


def check_array(owner: Any, name: str, value: Any, kinds: str) -> Array:
    """Return an array of finite numbers, integers or objects, by kinds of dtype."""
    if type(value) is not np.ndarray or value.dtype.kind not in kinds:
        raise fault(owner, name, f"an array of one of the kinds {kinds!r}")
    if value.dtype.kind == "f" and not np.isfinite(value).all():
        raise fault(owner, name, "an array of finite numbers")
    return value


def check_values(owner: Any, name: str, value: Any) -> None:
    """Require different texts or ascending numbers, for bisection; NaN or None only at the end."""
    right = type(value) is np.ndarray and value.ndim == 1 and value.dtype.kind in "biufUSO"
    if not (right and state_checks.holds_letters(value) and _are_values(value)):
        raise fault(owner, name, "an array of different texts, or of ascending numbers")


def _are_values(values: Array) -> bool:
    """Return whether values are different texts, or ascending numbers, then perhaps None or NaN."""
    if values.dtype.kind in "US":
        return len(np.unique(values)) == len(values)
    if values.dtype.kind != "O":
        known = values[:-1] if values.dtype.kind == "f" and np.isnan(values[-1:]).any() else values
        return bool((known[:-1] < known[1:]).all()) and not np.isnan(known[-1:]).any()
    entries = values.tolist()
    while entries and (entries[-1] is None or entries[-1] != entries[-1]):  # NaN
        entries.pop()
    if len(values) - len(entries) > 2:
        return False
    if all(isinstance(entry, str | bytes) for entry in entries):
        return len(set(entries)) == len(entries)
    numbers = all(isinstance(entry, int | float) for entry in entries)
    return numbers and all(one < after for one, after in pairwise(entries))


def equal(found: Any, expected: Any) -> bool:
    """Return whether a list, array or None of integers is as expected, of plain types."""
    if expected is None or found is None:
        return found is expected
    if isinstance(expected, np.ndarray):
        right = type(found) is np.ndarray and found.dtype.kind in "iu"
        return right and np.array_equal(found, expected)
    return (
        type(found) is list
        and len(found) == len(expected)
        and all(is_whole(value) for value in found)
        and found == list(expected)
    )


def _bind(
    owner: Any, name: str, shape: tuple[int, ...], sides: Sequence[str | int], sizes: Sizes
) -> None:
    """Compare a shape with sides; new names of sides take the sizes found."""
    right = len(shape) == len(sides) and all(
        length == (side if isinstance(side, int) else sizes.setdefault(side, length))
        for length, side in zip(shape, sides, strict=True)
    )
    if not right:
        wanted = ", ".join(str(sizes.get(str(side), side)) for side in sides)
        raise fault(owner, name, f"of shape ({wanted}), and is of shape {shape}")
