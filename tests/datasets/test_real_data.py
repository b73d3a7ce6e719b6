"""The published files against what is published about them; needs KERNELATOMS_DATA."""

import os

import numpy as np
import pytest

from kernelatoms import datasets
from kernelatoms.datasets import list_datasets
from kernelatoms.datasets.files import USPS_TRAIN_COUNTS

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not os.environ.get("KERNELATOMS_DATA"), reason="KERNELATOMS_DATA names no data folder"
    ),
]


@pytest.mark.parametrize("dataset", list_datasets(), ids=lambda dataset: dataset.name)
def test_shapes_are_the_published_ones(dataset):
    family, _, size = dataset.name.partition("_")
    kwargs = {"size": size} if size else {}
    if dataset.online:
        kwargs["download_if_missing"] = False
    data = getattr(datasets, f"load_{family}")(**kwargs)
    assert data.source.startswith(os.path.expanduser(os.environ["KERNELATOMS_DATA"]))
    for key in dataset.arrays:
        shape = dataset.published_shape(key)
        if dataset.image_shape and key.startswith("X"):
            shape = (shape[0], shape[1] * shape[2])
        assert data[key].shape == shape


def test_usps_range_counts_and_nearest_neighbour_error():
    usps = datasets.load_usps(download_if_missing=False)
    assert usps.X_train.min() == usps.X_test.min() == -1
    assert usps.X_train.max() == usps.X_test.max() == 1
    assert np.bincount(usps.y_train).tolist() == list(USPS_TRAIN_COUNTS)
    assert np.bincount(usps.y_test).tolist() == [359, 264, 198, 166, 200, 160, 170, 147, 166, 177]
    squares = (usps.X_train**2).sum(axis=1)
    nearest = (squares - 2 * usps.X_test @ usps.X_train.T).argmin(axis=1)
    error = np.mean(usps.y_train[nearest] != usps.y_test)
    assert error == pytest.approx(0.0563, abs=5e-5)


def test_mnist_mean_deviation_and_counts():
    mnist = datasets.load_mnist(download_if_missing=False)
    # From the histogram: exact, and without 47 million floats.
    counts = np.bincount(mnist.X_train.ravel(), minlength=256)
    grey = np.arange(256) / 255
    mean = np.average(grey, weights=counts)
    assert mean == pytest.approx(0.1307, abs=5e-5)
    deviation = np.sqrt(np.average((grey - mean) ** 2, weights=counts))
    assert deviation == pytest.approx(0.3081, abs=5e-5)
    assert np.bincount(mnist.y_train).tolist() == [
        *(5923, 6742, 5958, 6131, 5842),
        *(5421, 5918, 6265, 5851, 5949),
    ]
    assert np.bincount(mnist.y_test).tolist() == [
        *(980, 1135, 1032, 1010, 982),
        *(892, 958, 1028, 974, 1009),
    ]


def test_yaleb_people_and_versions_agree():
    faces = datasets.load_yaleb()
    counts = np.bincount(faces.y)[1:]
    assert len(counts) == 38
    assert (counts.min(), counts.max()) == (59, 64)
    assert np.setdiff1d(np.arange(1, 40), faces.subject).tolist() == [14]
    assert np.abs(faces.azimuth).max() == 130
    for size in ("32x32", "randomface504"):
        np.testing.assert_array_equal(datasets.load_yaleb(size=size).y, faces.y)


def test_ar_has_seven_images_a_person_and_session():
    faces = datasets.load_ar()
    assert np.bincount(faces.y_train)[1:].tolist() == [7] * 100
    expected = np.full(100, 7)
    expected[77 - 1] = 6
    np.testing.assert_array_equal(np.bincount(faces.y_test)[1:], expected)


def test_orl_is_in_order_of_people():
    faces = datasets.load_orl(download_if_missing=False)
    np.testing.assert_array_equal(faces.y, np.repeat(np.arange(1, 41), 10))


def test_planetlab_is_symmetric_with_zeros_on_the_diagonal_only():
    times = datasets.load_planetlab().X
    np.testing.assert_array_equal(times, times.transpose(0, 2, 1))
    np.testing.assert_array_equal(times == 0, np.broadcast_to(np.eye(490, dtype=bool), times.shape))


def test_traffic_misses_one_segment_only():
    missing = datasets.load_traffic().X == 0
    expected = np.zeros_like(missing)
    expected[:, 47] = True
    np.testing.assert_array_equal(missing, expected)


def test_pm25_missing_and_hidden_shares():
    air = datasets.load_pm25()
    missing = np.isnan(air.X)
    assert missing.mean() == pytest.approx(0.132, abs=5e-4)
    assert air.eval_mask.mean() == pytest.approx(0.113, abs=5e-4)
    assert not (missing & air.eval_mask).any()
    np.testing.assert_array_equal(air.hour, np.arange(1, 8760))
