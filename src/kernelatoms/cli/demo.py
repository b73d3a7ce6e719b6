"""``python -m kernelatoms.cli.demo``: learn class dictionaries on digits, write a report.

Prints a table of accuracies and times, with progress while it works, and writes a self-contained
HTML page. Exit codes: 0 done, 1 the report could not be written, 2 wrong arguments, 130 stopped
by Ctrl-C.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

# What takes seconds to import (scikit-learn, matplotlib, numba) is imported by the functions that
# use it: the first line comes at once, and Ctrl-C is understood from the start.
if TYPE_CHECKING:
    from rich.console import Console

    from kernelatoms.report import Table


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo and return its exit code."""
    arguments = _parse(argv)
    try:
        return _run(arguments)
    except KeyboardInterrupt:
        print("\nStopped before it was done.", file=sys.stderr)
        return 130


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m kernelatoms.cli.demo",
        description="Learn linear K-SVD and LKDL class dictionaries on scikit-learn's digits, "
        "classify clean, noisy and pixel-dropped digits, print a table and write an HTML report.",
    )
    parser.add_argument(
        "--output", default="report.html", metavar="PATH", help="the report (default: %(default)s)"
    )
    parser.add_argument(
        "--seed", type=_seed, default=0, metavar="N", help="seeds everything (default: 0)"
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="fewer digits, atoms and repetitions: a look at the report, not at the numbers",
    )
    return parser.parse_args(argv)


def _seed(text: str) -> int:
    try:
        seed = int(text)
    except ValueError:
        seed = -1
    if seed < 0:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 0, got {text!r}")
    return seed


def _run(arguments: argparse.Namespace) -> int:
    from kernelatoms.report.page import check_target, write_report

    try:
        check_target(arguments.output)
    except OSError as error:
        print(f"demo: error: --output: {error}", file=sys.stderr)
        return 2

    from rich.console import Console

    # A terminal that knows no '±' shows '?' instead of ending the demo.
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")
    console = Console(highlight=False)
    duration = "about 3 s" if arguments.quick else "about 10 s"
    console.print(
        "Learns linear K-SVD and LKDL class dictionaries on scikit-learn's digits, classifies "
        f"clean, noisy and pixel-dropped ones, writes {arguments.output}: {duration} "
        "(up to 20 s more on the first run, which compiles the inner loops).",
        markup=False,
    )

    from dataclasses import replace

    from kernelatoms.cli import digits, digits_page

    settings = digits.QUICK if arguments.quick else digits.Settings()
    with _progress(console) as on_step:
        study = digits.run_study(replace(settings, seed=arguments.seed), on_step)
        table, summary = digits_page.results_table(study), digits_page.summary(study)
        sections, footer = digits_page.make_sections(study), digits_page.footer(study)
        try:
            write_report(arguments.output, digits_page.TITLE, sections, lead=summary, footer=footer)
            trouble = None
        except OSError as error:
            trouble = error
    _print_table(console, table)
    console.print(f"\n{summary}\n", markup=False)
    if trouble is not None:
        print(f"demo: error: the report was not written: {trouble}", file=sys.stderr)
        return 1
    console.print(f"Report: {arguments.output}", markup=False)
    return 0


@contextmanager
def _progress(console: "Console") -> Iterator[Callable[[int, int, str], None]]:
    """Give a function that shows steps: a bar on a terminal, else a line when the words change."""
    if not console.is_terminal:
        yield _plain_lines(console)
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description:<20}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total, what: bar.update(
            task, completed=done, total=total, description=what
        )


def _plain_lines(console: "Console") -> Callable[[int, int, str], None]:
    last = ""

    def show(done: int, total: int, what: str) -> None:
        nonlocal last
        if what != last:
            console.print(f"{what} ...")
            # A log that is being followed should see the line now.
            console.file.flush()
        last = what

    return show


def _print_table(console: "Console", table: "Table") -> None:
    from rich.table import Table as RichTable

    shown = RichTable()
    for i, name in enumerate(table.header):
        shown.add_column(name, justify="left" if i == 0 else "right", no_wrap=i == 0)
    for row in table.rows:
        shown.add_row(*row)
    console.print(shown)
    console.print(table.caption, style="dim", markup=False)


if __name__ == "__main__":
    sys.exit(main())
