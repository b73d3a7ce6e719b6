"""Measured curves beside reported ones: never more in one plot than are told apart."""

import numpy as np
import pytest
from matplotlib.colors import to_hex

from reproduction.dots import dots_figure
from reproduction.drawing import series_figure

PLACES = [1, 2, 3, 4]


def lines(names, places=PLACES):
    return {name: (places, [[i, i + 0.5] for i in range(len(places))]) for name in names}


def draw(of_lines, levels=None, reported=None, **axes):
    return series_figure(
        of_lines, levels or {}, reported or {}, xlabel="size", ylabel="seconds", **axes
    )


def legend_of(figure):
    (legend,) = figure.legends
    return [text.get_text() for text in legend.get_texts()]


def titles_of(figure):
    return [ax.get_title(loc="left") for ax in figure.axes if ax.axison]


def test_seven_curves_share_a_plot_in_seven_colours_and_markers():
    names = [f"method {i}" for i in range(7)]
    (ax,) = draw(lines(names)).axes
    drawn = [container.lines[0] for container in ax.containers]
    assert len({to_hex(line.get_color()) for line in drawn}) == 7
    assert len({line.get_marker() for line in drawn}) == 7


def test_reported_numbers_and_levels_count_as_curves():
    names = [f"method {i}" for i in range(5)]
    reported = {name: dict.fromkeys(PLACES, 1.0) for name in names[:2]}
    assert len(draw(lines(names), {}, reported).axes) == 1
    figure = draw(lines(names), {"level": [1.0]}, reported)
    assert titles_of(figure) == [*names, "level"]
    assert legend_of(figure) == ["reported", "the others"]


def test_of_eight_curves_each_has_a_plot_in_which_the_others_are_pale():
    names = [f"method {i}" for i in range(8)]
    figure = draw(lines(names))
    assert titles_of(figure) == names
    for ax in figure.axes:
        assert len(ax.containers) == 1
        assert len(ax.get_lines()) >= 1 + len(names)  # its own, and all in pale
    assert legend_of(figure) == ["the others"]


def test_many_small_plots_stand_three_in_a_row_and_long_titles_are_broken():
    names = [f"a method with a name that is rather long, number {i}" for i in range(10)]
    figure = draw(lines(names))
    assert figure.axes[0].get_subplotspec().get_gridspec().ncols == 3
    assert all("\n" in title for title in titles_of(figure))


def test_names_of_groups_share_a_plot_a_group():
    names = [f"{group}: {method}" for group in ("faces", "digits") for method in "abcd"]
    figure = draw(lines(names), {"faces: a": [2.0]})
    assert titles_of(figure) == ["faces", "digits"]
    assert legend_of(figure) == ["a", "b", "c", "d"]
    faces, digits = (
        [to_hex(container.lines[0].get_color()) for container in ax.containers]
        for ax in figure.axes
    )
    assert faces == digits
    assert len(set(faces)) == 4


def test_groups_of_more_than_seven_are_no_groups():
    names = [f"{group}: {method}" for group in ("faces", "digits") for method in "abcdefgh"]
    assert titles_of(draw(lines(names))) == names


@pytest.mark.parametrize(("places", "scale"), [([1, 2, 3, 40], "linear"), ([1, 2, 3, 41], "log")])
def test_places_that_spread_far_are_drawn_on_a_logarithmic_axis(places, scale):
    (ax,) = draw(lines(["ours"], places)).axes
    assert ax.get_xscale() == scale


def test_numbers_at_logarithmic_axes_are_plain():
    places = [10, 100, 1000, 1_000_000]
    (ax,) = draw(lines(["ours"], places)).axes
    write = ax.xaxis.get_major_formatter()
    assert [write(x) for x in (0.001, 20, 5000, 1e6)] == ["0.001", "20", "5,000", "1e6"]


def test_dots_have_a_colour_and_a_marker_for_each_of_seven_places():
    places = [f"set {i}" for i in range(7)]
    figure = dots_figure({"ours": {place: [1.0, 2.0] for place in places}}, {}, xlabel="accuracy")
    (ax,) = figure.axes
    drawn = [container.lines[0] for container in ax.containers]
    assert len({to_hex(line.get_color()) for line in drawn}) == 7
    assert len({line.get_marker() for line in drawn}) == 7
    assert legend_of(figure) == places


def test_dots_of_a_method_whose_name_takes_two_lines_have_twice_the_room():
    names = ["short", "a method with a name that is rather long", "another"]
    (ax,) = dots_figure({name: {"set": [1.0]} for name in names}, {}, xlabel="accuracy").axes
    np.testing.assert_allclose(ax.get_yticks(), [0.5, 2.0, 3.5])
    assert ax.get_ylim() == (4, 0)
