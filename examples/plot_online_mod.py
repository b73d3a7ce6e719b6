"""
A dictionary from a stream
==========================

MOD's update needs two sums over signals, and sums can be carried along. So
:meth:`MOD.partial_fit <kernelatoms.MOD.partial_fit>` learns from batches that come and go; memory
holds one batch and the sums. This example streams patches of one photograph, then of another, and
asks how long to remember the first.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_image
from sklearn.feature_extraction.image import extract_patches_2d

from kernelatoms import MOD
from kernelatoms.report import mean_and_error

N_BATCHES, BATCH = 20, 400  # of each photograph
FORGET = (1.0, 0.9)
N_SEEDS = 4


def patches(name, n, seed):
    """Return random 8 x 8 patches, each less its mean."""
    image = load_sample_image(name).mean(axis=2) / 255
    rows = extract_patches_2d(image, (8, 8), max_patches=n, random_state=seed).reshape(n, 64)
    return rows - rows.mean(axis=1, keepdims=True)


def left_over(mod, X):
    """Return the share of the energy of new patches that is left after coding."""
    return 1 - mod.score(X)


# %%
# After every batch, the error on held-out patches of the photograph that the stream is showing. For
# comparison: MOD with all patches of one photograph at hand and twenty passes over them.

errors = {forget: np.zeros((N_SEEDS, 2 * N_BATCHES)) for forget in FORGET}
at_hand = np.zeros((N_SEEDS, 2))
for seed in range(N_SEEDS):
    models = {
        forget: MOD(n_atoms=80, n_nonzero_coefs=4, forget=forget, random_state=seed)
        for forget in FORGET
    }
    for part, name in enumerate(("china.jpg", "flower.jpg")):
        rows = patches(name, (N_BATCHES + 3) * BATCH, seed)
        stream, held_out = rows[: N_BATCHES * BATCH], rows[N_BATCHES * BATCH :]
        for b, batch in enumerate(np.split(stream, N_BATCHES)):
            for forget, mod in models.items():
                mod.partial_fit(batch)
                errors[forget][seed, part * N_BATCHES + b] = left_over(mod, held_out)
        whole = MOD(n_atoms=80, n_nonzero_coefs=4, random_state=seed).fit(stream)
        at_hand[seed, part] = left_over(whole, held_out)

figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
batches = np.arange(1, 2 * N_BATCHES + 1)
for forget, marker in zip(FORGET, "os", strict=True):
    mean, error = mean_and_error(100 * errors[forget])
    line = ax.plot(batches, mean, marker=marker, markersize=4, label=f"forget={forget:g}")[0]
    ax.fill_between(batches, mean - error, mean + error, color=line.get_color(), alpha=0.2)
for part, level in enumerate(100 * at_hand.mean(axis=0)):
    span = batches[part * N_BATCHES : (part + 1) * N_BATCHES]
    label = "all rows at hand" if part == 0 else None
    ax.plot(span, np.full(N_BATCHES, level), "--", color="0.4", label=label)
ax.axvline(N_BATCHES + 0.5, color="0.7", linestyle=":")
ax.set(xlabel="batches of 400 patches", ylabel="energy left over, %")
ax.set_ylim(bottom=0)
ax.legend()
plt.show()

# %%
# At the end of each photograph:

for part, name in enumerate(("first", "second")):
    end = (part + 1) * N_BATCHES - 1
    for label, values in (
        *((f"forget={forget:g}", errors[forget][:, end]) for forget in FORGET),
        ("all rows at hand", at_hand[:, part]),
    ):
        mean, error = mean_and_error(100 * values)
        print(f"{name} photograph, {label:17}{mean:5.1f} +- {error:.1f}% left over")

# %%
# On the first photograph forgetting changes little. After the change it does: sums that never fade
# hold the dictionary back. Learning with all rows at hand, twenty times over, stays ahead of both.
