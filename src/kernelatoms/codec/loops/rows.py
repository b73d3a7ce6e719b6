"""Rows that are predicted as a whole: from other rows, or as sums of atoms.

The coefficients of atoms are side information: integers of the row's step.
"""

import math

import numpy as np

from kernelatoms.codec.loops.cells import (
    EXACT_ROW,
    LARGEST,
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
    """Code rows in an ``order``, each predicted from rows that were coded before.

    ``sources`` (n, n_sources) are rows of ``decoded``, -1 for none; ``weights`` are theirs, or have
    no rows: then the median of every column predicts. For the others see
    ``models.quantised.QuantisedBlock``.
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
    step = step_of(last)
    error = code_row(x, coded, given, prediction, step, scale, sizes, trade, absolute, k, row)
    if 0.0 <= error <= square and not k.any():
        return last
    code = first_guess(limit, coded, scale, least, most)
    while True:
        step = step_of(code)
        error = code_row(x, coded, given, prediction, step, scale, sizes, trade, absolute, k, row)
        if 0.0 <= error <= square:
            break
        if code == least:
            return NO_STEP
        fall = 16.0 if error < 0.0 or square == 0.0 else 8.0 * math.log2(error / square)
        code = max(least, code - max(1, min(16, np.int64(fall))))
    # A step that leaves nothing to code is large enough.
    climb = 4 if k.any() else 0
    while climb > 0 and code < most:
        step = step_of(min(code + climb, most))
        error = code_row(x, coded, given, prediction, step, scale, sizes, trade, absolute, k, row)
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


@jit()
def code_combinations(  # type: ignore[no-untyped-def]
    mean, atoms, own, coefs, side, x, coded, given, limits, scale, absolute, trade, least, most,
    codes, kinds, k, decoded, decoding,
):  # fmt: skip
    """Code rows predicted by atoms, whose coefficients are integers of the row's step.

    A prediction is the ``mean`` plus ``coefs`` (n, n_coefs; no rows when decoding) of ``atoms``;
    ``own`` (n, m) or (0, m) is one more atom per row, which has the first coefficient. ``side``
    (n, n_coefs) are the coefficients' integers. For the others see
    ``models.quantised.QuantisedBlock``.
    """
    n, m = k.shape
    first = decoded.shape[0] - n
    prediction, sizes = np.zeros(m), np.zeros(m)
    last = least
    for t in range(n):
        row, mine = decoded[first + t], own[t : t + 1]
        if decoding:
            _combine(mean, atoms, mine, side[t], step_of(codes[t]), prediction)
            decode_row(coded[t], given[t], prediction, step_of(codes[t]), scale, k[t], row)
            continue
        code = _settle_combination(
            x[t], coded[t], given[t], mean, atoms, mine, coefs[t], limits[t], scale, sizes, trade,
            absolute, least, most, side[t], prediction, k[t], row,
        )  # fmt: skip
        if code == NO_STEP:
            code = last
            kinds[t] = EXACT_ROW
            side[t] = 0
            row[:] = 0.0
            store_exactly(x[t], coded[t], given[t], k[t], row)
        else:
            learn_sizes(k[t], coded[t], step_of(code), sizes)
        codes[t] = last = code


@jit()
def _combine(mean, atoms, own, side, step, prediction):  # type: ignore[no-untyped-def]
    """Fill the prediction of a row: mean and atoms, in their order."""
    prediction[:] = mean
    at = len(own)
    if at:
        coef = side[0] * step
        for j in range(len(prediction)):
            prediction[j] += coef * own[0, j]
    for i in range(len(atoms)):
        if side[at + i]:
            coef = side[at + i] * step
            for j in range(len(prediction)):
                prediction[j] += coef * atoms[i, j]


@jit()
def _settle_combination(  # type: ignore[no-untyped-def]
    x, coded, given, mean, atoms, own, coefs, limit, scale, sizes, trade, absolute, least, most,
    side, prediction, k, row,
):  # fmt: skip
    """Return the code of the largest step that keeps a row within its limit, and fill the row.

    A row that its atoms explain needs no step finer than its coefficients do.
    """
    square = limit * limit
    n_coefs = max(1, np.count_nonzero(coefs))
    code = most
    if limit < np.inf:
        guess = 8.0 * math.log2(max(square * 12.0 / n_coefs, 1e-300))
        code = np.int64(min(max(np.floor(guess), least), most))
    good, fine = NO_STEP, most + 1
    while True:
        step = step_of(code)
        failed = False
        for i in range(len(coefs)):
            near = np.floor(coefs[i] / step + 0.5)
            failed |= not abs(near) <= LARGEST
            side[i] = 0 if failed else np.int32(near)
        error = -1.0
        if not failed:
            _combine(mean, atoms, own, side, step, prediction)
            error = code_row(
                x, coded, given, prediction, step, scale, sizes, trade, absolute, k, row
            )
        if 0.0 <= error <= square:
            if code == good or code + 1 >= fine:
                return code
            good = code
            code += 1
        elif good != NO_STEP:
            # One too far: back to the last good one, which ends the search.
            fine, code = code, good
        elif code == least:
            return NO_STEP
        else:
            fall = 16.0 if error < 0.0 or square == 0.0 else 8.0 * math.log2(error / square)
            fine = code
            code = max(least, code - max(1, min(16, np.int64(fall))))


@jit()
def preimages(weights, step, atoms, gamma, n_rounds, rows):  # type: ignore[no-untyped-def]
    """Fill rows: the pre-image of each, by the fixed-point iteration (19) of the FKSC paper.

    The image of y is nearest to sum_i w_i phi(x_i) where y is the mean of the atoms with weights
    w_i k(y, x_i).
    """
    n, n_atoms = weights.shape
    m = atoms.shape[1]
    mean = np.zeros(m)
    for t in range(n):
        y = rows[t]
        y[:] = 0.0
        for i in range(n_atoms):
            if weights[t, i]:
                weight = weights[t, i] * step
                for j in range(m):
                    y[j] += weight * atoms[i, j]
        for _ in range(n_rounds):
            total = 0.0
            mean[:] = 0.0
            for i in range(n_atoms):
                if weights[t, i]:
                    distance = 0.0
                    for j in range(m):
                        distance += (y[j] - atoms[i, j]) ** 2
                    weight = weights[t, i] * step * _exp(-gamma * distance)
                    total += weight
                    for j in range(m):
                        mean[j] += weight * atoms[i, j]
            # Weights that cancel have no mean.
            if not abs(total) > 1e-3:
                break
            for j in range(m):
                y[j] = mean[j] / total


@jit()
def _exp(x):  # type: ignore[no-untyped-def]
    """Return e^x for x <= 0 by its series: libraries differ in the last digit."""
    if not x > -700.0:
        return 0.0
    n = np.floor(x * 1.4426950408889634 + 0.5)
    rest = x - n * 0.693145751953125 - n * 1.4286068203094172e-06
    total = 1.0
    for i in range(13, 0, -1):
        total = 1.0 + total * rest / i
    return math.ldexp(total, int(n))
