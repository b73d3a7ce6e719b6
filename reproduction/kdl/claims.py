"""Claims about the figures; each can fail."""

from reproduction.figure import Array, Claim, Curves
from reproduction.kdl.one_class import (
    EXACT_ROWS,
    EXACT_SUMS,
    KERNEL_SEEN,
    OURS_ROWS,
    OURS_SUMS,
    PCA_SEEN,
)
from reproduction.kdl.reported import (
    CLASSWISE,
    JOINT,
    KERNEL,
    KERNEL_PRINTED,
    KERNEL_PUBLISHED,
    KERNEL_SWAPPED,
    LINEAR,
    LINEAR_1,
    LINEAR_PRINTED,
    MOD,
    PCA,
)
from reproduction.kdl.synthetic import (
    HOMOGENEOUS,
    WIDE,
)
from reproduction.kdl.usps import (
    KERNEL_OBSERVED,
    LINEAR_OBSERVED,
)

# Beyond this many terms kernel PCA has the advantage: its components are the best subspace, and
# the atoms span one of 300 dimensions.
_FEW_TERMS = 100


def claims_1(curves: Curves) -> list[Claim]:
    """Say whether few atoms leave less than few components."""
    claims = []
    for atoms, components, which in (
        (KERNEL, PCA, "digits not seen"), (KERNEL_SEEN, PCA_SEEN, "digits learned from"),
        (KERNEL_SWAPPED, PCA, "digits not seen (atoms learned as printed, 300 from 500 samples)"),
    ):  # fmt: skip
        places = [m for m in curves.shared(atoms, components) if m <= _FEW_TERMS]
        if places:
            claims.append(
                Claim(
                    f"m atoms leave less of {which} than m kernel principal components, for every "
                    f"m up to {places[-1]:g} and every class",
                    all(_below(curves.at(atoms, m), curves.at(components, m)) for m in places),
                    "Atoms and components leave, in percent: "
                    + ", ".join(
                        f"m = {m:g}: {curves.mean(atoms, m):.1f} and "
                        f"{curves.mean(components, m):.1f}"
                        for m in places
                    ),
                )
            )
    return claims


def claims_4a(curves: Curves) -> list[Claim]:
    """Say which dictionaries tell the circles apart."""
    claims = []
    for method, expected in (
        (KERNEL, True), (KERNEL_PUBLISHED, True), (LINEAR, False), (LINEAR_1, False),
        (HOMOGENEOUS, False),
    ):  # fmt: skip
        smallest = curves.at(method, 0.0)
        if len(smallest):
            separates = smallest > 0
            claims.append(
                Claim(
                    f"{method}: the error ratio {'separates' if expected else 'does not separate'} "
                    f"the classes on every point of both circles{', in every draw' * expected}",
                    bool(separates.all()) if expected else not separates.any(),
                    f"Smallest margins {', '.join(f'{value:+.2f}' for value in smallest)} decades, "
                    f"median margin {curves.mean(method, 0.5):+.2f}",
                )
            )
    if len(curves.at(WIDE, 0.0)) and len(curves.at(WIDE, 0.01)) and len(curves.at(KERNEL, 0.0)):
        smallest = curves.at(WIDE, 0.0)
        claims.append(
            Claim(
                f"{WIDE}: at least 99% of the points are on the right side in every draw, and the "
                "smallest margin is below that of radii 1 and 2 in the mean",
                bool((curves.at(WIDE, 0.01) > 0).all())
                and bool(smallest.mean() < curves.mean(KERNEL, 0.0)),
                f"Smallest margins {', '.join(f'{value:+.2f}' for value in smallest)} decades",
            )
        )
    return claims


def claims_4b(curves: Curves) -> list[Claim]:
    """Say whether projections change along the parabola."""
    places = curves.shared(KERNEL, LINEAR)
    pairs = [(x, curves.mean(KERNEL, x), curves.mean(LINEAR, x)) for x in places]
    return [
        Claim(
            "projections on the kernel's atoms change along the parabola more than those on "
            "linear atoms do",
            all(kernel > linear for _, kernel, linear in pairs),
            ", ".join(
                f"Atom {x:g}: {kernel:.0f}% (linear {linear:.0f}%)" for x, kernel, linear in pairs
            ),
        )
    ]


def claims_5(curves: Curves, start: float, what: str) -> list[Claim]:
    """Say which methods are above which from a level of corruption on."""
    pairs = [(m, rival) for rival in (LINEAR, JOINT, CLASSWISE) for m in (KERNEL, MOD)]
    pairs += [(LINEAR_OBSERVED, LINEAR), (KERNEL_OBSERVED, KERNEL)]
    pairs += [(KERNEL_PRINTED, LINEAR_PRINTED), (KERNEL_SWAPPED, KERNEL_PRINTED)]
    claims = []
    for method, rival in pairs:
        places = [x for x in curves.shared(method, rival) if x >= start]
        if places:
            gaps = {x: curves.mean(method, x) - curves.mean(rival, x) for x in places}
            claims.append(
                Claim(
                    f"{method} is above {rival} at every {what} from {start:g} on",
                    all(gap > 0 for gap in gaps.values()),
                    "Points above: " + ", ".join(f"{x:g}: {gap:+.2f}" for x, gap in gaps.items()),
                )
            )
    return claims


def claims_sweeps(curves: Curves) -> list[Claim]:
    """Say how the updates and starts compare."""
    claims = []
    for ours, exact in ((OURS_ROWS, EXACT_ROWS), (OURS_SUMS, EXACT_SUMS)):
        if curves.shared(ours, exact)[:1] == [1]:
            claims.append(
                Claim(
                    f'after one pass "{ours}" leaves less than "{exact}", for every class',
                    _below(curves.at(ours, 1), curves.at(exact, 1)),
                    f"{curves.mean(ours, 1):.2f}% and {curves.mean(exact, 1):.2f}% of k(z, z)",
                )
            )
        for x in (20, 80):
            if ours == OURS_ROWS and x in curves.shared(ours, exact):
                gap = 100 * (curves.mean(exact, x) / curves.mean(ours, x) - 1)
                claims.append(
                    Claim(
                        f'after {x} passes "{ours}" and "{exact}" differ by at most 5% in the '
                        "mean over classes",
                        abs(gap) <= 5,
                        f"{curves.mean(ours, x):.2f}% and {curves.mean(exact, x):.2f}%: the exact "
                        f"sweep leaves {gap:+.1f}%",
                    )
                )
    for rows, sums in ((OURS_ROWS, OURS_SUMS), (EXACT_ROWS, EXACT_SUMS)):
        places = curves.shared(rows, sums)
        if places:
            claims.append(
                Claim(
                    f'"{rows}" leaves less than "{sums}" after every number of passes shown, for '
                    "every class",
                    all(_below(curves.at(rows, x), curves.at(sums, x)) for x in places),
                    f"After {places[-1]:g} passes {curves.mean(rows, places[-1]):.2f}% and "
                    f"{curves.mean(sums, places[-1]):.2f}%",
                )
            )
    return claims


def _below(these: Array, those: Array) -> bool:
    """Tell whether these values are below those, seed by seed, as far as both were run."""
    n = min(len(these), len(those))
    return bool((these[:n] < those[:n]).all())
