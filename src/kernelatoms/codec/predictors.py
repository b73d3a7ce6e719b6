"""How rows are predicted, by name: each codes a block, or decodes it, with what its model says.

- ``lags``: as some rows before; of symmetric slices, as in the slices before.
- ``interpolation``: between rows before and after, the coarse ones first.
- ``columns``: every value from its column's past and from other columns of its row.
- ``pca``, ``ksvd``, ``kscdl``: by atoms; see ``dictionaries``.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.codec.dictionaries import (
    atoms_of,
    check_dictionary,
    code_dictionary,
    code_kernel_dictionary,
)
from kernelatoms.codec.errors import CodecError
from kernelatoms.codec.models import CodecModel, ReadyModel
from kernelatoms.codec.quantised import Block, engine_of

Array = NDArray[Any]

# Rounds of the search for the steps of a slice's rows, and when it only makes steps smaller.
_ROUNDS, _FREE_ROUNDS = 40, 8
# What a model of unknown origin may ask for: more is never met, and would take memory or days.
_MOST_LAG, _MOST_PAST, _MOST_STRIDE, _MOST_LAGS, _MOST_PARENTS = 1 << 40, 9, 1 << 20, 8, 16
# Numbers that the least squares of all columns may keep, and rows that the engine chooses by.
_MOST_SUMS = 1 << 24
_CHOICE_ROWS = 512


def code_lags(block: Block, model: CodecModel) -> None:
    """Predict rows as the median of rows ``lag``, 2 ``lag``, ... before, ``past`` of them."""
    lag, past = model.settings["lag"], model.settings["past"]
    if model.symmetric:
        _code_slices(block, past)
        return
    n = len(block.k)
    first = len(block.decoded) - n
    rows = first + np.arange(n)
    sources = np.stack([rows - lag * (i + 1) for i in range(past)], axis=1)
    sources[sources < 0] = -1
    # An odd number of rows has a median of its own; without any, the row before.
    n_past = (sources >= 0).sum(axis=1)
    even = (n_past > 0) & (n_past % 2 == 0)
    sources[even, n_past[even] - 1] = -1
    sources[n_past == 0, 0] = rows[n_past == 0] - 1
    engine_of(block).code_rows(
        block, np.empty((0, block.k.shape[1])), sources, np.empty((0, 0)), np.arange(n)
    )


def _code_slices(block: Block, past: int) -> None:
    """Code symmetric slices one by one; the encoder looks for the steps of all rows of one."""
    engine, (n, m) = engine_of(block), block.k.shape
    prediction, sizes, squares = np.zeros((m, m)), np.zeros((m, m)), np.zeros((m, m))
    below = np.tril(np.ones((m, m), bool), -1)
    for s in range(n // m):
        alone = not engine.predict_slice(block, past, s, prediction)
        code = partial(engine.code_slice, block, s, prediction)
        if block.decoding:
            code(alone, sizes, squares, np.ones(m, bool))
        else:
            _settle_slice(block, s, alone, code, sizes, squares)
            _learn_sizes(block, s, sizes)
        decoded = block.rows[s * m : (s + 1) * m]
        decoded[below] = decoded.T[below]


def _settle_slice(
    block: Block, s: int, alone: bool, code: Callable[..., Array], sizes: Array, squares: Array
) -> None:
    """Find steps that keep every row of a slice within its limit, each as large as can be.

    An entry's step belongs to two rows, so that all are moved at once by how far each is from its
    limit, and at last only those that fail.
    """
    m = block.k.shape[1]
    rows = slice(s * m, (s + 1) * m)
    codes, limits = block.codes[rows], block.limits[rows] ** 2
    live = np.asarray(block.coded[rows].any(axis=1) | block.coded[rows].any(axis=0))
    if s:
        codes[:] = block.codes[(s - 1) * m : s * m]
    else:
        guess = np.floor(8 * np.log2(np.clip(limits * 24 / m, 1e-300, 1e300)))
        codes[:] = np.clip(guess, block.least, block.most)
    squares[:] = 0
    changed = np.ones(m, bool)
    for i in range(_ROUNDS):
        errors = code(alone, sizes, squares, changed)
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
            # Rows that were good may fail when others change: in the end all come to rest.
            move = np.where(good, 0, np.minimum(move, -1 - (i - _FREE_ROUNDS) // 4))
        moved = np.clip(codes + move, block.least, block.most)
        # Rows that are predicted from each other all change.
        changed = (moved != codes) | alone
        codes[:] = moved


def _learn_sizes(block: Block, s: int, sizes: Array) -> None:
    """Bring the mean magnitudes of what is left up to date, by entries and by their rows."""
    m = block.k.shape[1]
    rows = slice(s * m, (s + 1) * m)
    left = np.minimum(np.abs(block.k[rows]), 20) * _steps(block.codes[rows])
    left = left + np.triu(left, 1).T
    means = left.mean(axis=1)
    sizes *= 0.25
    sizes += 0.35 * left + 0.2 * (means[:, None] + means)


def _steps(codes: Array) -> Array:
    rates = np.exp2(-codes / 8.0)
    return np.asarray(1 / np.sqrt(rates[:, None] + rates))


def code_interpolation(block: Block, model: CodecModel) -> None:
    """Predict every second row from those around it, after coding these in the same way."""
    n = len(block.k)
    first = len(block.decoded) - n
    order, sources, weights = interpolation(n, model.settings["stride"])
    sources[sources >= 0] += first
    if first:
        sources[0, 0], weights[0, 0] = first - 1, 1.0
    engine_of(block).code_rows(block, np.empty((0, block.k.shape[1])), sources, weights, order)


def interpolation(n: int, stride: int) -> tuple[Array, Array, Array]:
    """Return the order of n rows, and of each the rows and weights that it is predicted by.

    Rows 0, stride, 2 stride, ... come first, each as the one before; then those half way, by a
    cubic through four rows, a line through two, or the row before; and so on.
    """
    sources, weights = np.full((n, 4), -1, np.int64), np.zeros((n, 4))
    coarse = np.arange(0, n, stride)
    order = [coarse]
    sources[coarse[1:], 0], weights[coarse[1:], 0] = coarse[:-1], 1.0
    while stride > 1:
        half = stride // 2
        rows = np.arange(half, n, stride)
        around = rows[:, None] + half * np.array([-1, 1, -3, 3])
        there = (around >= 0) & (around < n)
        sources[rows] = np.where(there, around, -1)
        cubic, line = there.all(axis=1), there[:, :2].all(axis=1)
        weights[rows] = [1.0, 0, 0, 0]
        weights[rows[line]] = [0.5, 0.5, 0, 0]
        weights[rows[cubic]] = [0.5625, 0.5625, -0.0625, -0.0625]
        order.append(rows)
        stride = half
    return np.concatenate(order), sources, weights


def code_columns(block: Block, model: CodecModel) -> None:
    """Predict every value by least squares that go on learning."""
    settings = model.settings
    lags, parents = np.array(settings["lags"], np.int64), settings["parents"]
    n_parents = min(parents, model.n_columns - 1)
    engine_of(block).code_columns(block, lags, n_parents, FADE, RIDGE)


def fits_columns(n_columns: int, n_lags: int, n_parents: int) -> bool:
    """Return whether the sums of so many columns, and rows to choose parents by, are small."""
    n_inputs = n_lags + 2 * n_parents + 1
    return n_columns * (n_inputs**2 + _CHOICE_ROWS) <= _MOST_SUMS


# How much less the row before counts, and the ridge relative to the inputs' mean square.
FADE = 0.999
RIDGE = 1e-3

PREDICTORS: dict[str, Callable[[Block, CodecModel], None]] = {
    "lags": code_lags,
    "interpolation": code_interpolation,
    "columns": code_columns,
    "pca": code_dictionary,
    "ksvd": code_dictionary,
    "kscdl": code_kernel_dictionary,
}


def ready(model: CodecModel) -> ReadyModel:
    """Return a checked model with its atoms decoded: what takes long is done once, not per block.

    Raises
    ------
    CodecError
        As ``check_model``.
    """
    if isinstance(model, ReadyModel):
        return model
    check_model(model)
    try:
        atoms = atoms_of(model) if model.predictor in ("pca", "ksvd", "kscdl") else None
    except ValueError as error:
        raise CodecError(f"the model's atoms cannot be read: {error}") from error
    return ReadyModel(**vars(model), mean_and_atoms=atoms)


def check_model(model: CodecModel) -> None:
    """Refuse a model of unknown origin whose settings could not be coded or decoded with.

    Raises
    ------
    CodecError
        That names what is wrong.
    """
    name = model.predictor
    if not isinstance(name, str) or name not in ("exact", *PREDICTORS):
        raise CodecError(f"no predictor has the name {str(name)[:40]!r}.")
    if not isinstance(model.settings, Mapping):
        raise CodecError("the model's settings are none.")
    _check_number(model.n_columns, "n_columns", 1, 1 << 40)
    _check_number(model.slice_rows, "slice_rows", 0, 1 << 40)
    square = name == "lags" and model.slice_rows in (0, model.n_columns)
    if type(model.symmetric) is not bool or (model.symmetric and not square):
        raise CodecError("of symmetric slices, only those before are looked at.")
    history = model.arrays.get("history")
    if history is not None and not (
        history.ndim == 2 and history.shape[1] == model.n_columns and history.dtype.kind == "f"
        and np.isfinite(history).all()
        and not (model.symmetric and len(history) % model.n_columns)
    ):  # fmt: skip
        raise CodecError("the model's history is not of rows like those to come.")
    settings = model.settings
    if name == "lags":
        _check_number(settings.get("lag"), "lag", 1, _MOST_LAG)
        _check_number(settings.get("past"), "past", 1, _MOST_PAST)
    elif name == "interpolation":
        stride = settings.get("stride", 0)
        _check_number(stride, "stride", 2, _MOST_STRIDE)
        if stride & (stride - 1):
            raise CodecError(f"the model's stride must be a power of two, not {stride}.")
    elif name == "columns":
        lags = settings.get("lags")
        if not isinstance(lags, list) or not 0 < len(lags) <= _MOST_LAGS:
            raise CodecError("the model's lags are no short list.")
        for lag in lags:
            _check_number(lag, "lag", 1, _MOST_LAG)
        _check_number(settings.get("parents"), "parents", 0, _MOST_PARENTS)
        parents = min(settings["parents"], model.n_columns - 1)
        if not fits_columns(model.n_columns, len(lags), parents):
            raise CodecError(f"{model.n_columns} columns are too many to learn from each other.")
    elif name != "exact":
        check_dictionary(model)


def longest_lag(model: CodecModel) -> int:
    """Return how far a model looks back, 0 where it does not say."""
    if model.predictor == "columns":
        return int(max(model.settings["lags"]))
    return int(model.settings["lag"]) if model.predictor == "lags" else 0


def _check_number(value: Any, name: str, least: int, most: int) -> None:
    # True is no number here.
    if type(value) is not int or not least <= value <= most:
        raise CodecError(
            f"the model's {name} must be a whole number from {least} to {most}, "
            f"not {str(value)[:40]!r}."
        )
