"""Draw the picture of the README: python docs/_static/readme_picture.py."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from kernelatoms import KSVD

X, y = load_digits(return_X_y=True)
train, test, _, labels = train_test_split(X, y, random_state=0)
ksvd = KSVD(n_atoms=128, n_nonzero_coefs=5, random_state=0).fit(train)
codes = ksvd.transform(test).toarray()

figure = Figure(figsize=(9, 4.2), dpi=110, facecolor="white")
axes = figure.subplots(
    3, 8, gridspec_kw={"wspace": 0.5, "hspace": 0.35, "width_ratios": [1, 1, 0.4, 1, 1, 1, 1, 1]}
)
for first, row, digit in zip((True, False, False), axes, (3, 5, 8), strict=True):
    i = int(np.flatnonzero(labels == digit)[0])
    used = np.argsort(-np.abs(codes[i]))[:5]
    atoms = ksvd.components_[used]
    pictures = [test[i], codes[i] @ ksvd.components_, *atoms]
    titles = ["a digit", "rebuilt", *(f"{codes[i, j]:.0f} x" for j in used)]
    signs = ["=", *("+" if codes[i, j] > 0 else "\N{MINUS SIGN}" for j in used[1:])]
    titles[2:] = [title.lstrip("-") for title in titles[2:]]
    places = [row[0], row[1], *row[3:]]
    row[2].axis("off")
    row[2].text(0.5, 0.5, "=", ha="center", va="center", fontsize=20)
    for k, (place, pixels, title) in enumerate(zip(places, pictures, titles, strict=True)):
        largest = np.abs(pixels).max()
        shades = {"cmap": "gray_r", "vmin": 0} if k < 2 else {"cmap": "RdBu_r", "vmin": -largest}
        place.imshow(pixels.reshape(8, 8), vmax=largest, **shades)
        place.set_xticks([])
        place.set_yticks([])
        if k > 1 or first:
            place.set_title(title, fontsize=11)
        if k > 2:
            place.text(
                -0.28,
                0.5,
                signs[k - 2],
                transform=place.transAxes,
                fontsize=14,
                ha="center",
                va="center",
            )
figure.savefig(Path(__file__).with_name("readme.png"), bbox_inches="tight")
