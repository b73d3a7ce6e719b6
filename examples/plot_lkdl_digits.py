r"""
Dictionaries under noise
========================

One dictionary a class; a digit belongs where its code leaves the smallest residual. Does it help to
learn the dictionaries under a kernel (LKDL), and does it still help when test digits are noisy or
lose pixels? Eight random splits, all models on the same rows. The settings are those of the digit
experiment in the LKDL paper, with fewer atoms for smaller images.
"""

# sphinx_gallery_thumbnail_number = 2
import textwrap

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import normalize

from kernelatoms import KSVD, ClassDictionaryClassifier, KernelLinearizer
from kernelatoms.report import compare_in_words, images_figure, mean_and_error
from kernelatoms.report.figures.scores import robustness_figure

# %%
# The models. The kernel is the paper's :math:`(x^\top y)^4`; its landmarks are k-means centres, 30%
# as many as there are rows. Rows have unit norm, because residuals compare directions. A third
# model was added after a first look at the results, to keep the comparison fair: linear
# dictionaries again, with one atom a digit instead of five. One atom can follow less of the noise.


def class_dictionaries(n_nonzero_coefs, seed):
    """Return a classifier with forty atoms per class."""
    learner = KSVD(n_atoms=40, n_nonzero_coefs=n_nonzero_coefs, max_iter=10)
    return ClassDictionaryClassifier(learner, random_state=seed)


def make_models(seed):
    """Return the three models, not yet fitted."""
    virtual_samples = KernelLinearizer(
        "poly", degree=4, gamma=1, coef0=0, n_landmarks=0.3, sampling="kmeans", random_state=seed
    )
    return {
        "linear, 5 nonzeros": class_dictionaries(5, seed),
        "LKDL, 5 nonzeros": make_pipeline(virtual_samples, class_dictionaries(5, seed)),
        "linear, 1 nonzero": class_dictionaries(1, seed),
    }


# %%
# The corruptions: Gaussian noise (pixels lie between 0 and 1), and pixels set to 0.


def add_noise(pixels, sigma, rng):
    """Return noisy pixels."""
    return pixels + sigma * rng.standard_normal(pixels.shape)


def drop_pixels(pixels, share, rng):
    """Return pixels of which each is 0 with this probability."""
    return pixels * (rng.random(pixels.shape) >= share)


CORRUPTIONS = {"noise": add_noise, "missing pixels": drop_pixels}
LEVELS = np.array([0, 0.1, 0.2, 0.3, 0.4, 0.5])

pixels, labels = load_digits(return_X_y=True)
pixels = pixels / 16
scores = {kind: {name: [] for name in make_models(0)} for kind in CORRUPTIONS}
for seed in range(8):
    train, test, y_train, y_test = train_test_split(
        pixels, labels, test_size=0.4, stratify=labels, random_state=seed
    )
    for name, model in make_models(seed).items():
        model.fit(normalize(train), y_train)
        for kind, corrupt in CORRUPTIONS.items():
            rng = np.random.default_rng(seed)  # every model meets the same corruptions
            tests = [normalize(corrupt(test, level, rng)) for level in LEVELS]
            scores[kind][name].append([model.score(rows, y_test) for rows in tests])

# %%
# What the digits look like: clean, with noise 0.3, with half of the pixels missing.

rng = np.random.default_rng(0)
shown = test[:10]
digits_figure = images_figure(
    np.concatenate([shown, add_noise(shown, 0.3, rng), drop_pixels(shown, 0.5, rng)]),
    (8, 8),
    n_columns=10,
    row_labels=["clean", "noise", "missing"],
)

# %%
# Accuracy against noise: means over the splits, standard errors as bars.

noise_figure = robustness_figure(LEVELS, scores["noise"], xlabel="standard deviation of the noise")

# %%
# Accuracy against missing pixels.

missing_figure = robustness_figure(
    LEVELS, scores["missing pixels"], xlabel="share of pixels set to 0"
)

# %%
# In numbers, and in words that follow from them. A difference counts when it is larger than twice
# its standard error over the splits.

for kind, by_model in scores.items():
    print(f"{kind:18}" + "".join(f"{level:>12.1f}" for level in LEVELS))
    for name, values in by_model.items():
        mean, error = mean_and_error(100 * np.array(values))
        print(
            f"{name:18}" + "".join(f"{m:6.1f} +- {e:.1f}" for m, e in zip(mean, error, strict=True))
        )
    columns = {name: np.transpose(values) for name, values in by_model.items()}
    lkdl = columns.pop("LKDL, 5 nonzeros")
    for name, linear in columns.items():
        pairs = {f"at {level:.1f}": pair for level, *pair in zip(LEVELS, lkdl, linear, strict=True)}
        print(textwrap.fill(compare_in_words(pairs, "LKDL", name), 96))
    print()

# %%
# With five nonzeros each, the kernel makes a large difference as soon as digits are corrupted. But
# much of that is the price of five linear atoms, which follow the noise: with one atom a digit the
# linear model holds out almost as well as LKDL, and loses half a point on clean digits. LKDL has
# both, without a choice to make.
