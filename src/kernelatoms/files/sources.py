"""What ``compress`` asks of a file, whatever its kind, and what ``decompress`` does with one."""

import errno
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from numpy.typing import NDArray

from kernelatoms.codec.blocks import Block

Array = NDArray[Any]

#: ``on_step(done, total, what)`` is told how far the work is.
OnStep = Callable[[int, int, str], None]


def quiet(done: int, total: int, what: str) -> None:
    """Tell nobody."""


@dataclass(frozen=True)
class PartPlan:
    """One array, or the one table, of a file that is to be compressed.

    Parameters
    ----------
    name : str
        Its name, where there are several.
    head : str
        The head of its NumPy file; empty for tables.
    n_rows : int
        Rows, or slices.
    row_values : int
        Values in each.
    n_columns : int
        Columns of the matrix of approximate numbers; 0 if all is kept exactly.
    slice_rows : int
        Rows of a slice; 0 if there are no slices.
    dtype : str
        "f4" or "f8", the type of that matrix; empty if there is none.
    """

    name: str
    head: str
    n_rows: int
    row_values: int
    n_columns: int = 0
    slice_rows: int = 0
    dtype: str = ""


class Source(Protocol):
    """A file that is to be compressed, read as often as needed.

    Parameters
    ----------
    kind : str
        What it is: of ``codec.header.KINDS``.
    path : Path
        The file.
    parts : list of PartPlan
        Its arrays, or its table.
    notes : list of str
        What the user should know.
    columns : dict of str to list of str
        Names of the columns of a table by how they are kept: "approximate" and "exact".
    """

    kind: str
    path: Path
    parts: list[PartPlan]
    notes: list[str]
    columns: dict[str, list[str]]

    def sample(self, part: int, n_rows: int) -> Array:
        """Return the first rows of a part's matrix; of slices, their rows."""
        ...

    def blocks(self, part: int, block_rows: int) -> Iterator[Block]:
        """Yield a part, block after block."""
        ...

    def table(self) -> Mapping[str, Any]:
        """Return what a header says of a table; asked when all blocks have been read."""
        ...

    def schema(self) -> bytes:
        """Return the types of a table's columns."""
        ...


def check_room(folder: Path, n_bytes: int) -> None:
    """Refuse to write what does not fit on the disk."""
    free = shutil.disk_usage(folder).free
    if n_bytes > free:
        raise OSError(
            errno.ENOSPC,
            f"the file would take {n_bytes / 2**30:,.1f} GiB, and {free / 2**30:,.1f} GiB are free "
            f"in {str(folder)!r}",
        )
