"""
OMP or OLS: which atom next?
============================

Both pursuits build a code atom by atom and fit all coefficients again after each pick. They differ
in the pick. Orthogonal matching pursuit (OMP) takes the atom with the largest inner product with
what is left of the signal. Orthogonal least squares (OLS) takes the atom that leaves the least
behind. On orthogonal atoms that is the same. The more alike the atoms, the more it differs.
"""

# %%
# Signals that really are sums of twelve atoms, with noise of 1% of their energy. The atoms share a
# direction: the larger the share, the larger their inner products. Ten draws each.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from kernelatoms import sparse_encode
from kernelatoms.report import mean_and_error

N_FEATURES, N_ATOMS, N_TRUE, N_SIGNALS, N_RUNS = 64, 256, 12, 300, 10


def unit(rows):
    """Return the rows at unit norm."""
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def draw(rng, alike):
    """Return signals, their true codes and unit-norm atoms with inner products around alike."""
    noise = rng.standard_normal((N_ATOMS, N_FEATURES))
    atoms = unit(np.sqrt(1 - alike) * noise + np.sqrt(alike) * rng.standard_normal(N_FEATURES))
    codes = np.zeros((N_SIGNALS, N_ATOMS))
    for row in codes:
        row[rng.choice(N_ATOMS, N_TRUE, replace=False)] = rng.standard_normal(N_TRUE)
    signals = unit(codes @ atoms)
    return signals + 0.1 * unit(rng.standard_normal(signals.shape)), codes, atoms


def left_over(X, atoms, codes):
    """Return the share of the energy that the codes do not explain."""
    return np.sum((X - codes @ atoms) ** 2) / np.sum(X**2)


likeness = (0, 0.25, 0.5, 0.75, 0.9)
left = {"omp": np.zeros((N_RUNS, len(likeness))), "ols": np.zeros((N_RUNS, len(likeness)))}
found = {"omp": np.zeros((N_RUNS, len(likeness))), "ols": np.zeros((N_RUNS, len(likeness)))}
for run in range(N_RUNS):
    for i, alike in enumerate(likeness):
        X, true, atoms = draw(np.random.default_rng(run), alike)
        for selection in left:
            codes = sparse_encode(X, atoms, n_nonzero_coefs=N_TRUE, selection=selection)
            left[selection][run, i] = left_over(X, atoms, codes)
            found[selection][run, i] = ((codes.toarray() != 0) & (true != 0)).mean() * N_ATOMS

for i, alike in enumerate(likeness):
    print(f"inner products around {alike:.2f}")
    for selection in left:
        share, share_error = mean_and_error(100 * left[selection][:, i])
        hits, hits_error = mean_and_error(found[selection][:, i])
        print(
            f"    {selection.upper()}: {share:.2f} +- {share_error:.2f}% left over, "
            f"{hits:.1f} +- {hits_error:.1f} of 12 true atoms found"
        )

# %%
# Real dictionaries are often of the second kind. Here a thousand images of digits are the atoms for
# all others.

X = load_digits().data
atoms, X = unit(X[:1000]), X[1000:]
pairs = (atoms @ atoms.T)[np.triu_indices(1000, 1)]
low, high = np.percentile(pairs, [5, 95])
print(f"inner products of the digits: nine in ten lie between {low:.2f} and {high:.2f}")
counts = np.arange(1, 13)
curves = {
    selection: [
        left_over(X, atoms, sparse_encode(X, atoms, n_nonzero_coefs=k, selection=selection))
        for k in counts
    ]
    for selection in ("omp", "ols")
}
gain = 1 - np.divide(curves["ols"], curves["omp"])
for k in (1, 2, 4, 8, 12):
    print(f"{k:2} nonzeros: OLS leaves {100 * gain[k - 1]:.0f}% less than OMP")

# %%
# Left: synthetic signals, means and standard errors. Right: digits. What OLS costs is on the page
# :doc:`/guide/measured`: 1.1 to 1.35 times the time of OMP.

figure, (one, two) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for selection, marker in (("omp", "o"), ("ols", "s")):
    mean, error = mean_and_error(100 * left[selection])
    one.errorbar(likeness, mean, error, label=selection.upper(), marker=marker, capsize=3)
    two.plot(counts, 100 * np.array(curves[selection]), label=selection.upper(), marker=marker)
one.set(xlabel="inner product of the atoms", ylabel="energy left over, %", title="12 nonzeros")
two.set(xlabel="nonzeros", ylabel="energy left over, %", title="digits over digits", yscale="log")
two.set_yticks([1, 2, 5, 10], ["1", "2", "5", "10"])
two.minorticks_off()
one.set_ylim(bottom=0)
one.legend()
plt.show()
