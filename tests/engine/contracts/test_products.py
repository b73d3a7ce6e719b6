"""Matrix products, sums over rows, and distances of pairs that no product gives."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from machines import NUMPY, assert_near

seeds = st.integers(0, 2**31)
dtypes = st.sampled_from([np.float32, np.float64])


def rounding(dtype):
    return 100 * float(np.finfo(dtype).eps)


@given(seed=seeds, dtype=dtypes, n=st.integers(1, 12))
def test_products(machine, seed, dtype, n):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, 3)).astype(dtype)
    gram = machine.run("gram_matrix", A)
    assert_near(gram, A @ A.T, rounding(dtype))
    np.testing.assert_array_equal(gram, gram.T)
    assert_near(machine.run("times", A, A.T @ A), A @ (A.T @ A), rounding(dtype))
    np.testing.assert_array_equal(machine.run("pad_rows", gram), gram)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 1, 1), (5000, 3, 130), (4097, 140, 2), (0, 3, 4)])
def test_cross_products_add_up_over_all_rows(machine, shape, dtype, rng):
    n, p, q = shape
    A, B = (rng.standard_normal((n, width)).astype(dtype) + 1 for width in (p, q))
    total = machine.run("cross_products", A, B)
    assert total.dtype == np.float64
    exact = A.astype(np.float64).T @ B.astype(np.float64)
    np.testing.assert_allclose(total, exact, rtol=1e-5 if dtype == np.float32 else 1e-12)


@given(seed=seeds, dtype=dtypes, stacked=st.booleans())
@pytest.mark.parametrize("name", ["l1_distances", "linf_distances", "chi2_distances"])
def test_distances_of_pairs(machine, name, seed, dtype, stacked):
    rng = np.random.default_rng(seed)
    A, B = (rng.integers(0, 4, shape).astype(dtype) for shape in ((2, 5, 4), (3, 4)))
    A = A if stacked else A[0]
    assert_near(machine.run(name, A, B), getattr(NUMPY, name)(A, B), rounding(dtype))
    with pytest.raises(ValueError, match="as many features"):
        machine.run(name, A, B[:, :2])
