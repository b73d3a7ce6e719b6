"""Claims about Table 2, and about PlanetLab at other times; each can fail."""

from collections.abc import Mapping

from reproduction.figure import Claim, Curves
from reproduction.fksc.compression import (
    BEFORE,
    CD_UNIT,
    CHOSEN,
    CONSTANT,
    EXACT,
    MEAN,
    NEAREST,
    PCA,
    PENALTIES,
    inside,
    printed,
)
from reproduction.fksc.reported import CD, FKSC, KFMC, KSR, LPM, listed


def claims_table_2(
    curves: Curves, theirs: Mapping[str, Mapping[float | None, float]], larger_is_better: bool
) -> list[Claim]:
    """Ours against the paper's, its rivals, PCA and what one stored number does.

    ``theirs`` is empty where our signals are not the paper's.
    """
    sign = -1 if larger_is_better else 1
    word = "at least" if larger_is_better else "at most"
    claims = []
    ways = [(EXACT, "at its minimum"), (FKSC, "stopped as in the paper")]
    ways += [(inside(p), f"so stopped, and FKSC inside KSCDL at lambda {p:g}") for p in PENALTIES]
    ways += [(printed(p), f"so stopped, and KSCDL as printed at lambda {p:g}") for p in PENALTIES]
    for method, name in ways:
        claims += _against_paper(curves, method, name, theirs.get(FKSC, {}), sign, word)
    for penalty in PENALTIES:
        claims += _against(curves, inside(penalty), FKSC, sign, word)
    for rival in (CD, KFMC, KSR, LPM):
        claims += _against(curves, EXACT, rival, sign, word)
    for rival in (PCA, CD_UNIT):
        claims += _against(curves, CHOSEN, rival, sign, word)
    for way in (inside, printed):
        for penalty in PENALTIES:
            claims += _beyond_mean(curves, way(penalty), sign)
    for baseline in (CONSTANT, MEAN, NEAREST, BEFORE):
        claims += _against_baseline(curves, baseline, sign, word)
    return claims


def _against_paper(
    curves: Curves, method: str, name: str, theirs: Mapping[float | None, float], sign: int,
    word: str,
) -> list[Claim]:  # fmt: skip
    places = [x for x in curves.shared(method) if x in theirs]
    if not places:
        return []
    pairs = {x: f"{_short(curves.mean(method, x))} and {_short(theirs[x])}" for x in places}
    return [
        Claim(
            f"FKSC's problem {name}, with the paper's bandwidth: {word} the paper's FKSC at every "
            "ratio",
            all(sign * curves.mean(method, x) <= sign * theirs[x] for x in places),
            "Ours and the paper's: " + listed(pairs),
        )
    ]


def _against(curves: Curves, method: str, rival: str, sign: int, word: str) -> list[Claim]:
    places = curves.shared(method, rival)
    if not places:
        return []
    pairs = {x: (curves.mean(method, x), curves.mean(rival, x)) for x in places}
    return [
        Claim(
            f"{method}: {word} {rival} at every ratio",
            all(sign * ours <= sign * other for ours, other in pairs.values()),
            "Ours and the other's: "
            + listed({x: f"{_short(a)} and {_short(b)}" for x, (a, b) in pairs.items()}),
        )
    ]


def _against_baseline(curves: Curves, baseline: str, sign: int, word: str) -> list[Claim]:
    places = curves.shared(CHOSEN)
    if not places or not len(curves.at(baseline, None)):
        return []
    level = curves.mean(baseline, None)
    values = [curves.mean(CHOSEN, x) for x in places]
    return [
        Claim(
            f"{CHOSEN}: {word} {baseline}, at every ratio",
            all(sign * value <= sign * level for value in values),
            f"From {_short(min(values))} to {_short(max(values))}; the other has {_short(level)}",
        )
    ]


def _beyond_mean(curves: Curves, method: str, sign: int) -> list[Claim]:
    places = curves.shared(method)
    if not places or not len(curves.at(MEAN, None)):
        return []
    level = curves.mean(MEAN, None)
    values = {x: curves.mean(method, x) for x in places}
    return [
        Claim(
            f"{method}: better than the mean training column by at least a tenth, at every ratio",
            all(sign * value <= sign * (1 - 0.1 * sign) * level for value in values.values()),
            f"The mean column has {_short(level)}; "
            + listed({x: _short(value) for x, value in values.items()}),
        )
    ]


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4f}"


def claims_slices(curves: Curves) -> list[Claim]:
    """Codes against the slice before and against PCA, slice by slice."""
    claims = []
    for rival in (BEFORE, NEAREST, PCA):
        places = curves.shared(EXACT, rival)
        if not places:
            continue
        pairs = {x: (curves.mean(EXACT, x), curves.mean(rival, x)) for x in places}
        claims.append(
            Claim(
                f"{EXACT}: at most {rival}, at every slice",
                all(ours <= other for ours, other in pairs.values()),
                "Ours and the other's: "
                + listed({x: f"{a:.4f} and {b:.4f}" for x, (a, b) in pairs.items()}),
            )
        )
    return claims
