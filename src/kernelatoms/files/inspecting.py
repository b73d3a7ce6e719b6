"""``inspect_compressed``: what a compressed file holds, and how far it is from the original."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelatoms.codec.blocks import rows_a_block
from kernelatoms.codec.format import section_sizes
from kernelatoms.codec.measuring import SHARES, Tally, row_errors
from kernelatoms.codec.models import CodecModel
from kernelatoms.codec.opened import Compressed
from kernelatoms.files.compressed import (
    check_max_size,
    checked_source,
    in_words,
    opened_file,
    read_model,
)
from kernelatoms.files.kinds import column_names, decoded_matrices, open_source, shapes_of
from kernelatoms.files.sources import OnStep, Source, quiet

Array = NDArray[Any]


@dataclass(frozen=True)
class CompressedInfo:
    """What a compressed file says of itself, and what a look at the original adds.

    Parameters
    ----------
    path : Path
        The file.
    kind : str
        What was compressed: "csv", "parquet", "npy", "npz", "array"; "model" for a model file.
    n_bytes, original_bytes : int
        Its size, and that of the original; 0 if that is not recorded.
    ratio : float
        How many times smaller it is; 0 if that is not known.
    version : str
        The version of the library that wrote it.
    max_error, max_absolute : float or None
        The bound, relative and absolute.
    shapes : dict of str to str
        Its arrays, or its table, in words.
    sections : dict of str to int
        Bytes by kind of section; together they are the file.
    n_blocks : int
        Blocks of rows.
    models : dict of str to str
        Models by their digests.
    stored : bool
        Whether the file holds them.
    measured : bool
        Whether errors were measured on the original.
    trials : tuple of (str, int)
        Models that were tried when it was written, with the bytes that they took.
    row_errors : dict of float to float
        The largest error, relative to a row's norm, of half, nine tenths, 99 hundredths and all of
        the rows; measured on the original if that was given, else as the encoder recorded it.
    largest_error : float
        The largest error of any value.
    rows_beyond : int
        Rows that are not within the bound, of those measured.

    Examples
    --------
    >>> import numpy as np, tempfile, os
    >>> from kernelatoms import compress, inspect_compressed
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "rows.npy")
    ...     np.save(path, np.ones((100, 3)))
    ...     info = inspect_compressed(compress(path).path, path)
    >>> info.rows_beyond, info.kind, info.shapes
    (0, 'npy', {'': '100 rows of 3 columns, float64'})
    """

    path: Path
    kind: str
    n_bytes: int
    original_bytes: int
    ratio: float
    version: str
    max_error: float | None
    max_absolute: float | None
    shapes: dict[str, str]
    sections: dict[str, int]
    n_blocks: int
    models: dict[str, str]
    stored: bool
    measured: bool
    trials: tuple[tuple[str, int], ...] = ()
    row_errors: dict[float, float] = field(default_factory=dict)
    largest_error: float = 0.0
    rows_beyond: int = 0


def inspect_compressed(
    source: Any, original: Any = None, *, max_size: int | None = None
) -> CompressedInfo:
    """Look at a compressed file: all its checksums are compared, and its errors if possible.

    Parameters
    ----------
    source : str or path
        A ``.kac`` or ``.kam`` file.
    original : str or path, optional
        The file that was compressed, to measure errors on.
    max_size : int or None, default=None
        The bytes that a file may become, in memory or on disk. By default 4 GiB, or 256 times
        the bytes of the file where that is more.

    Returns
    -------
    CompressedInfo
        Sizes, sections, models, errors.

    Examples
    --------
    >>> import numpy as np, tempfile, os
    >>> from kernelatoms import compress, inspect_compressed
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "rows.npy")
    ...     np.save(path, np.ones((100, 3)))
    ...     info = inspect_compressed(compress(path).path)
    >>> sum(info.sections.values()) == info.n_bytes
    True
    """
    return inspect_file(source, original, max_size=max_size)


def inspect_file(
    source: Any, original: Any = None, *, model: Any = None, max_size: int | None = None,
    on_step: OnStep = quiet,
) -> CompressedInfo:  # fmt: skip
    """Inspect a file as ``inspect_compressed`` does; ``on_step`` is told how far it is."""
    check_max_size(max_size)
    path = checked_source(source)
    given = None if model is None else read_model(Path(model), max_size)
    with opened_file(path, given, max_size) as opened:
        on_step(0, 0, "comparing checksums")
        opened.check()
        header = opened.header
        tally, beyond = None, 0
        if original is not None:
            tally, beyond = _measure(opened, checked_source(original), max_size, on_step)
        errors = tuple(header.errors) if tally is None else tally.numbers()
        models = {model.digest: model.predictor for model in opened.stored}
        return CompressedInfo(
            path=path, kind=header.kind, n_bytes=opened.reader.size, original_bytes=header.size,
            ratio=header.size / opened.reader.size, version=header.by,
            max_error=header.bound.relative, max_absolute=header.bound.absolute,
            shapes=shapes_of(opened), sections=section_sizes(opened.reader),
            n_blocks=len(opened.reader.entries),
            models={**models, **{d: _name_of(d, given) for d in opened.digests}},
            stored=not opened.digests, trials=tuple(header.trials),
            row_errors=dict(zip(SHARES, errors, strict=False)),
            largest_error=errors[4] if len(errors) > 4 else 0.0,
            measured=tally is not None, rows_beyond=beyond,
        )  # fmt: skip


def _name_of(digest: str, given: CodecModel | None) -> str:
    known = given is not None and given.digest == digest
    return given.predictor if given is not None and known else "in a file of its own"


def both_matrices(
    opened: Compressed, original: Path, part: int = 0, max_size: int | None = None
) -> Iterator[tuple[Array, Array]]:
    """Yield rows of the original and what became of them, some at a time."""
    source = open_original(opened, original, max_size)
    plan = source.parts[part]
    blocks = source.blocks(part, rows_a_block(plan.n_rows, plan.row_values))
    theirs = (block.matrix for block in blocks if block.matrix is not None)
    return _side_by_side(theirs, decoded_matrices(opened, part))


def _measure(
    opened: Compressed, original: Path, max_size: int | None, on_step: OnStep
) -> tuple[Tally, int]:
    """Compare a compressed file with the original."""
    tally, beyond, done = Tally(), 0, 0
    bound = opened.header.bound
    for part, said in enumerate(opened.header.parts):
        if said.model < 0:
            continue
        for rows, decoded in both_matrices(opened, original, part, max_size):
            tally.add(*row_errors(rows, decoded))
            beyond += int(bound.broken(rows, decoded).sum())
            done += len(rows)
            on_step(done, 0, "comparing with the original")
    return tally, beyond


def open_original(opened: Compressed, original: Path, max_size: int | None = None) -> Source:
    """Open the original of a compressed file, its columns kept as there."""
    header = opened.header
    with in_words(original):
        if header.kind == "npz":
            kept = [part.name for part in header.parts if part.model < 0]
            source = open_source(original, (), [name for name in kept if name], max_size=max_size)
        elif header.kind == "model":
            raise ValueError("a model file has no original.")
        else:
            source = open_source(original, like=opened, max_size=max_size)
    names = [part.name for part in header.parts]
    rows = [opened.n_rows(part) for part in range(len(names))]
    if [plan.name for plan in source.parts] != names or [
        plan.n_rows for plan in source.parts
    ] != rows:
        raise ValueError(
            f"{original} is not what was compressed: that had {sum(rows):,} rows, and it has "
            f"{sum(plan.n_rows for plan in source.parts):,}."
        )
    return source


def _side_by_side(one: Iterator[Array], other: Iterator[Array]) -> Iterator[tuple[Array, Array]]:
    """Yield equally many rows of both."""
    a = b = np.empty((0, 0))
    while True:
        if not len(a):
            a = next(one, a)
        if not len(b):
            b = next(other, b)
        n = min(len(a), len(b))
        if n == 0:
            return
        yield a[:n], b[:n]
        a, b = a[n:], b[n:]


class Drawn(NamedTuple):
    """What a picture of a compressed file shows.

    Parameters
    ----------
    name : str
        The name of the array, if there are several.
    original : array of shape (n_rows, n_columns) or None
        The original rows.
    decoded : array of shape (n_rows, n_columns)
        What became of them.
    column_names : list of str or None
        Names of a table's columns.
    """

    name: str
    original: Array | None
    decoded: Array
    column_names: list[str] | None


def matrices_to_draw(
    source: Any, original: Any = None, *, model: Any = None, most_rows: int = 2000,
    max_size: int | None = None,
) -> "Drawn":  # fmt: skip
    """Return a file's first approximate array or table: the original, and what it became.

    Parameters
    ----------
    source : str or path
        A compressed file.
    original : str or path, optional
        The file that was compressed.
    model : str or path, optional
        The model file that it refers to.
    most_rows : int
        How many of its rows, the first ones.
    max_size : int or None
        As for ``inspect_compressed``.
    """
    given = None if model is None else read_model(Path(model), max_size)
    with opened_file(checked_source(source), given, max_size) as opened:
        parts = [i for i, part in enumerate(opened.header.parts) if part.model >= 0]
        if not parts:
            raise ValueError(f"{source} holds no approximate numbers that could be drawn.")
        name = opened.header.parts[parts[0]].name.removesuffix(".npy")
        if original is None:
            pairs = ((m, m) for m in decoded_matrices(opened, parts[0]))
            return Drawn(name, None, _first_rows(pairs, most_rows)[1], column_names(opened))
        both = both_matrices(opened, checked_source(original), parts[0], max_size)
        return Drawn(name, *_first_rows(both, most_rows), column_names(opened))


def _first_rows(pieces: Iterator[tuple[Array, Array]], most: int) -> tuple[Array, Array]:
    found: list[tuple[Array, Array]] = []
    for pair in pieces:
        found.append(pair)
        if sum(len(one) for one, _ in found) >= most:
            break
    return (
        np.concatenate([one for one, _ in found])[:most],
        np.concatenate([other for _, other in found])[:most],
    )
