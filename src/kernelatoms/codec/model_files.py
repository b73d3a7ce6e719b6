"""``fit_codec``: a model learned on history and stored in a file of its own."""

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms import __version__
from kernelatoms.codec.arguments import (
    check_max_size,
    checked_bound,
    checked_model,
    checked_names,
    checked_source,
    naming,
)
from kernelatoms.codec.blocks import rows_per_block
from kernelatoms.codec.bounds import ErrorStats
from kernelatoms.codec.compressing import CompressionSummary, summary_of
from kernelatoms.codec.container.format import Tail, Writer
from kernelatoms.codec.container.header import Header
from kernelatoms.codec.file_writer import best_trials, find_models
from kernelatoms.codec.models.codec_model import model_bytes
from kernelatoms.codec.models.model_selection import with_history
from kernelatoms.codec.packed.kinds import open_source
from kernelatoms.codec.packed.sources import OnStep, Source, quiet
from kernelatoms.files.writing import check_target, refuse_to_overwrite, replacing

Array = NDArray[Any]


def fit_codec(
    source: Any, destination: Any, *, max_error: float | None = 0.01,
    max_absolute: float | None = None, model: str = "auto", approximate: Sequence[str] = (),
    exact: Sequence[str] = (), symmetric: bool | None = None, max_size: int | None = None,
    on_step: OnStep | None = None,
) -> CompressionSummary:  # fmt: skip
    """Choose and learn a model on a file, and write it as a ``.kam`` file.

    The model keeps the last rows of the file: files that refer to it (``store_model=False``)
    continue from them; files that store the model leave them out.

    Parameters
    ----------
    source : str or path
        A file as for ``compress``, with one table or one array of approximate numbers.
    destination : str or path
        The ``.kam`` file to write.
    max_error : float or None, default=0.01
        The largest relative error per row, as for ``compress``.
    max_absolute : float or None, default=None
        The largest error per value.
    model : str, default="auto"
        The name of a model; "auto" for the one that takes the fewest bytes.
    approximate, exact : sequence of str, default=()
        Columns of integers to approximate too; columns of floats or arrays to keep exactly.
    symmetric : bool or None, default=None
        Whether matrices are symmetric; None to check.
    max_size : int or None, default=None
        The bytes that the source may become.
    on_step : callable or None, default=None
        Called as ``on_step(done, total, what)`` during the work.

    Returns
    -------
    CompressionSummary
        The model, the models compared, and the size of the file.

    Examples
    --------
    >>> import numpy as np, tempfile, os
    >>> from kernelatoms.codec import fit_codec
    >>> X = np.cumsum(np.random.default_rng(0).normal(size=(200, 5)), axis=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "rows.npy")
    ...     np.save(path, X)
    ...     summary = fit_codec(path, os.path.join(folder, "rows.kam"), model="lags")
    >>> summary.model
    'lags'
    """
    on_step = on_step or quiet
    bound = checked_bound(max_error, max_absolute)
    check_max_size(max_size)
    if not isinstance(checked_model(model), str):
        raise ValueError("model: name a model, or leave it to be chosen; a file is fitted already.")
    path, target = checked_source(source), check_target(destination)
    refuse_to_overwrite(target, path)
    with naming(path):
        opened = open_source(
            path, checked_names("approximate", approximate), checked_names("exact", exact),
            max_size=max_size, on_step=on_step,
        )  # fmt: skip
        numbers = [i for i, plan in enumerate(opened.parts) if plan.n_columns]
        if len(numbers) != 1:
            raise ValueError(
                f"{path} has {len(numbers)} tables or arrays of approximate numbers, and a model "
                "is of one."
            )
        models = find_models(opened, bound, model, symmetric, True, on_step)
        learned = with_history(models.models[0], _last_rows(opened, numbers[0]))
    header = Header("model", __version__, bound, trials=best_trials(models.trials))
    with replacing(target) as file:
        n_bytes = Writer(file).finish(Tail(header.to_bytes(), (model_bytes(learned),)))
    return summary_of(opened, target, n_bytes, bound, models, ErrorStats(), None)


def _last_rows(source: Source, part: int) -> Array:
    """Return the rows of the last blocks of a part, which a model continues from."""
    plan = source.parts[part]
    n_rows = rows_per_block(plan.n_rows, plan.row_values)
    last: deque[Array] = deque(maxlen=2)
    for block in source.blocks(part, n_rows):
        if block.matrix is not None:
            last.append(block.matrix)
    return np.concatenate(last) if last else np.empty((0, plan.n_columns))
