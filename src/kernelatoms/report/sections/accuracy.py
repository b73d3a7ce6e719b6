"""How good a classifier's answers are: their shares, mistakes, the weight of codes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernelatoms.report.coding import Answers, Array, Subject, code_weights
from kernelatoms.report.figures.classes import class_matrix_figure
from kernelatoms.report.figures.code_energies import code_energy_figure
from kernelatoms.report.figures.distributions import own_and_other_figure
from kernelatoms.report.figures.style import share_shades
from kernelatoms.report.page import Fold, Picture, Section, Table
from kernelatoms.report.sections import scores
from kernelatoms.report.words import count_words, label_words, percent, shorten

_ROWS_SHOWN = 6
_ATOMS_IN_A_LINE = 600


def accuracy_section(
    subject: Subject, answers: Answers, shares: Answers, meaning: str, *terms: str
) -> Section:
    """Add to ``answers_section`` the shares of classes, and which atoms have codes' weight."""
    section, pictures = scores.answers_section(subject, answers), _weights_pictures(subject)
    drawn, text = _own_and_other(subject.anatomy.classes, shares, *terms), section.text
    if drawn is not None:
        pictures.insert(0, drawn)
        text += (
            f"\n\n{meaning}; the further the two boxes of a class lie apart, the safer its answers."
        )
    return replace(section, text=text, pictures=[*section.pictures, *pictures])


def _own_and_other(
    classes: list[Any], shares: Answers, verb: str, dictionary: str, what: str
) -> Picture | None:
    """Draw for every class the shares of its own rows, beside those of the best other class."""
    members = [np.flatnonzero(shares.truth == c) for c in range(len(classes))]
    present = [c for c, rows in enumerate(members) if len(rows)]
    if not present:
        return None
    shown, which = present, ""
    if len(present) > scores.CLASSES_IN_A_MATRIX:
        right = [float((shares.chosen[members[c]] == c).mean()) for c in present]
        worst = np.argsort(right, kind="stable")[: scores.CLASSES_IN_A_MATRIX]
        shown = [present[i] for i in sorted(worst)]
        which = f" The {len(shown)} least accurate of {len(present)} classes are drawn."
    own, other = ([part[members[c]] for c in shown] for part in (shares.own, shares.other))
    figure = own_and_other_figure(own, other, [classes[c] for c in shown], what, dictionary)
    rows = np.concatenate([members[c] for c in present])
    words = (
        f"Over {count_words(len(rows), 'row')}, the median {verb} is "
        f"{percent(np.median(shares.own[rows]))} by the row's own {dictionary} and "
        f"{percent(np.median(shares.other[rows]))} by the best other one.{which}"
    )
    key = "Boxes span the middle half of a class's rows, lines the middle 90%; marks are medians."
    return Picture(figure, f"{words} {key}", f"Shares {verb}, by true class. {words}")


@dataclass(frozen=True)
class Ranking:
    """How mistakes are ranked: by a number of the true class and the best other one, per row."""

    own: Array
    other: Array
    margin: Array  # how much better the true class does
    words: str  # what is subtracted from what
    closest: str  # which rows come first if there are no mistakes
    columns: Sequence[str]  # the names of both numbers
    caption: str


def mistakes_section(
    subject: Subject, answers: Answers, ranking: Ranking, draw: Callable[[int], tuple[int, Picture]]
) -> Section | None:
    """Show the mistakes of the largest margin, or the closest calls; ``draw`` names the rival."""
    known, margin = np.flatnonzero(answers.truth >= 0), ranking.margin
    wrong = known[answers.chosen[known] != answers.truth[known]]
    ranked = wrong if len(wrong) else known[np.isfinite(margin[known])]
    ranked = ranked[np.argsort(np.nan_to_num(margin[ranked]), kind="stable")]
    shown = ranked[:_ROWS_SHOWN].tolist()
    if not shown:
        return None
    title, answer = "Worst mistakes", "taken for"
    if not len(wrong):
        title, answer = "Closest calls", "next best"
        text = (
            "There are no mistakes among rows with labels that the model knows. These came "
            f"closest: {ranking.closest}."
        )
    elif len(wrong) == 1:
        text = "The only mistake."
    elif len(shown) == len(wrong):
        text = f"All {len(wrong)} mistakes, the largest margin first: {ranking.words}."
    else:
        text = (
            f"The {len(shown)} of {len(wrong):,} mistakes with the largest margin: {ranking.words}."
        )
    drawn = [draw(row) for row in shown]
    lines = [
        _mistake(subject, answers, ranking, row, rival)
        for row, (rival, _) in zip(shown, drawn, strict=True)
    ]
    header = ["row", "true class", answer, *ranking.columns]
    table = Table(header, lines, f"Rows are counted from 0, as in the file; {ranking.caption}")
    folds = []
    if len(wrong) > len(shown):
        rows = [
            _mistake(subject, answers, ranking, row, answers.chosen[row])
            for row in ranked[: scores.LONGEST_LIST].tolist()
        ]
        summary = f"{scores.first_of(len(rows), len(wrong), 'mistake')}, the worst first"
        folds.append(Fold(summary, Table(header, rows)))
    return Section(title, text, table, [picture for _, picture in drawn], folds)


def _mistake(
    subject: Subject, answers: Answers, ranking: Ranking, row: int, rival: int
) -> list[str]:
    """Return a line of the table of mistakes."""
    classes = subject.anatomy.classes
    names = [shorten(classes[c]) for c in (answers.truth[row], rival)]
    shares = [share_words(float(part[row])) for part in (ranking.own, ranking.other)]
    return [subject.source.name(row), *names, *shares]


def share_words(share: float) -> str:
    """Return a share in words; there is none of a row without energy."""
    return "nothing" if np.isnan(share) else percent(share)


def _weights_pictures(subject: Subject) -> list[Picture]:
    """Draw on whose atoms codes have their weight; and atom by atom for the worst class."""
    found = code_weights(subject.anatomy, subject.X, subject.y)
    if found is None or not found.by_atom.sum() > 0:
        return []
    weights, classes = found.by_class, subject.anatomy.classes
    pictures = [_weights_picture(weights, classes)]
    n_atoms = len(found.owners)
    if subject.anatomy.keeps_rows or n_atoms > _ATOMS_IN_A_LINE or len(classes) < 2:
        return pictures
    totals = weights.sum(axis=1)
    own = np.divide(np.diagonal(weights), totals, out=np.ones(len(totals)), where=totals > 0)
    least = int(np.where(totals > 0, own, np.inf).argmin())
    figure = code_energy_figure(found.by_atom[[least]], found.owners, classes, own=classes[least])
    words = (
        f"Rows of {label_words(classes[least])}, whose codes use atoms of other classes most: "
        f"{percent(float(1 - own[least]))} of their weight. Above, every atom, class after class; "
        "below, their sums by class."
    )
    return [*pictures, Picture(figure, words, f"Sums of |coefficients|. {words}")]


def _weights_picture(weights: Array, classes: list[Any]) -> Picture:
    totals = weights.sum(axis=1)
    present = np.flatnonzero(totals > 0)
    shares = weights / np.where(totals > 0, totals, 1)[:, None]
    own = np.diagonal(shares)
    words = (
        f"{percent(float(np.trace(weights) / weights.sum()))} of the weight of codes, their sum of "
        "|coefficients|, is on atoms of the row's own class"
    )
    least = present[own[present].argmin()]
    words += (
        f"; the least, {percent(float(own[least]))}, of rows of {label_words(classes[least])}. "
        "The further from the diagonal weight lies, the less codes tell classes apart."
    )
    if len(classes) > scores.CLASSES_IN_A_MATRIX:
        lowest = present[np.argsort(own[present], kind="stable")[: scores.CLASSES_IN_A_MATRIX]]
        shown = np.sort(lowest)
        words += f" The {len(shown)} of {len(classes)} classes with the least are drawn."
        shares, classes = shares[np.ix_(shown, shown)], [classes[c] for c in shown]
    # A hundredth and more is said in the cell; the colour tells the rest.
    cells = [[f"{100 * share:.0f}" if share >= 0.005 else "" for share in row] for row in shares]
    figure = class_matrix_figure(shares, cells, classes, "atoms of class, % of the weight")
    alt = f"Weight of codes by true class and by class of atoms. {words}"
    return Picture(figure, words, alt, share_shades("Of the weight of a true class's codes:"))
