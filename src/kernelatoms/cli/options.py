"""Options that commands share, and reading a data file."""

import functools
import io
import re
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec

import typer

from kernelatoms.cli.console import note, tell

if TYPE_CHECKING:
    from kernelatoms.files.tables.table import ReadOptions, Table

P = ParamSpec("P")

_TABLES = (
    ".csv, .tsv, .txt, .jsonl (these also .gz, .bz2 or .zst), .parquet, .feather, .npy or .npz; "
    "- is standard input."
)

Model = Annotated[Path, typer.Argument(help="A file that `kernelatoms fit` wrote.")]
Data = Annotated[Path, typer.Argument(help=f"Table: {_TABLES}")]
Rows = Annotated[
    str | None, typer.Option(metavar="KEY", help="The key of an .npz file that holds the rows.")
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
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def read_data(data: Path, options: "ReadOptions | str | None") -> "Table":
    """Read a table and print its notes."""
    from dataclasses import replace

    from kernelatoms.files.tables.table import read_table

    table = read_table(data, options)
    for text in table.notes:
        note(text)
    return replace(table, notes=[])


def write_or_print(output: Path, write: Callable[[Any], None]) -> bool:
    """Call ``write`` with a file, or print what it writes to "-"; return whether it was a file."""
    from kernelatoms.files.writing import is_standard_stream

    if not is_standard_stream(output):
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
        if not device or not device.strip():
            return command(*args, **kwargs)
        from kernelatoms import use_device

        with ExitStack() as chosen:
            try:
                chosen.enter_context(use_device(device))
            except ValueError as error:
                raise ValueError(f"--device (or KERNELATOMS_DEVICE): {error}") from error
            return command(*args, **kwargs)

    return there
