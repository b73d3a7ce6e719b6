"""How kinds of classifiers decide: by one dictionary or one per class, by training rows."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from kernelatoms.report.anatomy import registered_name
from kernelatoms.report.coding import Answers, Array, Coded, Subject, code_signals, take_rows
from kernelatoms.report.figures.classes import Bars
from kernelatoms.report.figures.rows import pair_figure
from kernelatoms.report.figures.style import Figure, as_label
from kernelatoms.report.page import Picture, Section
from kernelatoms.report.sections.accuracy import (
    Ranking,
    accuracy_section,
    mistakes_section,
    share_words,
)
from kernelatoms.report.sections.decisions import Decision, DecisionKind, decision_sections
from kernelatoms.report.view import View
from kernelatoms.report.words import label_words, list_words

# Of more than so many named features, the few that matter most are drawn.
_MANY_NAMES, _NAMES_SHOWN = 15, 12


class _Words(NamedTuple):
    """What the objective adds to the squared error, how rows are decided, what shares are."""

    objective: str
    decision: str
    shares: str


_LINEAR = _Words(
    ", plus that of the marks of their classes as a linear map of the codes gives them, weighed",
    "Every row is coded once, over the atoms of all classes. Every atom has a weight for "
    "every class; a class's score is the sum of coefficients times weights, and the largest "
    "wins. So an atom that started from one class may count for another.",
    "Shares of classes are the probabilities nearest to the scores",
)
_FDDL = _Words(
    ", twice: over all atoms and over those of the row's class; plus what atoms of other "
    "classes put in, the penalty on the size of coefficients, and the spread of codes "
    "within classes less that between them, all weighed",
    "Every row is coded once, over the atoms of all classes. A class is judged by what its "
    "part of the code leaves of the row, plus the weighed distance of the code from the "
    "class's mean code; the smallest sum wins.",
    "The share of a class in a row's fit is 1 over what the class leaves, in the sense "
    "above, over the sum of all classes",
)
_LOCAL_FDDL = _FDDL._replace(
    decision="Every row is coded over each class's atoms by itself. A class is judged by what its "
    "code leaves of the row, plus the penalty on the code's size and on its distance from "
    "the class's mean code; the smallest sum wins. Shown is the answer's code.",
)
_KSAD = _Words(
    ", plus the penalty on the size of coefficients, less how far codes of different "
    "classes lie apart in units of the spread within classes, both weighed; it may be negative",
    "Every row is coded once, over all atoms, which are orthonormal. The training rows "
    "whose codes are nearest vote, one vote each; of classes with as many votes, that of "
    "the nearest wins. An atom is counted to the class whose codes have most energy in it.",
    "The share of a class is that of its votes among the nearest training rows, the first "
    "of a class counted a little more",
)


def _words(last: Any) -> _Words:
    if _is_local(last):
        return _LOCAL_FDDL
    return {"FDDLClassifier": _FDDL, "KSADClassifier": _KSAD}.get(registered_name(last), _LINEAR)


def _is_local(last: Any) -> bool:
    return registered_name(last) == "FDDLClassifier" and last.decision == "local"


def supervised_sections(subject: Subject) -> list[Section | None]:
    """Return how codes decide, and how good the answers are."""
    last = subject.anatomy.last
    return decision_sections(subject, "Decision", _words(last).decision, _kind(last))


def codes_words(last: Any) -> str:
    """Say over which atoms rows are coded, and whether these codes decide."""
    words = (
        " Here each row is coded over the atoms of all classes together, as transform gives "
        "its codes."
    )
    return words + (" The decision codes anew, class by class." if _is_local(last) else "")


def objective_words(last: Any) -> str:
    """Say what the objective adds to the squared error of the training rows' codes."""
    return _words(last).objective


def supervised_sizes(last: Any) -> list[list[str]]:
    """Return what codes and terms of the objective weigh, as lines of a table."""
    name = registered_name(last)
    if name == "FDDLClassifier":
        return [
            ["weight of the l1 penalty", f"{last.l1_weight_:.4g}"],
            ["weight of Fisher's criterion", f"{last.fisher_weight:g}"],
            ["decision", "class by class" if _is_local(last) else "over all atoms"],
        ]
    if name == "KSADClassifier":
        return [
            ["landmarks of the kernel map", f"{len(last.anchors_):,}"],
            ["within-class metric", "yes" if last.in_metric_ else "no"],
            ["weight of the l1 penalty", f"{last.l1_weight_:.4g}"],
            ["weight of the scatter of codes", f"{last.fisher_weight:g}"],
            ["training codes that vote", f"{last.n_neighbors_:,} of {len(last.codes_):,}"],
        ]
    rows = [["nonzeros per code, at most", f"{last.n_nonzero_coefs_:,}"]]
    if hasattr(last, "consistency_weight"):
        rows.append(["variant", f"{last.variant}"])
        rows.append(["weight of label consistency", f"{last.consistency_weight:g}"])
    if getattr(last, "variant", 2) == 2:
        rows.append(["weight of the labels", f"{last.label_weight:g}"])
    return rows


def _kind(last: Any) -> DecisionKind:
    name = registered_name(last)

    def bars(decision: Decision) -> list[Bars]:
        why = decision.why
        first = Bars("share of the code's energy", why.code_energies(), are_shares=True)
        if _is_local(last) and why.residuals is not None and why.energy:
            # The code is over the answer's atoms alone: what the other classes leave says more.
            first = Bars("share of the row's energy left", why.residuals / why.energy, True)
        if name == "KSADClassifier":
            return [first, Bars("votes", np.floor(why.scores))]
        fisher = name == "FDDLClassifier"
        title = "share of the fit" if fisher else "score"
        return [first, Bars(title, why.scores, are_shares=fisher)]

    def sums(decision: Decision) -> dict[str, Array]:
        why = decision.why
        return {"its atoms' sum": np.asarray(why.coefficients @ last.components_[why.atoms])}

    return DecisionKind(_words(last).shares, "atom", last.components_, bars, sums)


def training_rows_sections(subject: Subject) -> list[Section | None]:
    """Return how rows are written in training rows, and how good the answers are."""
    last = subject.anatomy.last
    return decision_sections(subject, "Codes", _row_codes_words(last), _row_kind(last))


def _row_codes_words(last: Any) -> str:
    """Say what rows are written in, and how classes are judged by it."""
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
    return " ".join(words)


def _row_kind(last: Any) -> DecisionKind:
    def bars(decision: Decision) -> list[Bars]:
        return [
            Bars("share of the code's energy", decision.why.code_energies(), are_shares=True),
            Bars("regularised residual", last.residuals(decision.signal)[0]),
        ]

    def sums(decision: Decision) -> dict[str, Array]:
        if last._kernel().name != "linear" or last.projected_:
            return {}  # in feature space a sum of rows is no image
        why = decision.why
        size = float(np.linalg.norm(decision.signal)) if last.normalize else 1.0
        images = {"its training rows' sum": size * (why.coefficients @ last.dictionary_[why.atoms])}
        if last.residual_norm == "l1":
            images["distrusted"] = size * np.abs(last.errors(decision.signal))[0]
        return images

    return DecisionKind(
        "The share of a class in a row's fit is 1 / r_c^2 over the sum of all classes",
        "training row", last.dictionary_, bars, sums,
    )  # fmt: skip


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


# By the group of the estimator in the registry.
DECISIONS: Mapping[str, Callable[[Subject], list[Section | None]]] = {
    "class dictionaries": class_dictionary_sections,
    "supervised dictionaries": supervised_sections,
    "training rows": training_rows_sections,
}
