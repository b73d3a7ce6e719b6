"""The model with the fewest bytes, on data made for each; what it is told and goes on from."""

import numpy as np
import pytest

from kernelatoms.codec.bounds import Bound
from kernelatoms.codec.models.codec_model import CodecModel
from kernelatoms.codec.models.dictionaries import learned_models, relative_error
from kernelatoms.codec.models.matrix import encode_matrix
from kernelatoms.codec.models.model_selection import (
    NAMES,
    choose_model,
    find_lags,
    is_symmetric,
    note,
    parts_to_try,
    with_history,
)


def _walk(rng):
    return rng.standard_normal((400, 8)).cumsum(axis=0) + 20


def _together(rng):
    one = rng.standard_normal((600, 1)).cumsum(axis=0)
    return (
        np.cumsum(one * rng.standard_normal(6), axis=1) + rng.standard_normal((600, 6)) * 0.3 + 50
    )


def _subspaces(rng):
    planes = rng.standard_normal((10, 2, 24))[rng.integers(0, 10, 600)]
    return np.einsum("na,nam->nm", rng.standard_normal((600, 2)), planes)


def _smooth(rng):
    return np.sin(np.linspace(0, 6, 400)[:, None] * rng.uniform(1, 3, 6) + rng.uniform(0, 6, 6)) + 3


def _low_rank(rng):
    return rng.standard_normal((500, 3)) @ rng.standard_normal((3, 30))


def _days(rng):
    return np.tile(3 * rng.standard_normal((24, 10)) + 10, (20, 1)) + rng.normal(0, 0.05, (480, 10))


@pytest.mark.parametrize(
    ("make", "bound", "right"),
    [
        (_walk, Bound(0.02), {"lags", "columns"}),
        (_together, Bound(0.01), {"columns", "pca", "ksvd"}),
        (_subspaces, Bound(0.05), {"ksvd"}),
        (_smooth, Bound(1e-3), {"interpolation", "columns"}),
        (_low_rank, Bound(0.02), {"pca", "ksvd"}),
        (_days, Bound(0.02), {"lags"}),
        (lambda rng: rng.standard_normal((100, 5)), Bound(1e-15), {"exact"}),
        (lambda rng: rng.standard_normal((100, 5)), Bound(), {"exact"}),
    ],
)
def test_data_made_for_a_model_are_coded_by_it(make, bound, right, rng):
    rows = make(rng)
    choice = choose_model(rows, bound)
    assert choice.model.predictor in right
    assert choice.trials[0][0] == choice.model.predictor
    assert {name for name, _, _ in choice.trials} <= set(NAMES)
    if make is _days:
        assert choice.model.settings["lag"] == 24
    # What it takes is about what a quarter of the rows said.
    n_bytes = len(choice.model.to_bytes()) + len(encode_matrix(rows, bound, choice.model))
    assert n_bytes / 2 < choice.trials[0][1] < 2 * n_bytes
    for name in ("lags", "columns"):
        other = choose_model(rows, bound, names=[name]).model
        assert other.predictor == name
        its = len(other.to_bytes()) + len(encode_matrix(rows, bound, other))
        assert n_bytes < 1.03 * its + 40


def test_symmetric_slices_are_stored_once(rng):
    slices = rng.standard_normal((9, 12, 12)) * 0.1 + 3
    rows = np.where(np.tri(12, dtype=bool), slices, slices.transpose(0, 2, 1)).reshape(-1, 12)
    model = choose_model(rows, Bound(0.01), slice_rows=12).model
    assert model.symmetric
    assert model.slice_rows == 12
    assert choose_model(rows[:12], Bound(0.01)).model.symmetric  # one matrix
    assert not choose_model(rows, Bound(0.01)).model.symmetric  # they are no slices
    assert not choose_model(rows, Bound(0.01), slice_rows=12, symmetric=False).model.symmetric
    named = choose_model(rows, Bound(0.01), slice_rows=12, names=["columns"]).model
    assert named.predictor == "columns"
    assert not named.symmetric


def test_symmetry_is_of_every_entry(rng):
    square = np.ones((4, 4))
    assert is_symmetric(square)
    assert not is_symmetric(square[:3])
    assert not is_symmetric(np.ones((1, 1)))
    assert not is_symmetric(np.ones((8, 4)))
    assert is_symmetric(np.ones((8, 4)), 4)
    assert not is_symmetric(np.ones((8, 4)), 8)
    square[1, 2] = np.nan
    assert not is_symmetric(square)
    square[2, 1] = np.nan
    assert is_symmetric(square)
    square[3, 1] = np.nextafter(1.0, 2)
    assert not is_symmetric(square)


@pytest.mark.parametrize("period", [12, 24, 60])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_period_of_a_wave_is_found(period, dtype, rng):
    wave = np.sin(2 * np.pi * np.arange(900) / period)
    for scale in (1, 1e-30, 1e30):
        rows = scale * (wave[:, None] + 0.1 * rng.standard_normal((900, 5)))
        rows[rng.random(rows.shape) < 0.05] = np.nan
        rows[:, 2] = np.nan
        rows[:, 3] = 7 * scale
        assert find_lags(rows.astype(dtype)) == [period]


def test_weeks_are_found_before_days(rng):
    hours = np.arange(2000)
    busy = 1 + (hours // 24 % 7 < 5)
    rows = (np.sin(2 * np.pi * hours / 24) * busy)[:, None] + rng.normal(0, 0.1, (2000, 5))
    assert find_lags(rows) == [168, 24]


def test_what_does_not_repeat_has_no_lags(rng):
    for rows in (
        rng.standard_normal((1000, 5)), np.ones((100, 3)), np.full((100, 2), np.nan),
        np.sin(np.arange(15))[:, None], np.arange(100.0)[:, None], np.empty((0, 3)),
    ):  # fmt: skip
        assert find_lags(rows) == []


def test_candidates_learn_from_the_first_rows_and_are_tried_on_the_rest():
    rows = np.arange(4000.0).reshape(-1, 4)
    seen, tried = parts_to_try(rows)
    np.testing.assert_array_equal(np.concatenate([seen, tried]), rows)
    assert (len(seen), len(tried)) == (750, 250)
    seen, tried = parts_to_try(rows, 100)
    assert (len(seen), len(tried)) == (700, 300)
    for n in range(5):
        seen, tried = parts_to_try(rows[:n])
        assert len(seen) + len(tried) == n
        assert len(tried) >= min(n, 1)
    many = np.zeros((1 << 17, 8))
    seen, tried = parts_to_try(many)
    assert (seen.size + tried.size, tried.size) == (1 << 18, 1 << 16)


def test_rows_without_end_are_looked_at_in_part(rng):
    rows = np.round(rng.standard_normal((1 << 15, 16)).cumsum(axis=0), 1)
    choice = choose_model(rows, Bound(0.05), names=["lags"], n_rows=10 * len(rows))
    n_bytes = len(encode_matrix(rows, Bound(0.05), choice.model))
    assert 5 * n_bytes < choice.trials[0][1] < 20 * n_bytes


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (1, 4), (2, 1), (5, 1), (17, 2)])
def test_few_rows(shape, rng):
    for bound in (Bound(0.1), Bound(absolute=0.1), Bound()):
        for value in (rng.standard_normal(shape), np.full(shape, np.nan), np.zeros(shape)):
            model = choose_model(value, bound).model
            assert model.n_columns == shape[1]


def test_wide_rows_take_no_memory_to_choose_for(rng):
    rows = rng.standard_normal((3, 21000)).cumsum(axis=1)
    names = {name for name, _, _ in choose_model(rows, Bound(0.05)).trials}
    assert names == {"exact", "lags", "interpolation"}


def test_an_absolute_error_is_relative_to_usual_rows():
    rows = np.array([[3.0, -3.0], [np.nan, 3.0], [np.inf, 0.0]])
    assert relative_error(rows, Bound(0.2)) == 0.2
    np.testing.assert_allclose(relative_error(rows, Bound(absolute=0.3)), 0.3 / np.sqrt(27 / 6))
    assert relative_error(rows, Bound(0.001, 0.3)) == 0.001
    assert relative_error(rows, Bound()) == 0
    assert relative_error(np.zeros((2, 2)), Bound(absolute=1.0)) == 0
    for scale in (1e-300, 1e300):
        own = relative_error(rows * scale, Bound(absolute=0.3 * scale))
        np.testing.assert_allclose(own, 0.3 / np.sqrt(27 / 6))


@pytest.mark.parametrize("scale", [1e-310, 1e-30, 1.0, 1e300])
def test_atoms_are_learned_from_rows_of_any_size(scale, rng):
    rows = (rng.standard_normal((100, 2)) @ rng.standard_normal((2, 8)) + 3) * scale
    for model in learned_models(rows, Bound(0.05), gamma=1.0):
        assert len(encode_matrix(rows, Bound(0.05), model)) < 0.6 * rows.nbytes
    assert len(list(learned_models(rows, Bound(0.05), gamma=1.0))) == 3
    for bound in (Bound(1e-12), Bound(1.5), Bound()):
        assert not list(learned_models(rows, bound))
    assert not list(learned_models(rows * 0, Bound(0.1)))
    assert not list(learned_models(rows[:, :1], Bound(0.1)))
    assert not list(learned_models(rows[:15], Bound(0.1)))


def test_history_is_as_long_as_a_model_looks_back(rng):
    rows = rng.standard_normal((5000, 4))
    for model, n in (
        (CodecModel("lags", 4, settings={"lag": 24, "past": 3}), 72),
        (CodecModel("lags", 4, 4, symmetric=True, settings={"lag": 4, "past": 3}), 12),
        (CodecModel("columns", 4, settings={"lags": [1, 24], "parents": 2}), 2072),
        (CodecModel("interpolation", 4, settings={"stride": 64}), 1),
    ):
        history = with_history(model, rows).arrays["history"]
        np.testing.assert_array_equal(history, rows[-n:])
        assert with_history(model, rows[:0]) is model
        assert len(with_history(model, rows[:8]).arrays["history"]) == min(8, n)
    exact = CodecModel("exact", 4)
    assert with_history(exact, rows) is exact


def test_gaps_of_history_are_bridged():
    nan, inf = np.nan, np.inf
    rows = np.array([[nan, 1, 2], [3, nan, inf], [nan, -inf, 5], [nan, 8, nan]], np.float32)
    model = CodecModel("lags", 3, settings={"lag": 4, "past": 1})
    history = with_history(model, rows).arrays["history"]
    assert history.dtype == np.float32
    np.testing.assert_array_equal(history, [[0, 1, 2], [3, 1, 2], [3, 1, 5], [3, 8, 5]])


def test_settings_in_words():
    said = [
        (CodecModel("lags", 2, settings={"lag": 1, "past": 1}), "the row before"),
        (CodecModel("lags", 2, settings={"lag": 24, "past": 3}), "24 rows before, the median of 3"),
        (CodecModel("lags", 2, 2, True, {"lag": 2, "past": 1}),
         "one half of symmetric matrices, the slice before"),
        (CodecModel("lags", 2, 2, True, {"lag": 2, "past": 3}),
         "one half of symmetric matrices, the median of 3 slices before"),
        (CodecModel("columns", 2, settings={"lags": [1, 9], "parents": 1}),
         "rows 1 and 9 before, 1 other columns"),
        (CodecModel("pca", 2, settings={"n_atoms": 2}), "2 atoms"),
        (CodecModel("kscdl", 2, settings={"n_atoms": 2, "gamma": 0.5}), "2 atoms, gamma 0.5"),
        (CodecModel("exact", 2), ""),
    ]  # fmt: skip
    for model, words in said:
        assert note(model) == words
