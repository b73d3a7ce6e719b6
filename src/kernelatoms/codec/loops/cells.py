"""Cells: a value and its prediction to an integer and back, and rows of them.

A value x with prediction p becomes the integer k of its cell: cells are as wide as the row's step,
2^(code / 16), and the middle one is at p. Values on a grid (``scale`` points per unit: 10 for one
decimal) have cells of whole grid points, which is exact for a step of one point.

Encoder and decoder of a predictor are the same code: the encoder searches the largest step that
keeps the row within its limit, the decoder reads steps and integers. Everything else that they use
is decoded already. Sums have a fixed order and predictions use only + - * / sqrt and floor, so that
every machine decodes the same numbers.

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
LARGEST = 1 << 26
NO_STEP = np.int32(-(1 << 30))
# The kind of a row that is stored exactly.
EXACT_ROW = np.uint8(1)
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
def cell_at(prediction, step, scale, column):  # type: ignore[no-untyped-def]
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
def cell_value(middle, width, scale, k):  # type: ignore[no-untyped-def]
    """Return the value of a cell."""
    value = middle + k * width
    return value if scale == 0.0 else value / scale


@jit()
def nearest_cell(x, middle, width, scale, size, trade, absolute):  # type: ignore[no-untyped-def]
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
    if farther < trade * bits and abs(x - cell_value(middle, width, scale, nearer)) <= absolute:
        return nearer
    return k


@jit()
def code_row(x, coded, given, prediction, step, scale, sizes, trade, absolute, k, row):  # type: ignore[no-untyped-def]
    """Fill a row's integers and decoded values; return its squared error, negative if it fails."""
    error = 0.0
    for j in range(len(row)):
        if coded[j]:
            middle, width = cell_at(prediction[j], step, scale, j)
            near = nearest_cell(x[j], middle, width, scale, sizes[j], trade, absolute)
            # "not <=": NaN, where numbers overflow, fails too.
            if not abs(near) <= LARGEST:
                return -1.0
            k[j] = np.int32(near)
            row[j] = cell_value(middle, width, scale, near)
            if not abs(x[j] - row[j]) <= absolute:
                return -1.0
            error += (x[j] - row[j]) ** 2
        else:
            k[j] = 0
            row[j] = prediction[j] if math.isnan(given[j]) else given[j]
    return error


@jit()
def decode_row(coded, given, prediction, step, scale, k, row):  # type: ignore[no-untyped-def]
    """Fill a row's decoded values from its integers."""
    for j in range(len(row)):
        if coded[j]:
            middle, width = cell_at(prediction[j], step, scale, j)
            row[j] = cell_value(middle, width, scale, np.float64(k[j]))
        else:
            row[j] = prediction[j] if math.isnan(given[j]) else given[j]


@jit()
def store_exactly(x, coded, given, k, row):  # type: ignore[no-untyped-def]
    """Move the coded values of a row to the given ones."""
    for j in range(len(row)):
        k[j] = 0
        if coded[j]:
            coded[j] = 0
            given[j] = x[j]
            row[j] = x[j]


@jit()
def learn_sizes(k, coded, step, sizes):  # type: ignore[no-untyped-def]
    """Update the mean magnitudes of the residuals of columns."""
    for j in range(len(k)):
        if coded[j]:
            sizes[j] += 0.1 * (abs(k[j]) * step - sizes[j])


@jit()
def first_guess(limit, coded, scale, least, most):  # type: ignore[no-untyped-def]
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
