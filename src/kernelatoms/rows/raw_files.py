"""Arrays that lie in files as they would in memory: NumPy files, memory maps, safetensors.

They are read, not mapped: pages of a mapped file count as memory of the process.
"""

import json
import mmap
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import DTypeLike, NDArray

from kernelatoms.engine import Array
from kernelatoms.rows.numbers import float_type_asked
from kernelatoms.rows.regroup import Piece
from kernelatoms.rows.source import RowSource
from kernelatoms.rows.stamps import Stamp

#: A header of a safetensors file has at most so many bytes.
_MAX_HEADER = 100 << 20
#: Types of tensors. numpy has no bfloat16: the upper half of a float32.
_TENSOR_TYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8", "I32": "<i4",
    "I16": "<i2", "I8": "<i1", "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "<u1", "BOOL": "?",
}  # fmt: skip


@dataclass(frozen=True)
class RawArray:
    """A matrix in a file from byte ``offset`` on, row by row; or column by column."""

    stamp: Stamp
    offset: int
    n_rows: int
    n_features: int
    dtype: np.dtype[Any]
    by_columns: bool = False
    bfloat16: bool = False

    def __post_init__(self) -> None:
        needed = self.offset + self.n_rows * self.n_features * self.dtype.itemsize
        if self.stamp.size < needed:
            raise ValueError(
                f"{self.stamp.path} is cut short: {self.n_rows:,} rows of {self.n_features:,} "
                f"columns take {needed:,} bytes, and it has {self.stamp.size:,}."
            )

    def read(self, file: BinaryIO, start: int, stop: int, out: Array) -> None:
        """Read rows ``start`` to ``stop`` into ``out``."""
        size, p = self.dtype.itemsize, self.n_features
        if not self.by_columns:
            self._read_bytes(file, self.offset + start * p * size, out)
            return
        column = np.empty(stop - start, self.dtype)
        for j in range(p):
            self._read_bytes(file, self.offset + (j * self.n_rows + start) * size, column)
            out[:, j] = column

    def _read_bytes(self, file: BinaryIO, offset: int, out: Array) -> None:
        place = out.reshape(-1).view(np.uint8).data
        file.seek(offset)
        done = 0
        while done < len(place):
            n = file.readinto(place[done:])  # type: ignore[attr-defined]
            if not n:
                raise ValueError(f"{self.stamp.path} was cut short while it was read.")
            done += n


class RawFileRows(RowSource):
    """The rows of arrays in files, one after another.

    Parameters
    ----------
    arrays : sequence of RawArray
        Where they are; all have the same columns and type.
    kind : str
        What they are called in ``identity``.
    labels : array-like of shape (n_rows,), optional
        Labels of the rows.
    dtype : dtype, optional
        float32 or float64; by default that of the files, if it is one of them.
    """

    def __init__(
        self,
        arrays: Sequence[RawArray],
        kind: str,
        labels: Any = None,
        *,
        dtype: DTypeLike | None = None,
    ) -> None:
        first = arrays[0]
        for other in arrays[1:]:
            if other.n_features != first.n_features:
                raise ValueError(
                    f"All files must have the same columns: {first.stamp.path} has "
                    f"{first.n_features:,} and {other.stamp.path} has {other.n_features:,}."
                )
            if (other.dtype, other.bfloat16) != (first.dtype, first.bfloat16) and dtype is None:
                raise ValueError(
                    f"All files must have numbers of the same type: {first.stamp.path} has "
                    f"{first.dtype} and {other.stamp.path} has {other.dtype}. With dtype='float32' "
                    "or 'float64' all become that."
                )
        stored = np.dtype(np.float32) if first.bfloat16 else first.dtype
        n_rows = sum(array.n_rows for array in arrays)
        super().__init__(n_rows, first.n_features, float_type_asked(dtype, stored), labels=labels)
        self._arrays = list(arrays)
        self._starts = np.cumsum([0, *(array.n_rows for array in arrays)])
        self._kind = kind

    def identity(self) -> dict[str, Any]:
        """Return names, sizes and times of the files."""
        return {
            "kind": self._kind,
            "files": [[*array.stamp.identity(), array.offset] for array in self._arrays],
            "shape": list(self.shape),
            "dtype": self.dtype.name,
        }

    def _read(self, block_rows: int) -> Iterator[Any]:
        for stamp in {array.stamp: None for array in self._arrays}:
            stamp.check()
        with _Files() as files:
            for start in range(0, int(self._starts[-1]), block_rows):
                stop = min(start + block_rows, int(self._starts[-1]))
                yield self._rows(files, start, stop)

    def _rows(self, files: "_Files", start: int, stop: int) -> "Piece":
        """Read rows, which may lie in several files."""
        parts, begin = [], start
        i = int(np.searchsorted(self._starts, start, side="right")) - 1
        while start < stop:
            array, first = self._arrays[i], int(self._starts[i])
            last = min(stop, int(self._starts[i + 1]))
            if last > start:
                held = np.empty((last - start, array.n_features), array.dtype)
                array.read(files.open(array.stamp), start - first, last - first, held)
                parts.append(_widened(held) if array.bfloat16 else held)
            start, i = last, i + 1
        return Piece(parts, stop - begin)

    def _finish(self, piece: Any) -> Any:
        return piece.joined(self.dtype)

    def _take(self, indices: NDArray[np.intp]) -> Any:
        if any(array.by_columns for array in self._arrays):
            return super()._take(indices)
        order = np.argsort(indices, kind="stable")
        found = np.empty((len(indices), self._arrays[0].n_features), self.dtype)
        ends = np.searchsorted(indices[order], self._starts)
        with _Files() as files:
            for i, array in enumerate(self._arrays):
                places = order[ends[i] : ends[i + 1]]
                if not len(places):
                    continue
                held = np.empty((len(places), array.n_features), array.dtype)
                file = files.open(array.stamp)
                for k, row in enumerate((indices[places] - self._starts[i]).tolist()):
                    array.read(file, row, row + 1, held[k])
                found[places] = _widened(held) if array.bfloat16 else held
        return found


class _Files:
    """The one file that is open, of those that a pass reads in turn."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._path: Path | None = None
        self._file: Any = None

    def __enter__(self) -> "_Files":
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def open(self, stamp: Stamp) -> BinaryIO:
        if stamp.path != self._path:
            self._stack.close()
            stamp.check()
            self._file = self._stack.enter_context(stamp.path.open("rb", buffering=0))
            self._path = stamp.path
        return self._file


def _widened(upper: Array) -> Array:
    """Return float32 numbers by their upper halves."""
    return (upper.astype(np.uint32) << 16).view(np.float32)


def npy_array(path: Path) -> RawArray:
    """Return where the array of a NumPy file is."""
    stamp = Stamp.of(path)
    try:
        with path.open("rb") as file:
            version = np.lib.format.read_magic(file)
            read = (
                np.lib.format.read_array_header_1_0
                if version == (1, 0)
                else np.lib.format.read_array_header_2_0
            )
            shape, by_columns, dtype = read(file)
            offset = file.tell()
    except Exception as error:  # damaged headers raise errors of many kinds
        raise ValueError(f"{path} cannot be read as a NumPy file: {error}") from error
    return raw_array(stamp, offset, shape, dtype, by_columns)


def raw_array(
    stamp: Stamp,
    offset: int,
    shape: Sequence[int],
    dtype: np.dtype[Any],
    by_columns: bool = False,
    bfloat16: bool = False,
) -> RawArray:
    """Return a matrix in a file, if it is one of numbers."""
    if len(shape) != 2:
        raise ValueError(
            f"{stamp.path} holds an array of shape {tuple(shape)}; rows need 2 dimensions."
        )
    if dtype.kind not in "fiub":
        raise ValueError(f"{stamp.path} holds {dtype}; rows must be numbers.")
    if min(shape) < 0:
        raise ValueError(f"{stamp.path} is damaged: its shape {tuple(shape)} is negative.")
    return RawArray(stamp, offset, shape[0], shape[1], dtype, by_columns, bfloat16)


def mapped_array(array: "np.memmap[Any, Any]") -> RawArray | None:
    """Return where the rows of a memory map are in its file; None where only the map knows."""
    in_file = isinstance(array._mmap, mmap.mmap) and array.mode in ("r", "r+", "w+")  # type: ignore[attr-defined]
    if not in_file or array.ndim != 2 or array.filename is None or array.dtype.kind not in "fiub":
        return None
    path = Path(array.filename)
    by_columns = array.flags.f_contiguous and not array.flags.c_contiguous
    if not path.exists() or not array.flags.forc or array.size == 0:
        return None
    if array.mode != "r":
        array.flush()
    begin = np.frombuffer(array._mmap, np.uint8).__array_interface__["data"][0]  # type: ignore[attr-defined]
    in_map = array.__array_interface__["data"][0] - begin
    offset = array.offset - array.offset % mmap.ALLOCATIONGRANULARITY + in_map
    try:
        return raw_array(Stamp.of(path), offset, array.shape, array.dtype, by_columns)
    except ValueError:  # another file has its name now
        return None


def tensor_array(path: Path, tensor: str) -> RawArray:
    """Return where a tensor of a safetensors file is."""
    stamp = Stamp.of(path)
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        if not 2 <= size <= min(_MAX_HEADER, stamp.size - 8):
            raise ValueError(f"{path} is no safetensors file, or is cut short.")
        try:
            header = json.loads(file.read(size))
            entries = {name: entry for name, entry in header.items() if name != "__metadata__"}
            if tensor not in entries:
                raise KeyError(tensor)
            kind, shape = entries[tensor]["dtype"], entries[tensor]["shape"]
            first, last = entries[tensor]["data_offsets"]
            whole = all(isinstance(n, int) and n >= 0 for n in (first, last, *shape))
        except KeyError:
            names = ", ".join(sorted(map(str, entries))[:10])
            raise ValueError(f"{path} has no tensor {tensor!r}; it has: {names}.") from None
        except (ValueError, TypeError, AttributeError) as error:
            raise ValueError(f"{path} is no safetensors file: its header is damaged.") from error
    if kind not in _TENSOR_TYPES:
        raise ValueError(f"Tensor {tensor!r} of {path} is of type {kind}; rows must be numbers.")
    dtype = np.dtype(_TENSOR_TYPES[kind])
    n_bytes = dtype.itemsize
    for n in shape if whole else ():
        n_bytes *= n
    if not whole or last - first != n_bytes:
        raise ValueError(f"{path} is damaged: the size of tensor {tensor!r} contradicts its shape.")
    return raw_array(stamp, 8 + size + first, shape, dtype, bfloat16=kind == "BF16")
