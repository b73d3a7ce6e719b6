"""A page for every paper, made of the stored runs in ``papers/records`` when the docs are built."""

from pathlib import Path

from kernelatoms.papers import FIGURES
from kernelatoms.papers.page import (
    circumstances,
    curves_in_words,
    figure_picture,
    figure_table,
)

HERE = Path(__file__).parent.parent / "papers"
RECORDS = HERE / "records"

HEAD = {
    "codec": "# The codec beside its rivals\n\nWhat `KernelCodec` and others need to store four "
    "data sets with every row within a bound, all bytes counted; and what the ratios of the FKSC "
    "paper are in bytes. Run again by `kernelatoms reproduce codec --full` (the rivals come with "
    "`pip install 'kernelatoms[bench]'`; without them their rows say so); the stored runs are in "
    "`docs/papers/records`.",
    "fksc": "# Fast kernel sparse coding\n\n*A novel kernel sparse coding method with a two-stage "
    "acceleration strategy* (KSC, FKSC, KSCDL), anonymous, under review. Run again at paper size "
    "by `kernelatoms reproduce fksc --full`; the stored runs are in `docs/papers/records`.",
    "kcrc": "# Kernel collaborative representation\n\nW. Liu, Z. Yu, L. Lu, Y. Wen, H. Li, Y. Zou, "
    "*KCRC-LCD: discriminative kernel collaborative representation with locality constrained "
    "dictionary for visual categorization*, Pattern Recognition 48(10), 2015. Run again at paper "
    "size by `kernelatoms reproduce kcrc --full`; the stored runs are in `docs/papers/records`. "
    "15 scenes, Caltech 101 and Caltech 256 are not at hand: Table 2 and Figs. 6 and 7 are left "
    "out, and MNIST stands in for them in Figs. 8 to 10.",
    "kdl": "# Kernel dictionary learning\n\nH. V. Nguyen, V. M. Patel, N. M. Nasrabadi, "
    "R. Chellappa, *Kernel dictionary learning*, ICASSP 2012. Run again at paper size by "
    "`kernelatoms reproduce kdl --full`; the stored runs are in `docs/papers/records`. The paper "
    "shows curves and pictures and prints no numbers, so what is compared here is what it says "
    "about them.",
    "ksad": "# K-SAD: orthonormal kernel dictionaries\n\nP. S. Chhabra, A. M. Wallace, "
    "J. R. Hopgood, *Improved image discrimination using fast non-linear orthogonal dictionary "
    "learning*. Run again at paper size by `kernelatoms reproduce ksad --full`; the stored runs "
    "are in `docs/papers/records`. The Washington RGB-D objects are not at hand: Table I is left "
    "out. Learned atoms are drawn where the face images are at hand when this page is built.",
    "lkdl": "# Linearized kernel dictionary learning\n\nA. Golts, M. Elad, *Linearized kernel "
    "dictionary learning*, IEEE Journal of Selected Topics in Signal Processing 10(4), 2016. Run "
    "again at paper size by `kernelatoms reproduce lkdl --full`; the stored runs are in "
    "`docs/papers/records`. The AR faces of Table IV are at hand in another version than the "
    "authors'.",
}


def setup(app):
    """Write the pages before Sphinx reads the sources."""
    app.connect("builder-inited", lambda _: write_pages())
    return {"parallel_read_safe": True}


def write_pages():
    """Write ``papers/<paper>.md`` and its pictures."""
    (HERE / "pictures").mkdir(exist_ok=True)
    for paper, head in HEAD.items():
        parts = [head]
        for figure in FIGURES.values():
            size = figure.study.full
            curves = figure.curves(RECORDS, size, size.n_seeds)
            if figure.paper == paper and curves:
                parts += section(figure, curves)
        if len(parts) == 1:
            parts.append("No run of paper size is stored yet.")
        text = "\n\n".join(parts) + "\n"
        path = HERE / f"{paper}.md"
        # An unchanged page keeps its date, so that Sphinx does not build it again.
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def section(figure, curves):
    """Return the parts of one figure's section."""
    picture = f"pictures/{figure.name.replace('/', '-')}.svg"
    figure_picture(figure, curves).savefig(HERE / picture, metadata={"Date": None})
    drawn = []
    for i, extra in enumerate([*figure.drawings(None), *figure.pictures(RECORDS)], start=1):
        name = f"pictures/{figure.name.replace('/', '-')}-{i}.png"
        extra.figure.savefig(HERE / name, dpi=160)
        drawn.append(
            f"```{{figure}} {name}\n:alt: {extra.alt}\n:width: 100%\n\n{extra.caption}\n```"
        )
    claims = "\n".join(
        f"- **{'Holds' if claim.holds else 'Missed'}**: {claim.statement}. {claim.evidence}."
        for claim in figure.claims(curves)
    ).replace("^", r"\^")
    table = figure_table(figure, curves)
    lines = [table.header, ["---"] + ["--:"] * (len(table.header) - 1), *table.rows]
    rows = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return [
        f"## {figure.title}",
        figure.text.replace("|", r"\|").replace("^", r"\^"),
        *drawn,
        f"```{{image}} {picture}\n:alt: {curves_in_words(figure)}.\n:width: 90%\n```",
        claims,
        ":::{container} paper-table\n" + rows.replace("^", r"\^") + "\n:::",
        f"{table.caption} {circumstances(figure, RECORDS)}".replace("^", r"\^"),
    ]
