"""``kernelatoms demo``: learn class dictionaries on digits, write a report."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from kernelatoms.cli.console import errors_as_messages, print_table, progress, tell
from kernelatoms.cli.options import Force

EXAMPLES = """**Example**

`kernelatoms demo --output digits.html`
"""


@errors_as_messages
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="The report.")] = Path(
        "report.html"
    ),
    seed: Annotated[int, typer.Option(min=0, help="Seeds everything.")] = 0,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Fewer digits, atoms and repetitions: a look at the report, not at the numbers.",
        ),
    ] = False,
    force: Force = False,
) -> None:
    """Learn digits, classify clean and corrupted ones, print a table, write a report.

    Linear K-SVD and LKDL class dictionaries on scikit-learn's digits.
    """
    from rich.console import Console

    from kernelatoms.files.writing import check_result_target

    check_result_target(output, (".html", ".htm"), force=force)
    console = Console(file=sys.stdout, highlight=False)
    duration = "about 3 s" if quick else "about 10 s"
    console.print(
        "Learns linear K-SVD and LKDL class dictionaries on scikit-learn's digits, classifies "
        f"clean, noisy and pixel-dropped ones, writes {output}: {duration} "
        "(up to 20 s more on the first run, which compiles the inner loops).",
        markup=False,
    )

    # These take a second to load: what is said above comes first.
    from kernelatoms.cli import digits
    from kernelatoms.report import write_report
    from kernelatoms.report.model import footer

    settings = replace(digits.QUICK if quick else digits.Settings(), seed=seed)
    failed: OSError | None = None
    with progress(console, lines=True) as on_step:
        study = digits.run_study(settings, on_step)
        summary, small_print = digits.summary(study), f"{footer()} Seed {seed}."
        sections = digits.make_sections(study)
        try:
            write_report(output, digits.TITLE, sections, lead=summary, footer=small_print)
        except OSError as error:
            failed = error  # the table is worth showing all the same
    print_table(console, digits.results_table(study))
    console.print(f"\n{summary}\n", markup=False)
    if failed is not None:
        raise failed
    tell(f"Report: {output}")
