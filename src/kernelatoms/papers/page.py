"""Figures of papers as tables, plots and one HTML page: ours beside what was reported."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kernelatoms import __version__
from kernelatoms.papers.figure import Curves, PaperFigure, Reported
from kernelatoms.papers.store import read_records
from kernelatoms.papers.study import DataHome
from kernelatoms.report import (
    Picture,
    Section,
    Table,
    dots_figure,
    mean_and_error,
    series_figure,
)


def figure_table(figure: PaperFigure, curves: Curves) -> Table:
    """Return the measured means with their errors, and the reported numbers in columns beside."""
    header, rows = (_by_method if figure.by_method else _by_place)(figure, curves)
    reported = f" Reported: {figure.source}." if figure.source else ""
    caption = f"{figure.ylabel}: mean ± standard error of {curves.seeds_in_words()}.{reported}"
    return Table(header, rows, caption)


def _by_place(figure: PaperFigure, curves: Curves) -> tuple[list[str], list[list[str]]]:
    theirs = [method for method in figure.reported if _was_run(figure, method, curves)]
    header = [figure.xlabel, *curves.methods, *(f"reported: {method}" for method in theirs)]
    rows = []
    for x in curves.places:
        ours = [_cell(figure, curves.at(method, x)) for method in curves.methods]
        reported = [_reported(figure, figure.reported[method].get(x)) for method in theirs]
        rows.append([figure.name_of(x), *ours, *reported])
    return header, rows


def _by_method(figure: PaperFigure, curves: Curves) -> tuple[list[str], list[list[str]]]:
    reported_at = [
        x for x in curves.places if any(x in numbers for numbers in figure.reported.values())
    ]
    header = ["", *map(figure.name_of, curves.places)]
    header += [f"reported: {figure.name_of(x)}" for x in reported_at]
    rows = []
    for method in dict.fromkeys([*curves.methods, *figure.reported]):
        theirs = figure.reported.get(method, {})
        if method in curves.methods or any(x in theirs for x in reported_at):
            ours = [_cell(figure, curves.at(method, x)) for x in curves.places]
            rows.append([method, *ours, *(_reported(figure, theirs.get(x)) for x in reported_at)])
    for method, words in figure.absent().items():
        if method not in curves.methods:
            rows.append([method, *[words] * (len(header) - 1)])
    return header, rows


def claims_in_words(figure: PaperFigure, curves: Curves) -> list[str]:
    """Say what has to hold, whether it does, and by which numbers."""
    return [
        f"{'Holds' if claim.holds else 'MISSED'}: {claim.statement}. {claim.evidence}."
        for claim in figure.claims(curves)
    ]


def figure_section(
    figure: PaperFigure, curves: Curves, folder: Path, data_home: DataHome = None
) -> Section:
    """Return a figure's part of the page."""
    claims = "\n\n".join(claims_in_words(figure, curves))
    drawn = "hollow" if figure.by_method else "dotted, hollow"
    reported = f" Reported: {drawn}." if figure.reported else ""
    picture = Picture(
        figure_picture(figure, curves),
        f"Ours: {'dots' if figure.by_method else 'lines'} with standard errors, "
        f"{curves.seeds_in_words()}.{reported}",
        f"{curves_in_words(figure)}; the table has the numbers.",
    )
    text = f"{figure.text}\n\n{claims}\n\n{circumstances(figure, folder)}"
    pictures = [*figure.drawings(data_home), *figure.pictures(folder), picture]
    return Section(figure.title, text, table=figure_table(figure, curves), pictures=pictures)


def curves_in_words(figure: PaperFigure) -> str:
    """Say what the picture of the curves shows, for who cannot see it."""
    whose = ", ours and the reported" if figure.reported else ""
    against = "of every method" if figure.by_method else f"against {figure.xlabel}"
    return f"{figure.ylabel} {against}{whose}"


def figure_picture(figure: PaperFigure, curves: Curves) -> Any:
    """Draw our curves and the reported ones."""
    if figure.by_method:
        named = {x: figure.name_of(x) for x in curves.places}
        return dots_figure(
            {m: {named[x]: curves.at(m, x) for x in named if len(curves.at(m, x))}
             for m in dict.fromkeys([*curves.methods, *figure.reported])},
            {m: {named[x]: number for x, number in numbers.items() if x in named}
             for m, numbers in figure.reported.items()},
            xlabel=figure.ylabel, log=figure.log,
        )  # fmt: skip
    return series_figure(
        {method: curves.line(method) for method in curves.methods if curves.line(method)[0]},
        {m: curves.at(m, None) for m in curves.methods if len(curves.at(m, None))},
        {name: dict(numbers) for name, numbers in figure.reported.items()},
        xlabel=figure.xlabel, ylabel=figure.ylabel, log=figure.log,
        percent_places=figure.place.endswith("%}"),
    )  # fmt: skip


def circumstances(figure: PaperFigure, folder: Path) -> str:
    """Say on which machine, with how many threads and which version the runs were made."""
    records = read_records(figure.study.path(folder))
    parts = []
    for key, words in (
        ("machine", "Run on {}"), ("threads", "{} threads"), ("version", "kernelatoms {}"),
        ("date", "{}"),
    ):  # fmt: skip
        values = sorted({str(record[key]) for record in records if key in record})
        parts.append(words.format(" and ".join(values) if len(values) < 4 else "several"))
    loads = [record["load"] for record in records if record.get("load") is not None]
    busy = ""
    if loads:  # not every system knows its load
        busy = f"; load average {min(loads):.1f} to {max(loads):.1f} at the start of runs"
    return ", ".join(parts) + busy + "."


def paper_page(
    title: str,
    figures: Sequence[PaperFigure],
    folder: Path,
    full: bool,
    n_seeds: int | None,
    data_home: DataHome = None,
) -> dict[str, Any]:
    """Return title, lead, sections and footer of a page with every figure that has records."""
    sections = []
    held = total = 0
    for figure in figures:
        size = figure.study.size(full)
        curves = figure.curves(folder, size, n_seeds or size.n_seeds)
        if curves:
            sections.append(figure_section(figure, curves, folder, data_home))
            claims = figure.claims(curves)
            held, total = held + sum(claim.holds for claim in claims), total + len(claims)
    return {
        "title": title,
        "sections": sections,
        "lead": f"{held} of {total} claims hold, at {'paper' if full else 'quick'} size; what is "
        "missed stays here as missed.",
        "footer": f"Written by kernelatoms {__version__}: kernelatoms reproduce"
        f"{' --full' if full else ''}.",
    }


def _was_run(figure: PaperFigure, method: str, curves: Curves) -> bool:
    """Tell whether the table has a row for any of a method's reported numbers."""
    return any(x in curves.places for x in figure.reported[method])


def _cell(figure: PaperFigure, values: Any) -> str:
    if len(values) == 0:
        return "-"
    if np.isnan(values).any():
        return "over budget"
    if len(values) == 1:
        return figure.number.format(values[0])
    mean, error = mean_and_error(values)
    unsigned = figure.number.replace("+", "")
    return f"{figure.number.format(mean)} ± {unsigned.format(error)}"


def _reported(figure: PaperFigure, value: Reported | None) -> str:
    if value is None:
        return "-"
    if isinstance(value, tuple):
        return " to ".join(figure.number.format(end) for end in value)
    return figure.number.format(value)
