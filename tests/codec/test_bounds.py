"""Whether a bound holds: no digit in the decoder's favour, whatever the size of the numbers."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codec.bounding import within
from kernelatoms.codec.bounds import Bound

SIZES = st.one_of(st.floats(-2, 2), st.floats(-323, 308))
BOUNDS = st.one_of(
    st.builds(Bound, st.floats(0, 1.5)),
    st.builds(Bound, st.floats(-20, 0).map(lambda e: 10.0**e)),
    st.builds(Bound, st.none(), st.floats(0, allow_infinity=False)),
    st.builds(Bound, st.floats(-18, 0).map(lambda e: 10.0**e), st.floats(0, 1e3)),
    st.just(Bound()),
)


@given(
    seed=st.integers(0, 2**31),
    size=SIZES,
    spread=st.sampled_from([0, 0, 3, 200]),
    error=st.floats(-18, 0.5),
    near=st.booleans(),
    dtype=st.sampled_from([np.float32, np.float64]),
    bound=BOUNDS,
)
def test_it_is_broken_where_fractions_say_so(seed, size, spread, error, near, dtype, bound):
    rng = np.random.default_rng(seed)
    with np.errstate(over="ignore", under="ignore"):
        rows = rng.standard_normal((4, 6)) * 10.0 ** (size + rng.uniform(-spread, 0, (4, 6)))
        rows = np.clip(rows, -np.finfo(dtype).max, np.finfo(dtype).max).astype(dtype)
        noise = rng.standard_normal(rows.shape)
        if near and bound.relative:  # at the limit but for a few digits
            lengths = np.linalg.norm(np.longdouble(rows), axis=1) / np.linalg.norm(noise, axis=1)
            noise = noise * (bound.relative * lengths)[:, None]
        else:
            noise *= rows * dtype(10.0**error)
        decoded = np.asarray(rows + noise).astype(dtype)
    rows[rng.random(rows.shape) < 0.1] = np.nan
    rows[rng.random(rows.shape) < 0.05] = -np.inf
    decoded[~np.isfinite(rows)] = rows[~np.isfinite(rows)]
    decoded[3] = rows[3]
    decoded[rng.random(rows.shape) < 0.01] = np.inf
    broken = bound.broken(rows, decoded)
    for row, got, is_broken in zip(rows, decoded, broken, strict=True):
        limits = (bound.relative, bound.absolute)
        if not is_broken:
            assert within(row, got, *limits)
        else:
            assert not within(row, got, *limits, share=1 - Fraction(1, 10**13))


def test_what_is_no_number_comes_back_as_it_was():
    rows = np.array([[np.nan, 1.0], [np.inf, 1.0], [-np.inf, 1.0]])
    for bound in (Bound(0.5), Bound(absolute=1.0), Bound(0.5, 1e300), Bound()):
        assert not bound.broken(rows, rows).any()
        for other in (0.0, 1.0, np.nan, np.inf, -np.inf):
            wrong = rows.copy()
            wrong[:, 0] = other
            same = (rows[:, 0] == other) | (np.isnan(rows[:, 0]) & np.isnan(other))
            np.testing.assert_array_equal(bound.broken(rows, wrong), ~same)
            assert bound.broken(rows[:, ::-1], np.full((3, 2), other)[:, ::-1]).all()


@pytest.mark.parametrize(
    ("x", "y", "bound", "broken"),
    [
        (1.0, 1.01, Bound(0.01), True),  # 1.01 is a little more than that
        (1.0, 0.99, Bound(0.010001), False),
        (1.0, 1.1, Bound(absolute=0.1), True),
        (1.0, 1.1, Bound(absolute=0.1000001), False),
        (5e-324, 0.0, Bound(0.9), True),
        (5e-324, 5e-324, Bound(0.0), False),
        (5e-324, 0.0, Bound(absolute=5e-324), False),
        (1e-323, 0.0, Bound(absolute=5e-324), True),
        (1.7e308, -1.7e308, Bound(1.9), True),
        (1.7e308, -1.7e308, Bound(absolute=1.7e308), True),
        (1.7e308, 1.6e308, Bound(0.1), False),
        (1.7e308, 1.5e308, Bound(0.1), True),
        (0.0, -0.0, Bound(0.0), False),
        (0.0, -0.0, Bound(), True),
        (0.0, 5e-324, Bound(0.5), True),
    ],
)
def test_at_the_edge_of_numbers(x, y, bound, broken):
    assert bound.broken(np.array([[x]]), np.array([[y]])).item() == broken


def test_small_errors_beside_large_values_count():
    rows = np.array([[1e300, 1e-10], [1.0, 1e-170]])
    wrong = np.array([[1e300, 0.0], [1.0, 0.0]])
    assert Bound(absolute=1e-11).broken(rows, wrong).tolist() == [True, False]
    assert Bound(1e-180).broken(rows, wrong).tolist() == [False, True]


def test_no_rows_and_no_columns():
    for shape in ((0, 3), (3, 0)):
        rows = np.empty(shape)
        for bound in (Bound(0.1), Bound(absolute=1.0), Bound()):
            assert not bound.broken(rows, rows).any()
            assert bound.broken(rows, rows).shape == (shape[0],)
