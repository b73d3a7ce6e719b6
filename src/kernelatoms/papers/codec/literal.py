"""The file of A.7 taken literally: six steps, every stored byte counted.

Step 0: a square dictionary by KSCDL. Steps 1 to 3: FKSC codes W, stopped as in the paper, stored as
two columns, the index of a nonzero in vec(W) and its value. Steps 4 to 6: both read back, and rows
by (19). Rows have unit norm, as in the paper's tables; their norms are stored.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
import zstandard
from numpy.typing import NDArray

from kernelatoms import KSCDL
from kernelatoms.papers.codec.data import Table, load_table
from kernelatoms.papers.codec.packing import THOROUGH
from kernelatoms.papers.fksc.coders import PAPER_STOP
from kernelatoms.papers.fksc.data import unit_rows
from kernelatoms.papers.fksc.reported import SIGMA
from kernelatoms.papers.study import DataHome
from kernelatoms.pursuit import Expansion, KernelProblem, fksc
from kernelatoms.similarity import make_kernel

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
    kernel = make_kernel("rbf", gamma=learner.gamma_)
    problem = KernelProblem(rows, Expansion(kernel, learner.components_))
    codes = fksc(problem, penalty, **PAPER_STOP).to_csr()
    dictionary = learner.components_.astype(np.float32)
    index, value = two_columns(codes)
    back = from_two_columns(index, value, codes.shape)
    decoded = learner.inverse_transform(back) * norms[:, None]
    parts = {"index": index, "value": value, "dictionary": dictionary, "norms": norms}
    raw, packed = part_bytes(parts)
    raw["gaps"] = packed["gaps"] = table.gap_bytes
    return LiteralFile(raw, packed, decoded.reshape(table.values.shape), len(index))


def _dictionary(rows: Array, sigma: float) -> KSCDL:
    spaced = rows[np.linspace(0, len(rows) - 1, min(len(rows), _MOST_ROWS)).astype(int)]
    n_atoms = min(rows.shape[1], len(spaced))
    learner = KSCDL(
        n_atoms, alpha=_ALPHA, gamma=1 / (2 * sigma**2), max_iter=_PASSES, random_state=0
    )
    return learner.fit(spaced)


def two_columns(codes: scipy.sparse.csr_array) -> tuple[Array, Array]:
    """Vectorise W, one signal after another, and list its nonzeros: steps 2 and 3."""
    wide = codes.tocoo()
    index = wide.row.astype(np.int64) * codes.shape[1] + wide.col
    kind = np.int32 if index.max(initial=0) < 2**31 else np.int64
    return index.astype(kind), wide.data.astype(np.float32)


def from_two_columns(index: Array, value: Array, shape: tuple[int, int]) -> scipy.sparse.csr_array:
    """Fold the nonzeros back into W: steps 4 and 5."""
    where = np.divmod(index.astype(np.int64), shape[1])
    return scipy.sparse.csr_array((value.astype(np.float64), where), shape=shape)


def part_bytes(parts: dict[str, Array]) -> tuple[dict[str, int], dict[str, int]]:
    """Return the bytes of arrays as they are, and by zstandard."""
    compressor = zstandard.ZstdCompressor(level=THOROUGH)
    raw = {name: part.nbytes for name, part in parts.items()}
    packed = {name: len(compressor.compress(part.tobytes())) for name, part in parts.items()}
    return raw, packed
