"""Figures hold what they were given: every atom, every label, every number."""

import subprocess
import sys

import numpy as np
import pytest
from matplotlib.figure import Figure

from kernelatoms.report import atoms_figure, code_figure, convergence_figure, images_figure
from kernelatoms.report.figures.classes import confusion_figure
from kernelatoms.report.figures.scores import robustness_figure
from kernelatoms.report.page import Fold

SHAPE = (4, 6)


@pytest.fixture
def atoms(rng):
    return rng.normal(size=(10, 24))


def texts(figure):
    figure.draw_without_rendering()
    return [
        text.get_text()
        for ax in figure.axes
        for text in (ax.title, ax.xaxis.label, ax.yaxis.label, *ax.get_yticklabels(), *ax.texts)
    ]


def test_atoms_are_drawn_each_on_its_own_scale(atoms):
    figure = atoms_figure(atoms, SHAPE, n_columns=4, row_labels=["first", "second", "third"])
    assert isinstance(figure, Figure)
    (ax,) = figure.axes
    assert len(ax.images) == len(atoms)
    for image, atom in zip(ax.images, atoms, strict=True):
        np.testing.assert_allclose(image.get_array(), (atom / np.abs(atom).max()).reshape(SHAPE))
        assert image.get_clim() == (-1, 1)  # white is 0
    assert [label.get_text() for label in ax.get_yticklabels()] == ["first", "second", "third"]


def test_atoms_lie_in_rows_of_the_grid_and_do_not_overlap(atoms):
    (ax,) = atoms_figure(atoms, SHAPE, n_columns=4).axes
    boxes = np.array([image.get_extent() for image in ax.images])  # left, right, bottom, top
    assert len(set(boxes[:, 3])) == 3
    assert len(set(boxes[:, 0])) == 4
    for i, (left, right, bottom, top) in enumerate(boxes):
        assert (bottom - top) / (right - left) == pytest.approx(SHAPE[0] / SHAPE[1])
        others = np.delete(boxes, i, axis=0)
        apart_x = (others[:, 0] >= right) | (others[:, 1] <= left)
        apart_y = (others[:, 3] >= bottom) | (others[:, 2] <= top)
        assert (apart_x | apart_y).all()


def test_labels_of_the_grid_lie_inside_the_figure(atoms):
    figure = atoms_figure(atoms[:2], SHAPE, n_columns=1, row_labels=["a rather long label", "b"])
    figure.draw_without_rendering()
    for label in figure.axes[0].get_yticklabels():
        assert label.get_window_extent().x0 >= 0


def test_images_share_one_scale(atoms):
    (ax,) = images_figure(atoms, SHAPE).axes
    drawn = np.array([image.get_array() for image in ax.images])
    np.testing.assert_allclose(drawn.reshape(10, -1), atoms / np.abs(atoms).max())


def test_a_zero_atom_is_drawn_as_zero():
    (ax,) = atoms_figure(np.zeros((1, 24)), SHAPE).axes
    assert not np.any(ax.images[0].get_array())


@pytest.mark.parametrize("bad", [np.ones((3, 23)), np.ones(24), np.empty((0, 24))])
def test_rows_that_are_no_images_are_refused(bad):
    with pytest.raises(ValueError, match=r"atoms must hold rows of 4 x 6 = 24 values"):
        atoms_figure(bad, SHAPE)


def test_row_labels_must_fit_the_grid(atoms):
    with pytest.raises(ValueError, match="row_labels must name each of the 3 rows"):
        atoms_figure(atoms, SHAPE, n_columns=4, row_labels=["first"])


def test_code_shows_signal_sum_rest_and_used_atoms(atoms):
    code = np.zeros(10)
    code[[2, 7]] = [0.5, -1.5]
    signal = code @ atoms + 0.1
    figure = code_figure(signal, atoms, code, SHAPE)
    images = [np.asarray(ax.images[0].get_array()) for ax in figure.axes if ax.images]
    expected = [signal, code @ atoms, signal - code @ atoms, atoms[7], atoms[2]]
    assert len(images) == len(expected)
    for image, rows in zip(images, expected, strict=True):
        np.testing.assert_allclose(image.ravel(), rows)
    share = 100 * 24 * 0.01 / (signal @ signal)
    words = "\n".join(texts(figure))
    assert f"left over: {share:.1f}%" in words
    assert "-1.50 ·\natom 7" in words
    assert "+0.50 ·\natom 2" in words
    assert "2 of 10 coefficients are not 0" in words


def test_code_draws_the_largest_of_many_atoms(atoms):
    code = np.arange(1.0, 11)
    figure = code_figure(atoms[0], atoms, code, SHAPE, max_atoms=3)
    words = [text for text in texts(figure) if "·" in text]
    assert words == ["+10.00 ·\natom 9", "+9.00 ·\natom 8", "+8.00 ·\natom 7"]


def test_an_empty_code_leaves_everything_over(atoms):
    words = texts(code_figure(atoms[0], atoms, np.zeros(10), SHAPE))
    assert "left over: 100.0%" in words


def test_code_must_fit_the_atoms(atoms):
    with pytest.raises(ValueError, match="code must hold one coefficient for each of the 10"):
        code_figure(atoms[0], atoms, np.zeros(9), SHAPE)


def test_robustness_has_means_and_error_bars(rng):
    levels = [0.0, 0.1, 0.5]
    scores = {"one": rng.random((5, 3)), "two": rng.random((5, 3))}
    (ax,) = robustness_figure(levels, scores, xlabel="noise").axes
    assert ax.get_xlabel() == "noise"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["one", "two"]
    for container, values in zip(ax.containers, scores.values(), strict=True):
        line, _, (bars,) = container.lines
        np.testing.assert_allclose(line.get_xdata(), levels)
        np.testing.assert_allclose(line.get_ydata(), values.mean(axis=0))
        heights = [segment[1, 1] - segment[0, 1] for segment in bars.get_segments()]
        np.testing.assert_allclose(heights, 2 * values.std(axis=0, ddof=1) / np.sqrt(5))


def test_robustness_needs_a_column_for_each_level(rng):
    with pytest.raises(ValueError, match=r"scores\['one'\] must have one column for each of the 2"):
        robustness_figure([0, 1], {"one": rng.random((5, 3))}, xlabel="noise")


def test_convergence_draws_every_pass():
    curves = {"one": [3.0, 2.0, 1.5], "two": [5.0, 4.0]}
    (ax,) = convergence_figure(curves, ylabel="error").axes
    assert ax.get_ylabel() == "error"
    for line, values in zip(ax.lines, curves.values(), strict=True):
        np.testing.assert_array_equal(line.get_xdata(), np.arange(1, len(values) + 1))
        np.testing.assert_array_equal(line.get_ydata(), values)
    assert convergence_figure(curves, log=True).axes[0].get_yscale() == "log"


def test_confusion_writes_counts_where_they_belong():
    matrix = np.array([[5, 0, 1], [0, 7, 0], [2, 0, 3]])
    (ax,) = confusion_figure(matrix, ["a", "b", "c"]).axes
    written = {(int(t.get_position()[1]), int(t.get_position()[0])): t.get_text() for t in ax.texts}
    assert written == {(0, 0): "5", (0, 2): "1", (1, 1): "7", (2, 0): "2", (2, 2): "3"}
    assert [label.get_text() for label in ax.get_xticklabels()] == ["a", "b", "c"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("taken for", "true class")
    # Colours follow the share of the row, not the count.
    colours = np.asarray(ax.images[0].get_array())
    assert colours[1, 1] == 1
    assert colours[0, 2] == pytest.approx(np.sqrt(1 / 6))


def test_confusion_must_be_square():
    with pytest.raises(ValueError, match="matrix must be square"):
        confusion_figure(np.ones((2, 3)), ["a", "b"])


@pytest.mark.slow
def test_plots_are_not_paid_for_by_the_package_nor_pyplot_by_plots():
    code = (
        "import sys, kernelatoms; assert 'matplotlib' not in sys.modules;"
        "kernelatoms.report; assert 'matplotlib.figure' in sys.modules;"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("value", [1, "yes", None])
def test_flags_are_true_or_false(value):
    with pytest.raises(TypeError, match="log must be True or False"):
        convergence_figure({"one": [1.0]}, log=value)
    with pytest.raises(TypeError, match="is_open must be True or False"):
        Fold("a", "b", is_open=value)
