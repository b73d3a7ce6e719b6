"""
The atoms of a photograph
=========================

What are small pieces of an image made of? :class:`~kernelatoms.KSVD` learns an alphabet of patches
from the image itself, so that every patch is about a sum of a few letters.
"""

# sphinx_gallery_thumbnail_number = 2
import numpy as np
from sklearn.datasets import load_sample_image
from sklearn.feature_extraction.image import extract_patches_2d

from kernelatoms import KSVD, MOD, sparse_encode
from kernelatoms.report import atoms_figure, code_figure, convergence_figure

# %%
# 20,000 random 8 x 8 patches of a grey photograph, each less its mean; a quarter is put aside to
# measure on. The objective is a sum of squares, so patches of plain sky count for little.

image = load_sample_image("china.jpg").mean(axis=2) / 255
patches = extract_patches_2d(image, (8, 8), max_patches=20_000, random_state=0).reshape(-1, 64)
patches = patches - patches.mean(axis=1, keepdims=True)
train, test = patches[:15_000], patches[15_000:]

sizes = {"n_atoms": 144, "n_nonzero_coefs": 4, "random_state": 0}
ksvd = KSVD(**sizes).fit(train)
mod = MOD(**sizes).fit(train)

# %%
# Learning goes round: code all patches over the atoms, then improve the atoms for these codes. Both
# learners start from the same random patches. Most of the gain comes in the first passes.

figure = convergence_figure({"K-SVD": ksvd.objective_, "MOD": mod.objective_})

# %%
# The atoms, those that are used most first: edges in many directions, stripes, checks. Red is
# brighter than the mean of the patch, blue darker.

codes = ksvd.transform(test)
order = np.argsort(-np.abs(codes).sum(axis=0))
atoms, codes = ksvd.components_[order], codes[:, order]
atoms_grid = atoms_figure(atoms, (8, 8), n_columns=16)

# %%
# One new patch, what four atoms make of it, and the atoms: the patch of the largest contrast among
# those put aside.

strongest = np.sum(test**2, axis=1).argmax()
one_code = code_figure(test[strongest], atoms, codes[[strongest]].toarray()[0], (8, 8))

# %%
# Was learning worth it? On the patches put aside, four atoms each, against a fixed alphabet of as
# many letters: cosines of twelve frequencies in both directions.

waves = np.cos(np.pi * np.outer(np.arange(12), np.arange(8) + 0.5) / 12)
waves[1:] -= waves[1:].mean(axis=1, keepdims=True)
waves /= np.linalg.norm(waves, axis=1, keepdims=True)
cosines = np.einsum("ij,kl->ikjl", waves, waves).reshape(144, 64)
for name, dictionary in (
    ("cosines", cosines),
    ("MOD", mod.components_),
    ("K-SVD", ksvd.components_),
):
    approximation = sparse_encode(test, dictionary, n_nonzero_coefs=4) @ dictionary
    left = np.sum((test - approximation) ** 2) / np.sum(test**2)
    print(f"{name:8}{100 * left:5.1f}% of the energy left over")
