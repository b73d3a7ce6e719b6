"""Rate-distortion curves: bits per value against the largest row error, drawn from the records."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kernelatoms.report import Picture
from reproduction.codec.methods import OURS, PLAIN, RIVALS, SZ3
from reproduction.codec.sizes import STUDIES
from reproduction.drawing import series_figure
from reproduction.store import read_records

_LITERAL = "A.7 literally, lambda"


def rate_pictures(data: str, folder: Path) -> list[Picture]:
    """Draw a data set's curves, and say which settings won."""
    measured = {
        (record["setting"]["method"], record["setting"]["x"]): record["measures"]
        for record in read_records(STUDIES[data].path(folder))
        if "bits" in record["measures"]
    }
    if not measured:
        return []
    points = {m: _points(measured, m) for m in (OURS, *RIVALS, *PLAIN)}
    points["A.7 literally"] = [
        (p["largest"], p["bits"])
        for (m, _), p in measured.items()
        if m.startswith(_LITERAL) and "zst" not in m
    ]
    lines = {
        method: ([x for x, _ in sorted(found)], [[bits] for _, bits in sorted(found)])
        for method, found in points.items()
        if found
    }
    figure = series_figure(
        lines, {}, {}, xlabel="largest row error / norm", ylabel="bits per value", log=True
    )
    return [Picture(figure, _caption(measured), _ALT)]


_ALT = (
    "Bits per value against the largest row error, both axes logarithmic, one plot per method; the "
    "table has the numbers."
)


def _points(measured: Mapping[Any, Mapping[str, Any]], method: str) -> list[tuple[float, float]]:
    found = {x: m for (name, x), m in measured.items() if name == method and x is not None}
    return [(found[x]["largest"], found[x]["bits"]) for x in sorted(found)]


def _caption(measured: Mapping[Any, Mapping[str, Any]]) -> str:
    """Say what the curves are, and which settings won."""
    parts = ["Bits per value against the largest row error that came out."]
    for x in (0.01, 0.05):
        for method in (OURS, SZ3, *PLAIN):
            setting = measured.get((method, x), {}).get("setting")
            if setting:
                parts.append(f"{method} at {x:.0%}: {setting}.")
    return " ".join(parts)
