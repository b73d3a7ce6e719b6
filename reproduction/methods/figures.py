"""Tables of the study: a summary, then accuracy by data set, times and sizes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from reproduction.figure import Claim, Curves, PaperFigure
from reproduction.methods.cells import OVER
from reproduction.methods.claims import (
    SUMMARY_PLACES,
    claims_images,
    claims_of,
    claims_summary,
    medians,
    only,
    ranks,
    summary,
)
from reproduction.methods.data import (
    BUNDLED,
    CLEAN,
    CONDITIONS,
    IMAGES,
    MADE,
    MOST_TEST,
    MOST_TRAIN,
    TUNED,
)
from reproduction.methods.study import STUDY

_RULES = (
    f"At most {MOST_TRAIN} rows to learn from and {MOST_TEST} others to judge by, drawn anew for "
    "every seed. Every method fills missing values with medians; the presets scale as they say, "
    "scikit-learn's methods get standardised columns. Over budget: more than 10 minutes or 8 GiB. "
    "Gradient boosting is not run on faces: a tree for each of 38 to 100 persons in every round "
    "would take longer than all the rest."
)
_GROUPS = {"bundled": tuple(BUNDLED), "made": tuple(MADE), "images": tuple(IMAGES)}
_GROUP_NAMES = {
    "bundled": "tables of scikit-learn", "made": "made-up tables", "images": "images",
}  # fmt: skip
_CONDITIONS = {
    CLEAN: "Rows as they are.",
    "noise": "Gaussian noise of half of every column's standard deviation in all rows.",
    "missing": "A fifth of all values missing.",
    "wrong labels": "A tenth of the training labels are another class's.",
    TUNED: "Rows as they are; a small grid (`reproduction/methods/classifiers.py`) is searched by "
    "three folds of the training rows first.",
}


def _take(name: str) -> Callable[[Mapping[str, Any]], float | None]:
    """Return what takes one measure out of a run's; NaN for a run that was over its budget."""
    return lambda measures: float("nan") if OVER in measures else measures.get(name)


def _no_claims(curves: Curves) -> list[Claim]:
    return []


def _figure(
    name: str, title: str, text: str, measure: str, ylabel: str, places: Sequence[str],
    compared: Callable[[Curves], Curves], claims: Callable[[Curves], list[Claim]] = _no_claims,
    **how: Any,
) -> PaperFigure:  # fmt: skip
    return PaperFigure(
        name=f"methods/{name}", title=title, text=text, source="", study=STUDY,
        measured=_take(measure), reported={}, claims=claims, xlabel="data", ylabel=ylabel,
        by_method=True, names=dict(enumerate(places)), compared=compared, **how,
    )  # fmt: skip


def _by_group(group: str, condition: str) -> PaperFigure:
    data = _GROUPS[group]
    claims = claims_images if group == "images" else claims_of(data)
    return _figure(
        f"{group}-{condition.replace(' ', '-')}", f"Accuracy on {_GROUP_NAMES[group]}: {condition}",
        f"{_CONDITIONS[condition]} {_RULES}", "accuracy", "accuracy in percent", data,
        only(data, condition), claims if condition == CLEAN else _no_claims, number="{:.1f}",
    )  # fmt: skip


_TWO = ("tables", "images")
_COSTS = (
    ("fit", "Seconds to learn", "seconds", "{:.3f}"),
    ("predict", f"Seconds to predict {MOST_TEST} rows", "seconds", "{:.3f}"),
    ("bytes", "Bytes of the fitted model", "bytes", "{:,.0f}"),
)

FIGURES = (
    _figure(
        "summary", "How far from a support vector machine",
        "The median over data sets of the accuracy less that of the RBF-SVM at its defaults "
        f"(tuned: after its own grid), in points; above 0 is better. {_RULES}",
        "accuracy", "points above the RBF-SVM", SUMMARY_PLACES, summary, claims_summary,
        number="{:+.1f}", over="median over data sets",
    ),
    _figure(
        "ranks", "Ranks", "Mean rank among all methods over clean data sets, 1 is the best.",
        "accuracy", "mean rank", _TWO, ranks, number="{:.1f}",
        over="mean ± standard error over data sets",
    ),
    *(
        _by_group(group, condition)
        for condition in CONDITIONS
        for group in _GROUPS
        if group != "images" or condition in (CLEAN, "noise")
    ),
    *(
        _figure(
            f"{group}-balanced", f"Balanced accuracy on {_GROUP_NAMES[group]}: clean",
            f"The mean recall of the classes. {_RULES}", "balanced",
            "balanced accuracy in percent", data, only(data, CLEAN), number="{:.1f}",
        )
        for group, data in _GROUPS.items()
    ),
    *(
        _figure(
            name, f"{title}: medians", f"The median over clean data sets, at defaults. {_RULES}",
            name, ylabel, _TWO, medians, number=number, log=True,
            over="median over data sets",
        )
        for name, title, ylabel, number in _COSTS
    ),
)  # fmt: skip
