"""How many digits approximate numbers are written with, so that the bound holds for the text."""

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.codec.blocks import Finish
from kernelatoms.codec.loops.text_fields import rounded

Array = NDArray[Any]

#: The most decimals.
MOST_DECIMALS = 18

#: Numbers are written with at most the decimals of their column, with more decimals, or with a
#: number of significant digits.
CLIPPED, EXTENDED, SIGNIFICANT = range(3)
_ALL_DIGITS = 17


def finisher(matrix: Array, low: Array, high: Array, whole: Array) -> Finish:
    """Return the ways to round decoded numbers, those with the fewest digits first.

    ``low`` and ``high`` are the fewest and the most decimals of the columns of ``matrix``; columns
    marked in ``whole`` hold integers.
    """
    room = _room(matrix)

    def finish(decoded: Array) -> Iterable[tuple[Array, bytes]]:
        for digits, form in _ways(decoded, matrix, room):
            finished = finish_numbers(decoded, digits, form, low, high, whole)
            yield finished, bytes([digits, form])

    return finish


def finish_numbers(
    decoded: Array, digits: int, form: int, low: Array, high: Array, whole: Array
) -> Array:
    """Return decoded numbers as rounded in their texts.

    ``digits`` are decimals, or significant digits; ``form`` is ``CLIPPED``, ``EXTENDED`` or
    ``SIGNIFICANT``. For the others see ``finisher``.
    """
    if form == SIGNIFICANT:
        finished = significant(decoded, digits)
        finished[:, whole] = rounded(decoded[:, whole], np.zeros(int(whole.sum()), np.int64))
        return finished
    return rounded(decoded, column_decimals(digits, form, low, high, whole))


def column_decimals(digits: int, form: int, low: Array, high: Array, whole: Array) -> Array:
    """Return the decimals of each column."""
    most = np.minimum(high, digits) if form == CLIPPED else np.full(len(high), digits)
    found = np.maximum(low, most).astype(np.int64)
    found[whole] = 0
    return found


def significant(values: Array, digits: int) -> Array:
    """Return numbers rounded to significant digits; 17 keep every bit."""
    if digits >= _ALL_DIGITS:
        return values.copy()
    flat = [float(f"{value:.{digits - 1}e}") for value in values.reshape(-1).tolist()]
    return np.array(flat).reshape(values.shape)


def _room(matrix: Array) -> float:
    """Return the median magnitude of nonzero values; 0 if there are none."""
    sizes = np.abs(matrix[np.isfinite(matrix) & (matrix != 0)])
    return float(np.median(sizes)) if len(sizes) else 0.0


def _ways(decoded: Array, rows: Array, room: float) -> Iterator[tuple[int, int]]:
    """Yield ways to round numbers, the shortest first; errors show how many decimals suffice."""
    errors = np.abs(decoded - rows)
    errors = errors[np.isfinite(errors) & (errors > 0)]
    step = float(np.median(errors)) if len(errors) else room * 1e-15
    enough = math.ceil(-math.log10(step)) + 1 if step > 0 else MOST_DECIMALS
    if enough <= MOST_DECIMALS:
        enough = max(enough, 0)
        yield from ((min(enough + more, MOST_DECIMALS), CLIPPED) for more in (0, 1, 2, 4))
        yield MOST_DECIMALS, CLIPPED
        yield from ((min(enough + more, MOST_DECIMALS), EXTENDED) for more in (1, 2, 4))
    for digits in (4, 6, 9, _ALL_DIGITS):
        yield digits, SIGNIFICANT
