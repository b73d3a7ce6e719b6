"""One self-contained HTML page: sections of text, tables and pictures; no script, no network.

Pictures travel inside the file as data URIs, so that a report can be mailed, archived and opened
anywhere. The page follows the reader's light or dark setting, and pictures follow the page. Its
style is ``page.css``.
"""

import html
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelatoms.files.writing import write_whole
from kernelatoms.report.embedding import INVERTED, darken, embed_figure, holds_photographs

_WIDE_TABLE, _LONG_TABLE = 7, 40  # columns, rows
_LONG_CELL = 60  # characters
# The filter leaves white the colour of cards: see ``embedding``.
_DARK_CARD = "#" + 3 * f"{round(255 * (1 - INVERTED)):02x}"
_STYLE = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
_STYLE = _STYLE.replace("DARK", _DARK_CARD).replace("TURNED", f"{100 * INVERTED:g}")


@dataclass(frozen=True)
class Shades:
    """A legend of the shades of a picture or a table, shown under it."""

    title: str  # what the shades mean
    steps: Sequence[tuple[str, str]]  # values from one end to the other, colours as "#rrggbb"


@dataclass(frozen=True)
class Picture:
    """A matplotlib figure, its caption, and a text for readers who cannot see it.

    Parameters
    ----------
    figure : matplotlib Figure
        The figure.
    caption : str
        What stands under it.
    alt : str
        What it shows, for readers who cannot see it.
    shades : Shades, optional
        The legend of its shades.
    """

    figure: Any
    caption: str
    alt: str
    shades: Shades | None = None


@dataclass(frozen=True)
class Table:
    """A table of words: the first column names the row, the others are right-aligned.

    Parameters
    ----------
    header : list of n_columns str
        The columns' names.
    rows : list of lists of n_columns str
        The cells.
    caption : str, optional
        What stands under the table.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.header):
                raise ValueError(
                    f"rows must have one cell for each of the {len(self.header)} columns in "
                    f"header, got {len(row)}: {list(row)!r}."
                )


@dataclass(frozen=True)
class Fold:
    """Details that not every reader wants to see, folded under a line of text."""

    summary: str  # the line: what is in it, and how much
    content: str | Table
    is_open: bool = False  # to begin with

    def __post_init__(self) -> None:
        if not isinstance(self.is_open, bool):
            raise TypeError(f"is_open must be True or False, got {self.is_open!r}.")


@dataclass(frozen=True)
class Section:
    """A heading with what stands under it.

    Parameters
    ----------
    title : str
        The heading.
    text : str, optional
        Words; a blank line starts a new paragraph.
    table : Table, optional
        A table under the words.
    pictures : list of Picture, optional
        Pictures under the table.
    folds : list of Fold, optional
        Between table and pictures: what can be folded away, such as a list in full.
    """

    title: str
    text: str = ""
    table: Table | None = None
    pictures: Sequence[Picture] = ()
    folds: Sequence[Fold] = ()


def write_report(
    path: Any, title: str, sections: Sequence[Section], *, lead: str = "", footer: str = ""
) -> Path:
    """Write a page to a file, or leave the file that was there as it was.

    Parameters
    ----------
    path : str or path
        The file to write; its folder must exist.
    title : str
        The page's heading.
    sections : list of Section
        What the page shows, from top to bottom.
    lead : str, optional
        What the reader should know first, in a sentence or two.
    footer : str, optional
        Small print at the end: versions, date.

    Returns
    -------
    Path
        The file written.

    Examples
    --------
    >>> from kernelatoms.report import Section, write_report
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_report(f"{folder}/report.html", "Results", [Section("One", "Fine.")])
    ...     "<h2>One</h2>" in path.read_text(encoding="utf-8")
    True
    """
    text = render_page(title, sections, lead=lead, footer=footer)
    return write_whole(path, text.encode())


def render_page(
    title: str, sections: Sequence[Section], *, lead: str = "", footer: str = ""
) -> str:
    """Return a page as HTML, styles and pictures included; arguments as in ``write_report``."""
    body = "\n".join(_render_section(section) for section in sections)
    introduction = f'<p class="lead">{html.escape(lead)}</p>' if lead else ""
    small_print = f"<footer>{_paragraphs(footer)}</footer>" if footer else ""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{html.escape(title)}</title>
<style>
{_STYLE}</style>
</head>
<body>
<header><h1>{html.escape(title)}</h1>{introduction}</header>
<main>
{body}
</main>
{small_print}
</body>
</html>
"""


def _render_section(section: Section) -> str:
    parts = [f"<h2>{html.escape(section.title)}</h2>", _paragraphs(section.text)]
    if section.table is not None:
        parts.append(_render_table(section.table))
    parts += [_render_fold(fold) for fold in section.folds]
    if section.pictures:
        figures = "\n".join(_render_picture(picture) for picture in section.pictures)
        parts.append(f'<div class="pictures">\n{figures}\n</div>')
    return "<section>\n" + "\n".join(part for part in parts if part) + "\n</section>"


def _render_fold(fold: Fold) -> str:
    content = fold.content
    body = _paragraphs(content) if isinstance(content, str) else _render_table(content)
    return (
        f"<details{' open' if fold.is_open else ''}><summary>{html.escape(fold.summary)}</summary>"
        f"{body}</details>"
    )


def _render_table(table: Table) -> str:
    # Sentences are wrapped, numbers and single words are not.
    longest = [max(map(len, cells)) for cells in zip(*table.rows, strict=True)]
    kinds = [' class="sentences"' if each > _LONG_CELL else "" for each in longest]
    kinds = kinds or [""] * len(table.header)
    header = "".join(
        f'<th scope="col"{kind}>{html.escape(cell)}</th>'
        for cell, kind in zip(table.header, kinds, strict=True)
    )
    rows = []
    for name, *cells in table.rows:
        # On a phone every cell has a line of its own, after its column's name.
        values = "".join(
            f'<td data-column="{html.escape(column)}"{kind}>{_cell(cell)}</td>'
            for column, cell, kind in zip(table.header[1:], cells, kinds[1:], strict=True)
        )
        rows.append(f'<tr><th scope="row"{kinds[0]}>{_cell(name)}</th>{values}</tr>')
    n_columns, kind = len(table.header), " long" if len(table.rows) > _LONG_TABLE else ""
    kind += " wide" if n_columns > _WIDE_TABLE else " pair" if n_columns == 2 else ""
    caption = f"<figcaption>{html.escape(table.caption)}</figcaption>" if table.caption else ""
    # A table too wide for its box is scrolled in it, by keys too; shadows say that it goes on.
    return (
        f'<figure class="table{kind}"><div class="box" tabindex="0"><table><thead><tr>{header}</tr>'
        f"</thead><tbody>{''.join(rows)}</tbody></table></div>{caption}</figure>"
    )


def _cell(text: str) -> str:
    """Return a cell; what is written from right to left does not turn the row around."""
    return html.escape(text) if text.isascii() else f"<bdi>{html.escape(text)}</bdi>"


def _render_picture(picture: Picture) -> str:
    width, height = (round(100 * inches) for inches in picture.figure.get_size_inches())
    source = embed_figure(picture.figure)
    image = f'src="{source}" alt="{html.escape(picture.alt)}" width="{width}" height="{height}"'
    if holds_photographs(picture.figure):
        dark = '<source media="screen and (prefers-color-scheme: dark)"'
        shown = f'<picture>{dark} srcset="{darken(source)}"><img class="as-is" {image}></picture>'
    else:
        shown = f"<img {image}>"
    shades = "" if picture.shades is None else _render_shades(picture.shades)
    return (
        f"<figure>{shown}{shades}<figcaption>{html.escape(picture.caption)}</figcaption></figure>"
    )


def _render_shades(shades: Shades) -> str:
    steps = "".join(
        f'<li><i style="background: {colour}"></i>{html.escape(name)}</li>'
        for name, colour in shades.steps
    )
    return f'<div class="shades">{html.escape(shades.title)} <ul>{steps}</ul></div>'


def _paragraphs(text: str) -> str:
    blocks = (block.strip() for block in text.split("\n\n"))
    return "".join(f"<p>{html.escape(block)}</p>" for block in blocks if block)
