"""What a command says of columns and missing values.

Models fill missing values from the nearest training rows, which was measured to be better than
medians and than coding by the observed values nearly everywhere (docs/guide/missing-values.md).
Models fitted in Python may do otherwise.
"""

from collections.abc import Sequence
from typing import Any

# Names of a line, lines of reasons and values of a category, before "and so many more".
_MOST_NAMES, _MOST_REASONS, _MOST_VALUES = 10, 8, 20


def lines_of_columns(record: Any, model: Any) -> list[str]:
    """Return how a training file's columns are used, one line per group; ``model`` has all."""
    see = f"see 'kernelatoms info {model}'"
    if record.columns is None:
        lines = [f"numbers: {record.data.get('features', 0):,} columns, by their places"]
    else:
        numbers = [name for name in record.sources if name not in record.encoded]
        lines = [_line("numbers", numbers, see), *_encoded_lines(record, see)]
    label = [f"label: {record.label}"] if record.label is not None else []
    return [*label, *filter(None, lines), *_left_out_lines(record.left_out, see)]


def _encoded_lines(record: Any, see: str) -> list[str]:
    shown: dict[str, list[str]] = {"yes/no": [], "category": [], "date": []}
    for name, words in record.uses().items():
        if name in record.encoded:
            how = record.encoded[name]
            detail = words.partition(": ")[2] or words
            if how["kind"] == "category" and len(how["values"]) > _MOST_VALUES:
                more = len(how["values"]) - _MOST_VALUES
                detail = f"{', '.join(how['values'][:_MOST_VALUES])} and {more:,} more: {see}"
            shown[how["kind"]].append(f"{name} ({detail})")
    called = {"yes/no": "yes/no", "category": "categories", "date": "dates"}
    return [_line(called[kind], names, see) for kind, names in shown.items()]


def _left_out_lines(left_out: dict[str, str], see: str) -> list[str]:
    names_of: dict[str, list[str]] = {}
    for name, why in left_out.items():
        names_of.setdefault(why, []).append(name)
    reasons = list(names_of.items())
    lines = [_line("left out", names, see, f" ({why})") for why, names in reasons[:_MOST_REASONS]]
    hidden = sum(len(names) for _, names in reasons[_MOST_REASONS:])
    return lines + ([f"left out: {hidden:,} more columns: {see}"] if hidden else [])


def _line(what: str, names: Sequence[str], see: str, why: str = "") -> str:
    if not names:
        return ""
    shown = [repr(name) if "," in name and not name.endswith(")") else name for name in names]
    more = len(names) - _MOST_NAMES
    cut = f" and {more:,} more: {see}" if more > 0 else ""
    count = f" ({len(names):,})" if len(names) > 1 and not why else ""
    return f"{what}{count}: {', '.join(shown[:_MOST_NAMES])}{cut}{why}"


def note_about_training(n_missing: int, pipeline: Any, n_rows: int) -> str:
    """Return what happens to missing values of training and later rows; "" if there are none.

    ``pipeline`` is not yet fitted; its step "fill" is a ``NearestImputer``.
    """
    if not n_missing:
        return ""
    words = "missing value is" if n_missing == 1 else "missing values are"
    nearest = min(pipeline["fill"].n_neighbors, n_rows)
    return f"{n_missing:,} {words} filled from the {nearest} nearest rows; so are later ones."


def note_about_rows(fitted: Any, X: Any) -> str:
    """Return what happens to missing values in rows to be coded; "" if there are none."""
    import numpy as np

    gone = np.isnan(X)
    n_missing, n_rows = int(gone.sum()), int(gone.any(axis=1).sum())
    n_empty = int(gone.all(axis=1).sum())
    if not n_missing:
        return ""
    values = f"{n_missing:,} missing value{'s' * (n_missing != 1)} in {n_rows:,} of {len(X):,} rows"
    how = _how_filled(fitted) or f"coded by what is observed of {'it' if n_rows == 1 else 'them'}"
    if not n_empty:
        return f"{values}: {how}."
    hold, are = ("holds", "is") if n_empty == 1 else ("hold", "are")
    return (
        f"{values}: {how}. {n_empty:,} of these rows {hold} nothing that the model knows, and "
        f"{are} taken as medians."
    )


def _how_filled(fitted: Any) -> str:
    """Return how a model fills missing values; "" if it does not."""
    from sklearn.utils import get_tags

    from kernelatoms import NearestImputer

    steps = [step for _, step in getattr(fitted, "steps", [("", fitted)])]
    for step in steps:
        if isinstance(step, NearestImputer):
            nearest = min(step.n_neighbors, len(step.rows_))
            return f"filled from the {nearest} nearest training rows"
        if type(step).__module__.startswith("sklearn.impute"):
            return "filled by what the training rows have"
    if all(get_tags(step).input_tags.allow_nan for step in steps):
        return ""
    return "filled by what the training rows have"
