"""Paper 4's own compression ratios (Table 2), values over nonzeros, restated in real bytes.

The columns, dictionaries and codes are those of ``fksc/table2``; what is added is what a file
would hold: an index and a value for every nonzero, the columns' norms, the dictionary.
"""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms import KernelCodec, StoredCodes
from reproduction.codec.data import Table
from reproduction.codec.literal import part_bytes
from reproduction.codec.search import HEADER
from reproduction.fksc.coders import Task, dictionary, published_codes
from reproduction.fksc.data import load_columns
from reproduction.fksc.reported import RATIOS, SIGMA
from reproduction.study import DataHome, Setting, Size, Study

Array = NDArray[Any]

PAPER = "values / nonzeros, as in the paper"
COLUMNS = "indices and values"
NORMS = "indices, values and norms"
WHOLE = "indices, values, norms and dictionary"
PACKED = "the same by zstandard"
OURS_MEAN = "KernelCodec, every column within their mean error"
_PARTS = {
    COLUMNS: ("index", "value"),
    NORMS: ("index", "value", "norms"),
    WHOLE: ("index", "value", "norms", "dictionary"),
}
SCALES = {"planetlab": "unit", "traffic": "unit", "pm25": "unit", "syn360": "minmax"}


@lru_cache(maxsize=1)
def _stored(data: str, seed: int, data_home: DataHome, ratio: float) -> dict[str, float]:
    """Return how often the float32 columns are as large as what is stored, by what that is."""
    task = Task(data, SCALES[data], seed, data_home, SIGMA[data], ratio=ratio)
    learned = dictionary(task, task.sigma)
    test = task.columns.test
    codes = published_codes(task)[1].to_csr()
    stored = StoredCodes.of(codes, test.shape[1])
    raw = load_columns(data, "raw", seed, data_home).test
    norms = np.linalg.norm(raw, axis=1).astype(np.float32)
    parts = {
        "index": stored.index, "value": stored.value, "norms": norms,
        "dictionary": learned.atoms.astype(np.float32),
    }  # fmt: skip
    in_bytes, packed = part_bytes(parts)
    original = 4 * test.size
    result = {PAPER: stored.ratio}
    for name, names in _PARTS.items():
        result[name] = original / (HEADER + sum(in_bytes[part] for part in names))
    result[PACKED] = original / (HEADER + sum(packed.values()))
    errors = Table(data, test).row_errors(learned.decode(codes))
    result["largest"], result["mean"] = float(errors.max()), float(errors.mean())
    ours = raw.astype(np.float32)
    file = KernelCodec(max_error=min(result["mean"], 0.99)).fit(ours).encode(ours)
    result[OURS_MEAN] = original / len(file)
    return result


def measure_ratio(setting: Setting, seed: int, data_home: DataHome) -> dict[str, float | str]:
    """Return one ratio of float32 bytes to stored bytes, and the errors of the columns."""
    found = _stored(setting["data"], seed, data_home, setting["x"])
    return {"ratio": found[setting["method"]], "largest": found["largest"], "mean": found["mean"]}


METHODS = (PAPER, COLUMNS, NORMS, WHOLE, PACKED, OURS_MEAN)


def _study(data: str, quick: str, full: str) -> Study:
    def settings(ratios: tuple[float, ...]) -> list[Setting]:
        return [{"data": data, "method": m, "x": x} for x in ratios for m in METHODS]

    return Study(
        name=f"codec/table2-{data}",
        dataset="none" if data.startswith("syn") else data,
        quick=Size(settings(RATIOS[data][1:2]), 1, quick),
        full=Size(settings(RATIOS[data]), 1, full),
        measure=measure_ratio,
    )


STUDIES = {
    "planetlab": _study("planetlab", "1 min", "3 min"),
    "traffic": _study("traffic", "1 min", "3 min"),
    "pm25": _study("pm25", "1 min", "3 min"),
    "syn360": _study("syn360", "1 min", "3 min"),
}
