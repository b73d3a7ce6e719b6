"""Figures as data URIs that look right everywhere: in all scripts, on light pages and dark ones.

Letters of matplotlib's own font are outlines in the SVG, the same on every machine. Labels in
other scripts are texts in it, which the reader's browser draws: it has fonts for them where any
program has, joins letters and turns directions. The room for them is measured by stand-ins.

On dark pages pictures are turned light for dark by a filter of the page, which leaves white the
colour of its cards. Photographs would be negatives then: of figures that hold some there is a
second, dark version, in which everything else is turned the same way.
"""

import base64
import io
import re
from contextlib import nullcontext
from functools import cache
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.backend_bases import FigureCanvasBase
from matplotlib.backends.backend_svg import RendererSVG
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.text import Text

from kernelatoms.report.words import columns, runs_leftward

_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")
# SVG is sharp at every size and small for lines and letters; a picture of very many parts is
# smaller as PNG.
_LARGEST_SVG = 250_000
_PNG_DPI = 160
_SVG_START = "data:image/svg+xml;base64,"
# The page's filter, invert(88%) and hue-rotate(180deg), by the matrices of CSS.
INVERTED = 0.88
_GREY_OF = np.array([0.213, 0.715, 0.072])
_COLOUR = re.compile(r"#([0-9a-f]{6})\b")
# As wide as a mark on a letter; as most letters; as the square of a Chinese letter or an emoji.
_SPACES = {0: "", 1: "n", 2: "\u2014"}
_STYLES = re.compile(r'style="[^"]*"|<style>.*?</style>', re.DOTALL)


def embed_figure(figure: Any) -> str:
    """Return a figure as a data URI: SVG, or PNG where the SVG would be large."""
    # Control characters in labels, which matplotlib repeats, are not known to XML.
    text = _NOT_IN_XML.sub("?", _as_svg(figure))
    foreign = any(needs_browser(label.get_text()) for label in figure.findobj(Text))
    if len(text) <= _LARGEST_SVG or holds_photographs(figure) or foreign:
        return _SVG_START + _base64(text.encode())
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=_PNG_DPI)
    return f"data:image/png;base64,{_base64(data.getvalue())}"


def holds_photographs(figure: Any) -> bool:
    """Return whether a figure has images in colours of their own."""
    return any(image.get_array().ndim == 3 for ax in figure.axes for image in ax.images)


def darken(uri: str) -> str:
    """Return an SVG's data URI for dark pages: all but its images turned light for dark."""
    text = base64.b64decode(uri.removeprefix(_SVG_START)).decode()
    # What has no colour of its own is black; axes and figures lie on white.
    text = text.replace("<defs>", "<style>svg { fill: #000000 }</style><defs>", 1)
    text = _STYLES.sub(lambda style: _COLOUR.sub(lambda c: _turned(c[1]), style[0]), text)
    return _SVG_START + _base64(text.encode())


def _turned(colour: str) -> str:
    """Return a colour as the page's filter turns it."""
    rgb = np.array([int(colour[i : i + 2], 16) for i in (0, 2, 4)]) / 255
    rgb = INVERTED + (1 - 2 * INVERTED) * rgb
    # The hue turned by half a circle: what is not grey changes its sign.
    grey = float(rgb @ _GREY_OF)
    rgb = np.clip(2 * grey - rgb, 0, 1)
    return "#" + "".join(f"{round(255 * value):02x}" for value in rgb)


def _as_svg(figure: Any) -> str:
    """Draw a figure by the renderer below, which also lays it out."""
    file = io.StringIO()
    dpi, canvas = figure.dpi, figure.canvas
    width, height = figure.get_size_inches() * 72
    # Without a date, equal figures give equal words.
    renderer = _Renderer(width, height, file, image_dpi=dpi, metadata={"Date": None})
    try:
        figure.dpi = 72
        # Layout engines ask the canvas for the renderer that will draw.
        drawing: Any = FigureCanvasBase(figure)
        drawing.get_renderer = lambda: renderer
        with rc_context({"svg.fonttype": "path"}):
            figure.draw(renderer)
    finally:
        figure.set_canvas(canvas)
        figure.dpi = dpi
    renderer.finalize()
    return file.getvalue()


class _Renderer(RendererSVG):
    """matplotlib's, which leaves to the browser what its font cannot draw."""

    def draw_text(self, gc: Any, x: Any, y: Any, s: str, *rest: Any, **options: Any) -> None:
        """Draw a text as outlines, or write it down."""
        # Only where it has to change: to set it takes longer than most texts do.
        written = rc_context({"svg.fonttype": "none"}) if needs_browser(s) else nullcontext()
        with written:
            super().draw_text(gc, x, y, s, *rest, **options)

    def get_text_width_height_descent(self, s: str, prop: Any, ismath: Any) -> Any:
        """Measure a text; by its stand-in where a font of the browser will draw it."""
        return super().get_text_width_height_descent(stand_in(s), prop, ismath)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def needs_browser(text: str) -> bool:
    """Return whether a text has letters that matplotlib cannot draw as they are written."""
    if text.isascii():
        return False
    known = _known_letters()
    return any(ord(letter) not in known for letter in text) or runs_leftward(text)


def stand_in(text: str) -> str:
    """Return letters that matplotlib knows, about as wide as a text of any script."""
    if text.isascii():
        return text
    known = _known_letters()
    return "".join(c if ord(c) in known else _SPACES[columns(c)] for c in text)


@cache
def _known_letters() -> frozenset[int]:
    # A line end parts lines and is never drawn.
    return frozenset([*get_font(findfont(FontProperties())).get_charmap(), ord("\n")])
