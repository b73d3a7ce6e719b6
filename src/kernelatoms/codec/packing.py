"""Bytes without loss: variable-length integers, zstandard frames, short JSON texts, exact values.

The bytes may come from anyone: sizes are checked before memory is allocated, and what does not fit
raises ``CodecError``.
"""

import json
import zlib
from typing import Any

import numpy as np
import zstandard

from kernelatoms.codec.limits import (
    HEADER_SIZE,
    PACKED_EXPANSION,
    PACKED_SIZE,
    TEXT_EXPANSION,
    TEXT_SIZE,
    CodecError,
)
from kernelatoms.engine import Array

# The magic number and the size inside the frame are left out: the size precedes the frame.
_FORM = zstandard.FORMAT_ZSTD1_MAGICLESS
_MAGIC = b"\x28\xb5\x2f\xfd"
_STORED, _PACKED = 0, 1
# Level 19 gains some percent and takes ten times as long: for small data only.
_SMALL = 1 << 18

# The dictionary of JSON texts, which are short and similar: it saves two thirds of their bytes.
# Part of format 1: it must never change. The most frequent texts come last.
_DICTIONARY = (
    b'"kind":"parquet","kind":"npz","kind":"model","styles":["whole":["rest":""open":1,"codec":'
    b'"zstd","group":"deflated":true"name":"labels.npy","name":"y.npy","name":"X.npy",\\r\\n\\t'
    b"|{'descr': '|b1', '|u1', '<M8[ns]', '<i4', '<i8', '<f2', '>f8', 'fortran_order': True, 's"
    b'hape\': (10, 365, 1000,), }[["atoms","|u1",[],"mean","<f4","<f8"kscdl","settings":{"alpha'
    b'":0.01,"atom_code":-118,"gamma":0.1,"mean_code":-70,"n_atoms":128,"ksvd","pca","columns",'
    b'"settings":{"lags":[1,2,144],"parents":8}interpolation","settings":{"stride":64}exact","s'
    b'ettings":{},"slice_rows":100,"symmetric":true}{"arrays":[],"n_columns":1000,"predictor":"'
    b'lags","settings":{"lag":1,"past":1},"slice_rows":0,"symmetric":false}{"kind":"csv","by":"'
    b'0.1.0","bound":[null,0.001],"parts":[{"dtype":"f8","model":0}],"table":{"line":"Date,time'
    b'stamp,time,index,id,date,value,temperature\\n","columns":10,"delimiter":";","approximate"'
    b':[1,2],"end":"mark":","names":1},"errors":[0.005,0.009,0.0099,0.01,0.1],"trials":[["exact'
    b'",10000],["kscdl",["ksvd",["pca",["interpolation",["columns",["lags",1000]],"size":100000'
    b'}{"kind":"array","bound":[0.001,null],"bound":[0.1,null],"bound":[0.05,null],{"kind":"npy'
    b'","by":"0.1.0","bound":[0.01,null],"parts":[{"head":"\\u0093NUMPY\\u0001\\u0000v\\u0000{'
    b"'descr': '<f8', 'fortran_order': False, 'shape': (100, 10), }                            "
    b'                              \\n","dtype":"f8","model":0}]}{\'descr\': \'<f4\', \'fortra'
    b"n_order': False, 'shape': (100, 10, 10), }"
)

# Arrangements of exact values: as they are, bytes of equal significance together, and differences
# of these. The shortest on the first bytes is taken.
_PLAIN, _PLANES, _DIFFERENCES = 0, 1, 2
_LOOK_AT = 1 << 16


def number(value: int) -> bytes:
    """Return an integer as LEB128: seven bits per byte, the lowest first."""
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    found.append(value)
    return bytes(found)


class Cursor:
    """Bytes that are read from left to right, never beyond their end.

    ``what`` names the bytes in messages.
    """

    def __init__(self, data: bytes, what: str) -> None:
        self._data, self._what, self._place = data, what, 0

    @property
    def left(self) -> int:
        """How many bytes follow."""
        return len(self._data) - self._place

    def take(self, size: int) -> bytes:
        """Return the next bytes."""
        if size > self.left:
            raise CodecError(f"{self._what} ends before it should.")
        self._place += size
        return self._data[self._place - size : self._place]

    def number(self) -> int:
        """Return the next integer, below 2^63."""
        value = 0
        for shift in range(0, 63, 7):
            byte = self.take(1)[0]
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise CodecError(f"{self._what} holds a number that is too large.")

    def counted(self) -> bytes:
        """Return bytes that are preceded by their number."""
        return self.take(self.number())

    def end(self) -> None:
        """Refuse bytes that are left over."""
        if self.left:
            raise CodecError(f"{self._what} is followed by {self.left} bytes that do not belong.")


def pack(data: bytes) -> bytes:
    """Return bytes compressed without loss, or unchanged where that is shorter."""
    if not data:
        return b""
    level = 19 if len(data) <= _SMALL else 9
    settings = zstandard.ZstdCompressionParameters.from_level(
        level, format=_FORM, write_content_size=False, write_checksum=False
    )
    packed = zstandard.ZstdCompressor(compression_params=settings).compress(data)
    # Readers refuse what expands too much: such bytes are stored unchanged.
    if len(packed) + 2 > len(data) or not believable(len(data), len(packed)):
        return stored(data)
    return bytes([_PACKED]) + number(len(data)) + packed


def stored(data: bytes) -> bytes:
    """Return bytes unchanged, for ``unpack``."""
    return bytes([_STORED]) + data


def unpack(data: bytes, what: str) -> bytes:
    """Invert ``pack``; ``what`` names the bytes in messages."""
    if not data:
        return b""
    cursor = Cursor(data, what)
    form = cursor.take(1)[0]
    if form == _STORED:
        return cursor.take(cursor.left)
    if form != _PACKED:
        raise CodecError(f"{what} is packed in an unknown way.")
    size = cursor.number()
    frame = cursor.take(cursor.left)
    if not believable(size, len(frame)):
        raise CodecError(f"{what} would become {size:,} bytes out of {len(frame):,}.")
    try:
        # The frame may contain another size, which zstandard would use.
        if zstandard.frame_content_size(_MAGIC + frame) not in (-1, size):
            raise CodecError(f"{what} is not of the size that it should be.")
        reader = zstandard.ZstdDecompressor(format=_FORM, max_window_size=PACKED_SIZE)
        found = reader.decompress(frame, max_output_size=size)
    except zstandard.ZstdError as error:
        raise CodecError(f"{what} cannot be read: {error}.") from error
    if len(found) != size:
        raise CodecError(f"{what} is not of the size that it should be.")
    return bytes(found)


def unpacked_size(data: bytes) -> int:
    """Return the number of bytes that ``unpack`` will return."""
    if data[:1] == bytes([_PACKED]):
        return Cursor(data[1:12], "a size").number()
    return max(len(data) - 1, 0)


def believable(size: int, packed: int) -> bool:
    """Whether ``packed`` bytes may expand to ``size`` bytes."""
    return size <= max(PACKED_SIZE, PACKED_EXPANSION * packed)


def squeeze(tree: Any) -> bytes:
    """Return a JSON object as bytes; ``ValueError`` if it is too long."""
    text = json.dumps(tree, separators=(",", ":"), allow_nan=False).encode()
    if len(text) > HEADER_SIZE:
        raise ValueError(
            f"names and types of columns take {len(text):,} bytes, more than {HEADER_SIZE:,}."
        )
    tool = zlib.compressobj(9, zlib.DEFLATED, -15, 9, zlib.Z_DEFAULT_STRATEGY, _DICTIONARY)
    data = tool.compress(text) + tool.flush()
    if len(text) > max(TEXT_SIZE, TEXT_EXPANSION * len(data)):
        tool = zlib.compressobj(0, zlib.DEFLATED, -15)  # readers would refuse the expansion
        data = tool.compress(text) + tool.flush()
    return data


def unsqueeze(data: bytes, what: str, longest: int = HEADER_SIZE) -> dict[str, Any]:
    """Invert ``squeeze``; ``what`` names the text in the message of ``CodecError``."""
    most = min(longest, max(TEXT_SIZE, TEXT_EXPANSION * len(data)))
    try:
        tool = zlib.decompressobj(-15, _DICTIONARY)
        text = tool.decompress(data, most)
        if not tool.eof or tool.unused_data:
            raise ValueError("it is longer than it should be, or cut short")
        tree = json.loads(text)
    except (ValueError, RecursionError, zlib.error) as error:
        raise CodecError(f"{what} cannot be read: {error}.") from error
    if not isinstance(tree, dict):
        raise CodecError(f"{what} cannot be read: it is no JSON object.")
    return tree


def arrange(values: Array) -> bytes:
    """Return values of one type as bytes; the first byte is the arrangement."""
    values = np.ascontiguousarray(values).reshape(-1)
    forms = [_PLAIN]
    if values.dtype.itemsize > 1 and values.dtype.names is None:
        forms.append(_PLANES)
    if values.dtype.kind in "iumM":
        forms.append(_DIFFERENCES)
    best = forms[0]
    if len(forms) > 1 and len(values):
        some = values[: max(1, _LOOK_AT // values.dtype.itemsize)]
        best = min(forms, key=lambda form: len(pack(_arranged(some, form))))
    return bytes([best]) + _arranged(values, best)


def rearrange(data: bytes, dtype: np.dtype[Any], count: int) -> Array:
    """Invert ``arrange``; ``CodecError`` if the bytes are not its result."""
    form, body = data[:1], data[1:]
    if form not in (b"\0", b"\1", b"\2") or len(body) != count * dtype.itemsize:
        raise CodecError(f"a column does not hold the {count:,} values that it should.")
    if form[0] == _PLAIN:
        return np.frombuffer(body, dtype)
    width = _word(dtype)
    planes = np.ascontiguousarray(np.frombuffer(body, np.uint8).reshape(width, -1).T)
    if form[0] == _PLANES:
        return np.frombuffer(planes.tobytes(), dtype)
    if dtype.kind not in "iumM":
        raise CodecError("a column that holds no whole numbers holds their differences.")
    steps = planes.view(f"<u{width}").reshape(-1)
    values = np.cumsum(steps, dtype=steps.dtype)
    return values.astype(f"{_order(dtype)}u{width}").view(dtype)


def _arranged(values: Array, form: int) -> bytes:
    if form == _PLAIN:
        return values.tobytes()
    width = _word(values.dtype)
    if form == _DIFFERENCES:
        # Differences wrap around, and so do sums.
        numbers = values.view(f"{_order(values.dtype)}u{width}").astype(f"<u{width}")
        values = np.diff(numbers, prepend=numbers.dtype.type(0))
    return np.frombuffer(values.tobytes(), np.uint8).reshape(-1, width).T.tobytes()


def _word(dtype: np.dtype[Any]) -> int:
    """Return the bytes that belong together: a character of text, or a value."""
    return 4 if dtype.kind == "U" else dtype.itemsize


def _order(dtype: np.dtype[Any]) -> str:
    return ">" if dtype.newbyteorder("<").str != dtype.str and dtype.itemsize > 1 else "<"
