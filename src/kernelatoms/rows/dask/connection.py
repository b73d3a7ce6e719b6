"""Connections to a cluster: one that exists already, or worker processes of this machine."""

import logging
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing import resource_tracker
from typing import Any

from kernelatoms.lazy import load_extra
from kernelatoms.rows.dask.cluster import check_workers

#: Seconds in which a scheduler must answer, and have a worker; those in which a client takes leave.
_ANSWER, _LEAVE = 10, 2
#: What Dask says of its own work.
_LOGGERS = ("distributed", "distributed.client", "distributed.worker", "tornado", "bokeh")


@contextmanager
def connected(scheduler: str | None, n_workers: int | None) -> Iterator[int]:
    """Compute Dask collections on a cluster until the context ends; give its number of workers.

    Parameters
    ----------
    scheduler : str or None
        The address of an existing cluster.
    n_workers : int or None
        Without one: how many processes of one thread to start on this machine. They end with the
        context, and with this process, however it ends.

    Raises
    ------
    ImportError
        Dask is not installed.
    ValueError
        No scheduler answers at the address, it has no workers, or they have another version.
    """
    distributed = load_extra("distributed", "A Dask cluster", "dask")
    with ExitStack() as opened:
        opened.enter_context(_quiet())
        address: Any = scheduler
        if scheduler is None:
            address = opened.enter_context(_local_cluster(distributed, n_workers or 1))
        client = opened.enter_context(_client(distributed, address))
        yield len(_checked_workers(client, scheduler))


def _checked_workers(client: Any, scheduler: str | None) -> set[str]:
    """Return the addresses of the workers, which have this version of the package."""
    try:
        client.wait_for_workers(1, timeout=_ANSWER)
        return check_workers(client, set())
    except TimeoutError as error:
        raise ValueError(
            f"scheduler: {scheduler} has no workers; start some: dask worker {scheduler}."
        ) from error
    except RuntimeError as error:
        raise ValueError(f"scheduler: {error}") from error


@contextmanager
def _client(distributed: Any, address: Any) -> Iterator[Any]:
    try:
        client = distributed.Client(address, timeout=_ANSWER)
    except (OSError, ValueError, TypeError, ImportError, RuntimeError) as error:
        raise ValueError(
            f"scheduler: no Dask scheduler answers at {address!r}. Give the address that "
            "'dask scheduler' prints when it starts, such as tcp://10.0.0.1:8786."
        ) from error
    try:
        yield client
    finally:
        with suppress(Exception):
            client.close(timeout=_LEAVE)


@contextmanager
def _local_cluster(distributed: Any, n_workers: int) -> Iterator[Any]:
    """Start worker processes, which a nanny each starts again where they die."""
    from dask import config

    # Dask gives a worker up that is dead 15 seconds after it died, though started again meanwhile.
    patience = {"distributed.deploy.lost-worker-timeout": "1 hour"}
    with config.set(patience), _deaf_to_interrupts():
        cluster = distributed.LocalCluster(
            n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address=None,
            silence_logs=logging.CRITICAL,
            # Without a dashboard there is a page of the scheduler's health nevertheless.
            scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
        )  # fmt: skip
    try:
        yield cluster
    finally:
        with suppress(Exception):
            cluster.close()


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Let threads and processes that are started here not hear Ctrl-C, which is for this process.

    A terminal sends it to all processes of a command, and workers would print where they were.
    """
    if not hasattr(signal, "pthread_sigmask") or (
        threading.current_thread() is not threading.main_thread()
    ):
        yield
        return
    _start_resource_tracker()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start_resource_tracker() -> None:
    """Start the process that removes what a command leaves when Ctrl-C ends it; it says nothing.

    Python starts it with the first worker otherwise, and lets that thread hear Ctrl-C again.
    """
    name = "PYTHONWARNINGS"
    before = os.environ.get(name)
    os.environ[name] = ",".join(filter(None, [before, "ignore:resource_tracker:UserWarning"]))
    try:
        resource_tracker.ensure_running()
    finally:
        os.environ.pop(name)
        if before is not None:
            os.environ[name] = before


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep what Dask logs of its own work off the terminal; its errors are raised."""
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
