"""``compress``: a file of numbers to a small file, within an error bound.

``.csv``, ``.parquet``, ``.npy`` and ``.npz`` files become ``.kac`` files. ``decompress`` restores
them: approximate numbers come back within the bound, everything else as it was.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kernelatoms.codec.arguments import (
    COMPRESSED,
    check_max_size,
    checked_bound,
    checked_model,
    checked_names,
    checked_source,
    naming,
    open_compressed,
)
from kernelatoms.codec.bounds import SHARES, Bound, ErrorStats
from kernelatoms.codec.file_writer import (
    Models,
    bound_for_ratio,
    check_model_fits,
    find_models,
    lost_columns,
    original_size,
    write_compressed,
)
from kernelatoms.codec.models.codec_model import CodecModel
from kernelatoms.codec.packed.kinds import open_source
from kernelatoms.codec.packed.sources import OnStep, Source, quiet
from kernelatoms.codec.reader import Compressed
from kernelatoms.estimators.validation import check_count, check_real
from kernelatoms.files.locking import one_writer
from kernelatoms.files.writing import check_target, refuse_to_overwrite, replacing
from kernelatoms.similarity.base import check_flag


@dataclass(frozen=True)
class CompressionSummary:
    """The result of ``compress``.

    Parameters
    ----------
    path : Path
        The compressed file.
    n_bytes : int
        Its size in bytes.
    original_bytes : int
        The size of the source.
    ratio : float
        How many times smaller the compressed file is.
    n_rows : int
        Rows in the file (slices of a 3-d array), over all arrays.
    max_error, max_absolute : float or None
        The relative and the absolute bound; without both, numbers are exact.
    model : str
        The name of the model, or names separated by commas.
    trials : tuple of (str, int, str)
        The models that were compared: name, bytes, settings.
    largest_row_error : float
        The largest error of a row, relative to its norm.
    largest_error : float
        The largest error of a value.
    row_errors : dict of float to float
        Quantiles of the rows' relative errors: 0.5, 0.9, 0.99 and 1.
    approximate, exact : tuple of str
        The approximate and the exact columns of a table.
    notes : tuple of str
        Further remarks for the user.

    Examples
    --------
    >>> import numpy as np, tempfile, os, kernelatoms
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "rows.npy")
    ...     np.save(path, np.random.default_rng(0).normal(size=(50, 4)))
    ...     summary = kernelatoms.compress(path, max_error=0.05)
    >>> summary.largest_row_error <= 0.05
    True
    """

    path: Path
    n_bytes: int
    original_bytes: int
    ratio: float
    n_rows: int
    max_error: float | None
    max_absolute: float | None
    model: str
    trials: tuple[tuple[str, int, str], ...] = ()
    largest_row_error: float = 0.0
    largest_error: float = 0.0
    row_errors: dict[float, float] = field(default_factory=dict)
    approximate: tuple[str, ...] = ()
    exact: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


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
        How many times smaller than the source the file should be: the smallest relative error that
        achieves this is used.
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
        The bytes that an ``.npz`` or ``.parquet`` source may become, in memory or on disk. By
        default 4 GiB, or 256 times the size of the file if that is larger.
    on_step : callable or None, default=None
        Called as ``on_step(done, total, what)`` during the work; a total of 0 means unknown.

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
    ...     back = decompress(summary.path, os.path.join(folder, "back.npy"))
    ...     decoded = np.load(back)
    >>> errors = np.linalg.norm(X - decoded, axis=1) / np.linalg.norm(X, axis=1)
    >>> bool(errors.max() <= 0.01)
    True
    """
    on_step = on_step or quiet
    bound = checked_bound(max_error, max_absolute)
    check_max_size(max_size)
    given = checked_model(model, store_model, max_size)
    names = [checked_names("approximate", approximate), checked_names("exact", exact)]
    if symmetric is not None:
        check_flag("symmetric", symmetric)
    if block_rows is not None:
        check_count("block_rows", block_rows)
    check_flag("append", append)
    if ratio is not None:
        check_real("ratio", ratio, low=1, low_open=True)
        if max_absolute is not None:
            raise ValueError("give ratio or max_absolute, not both.")
    path = checked_source(source)
    target = _target(path, destination, append)
    with (
        one_writer(target, lambda: on_step(0, 0, "waiting for another writer")) as check,
        _extended(target, append, given, max_size) as old,
        naming(path),
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
    return path.with_name(path.name + COMPRESSED)


def _target(path: Path, destination: Any, append: bool) -> Path:
    if destination is None:
        target = compressed_name(path)
        if not append:
            _refuse_to_replace(target)
    else:
        target = Path(destination)
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
    with open_compressed(target, model, max_size) as opened:
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


def summary_of(
    source: Source, target: Path, n_bytes: int, bound: Bound, models: Models,
    stats: ErrorStats, old: Compressed | None,
) -> CompressionSummary:  # fmt: skip
    """Return the summary of a written file."""
    errors, original = stats.numbers(), original_size(source, old)
    n_rows = sum(plan.n_rows for plan in source.parts)
    return CompressionSummary(
        path=target, n_bytes=n_bytes, original_bytes=original, ratio=original / n_bytes,
        n_rows=n_rows + (0 if old is None else old.n_rows()),
        max_error=bound.relative, max_absolute=bound.absolute,
        model=", ".join(dict.fromkeys(model.predictor for model in models.models)) or "none",
        trials=tuple(models.trials),
        largest_row_error=errors[3] if errors else 0.0,
        largest_error=errors[4] if errors else 0.0,
        row_errors=dict(zip(SHARES, errors, strict=False)),
        approximate=tuple(source.columns.get("approximate", ())),
        exact=tuple(source.columns.get("exact", ())),
        notes=(*source.notes, *lost_columns(source, stats)),
    )  # fmt: skip
