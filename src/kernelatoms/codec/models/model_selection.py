"""Model selection: the model that takes the fewest bytes on rows that it has not learned from.

Every candidate codes the last quarter of a sample of the rows under the bound. Adaptive models have
seen the three quarters before; models with atoms have learned from them. Candidates within 15% of
the best code the whole sample, which decides.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np

from kernelatoms.codec.bounds import Bound
from kernelatoms.codec.models.codec_model import CodecModel
from kernelatoms.codec.models.dictionaries import LEARNED, learned_models
from kernelatoms.codec.models.matrix import encode_matrix
from kernelatoms.codec.models.predictors import PREDICTORS, fits_columns
from kernelatoms.engine import Array

# Values that candidates are compared on, and the fewest slices.
_TRIED_VALUES, _TRIED_SLICES = 1 << 18, 6
# Rows of history for the model of columns.
_HISTORY_ROWS = 2048
# Rows and columns in which periods are searched, and the least correlation of a period.
_LAG_ROWS, _LAG_COLUMNS = 1 << 14, 32
_LEAST_CORRELATION = 0.15
_AS_CLEAR = 0.03
# Candidates within this factor of the fewest bytes are compared on the whole sample.
_CLOSE = 1.15
#: Names of models.
NAMES = ("exact", *PREDICTORS)
#: A candidate: its predictor, the estimated bytes of all rows including the model, its settings.
Trial = tuple[str, int, str]


class Choice(NamedTuple):
    """The chosen model, and all candidates, the best first."""

    model: CodecModel
    trials: list[Trial]


def parts_to_try(rows: Array, slice_rows: int = 0) -> tuple[Array, Array]:
    """Return the rows that candidates learn from, and those that they are compared on."""
    unit = slice_rows or 1
    n_units = len(rows) // unit
    wanted = max(_TRIED_VALUES // max(1, unit * rows.shape[1]), _TRIED_SLICES)
    n_tried = min(n_units, wanted)
    cut = max(n_tried * 3 // 4, min(1, n_tried - 1)) * unit
    return rows[:cut], rows[cut : n_tried * unit]


def choose_model(
    rows: Array, bound: Bound, *, slice_rows: int = 0, symmetric: bool | None = None,
    names: Sequence[str] | None = None, n_rows: int | None = None,
) -> Choice:  # fmt: skip
    """Return the model with which rows take the fewest bytes.

    ``rows`` are the first of ``n_rows``; slices are stacked. Without ``symmetric``, symmetry is
    checked. Without ``names``, all models are compared, but only "exact" and "lags" on symmetric
    matrices: only "lags" stores each entry of them once.
    """
    if symmetric is None:
        symmetric = is_symmetric(rows, slice_rows)
    seen, tried = parts_to_try(rows, rows.shape[1] if symmetric else slice_rows)
    wanted = names or (("exact", "lags") if symmetric else NAMES)
    candidates = [m for m in _candidates(rows, slice_rows, symmetric) if m.predictor in wanted]
    candidates += learned_models(seen, bound, slice_rows, wanted)
    if "exact" in wanted or not candidates:
        candidates.append(CodecModel("exact", rows.shape[1], slice_rows))
    n_all = len(rows) if n_rows is None else n_rows

    def estimate(model: CodecModel, part: Array, history: Array) -> float:
        n_bytes = len(encode_matrix(part, bound, with_history(model, history)))
        return len(model.to_bytes()) + n_bytes * n_all / max(1, len(part))

    sizes = [estimate(model, tried, seen) for model in candidates]
    close = [i for i, size in enumerate(sizes) if size <= _CLOSE * min(sizes)]
    if len(close) > 1:
        # Without history, as they will start.
        part = np.concatenate([seen, tried])
        for i in close:
            sizes[i] = estimate(candidates[i], part, part[:0])
    order = sorted(range(len(sizes)), key=lambda i: (i not in close, sizes[i]))
    trials = [(candidates[i].predictor, round(sizes[i]), note(candidates[i])) for i in order]
    return Choice(_learned_from_all(candidates[order[0]], rows, bound), trials)


def _learned_from_all(model: CodecModel, rows: Array, bound: Bound) -> CodecModel:
    """Return the chosen model with its atoms learned again, from all rows."""
    if model.predictor not in LEARNED:
        return model
    gamma = model.settings.get("gamma")
    again = learned_models(rows, bound, model.slice_rows, [model.predictor], gamma=gamma)
    return next(again, model)


def is_symmetric(rows: Array, slice_rows: int = 0) -> bool:
    """Whether all slices, or the matrix, are symmetric."""
    n, m = rows.shape
    if m < 2 or (slice_rows or n) != m or n % m:
        return False
    slices = rows.reshape(-1, m, m)
    return np.array_equal(slices, slices.transpose(0, 2, 1), equal_nan=True)


def with_history(model: CodecModel, rows: Array) -> CodecModel:
    """Return a model that continues from these rows, as far as it looks back."""
    settings = model.settings
    if model.predictor == "lags":
        n = (model.n_columns if model.symmetric else settings["lag"]) * settings["past"]
    elif model.predictor == "columns":
        n = _HISTORY_ROWS + max(settings["lags"])
    else:
        n = 1 if model.predictor == "interpolation" else 0
    history = _bridged(rows[max(0, len(rows) - n) :])
    if not n or not len(history):
        return model
    return replace(model, arrays={**model.arrays, "history": history})


def without_history(model: CodecModel) -> CodecModel:
    """Return a model without history."""
    arrays = {name: array for name, array in model.arrays.items() if name != "history"}
    return replace(model, arrays=arrays)


def _bridged(rows: Array) -> Array:
    """Return rows with missing values replaced by the last value of the column, or 0."""
    there = np.isfinite(rows)
    last = np.maximum.accumulate(np.where(there, np.arange(len(rows))[:, None], 0), axis=0)
    filled = np.take_along_axis(rows, last, axis=0)
    return np.where(np.isfinite(filled), filled, 0).astype(rows.dtype)


def note(model: CodecModel) -> str:
    """Describe the settings of a model."""
    settings = model.settings
    words = ["one half of symmetric matrices"] if model.symmetric else []
    if model.symmetric:
        past = settings["past"]
        words.append("the slice before" if past == 1 else f"the median of {past} slices before")
    elif model.predictor == "lags":
        lag, past = settings["lag"], settings["past"]
        words.append(f"{lag} rows before" if lag > 1 else "the row before")
        words += [f"the median of {past}"] if past > 1 else []
    elif model.predictor == "columns":
        lags = " and ".join(str(lag) for lag in settings["lags"])
        words += [f"rows {lags} before", f"{settings['parents']} other columns"]
    elif model.predictor == "interpolation":
        words.append(f"between every {settings['stride']}th row and halves of that")
    elif "n_atoms" in settings:
        words.append(f"{settings['n_atoms']} atoms")
        words += [f"gamma {settings['gamma']:.3g}"] if "gamma" in settings else []
    return ", ".join(words)


def _candidates(rows: Array, slice_rows: int, symmetric: bool) -> Iterator[CodecModel]:
    """Yield the candidates that need no training."""
    m = rows.shape[1]
    lags = [lag for lag in dict.fromkeys([slice_rows, *find_lags(rows)]) if 1 < lag < len(rows)]
    for lag, past in product([m] if symmetric else [1, *lags], (1, 3, 5) if symmetric else (1, 3)):
        yield CodecModel("lags", m, slice_rows, symmetric, {"lag": lag, "past": past})
    yield CodecModel("interpolation", m, slice_rows, settings={"stride": 64})
    parents = min(8, m - 1)
    for chosen in ([1], [1, 2, *(lag for lag in lags[:2] if lag > 2)]):
        settings = {"lags": chosen, "parents": parents}
        if fits_columns(m, len(chosen), parents):
            yield CodecModel("columns", m, slice_rows, settings=settings)


def find_lags(rows: Array) -> list[int]:
    """Return up to two periods, the clearest first: peaks of the columns' mean autocorrelation."""
    part = rows[:_LAG_ROWS, :: max(1, rows.shape[1] // _LAG_COLUMNS)].astype(np.float64)
    n = len(part)
    if n < 16:
        return []
    finite = np.isfinite(part)
    part = np.where(finite, part, 0.0)
    scale = np.abs(part).max(axis=0)
    part /= np.where(scale > 0, scale, 1.0)
    means = part.sum(axis=0) / np.maximum(finite.sum(axis=0), 1)
    centred = np.where(finite, part - means, 0.0)
    energy = (centred**2).sum(axis=0)
    centred = centred[:, energy > 0] / np.sqrt(energy[energy > 0])
    if not centred.shape[1]:
        return []
    power = np.abs(np.fft.rfft(centred, 2 * n, axis=0)) ** 2
    correlation = np.fft.irfft(power.mean(axis=1))[: n // 2] * n / (n - np.arange(n // 2))
    inner = correlation[3:-3]
    stop = len(correlation) - 3
    around = np.stack([correlation[3 + d : stop + d] for d in (-3, -2, -1, 1, 2, 3)])
    peaks = 3 + np.flatnonzero((inner > around.max(axis=0)) & (inner > _LEAST_CORRELATION))
    found: list[int] = []
    while len(peaks) and len(found) < 2:
        # The shortest of those about as clear as the clearest; its multiples are left out.
        clear = correlation[peaks] > correlation[peaks].max() - _AS_CLEAR
        lag = int(peaks[clear][0])
        found.append(lag)
        peaks = peaks[np.abs(peaks - lag * np.rint(peaks / lag)) > 3]
        peaks = peaks[correlation[peaks] > 0.5 * correlation[lag]]
    return found
