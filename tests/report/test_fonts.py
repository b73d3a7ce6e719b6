"""Scripts of the world: texts for the browser where matplotlib's font ends, with room for them."""
# ruff: noqa: RUF001

import base64
import re
import warnings
from xml.etree import ElementTree

import numpy as np
import pytest

from kernelatoms.report import Picture, Section, images_figure
from kernelatoms.report.embedding import INVERTED, darken, embed_figure, needs_browser, stand_in
from kernelatoms.report.figures.classes import confusion_figure
from kernelatoms.report.figures.style import COLOURS, GREY, ink_on, text_width
from kernelatoms.report.page import render_page
from kernelatoms.report.words import isolate, labels_words, shorten

WORLD = ["中文标签", "العربية", "हिन्दी", "עברית", "ไทย", "🚗"]
DRAWN = ["plain", "Größe", "ελληνικά", "русский", "a µ ± –"]

pytestmark = pytest.mark.filterwarnings("error")


def svg_of(figure):
    return base64.b64decode(embed_figure(figure).split(",")[1]).decode()


def light(colour):
    """Return the relative luminance of a colour (WCAG 2)."""
    rgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(one, other):
    high, low = sorted((light(one), light(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def turned(colour):
    start = "data:image/svg+xml;base64"
    svg = f'<svg><defs></defs><path style="fill: {colour.lower()}"/></svg>'
    found = darken(f"{start},{base64.b64encode(svg.encode()).decode()}").split(",")[1]
    return re.findall("#[0-9a-f]{6}", base64.b64decode(found).decode())[-1]


@pytest.mark.parametrize("text", WORLD)
def test_other_scripts_are_left_to_the_browser(text, drawn):
    assert needs_browser(text)
    svg = svg_of(confusion_figure(np.eye(2, dtype=int), [text, "plain"]))
    root = ElementTree.fromstring(svg)
    texts = ["".join(e.itertext()) for e in root.iter() if e.tag.endswith("}text")]
    assert texts == [text, text]  # down and across; all other words are outlines
    assert "<!-- plain -->" in svg


@pytest.mark.parametrize("text", DRAWN)
def test_what_the_font_has_is_drawn_as_outlines(text, drawn):
    assert not needs_browser(text)
    assert stand_in(text) == text
    assert "<text" not in svg_of(confusion_figure(np.eye(2, dtype=int), [text, "b"]))


def test_room_is_measured_by_stand_ins():
    assert stand_in("中文a") == "\u2014\u2014a"
    assert stand_in("ไทยกี่") == "nnnn"  # marks on letters take no room
    assert text_width("中中中中", 10) == pytest.approx(40 / 72, rel=0.05)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert 0 < text_width("".join(WORLD), 10) < 6


def test_long_names_are_cut_by_the_room_they_take():
    assert shorten("中" * 20, 8) == "中中中…"
    assert shorten("中" * 4, 8) == "中" * 4
    assert shorten("e\u0301" * 8, 8) == "e\u0301" * 8
    assert shorten("e\u0301" * 9, 8) == "e\u0301" * 7 + "…"  # no mark is parted from its letter


def test_words_from_right_to_left_keep_their_neighbours_in_place():
    assert isolate("plain") == "plain"
    assert isolate("中文") == "中文"
    assert isolate("עברית") == "\u2068עברית\u2069"
    assert labels_words(["עברית", "b"], 5) == "\u2068עברית\u2069, b"


def test_dark_pictures_are_the_pages_filter_and_can_be_read():
    page = render_page("Title", [])
    card = re.search(r"prefers-color-scheme: dark.*?--card: (#[0-9a-f]{6})", page, re.DOTALL)[1]
    assert f"invert({100 * INVERTED:g}%) hue-rotate(180deg)" in page
    # White becomes the card, so that no box is seen; what was dark is light.
    assert turned("#ffffff") == card
    assert contrast(turned("#000000"), card) > 10
    assert contrast(turned(GREY), card) > 4.5
    for colour in COLOURS:
        assert contrast(colour, "#ffffff") > 3
        assert contrast(turned(colour), card) > 3
    # As Chromium computes it: blue stays blue, vermilion itself.
    assert turned("#0072b2") == "#51a8d8"
    assert turned("#d55e00") == "#d77d35"
    for ground in ("#0072b2", "#ffffff", "#6baed6", "#08306b"):
        ink = {"black": "#000000", "white": "#ffffff"}
        assert contrast(ground, ink[ink_on(ground)]) >= 4.5


def test_photographs_are_no_negatives_in_the_dark(rng, drawn):
    colour = Picture(images_figure(rng.random((2, 12)), (2, 2, 3)), "In colour", "one")
    grey = Picture(images_figure(rng.random((2, 4)), (2, 2)), "In grey", "two")
    page = render_page("Title", [Section("One", pictures=[colour, grey])])
    assert page.count("<picture>") == 1
    dark, usual = re.findall(r'src(?:set)?="data:image/svg\+xml;base64,([^"]*)"', page)[:2]
    dark, usual = (base64.b64decode(data).decode() for data in (dark, usual))
    images = [re.findall(r'xlink:href="(data:image[^"]*)"', text) for text in (dark, usual)]
    assert images[0] == images[1] != []
    assert "#ffffff" in usual
    assert "#ffffff" not in re.sub(r'xlink:href="[^"]*"', "", dark)
