"""Where codes have their weight: every atom's and every class's sum is drawn, in its colour."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse
from matplotlib.colors import to_hex

from draws import later
from kernelatoms.report.figures.code_energies import code_energy_figure
from kernelatoms.report.figures.style import COLOURS


def bars(ax):
    """Return heights and colours of bars, or of the lines that stand for many of them."""
    if ax.patches:
        heights = [patch.get_height() for patch in ax.patches]
        return np.array(heights), [to_hex(patch.get_facecolor()) for patch in ax.patches]
    (lines,) = ax.collections
    return (
        np.array([segment[1, 1] for segment in lines.get_segments()]),
        [to_hex(colour) for colour in lines.get_colors()],
    )


@pytest.mark.parametrize(("n_atoms", "n_classes"), [(20, 2), later(570, 38)])
@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array])
def test_sums_by_atom_and_by_class(rng, n_atoms, n_classes, kind):
    codes = rng.standard_normal((7, n_atoms)) * (rng.random((7, n_atoms)) < 0.5)
    owners = rng.permutation(np.arange(n_atoms) % n_classes)
    names = [f"class {c}" for c in range(n_classes)]
    figure = code_energy_figure(kind(codes), owners, names, own="class 1")
    upper, strip, lower = figure.axes
    order = np.argsort(owners, kind="stable")
    sums = np.abs(codes).sum(axis=0)
    heights, colours = bars(upper)
    np.testing.assert_allclose(heights, sums[order])
    mine = owners[order] == 1
    assert [c == COLOURS[1].lower() for c in colours] == mine.tolist()
    totals = np.array([sums[owners == c].sum() for c in range(n_classes)])
    heights, colours = bars(lower)
    np.testing.assert_allclose(heights, totals)
    assert [c == COLOURS[1].lower() for c in colours] == [c == 1 for c in range(n_classes)]
    # In the strip a colour changes where a class ends, and nowhere else.
    marks = bars(strip)[1]
    changes = [one != other for one, other in zip(marks[1:], marks[:-1], strict=True)]
    assert changes == (np.diff(owners[order]) != 0).tolist()
    assert upper.get_title() == f"{100 * totals[1] / totals.sum():.1f}% on the own class"
    figure.draw_without_rendering()
    shown = [tick.get_text() for tick in lower.get_xticklabels()]
    assert "class 1" in shown
    if n_classes == 2:
        assert shown == names


@pytest.mark.slow
def test_names_do_not_overlap_with_many_classes(rng):
    codes, owners = rng.random((3, 570)), np.repeat(np.arange(38), 15)
    for own in (0, 1, 17, 37):
        figure = code_energy_figure(
            codes, owners, [f"person {c}" for c in range(38)], f"person {own}"
        )
        figure.draw_without_rendering()
        boxes = [label.get_window_extent() for label in figure.axes[2].get_xticklabels()]
        assert all(one.x1 <= two.x0 + 0.5 for one, two in pairwise(boxes))
        assert f"person {own}" in [label.get_text() for label in figure.axes[2].get_xticklabels()]


def test_models_side_by_side(rng):
    codes = {"one": rng.random((4, 10)), "two": rng.random((4, 6)), "three": rng.random((4, 10))}
    owners = {"one": np.arange(10) % 2, "two": np.arange(6) // 3, "three": np.arange(10) // 5}
    figure = code_energy_figure(codes, owners, ["a", "b"])
    assert [ax.get_title() for ax in figure.axes[:3]] == ["one", "two", "three"]
    for i, name in enumerate(codes):
        sums = codes[name].sum(axis=0)
        expected = [sums[owners[name] == c].sum() for c in range(2)]
        np.testing.assert_allclose(bars(figure.axes[6 + i])[0], expected)
    assert (
        figure.get_figwidth() > code_energy_figure(codes["one"], owners["one"], "ab").get_figwidth()
    )


def test_empty_codes_are_drawn():
    figure = code_energy_figure(np.zeros((2, 4)), [0, 0, 1, 1], ["a", "b"], own="a")
    assert figure.axes[0].get_title() == ""
    figure.draw_without_rendering()


@pytest.mark.parametrize(
    ("codes", "owners", "own", "words"),
    [
        (np.ones(4), [0, 0, 1, 1], None, r"codes must have shape \(n_rows, n_atoms\)"),
        (np.ones((2, 4)), [0, 0, 1], None, "each of the 4 atoms"),
        (np.ones((2, 4)), [0.0, 0, 1, 1], None, "whole number"),
        (np.ones((2, 4)), [0, 0, 1, 2], None, "between 0 and 1"),
        (np.ones((2, 4)), [0, 0, 1, 1], "c", "own must be one of classes, got 'c'"),
        ({"m": np.ones((2, 4))}, {"n": [0, 0, 1, 1]}, None, "the same models"),
    ],
)
def test_bad_input(codes, owners, own, words):
    with pytest.raises(ValueError, match=words):
        code_energy_figure(codes, owners, ["a", "b"], own)
