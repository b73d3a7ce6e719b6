"""
Directions in superposition: pursuit or encoder?
================================================

A language model writes more features into its activations than these have dimensions. A sparse
autoencoder learns a direction for each (its *decoder*) and guesses from one matrix product which
are on (its *encoder*). Pursuits need no encoder: they ask which few directions explain the
activation. Here the truth is known, so that both can be judged.
"""

# %%
# 1,024 features share 128 dimensions, in families whose directions are alike. Sixteen are on at a
# time, all with positive strengths, and 5% of the energy is noise. The decoder's directions are at
# hand, as rows of an array.

import matplotlib.pyplot as plt
import numpy as np

from kernelatoms import sparse_encode
from kernelatoms.report import mean_and_error

WIDTH, N_FEATURES, N_ON, N_ROWS, N_RUNS = 128, 1024, 16, 500, 5


def draw(rng):
    """Return activations, the strengths of all features, and their directions."""
    families = rng.standard_normal((64, WIDTH)).repeat(N_FEATURES // 64, axis=0)
    directions = families + rng.standard_normal((N_FEATURES, WIDTH))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    strengths = np.zeros((N_ROWS, N_FEATURES))
    for row in strengths:
        row[rng.choice(N_FEATURES, N_ON, replace=False)] = rng.gamma(3.0, 0.5, N_ON)
    X = strengths @ directions
    noise = rng.standard_normal(X.shape)
    return X + 0.05**0.5 * np.linalg.norm(X) / np.linalg.norm(noise) * noise, strengths, directions


# %%
# The encoder at its best: an inner product with every direction, less a threshold that is the same
# for all, and the k largest stay (a top-k autoencoder with tied weights). Its strengths are fitted
# by the pursuits' own least squares, so that only the choice of directions differs.


def top_k(X, directions, k):
    """Return codes over the k directions of largest inner product."""
    largest = np.argsort(X @ directions.T, axis=1)[:, -k:]
    return sparse_encode(
        X, directions, n_nonzero_coefs=k, positive=True, candidates=largest, sparse_output=False
    )


def greedy(X, directions, k):
    """Return non-negative OMP codes."""
    return sparse_encode(X, directions, n_nonzero_coefs=k, positive=True, sparse_output=False)


def l1(X, directions, k):
    """Return non-negative l1 codes of about k nonzeros in the mean, by bisection for alpha."""
    low, high = 1e-3, 10.0
    for _ in range(12):
        alpha = np.sqrt(low * high)
        codes = sparse_encode(
            X, directions, method="lasso", alpha=alpha, positive=True, gap_tol=1e-4,
            sparse_output=False,
        )  # fmt: skip
        dense = (codes != 0).sum() > k * len(X)
        low, high = (alpha, high) if dense else (low, alpha)
    return codes


sizes = (4, 8, 16, 24, 32)
coders = {"encoder, top k": top_k, "OMP": greedy, "l1": l1}
found = {name: np.zeros((N_RUNS, len(sizes))) for name in coders}
left = {name: np.zeros((N_RUNS, len(sizes))) for name in coders}
for run in range(N_RUNS):
    X, true, directions = draw(np.random.default_rng(run))
    for i, k in enumerate(sizes):
        for name, code in coders.items():
            codes = code(X, directions, k)
            found[name][run, i] = 100 * ((codes != 0) & (true != 0)).sum() / (true != 0).sum()
            left[name][run, i] = 100 * ((X - codes @ directions) ** 2).sum() / (X**2).sum()

for name in coders:
    share, error = mean_and_error(found[name][:, sizes.index(N_ON)])
    rest, rest_error = mean_and_error(left[name][:, sizes.index(N_ON)])
    print(
        f"{name}, {N_ON} directions: {share:.0f} ± {error:.0f}% of the features found, "
        f"{rest:.1f} ± {rest_error:.1f}% of the energy left"
    )

# %%
# At equal sparsity OMP finds more of what is on than the encoder, whose inner products see all
# features at once and cannot explain any away. l1 codes are in between; they also leave more, since
# the penalty draws strengths towards 0.

figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for name in coders:
    for axis, values in zip(axes, (found[name], left[name]), strict=True):
        mean, error = mean_and_error(values)
        axis.errorbar(sizes, mean, error, marker="o", label=name)
axes[0].set(xlabel="directions used", ylabel="features found [%]", ylim=(0, 100))
axes[1].set(xlabel="directions used", ylabel="energy left [%]", ylim=(0, None))
axes[0].legend()
plt.show()

# %%
# The same call takes tensors: on a card, ``sparse_encode(activations, decoder, ...)`` codes half a
# million activations a second over 16,384 directions, and thousands over a million of them; see
# the guide's page on GPUs, also for decoders from safetensors files.
