"""What a model's page says of files: where its rows come from, how the model came about."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # reports import matplotlib, which takes a second
    from kernelatoms.report import RowsOfFile


def rows_of_file(table: Any, record: Any, X: Any, y: Any, kept: Any) -> "RowsOfFile":
    """Return which rows of a file a page shows, and how many of them the model learned from.

    ``kept`` says which rows of the file have a label; None if nobody asked.
    """
    import numpy as np

    from kernelatoms.files.tables.matching import row_identifiers
    from kernelatoms.report import RowsOfFile

    numbers = np.arange(len(table)) if kept is None else np.flatnonzero(kept)
    names = {name: values[numbers] for name, values in row_identifiers(table, record).items()}
    return RowsOfFile(numbers, names, len(table), share_learned(record, X, y))


def share_learned(record: Any, X: Any, y: Any) -> float | None:
    """Return the share of rows that a model learned from; None where that is not known."""
    from kernelatoms.files.tables.features import fingerprint
    from kernelatoms.files.tables.row_marks import ROW_MARKS, learned_share

    learned = learned_share(X, record.data.get(ROW_MARKS))
    # Files of earlier versions know all their rows at once, and no single ones.
    if learned is None and fingerprint(X, y) == record.data.get("fingerprint"):
        return 1.0
    return learned


def facts_for_page(record: Any, data: Path | None, source: Any) -> dict[str, str]:
    """Return what the page's first table says beside sizes."""
    facts = {
        "model": record.name or "not recorded",
        "trained on": _trained_on(record.data),
        "shown on": "no rows" if data is None else data.name,
        **({"these rows are": _origin(source.learned)} if source is not None else {}),
        "label": record.label or "none",
        "written by": f"kernelatoms {record.made_with.get('kernelatoms', '?')}, "
        f"{record.made_with.get('date', '?')}",
        **_scores(record.fit.get("cross_validation") or {}),
    }
    if record.data.get("missing"):
        facts["missing values learned with"] = f"{record.data['missing']:,}"
    if record.left_out:
        name = f"left out ({len(record.left_out):,} of the file's columns)"
        facts[name] = "; ".join(f"{column}: {why}" for column, why in record.left_out.items())
    return facts


def _origin(learned: float | None) -> str:
    if learned is None:
        return "not known to be new"
    if learned in (0, 1):
        return "the ones it learned from" if learned else "others than it learned from"
    return f"{learned:.1%} rows it learned from"


def _trained_on(data: dict[str, Any]) -> str:
    sizes = [f"{data[name]:,} {name}" for name in ("rows", "features") if name in data]
    return ", ".join([*([data["file"]] if "file" in data else []), *sizes]) or "not recorded"


# What a fit may have recorded of its folds beside their accuracy, and in which words.
_FURTHER = {
    "balanced": "cross-validated balanced accuracy",
    "balanced_accuracy": "cross-validated balanced accuracy",
    "svm": "an RBF-SVM on the same folds",
}


def _scores(scores: dict[str, Any]) -> dict[str, str]:
    """Return the scores of a cross-validation in words; none where there was none."""
    if not scores:
        return {}
    facts = {"cross-validated accuracy": f"{_share(scores)} over {len(scores['folds'])} folds"}
    if "most_frequent_class" in scores:
        facts["the most frequent class"] = f"{_share(scores['most_frequent_class'])} of rows"
    facts |= {words: _share(scores[key]) for key, words in _FURTHER.items() if key in scores}
    if isinstance(scores.get("recall"), dict):
        each = (f"{name}: {_share(value)}" for name, value in scores["recall"].items())
        facts["cross-validated recall by class"] = "; ".join(each)
    return {name: said for name, said in facts.items() if said}


def _share(score: Any) -> str:
    """Return a score as a percentage, with its standard error where it has one."""
    if isinstance(score, int | float):
        return f"{score:.1%}"
    if not isinstance(score, dict) or not isinstance(score.get("mean"), int | float):
        return ""
    error = score.get("standard_error")
    return f"{score['mean']:.1%}" + (f" ± {error:.1%}" if isinstance(error, int | float) else "")
