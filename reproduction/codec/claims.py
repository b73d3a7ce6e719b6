"""Claims about the codec beside its rivals; each can fail."""

from collections.abc import Mapping, Sequence

import numpy as np

from reproduction.codec.methods import MODELS, OURS, PLAIN, RIVALS
from reproduction.codec.ratios import OURS_MEAN, PACKED, PAPER, WHOLE
from reproduction.codec.sizes import LITERAL
from reproduction.figure import Claim, Curves

#: Our bytes over those of the best rival, at most, by data set.
LIMITS = {"planetlab": 0.65, "traffic": 0.9, "pm25": 1.0, "syn360": 1.0}
#: The targets that the limits are stated for.
STATED = (0.01, 0.05)


def best_rival(curves: Curves, x: float, rivals: Sequence[str]) -> tuple[str, float] | None:
    """Return the rival with the fewest bytes at a target, and these; None if none was run."""
    sizes = {rival: curves.mean(rival, x) for rival in rivals if len(curves.at(rival, x))}
    if not sizes:
        return None
    best = min(sizes, key=lambda rival: sizes[rival])
    return best, sizes[best]


def beside_best(curves: Curves) -> Curves:
    """Return everybody's bytes over those of the best rival, target by target."""
    values: dict[tuple[str, float | None], list[float]] = {}
    for x in curves.places:
        best = None if x is None else best_rival(curves, x, RIVALS)
        if x is None or best is None:
            continue
        for method in curves.methods:
            if len(curves.at(method, x)):
                values[method, x] = (curves.at(method, x) / best[1]).tolist()
    return Curves(values)


def claims_bytes(curves: Curves, data: str) -> list[Claim]:
    """Ours takes at most so many of the best rival's bytes, and fewer than plain rounding."""
    claims = []
    for x in STATED:
        if not len(curves.at(OURS, x)):
            continue
        ours = curves.mean(OURS, x)
        limits = ((RIVALS, LIMITS[data], "the best rival's"), (PLAIN, 1.0, "plain rounding's"))
        for rivals, limit, whose in limits:
            best = best_rival(curves, x, rivals)
            if best is not None:
                claims.append(
                    Claim(
                        f"at {x:.0%} of every row {OURS} takes at most {limit:g} of {whose} bytes",
                        ours <= limit * best[1],
                        f"{ours:,.0f} bytes, {best[0]} {best[1]:,.0f}: {ours / best[1]:.3f}",
                    )
                )
    return claims


def claims_models(curves: Curves) -> list[Claim]:
    """Whatever model wins is the one used."""
    claims = []
    for x in curves.shared(OURS):
        alone = {m: curves.mean(m, x) for m in MODELS if m != OURS and len(curves.at(m, x))}
        if alone:
            best = min(alone, key=lambda m: alone[m])
            ours = curves.mean(OURS, x)
            claims.append(
                Claim(
                    f"at {x:.1%} {OURS} chooses a model within 2% of the best one",
                    ours <= 1.02 * alone[best],
                    f"{ours:,.0f} bytes, {best} {alone[best]:,.0f}",
                )
            )
    return claims


def claims_errors(curves: Curves) -> list[Claim]:
    """Whoever is asked for a bound holds it on every row; A.7 cannot be asked."""
    broken = [
        f"{method} at {x:.1%}: {curves.at(method, x).max():.4%}"
        for method in curves.methods if method not in LITERAL
        for x in curves.shared(method) if curves.at(method, x).max() > x
    ]  # fmt: skip
    n = sum(len(curves.shared(method)) for method in curves.methods if method not in LITERAL)
    return [
        Claim(
            "every row is within the bound, whoever stores it",
            not broken,
            "; ".join(broken) or f"{n} files, none with a row above its bound",
        )
    ]


def claims_ratios(curves: Curves) -> list[Claim]:
    """Real bytes are another ratio than the paper's; ours keeps more at a smaller error."""
    claims = []
    places = curves.shared(PAPER, WHOLE, PACKED, OURS_MEAN)
    if places:
        share = max(curves.mean(PACKED, x) / x for x in places)
        claims.append(
            Claim(
                "in real bytes A.7's ratio is less than a tenth of the one that the paper counts",
                share < 0.1,
                f"{_listed({x: curves.mean(PACKED, x) for x in places})} at best",
            )
        )
        claims.append(
            Claim(
                "with every column within A.7's mean error, our file is smaller than A.7's",
                all(curves.mean(OURS_MEAN, x) > curves.mean(PACKED, x) for x in places),
                f"ratios {_listed({x: curves.mean(OURS_MEAN, x) for x in places})}",
            )
        )
    return claims


def _listed(values: Mapping[float, float]) -> str:
    return ", ".join(f"{x:.1f}: {np.round(value, 2):g}" for x, value in values.items())
