"""Files of every kind that can be compressed: opened, compared, and written again."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from numpy.typing import NDArray

from kernelatoms.codec.arrays import Layout
from kernelatoms.codec.errors import CodecError
from kernelatoms.codec.opened import Compressed
from kernelatoms.files.packed_arrays import ArraySource, part_layout, restore_arrays
from kernelatoms.files.sources import OnStep, Source, quiet
from kernelatoms.files.tables.table import TableError

Array = NDArray[Any]

#: Endings of files that can be compressed.
COMPRESSIBLE = (".csv", ".tsv", ".txt", ".parquet", ".npy", ".npz")


def open_source(
    path: Path, approximate: Sequence[str] = (), exact: Sequence[str] = (), *,
    like: Compressed | None = None, all_exact: bool = False, max_size: int | None = None,
    on_step: OnStep = quiet,
) -> Source:  # fmt: skip
    """Open a file that is to be compressed.

    Parameters
    ----------
    path : Path
        The file.
    approximate, exact : sequence of str
        Columns that are kept otherwise than by default.
    like : Compressed or None
        Keep columns as this file does.
    all_exact : bool
        Keep all columns of a table as they are.
    max_size : int or None
        The bytes that a file may become that is compressed itself (``.npz``, ``.parquet``).
    on_step : callable
        Told how far it is, where a file is read twice.
    """
    suffix = path.suffix.lower()
    if suffix not in COMPRESSIBLE:
        raise TableError(
            f"{path} must end with {', '.join(COMPRESSIBLE[:-1])} or {COMPRESSIBLE[-1]}, so that "
            "it is clear how to read it."
        )
    if path.stat().st_size == 0:
        raise TableError(f"{path} is empty.")
    if like is not None and _kind(suffix) != like.header.kind.replace("array", "npy"):
        raise ValueError(f"{path} is no .{like.header.kind} file, and such a one was compressed.")
    if suffix in (".npy", ".npz"):
        if approximate:
            raise ValueError(
                "approximate: arrays of floats are approximate, and of others nothing is; convert "
                f"them before, got {approximate[0]!r}."
            )
        return ArraySource(path, exact, like, max_size)
    if suffix == ".parquet":
        from kernelatoms.files.packed_parquet import ParquetSource

        return ParquetSource(path, approximate, exact, like, all_exact, max_size)
    from kernelatoms.files.packed_csv import CsvSource

    return CsvSource(path, approximate, exact, like, all_exact, on_step)


def _kind(suffix: str) -> str:
    return "csv" if suffix in (".tsv", ".txt") else suffix.removeprefix(".")


def check_same_table(source: Source, old: Compressed) -> None:
    """Refuse to add rows to a file of other columns."""
    if old.model() is None and source.parts[0].n_columns:
        raise ValueError(
            "append: the file that is there has no approximate numbers, perhaps because it has no "
            "rows; compress it anew."
        )


def decoded_matrices(opened: Compressed, part: int) -> Iterator[Array]:
    """Yield the approximate numbers of an array or table as a reader gets them, block by block."""
    kind = opened.header.kind
    if kind == "csv":
        from kernelatoms.files.csv_lines import BlockTexts
        from kernelatoms.files.packed_csv import read_layout

        layout = read_layout(opened)
        for block in opened.blocks(part):
            yield BlockTexts(block, layout, opened.budget).numbers
    elif kind == "parquet":
        from kernelatoms.files.parquet_rows import decoded_numbers

        yield from decoded_numbers(opened)
    else:
        form = part_layout(opened, part)
        for block in opened.blocks(part):
            yield form.matrix(form.rows(block))


def shapes_of(opened: Compressed) -> dict[str, str]:
    """Return what the parts of a file are, in words."""
    header, found = opened.header, {}
    for i, part in enumerate(header.parts):
        n_rows = f"{opened.n_rows(i):,} rows"
        if header.kind in ("csv", "parquet"):
            n_chosen, n_columns = _table_columns(opened)
            words = f"{n_rows}, {n_columns:,} columns, {n_chosen:,} of them approximate"
        else:
            words = _array_in_words(part_layout(opened, i), part.model >= 0)
        found[part.name.removesuffix(".npy")] = words
    return found


def _table_columns(opened: Compressed) -> tuple[int, int]:
    if opened.header.kind == "csv":
        from kernelatoms.files.packed_csv import read_layout

        layout = read_layout(opened)
        return len(layout.chosen), layout.dialect.n_columns
    from kernelatoms.files.parquet_rows import chosen_columns

    chosen, schema = chosen_columns(opened)
    return len(chosen), len(schema.types)


def column_names(opened: Compressed) -> list[str] | None:
    """Return the names of a table's approximate columns; None for arrays."""
    if opened.header.kind == "csv":
        from kernelatoms.files.packed_csv import read_layout

        layout = read_layout(opened)
        return [layout.dialect.names[i] for i in layout.chosen]
    if opened.header.kind == "parquet":
        from kernelatoms.files.parquet_rows import chosen_columns

        chosen, schema = chosen_columns(opened)
        return [schema.names[i] for i in chosen]
    return None


def _array_in_words(form: Layout, approximate: bool) -> str:
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
    if rows is None:
        total = sum(opened.n_rows(part) for part in range(len(opened.header.parts)))
    else:
        total = rows[1] - rows[0]
    done = 0

    def on_block(n_rows: int) -> None:
        nonlocal done
        done += n_rows
        on_step(done, total, "decompressing")

    kind = opened.header.kind
    if kind in ("npy", "npz", "array"):
        restore_arrays(opened, file, folder, rows, on_block)
    elif kind == "parquet":
        from kernelatoms.files.parquet_rows import restore_parquet

        restore_parquet(opened, file, rows, on_block)
    elif kind == "csv":
        from kernelatoms.files.csv_lines import restore_csv

        restore_csv(opened, file, rows, on_block)
    else:
        raise CodecError("it holds a model, and no rows.")
