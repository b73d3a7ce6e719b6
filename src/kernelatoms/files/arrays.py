"""NumPy files of unknown origin: no more memory is taken than the file can fill.

``np.load`` allocates what a header promises before it looks whether it is there, and raises what
its parser happens to raise. Here sizes are compared first.
"""

import io
import math
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.limits import TooLargeError, check_size

Array = NDArray[Any]

_MOST_EMPTY = 1 << 20


class UnreadableError(ValueError):
    """A file does not hold what it says; the message says why, without the file's name."""


def read_npy(source: Path | bytes) -> Array:
    """Return the array of an ``.npy`` file, or of the bytes of one."""
    if isinstance(source, bytes):
        held = io.BytesIO(source)
        return _array(
            held, len(source),
            lambda count, dtype: np.frombuffer(source, dtype, count, held.tell()).copy(),
        )  # fmt: skip
    with source.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        return _array(file, size, lambda count, dtype: np.fromfile(file, dtype, count))


def read_npz(source: Path | bytes, max_size: int | None = None) -> dict[str, Array]:
    """Return the arrays of an ``.npz`` file, or of the bytes of one.

    Raises
    ------
    UnreadableError
        If it holds no arrays; the message says why.
    TooLargeError
        If it would become more than it may, or than ``max_size`` where that is given.
    """
    size = len(source) if isinstance(source, bytes) else source.stat().st_size
    file = io.BytesIO(source) if isinstance(source, bytes) else source
    try:
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            check_size(sum(member.file_size for member in members), size, max_size)
            return {member.filename.removesuffix(".npy"): _member(archive, member)
                    for member in members}  # fmt: skip
    except (UnreadableError, TooLargeError, MemoryError):
        raise
    except Exception as error:
        # Broken archives make zipfile raise exceptions of all kinds.
        raise UnreadableError(_words(error)) from error


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Array:
    # A member never gives more bytes than it declares.
    with archive.open(member) as file:

        def fill(count: int, dtype: np.dtype[Any]) -> Array:
            array = np.empty(count, dtype)
            buffer, filled = array.view(np.uint8), 0
            while filled < len(buffer):
                part = file.read(min(len(buffer) - filled, 1 << 24))
                if not part:
                    raise UnreadableError("it is cut short")
                buffer[filled : filled + len(part)] = np.frombuffer(part, np.uint8)
                filled += len(part)
            return array

        return _array(file, member.file_size, fill)


def read_header(file: IO[bytes], size: int) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return shape, whether columns come first, and dtype; of an array that ends with the file.

    Parameters
    ----------
    file : stream
        A NumPy file at its beginning.
    size : int
        The bytes of the whole file.
    """
    try:
        version = np.lib.format.read_magic(file)
        if version not in _HEADERS:
            raise ValueError("it holds no plain numbers")
        shape, columns_first, dtype = _HEADERS[version](file)
    except Exception as error:
        # The header is a Python expression, parsed in ways that fail in many ways.
        raise UnreadableError(_words(error)) from error
    if dtype.hasobject or dtype.itemsize == 0:
        raise UnreadableError(f"it is made of {dtype}, and not of numbers")
    follow = size - file.tell()
    # Dimensions beside one of 0 take no bytes, and nobody needs them to be large.
    empty = math.prod(max(side, 1) for side in shape) if 0 in shape else 0
    right = math.prod(shape) * dtype.itemsize == follow and empty <= _MOST_EMPTY
    if not right or min(shape, default=0) < 0:
        raise UnreadableError(
            f"it promises an array of shape {shape} and dtype {dtype}, but {follow:,} bytes follow"
        )
    return shape, columns_first, dtype


def _array(file: IO[bytes], size: int, fill: Callable[[int, np.dtype[Any]], Array]) -> Array:
    """Read a header, and the numbers that it promises."""
    shape, columns_first, dtype = read_header(file, size)
    if 0 in shape:
        return np.empty(shape, dtype)
    return fill(math.prod(shape), dtype).reshape(shape, order="F" if columns_first else "C")


_HEADERS: dict[tuple[int, int], Callable[[Any], tuple[tuple[int, ...], bool, np.dtype[Any]]]] = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def _words(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".")[:300] if lines else type(error).__name__
