"""A study: settings times seeds, each measured once and kept as one JSON line."""

import os
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kernelatoms import __version__, n_threads
from kernelatoms.papers.store import append_record, key_of, read_records

#: Everything a run depends on, the seed aside: "method", "x" (the place on the figure's axis, None
#: where the method does not depend on it) and the method's parameters.
Setting = Mapping[str, Any]
DataHome = str | Path | None


class NotAvailable(Exception):  # noqa: N818
    """A run needs a package that is not installed; it leaves no record, and others go on."""


@dataclass(frozen=True)
class Size:
    """How much is run: the settings, how many seeds, and about how long that takes."""

    settings: Sequence[Setting]
    n_seeds: int
    duration: str


@dataclass(frozen=True)
class Study:
    """Runs that one or more figures show.

    ``measure(setting, seed, data_home)`` returns what one run gave, numbers (and words) by name, or
    raises ``NotAvailable``. It is called seed by seed and setting by setting, so that neighbours
    can share a fitted model.
    """

    name: str
    dataset: str
    quick: Size
    full: Size
    measure: Callable[[Setting, int, DataHome], Mapping[str, float | str]]

    def size(self, full: bool) -> Size:
        """Return paper size, or a small one that runs in a minute or so."""
        return self.full if full else self.quick

    def path(self, folder: Path) -> Path:
        """Return the file of the study's records."""
        return folder / f"{self.name}.jsonl"

    def missing(self, folder: Path, size: Size, n_seeds: int) -> list[tuple[Setting, int]]:
        """List the runs that have no record yet, in the order in which they run."""
        done = {(key_of(r["setting"]), r["seed"]) for r in read_records(self.path(folder))}
        return [
            (setting, seed)
            for seed in range(n_seeds)
            for setting in size.settings
            if (key_of(setting), seed) not in done
        ]

    def run(
        self, folder: Path, size: Size, n_seeds: int, data_home: DataHome = None
    ) -> Iterator[tuple[int, int, Setting, int]]:
        """Run what has no record yet; yield (done, total, setting, seed) before every run."""
        todo = self.missing(folder, size, n_seeds)
        for done, (setting, seed) in enumerate(todo):
            yield done, len(todo), setting, seed
            load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
            try:
                measures = self.measure(setting, seed, data_home)
            except NotAvailable:
                continue
            record = {"setting": dict(setting), "seed": seed, "measures": dict(measures)}
            append_record(self.path(folder), {**record, **_circumstances(), "load": load})


def _circumstances() -> dict[str, Any]:
    """Return what a reader must know to judge a time or to repeat a run."""
    return {
        "version": __version__,
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "machine": f"{_processor()}, {os.cpu_count()} cores",
        "threads": n_threads(),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()
