"""Claims about supervised dictionaries with and without LKDL; each can fail."""

from collections.abc import Mapping

import numpy as np

from reproduction.figure import Claim, Curves
from reproduction.lkdl.faces import SHOWN, our_weights
from reproduction.lkdl.fddl import OUR_L1
from reproduction.lkdl.fddl import OURS as FDDL_OURS
from reproduction.lkdl.reported import (
    DKSVD,
    FDDL,
    LC1,
    LC2,
    PAPERS_L1,
    PAPERS_RANK,
    TABLE_2,
    TABLE_3,
    chosen,
    on_raw,
    with_map,
)

# How far below the reported accuracies ours may lie: on faces, and on digits as in Figs. 1 and 3.
_CLOSE_FACES, _CLOSE_DIGITS = 0.5, 0.3
# What LKDL gains over LC-KSVD2 in the paper; over LC-KSVD1 it is 1.8.
_GAIN = 1.3
# What we ask of rows whose choices are made on training rows.
_LEAST_FDDL, _LEAST_FACES = 95.9, 96.3
# "Reaches a 20% difference for 1 atom per person": as a curve shows it, so about.
_ABOUT_20 = 15.0


def claims_table_2(curves: Curves) -> list[Claim]:
    """LKDL gains, and both are near the paper, with either lambda_1; so does a chosen kernel."""
    claims = []
    for x in (PAPERS_L1, OUR_L1):
        how = f" with lambda_1 = {x:g}"
        claims += _gain(curves, FDDL, x, x, how)
        for method, numbers in TABLE_2.items():
            claims += _near(curves, method, x, numbers[PAPERS_L1], _CLOSE_DIGITS, how)
    claims += _gain(curves, FDDL, OUR_L1, None, f" with lambda_1 = {OUR_L1:g}", mapped=FDDL_OURS)
    return claims + _at_least(curves, FDDL_OURS, _LEAST_FDDL)


def claims_table_3(curves: Curves, rank: int | None) -> list[Claim]:
    """LKDL gains, by as much as in the paper, and accuracies are near the paper's."""
    claims = []
    for method in (LC1, LC2):
        for linear in (on_raw(method), method):
            claims += _gain(curves, linear, None, rank, mapped=with_map(method))
            gains = _paired(curves, linear, None, with_map(method), rank)
            if len(gains):
                claims.append(
                    Claim(
                        'V-B2: LKDL "improves classification results by up to 1.8% and 1.3%": by '
                        f"{_GAIN} points or more over {linear}",
                        float(gains.mean()) >= _GAIN,
                        f"{gains.mean():+.2f}",
                    )
                )
    claims += _gain(curves, DKSVD, None, rank)
    for method in (LC1, LC2):
        for linear in (on_raw(method), method):
            claims += _near(curves, linear, None, TABLE_3[on_raw(method)][None], _CLOSE_FACES)
        mapped = with_map(method)
        claims += _near(curves, mapped, rank, TABLE_3[mapped][PAPERS_RANK], _CLOSE_FACES)
        claims += _at_least(curves, chosen(mapped), _LEAST_FACES)
    return claims


def claims_table_4(curves: Curves) -> list[Claim]:
    """LKDL gains; the paper's accuracies are of other images."""
    claims = []
    for rank, which in ((PAPERS_RANK, f"{PAPERS_RANK}"), (None, "all")):
        for method in (LC1, LC2, DKSVD):
            claims += _gain(curves, method, None, rank, f" with {which} components")
    return claims


def claims_4(curves: Curves) -> list[Claim]:
    """Codes of virtual samples have more of their weight on atoms of the right person."""
    claims = []
    for linear, mapped in _pairs_of_codes():
        shares = {
            name: (curves.mean(linear, x), curves.mean(mapped, x))
            for x, name in ((None, "all people"), (SHOWN, f"person {SHOWN}"))
            if len(curves.at(linear, x)) and len(curves.at(mapped, x))
        }
        if shares:
            claims.append(
                Claim(
                    'V-B2: "LC-KSVD alone will often choose atoms not corresponding with the given '
                    'class, while in LKDL, the contribution of these atoms is fairly small": '
                    f"{mapped} has a larger share of |coefficients| on atoms of the right person "
                    "than without LKDL, over all people and of the one that is drawn",
                    all(with_ > without for without, with_ in shares.values()),
                    ", ".join(
                        f"{name}: {without:.1f}% without, {with_:.1f}% with"
                        for name, (without, with_) in shares.items()
                    ),
                )
            )
    return claims


def claims_5a(curves: Curves) -> list[Claim]:
    """Half the atoms do with LKDL; the gap is widest where atoms are fewest."""
    claims = []
    for method in (LC1, LC2):
        for linear in (on_raw(method), method):
            claims += _enough(
                curves, linear, with_map(method), 7, 15, "atoms per person",
                'V-B2: "a smaller dictionary with 7 atoms per person achieves the same results of '
                'LC-KSVD alone with 15 atoms per person"',
            )  # fmt: skip
            gaps = _gaps(curves, linear, with_map(method))
            if 1 in gaps:
                shown = ", ".join(f"{x:g}: {gap:+.2f}" for x, gap in gaps.items())
                claims.append(
                    Claim(
                        'V-B2: the gap "reaches a 20% difference for 1 atom per person": '
                        f"{with_map(method)} is {_ABOUT_20:g} points or more above {linear}",
                        gaps[1] >= _ABOUT_20,
                        f"Points above: {shown}",
                    )
                )
    return claims


def claims_5b(curves: Curves) -> list[Claim]:
    """Half the nonzeros do with LKDL."""
    return [
        claim
        for method in (LC1, LC2) for linear in (on_raw(method), method)
        for claim in _enough(
            curves, linear, with_map(method), 15, 30, "nonzeros",
            'V-B2: LKDL "with a sparsity of 15 achieves a better accuracy than that of LC-KSVD '
            'alone with a sparsity of 30"',
        )
    ]  # fmt: skip


def _pairs_of_codes() -> list[tuple[str, str]]:
    pairs = [(method, with_map(method)) for method in (LC1, LC2)]
    return pairs + [(our_weights(linear), our_weights(mapped)) for linear, mapped in pairs]


def _paired(
    curves: Curves, linear: str, linear_at: float | None, mapped: str, mapped_at: float | None
) -> np.ndarray:
    """Return LKDL's gain in points, seed by seed."""
    without, with_ = curves.at(linear, linear_at), curves.at(mapped, mapped_at)
    n = min(len(without), len(with_))
    return with_[:n] - without[:n]


def _gain(
    curves: Curves,
    linear: str,
    linear_at: float | None,
    mapped_at: float | None,
    how: str = "",
    mapped: str = "",
) -> list[Claim]:
    mapped = mapped or with_map(linear)
    gains = _paired(curves, linear, linear_at, mapped, mapped_at)
    if len(gains) < 2:
        return []  # one seed has no error
    error = float(gains.std(ddof=1) / np.sqrt(len(gains)))
    return [
        Claim(
            f"{mapped} is above {linear}{how} by more than two standard errors of their difference",
            float(gains.mean()) > 2 * error,
            f"{gains.mean():+.2f} ± {error:.2f} points over {len(gains)} seeds",
        )
    ]


def _near(
    curves: Curves, method: str, x: float | None, theirs: float, margin: float, how: str = ""
) -> list[Claim]:
    if not len(curves.at(method, x)):
        return []
    mean = curves.mean(method, x)
    return [
        Claim(
            f"{method}{how}: within {margin} points of the authors' or above",
            mean >= theirs - margin,
            f"{mean:.2f} (theirs {theirs:.2f})",
        )
    ]


def _at_least(curves: Curves, method: str, least: float) -> list[Claim]:
    if not len(curves.at(method, None)):
        return []
    mean = curves.mean(method, None)
    return [Claim(f"{method}: {least} or more", mean >= least, f"{mean:.2f}")]


def _gaps(curves: Curves, linear: str, mapped: str) -> Mapping[float, float]:
    return {
        x: curves.mean(mapped, x) - curves.mean(linear, x) for x in curves.shared(linear, mapped)
    }


def _enough(
    curves: Curves, linear: str, mapped: str, few: int, many: int, what: str, sentence: str
) -> list[Claim]:
    if not (len(curves.at(mapped, few)) and len(curves.at(linear, many))):
        return []
    ours, theirs = curves.mean(mapped, few), curves.mean(linear, many)
    return [
        Claim(
            f"{sentence}: {mapped} with {few} {what} is not below {linear} with {many}",
            ours >= theirs,
            f"{ours:.2f} and {theirs:.2f}",
        )
    ]
