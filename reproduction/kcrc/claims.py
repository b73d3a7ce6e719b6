"""Claims about accuracies; each can fail."""

from collections.abc import Iterable, Mapping
from typing import Any

from reproduction.figure import Claim, Curves
from reproduction.kcrc import digits, faces
from reproduction.kcrc.direction import DTYPES, in_type
from reproduction.kcrc.faces import SHOWN, SIX, global_lcd
from reproduction.kcrc.methods import chosen
from reproduction.kcrc.reported import (
    CRC,
    CRC_LCD,
    DKSVD,
    GRAPH,
    IDENTITY,
    KCRC,
    KPCA,
    LCD,
    LCKSVD,
    PAPERS_MU,
    RANDOM,
    SRC,
    TABLE_1,
    UNIT,
    as_printed,
)

# Goals on Extended Yale B, and how far under the paper a projection may be.
_GOALS_1 = {CRC: 97.4, IDENTITY: 98.2}
_CLOSE = 0.5
# The paper finds all methods within "about 1%".
_ONE_LEVEL = 1.0
# "Fails" and "perfect" on data of one direction; chance is 50.
_FAILS, _PERFECT = 75.0, 100.0
# K "has slight impact" from here on, in points of accuracy.
_LARGE_ENOUGH = {"mnist": 100, "yaleb": 380}
_SLIGHT = 1.0
# Up to so many atoms a dictionary of faces counts as small.
_SMALL = 570


def listed(values: Mapping[Any, float], form: str = "{:.2f}") -> str:
    """Return numbers by name or place in one line."""
    return ", ".join(
        f"{key:g}: {form.format(value)}" if isinstance(key, float | int)
        else f"{key} {form.format(value)}"
        for key, value in values.items()
    )  # fmt: skip


def at_least(curves: Curves, method: str, x: float | None, goal: float) -> list[Claim]:
    """State that a method is at a goal, if it was run."""
    if not len(curves.at(method, x)):
        return []
    how = " with mu chosen" if x is None and method != SRC else ""
    mean = curves.mean(method, x)
    return [Claim(f"{method}{how} is at {goal:g} or above", mean >= goal, f"{mean:.2f}")]


def claims_table_1(curves: Curves) -> list[Claim]:
    """State the goals; projections near the paper or above it; all methods of one level."""
    claims = [c for method, goal in _GOALS_1.items() for c in at_least(curves, method, None, goal)]
    for x, which in ((None, "a chosen mu"), (PAPERS_MU, "the paper's mu")):
        gaps = {
            method: curves.mean(method, x) - TABLE_1[method][PAPERS_MU]
            for method in (IDENTITY, KPCA, RANDOM, GRAPH)
            if len(curves.at(method, x))
        }
        if gaps:
            claims.append(
                Claim(
                    f"with {which} every projection is within {_CLOSE:g} of the paper or above",
                    all(gap >= -_CLOSE for gap in gaps.values()),
                    "Points above: " + listed(gaps, "{:+.2f}"),
                )
            )
    claims += _claims_of_readings(curves)
    theirs = {m: curves.mean(m, x) for m in SIX for x in TABLE_1[m] if len(curves.at(m, x))}
    if len(theirs) > 1:
        claims.append(
            Claim(
                "with the paper's mu the six methods of Table 1 lie within about a point of each "
                "other",
                max(theirs.values()) - min(theirs.values()) <= _ONE_LEVEL,
                listed(theirs),
            )
        )
    return claims


def _claims_of_readings(curves: Curves) -> list[Claim]:
    """Take the text word by word, and ask what unit columns do alone."""
    claims = []
    gaps = {
        method: curves.mean(as_printed(method), PAPERS_MU) - TABLE_1[method][PAPERS_MU]
        for method in (IDENTITY, KPCA, RANDOM, GRAPH)
        if len(curves.at(as_printed(method), PAPERS_MU))
    }
    if gaps:
        claims.append(
            Claim(
                "as printed (unit columns, exp(-d / 2), 80 dimensions, the paper's mu) every "
                f"projection is within {_CLOSE:g} of the paper or above",
                all(gap >= -_CLOSE for gap in gaps.values()),
                "Points above: " + listed(gaps, "{:+.2f}"),
            )
        )
    if len(curves.at(UNIT, None)) and len(curves.at(IDENTITY, None)):
        scaled, as_they_are = curves.mean(UNIT, None), curves.mean(IDENTITY, None)
        claims.append(
            Claim(
                f"unit columns only rescale mu: with a chosen one, within {_CLOSE:g} of columns as "
                "they are",
                abs(scaled - as_they_are) <= _CLOSE,
                f"{scaled:.2f} and {as_they_are:.2f}",
            )
        )
    return claims


def claims_2_residuals(curves: Curves) -> list[Claim]:
    """Every method finds the right person."""
    found = {}
    for method in curves.methods:
        means = {x: curves.mean(method, x) for x in curves.shared(method)}
        found[method] = min(means, key=means.__getitem__)
    return [
        Claim(
            "every method has the smallest residual at the right person, the first",
            all(person == SHOWN for person in found.values()),
            "Smallest at person " + listed(found, "{:g}"),
        )
    ]


def claims_2_coefficients(curves: Curves) -> list[Claim]:
    """Identity and graph are as sparse as SRC, in the right person's coefficients."""
    shares = {m: curves.mean(m, SHOWN) for m in curves.methods}
    claims = []
    for method in (IDENTITY, GRAPH):
        if method in shares and CRC in shares:
            claims.append(
                Claim(
                    f"{method} has more of its coefficients at the right person than CRC",
                    shares[method] > shares[CRC],
                    "Percent of the sum of magnitudes: " + listed(shares, "{:.1f}"),
                )
            )
    return claims


def claims_3(curves: Curves) -> list[Claim]:
    """Kernels are perfect in every dimension and type of numbers, CRC fails in all."""
    claims = []
    for method in (KCRC, LCD, CRC):
        lowest, highest, places = [], [], 0
        for dtype in DTYPES:
            _, values = curves.line(in_type(method, dtype))
            lowest += [float(v.min()) for v in values]
            highest += [float(v.mean()) for v in values]
            places += len(values)
        if not places:
            continue
        if method == CRC:
            claims.append(
                Claim(
                    f"{CRC} fails (below {_FAILS:g}%, where chance is 50%) in every dimension and "
                    "type",
                    max(highest) < _FAILS,
                    f"Highest mean {max(highest):.1f}%",
                )
            )
        else:
            claims.append(
                Claim(
                    f"{method} is perfect in every draw, dimension and type",
                    min(lowest) >= _PERFECT,
                    f"Lowest of all draws {min(lowest):.2f}%",
                )
            )
    return claims


def claims_4a(curves: Curves) -> list[Claim]:
    """KCRC-LCD is best; locality gains over the atoms that it chooses from."""
    claims = _above(curves, LCD, (CRC_LCD, CRC, KCRC), curves.shared(LCD), "dictionary size")
    small = curves.shared(chosen(LCD))
    if small and len(curves.at(chosen(digits.ALL), None)):
        best = max(small, key=lambda x: curves.mean(chosen(LCD), x))
        ours, whole = curves.mean(chosen(LCD), best), curves.mean(chosen(digits.ALL), None)
        claims.append(
            Claim(
                "with mu chosen for both, a local dictionary beats coding over all 2,000 atoms "
                "that it is taken from",
                ours > whole,
                f"K = {best:g}: {ours:.2f}, all {whole:.2f}",
            )
        )
    return claims


def claims_5a(curves: Curves) -> list[Claim]:
    """KCRC-LCD is above the others while dictionaries are small, and the goals hold."""
    small = [x for x in curves.shared(LCD) if x <= _SMALL]
    claims = _above(curves, LCD, (SRC, CRC, KCRC, DKSVD, LCKSVD), small, "small dictionary size")
    for method, goal in ((CRC, _GOALS_1[CRC]), (KCRC, _GOALS_1[IDENTITY])):
        claims += at_least(curves, chosen(method), faces.N_ATOMS, goal)
    return claims


def claims_neighbours(curves: Curves, data: str) -> list[Claim]:
    """K matters little once it is large enough."""
    claims = []
    for n in (digits.GLOBAL if data == "mnist" else faces.GLOBAL)[::-1]:
        method = global_lcd(n)
        large = {
            x: curves.mean(method, x) for x in curves.shared(method) if x >= _LARGE_ENOUGH[data]
        }
        if len(large) > 1:
            claims.append(
                Claim(
                    f"of {n:,} atoms, K from {_LARGE_ENOUGH[data]} on changes the accuracy by less "
                    f"than {_SLIGHT:g} point",
                    max(large.values()) - min(large.values()) < _SLIGHT,
                    listed(large),
                )
            )
    return claims


def claims_8(curves: Curves) -> list[Claim]:
    """Local dictionaries read every digit better."""
    places = curves.shared(LCD, CRC)
    gaps = {x: curves.mean(LCD, x) - curves.mean(CRC, x) for x in places}
    return [
        Claim(
            f"{LCD} recognises every digit better than {CRC}",
            all(gap > 0 for gap in gaps.values()),
            "Points above: " + listed(gaps, "{:+.1f}"),
        )
    ]


def _above(
    curves: Curves, method: str, rivals: Iterable[str], places: list[float], what: str
) -> list[Claim]:
    """One method above each other, with the paper's mu, at all of these places."""
    claims = []
    for rival in rivals:
        shared = [x for x in curves.shared(method, rival) if x in places]
        if shared:
            gaps = {x: curves.mean(method, x) - curves.mean(rival, x) for x in shared}
            claims.append(
                Claim(
                    f"{method} is above {rival} at every {what}, with the paper's mu",
                    all(gap > 0 for gap in gaps.values()),
                    "Points above: " + listed(gaps, "{:+.2f}"),
                )
            )
    return claims
