r"""
Curved sets in a few numbers
============================

A bump that moves along a line: two numbers, its place and its width, say all about it, but as a
row of 80 values it moves through all directions of space. Principal components need dozens of
directions for such a set. :class:`~kernelatoms.KSCDL` learns atoms that are signals like the
others, codes a signal by the few that are near in the feature space of a kernel, and finds the
way back.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA

from kernelatoms import KSCDL, KSVD

# %%
# Bumps of random place and width, with a little noise, at unit norm.

rng = np.random.default_rng(0)
place = np.linspace(0, 1, 80)


def bumps(n_signals):
    """Return bumps of random place and width."""
    at, width = rng.uniform(0.1, 0.9, (n_signals, 1)), rng.uniform(0.03, 0.08, (n_signals, 1))
    signals = np.exp(-0.5 * ((place - at) / width) ** 2)
    signals += 0.01 * rng.standard_normal(signals.shape)
    return signals / np.linalg.norm(signals, axis=1, keepdims=True)


train, test = bumps(1500), bumps(300)


def lost(back):
    """Return the relative error of what came back."""
    return np.sqrt(np.mean((back - test) ** 2) / np.mean(test**2))


# %%
# Sixty atoms, the kernel's width chosen on held-out rows. A code stores an index and a value for
# each nonzero; principal components store their scores. So the fair comparison is with twice as
# many of them as there are nonzeros.

model = KSCDL(n_atoms=60, alpha=0.05, gamma="search", random_state=0).fit(train)
codes = model.transform(test)
back = model.inverse_transform(codes)
nonzeros = codes.nnz / len(test)
components = PCA(round(2 * nonzeros)).fit(train)
linear = components.inverse_transform(components.transform(test))
print(f"KSCDL, {nonzeros:.1f} nonzeros: {lost(back):.1%} lost")
print(f"PCA, {components.n_components_} components: {lost(linear):.1%} lost")

# %%
# Is it the kernel, or the sparsity? Mostly the sparsity: K-SVD, a linear dictionary with as many
# nonzeros, comes close.

ksvd = KSVD(n_atoms=60, n_nonzero_coefs=round(nonzeros), random_state=0).fit(train)
sparse = ksvd.inverse_transform(ksvd.transform(test))
print(f"K-SVD, {round(nonzeros)} nonzeros: {lost(sparse):.1%} lost")

# %%
# Three of the signals:

fig, axes = plt.subplots(1, 3, figsize=(10, 3), layout="constrained", sharey=True)
for ax, signal, coded, projected in zip(axes, test, back, linear, strict=False):
    ax.plot(place, signal, color="0.7", lw=3, label="signal")
    ax.plot(place, coded, label="KSCDL")
    ax.plot(place, projected, label="principal components")
axes[0].legend(fontsize=8)

# %%
# The width of the kernel matters on one side. Where it is too narrow, a signal that lies between
# atoms looks like none of them, and codes are empty. Wide kernels are forgiving here: all their
# values are near 1, and still the differences tell atoms apart, if codes are solved to the end.
# That takes an exact solver; coordinate descent would need many thousands of passes.

gammas = np.geomspace(1e-3, 1e3, 9)
warnings.filterwarnings("ignore", message=".*codes are empty")  # that is what is shown
errors = []
for gamma in gammas:
    other = KSCDL(n_atoms=60, alpha=0.05, gamma=gamma, max_iter=10, random_state=0).fit(train)
    errors.append(lost(other.inverse_transform(other.transform(test))))

fig, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
ax.loglog(gammas, errors, "o-", label="KSCDL")
ax.axhline(lost(linear), color="C1", label=f"{components.n_components_} principal components")
ax.axhline(lost(sparse), color="C2", label=f"K-SVD, {round(nonzeros)} nonzeros")
ax.axvline(model.gamma_, color="0.6", lw=1, ls="--", label='gamma="search"')
ax.set_xlabel("gamma (narrow kernels to the right)")
ax.set_ylabel("lost")
ax.legend()
