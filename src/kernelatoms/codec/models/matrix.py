"""The approximate numbers of a block to bytes and back.

The bytes begin with the unit and the lengths of six streams: missing values, exact or zero rows,
steps of the rows, side information of the model, integers, and the values of exact rows. See
docs/codec-matrix.md.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import zstandard

from kernelatoms.codec.bounds import Bound
from kernelatoms.codec.limits import CodecError
from kernelatoms.codec.loops import entropy
from kernelatoms.codec.loops.cells import EXACT_ROW
from kernelatoms.codec.models.codec_model import CodecModel
from kernelatoms.codec.models.dictionaries import n_side
from kernelatoms.codec.models.predictors import PREDICTORS, longest_lag, ready
from kernelatoms.codec.models.quantised import (
    LEAST_CODE,
    MOST_CODE,
    MOST_DECIMALS,
    QuantisedBlock,
    Unit,
    block_to_decode,
    block_to_encode,
    set_rows,
)
from kernelatoms.codec.packing import Cursor, number
from kernelatoms.engine import Array
from kernelatoms.engine.cpu.threads import each

_PREDICTED, _EXACT, _ZERO = 0, 1, 2
# Raw numbers, predicted ones, and predicted ones that are not symmetric as the model expects.
_RAW, _MODELLED, _UNSYMMETRIC = 0, 1, 2
_ROUNDS = 4
# Fewer integers are coded on one thread.
_WORTH_A_THREAD = 1 << 19


def encode_matrix(rows: Array, bound: Bound, model: CodecModel) -> bytes:
    """Return the bytes of ``encode_and_decode``."""
    return encode_and_decode(rows, bound, model)[0]


def encode_and_decode(rows: Array, bound: Bound, model: CodecModel) -> tuple[bytes, Array]:
    """Return rows as bytes, and the rows that ``decode_matrix`` returns, within the bound.

    Rows are float32 or float64, NaN where missing; slices are stacked.
    """
    model, rows = ready(model), np.ascontiguousarray(rows)
    unit = Unit.fitting(rows)
    raw = model.predictor == "exact" or (bound.exact and unit.decimals < 0)
    kind, used = _MODELLED, model
    if model.symmetric and not _is_mirrored(rows, model.n_columns):
        kind, used = _UNSYMMETRIC, replace(model, symmetric=False)
    exact_rows = np.asarray(np.isinf(rows).any(axis=1))
    # The bound is checked on decoded rows; rows that miss it are stored exactly.
    for _ in range(0 if raw or not rows.size else _ROUNDS):
        data = bytes([kind]) + _encode(rows, bound, used, unit, exact_rows)
        decoded = decode_matrix(data, model, len(rows), rows.dtype)
        broken = bound.broken(rows, decoded)
        if not broken.any():
            return data, decoded
        exact_rows |= broken
    return bytes([_RAW]) + _planes(rows), rows


def decode_matrix(data: bytes, model: CodecModel, n_rows: int, dtype: Any) -> Array:
    """Invert ``encode_matrix``; ``CodecError`` if the bytes are not its result."""
    model, dtype = ready(model), np.dtype(dtype)
    if not data or data[0] > _UNSYMMETRIC:
        raise CodecError("a block is of no kind that this version knows.")
    if data[0] == _RAW:
        values = _from_planes(data[1:], n_rows * model.n_columns, dtype)
        return values.reshape(n_rows, model.n_columns)
    if data[0] == _UNSYMMETRIC:
        model = replace(model, symmetric=False)
    try:
        return _decode(data, model, n_rows, dtype)
    except CodecError:
        raise
    except (ValueError, TypeError, LookupError, ArithmeticError, zstandard.ZstdError) as error:
        raise CodecError(f"a block cannot be read: {error}") from error


def _encode(rows: Array, bound: Bound, model: CodecModel, unit: Unit, exact_rows: Array) -> bytes:
    """Return predicted rows as bytes; the bound is not checked."""
    observed = ~np.isnan(rows)
    block = block_to_encode(rows, bound, model, unit)
    kinds = np.zeros(len(rows), np.uint8)
    if bound.relative is not None or bound.exact:
        kinds[~block.x.any(axis=1) & observed.any(axis=1)] = _ZERO
    kinds[exact_rows] = _EXACT
    square = model.n_columns if model.symmetric else 0
    set_rows(block, kinds != _PREDICTED, block.x, observed, square)
    PREDICTORS[model.predictor](block, model)
    kinds[block.kinds == EXACT_ROW] = _EXACT
    set_rows(block, kinds == _EXACT, block.x, observed, square)
    exact = _exact_entries(observed, kinds, model)
    streams = [
        b"" if observed.all() else entropy.encode_bits(~observed).tobytes(),
        entropy.encode_small(kinds).tobytes() if kinds.any() else b"",
        entropy.encode_small(np.diff(block.codes, prepend=0)).tobytes(),
        entropy.encode_all(block.side).tobytes(),
        _integer_bytes(block, model),
        _planes(rows[exact]) if exact.any() else b"",
    ]
    head = bytes([unit.decimals + 1]) + unit.exponent.to_bytes(2, "little", signed=True)
    return head + b"".join(number(len(stream)) for stream in streams) + b"".join(streams)


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
    cursor = Cursor(data[4:], "a block")
    lengths = [cursor.number() for _ in range(6)]
    if sum(lengths) != cursor.left:
        raise CodecError("the streams of a block are not as long as it says.")
    parts = [np.frombuffer(cursor.take(length), np.uint8) for length in lengths]
    observed = np.ones((n_rows, m), bool)
    if len(parts[0]):
        observed = entropy.decode_bits(parts[0], (n_rows, m)) == 0
    block = block_to_decode(observed, model, unit)
    kinds = np.zeros(n_rows, np.uint8)
    if len(parts[1]):
        kinds = entropy.decode_small(parts[1], n_rows)
        if ((kinds < 0) | (kinds > _ZERO)).any():
            raise CodecError("a block has rows of no kind that this version knows.")
    exact = _exact_entries(observed, kinds, model)
    if len(parts[5]) and not exact.any():
        raise CodecError("a block has exact values that belong to no row.")
    filled = np.zeros((n_rows, m), dtype)
    if exact.any():
        filled[exact] = _from_planes(parts[5].tobytes(), int(exact.sum()), dtype)
        if model.symmetric:
            filled, exact = _mirrored(filled, m), _mirrored(exact, m)
    if kinds.any():
        known = unit.nearest(np.where(np.isfinite(filled), filled, 0))
        set_rows(block, kinds != _PREDICTED, known, observed, m if model.symmetric else 0)
    codes = np.cumsum(entropy.decode_small(parts[2], n_rows), dtype=np.int64)
    if codes.min(initial=0) < LEAST_CODE or codes.max(initial=0) > MOST_CODE:
        raise CodecError("a block has steps that are never taken.")
    block.codes[:] = codes
    if len(parts[3]) and not n_side(model):
        raise CodecError("a block has side information that its model does not use.")
    block.side = entropy.decode_all(parts[3], (n_rows, n_side(model)))
    _read_integers(block, model, parts[4].tobytes())
    PREDICTORS[model.predictor](block, model)
    rows = unit.back(block.rows, dtype)
    rows[~observed] = np.nan
    rows[exact] = filled[exact]
    return rows


def _exact_entries(observed: Array, kinds: Array, model: CodecModel) -> Array:
    """Return the entries that are stored exactly; in one half of symmetric slices."""
    rows, m = kinds == _EXACT, model.n_columns
    exact = observed & rows[:, None]
    if model.symmetric:
        slices = exact.reshape(-1, m, m)
        slices |= observed.reshape(-1, m, m) & rows.reshape(-1, 1, m)
        slices &= np.triu(np.ones((m, m), bool))
    return exact


def _mirrored(rows: Array, m: int) -> Array:
    """Return symmetric slices, given their upper half."""
    slices = rows.reshape(-1, m, m)
    lower = np.tril(np.ones((m, m), bool), -1)
    return np.where(lower, slices.transpose(0, 2, 1), slices).reshape(-1, m)


def _is_mirrored(rows: Array, m: int) -> bool:
    """Return whether rows are whole symmetric slices."""
    return len(rows) % m == 0 and np.array_equal(_mirrored(rows, m), rows, equal_nan=True)


def _related(model: CodecModel) -> tuple[int, int]:
    """Return the distances to the two most related rows before; 0 for none in particular."""
    longest = longest_lag(model)
    return model.slice_rows, longest if longest > 1 and longest != model.slice_rows else 0


def _parts(coded: Array, slice_rows: int) -> list[Array]:
    """Return the rows of the parts whose integers are coded on threads of their own.

    Parts of slices are the same rows of each, so that the slice before is in the same part.
    """
    n = len(coded)
    if np.count_nonzero(coded) < _WORTH_A_THREAD or n < 2:
        return [np.arange(n)]
    place = np.arange(n) % slice_rows if slice_rows else np.arange(n)
    counts = np.bincount(place, weights=np.count_nonzero(coded, axis=1))
    first = place <= np.searchsorted(np.cumsum(counts), counts.sum() / 2)
    return [np.flatnonzero(first), np.flatnonzero(~first)]


def _integer_bytes(block: QuantisedBlock, model: CodecModel) -> bytes:
    slice_rows, lag = _related(model)

    def encoded(rows: Array) -> bytes:
        before = _rows_before(rows, slice_rows)
        k, coded, codes = block.k[rows], block.coded[rows], block.codes[rows]
        return bytes(entropy.encode_integers(k, coded, codes, before, lag).tobytes())

    streams = each(encoded, _parts(block.coded, slice_rows))
    return b"".join(number(len(stream)) + stream for stream in streams)


def _read_integers(block: QuantisedBlock, model: CodecModel, data: bytes) -> None:
    slice_rows, lag = _related(model)
    cursor, parts = Cursor(data, "the integers of a block"), _parts(block.coded, slice_rows)
    streams = [np.frombuffer(cursor.counted(), np.uint8) for _ in parts]
    cursor.end()

    def decode(part: int) -> None:
        rows = parts[part]
        block.k[rows] = entropy.decode_integers(
            streams[part], block.coded[rows], block.codes[rows], _rows_before(rows, slice_rows), lag
        )

    each(decode, range(len(parts)))


def _rows_before(rows: Array, slice_rows: int) -> int:
    """Return the rows of a slice that are in a part."""
    return int(np.searchsorted(rows, slice_rows)) if slice_rows else 0


def _planes(values: Array) -> bytes:
    """Return values with their bytes of equal significance together, compressed."""
    planes = np.ascontiguousarray(values).view(np.uint8).reshape(-1, values.itemsize).T
    return zstandard.ZstdCompressor(level=19).compress(planes.tobytes())


def _from_planes(data: bytes, n_values: int, dtype: np.dtype) -> Array:
    try:
        if zstandard.frame_content_size(data) != n_values * dtype.itemsize:
            raise CodecError("a block does not hold the number of values that it should.")
        planes = zstandard.ZstdDecompressor().decompress(data)
    except zstandard.ZstdError as error:
        raise CodecError(f"a block cannot be read: {error}.") from error
    values = np.frombuffer(planes, np.uint8).reshape(dtype.itemsize, n_values).T
    return np.ascontiguousarray(values).view(dtype).reshape(n_values)
