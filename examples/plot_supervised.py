r"""
Whose atoms code a digit?
=========================

A dictionary that is learned from labels should spend the atoms of a class on that class. Fig. 4 of
Golts and Elad (2016) shows it as sums of absolute coefficients: for all test images of one class,
how much weight falls on each atom, and on the atoms of each class. Here for K-SVD dictionaries of
the classes put together, for LC-KSVD, which adds the labels to the signals, and for FDDL, which
asks atoms to serve no other class; then for LC-KSVD on virtual samples of an RBF kernel.
"""

# sphinx_gallery_thumbnail_number = 1
import numpy as np
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline

from kernelatoms import (
    KSVD,
    ClassDictionaryClassifier,
    DKSVDClassifier,
    FDDLClassifier,
    LCKSVDClassifier,
    SparseCoder,
    explain,
    make_lkdl,
)
from kernelatoms.report.figures.code_energies import code_energy_figure

X, y = load_digits(return_X_y=True)
X = X / np.linalg.norm(X, axis=1, keepdims=True)
order = np.random.default_rng(0).permutation(len(X))
X, y = X[order], y[order]
train, test = slice(0, 900), slice(900, None)
SHOWN = 8

# %%
# Twenty atoms per class, eight nonzeros. The unsupervised dictionaries are coded over together, as
# the others are.

classes = ClassDictionaryClassifier(KSVD(20, n_nonzero_coefs=8), random_state=0)
classes.fit(X[train], y[train])
atoms = np.concatenate([learner.components_ for learner in classes.dictionaries_])
together = SparseCoder(atoms, n_nonzero_coefs=8).fit(X)
lcksvd = LCKSVDClassifier(200, n_nonzero_coefs=8, random_state=0).fit(X[train], y[train])
fddl = FDDLClassifier(20, random_state=0).fit(X[train], y[train])
lkdl = make_lkdl(lcksvd, "rbf", gamma=0.5, random_state=0).fit(X[train], y[train])

# What classifies, what codes, and whose the atoms are.
models = {
    "K-SVD, class by class": (classes, together, np.repeat(np.arange(10), 20)),
    "LC-KSVD2": (lcksvd, lcksvd, lcksvd.atom_classes_),
    "LC-KSVD2 + LKDL": (lkdl, lkdl, lkdl[-1].atom_classes_),
    "FDDL": (fddl, fddl, fddl.atom_classes_),
}
rows = X[test][y[test] == SHOWN]
codes = {name: coder.transform(rows) for name, (_, coder, _) in models.items()}
owners = {name: owners for name, (_, _, owners) in models.items()}
figure = code_energy_figure(codes, owners, np.arange(10), own=SHOWN)

# %%
# The share of the weight that falls on the right class, over all digits, and the accuracy. The
# decision of FDDL is by residuals, those of LC-KSVD by a linear map of the code.

for name, (model, coder, owners) in models.items():
    weight = abs(coder.transform(X[test])).toarray()
    share = weight[y[test][:, None] == owners].sum() / weight.sum()
    print(f"{name:22} {share:6.1%} on the right class, {model.score(X[test], y[test]):6.1%} right")

# %%
# Why a row was given its class, atom by atom. ``explain`` takes pipelines too.

print(explain(lkdl, X[test][:1])[0])

# %%
# The paper's last idea: a kernel not of the signals but of their codes. A linear map of codes is
# poor where a class uses its atoms in several ways; a kernel of the codes tells them apart.

coder = KSVD(200, n_nonzero_coefs=8, sparse_output=False, random_state=0)
decide = DKSVDClassifier(200, n_nonzero_coefs=8, random_state=0)
for name, last in (
    ("codes, then D-KSVD", decide),
    ("codes, RBF map of them, D-KSVD", make_lkdl(decide, gamma=0.1, unit_rows=True,
                                                 random_state=0)),
    ("RBF map of the signals, D-KSVD", None),
):  # fmt: skip
    if last is None:
        model = make_lkdl(decide, gamma=0.5, random_state=0)
    else:
        model = make_pipeline(coder, last)
    print(f"{name:32} {model.fit(X[train], y[train]).score(X[test], y[test]):6.1%}")
