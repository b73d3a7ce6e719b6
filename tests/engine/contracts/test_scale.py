"""Squared norms, and rows scaled by powers of two, of sizes far from 1."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from machines import NUMPY, assert_near


@given(
    seed=st.integers(0, 2**31),
    dtype=st.sampled_from([np.float32, np.float64]),
    scale=st.sampled_from([1.0, 1e-18, 1e18, 1e-30]),
)
def test_sizes_far_from_one(machine, seed, dtype, scale):
    rng = np.random.default_rng(seed)
    rows = (rng.standard_normal((5, 4)) * scale).astype(dtype)
    rows[0], rows[1] = 0, rng.standard_normal(4)
    # A power of two brings rows near 1 without rounding.
    exact = np.vecdot(rows.astype(np.longdouble), rows.astype(np.longdouble)).astype(np.float64)
    squares = machine.run("squared_norms", rows)
    assert_near(squares, exact, 1e-14)
    dtype = np.dtype(dtype)
    safe = machine.run("in_safe_range", squares, dtype)
    np.testing.assert_array_equal(safe, NUMPY.in_safe_range(squares, dtype))
    assert machine.run("all_in_safe_range", squares, dtype) == safe.all()
    scaled, exponents = machine.run("rescale_rows", rows, ~safe, dtype, 3)
    if exponents is None:
        assert not rows[~safe].any()
        np.testing.assert_array_equal(scaled, rows)
    else:
        np.testing.assert_array_equal(np.ldexp(scaled, exponents[:, None]), rows)
        largest = np.abs(scaled).max(axis=1)[~safe & rows.any(axis=1)]
        assert ((largest >= 4) & (largest < 8)).all()
    unit = machine.run("unit_rows", rows)
    assert_near(unit, NUMPY.unit_rows(rows), 10 * float(np.finfo(dtype).eps))
    np.testing.assert_allclose(np.linalg.norm(unit[1:], axis=1), 1, rtol=1e-6)
    assert not unit[0].any()
