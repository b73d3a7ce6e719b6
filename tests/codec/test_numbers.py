"""Rows to bytes and back: within the bound on every row, whoever predicts and whatever they are."""

from dataclasses import replace

import numpy as np
import pytest

from codec.bounding import within
from hard_matrices import BOUNDS, MATRICES, PREDICTORS, draw_case, draw_model
from kernelatoms.codec.bounds import Bound
from kernelatoms.codec.models.codec_model import CodecModel
from kernelatoms.codec.models.matrix import decode_matrix, encode_and_decode, encode_matrix
from kernelatoms.codec.models.model_selection import choose_model, is_symmetric, with_history

LAGS = {"lag": 1, "past": 1}
N_CASES = 1000


def assert_held(rows, bound, model):
    """Assert that what comes back of the rows' bytes is within the bound; return both."""
    data, promised = encode_and_decode(rows, bound, model)
    decoded = decode_matrix(data, model, len(rows), rows.dtype)
    assert (decoded.shape, decoded.dtype) == (rows.shape, rows.dtype)
    np.testing.assert_array_equal(decoded, promised)
    for row, got in zip(rows, decoded, strict=True):
        assert within(row, got, bound.relative, bound.absolute)
    return data, decoded


@pytest.mark.parametrize("predictor", PREDICTORS)
@pytest.mark.parametrize("kind", MATRICES)
def test_every_kind_of_matrix_and_model(kind, predictor, rng):
    case = draw_case(rng, kind, predictor)
    assert_held(case.rows, case.bound, case.model)


@pytest.mark.parametrize("bound", BOUNDS, ids=str)
def test_every_bound(bound, rng):
    for predictor in PREDICTORS[:-1]:
        rows = np.round(rng.standard_normal((40, 5)).cumsum(axis=0), 3)
        rows[7, 2] = np.nan
        if predictor == "symmetric":
            rows = np.tile(np.maximum(rows[:5], rows[:5].T), (3, 1))
        model = draw_model(rng, predictor, rows, bound, 5 if predictor == "symmetric" else 0)
        assert_held(rows, bound, model)
        assert_held((rows * np.sqrt(2)).astype(np.float32), bound, model)


@pytest.mark.parametrize("part", range(4))
@pytest.mark.slow
def test_a_thousand_matrices(part):
    for seed in range(part, N_CASES, 4):
        case = draw_case(np.random.default_rng(seed))
        try:
            assert_held(case.rows, case.bound, case.model)
        except Exception as error:
            raise AssertionError(f"matrix {seed}: {case}") from error


@pytest.mark.parametrize("predictor", PREDICTORS)
@pytest.mark.parametrize("shape", [(0, 1), (0, 5), (1, 1), (1, 5), (40, 1)])
def test_few_rows_and_columns(shape, predictor, rng):
    if predictor == "symmetric":
        shape = (min(shape) * shape[1], shape[1])
    rows = rng.standard_normal(shape)
    if predictor == "symmetric" and len(rows):
        rows = np.zeros(shape) + np.tri(shape[1]) + np.tri(shape[1]).T
    for bound in (Bound(0.1), Bound(absolute=0.1), Bound()):
        square = shape[1] if predictor == "symmetric" else 0
        assert_held(rows, bound, draw_model(rng, predictor, rows, bound, square))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("decimals", [0, 1, 3])
def test_decimals_come_back_on_their_grid(decimals, dtype, rng):
    rows = np.round(20 + rng.standard_normal((200, 6)).cumsum(axis=0), decimals).astype(dtype)
    rows[5:9, 2] = np.nan
    for predictor in ("lags", "interpolation", "columns", "pca"):
        for bound in (Bound(0.02), Bound(absolute=0.7), Bound(1e-7)):
            model = draw_model(rng, predictor, rows, bound)
            _, decoded = assert_held(rows, bound, model)
            # Points, or the middle between two where a cell has few.
            points = 2 * decoded[~np.isnan(rows)].astype(float) * 10**decimals
            np.testing.assert_allclose(points, np.rint(points), atol=0.1)
            if bound.relative == 1e-7:
                np.testing.assert_array_equal(decoded, rows)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exact_decimals_are_predicted_too(dtype, rng):
    rows = np.round(20 + 0.1 * rng.standard_normal((500, 6)).cumsum(axis=0), 1).astype(dtype)
    model = CodecModel("lags", 6, settings=LAGS)
    data, decoded = assert_held(rows, Bound(), model)
    np.testing.assert_array_equal(decoded, rows)
    assert len(data) < 0.6 * len(encode_matrix(rows, Bound(), CodecModel("exact", 6)))
    # A row that is no such decimal is stored beside; all of them need all bytes.
    rows[17] *= dtype(np.pi)
    assert_held(rows, Bound(), model)


def test_exact_keeps_every_bit():
    rows = np.array([[0.0, -0.0, 1.0], [-0.0, 1e-45, -1e-45], [np.inf, -np.inf, 1e38]])
    for some in (rows, rows[:1], rows.astype(np.float32)):
        _, decoded = assert_held(some, Bound(), CodecModel("lags", 3, settings=LAGS))
        assert decoded.tobytes() == some.tobytes()


def test_large_float32_values_within_an_absolute_bound(rng):
    """Rounding to float32 is a good part of the bound here: no row may need to be exact."""
    rows = (1000 * (1 + rng.standard_normal((300, 8)).cumsum(axis=0))).astype(np.float32)
    rows *= np.float32(np.sqrt(2))
    for bound in (Bound(absolute=0.01), Bound(1e-6)):
        data, _ = assert_held(rows, bound, CodecModel("lags", 8, settings=LAGS))
        assert len(data) < 0.75 * rows.nbytes


def test_symmetric_slices_with_missing_values(rng):
    slices = rng.standard_normal((5, 9, 9)) + 10
    slices[:, 2, 7] = np.nan
    slices[1, 3] = np.nan
    slices[2, 4, 5] = np.inf
    slices[3, 6] = 0
    slices = np.where(np.tri(9, dtype=bool), slices, slices.transpose(0, 2, 1))
    rows = slices.reshape(-1, 9)
    assert is_symmetric(rows, 9)
    model = CodecModel("lags", 9, 9, symmetric=True, settings={"lag": 9, "past": 3})
    for bound in BOUNDS:
        _, decoded = assert_held(rows, bound, model)
        assert is_symmetric(decoded, 9)
    # One entry that is not its mirror image's is no reason to break a promise.
    rows = rows.copy()
    rows[20, 1] += 1
    assert not is_symmetric(rows, 9)
    for bound in BOUNDS:
        assert_held(rows, bound, model)


def test_slices_that_are_not_symmetric_are_still_predicted(rng):
    """A later day with one entry of its own, or a part of a large matrix."""
    slices = rng.standard_normal((20, 20)) * 5 + 20 + 0.1 * rng.standard_normal((6, 20, 20))
    rows = np.where(np.tri(20, dtype=bool), slices, slices.transpose(0, 2, 1)).reshape(-1, 20)
    model = CodecModel("lags", 20, 20, symmetric=True, settings={"lag": 20, "past": 1})
    later = with_history(model, rows)
    plain = replace(model, symmetric=False)
    usual = len(encode_matrix(rows, Bound(0.01), plain))
    other = rows.copy()
    other[30, 3] += 1
    for some in (other, rows[:-7], rows[:110]):
        data, _ = assert_held(some, Bound(0.01), model)
        assert len(data) < 1.05 * usual
        assert_held(some, Bound(0.01), later)


def test_views_and_orders_of_arrays(rng):
    rows = rng.standard_normal((60, 12))
    model = CodecModel("columns", 6, settings={"lags": [1], "parents": 2})
    whole = encode_matrix(np.ascontiguousarray(rows[::2, ::2]), Bound(0.01), model)
    assert encode_matrix(rows[::2, ::2], Bound(0.01), model) == whole
    assert encode_matrix(np.asfortranarray(rows[::2, ::2]), Bound(0.01), model) == whole
    before = rows.copy()
    encode_matrix(rows, Bound(0.1), CodecModel("lags", 12, settings=LAGS))
    np.testing.assert_array_equal(rows, before)


def test_huge_and_tiny_rows_do_not_spoil_the_others(rng):
    """Rows that no step fits are stored exactly, and the rest is still predicted."""
    rows = rng.standard_normal((400, 8)).cumsum(axis=0)
    bound, model = Bound(0.01), CodecModel("lags", 8, settings=LAGS)
    usual = len(encode_matrix(rows, bound, model))
    rows[100] *= 1e-5
    rows[200, 3] = np.inf
    rows[300] = 0
    data, _ = assert_held(rows, bound, model)
    assert len(data) < usual + 4 * 8 * 8


def test_chosen_models_hold_the_bound(rng):
    for kind in ("NaN", "decimals", "zero rows", "low rank", "huge", "denormal", "all NaN"):
        rows = MATRICES[kind](rng, 80, 5)
        for bound in (Bound(0.05), Bound(absolute=0.01), Bound()):
            model = choose_model(rows, bound).model
            assert_held(rows, bound, model)
            assert_held(rows[40:], bound, with_history(model, rows[:40]))
