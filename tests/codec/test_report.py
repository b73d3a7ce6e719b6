"""The figure of a compressed matrix."""

import numpy as np
import pytest

from draws import later
from kernelatoms.codec import compression_figure
from kernelatoms.codec.report import figure_bytes


@pytest.mark.parametrize("shape", [(50, 30), later((50, 3)), (1, 1), later((3, 200))], ids=str)
def test_matrices_of_any_shape_are_drawn(rng, shape):
    X = rng.normal(size=shape)
    names = [f"$sensor_{i}" for i in range(shape[1])]
    X.flat[0] = np.nan
    figure = compression_figure(X, X + 0.01, title="a $b", max_error=0.02, column_names=names)
    assert figure_bytes(figure, "png")[:4] == b"\x89PNG"
    alone = compression_figure(None, X)
    assert len(alone.axes) < len(figure.axes)
    assert b"<svg" in figure_bytes(alone, "svg")


def test_the_bound_is_drawn_beside_the_errors():
    X = np.ones((9, 20))
    for bounds, label in (({"max_error": 0.5}, "error of a row / its norm"),
                          ({"max_absolute": 0.3}, "largest error of a row's values")):  # fmt: skip
        axes = compression_figure(X, 1.1 * X, **bounds).axes
        (errors,) = [ax for ax in axes if ax.get_ylabel() == label]
        heights = [line.get_ydata() for line in errors.lines]
        assert np.allclose(heights[0], 0.1)
        assert heights[1][0] == next(iter(bounds.values()))


def test_matrices_of_different_shapes_are_refused():
    with pytest.raises(ValueError, match="matrices of one shape"):
        compression_figure(np.ones((2, 3)), np.ones((3, 2)))


def test_nothing_finite_is_drawn_too():
    figure_bytes(compression_figure(np.full((4, 4), np.nan), np.full((4, 4), np.nan)), "png")


def test_gaps_and_spikes_of_long_matrices_are_seen_in_both_maps():
    X = np.tile(np.sin(np.arange(5003) / 700), (3, 1)).T
    X[1234, 1], X[5002, 2], X[77, 0] = np.nan, np.nan, 9.0
    axes = compression_figure(X, X + 0.01, max_error=0.1).axes
    maps = [ax.images[0] for ax in axes if ax.get_title(loc="left") in ("original", "decoded")]
    for image in maps:
        shown = np.ma.filled(image.get_array(), np.nan)
        assert shown.shape[0] == 3
        assert shown.shape[1] <= 240
        assert np.isnan(shown).sum() == 2
        assert np.nanmax(shown[0]) >= 9
        assert image.get_extent() == [-0.5, 5002.5, 2.5, -0.5]
    np.testing.assert_array_equal(*(np.isnan(np.ma.filled(m.get_array(), np.nan)) for m in maps))
