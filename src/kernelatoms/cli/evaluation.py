"""How right predictions are: of how many rows, class by class, and against guessing."""

from dataclasses import dataclass
from typing import Any

_MOST_CLASSES = 20


@dataclass(frozen=True)
class Judgement:
    """Predictions beside true labels.

    Parameters
    ----------
    labelled : int
        How many rows have a label.
    rows : int
        How many rows there are.
    accuracy : float
        The share of labelled rows whose prediction is right.
    recall : dict of str to float
        The same for the rows of each class.
    counts : dict of str to int
        How many rows each class has.
    unknown : dict of str to int
        Rows of classes that the model has never seen; no prediction can be right there.
    """

    labelled: int
    rows: int
    accuracy: float
    recall: dict[str, float]
    counts: dict[str, int]
    unknown: dict[str, int]

    @property
    def balanced_accuracy(self) -> float:
        """The mean of the classes' recalls."""
        return sum(self.recall.values()) / len(self.recall)

    @property
    def most_frequent(self) -> tuple[str, float]:
        """The most frequent class, and its share of the labelled rows: what guessing reaches."""
        name = max(self.counts, key=lambda c: self.counts[c])
        return name, self.counts[name] / self.labelled

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain values."""
        name, share = self.most_frequent
        return {
            "labelled_rows": self.labelled,
            "accuracy": self.accuracy,
            "balanced_accuracy": self.balanced_accuracy,
            "recall": self.recall,
            "rows_of_class": self.counts,
            "most_frequent_class": {"class": name, "share": share},
            "unknown_labels": self.unknown,
        }

    def lines(self) -> list[str]:
        """Return all of it in words; classes from the worst recognised on."""
        share = f"{self.accuracy:.1%} of {self.labelled:,} labelled rows"
        without = self.rows - self.labelled
        without_label = f" ({without:,} of {self.rows:,} rows have no label)" if without else ""
        said = [
            f"{share} are predicted right{without_label}; balanced accuracy "
            f"{self.balanced_accuracy:.1%}."
        ]
        said.append(f"Recall of each class, the worst first: {self._recalls()}.")
        if self.unknown:
            n = sum(self.unknown.values())
            names = _shortened([f"{name!r} ({count:,})" for name, count in self.unknown.items()])
            said.append(
                f"{n:,} labelled row{'s are' if n != 1 else ' is'} of classes that the model has "
                f"never seen, and count{'s' * (n == 1)} as wrong: {names}."
            )
        name, guessed = self.most_frequent
        if len(self.counts) > 1 and self.accuracy <= guessed:
            said.append(
                f"This is no better than guessing: always answering {name!r} would be right for "
                f"{guessed:.1%}."
            )
        return said

    def _recalls(self) -> str:
        worst = sorted(self.recall, key=lambda c: (self.recall[c], c))
        return _shortened([f"{c} {self.recall[c]:.1%} of {self.counts[c]:,}" for c in worst])


def judge(predictions: Any, truth: Any, n_rows: int, classes: Any) -> Judgement:
    """Return how right the predictions of labelled rows are.

    Parameters
    ----------
    predictions : array of shape (n_labelled,)
        What was answered.
    truth : array of shape (n_labelled,)
        What is right, written as the predictions are.
    n_rows : int
        How many rows there are, with and without label.
    classes : array of shape (n_classes,)
        The classes that the model knows.
    """
    import numpy as np

    true = np.array([str(value) for value in truth.tolist()])
    right = np.array([str(value) for value in predictions.tolist()]) == true
    names, places, counts = np.unique(true, return_inverse=True, return_counts=True)
    recalls = np.bincount(places, right, len(names)) / counts
    known = {str(value) for value in classes.tolist()}
    return Judgement(
        labelled=len(true),
        rows=n_rows,
        accuracy=float(right.mean()),
        recall=dict(zip(names.tolist(), recalls.tolist(), strict=True)),
        counts=dict(zip(names.tolist(), counts.tolist(), strict=True)),
        unknown={
            name: count
            for name, count in zip(names.tolist(), counts.tolist(), strict=True)
            if name not in known
        },
    )


def _shortened(parts: list[str]) -> str:
    more = len(parts) - _MOST_CLASSES
    return ", ".join(parts[:_MOST_CLASSES]) + (f" and {more:,} more (--json has all)" * (more > 0))
