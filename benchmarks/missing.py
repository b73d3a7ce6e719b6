"""Missing values, filled by medians or coded by what is observed.

python -m benchmarks.missing [SEEDS] prints accuracy in percent, means over seeds, of three presets
of the command line on scikit-learn's data sets, values missing at random. Models learn from
complete rows, or from rows that miss as much as those to be classified. Nothing is timed.

- median: missing values take their column's median, in learning and afterwards;
- observed: medians in learning only, then rows are coded by what is observed of them;
- complete: rows with missing values are not learned from, then as before.
"""

import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.impute import SimpleImputer
from sklearn.model_selection import train_test_split

from kernelatoms.cli.choosing import find_choice, make_model

DATA = {
    "digits": (load_digits, (0.2, 0.4, 0.6)),
    "iris": (load_iris, (0.1, 0.3)),
    "wine": (load_wine, (0.1, 0.3)),
    "breast_cancer": (load_breast_cancer, (0.1, 0.3)),
}
PRESETS = ("lkdl", "lkdl-images", "linear")
POLICIES = ("median", "observed", "complete")


def holed(X: Any, share: float, rng: Any) -> Any:
    """Return rows with so many values missing at random, at least one observed in every row."""
    gone = rng.random(X.shape) < share
    gone[np.arange(len(X)), rng.integers(0, X.shape[1], len(X))] = False
    return np.where(gone, np.nan, X)


def scores(preset: str, train: Any, y_train: Any, test: Any, y_test: Any) -> Iterator[float]:
    """Yield the accuracy of each policy; NaN where none can be learned."""
    fill = SimpleImputer(strategy="median").fit(train)
    filled, complete = fill.transform(train), ~np.isnan(train).any(axis=1)
    for policy in POLICIES:
        steps = make_model(find_choice(preset), None, [], 0).steps
        model = type(make_model(find_choice(preset), None, [], 0))(steps[1:])
        some = complete if policy == "complete" else np.ones(len(train), bool)
        if len(np.unique(y_train[some])) < len(np.unique(y_train)):
            yield np.nan
            continue
        model.fit(filled[some], y_train[some])
        yield 100 * model.score(fill.transform(test) if policy == "median" else test, y_test)


def main(seeds: int) -> None:
    """Print one line a case."""
    warnings.simplefilter("ignore")
    print("| data | preset | missing | learned from | " + " | ".join(POLICIES) + " |", flush=True)
    for name, (load, shares) in DATA.items():
        X, y = load(return_X_y=True)
        for preset in PRESETS:
            for share in shares:
                for learned in ("complete rows", "the same"):
                    found = []
                    for seed in range(seeds):
                        rng = np.random.default_rng(seed)
                        train, test, y_train, y_test = train_test_split(
                            X, y, test_size=0.4, stratify=y, random_state=seed
                        )
                        if learned == "the same":
                            train = holed(train, share, rng)
                        found.append(
                            [*scores(preset, train, y_train, holed(test, share, rng), y_test)]
                        )
                    shown = " | ".join(f"{value:.1f}" for value in np.mean(found, axis=0))
                    print(f"| {name} | {preset} | {share:.0%} | {learned} | {shown} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
