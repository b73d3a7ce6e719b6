"""Messages to the user: notes, errors with exit codes, progress, tables, JSON.

Results go to standard output, everything else to standard error, so a pipe sees results only. Bars
and colours appear on a terminal only. Names, columns and labels come from files of any origin: what
goes to a terminal passes ``visible``, so that no text in a file can move the cursor, change colours
or hide what follows. Redirected results are exact.

See docs/decisions/058-exit-codes-and-terminals.md.
"""

import ast
import functools
import json
import os
import re
import shlex
import sys
import unicodedata
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ParamSpec

import typer

from kernelatoms.cli.interrupts import STOPPED

if TYPE_CHECKING:
    from rich.console import Console

    from kernelatoms.report import Table

FAILED, MISTAKE = 1, 2

# Unicode's control, format, surrogate, private and unassigned signs, ends of lines and paragraphs.
_WITHOUT_SHAPE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})

# The flags of arguments that messages of the library name.
_FLAGS = {
    name: f"--{name}"
    for name in (
        "dates",
        "decimal",
        "drop",
        "encoding",
        "force",
        "header",
        "keep",
        "label",
        "memory",
        "rows",
        "scheduler",
    )
} | {"path": "--output", "trusted": "--trust"}
_NAMES = "|".join(_FLAGS)
_FIRST = re.compile(rf"(?:^|(?<=^Error: )|(?<=^Note: ))({_NAMES}): ")
_TEXT = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_GIVEN = re.compile(rf"\b({_NAMES})=(True|False|{_TEXT}|\[(?:{_TEXT}|, )*\])")

P = ParamSpec("P")
OnStep = Callable[[int, int, str], None]


def errors_as_messages(command: Callable[P, None]) -> Callable[P, None]:
    """Turn exceptions of a command into one message and an exit code.

    ValueError and TypeError are the library's messages about wrong arguments and data. Other
    exceptions are bugs and show their traceback.
    """

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except KeyboardInterrupt:
            say("\nStopped before it was done.")
            raise typer.Exit(STOPPED) from None
        except BrokenPipeError:
            # The reader (such as head) has seen enough.
            raise typer.Exit(0) from None
        except (ValueError, TypeError, FileNotFoundError, NotADirectoryError, IsADirectoryError,
                PermissionError) as error:  # fmt: skip
            say(f"Error: {error}")
            raise typer.Exit(MISTAKE) from None
        except OSError as error:
            say(
                f"Error: {error.strerror or error}" + (f": {error.filename}" * bool(error.filename))
            )
            raise typer.Exit(FAILED) from None
        except MemoryError as error:
            say(f"Error: not enough memory ({error}); use fewer rows, landmarks or atoms.")
            raise typer.Exit(FAILED) from None

    return run


def open_streams() -> None:
    """Open null devices for closed standard streams, which Python has as None."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115 - to the very end
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        # A terminal that knows no '±' shows '?' instead of ending the command.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def say_the_rest() -> int:
    """Flush the standard streams, as Python would at its end; return 0, or FAILED if that fails."""
    code = 0
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError as error:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            if not isinstance(error, BrokenPipeError):
                say(f"Error: {error.strerror}")
                code = FAILED
    return code


def say(text: str) -> None:
    """Print something that is not a result, to standard error."""
    print(visible(in_flags(text)), file=sys.stderr, flush=True)


def tell(text: str, *, end: str = "\n") -> None:
    """Print a result."""
    print(visible(text) if sys.stdout.isatty() else text, end=end)


def visible(text: str) -> str:
    r"""Return a text with everything that a terminal would obey written out: ``\x1b`` and the like.

    That is control characters other than line ends and tabs, and characters without a shape: those
    that reverse the direction of writing, halves of surrogate pairs, line separators.
    """
    return "".join(
        sign if sign in "\n\t" or unicodedata.category(sign) not in _WITHOUT_SHAPE
        else sign.encode("unicode_escape").decode()
        for sign in text
    )  # fmt: skip


def in_flags(text: str) -> str:
    """Return a message of the library with the flags of the command line for its arguments.

    Messages name arguments as ``label: ...`` at their beginning, or as ``header=True``,
    ``encoding='utf-16'`` and ``keep=['id']`` anywhere.

    Examples
    --------
    >>> in_flags("label: there is no column 'a'; header=False if the first line is a row.")
    "--label: there is no column 'a'; --no-header if the first line is a row."
    """

    def flag_of(found: re.Match[str]) -> str:
        name, value = found.groups()
        flag = _FLAGS[name]
        if value in ("True", "False"):
            return flag if value == "True" else f"--no-{flag[2:]}"
        try:
            values = ast.literal_eval(value)
        except (SyntaxError, ValueError):  # the text of a file, and no message of the library
            return found[0]
        if name == "trusted":
            values = [":".join(entry.rsplit(".", 1)) for entry in values]
        values = values if isinstance(values, list) else [values]
        return " ".join(f"{flag} {shlex.quote(entry)}" for entry in values)

    text = _FIRST.sub(lambda found: f"{_FLAGS[found[1]]}: ", text)
    text = text.replace("by max_size", "by --max-size, such as --max-size 20GiB")
    return _GIVEN.sub(flag_of, text)


def note(text: str) -> None:
    """Print what the user should know but need not act on."""
    say(f"Note: {text}")


def print_json(result: Any) -> None:
    """Print a result for scripts: one JSON object, NaN as null."""
    tell(json.dumps(_plain(result), indent=2, allow_nan=False))


def tell_or_print_json(words: str, result: Any, as_json: bool) -> None:
    """Print a result in words, or for scripts."""
    if as_json:
        print_json(result)
    else:
        tell(words)


@contextmanager
def warnings_as_notes(shown: list[str]) -> Iterator[None]:
    """Show every warning once, as a note, and append it to ``shown``."""

    def show(message: Any, *_: Any, **__: Any) -> None:
        text = " ".join(str(message).split())
        if text not in shown:
            shown.append(text)
            note(text)

    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        warnings.showwarning = show
        yield


@contextmanager
def progress(console: "Console | None" = None, *, lines: bool = False) -> Iterator[OnStep]:
    """Give a function that shows steps: a bar on a terminal; elsewhere lines if asked for."""
    from rich.console import Console

    console = console or Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield _plain_lines(console) if lines else lambda done, total, what: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    words = TextColumn("{task.description:<28}", markup=False)
    columns = (words, BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total, what: bar.update(
            task, completed=done, total=total or None, description=what
        )


class FitProgress:
    """A scikit-learn callback that shows finished classes or passes as a bar."""

    def __init__(self, on_step: OnStep, what: str) -> None:
        self._on_step, self._what, self._done = on_step, what, 0

    def setup(self, estimator: Any, context: Any) -> None:
        """Do nothing: the bar exists already."""

    def teardown(self, estimator: Any, context: Any) -> None:
        """Do nothing: the bar ends with its context."""

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Show an empty bar of the right length; it begins where a checkpoint does."""
        if context.task_name == "pass":
            self._done = max(self._done, context.task_id)
        if context.max_subtasks:
            self._total = context.max_subtasks
            self._on_step(self._done, self._total, self._what)

    def on_fit_task_end(self, estimator: Any, context: Any) -> bool:
        """Advance the bar by one class or pass."""
        if context.max_subtasks == 0:
            self._done += 1
            self._on_step(self._done, self._total, self._what)
        return False


def print_table(console: "Console", table: "Table") -> None:
    """Print a report's table; a wide one in parts, each with the first column."""
    from rich.table import Table as RichTable
    from rich.text import Text

    header = [visible(name) for name in table.header]
    rows = [[visible(cell) for cell in row] for row in table.rows]
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
        console.print(visible(table.caption), style="dim", markup=False)


def _parts(widths: list[int], room: int) -> list[list[int]]:
    """Split columns 1, 2, ... so that each part fits beside column 0; frames take 3 per column."""
    parts: list[list[int]] = [[]]
    used = start = widths[0] + 4
    for i, width in enumerate(widths[1:], start=1):
        if parts[-1] and used + width + 3 > room:
            parts.append([])
            used = start
        parts[-1].append(i)
        used += width + 3
    return parts


def _plain_lines(console: "Console") -> OnStep:
    said = [""]

    def show(done: int, total: int, what: str) -> None:
        if what != said[-1]:
            said.append(what)
            console.print(f"{what} ...", markup=False)
            console.file.flush()  # a log that is being followed should see the line now

    return show


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float):
        return value if abs(value) < float("inf") else None
    return value if isinstance(value, str | int | bool | None) else str(value)
