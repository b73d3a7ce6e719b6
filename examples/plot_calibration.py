"""
How sure is an answer?
======================

A classifier that gives 90% to its answers should be right in nine of ten cases. Residuals order
classes well, but know nothing of chances: their shares are far too modest. ``calibrate=True``
learns one number from rows that copies of the classifier have not seen, and that is enough.
"""

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from sklearn.svm import SVC

from kernelatoms import KSVD, ClassDictionaryClassifier
from kernelatoms.report.figures.calibration import calibration_figure, reliability

# %%
# Digits with noise, so that there are mistakes.

X, y = load_digits(return_X_y=True)
X = X / 16 + 0.25 * np.random.default_rng(0).standard_normal(X.shape)
X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)


def dictionaries(**parameters):
    """Return twenty atoms per class."""
    return ClassDictionaryClassifier(
        KSVD(n_atoms=20, n_nonzero_coefs=2, max_iter=5), random_state=0, **parameters
    )


models = {
    "shares": dictionaries(),
    "calibrate=True": dictionaries(calibrate=True),
    "CalibratedClassifierCV": CalibratedClassifierCV(dictionaries(), ensemble=False, cv=3),
    "SVC, CalibratedClassifierCV": CalibratedClassifierCV(SVC(), ensemble=False, cv=3),
}

# %%
# Answers are sorted by how sure they are, and cut into ten groups of one size. On the dashed line
# they are as often right as they are sure; the numbers are the mean distance from it.

found = {
    name: make_pipeline(Normalizer(), model).fit(X, y).predict_proba(X_test)
    for name, model in models.items()
}
for name, p in found.items():
    right = 100 * np.mean(p.argmax(axis=1) == y_test)
    print(f"{name}: {right:.1f}% right, log loss {reliability(y_test, p).log_loss:.2f}")
figure = calibration_figure(y_test, found)
