"""Text columns that hold numbers in other notations, or numbers and words.

Decimal commas and thousands separators are read if every value of a column agrees.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

_NUMBER = r"^\s*[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|(?i:inf|infinity|nan))\s*$"
_COMMA = r"^\s*[+-]?([0-9]+,?[0-9]*|,[0-9]+)([eE][+-]?[0-9]+)?\s*$"
# 1,234: a decimal comma and three digits, or a thousand and more.
_EITHER = r"^\s*[+-]?[1-9][0-9]{0,2},[0-9]{3}\s*$|^\s*[+-]?[0-9]+\s*$"


def as_numbers(column: Any, decimal: str | None, delimiter: str) -> tuple[Any, str] | None:
    """Return a text column of Arrow's as numbers, and how it was read; None if it holds others.

    If ``delimiter`` is a comma, so may be a thousands separator.
    """
    if decimal != "." and _all(column, _COMMA) and _any(column, ","):
        if decimal is None and delimiter == "," and _all(column, _EITHER):
            return None
        return _converted(column, ",", ""), "decimal commas are read as points (decimal='.' if not)"
    for mark, group in ((",", "."), (".", ",")):
        grouped = rf"^\s*[+-]?([0-9]{{1,3}}(\{group}[0-9]{{3}})+|[0-9]+)(\{mark}[0-9]*)?\s*$"
        if decimal not in (None, mark) or not _all(column, grouped):
            continue
        both = _any(column, rf"\{group}.*\{mark}")
        if both or (decimal == mark and _any(column, rf"\{group}")):
            marks = f"{group!r} separates thousands, {mark!r} is the decimal mark"
            return _converted(column, mark, group), f"{marks} (decimal={group!r} if not)"
    return None


def mixture(
    path: Path,
    name: str,
    column: Any,
    line_of: Callable[[int], int] | None,
    first_row: int = 0,
) -> str:
    """Describe a column of numbers and words, "" for others.

    ``line_of`` is the line of a row; ``first_row`` is the number of the first row.
    """
    from pyarrow import compute

    if _all(column, _COMMA) and _any(column, ","):
        example = compute.drop_null(column)[0].as_py()
        return (
            f"{path}: the column {name!r} uses commas in numbers ({example!r}): give decimal=',' "
            "if they are decimal marks, decimal='.' if they separate thousands."
        )
    numeric = compute.match_substring_regex(column, _NUMBER)
    if not compute.any(numeric).as_py() or compute.all(numeric).as_py() is not False:
        return ""
    row = compute.index(numeric, False).as_py()
    line = f" (line {line_of(row):,})" if line_of else ""
    return (
        f"{path}: the column {name!r} holds numbers and words: {column[row].as_py()!r} in row "
        f"{first_row + row:,}{line}. Correct it, leave it empty if it is missing, or leave "
        f"the column out with drop=[{name!r}]."
    )


def _all(column: Any, pattern: str) -> bool:
    """Return whether all present values match, and some are present."""
    from pyarrow import compute

    matches = compute.match_substring_regex(column, pattern)
    return len(column) > column.null_count and compute.all(matches).as_py() is True


def _any(column: Any, pattern: str) -> bool:
    from pyarrow import compute

    return compute.any(compute.match_substring_regex(column, pattern)).as_py() is True


def _converted(column: Any, mark: str, group: str) -> Any:
    import pyarrow
    from pyarrow import compute

    plain = compute.utf8_trim_whitespace(column)
    if group:
        plain = compute.replace_substring(plain, group, "")
    plain = compute.replace_substring(plain, mark, ".")
    # A plus sign is a number's to the CSV reader, and none to a cast.
    return compute.replace_substring_regex(plain, r"^\+", "").cast(pyarrow.float64())
