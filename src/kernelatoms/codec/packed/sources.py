"""``Source``: what the writer needs of a file to compress."""

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
    """An array of a file to compress, or its table."""

    name: str  # its name, if there are several
    head: str  # the header of its NumPy file; empty for tables
    n_rows: int  # rows, or slices
    row_values: int  # values per row or slice
    n_columns: int = 0  # columns of the matrix of approximate numbers; 0 if everything is exact
    slice_rows: int = 0  # rows per slice; 0 without slices
    dtype: str = ""  # the type of that matrix, "f4" or "f8"; empty if there is none


class Source(Protocol):
    """A file to compress, read as often as needed."""

    kind: str  # one of ``header.KINDS``
    path: Path
    parts: list[PartPlan]
    notes: list[str]
    columns: dict[str, list[str]]  # the "approximate" and the "exact" columns of a table

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
