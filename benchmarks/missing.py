"""Missing values, filled by medians or from the nearest rows, or coded by what is observed.

python -m benchmarks.missing [SEEDS [PRESET ...]] prints accuracy in percent, means over seeds, of
presets of the command line on scikit-learn's data sets, values missing at random. Models learn from
complete rows, or from rows that miss as much as those to be classified. Nothing is timed.

- median: missing values take their column's median, in learning and afterwards;
- nearest: they are filled from the 15 nearest training rows, in learning and afterwards;
- observed: medians in learning only, then rows are coded by what is observed of them;
- both: filled from the nearest rows in learning only, then as before;
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
from sklearn.utils import get_tags

from kernelatoms import NearestImputer, make_preset

DATA = {
    "digits": (load_digits, (0.2, 0.4, 0.6)),
    "iris": (load_iris, (0.1, 0.3)),
    "wine": (load_wine, (0.1, 0.3)),
    "breast_cancer": (load_breast_cancer, (0.1, 0.3)),
}
PRESETS = ("kcrc", "kcrc-images", "lkdl", "lkdl-images", "linear", "linear-images")
# What fills rows to learn from, and rows to be classified.
POLICIES = {
    "median": ("median", "median"),
    "nearest": ("nearest", "nearest"),
    "observed": ("median", ""),
    "both": ("nearest", ""),
    "complete": ("", ""),
}


def holed(X: Any, share: float, rng: Any) -> Any:
    """Return rows with so many values missing at random, at least one observed in every row."""
    gone = rng.random(X.shape) < share
    gone[np.arange(len(X)), rng.integers(0, X.shape[1], len(X))] = False
    return np.where(gone, np.nan, X)


def scores(preset: str, train: Any, y_train: Any, test: Any, y_test: Any) -> Iterator[float]:
    """Yield the accuracy of each policy; NaN where none can be learned."""
    fills = {"median": SimpleImputer(strategy="median"), "nearest": NearestImputer()}
    seen = {name: (fill.fit_transform(train), fill.transform(test)) for name, fill in fills.items()}
    seen[""] = (train, test)
    fitted: dict[str, Any] = {}
    for first, second in POLICIES.values():
        model = make_preset(preset, n_rows=len(train), random_state=0)[1:]
        some = ~np.isnan(seen[first][0]).any(axis=1)
        takes_gaps = all(get_tags(step).input_tags.allow_nan for _, step in model.steps)
        lost = len(np.unique(y_train[some])) < len(np.unique(y_train))
        if lost or not (second or takes_gaps):
            yield np.nan
            continue
        filled_by = first if np.isnan(train).any() else ""  # of complete rows one model is enough
        if filled_by not in fitted:
            fitted[filled_by] = model.fit(seen[first][0][some], y_train[some])
        yield 100 * fitted[filled_by].score(seen[second][1], y_test)


def main(seeds: int, presets: tuple[str, ...]) -> None:
    """Print one line a case."""
    warnings.simplefilter("ignore")
    print("| data | preset | missing | learned from | " + " | ".join(POLICIES) + " |", flush=True)
    for name, (load, shares) in DATA.items():
        X, y = load(return_X_y=True)
        for preset in presets:
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
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5, tuple(sys.argv[2:]) or PRESETS)
