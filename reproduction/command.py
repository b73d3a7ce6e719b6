"""The command line: run an experiment, print its numbers beside the reported ones."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reproduction.terminal import (
    print_json,
    print_table,
    progress,
    say,
    warnings_as_notes,
    without_traceback,
)

if TYPE_CHECKING:
    from reproduction.figure import PaperFigure
    from reproduction.study import Extent, Study

app = typer.Typer(
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

EXAMPLES = """**Examples**

`python -m reproduction --list`

`python -m reproduction lkdl/fig1b --data-home my-data`

`python -m reproduction lkdl/fig3 --full`

`python -m reproduction lkdl/fig2a --full --set n_nonzero=3 --seeds 0-19`

`python -m reproduction lkdl --check -o my-records`

`python -m reproduction --all`

Exit codes: 0 done; 1 it failed, or a stored run does not repeat; 2 a mistake in the arguments or
the data; 130 stopped by Ctrl-C.
"""


@app.command(epilog=EXAMPLES)
@without_traceback
def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...",
            help="A figure (lkdl/fig1b), several (lkdl/fig1), or a paper (lkdl).",
        ),
    ] = None,
    show_list: Annotated[
        bool, typer.Option("--list", help="List what can be run; with a NAME, what --set changes.")
    ] = False,
    run_all: Annotated[bool, typer.Option("--all", help="Run everything.")] = False,
    full: Annotated[
        bool, typer.Option("--full", help="Paper size; else a small one of a minute or so.")
    ] = False,
    seeds: Annotated[
        str | None,
        typer.Option(help="How many seeds (5), or which (0-19); by default the size's own."),
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="Another value of a parameter; repeatable."
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Run one seed of every setting stored in OUTPUT again, and compare."
        ),
    ] = False,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder of the records and the page.")
    ] = Path("reproduced"),
    data_home: Annotated[
        Path | None,
        typer.Option(
            "--data", "--data-home", help="Folder of the data sets; else $KERNELATOMS_DATA."
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace files of other kinds by the pages.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> None:
    """Run a paper's experiments again and print its numbers beside ours.

    Every run (a setting with a seed) becomes one line of OUTPUT/paper/study.jsonl when it ends; a
    stopped command continues where it was, and several commands may share a folder. The page
    OUTPUT/paper.html shows what is there, and says what has not been run.
    """
    if show_list or not (names or run_all or check):
        _list(_find(names or []), bool(names), as_json)
        return
    if names and run_all:
        raise ValueError("give names or --all, not both.")
    chosen = _find(names or [])
    extent = _extent(chosen, full, seeds, changes or [])
    if check:
        _check(chosen, extent, output, data_home, as_json)
        return
    papers = {figure.paper for figure in chosen}
    _make_folder(output, papers, force)
    with warnings_as_notes():
        _run_studies(chosen, extent, output, data_home)
    results = _show(chosen, extent, output, as_json)
    pages = _write_pages(papers, extent, output, data_home)
    if as_json:
        print_json({"figures": results, "pages": [str(page) for page in pages]})
    else:
        for page in pages:
            print(f"Page: {page}")


def _list(chosen: list["PaperFigure"], named: bool, as_json: bool) -> None:
    if as_json:
        print_json(
            [
                {
                    "name": figure.name, "title": figure.title, "data": figure.study.dataset,
                    "quick": figure.study.quick.duration, "full": figure.study.full.duration,
                    "set": figure.study.can_change(),
                }
                for figure in chosen
            ]
        )  # fmt: skip
        return
    width = max(len(figure.name) for figure in chosen)
    print(f"{'name':<{width}} {'quick':>7} {'full':>7}  what")
    for figure in chosen:
        quick, full = figure.study.quick.duration, figure.study.full.duration
        print(f"{figure.name:<{width}} {quick:>7} {full:>7}  {figure.title}")
        if named:
            print(f"{'':<{width}} --set {', '.join(figure.study.can_change()) or 'nothing'}")
    print(
        "\nTimes are those of two cores. Figures of one study share their runs. The data sets: "
        "kernelatoms datasets; docs/papers/index.md lists the files of authors."
    )


def _find(names: list[str]) -> list["PaperFigure"]:
    from reproduction.figures import FIGURES

    chosen: dict[str, PaperFigure] = {}
    for name in names or [""]:
        found = {key: figure for key, figure in FIGURES.items() if key.startswith(name)}
        if not found:
            raise ValueError(f"there is no figure {name!r}; there are {', '.join(FIGURES)}.")
        chosen |= found
    return list(chosen.values())


def _make_folder(output: Path, papers: set[str], force: bool) -> None:
    """Make the folder; refuse to replace a file that is not a page."""
    if output.exists() and not output.is_dir():
        raise NotADirectoryError(f"--output: {output} is there and no folder; choose another name.")
    output.mkdir(parents=True, exist_ok=True)
    for page in (output / f"{paper}.html" for paper in sorted(papers)):
        if page.is_dir():
            raise IsADirectoryError(f"--output: {page} is a folder; choose another name.")
        if force or not page.exists():
            continue
        if not page.read_bytes()[:100].lstrip().lower().startswith((b"<!doctype html", b"<html")):
            raise ValueError(
                f"--output: {page} is there already and holds no page; --force replaces it."
            )


def _extent(
    chosen: list["PaperFigure"], full: bool, seeds: str | None, changes: list[str]
) -> "Extent":
    """Return what the options ask for; refuse what no chosen figure has."""
    from reproduction.study import Extent

    values = dict(map(_change, changes))
    names = sorted({name for figure in chosen for name in figure.study.can_change()})
    for name in values:
        if name not in names:
            raise ValueError(
                f"--set {name}: none of the chosen figures has it; there are {', '.join(names)}."
            )
    return Extent(full, None if seeds is None else _seeds(seeds), values)


def _change(text: str) -> tuple[str, Any]:
    """Return name and value of "name=value"; a value that is no number or the like is a word."""
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not name or not value:
        raise ValueError(f"--set takes name=value, such as --set n_atoms=50, got {text!r}.")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _seeds(text: str) -> range:
    """Return the seeds of "5" (the first five) or "3-7"."""
    first, dash, last = text.partition("-")
    if not dash:
        first, last = "0", str(int(first) - 1) if first.isdecimal() else ""
    if not (first.isdecimal() and last.isdecimal()) or int(last) < int(first):
        raise ValueError(
            f"--seeds takes how many (5) or the first and the last (0-19), got {text!r}."
        )
    return range(int(first), int(last) + 1)


def _run_studies(
    chosen: list["PaperFigure"], extent: "Extent", output: Path, data_home: Path | None
) -> None:
    studies = {figure.study.name: figure.study for figure in chosen}
    for study in studies.values():
        size = extent.of(study)
        todo = len(study.missing(output, size))
        say(f"{study.name}: {todo} runs to do, {len(size.runs) - todo} there already.")
        with _left_out_without_data(study, len(studies)), progress() as on_step:
            for done, total, setting, seed in study.run(output, size, data_home):
                on_step(done, total, f"{study.name} seed {seed}, {setting['method']}")


@contextmanager
def _left_out_without_data(study: "Study", n_studies: int) -> Iterator[None]:
    """Say that a data set is not there and go on with the other studies, if there are any."""
    from kernelatoms.datasets import DatasetNotFoundError

    try:
        yield
    except DatasetNotFoundError as error:
        if n_studies == 1:
            raise
        say(f"{study.name} is left out: {error}")


def _check(
    chosen: list["PaperFigure"],
    extent: "Extent",
    output: Path,
    data_home: Path | None,
    as_json: bool,
) -> None:
    """Make stored runs again; exit with 1 if any gives other numbers now."""
    from reproduction.check import repeat, to_repeat

    results: list[dict[str, Any]] = []
    studies = {figure.study.name: figure.study for figure in chosen}
    for study in studies.values():
        records = to_repeat(study, output, extent)
        if not records:
            say(f"{study.name}: no records in {output}.")
            continue
        made, others = 0, []
        with (
            warnings_as_notes(),
            _left_out_without_data(study, len(studies)),
            progress() as on_step,
        ):
            for repetition in repeat(study, records, data_home):
                made += 1
                on_step(made, len(records), study.name)
                if repetition.differences:
                    others.append(repetition)
        if not made:  # and that has been said
            continue
        results.append(
            {"study": study.name, "runs": made, "differ": [run.in_words() for run in others]}
        )
        if not as_json:
            print(f"{study.name}: {made - len(others)} of {made} runs repeat.")
            for run in others:
                print(f"  {run.in_words()}")
    if as_json:
        print_json(results)
    if not results:
        raise ValueError(
            f"there are no records in {output} of runs that can be made; -o names their folder."
        )
    if any(result["differ"] for result in results):
        raise typer.Exit(1)


def _show(
    chosen: list["PaperFigure"], extent: "Extent", output: Path, as_json: bool
) -> list[dict[str, Any]]:
    from rich.console import Console

    from reproduction.page import claims_in_words, figure_table

    console = Console(highlight=False)
    results = []
    for figure in chosen:
        size = extent.of(figure.study)
        curves = figure.curves(output, size)
        if not curves:  # at the quick size some figures have no runs
            continue
        table = figure_table(figure, curves)
        claims = figure.claims(curves)
        incomplete = figure.without_records(output, size)
        results.append(
            {
                "name": figure.name,
                "incomplete": incomplete,
                "claims": [vars(claim) for claim in claims],
                "values": [
                    {"method": m, "x": x, "seeds": len(curves.at(m, x)), "mean": curves.mean(m, x)}
                    for m in curves.methods
                    for x in curves.places
                    if len(curves.at(m, x))
                ],
            }
        )
        if not as_json:
            console.print(f"\n{figure.title}", style="bold", markup=False)
            print_table(console, table)
            for text in filter(None, [incomplete, *claims_in_words(figure, curves)]):
                console.print(text, markup=False)
    return results


def _write_pages(
    papers: set[str], extent: "Extent", output: Path, data_home: Path | None
) -> list[Path]:
    from kernelatoms.report import write_report
    from reproduction.figures import FIGURES, TITLES
    from reproduction.page import paper_page

    pages = []
    for paper in sorted(papers):
        figures = [figure for figure in FIGURES.values() if figure.paper == paper]
        page = paper_page(TITLES[paper], figures, output, extent, data_home)
        pages.append(
            write_report(
                output / f"{paper}.html", page["title"], page["sections"], lead=page["lead"],
                footer=page["footer"],
            )
        )  # fmt: skip
    return pages
