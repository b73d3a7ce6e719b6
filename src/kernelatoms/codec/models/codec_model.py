"""A predictor of rows with its settings and arrays, and its bytes.

The plain bytes (``to_bytes``) are a function of these alone, so that their SHA-256 identifies the
model: many files may share one model and store its digest only. A file that stores a model takes
``model_bytes``, which are shorter for small models.
"""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import zstandard
from numpy.typing import NDArray

from kernelatoms.codec import packing
from kernelatoms.codec.limits import JSON_COST, MODEL_WORDS, CodecError, DecodingBudget

# Larger models are refused.
_MOST_BYTES, _MOST_AXES, _MOST_COLUMNS = 1 << 30, 8, 1 << 31
_TYPES = ("<f8", "<f4", "<i8", "<i4", "<i2", "|i1", "|u1")
# Stored models: plain bytes, or the description squeezed and the arrays packed.
_PLAIN, _SQUEEZED = 0, 1


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

    @property
    def digest(self) -> str:
        """SHA-256 of the model, by which files refer to it."""
        return hashlib.sha256(_joined(*self.parts())).hexdigest()

    def to_bytes(self) -> bytes:
        """Return the model as bytes."""
        return zstandard.ZstdCompressor(level=19).compress(_joined(*self.parts()))

    def parts(self) -> tuple[bytes, bytes]:
        """Return a JSON description and the values of arrays, the same for equal models."""
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
        return text, b"".join(array.tobytes() for array in arrays.values())

    @classmethod
    def from_bytes(cls, data: bytes) -> "CodecModel":
        """Invert ``to_bytes``; ``CodecError`` if the bytes are not its result."""
        try:
            size = zstandard.frame_content_size(data)
            if not 4 <= size <= _MOST_BYTES or not packing.believable(size, len(data)):
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
        """Invert ``parts``; ``head`` is the description, read."""
        try:
            if not isinstance(head, dict) or not isinstance(head.get("arrays"), list):
                raise ValueError("it has no description")
            arrays, start = {}, 0
            for name, dtype, shape in head["arrays"]:
                known = dtype in _TYPES and len(shape) <= _MOST_AXES
                if not known or any(type(n) is not int or not 0 <= n <= _MOST_BYTES for n in shape):
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


@dataclass(frozen=True)
class ReadyModel(CodecModel):
    """A model that was checked and decoded, once for all blocks; see ``predictors.ready``."""

    # The decoded dictionary, for models with atoms.
    mean_and_atoms: tuple[NDArray[Any], NDArray[Any]] | None = None


def _joined(text: bytes, values: bytes) -> bytes:
    return len(text).to_bytes(4, "little") + text + values


def _refuse_constant(text: str) -> Any:
    raise ValueError(f"it has {text} where a number should be")


def model_bytes(model: CodecModel) -> bytes:
    """Return a model as a file stores it."""
    plain, (text, values) = model.to_bytes(), model.parts()
    said = packing.squeeze(json.loads(text))
    small = packing.number(len(said)) + said + packing.pack(values)
    return bytes([_SQUEEZED]) + small if len(small) < len(plain) else bytes([_PLAIN]) + plain


def read_models(stored: Sequence[bytes], budget: DecodingBudget) -> list[CodecModel]:
    """Return the stored models of a file, after counting what they become together."""
    size = sum(map(len, stored))
    for data in stored:
        budget.take_models(_arrays_size(data), size)
    found = []
    for data in stored:
        found.append(read_model_bytes(data))
        n_characters = len(json.dumps([found[-1].settings, found[-1].predictor]))
        budget.take_models(JSON_COST * n_characters, size)
    return found


def read_model_bytes(data: bytes) -> CodecModel:
    """Invert ``model_bytes``; ``CodecError`` if the bytes are not its result."""
    said, rest = _split(data)
    if said is None:
        model = CodecModel.from_bytes(rest)
    else:
        head = packing.unsqueeze(said, "the model", MODEL_WORDS)
        model = CodecModel.from_parts(head, packing.unpack(rest, "the model"))
    check_description(model)
    return model


def check_description(model: CodecModel) -> None:
    """Refuse a model of unknown origin whose description is of other types."""
    counts = (model.n_columns, model.slice_rows)
    if any(type(value) is not int or not 0 <= value < _MOST_COLUMNS for value in counts):
        raise CodecError("a model has an impossible shape.")
    right = type(model.predictor) is str and type(model.symmetric) is bool
    if not right or model.n_columns == 0 or not isinstance(model.settings, dict):
        raise CodecError("a model has no description.")
    try:
        json.dumps(model.settings)
    except (RecursionError, ValueError, TypeError) as error:
        raise CodecError("the model cannot be read: it is nested too deeply.") from error


def _arrays_size(data: bytes) -> int:
    """Return the bytes that a model's arrays will become."""
    said, rest = _split(data)
    if said is not None:
        return packing.unpacked_size(rest)
    try:
        return max(0, zstandard.frame_content_size(rest))
    except zstandard.ZstdError as error:
        raise CodecError(f"the model cannot be read: {error}.") from error


def _split(data: bytes) -> tuple[bytes | None, bytes]:
    """Return a stored model's squeezed description, None if it is plain, and the other bytes."""
    cursor = packing.Cursor(data, "the model")
    form = cursor.take(1)[0]
    if form not in (_PLAIN, _SQUEEZED):
        raise CodecError("the model is stored in an unknown way.")
    said = cursor.counted() if form == _SQUEEZED else None
    return said, cursor.take(cursor.left)
