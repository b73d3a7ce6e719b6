"""
Back from feature space: pre-images
===================================

A virtual sample is a point in the feature space of a kernel. Which image does it stand for? Most
points of a feature space are the map of no image at all, so
:meth:`KernelLinearizer.inverse_transform <kernelatoms.KernelLinearizer.inverse_transform>` gives an
estimate: a ridge regression from virtual samples to images, fitted to the landmarks. With it, atoms
learned under a kernel can be looked at, and noise can be taken off in feature space.
"""

# sphinx_gallery_thumbnail_number = 2
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split

from kernelatoms import KSVD, KernelLinearizer
from kernelatoms.report import atoms_figure, images_figure, mean_and_error

X = load_digits().data / 16
GAUSSIAN = {"kernel": "rbf", "gamma": 0.02, "n_landmarks": 600}


def left_over(image, truth):
    """Return the squared distance as a share of the energy."""
    return np.sum((image - truth) ** 2) / np.sum(truth**2)


# %%
# There and back, with more and more coordinates, on digits that were not seen. On clean digits more
# coordinates are better. On noisy ones they bring the noise back, and there is a best number in
# between. PCA, its linear relative, has a best number too.

RANKS, NOISES, SEEDS = (4, 8, 16, 32, 64), (0.0, 0.2, 0.4), range(5)
errors = {
    name: np.zeros((len(SEEDS), len(NOISES), len(RANKS))) for name in ("Gaussian kernel", "PCA")
}
for s in SEEDS:
    train, test = train_test_split(X, test_size=0.4, random_state=s)
    noise = np.random.default_rng(s).standard_normal(test.shape)
    for j, rank in enumerate(RANKS):
        maps = {
            "Gaussian kernel": KernelLinearizer(**GAUSSIAN, n_components=rank, random_state=s),
            "PCA": PCA(rank, random_state=s),
        }
        for name, model in maps.items():
            model.fit(train)
            for i, sigma in enumerate(NOISES):
                back = model.inverse_transform(model.transform(test + sigma * noise))
                errors[name][s, i, j] = left_over(back, test)

figure, axes = plt.subplots(1, 3, figsize=(9, 3.4), layout="constrained")
for i, (ax, sigma) in enumerate(zip(axes, NOISES, strict=True)):
    for (name, values), marker in zip(errors.items(), "os", strict=True):
        mean, error = mean_and_error(100 * values[:, i])
        ax.errorbar(RANKS, mean, error, marker=marker, capsize=3, label=name)
    ax.set(xscale="log", xlabel="coordinates", title=f"noise {sigma:g}")
    ax.set_xticks(RANKS, [str(r) for r in RANKS])
    ax.minorticks_off()
    ax.set_ylim(bottom=0)
axes[0].set_ylabel("distance from the clean digit, %")
axes[0].legend()
plt.show()

for i, sigma in enumerate(NOISES):
    for name, values in errors.items():
        j = values[:, i].mean(axis=0).argmin()
        mean, error = mean_and_error(100 * values[:, i, j])
        print(
            f"noise {sigma:g}: {name:16} at its best with {RANKS[j]:2} coordinates, "
            f"{mean:4.1f} +- {error:.1f}%"
        )

# %%
# Under noise the kernel's best is a little closer to the clean digits than PCA's, and it matters
# less to have the right number of coordinates.
#
# The same in pictures: digits with noise 0.4, and what 16 coordinates make of them.

linearizer = KernelLinearizer(**GAUSSIAN, n_components=16, random_state=0).fit(train)
noisy = test[:10] + 0.4 * noise[:10]
back = linearizer.inverse_transform(linearizer.transform(noisy))
digits_figure = images_figure(
    np.concatenate([test[:10], noisy, back]),
    (8, 8),
    n_columns=10,
    row_labels=["clean", "noisy", "there and back"],
)

# %%
# Atoms learned in feature space, by K-SVD on virtual samples, as images.

linearizer = KernelLinearizer(**GAUSSIAN, random_state=0).fit(train)
ksvd = KSVD(n_atoms=60, n_nonzero_coefs=5, random_state=0).fit(linearizer.transform(train))
atoms = linearizer.inverse_transform(ksvd.components_)
atoms_grid = atoms_figure(atoms, (8, 8), n_columns=12)
