"""Figures of papers as tables, plots and one HTML page: ours beside what was reported."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kernelatoms import __version__
from kernelatoms.report import (
    Picture,
    Section,
    Table,
    mean_and_error,
)
from reproduction.dots import dots_figure
from reproduction.drawing import series_figure
from reproduction.figure import Claim, Curves, PaperFigure, Reported
from reproduction.store import Record, key_of, read_records
from reproduction.study import DataHome, Extent, Size

# At so few places lines would be points: the methods are written beside them instead.
_FEW_PLACES = 3
# What names of methods and axes hold of formulas, and how matplotlib typesets it.
_FORMULAS = (
    (re.compile(r"log10\(mu / paper's\)"), r"$\\log_{10}(\\mu$ / paper's$)$"),
    (re.compile(r"\(x'y\)\^(\d+)"), r"$(x'y)^{\1}$"),
    (re.compile(r"exp\(-d / 2\)"), r"$e^{-d/2}$"),
    (re.compile(r"\|coefficients\|"), "absolute coefficients"),
    (re.compile(r"chi2"), r"$\\chi^2$"),
    (re.compile(r"(?<!\\)\b(lambda|sigma|alpha|mu)(_\d)?\b"), r"$\\\1\2$"),
)


def figure_table(figure: PaperFigure, curves: Curves) -> Table:
    """Return the measured means with their errors, and the reported numbers in columns beside."""
    header, rows = (_by_method if figure.by_method else _by_place)(figure, curves)
    reported = f" Reported: {figure.source}." if figure.source else ""
    caption = f"{figure.ylabel}: {figure.rests_on(curves)}.{reported}"
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
    figure: PaperFigure, curves: Curves, folder: Path, size: Size, data_home: DataHome = None
) -> Section:
    """Return a figure's part of the page."""
    words = [
        figure.text, figure.without_records(folder, size), *claims_in_words(figure, curves),
        circumstances_in_words(figure, folder, size),
    ]  # fmt: skip
    picture = Picture(
        figure_picture(figure, curves),
        picture_in_words(figure, curves),
        f"{curves_in_words(figure)}; the table has the numbers.",
    )
    text = "\n\n".join(filter(None, words))
    pictures = [*figure.drawings(data_home), *figure.pictures(folder), picture]
    return Section(figure.title, text, table=figure_table(figure, curves), pictures=pictures)


def curves_in_words(figure: PaperFigure) -> str:
    """Say what the picture of the curves shows, for who cannot see it."""
    whose = ", ours and the reported" if figure.reported else ""
    against = "of every method" if figure.by_method else f"against {figure.xlabel}"
    return f"{figure.ylabel} {against}{whose}"


def picture_in_words(figure: PaperFigure, curves: Curves) -> str:
    """Say what solid, dashed, hollow and pale are in the picture of the curves."""
    dots = _as_dots(figure, curves)
    marks = "dots" if dots else "lines"
    parts = [f"Ours: {marks} with standard errors, {curves.seeds_in_words()}."]
    if figure.over:
        parts = [f"{marks.capitalize()}: {figure.over}."]
    if not dots and any(len(curves.at(m, None)) and curves.line(m)[0] for m in curves.methods):
        parts.append(f"Without markers: {figure.nowhere}.")
    if figure.reported:
        parts.append("Reported: hollow." if dots else "Reported: dotted, hollow.")
    return " ".join(parts)


def figure_picture(figure: PaperFigure, curves: Curves) -> Any:
    """Draw our curves and the reported ones."""
    if _as_dots(figure, curves):
        return dots_figure(
            {_drawn(m): {_drawn(figure.name_of(x)): curves.at(m, x) for x in curves.places
                         if len(curves.at(m, x))}
             for m in dict.fromkeys([*curves.methods, *figure.reported])},
            {_drawn(m): {_drawn(figure.name_of(x)): n for x, n in numbers.items()
                         if x in curves.places}
             for m, numbers in figure.reported.items()},
            xlabel=_drawn(figure.ylabel), log=figure.log,
        )  # fmt: skip
    return series_figure(
        {_drawn(m): curves.line(m) for m in curves.methods if curves.line(m)[0]},
        {_drawn(m): curves.at(m, None) for m in curves.methods if len(curves.at(m, None))},
        {_drawn(m): dict(numbers) for m, numbers in figure.reported.items()},
        xlabel=_drawn(figure.xlabel), ylabel=_drawn(figure.ylabel), log=figure.log,
        percent_places=figure.place.endswith("%}"),
    )  # fmt: skip


def _as_dots(figure: PaperFigure, curves: Curves) -> bool:
    return figure.by_method or sum(x is not None for x in curves.places) <= _FEW_PLACES


def _drawn(name: str) -> str:
    """Return a name with its formulas typeset."""
    for pattern, typeset in _FORMULAS:
        name = pattern.sub(typeset, name)
    return name


def circumstances_in_words(figure: PaperFigure, folder: Path, size: Size) -> str:
    """Say by which code, on which machine, with how many threads and when the runs were made."""
    shown = {(key_of(setting), seed) for setting, seed in size.runs}
    records = [
        record
        for record in read_records(figure.study.path(folder))
        if (key_of(record["setting"]), record["seed"]) in shown
    ]
    days = [str(record.get("time", record.get("date")))[:10] for record in records]
    parts = [
        f"Run on {_values(record.get('machine', 'an unknown machine') for record in records)}",
        f"{_values(record.get('threads', 'unknown') for record in records)} threads",
        f"kernelatoms {_values(_code(record) for record in records)}",
        _values(days),
    ]
    loads = [record["load"] for record in records if record.get("load") is not None]
    if loads:  # not every system reports its load
        parts[-1] += f"; load average {min(loads):.1f} to {max(loads):.1f} at the start of runs"
    return ", ".join(parts) + "."


def _code(record: Record) -> str:
    commit = record.get("commit")
    return f"{record.get('version', 'of unknown version')} ({commit or 'commit not recorded'})"


def _values(values: Iterable[Any]) -> str:
    different = sorted(set(map(str, values)))
    return " and ".join(different) if len(different) < 4 else "several"


def paper_page(
    title: str,
    figures: Sequence[PaperFigure],
    folder: Path,
    extent: Extent,
    data_home: DataHome = None,
) -> dict[str, Any]:
    """Return title, lead, sections and footer of a page with every figure that has records.

    Figures without any are named at the end.
    """
    sections, empty = [], []
    judged: dict[str, list[Claim]] = {}
    for figure in figures:
        size = extent.of(figure.study)
        curves = figure.curves(folder, size)
        if curves:
            sections.append(figure_section(figure, curves, folder, size, data_home))
            judged[figure.title] = figure.claims(curves)
        elif size.settings:
            empty.append(figure.name)
    if any(judged.values()):
        words = "What is missed stays here as missed."
        sections.insert(0, Section("Claims", words, table=claims_table(judged)))
    if empty:
        sections.append(Section("Without records", f"Not run: {', '.join(empty)}."))
    changes = "".join(f" --set {name}={value}" for name, value in extent.changes.items())
    return {
        "title": title,
        "sections": sections,
        "lead": f"{claims_counted(judged)}, at {'paper' if extent.full else 'quick'} size"
        f"{f', with{changes}' if changes else ''}.",
        "footer": f"Written by kernelatoms {__version__}: python -m reproduction"
        f"{' --full' if extent.full else ''}{changes}.",
    }


def claims_counted(judged: Mapping[str, Sequence[Claim]]) -> str:
    """Say how many of all claims hold."""
    claims = [claim for of_figure in judged.values() for claim in of_figure]
    held = sum(claim.holds for claim in claims)
    return f"{held} of {len(claims)} claims hold"


def claims_table(judged: Mapping[str, Sequence[Claim]]) -> Table:
    """Return how many claims of each figure hold, and which are missed."""
    rows = []
    for title, claims in judged.items():
        if claims:
            missed = [claim.statement for claim in claims if not claim.holds]
            rows.append([title, f"{len(claims) - len(missed)} of {len(claims)}", "; ".join(missed)])
    return Table(["", "hold", "missed"], rows)


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
