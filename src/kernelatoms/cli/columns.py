"""How a model uses the columns of a file, in a few lines: none is passed over in silence."""

from collections.abc import Sequence
from typing import Any

# Names of a line, lines of reasons and values of a category, before "and so many more".
_MOST_NAMES, _MOST_REASONS, _MOST_VALUES = 10, 8, 20


def lines_of_columns(record: Any, model: Any) -> list[str]:
    """Return how the columns of a training file are used, one line a group.

    Parameters
    ----------
    record : ModelRecord
        The record of a model.
    model : path
        Where the whole list can be found, for groups that are cut.
    """
    see = f"see 'kernelatoms info {model}'"
    if record.columns is None:
        numbers = f"{record.data.get('features', 0):,} columns, by their places"
        lines = [f"numbers: {numbers}"]
    else:
        lines = [
            _line("numbers", [n for n in record.sources if n not in record.encoded], see),
            *_encoded_lines(record, see),
        ]
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
