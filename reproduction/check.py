"""Run one seed of every stored setting again and compare it with its record."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any

from reproduction.store import Record, key_of, read_records
from reproduction.study import DataHome, Extent, NotAvailable, Setting, Study

#: Measures that no run repeats: times (in seconds or ms) and memory.
CLOCKED = frozenset(
    {
        "classify", "fit", "fit_map", "fit_seconds", "learn", "map", "map_test", "map_train",
        "mib", "ms", "ms_raw", "ms_unit", "peak", "predict", "predict_global", "prepare", "seconds",
        "turn",
    }
)  # fmt: skip
# Another processor adds in another order: answers are the same, digits beyond these are not.
_RELATIVE = 1e-6


@dataclass(frozen=True)
class Repetition:
    """A stored run made again: where the numbers differ, name: (stored, now)."""

    setting: Setting
    seed: int
    differences: Mapping[str, tuple[Any, Any]]

    def in_words(self) -> str:
        """Return a line that says which run it is, and what it gave then and now."""
        at = "" if self.setting["x"] is None else f" at {self.setting['x']}"
        what = ", ".join(
            f"{name} {stored} stored, {now} now" for name, (stored, now) in self.differences.items()
        )
        return f"{self.setting['method']}{at}, seed {self.seed}: {what or 'repeats'}"


def to_repeat(study: Study, folder: Path, extent: Extent) -> list[Record]:
    """Return one record for each setting that has any: that of its lowest seed."""
    settings = extent.of(study).settings or study.full.settings[:1]
    wanted = {key_of(setting) for setting in settings}
    lowest: dict[str, Record] = {}
    for record in read_records(study.path(folder)):
        key, seed = key_of(record["setting"]), record["seed"]
        if key not in wanted or (extent.seeds is not None and seed not in extent.seeds):
            continue
        if key not in lowest or seed <= lowest[key]["seed"]:
            lowest[key] = record
    return list(lowest.values())


def repeat(study: Study, records: list[Record], data_home: DataHome) -> Iterator[Repetition]:
    """Make the runs again, and compare."""
    for record in records:
        setting, seed = record["setting"], record["seed"]
        try:
            measures = study.run_once(setting, seed, data_home)
        except NotAvailable:
            continue
        yield Repetition(setting, seed, differences(record["measures"], measures))


def differences(
    stored: Mapping[str, Any], measured: Mapping[str, Any]
) -> dict[str, tuple[Any, Any]]:
    """Return what differs, times and memory apart, as name: (stored, measured)."""
    names = dict.fromkeys([*stored, *measured])
    pairs = {name: (stored.get(name), measured.get(name)) for name in names if name not in CLOCKED}
    return {name: pair for name, pair in pairs.items() if not _equal(*pair)}


def _equal(stored: Any, measured: Any) -> bool:
    if not (isinstance(stored, Real) and isinstance(measured, Real)):
        return bool(stored == measured)
    if math.isnan(stored) or math.isnan(measured):
        return math.isnan(stored) and math.isnan(measured)
    return math.isclose(stored, measured, rel_tol=_RELATIVE, abs_tol=1e-12)
