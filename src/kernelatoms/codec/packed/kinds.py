"""Files of every kind that can be compressed: opened, described, and restored."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from kernelatoms.codec.blocks import Compressed
from kernelatoms.codec.limits import CodecError
from kernelatoms.codec.packed.array_files import ArraySource, part_layout, restore_arrays
from kernelatoms.codec.packed.arrays import Layout
from kernelatoms.codec.packed.csv_lines import BlockTexts, read_layout, restore_csv
from kernelatoms.codec.packed.csv_source import CsvSource
from kernelatoms.codec.packed.parquet_files import (
    ParquetSource,
    chosen_columns,
    decoded_numbers,
    restore_parquet,
)
from kernelatoms.codec.packed.sources import OnStep, Source, quiet
from kernelatoms.engine import Array
from kernelatoms.files.tables.table import TableError

_SUFFIXES = (".csv", ".tsv", ".txt", ".parquet", ".npy", ".npz")


def open_source(
    path: Path, approximate: Sequence[str] = (), exact: Sequence[str] = (), *,
    like: Compressed | None = None, all_exact: bool = False, max_size: int | None = None,
    on_step: OnStep = quiet,
) -> Source:  # fmt: skip
    """Open a file to compress.

    Columns named in ``approximate`` and ``exact`` are exceptions from the default; with ``like``, a
    compressed file, columns are as there; with ``all_exact``, all columns of a table are exact.
    """
    suffix = path.suffix.lower()
    if suffix not in _SUFFIXES:
        raise TableError(
            f"{path} must end with {', '.join(_SUFFIXES[:-1])} or {_SUFFIXES[-1]}, so that "
            "it is clear how to read it."
        )
    if path.stat().st_size == 0:
        raise TableError(f"{path} is empty.")
    kind = "csv" if suffix in (".tsv", ".txt") else suffix.removeprefix(".")
    if like is not None and kind != like.header.kind.replace("array", "npy"):
        raise ValueError(f"{path} is no .{like.header.kind} file, and such a one was compressed.")
    if kind in ("npy", "npz"):
        if approximate:
            raise ValueError(
                "approximate: arrays of floats are approximate, and of others nothing is; convert "
                f"them before, got {approximate[0]!r}."
            )
        return ArraySource(path, exact, like, max_size)
    if kind == "parquet":
        return ParquetSource(path, approximate, exact, like, all_exact, max_size)
    return CsvSource(path, approximate, exact, like, all_exact, on_step)


def decoded_matrices(opened: Compressed, part: int) -> Iterator[Array]:
    """Yield the approximate numbers of an array or table as a reader gets them, block by block."""
    if opened.header.kind == "csv":
        table = read_layout(opened)
        for block in opened.blocks(part):
            yield BlockTexts(block, table, opened.budget).numbers
    elif opened.header.kind == "parquet":
        yield from decoded_numbers(opened)
    else:
        layout = part_layout(opened, part)
        for block in opened.blocks(part):
            yield layout.matrix(layout.rows(block))


def shapes_of(opened: Compressed) -> dict[str, str]:
    """Describe each part of a file."""
    found, table = {}, table_columns(opened)
    for i, part in enumerate(opened.header.parts):
        if table is None:
            words = _describe(part_layout(opened, i), part.model >= 0)
        else:
            of_them = f"{table[1]:,} columns, {len(table[0]):,} of them approximate"
            words = f"{opened.n_rows(i):,} rows, {of_them}"
        found[part.name.removesuffix(".npy")] = words
    return found


def table_columns(opened: Compressed) -> tuple[list[str], int] | None:
    """Return a table's approximate columns, and the number of all columns; None for arrays."""
    if opened.header.kind == "csv":
        layout = read_layout(opened)
        return [layout.dialect.names[i] for i in layout.chosen], layout.dialect.n_columns
    if opened.header.kind == "parquet":
        chosen, schema = chosen_columns(opened)
        return [schema.names[i] for i in chosen], len(schema.types)
    return None


def _describe(form: Layout, approximate: bool) -> str:
    kept = "" if approximate else ", kept exactly"
    if len(form.shape) == 2:
        return f"{form.shape[0]:,} rows of {form.shape[1]:,} columns, {form.dtype}{kept}"
    if len(form.shape) == 3:
        n_slices, n_rows, n_columns = form.shape
        return f"{n_slices:,} slices of {n_rows:,} x {n_columns:,}, {form.dtype}{kept}"
    return f"shape {form.shape}, {form.dtype}{kept}"


def restore(
    opened: Compressed, file: IO[bytes], folder: Path, rows: tuple[int, int] | None,
    on_step: OnStep,
) -> None:  # fmt: skip
    """Write the file that was compressed, or some of its rows."""
    all_rows = sum(opened.n_rows(part) for part in range(len(opened.header.parts)))
    total = all_rows if rows is None else rows[1] - rows[0]
    done = 0

    def on_block(n_rows: int) -> None:
        nonlocal done
        done += n_rows
        on_step(done, total, "decompressing")

    kind = opened.header.kind
    if kind in ("npy", "npz", "array"):
        restore_arrays(opened, file, folder, rows, on_block)
    elif kind == "parquet":
        restore_parquet(opened, file, rows, on_block)
    elif kind == "csv":
        restore_csv(opened, file, rows, on_block)
    else:
        raise CodecError("it holds a model, and no rows.")
