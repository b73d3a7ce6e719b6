"""How well probabilities are calibrated: shares, ``calibrate=True``, scikit-learn's ways.

``python -m benchmarks.calibration [--data-home FOLDER]`` prints, for every data set and classifier,
accuracy, expected calibration error (ten groups of one size) and log loss. Rows are brought to unit
norm, columns of tables are standardised before; half of the rows are tested on.
"""

import argparse
import warnings

import numpy as np
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler
from sklearn.svm import SVC

from kernelatoms import (
    KSVD,
    ClassDictionaryClassifier,
    CRCClassifier,
    DKSVDClassifier,
    FDDLClassifier,
    KernelKSVD,
    KSADClassifier,
    LCKSVDClassifier,
    SRCClassifier,
)
from kernelatoms.datasets import load_usps
from kernelatoms.report.figures.calibration import reliability

CLASSIFIERS = {
    "class dictionaries": ClassDictionaryClassifier(KSVD(20, n_nonzero_coefs=3), random_state=0),
    "class dictionaries, RBF": ClassDictionaryClassifier(
        KernelKSVD(20, gamma=None, n_nonzero_coefs=3), random_state=0
    ),
    "D-KSVD": DKSVDClassifier(random_state=0),
    "LC-KSVD": LCKSVDClassifier(random_state=0),
    "FDDL": FDDLClassifier(20, random_state=0),
    "K-SAD": KSADClassifier(random_state=0),
    "CRC": CRCClassifier(),
    "CRC, RBF, 30 neighbours": CRCClassifier("rbf", gamma=0.5, n_neighbors=30),
    "SRC, 10 nonzeros": SRCClassifier(n_nonzero_coefs=10),
}


def data_sets(data_home):
    for name, load in (("wine", load_wine), ("breast_cancer", load_breast_cancer)):
        X, y = load(return_X_y=True)
        yield name, make_pipeline(StandardScaler(), Normalizer()), X, y
    X, y = load_digits(return_X_y=True)
    yield "digits", Normalizer(), X, y
    if data_home is not None:
        usps = load_usps(data_home=data_home)
        some = np.random.default_rng(0).permutation(len(usps.X_train))[:3000]
        yield "usps, 3,000 rows", Normalizer(), usps.X_train[some], usps.y_train[some]


def show(name, model, scale, parts):
    X, X_test, y, y_test = parts
    p = make_pipeline(clone(scale), model).fit(X, y).predict_proba(X_test)
    found = reliability(y_test, p)
    right = np.mean(p.argmax(axis=1) == y_test)
    print(f"| {name} | {right:.1%} | {found.error:.3f} | {found.log_loss:.2f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-home")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    for name, scale, X, y in data_sets(arguments.data_home):
        parts = train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)
        print(
            f"\n{name}\n\n| classifier | right | calibration error | log loss |\n|---|---|---|---|"
        )
        svm = CalibratedClassifierCV(SVC(), ensemble=False)
        show("SVC, CalibratedClassifierCV", svm, scale, parts)
        for label, model in CLASSIFIERS.items():
            show(f"{label}: shares", model, scale, parts)
            sure = clone(model).set_params(calibrate=True)
            show(f"{label}: calibrate=True", sure, scale, parts)
            theirs = CalibratedClassifierCV(model, ensemble=False, cv=3)
            show(f"{label}: CalibratedClassifierCV", theirs, scale, parts)


if __name__ == "__main__":
    main()
