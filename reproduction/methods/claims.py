"""Claims: the default is as good as a support vector machine on tables; and summaries."""

from collections.abc import Callable, Sequence

import numpy as np

from reproduction.figure import Claim, Curves
from reproduction.methods.classifiers import BASELINES, OURS, SVM
from reproduction.methods.data import BUNDLED, CLEAN, CONDITIONS, IMAGES, MADE
from reproduction.methods.study import place_of

DEFAULT = next(iter(OURS))
TABLES = (*BUNDLED, *MADE)
#: Columns of the summary, from here on: the median gap under every condition, then ranks.
SUMMARY_PLACES = (*(f"tables, {condition}" for condition in CONDITIONS), "images, clean")


def only(data: Sequence[str], condition: str) -> Callable[[Curves], Curves]:
    """Return what keeps these data sets under one condition, numbered as they are listed."""
    wanted = {place_of(name, condition): i for i, name in enumerate(data)}

    def kept(curves: Curves) -> Curves:
        return Curves(
            {
                (method, wanted[int(x)]): curves.at(method, x).tolist()
                for method in curves.methods
                for x in curves.places
                if x is not None and int(x) in wanted and len(curves.at(method, x))
            }
        )

    return kept


def gaps(curves: Curves, method: str, data: Sequence[str], condition: str) -> list[float]:
    """Return how far a method is above the support vector machine, one number per data set."""
    found = []
    for name in data:
        x = place_of(name, condition)
        if len(curves.at(method, x)) and len(curves.at(SVM, x)):
            found.append(curves.mean(method, x) - curves.mean(SVM, x))
    return [gap for gap in found if np.isfinite(gap)]


def _median(values: Sequence[float]) -> list[float]:
    return [float(np.median(values))] if len(values) else []


def summary(curves: Curves) -> Curves:
    """Return the median gap to the support vector machine, in points, for groups of data."""
    parts = [(TABLES, condition) for condition in CONDITIONS] + [(tuple(IMAGES), CLEAN)]
    return Curves(
        {
            (method, i): _median(gaps(curves, method, data, condition))
            for method in curves.methods
            for i, (data, condition) in enumerate(parts)
            if gaps(curves, method, data, condition)
        }
    )


def ranks(curves: Curves) -> Curves:
    """Return the mean rank of every method among all, 1 the best, on tables and on images."""
    values: dict[tuple[str, float | None], list[float]] = {}
    for i, data in enumerate((TABLES, tuple(IMAGES))):
        for name in data:
            x = place_of(name, CLEAN)
            means = {m: curves.mean(m, x) for m in curves.methods if len(curves.at(m, x))}
            means = {m: mean for m, mean in means.items() if np.isfinite(mean)}
            for method, mean in means.items():
                above = sum(other > mean for other in means.values())
                equal = sum(other == mean for other in means.values())
                values.setdefault((method, i), []).append(above + (equal + 1) / 2)
    return Curves(values)


def medians(curves: Curves) -> Curves:
    """Return the median over data sets of what was measured on clean rows: tables, images."""
    values: dict[tuple[str, float | None], list[float]] = {}
    for method in curves.methods:
        for i, data in enumerate((TABLES, tuple(IMAGES))):
            places = [place_of(name, CLEAN) for name in data]
            means = [curves.mean(method, x) for x in places if len(curves.at(method, x))]
            if found := _median([mean for mean in means if np.isfinite(mean)]):
                values[method, i] = found
    return Curves(values)


def claims_summary(curves: Curves) -> list[Claim]:
    """Check that the default is as good as the machine in the median, corrupted or not."""
    claims = []
    for i, name in enumerate(SUMMARY_PLACES[:-1]):
        found = curves.at(DEFAULT, i)
        if len(found):
            claims.append(
                Claim(
                    f"{name}: {DEFAULT} is at most half a point below the RBF-SVM in the median",
                    bool(found[0] >= -0.5),
                    f"{found[0]:+.2f} points",
                )
            )
    return claims


def claims_of(data: Sequence[str]) -> Callable[[Curves], list[Claim]]:
    """Return what checks that the default is nowhere 3 points below the machine."""

    def claims(curves: Curves) -> list[Claim]:
        places = [x for x in curves.shared(DEFAULT, SVM) if np.isfinite(curves.mean(DEFAULT, x))]
        if not places:
            return []
        lag = {data[int(x)]: curves.mean(DEFAULT, x) - curves.mean(SVM, x) for x in places}
        worst = min(lag, key=lambda name: lag[name])
        return [
            Claim(
                f"{DEFAULT} is nowhere 3 points below the RBF-SVM",
                lag[worst] > -3,
                f"at worst {lag[worst]:+.1f} points, on {worst}",
            )
        ]

    return claims


def claims_images(curves: Curves) -> list[Claim]:
    """Check that something of ours is as good as every baseline, image set by image set."""
    lead = {}
    for i, name in enumerate(IMAGES):
        ours, theirs = (
            [curves.mean(m, i) for m in methods if np.isfinite(curves.at(m, i)).any()]
            for methods in (OURS, BASELINES)
        )
        if ours and theirs:
            lead[name] = max(ours) - max(theirs)
    if not lead:
        return []
    worst = min(lead, key=lambda name: lead[name])
    return [
        Claim(
            "on every image set one of ours is at least as good as every baseline",
            lead[worst] >= 0,
            f"the least lead of our best is {lead[worst]:+.1f} points, on {worst}",
        )
    ]
