"""Tables: damaged, strange, and lying about their sizes.

A file that is refused must be refused in words. One that is read must say what the csv module, or
numpy, reads in it, and can be learned from and looked at, or is refused in words there.
"""

import bz2
import contextlib
import csv
import gzip
import io
import json
import re
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import zstandard
from pyarrow import feather, parquet

from fuzz.models import other_array, promising_npy
from fuzz.mutations import NUMBERS, damaged, word
from fuzz.running import Play, check_words
from kernelatoms.cli import info
from kernelatoms.files import ModelRecord, Table, TableError, read_table, rows_for, training_set
from kernelatoms.files.tables.matching import row_identifiers
from kernelatoms.files.tables.roles import labels_for

Rng = np.random.Generator

#: A file's ending and content, and whether numbers can be compared with what the oracle reads.
Made = tuple[str, bytes, bool]


#: What a table may become; children have little memory.
_MOST = 1 << 28


def prepare() -> Play:
    """Return how a case is played."""
    warnings.simplefilter("ignore")
    pyarrow.set_cpu_count(1)
    bomb = _bomb(5 << 28)
    makers: list[Callable[[Rng], Made]] = [
        _csv, _csv, _csv, _npy, _npz, _sparse, _parquet, _feather, _lines, _packed,
    ]  # fmt: skip
    record = ModelRecord(columns=list("abc"), label="kind", left_out={"id": "a number of rows"})
    _play(makers, record, np.random.default_rng(0), Path("nowhere"), b"")

    def play(rng: Rng, folder: Path) -> str:
        return _play(makers, record, rng, folder, bomb)

    return play


def _play(
    makers: list[Callable[[Rng], Made]], record: ModelRecord, rng: Rng, folder: Path, bomb: bytes
) -> str:
    if not folder.exists():
        # Threads and pools come with the first table, not with the first case.
        _ = parquet.read_table(io.BytesIO(_parquet_bytes({"a": [1.0]})))
        return "prepared"
    if rng.random() < 0.001:
        suffix, content, whole = ".npz", bomb, False
    else:
        suffix, content, whole = makers[rng.integers(len(makers))](rng)
        if rng.random() < 0.4:
            content, whole = damaged(rng, content), False
    path = folder / f"table{suffix}"
    path.write_bytes(content)
    try:
        table = read_table(path, max_size=_MOST)
    except TableError as error:
        check_words(error)
        return "refused"
    _check_shapes(table)
    if suffix == ".csv":
        _compare_csv(table, content, whole)
    elif suffix == ".npy":
        array = np.load(path, allow_pickle=False)
        expected = array.reshape(len(array), -1).astype(table.numbers.dtype)
        np.testing.assert_array_equal(table.numbers, expected)
    return _use(rng, table, record, path)


def _check_shapes(table: Table) -> None:
    assert table.numbers.shape == (len(table), len(table.columns))
    assert len(set(table.names)) == len(table.names)
    for column in table.words.values():
        assert column.shape == (len(table),)


def _compare_csv(table: Table, content: bytes, whole: bool) -> None:
    """Compare with the csv module; quotes in damaged files are read in more ways than one."""
    if not table.named or table.unnamed or (not whole and (b'"' in content or b"\r" in content)):
        return
    is_wide = content.startswith((b"\xff\xfe", b"\xfe\xff"))
    text = content.decode("utf-16" if is_wide else "utf-8-sig")
    expected = None
    for delimiter in ",;\t|":
        with contextlib.suppress(IndexError):  # rows of different lengths
            columns = naive_columns(text, delimiter)
            expected = columns if expected is None or set(columns) & {*table.names} else expected
    if expected is None and " " not in text:
        raise AssertionError("rows of different lengths were read")
    for name in set(expected or ()) & set(table.columns):
        np.testing.assert_array_equal(table.column(name).astype(float), expected[name])


_MISSING = {"", "?", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "-nan", "null", "NULL", "None"}
_PLAIN = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?")


def naive_columns(text: str, delimiter: str) -> dict[str, Any]:
    """Return the columns of a CSV text whose cells are all plain numbers or missing."""
    rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if row]
    if len({len(row) for row in rows}) > 1:
        raise IndexError
    columns = {}
    for i, name in enumerate(rows[0]):
        cells = [row[i] for row in rows[1:]]
        if all(cell in _MISSING or _PLAIN.fullmatch(cell) for cell in cells):
            numbers = [np.nan if cell in _MISSING else float(cell) for cell in cells]
            columns[name.strip()] = np.array(numbers)
    return columns


def _use(rng: Rng, table: Table, record: ModelRecord, path: Path) -> str:
    """Do what commands do with a table."""
    label = None if rng.random() < 0.5 else str(rng.choice([*table.names, "kind"]))
    n_features = int(rng.integers(1, 6))
    by_place = ModelRecord()
    uses: list[Callable[[], Any]] = [
        lambda: info._table_facts(path, None),
        lambda: training_set(table, label),
        lambda: rows_for(table, record, 3),
        lambda: rows_for(table, by_place, n_features),
        lambda: labels_for(table, label or "kind", np.array(["x", "y"])),
        lambda: row_identifiers(table, record),
    ]
    refused = 0
    for use in uses:
        try:
            with contextlib.redirect_stderr(io.StringIO()):  # notes
                use()
        except ValueError as error:
            check_words(error)
            refused += 1
    return "refused at work" if refused == len(uses) else "used"


def _csv(rng: Rng) -> Made:
    n_rows, n_columns = int(rng.integers(0, 20)), int(rng.integers(1, 6))
    delimiter = str(rng.choice([",", ";", "\t", "|"]))
    names = [_name(rng, i) for i in range(n_columns)]
    kinds = rng.integers(4, size=n_columns)
    rows = [names] + [[_cell(rng, kind) for kind in kinds] for _ in range(n_rows)]
    if rng.random() < 0.05:
        rows[rng.integers(len(rows))].append("1")
    end = str(rng.choice(["\n", "\r\n"], p=[0.8, 0.2]))
    lines = [delimiter.join(_quoted(rng, cell, delimiter) for cell in row) for row in rows]
    text = end.join(lines) + end * int(rng.integers(3))
    content = text.encode("utf-8", "surrogatepass")
    if rng.random() < 0.05:
        content = text.encode(str(rng.choice(["utf-16", "utf-8-sig"])), "surrogatepass")
    # A lone carriage return ends a line for some readers; a name with a line's end is many lines.
    odd = any(c in name for name in names for c in '\n\r",;\t|')
    return ".csv", content, not odd and "\r" not in "".join(map("".join, rows)) and end == "\n"


def _name(rng: Rng, place: int) -> str:
    if rng.random() < 0.8:
        return "abcdefgh"[place]
    return str(rng.choice(["id", "kind", "Unnamed: 0", "0", "1", "a", word(rng)]))


def _cell(rng: Rng, kind: int) -> str:
    chance = rng.random()
    if chance < 0.1:
        return str(rng.choice(["", "NA", "?", "nan", "null", "None"]))
    if chance < 0.12 or kind == 3:
        return word(rng)
    if kind == 0:
        return str(int(rng.integers(-20, 20)))
    if kind == 1:
        return repr(float(rng.normal() * 10.0 ** int(rng.integers(-20, 20))))
    odd = ["1e5", "+3", "1.", ".5", "007", "1e-400", "0x1f", "1_000", "1,5", " 2 ", "true", "12:30",
           "2020-01-01", "1e400"]  # fmt: skip
    return str(rng.choice([*map(str, NUMBERS[:14]), *odd]))


def _quoted(rng: Rng, cell: str, delimiter: str) -> str:
    if any(c in cell for c in f'"\n\r{delimiter}') or rng.random() < 0.05:
        return '"' + cell.replace('"', '""') + '"'
    return cell


def _array(rng: Rng) -> Any:
    shape = tuple(rng.integers(1, 6, size=int(rng.integers(1, 4))))
    return (
        other_array(rng, rng.normal(size=shape)) if rng.random() < 0.5 else rng.normal(size=shape)
    )


def _npy(rng: Rng) -> Made:
    return ".npy", promising_npy(rng, _array(rng)), True


def _npz(rng: Rng) -> Made:
    data = io.BytesIO()
    method = zipfile.ZIP_DEFLATED if rng.random() < 0.5 else zipfile.ZIP_STORED
    with zipfile.ZipFile(data, "w", method) as archive:
        for key in rng.choice(["X", "y", "X_train", "kind", "a/b", ""], size=int(rng.integers(4))):
            archive.writestr(f"{key}.npy", promising_npy(rng, _array(rng)))
    return ".npz", data.getvalue(), True


def _parquet(rng: Rng) -> Made:
    n_rows = int(rng.integers(0, 20))
    columns: dict[str, Any] = {}
    for i in range(int(rng.integers(1, 5))):
        values: list[Any] = [
            [None if rng.random() < 0.1 else float(v) for v in rng.normal(size=n_rows)],
            [int(v) for v in rng.integers(-5, 5, size=n_rows)],
            [_writable(word(rng)) for _ in range(n_rows)],
            [None] * n_rows,
            [bool(v) for v in rng.integers(2, size=n_rows)],
            [[1.0, 2.0]] * n_rows,
            [b"\xff\x00"] * n_rows,
            [2**62 + int(v) for v in rng.integers(9, size=n_rows)],
        ]
        columns[_writable(_name(rng, i))] = values[rng.integers(len(values))]
    return ".parquet", _parquet_bytes(columns), True


def _feather(rng: Rng) -> Made:
    table = parquet.read_table(io.BytesIO(_parquet(rng)[1]))
    data = io.BytesIO()
    feather.write_feather(table, data, compression=str(rng.choice(["lz4", "uncompressed"])))
    return ".feather", data.getvalue(), True


def _lines(rng: Rng) -> Made:
    """One JSON object a line, of keys and types that change."""
    rows = []
    for _ in range(int(rng.integers(0, 12))):
        values: list[Any] = [
            float(rng.normal()), int(rng.integers(-5, 5)), 2**60 + int(rng.integers(9)), 10**25,
            True, None, word(rng), [1, 2], {"a": 1, "b": {"a": word(rng)}}, {}, float("nan"),
        ]  # fmt: skip
        kinds = rng.integers(len(values), size=3) if rng.random() < 0.3 else [0, 1, 6]
        rows.append({key: values[kind] for key, kind in zip("abc", kinds, strict=True)})
    text = "\n".join(map(json.dumps, rows)) + "\n" * int(rng.integers(3))
    return ".jsonl", text.encode(), True


def _packed(rng: Rng) -> Made:
    suffix, content, _ = _csv(rng) if rng.random() < 0.5 else _lines(rng)
    packings = {".gz": gzip.compress, ".bz2": bz2.compress, ".zst": zstandard.compress}
    packing = str(rng.choice(list(packings)))
    return suffix + packing, packings[packing](content), True


def _sparse(rng: Rng) -> Made:
    arrays = {
        "format": np.bytes_(rng.choice(["csr", "csc", "coo", "bsr", "dia", "xyz"])),
        "shape": (3, 4),
        "data": rng.normal(size=4), "indices": rng.integers(0, 3, size=4),
        "indptr": np.array([0, 1, 3, 4]), "row": np.arange(4) % 3, "col": np.arange(4),
        "offsets": np.arange(4),
    }  # fmt: skip
    for key in rng.choice(list(arrays), size=int(rng.integers(3))):
        arrays[key] = _array(rng) if rng.random() < 0.5 else rng.integers(-9, 9, size=4)
    data = io.BytesIO()
    np.savez(data, **arrays)
    return ".npz", data.getvalue(), True


def _writable(text: str) -> str:
    return text.encode("utf-8", "ignore").decode()


def _parquet_bytes(columns: dict[str, Any]) -> bytes:
    data = io.BytesIO()
    parquet.write_table(pyarrow.table(columns), data)
    return data.getvalue()


def _bomb(n_bytes: int) -> bytes:
    """Return an archive of zeros that compress a thousandfold."""
    data = io.BytesIO()
    header = {"descr": "<f8", "fortran_order": False, "shape": (n_bytes // 64, 8)}
    with (
        zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("X.npy", "w", force_zip64=True) as member,
    ):
        np.lib.format.write_array_header_1_0(member, header)
        for _ in range(n_bytes >> 24):
            member.write(bytes(1 << 24))
    return data.getvalue()
