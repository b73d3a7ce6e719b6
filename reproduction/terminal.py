"""The terminal: results on standard output; messages, errors and progress on standard error."""

import functools
import json
import math
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ParamSpec

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from kernelatoms.report import Table

FAILED, MISTAKE, STOPPED = 1, 2, 130

P = ParamSpec("P")
OnStep = Callable[[int, int, str], None]


def without_traceback(command: Callable[P, None]) -> Callable[P, None]:
    """Turn a mistake of the user's into one message and exit code 2, a failed system call into 1.

    ValueError and TypeError carry the library's messages about arguments and data. Any other
    exception is a bug and keeps its traceback.
    """

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except KeyboardInterrupt:
            raise typer.Exit(STOPPED) from None
        except BrokenPipeError:
            raise typer.Exit(0) from None
        except (ValueError, TypeError, FileNotFoundError, NotADirectoryError, IsADirectoryError,
                PermissionError) as error:  # fmt: skip
            say(f"Error: {error}")
            raise typer.Exit(MISTAKE) from None
        except OSError as error:
            say(f"Error: {error.strerror or error}" + f": {error.filename}" * bool(error.filename))
            raise typer.Exit(FAILED) from None

    return wrapped


def say(text: str) -> None:
    """Print a message that is not a result."""
    print(text, file=sys.stderr, flush=True)


def print_json(result: Any) -> None:
    """Print a result for scripts, NaN and infinity as null."""
    print(json.dumps(_finite(result), indent=2, allow_nan=False))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(entry) for entry in value]
    if hasattr(value, "tolist"):
        return _finite(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


@contextmanager
def warnings_as_notes() -> Iterator[None]:
    """Print every warning once, as a note."""
    printed: set[str] = set()

    def show(message: Any, *_: Any, **__: Any) -> None:
        text = " ".join(str(message).split())
        if text not in printed:
            printed.add(text)
            say(f"Note: {text}")

    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        warnings.showwarning = show
        yield


@contextmanager
def progress() -> Iterator[OnStep]:
    """Give a function (done, total, what) that moves a bar; without a terminal it does nothing."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield lambda done, total, what: None
        return
    words = TextColumn("{task.description:<28}", markup=False)
    columns = (words, BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total, what: bar.update(
            task, completed=done, total=total or None, description=what
        )


def print_table(console: "Console", table: "Table") -> None:
    """Print a table; one that is too wide in parts, each with the first column."""
    from rich.table import Table as RichTable
    from rich.text import Text

    header, rows = table.header, table.rows
    widths = [
        max(len(cell) for cell in (*name.split(), *(row[i] for row in rows)))
        for i, name in enumerate(header)
    ]
    for part in _parts(widths, console.width):
        shown = RichTable()
        for i in (0, *part):
            justify: Any = "left" if i == 0 else "right"
            shown.add_column(Text(header[i]), justify=justify, width=widths[i])
        for row in rows:
            shown.add_row(*(Text(row[i]) for i in (0, *part)))
        console.print(shown)
    if table.caption:
        console.print(table.caption, style="dim", markup=False)


def _parts(widths: list[int], room: int) -> list[list[int]]:
    """Group columns 1, 2, ... so that each group fits beside column 0; a frame takes 3 each."""
    parts: list[list[int]] = [[]]
    used = start = widths[0] + 4
    for i, width in enumerate(widths[1:], start=1):
        if parts[-1] and used + width + 3 > room:
            parts.append([])
            used = start
        parts[-1].append(i)
        used += width + 3
    return parts
