"""A matrix of small integers as bits.

A number is coded as binary decisions: is it zero; its sign; is it larger than 1, 2, 3, ...? The
probability of each is mixed from logarithms of sizes at related places and from adaptive
probabilities. For a geometric distribution of mean mu, ln(mu) is the logit of "larger", so that
logarithms of sizes are useful without learning.
"""

import numpy as np

from kernelatoms.codec.loops.range_coder import (
    FULL,
    LOG,
    N_INPUTS,
    PLACE,
    PLACES,
    POWER,
    ROOM,
    SQUASH,
    STRETCH,
    TABLES,
    WRONG,
    clamp,
    code_bit,
    finish,
    learn,
    mixed,
    new_slot,
    start,
    update,
)
from kernelatoms.engine import Array
from kernelatoms.engine.cpu.jit import jit

LARGEST = 1 << 30
# Sizes have 12 bits after the point.
_ONE = 12
_LARGEST_SIZE = 1 << 44
# Mixed decisions about a number's size; the rest of larger ones has an Exp-Golomb code.
_STEPS = 16
# Sizes are halved until they are expected to be smaller.
_SMALL = 6 << _ONE
# Inputs of a mixture: features of a number's size, then adaptive probabilities.
_N_FEATURES = 12
_N_SLOTS = N_INPUTS - _N_FEATURES
# Levels of sizes in half octaves.
_LEVELS = 24
# How fast weights learn.
_SHARED_RATE, _OWN_RATE, _SIGN_RATE = 96, 160, 384
# Statistics per column.
_FAST, _SLOW, _MEAN, _ACTUAL, _USUAL = 0, 1, 2, 3, 4


@jit()
def _sign(x):  # type: ignore[no-untyped-def]
    return 1 if x > 0 else -1 if x < 0 else 0


@jit()
def _scaled(value, steps, tables):  # type: ignore[no-untyped-def]
    """Return value * 2^(steps / 16), towards 0."""
    size = (abs(value) * tables[POWER + (steps & 15)]) >> 16
    octaves = steps >> 4
    if octaves >= 0:
        size = min(size << min(octaves, 18), _LARGEST_SIZE)
    else:
        size >>= min(-octaves, 60)
    return -size if value < 0 else size


@jit()
def _rescale(row, steps, out, tables):  # type: ignore[no-untyped-def]
    for j in range(len(row)):
        out[j] = _scaled(row[j], steps, tables)


@jit()
def _log(size, tables):  # type: ignore[no-untyped-def]
    """Return 256 ln(size + 1 / 32), nearly."""
    x = size >> 4
    more = np.int64(0)
    while x >= 4096:
        x >>= 4
        more += 710
    return more + tables[LOG + x]


@jit()
def _signed_log(value, shift, tables):  # type: ignore[no-untyped-def]
    log = (_log(abs(value) >> shift, tables) - tables[LOG]) >> 2
    return -log if value < 0 else log


@jit()
def _level(log):  # type: ignore[no-untyped-def]
    return clamp((log + 887) // 89, 0, _LEVELS - 1)


@jit()
def _around(row, c):  # type: ignore[no-untyped-def]
    return (abs(row[c - 1]) + 2 * abs(row[c]) + abs(row[c + 1])) >> 2


def _first_slots(n_columns: int, n_phases: int) -> Array:
    """Return initial probabilities: of geometric distributions with means from the contexts.

    The contexts are sizes nearby; the size at this place and the expected one; column; phase.
    """
    near = np.indices((8, 8, 8)).sum(0).ravel() << _ONE
    levels = np.indices((_LEVELS, _LEVELS)).sum(0).ravel()
    logs = [
        TABLES[LOG + (near // 3 >> 4)],
        levels * 89 // 2 - 843,
        np.zeros(n_columns + n_phases, np.int64),
    ]
    p = TABLES[SQUASH + np.clip(np.concatenate(logs), -1500, 1500)]
    return np.repeat(new_slot(p.astype(np.uint32)), _STEPS)


def first_state(shape: tuple[int, int], slice_rows: int, lag: int) -> tuple[Array, ...]:
    """Return the initial state of ``code_integers``."""
    n, m = shape
    period = min(max(slice_rows or lag, 1), n)
    n_columns, n_phases = min(m, PLACES), min(period, PLACES)
    weights = np.full(((1 + n_columns + n_phases) * _STEPS, N_INPUTS), 5041, np.int32)
    weights[:, [0, 8, 9, 10, 11]] = 0
    sign_weights = np.zeros((1, N_INPUTS), np.int32)
    sign_weights[0, 0] = 32768
    curve = TABLES[SQUASH - 2048 : SQUASH + 2049 : 128].astype(np.int64)
    refined = np.tile(curve << 8, (6 * _STEPS, 1))
    columns = np.full((5, m), 1 << _ONE, np.int64)
    columns[_MEAN] = 0
    cells = np.full((period, m), 1 << _ONE, np.int64)
    n_kept = min(n, 1 + max(2, slice_rows, lag))
    # Two columns on either side.
    kept = np.zeros((n_kept, m + 4), np.int64)
    halves = np.full(32 + 81 + n_columns + n_phases, new_slot(np.uint32(32768)))
    return (
        *(_first_slots(n_columns, n_phases), weights, refined, halves[:32], halves[32:]),
        *(sign_weights, columns, cells, np.zeros_like(cells), kept),
    )


@jit()
def code_integers(  # type: ignore[no-untyped-def]
    k, coded, steps, slice_rows, lag, data, decoding, tables,
    slots, weights, refined, tails, sign_slots, sign_weights, columns, cells, cell_means, kept,
):  # fmt: skip
    """Code all numbers; return the length of data, ``WRONG`` or ``FULL``."""
    n, m = k.shape
    n_kept, period = len(kept), len(cells)  # rows of one phase are as far apart as related rows are
    n_columns, n_mixers = min(m, PLACES), 3 if period > 1 else 2
    coder = start(data, decoding)
    at, mixer, logits = np.zeros(4, np.int64), np.zeros(4, np.int64), np.zeros(4, np.int64)
    inputs, sign_inputs = np.zeros(N_INPUTS, np.int32), np.zeros(N_INPUTS, np.int32)
    inputs[0] = 256

    # All in units of the current row.
    above, related = np.zeros(m + 4, np.int64), np.zeros(m + 4, np.int64)
    further = np.zeros(m + 4, np.int64)
    cell_steps = np.zeros(period, np.int64)
    cell_steps[:] = steps[0]
    row_mean = np.int64(1 << _ONE)
    usual_step = np.int64(steps[0]) << 8

    for i in range(n):
        if decoding and coder[PLACE] > len(data) + 4:
            return WRONG
        here = np.int64(steps[i])
        if i:
            change = steps[i - 1] - here
            row_mean = _scaled(row_mean, change, tables)
            for c in range(len(columns)):
                _rescale(columns[c], change, columns[c], tables)
            _rescale(kept[(i - 1) % n_kept], change, above, tables)
            row = i - slice_rows if 0 < slice_rows <= i else i - 1
            _rescale(kept[row % n_kept], steps[row] - here, related, tables)
            row = i - lag if 0 < lag <= i else max(i - 2, 0)
            _rescale(kept[row % n_kept], steps[row] - here, further, tables)
        phase = i % period
        cell, cell_mean = cells[phase], cell_means[phase]
        _rescale(cell, cell_steps[phase] - here, cell, tables)
        _rescale(cell_mean, cell_steps[phase] - here, cell_mean, tables)
        cell_steps[phase] = here
        inputs[10] = clamp((((here << 8) - usual_step) * 11) >> 8, -1000, 1000)
        usual_step += ((here << 8) - usual_step) >> 3

        this = kept[i % n_kept]
        value = row_sign = np.int64(0)
        size = size2 = size3 = row_actual = row_usual = row_mean
        total, count = row_mean << 2, 4
        for j in range(m):
            c = j + 2
            last, last_sizes = value, (2 * size + size2 + size3) >> 2
            if not coded[i, j]:
                this[c] = 0
                continue
            if not decoding and coder[PLACE] + ROOM > len(data):
                return FULL
            near_above, near_related = _around(above, c), _around(related, c)
            expected = (
                2 * (last_sizes + columns[_FAST, j] + columns[_SLOW, j])
                + (near_above + near_related + 4 * cell[j])
            ) // 12
            shift = 0
            while expected >> shift >= _SMALL:
                shift += 1

            # The sign is predicted before it is known whether there is one.
            column, row = 81 + (j & (PLACES - 1)), 81 + n_columns + (phase & (PLACES - 1))
            signs = 27 * _sign(last) + 9 * _sign(above[c]) + 3 * _sign(related[c])
            signs += 40 + _sign(further[c])
            sign_inputs[0] = tables[STRETCH + (sign_slots[signs] >> 20)]
            sign_inputs[1] = tables[STRETCH + (sign_slots[column] >> 20)]
            sign_inputs[2] = tables[STRETCH + (sign_slots[row] >> 20)]
            sign_inputs[3] = _signed_log(last, shift, tables)
            sign_inputs[4] = _signed_log(above[c], shift, tables)
            sign_inputs[5] = _signed_log(above[c - 1], shift, tables)
            sign_inputs[6] = _signed_log(related[c], shift, tables)
            sign_inputs[7] = _signed_log(further[c], shift, tables)
            sign_inputs[8] = _signed_log(row_sign, shift, tables)
            sign_inputs[9] = _signed_log(columns[_MEAN, j], shift, tables)
            sign_inputs[10] = _signed_log(cell_mean[j], shift, tables)
            sign_logit = mixed(sign_inputs, sign_weights, 0)

            inputs[1] = _log(columns[_FAST, j] >> shift, tables)
            inputs[2] = _log(columns[_SLOW, j] >> shift, tables)
            inputs[3] = _log(last_sizes >> shift, tables)
            inputs[4] = _log(near_above >> shift, tables)
            inputs[5] = _log(near_related >> shift, tables)
            inputs[6] = _log(_around(further, c) >> shift, tables)
            inputs[7] = _log(cell[j] >> shift, tables)
            inputs[8] = _log(row_actual, tables) - _log(row_usual, tables)
            inputs[9] = _log(columns[_ACTUAL, j], tables) - _log(columns[_USUAL, j], tables)
            inputs[11] = abs(sign_logit)
            mixer[1] = (1 + column - 81) * _STEPS
            mixer[2] = (1 + row - 81) * _STEPS
            one = _ONE + shift
            at[0] = clamp(abs(last) >> one, 0, 7)
            at[0] = 8 * at[0] + clamp(abs(above[c]) >> one, 0, 7)
            at[0] = (8 * at[0] + clamp(abs(related[c]) >> one, 0, 7)) * _STEPS
            log = _log(expected >> shift, tables)
            curve = clamp(cell[j] >> (one - 1), 0, 2) + (3 if related[c] else 0)
            at[1] = (512 + _LEVELS * _level(inputs[7]) + _level(log)) * _STEPS
            at[2] = (512 + _LEVELS * _LEVELS + column - 81) * _STEPS
            at[3] = (512 + _LEVELS * _LEVELS + row - 81) * _STEPS

            # Ones as far as (|k| - 1) >> shift goes, a zero; the sign after the first one.
            value = np.int64(k[i, j])
            rest = abs(value) - 1
            step, negative = 0, 0
            while step < _STEPS:
                for t in range(_N_SLOTS):
                    p = slots[at[t] + step] >> 20
                    inputs[_N_FEATURES + t] = tables[STRETCH + p]
                logit = np.int64(0)
                for t in range(n_mixers):
                    logits[t] = mixed(inputs, weights, mixer[t] + step)
                    logit += logits[t]
                logit //= n_mixers
                # Half of the probability comes from outcomes at similar mixed probabilities.
                place = clamp(logit, -2047, 2047) + 2048
                part, place = place & 127, place >> 7
                r = curve * _STEPS + step
                p = refined[r, place] * (128 - part) + refined[r, place + 1] * part
                p = clamp((tables[SQUASH + logit] + (p >> 15)) >> 1, 1, 65535)
                bit = code_bit(coder, data, decoding, 1 if rest >> shift >= step else 0, p)
                place += part >> 6
                refined[r, place] += ((bit << 24) - refined[r, place]) >> 6
                for t in range(n_mixers):
                    error = (bit << 16) - tables[SQUASH + logits[t]]
                    rate = _OWN_RATE if t else _SHARED_RATE
                    learn(inputs, weights, mixer[t] + step, error, rate)
                for t in range(_N_SLOTS):
                    update(slots, at[t] + step, bit, tables)
                if not bit:
                    break
                if step == 0:
                    p = np.int64(tables[SQUASH + sign_logit])
                    bit = code_bit(coder, data, decoding, 1 if value > 0 else 0, p)
                    learn(sign_inputs, sign_weights, 0, (bit << 16) - p, _SIGN_RATE)
                    update(sign_slots, signs, bit, tables)
                    update(sign_slots, column, bit, tables)
                    update(sign_slots, row, bit, tables)
                    negative = 1 - bit
                    inputs[11] = -sign_logit if negative else sign_logit
                step += 1

            # What is left: how many bits, where the ones had no end; these bits.
            found = np.int64(0)
            if step:
                found, n_bits, known = np.int64(step - 1), shift, np.int64(0)
                if step == _STEPS:
                    known = np.int64(_STEPS - 2) << shift
                    rest -= known
                    length = 0
                    while True:
                        p = clamp(np.int64(tails[length]) >> 16, 1, 65535)
                        bit = 1 if rest >> (shift + length + 1) else 0
                        bit = code_bit(coder, data, decoding, bit, p)
                        update(tails, length, bit, tables)
                        if not bit:
                            break
                        length += 1
                        if length > 30:
                            return WRONG
                    found, n_bits = np.int64(1), shift + length
                for place in range(n_bits - 1, -1, -1):
                    bit = code_bit(coder, data, decoding, (rest >> place) & 1, 32768)
                    found = 2 * found + bit
                found += known + 1
                if found > LARGEST:
                    return WRONG
            value = -found if negative else found
            if decoding:
                k[i, j] = value
            value <<= _ONE
            total = clamp(total + (found << _ONE), 0, 1 << 60)
            count += 1

            size3, size2, size = size2, size, abs(value)
            this[c] = value
            row_sign += (value - row_sign) >> 3
            row_actual += (size - row_actual) >> 4
            row_usual += (expected - row_usual) >> 4
            columns[_FAST, j] += (size - columns[_FAST, j]) >> 2
            columns[_SLOW, j] += (size - columns[_SLOW, j]) >> 4
            columns[_MEAN, j] += (value - columns[_MEAN, j]) >> 3
            columns[_ACTUAL, j] += (size - columns[_ACTUAL, j]) >> 3
            columns[_USUAL, j] += (cell[j] - columns[_USUAL, j]) >> 3
            cell[j] += (size - cell[j]) >> 1
            cell_mean[j] += (value - cell_mean[j]) >> 1
        row_mean = total // count
    return coder[PLACE] if decoding else finish(coder, data)
