"""A study: settings times seeds, each measured once and kept as one JSON line.

See docs/decisions/059-studies-and-claims.md.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from reproduction.circumstances import circumstances
from reproduction.store import append_record, key_of, read_records

#: Everything a run depends on, the seed aside: "method", "x" (the place on the figure's axis, None
#: where the method does not depend on it) and the method's parameters.
Setting = Mapping[str, Any]
DataHome = str | Path | None


class NotAvailable(Exception):  # noqa: N818
    """A run needs a package that is not installed; it leaves no record, and others go on."""


@dataclass(frozen=True)
class Size:
    """How much is run: the settings, how many seeds (or which), and about how long that takes."""

    settings: Sequence[Setting]
    seeds: int | Sequence[int]
    duration: str = ""

    @property
    def each_seed(self) -> Sequence[int]:
        """The seeds one by one."""
        return range(self.seeds) if isinstance(self.seeds, int) else self.seeds

    @property
    def runs(self) -> list[tuple[Setting, int]]:
        """All runs, in the order in which they are made."""
        return [(setting, seed) for seed in self.each_seed for setting in self.settings]


@dataclass(frozen=True)
class Study:
    """Runs that one or more figures show.

    ``measure(setting, seed, data_home)`` returns what one run gave, numbers (and words) by name, or
    raises ``NotAvailable``. It is called seed by seed and setting by setting, so that neighbours
    can share a fitted model. What a run returns does not depend on the runs before it.

    ``parameters`` are those that all settings have in common. ``measure`` finds them in its
    setting; records leave them out unless they were changed (``--set``).
    """

    name: str
    dataset: str
    quick: Size
    full: Size
    measure: Callable[[Setting, int, DataHome], Mapping[str, float | str]]
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def size(self, full: bool) -> Size:
        """Return paper size, or a small one that runs in a minute or so."""
        return self.full if full else self.quick

    def can_change(self) -> list[str]:
        """List what ``changed`` takes: the names of parameters."""
        names = {name for setting in self.full.settings for name in setting}
        return sorted((names | set(self.parameters)) - {"method", "x"})

    def changed(self, size: Size, changes: Mapping[str, Any]) -> Size:
        """Return the size with other values of parameters; of settings then equal, one is left."""
        changes = {name: changes[name] for name in changes if name in self.can_change()}
        settings: dict[str, Setting] = {}
        for setting in size.settings:
            has = {n: v for n, v in changes.items() if n in setting or n in self.parameters}
            settings.setdefault(key_of({**setting, **has}), {**setting, **has})
        return replace(size, settings=list(settings.values()))

    def path(self, folder: Path) -> Path:
        """Return the file of the study's records."""
        return folder / f"{self.name}.jsonl"

    def missing(self, folder: Path, size: Size) -> list[tuple[Setting, int]]:
        """List the runs that have no record yet, in the order in which they run."""
        done = {(key_of(r["setting"]), r["seed"]) for r in read_records(self.path(folder))}
        return [run for run in size.runs if (key_of(run[0]), run[1]) not in done]

    def run_once(
        self, setting: Setting, seed: int, data_home: DataHome = None
    ) -> Mapping[str, float | str]:
        """Return what one run gives."""
        return self.measure({**self.parameters, **setting}, seed, data_home)

    def run(
        self, folder: Path, size: Size, data_home: DataHome = None
    ) -> Iterator[tuple[int, int, Setting, int]]:
        """Run what has no record yet; yield (done, total, setting, seed) before every run."""
        todo = self.missing(folder, size)
        for done, (setting, seed) in enumerate(todo):
            yield done, len(todo), setting, seed
            around, start = circumstances(), time.perf_counter()
            try:
                measures = self.run_once(setting, seed, data_home)
            except NotAvailable:
                continue
            record = {"setting": dict(setting), "seed": seed, "measures": dict(measures)}
            seconds = round(time.perf_counter() - start, 3)
            append_record(self.path(folder), {**record, **around, "seconds": seconds})


@dataclass(frozen=True)
class Extent:
    """How much of studies is run: quick or paper size, the seeds, changes of parameters."""

    full: bool = False
    seeds: Sequence[int] | None = None
    changes: Mapping[str, Any] = field(default_factory=dict)

    def of(self, study: Study) -> Size:
        """Return the size of one study; its own seeds where none are given."""
        size = study.changed(study.size(self.full), self.changes)
        return size if self.seeds is None else replace(size, seeds=self.seeds)
