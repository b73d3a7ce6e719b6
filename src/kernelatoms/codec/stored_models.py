"""Models as a file holds them: as few bytes as can be, and believed only as far as they go."""

import json

import zstandard

from kernelatoms.codec.errors import CodecError
from kernelatoms.codec.models import CodecModel
from kernelatoms.codec.packing import Cursor, believable, number, pack, unpack
from kernelatoms.codec.usual import squeeze, unsqueeze

_AS_IT_IS, _SQUEEZED = 0, 1
# Beside their own limits: what a small file may claim.
_MOST_COLUMNS = 1 << 31


def model_bytes(model: CodecModel) -> bytes:
    """Return a model as bytes: what it says of itself squeezed, its arrays packed."""
    plain = model.to_bytes()
    body = zstandard.ZstdDecompressor().decompress(plain)
    start = 4 + int.from_bytes(body[:4], "little")
    said = squeeze(json.loads(body[4:start]))
    small = number(len(said)) + said + pack(body[start:])
    if len(small) < len(plain):
        return bytes([_SQUEEZED]) + small
    return bytes([_AS_IT_IS]) + plain


def read_model_bytes(data: bytes) -> CodecModel:
    """Return the model of ``model_bytes``; ``CodecError`` if the bytes are not its own."""
    cursor = Cursor(data, "the model")
    form = cursor.take(1)[0]
    if form == _SQUEEZED:
        said = unsqueeze(cursor.counted(), "the model")
        text = json.dumps(said, sort_keys=True, separators=(",", ":")).encode()
        arrays = unpack(cursor.take(cursor.left), "the model")
        body = len(text).to_bytes(4, "little") + text + arrays
        plain = zstandard.ZstdCompressor(level=1).compress(body)
    elif form == _AS_IT_IS:
        plain = cursor.take(cursor.left)
        _check_frame(plain)
    else:
        raise CodecError("the model is kept in an unknown way.")
    try:
        return checked_model(CodecModel.from_bytes(plain))
    except RecursionError as error:
        raise CodecError("the model cannot be read: it is nested too deeply.") from error


def checked_model(model: CodecModel) -> CodecModel:
    """Return a model whose layout is one."""
    counts = (model.n_columns, model.slice_rows)
    if any(type(value) is not int or not 0 <= value < _MOST_COLUMNS for value in counts):
        raise CodecError("a model is of a shape that cannot be.")
    right = type(model.predictor) is str and type(model.symmetric) is bool
    if not right or model.n_columns == 0 or not isinstance(model.settings, dict):
        raise CodecError("a model does not say what it is.")
    return model


def _check_frame(data: bytes) -> None:
    """Refuse a frame that would become far more bytes than it has."""
    try:
        size = zstandard.frame_content_size(data)
    except zstandard.ZstdError as error:
        raise CodecError(f"the model cannot be read: {error}.") from error
    if not believable(size, len(data)):
        raise CodecError(f"a model of {len(data):,} bytes would become {size:,}.")
