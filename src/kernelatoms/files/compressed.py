"""``compress`` and ``decompress``: files with approximate numbers, small, and back.

``.csv``, ``.parquet``, ``.npy`` and ``.npz`` files become ``.kac`` files and come back as they
were, but for the numbers that may be approximate; of those every row is within a bound.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kernelatoms.codec.bounds import Bound
from kernelatoms.codec.choosing import NAMES, with_history
from kernelatoms.codec.errors import CodecError
from kernelatoms.codec.measuring import SHARES, Tally
from kernelatoms.codec.models import CodecModel
from kernelatoms.codec.opened import Compressed
from kernelatoms.estimators.validation import check_count, check_real
from kernelatoms.files.compressing import (
    Models,
    bound_for_ratio,
    check_model_fits,
    find_models,
    last_rows,
    lost_columns,
    read_model_file,
    write_compressed,
    write_model_file,
)
from kernelatoms.files.kinds import check_same_table, open_source, restore
from kernelatoms.files.locking import one_writer
from kernelatoms.files.sources import OnStep, Source, quiet
from kernelatoms.files.tables.table import TableError
from kernelatoms.files.writing import check_target, refuse_to_overwrite, replacing
from kernelatoms.limits import TooLargeError
from kernelatoms.similarity.base import check_flag

#: The ending of compressed files, and that of model files.
COMPRESSED, MODEL = ".kac", ".kam"


@dataclass(frozen=True)
class CompressionSummary:
    """What ``compress`` made of a file.

    Parameters
    ----------
    path : Path
        The compressed file.
    n_bytes : int
        Its size.
    original_bytes : int
        The size of what it was made of.
    ratio : float
        How many times smaller it is.
    n_rows : int
        Rows in it; of a 3-d array, slices; of several arrays, all of them.
    max_error, max_absolute : float or None
        The bound, relative and absolute; with neither, numbers are kept exactly.
    model : str
        The name of the model, or of the models.
    trials : tuple of (str, int, str)
        Models that were tried: name, bytes they took, and a note.
    largest_row_error : float
        The largest error of any row, relative to its norm.
    largest_error : float
        The largest error of any value.
    row_errors : dict of float to float
        The largest error of half, nine tenths, 99 hundredths and all of the rows.
    approximate, exact : tuple of str
        A table's columns by how they are kept.
    notes : tuple of str
        What else there is to know.

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
) -> CompressionSummary:
    """Compress a file; numbers come back within a bound, all else as it was.

    Parameters
    ----------
    source : str or path
        A ``.csv`` (or ``.tsv``), ``.parquet``, ``.npy`` or ``.npz`` file. Columns of floats are
        approximate; words, dates, whole numbers, missing values, names and types are kept. Of
        NumPy files, float arrays with one to three axes are approximate: rows lie along the last.
    destination : str or path, optional
        The compressed file, ending with ``.kac``; it is replaced if it is there. By default the
        source's name with ``.kac`` behind it, which must not be there.
    max_error : float or None, default=0.01
        The largest error of every row, |row - decoded| <= max_error * |row|, over its approximate
        numbers. None for none.
    max_absolute : float or None, default=None
        The largest error of every value. With neither bound, numbers come back exactly.
    ratio : float or None, default=None
        Ask for a file so many times smaller than the source, instead of for an error: the smallest
        relative error that does it is used.
    model : str, path or CodecModel, default="auto"
        "auto" for the model that takes the fewest bytes, the name of one, or a ``.kam`` file that
        ``kernelatoms codec fit`` wrote.
    approximate : sequence of str, default=()
        Columns of whole numbers that may be approximate too; they come back as whole numbers.
    exact : sequence of str, default=()
        Columns of floats, or arrays of an ``.npz`` file, that are kept exactly.
    symmetric : bool or None, default=None
        Whether matrices (the slices of a 3-d array) are symmetric; None to look.
    block_rows : int or None, default=None
        Rows that are compressed together, of a 3-d array slices: fewer make reading single rows
        quicker and the file larger. By default so many that they have about four million values.
    store_model : bool, default=True
        Whether the model is stored in the file. Without, the file holds the digest of a ``.kam``
        file, which ``decompress`` then needs.
    append : bool, default=False
        Add rows to a compressed file that has the same columns: its bound and its model stay.
    max_size : int or None, default=None
        The bytes that an ``.npz`` or ``.parquet`` source may become, in memory or on disk. By
        default 4 GiB, or 256 times the bytes of the file where that is more.

    Returns
    -------
    CompressionSummary
        Sizes, errors, the model and what was tried.

    Raises
    ------
    BlockingIOError
        If another process or thread is writing the destination, and still is some seconds later.

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
    return compress_file(
        source, destination, max_error=max_error, max_absolute=max_absolute, ratio=ratio,
        model=model, approximate=approximate, exact=exact, symmetric=symmetric,
        block_rows=block_rows, store_model=store_model, append=append, max_size=max_size,
    )  # fmt: skip


def compress_file(
    source: Any, destination: Any = None, *, max_error: float | None, max_absolute: float | None,
    ratio: float | None, model: Any, approximate: Sequence[str], exact: Sequence[str],
    symmetric: bool | None, block_rows: int | None, store_model: bool, append: bool,
    max_size: int | None = None, on_step: OnStep = quiet,
) -> CompressionSummary:  # fmt: skip
    """Compress a file as ``compress`` does; ``on_step`` is told how far it is."""
    bound = checked_bound(max_error, max_absolute, ratio)
    check_max_size(max_size)
    given = _checked_model(model, store_model, max_size)
    if symmetric is not None:
        check_flag("symmetric", symmetric)
    if block_rows is not None:
        check_count("block_rows", block_rows)
    names = [_names(name, value) for name, value in
             (("approximate", approximate), ("exact", exact))]  # fmt: skip
    check_flag("append", append)
    path = checked_source(source)
    target = _target(path, destination, bool(append))
    with (
        one_writer(target, lambda: on_step(0, 0, "waiting for another writer")) as check,
        _old(target, append, given, max_size) as old,
        in_words(path),
    ):
        if old is None:
            if destination is None and not append:
                _refuse_to_replace(target)  # another one has written it meanwhile
            kept = bound.exact and ratio is None
            opened = open_source(path, *names, all_exact=kept, max_size=max_size, on_step=on_step)
        else:
            if any(names):
                raise ValueError(
                    "append: columns are kept as in the file that is there; leave approximate and "
                    "exact out."
                )
            opened = open_source(path, like=old, max_size=max_size, on_step=on_step)
        bound, models = _bound_and_models(
            opened, old, bound, ratio, given, symmetric, bool(store_model), block_rows, on_step
        )
        with replacing(target) as file:
            n_bytes, tally = write_compressed(
                opened, file, bound, models, _version(), block_rows=block_rows, old=old,
                on_step=on_step,
            )  # fmt: skip
            if append:
                check()
    return _summary(opened, target, n_bytes, bound, models, tally, old)


def decompress(
    source: Any, destination: Any, *, rows: Any = None, model: Any = None,
    max_size: int | None = None,
) -> Path:  # fmt: skip
    """Write the file that was compressed, or some of its rows.

    Parameters
    ----------
    source : str or path
        A ``.kac`` file.
    destination : str or path
        The file to write, of the kind that was compressed; it is replaced if it is there.
    rows : (start, stop), slice or None, default=None
        Only these rows, of a 3-d array slices, counted from 0; only what holds them is read. Of
        several arrays there are no common rows.
    model : str, path, CodecModel or None, default=None
        The ``.kam`` file that the file refers to, if it does not hold its model.
    max_size : int or None, default=None
        The bytes that the rows may become, in memory or on disk. By default 4 GiB, or 256 times
        the bytes of the file where that is more.

    Returns
    -------
    Path
        The file that was written.

    Examples
    --------
    >>> import numpy as np, tempfile, os
    >>> from kernelatoms import compress, decompress
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "rows.npy")
    ...     np.save(path, np.ones((100, 3)))
    ...     summary = compress(path)
    ...     some = decompress(summary.path, os.path.join(folder, "some.npy"), rows=(10, 12))
    ...     np.load(some).shape
    (2, 3)
    """
    return decompress_file(source, destination, rows=rows, model=model, max_size=max_size)


def decompress_file(
    source: Any, destination: Any, *, rows: Any = None, model: Any = None,
    max_size: int | None = None, on_step: OnStep = quiet,
) -> Path:  # fmt: skip
    """Decompress a file as ``decompress`` does; ``on_step`` is told how far it is."""
    check_max_size(max_size)
    path, target = checked_source(source), check_target(destination)
    refuse_to_overwrite(target, path)
    given = None if model is None else _checked_model(model, True, max_size)
    if isinstance(given, str):
        raise ValueError(f"model must be a {MODEL} file, got {given!r}.")
    with opened_file(path, given, max_size) as opened:
        _check_ending(opened, path, target)
        wanted = _checked_rows(opened, path, rows)
        with replacing(target) as file:
            restore(opened, file, target.parent, wanted, on_step)
    return target


def fit_codec(
    source: Any, destination: Any, *, max_error: float | None = 0.01,
    max_absolute: float | None = None, model: str = "auto", approximate: Sequence[str] = (),
    exact: Sequence[str] = (), symmetric: bool | None = None, max_size: int | None = None,
    on_step: OnStep = quiet,
) -> CompressionSummary:  # fmt: skip
    """Choose and learn a model on a file, and write it as a ``.kam`` file.

    The model remembers the last rows of the file: files that refer to it (``store_model=False``)
    go on from there, while those that store it leave them out.

    Parameters
    ----------
    source : str or path
        As for ``compress``; with one table or one array of approximate numbers.
    destination : str or path
        The model file.
    max_error, max_absolute, model, approximate, exact, symmetric, max_size
        As for ``compress``.
    on_step : callable
        Told how far it is.
    """
    bound = checked_bound(max_error, max_absolute, None)
    check_max_size(max_size)
    if not isinstance(_checked_model(model, True), str):
        raise ValueError("model: name a model, or leave it to be chosen; a file is fitted already.")
    path, target = checked_source(source), check_target(destination)
    refuse_to_overwrite(target, path)
    with in_words(path):
        opened = open_source(
            path, _names("approximate", approximate), _names("exact", exact), max_size=max_size,
            on_step=on_step,
        )  # fmt: skip
        n_matrices = sum(bool(plan.n_columns) for plan in opened.parts)
        if n_matrices != 1:
            raise ValueError(
                f"{path} has {n_matrices} tables or arrays of approximate numbers, and a model is "
                "of one."
            )
        models = find_models(opened, bound, model, symmetric, True, on_step)
        (number,) = (i for i, plan in enumerate(opened.parts) if plan.n_columns)
        learned = with_history(models.models[0], last_rows(opened, number))
    with replacing(target) as file:
        n_bytes = write_model_file(file, learned, bound, models.trials, _version())
    return _summary(opened, target, n_bytes, bound, models, Tally(), None)


def check_max_size(max_size: Any) -> None:
    """Refuse what is no number of bytes."""
    if max_size is not None:
        check_count("max_size", max_size)


def checked_bound(max_error: Any, max_absolute: Any, ratio: Any) -> Bound:
    """Return the bound that the arguments ask for."""
    if max_error is not None:
        max_error = check_real("max_error", max_error, low=0, high=1, low_open=True)
    if max_absolute is not None:
        max_absolute = check_real("max_absolute", max_absolute, low=0, low_open=True)
    if ratio is not None:
        check_real("ratio", ratio, low=1, low_open=True)
        if max_absolute is not None:
            raise ValueError("give ratio or max_absolute, not both.")
    return Bound(max_error, max_absolute)


def usual_name(path: Path) -> Path:
    """Return the name that a file has when it is compressed."""
    return path.with_name(path.name + COMPRESSED)


def restored_name(source: Any, max_size: int | None = None) -> Path:
    """Return the name that a compressed file has when it is restored."""
    path = checked_source(source)
    with opened_file(path, max_size=max_size) as opened:
        endings = _endings(opened.header.kind)
    bare = path.with_suffix("") if path.suffix.lower() == COMPRESSED else path
    if bare.suffix.lower() in endings and bare != path:
        return bare
    return bare.with_name(bare.name + endings[0])


def checked_source(source: Any) -> Path:
    """Return the path of a file that is there."""
    path = Path(source)
    if path.is_dir():
        raise TableError(f"{path} is a folder; name a file in it.")
    if not path.exists():
        raise TableError(f"there is no file {path}.")
    return path


@contextmanager
def opened_file(
    path: Path, model: CodecModel | None = None, max_size: int | None = None
) -> Iterator[Compressed]:
    """Open a compressed file; whatever is wrong with it is said with its name.

    It is opened once: a file that takes its place meanwhile is another one.
    """
    with path.open("rb") as file:
        try:
            yield Compressed(file, model, max_size)
        except CodecError as error:
            raise type(error)(f"{path}: {error}") from error


def _checked_model(model: Any, store_model: Any, max_size: int | None = None) -> str | CodecModel:
    """Return the name of a model, or the model of a file."""
    check_flag("store_model", store_model)
    if isinstance(model, CodecModel):
        return model
    if not isinstance(model, str | os.PathLike):
        raise TypeError(f"model must be a name or a {MODEL} file, got {model!r}.")
    if str(model) in ("auto", *NAMES):
        if not store_model:
            raise ValueError(
                f"store_model=False needs model to be a {MODEL} file, which decompress can be "
                "given: write one with kernelatoms codec fit."
            )
        return str(model)
    path = Path(model)
    if not path.is_file():
        words = ", ".join(repr(name) for name in ("auto", *NAMES))
        raise ValueError(f"model must be one of {words} or a {MODEL} file, got {str(model)!r}.")
    return read_model(path, max_size)


def read_model(path: Path, max_size: int | None = None) -> CodecModel:
    """Return the model of a file; whatever is wrong with it is said with its name."""
    try:
        return read_model_file(path, max_size)
    except CodecError as error:
        raise type(error)(f"{path}: {error}") from error


def _names(argument: str, value: Any) -> list[str]:
    names = [value] if isinstance(value, str) else list(value)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"{argument} must be names of columns, got {name!r}.")
    return names


def _target(path: Path, destination: Any, append: bool) -> Path:
    if destination is None:
        target = usual_name(path)
        if not append:
            _refuse_to_replace(target)
    else:
        target = Path(destination)
    refuse_to_overwrite(target, path)
    return check_target(target)


def _refuse_to_replace(target: Path) -> None:
    if target.exists():
        raise FileExistsError(f"{target} is there already; name another destination.")


@contextmanager
def _old(
    target: Path, append: bool, given: str | CodecModel, max_size: int | None
) -> Iterator[Compressed | None]:
    """Open the file that rows are added to, if there is one."""
    if not append or not target.exists():
        yield None
        return
    model = given if isinstance(given, CodecModel) else None
    with opened_file(target, model, max_size) as opened:
        if len(opened.header.parts) != 1 or opened.header.kind == "array":
            raise ValueError(f"append: {target} does not hold one table or one array.")
        # A file without rows has no model yet.
        yield opened if opened.n_rows() else None


def _bound_and_models(
    source: Source, old: Compressed | None, bound: Bound, ratio: float | None,
    given: str | CodecModel, symmetric: bool | None, stored: bool, block_rows: int | None,
    on_step: OnStep,
) -> tuple[Bound, Models]:  # fmt: skip
    if old is not None:
        if ratio is not None:
            raise ValueError("append: the bound of the file that is there stays; leave ratio out.")
        check_same_table(source, old)
        model = old.model()
        if model is None:
            return old.header.bound, Models([], [-1], [])
        plan = source.parts[0]
        check_model_fits(model, plan.n_columns, plan.slice_rows, source.path)
        return old.header.bound, Models([model], [0], [], bool(old.stored))

    def choose(bound: Bound) -> Models:
        return find_models(source, bound, given, symmetric, stored, on_step)

    if ratio is not None:
        return bound_for_ratio(source, ratio, choose, _version(), on_step, block_rows)
    return bound, choose(bound)


def _summary(
    source: Source, target: Path, n_bytes: int, bound: Bound, models: Models,
    tally: Tally, old: Compressed | None,
) -> CompressionSummary:  # fmt: skip
    errors = tally.numbers()
    original = source.path.stat().st_size + (0 if old is None else old.header.size)
    n_rows = sum(plan.n_rows for plan in source.parts)
    return CompressionSummary(
        path=target, n_bytes=n_bytes, original_bytes=original, ratio=original / n_bytes,
        n_rows=n_rows + (0 if old is None else old.n_rows()),
        max_error=bound.relative, max_absolute=bound.absolute,
        model=", ".join(dict.fromkeys(model.predictor for model in models.models)) or "none",
        trials=tuple((trial.name, trial.n_bytes, trial.note) for trial in models.trials),
        largest_row_error=errors[3] if errors else 0.0,
        largest_error=errors[4] if errors else 0.0,
        row_errors=dict(zip(SHARES, errors, strict=False)),
        approximate=tuple(source.columns.get("approximate", ())),
        exact=tuple(source.columns.get("exact", ())),
        notes=(*source.notes, *lost_columns(source, tally)),
    )  # fmt: skip


def _endings(kind: str) -> tuple[str, ...]:
    return {"csv": (".csv", ".tsv", ".txt"), "array": (".npy",)}.get(kind, (f".{kind}",))


def _check_ending(opened: Compressed, path: Path, target: Path) -> None:
    kind = opened.header.kind
    if kind == "model":
        raise ValueError(f"{path} holds a model, and no rows.")
    endings = _endings(kind)
    if target.suffix.lower() not in endings:
        raise ValueError(
            f"{path} holds a {endings[0]} file; the destination must end so, got {target.name!r}."
        )


def _checked_rows(opened: Compressed, path: Path, rows: Any) -> tuple[int, int] | None:
    if rows is None:
        return None
    if len(opened.header.parts) != 1:
        raise ValueError(f"rows: {path} holds several arrays, which have no common rows.")
    n_rows = opened.n_rows()
    if isinstance(rows, slice):
        if rows.step not in (None, 1):
            raise ValueError(f"rows must follow each other, got a step of {rows.step}.")
        rows = (0 if rows.start is None else rows.start, n_rows if rows.stop is None else rows.stop)
    try:
        start, stop = rows
    except (TypeError, ValueError):
        raise TypeError(f"rows must be (start, stop), got {rows!r}.") from None
    start, stop = check_count("rows", start, 0), check_count("rows", stop, 0)
    if not start < stop <= n_rows:
        raise ValueError(f"rows must lie within 0 and {n_rows:,}, got {start:,} to {stop:,}.")
    return start, stop


@contextmanager
def in_words(path: Path) -> Iterator[None]:
    """Say with its name that a file cannot be read."""
    from kernelatoms.files.tables.arrays import UnreadableError

    try:
        yield
    except UnreadableError as error:
        raise TableError(
            f"{path} cannot be read as a NumPy file (damaged, cut short, of another kind): {error}."
        ) from error
    except CodecError:  # of another file
        raise
    except TooLargeError as error:
        raise TooLargeError(f"{path}: {error}.") from error


def _version() -> str:
    from kernelatoms import __version__

    return __version__
