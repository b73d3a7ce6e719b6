"""Workers of a cluster: their versions and memory, what is said of them, and of their loss.

Where no ``distributed`` client is, tasks run in threads of this process, and nothing here is done.
"""

import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dask

log = logging.getLogger("kernelatoms")

#: Smaller chunks cost more to schedule than to code.
_SMALL_CHUNK = 1 << 20


def current_client() -> Any:
    """Return the client that computes Dask collections here, or None."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    if dask.config.get("scheduler", None) not in (None, "dask.distributed", "distributed"):
        return None
    try:
        return distributed.default_client()
    except ValueError:
        return None


def check_not_lost(collection: Any, what: str) -> None:
    """Refuse a collection whose chunks are on a cluster to which there is no connection."""
    for future in futures_behind(collection):
        if future.client is None or future.client.status not in ("running", "newly-created"):
            raise ValueError(
                f"The chunks of {what} are on a cluster whose client is closed: connect a client "
                f"(dask.distributed.Client) and make {what} again."
            )


def futures_behind(collection: Any) -> list[Any]:
    """Return what a cluster keeps of a collection."""
    distributed = sys.modules.get("distributed")
    return [] if distributed is None else list(distributed.futures_of(collection))


def check_workers(client: Any, known: set[str]) -> set[str]:
    """Refuse workers with another version of the package; return the addresses of all.

    Those of ``known`` addresses have been looked at.
    """
    here = _version()
    workers = set(workers_of(client))
    if workers <= known:
        return known
    found = client.run(_version, workers=sorted(workers - known), on_error="return")
    for address, version in found.items():
        if isinstance(version, ImportError):
            raise RuntimeError(
                f"The worker {address} has no kernelatoms (here: {here}). Install the same "
                "version on the scheduler and on all workers: pip install "
                f"'kernelatoms[dask]=={here}'."
            )
        if isinstance(version, str) and version != here:
            raise RuntimeError(
                f"The worker {address} has kernelatoms {version}, and here is {here}. All "
                "must have the same version, so that results do not depend on who computes what."
            )
    return workers | known


def _version() -> str:
    version: str = sys.modules["kernelatoms"].__version__
    return version


def memory_of_workers(client: Any) -> list[int]:
    """Return the memory limits of all workers, in bytes, of those that have one."""
    if client is None:
        return []
    limits = [int(worker.get("memory_limit") or 0) for worker in workers_of(client).values()]
    return [limit for limit in limits if limit > 0]


def n_workers(client: Any) -> int:
    """Return how many workers there are; one without a cluster."""
    return 1 if client is None else max(1, len(workers_of(client)))


def workers_of(client: Any) -> dict[str, Any]:
    """Return what the scheduler knows of its workers, by address; nothing once it is lost."""
    found: dict[str, Any] = client.scheduler_info(n_workers=-1).get("workers", {})
    return found


def warn_of_chunks(sizes: list[int], limits: list[int]) -> None:
    """Warn once of chunks that are too small, or too large for the workers."""
    if not sizes:
        return
    largest, middle = max(sizes), sorted(sizes)[len(sizes) // 2]
    if limits and largest > min(limits) // 4:
        warnings.warn(
            f"Chunks of X are up to {in_mib(largest)}, more than a quarter of a worker's memory "
            f"({in_mib(min(limits))}): chunks of 16 to 64 MiB are best, X.rechunk(...).",
            UserWarning,
            stacklevel=4,
        )
    elif len(sizes) > 1 and middle < _SMALL_CHUNK:
        warnings.warn(
            f"Chunks of X are as small as {middle / 1024:,.0f} KiB, and take longer to schedule "
            "than to code: chunks of 16 to 64 MiB are best, X.rechunk(...).",
            UserWarning,
            stacklevel=4,
        )


def counted(number: int, what: str) -> str:
    """Return a number of things in words."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def in_mib(n_bytes: float) -> str:
    """Return bytes in words."""
    return f"{n_bytes / 2**20:,.1f} MiB" if n_bytes < 2**30 else f"{n_bytes / 2**30:,.1f} GiB"


@contextmanager
def errors_in_words(doing: str) -> Iterator[None]:
    """Say what happened, and what to do, when workers or the scheduler are lost."""
    distributed = sys.modules.get("distributed")
    try:
        yield
    except Exception as error:
        if distributed is None:
            raise
        if isinstance(error, distributed.scheduler.KilledWorker):
            raise RuntimeError(
                f"Several workers died one after another at the same task, while {doing}: most "
                "often for lack of memory. Use smaller chunks (X.rechunk(...)) or workers with "
                f"more memory. Dask says: {error}"
            ) from error
        if _is_loss(error, distributed):
            raise ConnectionError(
                f"The connection to the Dask scheduler was lost while {doing} "
                f"({type(error).__name__}: {error}). Connect to a cluster again and make X again; "
                "a fit with a Checkpoint goes on from its last pass."
            ) from error
        raise


def _is_loss(error: Exception, distributed: Any) -> bool:
    """Whether an error means that the scheduler, or what it held, is gone."""
    from asyncio import CancelledError as Asyncio
    from concurrent.futures import CancelledError

    if isinstance(error, (CancelledError, Asyncio, distributed.comm.CommClosedError)):
        return True
    client = current_client()
    gone = client is None or client.status not in ("running", "newly-created")
    return gone and isinstance(error, (OSError, RuntimeError, TimeoutError))
