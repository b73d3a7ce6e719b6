"""One block of rows to bytes and back.

The bytes of a block are its unit and flags, then streams one after another, each with its length:
which values are missing, which rows are exact or zero, the steps of the rows, side information of
the model, the integers, and the values of exact rows.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import zstandard
from numpy.typing import NDArray

from kernelatoms.codec.bounds import Bound
from kernelatoms.codec.dictionaries import n_side
from kernelatoms.codec.errors import CodecError
from kernelatoms.codec.models import CodecModel
from kernelatoms.codec.predictors import PREDICTORS, longest_lag, ready
from kernelatoms.codec.quantised import (
    LEAST_CODE,
    MOST_CODE,
    MOST_DECIMALS,
    Block,
    Unit,
    block_to_decode,
    block_to_encode,
    engine_of,
    set_rows,
)
from kernelatoms.engine import machine

Array = NDArray[Any]

_PREDICTED, _EXACT, _ZERO = 0, 1, 2
# A block that is not a model's is all of its bytes.
_RAW = 0
_MODELLED = 1
# Rows of a model of symmetric slices that are none, or no whole ones.
_UNSYMMETRIC = 2
_ROUNDS = 4
# Fewer integers are coded on one thread.
_WORTH_A_THREAD = 1 << 19


def encode_matrix(rows: Array, bound: Bound, model: CodecModel) -> bytes:
    """Return rows as bytes, from which ``decode_matrix`` makes rows within the bound.

    Parameters are those of ``encode_and_decode``.
    """
    return encode_and_decode(rows, bound, model)[0]


def encode_and_decode(rows: Array, bound: Bound, model: CodecModel) -> tuple[bytes, Array]:
    """Return rows as bytes, and what ``decode_matrix`` makes of these: rows within the bound.

    Parameters
    ----------
    rows : float array of shape (n_rows, n_columns)
        float32 or float64; NaN where missing. Of a 3-d array, whole slices one under another.
    bound : Bound
        The largest error allowed.
    model : CodecModel
        How rows are predicted.
    """
    model = ready(model)
    rows = np.ascontiguousarray(rows)
    unit = Unit.fitting(rows)
    raw = model.predictor == "exact" or (bound.exact and unit.decimals < 0)
    kind, used = _MODELLED, model
    if model.symmetric and not _is_mirrored(rows, model.n_columns):
        kind, used = _UNSYMMETRIC, replace(model, symmetric=False)
    exact_rows = np.asarray(np.isinf(rows).any(axis=1))
    # What was promised is checked on what really comes back; rows that fail are stored exactly.
    for _ in range(0 if raw or not rows.size else _ROUNDS):
        data = bytes([kind]) + _encode(rows, bound, used, unit, exact_rows)
        decoded = decode_matrix(data, model, len(rows), rows.dtype)
        broken = bound.broken(rows, decoded)
        if not broken.any():
            return data, decoded
        exact_rows |= broken
    return bytes([_RAW]) + _planes(rows), rows


def decode_matrix(data: bytes, model: CodecModel, n_rows: int, dtype: Any) -> Array:
    """Return the rows of ``encode_matrix``; ``CodecError`` if the bytes are not its own.

    Parameters
    ----------
    data : bytes
        What ``encode_matrix`` returned.
    model : CodecModel
        The model it was given.
    n_rows : int
        The number of rows it was given.
    dtype : dtype
        float32 or float64, the type it was given.

    Returns
    -------
    rows : array of shape (n_rows, model.n_columns)
    """
    dtype = np.dtype(dtype)
    model = ready(model)
    if not data or data[0] > _UNSYMMETRIC:
        raise CodecError("a block is of no kind that this version knows.")
    if data[0] == _RAW:
        shape = n_rows, model.n_columns
        return _from_planes(data[1:], n_rows * model.n_columns, dtype).reshape(shape)
    if data[0] == _UNSYMMETRIC:
        model = replace(model, symmetric=False)
    try:
        return _decode(data, model, n_rows, dtype)
    except CodecError:
        raise
    except (ValueError, IndexError, OverflowError, zstandard.ZstdError) as error:
        raise CodecError(f"a block cannot be read: {error}") from error


def _encode(rows: Array, bound: Bound, model: CodecModel, unit: Unit, exact_rows: Array) -> bytes:
    """Return the bytes of rows as the model predicts them; whether the bound holds is not asked."""
    observed = ~np.isnan(rows)
    block = block_to_encode(rows, bound, model, unit)
    kinds = np.zeros(len(rows), np.uint8)
    if bound.relative is not None or bound.exact:
        kinds[~block.x.any(axis=1) & observed.any(axis=1)] = _ZERO
    kinds[exact_rows] = _EXACT
    engine, square = engine_of(block), model.n_columns if model.symmetric else 0
    set_rows(block, kinds != _PREDICTED, block.x, observed, square)
    PREDICTORS[model.predictor](block, model)
    kinds[block.kinds == engine.EXACT_ROW] = _EXACT
    set_rows(block, kinds == _EXACT, block.x, observed, square)
    exact = _exact_entries(observed, kinds, model)
    streams = [
        b"" if observed.all() else engine.encode_bits(~observed).tobytes(),
        engine.encode_small(kinds).tobytes() if kinds.any() else b"",
        engine.encode_small(np.diff(block.codes, prepend=0)).tobytes(),
        _side_bytes(block),
        _integer_bytes(block, model),
        _planes(rows[exact]) if exact.any() else b"",
    ]
    head = [unit.decimals + 1, *_signed(unit.exponent)]
    lengths = b"".join(_varint(len(stream)) for stream in streams)
    return bytes(head) + lengths + b"".join(streams)


def _decode(data: bytes, model: CodecModel, n_rows: int, dtype: np.dtype) -> Array:
    m = model.n_columns
    if model.predictor not in PREDICTORS:
        raise CodecError("a block is predicted where its model says that all is exact.")
    if model.symmetric and n_rows % m:
        raise CodecError("a block holds no whole number of symmetric slices.")
    if data[1] > MOST_DECIMALS + 1:
        raise CodecError("a block has a unit that this version does not know.")
    unit = Unit(data[1] - 1, int.from_bytes(data[2:4], "little", signed=True))
    if abs(unit.exponent) > (1100 if unit.decimals < 0 else 0):
        raise CodecError("a block has a unit that no number has.")
    at, streams = 4, []
    for _ in range(6):
        length, at = _read_varint(data, at)
        streams.append(length)
    if at + sum(streams) != len(data):
        raise CodecError("the streams of a block are not as long as it says.")
    parts = []
    for length in streams:
        parts.append(np.frombuffer(data, np.uint8, length, at))
        at += length
    engine = machine(parts[0])
    observed = np.ones((n_rows, m), bool)
    if len(parts[0]):
        observed = engine.decode_bits(parts[0], (n_rows, m)) == 0
    block = block_to_decode(observed, model, unit)
    kinds = np.zeros(n_rows, np.uint8)
    if len(parts[1]):
        kinds = engine.decode_small(parts[1], n_rows)
        if ((kinds < 0) | (kinds > _ZERO)).any():
            raise CodecError("a block has rows of no kind that this version knows.")
    exact = _exact_entries(observed, kinds, model)
    if len(parts[5]) and not exact.any():
        raise CodecError("a block has exact values that nobody asks for.")
    values = _from_planes(parts[5].tobytes(), int(exact.sum()), dtype) if exact.any() else None
    filled = np.zeros((n_rows, m), dtype)
    if values is not None:
        filled[exact] = values
        if model.symmetric:
            filled, exact = _mirrored(filled, m), _mirrored(exact, m)
    if kinds.any():
        known = unit.nearest(np.where(np.isfinite(filled), filled, 0))
        set_rows(block, kinds != _PREDICTED, known, observed, m if model.symmetric else 0)
    codes = np.cumsum(engine.decode_small(parts[2], n_rows), dtype=np.int64)
    if codes.min(initial=0) < LEAST_CODE or codes.max(initial=0) > MOST_CODE:
        raise CodecError("a block has steps that are never taken.")
    block.codes[:] = codes
    _read_side(block, model, parts[3])
    _read_integers(block, model, parts[4].tobytes())
    PREDICTORS[model.predictor](block, model)
    rows = unit.back(block.rows, dtype)
    rows[~observed] = np.nan
    rows[exact] = filled[exact]
    return rows


def _exact_entries(observed: Array, kinds: Array, model: CodecModel) -> Array:
    """Return which entries are stored as they are; of symmetric slices, one half."""
    exact = observed & (kinds == _EXACT)[:, None]
    if model.symmetric:
        m = model.n_columns
        slices = exact.reshape(-1, m, m)
        rows = (kinds == _EXACT).reshape(-1, m)
        slices |= observed.reshape(-1, m, m) & rows[:, None, :]
        slices &= np.triu(np.ones((m, m), bool))
    return exact


def _mirrored(rows: Array, m: int) -> Array:
    """Return symmetric slices of which the upper half is given."""
    slices = rows.reshape(-1, m, m)
    lower = np.tril(np.ones((m, m), bool), -1)
    return np.where(lower, slices.transpose(0, 2, 1), slices).reshape(-1, m)


def _is_mirrored(rows: Array, m: int) -> bool:
    """Return whether rows are whole symmetric slices."""
    return len(rows) % m == 0 and np.array_equal(_mirrored(rows, m), rows, equal_nan=True)


def _related(model: CodecModel) -> tuple[int, int]:
    """Return how many rows before the most related rows are."""
    longest = longest_lag(model)
    return model.slice_rows, longest if longest > 1 and longest != model.slice_rows else 0


def _parts(coded: Array, slice_rows: int) -> list[Array]:
    """Return the rows of the parts that integers are coded in, each on a thread of its own.

    Parts of slices are the same rows of each, so that the slice before is at hand.
    """
    n = len(coded)
    if np.count_nonzero(coded) < _WORTH_A_THREAD or n < 2:
        return [np.arange(n)]
    place = np.arange(n) % slice_rows if slice_rows else np.arange(n)
    counts = np.bincount(place, weights=np.count_nonzero(coded, axis=1))
    first = place <= np.searchsorted(np.cumsum(counts), counts.sum() / 2)
    return [np.flatnonzero(first), np.flatnonzero(~first)]


def _integer_bytes(block: Block, model: CodecModel) -> bytes:
    engine, (slice_rows, lag) = engine_of(block), _related(model)

    def encoded(rows: Array) -> bytes:
        before = _rows_before(rows, slice_rows)
        k, coded, codes = block.k[rows], block.coded[rows], block.codes[rows]
        return bytes(engine.encode_integers(k, coded, codes, before, lag).tobytes())

    streams = engine.each(encoded, _parts(block.coded, slice_rows))
    return b"".join(_varint(len(stream)) + stream for stream in streams)


def _read_integers(block: Block, model: CodecModel, data: bytes) -> None:
    engine, (slice_rows, lag) = engine_of(block), _related(model)
    parts, at, streams = _parts(block.coded, slice_rows), 0, []
    for _ in parts:
        length, at = _read_varint(data, at)
        streams.append(np.frombuffer(data[at : at + length], np.uint8))
        at += length
    if at != len(data):
        raise CodecError("the integers of a block are not as long as it says.")

    def decode(part: int) -> None:
        rows = parts[part]
        block.k[rows] = engine.decode_integers(
            streams[part], block.coded[rows], block.codes[rows], _rows_before(rows, slice_rows), lag
        )

    engine.each(decode, range(len(parts)))


def _rows_before(rows: Array, slice_rows: int) -> int:
    """Return how many rows of a part a slice has."""
    return int(np.searchsorted(rows, slice_rows)) if slice_rows else 0


def _side_bytes(block: Block) -> bytes:
    if not block.side.shape[1]:
        return b""
    coded = np.ones(block.side.shape, np.uint8)
    return engine_of(block).encode_integers(block.side, coded, block.codes * 0).tobytes()


def _read_side(block: Block, model: CodecModel, data: Array) -> None:
    width = n_side(model)
    if not width:
        if len(data):
            raise CodecError("a block has side information that its model does not use.")
        return
    coded = np.ones((len(block.k), width), np.uint8)
    block.side = engine_of(block).decode_integers(data, coded, np.zeros(len(coded), np.int32))


def _planes(values: Array) -> bytes:
    """Return values bit by bit: bytes of one place together, which zstandard likes."""
    planes = np.ascontiguousarray(values).view(np.uint8).reshape(-1, values.itemsize).T
    return zstandard.ZstdCompressor(level=19).compress(np.ascontiguousarray(planes).tobytes())


def _from_planes(data: bytes, n_values: int, dtype: np.dtype) -> Array:
    try:
        if zstandard.frame_content_size(data) != n_values * dtype.itemsize:
            raise CodecError("a block does not hold the number of values that it should.")
        planes = zstandard.ZstdDecompressor().decompress(data)
    except zstandard.ZstdError as error:
        raise CodecError(f"a block cannot be read: {error}.") from error
    values = np.frombuffer(planes, np.uint8).reshape(dtype.itemsize, n_values).T
    return np.ascontiguousarray(values).view(dtype).reshape(n_values)


def _signed(value: int) -> bytes:
    return int(value).to_bytes(2, "little", signed=True)


def _varint(value: int) -> bytes:
    """Return a number in groups of seven bits, the least first; the last has no high bit."""
    groups = []
    while value > 127:
        groups.append(value & 127 | 128)
        value >>= 7
    return bytes([*groups, value])


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 63, 7):
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
    raise CodecError("a number is longer than any that is written.")
