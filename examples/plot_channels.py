r"""
A kernel for every channel
==========================

An RGB-D camera gives four channels: red, green, blue and depth. The K-SAD paper (Chhabra, Wallace
and Hopgood) stacks their raw pixels into one row and compares rows by one kernel. But channels have
units of their own. Here depth is in millimetres and spreads little, colours go from 0 to 255 and
are noisy, and one kernel sees mostly what spreads most.

:func:`~kernelatoms.similarity.channel_kernel` gives every channel a kernel with a width of its
own, and adds or multiplies them:

.. math::
   k_+(x, y) = \sum_c w_c\, k_c(x_c, y_c), \qquad k_\times(x, y) = \prod_c k_c(x_c, y_c) .

The paper's data, the Washington RGB-D objects, are not at hand, so these images are made up
(:func:`~kernelatoms.datasets.make_rgbd_objects`): nine classes, three colours times three shapes.
Colour shows in red, green and blue only, shape in depth only.
"""

# sphinx_gallery_thumbnail_number = 2
import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelatoms import (
    KSVD,
    ClassDictionaryClassifier,
    CRCClassifier,
    KernelLinearizer,
    KSADClassifier,
)
from kernelatoms.datasets import make_rgbd_objects
from kernelatoms.report import mean_and_error
from kernelatoms.similarity import Channels, RBFKernel, SumKernel, channel_kernel

# %%
# One object of each shape, in another colour each.

objects = make_rgbd_objects(90, random_state=0)
images = objects.X.reshape(-1, *objects.image_shape)
shown = [np.flatnonzero(objects.y == label)[0] for label in (0, 4, 8)]
figure, axes = plt.subplots(3, 4, figsize=(5.6, 4.3), layout="constrained")
for row, i in zip(axes, shown, strict=True):
    for c, (axis, name) in enumerate(zip(row, ("red", "green", "blue", "depth"), strict=True)):
        low, high = (0, 255) if c < 3 else (820, 930)
        axis.imshow(images[i, ..., c], cmap="gray", vmin=low, vmax=high)
        axis.set(xticks=[], yticks=[], title=name if i == shown[0] else "")
    row[0].set_ylabel(objects.target_names[objects.y[i]])

# %%
# The kernels. ``gamma="scale"`` is settled by the training rows: once for a whole row, or by each
# part for the columns that it sees. A product of Gaussians is one Gaussian of scaled channels; four
# widths multiply to a narrow one, so there is also a product that is as wide as one kernel of all
# four. The last takes the three colours together.

scale = RBFKernel("scale")


def wide_product(X):
    """Return the product with a quarter of the gammas: one Gaussian, of channels scaled alike."""
    parts = channel_kernel(scale, 4).fitted_to(X).parts
    return channel_kernel([own.with_gamma(own.gamma / 4) for own, _ in parts], 4, by="product")


def make_kernels(X):
    """Return kernels by name, and whether columns are standardised first."""
    colour_and_depth = SumKernel([(scale, Channels((0, 1, 2), 4)), (scale, Channels(3, 4))])
    return {
        "one kernel": (scale, False),
        "one kernel, standardised": (scale, True),
        "product of channels": (channel_kernel(scale, 4, by="product"), False),
        "product, as wide as one": (wide_product(X), False),
        "sum of channels": (channel_kernel(scale, 4), False),
        "sum of colour and depth": (colour_and_depth, False),
    }


def make_models(kernel):
    """Return classifiers by name."""
    classes = ClassDictionaryClassifier(KSVD(6, n_nonzero_coefs=3), random_state=0)
    return {
        "LKDL: dictionaries of virtual samples": make_pipeline(
            KernelLinearizer(kernel, n_landmarks=100, random_state=0), classes
        ),
        "KCRC: ridge codes over all rows": CRCClassifier(kernel, normalize=False),
        "K-SAD: nearest codes in a metric": KSADClassifier(kernel=kernel, random_state=0),
    }


# %%
# Accuracy on new images, three draws of 144 training images, with standard errors. Once all is
# well; once a quarter of all images, of training and test, have one channel that is static.

N_DRAWS = 3
scores = {}
for broken in (0, 0.25):
    for seed in range(N_DRAWS):
        train = make_rgbd_objects(144, broken=broken, random_state=seed)
        test = make_rgbd_objects(270, broken=broken, random_state=1000 + seed)
        for name, (kernel, standardise) in make_kernels(train.X).items():
            for method, model in make_models(kernel).items():
                model = make_pipeline(StandardScaler(), model) if standardise else model
                right = model.fit(train.X, train.y).score(test.X, test.y)
                scores.setdefault((broken, method), {}).setdefault(name, []).append(right)

for (broken, method), by_kernel in scores.items():
    print(f"{method}, {broken:.0%} of images with a broken channel")
    for name, values in by_kernel.items():
        mean, error = mean_and_error(values)
        print(f"    {name:26} {100 * mean:5.1f} +- {100 * error:.1f}%")

# %%
# A picture of the same.

figure, axes = plt.subplots(1, 3, figsize=(10.4, 3.5), sharey=True, layout="constrained")
for axis, method in zip(axes, make_models("rbf"), strict=True):
    for offset, broken in ((-0.12, 0), (0.12, 0.25)):
        by_kernel = scores[broken, method]
        mean, error = mean_and_error(np.array(list(by_kernel.values())).T)
        places = np.arange(len(mean)) + offset
        label = "all channels work" if broken == 0 else "one is static in 25%"
        axis.errorbar(100 * mean, places, xerr=100 * error, fmt="o" if broken == 0 else "s",
                      capsize=3, label=label)  # fmt: skip
    axis.set(
        title=method.split(":")[0], xlabel="right [%]", yticks=np.arange(len(mean)), xlim=(40, 100)
    )
    axis.set_yticklabels(by_kernel)
    axis.grid(axis="x", alpha=0.3)
axes[0].invert_yaxis()
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)

plt.show()

# %%
# One kernel of raw numbers loses most, and standardising the columns wins most of it back: try that
# first. A product of Gaussians is one Gaussian of scaled channels, too narrow where every factor
# has the width of its own channel; at the width of one kernel it is the best that scaling gives.
#
# A sum is something else: rows are alike as far as some channels are, and a channel of noise takes
# its own share away and no more. Dictionaries of virtual samples and K-SAD gain by it, whether
# channels work or not. Ridge codes over all rows do not: there the wide product is as good within
# the error. The highest means are those of a sum that is told which channels belong together, here
# that three are one colour; under ridge codes the standard errors still overlap.
