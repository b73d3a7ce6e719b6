"""One curve a class: together, in small plots, or as a band, each told by its name."""

import numpy as np
import pytest

from kernelatoms.report.figures.distributions import class_curves_figure


def curves(n_classes, rng):
    lengths = rng.integers(3, 9, n_classes)
    lengths[0] = 8
    return {f"class {c}": rng.random(length) + 0.1 for c, length in enumerate(lengths)}


@pytest.mark.parametrize(("n_classes", "with_total"), [(2, True), (6, True), (7, False)])
def test_up_to_seven_curves_share_a_plot_and_differ_in_more_than_hue(rng, n_classes, with_total):
    given = curves(n_classes, rng)
    figure = class_curves_figure(given, "x", "y", np.ones(8) if with_total else None)
    (ax,) = figure.axes
    (legend,) = figure.legends
    names = [text.get_text() for text in legend.get_texts()]
    assert names == [*given, *(["all classes"] if with_total else [])]
    lines = ax.lines[:n_classes]
    for line, values in zip(lines, given.values(), strict=True):
        np.testing.assert_array_equal(line.get_ydata(), values)
        np.testing.assert_array_equal(line.get_xdata(), np.arange(1, len(values) + 1))
    assert len({line.get_marker() for line in lines}) == n_classes
    assert len({line.get_color() for line in lines}) == n_classes


@pytest.mark.parametrize(("n_classes", "with_total"), [(7, True), (8, False), (16, False)])
def test_more_have_a_small_plot_each(rng, n_classes, with_total):
    given = curves(n_classes, rng)
    figure = class_curves_figure(given, "x", "y", np.ones(8) if with_total else None)
    plots = [ax for ax in figure.axes if ax.get_visible()]
    assert [ax.get_title() for ax in plots] == list(given)
    even = np.array([np.append(v, [np.nan] * (8 - len(v))) for v in given.values()])
    middle = np.ones(8) if with_total else np.nanmedian(even, axis=0)
    for ax, values in zip(plots, given.values(), strict=True):
        together, own = ax.lines
        np.testing.assert_array_equal(own.get_ydata(), values)
        np.testing.assert_allclose(together.get_ydata(), middle)
        assert together.get_linestyle() != own.get_linestyle()
    said = [text.get_text() for text in figure.legends[0].get_texts()]
    assert said == ["the class", "all classes" if with_total else "the median class"]


def test_of_very_many_the_span_and_the_ends_are_drawn_by_name(rng):
    given = {f"class {c}": values + 0.5 * (c == 9) for c, values in enumerate(rng.random((17, 5)))}
    given["class 4"] = given["class 4"] / 100
    figure = class_curves_figure(given, "x", "y")
    (ax,) = figure.axes
    said = [text.get_text() for text in figure.legends[0].get_texts()]
    means = {name: values.mean() for name, values in given.items()}
    assert said == [
        "all 17 classes lie here",
        f"lowest on average: {min(means, key=means.get)}",
        f"highest on average: {max(means, key=means.get)}",
        "the median class",
    ]
    every = np.array(list(given.values()))
    low, high, middle = ax.lines
    np.testing.assert_array_equal(low.get_ydata(), given["class 4"])
    np.testing.assert_array_equal(high.get_ydata(), given[max(means, key=means.get)])
    np.testing.assert_allclose(middle.get_ydata(), np.median(every, axis=0))
    edges = ax.collections[0].get_paths()[0].vertices
    assert edges[:, 1].max() == pytest.approx(every.max())


def test_long_names_that_are_cut_alike_keep_their_curves(rng):
    given = {f"a very long name of a class, number {c}": rng.random(4) for c in range(3)}
    (ax,) = class_curves_figure(given, "x", "y").axes
    assert len(ax.lines) == 3
