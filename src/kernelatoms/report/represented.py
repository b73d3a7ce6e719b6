"""Sections on models whose dictionary are the training rows: codes, answers, mistakes."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms import Explanation
from kernelatoms.report.class_parts import class_parts_figure
from kernelatoms.report.classified import confusions, own_and_other_picture, weights_picture
from kernelatoms.report.coding import Judged, Subject, take_rows
from kernelatoms.report.page import Picture, Section, Table
from kernelatoms.report.style import as_label
from kernelatoms.report.words import count_words, label_words, percent, shorten
from kernelatoms.similarity import LinearKernel

Array = NDArray[Any]

_ROWS_SHOWN = 6
_TRAINING_ROWS_SHOWN = 5
_CLASSES_SHOWN = 10


def winners_words(judged: Judged) -> str:
    """Say how sure the answers are, where nobody knows whether they are right."""
    return (
        f"Half of {count_words(len(judged.won), 'row')} are given to a class whose share of the "
        f"fit is at least {percent(float(np.median(judged.won)))}."
    )


def represented_sections(subject: Subject) -> list[Section | None]:
    """Return how rows are written in training rows, and how good the answers are."""
    judged = subject.judged
    if judged is None:
        return []
    sections: list[Section | None] = [_codes_section(subject, judged)]
    if subject.y is not None:
        sections += [_accuracy_section(subject, judged), _mistakes_section(subject, judged)]
    return sections


def _codes_section(subject: Subject, judged: Judged) -> Section:
    """Show a typical row: what it is written in, and how its classes are judged."""
    last = subject.anatomy.last
    n_own, n_rows = last.n_neighbors_, len(last.labels_)
    over = f"all {n_rows:,} training rows"
    if n_own is not None:
        over = f"the {n_own:,} of {n_rows:,} training rows that are nearest to it"
    words = [
        f"Every row is written as a sum of {over}. Each class has a part w_c in the code; what "
        "its part leaves of the row, divided by |w_c|, is the class's regularised residual r_c. "
        "The smallest wins; a class without a part has none.",
    ]
    if n_own is not None:
        words.append("Where all neighbours are of one class, that class is the answer at once.")
    if last.residual_norm == "l1":
        words.append(
            "The code is robust: it may leave a few entries of a row unexplained, those that it "
            "distrusts, and classes are not judged by them."
        )
    if last.projected_:
        words.append("Rows are compared through their kernel values with the training rows.")
    typical = int(np.abs(judged.won - np.median(judged.won)).argmin())
    start = f"Row {typical} (from 0), a typical one: of all rows the nearest to the median share."
    picture = _picture(subject, judged, typical, _judge(subject, typical), start)
    return Section("Codes", " ".join(words), pictures=[picture])


def _accuracy_section(subject: Subject, judged: Judged) -> Section:
    words, table, pictures = confusions(subject, judged)
    shares = own_and_other_picture(
        subject.anatomy.classes, judged, "share", "class", "share of a class in a row's fit"
    )
    if shares is not None:
        words.append(
            "The share of a class in a row's fit is 1 / r_c^2 over the sum of all classes "
            "(predict_proba); the further the two boxes of a class lie apart, the safer its "
            "answers."
        )
        pictures.append(shares)
    weights = weights_picture(subject)
    pictures += [] if weights is None else [weights]
    return Section("Accuracy", "\n\n".join(words), table=table, pictures=pictures)


def _mistakes_section(subject: Subject, judged: Judged) -> Section | None:
    """Show the mistakes with the largest margin, or the closest calls if there are none."""
    known = np.flatnonzero(judged.truth >= 0)
    if not len(known):
        return None
    wrong = known[judged.chosen[known] != judged.truth[known]]
    candidates = wrong if len(wrong) else known
    margin = judged.own[candidates] - judged.other[candidates]
    rows = candidates[np.argsort(margin, kind="stable")[:_ROWS_SHOWN]]
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
        lines.append([str(row), *names, *(percent(judgement.why.scores[c]) for c in pair)])
        pictures.append(_picture(subject, judged, row, judgement, f"Row {row}."))
    table = Table(
        ["row", "true class", answer, "share of true", "share of other"],
        lines,
        "Rows are counted from 0; shares are those of predict_proba.",
    )
    return Section(title, text, table=table, pictures=pictures)


@dataclass(frozen=True)
class _Judgement:
    """One row: as it was seen, why it was given its class, and regularised residuals."""

    seen: Any
    signal: Array
    why: Explanation
    residuals: Array

    def best_but(self, own: int) -> int:
        """Return the class with the largest share beside one."""
        others = self.why.scores.copy()
        others[own] = -1
        return int(others.argmax())


def _judge(subject: Subject, row: int) -> _Judgement:
    anatomy = subject.anatomy
    seen = anatomy.see(take_rows(subject.X, [row]))
    signal = anatomy.enter(seen)
    last = anatomy.last
    return _Judgement(seen, signal, last.explain(signal)[0], last.residuals(signal)[0])


def _picture(
    subject: Subject, judged: Judged, row: int, judgement: _Judgement, start: str
) -> Picture:
    """Draw one row: what it is written in, where images can be drawn, and how classes do."""
    classes, why = subject.anatomy.classes, judgement.why
    energies = why.code_energies()
    shown = np.sort(np.argsort(-why.scores, kind="stable")[:_CLASSES_SHOWN])
    truth, chosen = int(judged.truth[row]), int(judged.chosen[row])
    names = [_name(classes[c], c == chosen, c == truth) for c in shown]
    images, atoms = _images(subject, judgement)
    figure = class_parts_figure(
        names, energies[shown], judgement.residuals[shown], np.flatnonzero(shown == chosen),
        images, atoms,
    )  # fmt: skip
    caption = f"{start} The answer is {label_words(classes[chosen])}"
    if truth >= 0 and truth != chosen:
        caption += f", the true class {label_words(classes[truth])}"
    caption += f"; {count_words(len(why.atoms), 'training row')} in the code."
    if len(shown) < len(classes):
        caption += f" The {len(shown)} of {len(classes)} classes with the largest shares are drawn."
    alt = f"Row {row}: its classes' parts of the code, and their regularised residuals."
    return Picture(figure, caption, alt)


def _name(label: Any, chosen: bool, true: bool) -> str:
    roles = [*(["answer"] if chosen else []), *(["true"] if true else [])]
    return as_label(label, 14) + (f" ({', '.join(roles)})" if roles else "")


def _images(
    subject: Subject, judgement: _Judgement
) -> tuple[dict[str, Array], list[tuple[str, Array]]]:
    """Return the row and what its code makes of it, and the training rows it uses most."""
    view, last = subject.view, subject.anatomy.last
    if view is None or view.image_shape is None:
        return {}, []
    shape, why = view.image_shape, judgement.why
    images = {"the row": view.rows(judgement.seen)[0].reshape(shape)}
    size = float(np.linalg.norm(judgement.signal)) if last.normalize else 1.0
    if isinstance(last._kernel(), LinearKernel) and not last.projected_:
        total = size * (why.coefficients @ last.dictionary_[why.atoms])
        images["its training rows' sum"] = view.atoms(total[None])[0].reshape(shape)
        if last.residual_norm == "l1":
            errors = size * np.abs(last.errors(judgement.signal))
            images["distrusted"] = view.atoms(errors)[0].reshape(shape)
    most = why.atoms[:_TRAINING_ROWS_SHOWN]
    labels = [as_label(subject.anatomy.classes[c], 10) for c in why.owners]
    atoms = view.atoms(last.dictionary_[most]).reshape(-1, *shape)
    used = zip(why.coefficients, labels, atoms, strict=False)
    return images, [(f"{value:+.2g} ·\n{label}", image) for value, label, image in used]
