"""Every predictor decodes what the textbook does: from integers, steps, mask and rows before."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hard_matrices import draw_model
from kernelatoms.codec.bounds import Bound
from kernelatoms.codec.loops.cells import step_of
from kernelatoms.codec.loops.rows import preimages
from kernelatoms.codec.models.dictionaries import atoms_of
from kernelatoms.codec.models.model_selection import with_history
from kernelatoms.codec.models.predictors import PREDICTORS, interpolation
from kernelatoms.codec.models.quantised import Unit, block_to_decode, block_to_encode
from oracles import predicting

ORDINARY = ("walk", "decimals", "integers", "missing", "waves")


def coded_block(seed, predictor, kind, dtype, shape, bound):
    """Return some rows' model and the block of their integers."""
    rng = np.random.default_rng(seed)
    n, m = shape
    if predictor == "symmetric":
        n = (1 + n // 30) * m
    rows = rng.standard_normal((n, m)).cumsum(axis=0) + rng.standard_normal(m)
    if kind == "decimals":
        rows = np.round(rows, 2)
    elif kind == "integers":
        rows = np.rint(10 * rows)
    elif kind == "waves":
        rows = np.sin(np.arange(n)[:, None] / 9 + np.arange(m))
    if kind in ("missing", "decimals") and predictor != "symmetric":
        rows[rng.random((n, m)) < 0.2] = np.nan
    rows = rows.astype(dtype)
    if predictor == "symmetric":
        slices = rows.reshape(-1, m, m)
        slices[:] = np.where(np.tri(m, dtype=bool), slices.transpose(0, 2, 1), slices)
    model = draw_model(rng, predictor, rows, bound, m if predictor == "symmetric" else 0)
    if rng.random() < 0.5:
        past = rng.standard_normal((max(2 * n // m, 1) * m, m)).cumsum(axis=0).round(2)
        model = with_history(model, past.astype(dtype))
    unit = Unit.fitting(rows)
    block = block_to_encode(rows, bound, model, unit)
    PREDICTORS[model.predictor](block, model)
    return model, block, ~np.isnan(rows)


def decoded_block(model, block, observed):
    """Return the block that a reader makes of the same integers."""
    own = block_to_decode(observed, model, block.unit)
    own.coded[:], own.given[:], own.codes[:], own.k[:] = (
        block.coded, block.given, block.codes, block.k,
    )  # fmt: skip
    own.side = block.side.copy()
    PREDICTORS[model.predictor](own, model)
    return own


def assert_value(block, got, prediction, at, j, width):
    """Compare a decoded value with that of a prediction that is known but for rounding."""
    if not block.coded[at, j]:
        known = block.given[at, j]
        expected = prediction if np.isnan(known) else known
        np.testing.assert_allclose(got, expected, rtol=1e-7, atol=1e-7)
        return
    blur = 1e-8 * (1 + abs(prediction))
    low, high = (
        predicting.value(prediction + shift, block.k[at, j], width, block.scale, j)
        for shift in (-blur, blur)
    )
    assert min(low, high) - 1e-9 <= got <= max(low, high) + 1e-9


blocks = given(
    seed=st.integers(0, 2**31),
    kind=st.sampled_from(ORDINARY),
    dtype=st.sampled_from([np.float64, np.float32]),
    shape=st.tuples(st.integers(1, 70), st.integers(1, 5)),
    bound=st.sampled_from([Bound(0.05), Bound(1e-3), Bound(absolute=0.1), Bound(0.1, 0.02)]),
)


@pytest.mark.parametrize("predictor", ["lags", "interpolation", "columns", "pca", "ksvd"])
@blocks
def test_rows_are_what_the_textbook_decodes(predictor, seed, kind, dtype, shape, bound):
    model, block, observed = coded_block(seed, predictor, kind, dtype, shape, bound)
    own = decoded_block(model, block, observed)
    # A reader gets what the encoder has checked, to the last digit; combinations leave what is
    # missing of an exact row to whoever fills it.
    there = observed if predictor in ("pca", "ksvd") else np.ones_like(observed)
    np.testing.assert_array_equal(own.rows[there], block.rows[there])
    n, m = own.k.shape
    first, settings = len(own.decoded) - n, model.settings
    known = np.concatenate([np.ones((first, m), bool), observed])
    for at in range(n):
        t, width = first + at, predicting.step(own.codes[at])
        if predictor == "lags":
            row = predicting.by_lags(own.decoded, t, settings["lag"], settings["past"])
        elif predictor == "interpolation":
            before = own.decoded[first - 1] if first else None
            row = predicting.by_interpolation(own.rows, at, n, settings["stride"], before)
        elif predictor == "columns":
            exact = not own.coded[at].any()
            seen = known.copy()
            seen[t] &= not exact
            lags, parents = settings["lags"], min(settings["parents"], m - 1)
            row = [predicting.by_columns(own.decoded, seen, t, j, lags, parents) for j in range(m)]
        else:
            mean, atoms = atoms_of(model)
            row = own.unit.of(mean) + own.side[at] * width @ atoms
        for j in range(m):
            assert_value(own, own.rows[at, j], row[j], at, j, width)


@blocks
def test_slices_are_what_the_textbook_decodes(seed, kind, dtype, shape, bound):
    model, block, observed = coded_block(seed, "symmetric", kind, dtype, shape, bound)
    own = decoded_block(model, block, observed)
    np.testing.assert_array_equal(own.rows, block.rows)
    m = model.n_columns
    slices = own.decoded.reshape(-1, m, m)
    first = len(slices) - len(own.k) // m
    np.testing.assert_array_equal(slices[first:], slices[first:].transpose(0, 2, 1))
    for s in range(first, len(slices)):
        rows = (s - first) * m + np.arange(m)
        median = predicting.by_slices(slices, s, model.settings["past"])
        steps = predicting.step(own.codes[rows].astype(float))
        for i in range(m):
            row = predicting.by_rows_alike(slices[s], i) if median is None else median[i]
            for j in range(i, m):
                width = 1 / np.sqrt(steps[i] ** -2 + steps[j] ** -2)
                assert_value(own, slices[s, i, j], row[j], rows[i], j, width)


@blocks
def test_kernel_atoms_are_what_the_textbook_decodes(seed, kind, dtype, shape, bound):
    assume(shape[1] > 1)
    model, block, observed = coded_block(seed, "kscdl", kind, dtype, shape, bound)
    own = decoded_block(model, block, observed)
    np.testing.assert_array_equal(own.rows[observed], block.rows[observed])
    mean, atoms = atoms_of(model)
    mean = own.unit.of(mean)
    for at in range(len(own.k)):
        width = predicting.step(own.codes[at])
        weights = own.side[at, 1:] / 128
        own_atom = predicting.by_gaussian_preimage(weights, atoms, model.settings["gamma"])
        row = mean + own.side[at, 0] * width * own_atom
        for j in range(own.k.shape[1]):
            assert_value(own, own.rows[at, j], row[j], at, j, width)


@given(
    seed=st.integers(0, 2**31),
    n_atoms=st.integers(1, 9),
    m=st.integers(1, 6),
    gamma=st.floats(0.01, 20),
    scale=st.sampled_from([1, 40, 2**30]),
)
def test_gaussian_preimages(seed, n_atoms, m, gamma, scale):
    rng = np.random.default_rng(seed)
    atoms = rng.standard_normal((n_atoms, m))
    weights = np.rint(rng.standard_normal((3, n_atoms)) * scale).clip(-(2**30), 2**30)
    weights[2] = np.abs(weights[2])
    found = np.zeros((3, m))
    preimages(weights.astype(np.int32), 1 / 128, atoms, gamma, 12, found)
    expected = [predicting.by_gaussian_preimage(w / 128, atoms, gamma) for w in weights]
    assert np.isfinite(found).all()
    # Weights of both signs may nearly cancel, and rounding then shows.
    np.testing.assert_allclose(found[2], expected[2], rtol=1e-9, atol=1e-9)
    nearly = np.abs(weights).sum(axis=1) < 100 * np.abs(weights.sum(axis=1))
    np.testing.assert_allclose(found[nearly], np.array(expected)[nearly], rtol=1e-3, atol=1e-3)


def test_columns_choose_parents_again_and_again(rng):
    """Rows beyond the second and third choice, and beyond what is replayed."""
    bound = Bound(0.02)
    base = rng.standard_normal((2060, 2)).cumsum(axis=0)
    rows = np.concatenate([base, base[:, ::-1] + 0.1 * rng.standard_normal((2060, 2))], axis=1)
    rows[300:, 3] = rows[300:, 0]
    model = draw_model(rng, "columns", rows, bound)
    model.settings.update({"lags": [1, 7], "parents": 2})
    block = block_to_encode(rows, bound, model, Unit.fitting(rows))
    PREDICTORS["columns"](block, model)
    known = np.ones(rows.shape, bool)
    for t in (31, 32, 33, 63, 64, 66, 67, 68, 127, 128, 129, 511, 512, 513, 2048, 2052):
        for j in range(4):
            p = predicting.by_columns(block.decoded, known, t, j, [1, 7], 2)
            assert_value(block, block.rows[t, j], p, t, j, predicting.step(block.codes[t]))


@pytest.mark.parametrize("stride", [2, 8, 64])
@pytest.mark.parametrize("n", [1, 2, 3, 9, 64, 65, 200])
def test_interpolation_uses_rows_that_came_before(n, stride):
    order, sources, weights = interpolation(n, stride)
    place = np.argsort(order)
    assert sorted(order) == list(range(n))
    for t in range(n):
        used = sources[t][weights[t] != 0]
        assert (used >= 0).all()
        assert (place[used] < place[t]).all()
        assert t == 0 or weights[t].sum() == 1


def test_steps_are_powers_of_two():
    for code in range(-960, 961):
        np.testing.assert_allclose(step_of(code), 2.0 ** (code / 16), rtol=3e-16)
    assert [step_of(16 * i) for i in (-60, -1, 0, 1, 60)] == [
        2.0**-60, 0.5, 1.0, 2.0, 2.0**60,
    ]  # fmt: skip
