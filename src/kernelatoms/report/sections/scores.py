"""How good answers are: accuracy, balanced accuracy, recall by class, confusions."""

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.report.coding import Answers, Array, Subject
from kernelatoms.report.figures.classes import confusion_figure
from kernelatoms.report.figures.style import share_shades
from kernelatoms.report.origin import caution_words
from kernelatoms.report.page import Fold, Picture, Section, Table
from kernelatoms.report.words import count_words, label_words, labels_words, percent, shorten

_CLASSES_SHOWN = 12
_LABELS_NAMED = 5
_PAIRS_SHOWN = 20
# Lines of a list in full: more would make a page heavy.
LONGEST_LIST = 500
CLASSES_IN_A_MATRIX = 20


def answers_section(subject: Subject, answers: Answers) -> Section:
    """Return how many answers are right, class by class, and which are taken for which."""
    classes = subject.anatomy.classes
    words = [f"{accuracy_words(subject, answers)} {caution_words(subject.source)}"]
    found = unknown_labels(subject, answers)
    folds: list[Fold] = []
    if found:
        text, folds = unknown_words(found)
        words.append(text)
    matrix = _confusion_counts(answers, len(classes))
    wrong = int(matrix.sum() - np.trace(matrix))
    table, more = _recall_tables(classes, matrix)
    folds += more
    pictures = []
    if matrix.sum() and len(classes) <= CLASSES_IN_A_MATRIX:
        caption = f"{wrong:,} of {int(matrix.sum()):,} rows are taken for another class."
        figure, alt = confusion_figure(matrix, classes), f"Confusion matrix. {caption}"
        shades = share_shades("Of a true class's rows:")
        pictures.append(Picture(figure, caption, alt, shades))
    elif wrong:
        folds += _confused_pairs(classes, matrix)
    return Section("Accuracy", "\n\n".join(words), table, pictures, folds)


def accuracy_words(subject: Subject, answers: Answers) -> str:
    """Say how many answers are right, and how many a guess would get."""
    n_rows = len(answers.truth)
    right = int((answers.chosen == answers.truth).sum())
    low, high = wilson_interval(right, n_rows)
    label, often = Counter(np.asarray(subject.y).tolist()).most_common(1)[0]
    words = (
        f"{right:,} of {n_rows:,} labelled rows are classified right: {percent(right / n_rows)} "
        f"(95% interval {percent(low)} to {percent(high)}). "
    )
    guess = (
        f"lways answering {label_words(label)}, the most frequent label here, would be right for "
        f"{percent(often / n_rows)}"
    )
    if right < often:
        words += f"That is worse than guessing: a{guess}. "
    else:
        hardly = low <= often / n_rows
        words += f"A{guess}{', so the model is hardly better than guessing' * hardly}. "
    balanced, n_labels = _balanced_accuracy(subject, answers)
    return words + (
        "Balanced accuracy, the mean share of right answers over "
        f"{count_words(n_labels, 'class', 'classes')}, is {percent(balanced)}."
    )


def _balanced_accuracy(subject: Subject, answers: Answers) -> tuple[float, int]:
    """Return the mean recall of labels, 0 of those the model never met, and how many there are."""
    matrix = _confusion_counts(answers, len(subject.anatomy.classes))
    totals = matrix.sum(axis=1)
    present = totals > 0
    n_labels = int(present.sum()) + len(unknown_labels(subject, answers))
    recalls = np.diagonal(matrix)[present] / totals[present]
    return float(recalls.sum()) / n_labels, n_labels


def unknown_labels(subject: Subject, answers: Answers) -> list[tuple[str, int]]:
    """Return the labels that the model never met, each with how many rows have it."""
    labels = np.asarray(subject.y)[answers.truth < 0].tolist()
    return Counter(str(label) for label in labels).most_common()


def unknown_words(found: list[tuple[str, int]]) -> tuple[str, list[Fold]]:
    """Name the labels that the model never met; all of them, where they are many, in a fold."""
    n_rows = sum(count for _, count in found)
    named = labels_words([f"{label}: {count:,}" for label, count in found], _LABELS_NAMED)
    words = (
        f"{count_words(n_rows, 'row')} with labels that the model never met ({named}) "
        f"{'counts as a mistake' if n_rows == 1 else 'count as mistakes'}; no picture shows them."
    )
    if len(found) <= _LABELS_NAMED:
        return words, []
    rows = [[shorten(label), f"{count:,}"] for label, count in found[:LONGEST_LIST]]
    title = f"{first_of(len(rows), len(found), 'label')} that the model never met"
    return words, [Fold(title, Table(["label", "rows"], rows))]


def first_of(shown: int, of: int, noun: str, plural: str = "") -> str:
    """Return how a list begins: "All 7 rows", or "The first 500 of 1,234 rows"."""
    start = "All" if shown == of else f"The first {shown:,} of"
    return f"{start} {count_words(of, noun, plural)}"


def _recall_tables(classes: list[Any], matrix: Array) -> tuple[Table | None, list[Fold]]:
    """Return how many rows of every class are right; of many classes the worst, all in a fold."""
    present = np.flatnonzero(matrix.sum(axis=1))
    if not len(present):
        return None, []
    recalls = np.diagonal(matrix)[present] / matrix.sum(axis=1)[present]
    meaning = (
        "Right, of a class's rows: its recall. Right, of answers: its precision. "
        "Only rows with labels that the model knows are counted."
    )
    if len(present) <= _CLASSES_SHOWN:
        return _recall_table(classes, matrix, present, meaning), []
    worst = present[np.argsort(recalls, kind="stable")[:_CLASSES_SHOWN]]
    which = f"The {len(worst)} least accurate of {len(present):,} classes. "
    shown = present[:LONGEST_LIST]
    title = first_of(len(shown), len(present), "class", "classes")
    folds = [Fold(title, _recall_table(classes, matrix, shown, ""))]
    return _recall_table(classes, matrix, worst, which + meaning), folds


def _recall_table(classes: list[Any], matrix: Array, shown: Array, caption: str) -> Table:
    answers = matrix.sum(axis=0)
    rows = []
    for c in shown.tolist():
        total, right = int(matrix[c].sum()), int(matrix[c, c])
        precise = percent(right / int(answers[c])) if answers[c] else "no answers"
        others = matrix[c].copy()
        others[c] = 0
        taken = shorten(classes[int(others.argmax())]) if others.any() else ""
        rows.append([shorten(classes[c]), f"{total:,}", percent(right / total), precise, taken])
    header = ["class", "rows", "right, of its rows", "right, of answers", "most taken for"]
    return Table(header, rows, caption)


def _confused_pairs(classes: list[Any], matrix: Array) -> list[Fold]:
    """Return which classes are taken for which: the most frequent, and all."""
    wrong = matrix.copy()
    np.fill_diagonal(wrong, 0)
    n_pairs = int(np.count_nonzero(wrong))
    order = np.argsort(-wrong, axis=None, kind="stable")[: min(n_pairs, LONGEST_LIST)]
    totals = matrix.sum(axis=1)
    rows = []
    for true, taken in zip(*np.unravel_index(order, wrong.shape), strict=True):
        count = int(wrong[true, taken])
        share = f"{count:,} of {totals[true]:,} ({percent(count / totals[true])})"
        rows.append([shorten(classes[true]), shorten(classes[taken]), share])
    header = ["true class", "taken for", "rows"]
    shown = rows[:_PAIRS_SHOWN]
    title = f"The most frequent {len(shown)} of {count_words(n_pairs, 'confusion')} that occur"
    folds = [Fold(title, Table(header, shown), is_open=True)]
    if n_pairs > len(shown):
        folds.append(Fold(first_of(len(rows), n_pairs, "confusion"), Table(header, rows)))
    return folds


def _confusion_counts(answers: Answers, n_classes: int) -> NDArray[np.int64]:
    """Return how often class i (row) was taken for class j (column), of rows with known labels."""
    known = answers.truth >= 0
    places = answers.truth[known] * n_classes + answers.chosen[known]
    return np.bincount(places, minlength=n_classes**2).reshape(n_classes, n_classes)


def wilson_interval(right: int, n_rows: int) -> tuple[float, float]:
    """Return the 95% interval of a share by Wilson's score, which also holds near 0 and 1."""
    z = 1.96
    share, extra = right / n_rows, z * z / n_rows
    half = float(z * np.sqrt(share * (1 - share) / n_rows + extra / (4 * n_rows)))
    middle = share + extra / 2
    low = (middle - half) / (1 + extra) if right > 0 else 0.0
    high = (middle + half) / (1 + extra) if right < n_rows else 1.0
    return low, high
