"""The predictors by name; each encodes or decodes a block.

- ``lags``: from rows before; symmetric slices from slices before.
- ``interpolation``: between rows before and after, the coarse ones first.
- ``columns``: every value from its column's past and from other columns of its row.
- ``pca``, ``ksvd``, ``kscdl``: from atoms; see ``dictionaries``.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from kernelatoms.codec.limits import CodecError
from kernelatoms.codec.loops import columns
from kernelatoms.codec.loops.rows import code_rows
from kernelatoms.codec.loops.slices import code_slices
from kernelatoms.codec.models import dictionaries
from kernelatoms.codec.models.codec_model import CodecModel, ReadyModel, check_description
from kernelatoms.codec.models.quantised import QuantisedBlock
from kernelatoms.engine import Array

# The forgetting factor per row, and the ridge relative to the inputs' mean square.
_FADE, _RIDGE = 0.999, 1e-3
# Limits on the settings of models of unknown origin.
_MOST_LAG, _MOST_PAST, _MOST_STRIDE, _MOST_LAGS, _MOST_PARENTS = 1 << 40, 9, 1 << 20, 8, 16
# Numbers in the sums of all columns.
_MOST_SUMS = 1 << 24


def code_lags(block: QuantisedBlock, model: CodecModel) -> None:
    """Predict rows as the median of rows ``lag``, 2 ``lag``, ... before, ``past`` of them."""
    lag, past = model.settings["lag"], model.settings["past"]
    if model.symmetric:
        code_slices(block, past)
        return
    n = len(block.k)
    rows = len(block.decoded) - n + np.arange(n)
    sources = np.stack([rows - lag * (i + 1) for i in range(past)], axis=1)
    sources[sources < 0] = -1
    # An odd number of rows has a middle one; without rows, the row before.
    n_past = (sources >= 0).sum(axis=1)
    even = (n_past > 0) & (n_past % 2 == 0)
    sources[even, n_past[even] - 1] = -1
    sources[n_past == 0, 0] = rows[n_past == 0] - 1
    code_rows(sources, np.empty((0, 0)), np.arange(n), *block.arguments)


def code_interpolation(block: QuantisedBlock, model: CodecModel) -> None:
    """Predict every second row from its neighbours, which are coded before in the same way."""
    n = len(block.k)
    first = len(block.decoded) - n
    order, sources, weights = interpolation(n, model.settings["stride"])
    sources[sources >= 0] += first
    if first:
        sources[0, 0], weights[0, 0] = first - 1, 1.0
    code_rows(sources, weights, order, *block.arguments)


def interpolation(n: int, stride: int) -> tuple[Array, Array, Array]:
    """Return the order of n rows, and the rows and weights that predict each of them.

    Rows 0, stride, 2 stride, ... come first, predicted by the one before; then those half way, by a
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


def code_columns(block: QuantisedBlock, model: CodecModel) -> None:
    """Predict every value by recursive least squares."""
    lags = np.array(model.settings["lags"], np.int64)
    n_parents = min(model.settings["parents"], model.n_columns - 1)
    columns.code_columns(lags, n_parents, _FADE, _RIDGE, *block.arguments)


def fits_columns(n_columns: int, n_lags: int, n_parents: int) -> bool:
    """Whether the sums of all columns, and the rows to choose parents by, fit in memory."""
    n_inputs = n_lags + 2 * n_parents + 1
    return n_columns * (n_inputs**2 + columns.CHOICE_ROWS) <= _MOST_SUMS


PREDICTORS: dict[str, Callable[[QuantisedBlock, CodecModel], None]] = {
    "lags": code_lags,
    "interpolation": code_interpolation,
    "columns": code_columns,
    "pca": dictionaries.code_dictionary,
    "ksvd": dictionaries.code_dictionary,
    "kscdl": dictionaries.code_kernel_dictionary,
}


def ready(model: CodecModel) -> ReadyModel:
    """Return a checked model with decoded atoms, once for all blocks; see ``check_model``."""
    if isinstance(model, ReadyModel):
        return model
    check_model(model)
    try:
        atoms = dictionaries.atoms_of(model) if model.predictor in dictionaries.LEARNED else None
    except ValueError as error:
        raise CodecError(f"the model's atoms cannot be read: {error}") from error
    return ReadyModel(**vars(model), mean_and_atoms=atoms)


def check_model(model: CodecModel) -> None:
    """Refuse a model of unknown origin whose settings are invalid."""
    check_description(model)
    name, settings = model.predictor, model.settings
    if name not in ("exact", *PREDICTORS):
        raise CodecError(f"no predictor has the name {name[:40]!r}.")
    square = name == "lags" and model.slice_rows in (0, model.n_columns)
    if model.symmetric and not square:
        raise CodecError("symmetric slices can only be predicted from slices before.")
    history = model.arrays.get("history")
    if history is not None and not (
        history.ndim == 2 and history.shape[1] == model.n_columns and history.dtype.kind == "f"
        and np.isfinite(history).all()
        and not (model.symmetric and len(history) % model.n_columns)
    ):  # fmt: skip
        raise CodecError("the model's history does not fit its rows.")
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
            raise CodecError("the model's lags are not a short list.")
        for lag in lags:
            _check_number(lag, "lag", 1, _MOST_LAG)
        _check_number(settings.get("parents"), "parents", 0, _MOST_PARENTS)
        parents = min(settings["parents"], model.n_columns - 1)
        if not fits_columns(model.n_columns, len(lags), parents):
            raise CodecError(f"{model.n_columns} columns are too many to learn from each other.")
    elif name != "exact":
        dictionaries.check_dictionary(model)


def longest_lag(model: CodecModel) -> int:
    """Return the rows that a model looks back; 0 if it has no lags."""
    if model.predictor == "columns":
        return int(max(model.settings["lags"]))
    return int(model.settings["lag"]) if model.predictor == "lags" else 0


def _check_number(value: Any, name: str, least: int, most: int) -> None:
    if type(value) is not int or not least <= value <= most:
        raise CodecError(
            f"the model's {name} must be a whole number from {least} to {most}, "
            f"not {str(value)[:40]!r}."
        )


# The costs of a symmetric slice and of a block, in values of the fastest predictor (``lags``).
_SLICE, _BLOCK = 100, 1000
# Products and sums that take as long as one value.
_PRODUCTS, _SQUARES, _SUMS = 500, 100, 64
# Products per weight of a Gaussian pre-image, over all rounds.
_PREIMAGE = 24


def decoding_cost(model: ReadyModel, n_rows: int, n_blocks: int) -> int:
    """Return the time that decoding takes, in values of the fastest predictor.

    Such a value takes about a microsecond at worst. Rates were measured; they need to be right only
    within a factor of a few to recognise a hostile file.
    """
    m, settings = model.n_columns, model.settings
    n_values = n_rows * m
    found, setup = n_values + n_rows, m * len(model.arrays.get("history", ()))
    if model.symmetric:
        found += _SLICE * (n_rows // m)
    elif model.predictor == "columns":
        squares = (len(settings["lags"]) + 2 * min(settings["parents"], m - 1) + 1) ** 2
        found += n_values * squares // _SQUARES
        setup += m * (squares + columns.CHOICE_ROWS)
    elif model.mean_and_atoms is not None:
        products = len(model.mean_and_atoms[1])
        products *= _PREIMAGE if model.predictor == "kscdl" else 1
        found += n_values * products // _PRODUCTS
    return found + n_blocks * (_BLOCK + setup // _SUMS)
