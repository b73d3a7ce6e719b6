"""Rows whose values are predicted one by one, by recursive least squares per column."""

import math

import numpy as np

from kernelatoms.codec.loops.cells import (
    EXACT_ROW,
    LARGEST,
    NO_STEP,
    cell_at,
    cell_value,
    first_guess,
    learn_sizes,
    nearest_cell,
    step_of,
    store_exactly,
)
from kernelatoms.engine.cpu.jit import jit

# Columns choose their parents in rows 32, 128, 512, ... from this many rows before, and learn again
# from this many.
_FIRST_CHOICE = 32
CHOICE_ROWS = 512
_REPLAYED_ROWS = 1024
# In wide rows, the parents of a column are among this many columns before it.
_WIDE = 512
_NEAR_COLUMNS = 64
# Weights are solved for every few rows; in the first rows, always.
_SOLVE_EVERY = 4
_SOLVE_ALWAYS = 64


@jit()
def code_columns(  # type: ignore[no-untyped-def]
    lags, n_parents, fade, ridge, x, coded, given, limits, scale, absolute, trade, least, most,
    codes, kinds, k, decoded, decoding,
):  # fmt: skip
    """Code rows whose values are predicted one by one, by recursive least squares.

    A value is predicted from its column ``lags`` rows before (the first lag is 1), from
    ``n_parents`` columns of its row that were decoded before it and are most like it, and from
    these in the row before. The weights of a column minimise the squared errors so far, those of
    each row before counting ``fade`` times less, with a small ridge towards "as in the row before":
    ``ridge`` times the mean square of the inputs. For the other arguments see
    ``models.quantised.QuantisedBlock``.
    """
    n, m = k.shape
    first = decoded.shape[0] - n
    n_inputs = len(lags) + 2 * n_parents + 1
    parents = np.full((m, n_parents), -1, np.int64)
    inputs, weights = np.zeros((m, n_inputs)), np.zeros((m, n_inputs))
    moments, targets = np.zeros((m, n_inputs, n_inputs)), np.zeros((m, n_inputs))
    factor, column = np.zeros((n_inputs, n_inputs)), np.zeros(n_inputs)
    weights[:, 0] = 1.0
    sizes, known = np.zeros(m), np.ones(m, np.uint8)
    last, next_choice = least, _FIRST_CHOICE
    for t in range(first + n):
        size, low, high = _extent(decoded, t)
        if t >= first:
            at = t - first
            row = coded[at], given[at], decoded, t, lags, parents, weights, size, low, high
            if decoding:
                _code_row(
                    given[at], *row, step_of(codes[at]), scale, sizes, trade, absolute, k[at],
                    inputs, True,
                )  # fmt: skip
            else:
                code = _settle_row(
                    x[at], *row, limits[at], scale, sizes, trade, absolute, least, most, last,
                    k[at], inputs,
                )  # fmt: skip
                if code == NO_STEP:
                    code = last
                    kinds[at] = EXACT_ROW
                    store_exactly(x[at], coded[at], given[at], k[at], decoded[t])
                    _code_row(x[at], *row, 1.0, scale, sizes, trade, absolute, k[at], inputs, True)
                else:
                    learn_sizes(k[at], coded[at], step_of(code), sizes)
                codes[at] = last = code
            for j in range(m):
                known[j] = coded[at, j] or not math.isnan(given[at, j])
        else:
            for j in range(m):
                _gather(decoded, t, j, lags, parents[j], size, inputs[j])
        for j in range(m):
            if known[j]:
                _learn(inputs[j], decoded[t, j] / size, fade, moments[j], targets[j])
        if t + 1 == next_choice:
            next_choice *= 4
            _choose_parents(decoded, t + 1, parents)
            _replay(decoded, t + 1, lags, parents, fade, inputs, moments, targets)
        if t < _SOLVE_ALWAYS or (t + 1) % _SOLVE_EVERY == 0:
            for j in range(m):
                _solve(moments[j], targets[j], ridge, factor, column, weights[j])


@jit()
def _extent(decoded, t):  # type: ignore[no-untyped-def]
    """Return the root mean square of the row before, or 1, its least and its largest value."""
    if t == 0:
        return 1.0, 0.0, 0.0
    before = decoded[t - 1]
    square, low, high = 0.0, before[0], before[0]
    for j in range(len(before)):
        square += before[j] * before[j]
        low, high = min(low, before[j]), max(high, before[j])
    size = math.sqrt(square / len(before))
    return size if size > 0.0 else 1.0, low, high


@jit()
def _gather(decoded, t, j, lags, parents, size, inputs):  # type: ignore[no-untyped-def]
    """Fill the inputs of a prediction, relative to the size of the row before."""
    at = 0
    for lag in lags:
        inputs[at] = decoded[t - lag, j] / size if lag <= t else 0.0
        at += 1
    for parent in parents:
        inputs[at] = decoded[t, parent] / size if parent >= 0 else 0.0
        inputs[at + 1] = decoded[t - 1, parent] / size if parent >= 0 and t > 0 else 0.0
        at += 2
    inputs[at] = 1.0


@jit()
def _predict_value(inputs, weights, size, low, high, observed):  # type: ignore[no-untyped-def]
    """Return a value's prediction, within three times the range of the row before.

    A value that is not observed is kept within that range itself: predictions from predictions
    would grow.
    """
    if observed:
        low, high = low - (high - low), high + (high - low)
    total = 0.0
    for i in range(len(inputs)):
        total += weights[i] * inputs[i]
    total *= size
    # Also turns NaN, of numbers that overflow, into a number.
    if not total >= low:
        return low
    return total if total <= high else high


@jit()
def _code_row(  # type: ignore[no-untyped-def]
    x, coded, given, decoded, t, lags, parents, weights, size, low, high, step, scale, sizes, trade,
    absolute, k, inputs, decoding,
):  # fmt: skip
    """Fill a row, and its integers if not decoding; return its squared error, negative if none."""
    error = 0.0
    for j in range(len(k)):
        _gather(decoded, t, j, lags, parents[j], size, inputs[j])
        prediction = _predict_value(inputs[j], weights[j], size, low, high, coded[j])
        if not coded[j]:
            k[j] = 0
            decoded[t, j] = prediction if math.isnan(given[j]) else given[j]
            continue
        middle, width = cell_at(prediction, step, scale, j)
        if not decoding:
            near = nearest_cell(x[j], middle, width, scale, sizes[j], trade, absolute)
            if not abs(near) <= LARGEST:
                return -1.0
            k[j] = np.int32(near)
        value = cell_value(middle, width, scale, np.float64(k[j]))
        decoded[t, j] = value
        if not decoding:
            if not abs(x[j] - value) <= absolute:
                return -1.0
            error += (x[j] - value) ** 2
    return error


@jit()
def _settle_row(  # type: ignore[no-untyped-def]
    x, coded, given, decoded, t, lags, parents, weights, size, low, high, limit, scale, sizes,
    trade, absolute, least, most, last, k, inputs,
):  # fmt: skip
    """Return the code of the largest step that keeps a row within its limit, and fill the row."""
    square = limit * limit
    row = coded, given, decoded, t, lags, parents, weights, size, low, high
    # If the prediction suffices, the last step costs nothing.
    error = _code_row(x, *row, step_of(last), scale, sizes, trade, absolute, k, inputs, False)
    if 0.0 <= error <= square and not k.any():
        return last
    code = first_guess(limit, coded, scale, least, most)
    good = NO_STEP
    while code != good:
        error = _code_row(x, *row, step_of(code), scale, sizes, trade, absolute, k, inputs, False)
        if 0.0 <= error <= square:
            good = code
            # A step that leaves nothing to code is large enough.
            code = min(code + 1, most) if k.any() else code
        elif good != NO_STEP:
            # One too far: the last good one again, which ends the search.
            most = code = good
            good = NO_STEP
        elif code == least:
            return NO_STEP
        else:
            fall = 16.0 if error < 0.0 or square == 0.0 else 8.0 * math.log2(error / square)
            code = max(least, code - max(1, min(16, np.int64(fall))))
    return code


@jit()
def _learn(inputs, target, fade, moments, targets):  # type: ignore[no-untyped-def]
    """Add a value to the sums of its column."""
    for i in range(len(inputs)):
        value = inputs[i]
        targets[i] = fade * targets[i] + value * target
        for j in range(i + 1):
            moments[i, j] = fade * moments[i, j] + value * inputs[j]


@jit()
def _solve(moments, targets, ridge, factor, column, weights):  # type: ignore[no-untyped-def]
    """Solve for a column's weights: Cholesky, column by column, with sums in a fixed order."""
    n = len(targets)
    trace = 0.0
    for i in range(n):
        trace += moments[i, i]
    if not 0.0 < trace < np.inf:
        return
    for i in range(n):
        for j in range(i + 1):
            factor[i, j] = moments[i, j]
        factor[i, i] += ridge * trace / n
        # Weights start from "as in the row before": what is solved for is the rest.
        weights[i] = targets[i] - moments[i, 0]
    for h in range(n):
        pivot = math.sqrt(max(factor[h, h], 1e-12 * trace))
        factor[h, h] = pivot
        for i in range(h + 1, n):
            column[i] = factor[i, h] / pivot
            factor[i, h] = column[i]
        for i in range(h + 1, n):
            value = column[i]
            for j in range(h + 1, i + 1):
                factor[i, j] -= value * column[j]
    for i in range(n):
        weights[i] /= factor[i, i]
        for j in range(i + 1, n):
            weights[j] -= factor[j, i] * weights[i]
    for i in range(n - 1, -1, -1):
        weights[i] /= factor[i, i]
        for j in range(i):
            weights[j] -= factor[i, j] * weights[i]
    weights[0] += 1.0


@jit()
def _choose_parents(decoded, t, parents):  # type: ignore[no-untyped-def]
    """Choose the parents of each column: those before it with the most similar changes."""
    m = decoded.shape[1]
    start = max(1, t - CHOICE_ROWS)
    changes = np.zeros((m, t - start))
    squares = np.zeros(m)
    for j in range(m):
        for i in range(start, t):
            changes[j, i - start] = decoded[i, j] - decoded[i - 1, j]
        squares[j] = _product(changes[j], changes[j])
    scores = np.zeros(parents.shape[1])
    for j in range(m):
        parents[j] = -1
        scores[:] = 0.0
        for other in range(0 if m <= _WIDE else max(0, j - _NEAR_COLUMNS), j):
            both = _product(changes[j], changes[other])
            if not squares[other] > 0.0 or not squares[j] > 0.0:
                continue
            score = both / squares[other] * (both / squares[j])
            place = len(scores)
            while place > 0 and score > scores[place - 1]:
                place -= 1
            for i in range(len(scores) - 1, place, -1):
                scores[i], parents[j, i] = scores[i - 1], parents[j, i - 1]
            if place < len(scores):
                scores[place], parents[j, place] = score, other


@jit()
def _product(a, b):  # type: ignore[no-untyped-def]
    """Return an inner product: four sums in a fixed order, for vector instructions."""
    s0 = s1 = s2 = s3 = 0.0
    whole = len(a) // 4 * 4
    for i in range(0, whole, 4):
        s0 += a[i] * b[i]
        s1 += a[i + 1] * b[i + 1]
        s2 += a[i + 2] * b[i + 2]
        s3 += a[i + 3] * b[i + 3]
    for i in range(whole, len(a)):
        s0 += a[i] * b[i]
    return (s0 + s1) + (s2 + s3)


@jit()
def _replay(decoded, t, lags, parents, fade, inputs, moments, targets):  # type: ignore[no-untyped-def]
    """Learn again from the last rows, with the current parents."""
    moments[:] = 0.0
    targets[:] = 0.0
    for i in range(max(0, t - _REPLAYED_ROWS), t):
        size, _, _ = _extent(decoded, i)
        for j in range(decoded.shape[1]):
            _gather(decoded, i, j, lags, parents[j], size, inputs[j])
            _learn(inputs[j], decoded[i, j] / size, fade, moments[j], targets[j])
