"""Models as a file stores them."""

import json
from collections.abc import Sequence
from typing import Any

import zstandard

from kernelatoms.codec.container.json_dictionary import squeeze, unsqueeze
from kernelatoms.codec.container.packing import (
    Cursor,
    believable,
    number,
    pack,
    unpack,
    unpacked_size,
)
from kernelatoms.codec.limits import JSON_COST, MODEL_WORDS, CodecError, DecodingBudget
from kernelatoms.codec.models.codec_model import CodecModel

_PLAIN, _SQUEEZED = 0, 1
_MOST_COLUMNS = 1 << 31


def model_bytes(model: CodecModel) -> bytes:
    """Return a model as bytes: its description squeezed, its arrays packed."""
    plain = model.to_bytes()
    body = zstandard.ZstdDecompressor().decompress(plain)
    start = 4 + int.from_bytes(body[:4], "little")
    said = squeeze(json.loads(body[4:start]))
    small = number(len(said)) + said + pack(body[start:])
    if len(small) < len(plain):
        return bytes([_SQUEEZED]) + small
    return bytes([_PLAIN]) + plain


def read_models(stored: Sequence[bytes], budget: DecodingBudget) -> list[CodecModel]:
    """Return the stored models of a file, after counting what they become together."""
    size = sum(map(len, stored))
    for data in stored:
        budget.take_models(_arrays_size(data), size)
    found = []
    for data in stored:
        model, n_characters = _read(data)
        budget.take_models(JSON_COST * n_characters, size)
        found.append(model)
    return found


def read_model_bytes(data: bytes) -> CodecModel:
    """Invert ``model_bytes``; ``CodecError`` if the bytes are not its result."""
    return _read(data)[0]


def checked_model(model: CodecModel) -> CodecModel:
    """Return a model, after checking its layout."""
    counts = (model.n_columns, model.slice_rows)
    if any(type(value) is not int or not 0 <= value < _MOST_COLUMNS for value in counts):
        raise CodecError("a model has an impossible shape.")
    right = type(model.predictor) is str and type(model.symmetric) is bool
    if not right or model.n_columns == 0 or not isinstance(model.settings, dict):
        raise CodecError("a model has no description.")
    return model


def _read(data: bytes) -> tuple[CodecModel, int]:
    """Return a model and the characters of its description."""
    form, cursor = _form(data)
    if form == _SQUEEZED:
        said: Any = unsqueeze(cursor.counted(), "the model", MODEL_WORDS)
        arrays = unpack(cursor.take(cursor.left), "the model")
        model = CodecModel.from_parts(said, arrays)
    else:
        plain = cursor.take(cursor.left)
        if not believable(_frame_size(plain), len(plain)):
            raise CodecError(f"a model of {len(plain):,} bytes would become too many.")
        model = CodecModel.from_bytes(plain)
    try:
        n_characters = len(json.dumps([model.settings, model.predictor]))
    except (RecursionError, ValueError, TypeError) as error:
        raise CodecError("the model cannot be read: it is nested too deeply.") from error
    return checked_model(model), n_characters


def _arrays_size(data: bytes) -> int:
    """Return the bytes that a model's arrays will become."""
    form, cursor = _form(data)
    if form == _PLAIN:
        return _frame_size(cursor.take(cursor.left))
    cursor.counted()
    return unpacked_size(cursor.take(cursor.left))


def _form(data: bytes) -> tuple[int, Cursor]:
    cursor = Cursor(data, "the model")
    form = cursor.take(1)[0]
    if form not in (_PLAIN, _SQUEEZED):
        raise CodecError("the model is stored in an unknown way.")
    return form, cursor


def _frame_size(data: bytes) -> int:
    try:
        return max(0, zstandard.frame_content_size(data))
    except zstandard.ZstdError as error:
        raise CodecError(f"the model cannot be read: {error}.") from error
