"""Random matrices at the edge of what numbers hold, bounds, and models of every kind to code them.

``draw_case(rng)`` draws one. Whatever it is, what comes back of its bytes is within the bound.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernelatoms.codec.bounds import Bound
from kernelatoms.codec.models.codec_model import CodecModel
from kernelatoms.codec.models.dictionaries import dictionary_model, learned_models
from kernelatoms.codec.models.model_selection import with_history

PREDICTORS = ("lags", "interpolation", "columns", "pca", "ksvd", "kscdl", "symmetric", "exact")


def _walk(rng, n, m):
    return rng.standard_normal((n, m)).cumsum(axis=0) + 10 * rng.standard_normal(m)


def _constant(rng, n, m):
    return np.full((n, m), rng.standard_normal())


def _zero_rows(rng, n, m):
    rows = _walk(rng, n, m)
    rows[rng.random(n) < 0.5] = 0
    return rows


def _zero_columns(rng, n, m):
    rows = _walk(rng, n, m)
    rows[:, rng.random(m) < 0.5] = 0
    return rows


def _spiky(rng, n, m):
    rows = rng.standard_normal((n, m))
    rows[rng.random((n, m)) < 0.05] *= 1e12
    return rows


def _denormal(rng, n, m):
    return _walk(rng, n, m) * 10.0 ** rng.uniform(-323, -305)


def _huge(rng, n, m):
    rows = _walk(rng, n, m)
    return rows / (np.abs(rows).max(initial=0) + 1e-9) * 10.0 ** rng.uniform(299, 308.2)


def _mixed(rng, n, m):
    return _walk(rng, n, m) * 10.0 ** rng.uniform(-300, 300, (n, 1))


def _nan_ridden(rng, n, m):
    rows = _walk(rng, n, m)
    rows[rng.random((n, m)) < rng.choice([0.1, 0.9])] = np.nan
    rows[rng.random(n) < 0.2] = np.nan
    rows[:, rng.random(m) < 0.2] = np.nan
    return rows


def _all_nan(rng, n, m):
    rows = np.full((n, m), np.nan)
    if rows.size and rng.random() < 0.5:
        rows[rng.integers(n), rng.integers(m)] = rng.standard_normal()
    return rows


def _infinite(rng, n, m):
    rows = _nan_ridden(rng, n, m)
    rows[rng.random((n, m)) < 0.05] = np.inf
    rows[rng.random((n, m)) < 0.05] = -np.inf
    return rows


def _integers(rng, n, m):
    return np.rint(_walk(rng, n, m) * rng.choice([1, 1000, 1e9]))


def _decimals(rng, n, m):
    return np.round(_walk(rng, n, m), int(rng.integers(1, 4)))


def _signed_zeros(rng, n, m):
    return np.round(rng.standard_normal((n, m)) * 0.5) * rng.choice([1.0, -1.0], (n, m))


def _low_rank(rng, n, m):
    return rng.standard_normal((n, 2)) @ rng.standard_normal((2, m))


def _waves(rng, n, m):
    return 5 + np.sin(np.arange(n)[:, None] / 3 + rng.uniform(0, 6, m))


def _steps(rng, n, m):
    return np.repeat(rng.standard_normal((n // 5 + 1, m)), 5, axis=0)[:n]


MATRICES = {
    "walk": _walk, "constant": _constant, "zero rows": _zero_rows, "zero columns": _zero_columns,
    "spiky": _spiky, "denormal": _denormal, "huge": _huge, "mixed": _mixed,
    "NaN": _nan_ridden, "all NaN": _all_nan, "infinite": _infinite, "integers": _integers,
    "decimals": _decimals, "signed zeros": _signed_zeros, "low rank": _low_rank, "waves": _waves,
    "steps": _steps,
}  # fmt: skip

BOUNDS = (
    Bound(0.01), Bound(0.1), Bound(1e-4), Bound(1e-12), Bound(1e-15), Bound(0.999), Bound(0.0),
    Bound(absolute=0.01), Bound(absolute=1e-20), Bound(absolute=1e6), Bound(absolute=0.0),
    Bound(0.01, 0.05), Bound(0.05, 1e-3), Bound(),
)  # fmt: skip


@dataclass
class Case:
    """Rows, what is promised of them, and who predicts them."""

    rows: Any
    bound: Bound
    model: CodecModel
    words: str

    def __str__(self):
        return self.words


def draw_case(rng, kind=None, predictor=None):
    """Return a random case, of this kind of matrix and this predictor if they are given."""
    kind = kind or str(rng.choice(list(MATRICES)))
    predictor = predictor or str(rng.choice(PREDICTORS))
    dtype = rng.choice([np.float32, np.float64])
    bound = BOUNDS[rng.integers(len(BOUNDS))]
    n, m = int(rng.integers(0, 60)), int(rng.integers(1, 12))
    if rng.random() < 0.2:
        n, m = [(1, m), (n, 1), (1, 1), (0, m)][rng.integers(4)]
    slice_rows = 0
    if predictor == "symmetric":
        m = int(rng.integers(1, 9))
        n = m * int(rng.integers(0, 6))
        slice_rows = m
    rows = MATRICES[kind](rng, n, m)
    with np.errstate(over="ignore"):
        rows = np.clip(rows, -np.finfo(dtype).max, np.finfo(dtype).max, where=np.isfinite(rows),
                       out=rows).astype(dtype)  # fmt: skip
    if predictor == "symmetric":
        slices = rows.reshape(-1, m, m)
        slices[:] = np.where(np.tri(m, dtype=bool), slices.transpose(0, 2, 1), slices)
        if rows.size and rng.random() < 0.2:  # but for one entry
            rows[rng.integers(n), rng.integers(m)] += dtype(1)
    model = draw_model(rng, predictor, rows, bound, slice_rows)
    words = f"{predictor} {dict(model.settings)} of {kind} {rows.shape} {rows.dtype}, {bound}"
    if len(rows) and rng.random() < 0.3:
        past = MATRICES[str(rng.choice(list(MATRICES)))](rng, 2 * max(n, 1), m)
        with np.errstate(over="ignore"):
            model = with_history(model, past.astype(dtype))
        words += ", with history"
    return Case(rows, bound, model, words)


def draw_model(rng, predictor, rows, bound, slice_rows=0):
    """Return a model of some rows with random settings."""
    m = rows.shape[1]
    if predictor == "symmetric":
        settings = {"lag": m, "past": int(rng.choice([1, 3, 5]))}
        return CodecModel("lags", m, slice_rows, symmetric=True, settings=settings)
    if predictor == "lags":
        settings = {"lag": int(rng.integers(1, 30)), "past": int(rng.integers(1, 6))}
        return CodecModel("lags", m, settings=settings)
    if predictor == "interpolation":
        return CodecModel(predictor, m, settings={"stride": int(2 ** rng.integers(1, 8))})
    if predictor == "columns":
        lags = [1, *(int(lag) for lag in rng.integers(2, 30, rng.integers(0, 3)))]
        return CodecModel(predictor, m, settings={"lags": lags, "parents": int(rng.integers(0, 9))})
    if predictor == "exact":
        return CodecModel(predictor, m)
    for model in learned_models(rows, bound, slice_rows, [predictor], gamma=0.5):
        return model
    atoms = rng.standard_normal((int(rng.integers(1, m + 1)), m))
    atoms /= np.linalg.norm(atoms, axis=1, keepdims=True)
    more = {"gamma": 0.5, "alpha": 0.01} if predictor == "kscdl" else {}
    return dictionary_model(predictor, np.zeros(m), atoms, 0.1, slice_rows=slice_rows, **more)


def replaced(model, **settings):
    """Return a model with some settings replaced."""
    return replace(model, settings={**model.settings, **settings})
