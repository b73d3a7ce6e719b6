"""Reconstructions beside signals with missing values (NaN).

See docs/decisions/065-learning-from-observed-values.md.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.engine.cpu.jit import jit
from kernelatoms.engine.cpu.products import block_rows, check_shape
from kernelatoms.engine.cpu.threads import each_block

Array = NDArray[Any]


@jit(fastmath=True)
def _reconstruct(dictionary, indices, values, out):
    """Write the reconstruction of one signal."""
    out[:] = 0
    for j in range(indices.shape[0]):
        if indices[j] >= 0:
            atom = dictionary[indices[j]]
            c = values[j]
            for i in range(out.shape[0]):
                out[i] += c * atom[i]


@jit(fastmath=True)
def _fill(signals, dictionary, indices, values, out, missing):
    for s in range(signals.shape[0]):
        row = out[s]
        _reconstruct(dictionary, indices[s], values[s], row)
        size = 0.0
        for j in range(values.shape[1]):
            size += np.float64(values[s, j]) * values[s, j]
        for i in range(row.shape[0]):
            x = signals[s, i]
            unknown = np.isnan(x)
            row[i] = row[i] if unknown else x
            missing[i] += size if unknown else 0.0


@jit(fastmath=True)
def _residuals(signals, dictionary, indices, values, factors, out):
    for s in range(signals.shape[0]):
        row = out[s]
        _reconstruct(dictionary, indices[s], values[s], row)
        for i in range(row.shape[0]):
            x = signals[s, i]
            row[i] = row.dtype.type(0) if np.isnan(x) else factors[i] * (x - row[i])


def fill_missing(
    signals: Array, dictionary: Array, indices: NDArray[np.int32], values: Array
) -> tuple[Array, Array]:
    """Return signals with what padded codes reconstruct in place of their missing values.

    And, per feature, the sum of the |code|^2 of the signals where it is missing.
    """
    _check(signals, dictionary, indices, values)
    out = np.empty_like(signals)
    rows = block_rows(len(out), out.shape[1], out.itemsize)
    missing = np.zeros((-(-len(out) // rows), signals.shape[1]))

    def worker(start: int, stop: int) -> None:
        part = slice(start, stop)
        _fill(
            signals[part], dictionary, indices[part], values[part], out[part],
            missing[start // rows],
        )  # fmt: skip

    each_block(len(out), rows, lambda: worker)
    return out, missing.sum(axis=0)


def observed_residuals(
    signals: Array,
    dictionary: Array,
    indices: NDArray[np.int32],
    values: Array,
    factors: Array | None = None,
) -> Array:
    """Return signals less their reconstructions, 0 where values are missing.

    Column i is multiplied by ``factors[i]``, if given.
    """
    _check(signals, dictionary, indices, values)
    if factors is None:
        factors = np.ones(signals.shape[1])
    check_shape(factors, "factors", (signals.shape[1],))
    factors = factors.astype(signals.dtype)
    out = np.empty_like(signals)

    def worker(start: int, stop: int) -> None:
        part = slice(start, stop)
        _residuals(signals[part], dictionary, indices[part], values[part], factors, out[part])

    each_block(len(out), block_rows(len(out), out.shape[1], out.itemsize), lambda: worker)
    return out


def _check(signals: Array, dictionary: Array, indices: Array, values: Array) -> None:
    check_shape(dictionary, "dictionary", (len(dictionary), signals.shape[1]))
    check_shape(indices, "indices", (len(signals), indices.shape[1]))
    check_shape(values, "values", indices.shape)
