"""``kernelatoms reproduce``: run a paper's experiment, print its numbers beside ours."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelatoms.cli.options import Force, Json
from kernelatoms.cli.speaking import (
    print_json,
    print_table,
    progress,
    say,
    speaks_plainly,
    tell,
    warnings_as_notes,
)

if TYPE_CHECKING:
    from kernelatoms.papers import PaperFigure

EXAMPLES = """**Examples**

`kernelatoms reproduce --list`

`kernelatoms reproduce lkdl/fig1b --data-home my-data`

`kernelatoms reproduce lkdl/fig3 --full`

`kernelatoms reproduce --all`
"""

_TITLES = {
    "codec": "The codec beside its rivals",
    "fksc": "Fast kernel sparse coding, reproduced",
    "kcrc": "Kernel collaborative representation, reproduced",
    "kdl": "Kernel dictionary learning, reproduced",
    "ksad": "K-SAD, reproduced",
    "lkdl": "Linearized kernel dictionary learning, reproduced",
    "methods": "Which method?",
}


def _complete_figure(incomplete: str) -> list[str]:
    from kernelatoms.papers import FIGURES

    return [name for name in FIGURES if name.startswith(incomplete)]


@speaks_plainly
def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...",
            help="A figure (lkdl/fig1b), several (lkdl/fig1), or a paper (lkdl).",
            autocompletion=_complete_figure,
        ),
    ] = None,
    show_list: Annotated[bool, typer.Option("--list", help="List what can be run.")] = False,
    run_all: Annotated[bool, typer.Option("--all", help="Run everything.")] = False,
    full: Annotated[
        bool, typer.Option("--full", help="Paper size; else a small one of a minute or so.")
    ] = False,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="How many seeds; by default the size's own.")
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder of the records and the page.")
    ] = Path("reproduced"),
    data_home: Annotated[
        Path | None, typer.Option(help="Folder of the data sets; else $KERNELATOMS_DATA.")
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Run a paper's experiment again and print its numbers beside ours.

    Every run (a setting with a seed) is one line in OUTPUT/paper/study.jsonl the moment it ends; a
    command that was stopped goes on where it was. The page OUTPUT/paper.html shows what is there.
    """
    if show_list or not (names or run_all):
        _list(as_json)
        return
    if names and run_all:
        raise ValueError("give names or --all, not both.")
    chosen = _find(names or [])
    papers = {figure.paper for figure in chosen}
    _make_folder(output, papers, force)
    with warnings_as_notes([]):
        _run_studies(chosen, full, seeds, output, data_home)
    results = _show(chosen, full, seeds, output, as_json)
    pages = _write_pages(papers, full, seeds, output, data_home)
    if as_json:
        print_json({"figures": results, "pages": [str(page) for page in pages]})
    else:
        for page in pages:
            tell(f"Page: {page}")


def _list(as_json: bool) -> None:
    from kernelatoms.papers import FIGURES

    if as_json:
        print_json(
            [
                {
                    "name": figure.name, "title": figure.title, "data": figure.study.dataset,
                    "quick": figure.study.quick.duration, "full": figure.study.full.duration,
                }
                for figure in FIGURES.values()
            ]
        )  # fmt: skip
        return
    width = max(map(len, FIGURES))
    tell(f"{'name':<{width}} {'quick':>7} {'full':>7}  what")
    for name, figure in FIGURES.items():
        quick, full = figure.study.quick.duration, figure.study.full.duration
        tell(f"{name:<{width}} {quick:>7} {full:>7}  {figure.title}")
    tell(
        "\nTimes are those of two cores. Figures of one study share their runs. The data sets: "
        "kernelatoms datasets."
    )


def _find(names: list[str]) -> list["PaperFigure"]:
    from kernelatoms.papers import FIGURES

    chosen: dict[str, PaperFigure] = {}
    for name in names or [""]:
        found = {key: figure for key, figure in FIGURES.items() if key.startswith(name)}
        if not found:
            raise ValueError(f"there is no figure {name!r}; there are {', '.join(FIGURES)}.")
        chosen |= found
    return list(chosen.values())


def _make_folder(output: Path, papers: set[str], force: bool) -> None:
    """Make the folder, and see that the pages can be written at the end."""
    from kernelatoms.files import check_result_target

    if output.exists() and not output.is_dir():
        raise NotADirectoryError(f"--output: {output} is there and no folder; choose another name.")
    output.mkdir(parents=True, exist_ok=True)
    for paper in sorted(papers):
        check_result_target(output / f"{paper}.html", (".html",), force=force)


def _run_studies(
    chosen: list["PaperFigure"], full: bool, seeds: int | None, output: Path, data_home: Path | None
) -> None:
    studies = {figure.study.name: figure.study for figure in chosen}
    for study in studies.values():
        size = study.size(full)
        todo = len(study.missing(output, size, seeds or size.n_seeds))
        there = (seeds or size.n_seeds) * len(size.settings) - todo
        say(f"{study.name}: {todo} runs to do, {there} there already.")
        with progress() as on_step:
            for done, total, setting, seed in study.run(
                output, size, seeds or size.n_seeds, data_home
            ):
                on_step(done, total, f"{study.name} seed {seed}, {setting['method']}")


def _show(
    chosen: list["PaperFigure"], full: bool, seeds: int | None, output: Path, as_json: bool
) -> list[dict[str, Any]]:
    from rich.console import Console

    from kernelatoms.papers.page import claims_in_words, figure_table

    console = Console(highlight=False)
    results = []
    for figure in chosen:
        size = figure.study.size(full)
        curves = figure.curves(output, size, seeds or size.n_seeds)
        if not curves:  # at the quick size some figures have no runs
            continue
        table = figure_table(figure, curves)
        claims = figure.claims(curves)
        results.append(
            {
                "name": figure.name,
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
            for text in claims_in_words(figure, curves):
                console.print(text, markup=False)
    return results


def _write_pages(
    papers: set[str], full: bool, seeds: int | None, output: Path, data_home: Path | None
) -> list[Path]:
    from kernelatoms.papers import FIGURES
    from kernelatoms.papers.page import paper_page
    from kernelatoms.report import write_report

    pages = []
    for paper in sorted(papers):
        figures = [figure for figure in FIGURES.values() if figure.paper == paper]
        page = paper_page(_TITLES[paper], figures, output, full, seeds, data_home)
        pages.append(
            write_report(
                output / f"{paper}.html", page["title"], page["sections"], lead=page["lead"],
                footer=page["footer"],
            )
        )  # fmt: skip
    return pages
