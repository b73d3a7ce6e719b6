"""Predictions of rows from decoded rows, and quantised residuals.

A value x with prediction p becomes the integer k of its cell: cells are as wide as the row's step,
2^(code / 16), and the middle one is at p. Values on a grid (``scale`` points per unit: 10 for one
decimal) have cells of whole grid points, which is exact for a step of one point.

Encoder and decoder are the same code: the encoder searches the largest step that keeps the row
within its limit, the decoder reads steps and integers. Everything else that they use is decoded
already. Sums have a fixed order and predictions use only + - * / sqrt and floor, so that every
machine decodes the same numbers.

See docs/decisions/052-codec-bounds.md.
"""

import math

import numpy as np

from kernelatoms.engine.cpu.jit import jit

# 2^(i / 16) as constants: powers differ in their last digit between machines.
_ROOTS = np.array([
    1.0, 1.0442737824274138, 1.0905077326652577, 1.1387886347566916, 1.189207115002721,
    1.241857812073484, 1.2968395546510096, 1.3542555469368927, 1.4142135623730951,
    1.4768261459394993, 1.5422108254079407, 1.6104903319492543, 1.681792830507429,
    1.7562521603732995, 1.8340080864093424, 1.9152065613971474,
])  # fmt: skip
# With larger integers a row is stored exactly.
_LARGEST = 1 << 26
NO_STEP = np.int32(-(1 << 30))
# A row: predicted, or stored exactly.
EXACT_ROW = np.uint8(1)
# Columns choose their parents in rows 32, 128, 512, ... from this many rows before, and learn again
# from this many.
_FIRST_CHOICE = 32
_CHOICE_ROWS = 512
_REPLAYED_ROWS = 1024
# In wide rows, the parents of a column are among this many columns before it.
_WIDE = 512
_NEAR_COLUMNS = 64
# Weights are solved for every few rows; in the first rows, always.
_SOLVE_EVERY = 4
_SOLVE_ALWAYS = 64
_SIMILAR_ROWS = 3
# The smallest mean residual in cells that is assumed, and the most bits that moving to a nearer
# cell can then save: log2((1 + mean) / mean) and a sign.
_LEAST_MEAN = 0.02
_MOST_BITS_SAVED = 6.7
# The middle of an even number of grid points is not on the grid; wider cells are centred on a point
# nevertheless.
_WIDE_CELL = 6.0


@jit()
def step_of(code):  # type: ignore[no-untyped-def]
    """Return 2^(code / 16)."""
    return math.ldexp(_ROOTS[code & 15], code >> 4)


@jit()
def _cell(prediction, step, scale, column):  # type: ignore[no-untyped-def]
    """Return the middle of the cell at a prediction, and the width of cells.

    Of values on a grid both are in grid points, and the widths of neighbouring columns differ so
    that their mean is the step: cells of 2 and of 3 points are worth more than all of 2.
    """
    if scale == 0.0:
        return prediction, step
    spread = np.float64((column * 40503) & 65535) / 65536.0
    width = max(1.0, np.floor(step * scale + spread))
    if width % 2.0 == 1.0 or width > _WIDE_CELL:
        return np.floor(prediction * scale + 0.5), width
    return np.floor(prediction * scale) + 0.5, width


@jit()
def _value(middle, width, scale, k):  # type: ignore[no-untyped-def]
    """Return the value of a cell."""
    value = middle + k * width
    return value if scale == 0.0 else value / scale


@jit()
def _nearest(x, middle, width, scale, size, trade, absolute):  # type: ignore[no-untyped-def]
    """Return the integer of a value: the nearest cell's, or one nearer to zero that is cheaper.

    ``trade`` is the worth of a bit in squared widths, ``size`` the mean magnitude of residuals in
    this column; bits are those of a geometric distribution.
    """
    place = x if scale == 0.0 else x * scale
    left = (place - middle) / width
    k = np.floor(left + 0.5)
    if trade == 0.0 or k == 0.0:
        return k
    nearer = k - 1.0 if k > 0.0 else k + 1.0
    farther = (left - nearer) ** 2 - (left - k) ** 2
    if farther >= trade * _MOST_BITS_SAVED:
        return k
    mean = size / width * (1.0 if scale == 0.0 else scale) + _LEAST_MEAN
    bits = -math.log2(mean / (1.0 + mean))
    if nearer == 0.0:
        bits += 1.0
    if farther < trade * bits and abs(x - _value(middle, width, scale, nearer)) <= absolute:
        return nearer
    return k


@jit()
def _code_row(x, coded, given, prediction, step, scale, sizes, trade, absolute, k, row):  # type: ignore[no-untyped-def]
    """Fill a row's integers and decoded values; return its squared error, negative if it fails."""
    error = 0.0
    for j in range(len(row)):
        if coded[j]:
            middle, width = _cell(prediction[j], step, scale, j)
            near = _nearest(x[j], middle, width, scale, sizes[j], trade, absolute)
            # "not <=": NaN, where numbers overflow, fails too.
            if not abs(near) <= _LARGEST:
                return -1.0
            k[j] = np.int32(near)
            row[j] = _value(middle, width, scale, near)
            if not abs(x[j] - row[j]) <= absolute:
                return -1.0
            error += (x[j] - row[j]) ** 2
        else:
            k[j] = 0
            row[j] = prediction[j] if math.isnan(given[j]) else given[j]
    return error


@jit()
def _decode_row(coded, given, prediction, step, scale, k, row):  # type: ignore[no-untyped-def]
    """Fill a row's decoded values from its integers."""
    for j in range(len(row)):
        if coded[j]:
            middle, width = _cell(prediction[j], step, scale, j)
            row[j] = _value(middle, width, scale, np.float64(k[j]))
        else:
            row[j] = prediction[j] if math.isnan(given[j]) else given[j]


@jit()
def _store_exactly(x, coded, given, k, row):  # type: ignore[no-untyped-def]
    for j in range(len(row)):
        k[j] = 0
        if coded[j]:
            coded[j] = 0
            given[j] = x[j]
            row[j] = x[j]


@jit()
def _learn_sizes(k, coded, step, sizes):  # type: ignore[no-untyped-def]
    for j in range(len(k)):
        if coded[j]:
            sizes[j] += 0.1 * (abs(k[j]) * step - sizes[j])


@jit()
def _first_guess(limit, coded, scale, least, most):  # type: ignore[no-untyped-def]
    """Return the code of the step that fits uniform errors."""
    n_coded = 0
    for j in range(len(coded)):
        n_coded += coded[j]
    if not limit < np.inf:
        return most
    square = limit * limit * 12.0 / max(n_coded, 1)
    if scale > 0.0:
        square += 1.0 / (scale * scale)
    if square <= 0.0:
        return least
    return np.int64(min(max(np.floor(8.0 * math.log2(square)), least), most))


@jit()
def code_rows(  # type: ignore[no-untyped-def]
    x, coded, given, base, sources, weights, order, limits, scale, absolute, trade, least, most,
    codes, kinds, k, decoded, decoding,
):  # fmt: skip
    """Code rows that are predicted as a whole, from rows before or from ``base``.

    Parameters
    ----------
    x : array of shape (n, m)
        The rows; without rows when decoding.
    coded : uint8 array of shape (n, m)
        Where numbers are coded.
    given : array of shape (n, m)
        Known values at other places, NaN where there are none.
    base : array of shape (n, m) or (0, m)
        Predictions; without rows, ``sources`` predict.
    sources : int64 array of shape (n, n_sources)
        Rows of ``decoded`` that predict a row, -1 for none.
    weights : array of shape (n, n_sources) or (0, 0)
        Their weights; without rows, the median of every column predicts.
    order : int64 array of shape (n,)
        The order in which rows are coded.
    limits : array of shape (n,)
        The largest l2 error of every row.
    scale : float
        Grid points per unit, 0 for none.
    absolute : float
        The largest error of a value.
    trade : float
        The worth of a bit in squared steps.
    least, most : int
        The range of codes.
    codes : int32 array of shape (n,)
        Steps, in sixteenths of an octave.
    kinds : uint8 array of shape (n,)
        ``EXACT_ROW`` where no step suffices: such rows move from ``coded`` to ``given``.
    k : int32 array of shape (n, m)
        The integers.
    decoded : array of shape (n_history + n, m)
        History, then the decoded rows.
    decoding : bool
        Whether codes and integers are read or written.
    """
    n, m = k.shape
    first = decoded.shape[0] - n
    prediction, trial_k, trial_row = np.zeros(m), np.zeros(m, np.int32), np.zeros(m)
    sizes, few = np.zeros(m), np.zeros(max(sources.shape[1], 1))
    last = least
    for place in range(n):
        t = order[place]
        row = decoded[first + t]
        if len(base):
            prediction[:] = base[t]
        else:
            _predict_row(sources[t], weights[t] if len(weights) else few[:0], decoded, few,
                         prediction)  # fmt: skip
        if decoding:
            _decode_row(coded[t], given[t], prediction, step_of(codes[t]), scale, k[t], row)
            continue
        code = _settle_row(
            x[t], coded[t], given[t], prediction, limits[t], scale, sizes, trade, absolute, least,
            most, last, trial_k, trial_row,
        )  # fmt: skip
        if code == NO_STEP:
            code = last
            kinds[t] = EXACT_ROW
            _decode_row(coded[t] * np.uint8(0), given[t], prediction, 1.0, scale, k[t], row)
            _store_exactly(x[t], coded[t], given[t], k[t], row)
        else:
            k[t], row[:] = trial_k, trial_row
            _learn_sizes(k[t], coded[t], step_of(code), sizes)
        codes[t] = last = code


@jit()
def _settle_row(  # type: ignore[no-untyped-def]
    x, coded, given, prediction, limit, scale, sizes, trade, absolute, least, most, last, k, row
):
    """Return the code of the largest step that keeps a row within its limit, and fill the row."""
    square = limit * limit
    # If the prediction suffices, the last step costs nothing.
    error = _code_row(
        x, coded, given, prediction, step_of(last), scale, sizes, trade, absolute, k, row
    )
    if 0.0 <= error <= square and not k.any():
        return last
    code = _first_guess(limit, coded, scale, least, most)
    while True:
        error = _code_row(
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
        error = _code_row(
            x, coded, given, prediction, step_of(min(code + climb, most)), scale, sizes, trade,
            absolute, k, row,
        )  # fmt: skip
        if 0.0 <= error <= square:
            code = min(code + climb, most)
            climb = climb if k.any() else 0
        else:
            climb //= 2
    _code_row(x, coded, given, prediction, step_of(code), scale, sizes, trade, absolute, k, row)
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


# --- combinations: a row as a sum of atoms, whose coefficients are side information


@jit()
def code_combinations(  # type: ignore[no-untyped-def]
    x, coded, given, mean, atoms, own, coefs, limits, scale, absolute, trade, least, most,
    codes, kinds, side, k, decoded, decoding,
):  # fmt: skip
    """Code rows predicted by atoms, whose coefficients are integers of the row's step.

    Parameters
    ----------
    mean : array of shape (m,)
        Added to every prediction.
    atoms : array of shape (n_atoms, m)
        Shared by all rows.
    own : array of shape (n, m) or (0, m)
        One more atom per row, which has the first coefficient.
    coefs : array of shape (n, n_coefs)
        The coefficients; without rows when decoding.
    side : int32 array of shape (n, n_coefs)
        Their integers.
    x, coded, given, limits, scale, absolute, trade, least, most, codes, kinds, k, decoded, decoding
        See ``code_rows``.
    """
    n, m = k.shape
    first = decoded.shape[0] - n
    prediction, sizes = np.zeros(m), np.zeros(m)
    nothing = own[:0]
    last = least
    for t in range(n):
        row, mine = decoded[first + t], own[t : t + 1] if len(own) else nothing
        if decoding:
            _combine(mean, atoms, mine, side[t], step_of(codes[t]), prediction)
            _decode_row(coded[t], given[t], prediction, step_of(codes[t]), scale, k[t], row)
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
            _store_exactly(x[t], coded[t], given[t], k[t], row)
        else:
            _learn_sizes(k[t], coded[t], step_of(code), sizes)
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
            failed |= not abs(near) <= _LARGEST
            side[i] = 0 if failed else np.int32(near)
        error = -1.0
        if not failed:
            _combine(mean, atoms, own, side, step, prediction)
            error = _code_row(
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
            good = code
        elif code == least:
            return NO_STEP
        else:
            fall = 16.0 if error < 0.0 or square == 0.0 else 8.0 * math.log2(error / square)
            fine = code
            code = max(least, code - max(1, min(16, np.int64(fall))))


@jit()
def preimages(weights, step, atoms, gamma, n_rounds, rows):  # type: ignore[no-untyped-def]
    """Fill rows: each the fixed point of a Gaussian expansion, after so many rounds.

    The row y whose image is nearest to that of sum_i w_i phi(x_i) is where y is the mean of the
    atoms with weights w_i k(y, x_i), (19) of the paper on fast kernel sparse coding.
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


# --- columns: every value from its column's past and from columns before it in its row


@jit()
def code_columns(  # type: ignore[no-untyped-def]
    x, coded, given, lags, n_parents, fade, ridge, limits, scale, absolute, trade, least, most,
    codes, kinds, k, decoded, decoding,
):  # fmt: skip
    """Code rows whose values are predicted one by one, by recursive least squares.

    A value is predicted from its column ``lags`` rows before, from ``n_parents`` columns of its
    row that were decoded before it and are most like it, and from these in the row before. The
    weights of a column minimise the squared errors so far, those of each row before counting
    ``fade`` times less, with a small ridge towards "as in the row before".

    Parameters
    ----------
    lags : int64 array
        The first one is 1.
    n_parents : int
        Columns of the same row.
    fade : float
        The forgetting factor.
    ridge : float
        The ridge, relative to the mean square of the inputs.
    x, coded, given, limits, scale, absolute, trade, least, most, codes, kinds, k, decoded, decoding
        See ``code_rows``.
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
            if decoding:
                _decode_columns(
                    coded[at], given[at], decoded, t, lags, parents, weights, size, low, high,
                    step_of(codes[at]), scale, k[at], inputs,
                )  # fmt: skip
            else:
                code = _settle_columns(
                    x[at], coded[at], given[at], decoded, t, lags, parents, weights, size, low,
                    high, limits[at], scale, sizes, trade, absolute, least, most, last, k[at],
                    inputs,
                )  # fmt: skip
                if code == NO_STEP:
                    code = last
                    kinds[at] = EXACT_ROW
                    _store_exactly(x[at], coded[at], given[at], k[at], decoded[t])
                    _decode_columns(
                        coded[at], given[at], decoded, t, lags, parents, weights, size, low, high,
                        1.0, scale, k[at], inputs,
                    )  # fmt: skip
                else:
                    _learn_sizes(k[at], coded[at], step_of(code), sizes)
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
def _decode_columns(  # type: ignore[no-untyped-def]
    coded, given, decoded, t, lags, parents, weights, size, low, high, step, scale, k, inputs
):
    """Fill a row from its integers, value after value."""
    for j in range(len(k)):
        _gather(decoded, t, j, lags, parents[j], size, inputs[j])
        prediction = _predict_value(inputs[j], weights[j], size, low, high, coded[j])
        if coded[j]:
            middle, width = _cell(prediction, step, scale, j)
            decoded[t, j] = _value(middle, width, scale, np.float64(k[j]))
        else:
            decoded[t, j] = prediction if math.isnan(given[j]) else given[j]


@jit()
def _try_columns(  # type: ignore[no-untyped-def]
    x, coded, given, decoded, t, lags, parents, weights, size, low, high, step, scale, sizes, trade,
    absolute, k, inputs,
):  # fmt: skip
    """Fill a row and its integers with a given step; return the squared error, negative if none."""
    error = 0.0
    for j in range(len(k)):
        _gather(decoded, t, j, lags, parents[j], size, inputs[j])
        prediction = _predict_value(inputs[j], weights[j], size, low, high, coded[j])
        k[j] = 0
        if coded[j]:
            middle, width = _cell(prediction, step, scale, j)
            near = _nearest(x[j], middle, width, scale, sizes[j], trade, absolute)
            if not abs(near) <= _LARGEST:
                return -1.0
            k[j] = np.int32(near)
            value = _value(middle, width, scale, near)
            decoded[t, j] = value
            if not abs(x[j] - value) <= absolute:
                return -1.0
            error += (x[j] - value) ** 2
        else:
            decoded[t, j] = prediction if math.isnan(given[j]) else given[j]
    return error


@jit()
def _settle_columns(  # type: ignore[no-untyped-def]
    x, coded, given, decoded, t, lags, parents, weights, size, low, high, limit, scale, sizes,
    trade, absolute, least, most, last, k, inputs,
):  # fmt: skip
    """Return the code of the largest step that keeps a row within its limit, and fill the row."""
    square = limit * limit
    # If the prediction suffices, the last step costs nothing.
    error = _try_columns(
        x, coded, given, decoded, t, lags, parents, weights, size, low, high, step_of(last), scale,
        sizes, trade, absolute, k, inputs,
    )  # fmt: skip
    if 0.0 <= error <= square and not k.any():
        return last
    code = _first_guess(limit, coded, scale, least, most)
    good = NO_STEP
    while code != good:
        error = _try_columns(
            x, coded, given, decoded, t, lags, parents, weights, size, low, high, step_of(code),
            scale, sizes, trade, absolute, k, inputs,
        )  # fmt: skip
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
    start = max(1, t - _CHOICE_ROWS)
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


# --- slices: symmetric matrices, of which one half is stored


@jit()
def predict_slice(decoded, s, past, prediction):  # type: ignore[no-untyped-def]
    """Fill the medians of the entries on and above the diagonal over ``past`` slices before."""
    few = np.zeros(past)
    for i in range(len(prediction)):
        for j in range(i, len(prediction)):
            for back in range(past):
                value = decoded[s - 1 - back, i, j]
                place = back
                while place > 0 and few[place - 1] > value:
                    few[place] = few[place - 1]
                    place -= 1
                few[place] = value
            prediction[i, j] = few[past // 2]


@jit()
def code_slice(  # type: ignore[no-untyped-def]
    x, coded, given, alone, codes, changed, scale, absolute, trade, sizes, prediction, k, decoded,
    squares, errors, start, stop, decoding,
):  # fmt: skip
    """Code rows of a symmetric matrix: the entries on and above the diagonal.

    The step of an entry depends on two rows: 1 / step^2 is the sum of theirs.

    Parameters
    ----------
    x, coded, given : array of shape (n, n)
        One symmetric slice, of which the upper triangle is used; see ``code_rows``.
    alone : bool
        Whether rows are predicted from the most similar rows of the slice.
    codes : int32 array of shape (n,)
        Steps of the rows.
    changed : bool array of shape (n,)
        Rows whose steps have changed since the slice was coded last; other entries stay.
    sizes : array of shape (n, n)
        The mean magnitudes of residuals, for the encoder.
    prediction : array of shape (n, n)
        From slices before; filled if ``alone``.
    k : int32 array of shape (n, n)
        The integers.
    decoded : array of shape (n, n)
        Filled; below the diagonal only if ``alone``.
    squares : array of shape (n, n)
        The squared errors of entries, -inf where they fail.
    errors : array of shape (n,)
        The squared errors of these rows are added to it.
    start, stop : int
        The rows; unless ``alone``, other rows may be coded at the same time.
    """
    n = len(codes)
    rates, distances = np.zeros(n), np.zeros(n)
    for i in range(n):
        step = step_of(codes[i])
        rates[i] = 1.0 / (step * step)
    for i in range(start, stop):
        row = prediction[i]
        if alone:
            _predict_alike(decoded, i, distances, row)
        for j in range(i, n):
            if not coded[i, j]:
                decoded[i, j] = row[j] if math.isnan(given[i, j]) else given[i, j]
            elif changed[i] or changed[j]:
                step = 1.0 / math.sqrt(rates[i] + rates[j])
                middle, width = _cell(row[j], step, scale, j)
                if not decoding:
                    near = _nearest(x[i, j], middle, width, scale, sizes[i, j], trade, absolute)
                    error = (x[i, j] - _value(middle, width, scale, near)) ** 2
                    if not (abs(near) <= _LARGEST and math.sqrt(error) <= absolute):
                        near, error = 0.0, -np.inf
                    k[i, j] = np.int32(near)
                    squares[i, j] = error
                decoded[i, j] = _value(middle, width, scale, np.float64(k[i, j]))
            if alone:
                decoded[j, i] = decoded[i, j]
        if not decoding:
            for j in range(i, n):
                errors[i] += squares[i, j]
                if i != j:
                    errors[j] += squares[i, j]


@jit()
def _predict_alike(matrix, i, distances, prediction):  # type: ignore[no-untyped-def]
    """Predict entries (i, j >= i) from rows that are similar to row i in the columns before i."""
    n = len(prediction)
    prediction[i] = matrix[i - 1, i - 1] if i > 0 else 0.0
    if i < _SIMILAR_ROWS + 1:
        for j in range(i + 1, n):
            prediction[j] = matrix[i - 1, j] if i > 0 else 0.0
        return
    cap = 0.0
    for c in range(i):
        cap += abs(matrix[i, c])
    cap /= i
    # Column by column, so that inner loops are vectorised: the matrix is symmetric.
    for row in range(i):
        distances[row] = 0.0
    for c in range(i):
        value, own = matrix[i, c], distances[c]
        for row in range(i):
            distances[row] += min(abs(matrix[c, row] - value), cap)
        distances[c] = own
    for row in range(i):
        distances[row] /= i - 1
    for j in range(i + 1, n):
        prediction[j] = 0.0
    total = 0.0
    for _ in range(_SIMILAR_ROWS):
        best = 0
        for row in range(i):
            if distances[row] < distances[best]:
                best = row
        distance = distances[best]
        distances[best] = np.inf
        # The mean difference, with outliers clipped.
        offset, reach = 0.0, 2.0 * distance
        for c in range(i):
            if c != best:
                offset += min(max(matrix[i, c] - matrix[best, c], -reach), reach)
        offset /= i - 1
        near = distance + 0.005 * cap
        weight = 1.0 / (near * near * near) if near > 0.0 else 1.0
        total += weight
        for j in range(i + 1, n):
            prediction[j] += weight * (matrix[best, j] + offset)
    for j in range(i + 1, n):
        prediction[j] /= total
