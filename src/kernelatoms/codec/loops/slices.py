"""Symmetric matrices, of which one half is stored: rows of a slice depend on each other.

The step of an entry depends on two rows: 1 / step^2 is the sum of theirs.
"""

import math
from typing import Any

import numpy as np

from kernelatoms.codec.loops.cells import LARGEST, cell_at, cell_value, nearest_cell, step_of
from kernelatoms.engine import Array
from kernelatoms.engine.cpu.jit import jit
from kernelatoms.engine.cpu.threads import each

_SIMILAR_ROWS = 3
# The share of rows of the upper triangle that have half of its entries.
_HALF_OF_TRIANGLE = 0.293
# Rounds of the search for the steps of a slice's rows; after the free ones, steps only shrink.
_ROUNDS, _FREE_ROUNDS = 40, 8


def code_slices(block: Any, past: int) -> None:
    """Code or decode the slices of a block, predicted by medians of ``past`` slices before."""
    n, m = block.k.shape
    slices = block.decoded.reshape(-1, m, m)
    first = len(slices) - n // m
    prediction, sizes, squares = np.zeros((m, m)), np.zeros((m, m)), np.zeros((m, m))
    below = np.tril(np.ones((m, m), bool), -1)
    for s in range(first, len(slices)):
        n_past = min(past, s)
        n_past -= n_past > 0 and n_past % 2 == 0
        if n_past:
            _predict_slice(slices, s, n_past, prediction)
        one = _Slice(block, s - first, slices[s], prediction, n_past == 0, sizes, squares)
        if block.decoding:
            one.code(np.ones(m, bool))
        else:
            one.settle()
            one.learn_sizes()
        slices[s][below] = slices[s].T[below]


class _Slice:
    """One slice of a block; ``alone`` if there is none before it."""

    def __init__(
        self, block: Any, s: int, decoded: Array, prediction: Array, alone: bool, sizes: Array,
        squares: Array,
    ) -> None:  # fmt: skip
        m = len(decoded)
        self._block, self._rows = block, slice(s * m, (s + 1) * m)
        self._codes, self._k = block.codes[self._rows], block.k[self._rows]
        self._before = block.codes[(s - 1) * m : s * m] if s else None
        self._decoded, self._prediction, self._alone = decoded, prediction, alone
        self._sizes, self._squares = sizes, squares

    def code(self, changed: Array) -> Array:
        """Code or decode the slice where rows have changed; return the rows' squared errors.

        Errors are -inf where a row fails, and 0 when decoding.
        """
        block, rows, m = self._block, self._rows, len(changed)
        # Rows of the upper triangle, about as many entries in each part.
        cuts = [0, m] if self._alone else [0, round(_HALF_OF_TRIANGLE * m), m]
        errors = np.zeros((len(cuts) - 1, m))

        def work(part: int) -> None:
            _code_slice(
                block.x[rows], block.coded[rows], block.given[rows], self._alone, self._codes,
                changed, block.scale, block.absolute, block.trade, self._sizes, self._prediction,
                self._k, self._decoded, self._squares, errors[part], cuts[part], cuts[part + 1],
                block.decoding,
            )  # fmt: skip

        each(work, range(len(cuts) - 1))
        return errors.sum(axis=0)

    def settle(self) -> None:
        """Find the largest steps that keep every row within its limit.

        All steps move together by how far each row is from its limit, and finally only those of
        rows that fail.
        """
        block, codes = self._block, self._codes
        coded, limits = block.coded[self._rows], block.limits[self._rows] ** 2
        live = np.asarray(coded.any(axis=1) | coded.any(axis=0))
        if self._before is not None:
            codes[:] = self._before
        else:
            guess = np.floor(8 * np.log2(np.clip(limits * 24 / len(codes), 1e-300, 1e300)))
            codes[:] = np.clip(guess, block.least, block.most)
        self._squares[:] = 0
        changed = np.ones(len(codes), bool)
        for i in range(_ROUNDS):
            errors = self.code(changed)
            good = ~live | ((errors >= 0) & (errors <= limits))
            if i == _ROUNDS - 1 or (i >= _FREE_ROUNDS and good.all()):
                break
            with np.errstate(divide="ignore", invalid="ignore"):
                move = -6 * np.log2(errors / limits) + 0.5 * good
            move = np.clip(np.floor(np.nan_to_num(move, nan=0.0)), -8, 4)
            move = np.where(errors >= 0, move, -16)
            if i < _FREE_ROUNDS:
                move[~live | (good & (errors > 0.96 * limits))] = 0
            else:
                # Good rows may fail when others change: shrinking steps make the search end.
                move = np.where(good, 0, np.minimum(move, -1 - (i - _FREE_ROUNDS) // 4))
            moved = np.clip(codes + move, block.least, block.most)
            # Rows predicted from each other all change.
            changed = (moved != codes) | self._alone
            codes[:] = moved

    def learn_sizes(self) -> None:
        """Update the mean magnitudes of residuals, by entries and by their rows."""
        rates = np.exp2(-self._codes / 8.0)
        left = np.minimum(np.abs(self._k), 20) * (1 / np.sqrt(rates[:, None] + rates))
        left = left + np.triu(left, 1).T
        means = left.mean(axis=1)
        self._sizes *= 0.25
        self._sizes += 0.35 * left + 0.2 * (means[:, None] + means)


@jit()
def _predict_slice(decoded, s, past, prediction):  # type: ignore[no-untyped-def]
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
def _code_slice(  # type: ignore[no-untyped-def]
    x, coded, given, alone, codes, changed, scale, absolute, trade, sizes, prediction, k, decoded,
    squares, errors, start, stop, decoding,
):  # fmt: skip
    """Code rows ``start`` to ``stop`` of a symmetric matrix: entries on and above the diagonal.

    ``alone`` says that rows are predicted from the most similar rows of the slice: ``prediction``
    and ``decoded`` below the diagonal are filled too. Otherwise other rows may be coded at the same
    time. Entries of rows whose ``codes`` have not ``changed`` stay. ``squares`` are the squared
    errors of entries, -inf where they fail, and are added to the ``errors`` of their rows;
    ``sizes`` are the mean magnitudes of residuals, for the encoder.
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
                middle, width = cell_at(row[j], step, scale, j)
                if not decoding:
                    near = nearest_cell(x[i, j], middle, width, scale, sizes[i, j], trade, absolute)
                    error = (x[i, j] - cell_value(middle, width, scale, near)) ** 2
                    if not (abs(near) <= LARGEST and math.sqrt(error) <= absolute):
                        near, error = 0.0, -np.inf
                    k[i, j] = np.int32(near)
                    squares[i, j] = error
                decoded[i, j] = cell_value(middle, width, scale, np.float64(k[i, j]))
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
