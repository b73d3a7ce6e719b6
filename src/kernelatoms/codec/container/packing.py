"""Variable-length integers, and zstandard frames without headers.

The bytes may come from anyone: sizes are checked before memory is allocated, and what does not fit
raises ``CodecError``.
"""

import zstandard

from kernelatoms.codec.limits import PACKED_EXPANSION, PACKED_SIZE, CodecError

# The magic number and the size inside the frame are left out: the size precedes the frame.
_FORM = zstandard.FORMAT_ZSTD1_MAGICLESS
_MAGIC = b"\x28\xb5\x2f\xfd"
_STORED, _PACKED = 0, 1
# Level 19 gains some percent and takes ten times as long: for small data only.
_SMALL = 1 << 18


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
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
            if shift >= 63:
                raise CodecError(f"{self._what} holds a number that is too large.")
        if value >> 63:
            raise CodecError(f"{self._what} holds a number that is too large.")
        return value

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
