"""Nearest neighbours on the digits that the distances were published with; needs data."""

import os

import numpy as np
import pytest

from kernelatoms.datasets import load_usps
from kernelatoms.similarity import make_distance

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not os.environ.get("KERNELATOMS_DATA"), reason="KERNELATOMS_DATA names no folder"
    ),
]


@pytest.fixture(scope="module")
def usps():
    return load_usps(download_if_missing=False)


def errors_in_percent(usps, name, **params):
    """Of the nearest training image."""
    distance = make_distance(name, **params).fitted_to(usps.X_train)
    test, train = distance.featurize(usps.X_test), distance.featurize(usps.X_train)
    nearest = distance.compare(test, train).argmin(axis=1)
    errors = 100 * np.mean(usps.y_train[nearest] != usps.y_test)
    print(f"{name}: {errors:.2f}% errors on USPS")
    return errors


def test_usps_by_l2_is_the_published_error(usps):
    assert errors_in_percent(usps, "l2") == pytest.approx(5.63, abs=0.01)


@pytest.mark.parametrize(("sides", "at_most"), [(1, 4.0), (2, 3.3)])
def test_usps_by_tangents_is_near_the_published_errors(usps, sides, at_most):
    """Published errors, two-sided, are about 2.5% to 3.3%."""
    assert errors_in_percent(usps, "tangent", image_shape=(16, 16), sides=sides) < at_most
