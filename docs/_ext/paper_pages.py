"""A page for every paper, made of the stored runs in ``papers/records`` when the docs are built."""

import re
from pathlib import Path

import formulas
from gallery import is_line_drawing

from reproduction.figures import FIGURES
from reproduction.page import (
    circumstances_in_words,
    claims_counted,
    curves_in_words,
    figure_picture,
    figure_table,
    picture_in_words,
)

HERE = Path(__file__).parent.parent / "papers"
RECORDS = HERE / "records"
# Inches; a picture that is taller is folded.
TALLEST = 10
# Inches; a picture that is wider scrolls on phones.
WIDE = 6
# Letters: a longer text is folded after a sentence that ends behind so many.
LONGEST, SHORTEST = 480, 140
SENTENCE = re.compile(r"(?<=[a-z)\d%])\. (?=[A-Z\"(])")
CHI = re.compile(r"\bchi2\b")
SIGNS = re.compile(r"[|^$*_<>\\]")

HEAD = {
    "codec": "# The codec beside its rivals\n\nWhat `KernelCodec` and others need to store four "
    "data sets with every row within a bound, all bytes counted; and what the ratios of the FKSC "
    "paper are in bytes. Run again by `python -m reproduction codec --full` (the rivals come with "
    "`pip install 'kernelatoms[bench]'`; without them their rows say so); the stored runs are in "
    "`docs/papers/records`.",
    "fksc": "# Fast kernel sparse coding\n\n*A novel kernel sparse coding method with a two-stage "
    "acceleration strategy* (KSC, FKSC, KSCDL), anonymous, under review. Run again at paper size "
    "by `python -m reproduction fksc --full`; the stored runs are in `docs/papers/records`.",
    "kcrc": "# Kernel collaborative representation\n\nW. Liu, Z. Yu, L. Lu, Y. Wen, H. Li, Y. Zou, "
    "*KCRC-LCD: discriminative kernel collaborative representation with locality constrained "
    "dictionary for visual categorization*, Pattern Recognition 48(10), 2015. Run again at paper "
    "size by `python -m reproduction kcrc --full`; the stored runs are in `docs/papers/records`. "
    "15 scenes, Caltech 101 and Caltech 256 are not at hand: Table 2 and Figs. 6 and 7 are left "
    "out, and MNIST stands in for them in Figs. 8 to 10.",
    "kdl": "# Kernel dictionary learning\n\nH. V. Nguyen, V. M. Patel, N. M. Nasrabadi, "
    "R. Chellappa, *Kernel dictionary learning*, ICASSP 2012. Run again at paper size by "
    "`python -m reproduction kdl --full`; the stored runs are in `docs/papers/records`. The paper "
    "shows curves and pictures and prints no numbers, so what is compared here is what it says "
    "about them.",
    "ksad": "# K-SAD: orthonormal kernel dictionaries\n\nP. S. Chhabra, A. M. Wallace, "
    "J. R. Hopgood, *Improved image discrimination using fast non-linear orthogonal dictionary "
    "learning*. Run again at paper size by `python -m reproduction ksad --full`; the stored runs "
    "are in `docs/papers/records`. The Washington RGB-D objects are not at hand: Table I is left "
    "out. Learned atoms are drawn where the face images are at hand when this page is built.",
    "lkdl": "# Linearized kernel dictionary learning\n\nA. Golts, M. Elad, *Linearized kernel "
    "dictionary learning*, IEEE Journal of Selected Topics in Signal Processing 10(4), 2016. Run "
    "again at paper size by `python -m reproduction lkdl --full`; the stored runs are in "
    "`docs/papers/records`. The AR faces of Table IV are at hand in another version than the "
    "authors'.",
    "methods": "# All classifiers, side by side\n\n"
    "No paper's: all classifiers of the library as their presets and four of scikit-learn's, on "
    "tables that come with it, tables drawn by the program and "
    "images; clean, corrupted, and after a small grid. Run again by "
    "`python -m reproduction methods --full`; the stored runs are in `docs/papers/records`. "
    "What follows from it: [](../guide/which-method.md).",
}


def setup(app):
    """Write the pages before Sphinx reads the sources."""
    app.connect("builder-inited", lambda _: write_pages())
    return {"parallel_read_safe": True}


def write_pages():
    """Write ``papers/<paper>.md`` and its pictures."""
    (HERE / "pictures").mkdir(exist_ok=True)
    for paper, head in HEAD.items():
        judged, sections, empty = [], [], []
        for figure in (f for f in FIGURES.values() if f.paper == paper):
            size = figure.study.full
            curves = figure.curves(RECORDS, size)
            if curves:
                claims = figure.claims(curves)
                judged.append((figure, claims))
                sections += section(figure, curves, claims)
            else:
                empty.append(figure)
        parts = [head, *summary(judged), *not_run(empty), *sections]
        if not sections:
            parts.append("No run of paper size is stored yet.")
        write(HERE / f"{paper}.md", "\n\n".join(parts) + "\n")


def write(path, text):
    """Write a page; an unchanged one keeps its date, so that Sphinx does not build it again."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def summary(judged):
    """Return the parts that tell which claims hold: one table, a line a figure."""
    counted = {figure.name: claims for figure, claims in judged if claims}
    if not counted:
        return []
    lines = ["| | claims that hold | missed |", "|---|---|---|"]
    for figure, claims in judged:
        if claims:
            missed = [in_markdown(claim.statement) for claim in claims if not claim.holds]
            held = len(claims) - len(missed)
            share = "all" if not missed else "none" if not held else "some"
            lines.append(
                f"| [{in_markdown(figure.title)}](#{anchor(figure)}) "
                f"| [{held} of {len(claims)}]{{.claims-{share}}} | {folded(missed)} |"
            )
    return [
        f"**{claims_counted(counted)}.** Each is code that judges the stored runs; numbers, "
        "pictures and what it was judged by are under the links.",
        ":::{container} claims-table\n" + "\n".join(lines) + "\n:::",
    ]


def not_run(figures):
    """Return a line that names figures without any record."""
    named = "; ".join(f"{in_markdown(figure.title)} (`{figure.name}`)" for figure in figures)
    words = f"**Without records** (not run yet, or the data are not at hand): {named}."
    return [words] if named else []


def folded(statements):
    """Return statements for a cell of a table: one as it is, several behind their number."""
    if len(statements) < 2:
        return "".join(statements)
    return (
        f"<details><summary>{len(statements)} missed</summary>"
        + "<br>".join(statements)
        + "</details>"
    )


def section(figure, curves, claims):
    """Return the parts of one figure's section: text, pictures, claims; numbers folded."""
    held = [claim for claim in claims if claim.holds]
    missed = [claim for claim in claims if not claim.holds]
    table = figure_table(figure, curves)
    lines = [table.header, ["---"] + ["--:"] * (len(table.header) - 1), *table.rows]
    rows = "\n".join("| " + " | ".join(map(in_markdown, line)) + " |" for line in lines)
    numbers = (
        ":::{container} paper-table\n" + rows + "\n:::\n\n"
        f"{in_markdown(table.caption)} {circumstances_in_words(figure, RECORDS, figure.study.full)}"
    )
    parts = [
        f"({anchor(figure)})=\n\n## {in_markdown(figure.title)}",
        *told(figure.text),
        *drawn(figure),
        curves_drawn(figure, curves),
    ]
    incomplete = figure.without_records(RECORDS, figure.study.full)
    if incomplete:
        parts.insert(1, f":::{{warning}}\n{in_markdown(incomplete)}\n:::")
    if missed:
        parts.append(f"**Missed**: {len(missed)} of {len(claims)} claims.")
        parts.append("\n".join(map(in_full, missed)))
    if held:
        what = (
            "The claim holds" if len(claims) == 1 else f"{len(held)} of {len(claims)} claims hold"
        )
        parts.append(dropdown(what, "\n".join(map(in_full, held))))
    parts.append(dropdown("All numbers", numbers))
    return parts


def told(text):
    """Return the text of a figure; of a long one the first sentences, and the rest folded.

    >>> first, rest = told("What is shown. " + "How it was run. " * 40)
    >>> first.split(". ")[0], rest.splitlines()[0]
    ('What is shown', '::::{dropdown} How it was run')
    """
    ends = [found.end() for found in SENTENCE.finditer(text) if found.end() > SHORTEST]
    if len(text) < LONGEST or not ends:
        return [in_markdown(text)]
    first, rest = text[: ends[0]].strip(), text[ends[0] :]
    return [in_markdown(first), dropdown("How it was run", in_markdown(rest))]


def drawn(figure):
    """Draw what the paper shows as images, and return the figures."""
    parts = []
    for i, extra in enumerate([*figure.drawings(None), *figure.pictures(RECORDS)], start=1):
        name = f"pictures/{figure.name.replace('/', '-')}-{i}.png"
        lines = is_line_drawing(extra.figure)
        extra.figure.savefig(HERE / name, dpi=160, transparent=lines)
        classes = ["drawn", *["curves"] * lines]
        classes += ["wide"] * bool(extra.figure.get_size_inches()[0] > WIDE)
        parts.append(
            f"```{{figure}} {name}\n:alt: {extra.alt}\n:width: 100%\n"
            f":figclass: {' '.join(classes)}\n\n"
            f"{in_markdown(extra.caption)}\n```"
        )
    return parts


def curves_drawn(figure, curves):
    """Draw the curves, and return the figure: folded where it is much taller than a screen."""
    name = f"pictures/{figure.name.replace('/', '-')}.svg"
    picture = figure_picture(figure, curves)
    picture.savefig(HERE / name, metadata={"Date": None}, transparent=True)
    part = (
        f"```{{figure}} {name}\n:alt: {curves_in_words(figure)}.\n:figclass: curves\n\n"
        f"{in_markdown(picture_in_words(figure, curves))}\n```"
    )
    return dropdown("The picture", part) if picture.get_size_inches()[1] > TALLEST else part


def dropdown(title, text):
    """Return a part that is shown when its title is clicked."""
    return f"::::{{dropdown}} {title}\n{text}\n::::"


def in_full(claim):
    """Return a claim as a line of a list, with what it was judged by."""
    return f"- {in_markdown(claim.statement)}. {in_markdown(claim.evidence)}."


def anchor(figure):
    """Return the name that a figure's section is linked by."""
    return figure.name.replace("/", "-")


def in_markdown(text):
    """Return a text with its formulas typeset, and no other sign taken for one."""
    kept = []

    def keep(tex):
        kept.append(f"${tex.strip()}$")
        return f"\0{len(kept) - 1}\0"

    text = formulas.typeset(CHI.sub(lambda _: keep(r"\chi^2"), text), keep, greek=True)
    text = SIGNS.sub(r"\\\g<0>", text)
    return re.sub("\0(\\d+)\0", lambda found: kept[int(found[1])], text)
