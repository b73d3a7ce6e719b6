"""``kernelatoms compress``, ``decompress``, ``inspect`` and ``codec fit``: files made small."""

from pathlib import Path
from typing import Annotated, Any

import typer

from kernelatoms.cli.console import (
    note,
    print_json,
    print_table,
    progress,
    speaks_plainly,
    tell,
    warnings_as_notes,
)
from kernelatoms.cli.options import Force, Json, MaxSize

COMPRESS_EXAMPLES = """**Examples**

`kernelatoms compress sensors.csv`

`kernelatoms compress latencies.npy --max-error 5% --output latencies.kac`

`kernelatoms compress readings.parquet --max-absolute 0.05 --approximate counts --exact price`

`kernelatoms compress traffic.npy --ratio 20`

`kernelatoms compress monday.csv --model week.kam --no-store-model`

`kernelatoms compress tuesday.csv --output days.kac --append`
"""

DECOMPRESS_EXAMPLES = """**Examples**

`kernelatoms decompress sensors.csv.kac`

`kernelatoms decompress latencies.kac --output some.npy --rows 100:200`

`kernelatoms decompress monday.csv.kac --model week.kam`
"""

INSPECT_EXAMPLES = """**Examples**

`kernelatoms inspect sensors.csv.kac`

`kernelatoms inspect sensors.csv.kac --original sensors.csv --picture errors.png`
"""

FIT_EXAMPLES = """**Example**

`kernelatoms codec fit history.csv --output week.kam --max-error 1%`
"""

codec = typer.Typer(
    name="codec",
    help="Models for `compress`, trained once on history.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)

MaxError = Annotated[
    str | None,
    typer.Option(
        metavar="SHARE",
        help="The largest error of every row, as a share of its norm: 0.01 or 1%. The default is "
        "1%, unless --max-absolute or --ratio is given.",
    ),
]
MaxAbsolute = Annotated[
    float | None, typer.Option(help="The largest error of every value, in the data's own unit.")
]
Approximate = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN", help="A column of whole numbers that may be approximate too. Repeatable."
    ),
]
Exact = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        help="A column of decimal numbers, or an array of an .npz file, to keep as it is. "
        "Repeatable.",
    ),
]
Symmetric = Annotated[
    bool | None,
    typer.Option(
        "--symmetric/--not-symmetric",
        help="Whether matrices (slices of a 3-d array) are symmetric; else it is looked for.",
    ),
]
ModelFile = Annotated[
    Path | None, typer.Option("--model", help="The .kam file, if the file does not hold its model.")
]


@speaks_plainly
def compress(
    source: Annotated[
        Path, typer.Argument(metavar="IN", help="A .csv, .parquet, .npy or .npz file.")
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The compressed file; else IN with .kac behind it."),
    ] = None,
    max_error: MaxError = None,
    max_absolute: MaxAbsolute = None,
    ratio: Annotated[
        float | None,
        typer.Option(help="Ask for a file so many times smaller instead of for an error."),
    ] = None,
    model: Annotated[
        str, typer.Option(metavar="NAME|FILE.kam", help="The model; by default the best one.")
    ] = "auto",
    approximate: Approximate = None,
    exact: Exact = None,
    symmetric: Symmetric = None,
    block_rows: Annotated[
        int | None, typer.Option(min=1, help="Rows (of a 3-d array, slices) in a block.")
    ] = None,
    append: Annotated[
        bool, typer.Option("--append", help="Add rows to the output, which has the same columns.")
    ] = False,
    store_model: Annotated[
        bool,
        typer.Option(
            "--store-model/--no-store-model",
            help="Without, the file refers to the .kam file, which decompress then needs.",
        ),
    ] = True,
    max_size: MaxSize = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Compress a table or arrays; every row of numbers comes back within a bound.

    Decimal numbers are approximate. Words, dates, whole numbers, missing values, names, types and
    order are kept as they are.
    """
    from kernelatoms.files.compressed import COMPRESSED, compress_file, usual_name
    from kernelatoms.files.writing import check_result_target, refuse_to_overwrite

    _refuse_both(ratio=ratio, max_error=max_error)
    _refuse_both(ratio=ratio, max_absolute=max_absolute)
    target = output or usual_name(source)
    refuse_to_overwrite(target, source)
    check_result_target(target, (COMPRESSED,), force=True)
    _keep_what_is_there(target, force or append)
    with warnings_as_notes([]), progress() as on_step:
        summary = compress_file(
            source, target, max_error=_share(max_error, max_absolute, ratio),
            max_absolute=max_absolute, ratio=ratio, model=model, approximate=approximate or (),
            exact=exact or (), symmetric=symmetric, block_rows=block_rows,
            store_model=store_model, append=append, max_size=max_size, on_step=on_step,
        )  # fmt: skip
    if as_json:
        print_json(_facts(summary))
        return
    for text in summary.notes:
        note(text)
    tell(
        f"{summary.original_bytes:,} bytes became {summary.n_bytes:,}, "
        f"{_times(summary.ratio)}, with the model {summary.model!r}: {summary.path}"
    )
    tell(_error_words(summary))


@speaks_plainly
def decompress(
    source: Annotated[Path, typer.Argument(metavar="FILE", help="A .kac file.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The file to write; else FILE without .kac."),
    ] = None,
    rows: Annotated[
        str | None,
        typer.Option(metavar="START:STOP", help="Only these rows (slices), counted from 0."),
    ] = None,
    model: ModelFile = None,
    max_size: MaxSize = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Write the table or the arrays that were compressed, or some of their rows."""
    from kernelatoms.files.compressed import decompress_file, restored_name

    target = output or restored_name(source, max_size)
    _keep_what_is_there(target, force)
    with progress() as on_step:
        written = decompress_file(
            source, target, rows=_rows(rows), model=model, max_size=max_size, on_step=on_step
        )
    if as_json:
        print_json({"output": str(written), "bytes": written.stat().st_size})
    else:
        tell(f"{written.stat().st_size:,} bytes: {written}")


@speaks_plainly
def inspect(
    source: Annotated[Path, typer.Argument(metavar="FILE", help="A .kac or .kam file.")],
    original: Annotated[
        Path | None, typer.Option(help="What was compressed, to measure errors on.")
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option(help="Draw original, decoded and error (.png, .svg or .pdf)."),
    ] = None,
    model: ModelFile = None,
    max_size: MaxSize = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Show what a compressed file holds: its ratio, sections, model and errors."""
    from kernelatoms.files.inspecting import inspect_file

    if picture is not None:
        _check_picture(picture, source, original, force)
    with warnings_as_notes([]), progress() as on_step:
        info = inspect_file(source, original, model=model, max_size=max_size, on_step=on_step)
        if picture is not None:
            on_step(0, 0, "drawing")
            _draw(picture, info, original, model, max_size)
    if as_json:
        print_json({**vars(info), **({"picture": str(picture)} if picture else {})})
        return
    _show(info)
    if picture is not None:
        tell(f"Picture: {picture}")
    if info.rows_beyond:
        raise ValueError(
            f"{info.rows_beyond:,} rows of {original} are not within the bound; is it the file "
            "that was compressed?"
        )


@codec.command(name="fit", epilog=FIT_EXAMPLES)
@speaks_plainly
def fit(
    source: Annotated[
        Path, typer.Argument(metavar="HISTORY", help="A .csv, .parquet, .npy or .npz file.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The model file.")] = Path(
        "model.kam"
    ),
    max_error: MaxError = None,
    max_absolute: MaxAbsolute = None,
    model: Annotated[
        str, typer.Option(metavar="NAME", help="The model; by default the best one.")
    ] = "auto",
    approximate: Approximate = None,
    exact: Exact = None,
    symmetric: Symmetric = None,
    max_size: MaxSize = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Choose and train a model on history, to compress later files of the same columns with.

    `kernelatoms compress new.csv --model model.kam --no-store-model` then stores rows only.
    """
    from kernelatoms.files.compressed import MODEL, fit_codec

    if output.suffix.lower() != MODEL:
        raise ValueError(f"--output: {output} must end with {MODEL}.")
    _keep_what_is_there(output, force)
    with warnings_as_notes([]), progress() as on_step:
        summary = fit_codec(
            source, output, max_error=_share(max_error, max_absolute, None),
            max_absolute=max_absolute, model=model, approximate=approximate or (),
            exact=exact or (), symmetric=symmetric, max_size=max_size, on_step=on_step,
        )  # fmt: skip
    if as_json:
        print_json(_facts(summary))
        return
    _show_trials(
        [(f"{name}, {words}" if words else name, size) for name, size, words in summary.trials],
        summary.model,
    )
    tell(f"The model {summary.model!r}, {summary.n_bytes:,} bytes: {summary.path}")


def _share(max_error: str | None, max_absolute: float | None, ratio: float | None) -> float | None:
    """Return an error as a share: 0.01 of "0.01" and of "1%"; 1% if nothing else is asked for."""
    if max_error is None:
        return None if max_absolute is not None or ratio is not None else 0.01
    text = max_error.strip()
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        raise ValueError(
            f"--max-error takes a share such as 0.01 or 1%, got {max_error!r}."
        ) from None
    if not 0 < share <= 1:
        raise ValueError(f"--max-error must be above 0 and at most 100%, got {max_error!r}.")
    return share


def _rows(text: str | None) -> tuple[int, int] | slice | None:
    if text is None:
        return None
    start, colon, stop = text.partition(":")
    numbers = [part.strip() for part in (start, stop)]
    if not colon or not all(part == "" or part.isdecimal() for part in numbers):
        raise ValueError(f"--rows takes START:STOP, such as 100:200, got {text!r}.")
    ends = [int(part) if part else None for part in numbers]
    return slice(*ends)


def _refuse_both(**options: Any) -> None:
    if all(value is not None for value in options.values()):
        names = " and ".join("--" + name.replace("_", "-") for name in options)
        raise ValueError(f"{names}: give one of them, not both.")


def _keep_what_is_there(target: Path, force: bool) -> None:
    if target.exists() and not target.is_dir() and not force:
        raise ValueError(
            f"{target} is there already; --force replaces it, --output chooses another name."
        )


def _check_picture(picture: Path, source: Path, original: Path | None, force: bool) -> None:
    from kernelatoms.files.writing import check_result_target, refuse_to_overwrite

    if picture.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise ValueError(f"--picture: {picture} must end with .png, .svg or .pdf.")
    refuse_to_overwrite(picture, source, original)
    check_result_target(picture, (".png", ".svg", ".pdf"), force=force)
    _keep_what_is_there(picture, force)


def _draw(
    picture: Path, info: Any, original: Path | None, model: Path | None, max_size: int | None
) -> None:
    from kernelatoms.files.inspecting import matrices_to_draw
    from kernelatoms.files.writing import write_whole
    from kernelatoms.report.compression import compression_figure, figure_bytes

    drawn = matrices_to_draw(info.path, original, model=model, max_size=max_size)
    figure = compression_figure(
        drawn.original, drawn.decoded, title=_title(info, drawn.name), max_error=info.max_error,
        max_absolute=info.max_absolute, column_names=drawn.column_names,
    )  # fmt: skip
    write_whole(picture, figure_bytes(figure, picture.suffix.lower().removeprefix(".")))


def _title(info: Any, name: str) -> str:
    what = f"{info.path.name}{f', {name}' if name else ''}"
    if not info.ratio:
        return what
    return f"{what}: {_times(info.ratio)}"


def _facts(summary: Any) -> dict[str, Any]:
    return {**vars(summary), "path": str(summary.path)}


def _times(ratio: float) -> str:
    """Return how many times smaller something is, or larger, in words."""
    if ratio < 1:
        return f"{1 / ratio:.3g} times larger"
    return f"{ratio:.3g} times smaller" if ratio < 1000 else f"{ratio:,.0f} times smaller"


def _error_words(summary: Any) -> str:
    if summary.model == "none":
        return "Nothing in it is approximate."
    asked = []
    if summary.max_error is not None:
        asked.append(f"{summary.max_error:.4g} of every row's norm")
    if summary.max_absolute is not None:
        asked.append(f"{summary.max_absolute:.4g} of every value")
    if not asked:
        return "All numbers are kept exactly."
    return (
        f"Errors are at most {' and '.join(asked)}; the largest are "
        f"{summary.largest_row_error:.4g} of a row's norm and "
        f"{summary.largest_error:.3g} of a value."
    )


def _show(info: Any) -> None:
    """Print what a file holds."""
    facts: list[tuple[str, str]] = [("file", str(info.path))]
    facts.append(("holds", "a model" if info.kind == "model" else f"a .{info.kind} file"))
    facts += [(f"array {name}" if name else "rows", words) for name, words in info.shapes.items()]
    size = f"{info.n_bytes:,} bytes"
    if info.original_bytes:
        size += f" of {info.original_bytes:,}: {_times(info.ratio)}"
    facts.append(("size", size))
    facts.append(("blocks", f"{info.n_blocks:,}, all undamaged"))
    promised = []
    if info.max_error is not None:
        promised.append(f"{info.max_error:.4g} of every row's norm")
    if info.max_absolute is not None:
        promised.append(f"{info.max_absolute:.4g} of every value")
    facts.append(("error at most", " and ".join(promised) or "none: numbers are exact"))
    facts += [
        ("model", f"{name} ({'stored' if info.stored else 'not stored'}, {digest[:16]}...)")
        for digest, name in info.models.items()
    ]
    facts.append(("written by", f"kernelatoms {info.version}"))
    width = max(len(name) for name, _ in facts)
    for name, value in facts:
        tell(f"{name:<{width}}  {value}".replace("\n", "\\n"))
    _show_sections(info)
    _show_trials(list(info.trials), ", ".join(info.models.values()))
    _show_errors(info)


def _show_sections(info: Any) -> None:
    rows = [
        [name, f"{size:,}", f"{size / info.n_bytes:.1%}"] for name, size in info.sections.items()
    ]
    _table(["section", "bytes", "share"], rows)


def _show_trials(trials: list[tuple[str, int]], chosen: str) -> None:
    """Print which models were tried, the best first."""
    if not trials:
        return
    best = min(size for _, size in trials) or 1
    rows = [
        [name, f"{size:,}", f"{size / best:.2f}"]
        for name, size in sorted(trials, key=lambda trial: trial[1])
    ]
    _table(
        ["model", "bytes", "/best"], rows,
        f"Chosen: {chosen}, by bytes at equal error on a part of the data.",
    )  # fmt: skip


def _show_errors(info: Any) -> None:
    if not info.row_errors:
        return
    bound = info.max_error
    rows = [
        [
            "all" if share == 1 else f"{share:.0%}",
            f"{error:.4g}",
            f"{error / bound:.3f}" if bound else "-",
        ]
        for share, error in info.row_errors.items()
    ]
    told = "measured on the original" if info.measured else "as the encoder recorded them"
    _table(
        ["rows", "error", "/bound"], rows,
        f"The largest error of so many rows, relative to their norms, {told}. The largest of any "
        f"value is {info.largest_error:.4g}.",
    )  # fmt: skip


def _table(header: list[str], rows: list[list[str]], caption: str = "") -> None:
    import sys

    from rich.console import Console

    from kernelatoms.report import Table

    console = Console(file=sys.stdout, highlight=False)
    print_table(console, Table(header, rows, caption=caption))
