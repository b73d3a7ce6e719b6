"""Claims about times and memory; each can fail."""

from reproduction.figure import Claim, Curves
from reproduction.kcrc.claims import listed
from reproduction.kcrc.reported import CRC, KCRC, LCD, SRC, TABLE_4
from reproduction.kcrc.speed import N_OWN


def claims_table_4(curves: Curves, data: str) -> list[Claim]:
    """SRC slowest, as in the paper; all faster than there; and the paper's order when batched."""
    claims = []
    at_one = {m: curves.mean(m, 1) for m in (LCD, KCRC, CRC, SRC) if len(curves.at(m, 1))}
    if SRC in at_one and len(at_one) > 1:
        others = [ms for method, ms in at_one.items() if method != SRC]
        claims.append(
            Claim(
                "asked one by one, SRC is slower than the others",
                at_one[SRC] > max(others),
                "ms a query: " + listed(at_one, "{:.3g}"),
            )
        )
    if at_one:
        ratios = {m: TABLE_4[data][m][1] / ms for m, ms in at_one.items()}
        claims.append(
            Claim(
                "asked one by one, every method is faster than the paper's, on another machine",
                all(ratio > 1 for ratio in ratios.values()),
                "The paper's ms over ours: " + listed(ratios, "{:.1f}"),
            )
        )
    if LCD in at_one and KCRC in at_one:
        claims.append(
            Claim(
                f"asked one by one, {LCD} is faster than {KCRC}, as in the paper",
                at_one[LCD] < at_one[KCRC],
                "ms a query: " + listed({m: at_one[m] for m in (LCD, KCRC)}, "{:.3g}"),
            )
        )
    together = curves.shared(LCD, KCRC)
    if together and together[-1] > 1:
        most = together[-1]
        local, whole = curves.mean(LCD, most), curves.mean(KCRC, most)
        claims.append(
            Claim(
                f"asked {most:g} at once, {KCRC} is one matrix product and faster than {LCD}, "
                "against the paper",
                whole < local,
                f"ms a query: {KCRC} {whole:.3g}, {LCD} {local:.3g}",
            )
        )
    return claims


def claims_9(curves: Curves, what: str) -> list[Claim]:
    """Local coding grows slowest; where it overtakes a global dictionary."""
    claims = _slowest(curves, "time", what)
    shared = _places(curves, what, LCD, KCRC)
    if len(shared) > 1 and what == "dictionary size":
        faster = [x for x in shared if curves.mean(LCD, x) < curves.mean(KCRC, x)]
        ratios = {x: curves.mean(LCD, x) / curves.mean(KCRC, x) for x in shared}
        claims.append(
            Claim(
                f"asked one by one, {LCD} is faster than {KCRC} from some dictionary size on",
                bool(faster) and faster == shared[-len(faster) :],
                (f"From {faster[0]:g} atoms on. " if faster else "")
                + f"Time of {LCD} over that of {KCRC}: "
                + listed(ratios),
            )
        )
    return claims


def claims_10(curves: Curves, what: str) -> list[Claim]:
    """Local coding needs less memory."""
    claims = _slowest(curves, "memory", what)
    shared = curves.shared(LCD, KCRC)
    if shared:
        most = shared[-1]
        local, whole = curves.mean(LCD, most), curves.mean(KCRC, most)
        claims.append(
            Claim(
                f"at the largest shared {what}, {LCD} occupies less memory than {KCRC}",
                local < whole,
                f"MiB at {most:g}: {local:.0f} and {whole:.0f}",
            )
        )
    return claims


def _places(curves: Curves, what: str, *methods: str) -> list[float]:
    """Return the places that methods share; of K atoms a local dictionary is the global one."""
    shared = curves.shared(*methods)
    return [x for x in shared if x > N_OWN] if what == "dictionary size" else shared


def _slowest(curves: Curves, of: str, what: str) -> list[Claim]:
    """From the smallest to the largest place that all have, local coding grows by the least."""
    methods = [m for m in (LCD, KCRC, CRC) if m in curves.methods]
    shared = _places(curves, what, *methods)
    if LCD not in methods or len(methods) < 2 or len(shared) < 2:
        return []
    grown = {m: curves.mean(m, shared[-1]) / curves.mean(m, shared[0]) for m in methods}
    return [
        Claim(
            f"from {what} {shared[0]:g} to {shared[-1]:g} the {of} of {LCD} grows less than that "
            f"of {KCRC}",
            grown[LCD] < grown.get(KCRC, float("inf")),
            "Times as much: " + listed(grown, "{:.1f}"),
        )
    ]
