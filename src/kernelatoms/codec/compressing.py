"""``compress``: a file of numbers to a small file; ``fit_codec``: a model to a file of its own.

``.csv``, ``.parquet``, ``.npy`` and ``.npz`` files become ``.kac`` files, within an error bound.
``decompress`` restores them: approximate numbers come back within the bound, everything else as it
was.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms import __version__
from kernelatoms.codec import arguments
from kernelatoms.codec.blocks import Compressed, rows_per_block
from kernelatoms.codec.bounds import ErrorStats
from kernelatoms.codec.container import Header, Tail, Writer
from kernelatoms.codec.file_writer import (
    CompressionSummary,
    Models,
    best_trials,
    bound_for_ratio,
    check_model_fits,
    find_models,
    summary_of,
    write_compressed,
)
from kernelatoms.codec.models.codec_model import CodecModel, model_bytes
from kernelatoms.codec.models.model_selection import with_history
from kernelatoms.codec.packed.kinds import open_source
from kernelatoms.codec.packed.sources import OnStep, Source, quiet
from kernelatoms.estimators.validation import check_count, check_real
from kernelatoms.files.locking import one_writer
from kernelatoms.files.writing import check_target, refuse_to_overwrite, replacing
from kernelatoms.similarity.base import check_flag


def compress(
    source: Any,
    destination: Any = None,
    *,
    max_error: float | None = 0.01,
    max_absolute: float | None = None,
    ratio: float | None = None,
    model: Any = "auto",
    approximate: Sequence[str] = (),
    exact: Sequence[str] = (),
    symmetric: bool | None = None,
    block_rows: int | None = None,
    store_model: bool = True,
    append: bool = False,
    max_size: int | None = None,
    on_step: OnStep | None = None,
) -> CompressionSummary:
    """Compress a file; numbers come back within a bound, everything else as it was.

    Parameters
    ----------
    source : str or path
        A ``.csv`` (or ``.tsv``), ``.parquet``, ``.npy`` or ``.npz`` file. Columns of floats are
        approximate; text, dates, integers, missing values, names and types are exact. In NumPy
        files, float arrays with one to three axes are approximate; rows lie along the last axis.
    destination : str or path, optional
        The compressed file, ending with ``.kac``; an existing file is replaced. By default the
        source's name followed by ``.kac``, which must not exist.
    max_error : float or None, default=0.01
        The largest relative error per row, |row - decoded| <= max_error * |row|, over its
        approximate numbers. None for no such bound.
    max_absolute : float or None, default=None
        The largest error per value. Without both bounds, numbers come back exactly.
    ratio : float or None, default=None
        How many times smaller the file should be, with the smallest relative error that does it.
    model : str, path or CodecModel, default="auto"
        "auto" for the model that takes the fewest bytes, the name of a model, or a ``.kam`` file
        written by ``kernelatoms codec fit``.
    approximate : sequence of str, default=()
        Columns of integers to approximate too; they come back as integers.
    exact : sequence of str, default=()
        Columns of floats, or arrays of an ``.npz`` file, to keep exactly.
    symmetric : bool or None, default=None
        Whether matrices (slices of a 3-d array) are symmetric; None to check.
    block_rows : int or None, default=None
        Rows (slices of a 3-d array) per block: fewer make reading single rows faster and the file
        larger. By default as many as hold about four million values.
    store_model : bool, default=True
        Whether to store the model in the file. Otherwise the file stores the digest of a ``.kam``
        file, which ``decompress`` then needs.
    append : bool, default=False
        Add rows to a compressed file with the same columns; its bound and its model stay.
    max_size : int or None, default=None
        The bytes that an ``.npz`` or ``.parquet`` source may become; by default 4 GiB, or 256 times
        its size if that is more.
    on_step : callable or None, default=None
        Called as ``on_step(done, total, what)``; a total of 0 means unknown.

    Returns
    -------
    CompressionSummary
        Sizes, errors, the model and the models compared.

    Raises
    ------
    BlockingIOError
        If another process or thread keeps writing the destination for some seconds.

    Examples
    --------
    >>> import numpy as np, tempfile, os
    >>> from kernelatoms import compress, decompress
    >>> X = np.cumsum(np.random.default_rng(0).normal(size=(200, 5)), axis=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "rows.npy")
    ...     np.save(path, X)
    ...     summary = compress(path, max_error=0.01)
    ...     decoded = np.load(decompress(summary.path, os.path.join(folder, "back.npy")))
    >>> errors = np.linalg.norm(X - decoded, axis=1) / np.linalg.norm(X, axis=1)
    >>> bool(errors.max() <= 0.01)
    True
    """
    on_step = on_step or quiet
    bound = arguments.checked_bound(max_error, max_absolute)
    arguments.check_max_size(max_size)
    given = arguments.checked_model(model, store_model, max_size)
    names = arguments.checked_names(approximate=approximate, exact=exact)
    if symmetric is not None:
        check_flag("symmetric", symmetric)
    if block_rows is not None:
        check_count("block_rows", block_rows)
    check_flag("append", append)
    if ratio is not None:
        check_real("ratio", ratio, low=1, low_open=True)
        if max_absolute is not None:
            raise ValueError("give ratio or max_absolute, not both.")
    path = arguments.checked_source(source)
    target = _target(path, destination, append)
    with (
        one_writer(target, lambda: on_step(0, 0, "waiting for another writer")) as check,
        _extended(target, append, given, max_size) as old,
        arguments.naming(path),
    ):
        if old is not None:
            _refuse_to_change(ratio, names)
            opened = open_source(path, like=old, max_size=max_size, on_step=on_step)
            bound, models = old.header.bound, _models_of(old, opened)
        else:
            if destination is None and not append:
                _refuse_to_replace(target)  # another process may have written it meanwhile
            opened = open_source(
                path, *names, all_exact=bound.exact and ratio is None, max_size=max_size,
                on_step=on_step,
            )  # fmt: skip
            if ratio is None:
                models = find_models(opened, bound, given, symmetric, store_model, on_step)
            else:
                bound, models = bound_for_ratio(
                    opened, ratio, given, symmetric, store_model, block_rows, on_step
                )
        with replacing(target) as file:
            n_bytes, stats = write_compressed(
                opened, file, bound, models, block_rows=block_rows, old=old, on_step=on_step
            )
            if append:
                check()
    return summary_of(opened, target, n_bytes, bound, models, stats, old)


def compressed_name(path: Path) -> Path:
    """Return the default name of the compressed file."""
    return path.with_name(path.name + arguments.COMPRESSED)


def _target(path: Path, destination: Any, append: bool) -> Path:
    target = compressed_name(path) if destination is None else Path(destination)
    if destination is None and not append:
        _refuse_to_replace(target)
    refuse_to_overwrite(target, path)
    return check_target(target)


def _refuse_to_replace(target: Path) -> None:
    if target.exists():
        raise FileExistsError(f"{target} is there already; name another destination.")


def _refuse_to_change(ratio: float | None, names: list[list[str]]) -> None:
    if any(names):
        raise ValueError(
            "append: columns are kept as in the file that is there; leave approximate and exact "
            "out."
        )
    if ratio is not None:
        raise ValueError("append: the bound of the file that is there stays; leave ratio out.")


@contextmanager
def _extended(
    target: Path, append: bool, given: str | CodecModel, max_size: int | None
) -> Iterator[Compressed | None]:
    """Open the file that rows are added to, if there is one."""
    if not append or not target.exists():
        yield None
        return
    model = given if isinstance(given, CodecModel) else None
    with arguments.open_compressed(target, model, max_size) as opened:
        if len(opened.header.parts) != 1 or opened.header.kind == "array":
            raise ValueError(f"append: {target} does not hold one table or one array.")
        # A file without rows has no model yet.
        yield opened if opened.n_rows() else None


def _models_of(old: Compressed, source: Source) -> Models:
    """Return the model of a compressed file, for more rows."""
    plan, model = source.parts[0], old.model()
    if model is None:
        if plan.n_columns:
            raise ValueError(
                "append: the file that is there has no approximate numbers, perhaps because it has "
                "no rows; compress it anew."
            )
        return Models([], [-1], [])
    check_model_fits(model, plan.n_columns, plan.slice_rows, source.path)
    return Models([model], [0], [], bool(old.stored))


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
    bound = arguments.checked_bound(max_error, max_absolute)
    arguments.check_max_size(max_size)
    if not isinstance(arguments.checked_model(model), str):
        raise ValueError("model: name a model, or leave it to be chosen; a file is fitted already.")
    path, target = arguments.checked_source(source), check_target(destination)
    refuse_to_overwrite(target, path)
    with arguments.naming(path):
        names = arguments.checked_names(approximate=approximate, exact=exact)
        opened = open_source(path, *names, max_size=max_size, on_step=on_step)
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


def _last_rows(source: Source, part: int) -> NDArray[Any]:
    """Return the rows of the last blocks of a part, which a model continues from."""
    plan = source.parts[part]
    n_rows = rows_per_block(plan.n_rows, plan.row_values)
    matrices = (block.matrix for block in source.blocks(part, n_rows))
    last = deque((matrix for matrix in matrices if matrix is not None), maxlen=2)
    return np.concatenate(last) if last else np.empty((0, plan.n_columns))
