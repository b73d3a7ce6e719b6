"""One self-contained HTML page: sections of text, tables and pictures; no script, no network.

Pictures travel inside the file as data URIs, so that a report can be mailed, archived and opened
anywhere. The page follows the reader's light or dark setting; pictures stay on a light card,
since their colours carry meaning.
"""

import base64
import html
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelatoms.files import write_whole

_NOT_IN_XML = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")
# SVG is sharp at every size and small for lines and letters; a picture of very many parts is
# smaller as PNG.
_LARGEST_SVG = 250_000
_PNG_DPI = 160


@dataclass(frozen=True)
class Picture:
    """A matplotlib figure, the words under it, and the words for who cannot see it.

    Parameters
    ----------
    figure : matplotlib Figure
        The figure.
    caption : str
        What stands under it.
    alt : str
        What it shows, for those who cannot see it.
    """

    figure: Any
    caption: str
    alt: str


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
    """

    title: str
    text: str = ""
    table: Table | None = None
    pictures: Sequence[Picture] = ()


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
    """Return a page as HTML, for those who do not want a file.

    Parameters
    ----------
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
    str
        The whole page: styles and pictures are in it.
    """
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
<style>{_STYLE}</style>
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


def embed_figure(figure: Any) -> str:
    """Return a figure as a data URI: SVG, or PNG where the SVG would be large."""
    data = io.BytesIO()
    # Without a date, equal figures give equal words.
    figure.savefig(data, format="svg", metadata={"Date": None})
    # Labels may hold control characters, which matplotlib repeats and XML does not know.
    data = io.BytesIO(_NOT_IN_XML.sub(b"?", data.getvalue()))
    kind = "svg+xml"
    if data.getbuffer().nbytes > _LARGEST_SVG:
        data = io.BytesIO()
        figure.savefig(data, format="png", dpi=_PNG_DPI)
        kind = "png"
    return f"data:image/{kind};base64,{base64.b64encode(data.getvalue()).decode('ascii')}"


def _render_section(section: Section) -> str:
    parts = [f"<h2>{html.escape(section.title)}</h2>", _paragraphs(section.text)]
    if section.table is not None:
        parts.append(_render_table(section.table))
    if section.pictures:
        figures = "\n".join(_render_picture(picture) for picture in section.pictures)
        parts.append(f'<div class="pictures">\n{figures}\n</div>')
    return "<section>\n" + "\n".join(part for part in parts if part) + "\n</section>"


def _render_table(table: Table) -> str:
    header = "".join(f'<th scope="col">{html.escape(cell)}</th>' for cell in table.header)
    rows = []
    for name, *cells in table.rows:
        # On a phone every cell stands in a line of its own, after its column's name.
        values = "".join(
            f'<td data-column="{html.escape(column)}">{html.escape(cell)}</td>'
            for column, cell in zip(table.header[1:], cells, strict=True)
        )
        rows.append(f'<tr><th scope="row">{html.escape(name)}</th>{values}</tr>')
    wide = " wide" if len(table.header) > 7 else ""
    caption = f"<figcaption>{html.escape(table.caption)}</figcaption>" if table.caption else ""
    return (
        f'<figure class="table{wide}"><table><thead><tr>{header}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>{caption}</figure>"
    )


def _render_picture(picture: Picture) -> str:
    width, height = (round(100 * inches) for inches in picture.figure.get_size_inches())
    return (
        f'<figure><img src="{embed_figure(picture.figure)}" alt="{html.escape(picture.alt)}" '
        f'width="{width}" height="{height}">'
        f"<figcaption>{html.escape(picture.caption)}</figcaption></figure>"
    )


def _paragraphs(text: str) -> str:
    blocks = (block.strip() for block in text.split("\n\n"))
    return "".join(f"<p>{html.escape(block)}</p>" for block in blocks if block)


_STYLE = """
:root { color-scheme: light dark; --page: #f6f7f9; --card: #ffffff; --ink: #1c2127;
  --soft: #55606c; --line: #dfe3e8; --accent: #0072b2; }
@media (prefers-color-scheme: dark) {
  :root { --page: #14171b; --card: #1e2329; --ink: #e7eaee; --soft: #a6b0bb; --line: #343b43;
    --accent: #6bb8e8; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2.5rem 1.25rem 3rem; max-width: 70rem; background: var(--page);
  color: var(--ink); font: 1rem/1.6 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
  overflow-wrap: break-word; }
h1 { margin: 0 0 .75rem; font-size: clamp(1.6rem, 4.5vw, 2.25rem); line-height: 1.2; }
h2 { margin: 0 0 .5rem; font-size: 1.3rem; line-height: 1.3; }
p { margin: 0 0 .75rem; max-width: 44rem; }
.lead { padding-left: 1rem; border-left: 4px solid var(--accent); font-size: 1.1rem; }
section { margin-top: 2.75rem; }
.table { margin-top: 1rem; overflow-x: auto; }
table { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .6rem 1rem; text-align: right; }
th:first-child { text-align: left; }
td, tbody th { white-space: nowrap; }
.wide th, .wide td { padding: .4rem .5rem; font-size: .85rem; }
thead th { color: var(--soft); font-size: .9rem; font-weight: 600; }
tbody th { font-weight: 600; }
tbody tr { border-top: 1px solid var(--line); }
.pictures { display: grid; gap: 1.25rem; margin-top: 1rem;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 24rem), 1fr)); }
figure { margin: 0; overflow: hidden; background: var(--card); border: 1px solid var(--line);
  border-radius: .6rem; }
/* The light card under every picture, in dark pages too. */
img { display: block; width: 100%; height: auto; padding: .75rem; background: #ffffff; }
figcaption { padding: .75rem 1rem; border-top: 1px solid var(--line); color: var(--soft);
  font-size: .9rem; line-height: 1.5; }
footer { margin-top: 3rem; padding-top: 1rem; border-top: 1px solid var(--line);
  color: var(--soft); font-size: .9rem; }
@media (max-width: 40rem) {
  thead { position: absolute; clip-path: inset(50%); }
  table, tbody, tr, tbody th, td { display: block; }
  tbody tr { padding: .5rem 0; }
  tbody tr:first-child { border-top: 0; }
  tbody th, td { padding: .2rem 1rem; }
  td { display: flex; justify-content: space-between; gap: 1rem; }
  td::before { content: attr(data-column); color: var(--soft); }
}
@media print { body { max-width: none; background: none; } section { break-inside: avoid; } }
"""
