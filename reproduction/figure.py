"""What a paper showed of a study: reported numbers, our curves beside them, claims to check."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reproduction.store import key_of, read_records
from reproduction.study import DataHome, Size, Study

if TYPE_CHECKING:  # brings matplotlib, which listing figures does not need
    from kernelatoms.report import Picture

Array = NDArray[Any]
#: A reported number, or the range that several reported numbers lie in.
Reported = float | tuple[float, float]


@dataclass(frozen=True)
class Claim:
    """A statement about the curves, and whether ours bear it out."""

    statement: str
    holds: bool
    evidence: str


class Curves:
    """Measured values of one figure: by method and place on the axis, one value a seed."""

    def __init__(self, values: Mapping[tuple[str, float | None], Sequence[float]]) -> None:
        self._values = {at: np.array(v, np.float64) for at, v in values.items()}

    def __bool__(self) -> bool:
        return bool(self._values)

    @property
    def methods(self) -> list[str]:
        """The methods, in the order in which they were run."""
        return list(dict.fromkeys(method for method, _ in self._values))

    @property
    def places(self) -> list[float | None]:
        """All places on the axis, None (does not depend on it) first."""
        places = {x for _, x in self._values}
        return [None] * (None in places) + sorted(x for x in places if x is not None)

    def at(self, method: str, x: float | None) -> Array:
        """Return the values of all seeds; none, if nothing was run there."""
        return self._values.get((method, x), np.empty(0))

    def mean(self, method: str, x: float | None) -> float:
        """Return the mean over seeds."""
        return float(self.at(method, x).mean())

    def line(self, method: str) -> tuple[list[float], list[Array]]:
        """Return the places of one method and its values there."""
        places = [x for m, x in self._values if m == method and x is not None]
        return sorted(places), [self.at(method, x) for x in sorted(places)]

    def shared(self, *methods: str) -> list[float]:
        """Return the places on the axis where all of these methods were run."""
        return [
            x for x in self.places if x is not None and all(len(self.at(m, x)) for m in methods)
        ]

    def above(self, base: str, methods: Sequence[str]) -> "Curves":
        """Return by how much methods are above one of them, place by place and seed by seed."""
        values = {}
        for method, x in self._values:
            these, those = self.at(method, x), self.at(base, x)
            n = min(len(these), len(those))
            if method in methods and method != base and n:
                values[method, x] = (these[:n] - those[:n]).tolist()
        return Curves(values)

    def seeds_in_words(self) -> str:
        """Say on how many seeds every number rests."""
        counts = sorted({len(values) for values in self._values.values()})
        if not counts:
            return "no seeds"
        if len(counts) == 1:
            return f"{counts[0]} seed{'s' if counts[0] > 1 else ''}"
        return f"{counts[0]} to {counts[-1]} seeds (the run is not complete)"


@dataclass(frozen=True)
class PaperFigure:
    """One figure of a paper.

    ``measured(measures)`` takes from a run the number that the figure shows, None where its method
    has no such number; ``reported`` holds the paper's numbers by method and place, and is empty
    where it has none. ``pictures(folder)`` draws what the paper shows as images and not as curves:
    anew from the first seed, since images are no numbers and no record holds them, or where they
    show numbers from the records in the folder; ``drawings(data_home)`` those that need the data
    sets too, none where these are not at hand. ``nowhere`` is what the table calls the place None.

    ``by_method``: the table has a row for every method and a column for every place, for many
    methods at few places, which ``names`` calls by name; ``absent()`` names methods that cannot be
    run here, and what their rows say. ``compared`` makes other curves of those measured, such as
    differences, and ``over`` says what those rest on where it is not seeds.
    """

    name: str
    title: str
    text: str
    source: str
    study: Study
    measured: Callable[[Mapping[str, Any]], float | None]
    reported: Mapping[str, Mapping[float | None, Reported]]
    claims: Callable[[Curves], list[Claim]]
    xlabel: str
    ylabel: str
    place: str = "{:g}"
    number: str = "{:.2f}"
    log: bool = False
    nowhere: str = "any"
    pictures: "Callable[[Path], Sequence[Picture]]" = lambda folder: ()
    drawings: "Callable[[DataHome], Sequence[Picture]]" = lambda data_home: ()
    by_method: bool = False
    names: Mapping[float, str] = field(default_factory=dict)
    compared: Callable[[Curves], Curves] = lambda curves: curves
    over: str = ""
    absent: Callable[[], Mapping[str, str]] = dict

    @property
    def paper(self) -> str:
        """The paper's short name."""
        return self.name.split("/")[0]

    def rests_on(self, curves: Curves) -> str:
        """Say what every number of the table is made of."""
        return self.over or f"mean ± standard error of {curves.seeds_in_words()}"

    def name_of(self, x: float | None) -> str:
        """Return what the table calls a place on the axis."""
        return self.nowhere if x is None else self.names.get(x, self.place.format(x))

    def curves(self, folder: Path, size: Size) -> Curves:
        """Collect the records of these settings and seeds."""
        wanted = {key_of(setting): i for i, setting in enumerate(size.settings)}
        found: dict[int, dict[int, float]] = {}
        for record in read_records(self.study.path(folder)):
            i = wanted.get(key_of(record["setting"]))
            if i is None or record["seed"] not in size.each_seed:
                continue
            value = self.measured(record["measures"])
            if value is not None:
                found.setdefault(i, {})[record["seed"]] = value
        values = {}
        for i in sorted(found):
            setting = size.settings[i]
            of_seed = found[i]
            values[setting["method"], setting["x"]] = [of_seed[seed] for seed in sorted(of_seed)]
        return self.compared(Curves(values))

    def without_records(self, folder: Path, size: Size) -> str:
        """Say which runs of the study have no record; nothing, if all have one.

        Methods that cannot be run here are named by ``absent`` instead.
        """
        absent = self.absent()
        runs = [run for run in size.runs if run[0]["method"] not in absent]
        missing: dict[tuple[str, float | None], list[int]] = {}
        for setting, seed in self.study.missing(folder, size):
            if setting["method"] not in absent:
                missing.setdefault((setting["method"], setting["x"]), []).append(seed)
        if not missing:
            return ""
        by_method: dict[str, dict[str, list[str]]] = {}
        for (method, x), seeds in missing.items():
            words = _seeds_in_words(seeds, size.each_seed)
            by_method.setdefault(method, {}).setdefault(words, []).append(self.name_of(x))
        named = "; ".join(
            f"{method} at {', '.join(places)} ({words})"
            for method, parts in by_method.items()
            for words, places in parts.items()
        )
        n_missing = sum(map(len, missing.values()))
        return f"Incomplete: {n_missing} of {len(runs)} runs have no record: {named}."


def _seeds_in_words(seeds: Sequence[int], of: Sequence[int]) -> str:
    if len(seeds) == len(of):
        return "all seeds"
    if len(seeds) == 1:
        return f"seed {seeds[0]}"
    in_a_row = seeds[-1] - seeds[0] == len(seeds) - 1
    return f"seeds {seeds[0]} to {seeds[-1]}" if in_a_row else f"seeds {', '.join(map(str, seeds))}"
