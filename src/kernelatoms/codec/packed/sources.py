"""What the writer asks of a file to compress, and which columns of a table are approximate."""

import errno
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from kernelatoms.codec.blocks import Block, Compressed
from kernelatoms.codec.limits import CodecError
from kernelatoms.engine import Array
from kernelatoms.files.tables.table import shortened

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


def table_plan(n_rows: int, n_columns: int, n_bytes: int, dtype: str) -> PartPlan:
    """Return the plan of a table; rows of long texts count by their bytes."""
    row_values = max(n_columns, n_bytes // max(1, n_rows) // 16, 1)
    if not n_columns or not n_rows:
        return PartPlan("", "", n_rows, row_values)
    return PartPlan("", "", n_rows, row_values, n_columns, 0, dtype)


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
        """Return the types of a table's columns; nothing if the rows have them."""
        return b""


def check_room(folder: Path, n_bytes: int) -> None:
    """Refuse to write more than fits on the disk."""
    free = shutil.disk_usage(folder).free
    if n_bytes > free:
        raise OSError(
            errno.ENOSPC,
            f"the file would take {n_bytes / 2**30:,.1f} GiB, and {free / 2**30:,.1f} GiB are free "
            f"in {str(folder)!r}",
        )


def choose_columns(
    path: Path, names: Sequence[str], defaults: Sequence[str], approximate: Sequence[str],
    exact: Sequence[str], all_exact: bool,
) -> list[int]:  # fmt: skip
    """Return the indices of approximate columns.

    ``defaults`` are "approximate" (floats), "exact" (integers) or "no numbers" per column;
    ``approximate`` and ``exact`` are the user's exceptions. A repeated name means all columns of
    that name. With ``all_exact``, no error is allowed.
    """
    for argument, wanted in (("approximate", approximate), ("exact", exact)):
        for name in wanted:
            if name not in names:
                raise ValueError(
                    f"{argument}: {path} has no column {name!r}; it has {shortened(names)}."
                )
    both = [name for name in approximate if name in exact]
    if both:
        raise ValueError(f"{both[0]!r} is named in both approximate and exact.")
    chosen = []
    for i, (name, default) in enumerate(zip(names, defaults, strict=True)):
        if name in approximate and default == "no numbers":
            raise ValueError(f"approximate: the column {name!r} of {path} holds no numbers.")
        if name in approximate or (default == "approximate" and name not in exact):
            chosen.append(i)
    return [] if all_exact else chosen


def other_columns(chosen: Sequence[int], n_columns: int) -> list[int]:
    """Return the indices of all columns but the chosen ones."""
    return sorted(set(range(n_columns)) - set(chosen))


def as_ranges(places: Sequence[int]) -> list[int]:
    """Return indices as starts and stops of runs: [0, 3, 5, 6] for 0, 1, 2, 5."""
    found: list[int] = []
    for place in places:
        if found and found[-1] == place:
            found[-1] += 1
        else:
            found += [place, place + 1]
    return found


def from_ranges(ends: Any, limit: int) -> list[int]:
    """Invert ``as_ranges``; ``CodecError`` if indices are not below ``limit``."""
    right = isinstance(ends, list) and all(type(end) is int for end in ends)
    right = right and len(ends) % 2 == 0 and sorted(set(ends)) == ends
    if not right or (ends and not 0 <= ends[0] < ends[-1] <= limit):
        raise CodecError("it does not say which columns are approximate.")
    return [i for low, high in zip(ends[::2], ends[1::2], strict=True) for i in range(low, high)]


def check_columns(opened: Compressed, n_columns: int) -> None:
    """Refuse a table whose approximate columns do not fit its model."""
    parts = opened.header.parts
    right = len(parts) == 1 and (parts[0].model >= 0) == (n_columns > 0 and opened.n_rows() > 0)
    model = opened.known_model() if right else None
    if not right or (model is not None and (model.n_columns, model.slice_rows) != (n_columns, 0)):
        raise CodecError("its columns are not those that its model predicts.")
