"""The reliability diagram: its numbers by hand, and what it refuses."""

import numpy as np
import pytest

from kernelatoms.report.figures.calibration import calibration_figure, reliability


def test_numbers_by_hand():
    p = np.array([[0.9, 0.1], [0.7, 0.3], [0.2, 0.8], [0.45, 0.55]])
    found = reliability(np.array([0, 1, 1, 1]), p, n_bins=2)
    np.testing.assert_allclose(found.sure, [0.625, 0.85])
    np.testing.assert_allclose(found.right, [0.5, 1.0])
    assert found.counts.tolist() == [2, 2]
    assert found.error == pytest.approx((0.125 + 0.15) / 2)
    assert found.log_loss == pytest.approx(-np.log([0.9, 0.3, 0.8, 0.55]).mean())


def test_a_model_that_knows_its_chances_lies_on_the_diagonal(rng):
    p = rng.dirichlet(np.ones(4), size=40_000)
    truth = (rng.random((40_000, 1)) < np.cumsum(p, axis=1)).argmax(axis=1)
    # 10 bins of 4,000: the standard error of each is below 0.008, their mean distance 0.0064.
    assert reliability(truth, p).error < 0.02
    assert reliability(truth, np.sqrt(p) / np.sqrt(p).sum(axis=1, keepdims=True)).error > 0.05


def test_the_figure_draws_these_numbers(rng):
    p = rng.dirichlet(np.ones(3), size=50)
    truth = rng.integers(0, 3, 50)
    figure = calibration_figure(truth, {"one": p, "two": p[:, ::-1]})
    (ax,) = figure.axes
    _, one, two = ax.lines
    np.testing.assert_allclose(one.get_ydata(), reliability(truth, p).right)
    np.testing.assert_allclose(two.get_ydata(), reliability(truth, p[:, ::-1]).right)


@pytest.mark.parametrize(
    ("truth", "p", "n_bins", "words"),
    [
        ([0, 1], np.ones((3, 2)), 10, "truth must hold a class for every row"),
        ([0, 2], np.ones((2, 2)), 10, "numbers of classes, 0..1"),
        ([0, 1], np.ones((2, 2)), 0, "n_bins must be a whole number"),
    ],
)
def test_what_is_refused(truth, p, n_bins, words):
    with pytest.raises(ValueError, match=words):
        reliability(truth, p, n_bins)
    with pytest.raises(ValueError, match="dict of one to four"):
        calibration_figure(truth, p)
