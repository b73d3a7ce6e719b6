r"""
Dictionaries for two circles
============================

The first experiment of the kernel dictionary learning paper (Nguyen, Patel, Nasrabadi and
Chellappa, 2012; left half of its Fig. 4). Two classes are two circles around the origin, one twice
as wide as the other. Each class learns a dictionary of 30 atoms. Which points of the plane does
which dictionary represent well?

A linear dictionary sees directions, and every direction holds points of both circles. Under the
kernel :math:`k(x, y) = (x^\top y + 1)^2` each circle lies in a subspace of its own of the feature
space, and :class:`~kernelatoms.KernelKSVD` learns atoms there.
"""

import matplotlib.pyplot as plt
import numpy as np

from kernelatoms import KSVD, ClassDictionaryClassifier, KernelKSVD
from kernelatoms.report import mean_and_error

RADII = (1, 2)
N_POINTS = 1500


def draw(seed):
    """Return points of both circles and their classes."""
    angles = np.random.default_rng(seed).uniform(0, 2 * np.pi, 2 * N_POINTS)
    radii = np.repeat(RADII, N_POINTS)
    return radii[:, None] * np.column_stack([np.cos(angles), np.sin(angles)]), radii


# %%
# Two linear atoms in different directions make every point of the plane, and no error is left to
# compare. So the linear dictionaries get one nonzero, which is the best they can do. The kernel's
# feature space has six dimensions; its dictionaries get three nonzeros, as in the paper.
#
# .. note::
#    The 1 in the kernel matters. :math:`(x^\top y)^2` has a feature space of three dimensions,
#    where three atoms make everything, again without error.


def make_models(seed):
    """Return both classifiers, not yet fitted."""
    learners = {
        "linear K-SVD": KSVD(30, n_nonzero_coefs=1, max_iter=80),
        "kernel K-SVD": KernelKSVD(
            30, kernel="poly", degree=2, gamma=1, coef0=1, n_nonzero_coefs=3, max_iter=80
        ),
    }
    return {
        name: ClassDictionaryClassifier(learner, random_state=seed)
        for name, learner in learners.items()
    }


scores = {name: [] for name in make_models(0)}
for seed in range(5):
    X, y = draw(seed)
    new, truth = draw(1000 + seed)
    for name, model in make_models(seed).items():
        scores[name].append(model.fit(X, y).score(new, truth))
for name, values in scores.items():
    mean, error = mean_and_error(values)
    print(f"{name}: {100 * mean:5.1f} +- {100 * error:.1f}% of new points right, five draws")

# %%
# The paper's picture is the ratio of the two errors. An error in feature space comes from kernel
# values alone. With the atoms :math:`\phi(B) A` (``anchors_`` and ``dual_coef_``), their Gram
# matrix :math:`G` (``atom_gram_``) and the correlations :math:`c = A^\top k(B, x)`, a code
# :math:`w` leaves
#
# .. math::
#    \left\|\phi(x) - \phi(B) A w\right\|^2 = k(x, x) - 2\, w^\top c + w^\top G\, w .


def kernel(X, Y):
    """Return all (x'y + 1)^2."""
    return (X @ Y.T + 1) ** 2


def error(learner, points):
    """Return what the code of every point leaves, in the space where it was learned."""
    codes = learner.transform(points).toarray()
    if isinstance(learner, KSVD):
        return np.sum((points - codes @ learner.components_) ** 2, axis=1)
    correlations = kernel(points, learner.anchors_) @ learner.dual_coef_
    energy = (np.sum(points**2, axis=1) + 1) ** 2
    inside = np.sum(codes @ learner.atom_gram_ * codes, axis=1)
    return energy - 2 * np.sum(codes * correlations, axis=1) + inside


X, y = draw(0)
side = np.linspace(-3, 3, 201)
grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
turn = np.linspace(0, 2 * np.pi, 200)
figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for ax, (name, model) in zip(axes, make_models(0).items(), strict=True):
    inner, outer = (
        np.maximum(error(learner, grid), 1e-12) for learner in model.fit(X, y).dictionaries_
    )
    ratio = np.log10(outer / inner).reshape(len(side), len(side))
    colours = ax.pcolormesh(side, side, ratio, cmap="RdBu_r", vmin=-4, vmax=4)
    for radius, style in zip(RADII, ("-", "--"), strict=True):
        ax.plot(radius * np.cos(turn), radius * np.sin(turn), style, color="black", linewidth=1)
    ax.set(title=name, aspect="equal", xticks=[], yticks=[])
figure.colorbar(
    colours, ax=axes, label="outer circle's error over the inner one's, log10", extend="both"
)
plt.show()

# %%
# Red is where the inner circle's dictionary (solid line) leaves less, blue where the outer one's
# (dashed) does. The linear picture is made of rays: along a ray nothing changes but the scale.
# Under the kernel the sides are clear, and a point's distance from the origin decides.
#
# How large are the dictionaries? Their atoms are sums over few training points: in six dimensions
# six independent points (``anchors_``) stand for all 1500. On a circle it is five, because
# :math:`x_1^2 + x_2^2` is constant there.

for radius, learner in zip(RADII, model.dictionaries_, strict=True):
    print(f"radius {radius}: {learner.n_atoms_} atoms on {len(learner.anchors_)} anchors")
