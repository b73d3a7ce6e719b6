"""Sections on a classifier's answers: accuracy, confusion, residuals by class, mistakes."""

from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from kernelatoms.report.anatomy import View
from kernelatoms.report.coding import (
    Answers,
    Coded,
    Subject,
    code_signals,
    take_rows,
)
from kernelatoms.report.figures.classes import confusion_figure
from kernelatoms.report.figures.distributions import own_and_other_figure
from kernelatoms.report.figures.rows import pair_figure
from kernelatoms.report.figures.style import as_label, share_shades
from kernelatoms.report.origin import caution_words
from kernelatoms.report.page import Fold, Picture, Section, Table
from kernelatoms.report.sections.accuracy import weights_pictures
from kernelatoms.report.sections.scores import (
    LONGEST_LIST,
    accuracy_words,
    confused_pairs,
    confusion_counts,
    first_of,
    recall_tables,
    unknown_labels,
    unknown_words,
)
from kernelatoms.report.words import count_words, label_words, list_words, percent, shorten

Array = NDArray[Any]

_CLASSES_IN_A_MATRIX = 20
_ROWS_SHOWN = 6
# Of more than so many named features, the few that matter most are drawn.
_MANY_NAMES, _NAMES_SHOWN = 15, 12


def accuracy_section(subject: Subject, coded: Coded) -> Section:
    """Say how many answers are right; show confusions, and residuals by class."""
    section = answers_section(subject, coded)
    residuals = _residuals_picture(subject.anatomy.classes, coded)
    if residuals is not None:
        words = (
            "A row belongs to the class whose dictionary leaves the least of it; the further the "
            "two boxes of a class lie apart, the safer its answers."
        )
        section = with_more(section, words, residuals)
    return with_more(section, "", *weights_pictures(subject))


def with_more(section: Section, words: str, *pictures: Picture) -> Section:
    """Return a section with further words and pictures at the end of its own."""
    text = f"{section.text}\n\n{words}" if words else section.text
    return replace(section, text=text, pictures=[*section.pictures, *pictures])


def answers_section(subject: Subject, answers: Answers) -> Section:
    """Return how many answers are right, class by class, and which are taken for which."""
    classes = subject.anatomy.classes
    words = [f"{accuracy_words(subject, answers)} {caution_words(subject.source)}"]
    found = unknown_labels(subject, answers)
    folds: list[Fold] = []
    if found:
        text, folds = unknown_words(found)
        words.append(text)
    matrix = confusion_counts(answers, len(classes))
    wrong = int(matrix.sum() - np.trace(matrix))
    table, more = recall_tables(classes, matrix)
    folds += more
    pictures = []
    if matrix.sum() and len(classes) <= _CLASSES_IN_A_MATRIX:
        caption = f"{wrong:,} of {int(matrix.sum()):,} rows are taken for another class."
        figure, alt = confusion_figure(matrix, classes), f"Confusion matrix. {caption}"
        shades = share_shades("Of a true class's rows:")
        pictures.append(Picture(figure, caption, alt, shades))
    elif wrong:
        folds += confused_pairs(classes, matrix)
    return Section("Accuracy", "\n\n".join(words), table, pictures, folds)


def _residuals_picture(classes: list[Any], coded: Coded) -> Picture | None:
    """Draw for every class what its own dictionary leaves of its rows, and what the best other."""
    shares = Answers(
        coded.chosen,
        np.where(coded.energy > 0, coded.truth, -1),
        coded.share(coded.own),
        coded.share(coded.other),
    )
    what = "share of a row's energy left over"
    return own_and_other_picture(classes, shares, "left over", "dictionary", what)


def own_and_other_picture(
    classes: list[Any], shares: Answers, verb: str, dictionary: str, what: str
) -> Picture | None:
    """Draw for every class the shares of its own rows, beside those of the best other class."""
    own, other = shares.own, shares.other
    members = [np.flatnonzero(shares.truth == c) for c in range(len(classes))]
    present = [c for c, rows in enumerate(members) if len(rows)]
    if not present:
        return None
    shown, which = present, ""
    if len(present) > _CLASSES_IN_A_MATRIX:
        right = [float((shares.chosen[members[c]] == c).mean()) for c in present]
        worst = np.argsort(right, kind="stable")[:_CLASSES_IN_A_MATRIX]
        shown = [present[i] for i in sorted(worst)]
        which = f" The {len(shown)} least accurate of {len(present)} classes are drawn."
    figure = own_and_other_figure(
        [own[members[c]] for c in shown],
        [other[members[c]] for c in shown],
        [classes[c] for c in shown],
        what,
        dictionary,
    )
    rows = np.concatenate([members[c] for c in present])
    words = (
        f"Over {count_words(len(rows), 'row')}, the median {verb} is "
        f"{percent(np.median(own[rows]))} by the row's own {dictionary} and "
        f"{percent(np.median(other[rows]))} by the best other one.{which}"
    )
    key = "Boxes span the middle half of a class's rows, lines the middle 90%; marks are medians."
    return Picture(figure, f"{words} {key}", f"Shares {verb}, by true class. {words}")


def mistakes_section(subject: Subject, coded: Coded) -> Section | None:
    """Show the mistakes with the largest margin, or the closest calls if there are none."""
    known = coded.truth >= 0
    if not known.any():
        return None
    own, other = (np.nan_to_num(coded.share(part)) for part in (coded.own, coded.other))
    wrong = np.flatnonzero(known & (coded.chosen != coded.truth))
    if len(wrong):
        wrong = wrong[np.argsort(other[wrong] - own[wrong], kind="stable")]
        rows = wrong[:_ROWS_SHOWN]
        title = "Worst mistakes"
        margin_words = "what the row's own dictionary leaves over, less what the chosen one does"
        if len(wrong) == 1:
            text = "The only mistake."
        elif len(rows) == len(wrong):
            text = f"All {len(wrong)} mistakes, the largest margin first: {margin_words}."
        else:
            text = (
                f"The {len(rows)} of {len(wrong):,} mistakes with the largest margin: "
                f"{margin_words}."
            )
    else:
        candidates = np.flatnonzero(known & (coded.energy > 0))
        margin = other[candidates] - own[candidates]
        rows = candidates[np.argsort(margin, kind="stable")[:_ROWS_SHOWN]]
        if not len(rows):
            return None
        title = "Closest calls"
        text = (
            "There are no mistakes among rows with labels that the model knows. These came "
            "closest: the best other dictionary leaves the least more over than the row's own."
        )
    cases = [_make_case(subject, coded, int(row)) for row in rows]
    answer = "taken for" if len(wrong) else "next best"
    table = Table(
        ["row", "true class", answer, "left by true", "left by other"],
        [case[0] for case in cases],
        "Rows are counted from 0, as in the file; shares are of the row's energy, where the model "
        "codes it.",
    )
    pictures = [case[1] for case in cases]
    folds = mistakes_folds(subject, coded, wrong, own, other, table) if len(wrong) else []
    return Section(title, text, table, pictures, folds)


def mistakes_folds(
    subject: Subject, answers: Answers, wrong: Array, own: Array, other: Array, shown: Table
) -> list[Fold]:
    """Return all mistakes, the worst first, where a table shows but some of them."""
    if len(wrong) <= len(shown.rows):
        return []
    classes, rows = subject.anatomy.classes, []
    for row in wrong[:LONGEST_LIST].tolist():
        names = [shorten(classes[c]) for c in (answers.truth[row], answers.chosen[row])]
        rows.append([subject.source.name(row), *names, percent(own[row]), percent(other[row])])
    title = first_of(len(rows), len(wrong), "mistake")
    return [Fold(f"{title}, the worst first", Table(shown.header, rows))]


def _make_case(subject: Subject, coded: Coded, row: int) -> tuple[list[str], Picture]:
    """Return a line of the table and a picture for one row under its own and a rival dictionary."""
    anatomy = subject.anatomy
    seen = anatomy.see(take_rows(subject.X, [row]))
    signal = anatomy.enter(seen)
    own, chosen = int(coded.truth[row]), int(coded.chosen[row])
    codes, left_by = code_signals(anatomy, signal)
    residuals = left_by[0]
    residuals[own] = np.inf
    rival = chosen if chosen != own else int(residuals.argmin())
    role = "answer" if chosen == rival else "next best"
    energy = float(coded.energy[row])
    left = (float(coded.own[row]), float(coded.other[row]))
    shares = [percent(part / energy) if energy > 0 else "nothing" for part in left]
    names = [label_words(anatomy.classes[c]) for c in (own, rival)]
    headings = [
        f"{as_label(anatomy.classes[c])}\n{what}: {share} left"
        for c, what, share in zip((own, rival), ("true", role), shares, strict=True)
    ]
    dense = [codes[c].toarray()[0] for c in (own, rival)]
    sums = [
        anatomy.learners[c].inverse_transform(dense[i][None])[0] for i, c in enumerate((own, rival))
    ]
    figure, which = _draw_pair(subject.view, seen, headings, np.array(sums), dense)
    verb, name = "taken for" if chosen == rival else "next best", subject.source.name(row)
    caption = (
        f"Row {name}: its own class, {names[0]}, leaves {shares[0]}; {verb} {names[1]}, which "
        f"leaves {shares[1]}.{which}"
    )
    alt = f"Row {name}: its sums of atoms and its codes over {list_words(names)}."
    line = [name, *(shorten(anatomy.classes[c]) for c in (own, rival)), *shares]
    shades = None if subject.view is None else subject.view.shades("the row's")
    return line, Picture(figure, caption, alt, shades)


def _draw_pair(
    view: View | None, seen: Any, headings: list[str], sums: Array, codes: list[Array]
) -> tuple[Figure, str]:
    """Return the picture of a row under two dictionaries, and words for what it leaves out."""
    if view is None:
        return pair_figure(None, dict.fromkeys(headings), codes), ""
    row, (first, second) = view.rows(seen)[0], view.atoms(sums)
    names, which = view.feature_names, ""
    if view.image_shape is None and names is not None and len(names) > _MANY_NAMES:
        apart = np.argsort(-np.abs(first - second), kind="stable")[:_NAMES_SHOWN]
        apart.sort()
        row, first, second = row[apart], first[apart], second[apart]
        names = [names[i] for i in apart]
        which = f" Drawn: the {_NAMES_SHOWN} features on which the two sums differ most."
    drawn = dict(zip(headings, (first, second), strict=True))
    figure = pair_figure(row, drawn, codes, image_shape=view.image_shape, feature_names=names)
    return figure, which


def weights_pictures(subject: Subject) -> list[Picture]:
    """Draw on which classes' atoms the codes of every class's rows have their weight.

    Beside it, atom by atom, the class whose codes have the least of it on their own atoms, where
    atoms were learned and are few enough to be told apart.
    """
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
    if len(classes) > _CLASSES_IN_A_MATRIX:
        lowest = present[np.argsort(own[present], kind="stable")[:_CLASSES_IN_A_MATRIX]]
        shown = np.sort(lowest)
        words += f" The {len(shown)} of {len(classes)} classes with the least are drawn."
        shares, classes = shares[np.ix_(shown, shown)], [classes[c] for c in shown]
    # A hundredth and more is said in the cell; the colour tells the rest.
    cells = [[f"{100 * share:.0f}" if share >= 0.005 else "" for share in row] for row in shares]
    figure = class_matrix_figure(shares, cells, classes, "atoms of class, % of the weight")
    alt = f"Weight of codes by true class and by class of atoms. {words}"
    return Picture(figure, words, alt, share_shades("Of the weight of a true class's codes:"))
