"""Files of every kind that can be compressed: opened, compared, and written again."""

from collections.abc import Sequence
from pathlib import Path
from typing import IO

from kernelatoms.codec.errors import CodecError
from kernelatoms.codec.opened import Compressed
from kernelatoms.files.packed_arrays import ArraySource, restore_arrays
from kernelatoms.files.sources import OnStep, Source, quiet
from kernelatoms.files.tables import TableError

#: Endings of files that can be compressed.
COMPRESSIBLE = (".csv", ".tsv", ".txt", ".parquet", ".npy", ".npz")


def open_source(
    path: Path, approximate: Sequence[str] = (), exact: Sequence[str] = (), *,
    like: Compressed | None = None, on_step: OnStep = quiet,
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
    if suffix in (".npy", ".npz"):
        if approximate:
            raise ValueError(
                "approximate: arrays of floats are approximate, and of others nothing is; convert "
                f"them before, got {approximate[0]!r}."
            )
        return ArraySource(path, exact, like)
    if suffix == ".parquet":
        from kernelatoms.files.packed_parquet import ParquetSource

        return ParquetSource(path, approximate, exact, like)
    from kernelatoms.files.packed_csv import CsvSource

    return CsvSource(path, approximate, exact, like, on_step)


def check_same_table(source: Source, old: Compressed) -> None:
    """Refuse to add rows to a file of other columns."""
    kind = old.header.kind
    if source.kind != kind:
        raise ValueError(f"append: a .{kind} file was compressed, and {source.path} is none.")
    if old.model() is None and source.parts[0].n_columns:
        raise ValueError(
            "append: the file that is there has no approximate numbers, perhaps because it has no "
            "rows; compress it anew."
        )


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
        from kernelatoms.files.packed_parquet import restore_parquet

        restore_parquet(opened, file, rows, on_block)
    elif kind == "csv":
        from kernelatoms.files.packed_csv import restore_csv

        restore_csv(opened, file, rows, on_block)
    else:
        raise CodecError("it holds a model, and no rows.")
