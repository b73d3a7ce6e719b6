"""What the blocks of a text file share: its dialect and its approximate columns."""

from pathlib import Path
from typing import NamedTuple

from kernelatoms.codec.limits import MOST_COLUMNS, CodecError
from kernelatoms.codec.loops.text_fields import BARE, QUOTED, SPACED
from kernelatoms.codec.packed.column_choice import check_columns, from_ranges
from kernelatoms.codec.packed.csv_dialect import Dialect, names_of
from kernelatoms.codec.reader import Compressed


class Layout(NamedTuple):
    """What the blocks of a text file share."""

    dialect: Dialect  # delimiter, line ends, decimal mark and names
    returns: bool  # whether lines end with a carriage return and a newline
    chosen: list[int]  # the approximate columns
    kept: list[int]  # all others
    whole: list[bool]  # per approximate column: whether it holds integers
    styles: list[int]  # per approximate column: bare, behind a space, or in quotes


def read_layout(opened: Compressed) -> Layout:
    """Return the layout in a header; ``CodecError`` if it is invalid."""
    table = opened.header.table
    try:
        n_columns, line = table["columns"], table.get("line", "")
        delimiter, end = table.get("delimiter", ","), table.get("end", "\n")
        mark, styles = table.get("mark", "."), table.get("styles", [])
        before = line.encode("latin-1")
        right = type(n_columns) is int and 0 < n_columns <= MOST_COLUMNS
        right &= delimiter in (",", ";", "\t", "|", " ") and end in ("\n", "\r\n", "\r")
        right &= mark in (".", ",") and isinstance(styles, list)
    except (KeyError, AttributeError, ValueError, TypeError) as error:
        raise CodecError("it does not say how its table was written.") from error
    if not right:
        raise CodecError("it does not say how its table was written.")
    chosen = from_ranges(table.get("approximate", []), n_columns)
    places = set(from_ranges(table.get("whole", []), len(chosen)))
    styles = styles or [BARE] * len(chosen)
    if len(styles) != len(chosen) or any(s not in (BARE, SPACED, QUOTED) for s in styles):
        raise CodecError("it does not say how its numbers were written.")
    newline = 13 if end == "\r" else 10
    named = bool(table.get("names"))
    names = [str(i) for i in range(n_columns)]
    if named:
        names = names_of(before, n_columns, ord(delimiter), newline)
    dialect = Dialect(before, ord(delimiter), newline, ord(mark), names, named)
    check_columns(opened, len(chosen))
    kept = sorted(set(range(n_columns)) - set(chosen))
    whole = [i in places for i in range(len(chosen))]
    return Layout(dialect, end == "\r\n", chosen, kept, whole, [int(s) for s in styles])


def check_same(path: Path, new: Dialect, returns: bool, layout: Layout) -> None:
    """Refuse to add rows of another layout."""
    old = layout.dialect
    if new.names != old.names:
        raise ValueError(
            f"append: {path} has other columns than the file that was compressed: "
            f"{', '.join(map(repr, new.names[:8]))}, and not {', '.join(map(repr, old.names[:8]))}."
        )
    same = (new.delimiter, new.newline) == (old.delimiter, old.newline)
    if not same or returns != layout.returns:
        raise ValueError(
            f"append: {path} is written with another delimiter or other ends of lines than "
            "the file that was compressed."
        )
