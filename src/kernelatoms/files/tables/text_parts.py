"""Tables of text of which a part of the rows is read at a time."""

import io
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.files.tables import arrow_tables, csv_tables
from kernelatoms.files.tables.first_lines import FirstLines, look_at
from kernelatoms.files.tables.parts import Part, PartFile, Span, runs_of
from kernelatoms.files.tables.table import ReadOptions, Table, TableError
from kernelatoms.limits import TooLargeError

# What a table of text takes in memory, in sizes of the file: the text twice, columns, numbers.
_TEXT_COST = 4
# A part has at least so many bytes; a row has at most so many.
_FEWEST_BYTES, _LONGEST_ROW = 1 << 16, 1 << 27


@dataclass(frozen=True)
class _Lines:
    """Whole lines of a file: where they are, and how they are read."""

    offset: int
    n_bytes: int
    looks: FirstLines
    first_row: int


class TextParts(PartFile):
    """Tables of text: as many whole lines as a part takes."""

    def __init__(self, path: Path, options: ReadOptions, part_bytes: int, memory: int) -> None:
        super().__init__(path, options, part_bytes, memory)
        if options.rows is not None:
            raise TableError(f"rows: {path} is no .npz file, so it has no keys.")
        # The decimal mark that needs no guess; what ends lines; both known of the first part.
        self._ends: bool | None = None
        self._looks: Any = None
        self._notes: list[str] = []
        self._lines: list[_Lines] = []  # of all parts, known of the first pass

    @staticmethod
    def needs(path: Path) -> int:
        """Return some times the size of the file."""
        return _TEXT_COST * path.stat().st_size

    def parts(self, span: Span | None = None) -> Iterator[Part]:
        """Yield a part per block of whole lines."""
        self.stamp.check()
        if span is None or span.where is None:
            yield from self._all_parts()
            return
        with self.path.open("rb") as file:
            for lines in span.where:
                file.seek(lines.offset)
                text, _ = csv_tables.as_utf8(
                    self.path, file.read(lines.n_bytes), self.options.encoding
                )
                yield self._part(text, lines.looks, lines.first_row)

    def spans(self, n_bytes: int) -> list[Span]:
        """Return runs of blocks of whole lines."""
        starts = [*(lines.first_row for lines in self._lines), self.n_rows]
        return [
            Span(
                starts[run.start], starts[run.stop] - starts[run.start],
                self._lines[run.start : run.stop],
            )
            for run in runs_of([lines.n_bytes for lines in self._lines], n_bytes)
        ]  # fmt: skip

    def _all_parts(self) -> Iterator[Part]:
        line = start = offset = 0
        found: list[_Lines] = []
        for data in self._blocks():
            text, notes = csv_tables.as_utf8(self.path, data, self.options.encoding)
            if line == 0:
                looks = self._looks = look_at(self.path, text, self.options)
                arrow_tables.refuse_twins(self.path, looks.names)
                self._notes = [*notes, *looks.notes]
            else:
                looks = replace(self._looks, start=0, line=line)
            line = (line or 1) + data.count(b"\n")
            offset += len(data)
            if not text[looks.start :].strip():
                continue
            part = self._part(text, looks, start)
            found.append(_Lines(offset - len(data), len(data), looks, start))
            start += len(part.table)
            yield part
        self._lines, self.n_rows = found, start

    def _part(self, text: bytes, looks: FirstLines, start: int) -> Part:
        reader = csv_tables.TextReader(self.path, text, looks, self.options.decimal)
        return Part(self._table(reader, start), partial(_texts, reader))

    def joined(self, kept: list[Any]) -> Table:
        """Return rows of texts as one table, whose types are those of all of them together."""
        import pyarrow
        from pyarrow import csv

        written = io.BytesIO()
        looks = replace(self._looks, start=0, line=1, spaced=False)
        mark = csv.WriteOptions(include_header=False, delimiter=looks.delimiter)
        tables = [table.select(looks.names) for table in kept]
        csv.write_csv(pyarrow.concat_tables(tables), written, mark)
        reader = csv_tables.TextReader(self.path, written.getvalue(), looks, self.options.decimal)
        table = csv_tables.table_of_text(reader, self.budget, ends=self._ends)
        return replace(table, notes=[*self._notes, *table.notes])

    def _table(self, reader: csv_tables.TextReader, start: int) -> Table:
        try:
            table = csv_tables.table_of_text(reader, self.budget, first_row=start, ends=self._ends)
        except TooLargeError as error:
            raise TableError(f"{self.path} was not read: {error}.") from error
        if self._ends is None:
            self._ends = len(table.names) < len(reader.looks.names)
            self._notes += table.notes if self._ends else []
        marks = [text for text in table.notes if "decimal" in text]
        if marks and self.options.decimal is None:
            raise TableError(
                f"{marks[0].partition(' (decimal=')[0]}, and a file that is read in parts has to "
                "say so from the start: give decimal=',' or decimal='.', or have it read as a "
                "whole, by more memory, such as memory='16GiB'."
            )
        return replace(table, notes=self._notes, first_row=start)

    def _blocks(self) -> Iterator[bytes]:
        """Yield whole lines; line ends within quotes end no line."""
        step = max(self.part_bytes, _FEWEST_BYTES)
        held = b""
        with self.path.open("rb") as file:
            if file.read(2) in (b"\xff\xfe", b"\xfe\xff") or self._is_wide():
                raise TableError(
                    f"{self.path} is in the encoding UTF-16, and cannot be read in parts: write it "
                    "in UTF-8, or have it read as a whole, by more memory, such as memory='16GiB'."
                )
            file.seek(0)
            while data := file.read(step):
                held += data
                end = _end_of_lines(held)
                if end:
                    yield held[:end]
                    held = held[end:]
                elif len(held) > _LONGEST_ROW:
                    raise TableError(
                        f"{self.path} has a row of more than {_LONGEST_ROW >> 20} MiB, or a quote "
                        "that is not closed."
                    )
        if held.strip():
            yield held

    def _is_wide(self) -> bool:
        """Return whether the encoding has no line ends of one byte."""
        name = (self.options.encoding or "").lower().replace("-", "").replace("_", "")
        return name.startswith(("utf16", "utf32"))


def _end_of_lines(data: bytes) -> int:
    """Return where the last whole line ends, 0 if there is none."""
    end = data.rfind(b"\n") + 1
    quotes = data.count(b'"', 0, end)
    while end and quotes % 2:
        before = data.rfind(b"\n", 0, end - 1) + 1
        quotes -= data.count(b'"', before, end)
        end = before
    return end


def _texts(reader: csv_tables.TextReader, rows: NDArray[np.intp]) -> Any:
    """Return some rows as they are written."""
    return reader.read_texts(reader.looks.names).take(rows)
