"""
K-SAD: orthonormal atoms
========================

:class:`~kernelatoms.KSADClassifier` codes rows over orthonormal atoms in a low-rank map of a
kernel, and lets the nearest training codes vote. Which of its parts does the work? Digits, 60
training images per class, four draws.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.preprocessing import normalize

from kernelatoms import KSADClassifier, atom_numbers
from kernelatoms.report import contact_sheet, mean_and_error

X, y = load_digits(return_X_y=True)
X = normalize(X)

# %%
# The published method thresholds codes and draws codes of different classes apart. A square
# orthonormal dictionary is a rotation, so that without either it is nothing but the nearest
# neighbours of virtual samples. The within-class metric is an addition of ours. ``as_published`` is
# the method as its paper prints it: also the kernel (x'y)^8, scatter as numbers, and a threshold
# for training codes only.

published = {"within_class_metric": False, "n_neighbors": 1, "distance": "l2"}
models = {
    "rotation alone": KSADClassifier(100, l1_weight=0, **published),
    "threshold": KSADClassifier(100, l1_weight=0.1, **published),
    "threshold, term": KSADClassifier(100, l1_weight=0.1, fisher_weight=0.01, **published),
    "as published": KSADClassifier.as_published(100),
    "metric": KSADClassifier(100, n_neighbors=1),
    "metric, 3 votes (default)": KSADClassifier(100),
}
draws = StratifiedShuffleSplit(4, train_size=600, random_state=0)
scores = {name: [] for name in models}
for train, test in draws.split(X, y):
    for name, model in models.items():
        model.set_params(random_state=0).fit(X[train], y[train])
        scores[name].append(model.score(X[test], y[test]))
for name, values in scores.items():
    mean, error = mean_and_error(values)
    print(f"{name:26} {100 * mean:5.2f} +- {100 * error:.2f}%")

# %%
# Codes by class, before and after: the first two principal axes of the test codes.

figure, axes = plt.subplots(1, 2, figsize=(8, 3.8), layout="constrained")
for axis, name in zip(axes, ("rotation alone", "metric, 3 votes (default)"), strict=True):
    codes = models[name].transform(X[test]).toarray()
    codes = normalize(codes) - normalize(codes).mean(axis=0)
    _, _, directions = np.linalg.svd(codes, full_matrices=False)
    axis.scatter(*(codes @ directions[:2].T).T, c=y[test], cmap="tab10", s=6)
    axis.set(title=name, xticks=[], yticks=[])
plt.show()

# %%
# The atoms of the last model: pre-images, the metric undone, with their share of the codes' energy,
# the class that uses them most, and how near the picture comes to the atom. Coherence is 0: none
# resembles another in the metric they were learned in.

model = models["metric, 3 votes (default)"]
contact_sheet(model, X[test], y[test], image_shape=(8, 8), n_atoms=20)
print(f"mutual coherence {atom_numbers(model).mutual_coherence:.1e}")
