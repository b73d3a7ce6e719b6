"""The ``kernelatoms`` command."""

from collections.abc import Sequence
from importlib import import_module
from typing import Annotated

import typer

from kernelatoms.cli import decode, demo, encode, explain, fit, info, predict
from kernelatoms.cli.console import open_streams, say_the_rest, tell
from kernelatoms.cli.interrupts import STOPPED

app = typer.Typer(
    name="kernelatoms",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done; 1 it failed (disk full, say); 2 a mistake in the arguments or the "
    "data; 130 stopped by Ctrl-C.",
)

app.command(epilog=fit.EXAMPLES)(fit.fit)
app.command(epilog=predict.PREDICT_EXAMPLES)(predict.predict)
app.command(epilog=encode.ENCODE_EXAMPLES)(encode.encode)
app.command(epilog=decode.DECODE_EXAMPLES)(decode.decode)
app.command(epilog=decode.DENOISE_EXAMPLES)(decode.denoise)
app.command(epilog=explain.EXAMPLES)(explain.explain)
app.command(epilog=info.INFO_EXAMPLES)(info.info)
app.command(epilog=info.REPORT_EXAMPLES)(info.report)
import_module("kernelatoms.codec.commands").mount(app)  # by name: nothing depends on the codec
app.command(epilog=info.DATASETS_EXAMPLES)(info.datasets)
app.command(epilog=demo.EXAMPLES)(demo.demo)


def _version(wanted: bool) -> None:
    if wanted:
        from kernelatoms import __version__

        tell(__version__)
        raise typer.Exit


@app.callback()
def kernelatoms(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Sparse representations in kernel feature spaces: learn, code, classify, look, compress.

    Start with `kernelatoms fit yours.csv --label COLUMN`, then
    `kernelatoms predict model.skops new.csv`.
    """


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    open_streams()
    try:
        app(args=argv, prog_name="kernelatoms")
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except KeyboardInterrupt:
        # Between commands: while typer was still reading the arguments.
        return STOPPED
    return say_the_rest() or code
