"""The page: self-contained, escaped, and written whole or not at all."""

import base64
import os
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from kernelatoms.files.writing import check_target
from kernelatoms.report import (
    Picture,
    Section,
    Table,
    convergence_figure,
    images_figure,
    write_report,
)
from kernelatoms.report.embedding import embed_figure
from kernelatoms.report.page import Fold, Shades, render_page

NASTY = "<script>alert('1 & 2')</script>\""


class Page(HTMLParser):
    """Collect tags with their attributes, and the text outside of style sheets."""

    VOID = frozenset({"meta", "img"})

    def __init__(self, text):
        super().__init__()
        self.tags, self.words, self.open = [], "", []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.words += data + " "

    def all(self, tag):
        return [attrs for name, attrs in self.tags if name == tag]


@pytest.fixture
def sections():
    picture = Picture(convergence_figure({"one": [2.0, 1.0]}), "The caption", "What is seen")
    table = Table(["name", "value"], [["a", "1"], ["b", "2"]], "Two rows")
    return [Section("First", "One.\n\nTwo.", table, [picture]), Section("Second")]


def test_page_shows_everything_in_order(sections):
    page = Page(render_page("Title", sections, lead="The lead.", footer="The end."))
    assert page.open == []  # every tag is closed
    words = ["Title", "The lead.", "First", "One.", "Two.", "name", "value", "a", "1", "b", "2"]
    words += ["Two rows", "The caption", "Second", "The end."]
    # The title stands in the head, then again as the heading.
    assert page.words.split() == " ".join(["Title", *words]).split()
    (image,) = page.all("img")
    assert image["alt"] == "What is seen"
    assert int(image["width"]) > int(image["height"]) > 0
    assert [tag for tag, _ in page.tags if tag in ("h1", "h2")] == ["h1", "h2", "h2"]
    assert len(page.all("p")) == 4
    assert page.all("html") == [{"lang": "en"}]
    assert "width=device-width" in [m.get("content", "") for m in page.all("meta")][1]


def test_page_is_self_contained(sections):
    text = render_page("Title", sections)
    assert "://" not in text
    assert "url(" not in text
    assert "@import" not in text
    page = Page(text)
    for tag, attrs in page.tags:
        assert tag not in {"script", "link", "iframe", "object", "embed"}
        assert not any(name.startswith("on") for name in attrs)
        if "src" in attrs:
            assert attrs["src"].startswith("data:image/")
        assert "href" not in attrs


def test_everything_is_escaped():
    table = Table([NASTY, NASTY], [[NASTY, NASTY]], NASTY)
    picture = Picture(convergence_figure({"one": [1.0]}), NASTY, NASTY)
    page = Page(
        render_page(NASTY, [Section(NASTY, NASTY, table, [picture])], lead=NASTY, footer=NASTY)
    )
    assert page.all("script") == []
    # title, h1, lead, h2, text, two heads, two cells, two captions, footer
    assert page.words.count(NASTY) == 12
    assert page.all("img")[0]["alt"] == NASTY
    assert page.all("td")[0]["data-column"] == NASTY


def test_a_table_must_be_even():
    with pytest.raises(ValueError, match=r"one cell for each of the 2 columns .* got 1: \['a'\]"):
        Table(["name", "value"], [["a", "1"], ["a"]])


@pytest.mark.slow
def test_small_figures_are_svg_and_large_ones_png(rng):
    small = embed_figure(convergence_figure({"one": [2.0, 1.0]}))
    head, data = small.split(",")
    assert head == "data:image/svg+xml;base64"
    assert b"<svg" in base64.b64decode(data)
    head, data = embed_figure(images_figure(rng.random((1200, 4)), (2, 2))).split(",")
    assert head == "data:image/png;base64"
    assert base64.b64decode(data).startswith(b"\x89PNG")


def test_report_is_written_and_replaced(tmp_path, sections):
    path = tmp_path / "report.html"
    path.write_text("old")
    assert write_report(str(path), "Title", sections) == path
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert os.listdir(tmp_path) == ["report.html"]


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "shelf").mkdir()
    target, link = tmp_path / "shelf" / "real.html", tmp_path / "report.html"
    target.write_text("old")
    link.symlink_to(target)
    write_report(link, "Title", [])
    assert link.is_symlink()
    assert "Title" in target.read_text(encoding="utf-8")


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_failed_write_keeps_the_old_report(tmp_path, monkeypatch, failing):
    path = tmp_path / "report.html"
    path.write_text("old")

    def fail(*arguments):
        raise OSError("No space left on device")

    monkeypatch.setattr(os if failing == "fsync" else Path, failing, fail)
    with pytest.raises(OSError, match="No space left"):
        write_report(path, "Title", [])
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["report.html"]


def test_targets_that_cannot_be_written_are_named(tmp_path, monkeypatch):
    with pytest.raises(OSError, match=r"the folder '.*missing' does not exist; make it first"):
        check_target(tmp_path / "missing" / "report.html")
    with pytest.raises(OSError, match="is a folder; name a file in it"):
        check_target(tmp_path)
    assert check_target(tmp_path / "report.html") == tmp_path / "report.html"
    assert os.listdir(tmp_path) == []

    def refuse(*arguments, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(OSError, match=r"cannot write in the folder .* \(Permission denied\)"):
        check_target(tmp_path / "report.html")


def test_pictures_follow_the_reader_from_light_to_dark():
    text = render_page("Title", [])
    assert "@media screen and (prefers-color-scheme: dark)" in text
    assert re.search(r"img \{[^}]*background: #ffffff;\s*filter: var\(--turn\)", text)
    assert "--turn: none" in text


def test_folds_and_shades_are_shown_and_escaped():
    table = Table([NASTY, NASTY], [[NASTY, NASTY]])
    folds = [Fold(NASTY, NASTY), Fold("open", table, is_open=True)]
    shades = Shades(NASTY, [(NASTY, "#ffffff"), ("full", "#000000")])
    picture = Picture(convergence_figure({"one": [1.0]}), "caption", "alt", shades)
    page = Page(render_page("Title", [Section("One", folds=folds, pictures=[picture])]))
    assert page.open == []
    assert page.all("script") == []
    assert page.words.count(NASTY) == 8
    assert page.all("details") == [{}, {"open": None}]
    assert [tag["style"] for tag in page.all("i")] == ["background: #ffffff", "background: #000000"]
    # Folds stand before pictures, a legend under its own.
    order = [tag for tag, _ in page.tags if tag in ("details", "img", "ul", "figcaption")]
    assert order == ["details", "details", "img", "ul", "figcaption"]


def test_tables_are_scrolled_in_a_box_that_keys_can_reach():
    page = Page(render_page("Title", [Section("One", table=Table(["a", "b"], [["ג", "2"]]))]))
    (box,) = [tag for tag in page.all("div") if tag.get("class") == "box"]
    assert box["tabindex"] == "0"
    assert len(page.all("bdi")) == 1


def test_columns_of_sentences_are_wrapped():
    sentence = "The gap of 1% between linear and kernel dictionaries is not to be found."
    table = Table(["figure", "hold", "missed"], [["x", "1 of 2", sentence], ["y", "2 of 2", ""]])
    page = Page(render_page("T", [Section("S", "", table)]))
    assert [cell.get("class") for cell in page.all("td")] == [None, "sentences"] * 2
    assert [cell.get("class") for cell in page.all("th")[:3]] == [None, None, "sentences"]
    page = Page(render_page("T", [Section("S", "", Table(["a", "b"], [[sentence, "1"]]))]))
    assert [cell.get("class") for cell in page.all("th")] == ["sentences", None, "sentences"]
    Page(render_page("T", [Section("S", "", Table(["no", "rows"], []))]))


@pytest.mark.filterwarnings("ignore:Glyph")
def test_control_characters_in_labels_leave_pictures_whole():
    _, data = embed_figure(convergence_figure({"\x1b[31mone\x00": [2.0, 1.0]})).split(",")
    assert ElementTree.fromstring(base64.b64decode(data)).tag.endswith("svg")
