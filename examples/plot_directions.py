"""
Residuals know directions, not places
=====================================

A class dictionary explains a signal by multiples of its atoms. Twice a signal is explained as well
as the signal. So classes on one line through the origin look alike to linear dictionaries,
however far apart they are. This is a limit of the method, not of the data, and it has two remedies.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from kernelatoms import KSVD, ClassDictionaryClassifier, KernelLinearizer
from kernelatoms.report import mean_and_error

# %%
# Three classes in the plane. Classes 0 and 1 lie in the same direction, class 1 twice as far out.

CENTRES = np.array([[1.0, 1.0], [2.0, 2.0], [2.0, -0.5]])


def draw(seed, n=100):
    """Return n points of each class."""
    rng = np.random.default_rng(seed)
    return rng.normal(np.repeat(CENTRES, n, axis=0), 0.22), np.repeat([0, 1, 2], n)


# %%
# Remedy one is a column of ones: a place in the plane becomes a direction in space. Remedy two is a
# kernel that measures distance, the Gaussian one. All three: five atoms per class, one for a point.


def add_ones(X):
    """Return the rows with a 1 at the end."""
    return np.column_stack([X, np.ones(len(X))])


def make_models(seed):
    """Return the three models, not yet fitted."""
    classes = ClassDictionaryClassifier(KSVD(n_atoms=5, n_nonzero_coefs=1), random_state=seed)
    return {
        "linear": classes,
        "with a column of ones": make_pipeline(FunctionTransformer(add_ones), classes),
        "Gaussian kernel": make_pipeline(KernelLinearizer("rbf", gamma=1), classes),
    }


scores = {name: [] for name in make_models(0)}
for seed in range(20):
    train, labels = draw(seed)
    test, truth = draw(1000 + seed)
    for name, model in make_models(seed).items():
        scores[name].append(model.fit(train, labels).score(test, truth))
for name, values in scores.items():
    mean, error = mean_and_error(values)
    print(f"{name:22}{100 * mean:5.1f} +- {100 * error:.1f}% right, twenty draws")

# %%
# The regions of the first draw. Linear regions are cones from the origin (the cross).

train, labels = draw(0)
across, up = np.meshgrid(np.linspace(-0.7, 3.2, 157), np.linspace(-1.6, 3.0, 185))
points = np.column_stack([across.ravel(), up.ravel()])
figure, axes = plt.subplots(1, 3, figsize=(9, 3.7), layout="constrained")
for ax, (name, model) in zip(axes, make_models(0).items(), strict=True):
    regions = model.fit(train, labels).predict(points).reshape(across.shape)
    ax.contourf(
        across, up, regions, levels=[-0.5, 0.5, 1.5, 2.5], colors=["#cfe3f1", "#f6d9c8", "#cdebe1"]
    )
    for c, colour in enumerate(("#0072B2", "#D55E00", "#009E73")):
        ax.scatter(*train[labels == c].T, s=6, color=colour)
    ax.plot(0, 0, "+", color="black", markersize=10)
    ax.set(title=name, aspect="equal", xticks=[], yticks=[])
plt.show()
