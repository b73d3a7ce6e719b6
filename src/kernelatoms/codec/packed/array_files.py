"""NumPy files to blocks and back: ``.npy`` by memory map, ``.npz`` member by member."""

import math
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import numpy as np

from kernelatoms.codec.blocks import Block, Compressed
from kernelatoms.codec.limits import CodecError
from kernelatoms.codec.packed.arrays import READERS, Layout, array_blocks, check_layout
from kernelatoms.codec.packed.sources import PartPlan, Source, check_room
from kernelatoms.engine import Array
from kernelatoms.features.memory import check_fits
from kernelatoms.files.tables.arrays import UnreadableError, read_header
from kernelatoms.limits import Budget, TooLargeError

_MAGIC = b"\x93NUMPY"
# Other files than arrays of plain types are stored as bytes.
_RAW = np.dtype(np.uint8)


class ArraySource(Source):
    """A ``.npy`` or ``.npz`` file.

    Arrays named in ``exact`` are exact; the rows are added to those of ``like``, a compressed
    array.
    """

    def __init__(
        self, path: Path, exact: Sequence[str] = (), like: Compressed | None = None,
        max_size: int | None = None,
    ) -> None:  # fmt: skip
        self.path = path
        self.columns: dict[str, list[str]] = {}
        self.kind = path.suffix.lower().removeprefix(".")
        self._members = [_NpyFile(path)] if self.kind == "npy" else _npz_members(path, max_size)
        for name in exact:
            found = [member for member in self._members if member.name in (name, f"{name}.npy")]
            for member in found:
                member.approximate = False
            if not found:
                bare = [member.name.removesuffix(".npy") for member in self._members[:8]]
                known = ", ".join(map(repr, bare))
                raise ValueError(f"exact: {path} has no array {name!r}; it has {known}.")
        self.parts = [member.plan() for member in self._members]
        if like is not None:
            self._extend(like)
        self.notes = [
            f"{member.name or path.name} is no array of plain numbers; it is kept byte by byte."
            for member in self._members
            if not member.head and member.name.endswith(".npy")
        ]

    def _extend(self, old: Compressed) -> None:
        """Include the rows that exist already in the head."""
        before, member = old.header.parts[0], self._members[0]
        layout, new = part_layout(old, 0), member.layout
        same = (layout.dtype, layout.shape[1:]) == (new.dtype, new.shape[1:])
        if len(self._members) != 1 or not before.head or not new.shape or not same:
            raise ValueError(
                f"append: the array that is there has shape {layout.shape} and dtype "
                f"{layout.dtype}, and {self.path} has {new.shape} and {new.dtype}."
            )
        member.approximate = before.model >= 0
        whole = replace(layout, shape=(layout.shape[0] + new.shape[0], *new.shape[1:]))
        self.parts = [replace(member.plan(), head=whole.head(), name=before.name)]

    def sample(self, part: int, n_rows: int) -> Array:
        """Return the first rows of an array's matrix."""
        member = self._members[part]
        return member.layout.matrix(next(member.pieces(min(n_rows, member.layout.n_rows))))

    def blocks(self, part: int, block_rows: int) -> Iterator[Block]:
        """Yield an array, block after block."""
        member = self._members[part]
        return array_blocks(member.pieces(block_rows), member.layout, part, member.approximate)

    def table(self) -> Mapping[str, Any]:
        """Return whether the members of an archive are deflated."""
        return {"deflated": True} if any(member.deflated for member in self._members) else {}


class _NpyFile:
    """An array: its layout, and its rows in pieces."""

    name, deflated = "", False

    def __init__(self, path: Path) -> None:
        self._path = path
        with path.open("rb") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                raise UnreadableError("it does not begin as NumPy files do")
            file.seek(0)
            self.layout, self.head = _layout(file, path.stat().st_size)
        self.approximate = self.layout.approximate

    def pieces(self, n_rows: int) -> Iterator[Array]:
        """Yield ``n_rows`` rows at a time."""
        if self.layout.n_rows == 0:
            return
        array = np.memmap(
            self._path, self.layout.dtype, "r", len(self.head.encode("latin-1")),
            self.layout.shape or (1,), "F" if self.layout.columns_first else "C",
        )  # fmt: skip
        for start in range(0, len(array), n_rows):
            # A copy: mapped memory counts as used while it is referenced.
            yield np.array(array[start : start + n_rows])

    def plan(self) -> PartPlan:
        """Return the plan to compress the array."""
        layout = self.layout
        if self.approximate:
            form = (layout.n_columns, layout.slice_rows, layout.matrix_dtype)
            return PartPlan(self.name, self.head, layout.n_rows, layout.row_values, *form)
        # Wide exact values, such as long texts, count by their bytes.
        row_values = max(layout.row_values, -(-layout.row_bytes // 8))
        return PartPlan(self.name, self.head, layout.n_rows, row_values)


class _NpzMember(_NpyFile):
    def __init__(self, path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> None:
        self.name, self._path, self._info = info.filename, path, info
        self.deflated = info.compress_type != zipfile.ZIP_STORED
        with archive.open(info) as file:
            self.layout, self.head = _layout(file, info.file_size)
        self.approximate = self.layout.approximate

    def pieces(self, n_rows: int) -> Iterator[Array]:
        layout = self.layout
        if layout.n_rows == 0:
            return
        with zipfile.ZipFile(self._path) as archive, archive.open(self._info) as file:
            file.read(len(self.head.encode("latin-1")))
            if layout.columns_first and len(layout.shape) > 1:
                # The first row is complete only with the last column.
                total = math.prod(layout.shape)
                check_fits(
                    total * layout.dtype.itemsize, f"the values of {self.name} (Fortran order)",
                    "Save them in C order, or as a .npy file.",
                )  # fmt: skip
                whole = _values(file, total, layout.dtype).reshape(layout.shape, order="F")
                yield from (whole[start : start + n_rows] for start in range(0, len(whole), n_rows))
                return
            for start in range(0, layout.n_rows, n_rows):
                some = min(n_rows, layout.n_rows - start)
                values = _values(file, some * layout.row_values, layout.dtype)
                yield values.reshape(some, *layout.shape[1:])


def _npz_members(path: Path, max_size: int | None) -> list[_NpyFile]:
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            # A member never has more bytes than it declares.
            budget = Budget(path.stat().st_size, max_size)
            budget.check(sum(info.file_size for info in members))
            return [_NpzMember(path, archive, info) for info in members]
    except (UnreadableError, TooLargeError, MemoryError):
        raise
    except Exception as error:
        # zipfile raises many kinds of exceptions for broken archives.
        raise UnreadableError(str(error).strip().rstrip(".") or type(error).__name__) from error


def _values(file: IO[bytes], count: int, dtype: np.dtype[Any]) -> Array:
    data = file.read(count * dtype.itemsize)
    if len(data) != count * dtype.itemsize:
        raise UnreadableError("it is cut short")
    return np.frombuffer(data, dtype)


def _layout(file: IO[bytes], size: int) -> tuple[Layout, str]:
    """Return the layout and the head of a NumPy file; an empty head if it is stored as bytes."""
    start = file.read(12)
    file.seek(0)
    raw = Layout((size,), False, _RAW), ""
    if start[:8] not in READERS:
        return raw
    wide = 4 if start[6:7] == b"\x02" else 2
    length = 8 + wide + int.from_bytes(start[8 : 8 + wide], "little")
    head = file.read(min(length, 1 << 20)).decode("latin-1")
    try:
        layout = Layout.from_head(head)
    except CodecError:
        return raw  # for example, Python objects
    file.seek(0)
    read_header(file, size)
    return layout, head


def restore_arrays(
    opened: Compressed, file: IO[bytes], folder: Path, rows: tuple[int, int] | None,
    on_block: Callable[[int], None],
) -> None:  # fmt: skip
    """Write the ``.npy`` or ``.npz`` file that was compressed, or some rows of its one array.

    ``folder`` has room for temporary files; ``on_block`` is called with the rows of each block.
    """
    layouts = [part_layout(opened, part) for part in range(len(opened.header.parts))]
    n_bytes = sum(layout.n_bytes for layout in layouts)
    if rows is not None:
        n_bytes = layouts[0].row_bytes * (rows[1] - rows[0])
    opened.budget.check(n_bytes)
    check_room(folder, n_bytes)
    if opened.header.kind in ("npy", "array"):
        if len(layouts) != 1:
            raise CodecError("it holds more than the one array that it should.")
        _write_npy(opened, 0, layouts[0], file, rows, on_block, folder)
        return
    method = zipfile.ZIP_DEFLATED if opened.header.table.get("deflated") else zipfile.ZIP_STORED
    with zipfile.ZipFile(file, "w", method) as archive:
        for part, layout in enumerate(layouts):
            name = opened.header.parts[part].name or f"arr_{part}.npy"
            if any("\ud800" <= letter <= "\udfff" for letter in name):
                raise CodecError("an array has a name that is not text.")
            info = zipfile.ZipInfo(name)
            info.compress_type = method
            with archive.open(info, "w", force_zip64=True) as member:
                _write_npy(opened, part, layout, member, rows, on_block, folder)


def part_layout(opened: Compressed, part: int) -> Layout:
    """Return the layout of an array, after checking it against its blocks and its model."""
    head = opened.header.parts[part].head
    if not head:
        if opened.header.parts[part].model >= 0:
            raise CodecError("an array of numbers has no head.")
        return Layout((opened.n_rows(part),), False, _RAW)
    layout = Layout.from_head(head)
    check_layout(layout, opened, part)
    return layout


def _write_npy(
    opened: Compressed, part: int, layout: Layout, file: IO[bytes],
    rows: tuple[int, int] | None, on_block: Callable[[int], None], folder: Path,
) -> None:  # fmt: skip
    head = opened.header.parts[part].head.encode("latin-1")
    start, stop = (0, layout.n_rows) if rows is None else rows
    if rows is not None:
        layout = replace(layout, shape=(stop - start, *layout.shape[1:]))
        head = layout.head().encode("latin-1") if head else head
    file.write(head)
    if not layout.columns_first or len(layout.shape) < 2:
        for piece, _ in _decoded_rows(opened, part, layout, start, stop, on_block):
            file.write(np.ascontiguousarray(piece).tobytes())
        return
    if 0 in layout.shape:
        return
    with tempfile.TemporaryFile(dir=folder) as place:
        # Rows arrive in order, columns are written in order: through a memory map.
        place.truncate(max(1, layout.n_bytes))
        whole = np.memmap(place, layout.dtype, "r+", 0, layout.shape, "F")
        for piece, first in _decoded_rows(opened, part, layout, start, stop, on_block):
            whole[first : first + len(piece)] = piece
        whole.flush()
        place.seek(0)
        shutil.copyfileobj(place, file, 1 << 22)


def _decoded_rows(
    opened: Compressed, part: int, layout: Layout, start: int, stop: int,
    on_block: Callable[[int], None],
) -> Iterator[tuple[Array, int]]:  # fmt: skip
    """Yield decoded rows and their first index among the rows to write."""
    for block in opened.blocks(part, start, stop):
        low, high = max(start, block.start), min(stop, block.start + block.n_rows)
        rows = layout.rows(block)[low - block.start : high - block.start]
        yield rows, low - start
        on_block(high - low)
