"""Tables of text: encodings, delimiters, decimal marks, and numbers as they were written."""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from kernelatoms.engine import Array
from kernelatoms.files.tables import arrow_tables
from kernelatoms.files.tables.first_lines import MISSING_WORDS, WIDE, FirstLines, look_at
from kernelatoms.files.tables.table import (
    ReadOptions,
    Table,
    TableError,
    TableFile,
    first_sentence,
    shortened,
)
from kernelatoms.files.tables.text_numbers import as_numbers, mixture
from kernelatoms.files.tables.typed_sizes import column_cost
from kernelatoms.limits import Budget

_BOM = b"\xef\xbb\xbf"
_NOT_IN_CP1252 = frozenset(b"\x81\x8d\x8f\x90\x9d")
# A row must fit into a block; wide files have rows of megabytes.
_BLOCK_BYTES = 64 * 2**20
_SCANNED = 1 << 18
_PADDED = r"^[+-]?0([0-9]+|[xX][0-9a-fA-F]+)$"
_WHOLE = r"^[+-]?[0-9]+$"


def read_csv(file: TableFile, options: ReadOptions) -> Table:
    """Read a table of text."""
    path = file.path
    data, notes = as_utf8(path, file.data or b"", options.encoding)
    looks = look_at(path, data, options)
    arrow_tables.refuse_twins(path, looks.names)
    reader = TextReader(path, data, looks, options.decimal)
    table = table_of_text(reader, file.budget)
    return replace(table, notes=[*notes, *looks.notes, *table.notes])


def table_of_text(
    reader: "TextReader", budget: Budget, *, first_row: int = 0, ends: bool | None = None
) -> Table:
    """Return the table of a text; of a part of one, messages count rows from ``first_row`` on.

    ``ends``: whether lines end with a delimiter, if it is known of the other parts.
    """
    path, looks, notes = reader.path, reader.looks, []
    arrow = reader.read()
    names = list(looks.names)
    empty = len(names) > 1 and str(arrow.schema.types[-1]) == "null"
    if (empty if ends is None else ends) and (not looks.named or names[-1] in looks.unnamed):
        notes.append(f"every line of {path} ends with a delimiter, behind which there is nothing.")
        arrow = arrow.remove_column(len(names) - 1)
    arrow, mixed, said = _words_to_numbers(arrow, reader, first_row)
    budget.check(sum(map(column_cost, arrow.columns)))
    parts = arrow_tables.part_columns(arrow)
    exact = _exact_columns(arrow, parts, reader)
    return Table(
        path, **(parts | {"exact": exact}), named=looks.named, mixed=mixed,
        notes=[*notes, *said], unnamed=looks.unnamed & set(arrow.column_names),
    )  # fmt: skip


def as_utf8(path: Path, data: bytes, encoding: str | None) -> tuple[bytes, list[str]]:
    """Return a text in UTF-8 without a byte order mark, and notes for the user."""
    notes = []
    if encoding is None and data.startswith((b"\xff\xfe", b"\xfe\xff")):
        encoding = "utf-16"
        notes.append(f"{path} is read in the encoding UTF-16, as its first bytes say.")
    if encoding is None or encoding.lower().replace("-", "") == "utf8":
        if b"\0" in data[: 1 << 16]:
            raise TableError(
                f"{path} is a binary file, not a table of text, or in the encoding UTF-16: if so, "
                "encoding='utf-16'."
            )
        if not data.isascii():
            _check_utf8(path, data)
        return data.removeprefix(_BOM), notes
    try:
        text = data.decode(encoding)
    except (UnicodeError, ValueError) as error:
        raise TableError(
            f"encoding: {path} is no text in the encoding {encoding} ({error})."
        ) from error
    if "\0" in text[: 1 << 16]:
        raise TableError(f"{path} is a binary file, or not in the encoding {encoding}.")
    return text.removeprefix("\ufeff").encode("utf-8", "replace"), notes


def _check_utf8(path: Path, data: bytes) -> None:
    try:
        data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        around = data[max(0, error.start - 12) : error.start + 12]
        if sum(byte >= 128 for byte in data[:4]) > 2 or min(data[:512]) < 9:
            hint = "is it a binary file?"
        else:
            likely = "latin-1" if _NOT_IN_CP1252 & set(data) else "cp1252"
            words = re.split(r"[;,\t|\r\n\"]", around.decode(likely, "replace"))
            shown = next(w for w in words if any(ord(sign) > 127 for sign in w)).strip()
            hint = f"most likely it is {likely} (there is {shown!r} in it): encoding={likely!r}."
        raise TableError(
            f"{path} is no text in the encoding UTF-8 (byte {data[error.start]:#x} in line "
            f"{line:,}); {hint}"
        ) from error


def _tidied(data: bytes, looks: FirstLines) -> bytes:
    """Return a text whose fields are separated by exactly the delimiter."""
    if looks.delimiter == " ":
        return re.sub(rb"(?m)^ +| +(?=\r?$)", b"", re.sub(rb"[ \t]+", b" ", data))
    if not looks.spaced:
        return data
    mark = looks.delimiter.encode()
    if b'"' not in data:
        return re.sub(re.escape(mark) + b" +", mark, data)
    pattern = rb'"(?:[^"]|"")*"|' + re.escape(mark) + b" +"
    return re.sub(pattern, lambda m: m[0] if m[0].startswith(b'"') else mark, data)


class TextReader:
    """Reads a text with inferred types, and single columns again as text."""

    def __init__(self, path: Path, data: bytes, looks: FirstLines, decimal: str | None) -> None:
        self.path, self.data, self.looks = path, _tidied(data, looks), looks
        self.decimal = decimal
        self._mark = decimal or "."
        self._start = looks.start
        if looks.delimiter == " " or looks.spaced:  # of another length than it was
            self._start = 0
            for _ in range(looks.line - 1 if looks.start else 0):
                self._start = self.data.find(b"\n", self._start) + 1

    def read(self) -> Any:
        """Return all columns, each of the type that its fields have."""
        import pyarrow

        if self.looks.fractions and self._mark == ".":
            # Not if there is a word further down, or a line of another length.
            with suppress(pyarrow.ArrowException):
                return self._columns(None, dict.fromkeys(self.looks.fractions, pyarrow.float64()))
        return self._in_words(None, {})

    def read_texts(self, names: Sequence[str]) -> Any:
        """Return some columns as they are written."""
        import pyarrow

        return self._in_words(names, dict.fromkeys(names, pyarrow.string()))

    def _in_words(self, names: Sequence[str] | None, types: dict[str, Any]) -> Any:
        import pyarrow

        try:
            return self._columns(names, types)
        except (pyarrow.ArrowException, ValueError, OSError) as error:
            raise self._trouble(error) from error

    def _columns(self, names: Sequence[str] | None, types: dict[str, Any]) -> Any:
        from pyarrow import csv as arrow_csv

        looks = self.looks
        return arrow_csv.read_csv(
            arrow_tables.owned_by_arrow(self.data, self._start),
            read_options=arrow_csv.ReadOptions(
                column_names=looks.names, block_size=_BLOCK_BYTES,
                use_threads=len(looks.names) <= WIDE,  # a task per column costs more than its work
            ),
            parse_options=arrow_csv.ParseOptions(
                delimiter=looks.delimiter, newlines_in_values=b'"' in self.data
            ),
            convert_options=arrow_csv.ConvertOptions(
                null_values=MISSING_WORDS, strings_can_be_null=True, decimal_point=self._mark,
                include_columns=names, column_types=types,
            ),
        )  # fmt: skip

    def _trouble(self, error: Exception) -> TableError:
        """Return an error that names the line at fault."""
        if "empty" in str(error).lower():
            return TableError(f"{self.path} has a line of names but no rows.")
        n_columns = len(self.looks.names)
        odd = ((line, len(row)) for line, row in self._numbered_rows() if len(row) != n_columns)
        found = next(odd, None)
        what = "line {:,} has {:,} fields".format(*found) if found else first_sentence(error)
        return TableError(
            f"{self.path} cannot be read as a table: {what}. Every line needs as many fields as "
            f"the first one ({n_columns:,})."
        )

    def _numbered_rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the lines in which rows begin, counted from 1, and the rows."""
        text = io.StringIO(self.data[self._start :].decode("utf-8", "replace"), newline="")
        reader = csv.reader(text, delimiter=self.looks.delimiter)
        line = self.looks.line
        with suppress(csv.Error):
            for row in reader:
                if row:
                    yield line, row
                line = self.looks.line + reader.line_num

    def line_of(self, row: int) -> int:
        """Return the line in which a row begins, counted from 1."""
        lines = (line for line, _ in self._numbered_rows())
        return next(islice(lines, row, None), self.looks.line)

    def has_padded_numbers(self) -> bool:
        """Return whether some field may begin with a zero and a digit."""
        return has_padded_numbers(memoryview(self.data)[self._start :], self.looks.delimiter)


def has_padded_numbers(data: bytes | memoryview, delimiter: str) -> bool:
    """Return whether some field may be a number with leading zeros, or in hexadecimal."""
    text = np.frombuffer(data, np.uint8)
    edges = np.zeros(256, bool)
    edges[list(b'\n\r"' + delimiter.encode())] = True
    signs = np.zeros(256, bool)
    signs[list(b"+- ")] = True
    # Block by block, so that what is compared stays in cache; each sees two bytes before it.
    for start in range(0, len(text), _SCANNED):
        block = text[max(start - 2, 0) : start + _SCANNED + 1]
        if start == 0:
            block = np.concatenate([np.full(2, 10, np.uint8), block])
        after = block[3:]
        is_digit = (after - np.uint8(48)) < 10
        found = np.flatnonzero((block[2:-1] == 48) & (is_digit | (after & 223 == 88))) + 2
        before, further = block[found - 1], block[found - 2]
        if (edges[before] | (signs[before] & (edges | signs)[further])).any():
            return True
    return False


def _words_to_numbers(
    arrow: Any, reader: TextReader, first_row: int
) -> tuple[Any, dict[str, str], list[str]]:
    """Read text columns that are numbers with other marks; describe columns of both."""
    path, mixed = reader.path, {}
    found: dict[str, str] = {}
    columns = arrow.columns
    for i in [i for i, kind in enumerate(arrow.schema.types) if kind == "string"]:
        name = reader.looks.names[i]
        read = as_numbers(columns[i], reader.decimal, reader.looks.delimiter)
        if read is not None:
            columns[i], found[name] = read
        elif trouble := mixture(path, name, columns[i], reader.line_of, first_row):
            mixed[name] = trouble
    if found:
        import pyarrow

        arrow = pyarrow.Table.from_arrays(columns, names=arrow.column_names)
    notes = []
    for example in sorted(set(found.values())):
        names = [name for name, what in found.items() if what == example]
        notes.append(f"{path}: {shortened(names, 5)}: {example}.")
    return arrow, mixed, notes


def _exact_columns(arrow: Any, parts: dict[str, Any], reader: TextReader) -> dict[str, Array]:
    """Return columns of numbers as written, where float64 would not give that back."""
    from pyarrow import compute

    columns, numbers = parts["columns"], parts["numbers"]
    kinds = dict(zip(arrow.column_names, map(str, arrow.schema.types), strict=True))
    exact = dict(parts["exact"])
    places = arrow_tables.large_columns(numbers)
    large = {columns[i] for i in places}
    truths = [name for name in columns if kinds[name] == "bool"]
    wanted = {*truths, *(name for name in large if kinds[name] == "double")}
    if len(truths) < len(columns) and reader.has_padded_numbers():
        wanted |= set(columns)
    again = [name for name in columns if name in wanted]
    if not again:
        return exact
    texts = reader.read_texts(again)
    endless = {columns[i] for i in places if np.isinf(numbers[:, i]).any()}
    for name in again:
        column = compute.utf8_trim_whitespace(texts[name])
        padded = compute.any(compute.match_substring_regex(column, _PADDED)).as_py()
        if name in truths or name in endless or padded:
            exact[name] = column.to_numpy()
        elif name in large and compute.all(compute.match_substring_regex(column, _WHOLE)).as_py():
            whole = [None if text is None else int(text) for text in column.to_pylist()]
            exact[name] = np.array(whole, dtype=object)
    return exact
