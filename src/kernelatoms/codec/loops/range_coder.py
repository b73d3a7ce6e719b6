"""A binary range coder, adaptive probabilities that are mixed in integers, and masks coded so.

Encoder and decoder are the same code: the encoder reads a number and codes its bits, the decoder
decodes the bits and writes the number. Everything else that they use is known to both.

The probability of a bit is mixed as in lpaq: a weighted sum of logits, with weights that learn.
docs/codec-entropy.md specifies everything.

See docs/decisions/005-compiled-functions.md.
"""

from typing import Any

import numpy as np

from kernelatoms.engine import Array
from kernelatoms.engine.cpu.jit import jit

# Returned instead of a length.
WRONG, FULL = -1, -2

# Probabilities have 16 bits, logits 8 after the point: 12 are more than any probability has.
_LOGIT_LIMIT = 3071
# The tables are concatenated; logits count from the middle of theirs.
SQUASH = _LOGIT_LIMIT
STRETCH = 2 * _LOGIT_LIMIT + 1
LOG = STRETCH + 4096
POWER = LOG + 4096
_RATE = POWER + 16
# Adaptive probabilities count at most this many decisions; a new one counts as one of so many.
_MEMORY, _BEGIN = 127, 4
# Inputs of a mixture.
N_INPUTS = 16
# Contexts of columns (and rows of a period).
PLACES = 1024
# More bytes than a number can take.
ROOM = 256
# How fast the weights of masks learn.
_MASK_RATE = 192
# The coder's state.
_LOW, _RANGE, _CODE, PLACE = 0, 1, 2, 3


def _tables() -> Array:
    """Return all tables; no value is near a half, where rounding could differ."""
    x = np.arange(4096)
    logits = np.arange(-_LOGIT_LIMIT, _LOGIT_LIMIT + 1) / 256
    parts = [
        np.clip(np.rint(65536 / (1 + np.exp(-logits))), 1, 65535),
        np.rint(256 * np.log((x + 0.5) / (4095.5 - x))),
        np.rint(256 * np.log((x + 8) / 256)),
        np.rint(65536 * 2 ** (np.arange(16) / 16)),
        2 * 65536 // (2 * np.arange(_MEMORY + 1) + 3),
    ]
    return np.concatenate(parts).astype(np.int32)


TABLES = _tables()


@jit()
def clamp(x, low, high):  # type: ignore[no-untyped-def]
    """Return x within two limits."""
    return low if x < low else high if x > high else x


@jit()
def start(data, decoding):  # type: ignore[no-untyped-def]
    """Return the state of a coder that writes or reads data."""
    coder = np.zeros(4, np.int64)
    coder[_RANGE] = (1 << 32) - 1
    if decoding:
        for _ in range(4):
            coder[_CODE] = (coder[_CODE] << 8) | _next_byte(coder, data)
    return coder


@jit(inline=True)
def _next_byte(coder, data):  # type: ignore[no-untyped-def]
    """Return a byte, 0 after the last."""
    place = coder[PLACE]
    coder[PLACE] = place + 1
    return np.int64(data[place]) if place < len(data) else np.int64(0)


@jit(inline=True)
def _carry(coder, data):  # type: ignore[no-untyped-def]
    place = coder[PLACE] - 1
    while data[place] == 255:
        data[place] = 0
        place -= 1
    data[place] += 1


@jit(inline=True)
def code_bit(coder, data, decoding, bit, p):  # type: ignore[no-untyped-def]
    """Code a bit that is 1 with probability p / 65536, from 1 to 65535; return it."""
    width = coder[_RANGE]
    ones = (width * p) >> 16
    if decoding:
        code = coder[_CODE]
        bit = 1 if code < ones else 0
        if bit:
            width = ones
        else:
            code -= ones
            width -= ones
        while width < 1 << 24:
            width <<= 8
            code = (code << 8) | _next_byte(coder, data)
        coder[_CODE] = code
    else:
        low = coder[_LOW]
        if bit:
            width = ones
        else:
            low += ones
            width -= ones
            if low >> 32:
                low &= (1 << 32) - 1
                _carry(coder, data)
        while width < 1 << 24:
            width <<= 8
            data[coder[PLACE]] = low >> 24
            coder[PLACE] += 1
            low = (low << 8) & ((1 << 32) - 1)
        coder[_LOW] = low
    coder[_RANGE] = width
    return bit


@jit()
def finish(coder, data):  # type: ignore[no-untyped-def]
    """Write the byte that identifies the interval (zeros follow); return the number of bytes."""
    low = coder[_LOW] + (1 << 24) - 1
    if low >> 32:
        _carry(coder, data)
    data[coder[PLACE]] = (low >> 24) & 255
    return coder[PLACE] + 1


def new_slot(p: Any) -> Any:
    """Return an adaptive probability: 22 bits, and 10 bits that count decisions."""
    return np.uint32(p << 16 | _BEGIN)


@jit(inline=True)
def update(slots, at, bit, tables):  # type: ignore[no-untyped-def]
    """Move an adaptive probability towards a bit."""
    slot = np.int64(slots[at])
    p, met = slot >> 10, slot & 1023
    p += (((bit << 22) - bit - p) * tables[_RATE + met]) >> 16
    slots[at] = (p << 10) | (met + (met < _MEMORY))


@jit(inline=True)
def mixed(inputs, weights, row):  # type: ignore[no-untyped-def]
    """Return a weighted sum of logits."""
    total = np.int64(1 << 15)
    for t in range(N_INPUTS):
        total += np.int64(inputs[t]) * weights[row, t]
    return clamp(total >> 16, -_LOGIT_LIMIT, _LOGIT_LIMIT)


@jit(inline=True)
def learn(inputs, weights, row, error, rate):  # type: ignore[no-untyped-def]
    """Move weights against an error of a probability of 16 bits."""
    change = error * rate
    for t in range(N_INPUTS):
        weights[row, t] += (inputs[t] * change + (1 << 21)) >> 22


def first_mask_state() -> tuple[Array, Array]:
    """Return the initial probabilities and weights of ``code_mask``."""
    weights = np.full((8, N_INPUTS), 17000, np.int32)
    weights[:, 0] = 0
    return np.full(4 + 128 + 256 + 256 + 256 + 2 * PLACES, new_slot(np.uint32(32768))), weights


@jit()
def code_mask(mask, data, decoding, tables, slots, weights):  # type: ignore[no-untyped-def]
    """Code a matrix of zeros and ones; return the length of data, ``WRONG`` or ``FULL``."""
    n, m = mask.shape
    coder = start(data, decoding)
    at, inputs = np.zeros(5, np.int64), np.zeros(N_INPUTS, np.int32)
    inputs[0] = 256
    # The last bits of every column, and the rows since it changed.
    columns, runs = np.zeros(m, np.int64), np.zeros(m, np.int64)
    above, above2 = np.zeros(m + 4, np.int64), np.zeros(m + 4, np.int64)
    recent = 3
    for i in range(n):
        if decoding and coder[PLACE] > len(data) + 4:
            return WRONG
        if not decoding and coder[PLACE] + ROOM > len(data):
            return FULL
        # Is the row equal to the one above? The context is whether the last two were.
        same = 1
        for j in range(m):
            if mask[i, j] != above[j + 2]:
                same = 0
                break
        p = clamp(np.int64(slots[recent]) >> 16, 1, 65535)
        same = code_bit(coder, data, decoding, same, p)
        update(slots, recent, same, tables)
        recent = (2 * recent + same) & 3

        row, change, n_changes = 0, 0, 0
        for j in range(m):
            c = j + 2
            bit = above[c]
            if not same:
                if not decoding and coder[PLACE] + ROOM > len(data):
                    return FULL
                around = 8 * above[c - 1] + 4 * above[c] + 2 * above[c + 1] + above[c + 2]
                at[0] = 4 + 64 * above2[c] + 16 * (row & 3) + around
                at[1] = 132 + columns[j]
                at[2] = 388 + row
                octave = 0
                while octave < 15 and runs[j] >> octave:
                    octave += 1
                mixer = 2 * clamp(n_changes, 0, 3) + above[c]
                at[3] = 644 + 128 * change + 8 * octave + mixer
                at[4] = 900 + 2 * (j & (PLACES - 1)) + above[c]
                for t in range(5):
                    inputs[1 + t] = tables[STRETCH + (slots[at[t]] >> 20)]
                p = np.int64(tables[SQUASH + mixed(inputs, weights, mixer)])
                bit = code_bit(coder, data, decoding, np.int64(mask[i, j]), p)
                learn(inputs, weights, mixer, (bit << 16) - p, _MASK_RATE)
                for t in range(5):
                    update(slots, at[t], bit, tables)
            mask[i, j] = bit
            change = bit ^ above[c]
            n_changes += change
            runs[j] = 0 if change else runs[j] + 1
            row = (2 * row + bit) & 255
            columns[j] = (2 * columns[j] + bit) & 255
        for j in range(m):
            above2[j + 2], above[j + 2] = above[j + 2], np.int64(mask[i, j])
    return coder[PLACE] if decoding else finish(coder, data)
