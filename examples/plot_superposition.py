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
# time, all with positive strengths, and 5% of the energy is noise.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from safetensors.numpy import load_file, save_file

from kernelatoms import sparse_encode
from kernelatoms.report import mean_and_error

WIDTH, N_FEATURES, N_ON, N_ROWS, N_RUNS = 128, 1024, 16, 500, 5


def draw_directions(rng):
    """Return unit vectors in 64 families."""
    families = rng.standard_normal((64, WIDTH)).repeat(N_FEATURES // 64, axis=0)
    directions = families + rng.standard_normal((N_FEATURES, WIDTH))
    return directions / np.linalg.norm(directions, axis=1, keepdims=True)


def draw_activations(rng, n_rows, directions, centre):
    """Return activations, and the strengths of all features in them."""
    strengths = np.zeros((n_rows, N_FEATURES), np.float32)
    for row in strengths:
        row[rng.choice(N_FEATURES, N_ON, replace=False)] = rng.gamma(3.0, 0.5, N_ON)
    clean = strengths @ directions
    noise = rng.standard_normal(clean.shape)
    noise *= 0.05**0.5 * np.linalg.norm(clean) / np.linalg.norm(noise)
    return (centre + clean + noise).astype(np.float32), strengths


# %%
# Now an autoencoder that has learned well. Its decoder is the truth. Its encoder is the linear map
# that predicts strengths best (least squares, from 10,000 activations whose strengths it is told,
# which no real one ever is). It is written to a file as SAELens writes its own, names and shapes
# included, and a second file holds activations.


def write_files(folder, rng):
    """Write an autoencoder and activations; return the strengths in these."""
    directions, centre = draw_directions(rng), rng.standard_normal(WIDTH)
    lessons, told = draw_activations(rng, 10_000, directions, centre)
    mean = lessons.mean(axis=0)
    encoder = np.linalg.lstsq(lessons - mean, told - told.mean(axis=0))[0]
    weights = {
        "W_enc": encoder,
        "b_enc": told.mean(axis=0) - (mean - centre) @ encoder,
        "W_dec": directions,
        "b_dec": centre,
    }
    weights = {name: np.ascontiguousarray(part, np.float32) for name, part in weights.items()}
    save_file(weights, folder / "sae_weights.safetensors")
    rows, strengths = draw_activations(rng, N_ROWS, directions, centre)
    save_file({"resid": rows}, folder / "activations.safetensors")
    return strengths


# %%
# What follows is what one does with real files. The decoder's bias is taken off the activations, as
# the encoder does. The encoder's own codes are its k largest outputs; one gain for all of them is
# fitted, so that they rebuild as well as they can. The same choice of directions with strengths
# fitted by least squares is the pursuit's own work, over candidates.


def top_k(rows, sae, k):
    """Return the encoder's own codes: its k largest outputs, times one number."""
    outputs = np.maximum(rows @ sae["W_enc"] + sae["b_enc"], 0)
    codes = np.where(outputs >= np.sort(outputs, axis=1)[:, [-k]], outputs, 0)
    rebuilt = codes @ sae["W_dec"]
    return codes * np.vdot(rebuilt, rows) / np.vdot(rebuilt, rebuilt)


def top_k_fitted(rows, sae, k):
    """Return codes over the directions that the encoder chooses, strengths by least squares."""
    largest = np.argsort(rows @ sae["W_enc"] + sae["b_enc"], axis=1)[:, -k:]
    return sparse_encode(
        rows, sae["W_dec"], n_nonzero_coefs=k, positive=True, candidates=largest,
        sparse_output=False,
    )  # fmt: skip


def greedy(rows, sae, k):
    """Return non-negative OMP codes."""
    return sparse_encode(rows, sae["W_dec"], n_nonzero_coefs=k, positive=True, sparse_output=False)


def l1(rows, sae, k):
    """Return non-negative l1 codes of about k nonzeros in the mean, by bisection for alpha."""
    low, high = 0.05, 5.0
    for _ in range(10):
        alpha = np.sqrt(low * high)
        codes = sparse_encode(
            rows, sae["W_dec"], method="lasso", alpha=alpha, positive=True, gap_tol=1e-4,
            sparse_output=False,
        )  # fmt: skip
        dense = (codes != 0).sum() > k * len(rows)
        low, high = (alpha, high) if dense else (low, alpha)
    return codes


sizes = (4, 8, 16, 24, 32)
coders = {"encoder, top k": top_k, "the same, fitted": top_k_fitted, "OMP": greedy, "l1": l1}
found = {name: np.zeros((N_RUNS, len(sizes))) for name in coders}
left = {name: np.zeros((N_RUNS, len(sizes))) for name in coders}
for run in range(N_RUNS):
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        on = write_files(folder, np.random.default_rng(run)) != 0
        sae = load_file(folder / "sae_weights.safetensors")
        rows = load_file(folder / "activations.safetensors")["resid"] - sae["b_dec"]
    for i, k in enumerate(sizes):
        for name, code in coders.items():
            codes = code(rows, sae, k)
            rest = rows - codes @ sae["W_dec"]
            found[name][run, i] = 100 * ((codes != 0) & on).sum() / on.sum()
            left[name][run, i] = 100 * np.vdot(rest, rest) / np.vdot(rows, rows)

for name in coders:
    share, error = mean_and_error(found[name][:, sizes.index(N_ON)])
    rest, rest_error = mean_and_error(left[name][:, sizes.index(N_ON)])
    print(
        f"{name}, {N_ON} directions: {share:.1f} ± {error:.1f}% of the features found, "
        f"{rest:.1f} ± {rest_error:.1f}% of the energy left"
    )

# %%
# At equal sparsity OMP finds more of what is on than the encoder, whose outputs see all features at
# once and cannot explain any away. The choice of l1 codes is in between; with few directions they
# leave most of all, since the penalty draws strengths towards 0.

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
# Here the decoder is the truth. One that was learned is not, and what is really on is not known:
# then only what is left can be compared.
#
# With files of your own only ``write_files`` goes. ``load_file`` of ``safetensors.torch``, with
# ``device="cuda"``, brings them to a card, where ``sparse_encode`` takes them as they are: half a
# million activations per second over 16,384 directions, 17,000 over a million of them (an H200).
# Names and shapes of other files, 16-bit weights, unembeddings, memory and speed:
# :doc:`/guide/gpu`.
