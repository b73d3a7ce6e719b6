"""
How many atoms, how many nonzeros?
==================================

Two numbers decide what a dictionary can do: how many atoms there are, and how many of them a signal
may use. More of either lowers the error on the rows that the dictionary was learned from. Only rows
that it has not seen tell how much of that it has learned, and how much it merely remembers.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from kernelatoms import KSVD
from kernelatoms.report import mean_and_error

# %%
# Digits, half of them to learn from, half to measure on; five splits. The error is the share of
# the energy that the codes leave over.

X = load_digits().data / 16
ATOMS, NONZEROS, SEEDS = (16, 32, 64, 128, 256, 512), (1, 2, 4, 8), range(5)


def left_over(ksvd, X):
    """Return the share of the energy that is left after coding."""
    return np.sum((X - ksvd.inverse_transform(ksvd.transform(X))) ** 2) / np.sum(X**2)


seen = np.zeros((len(SEEDS), len(NONZEROS), len(ATOMS)))
unseen = np.zeros_like(seen)
for s in SEEDS:
    train, test = train_test_split(X, test_size=0.5, random_state=s)
    for i, n_nonzero in enumerate(NONZEROS):
        for j, n_atoms in enumerate(ATOMS):
            ksvd = KSVD(n_atoms, n_nonzero_coefs=n_nonzero, max_iter=10, random_state=s).fit(train)
            seen[s, i, j], unseen[s, i, j] = left_over(ksvd, train), left_over(ksvd, test)

# %%
# Solid: rows not seen. Dotted: rows learned from. Bars are standard errors over the splits, smaller
# than the markers.

figure, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
for i, (n_nonzero, marker) in enumerate(zip(NONZEROS, "os^D", strict=True)):
    mean, error = mean_and_error(100 * unseen[:, i])
    label = "1 nonzero" if n_nonzero == 1 else f"{n_nonzero} nonzeros"
    line = ax.errorbar(ATOMS, mean, error, marker=marker, capsize=3, label=label)
    ax.plot(ATOMS, 100 * seen[:, i].mean(axis=0), ":", color=line.lines[0].get_color())
ax.set(xscale="log", yscale="log", xlabel="atoms", ylabel="energy left over, %")
ax.set_xticks(ATOMS, [str(n) for n in ATOMS])
ax.set_yticks([0.5, 1, 2, 5, 10, 20, 30], ["0.5", "1", "2", "5", "10", "20", "30"])
ax.minorticks_off()
ax.legend()
plt.show()

# %%
# In numbers, means over the splits:

print("left over, %    " + "".join(f"{n:>6} atoms" for n in ATOMS))
for name, errors in (("not seen", unseen), ("learned from", seen)):
    for i, n_nonzero in enumerate(NONZEROS):
        cells = "".join(f"{100 * value:12.2f}" for value in errors[:, i].mean(axis=0))
        print(f"{name:13}{n_nonzero:3}{cells}")
largest = 100 * mean_and_error(unseen)[1].max()
print(f"standard errors of the rows not seen: at most {largest:.2f}")

# %%
# Here more atoms still help, and each doubling helps less. The gap between the two errors is the
# part that does not carry over: with 512 atoms for 898 rows it is most of what is left. What the
# last doubling buys has to pay for coding, which takes time in proportion to the atoms, and for
# storing them. Where codes are a means to an end, such as classification, let the end decide:
# :ref:`sphx_glr_gallery_plot_grid_search.py`.
