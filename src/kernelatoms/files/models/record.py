"""``ModelRecord``: how a model was made, with every field of a known type."""

import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy
import sklearn

from kernelatoms import __version__
from kernelatoms.files.tables.column_kinds import feature_names, in_words
from kernelatoms.files.tables.dates import ORDERS

# Days from 1970 for which there are dates, both ways.
_MOST_DAYS = 700_000


@dataclass(frozen=True)
class ModelRecord:
    """How a model was made: kept in its file, shown by ``kernelatoms info``.

    Parameters
    ----------
    name : str
        The preset or estimator.
    columns : list of str or None
        The names of the features, in the model's order.
    label : str or None
        The label column.
    left_out : dict of str to str
        Columns of the training file that the model does not use, each with the reason.
    image_shape : (height, width) or None
        The shape of a row, where rows are images.
    data : dict
        The training data: file name, rows, features, missing values, fingerprint, row marks.
    fit : dict
        Seconds, passes, objective, scores, warnings.
    made_with : dict
        Versions of Python and the libraries, platform, date.
    encoded : dict of str to dict
        Columns that are not numeric, and their encoding: {"kind": "category", "values": [...]}, one
        feature "column=value" per value; {"kind": "yes/no", "values": [no, yes]}, one feature
        "column=yes"; {"kind": "date", "order": "dmy", "first": days since 1970}, one feature with
        the column's name, in days since the first date.

    Raises
    ------
    TypeError, ValueError
        If a field, or a known entry of ``data`` or ``fit``, has another type; other entries may be
        any plain values.
    """

    name: str = ""
    columns: list[str] | None = None
    label: str | None = None
    left_out: dict[str, str] = field(default_factory=dict)
    image_shape: tuple[int, int] | None = None
    data: dict[str, Any] = field(default_factory=dict)
    fit: dict[str, Any] = field(default_factory=dict)
    made_with: dict[str, str] = field(default_factory=lambda: _made_with())
    encoded: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check every field."""
        for name, (right, what) in _FIELDS.items():
            _expect(name, getattr(self, name), right, what)
        if self.image_shape is not None:
            object.__setattr__(self, "image_shape", tuple(int(side) for side in self.image_shape))
        for name, entries in (("data", _DATA), ("fit", _FIT)):
            held = getattr(self, name)
            _expect_entries(name, held, entries)
            if held.get("cross_validation") is not None:
                scores = held["cross_validation"]
                _expect_entries(f"{name}['cross_validation']", scores, _SCORES, needed=True)
        if self.columns is not None and len(set(self.columns)) < len(self.columns):
            raise ValueError("record: columns must name every feature once.")
        features = set(self.columns or ())
        for name, how in self.encoded.items():
            _expect(f"encoded[{name!r}]", how, _is_encoding, "an encoding of a column")
            if not features.issuperset(feature_names(name, how)):
                raise ValueError(f"record: columns must name all features of {name!r}.")

    @property
    def sources(self) -> list[str]:
        """The columns of a file that the features come from, in the features' order."""
        source_of = {
            feature: name
            for name, how in self.encoded.items()
            for feature in feature_names(name, how)
        }
        return list(dict.fromkeys(source_of.get(name, name) for name in self.columns or ()))

    def uses(self) -> dict[str, str]:
        """Return in words how every column of the training file is used, by name.

        "label"; "number"; "category: red, green"; "yes/no: 1 for yes, 0 for no"; "days since
        2024-01-01"; "left out: it numbers the rows".
        """
        said = {} if self.label is None else {self.label: "label"}
        for name in self.sources:
            said[name] = in_words(self.encoded[name]) if name in self.encoded else "number"
        return said | {name: f"left out: {why}" for name, why in self.left_out.items()}


def _is_encoding(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    if value.get("kind") == "date":
        first: Any = value.get("first")
        # Some 7,000 years each way: what Python has dates for.
        return value.get("order") in ORDERS and _is_number(first) and abs(first) < _MOST_DAYS
    values: Any = value.get("values")
    if not _is_texts(values) or len(set(values)) < len(values) or not values:
        return False
    return value.get("kind") == "category" or (value.get("kind") == "yes/no" and len(values) == 2)


def _is_text(value: Any) -> bool:
    """Return whether it is a text that can be encoded: half a surrogate pair cannot."""
    return isinstance(value, str) and value.encode(errors="replace").decode() == value


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(_is_text(entry) for entry in value)


def _names_texts(value: Any) -> bool:
    return isinstance(value, dict) and _is_texts([*value, *value.values()])


def _none_or(right: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or right(value)


def _is_count(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, Integral) and int(value) >= 0


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _is_shape(value: Any) -> bool:
    sides = value if isinstance(value, tuple | list) else ()
    return len(sides) == 2 and all(_is_count(side) and side >= 1 for side in sides)


def _is_plain(value: Any) -> bool:
    """Return whether JSON can hold it, with NumPy's numbers and arrays as numbers and lists."""
    if isinstance(value, Mapping):
        return all(_is_text(key) for key in value) and all(map(_is_plain, value.values()))
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "biufU"
    return value is None or isinstance(value, bool | np.bool_ | Real) or _is_text(value)


def _is_plain_dict(value: Any) -> bool:
    return isinstance(value, dict) and _is_plain(value)


Rule = tuple[Callable[[Any], bool], str]
_COUNT: Rule = (_is_count, "a whole number from 0 on")
_NUMBER: Rule = (_is_number, "a number")
_TEXT: Rule = (_is_text, "a text")
_TEXTS: Rule = (_is_texts, "a list of texts")

_FIELDS = {
    "name": _TEXT, "label": (_none_or(_is_text), "a text or None"),
    "columns": (_none_or(_is_texts), "a list of texts, or None"),
    "left_out": (_names_texts, "a dictionary of texts to texts"),
    "image_shape": (_none_or(_is_shape), "two whole numbers from 1 on"),
    "data": (_is_plain_dict, "a dictionary of texts to plain values"),
    "fit": (_is_plain_dict, "a dictionary of texts to plain values"),
    "made_with": (_names_texts, "a dictionary of texts to texts"),
    "encoded": (_is_plain_dict, "a dictionary of texts to encodings"),
}  # fmt: skip
# What the command line reads, and as what.
_DATA = {
    "file": _TEXT, "rows": _COUNT, "features": _COUNT, "missing": _COUNT, "fingerprint": _TEXT,
    "row_marks": _TEXT,
}  # fmt: skip
_FIT = {
    "seconds": (lambda value: _is_number(value) and 0 <= value < np.inf, "a number from 0 on"),
    "passes": _COUNT, "n_atoms": _COUNT, "n_components": _COUNT, "n_landmarks": _COUNT,
    "energy_kept": (_none_or(_is_number), "a number or None"),
    "classes": _TEXTS, "warnings": _TEXTS,
    "cross_validation": (_none_or(lambda value: isinstance(value, dict)), "a dictionary"),
}  # fmt: skip
_SCORES = {
    "mean": _NUMBER, "standard_error": _NUMBER,
    "folds": (lambda v: isinstance(v, list) and all(map(_is_number, v)), "a list of numbers"),
}  # fmt: skip


def _expect(name: str, value: Any, right: Callable[[Any], bool], what: str) -> None:
    if not right(value):
        text = repr(value)
        shown = text if len(text) <= 60 else text[:60] + "..."
        raise TypeError(f"record: {name} must be {what}, got {shown}.")


def _expect_entries(
    name: str, held: dict[str, Any], entries: dict[str, Rule], *, needed: bool = False
) -> None:
    for key, (right, what) in entries.items():
        if needed or key in held:
            _expect(f"{name}[{key!r}]", held.get(key), right, what)


def _made_with() -> dict[str, str]:
    return {
        "kernelatoms": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "platform": f"{platform.system()} {platform.machine()}",
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    }
