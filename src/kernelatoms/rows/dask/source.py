"""``DaskRows``: the rows of a Dask array or data frame, worked on where their chunks lie."""

import operator
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any
from uuid import uuid4

import cloudpickle
import dask
import dask.array as da
import numpy as np
from dask._task_spec import Task, TaskRef
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph
from numpy.typing import DTypeLike, NDArray

from kernelatoms.engine.cpu.threads import n_threads
from kernelatoms.rows.dask import tasks
from kernelatoms.rows.dask.chunks import (
    is_frame,
    rows_of_array,
    rows_of_frame,
    values_beside,
    with_known_rows,
)
from kernelatoms.rows.dask.cluster import (
    check_not_lost,
    check_workers,
    counted,
    current_client,
    errors_in_words,
    in_mib,
    log,
    memory_of_workers,
    n_workers,
    warn_of_chunks,
)
from kernelatoms.rows.numbers import float_type_asked, stacked
from kernelatoms.rows.reduction import tree
from kernelatoms.rows.regroup import regroup
from kernelatoms.rows.source import RowSource

#: How many sums of neighbouring chunks a task adds: so many are in a worker's memory at once.
_FAN_IN = 4


class DaskRows(RowSource):
    """The rows of a Dask array or data frame; passes over them run where their chunks lie.

    Made by :func:`~kernelatoms.open_rows`. The chunks are part of the answer: sums are added block
    by block within a chunk, and then along a tree over the chunks. Blocks do not reach from one
    chunk into the next.

    Parameters
    ----------
    collection : dask.array.Array or dask.dataframe.DataFrame of shape (n_rows, n_features)
        The rows. Chunks of columns are merged.
    label : str or array-like of shape (n_rows,), optional
        A column of the data frame, or labels; a Dask collection has the chunks of the rows.
    columns, drop : sequence of str, optional
        The columns of a data frame to read, or to leave out.
    dtype : dtype, optional
        float32 or float64; by default that of the numbers where it is one of them.
    what : str, default="X"
        What errors call the rows.

    Attributes
    ----------
    row_chunks : tuple of int
        How many rows each chunk has. Chunks of unknown length are counted by a pass.
    bytes_moved : int
        At most so many bytes have been sent to and between workers by passes so far.
    """

    is_distributed = True
    _waits_for_data = False  # a thread that reads ahead would not know the current client

    def __init__(
        self,
        collection: Any,
        label: Any = None,
        *,
        columns: Iterable[str] | None = None,
        drop: Iterable[str] | None = None,
        dtype: DTypeLike | None = None,
        what: str = "X",
    ) -> None:
        check_not_lost(collection, what)
        names: list[str] | None = None
        self._n_partitions = collection.npartitions if is_frame(collection) else None
        if is_frame(collection):
            own = label if isinstance(label, str) else None
            array, names = rows_of_frame(collection, columns, drop, own)
            label = collection[label] if own is not None else label
        else:
            if isinstance(label, str) or columns is not None or drop is not None:
                raise ValueError(
                    "label, columns and drop name columns of tables; a Dask array has no names. "
                    "The label of each row can be given as label=array."
                )
            array = rows_of_array(collection, what)
        known = not any(np.isnan(n_rows) for n_rows in array.chunks[0])
        self._what, self._array = what, array
        self._dask_labels = label if is_dask(label) else None
        super().__init__(
            sum(array.chunks[0]) if known else None,
            array.shape[1],
            float_type_asked(dtype, array.dtype),
            names,
            None if self._dask_labels is not None else label,
        )
        self.how_to_collect = f"{what}.compute()"
        self._known_workers: set[str] = set()
        # Per-row values of this process and their chunks on workers, by the identity of the values.
        self._beside: dict[int, tuple[NDArray[Any], Any]] = {}

    @property
    def row_chunks(self) -> tuple[int, ...]:  # type: ignore[override]
        """How many rows each chunk has."""
        if any(np.isnan(n_rows) for n_rows in self._array.chunks[0]):
            self._array = with_known_rows(self._array)
            self.n_rows = sum(self._array.chunks[0])
        sizes: tuple[int, ...] = self._array.chunks[0]
        return sizes

    def count(self) -> int:
        """Return the number of rows; chunks of unknown length are counted by a pass."""
        return sum(self.row_chunks)

    def labels(self) -> NDArray[Any] | None:
        """Return the label of every row; those of a Dask collection are brought here.

        Returns
        -------
        ndarray of shape (n_rows,), or None
            The labels, where there are any.
        """
        if self._dask_labels is not None:
            self._labels = self.values(self._dask_labels, "y")
            self._dask_labels = None
        return self._labels

    def values(self, collection: Any, what: str) -> NDArray[Any]:
        """Return a value per row, of a Dask collection with the chunks of these rows.

        Parameters
        ----------
        collection : dask array or series of shape (n_rows,)
            The values.
        what : str
            What errors call them.

        Returns
        -------
        ndarray of shape (n_rows,)
            The values.
        """
        check_not_lost(collection, what)
        return values_beside(collection, what, self.row_chunks, self._what, self._n_partitions)

    def identity(self) -> dict[str, Any]:
        """Return the chunks, their type and a checksum of their numbers, by a pass."""
        calls = [(tasks.checksum_of, TaskRef(key), chunk) for chunk, key in self._chunks()]
        checksums = self._collected(calls, "checksum", "reading rows")
        return {
            "kind": "dask",
            "chunks": list(self.row_chunks),
            "n_features": self.n_features,
            "dtype": self.dtype.name,
            "crc32": zlib.crc32(repr(checksums).encode()),
        }

    def reduce(
        self,
        work: Callable[..., Any],
        *,
        block_rows: int,
        add: Callable[[Any, Any], Any] | None = operator.add,
        max_at_once: int | None = None,
        beside: Sequence[NDArray[Any]] = (),
    ) -> Any:
        """Return the sum of ``work(block, start, *values)`` over all blocks, chunk by chunk.

        Parameters
        ----------
        work, block_rows, add, max_at_once, beside
            As in ``RowSource.reduce``; ``work`` is sent to the workers.

        Returns
        -------
        object
            The sum.
        """
        self._check_workers()
        chunks = self._chunks()
        if not chunks:
            raise ValueError("There are no rows.")
        values = [self._on_workers(one) for one in beside]
        token = uuid4().hex
        name, n_bytes = f"code-rows-{token}", 0
        layer: dict[Any, Any] = {}
        sent, n_bytes = send(work, f"send-atoms-{token}", layer)
        level: list[Any] = []
        for chunk, key in chunks:
            own = [TaskRef(one.__dask_keys__()[chunk.number]) for one in values]
            call = (tasks.work_on_chunk, sent, TaskRef(key), chunk, block_rows, add, *own)
            level.append(add_task(layer, (name, chunk.number), *call))
        for number, groups in enumerate(tree(len(level), _FAN_IN)):
            adds = f"add-sums-{token}"
            for group, members in enumerate(groups):
                sums = [level[i] for i in members]
                level[group] = add_task(layer, (adds, number, group), tasks.add_sums, add, *sums)
            del level[len(groups) :]
        total = self._computed(level[0], layer, values, "coding rows")
        self.bytes_moved += n_bytes * n_workers(current_client()) + len(chunks) * total.n_bytes
        return total.value

    def plan(self, n_atoms: int, n_features: int, n_dictionaries: int = 1) -> None:
        """Log what a pass over the rows will do, and warn of chunks that are too small or large.

        Parameters
        ----------
        n_atoms, n_features : int
            The size of a dictionary.
        n_dictionaries : int, default=1
            How many are learned.
        """
        client, sizes = current_client(), self.row_chunks
        limits = memory_of_workers(client)
        in_bytes = [n * (self.n_features or 1) * self._array.dtype.itemsize for n in sizes]
        warn_of_chunks([n for n in in_bytes if n], limits)
        atoms = 8 * n_dictionaries * n_atoms * n_features
        sums = 8 * n_dictionaries * n_atoms * (n_atoms + n_features)
        memory = f"{in_mib(min(limits))} of memory each" if limits else "no memory limit"
        where = "threads of this process"
        if client is not None:
            where = counted(n_workers(client), "worker")
        log.info(
            "%s in %s (%s, at most %s each); %s, %s; a pass moves at most %s "
            "(dictionary %s, sums %s per chunk).",
            counted(sum(sizes), "row"), counted(len(sizes), "chunk"), in_mib(sum(in_bytes)),
            in_mib(max(in_bytes)), where, memory,
            in_mib(n_workers(client) * atoms + len(sizes) * sums), in_mib(atoms), in_mib(sums),
        )  # fmt: skip

    def collect(self) -> Any:
        """Return all rows as one array, in memory."""
        return self.take(np.arange(self.count()))

    def array_and_chunks(self) -> tuple[Any, list[tuple[tasks.Chunk, Any]]]:
        """Return the Dask array of the rows, and of every chunk what it must be and its key."""
        return self._array, self._chunks(empty=True)

    def _chunks(self, empty: bool = False) -> list[tuple[tasks.Chunk, Any]]:
        """Return what every chunk must be, and its key; those without rows only if asked for."""
        sizes = self.row_chunks
        keys = self._array.__dask_keys__()
        starts = np.cumsum([0, *sizes]).tolist()
        return [
            (
                tasks.Chunk(
                    self._what, number, starts[number], n_rows, self.n_features or 1,
                    self._array.dtype, self.dtype,
                ),
                keys[number][0],
            )
            for number, n_rows in enumerate(sizes)
            if n_rows or empty
        ]  # fmt: skip

    def _read(self, block_rows: int) -> Iterator[Any]:
        sizes = np.cumsum([0, *self.row_chunks])
        each = (self._take(np.arange(start, stop)) for start, stop in pairwise(sizes.tolist()))
        yield from regroup(each, block_rows, lambda chunk, start, stop: chunk[start:stop])

    def _finish(self, piece: Any) -> Any:
        return stacked(piece.parts, self.n_features, self.dtype)

    def _take(self, indices: NDArray[np.intp]) -> Any:
        """Return rows, each picked where it lies."""
        order = np.argsort(indices, kind="stable")
        ascending = indices[order]
        calls = []
        for chunk, key in self._chunks():
            low, high = np.searchsorted(ascending, [chunk.start, chunk.start + chunk.n_rows])
            if high > low:
                places = ascending[low:high] - chunk.start
                calls.append((tasks.pick_rows, TaskRef(key), chunk, places))
        found = self._collected(calls, "pick-rows", "picking rows") if calls else []
        back = np.empty(len(order), np.intp)
        back[order] = np.arange(len(order))
        return stacked(found, self.n_features, self.dtype)[back]

    def _collected(self, calls: list[Any], name: str, doing: str) -> list[Any]:
        """Return the results of one task per chunk."""
        token = uuid4().hex
        layer: dict[Any, Any] = {}
        parts = [add_task(layer, (f"{name}-{token}", i), *call) for i, call in enumerate(calls)]
        collect = add_task(layer, f"collect-{token}", _together, *parts)
        found: list[Any] = self._computed(collect, layer, [], doing)
        return found

    def _computed(self, task: Any, layer: dict[Any, Any], others: list[Any], doing: str) -> Any:
        """Compute a task, and all that it needs."""
        final = f"total-{uuid4().hex}"
        add_task(layer, final, _itself, task)
        graph = HighLevelGraph.from_collections(final, layer, dependencies=[self._array, *others])
        check_not_lost(self._array, self._what)
        return compute(Delayed(final, graph), doing)

    def _on_workers(self, values: NDArray[Any]) -> Any:
        """Return values of all rows as a Dask array with their chunks, sent once."""
        known = self._beside.get(id(values))
        if known is None or known[0] is not values:
            with errors_in_words("sending labels and weights"):
                chunks = da.from_array(values, chunks=(self.row_chunks,)).persist()
            self._beside[id(values)] = known = values, chunks
        return known[1]

    def _check_workers(self) -> None:
        client = current_client()
        if client is not None:
            with errors_in_words("asking workers for their version"):
                self._known_workers = check_workers(client, self._known_workers)


def add_task(layer: dict[Any, Any], key: Any, function: Callable[..., Any], *args: Any) -> Any:
    """Add a task to a graph; return a reference to its result, for others."""
    layer[key] = Task(key, function, *args)
    return TaskRef(key)


def send(work: Any, key: str, layer: dict[Any, Any]) -> tuple[Any, int]:
    """Add a task to a graph that gives work to others, once per worker; return it and its size.

    The task holds the work as bytes, so that it can be done again where a worker is lost.
    """
    if current_client() is None:
        return add_task(layer, key, partial(_itself, tasks.Sized(work, 0))), 0
    packed = cloudpickle.dumps(work)
    return add_task(layer, key, tasks.unpack, packed), len(packed)


def compute(collection: Any, doing: str) -> Any:
    """Compute a Dask collection: by the client that there is, else by threads of this process."""
    if current_client() is None:
        options: dict[str, Any] = {"num_workers": n_threads()}
    else:  # a dictionary may be large
        options = {"distributed.admin.large-graph-warning-threshold": "1 TiB"}
    with dask.config.set(options), errors_in_words(doing):
        return dask.compute(collection, traverse=False)[0]


def is_dask(value: Any) -> bool:
    """Whether a value is a Dask collection."""
    return hasattr(value, "__dask_graph__")


def _itself(value: Any) -> Any:
    return value


def _together(*values: Any) -> list[Any]:
    return list(values)
