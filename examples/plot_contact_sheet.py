"""
Contact sheets of atoms
=======================

What has a dictionary learned? A contact sheet shows its atoms with the numbers that tell: how much
of the codes they carry, how like another atom they are, and which class they serve. Here K-SVD is
put beside kernel K-SVD and beside LC-KSVD, which was told the labels.
"""

# sphinx_gallery_thumbnail_number = 2
from sklearn.datasets import load_digits

from kernelatoms import KSVD, KernelKSVD, LCKSVDClassifier, atom_numbers
from kernelatoms.report import contact_sheet

X, y = load_digits(return_X_y=True)
X = X / 16
train, test = slice(0, 1000), slice(1000, None)

models = {
    "K-SVD": KSVD(60, n_nonzero_coefs=4, random_state=0),
    "kernel K-SVD": KernelKSVD(60, kernel="rbf", gamma=0.05, n_nonzero_coefs=4, random_state=0),
    "LC-KSVD": LCKSVDClassifier(60, n_nonzero_coefs=4, random_state=0),
}
for model in models.values():
    model.fit(X[train], y[train])

# %%
# K-SVD's atoms, those of the most energy first. A purity of 10% would be chance.

figure = contact_sheet(models["K-SVD"], X[test], y[test], image_shape=(8, 8), n_atoms=15)

# %%
# Atoms of kernel K-SVD are vectors of a feature space. The pictures are pre-images: the digit whose
# map comes nearest, with the error that is left, relative to the atom's squared norm.

figure = contact_sheet(models["kernel K-SVD"], X[test], y[test], image_shape=(8, 8), n_atoms=15)

# %%
# LC-KSVD knows the labels: every atom was started for a class, which its title names.

figure = contact_sheet(models["LC-KSVD"], X[test], y[test], image_shape=(8, 8), n_atoms=15)

# %%
# The dictionaries as a whole. Mutual coherence is that of the two atoms most alike; atoms in
# effect are how many would carry as much if all were used alike.

print(f"{'':14}mutual coherence  atoms in effect  mean purity")
for name, model in models.items():
    numbers = atom_numbers(model, X[test], y[test])
    print(
        f"{name:14}{numbers.mutual_coherence:16.2f}{numbers.n_effective:17.1f}"
        f"{numbers.mean_purity:13.0%}"
    )
