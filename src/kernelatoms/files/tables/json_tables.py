"""Tables of one JSON object per line, as logs and databases export them."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from kernelatoms.engine import Array
from kernelatoms.files.tables.arrow_tables import from_arrow, large_columns, owned_by_arrow
from kernelatoms.files.tables.csv_tables import as_utf8
from kernelatoms.files.tables.table import ReadOptions, Table, TableError, TableFile
from kernelatoms.limits import Budget

_BLOCK_BYTES = 64 * 2**20
# Objects in objects become columns "a.b"; no real table is deeper.
_DEEPEST = 8
# Lists in lists, and objects: Arrow goes into each by calling itself, until the stack ends.
_NESTED = 100
_BUT_BRACKETS = bytes(set(range(256)) - set(b'[{]}"\n'))
_OPENED = bytes(1 if letter in b"[{" else 255 for letter in range(256))  # 255 is -1
_KEY = re.compile(rb'"([^"\\]*(?:\\.[^"\\]*)*)"\s*:')


def read_json_lines(file: TableFile, options: ReadOptions) -> Table:
    """Read objects, one per line; keys are columns, those of inner objects "outer.inner"."""
    import pyarrow
    from pyarrow import json as arrow_json

    path = file.path
    data, notes = as_utf8(path, file.data or b"", options.encoding)
    _check_keys(data, file.budget)
    if _depth(data) > _NESTED:
        raise TableError(
            f"{path} cannot be read: its lists and objects are nested more than {_NESTED} levels "
            "deep, or do not end; every line must be one object."
        )
    try:
        arrow = arrow_json.read_json(
            owned_by_arrow(data), arrow_json.ReadOptions(block_size=_BLOCK_BYTES)
        )
        for _ in range(_DEEPEST):
            if not any(pyarrow.types.is_struct(kind) for kind in arrow.schema.types):
                break
            arrow = arrow.flatten()
        table = from_arrow(path, arrow, file.budget)
    except pyarrow.ArrowException:
        # Numbers here and words there, or a line that is no JSON: Python says which.
        table = _read_slowly(path, data)
    else:
        whole = {str(kind) for kind in arrow.schema.types} <= {"int64", "bool", "string"}
        if not whole and large_columns(table.numbers):
            # Arrow rounds whole numbers of more than 64 bits.
            table = _read_slowly(path, data)
    table.notes.extend(notes)
    return table


def _check_keys(data: bytes, budget: Budget) -> None:
    """Refuse rows with ever new keys: each key becomes a column with all rows."""
    n_rows = data.count(b"\n") + 1
    if 8 * n_rows * min(data.count(b":"), len(data) // 5) <= budget.allowed:
        return
    keys: set[bytes] = set()
    for start in range(0, len(data), _BLOCK_BYTES // 64):
        keys.update(_KEY.findall(data, start, start + _BLOCK_BYTES // 64))
        budget.check(8 * n_rows * len(keys))


def _depth(data: bytes) -> int:
    """Return how many brackets are open at once, outside of strings, which end with their line."""
    data = data.replace(rb"\\", b"").replace(rb"\"", b"")  # quotes within texts
    # Texts without brackets are two quotes then, and gone: what is left is little.
    brackets = data.translate(None, _BUT_BRACKETS).replace(b'""', b"")
    brackets = re.sub(rb'"[^"\n]*"?', b"", brackets).replace(b"\n", b"")
    opened = np.frombuffer(brackets.translate(_OPENED), np.int8)
    return int(np.cumsum(opened, dtype=np.int64).max(initial=0))


def _read_slowly(path: Path, data: bytes) -> Table:
    """Read with Python's reader, which names the line at fault and rounds no integer."""
    rows: list[dict[str, Any]] = []
    for number, line in enumerate(data.decode("utf-8", "replace").split("\n"), start=1):
        if not line.strip():
            continue
        try:
            held = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise TableError(
                f"{path} cannot be read: line {number:,} is no JSON ({error}); every line must be "
                "one object."
            ) from error
        if not isinstance(held, dict):
            raise TableError(f"{path} cannot be read: line {number:,} is no JSON object.")
        rows.append(_flat(held))
    if not rows:
        raise TableError(f"{path} has no rows.")
    names = dict.fromkeys(name for row in rows for name in row)
    return _table(path, {name: [row.get(name) for row in rows] for name in names}, len(rows))


def _flat(held: dict[str, Any], outer: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in held.items():
        if isinstance(value, dict) and value and outer.count(".") < _DEEPEST:
            found |= _flat(value, f"{outer}{name}.")
        else:
            found[f"{outer}{name}"] = value
    return found


def _table(path: Path, columns: dict[str, list[Any]], n_rows: int) -> Table:
    names, series = [], []
    words: dict[str, Array] = {}
    exact: dict[str, Array] = {}
    mixed: dict[str, str] = {}
    for name, values in columns.items():
        kinds = {type(value) for value in values if value is not None}
        held = np.empty(n_rows, dtype=object)
        held[:] = values
        if kinds and (kinds <= {int, float} or kinds == {bool}):
            names.append(name)
            series.append([np.nan if value is None else _float(value) for value in values])
            if kinds == {bool} or any(type(v) is int and abs(v) >= 2**53 for v in values):
                exact[name] = held
            continue
        words[name] = held
        if kinds & {int, float} and kinds & {str, bool}:
            row = next(i for i, value in enumerate(values) if isinstance(value, str | bool))
            mixed[name] = (
                f"{path}: the column {name!r} holds numbers and words: {values[row]!r} in row "
                f"{row:,}. Correct it, write null if it is missing, or leave the column out with "
                f"drop=[{name!r}]."
            )
    numbers = np.array(series, dtype=np.float64).reshape(len(series), n_rows).T.copy("C")
    return Table(path, names, numbers, words, named=True, mixed=mixed, exact=exact)


def _float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:  # a whole number of more than 308 digits
        return np.inf if value > 0 else -np.inf
