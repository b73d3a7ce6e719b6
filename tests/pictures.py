"""Pages without the drawing of their pictures, which is most of the time that a page takes.

Figures are made all the same. ``make test-slow`` draws them, and so do tests that ask for
``drawn``.
"""

import pytest

from draws import PROFILE
from kernelatoms.report import page

UNDRAWN = "data:image/svg+xml;base64,PHN2Zy8+"


@pytest.fixture
def drawn():
    """For tests that look at pictures."""


@pytest.fixture(autouse=True)
def undrawn_pictures(request, monkeypatch):
    """Put an empty picture in the place of every figure."""
    if PROFILE == "house" and "drawn" not in request.fixturenames:
        monkeypatch.setattr(page, "embed_figure", lambda figure: UNDRAWN)
