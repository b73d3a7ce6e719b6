"""Sections on classifiers with one dictionary per class: residuals by class, mistakes."""

from typing import Any

import numpy as np

from kernelatoms.report.coding import Answers, Array, Coded, Subject, code_signals, take_rows
from kernelatoms.report.figures.rows import pair_figure
from kernelatoms.report.figures.style import Figure, as_label
from kernelatoms.report.page import Picture, Section
from kernelatoms.report.sections.accuracy import (
    Ranking,
    accuracy_section,
    mistakes_section,
    share_words,
)
from kernelatoms.report.view import View
from kernelatoms.report.words import label_words, list_words

# Of more than so many named features, the few that matter most are drawn.
_MANY_NAMES, _NAMES_SHOWN = 15, 12


def class_dictionary_sections(subject: Subject) -> list[Section | None]:
    """Return how good the answers are, and the worst of them; of rows with labels."""
    coded = subject.coded
    if coded is None or subject.y is None:
        return []
    return [_accuracy_section(subject, coded), _mistakes_section(subject, coded)]


def _accuracy_section(subject: Subject, coded: Coded) -> Section:
    known = np.where(coded.energy > 0, coded.truth, -1)
    shares = Answers(coded.chosen, known, coded.share(coded.own), coded.share(coded.other))
    meaning = "A row belongs to the class whose dictionary leaves the least of it"
    what = "share of a row's energy left over"
    return accuracy_section(subject, coded, shares, meaning, "left over", "dictionary", what)


def _mistakes_section(subject: Subject, coded: Coded) -> Section | None:
    own, other = coded.share(coded.own), coded.share(coded.other)
    ranking = Ranking(
        own, other, other - own,
        "what the row's own dictionary leaves over, less what the chosen one does",
        "the best other dictionary leaves the least more over than the row's own",
        ["left by true", "left by other"],
        "shares are of the row's energy, where the model codes it.",
    )  # fmt: skip
    return mistakes_section(subject, coded, ranking, lambda row: _draw_case(subject, coded, row))


def _draw_case(subject: Subject, coded: Coded, row: int) -> tuple[int, Picture]:
    """Return the best other class of a row, and the row under the dictionaries of both."""
    anatomy = subject.anatomy
    before = anatomy.before_map(take_rows(subject.X, [row]))
    codes, left_by = code_signals(anatomy, anatomy.after_map(before))
    own, chosen = int(coded.truth[row]), int(coded.chosen[row])
    residuals = left_by[0]
    residuals[own] = np.inf
    rival = chosen if chosen != own else int(residuals.argmin())
    pair = (own, rival)
    shares = [share_words(float(coded.share(part)[row])) for part in (coded.own, coded.other)]
    roles = ("true", "answer" if chosen == rival else "next best")
    headings = [
        f"{as_label(anatomy.classes[c])}\n{role}: {share} left"
        for c, role, share in zip(pair, roles, shares, strict=True)
    ]
    sums = [anatomy.learners[c].inverse_transform(codes[c].toarray())[0] for c in pair]
    dense = [codes[c].toarray()[0] for c in pair]
    figure, which = _draw_pair(subject.view, before, headings, np.array(sums), dense)
    verb, name = "taken for" if chosen == rival else "next best", subject.source.name(row)
    names = [label_words(anatomy.classes[c]) for c in pair]
    caption = (
        f"Row {name}: its own class, {names[0]}, leaves {shares[0]}; {verb} {names[1]}, which "
        f"leaves {shares[1]}.{which}"
    )
    alt = f"Row {name}: its sums of atoms and its codes over {list_words(names)}."
    shades = None if subject.view is None else subject.view.shades("the row's")
    return rival, Picture(figure, caption, alt, shades)


def _draw_pair(
    view: View | None, before: Any, headings: list[str], sums: Array, codes: list[Array]
) -> tuple[Figure, str]:
    """Return the picture of a row under two dictionaries, and words for what it leaves out."""
    if view is None:
        return pair_figure(None, dict.fromkeys(headings), codes), ""
    row, (first, second) = view.rows(before)[0], view.atoms(sums)
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
