"""``inspect_compressed``: what a compressed file holds, and its distance from the original."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kernelatoms.codec import arguments
from kernelatoms.codec.blocks import Compressed, rows_per_block
from kernelatoms.codec.bounds import SHARES, ErrorStats, row_errors
from kernelatoms.codec.container import section_sizes
from kernelatoms.codec.packed.kinds import decoded_matrices, open_source, shapes_of, table_columns
from kernelatoms.codec.packed.sources import OnStep, Source, quiet
from kernelatoms.engine import Array

# Rows of a figure, at most.
_DRAWN_ROWS = 2000


@dataclass(frozen=True)
class CompressedInfo:
    """What a compressed file holds, with errors measured on the original if it is given.

    Parameters
    ----------
    path : Path
        The file.
    kind : str
        What was compressed: "csv", "parquet", "npy", "npz", "array"; "model" for a model file.
    n_bytes, original_bytes : int
        Its size, and that of the original; 0 if that is not recorded.
    ratio : float
        How many times smaller it is; 0 if not known.
    version : str
        The version of the library that wrote it.
    max_error, max_absolute : float or None
        The relative and the absolute bound.
    shapes : dict of str to str
        A description of each array, or of the table.
    sections : dict of str to int
        Bytes per kind of section; their sum is the size of the file.
    n_blocks : int
        Blocks of rows.
    models : dict of str to str
        Names of the models by digest.
    stored : bool
        Whether the file stores its models.
    measured : bool
        Whether errors were measured on the original.
    trials : tuple of (str, int)
        The models that were compared when the file was written, with their bytes.
    row_errors : dict of float to float
        Quantiles of the rows' relative errors (0.5, 0.9, 0.99, 1), as measured, else as recorded.
    largest_error : float
        The largest error of a value.
    rows_beyond : int
        Rows that miss the bound, if errors were measured.

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
    source: Any, original: Any = None, *, model: Any = None, max_size: int | None = None,
    on_step: OnStep | None = None,
) -> CompressedInfo:  # fmt: skip
    """Describe a compressed file; all checksums are verified, and errors measured if possible.

    Parameters
    ----------
    source : str or path
        A ``.kac`` or ``.kam`` file.
    original : str or path, optional
        The file that was compressed, to measure errors on.
    model : str, path, CodecModel or None, default=None
        The ``.kam`` file that the file refers to, if it does not store its model.
    max_size : int or None, default=None
        The bytes that a file may become; by default 4 GiB, or 256 times its size if that is more.
    on_step : callable or None, default=None
        Called as ``on_step(done, total, what)``; a total of 0 means unknown.

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
    on_step = on_step or quiet
    arguments.check_max_size(max_size)
    path = arguments.checked_source(source)
    given = arguments.checked_model_file(model, max_size)
    with arguments.open_compressed(path, given, max_size) as opened:
        on_step(0, 0, "comparing checksums")
        opened.check()
        header = opened.header
        stats, beyond = None, 0
        if original is not None:
            stats, beyond = _measure(opened, arguments.checked_source(original), max_size, on_step)
        errors = tuple(header.errors) if stats is None else stats.numbers()
        names = {} if given is None else {given.digest: given.predictor}
        models = {model.digest: model.predictor for model in opened.stored}
        models |= {digest: names.get(digest, "in a file of its own") for digest in opened.digests}
        return CompressedInfo(
            path=path, kind=header.kind, n_bytes=opened.reader.size, original_bytes=header.size,
            ratio=header.size / opened.reader.size, version=header.by,
            max_error=header.bound.relative, max_absolute=header.bound.absolute,
            shapes=shapes_of(opened), sections=section_sizes(opened.reader),
            n_blocks=len(opened.reader.entries),
            models=models, stored=not opened.digests, trials=tuple(header.trials),
            row_errors=dict(zip(SHARES, errors, strict=False)),
            largest_error=errors[4] if len(errors) > 4 else 0.0,
            measured=stats is not None, rows_beyond=beyond,
        )  # fmt: skip


def _both_matrices(
    opened: Compressed, original: Path, part: int, max_size: int | None
) -> Iterator[tuple[Array, Array]]:
    """Yield rows of the original and the decoded rows, piece by piece."""
    source = _open_original(opened, original, max_size)
    plan = source.parts[part]
    blocks = source.blocks(part, rows_per_block(plan.n_rows, plan.row_values))
    matrices = (block.matrix for block in blocks if block.matrix is not None)
    return _side_by_side(matrices, decoded_matrices(opened, part))


def _measure(
    opened: Compressed, original: Path, max_size: int | None, on_step: OnStep
) -> tuple[ErrorStats, int]:
    """Compare a compressed file with the original."""
    stats, beyond, done = ErrorStats(), 0, 0
    for part, stored in enumerate(opened.header.parts):
        if stored.model < 0:
            continue
        for rows, decoded in _both_matrices(opened, original, part, max_size):
            stats.add(*row_errors(rows, decoded))
            beyond += int(opened.header.bound.broken(rows, decoded).sum())
            done += len(rows)
            on_step(done, 0, "comparing with the original")
    return stats, beyond


def _open_original(opened: Compressed, original: Path, max_size: int | None) -> Source:
    """Open the original of a compressed file with the same approximate columns."""
    header = opened.header
    with arguments.naming(original):
        if header.kind == "npz":
            exact = [part.name for part in header.parts if part.model < 0 and part.name]
            source = open_source(original, (), exact, max_size=max_size)
        elif header.kind == "model":
            raise ValueError("a model file has no original.")
        else:
            source = open_source(original, like=opened, max_size=max_size)
    were = [(part.name, opened.n_rows(i)) for i, part in enumerate(header.parts)]
    found = [(plan.name, plan.n_rows) for plan in source.parts]
    if found != were:
        raise ValueError(
            f"{original} is not what was compressed: that had {sum(n for _, n in were):,} rows, "
            f"and it has {sum(n for _, n in found):,}."
        )
    return source


def _side_by_side(one: Iterator[Array], other: Iterator[Array]) -> Iterator[tuple[Array, Array]]:
    """Yield as many rows of the one as of the other."""
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
    """What a figure of a compressed file shows: the first approximate array or table."""

    name: str  # the name of the array, if there are several
    original: Array | None
    decoded: Array
    column_names: list[str] | None  # names of a table's columns


def matrices_to_draw(source: Any, original: Any, model: Any, max_size: int | None) -> Drawn:
    """Return the first rows of a compressed file; see ``inspect_compressed``."""
    given = arguments.checked_model_file(model, max_size)
    with arguments.open_compressed(arguments.checked_source(source), given, max_size) as opened:
        parts = [i for i, part in enumerate(opened.header.parts) if part.model >= 0]
        if not parts:
            raise ValueError(f"{source} holds no approximate numbers that could be drawn.")
        name = opened.header.parts[parts[0]].name.removesuffix(".npy")
        pairs: Iterator[tuple[Array, Array]]
        if original is None:
            pairs = ((m, m) for m in decoded_matrices(opened, parts[0]))
        else:
            pairs = _both_matrices(opened, arguments.checked_source(original), parts[0], max_size)
        rows, decoded = _first_rows(pairs)
        table = table_columns(opened)
        names = None if table is None else table[0]
        return Drawn(name, None if original is None else rows, decoded, names)


def _first_rows(pieces: Iterator[tuple[Array, Array]]) -> tuple[Array, Array]:
    found: list[tuple[Array, Array]] = []
    while sum(len(one) for one, _ in found) < _DRAWN_ROWS and (pair := next(pieces, None)):
        found.append(pair)
    one, other = (np.concatenate(arrays)[:_DRAWN_ROWS] for arrays in zip(*found, strict=True))
    return one, other
