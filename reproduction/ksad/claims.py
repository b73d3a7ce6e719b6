"""Claims of the paper about K-SAD, and ours; each can fail."""

import numpy as np

from reproduction.figure import Claim, Curves
from reproduction.ksad.ablation import (
    DATA,
    DEFAULT_BASE,
    LITERAL_BASE,
    NEAREST_MAPPED,
    changed,
    rows_of,
)
from reproduction.ksad.preimages import DISTANCE, FIXED_POINT, PLACES
from reproduction.ksad.readings import PLACES as SPLIT_NAMES
from reproduction.ksad.reported import (
    ALL_DIGITS,
    DEFAULTS,
    DEFAULTS_ATOMS,
    FDDL,
    FEW_DIGITS,
    KERNEL_KSVD,
    L1,
    LKDL,
    MAP_FDDL,
    METRIC_2,
    METRIC_8,
    MNIST_SECONDS,
    NEAREST,
    OMP,
    PUBLISHED,
    TIMES_FASTER,
    Numbers,
)

# How far below a reported accuracy ours may lie.
_CLOSE = 0.3
_RIVALS = (OMP, L1, KERNEL_KSVD, FDDL, MAP_FDDL, LKDL)
# A change of the defaults that gains more than this on average would be the better default.
_BETTER = 0.2


def claims_faces(curves: Curves, reported: Numbers, least: float) -> list[Claim]:
    """K-SAD is near the paper's number, and above its rivals."""
    ours = (PUBLISHED, DEFAULTS, DEFAULTS_ATOMS, METRIC_8, METRIC_2)
    claims = _near(curves, ours, None, reported[PUBLISHED][None])
    claims += _at_least(curves, None, least)
    for method in (PUBLISHED, DEFAULTS):
        for rival in (NEAREST, *_RIVALS):
            claims += _above(curves, method, rival, None)
    return claims


def claims_seconds(curves: Curves) -> list[Claim]:
    """Learning and classification take less time than those of the rivals that were timed."""
    return [
        claim
        for method in (PUBLISHED, DEFAULTS) for rival in (KERNEL_KSVD, FDDL, MAP_FDDL)
        for claim in _faster(curves, method, rival, None)
    ]  # fmt: skip


def claims_digits(curves: Curves, reported: Numbers, least: float) -> list[Claim]:
    """K-SAD is near the paper's number, and above a low-rank map with K-SVD."""
    claims = _near(
        curves, (PUBLISHED, DEFAULTS, DEFAULTS_ATOMS), ALL_DIGITS, reported[PUBLISHED][ALL_DIGITS]
    )
    claims += _at_least(curves, ALL_DIGITS, least)
    for method in (PUBLISHED, DEFAULTS_ATOMS, DEFAULTS):
        for rival in (NEAREST, LKDL):
            for x in (FEW_DIGITS, ALL_DIGITS):
                claims += _above(curves, method, rival, x, f" with {x:,} training digits")
    return claims


def claims_digits_seconds(curves: Curves) -> list[Claim]:
    """K-SAD is faster than a low-rank map with K-SVD: 106 times in the table, 55 in the text."""
    claims = []
    for x in (FEW_DIGITS, ALL_DIGITS):
        for method in (PUBLISHED, DEFAULTS_ATOMS):
            claims += _faster(curves, method, LKDL, x, f" with {x:,} training digits")
    if len(curves.at(PUBLISHED, ALL_DIGITS)) and len(curves.at(LKDL, ALL_DIGITS)):
        ratio = curves.mean(LKDL, ALL_DIGITS) / curves.mean(PUBLISHED, ALL_DIGITS)
        theirs = MNIST_SECONDS[LKDL][ALL_DIGITS] / MNIST_SECONDS[PUBLISHED][ALL_DIGITS]
        claims.append(
            Claim(
                f"{PUBLISHED} is {TIMES_FASTER:g} times faster than our own {LKDL}",
                ratio >= TIMES_FASTER,
                f"{ratio:.2f} times (the paper's table: {theirs:.0f} times)",
            )
        )
    for method in (PUBLISHED, DEFAULTS_ATOMS):
        if len(curves.at(method, ALL_DIGITS)):
            seconds, theirs = curves.mean(method, ALL_DIGITS), MNIST_SECONDS[PUBLISHED][ALL_DIGITS]
            claims.append(
                Claim(
                    f"{method} takes no longer than the paper's {theirs:g} s (another machine)",
                    seconds <= theirs,
                    f"{seconds:.1f} s",
                )
            )
    return claims


def claims_preimages(curves: Curves) -> list[Claim]:
    """Atoms have pre-images, and descent comes nearer than distances to neighbours do."""
    claims = []
    for x, data in PLACES.items():
        fixed, distance = (curves.at(method, x) for method in (FIXED_POINT, DISTANCE))
        if len(fixed):
            claims.append(
                Claim(
                    f"{data}: an image leaves less than half of the atom that it represents",
                    float(fixed.mean()) < 50,
                    f"{fixed.mean():.1f}% left by the fixed point",
                )
            )
        if len(distance):
            claims.append(
                Claim(
                    f"{data}: images from distances, as in the paper, are nearer to their atoms "
                    "than nothing is",
                    float(distance.mean()) < 100,
                    f"{distance.mean():.1f}% left",
                )
            )
    return claims


def claims_readings(curves: Curves, theirs: float) -> list[Claim]:
    """Check whether a reading of the text gives the paper's number, on some split."""
    claims = []
    for words, kernel in (("some reading", ""), ("some reading with the printed kernel", "^8")):
        found = {
            (method, x): curves.mean(method, x)
            for method in curves.methods for x in curves.shared(method)
            if method not in (NEAREST, DEFAULTS) and kernel in method
        }  # fmt: skip
        if found:
            method, x = best = max(found, key=lambda at: found[at])
            claims.append(
                Claim(
                    f"On some split {words} is within {_CLOSE} points of the paper's {theirs:.2f} "
                    "or above",
                    found[best] >= theirs - _CLOSE,
                    f"The best of {len(found)}: {SPLIT_NAMES[x]}, {method!r}: {found[best]:.2f}",
                )
            )
    return claims


# The parts of the method --------------------------------------------------------------------------


def claims_parts(curves: Curves) -> list[Claim]:
    """Check that the rotation alone changes nothing; which parts gain is for the data to say."""
    return [*_identities(curves), *_parts_of_the_paper(curves), *_defaults(curves)]


def _identities(curves: Curves) -> list[Claim]:
    """Check that without threshold and term a square orthonormal dictionary turns rows, no more."""
    learned = changed(LITERAL_BASE, "no threshold, no term")
    gaps = {
        DATA[x]: curves.above(NEAREST_MAPPED, [learned]).at(learned, x)
        for x in curves.shared(learned, NEAREST_MAPPED)
    }
    if not gaps:
        return []
    return [
        Claim(
            f"without threshold and term, 20 learned passes are {NEAREST_MAPPED!r} on every split",
            all(bool((gap == 0).all()) for gap in gaps.values()),
            "Largest difference: "
            + ", ".join(f"{data} {abs(gap).max():.2f}" for data, gap in gaps.items()),
        )
    ]


def _parts_of_the_paper(curves: Curves) -> list[Claim]:
    """Check that threshold and term gain, as the paper has it, and that our metric does."""
    claims = []
    for change, words, sign in (
        ("threshold 0", "the threshold gains", -1),
        ("no term", "the discriminative term gains", -1),
        ("threshold on new rows", "a threshold on test codes too gains", 1),
        ("scatter matrices", "scatter matrices in place of numbers gain", 1),
        ("within-class metric", "the within-class metric (our addition) gains", 1),
        ("correlation", "comparing codes by angle gains", 1),
    ):
        method = changed(LITERAL_BASE, change)
        gaps = curves.above(LITERAL_BASE, [method])
        parts = {DATA[x]: sign * gaps.at(method, x) for x in gaps.places if x is not None}
        if parts:
            claims.append(
                Claim(
                    f"As published, {words} on every data set, by more than two standard errors",
                    all(_clear(gap) for gap in parts.values()),
                    _points(parts),
                )
            )
    return claims


def _defaults(curves: Curves) -> list[Claim]:
    claims = []
    gaps = curves.above(LITERAL_BASE, [DEFAULT_BASE])
    parts = {DATA[x]: gaps.at(DEFAULT_BASE, x) for x in gaps.places if x is not None}
    if parts:
        claims.append(
            Claim(
                "Our defaults gain on the published method on every data set, by more than two "
                "standard errors",
                all(_clear(gap) for gap in parts.values()),
                _points(parts),
            )
        )
    changes = curves.above(DEFAULT_BASE, rows_of(DEFAULT_BASE))
    everywhere = curves.shared(DEFAULT_BASE)
    means = {
        method: float(np.mean([changes.mean(method, x) for x in everywhere]))
        for method in changes.methods
        if changes.shared(method) == everywhere
    }
    if means:
        best = max(means, key=lambda method: means[method])
        claims.append(
            Claim(
                f"No change of one default gains more than {_BETTER} points on average over the "
                "data sets",
                means[best] <= _BETTER,
                f"The best is {best!r}: {means[best]:+.2f}",
            )
        )
    return claims


def _clear(gaps: np.ndarray) -> bool:
    """Tell whether paired differences are above 0, by two standard errors where there are some."""
    error = gaps.std(ddof=1) / np.sqrt(len(gaps)) if len(gaps) > 1 else 0.0
    return float(gaps.mean()) > 2 * float(error)


def _points(parts: dict[str, np.ndarray]) -> str:
    return "Points: " + ", ".join(f"{data} {gap.mean():+.2f}" for data, gap in parts.items())


# Of tables ----------------------------------------------------------------------------------------


def _near(curves: Curves, methods: tuple[str, ...], x: float | None, theirs: float) -> list[Claim]:
    return [
        Claim(
            f"{method}: within {_CLOSE} points of the authors' K-SAD or above",
            curves.mean(method, x) >= theirs - _CLOSE,
            f"{curves.mean(method, x):.2f} (theirs {theirs:.2f})",
        )
        for method in methods if len(curves.at(method, x))
    ]  # fmt: skip


def _at_least(curves: Curves, x: float | None, least: float) -> list[Claim]:
    found = {m: curves.mean(m, x) for m in (DEFAULTS, DEFAULTS_ATOMS) if len(curves.at(m, x))}
    if not found:
        return []
    best = max(found, key=lambda method: found[method])
    return [
        Claim(
            f"Our defaults, with their own or the paper's number of atoms: {least} or more",
            found[best] >= least,
            f"{best}: {found[best]:.2f}",
        )
    ]


def _above(curves: Curves, method: str, rival: str, x: float | None, how: str = "") -> list[Claim]:
    gaps = curves.above(rival, [method]).at(method, x)
    if not len(gaps):
        return []
    return [Claim(f"{method} is above {rival}{how}", float(gaps.mean()) > 0, f"{gaps.mean():+.2f}")]


def _faster(curves: Curves, method: str, rival: str, x: float | None, how: str = "") -> list[Claim]:
    if not (len(curves.at(method, x)) and len(curves.at(rival, x))):
        return []
    ours, theirs = curves.mean(method, x), curves.mean(rival, x)
    return [
        Claim(
            f"{method} is faster than {rival}{how}", ours < theirs, f"{ours:.2f} and {theirs:.2f} s"
        )
    ]
