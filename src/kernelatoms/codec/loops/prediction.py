"""Blocks of rows to integers and back: checks of the arguments of ``prediction_loops``.

See docs/decisions/052-codec-bounds.md.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.codec.loops import prediction_loops as loops
from kernelatoms.engine.cpu.threads import each

Array = NDArray[Any]

EXACT_ROW = int(loops.EXACT_ROW)
_HALF_OF_TRIANGLE = 0.293


def step_of(code: int) -> float:
    """Return 2^(code / 16), the same on every machine."""
    return float(loops.step_of(code))


def code_rows(block: Any, base: Array, sources: Array, weights: Array, order: Array) -> None:
    """Code or decode rows that are predicted as a whole; see the loop of that name."""
    n, m = _checked(block)
    n_known = len(block.decoded)
    if base.shape not in ((n, m), (0, m)) or sources.shape[0] != n or order.shape != (n,):
        raise ValueError("predictions, sources and order must be those of the rows.")
    if len(weights) and weights.shape != sources.shape:
        raise ValueError("weights must be one per source.")
    if n and (sources.min(initial=-1) < -1 or sources.max(initial=-1) >= n_known):
        raise ValueError("sources must be rows.")
    if not np.array_equal(np.sort(order), np.arange(n)):
        raise ValueError("order must hold every row once.")
    loops.code_rows(
        block.x, block.coded, block.given, base, sources, weights, order, block.limits,
        block.scale, block.absolute, block.trade, block.least, block.most, block.codes,
        block.kinds, block.k, block.decoded, block.decoding,
    )  # fmt: skip


def code_columns(block: Any, lags: Array, n_parents: int, fade: float, ridge: float) -> None:
    """Code or decode rows whose values are predicted one by one; see the loop of that name."""
    _checked(block)
    if not len(lags) or lags.min() < 1:
        raise ValueError("lags must be at least 1.")
    loops.code_columns(
        block.x, block.coded, block.given, lags, n_parents, fade, ridge, block.limits,
        block.scale, block.absolute, block.trade, block.least, block.most, block.codes,
        block.kinds, block.k, block.decoded, block.decoding,
    )  # fmt: skip


def code_combinations(block: Any, mean: Array, atoms: Array, own: Array, coefs: Array) -> None:
    """Code or decode rows that are predicted by atoms; see the loop of that name."""
    n, m = _checked(block)
    n_coefs = len(atoms) + (len(own) > 0)
    if mean.shape != (m,) or atoms.shape[1] != m or own.shape not in ((n, m), (0, m)):
        raise ValueError("mean and atoms must be as wide as the rows.")
    if block.side.shape != (n, n_coefs) or (not block.decoding and coefs.shape != (n, n_coefs)):
        raise ValueError("coefficients must be one per atom.")
    loops.code_combinations(
        block.x, block.coded, block.given, mean, atoms, own, coefs, block.limits, block.scale,
        block.absolute, block.trade, block.least, block.most, block.codes, block.kinds,
        block.side, block.k, block.decoded, block.decoding,
    )  # fmt: skip


def gaussian_preimages(
    weights: Array, step: float, atoms: Array, gamma: float, n_rounds: int
) -> Array:
    """Return the rows whose images are nearest to Gaussian expansions, identical on every machine.

    Parameters
    ----------
    weights : int32 array of shape (n, n_atoms)
        Weights of the atoms, in steps.
    step : float
        A step.
    atoms : array of shape (n_atoms, m)
        The anchors.
    gamma : float
        Of the kernel exp(-gamma |x - y|^2).
    n_rounds : int
        Rounds of the fixed point.
    """
    if weights.shape[1] != len(atoms):
        raise ValueError("weights must be one per atom.")
    rows = np.zeros((len(weights), atoms.shape[1]))
    loops.preimages(weights, step, atoms, gamma, n_rounds, rows)
    return rows


def predict_slice(block: Any, past: int, s: int, prediction: Array) -> bool:
    """Fill the prediction of slice s: medians of slices before; False if there are none."""
    n, m = _square(block, s)
    slices = block.decoded.reshape(-1, m, m)
    before = len(slices) - n // m + s
    past = min(past, before)
    past -= past > 0 and past % 2 == 0
    if past:
        loops.predict_slice(slices, before, past, prediction)
    return past > 0


def code_slice(
    block: Any, s: int, prediction: Array, alone: bool, sizes: Array, squares: Array, changed: Array
) -> Array:
    """Code or decode slice s of symmetric matrices; see the loop of that name.

    Returns
    -------
    errors : array of shape (m,)
        The squared error of every row, -inf where it fails; 0 where slices are decoded.
    """
    n, m = _square(block, s)
    if changed.shape != (m,) or any(a.shape != (m, m) for a in (prediction, sizes, squares)):
        raise ValueError("arrays of a slice must have its shape.")
    rows = slice(s * m, (s + 1) * m)
    decoded = block.decoded[len(block.decoded) - n :][rows]
    # Rows of the upper triangle, about as many entries in each part.
    cuts = [0, m] if alone else [0, round(_HALF_OF_TRIANGLE * m), m]
    errors = np.zeros((len(cuts) - 1, m))

    def work(part: int) -> None:
        loops.code_slice(
            block.x[rows], block.coded[rows], block.given[rows], alone, block.codes[rows], changed,
            block.scale, block.absolute, block.trade, sizes, prediction, block.k[rows], decoded,
            squares, errors[part], cuts[part], cuts[part + 1], block.decoding,
        )  # fmt: skip

    each(work, range(len(cuts) - 1))
    return errors.sum(axis=0)


def _square(block: Any, s: int) -> tuple[int, int]:
    n, m = _checked(block)
    if n % m or len(block.decoded) % m or not 0 <= s < n // m:
        raise ValueError("slices must be square.")
    return n, m


def _checked(block: Any) -> tuple[int, int]:
    n, m = block.k.shape
    rows = [block.coded, block.given, *([] if block.decoding else [block.x])]
    per_row = [block.codes, block.kinds, *([] if block.decoding else [block.limits])]
    if any(a.shape != (n, m) for a in rows) or any(a.shape != (n,) for a in per_row):
        raise ValueError("arrays of a block must have its shape.")
    if block.decoded.shape[1] != m or len(block.decoded) < n:
        raise ValueError("decoded must hold history and rows.")
    return n, m
