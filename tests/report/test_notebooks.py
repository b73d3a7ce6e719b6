"""Figures show themselves as the last line of a cell; progress bars come without warnings."""

import sys
import warnings

import numpy as np
import pytest
from sklearn.callback import ProgressBar

from kernelatoms import KSVD
from kernelatoms.report import atoms_figure, contact_sheet
from kernelatoms.report.figures.calibration import calibration_figure

PNG = b"\x89PNG\r\n\x1a\n"


def figures():
    atoms = np.eye(4)
    yield atoms_figure(atoms, (2, 2))
    yield calibration_figure(np.array([0, 1]), {"a model": np.eye(2)})
    yield contact_sheet(KSVD(3, random_state=0).fit(np.eye(4)), image_shape=(2, 2))


def test_figures_have_a_picture():
    for figure in figures():
        picture, about = figure._repr_png_()
        assert picture.startswith(PNG)
        assert about["width"] == round(100 * figure.get_figwidth())


def test_ipython_shows_them_without_pyplot():
    formatters = pytest.importorskip("IPython.core.formatters")
    figure = next(figures())
    data, metadata = formatters.DisplayFormatter().format(figure)
    assert data["image/png"].startswith(PNG)
    assert metadata["image/png"]["width"] > 0


def test_ipython_shows_them_once_with_pyplot():
    """The formatter that ``%matplotlib inline`` brings has precedence."""
    formatters = pytest.importorskip("IPython.core.formatters")
    pytest.importorskip("matplotlib.pyplot")
    from matplotlib.figure import Figure

    shown = formatters.DisplayFormatter()
    shown.formatters["image/png"].for_type(Figure, lambda figure: b"theirs")
    data, _ = shown.format(next(figures()))
    assert {kind for kind in data if kind.startswith(("image", "text/html"))} == {"image/png"}
    assert data["image/png"] == b"theirs"


def test_progress_bars_come_without_warnings(rng, capsys):
    assert "ipykernel" not in sys.modules
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        KSVD(4, max_iter=2).set_callbacks(ProgressBar()).fit(rng.standard_normal((30, 5)))
    assert "KSVD" in capsys.readouterr().out
