"""The sentences of section V-A about Figs. 1 to 3 as claims; each can fail."""

from collections.abc import Mapping, Sequence

import numpy as np

from reproduction.figure import Claim, Curves
from reproduction.lkdl import reported
from reproduction.lkdl.reported import BEST, CORESET, KERNEL, KMEANS, LINEAR, TEXTS_SHARE
from reproduction.lkdl.usps import SAMPLING_OF, to_the_fourth

_OTHERS = [method for method in SAMPLING_OF if method != KMEANS]
# "Roughly the same": the largest error is at most this many times the smallest.
_ROUGHLY = 1.5
# "1%" is printed without decimals: half a point rounds to it.
_ABOUT_1 = 0.5
# "Not much impact": accuracies at all shares lie within so many points.
_NOT_MUCH = 0.5
# "Comparable, while slightly worse".
_SLIGHTLY = 0.3
_FASTER = 19
_HOW_FAST = reported.FIG_3B[KERNEL][60_000] / reported.FIG_3B[CORESET][60_000]


def sentences_1a(curves: Curves) -> list[Claim]:
    """Return the sentences about the approximation of the kernel matrix."""
    claims = []
    share = 0.1
    if len(curves.at(KMEANS, share)) and len(curves.at(BEST, share)):
        ours, best = curves.mean(KMEANS, share), curves.mean(BEST, share)
        claims.append(
            Claim(
                'V-A1: k-means "provides 98.5% accuracy in terms of the normalized approximation '
                'error, with only 10% of the samples": an error of 0.015 or less',
                ours <= 0.015,
                f"{ours:.4f}; the best error of that rank is {best:.4f}",
            )
        )
    places = curves.shared(*_OTHERS)
    if places:
        ratios = []
        for x in places:
            errors = [curves.mean(method, x) for method in _OTHERS]
            ratios.append(max(errors) / min(errors))
        claims.append(
            Claim(
                'V-A1: "All other methods perform roughly the same": the largest error is at most '
                f"{_ROUGHLY} times the smallest",
                max(ratios) <= _ROUGHLY,
                f"{min(ratios):.2f} to {max(ratios):.2f} times",
            )
        )
    return claims


def sentences_1b(curves: Curves) -> list[Claim]:
    """Return the sentences about the accuracy on clean digits."""
    claims = []
    for method, x in ((KERNEL, None), (KMEANS, TEXTS_SHARE)):
        if len(curves.at(method, x)) and len(curves.at(LINEAR, None)):
            gap = curves.mean(method, x) - curves.mean(LINEAR, None)
            claims.append(
                Claim(
                    'V-A1: "There is a gap of 1% between the results of linear KSVD and its '
                    f'kernel variants": {method} is {_ABOUT_1} points or more above it',
                    gap >= _ABOUT_1,
                    f"{gap:+.2f}",
                )
            )
    places = curves.shared(*SAMPLING_OF)
    if places:
        means = {m: float(np.mean([curves.mean(m, x) for x in places])) for m in SAMPLING_OF}
        claims.append(
            Claim(
                'V-A1: "k-means sampling again performs best": the highest mean over all shares',
                max(means, key=lambda method: means[method]) == KMEANS,
                ", ".join(f"{method} {mean:.2f}" for method, mean in means.items()),
            )
        )
    gains = _paired(curves.at(KMEANS, TEXTS_SHARE), curves.at(KERNEL, None))
    if len(gains) > 1:
        error = float(gains.std(ddof=1) / np.sqrt(len(gains)))
        claims.append(
            Claim(
                'V-A1: k-means "reaches classification accuracy of KKSVD, with only a fraction of '
                'the samples": with 20% it is not below by more than two standard errors',
                float(gains.mean()) >= -2 * error,
                f"{gains.mean():+.2f} ± {error:.2f}",
            )
        )
    places = curves.shared(KMEANS)
    if len(places) > 1:
        means_at = [curves.mean(KMEANS, x) for x in places]
        claims.append(
            Claim(
                'V-A1: the percent of samples "does not have much impact on the final '
                f'classification accuracy": within {_NOT_MUCH} points (k-means)',
                max(means_at) - min(means_at) <= _NOT_MUCH,
                f"{min(means_at):.2f} to {max(means_at):.2f}",
            )
        )
    return claims


def sentences_2(curves: Curves, numbers: Mapping[str, Mapping[float | None, float]]) -> list[Claim]:
    """Return the sentence about LKDL and KKSVD on corrupted digits, under both kernels."""
    most = max(abs(numbers[KERNEL][x] - numbers[CORESET][x]) for x in numbers[KERNEL])
    claims = []
    for lkdl, kernel in ((CORESET, KERNEL), (to_the_fourth(CORESET), to_the_fourth(KERNEL))):
        gaps = {
            x: curves.mean(lkdl, x) - curves.mean(kernel, x) for x in curves.shared(lkdl, kernel)
        }
        if gaps:
            claims.append(
                Claim(
                    'V-A1: "The performance of LKDL follows that of KKSVD with a only 20% of the '
                    f'training samples": {lkdl} is nowhere further from {kernel} than in the '
                    f"authors' files ({most:.2f} points)",
                    max(abs(gap) for gap in gaps.values()) <= most,
                    "Points above: " + ", ".join(f"{x:g}: {gap:+.2f}" for x, gap in gaps.items()),
                )
            )
    return claims


def sentences_3a(curves: Curves) -> list[Claim]:
    """Return the sentence about accuracies on MNIST."""
    places = curves.shared(LINEAR, CORESET, KERNEL)
    if not places:
        return []
    means = {m: [curves.mean(m, x) for x in places] for m in (LINEAR, CORESET, KERNEL)}
    return [
        Claim(
            'V-A2: "The accuracy of LKDL versus KKSVD is comparable, while slightly worse, due to '
            'the approximation, but still better than the linear version of KSVD": at most '
            f"{_SLIGHTLY} points below KKSVD, and above K-SVD",
            _not_below(means[CORESET], means[KERNEL], _SLIGHTLY)
            and all(a > b for a, b in zip(means[CORESET], means[LINEAR], strict=True)),
            "; ".join(
                f"{x:,.0f}: {lkdl - kernel:+.2f}, {lkdl - linear:+.2f}"
                for x, lkdl, kernel, linear in zip(
                    places, means[CORESET], means[KERNEL], means[LINEAR], strict=True
                )
            ),
        )
    ]


def sentences_3b(curves: Curves) -> list[Claim]:
    """Return the sentence about the time of LKDL and KKSVD."""
    largest = max(reported.N_TRAIN)
    if not (len(curves.at(KERNEL, largest)) and len(curves.at(CORESET, largest))):
        return []
    kernel, lkdl = curves.mean(KERNEL, largest), curves.mean(CORESET, largest)
    return [
        Claim(
            f'V-A2: "For training the entire database of MNIST, LKDL is {_FASTER}-times faster '
            f"that KKSVD\" (by the authors' files {_HOW_FAST:.0f} times)",
            kernel / lkdl >= _FASTER,
            f"{kernel / lkdl:.2f} times: {lkdl:.1f} s and {kernel:.1f} s. Our kernel K-SVD works "
            "with coordinates, not with n x n matrices",
        )
    ]


def _paired(these: np.ndarray, those: np.ndarray) -> np.ndarray:
    n = min(len(these), len(those))
    return these[:n] - those[:n]


def _not_below(these: Sequence[float], those: Sequence[float], margin: float) -> bool:
    return all(a >= b - margin for a, b in zip(these, those, strict=True))
