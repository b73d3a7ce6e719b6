"""Tables larger than memory: the same rows, a part of them at a time.

``open_large`` says whether a file, or several of one pattern, is to be read in parts. Kinds of
files are in ``parts``. Every part is a ``Table`` with the columns of the whole.
"""

import glob
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.features.memory import available_bytes
from kernelatoms.files.tables.parts import ArrowParts, NumpyParts, ParquetParts, Part, PartFile
from kernelatoms.files.tables.table import ReadOptions, Table, TableError, shortened
from kernelatoms.files.tables.text_parts import TextParts
from kernelatoms.limits import MAX_SIZE, TooLargeError, refuse_over

# A file below this size is read as a whole without a look at how much memory is free.
_ALWAYS_FITS = 1 << 24
# Bytes of numbers in a part: a share of the memory, within bounds.
_SHARE, _SMALLEST, _LARGEST = 32, 1 << 16, 1 << 23
_COMPRESSED = (".gz", ".bz2", ".zst")

# How files are read in parts, by their ending.
_KINDS: dict[str, type[PartFile]] = {
    ".parquet": ParquetParts, ".feather": ArrowParts, ".arrow": ArrowParts,
    ".csv": TextParts, ".tsv": TextParts, ".txt": TextParts, ".npy": NumpyParts,
}  # fmt: skip


@dataclass(frozen=True)
class LargeTable:
    """A table in one file or several, of which a part is in memory at a time.

    Iterating over it yields tables of some rows each, in order, as often as asked.

    Parameters
    ----------
    path : Path
        The file, or the pattern that names several.
    files : list of PartFile
        The files, whose rows follow each other.
    needs : int
        About how many bytes of memory the whole table takes.
    memory : int
        How many it may take.
    on_workers : bool
        Whether it is read in parts by the workers of a cluster, whatever its size.
    """

    path: Path
    files: list[PartFile]
    needs: int
    memory: int
    on_workers: bool = False

    @property
    def fits(self) -> bool:
        """Whether the whole table is read at once: it fits in the memory that it may take."""
        return self.needs <= self.memory and not self.on_workers

    def parts(self) -> Iterator[tuple[int, Part]]:
        """Yield parts, each with the number of its first row."""
        start, first = 0, None
        for file in self.files:
            for part in file.parts():
                if first is None:
                    first = part.table
                _refuse_others(first, part.table)
                yield start, part
                start += len(part.table)
        if start == 0:
            raise TableError(f"{self.path} has no rows.")

    def __iter__(self) -> Iterator[Table]:
        for _, part in self.parts():
            yield part.table

    def joined(self, kept: list[Any]) -> Table:
        """Return rows that ``Part.take`` returned, as one table."""
        return replace(self.files[0].joined(kept), path=self.path)

    def collect(self) -> Table:
        """Return all rows as one table."""
        return self.joined([part.take(np.arange(len(part.table))) for _, part in self.parts()])

    def identity(self) -> list[Any]:
        """Return what tells these files from others, as values that JSON can hold."""
        return [file.stamp.identity() for file in self.files]


def memory_to_use(memory: int | None) -> int:
    """Return the bytes that a table may take: those asked for, or half of what is free."""
    if memory is not None:
        return memory
    free = available_bytes()
    return MAX_SIZE if free is None else free // 2


def open_large(
    path: Any, options: ReadOptions, memory: int | None, *, on_workers: bool = False
) -> LargeTable | None:
    """Return a table to be read in parts; None where it is one file that fits, or no file.

    Parameters
    ----------
    path : str or path
        A file, or a pattern such as ``big/*.parquet``.
    options : ReadOptions
        What files do not say of themselves.
    memory : int or None
        The bytes that the table may take; half of what is free by default.
    on_workers : bool, default=False
        Whether workers of a cluster read it, always in parts; they know files by full names.

    Raises
    ------
    TableError
        If a file does not fit in the memory that was asked for and cannot be read in parts.
    """
    paths = _paths(path)
    if on_workers and paths and paths[0].is_file():
        return _open_on_workers(Path(path), paths, options, memory_to_use(memory))
    one = len(paths) == 1
    if not paths or (one and not paths[0].is_file()):
        return None  # who reads it says what is wrong
    sizes = [each.stat().st_size for each in paths]
    if one and memory is None and sizes[0] < _ALWAYS_FITS:
        return None
    allowed = memory_to_use(memory)
    kind = _kind_of(path, paths)
    if kind is None:
        if one and (memory is None or sizes[0] <= allowed):
            return None
        raise TableError(_why_not_in_parts(path, paths[0], one))
    needs = sum(kind.needs(each) for each in paths)
    if one and needs <= allowed:
        return None
    _refuse_bombs(paths, sizes, needs, options)
    part_bytes = min(max(allowed // _SHARE, _SMALLEST), _LARGEST)
    files = [kind(each, options, part_bytes, allowed) for each in paths]
    return LargeTable(Path(path), files, needs, allowed)


def _open_on_workers(
    path: Path, paths: list[Path], options: ReadOptions, allowed: int
) -> LargeTable:
    """Return a table whose parts do not depend on the memory of this machine."""
    kind = _kind_of(path, paths)
    if kind is None:
        raise TableError(
            f"{path}: workers read a table in parts, and {paths[0].suffix or 'such'} files are "
            f"read as a whole. Write it as one of {', '.join(_KINDS)}."
        )
    paths = [each.absolute() for each in paths]
    needs = sum(kind.needs(each) for each in paths)
    _refuse_bombs(paths, [each.stat().st_size for each in paths], needs, options)
    files = [kind(each, options, _LARGEST, allowed) for each in paths]
    return LargeTable(path, files, needs, allowed, on_workers=True)


def _kind_of(path: Any, paths: list[Path]) -> type[PartFile] | None:
    """Return how the files are read in parts; None if they are not."""
    kinds = {each.suffix.lower() for each in paths}
    if len(kinds) > 1:
        raise TableError(f"{path}: all files must be of one kind, got {', '.join(sorted(kinds))}.")
    return _KINDS.get(kinds.pop())


def _paths(path: Any) -> list[Path]:
    """Return the files that a name or a pattern means, part-2 before part-10."""
    if str(path) == "-" or Path(path).exists() or not glob.has_magic(str(path)):
        return [] if str(path) == "-" else [Path(path)]
    from kernelatoms.rows.opening import natural

    found = sorted(glob.glob(str(path), recursive=True), key=natural)
    if not found:
        raise FileNotFoundError(f"no file matches {path}.")
    return [Path(each) for each in found]


def _why_not_in_parts(path: Any, first: Path, one: bool) -> str:
    if not one:
        return (
            f"{path}: only {', '.join(_KINDS)} files are read together, not "
            f"{first.suffix or 'files without an ending'}."
        )
    packed = first.suffix.lower() in _COMPRESSED
    what = "Unpack it" if packed else "Write it as .parquet, .csv or .npy"
    return (
        f"{path} does not fit in the memory that it may take, and {first.suffix} files are read as "
        f"a whole. {what}, or allow more, such as memory='16GiB'."
    )


def _refuse_bombs(paths: list[Path], sizes: list[int], needs: int, options: ReadOptions) -> None:
    """Refuse files that say they hold far more than files of their size do."""
    size = sum(sizes)
    allowed = max(MAX_SIZE, 256 * size) if options.max_size is None else options.max_size
    try:
        refuse_over(allowed, needs // 2, size)
    except TooLargeError as error:
        raise TableError(f"{paths[0]} was not read: {error}.") from error


def _refuse_others(first: Table, table: Table) -> None:
    """Refuse a part whose columns are not those of the first."""
    if first.names == table.names or set(first.names) == set(table.names):
        return
    for here, there in ((first, table), (table, first)):
        if missing := [name for name in here.names if name not in there.names]:
            raise TableError(
                f"all files must have the same columns: {here.path} has {shortened(missing)}, and "
                f"{there.path} has not."
            )


@dataclass(frozen=True)
class Sample:
    """Some rows of a large table."""

    table: Table
    rows: NDArray[np.intp]  # their numbers in the whole, ascending
    n_rows: int  # of the whole


def draw_sample(
    large: LargeTable,
    n: int,
    seed: int,
    look: Callable[[Table, int], NDArray[np.intp]] | None = None,
) -> Sample:
    """Return ``n`` random rows in order, drawn in one pass; the same ones for parts of any size.

    ``look(table, start)`` sees every part and returns rows of it to take besides.
    """
    rng = np.random.default_rng(seed)
    held: list[tuple[Any, Any, Any]] = []  # keys, numbers of rows, the rows
    threshold, n_rows = np.inf, 0
    for start, part in large.parts():
        keys = rng.random(len(part.table))
        if look is not None:
            keys[look(part.table, start)] = -1.0
        some = np.flatnonzero(keys < threshold)
        if len(some):
            held.append((keys[some], some + start, part.take(some)))
        n_rows = start + len(part.table)
        if sum(len(keys) for keys, _, _ in held) > 2 * n + 1000:
            held, threshold = _smallest(held, n)
    held, _ = _smallest(held, n)
    rows = np.concatenate([numbers for _, numbers, _ in held])
    return Sample(large.joined([kept for _, _, kept in held]), rows, n_rows)


def _smallest(held: list[tuple[Any, Any, Any]], n: int) -> tuple[list[tuple[Any, Any, Any]], float]:
    """Return the rows with the ``n`` smallest random keys, and those asked for; and the bound."""
    every = np.concatenate([keys for keys, _, _ in held])
    drawn = np.sort(every[every >= 0])
    bound = np.inf if len(drawn) <= n else float(drawn[n])
    found = []
    for keys, numbers, kept in held:
        some = np.flatnonzero(keys < bound)
        if len(some):
            taken = kept[some] if isinstance(kept, np.ndarray) else kept.take(some)
            found.append((keys[some], numbers[some], taken))
    return found, bound


def sample_rows(large: LargeTable, most: int = 50_000, fewest: int = 1_000) -> int:
    """Return how many rows are a sample that takes a small share of the memory."""
    table = next(iter(large))
    n_bytes = 8 * len(table.columns) + 64 * len(table.words)
    return int(min(max(large.memory // 8 // max(n_bytes, 1), fewest), most))
