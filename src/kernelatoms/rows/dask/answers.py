"""Lazy Dask arrays of answers for rows: codes, predictions, residuals."""

from collections.abc import Callable, Sequence
from typing import Any
from uuid import uuid4

import dask.array as da
import numpy as np
from dask._task_spec import TaskRef
from dask.highlevelgraph import HighLevelGraph

from kernelatoms.rows.dask import tasks
from kernelatoms.rows.dask.source import DaskRows, add_task, send


def lazy_answers(
    function: Callable[..., Any], sources: Sequence[DaskRows], none: Any, *, task_name: str
) -> Any:
    """Return ``function(rows, ...)`` as a lazy Dask array with the chunks of the rows.

    Parameters
    ----------
    function : callable
        Treats every row by itself: arrays, CSR arrays or one value per row.
    sources : sequence of DaskRows
        Rows, and rows beside them with the same chunks.
    none : array or CSR array
        What it returns for no rows: shape and type of the answer.
    task_name : str
        What Dask's dashboard calls the tasks.

    Returns
    -------
    dask.array.Array
        The answers, computed when they are asked for.
    """
    first, token = sources[0], uuid4().hex
    arrays, parts = zip(*(source.array_and_chunks() for source in sources), strict=True)
    for source in sources[1:]:
        if source.row_chunks != first.row_chunks:
            raise ValueError(
                "X and codes are chunked differently: codes.rechunk({0: X.chunks[0]}) makes them "
                "alike."
            )
    block_rows = min(source.default_block_rows for source in sources)
    name, layer = f"{task_name.replace('_', '-')}-{token}", dict[Any, Any]()
    sent, _ = send(function, f"send-model-{token}", layer)
    sizes: tuple[Any, ...] = (first.row_chunks,)
    if none.ndim == 2:
        sizes = (first.row_chunks, (none.shape[1],))
    for some in zip(*parts, strict=True):
        chunks, keys = [chunk for chunk, _ in some], [TaskRef(key) for _, key in some]
        place = (name, chunks[0].number, *(0 for _ in sizes[1:]))
        add_task(layer, place, tasks.answer_chunk, sent, none, block_rows, chunks, *keys)
    graph = HighLevelGraph.from_collections(name, layer, dependencies=arrays)
    meta = none if tasks.is_csr(none) else np.empty((0,) * none.ndim, none.dtype)
    return da.Array(graph, name, chunks=sizes, meta=meta, dtype=none.dtype)
