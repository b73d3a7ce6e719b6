"""Where the rows and the model of a report come from, as files and model files have it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from kernelatoms.files.tables.features import ROW_MARKS, learned_share
from kernelatoms.files.tables.matching import as_written, row_identifiers
from kernelatoms.report.words import count_words, isolate, percent, shorten


@dataclass(frozen=True)
class RowsOfFile:
    """Where the rows of a report come from, so that a reader finds them again.

    Parameters
    ----------
    numbers : int array of shape (n_rows,), optional
        The number of every row in its file, counted from 0; by default 0, 1, 2, ...
    identifiers : mapping of str to array of shape (n_rows,), optional
        Columns that name the rows, such as a customer's number.
    n_in_file : int, optional
        How many rows the file has, where some are not in the report.
    learned : float, optional
        The share of the rows that the model learned from, between 0 and 1, where it is known.
    drawn : bool, default=False
        Whether the rows are a random sample of those of the file.
    """

    numbers: Any = None
    identifiers: Mapping[str, Any] = field(default_factory=dict)
    n_in_file: int | None = None
    learned: float | None = None
    drawn: bool = False

    def __post_init__(self) -> None:
        """Check the flag."""
        if not isinstance(self.drawn, bool):
            raise TypeError(f"drawn must be True or False, got {self.drawn!r}.")

    def name(self, row: int) -> str:
        """Return which row of the file a row of the report is.

        Parameters
        ----------
        row : int
            Its place in the report.

        Returns
        -------
        str

        Examples
        --------
        >>> from kernelatoms.report import RowsOfFile
        >>> RowsOfFile([3, 17], {"PassengerId": [4.0, 892.0]}).name(1)
        '17, PassengerId 892'
        """
        number = row if self.numbers is None else int(self.numbers[row])
        names = (
            f"{shorten(column, 24)} {isolate(shorten(as_written(values[row]), 32))}"
            for column, values in self.identifiers.items()
        )
        return ", ".join([f"{number:d}", *names])


def check_source(source: Any, n_rows: int | None) -> RowsOfFile:
    """Return where so many rows come from, by default numbered, or say what is wrong with it."""
    if source is None:
        return RowsOfFile()
    if not isinstance(source, RowsOfFile):
        raise TypeError(f"rows must be a RowsOfFile, got {source!r}.")
    if n_rows is None:
        raise ValueError("rows says where the rows of X come from: pass X too.")
    if source.numbers is not None:
        numbers = np.asarray(source.numbers)
        if numbers.shape != (n_rows,) or numbers.dtype.kind not in "iu":
            raise ValueError(
                f"rows: numbers must hold a whole number for each of the {n_rows} rows of X, "
                f"got {numbers.dtype.name} of shape {numbers.shape}."
            )
    if not isinstance(source.identifiers, Mapping):
        raise TypeError(f"rows: identifiers must map names to values, got {source.identifiers!r}.")
    for column, values in source.identifiers.items():
        if len(values) != n_rows:
            raise ValueError(
                f"rows: identifiers[{column!r}] must hold a value for each of the {n_rows} "
                f"rows of X, got {len(values)}."
            )
    if source.n_in_file is not None and source.n_in_file < n_rows:
        raise ValueError(
            f"rows: n_in_file must be at least the {n_rows} rows of X, got {source.n_in_file}."
        )
    if source.learned is not None and not 0 <= source.learned <= 1:
        raise ValueError(f"rows: learned must lie between 0 and 1, got {source.learned}.")
    return source


def origin_words(source: RowsOfFile) -> str:
    """Say how many of the rows were learned from, for the first words of a page."""
    if source.learned is None or source.learned < 0.5:
        return ""
    if source.learned == 1:
        return "On the rows it learned from: "
    return f"Mostly on rows it learned from ({percent(source.learned)} of them): "


def caution_words(source: RowsOfFile) -> str:
    """Say what a reader may expect on new rows."""
    if source.learned is None:
        return (
            "A page cannot know whether the model learned from these rows; if it did, expect "
            "less on new ones."
        )
    if source.learned == 0:
        return "The model learned from none of these rows."
    if source.learned == 1:
        return (
            "The model learned from these rows, or from rows equal to them: expect less on new "
            "ones."
        )
    return (
        f"{percent(source.learned)} of these rows are equal, in every feature, to rows that the "
        "model learned from; expect less on new ones."
    )


def left_out_words(source: RowsOfFile, n_rows: int, labelled: bool) -> str:
    """Say how many rows of the file are not in the report."""
    n_missing = (source.n_in_file or n_rows) - n_rows
    if not n_missing:
        return ""
    if source.drawn:
        return (
            f"This report is about a random sample of {count_words(n_rows, 'row')} of the file's "
            f"{source.n_in_file:,}{', those with a label' if labelled else ''}."
        )
    why = " have no label and" if labelled else ""
    return (
        f"{count_words(n_missing, 'row')} of the file's {source.n_in_file:,}{why} are not in "
        f"this report, which is about the other {n_rows:,}."
    )


def rows_of_file(table: Any, record: Any, X: Any, kept: Any, sample: Any = None) -> RowsOfFile:
    """Return which rows of a file, all or ``kept``, a page shows, and the share learned from.

    ``sample`` says which rows of a larger table the table holds.
    """
    some = np.arange(len(table)) if kept is None else np.flatnonzero(kept)
    names = {name: values[some] for name, values in row_identifiers(table, record).items()}
    numbers, n_rows = (some, len(table)) if sample is None else (sample.rows[some], sample.n_rows)
    learned = learned_share(X, record.data.get(ROW_MARKS))
    return RowsOfFile(numbers, names, n_rows, learned, sample is not None)


def record_facts(record: Any, data: Path | None, source: Any) -> dict[str, str]:
    """Return what a model file's record says, for the first table of a page."""
    file = [record.data["file"]] if "file" in record.data else []
    counted = [name for name in ("rows", "features") if name in record.data]
    sizes = [f"{record.data[name]:,} {name}" for name in counted]
    facts = {
        "model": record.name or "not recorded",
        "trained on": ", ".join([*file, *sizes]) or "not recorded",
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
