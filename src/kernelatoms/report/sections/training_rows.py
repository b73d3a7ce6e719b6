"""Sections on models whose dictionary are the training rows: codes, answers, mistakes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.report.coding import Subject
from kernelatoms.report.figures.classes import Bars
from kernelatoms.report.page import Section
from kernelatoms.report.sections.decisions import Decision, DecisionKind, decision_sections

Array = NDArray[Any]


def training_rows_sections(subject: Subject) -> list[Section | None]:
    """Return how rows are written in training rows, and how good the answers are."""
    last = subject.anatomy.last
    return decision_sections(subject, "Codes", _codes_words(last), _kind(last))


def _codes_words(last: Any) -> str:
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


def _kind(last: Any) -> DecisionKind:
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
