"""``--scheduler`` and ``--workers``: commands on the workers of a Dask cluster."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from kernelatoms.cli import console

Scheduler = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Work on the Dask cluster whose scheduler is there, such as tcp://10.0.0.1:8786; its "
        "workers must see the files under the same names. The table is read in parts.",
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        help="Work on a Dask cluster of N processes of this machine, one thread each, which end "
        "with the command. The table is read in parts.",
    ),
]


def are_asked_for(scheduler: str | None, workers: int | None, device: str | None) -> bool:
    """Return whether a command is to work on a cluster; refuse options that exclude each other."""
    if scheduler is None and workers is None:
        return False
    if scheduler is not None and workers is not None:
        raise ValueError(
            "--scheduler names a cluster that exists, and --workers starts one of this machine: "
            "give one of them."
        )
    if scheduler is not None and not scheduler.strip():
        raise ValueError("--scheduler: give an address, such as tcp://10.0.0.1:8786.")
    if device and device.strip() and device.strip() != "cpu":
        raise ValueError(
            f"--device (or KERNELATOMS_DEVICE): workers compute on the CPU, got {device!r}; leave "
            f"it out, or leave out --{'workers' if scheduler is None else 'scheduler'}."
        )
    return True


@contextmanager
def connected(scheduler: str | None, workers: int | None) -> Iterator[None]:
    """Work on the cluster that is asked for, if one is; say how passes will go."""
    if scheduler is None and workers is None:
        yield
        return
    from kernelatoms.files.tables import on_workers

    try:
        with _log_as_notes(), on_workers.connected(scheduler, workers) as n:
            where = "of this machine" if scheduler is None else f"of the cluster at {scheduler}"
            console.say(f"The table is read in parts, by {n:,} worker{'s' * (n != 1)} {where}.")
            yield
    except ImportError as error:
        if "kernelatoms[dask]" not in str(error):
            raise
        raise ValueError(str(error)) from error
    except ConnectionError as error:
        raise OSError(
            "the connection to the Dask cluster was lost. A fit with --checkpoint goes on from its "
            "last pass when the command is given again."
        ) from error
    except RuntimeError as error:
        if type(error.__cause__).__name__ != "KilledWorker":
            raise
        raise OSError(
            "several workers died one after another at the same rows, most often for lack of "
            f"memory: use workers with more of it. Dask says: {error.__cause__}"
        ) from error


class _Notes(logging.Handler):
    """Prints what the library logs as notes, each once."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self._said: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if text not in self._said:
            self._said.add(text)
            console.note(text)


@contextmanager
def _log_as_notes() -> Iterator[None]:
    log, notes = logging.getLogger("kernelatoms"), _Notes()
    level = log.level
    log.addHandler(notes)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.setLevel(level)
        log.removeHandler(notes)
