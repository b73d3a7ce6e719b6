r"""
Five ways to choose landmarks
=============================

:class:`~kernelatoms.KernelLinearizer` maps rows to coordinates in which a kernel is an ordinary
inner product. It compares every row with a few landmarks, so it matters which. This example
measures how well the map approximates the kernel, for five samplings and more and more
landmarks, beside the best that any matrix of that rank can do.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import polynomial_kernel

from kernelatoms import KernelLinearizer, nystrom_error
from kernelatoms.report import mean_and_error

# %%
# Digits under the polynomial kernel :math:`k(x, y) = (x^\top y)^2`, brightness left in: on rows of
# unit norm :math:`k(x, x)` is constant, and "diagonal" would be "uniform". The error is
# :math:`\|K - F F^\top\|_F / \|K\|_F`.

X = load_digits().data[:1000] / 16
N_LANDMARKS, SEEDS = (10, 20, 40, 80, 160), range(6)


def error_of(sampling, n_landmarks, seed):
    """Return how far the map's inner products are from the kernel."""
    linearizer = KernelLinearizer(
        "poly",
        degree=2,
        gamma=1,
        coef0=0,
        n_landmarks=n_landmarks,
        sampling=sampling,
        random_state=seed,
    )
    return nystrom_error(linearizer.fit(X), X)


errors = {
    sampling: [[error_of(sampling, c, seed) for c in N_LANDMARKS] for seed in SEEDS]
    for sampling in ("uniform", "diagonal", "column-norm", "coreset", "kmeans")
}

# %%
# Of all matrices of rank c, the leading c eigenpairs of K have the lowest error. They need an
# eigen-decomposition of all of K, which the map is there to avoid.

eigenvalues = np.linalg.eigvalsh(polynomial_kernel(X, degree=2, gamma=1, coef0=0))
tails = np.sqrt(np.cumsum(eigenvalues**2)[::-1])  # tails[c]: what rank c cannot reach
best = np.array([tails[c] / tails[0] for c in N_LANDMARKS])

# %%
# Errors in percent: means over six seeds with standard errors.

print(f"{'landmarks':12}" + "".join(f"{c:>15}" for c in N_LANDMARKS))
for sampling, values in errors.items():
    cells = zip(*mean_and_error(100 * np.array(values)), strict=True)
    print(f"{sampling:12}" + "".join(f"{m:7.2f} +- {e:.2f}" for m, e in cells))
print(f"{'best rank':12}" + "".join(f"{b:7.2f}{'':8}" for b in 100 * best))

figure, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
for (sampling, values), marker in zip(errors.items(), "osv^D", strict=True):
    mean, error = mean_and_error(values)
    ax.errorbar(N_LANDMARKS, mean, error, marker=marker, capsize=3, label=sampling)
ax.plot(N_LANDMARKS, best, "--", color="0.4", label="best of this rank")
ax.set(xscale="log", yscale="log", xlabel="landmarks", ylabel="error of the kernel matrix")
ax.set_xticks(N_LANDMARKS, [str(c) for c in N_LANDMARKS])
ax.minorticks_off()
ax.legend()
plt.show()

# %%
# The four samplings that pick rows are close to each other on these data. k-means, which makes its
# landmarks, has 0.45 to 0.6 times the error of uniform sampling, and pays for it with a clustering.
# Twenty of its landmarks are as good as forty rows picked at random.
