"""A first pass over a text file: which columns are numbers, over all rows; and its whole lines."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelatoms.codec.loops.text_fields import (
    DECIMAL,
    LONG,
    N_KINDS,
    N_STYLES,
    TEXT,
    WHOLE,
    read_numbers,
    split_fields,
)
from kernelatoms.codec.packed.csv_dialect import Dialect
from kernelatoms.codec.packed.sources import OnStep
from kernelatoms.files.tables.first_lines import MISSING_WORDS
from kernelatoms.files.tables.table import TableError

Array = NDArray[Any]

_CHUNK = 1 << 24
# A quote that is never closed makes the rest of a file one line.
_MOST_LINE = 1 << 26
# The share of other words in a column that still counts as one of numbers.
_MOST_WORDS = 0.05

#: Words for missing values, padded with zeros.
WORDS = np.zeros((len(MISSING_WORDS), 8), np.uint8)
for _i, _word in enumerate(MISSING_WORDS):
    WORDS[_i, : len(_word)] = np.frombuffer(_word.encode(), np.uint8)
WORDS = WORDS[1:]  # without the empty one


class Survey(NamedTuple):
    """The result of the first pass; ``counts`` has the fields per column, kind and style."""

    n_rows: int
    n_odd: int
    counts: Array
    returns: bool
    open: bool
    rest: bytes


def survey(path: Path, dialect: Dialect, on_step: OnStep) -> Survey:
    """Read a file once."""
    n_rows = n_odd = n_returns = n_lines = done = 0
    counts = np.zeros((dialect.n_columns, N_KINDS, N_STYLES), np.int64)
    size, open_end = path.stat().st_size, False
    for text, last in _chunks(path, dialect):
        data = np.frombuffer(text, np.uint8)
        found = split_fields(
            data, dialect.n_columns, dialect.delimiter, dialect.newline, last=last, returns=True
        )
        for i in range(dialect.n_columns):
            starts, stops = found.starts[:, i].copy(), found.stops[:, i].copy()
            read = read_numbers(data, starts, stops, dialect.mark, WORDS)
            both = read.kinds.astype(np.intp) * N_STYLES + read.styles
            counts[i] += np.bincount(both, minlength=N_KINDS * N_STYLES).reshape(counts[i].shape)
        n_rows, n_lines = n_rows + len(found.starts), n_lines + len(found.odd)
        n_odd += int((found.odd[:, 2] > found.odd[:, 1]).sum())  # empty lines are not noted
        n_returns += found.n_returns
        if last and len(text):
            open_end = text[-1] != dialect.newline
        done += len(text)
        on_step(done, size, "reading")
    n_ends = n_rows + n_lines - open_end
    before = dialect.before
    returns = n_returns == n_ends and before.count(b"\r\n") == before.count(b"\n")
    returns &= n_ends > 0 or b"\r\n" in before
    rest = b""
    if not n_rows:
        rest = path.read_bytes()[len(before) :] if size < _CHUNK else b""
        if len(rest) != size - len(before):
            raise TableError(f"{path} has no line of {dialect.n_columns} fields.")
    return Survey(n_rows, n_odd, counts, returns, open_end, rest)


def _chunks(path: Path, dialect: Dialect) -> Iterator[tuple[bytes, bool]]:
    """Yield whole lines, some megabytes at a time, and whether they are the last ones."""
    with path.open("rb") as file:
        file.seek(len(dialect.before))
        rest = b""
        while True:
            new = file.read(_CHUNK)
            data, last = rest + new, len(new) < _CHUNK
            used = len(data)
            if not last:
                view = np.frombuffer(data, np.uint8)
                used = split_fields(
                    view, dialect.n_columns, dialect.delimiter, dialect.newline, last=False,
                    returns=True,
                ).used  # fmt: skip
            if len(data) - used > _MOST_LINE:
                raise TableError(
                    f"{path} has a line of more than {_MOST_LINE >> 20} MiB; is a quote never "
                    "closed?"
                )
            yield data[:used], last
            rest = data[used:]
            if last:
                return


def whole_lines(path: Path, dialect: Dialect, n_rows: int) -> Iterator[bytes]:
    """Yield lines with exactly ``n_rows`` rows, finally perhaps fewer, and the lines between."""
    waiting, n_waiting = [], 0
    ready: bytes | None = None
    for text, last in _chunks(path, dialect):
        data = np.frombuffer(text, np.uint8)
        found = split_fields(
            data, dialect.n_columns, dialect.delimiter, dialect.newline, last=last, returns=False
        )
        done = row = 0
        while len(found.starts) - row >= n_rows - n_waiting:
            row += n_rows - n_waiting
            end = int(found.stops[row - 1, -1]) + 1
            waiting.append(text[done:end])
            if ready is not None:
                yield ready
            ready, waiting, n_waiting, done = b"".join(waiting), [], 0, end
        waiting.append(text[done:])
        n_waiting += len(found.starts) - row
    # Lines after the last row belong to it.
    rest = b"".join(waiting)
    if n_waiting:
        if ready is not None:
            yield ready
        yield rest
    elif ready is not None:
        yield ready + rest


def column_kind(counts: Array) -> tuple[str, int]:
    """Return the default treatment of a column, and the style of most of its numbers."""
    style = int(counts[[WHOLE, DECIMAL, LONG]].sum(axis=0).argmax())
    decimals = int(counts[[DECIMAL, LONG], style].sum())
    numbers = decimals + int(counts[WHOLE, style])
    words = int(counts[[WHOLE, DECIMAL, LONG]].sum()) - numbers + int(counts[TEXT].sum())
    if words > _MOST_WORDS * (numbers + words) or not numbers:
        return "no numbers", style
    return ("approximate" if decimals else "exact"), style
