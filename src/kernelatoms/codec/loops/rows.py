"""Rows that are predicted as a whole, from other rows."""

import math

import numpy as np

from kernelatoms.codec.loops.cells import (
    EXACT_ROW,
    NO_STEP,
    code_row,
    decode_row,
    first_guess,
    learn_sizes,
    step_of,
    store_exactly,
)
from kernelatoms.engine.cpu.jit import jit


@jit()
def code_rows(  # type: ignore[no-untyped-def]
    sources, weights, order, x, coded, given, limits, scale, absolute, trade, least, most,
    codes, kinds, k, decoded, decoding,
):  # fmt: skip
    """Code rows that are predicted as a whole, from rows before.

    Parameters
    ----------
    sources : int64 array of shape (n, n_sources)
        Rows of ``decoded`` that predict a row, -1 for none.
    weights : array of shape (n, n_sources) or (0, 0)
        Their weights; without rows, the median of every column predicts.
    order : int64 array of shape (n,)
        The order in which rows are coded.
    x, coded, given, limits, scale, absolute, trade, least, most, codes, kinds, k, decoded, decoding
        See ``models.quantised.QuantisedBlock``.
    """
    n, m = k.shape
    first = decoded.shape[0] - n
    prediction, trial_k, trial_row = np.zeros(m), np.zeros(m, np.int32), np.zeros(m)
    sizes, few = np.zeros(m), np.zeros(max(sources.shape[1], 1))
    last = least
    for place in range(n):
        t = order[place]
        row = decoded[first + t]
        _predict_row(sources[t], weights[t] if len(weights) else few[:0], decoded, few, prediction)
        if decoding:
            decode_row(coded[t], given[t], prediction, step_of(codes[t]), scale, k[t], row)
            continue
        code = _settle_row(
            x[t], coded[t], given[t], prediction, limits[t], scale, sizes, trade, absolute, least,
            most, last, trial_k, trial_row,
        )  # fmt: skip
        if code == NO_STEP:
            code = last
            kinds[t] = EXACT_ROW
            decode_row(coded[t] * np.uint8(0), given[t], prediction, 1.0, scale, k[t], row)
            store_exactly(x[t], coded[t], given[t], k[t], row)
        else:
            k[t], row[:] = trial_k, trial_row
            learn_sizes(k[t], coded[t], step_of(code), sizes)
        codes[t] = last = code


@jit()
def _settle_row(  # type: ignore[no-untyped-def]
    x, coded, given, prediction, limit, scale, sizes, trade, absolute, least, most, last, k, row
):
    """Return the code of the largest step that keeps a row within its limit, and fill the row."""
    square = limit * limit
    # If the prediction suffices, the last step costs nothing.
    error = code_row(
        x, coded, given, prediction, step_of(last), scale, sizes, trade, absolute, k, row
    )
    if 0.0 <= error <= square and not k.any():
        return last
    code = first_guess(limit, coded, scale, least, most)
    while True:
        error = code_row(
            x, coded, given, prediction, step_of(code), scale, sizes, trade, absolute, k, row
        )
        if 0.0 <= error <= square:
            break
        if code == least:
            return NO_STEP
        fall = 16.0 if error < 0.0 or square == 0.0 else 8.0 * math.log2(error / square)
        code = max(least, code - max(1, min(16, np.int64(fall))))
    # A step that leaves nothing to code is large enough.
    climb = 4 if k.any() else 0
    while climb > 0 and code < most:
        error = code_row(
            x, coded, given, prediction, step_of(min(code + climb, most)), scale, sizes, trade,
            absolute, k, row,
        )  # fmt: skip
        if 0.0 <= error <= square:
            code = min(code + climb, most)
            climb = climb if k.any() else 0
        else:
            climb //= 2
    code_row(x, coded, given, prediction, step_of(code), scale, sizes, trade, absolute, k, row)
    return code


@jit()
def _predict_row(sources, weights, decoded, few, prediction):  # type: ignore[no-untyped-def]
    """Fill a row's prediction: a weighted sum of other rows, or the median of every column."""
    for j in range(len(prediction)):
        total, n_few = 0.0, 0
        for i in range(len(sources)):
            if sources[i] >= 0:
                value = decoded[sources[i], j]
                if len(weights):
                    total += weights[i] * value
                else:
                    place = n_few
                    while place > 0 and few[place - 1] > value:
                        few[place] = few[place - 1]
                        place -= 1
                    few[place] = value
                    n_few += 1
        if n_few:
            total = few[n_few // 2]
        prediction[j] = total
