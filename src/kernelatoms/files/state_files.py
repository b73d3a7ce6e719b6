"""Files of a JSON text and arrays, each of them whole: the format of checkpoints.

    signature | size of the text, 8 bytes, lowest first | text | arrays | checksum

The text is a JSON object; its entry "arrays" has the type and shape of every array, which follow
each other without gaps, rows first. The checksum, 16 bytes of BLAKE2b, is of all before it. Nothing
in a file is run, and what it says of its sizes must be the size of the file before anything is
read.

See docs/decisions/060-checkpoints.md.
"""

import json
import math
import os
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any

import numpy as np

from kernelatoms.engine import Array
from kernelatoms.files.writing import replacing
from kernelatoms.limits import MODEL_MEMBERS, MODEL_TEXT

#: How a file begins; the last letter is the version of this format.
SIGNATURE = b"\xe1KACKPT1"
_SIZE, _CHECKSUM = 8, 16
_TYPES = {np.dtype(kind).str: np.dtype(kind) for kind in ("<f8", "<f4", "<i8", "<i4", "<u4")}


class StateFileError(ValueError):
    """A file is none of this format, or is damaged; the message says how."""


def write_state_file(path: Any, text: Mapping[str, Any], arrays: Sequence[Array]) -> None:
    """Write a file, or leave the one that is there as it was."""
    kept = [_plain(array) for array in arrays]
    described = [{"type": array.dtype.str, "shape": list(array.shape)} for array in kept]
    line = json.dumps({**text, "arrays": described}).encode()
    checksum = blake2b(digest_size=_CHECKSUM)
    with replacing(path) as file:
        parts: list[Any] = [SIGNATURE, len(line).to_bytes(_SIZE, "little"), line]
        parts += [array.reshape(-1).view(np.uint8).data for array in kept]
        for part in parts:
            checksum.update(part)
            file.write(part)
        file.write(checksum.digest())


def read_state_file(path: Any) -> tuple[dict[str, Any], list[Array]]:
    """Return the text and the arrays of a file. Raises StateFileError, OSError."""
    with Path(path).open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        checksum = blake2b(digest_size=_CHECKSUM)

        def take(count: int) -> bytes:
            part = file.read(count)
            checksum.update(part)
            return part

        _check_signature(take(len(SIGNATURE)))
        left = size - len(SIGNATURE) - _SIZE - _CHECKSUM
        length = int.from_bytes(take(_SIZE), "little")
        if left < 0 or length > left:
            raise StateFileError("it is cut short")
        if length > MODEL_TEXT:
            raise StateFileError(f"its text has {length:,} bytes, and {MODEL_TEXT:,} are allowed")
        line = take(length)
        left -= length
        try:
            text, shapes = _parsed(line, left)
        except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
            raise StateFileError(_why_damaged(error)) from error
        arrays = [_read(file, checksum, kind, shape) for kind, shape in shapes]
        if file.read(_CHECKSUM + 1) != checksum.digest():
            raise StateFileError("it is damaged: its checksum is another one")
    return text, arrays


def _why_damaged(error: Exception) -> str:
    return str(error) if isinstance(error, StateFileError) else "it is damaged: its text is none"


def _check_signature(start: bytes) -> None:
    if start == SIGNATURE:
        return
    if len(start) < len(SIGNATURE) and SIGNATURE.startswith(start):
        raise StateFileError("it is cut short")
    if start[:-1] == SIGNATURE[:-1]:
        raise StateFileError(
            f"it has version {start[-1:].decode('latin-1')!r} of the format, and this version of "
            f"kernelatoms reads {SIGNATURE[-1:].decode()!r}"
        )
    raise StateFileError("it is no checkpoint: it begins otherwise")


def _parsed(line: bytes, left: int) -> tuple[dict[str, Any], list[Any]]:
    """Return the text, and types and shapes of arrays that have ``left`` bytes together."""
    text = json.loads(line)
    described = text.pop("arrays")
    if len(described) > MODEL_MEMBERS:
        raise StateFileError(f"it holds {len(described):,} arrays, and {MODEL_MEMBERS:,} may be")
    shapes, total = [], 0
    for one in described:
        kind, shape = _TYPES[one["type"]], tuple(one["shape"])
        if len(shape) > 3 or any(type(n) is not int or not 0 <= n < 1 << 48 for n in shape):
            raise StateFileError("it is damaged: an array has no shape")
        total += kind.itemsize * math.prod(shape)
        shapes.append((kind, shape))
    if total != left:
        raise StateFileError(
            f"it is cut short or damaged: its arrays have {total:,} bytes, and {left:,} are there"
        )
    return text, shapes


def _read(file: IO[bytes], checksum: Any, kind: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    array: Array = np.empty(shape, kind)
    there = array.reshape(-1).view(np.uint8).data
    if file.readinto(there) != there.nbytes:  # type: ignore[attr-defined]
        raise StateFileError("it is cut short")
    checksum.update(there)
    return array


def _plain(array: Array) -> Array:
    """Return an array with its rows first and its lowest bytes first."""
    return np.ascontiguousarray(array, array.dtype.newbyteorder("<")).reshape(array.shape)
