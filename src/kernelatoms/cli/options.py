"""Options that commands share, and the opening of the files that they name."""

import functools
import io
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec

import typer

from kernelatoms.cli.console import note, say, tell
from kernelatoms.cli.models import trusted_types
from kernelatoms.cli.summaries import note_about_rows

if TYPE_CHECKING:
    from kernelatoms.files.models.record import ModelRecord
    from kernelatoms.files.tables.large import LargeTable
    from kernelatoms.files.tables.table import ReadOptions, Table

P = ParamSpec("P")

_TABLES = (
    ".csv, .tsv, .txt, .jsonl (these also .gz, .bz2 or .zst), .parquet, .feather, .npy or .npz; "
    "- is standard input."
)

Model = Annotated[Path, typer.Argument(help="A file that `kernelatoms fit` wrote.")]
Data = Annotated[Path, typer.Argument(help=f"Table: {_TABLES}")]
LargeData = Annotated[
    Path,
    typer.Argument(help=f"Table: {_TABLES} Or several by a pattern in quotes: 'big/*.parquet'."),
]
Rows = Annotated[
    str | None, typer.Option(metavar="KEY", help="The key of an .npz file that holds the rows.")
]
Label = Annotated[
    str | None, typer.Option(help="Column of true classes; by default the model's label.")
]
Decimal = Annotated[
    str | None,
    typer.Option(
        metavar="MARK", help="The decimal mark of a text file: . or , (else it is looked for)."
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="The encoding of a text file, if not UTF-8: cp1252, latin-1, utf-16."
    ),
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether the first line of a text file names its columns (else it is looked for).",
    ),
]
Trust = Annotated[
    list[str] | None,
    typer.Option(
        metavar="MODULE:CLASS",
        help="A kernel of your own that the model holds; its module is imported. Repeatable.",
    ),
]
Force = Annotated[
    bool, typer.Option("--force", help="Replace what is there under the output's name.")
]
Device = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        envvar="KERNELATOMS_DEVICE",
        help="Where to compute: cpu, or cuda, cuda:1 and the like for a card (needs torch).",
    ),
]


def parse_size(text: str | int) -> int:
    """Return a size in bytes: 20GiB, 500MB or plain bytes."""
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?(?:([kmgt]?)(i?)b)?", str(text).strip().lower())
    number, letter, binary = found.groups(default="") if found else ("", "", "")
    power = " kmgt".index(letter or " ")
    size = int(float(number or 0) * (1024 if binary else 1000) ** power)
    if size < 1 or (binary and not letter) or ("." in number and not letter):
        raise typer.BadParameter(f"it must be a size such as 20GiB, 500MB or 4096, got {text!r}.")
    return size


MaxSize = Annotated[
    int | None,
    typer.Option(
        "--max-size",
        metavar="SIZE",
        parser=parse_size,
        help="What a file may become when it is read, such as 20GiB or 500MB (else 4GiB, or 256 "
        "times its own size).",
    ),
]
Memory = Annotated[
    int | None,
    typer.Option(
        "--memory",
        metavar="SIZE",
        parser=parse_size,
        help="How much memory the table may take, such as 2GiB or 500MB (else half of what is "
        "free). A larger one is read in parts.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def read_data(
    data: Path, options: "ReadOptions | str | None", large: "LargeTable | None" = None
) -> "Table":
    """Read a table, of one file or of the several of ``large``, and print its notes."""
    from dataclasses import replace

    from kernelatoms.files.tables.table import read_table

    table = read_table(data, options) if large is None else large.collect()
    for text in table.notes:
        note(text)
    return replace(table, notes=[])


def open_large(
    data: Path, options: "ReadOptions", memory: int | None, *, on_workers: bool = False
) -> "LargeTable | None":
    """Return a table that is read in parts, and say so, or one in several files; else None.

    Workers of a cluster read every table in parts; what they cannot read is refused.
    """
    from kernelatoms.files.tables.large import open_large
    from kernelatoms.limits import in_words

    large = open_large(data, options, memory, on_workers=on_workers)
    if on_workers:
        _refuse_no_files(data, large)
    elif large is not None and not large.fits:
        allowed = in_words(large.memory)
        limit = f"half of what is free ({allowed}; --memory allows more)"
        limit = limit if memory is None else f"--memory {allowed}"
        say(
            f"{data} takes about {in_words(large.needs)} of memory, more than {limit}: it is read "
            "in parts."
        )
    return large


def _refuse_no_files(data: Path, large: "LargeTable | None") -> None:
    """Refuse a table that workers cannot open."""
    if str(data) == "-":
        raise ValueError(
            "standard input cannot be read by workers: write it to a file that they see."
        )
    if large is None:
        what = "is no file" if data.exists() else "does not exist"
        raise ValueError(f"{data} {what}: give a file, or a pattern such as 'big/*.parquet'.")


def open_model(model: Path, trust: list[str] | None, max_size: int | None) -> tuple[Any, Any]:
    """Return a model and its record."""
    from kernelatoms.files.models.model_file import load_model

    return load_model(model, trusted=trusted_types(trust), max_size=max_size)


def open_both(
    model: Path,
    data: Path,
    options: "ReadOptions",
    trust: list[str] | None,
    large: "LargeTable | None" = None,
) -> tuple[Any, Any, Any, Any]:
    """Return model, record, table and its rows in the model's columns, each within ``max_size``."""
    from kernelatoms.files.tables.matching import rows_for

    fitted, record = open_model(model, trust, options.max_size)
    table = read_data(data, options, large)
    X, notes = rows_for(table, record, n_features_of(fitted, record, model))
    for text in (*notes, note_about_rows(fitted, X)):
        if text:
            note(text)
    return fitted, record, table, X


def n_features_of(fitted: Any, record: Any, model: Path) -> int:
    """Return how many features a model takes."""
    n_features = getattr(fitted, "n_features_in_", None) or len(record.columns or ())
    if not n_features:
        raise ValueError(
            f"{model} says neither how many columns it takes nor which; use it from Python, with "
            "load_model."
        )
    return int(n_features)


def true_labels(
    fitted: Any,
    table: "Table",
    record: "ModelRecord",
    label: str | None,
    *,
    may_be_empty: bool = False,
) -> tuple[Any, Any] | None:
    """Return the true classes in a table and a mask of the rows with one; None if it has none.

    ``label`` is the column that the user names; else it is that of the model, if it is there.
    """
    from kernelatoms.files.tables.roles import labels_for

    name = label or record.label
    if name is None or (label is None and name not in table.names):
        return None
    if not hasattr(fitted, "classes_"):
        raise ValueError("--label: the model predicts no classes that could be right.")
    return labels_for(table, name, fitted.classes_, may_be_empty=may_be_empty)


@contextmanager
def at_work(model: Path) -> Iterator[None]:
    """Turn exceptions of a model into one message: types that users trust may raise anything."""
    try:
        yield
    except (LookupError, AttributeError, ArithmeticError, RuntimeError) as error:
        raise ValueError(
            f"{model}: the model cannot be applied ({type(error).__name__}: {error}); its file may "
            "be damaged."
        ) from error


def write_or_print(output: Path, write: Callable[[Any], None]) -> bool:
    """Call ``write`` with a file, or print what it writes to "-"; return whether it was a file."""
    if str(output) != "-":
        write(output)
        return True
    text = io.StringIO()
    write(text)
    tell(text.getvalue(), end="")
    return False


def works_on_device(command: Callable[P, None]) -> Callable[P, None]:
    """Run a command on the device of its option ``device``, which is checked first."""

    @functools.wraps(command)
    def there(*args: P.args, **kwargs: P.kwargs) -> None:
        device: Any = kwargs.get("device")
        with ExitStack() as chosen:
            if device and device.strip():
                from kernelatoms import use_device

                try:
                    chosen.enter_context(use_device(device))
                except ValueError as error:
                    raise ValueError(f"--device (or KERNELATOMS_DEVICE): {error}") from error
            command(*args, **kwargs)

    return there
