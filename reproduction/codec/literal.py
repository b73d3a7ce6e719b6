"""The file of A.7 taken literally: six steps, every stored byte counted.

Step 0: a square dictionary by KSCDL. Steps 1 to 3: FKSC codes, stopped as in the paper, stored as
two columns (``store_codes``). Steps 4 to 6: read back, and rows by (19). Rows have unit norm, as in
the paper's tables; their norms are stored.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import zstandard
from numpy.typing import NDArray

from kernelatoms import KSCDL, store_codes
from reproduction.codec.data import Table, load_table
from reproduction.codec.packing import THOROUGH
from reproduction.fksc.coders import CHANGE
from reproduction.fksc.data import unit_rows
from reproduction.fksc.reported import SIGMA
from reproduction.study import DataHome

Array = NDArray[Any]

# What the dictionary is learned with: so many rows of the table at most, evenly spaced.
_MOST_ROWS, _ALPHA, _PASSES = 1500, 0.1, 20


class LiteralFile(NamedTuple):
    """The parts of a file in raw bytes and by zstandard, and the rows that come back."""

    raw: dict[str, int]
    packed: dict[str, int]
    rows: Array
    n_nonzero: int


@lru_cache(maxsize=1)
def literal_file(data: str, data_home: DataHome, penalty: float) -> LiteralFile:
    """Return a data set as A.7 stores it, under the paper's bandwidth."""
    return stored_literally(load_table(data, data_home), SIGMA[data], penalty)


def stored_literally(table: Table, sigma: float, penalty: float) -> LiteralFile:
    """Store a table in six steps."""
    signals = table.bridged.reshape(-1, table.values.shape[-1]).astype(np.float64)
    norms = np.linalg.norm(signals, axis=1).astype(np.float32)
    rows = unit_rows(signals)
    learner = _dictionary(rows, sigma)
    stored = store_codes(rows, learner.set_params(method="fksc", change_tol=CHANGE, alpha=penalty))
    decoded = stored.decode(learner) * norms[:, None]
    parts = {
        "index": stored.index, "value": stored.value, "norms": norms,
        "dictionary": learner.components_.astype(np.float32),
    }  # fmt: skip
    raw, packed = part_bytes(parts)
    raw["gaps"] = packed["gaps"] = table.gap_bytes
    return LiteralFile(raw, packed, decoded.reshape(table.values.shape), len(stored.index))


def _dictionary(rows: Array, sigma: float) -> KSCDL:
    spaced = rows[np.linspace(0, len(rows) - 1, min(len(rows), _MOST_ROWS)).astype(int)]
    n_atoms = min(rows.shape[1], len(spaced))
    learner = KSCDL(
        n_atoms, alpha=_ALPHA, gamma=1 / (2 * sigma**2), max_iter=_PASSES, random_state=0
    )
    return learner.fit(spaced)


def part_bytes(parts: dict[str, Array]) -> tuple[dict[str, int], dict[str, int]]:
    """Return the bytes of arrays as they are, and by zstandard."""
    compressor = zstandard.ZstdCompressor(level=THOROUGH)
    raw = {name: part.nbytes for name, part in parts.items()}
    packed = {name: len(compressor.compress(part.tobytes())) for name, part in parts.items()}
    return raw, packed
