"""Sections on classifiers that answer with shares and explain themselves: accuracy, mistakes.

What differs between kinds of models, their words and what is drawn of a row, is their ``Manner``.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms import Explanation
from kernelatoms.report.coding import Judged, Subject, take_rows
from kernelatoms.report.figures.classes import Bars, class_parts_figure
from kernelatoms.report.figures.style import as_label
from kernelatoms.report.page import Picture, Section, Table
from kernelatoms.report.sections.accuracy import (
    answers_section,
    mistakes_folds,
    own_and_other_picture,
    weights_pictures,
    with_more,
)
from kernelatoms.report.words import count_words, label_words, percent, shorten

Array = NDArray[Any]

_ROWS_SHOWN = 6
_CLASSES_SHOWN = 10
_ATOMS_SHOWN = 5


@dataclass(frozen=True)
class Judgement:
    """One row: as it was seen, as it came to the model, and why it was given its class."""

    seen: Any
    signal: Array
    why: Explanation

    def best_but(self, own: int) -> int:
        """Return the class with the largest score beside one."""
        others = self.why.scores.astype(np.float64)
        others[own] = -np.inf
        return int(others.argmax())


@dataclass(frozen=True)
class Manner:
    """How a kind of models judges rows.

    ``shares`` says what the share of a class is, ``atom`` what codes are made of. ``bars`` returns
    what is drawn of every class, ``sums`` what the code makes of a row, by name, as images.
    """

    shares: str
    atom: str
    atoms: Array
    bars: Callable[[Judgement], Sequence[Bars]]
    sums: Callable[[Judgement], Mapping[str, Array]]


def winners_words(judged: Judged) -> str:
    """Say how sure the answers are, where nobody knows whether they are right."""
    return (
        f"Half of {count_words(len(judged.won), 'row')} are given to a class whose share of the "
        f"fit is at least {percent(float(np.median(judged.won)))}."
    )


def typical_row_picture(subject: Subject, judged: Judged, manner: Manner) -> Picture:
    """Explain the row whose answer is as sure as the median one."""
    typical = int(np.abs(judged.won - np.median(judged.won)).argmin())
    start = (
        f"Row {subject.source.name(typical)}, a typical one (rows are counted from 0): of all rows "
        "the nearest to the median share."
    )
    return _picture(subject, judged, typical, manner, start)


def judged_sections(subject: Subject, judged: Judged, manner: Manner) -> list[Section | None]:
    """Return how good the answers are, and the worst of them; of rows with labels."""
    if subject.y is None:
        return []
    return [_accuracy_section(subject, judged, manner), _mistakes_section(subject, judged, manner)]


def _accuracy_section(subject: Subject, judged: Judged, manner: Manner) -> Section:
    section, words, pictures = answers_section(subject, judged), "", []
    shares = own_and_other_picture(
        subject.anatomy.classes, judged, "share", "class", "share of a class in a row's fit"
    )
    if shares is not None:
        words = (
            f"{_meaning(subject, manner)} (predict_proba); the further the two boxes of a class "
            "lie apart, the safer its answers."
        )
        pictures.append(shares)
    return with_more(section, words, *pictures, *weights_pictures(subject))


def _meaning(subject: Subject, manner: Manner) -> str:
    """Say what the share of a class is."""
    if getattr(subject.anatomy.last, "calibrate", False):
        return "The share of a class is its probability, learned from rows that were left out"
    return manner.shares


def _mistakes_section(subject: Subject, judged: Judged, manner: Manner) -> Section | None:
    """Show the mistakes with the largest margin, or the closest calls if there are none."""
    known = np.flatnonzero(judged.truth >= 0)
    if not len(known):
        return None
    wrong = known[judged.chosen[known] != judged.truth[known]]
    candidates = wrong if len(wrong) else known
    margin = judged.own[candidates] - judged.other[candidates]
    candidates = candidates[np.argsort(margin, kind="stable")]
    rows = candidates[:_ROWS_SHOWN]
    if len(wrong):
        title, answer = "Worst mistakes", "taken for"
        text = (
            f"{len(rows)} of {count_words(len(wrong), 'mistake')}: those where the share of the "
            "answer in the fit exceeds that of the true class most."
        )
    else:
        title, answer = "Closest calls", "next best"
        text = (
            "There are no mistakes among rows with labels that the model knows. These came "
            "closest: the best other class has the largest share beside the row's own."
        )
    lines, pictures, classes = [], [], subject.anatomy.classes
    for row in rows.tolist():
        judgement = _judge(subject, row)
        pair = int(judged.truth[row]), judgement.best_but(int(judged.truth[row]))
        names = [shorten(classes[c]) for c in pair]
        name = subject.source.name(row)
        lines.append([name, *names, percent(judged.own[row]), percent(judged.other[row])])
        pictures.append(_picture(subject, judged, row, manner, f"Row {name}.", judgement))
    table = Table(
        ["row", "true class", answer, "share of true", "share of other"],
        lines,
        "Rows are counted from 0, as in the file; shares are those of predict_proba.",
    )
    folds = []
    if len(wrong):
        folds = mistakes_folds(subject, judged, candidates, judged.own, judged.other, table)
    return Section(title, text, table, pictures, folds)


def _judge(subject: Subject, row: int) -> Judgement:
    anatomy = subject.anatomy
    seen = anatomy.see(take_rows(subject.X, [row]))
    signal = anatomy.enter(seen)
    return Judgement(seen, signal, anatomy.last.explain(signal)[0])


def _picture(
    subject: Subject,
    judged: Judged,
    row: int,
    manner: Manner,
    start: str,
    judgement: Judgement | None = None,
) -> Picture:
    """Draw one row: what it is written in, where images can be drawn, and how classes do."""
    judgement = judgement or _judge(subject, row)
    classes, why = subject.anatomy.classes, judgement.why
    shown = np.sort(np.argsort(-why.scores, kind="stable")[:_CLASSES_SHOWN])
    truth, chosen = int(judged.truth[row]), int(judged.chosen[row])
    names = [_name(classes[c], c == chosen, c == truth) for c in shown]
    bars = [each.of(shown) for each in manner.bars(judgement)]
    images, atoms = _images(subject, manner, judgement)
    figure = class_parts_figure(names, bars, np.flatnonzero(shown == chosen), images, atoms)
    caption = f"{start} The answer is {label_words(classes[chosen])}"
    if truth >= 0 and truth != chosen:
        caption += f", the true class {label_words(classes[truth])}"
    caption += f"; {count_words(len(why.atoms), manner.atom)} in the code."
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
    subject: Subject, manner: Manner, judgement: Judgement
) -> tuple[dict[str, Array], list[tuple[str, Array]]]:
    """Return the row and what its code makes of it, and the atoms that it uses most."""
    view = subject.view
    if view is None or view.image_shape is None:
        return {}, []
    shape, why = view.image_shape, judgement.why
    images = {"the row": view.rows(judgement.seen)[0].reshape(shape)}
    for name, total in manner.sums(judgement).items():
        images[name] = view.atoms(total[None])[0].reshape(shape)
    labels = [as_label(subject.anatomy.classes[c], 10) for c in why.owners]
    atoms = view.atoms(manner.atoms[why.atoms[:_ATOMS_SHOWN]]).reshape(-1, *shape)
    used = zip(why.coefficients, labels, atoms, strict=False)
    return images, [(f"{value:+.2g} ·\n{label}", image) for value, label, image in used]
