"""A predictor of rows with its settings and arrays, as bytes that a file stores or refers to.

The bytes are a function of these alone, so that their SHA-256 identifies the model: many files may
share one model and store its digest only.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import zstandard
from numpy.typing import NDArray

from kernelatoms.codec.container.packing import believable
from kernelatoms.codec.limits import MODEL_WORDS, CodecError

# Larger models are refused.
_MOST_BYTES, _MOST_AXES = 1 << 30, 8
_TYPES = ("<f8", "<f4", "<i8", "<i4", "<i2", "|i1", "|u1")


@dataclass(frozen=True)
class CodecModel:
    """A predictor of rows."""

    predictor: str
    n_columns: int  # values per row
    slice_rows: int = 0  # rows per slice of a 3-d array, whose slices are stacked; 0 without slices
    symmetric: bool = False  # whether every slice (or the matrix, without slices) is symmetric
    settings: Mapping[str, Any] = field(default_factory=dict)  # the predictor's parameters
    # What it has learned; empty for predictors that learn while they code.
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """Return the model as bytes."""
        return zstandard.ZstdCompressor(level=19).compress(self._body())

    def _body(self) -> bytes:
        """Return bytes that are the same for equal models."""
        arrays = {
            name: np.ascontiguousarray(array, np.dtype(array.dtype).newbyteorder("<"))
            for name, array in sorted(self.arrays.items())
        }
        head = {
            "predictor": self.predictor,
            "n_columns": self.n_columns,
            "slice_rows": self.slice_rows,
            "symmetric": self.symmetric,
            "settings": dict(self.settings),
            "arrays": [[name, a.dtype.str, list(a.shape)] for name, a in arrays.items()],
        }
        text = json.dumps(head, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
        values = b"".join(array.tobytes() for array in arrays.values())
        return len(text).to_bytes(4, "little") + text + values

    @classmethod
    def from_bytes(cls, data: bytes) -> "CodecModel":
        """Invert ``to_bytes``; ``CodecError`` if the bytes are not its result."""
        try:
            size = zstandard.frame_content_size(data)
            if not 4 <= size <= _MOST_BYTES or not believable(size, len(data)):
                raise ValueError(f"{len(data):,} bytes would become {size:,}")
            body = zstandard.ZstdDecompressor().decompress(data)
            start = 4 + int.from_bytes(body[:4], "little")
            if start - 4 > MODEL_WORDS:
                raise ValueError(f"its description has {start - 4:,} characters")
            head = json.loads(body[4:start], parse_constant=_refuse_constant)
        except (ValueError, TypeError, RecursionError, zstandard.ZstdError) as error:
            raise CodecError(f"the model cannot be read: {error}.") from error
        return cls.from_parts(head, body[start:])

    @classmethod
    def from_parts(cls, head: Any, values: bytes) -> "CodecModel":
        """Return the model of a description and its arrays as bytes."""
        try:
            if not isinstance(head, dict) or not isinstance(head.get("arrays"), list):
                raise ValueError("it has no description")
            arrays, start = {}, 0
            for name, dtype, shape in head["arrays"]:
                if (
                    dtype not in _TYPES or len(shape) > _MOST_AXES
                    or any(type(n) is not int or not 0 <= n <= _MOST_BYTES for n in shape)
                ):  # fmt: skip
                    raise ValueError(f"an array of type {str(dtype)[:9]} and shape {shape[:9]}")
                stop = start + math.prod(shape) * np.dtype(dtype).itemsize
                if stop > len(values):
                    raise ValueError(f"the array {str(name)[:40]} is cut short")
                arrays[name] = np.frombuffer(values[start:stop], dtype).reshape(shape)
                start = stop
            if start != len(values):
                raise ValueError("bytes are left over")
            return cls(**{**head, "arrays": arrays})
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise CodecError(f"the model cannot be read: {error}.") from error

    @property
    def digest(self) -> str:
        """SHA-256 of the model, by which files refer to it."""
        return hashlib.sha256(self._body()).hexdigest()


@dataclass(frozen=True)
class ReadyModel(CodecModel):
    """A model that was checked and decoded, once for all blocks; see ``predictors.ready``."""

    # The decoded dictionary, for models with atoms.
    mean_and_atoms: tuple[NDArray[Any], NDArray[Any]] | None = None


def _refuse_constant(text: str) -> Any:
    raise ValueError(f"it has {text} where a number should be")
