"""``decompress``: the file that was compressed, or some of its rows."""

from pathlib import Path
from typing import Any

from kernelatoms.codec import arguments
from kernelatoms.codec.blocks import Compressed
from kernelatoms.codec.packed.kinds import restore
from kernelatoms.codec.packed.sources import OnStep, quiet
from kernelatoms.estimators.validation import check_count
from kernelatoms.files.writing import check_target, refuse_to_overwrite, replacing


def decompress(
    source: Any, destination: Any, *, rows: Any = None, model: Any = None,
    max_size: int | None = None, on_step: OnStep | None = None,
) -> Path:  # fmt: skip
    """Write the file that was compressed, or some of its rows.

    Parameters
    ----------
    source : str or path
        A ``.kac`` file.
    destination : str or path
        The file to write, of the kind that was compressed; an existing file is replaced.
    rows : (start, stop), slice or None, default=None
        Restore only these rows (slices of a 3-d array), counted from 0; only their blocks are read.
        Not possible for several arrays.
    model : str, path, CodecModel or None, default=None
        The ``.kam`` file that the file refers to, if it does not store its model.
    max_size : int or None, default=None
        The bytes that the rows may become; by default 4 GiB, or 256 times the file if that is more.
    on_step : callable or None, default=None
        Called as ``on_step(done, total, what)``; a total of 0 means unknown.

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
    arguments.check_max_size(max_size)
    path, target = arguments.checked_source(source), check_target(destination)
    refuse_to_overwrite(target, path)
    given = arguments.checked_model_file(model, max_size)
    with arguments.open_compressed(path, given, max_size) as opened:
        if opened.header.kind == "model":
            raise ValueError(f"{path} holds a model, and no rows.")
        suffixes = _suffixes(opened.header.kind)
        if target.suffix.lower() not in suffixes:
            raise ValueError(
                f"{path} holds a {suffixes[0]} file; the destination must end so, got "
                f"{target.name!r}."
            )
        wanted = _checked_rows(opened, path, rows)
        with replacing(target) as file:
            restore(opened, file, target.parent, wanted, on_step or quiet)
    return target


def restored_name(source: Any, max_size: int | None = None) -> Path:
    """Return the default name of the restored file."""
    path = arguments.checked_source(source)
    with arguments.open_compressed(path, max_size=max_size) as opened:
        suffixes = _suffixes(opened.header.kind)
    bare = path.with_suffix("") if path.suffix.lower() == arguments.COMPRESSED else path
    if bare.suffix.lower() in suffixes and bare != path:
        return bare
    return bare.with_name(bare.name + suffixes[0])


def _suffixes(kind: str) -> tuple[str, ...]:
    return {"csv": (".csv", ".tsv", ".txt"), "array": (".npy",)}.get(kind, (f".{kind}",))


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
