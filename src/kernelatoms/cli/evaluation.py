"""How many predictions are right: in all, per class, and compared with guessing."""

from dataclasses import dataclass
from typing import Any

_MOST_CLASSES = 20


@dataclass(frozen=True)
class Evaluation:
    """Predictions compared with true labels."""

    labelled: int  # rows with a label
    rows: int  # all rows
    accuracy: float  # share of labelled rows that are right
    recall: dict[str, float]  # the same per class
    counts: dict[str, int]  # rows per class
    unknown: dict[str, int]  # rows per class that the model does not know; all are wrong

    @property
    def balanced_accuracy(self) -> float:
        """The mean recall of the classes."""
        return sum(self.recall.values()) / len(self.recall)

    @property
    def most_frequent(self) -> tuple[str, float]:
        """The most frequent class and its share of the labelled rows."""
        name = max(self.counts, key=lambda c: self.counts[c])
        return name, self.counts[name] / self.labelled

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
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
        """Return everything in words, the classes with the lowest recall first."""
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


def evaluate(predictions: Any, truth: Any, n_rows: int, classes: Any) -> Evaluation:
    """Compare predictions of labelled rows with the truth; ``n_rows`` counts all rows."""
    import numpy as np

    true = np.array([str(value) for value in truth.tolist()])
    right = np.array([str(value) for value in predictions.tolist()]) == true
    names, places, counts = np.unique(true, return_inverse=True, return_counts=True)
    recalls = np.bincount(places, right, len(names)) / counts
    known = {str(value) for value in classes.tolist()}
    return Evaluation(
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
