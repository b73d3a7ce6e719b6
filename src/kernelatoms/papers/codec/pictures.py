"""Rate-distortion curves: bits a value against the largest row error, drawn from the records."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from kernelatoms.papers.codec.methods import OURS, PLAIN, RIVALS, SZ3
from kernelatoms.papers.codec.sizes import STUDIES
from kernelatoms.papers.store import read_records
from kernelatoms.report import COLOURS, GREY, Picture, plain_axes

_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<")
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
    figure = Figure(figsize=(7.5, 4.6), layout="constrained")
    ax = figure.subplots()
    for i, method in enumerate(m for m in (OURS, *RIVALS, *PLAIN) if _points(measured, m)):
        colour = GREY if i >= len(COLOURS) else COLOURS[i]
        largest, bits = zip(*_points(measured, method), strict=True)
        ax.plot(
            largest, bits, color=colour, marker=_MARKERS[i % len(_MARKERS)], markersize=5,
            linewidth=2.2 if method == OURS else 1.2, label=method,
        )  # fmt: skip
    raw = [p for (m, _), p in measured.items() if m.startswith(_LITERAL) and "zst" not in m]
    if raw:
        ax.plot(
            [p["largest"] for p in raw], [p["bits"] for p in raw], "kx", label="A.7 literally"
        )  # fmt: skip
    ax.set(xscale="log", yscale="log", xlabel="largest row error / norm", ylabel="bits a value")
    ax.legend(fontsize=8, frameon=False)
    plain_axes(ax)
    return [Picture(figure, _caption(measured), _ALT)]


_ALT = (
    "Bits a value against the largest row error, both axes logarithmic, one line a method; the "
    "table has the numbers."
)


def _points(measured: Mapping[Any, Mapping[str, Any]], method: str) -> list[tuple[float, float]]:
    found = {x: m for (name, x), m in measured.items() if name == method and x is not None}
    return [(found[x]["largest"], found[x]["bits"]) for x in sorted(found)]


def _caption(measured: Mapping[Any, Mapping[str, Any]]) -> str:
    """Say what the curves are, and which settings won."""
    parts = ["Bits a value against the largest row error that came out."]
    for x in (0.01, 0.05):
        for method in (OURS, SZ3, *PLAIN):
            setting = measured.get((method, x), {}).get("setting")
            if setting:
                parts.append(f"{method} at {x:.0%}: {setting}.")
    return " ".join(parts)
