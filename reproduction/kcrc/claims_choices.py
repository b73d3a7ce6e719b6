"""Claims about the library's defaults; each can fail."""

from collections.abc import Sequence

import numpy as np

from reproduction.figure import Claim, Curves
from reproduction.kcrc.choices import ALPHAS, DATA, name

_ALPHA = 0.01
# Points that a choice may lose against one made with the test rows in view.
_SLACK = 1.0


def claims_mu(curves: Curves) -> list[Claim]:
    """Ask whether the chosen mu is near the best, and columns the better form under a kernel."""
    lost = {}
    for method in curves.methods:
        tried = [curves.mean(method, x) for x in curves.places if len(curves.at(method, x))]
        if len(tried) > 1 and len(curves.at(method, None)):
            lost[method] = max(tried) - curves.mean(method, None)
    worst = max(lost, key=lambda method: lost[method], default="")
    better = {
        data: curves.mean(columns, None) - curves.mean(space, None)
        for data in DATA
        for columns, space in [(name("KCRC, columns", data), name("KCRC, feature space", data))]
        if len(curves.at(columns, None)) and len(curves.at(space, None))
    }
    return [
        Claim(
            f"the chosen mu loses at most {_SLACK:g} against the best of all tried, which knows "
            "the test rows",
            all(loss <= _SLACK for loss in lost.values()),
            f"mean {np.mean(list(lost.values())):.2f}, most {lost[worst]:.2f} ({worst})"
            if lost
            else "",
        ),
        Claim(
            "columns of kernel values classify better than feature space on average, mu chosen",
            bool(better) and float(np.mean(list(better.values()))) > 0,
            ", ".join(f"{data}: {gain:+.2f}" for data, gain in better.items()),
        ),
    ]


def claims_alpha(curves: Curves) -> list[Claim]:
    """Ask whether another alpha loses less on average."""
    return [_least_loss(curves, ALPHAS, _ALPHA, "alpha", curves.methods)]


def _least_loss(
    curves: Curves, choices: Sequence[float], default: float, what: str, methods: Sequence[str]
) -> Claim:
    losses: dict[float, list[float]] = {x: [] for x in choices}
    for method in methods:
        there = [x for x in choices if len(curves.at(method, x))]
        best = max((curves.mean(method, x) for x in there), default=0.0)
        for x in there:
            losses[x].append(best - curves.mean(method, x))
    mean = {x: float(np.mean(lost)) for x, lost in losses.items() if lost}
    return Claim(
        f"{what} = {default:g} loses least against the best of each row, on average",
        bool(mean) and min(mean, key=lambda x: mean[x]) == default,
        ", ".join(f"{x:g}: {loss:.2f}" for x, loss in mean.items()),
    )
