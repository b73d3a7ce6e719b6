r"""
The lasso's path
================

The weight :math:`\alpha` of the l1 penalty trades nonzeros for error.
:func:`~kernelatoms.lasso_path` codes at many weights, each from the codes of the one before. Here
are the coefficients of one digit as the penalty falls, and what a nonzero buys on average, beside
greedy OMP codes.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.preprocessing import normalize

from kernelatoms import KSVD, lasso_path, sparse_encode

X, y = load_digits(return_X_y=True)
X = normalize(X)
train, test = X[:1200], X[1200:]
atoms = KSVD(128, n_nonzero_coefs=6, random_state=0).fit(train).components_

# %%
# The path of one signal. Coefficients start at 0, grow as the penalty falls, and may return to 0
# when other atoms do their work better.

path = lasso_path(test[:1], atoms, n_alphas=80, smallest=1e-3)
coefficients = np.array([codes.toarray()[0] for codes in path.codes])
fig, ax = plt.subplots(figsize=(6.5, 3.4), layout="constrained")
ax.semilogx(path.alphas, coefficients[:, np.abs(coefficients).max(axis=0) > 0], lw=1)
ax.invert_xaxis()
ax.set_xlabel("alpha, falling")
ax.set_ylabel("coefficient")

# %%
# All test digits: the error against the number of nonzeros. Lasso codes are shrunk towards zero,
# so at equal counts least squares on the same atoms does better ("refitted"); OMP's atoms are
# chosen one by one for exactly that error. The lasso's own objective, which OMP does not care
# for, is its own.

path = lasso_path(test, atoms, n_alphas=14, smallest=2e-2)


def error(codes):
    """Return the share of energy that is left."""
    return np.mean((test - codes @ atoms) ** 2) / np.mean(test**2)


def refit(codes):
    """Return codes on the same atoms without the shrinkage."""
    fitted = np.zeros(codes.shape)
    for row in range(len(test)):
        chosen = codes[[row]].indices
        fitted[row, chosen] = np.linalg.lstsq(atoms[chosen].T, test[row], rcond=None)[0]
    return fitted


counts = [codes.nnz / len(test) for codes in path.codes[1:]]
greedy = range(1, int(max(counts)) + 1, 2)
fig, ax = plt.subplots(figsize=(6.5, 3.6), layout="constrained")
ax.semilogy(counts, [error(codes) for codes in path.codes[1:]], "o-", label="lasso")
ax.semilogy(
    counts, [error(refit(codes)) for codes in path.codes[1:]], "s-", label="lasso, refitted"
)
ax.semilogy(
    list(greedy),
    [error(sparse_encode(test, atoms, n_nonzero_coefs=k)) for k in greedy],
    "^-",
    label="OMP",
)
ax.set_xlabel("nonzeros per signal")
ax.set_ylabel("energy left")
ax.legend()

# %%
# Every code of the path is certified: the largest duality gap, as a share of the signals' energy.

print(f"{path.gaps.max():.1e}")
