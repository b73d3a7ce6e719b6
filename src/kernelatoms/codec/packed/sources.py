"""What the writer asks of a file to compress."""

import errno
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from numpy.typing import NDArray

from kernelatoms.codec.blocks import Block

Array = NDArray[Any]

#: ``on_step(done, total, what)`` reports progress.
OnStep = Callable[[int, int, str], None]


def quiet(done: int, total: int, what: str) -> None:
    """Report no progress."""


@dataclass(frozen=True)
class PartPlan:
    """An array of a file to compress, or its table.

    Parameters
    ----------
    name : str
        Its name, if there are several.
    head : str
        The header of its NumPy file; empty for tables.
    n_rows : int
        Rows, or slices.
    row_values : int
        Values per row or slice.
    n_columns : int
        Columns of the matrix of approximate numbers; 0 if everything is exact.
    slice_rows : int
        Rows per slice; 0 without slices.
    dtype : str
        The type of that matrix, "f4" or "f8"; empty if there is none.
    """

    name: str
    head: str
    n_rows: int
    row_values: int
    n_columns: int = 0
    slice_rows: int = 0
    dtype: str = ""


class Source(Protocol):
    """A file to compress, read as often as needed.

    Parameters
    ----------
    kind : str
        One of ``header.KINDS``.
    path : Path
        The file.
    parts : list of PartPlan
        The arrays, or the table.
    notes : list of str
        Remarks for the user.
    columns : dict of str to list of str
        The "approximate" and the "exact" columns of a table.
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
        """Yield the blocks of a part."""
        ...

    def table(self) -> Mapping[str, Any]:
        """Return the table's entry in the header, after all blocks have been read."""
        ...

    def schema(self) -> bytes:
        """Return the types of a table's columns."""
        ...


def check_room(folder: Path, n_bytes: int) -> None:
    """Refuse to write more than fits on the disk."""
    free = shutil.disk_usage(folder).free
    if n_bytes > free:
        raise OSError(
            errno.ENOSPC,
            f"the file would take {n_bytes / 2**30:,.1f} GiB, and {free / 2**30:,.1f} GiB are free "
            f"in {str(folder)!r}",
        )
