"""Images made up on the spot: what their docstring promises."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelatoms.datasets import make_rgbd_objects


def test_the_same_seed_gives_the_same_images():
    one, two = (make_rgbd_objects(20, broken=0.5, random_state=3) for _ in range(2))
    np.testing.assert_array_equal(one.X, two.X)
    np.testing.assert_array_equal(one.y, two.y)
    assert (make_rgbd_objects(20, random_state=4).X != one.X).any()
    drawn = make_rgbd_objects(20, broken=0.5, random_state=np.random.RandomState(3))
    np.testing.assert_array_equal(drawn.X, one.X)


def test_shapes_labels_and_units():
    objects = make_rgbd_objects(100, image_shape=(6, 9), random_state=0)
    assert objects.X.shape == (100, 6 * 9 * 4)
    assert objects.X.dtype == np.float64
    assert objects.image_shape == (6, 9, 4)
    np.testing.assert_array_equal(objects.y, 3 * objects.colour + objects.shape)
    assert objects.y.dtype == np.int64
    assert sorted(np.bincount(objects.y)) == [11] * 8 + [12]
    assert objects.target_names[5] == "green wedge"
    images = objects.X.reshape(-1, 6, 9, 4)
    assert images[..., :3].min() >= 0
    assert images[..., :3].max() <= 255
    assert images[..., 3].min() > 800
    assert images[..., 3].max() < 960
    for c in range(3):  # the middle pixel has the colour of its class
        middle = images[:, 3, 4, :3].astype(float)
        assert middle[objects.colour == c].mean(axis=0).argmax() == c
    assert "Washington" in objects.DESCR


def score(X, y):
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.01))
    return model.fit(X[::2], y[::2]).score(X[1::2], y[1::2])


def test_colour_tells_colours_and_depth_tells_shapes():
    objects = make_rgbd_objects(900, random_state=0)
    images = objects.X.reshape(900, -1, 4)
    colour, depth = images[..., :3].reshape(900, -1), images[..., 3]
    assert score(colour, objects.colour) > 0.95
    assert score(depth, objects.shape) > 0.9
    assert score(colour, objects.shape) < 0.45  # a third is chance
    assert score(depth, objects.colour) < 0.45


def test_broken_channels_are_static_and_one_an_image():
    whole = make_rgbd_objects(400, random_state=0).X.reshape(400, 100, 4)
    broken = make_rgbd_objects(400, broken=0.25, random_state=0).X.reshape(400, 100, 4)
    changed = (whole != broken).any(axis=1)
    assert set(changed.sum(axis=1)) == {0, 1}
    assert 70 < changed.sum() < 130
    assert changed.any(axis=0).all()
    for c in range(4):
        static = broken[changed[:, c], :, c]
        assert static.mean() == pytest.approx(whole[..., c].mean(), rel=0.05)
        assert static.std() == pytest.approx(whole[..., c].std(), rel=0.05)
    assert (make_rgbd_objects(50, broken=1, random_state=0).X != 0).any()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"n_samples": 0}, "n_samples must be a whole number from 1, got 0"),
        ({"n_samples": 2.0}, "n_samples must be a whole number"),
        ({"n_samples": True}, "n_samples must be a whole number"),
        ({"image_shape": (3, 10)}, r"image_shape must be \(height, width\), whole numbers from 4"),
        ({"image_shape": (10, 10, 4)}, "four channels come on top"),
        ({"image_shape": 10}, "image_shape must be"),
        ({"broken": 1.1}, r"broken must be a share of the images, from 0 to 1, got 1\.1"),
        ({"broken": -0.1}, "broken must be a share"),
        ({"broken": np.nan}, "broken must be a share"),
        ({"broken": "few"}, "broken must be a share"),
    ],
)
def test_what_cannot_be(arguments, words):
    with pytest.raises(ValueError, match=words):
        make_rgbd_objects(**arguments)
    assert make_rgbd_objects(1, image_shape=[4, 5], broken=1, random_state=0).X.shape == (1, 80)
