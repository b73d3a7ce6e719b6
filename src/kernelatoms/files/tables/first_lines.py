"""Delimiter and column names of a text file, from its first lines.

The first line is a row, and names nothing, if it holds only numbers; or if its fields have the
kinds of the fields below (numbers above numbers, words above words) and one of them cannot be a
name: a fraction, a number that occurs twice, or a word that also occurs below.
"""

import csv
import io
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from kernelatoms.files.tables.table import ReadOptions, TableError

DELIMITERS = ",;\t|"
MISSING_WORDS = ["", "?", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "-nan", "null", "NULL", "None"]
#: Of tables with more columns than this, Arrow gets types that are slow to infer.
WIDE = 500
_MISSING = frozenset(MISSING_WORDS)

_NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|inf|infinity|nan)", re.A | re.I)
_DECIMAL_COMMA = re.compile(r"[+-]?(\d+,\d*|,\d+)([eE][+-]?\d+)?", re.A)
# So much of a file is looked at, in lines of any length.
_LOOK_AT, _MOST_LINES, _FEWEST_LINES = 1 << 18, 100, 3


@dataclass(frozen=True)
class FirstLines:
    """What the first lines of a text file say about the rest."""

    delimiter: str  # " " for any number of spaces
    names: list[str]  # "0", "1", ... if the file has none
    named: bool  # whether the file names its columns
    start: int  # offset of the rows, in bytes
    line: int  # line number of the first row, from 1
    spaced: bool = False  # whether a space follows every delimiter
    unnamed: frozenset[str] = frozenset()  # columns without a name, where others have one
    # of wide tables: columns with decimal points
    fractions: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # for the user


def look_at(path: Path, data: bytes, options: ReadOptions) -> FirstLines:
    """Look at the first lines of a text, encoded as UTF-8."""
    text = _beginning(data).decode("utf-8", "ignore")
    excel = re.match(r'"?sep=(.)"?\r?\n', text)  # as Excel writes and reads
    skipped = excel.end() if excel else 0
    text = text[skipped:]
    lines = io.StringIO(text, newline="").readlines()
    if not lines or not lines[0].strip():
        raise TableError(f"the first line of {path} is empty; it must name the columns.")
    delimiter = excel[1] if excel else _delimiter(lines, options.decimal)
    spaced = delimiter in DELIMITERS and _is_spaced(lines[0], delimiter)
    rows, n_lines, start = _rows(path, lines, delimiter, spaced)
    first = rows[0]
    is_row, notes = _decide(path, first, rows[1:], delimiter, options.header)
    if is_row:
        names = [str(i) for i in range(len(first))]
        start, n_lines = 0, 0
    else:
        names = [name.strip() or f"column {i}" for i, name in enumerate(first, start=1)]
    given = zip(names, first, strict=True)
    return FirstLines(
        delimiter, names, not is_row, skipped + start, n_lines + (2 if excel else 1), spaced,
        frozenset() if is_row else frozenset(n for n, was in given if not was.strip()),
        _fractions(names, rows[1:]) if len(names) > WIDE else [], notes,
    )  # fmt: skip


def _fractions(names: list[str], below: list[list[str]]) -> list[str]:
    """Return columns of numbers or missing values with a decimal point somewhere."""
    full = [row for row in below if len(row) == len(names)]
    return [
        name
        for name, cells in zip(names, zip(*full, strict=True), strict=False)
        if any("." in cell for cell in cells) and "word" not in map(kind_of, cells)
    ]


def is_row_of_numbers(cells: Sequence[str], comma: bool = False) -> bool:
    """Return whether a first line holds numbers, some perhaps missing, instead of names.

    ``comma``: they may have decimal commas.
    """
    kinds = [kind_of(cell, comma) for cell in cells]
    numbers = [cell.strip() for cell, kind in zip(cells, kinds, strict=True) if kind == "number"]
    if not numbers or "word" in kinds:
        return False
    # pandas writes 0, 1, 2, ... above columns without names, and nothing above their index.
    return "missing" not in kinds or numbers != [str(i) for i in range(len(numbers))]


def kind_of(cell: str, comma: bool = False) -> str:
    """Return "number", "word" or "missing"."""
    text = cell.strip()
    if text in _MISSING:
        return "missing"
    number = _NUMBER.fullmatch(text) or (comma and _DECIMAL_COMMA.fullmatch(text))
    return "number" if number else "word"


def _beginning(data: bytes) -> bytes:
    """Return the first lines, whole: a few, and at least a quarter of a megabyte."""
    end = b"\n" if b"\n" in data[: 1 << 24] else b"\r"
    place = 0
    for count in range(1, _MOST_LINES + 1):
        place = data.find(end, place) + 1
        if place == 0:
            return data
        if place >= _LOOK_AT and count >= _FEWEST_LINES:
            break
    return data[:place]


def _delimiter(lines: Sequence[str], decimal: str | None) -> str:
    """Return the delimiter that splits the first line into as many fields as the others.

    A comma may be a decimal mark: any other delimiter that all lines agree on is preferred.
    """
    allowed = [mark for mark in ";\t|," if not (mark == "," == decimal)]
    outside = re.sub(r'"[^"]*"', "", lines[0])
    held = [mark for mark in allowed if mark in outside]
    for mark in held:
        counts = {len(row) for row in _split(lines, mark) if row}
        if len(counts) == 1 and max(counts) > 1:
            return mark
    if held:
        return max(held, key=outside.count)
    below = [line.strip() for line in lines[1:] if line.strip()]
    words = [line.split() for line in (lines[0].strip(), *below)]
    are_alike = len(words) > 1 and len({len(row) for row in words}) == 1 and len(words[0]) > 1
    if are_alike and all(any(kind_of(word) == "number" for word in row) for row in words[1:]):
        return " "  # nothing else parts the fields: spaces do, as numpy writes
    commas = sum("," in line for line in below)
    if 2 * commas > len(below) and all(kind_of(line, comma=True) != "word" for line in below):
        return ";"  # one column, with decimal commas
    return allowed[-1]


def _split(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    try:
        return list(csv.reader(lines, delimiter=delimiter))
    except csv.Error:  # a field longer than the module takes
        return []


def _is_spaced(line: str, delimiter: str) -> bool:
    outside = re.sub(r'"[^"]*"', '""', line)
    count = outside.count(delimiter)
    return count > 0 and outside.count(delimiter + " ") == count


def _rows(
    path: Path, lines: Sequence[str], delimiter: str, spaced: bool
) -> tuple[list[list[str]], int, int]:
    """Return the first rows as fields, and the lines and bytes that the first takes."""
    if delimiter == " ":
        return [line.split() for line in lines if line.strip()], 1, len(lines[0].encode())
    reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=spaced)
    try:
        rows = [next(reader)]
    except csv.Error as error:
        raise TableError(f"the first line of {path} does not name columns ({error}).") from error
    taken = reader.line_num
    with suppress(csv.Error):  # a field longer than the module takes: what is there is enough
        for row in reader:
            rows += [row] if row else []
    return rows, taken, sum(len(line.encode()) for line in lines[:taken])


def _decide(
    path: Path, first: list[str], below: list[list[str]], delimiter: str, header: bool | None
) -> tuple[bool, list[str]]:
    """Return whether the first line is a row, and notes for the user."""
    if header is not None:
        return not header, []
    comma = delimiter != ","
    so_called = "its columns are called 0, 1, ...; header=True if these are names."
    if is_row_of_numbers(first, comma):
        return True, [f"{path} starts with numbers, not names: {so_called}"]
    columns = [
        [row[i].strip() for row in below if len(row) == len(first)] for i in range(len(first))
    ]
    if not below or not _same_kinds(first, columns, comma):
        return False, []
    if _is_nobodys_name(first, columns, comma):
        return True, [f"{path} starts with a row like those below it, not with names: {so_called}"]
    if not any(kind_of(cell, comma) == "number" for cell in first):
        return False, []
    return False, [
        f"the first line of {path} is taken for names, and could be a row; header=False if it is "
        "one."
    ]


def _same_kinds(first: list[str], columns: list[list[str]], comma: bool) -> bool:
    """Return whether all fields of a line have the kinds of the fields below them."""
    return all(
        {kind_of(value, comma) for value in column} <= {"missing", kind_of(cell, comma)}
        or kind_of(cell, comma) == "missing"
        for cell, column in zip(first, columns, strict=True)
    )


def _is_nobodys_name(first: list[str], columns: list[list[str]], comma: bool) -> bool:
    kinds = [kind_of(cell, comma) for cell in first]
    numbers = [cell.strip() for cell, kind in zip(first, kinds, strict=True) if kind == "number"]
    words = [i for i, kind in enumerate(kinds) if kind == "word"]
    seen = [first[i].strip() in columns[i] for i in words]
    if not numbers:
        # Words above words: only if each stands below too.
        return len(words) > 1 and all(seen)
    return (
        any(seen)
        or len(set(numbers)) < len(numbers)
        or any(not re.fullmatch(r"[+-]?\d+", number) for number in numbers)
    )
