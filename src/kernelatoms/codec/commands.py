"""``kernelatoms compress``, ``decompress``, ``inspect`` and ``codec fit``.

The command line calls ``mount``; modules of the codec load when a command runs.
"""

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from kernelatoms.cli.console import (
    errors_as_messages,
    note,
    print_json,
    progress,
    tell,
    warnings_as_notes,
)
from kernelatoms.cli.options import Force, Json, MaxSize

_COMPRESS_EXAMPLES = """**Examples**

`kernelatoms compress sensors.csv`

`kernelatoms compress latencies.npy --max-error 5% --output latencies.kac`

`kernelatoms compress readings.parquet --max-absolute 0.05 --approximate counts --exact price`

`kernelatoms compress traffic.npy --ratio 20`

`kernelatoms compress monday.csv --model week.kam --no-store-model`

`kernelatoms compress tuesday.csv --output days.kac --append`
"""

_DECOMPRESS_EXAMPLES = """**Examples**

`kernelatoms decompress sensors.csv.kac`

`kernelatoms decompress latencies.kac --output some.npy --rows 100:200`

`kernelatoms decompress monday.csv.kac --model week.kam`
"""

_INSPECT_EXAMPLES = """**Examples**

`kernelatoms inspect sensors.csv.kac`

`kernelatoms inspect sensors.csv.kac --original sensors.csv --picture errors.png`
"""

_FIT_EXAMPLES = """**Example**

`kernelatoms codec fit history.csv --output week.kam --max-error 1%`
"""

_PICTURES = (".png", ".svg", ".pdf")
_MODEL_FILE = Path("model.kam")

_codec = typer.Typer(
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
_TABLES = "A .csv, .parquet, .npy or .npz file."
Source = Annotated[Path, typer.Argument(metavar="IN", help=_TABLES)]
History = Annotated[Path, typer.Argument(metavar="HISTORY", help=_TABLES)]


@errors_as_messages
def _compress(
    source: Source,
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
    from kernelatoms.codec.arguments import COMPRESSED
    from kernelatoms.codec.compressing import compress, compressed_name
    from kernelatoms.codec.printing import error_words, times_smaller
    from kernelatoms.files.writing import check_result_target, refuse_to_overwrite

    _refuse_both(ratio=ratio, max_error=max_error)
    _refuse_both(ratio=ratio, max_absolute=max_absolute)
    target = output or compressed_name(source)
    refuse_to_overwrite(target, source)
    check_result_target(target, (COMPRESSED,), force=True)
    _keep_what_is_there(target, force or append)
    with warnings_as_notes([]), progress() as on_step:
        summary = compress(
            source, target, max_error=_share(max_error, max_absolute, ratio),
            max_absolute=max_absolute, ratio=ratio, model=model, approximate=approximate or (),
            exact=exact or (), symmetric=symmetric, block_rows=block_rows,
            store_model=store_model, append=append, max_size=max_size, on_step=on_step,
        )  # fmt: skip
    if as_json:
        print_json(vars(summary))
        return
    for text in summary.notes:
        note(text)
    tell(
        f"{summary.original_bytes:,} bytes became {summary.n_bytes:,}, "
        f"{times_smaller(summary.ratio)}, with the model {summary.model!r}: {summary.path}"
    )
    tell(error_words(summary))


@errors_as_messages
def _decompress(
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
    from kernelatoms.codec.decompressing import decompress, restored_name

    target = output or restored_name(source, max_size)
    _keep_what_is_there(target, force)
    with progress() as on_step:
        written = decompress(
            source, target, rows=_rows(rows), model=model, max_size=max_size, on_step=on_step
        )
    n_bytes = written.stat().st_size
    if as_json:
        print_json({"output": str(written), "bytes": n_bytes})
    else:
        tell(f"{n_bytes:,} bytes: {written}")


@errors_as_messages
def _inspect(
    source: Annotated[Path, typer.Argument(metavar="FILE", help="A .kac or .kam file.")],
    original: Annotated[
        Path | None, typer.Option(help="What was compressed, to measure errors on.")
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(help="Draw original, decoded and error (.png, .svg or .pdf).")
    ] = None,
    model: ModelFile = None,
    max_size: MaxSize = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Show what a compressed file holds: its ratio, sections, model and errors."""
    from kernelatoms.codec.inspection import inspect_compressed
    from kernelatoms.codec.printing import show

    if picture is not None:
        _check_picture(picture, source, original, force)
    with warnings_as_notes([]), progress() as on_step:
        info = inspect_compressed(source, original, model=model, max_size=max_size, on_step=on_step)
        if picture is not None:
            on_step(0, 0, "drawing")
            _draw(picture, info, original, model, max_size)
    if as_json:
        print_json({**vars(info), **({"picture": str(picture)} if picture else {})})
        return
    show(info)
    if picture is not None:
        tell(f"Picture: {picture}")
    if info.rows_beyond:
        raise ValueError(
            f"{info.rows_beyond:,} rows of {original} are not within the bound; is it the file "
            "that was compressed?"
        )


@errors_as_messages
def _fit(
    source: History,
    output: Annotated[Path, typer.Option("--output", "-o", help="The model file.")] = _MODEL_FILE,
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
    from kernelatoms.codec.arguments import MODEL
    from kernelatoms.codec.compressing import fit_codec
    from kernelatoms.codec.printing import show_trials

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
        print_json(vars(summary))
        return
    trials = [(f"{name}, {note}" if note else name, size) for name, size, note in summary.trials]
    show_trials(trials, summary.model)
    tell(f"The model {summary.model!r}, {summary.n_bytes:,} bytes: {summary.path}")


def mount(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command(name="compress", epilog=_COMPRESS_EXAMPLES)(_compress)
    app.command(name="decompress", epilog=_DECOMPRESS_EXAMPLES)(_decompress)
    app.command(name="inspect", epilog=_INSPECT_EXAMPLES)(_inspect)
    _codec.command(name="fit", epilog=_FIT_EXAMPLES)(_fit)
    app.add_typer(_codec)


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


def _rows(text: str | None) -> slice | None:
    if text is None:
        return None
    found = re.fullmatch(r"\s*(\d*)\s*:\s*(\d*)\s*", text)
    if found is None:
        raise ValueError(f"--rows takes START:STOP, such as 100:200, got {text!r}.")
    return slice(*(int(end) if end else None for end in found.groups()))


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

    if picture.suffix.lower() not in _PICTURES:
        raise ValueError(f"--picture: {picture} must end with .png, .svg or .pdf.")
    refuse_to_overwrite(picture, source, original)
    check_result_target(picture, _PICTURES, force=force)
    _keep_what_is_there(picture, force)


def _draw(
    picture: Path, info: Any, original: Path | None, model: Path | None, max_size: int | None
) -> None:
    from kernelatoms.codec.inspection import matrices_to_draw
    from kernelatoms.codec.printing import times_smaller
    from kernelatoms.codec.report import compression_figure, figure_bytes
    from kernelatoms.files.writing import write_whole

    drawn = matrices_to_draw(info.path, original, model, max_size)
    title = f"{info.path.name}{f', {drawn.name}' if drawn.name else ''}"
    if info.ratio:
        title += f": {times_smaller(info.ratio)}"
    figure = compression_figure(
        drawn.original, drawn.decoded, title=title, max_error=info.max_error,
        max_absolute=info.max_absolute, column_names=drawn.column_names,
    )  # fmt: skip
    write_whole(picture, figure_bytes(figure, picture.suffix.lower().removeprefix(".")))
