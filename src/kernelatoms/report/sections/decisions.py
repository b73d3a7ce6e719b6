"""Sections on classifiers with ``predict_proba`` and ``explain``: accuracy, single decisions.

What differs between kinds of models, their words and what is drawn of a row, is their
``DecisionKind``.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelatoms import Explanation
from kernelatoms.report.coding import Array, Decisions, Subject, take_rows
from kernelatoms.report.figures.classes import Bars, class_parts_figure
from kernelatoms.report.figures.style import as_label
from kernelatoms.report.page import Picture, Section
from kernelatoms.report.sections.accuracy import Ranking, accuracy_section, mistakes_section
from kernelatoms.report.words import count_words, label_words, percent

_CLASSES_SHOWN = 10
_ATOMS_SHOWN = 5


@dataclass(frozen=True)
class Decision:
    """One row before the kernel map and after it, and why it was given its class."""

    before: Any
    signal: Array
    why: Explanation

    def best_but(self, own: int) -> int:
        """Return the class with the largest score beside one."""
        others = self.why.scores.astype(np.float64)
        others[own] = -np.inf
        return int(others.argmax())


@dataclass(frozen=True)
class DecisionKind:
    """How a kind of models decides."""

    shares: str  # what the share of a class is, in words
    atom: str  # what codes are made of, in a word
    atoms: Array
    bars: Callable[[Decision], Sequence[Bars]]  # what is drawn of every class
    sums: Callable[[Decision], Mapping[str, Array]]  # what the code makes of a row, as images


def decision_sections(
    subject: Subject, title: str, words: str, kind: DecisionKind
) -> list[Section | None]:
    """Return how the model decides, and of rows with labels how well, and the worst mistakes."""
    found = subject.decisions
    if found is None:
        return []
    typical = int(np.abs(found.won - np.median(found.won)).argmin())
    start = (
        f"Row {subject.source.name(typical)}, a typical one (rows are counted from 0): of all rows "
        "the nearest to the median share."
    )
    picture = _picture(subject, found, typical, kind, start, _decide(subject, typical))
    first = Section(title, words, pictures=[picture])
    if subject.y is None:
        return [first]
    answers = _accuracy_section(subject, found, kind)
    return [first, answers, _mistakes_section(subject, found, kind)]


def certainty_words(found: Decisions) -> str:
    """Say how large the shares of the answers are, where nothing says whether they are right."""
    return (
        f"Half of {count_words(len(found.won), 'row')} are given to a class whose share of the "
        f"fit is at least {percent(float(np.median(found.won)))}."
    )


def _accuracy_section(subject: Subject, found: Decisions, kind: DecisionKind) -> Section:
    meaning = kind.shares
    if getattr(subject.anatomy.last, "calibrate", False):
        meaning = "The share of a class is its probability, learned from rows left out"
    terms = ("share", "class", "share of a class in a row's fit")
    return accuracy_section(subject, found, found, f"{meaning} (predict_proba)", *terms)


def _mistakes_section(subject: Subject, found: Decisions, kind: DecisionKind) -> Section | None:
    own, other = found.own, found.other
    ranking = Ranking(
        own, other, own - other,
        "the share of the answer in the fit, less that of the true class",
        "the best other class has the largest share beside the row's own",
        ["share of true", "share of other"],
        "shares are those of predict_proba.",
    )  # fmt: skip

    def draw(row: int) -> tuple[int, Picture]:
        decision = _decide(subject, row)
        start = f"Row {subject.source.name(row)}."
        picture = _picture(subject, found, row, kind, start, decision)
        return decision.best_but(int(found.truth[row])), picture

    return mistakes_section(subject, found, ranking, draw)


def _decide(subject: Subject, row: int) -> Decision:
    anatomy = subject.anatomy
    before = anatomy.before_map(take_rows(subject.X, [row]))
    signal = anatomy.after_map(before)
    return Decision(before, signal, anatomy.last.explain(signal)[0])


def _picture(
    subject: Subject, found: Decisions, row: int, kind: DecisionKind, start: str, decision: Decision
) -> Picture:
    """Draw one row: what it is written in, where images can be drawn, and how classes do."""
    classes, why = subject.anatomy.classes, decision.why
    shown = np.sort(np.argsort(-why.scores, kind="stable")[:_CLASSES_SHOWN])
    truth, chosen = int(found.truth[row]), int(found.chosen[row])
    names = [_name(classes[c], c == chosen, c == truth) for c in shown]
    bars = [each.of(shown) for each in kind.bars(decision)]
    images, atoms = _images(subject, kind, decision)
    figure = class_parts_figure(names, bars, np.flatnonzero(shown == chosen), images, atoms)
    caption = f"{start} The answer is {label_words(classes[chosen])}"
    if truth >= 0 and truth != chosen:
        caption += f", the true class {label_words(classes[truth])}"
    caption += f"; {count_words(len(why.atoms), kind.atom)} in the code."
    if len(shown) < len(classes):
        caption += f" The {len(shown)} of {len(classes)} classes with the largest shares are drawn."
    what = " and ".join(each.title for each in bars)
    alt = f"Row {subject.source.name(row)}; its classes: {what}."
    shades = None if subject.view is None else subject.view.shades("the row's, or the atom's own,")
    return Picture(figure, caption, alt, shades)


def _name(label: Any, chosen: bool, true: bool) -> str:
    roles = [*(["answer"] if chosen else []), *(["true"] if true else [])]
    return as_label(label, 14) + (f" ({', '.join(roles)})" if roles else "")


def _images(
    subject: Subject, kind: DecisionKind, decision: Decision
) -> tuple[dict[str, Array], list[tuple[str, Array]]]:
    """Return the row and what its code makes of it, and the atoms that it uses most."""
    view = subject.view
    if view is None or view.image_shape is None:
        return {}, []
    shape, why = view.image_shape, decision.why
    images = {"the row": view.rows(decision.before)[0].reshape(shape)}
    for name, total in kind.sums(decision).items():
        images[name] = view.atoms(total[None])[0].reshape(shape)
    labels = [as_label(subject.anatomy.classes[c], 10) for c in why.owners]
    atoms = view.atoms(kind.atoms[why.atoms[:_ATOMS_SHOWN]]).reshape(-1, *shape)
    used = zip(why.coefficients, labels, atoms, strict=False)
    return images, [(f"{value:+.2g} ·\n{label}", image) for value, label, image in used]
