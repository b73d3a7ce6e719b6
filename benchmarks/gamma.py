"""What the default of gamma does: accuracy on raw, standardised and unit-norm rows.

``python -m benchmarks.run gamma`` prints two tables: every classifier under the RBF kernel, and
every kernel by name, with the defaults there were before, with ``gamma="scale"`` and, where that is
the default, with "spread", beside scikit-learn's ``SVC()``. At most 1,200 rows of a data set; those
of ``KERNELATOMS_DATA`` are left out where there are none.
"""

import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, normalize
from sklearn.svm import SVC

from kernelatoms import (
    KSVD,
    ClassDictionaryClassifier,
    CRCClassifier,
    KernelKSVD,
    KernelLinearizer,
    KernelMOD,
    KSADClassifier,
    SRCClassifier,
)
from kernelatoms.similarity import KERNELS

SCALINGS = ("raw", "standardised", "unit norm")
_MOST_ROWS = 1200
_ATOMS, _NONZEROS = 20, 5

Rows = tuple[Any, Any, Any, Any]


def data_sets() -> Iterator[tuple[str, Any, Any]]:
    """Yield names, rows as they are, and labels."""
    bundled = {"digits": load_digits, "iris": load_iris, "wine": load_wine,
               "breast cancer": load_breast_cancer}  # fmt: skip
    for name, load in bundled.items():
        yield name, *load(return_X_y=True)
    home = Path(os.environ.get("KERNELATOMS_DATA", ""))
    if not os.environ.get("KERNELATOMS_DATA"):
        return
    for name in ("usps", "mnist"):
        held = np.load(home / f"{name}.npz")
        yield name.upper(), _flat(held["X_train"][:4000]), held["y_train"][:4000]
    held = np.load(home / "orl.npz")
    yield "ORL 28x23", _flat(held["X"][:, ::4, ::4]), held["y"]
    held = np.load(home / "ar_60x43.npz")
    yield "AR 30x22", _flat(held["X_train"][:, ::2, ::2]), held["y_train"]
    held = np.load(home / "yaleb_32x32.npz")
    yield "Yale B 32x32", _flat(held["X"]), held["y"]
    held = np.load(home / "yaleb_randomface504.npz")
    yield "Yale B random faces", held["X"].astype(float), held["y"]
    held = np.load(home / "pm25_beijing36.npz")
    whole = ~np.isnan(held["X"]).any(axis=1)
    quarter = np.minimum(held["hour"] // (365 * 6), 3)
    yield "PM2.5, quarter of the year", held["X"][whole].astype(float), quarter[whole]
    windows = np.load(home / "guangzhou_50x15.npz")["X"].transpose(0, 2, 1)
    part_of_day = np.repeat(np.arange(144) // 24, 15)
    yield "traffic speed, part of the day", windows.reshape(-1, 50).astype(float), part_of_day


def _flat(images: Any) -> Any:
    return images.reshape(len(images), -1).astype(float)


def split(X: Any, y: Any, scaling: str) -> Rows:
    """Return half of at most 1,200 rows to learn from, and the others."""
    if len(X) > _MOST_ROWS:
        X, _, y, _ = train_test_split(X, y, train_size=_MOST_ROWS, stratify=y, random_state=0)
    train, test, y_train, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
    if scaling == "standardised":
        scaler = StandardScaler().fit(train)
        train, test = scaler.transform(train), scaler.transform(test)
    elif scaling == "unit norm":
        train, test = normalize(train), normalize(test)
    return train, test, y_train, y_test


def _sizes(y: Any) -> dict[str, Any]:
    smallest = int(np.unique(y, return_counts=True)[1].min())
    atoms = min(_ATOMS, smallest)
    return {"n_atoms": atoms, "n_nonzero_coefs": min(_NONZEROS, atoms), "max_iter": 10}


def lkdl(kernel: str, gamma: Any, y: Any) -> Any:
    """Return class dictionaries over virtual samples."""
    return make_pipeline(
        KernelLinearizer(kernel, gamma=gamma, n_landmarks=300, random_state=0),
        ClassDictionaryClassifier(KSVD(**_sizes(y)), random_state=0),
    )


def _in_feature_space(learner: Any) -> Callable[[str, Any, Any], Any]:
    return lambda kernel, gamma, y: ClassDictionaryClassifier(
        learner(kernel=kernel, gamma=gamma, **_sizes(y)), random_state=0
    )


_TO_SCALE, _TO_SPREAD = (None, "scale"), (0.5, "scale", "spread")
#: Classifiers by name: how they are made of a kernel, gamma and labels, and by which gamma: the
#: default that there was, "scale", and the default that there is.
MODELS: dict[str, tuple[Callable[[str, Any, Any], Any], tuple[Any, ...]]] = {
    "LKDL": (lkdl, _TO_SCALE),
    "KernelKSVD": (_in_feature_space(KernelKSVD), _TO_SCALE),
    "KernelMOD": (_in_feature_space(KernelMOD), _TO_SCALE),
    "CRC": (lambda k, g, y: CRCClassifier(k, gamma=g), _TO_SPREAD),
    "CRC, rows as they are": (
        lambda k, g, y: CRCClassifier(k, gamma=g, normalize=False), _TO_SPREAD
    ),
    "SRC": (lambda k, g, y: SRCClassifier(k, gamma=g, n_nonzero_coefs=10), _TO_SPREAD),
    "K-SAD": (
        lambda k, g, y: KSADClassifier(kernel=k, gamma=g, random_state=0), ("scale", "spread")
    ),
}  # fmt: skip


def accuracy(model: Any, rows: Rows) -> float:
    """Return the per cent of new rows that are given their labels; NaN where rows are refused."""
    train, test, y_train, y_test = rows
    try:
        return 100 * float(model.fit(train, y_train).score(test, y_test))
    except ValueError:
        return float("nan")


def _cell(model: str, kernel: str, rows: Rows) -> str:
    """Return the accuracies by gamma, the default last; a dash where rows are refused."""
    make, gammas = MODELS[model]
    found = [accuracy(make(kernel, gamma, rows[2]), rows) for gamma in gammas]
    return " -> ".join("-" if np.isnan(each) else f"{each:.1f}" for each in found)


def _chain(model: str) -> str:
    return " -> ".join(str(gamma) for gamma in MODELS[model][1])


def gamma_tables(only: str = "") -> None:
    """Print both tables, of the data sets whose names hold this."""
    warnings.simplefilter("ignore")
    sets = [each for each in data_sets() if only in each[0]]
    print("\n## Accuracy in per cent by gamma, RBF kernel\n")
    heads = [f"{name}: {_chain(name)}" for name in MODELS]
    print("| data | rows | SVC() | " + " | ".join(heads) + " |")
    print("|---" * (3 + len(MODELS)) + "|")
    for name, X, y in sets:
        for scaling in SCALINGS:
            rows = split(X, y, scaling)
            cells = [_cell(model, "rbf", rows) for model in MODELS]
            peer = accuracy(SVC(), rows)
            print(f"| {name} | {scaling} | {peer:.1f} | {' | '.join(cells)} |", flush=True)
    others = [name for name, kind in KERNELS.items() if kind().has_gamma and name != "rbf"]
    others.remove("polynomial")  # poly by another name
    heads = [f"{name}, {model}" for name in others for model in ("LKDL", "CRC")]
    print(f"\n## The same, other kernels: LKDL by {_chain('LKDL')}, CRC by {_chain('CRC')}\n")
    print("| data | rows | " + " | ".join(heads) + " |\n" + "|---" * (2 + len(heads)) + "|")
    for name, X, y in sets:
        for scaling in SCALINGS:
            rows = split(X, y, scaling)
            cells = [_cell(model, kernel, rows) for kernel in others for model in ("LKDL", "CRC")]
            print(f"| {name} | {scaling} | {' | '.join(cells)} |", flush=True)
