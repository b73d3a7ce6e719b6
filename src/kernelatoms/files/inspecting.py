"""``inspect_compressed``: what a compressed file holds, and how far it is from the original."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.codec.format import section_sizes
from kernelatoms.codec.measuring import SHARES, Tally, row_errors
from kernelatoms.codec.models import CodecModel
from kernelatoms.codec.opened import Compressed
from kernelatoms.files.compressed import checked_source, in_words, opened_file, read_model
from kernelatoms.files.kinds import decoded_matrices, open_source, shapes_of
from kernelatoms.files.sources import OnStep, quiet

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
    trials : tuple of (str, int)
        Models that were tried when it was written, with the bytes that they took.
    row_errors : dict of float to float
        The largest error, relative to a row's norm, of half, nine tenths, 99 hundredths and all of
        the rows; measured on the original if that was given, else as the encoder recorded it.
    largest_error : float
        The largest error of any value.
    measured : bool
        Whether errors were measured on the original.
    rows_beyond : int
        Rows that are not within the bound, of those measured.
    exact_matches : bool or None
        Whether the exact columns equal those of the original; None if that was not given.

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
    trials: tuple[tuple[str, int], ...] = ()
    row_errors: dict[float, float] = field(default_factory=dict)
    largest_error: float = 0.0
    measured: bool = False
    rows_beyond: int = 0
    exact_matches: bool | None = None


def inspect_compressed(source: Any, original: Any = None) -> CompressedInfo:
    """Look at a compressed file: all its checksums are compared, and its errors if possible.

    Parameters
    ----------
    source : str or path
        A ``.kac`` or ``.kam`` file.
    original : str or path, optional
        The file that was compressed, to measure errors on.

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
    return inspect_file(source, original)
