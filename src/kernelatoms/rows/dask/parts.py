"""Rows that workers read by themselves, and answers that they give to rows that they are sent."""

import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any
from uuid import uuid4

import cloudpickle
import dask
import dask.array as da
import numpy as np
from dask.highlevelgraph import HighLevelGraph
from numpy.typing import DTypeLike

from kernelatoms.engine.cpu.threads import alone
from kernelatoms.rows.dask.cluster import (
    current_client,
    errors_in_words,
    in_mib,
    memory_of_workers,
)
from kernelatoms.rows.dask.source import DaskRows


class RowsReadByWorkers(DaskRows):
    """Rows that are read where they are worked on, chunk by chunk, in every pass.

    Parameters
    ----------
    read : callable
        ``read(place)`` returns the rows of a chunk. It is sent to the workers once per pass.
    places : sequence
        What each chunk is read by.
    row_chunks : sequence of int
        How many rows each chunk has.
    n_features : int
        Columns.
    dtype : dtype
        float32 or float64, as ``read`` returns them.
    identity : dict
        What tells these rows from others, as values that JSON can hold.
    """

    def __init__(
        self,
        read: Callable[[Any], Any],
        places: Sequence[Any],
        row_chunks: Sequence[int],
        n_features: int,
        dtype: DTypeLike,
        identity: dict[str, Any],
    ) -> None:
        token = uuid4().hex
        reader, name = f"send-reader-{token}", f"read-rows-{token}"
        layer: dict[Any, Any] = {reader: (cloudpickle.loads, cloudpickle.dumps(read))}
        for number, place in enumerate(places):
            packed = cloudpickle.dumps(place)
            layer[name, number, 0] = (_read_chunk, reader, packed)
        graph = HighLevelGraph.from_collections(name, layer, dependencies=[])
        array = da.Array(graph, name, (tuple(row_chunks), (n_features,)), dtype=np.dtype(dtype))
        super().__init__(array)
        self._identity = identity

    def identity(self) -> dict[str, Any]:
        """Return the identity that was given, and the chunks."""
        return {**self._identity, "kind": "read by workers", "chunks": list(self.row_chunks)}

    def plan(self, n_atoms: int, n_features: int, n_dictionaries: int = 1) -> None:
        """Log what a pass will do, and warn of chunks that are too large for the workers.

        Parameters
        ----------
        n_atoms, n_features, n_dictionaries : int
            As in ``DaskRows.plan``.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of chunks: they are those of the files
            super().plan(n_atoms, n_features, n_dictionaries)
        largest = max(self.row_chunks) * (self.n_features or 1) * self.dtype.itemsize
        smallest = min(memory_of_workers(current_client()), default=0)
        if smallest and largest > smallest // 4:
            warnings.warn(
                f"A worker reads up to {in_mib(largest)} at once, more than a quarter of its "
                f"memory ({in_mib(smallest)}): use files whose row groups or batches are smaller, "
                "or workers with more memory.",
                UserWarning,
                stacklevel=3,
            )


def answers_in_order(
    function: Callable[[Any, Any], Any], model: Any, blocks: Iterable[dict[str, Any]]
) -> Iterator[tuple[dict[str, Any], Any]]:
    """Yield blocks, each with what workers answer to its rows: ``function(model, block["X"])``.

    The model is sent once. Two blocks per thread of the workers are under way at a time.
    """
    client = current_client()
    waiting: deque[tuple[dict[str, Any], Any]] = deque()
    most = 2 * max(1, sum(client.nthreads().values()))
    quiet = {"distributed.admin.large-graph-warning-threshold": "1 TiB"}
    with errors_in_words("answering for rows"), dask.config.set(quiet):
        sent = client.submit(cloudpickle.loads, cloudpickle.dumps((function, model)), pure=False)
        try:
            for block in blocks:
                waiting.append((block, client.submit(_answer, sent, block["X"], pure=False)))
                if len(waiting) >= most:
                    yield _next(waiting)
            while waiting:
                yield _next(waiting)
        finally:
            client.cancel([future for _, future in waiting], force=True)


def _next(waiting: deque[tuple[dict[str, Any], Any]]) -> tuple[dict[str, Any], Any]:
    block, future = waiting[0]
    answer = future.result()
    waiting.popleft()
    return block, answer


def _answer(sent: tuple[Callable[[Any, Any], Any], Any], rows: Any) -> Any:
    function, model = sent
    with alone():
        return function(model, rows)


def _read_chunk(read: Callable[[Any], Any], packed: bytes) -> Any:
    with alone():
        return read(cloudpickle.loads(packed))
