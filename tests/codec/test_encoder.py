"""What the encoder does with the freedom that a bound leaves: it uses it."""

from dataclasses import replace

import numpy as np
import pytest

from kernelatoms.codec.bounds import Bound
from kernelatoms.codec.models.codec_model import CodecModel
from kernelatoms.codec.models.dictionaries import learned_models
from kernelatoms.codec.models.matrix import encode_and_decode, encode_matrix
from kernelatoms.codec.models.model_selection import with_history, without_history
from kernelatoms.codec.models.predictors import PREDICTORS
from kernelatoms.codec.models.quantised import Unit, block_to_encode

MODELS = {
    "lags": {"lag": 1, "past": 1},
    "interpolation": {"stride": 64},
    "columns": {"lags": [1], "parents": 4},
}


def model_of(name, m, **more):
    return CodecModel(name, m, settings={**MODELS[name], **more})


def walk(rng, n, m):
    return rng.standard_normal((n, m)).cumsum(axis=0) + 5


def coded(rows, bound, model, **changes):
    """Return the block of some rows' integers, with some of its numbers changed before."""
    block = block_to_encode(rows, bound, model, Unit.fitting(rows))
    for name, value in changes.items():
        setattr(block, name, value)
    PREDICTORS[model.predictor](block, model)
    return block


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("relative", [0.05, 0.01, 1e-4])
def test_rows_are_as_wrong_as_they_may_be(name, relative, rng):
    rows = walk(rng, 300, 40)
    _, decoded = encode_and_decode(rows, Bound(relative), model_of(name, 40))
    used = np.linalg.norm(decoded - rows, axis=1) / np.linalg.norm(rows, axis=1) / relative
    assert used.max() <= 1
    assert used.mean() > 0.9


@pytest.mark.parametrize("name", MODELS)
def test_values_are_as_wrong_as_they_may_be(name, rng):
    rows = walk(rng, 300, 40)
    data, decoded = encode_and_decode(rows, Bound(absolute=0.1), model_of(name, 40))
    largest = np.abs(decoded - rows).max(axis=1)
    assert largest.max() <= 0.1
    assert largest.mean() > 0.09
    # Cells as wide as that: a walk of unit steps has log2(sqrt(2 pi e) / 0.2) bits a value.
    if name != "interpolation":
        assert 8 * len(data) / rows.size < 1.05 * np.log2(np.sqrt(2 * np.pi * np.e) / 0.2) + 0.3


def test_both_bounds_are_used(rng):
    rows = walk(rng, 300, 40)
    rows[:, 7] *= 20  # an absolute error in this column would be small beside the row's
    model = model_of("lags", 40)
    sizes = [len(encode_matrix(rows, b, model)) for b in (Bound(0.01), Bound(absolute=0.1))]
    both = len(encode_matrix(rows, Bound(0.01, 0.1), model))
    assert both >= max(sizes)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("bound", [Bound(absolute=0.1), Bound(0.3, 0.1), Bound(0.05)], ids=str)
@pytest.mark.parametrize("decimals", [None, 2])
def test_trading_bits_for_errors_never_breaks_a_bound(name, bound, decimals, rng):
    rows = walk(rng, 200, 6)
    rows = rows if decimals is None else np.round(rows, decimals)
    for trade in (0.0, 0.11, 5.0, 1e9):
        block = coded(rows, bound, model_of(name, 6), trade=trade)
        assert not block.kinds.any()
        errors = block.rows * 2.0**block.unit.exponent - rows
        if bound.absolute is not None:
            assert np.abs(errors).max() <= 0.1
        if bound.relative is not None:
            norms = np.linalg.norm(rows, axis=1)
            assert (np.linalg.norm(errors, axis=1) <= bound.relative * norms).all()


def test_trading_bits_saves_some(rng):
    rows = walk(rng, 400, 30)
    cheap, dear = (coded(rows, Bound(0.05), model_of("lags", 30), trade=t) for t in (0.11, 0.0))
    assert np.count_nonzero(cheap.k) < 0.97 * np.count_nonzero(dear.k)


@pytest.mark.parametrize("name", MODELS)
def test_history_makes_the_first_rows_cheaper(name, rng):
    mixed = rng.standard_normal((5, 12))
    rows = rng.standard_normal((600, 5)).cumsum(axis=0) @ mixed + 30
    model = model_of(name, 12)
    later = with_history(model, rows[:500])
    alone = len(encode_matrix(rows[500:520], Bound(0.01), model))
    after = len(encode_matrix(rows[500:520], Bound(0.01), later))
    assert after < alone - 10
    assert without_history(later).digest == model.digest


def test_symmetric_slices_cost_about_half(rng):
    slices = rng.standard_normal((8, 30, 30)) * 0.3 + rng.standard_normal((30, 30)) * 5 + 20
    rows = np.where(np.tri(30, dtype=bool), slices, slices.transpose(0, 2, 1)).reshape(-1, 30)
    once = CodecModel("lags", 30, 30, symmetric=True, settings={"lag": 30, "past": 1})
    for bound in (Bound(1e-3), Bound(1e-4)):
        half = len(encode_matrix(rows, bound, once))
        whole = len(encode_matrix(rows, bound, replace(once, symmetric=False)))
        assert 0.45 * whole < half < 0.6 * whole


def test_symmetric_slices_are_as_wrong_as_they_may_be(rng):
    slices = rng.standard_normal((4, 120, 120)) * 0.5 + rng.standard_normal((120, 120)) * 5 + 20
    slices = np.where(np.tri(120, dtype=bool), slices, slices.transpose(0, 2, 1))
    rows = slices.reshape(-1, 120)
    model = CodecModel("lags", 120, 120, symmetric=True, settings={"lag": 120, "past": 1})
    for relative in (0.05, 0.01):
        _, decoded = encode_and_decode(rows, Bound(relative), model)
        used = np.linalg.norm(decoded - rows, axis=1) / np.linalg.norm(rows, axis=1) / relative
        assert used.max() <= 1
        assert used.mean() > 0.9


@pytest.mark.parametrize("name", MODELS)
def test_rows_that_are_known_cost_nothing(name, rng):
    """Zero, missing and repeated rows neither take steps of their own nor disturb others'."""
    rows = walk(rng, 120, 8)
    usual = coded(rows, Bound(0.01), model_of(name, 8)).codes
    rows[40:50] = 0
    rows[60:70] = np.nan
    rows[80:90] = rows[79]
    for some, expected in ((rows, usual), (rows[40:50], None), (rows[60:70], None)):
        block = coded(some, Bound(0.01), model_of(name, 8))
        steps = np.abs(np.diff(block.codes))
        if expected is None:
            assert steps.max() <= 0
        elif name == "lags":
            assert steps.max() < 100
            assert np.abs(np.median(block.codes) - np.median(expected)) < 30
    data = encode_matrix(np.zeros((5000, 8)), Bound(0.01), model_of(name, 8))
    assert len(data) < 60
    data = encode_matrix(np.full((5000, 8), np.nan), Bound(0.01), model_of(name, 8))
    assert len(data) < 60


@pytest.mark.parametrize("name", MODELS)
def test_constant_rows_cost_next_to_nothing(name):
    data = encode_matrix(np.full((3000, 8), np.pi), Bound(0.01), model_of(name, 8))
    assert len(data) < 150


def test_medians_leave_spikes_out(rng):
    rows = np.tile(rng.standard_normal((1, 50)), (90, 1)) + 10
    rows[rng.random(rows.shape) < 0.02] += 1000
    sizes = [
        len(encode_matrix(rows, Bound(absolute=0.01), model_of("lags", 50, past=past)))
        for past in (1, 3)
    ]
    assert sizes[1] < 0.8 * sizes[0]


@pytest.mark.parametrize("name", ["pca", "ksvd", "kscdl"])
@pytest.mark.parametrize("bound", [Bound(0.03), Bound(absolute=0.05)], ids=str)
def test_atoms_save_what_they_explain(name, bound, rng):

    rows = rng.standard_normal((300, 3)) @ rng.standard_normal((3, 24))
    if name == "kscdl":  # a curve, which a kernel's atoms follow
        turn = rng.uniform(0, 2 * np.pi, (300, 1))
        rows = np.exp(np.cos(turn - np.linspace(0, 2 * np.pi, 24)) * 2)
    model = next(iter(learned_models(rows, bound, names=[name], gamma=2.0)))
    data = encode_matrix(rows, bound, model)
    assert len(data) < 0.6 * len(encode_matrix(rows, bound, model_of("lags", 24)))


def test_units_are_the_coarsest_grid():
    for decimals in range(10):
        for dtype in (np.float32, np.float64):
            rows = (np.array([[1.0, 2, 3, 7, -11]]) / 10**decimals).astype(dtype)
            assert Unit.fitting(rows) == Unit(decimals)
    assert Unit.fitting(np.array([[1e-10]])) == Unit(-1, -33)
    assert Unit.fitting(np.array([[np.nan, np.inf]])) == Unit(0)
    assert Unit.fitting(np.array([[0.1, 2.0**41]])).decimals == -1
    assert Unit.fitting(np.array([[1e300, np.nan]])) == Unit(-1, 997)
    # The first thousand are on a grid and one of the rest is not.
    rows = np.ones((2000, 1))
    rows[1500] = np.pi
    assert Unit.fitting(rows) == Unit(-1, 2)
