"""The studies of bytes at equal largest row error, one per data set."""

from reproduction.codec.data import load_table
from reproduction.codec.literal import literal_file
from reproduction.codec.methods import (
    MODELS,
    OURS,
    PCA,
    PLAIN,
    RIVALS,
    ROUNDED,
    SZ3,
    measures_of,
    run_ours,
    run_rival,
)
from reproduction.codec.search import HEADER
from reproduction.study import DataHome, Setting, Size, Study

#: The largest error of a row, relative to its norm.
TARGETS = (0.005, 0.01, 0.02, 0.05, 0.1)
#: Penalties of A.7, which has no bound: the ends and the middle of the paper's interval.
PENALTIES = (0.001, 0.01, 0.1)
_PACKED = ", zstandard"


def literal_name(penalty: float, packed: bool) -> str:
    """Return the name of A.7's file."""
    return f"A.7 literally, lambda {penalty:g}" + (_PACKED if packed else "")


LITERAL = [literal_name(penalty, packed) for penalty in PENALTIES for packed in (False, True)]


def measure_size(setting: Setting, seed: int, data_home: DataHome) -> dict[str, float | str]:
    """Return the bytes of one file of a data set, and the errors of its rows."""
    table = load_table(setting["data"], data_home)
    if setting["x"] is None:
        file = literal_file(setting["data"], data_home, setting["penalty"])
        errors = table.row_errors(file.rows)
        parts = file.packed if setting["method"].endswith(_PACKED) else file.raw
        n_bytes = HEADER + sum(parts.values())
        numbers = measures_of(table, n_bytes, float(errors.max()), float(errors.mean()))
        return {**numbers, **{f"{name}_bytes": float(n) for name, n in parts.items()}}
    if setting["method"] in MODELS:
        return run_ours(MODELS[setting["method"]], table, setting["x"])
    return run_rival(setting["method"], table, setting["x"])


def _settings(data: str, targets: tuple[float, ...], methods: list[str]) -> list[Setting]:
    return [{"data": data, "method": m, "x": x} for m in methods for x in targets]


def _study(data: str, quick: str, full: str) -> Study:
    settings = _settings(data, TARGETS, [*MODELS, *RIVALS, *PLAIN])
    settings += [
        {"data": data, "method": literal_name(penalty, packed), "x": None, "penalty": penalty}
        for penalty in PENALTIES
        for packed in (False, True)
    ]
    few = [OURS, SZ3, PCA] if data != "planetlab" else [OURS, SZ3, ROUNDED]
    return Study(
        name=f"codec/{data}",
        dataset="none" if data.startswith("syn") else data,
        quick=Size(_settings(data, (0.05,), few), 1, quick),
        full=Size(settings, 1, full),
        measure=measure_size,
    )


PLANETLAB = _study("planetlab", "5 min", "3 h")
TRAFFIC = _study("traffic", "1 min", "20 min")
PM25 = _study("pm25", "3 min", "1 h")
SYN360 = _study("syn360", "2 min", "40 min")
STUDIES = {"planetlab": PLANETLAB, "traffic": TRAFFIC, "pm25": PM25, "syn360": SYN360}
