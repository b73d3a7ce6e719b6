r"""
Where lines fail: kernel OMP
============================

Two rings around the origin. Every direction holds points of both, so a linear dictionary, which
knows directions only, cannot tell them apart. In the feature space of a Gaussian kernel near points
have nearly the same direction and far points are nearly orthogonal. There, a few atoms of the right
ring explain a point well and atoms of the wrong one do not.

:func:`~kernelatoms.sparse_encode` does both with the same code: a pursuit sees inner products only,
and inner products are what a kernel gives.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_circles

from kernelatoms import sparse_encode
from kernelatoms.report import mean_and_error
from kernelatoms.similarity import make_kernel

# %%
# Forty training points a ring are the atoms of its class. A point is coded over the atoms of each
# class and goes to the class with the smallest residual. In feature space the residual of a code
# :math:`w` over atoms :math:`d_j` is, with :math:`G = k(D, D)` and :math:`c = k(D, x)`,
#
# .. math::
#    \left\|\phi(x) - \sum_j w_j \phi(d_j)\right\|^2 = k(x, x) - 2\, w^\top c + w^\top G\, w .
#
# The linear code has one nonzero: two atoms of the plane explain every point exactly, and no
# residual is left to compare. The kernel's code has three.

METHODS = {
    "linear": {"kernel": "linear", "n_nonzero_coefs": 1},
    "Gaussian kernel": {"kernel": "rbf", "gamma": 4, "n_nonzero_coefs": 3},
}


def residuals(X, atoms, n_nonzero_coefs, **kernel):
    """Return the squared residual of every row in the feature space of the kernel."""
    codes = sparse_encode(X, atoms, n_nonzero_coefs=n_nonzero_coefs, sparse_output=False, **kernel)
    k = make_kernel(**kernel)
    correlations, gram = k(X, atoms), k(atoms, atoms)
    explained = 2 * np.sum(codes * correlations, axis=1) - np.sum(codes @ gram * codes, axis=1)
    return k.diag(X) - explained


def margin(X, train, y, method):
    """Return by how much the outer ring (class 0) leaves more than the inner one (class 1)."""
    outer, inner = (residuals(X, train[y == c], **METHODS[method]) for c in (0, 1))
    return outer - inner


# %%
# Ten draws of the rings, a thousand test points each.

scores = {method: [] for method in METHODS}
for seed in range(10):
    X, y = make_circles(1080, noise=0.12, factor=0.5, random_state=seed)
    for method in METHODS:
        labels = margin(X[80:], X[:80], y[:80], method) > 0
        scores[method].append(np.mean(labels == y[80:]))
for method, values in scores.items():
    mean, error = mean_and_error(values)
    print(f"{method:16}{100 * mean:.1f} +- {100 * error:.1f}% right")

# %%
# Which ring leaves less, everywhere, in the last draw. The linear regions are wedges: stretching a
# point away from the origin cannot change its class.

side = np.linspace(-1.6, 1.6, 161)
grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
figure, axes = plt.subplots(1, 2, figsize=(9, 4.4), layout="constrained")
for ax, method in zip(axes, METHODS, strict=True):
    inner = margin(grid, X[:80], y[:80], method).reshape(161, 161) > 0
    ax.contourf(side, side, inner, levels=[-0.5, 0.5, 1.5], colors=["#cfe3f1", "#f6d9c8"])
    for c, colour, marker in ((0, "#0072B2", "o"), (1, "#D55E00", "s")):
        ax.scatter(*X[:80][y[:80] == c].T, s=18, color=colour, marker=marker)
    ax.set(title=method, aspect="equal", xticks=[], yticks=[])
plt.show()
