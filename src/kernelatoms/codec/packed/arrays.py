"""Arrays as blocks of rows, and arrays in memory to bytes and back.

Float arrays with one to three axes are approximate: rows lie along the last axis, and a 3-d array
is a stack of slices. All other arrays are exact. The header of a NumPy file ("head") describes an
array completely and is stored unchanged.
"""

import io
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelatoms.codec.blocks import (
    Block,
    Compressed,
    DecodedBlock,
    Finish,
    encode_block,
    map_in_order,
    rows_per_block,
)
from kernelatoms.codec.bounds import Bound
from kernelatoms.codec.container import Header, Part, Tail, Writer
from kernelatoms.codec.limits import CodecError
from kernelatoms.codec.models.codec_model import CodecModel, model_bytes
from kernelatoms.codec.packing import arrange, believable, rearrange
from kernelatoms.engine import Array
from kernelatoms.features.memory import check_fits

#: Readers of the heads of NumPy files, by what these begin with.
READERS: dict[bytes, Callable[[Any], tuple[tuple[int, ...], bool, np.dtype[Any]]]] = {
    b"\x93NUMPY\x01\x00": np.lib.format.read_array_header_1_0,
    b"\x93NUMPY\x02\x00": np.lib.format.read_array_header_2_0,
}


@dataclass(frozen=True)
class Layout:
    """The layout of an array in a file and in blocks."""

    shape: tuple[int, ...]
    columns_first: bool  # whether its file is in Fortran order
    dtype: np.dtype[Any]  # its type, byte order included

    @classmethod
    def from_head(cls, head: str) -> "Layout":
        """Return the layout in the head of a NumPy file; ``CodecError`` if it is invalid."""
        try:
            data = io.BytesIO(head.encode("latin-1"))
            shape, columns_first, dtype = READERS[data.read(8)](data)
            right = all(0 <= side < 1 << 62 for side in shape) and not data.read(1)
        except Exception as error:
            # The head is a Python expression: parsing raises many kinds of exceptions.
            raise CodecError("the head of an array cannot be read.") from error
        # NumPy refuses empty arrays with huge sides, such as (0, 1 << 61).
        size = math.prod(max(side, 1) for side in shape) * dtype.itemsize
        if not right or dtype.hasobject or dtype.itemsize == 0 or size >= 1 << 62:
            raise CodecError("the head of an array is invalid.")
        return cls(shape, columns_first, dtype)

    def head(self) -> str:
        """Return the head for this layout."""
        descr = np.lib.format.dtype_to_descr(self.dtype)
        fields = {"descr": descr, "fortran_order": self.columns_first, "shape": self.shape}
        file = io.BytesIO()
        try:
            np.lib.format.write_array_header_1_0(file, fields)
        except ValueError:  # names of fields that are very long
            np.lib.format.write_array_header_2_0(file, fields)
        return file.getvalue().decode("latin-1")

    @property
    def n_rows(self) -> int:
        """Rows, or slices: the length of the first axis."""
        if 0 in self.shape:
            return 0
        return self.shape[0] if self.shape else 1

    @property
    def row_values(self) -> int:
        """Values per row or slice."""
        return math.prod(self.shape[1:])

    @property
    def row_bytes(self) -> int:
        """Bytes per row or slice."""
        return self.row_values * self.dtype.itemsize

    @property
    def n_bytes(self) -> int:
        """Bytes in total."""
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def approximate(self) -> bool:
        """Whether its numbers may be approximate."""
        is_float = self.dtype.kind == "f" and self.dtype.itemsize <= 8
        return is_float and 1 <= len(self.shape) <= 3 and self.n_rows > 0

    @property
    def matrix_dtype(self) -> str:
        """The type that numbers are coded in."""
        return "f8" if self.dtype.itemsize == 8 else "f4"

    @property
    def n_columns(self) -> int:
        """Values per row of the matrix."""
        return self.shape[-1] if len(self.shape) > 1 else 1

    @property
    def slice_rows(self) -> int:
        """Rows per slice; 0 without slices."""
        return self.shape[1] if len(self.shape) == 3 else 0

    def matrix(self, rows: Array) -> Array:
        """Return rows of the array as rows of the matrix."""
        return np.ascontiguousarray(rows, self.matrix_dtype).reshape(-1, self.n_columns)

    def finish(self) -> Finish | None:
        """Return how decoded numbers are rounded: to half precision, if that is the type."""
        if self.dtype.itemsize > 2:
            return None
        narrow = self.dtype.newbyteorder("=")

        def rounded(decoded: Array) -> Iterable[tuple[Array, bytes]]:
            with np.errstate(over="ignore"):
                return [(decoded.astype(narrow).astype(decoded.dtype), b"")]

        return rounded

    def rows(self, block: DecodedBlock) -> Array:
        """Return rows of the array from a decoded block."""
        shape = (block.n_rows, *self.shape[1:])
        if block.matrix is not None:
            with np.errstate(over="ignore"):
                return block.matrix.astype(self.dtype).reshape(shape)
        return rearrange(block.exact, self.dtype, math.prod(shape)).reshape(shape)


def array_blocks(
    pieces: Iterable[Array], layout: Layout, part: int, approximate: bool
) -> Iterator[Block]:
    """Yield the blocks of pieces of rows."""
    for rows in pieces:
        if approximate:
            yield Block(part, len(rows), layout.matrix(rows), b"", layout.finish())
        else:
            yield Block(part, len(rows), None, arrange(rows))


def check_layout(layout: Layout, opened: Compressed, part: int) -> None:
    """Refuse an array whose head does not fit its model and its blocks."""
    said = opened.header.parts[part]
    if opened.n_rows(part) != layout.n_rows:
        raise CodecError(
            f"an array should have {layout.n_rows:,} rows, but {opened.n_rows(part):,} are there."
        )
    if said.model < 0:
        for entry in opened.entries(part):
            n_bytes = entry.n_rows * layout.row_bytes
            if not believable(n_bytes, entry.size):
                raise CodecError(f"a block of {entry.size:,} bytes would become {n_bytes:,}.")
        return
    model = opened.known_model(part)
    shape = (layout.n_columns, layout.slice_rows)
    right = model is None or (model.n_columns, model.slice_rows) == shape
    if not right or said.dtype != layout.matrix_dtype or not layout.approximate:
        raise CodecError("an array does not have the shape that its model predicts.")


def encode_array(X: Array, bound: Bound, model: CodecModel) -> bytes:
    """Return an approximate array as bytes, including the model."""
    layout = Layout(X.shape, False, X.dtype)
    n_rows = rows_per_block(layout.n_rows, layout.row_values)
    pieces = (X[start : start + n_rows] for start in range(0, len(X), n_rows))
    file = io.BytesIO()
    writer = Writer(file)
    blocks = array_blocks(pieces, layout, 0, True)
    for block in map_in_order(lambda block: encode_block(block, bound, model), blocks):
        writer.add(0, block.n_rows, block.matrix, block.exact)
    part = Part(head=layout.head(), dtype=layout.matrix_dtype, model=0)
    header = Header("array", "", bound, (part,))
    writer.finish(Tail(header.to_bytes(), (model_bytes(model),)))
    return file.getvalue()


def decode_array(
    data: bytes, model: CodecModel | None = None, max_size: int | None = None
) -> Array:
    """Invert ``encode_array``; ``CodecError`` if the bytes are not its result."""
    opened = Compressed(data, model, max_size)
    if opened.header.kind not in ("array", "npy") or len(opened.header.parts) != 1:
        raise CodecError(f"it holds a {opened.header.kind} file, and not one array.")
    layout = Layout.from_head(opened.header.parts[0].head)
    check_layout(layout, opened, 0)
    opened.budget.check(layout.n_bytes)
    try:
        check_fits(
            float(layout.n_bytes),
            f"the decoded values of an array of shape {layout.shape}",
            "Decode it to a file (kernelatoms decompress).",
        )
    except ValueError as error:
        raise CodecError(str(error)) from error
    array = np.empty(layout.shape, layout.dtype, order="F" if layout.columns_first else "C")
    for block in opened.blocks(0):
        rows = layout.rows(block)
        array[block.start : block.start + block.n_rows] = rows if layout.shape else rows[0]
    return array
