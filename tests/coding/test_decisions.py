"""What is thought of classes' parts of a code."""

import numpy as np
import pytest

from kernelatoms.coding.class_residuals import ClassParts


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_residuals_within_rounding_are_not_told_apart(dtype):
    eps = np.finfo(dtype).eps
    # Of a signal of energy 4: rounding, less of it, and more than rounding.
    parts = ClassParts(
        np.array([[30 * eps, 1e-3 * eps, 80 * eps]]), np.ones((1, 3)), np.array([4.0])
    )
    np.testing.assert_allclose(parts.shares(np.dtype(dtype)), [[0.4, 0.4, 0.2]])


def test_parts_of_any_size_have_shares():
    for size in (1e-300, 1.0, 1e300):
        parts = ClassParts(np.array([[1.0, 4.0]]), size * np.array([[1.0, 2.0]]), np.array([9.0]))
        np.testing.assert_allclose(parts.shares(np.dtype(np.float64)), [[2 / 3, 1 / 3]])
        np.testing.assert_allclose(parts.residuals() * np.sqrt(size), [[1, np.sqrt(2)]])


def test_no_part_is_no_share_and_no_parts_are_alike():
    parts = ClassParts(np.ones((2, 2)), np.array([[1.0, 0.0], [0.0, 0.0]]), np.ones(2))
    np.testing.assert_array_equal(parts.shares(np.dtype(np.float64)), [[1, 0], [0.5, 0.5]])
    np.testing.assert_array_equal(parts.residuals(), [[1, np.inf], [np.inf, np.inf]])
