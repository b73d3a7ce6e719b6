"""A sweep of K-SVD over all atoms, and residuals of padded codes."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from machines import NUMPY, assert_near
from padded_codes import random_codes


@given(seed=st.integers(0, 2**31), dtype=st.sampled_from([np.float32, np.float64]))
def test_a_sweep_and_its_residuals(machine, seed, dtype):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, 6)).astype(dtype)
    D = NUMPY.unit_rows(rng.standard_normal((9, 6)).astype(dtype))
    indices, values = random_codes(rng, 40, 9, 3, dtype)
    if seed % 2:  # an atom without users, and one whose users have no use for it
        indices[indices == 8], values[indices == 7] = -1, 0
    tolerance = 100 * float(np.finfo(dtype).eps)
    codes = np.zeros((40, 10), dtype)
    np.put_along_axis(codes, indices.astype(np.int64), values, axis=1)  # -1 is the last column
    left = machine.run("residuals", X, D, indices, values)
    np.testing.assert_allclose(left, X - codes[:, :9] @ D, atol=100 * tolerance)
    expected = [NUMPY.residuals(X, D, indices, values), D.copy(), values.copy()]
    assert_near(left, expected[0], tolerance)
    ours = [machine.array(part.copy()) for part in expected]
    NUMPY.sweep_atoms(expected[0], expected[1], indices, expected[2], 2, 2)
    machine.sweep_atoms(ours[0], ours[1], machine.array(indices), ours[2], 2, 2)
    for one, other in zip(ours, expected, strict=True):
        assert_near(machine.numpy(one), other, 1e3 * tolerance)
