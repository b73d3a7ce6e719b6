"""Noise off images and rows: overlapping patches coded to the size of the noise, put back together.

K-SVD denoising (Elad and Aharon, *Image denoising via sparse and redundant representations over
learned dictionaries*, 2006). Patches of signals are sums of few atoms, noise is not: every patch,
its mean set aside, is coded over a dictionary until what is left is as large as the noise; where
patches overlap, they are averaged. The dictionary is learned on the noisy patches themselves.
"""

from typing import Any

import numpy as np
from sklearn.utils import check_array, check_random_state

from kernelatoms.coding.atom_products import LinearAtoms
from kernelatoms.coding.omp import omp
from kernelatoms.coding.problem import LinearProblem, linear_problems
from kernelatoms.coding.pursuits import OMP
from kernelatoms.engine import Array
from kernelatoms.estimators.coding.noise import planes_of, sigma_of
from kernelatoms.estimators.devices.border import on_cpu
from kernelatoms.estimators.validation import (
    FLOATS,
    check_count,
    check_dictionary,
    check_real,
    refuse_unused,
)
from kernelatoms.features.patches import PatchSum, cosines, patches_of
from kernelatoms.learning.ksvd import KSVDUpdate
from kernelatoms.learning.loop import learn
from kernelatoms.learning.state import LearnerState, unit_rows

# The share of the noise's norm to which patches are coded: 93% of patches of 64 have less noise.
_GAIN = 1.15
# Patches that a dictionary is learned from at most; more changed nothing (docs: denoising).
_MOST_PATCHES = 40_000
# With fewer patches than this for every atom, atoms would learn their noise: cosines do better.
_FEWEST_AN_ATOM = 5
# Patches at work at the same time: a few MiB.
_BLOCK = 1 << 15
# From here on float32 could not tell the noise from rounding.
_WIDE_RANGE = 1e4
_GIVEN = "is for learning atoms, and dictionary gives them"


def denoise_image(
    image: Any,
    sigma: float | None = None,
    *,
    dictionary: Any = None,
    patch_size: int = 8,
    n_atoms: int | None = None,
    max_iter: int = 10,
    blend: float = 0.5,
    random_state: Any = None,
) -> Array:
    """Return an image with Gaussian noise taken off, by K-SVD.

    Every patch, its mean set aside, is coded by OMP until the error is 1.15 sigma sqrt(n_pixels);
    the image is the average of all coded patches. Four megapixels take a few hundred MiB.

    Parameters
    ----------
    image : array of shape (height, width) or (height, width, n_channels)
        A noisy image, grey or in colours (leave an alpha channel out), without NaN.
    sigma : float, optional
        The standard deviation of the noise, in the image's units; by default that of
        ``estimate_sigma``. 0 returns the image as it is.
    dictionary : array of shape (n_atoms, patch_size ** 2), or a fitted learner, optional
        Atoms to code over; their means are set aside. By default they are learned on patches that
        are larger than noise (40,000 of them at most), from cosines; where there are fewer than
        five such patches per atom, the cosines stay.
    patch_size : int, default=8
        The side of a patch, in pixels.
    n_atoms : int, optional
        Atoms to learn, at least one per pixel of a patch; by default four. Not with ``dictionary``.
    max_iter : int, default=10
        Passes of coding and updating; 0 keeps the cosines. Not with ``dictionary``.
    blend : float, default=0.5
        Weight of the noisy pixel, beside 1 for every patch that covers it.
    random_state : int, RandomState or None
        Seeds the choice of patches to learn from, where there are more than 40,000.

    Returns
    -------
    array of the image's shape and type
        Whole numbers are rounded, within the range of their type. Colours are denoised as
        brightness and differences of channels, each with its own dictionary.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelatoms import denoise_image
    >>> x = np.arange(64)
    >>> clean = 100 + 50 * np.sign(np.sin(x / 7)[:, None] + np.cos(x / 9))
    >>> noisy = clean + 20 * np.random.default_rng(0).standard_normal(clean.shape)
    >>> result = denoise_image(noisy, sigma=20, random_state=0)
    >>> bool(np.std(result - clean) < 0.5 * np.std(noisy - clean))
    True
    """
    image, dictionary = on_cpu("denoise_image", image=image, dictionary=dictionary)
    dictionary = getattr(dictionary, "components_", dictionary)
    planes, back = planes_of(image)
    side = check_count("patch_size", patch_size, low=2)
    if min(planes[0].shape) < side:
        raise ValueError(
            f"image of {planes[0].shape[0]} x {planes[0].shape[1]} pixels is smaller than a patch "
            f"of {side} x {side}; choose a smaller patch_size."
        )
    count = check_count("n_atoms", n_atoms) if n_atoms is not None else 4 * side**2
    if dictionary is not None:
        refuse_unused(denoise_image, {"n_atoms": n_atoms, "max_iter": max_iter}, _GIVEN)
    denoiser = _Denoiser(dictionary, (side, side), count, max_iter, blend, random_state)
    if sigma is None:
        levels = [sigma_of(plane) for plane in planes]
    else:
        levels = [check_real("sigma", sigma, low=0)] * len(planes)
    return back([denoiser.clean(*pair) for pair in zip(planes, levels, strict=True)])


def denoise_rows(
    X: Any,
    sigma: float | None = None,
    *,
    dictionary: Any = None,
    window: int | None = None,
    n_atoms: int | None = None,
    max_iter: int = 10,
    blend: float = 0.0,
    random_state: Any = None,
) -> Array:
    """Return rows of signals (time series, spectra) with Gaussian noise taken off, by K-SVD.

    As ``denoise_image`` does, with windows of a row in place of patches.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        Noisy signals, one per row, complete.
    sigma : float, optional
        The standard deviation of the noise, in the signals' units; by default that of
        ``estimate_sigma(X, rows=True)``, for neighbouring columns. 0 returns the rows as they are.
    dictionary : array of shape (n_atoms, window), or a fitted learner, optional
        Atoms to code over; by default learned on windows, as in ``denoise_image``.
    window : int, optional
        How many neighbouring columns are coded together; by default those of the dictionary, else
        64, at most all.
    n_atoms : int, optional
        Atoms to learn, at least one per column of a window; by default two. Not with
        ``dictionary``.
    max_iter : int, default=10
        Passes of coding and updating; 0 keeps the cosines. Not with ``dictionary``.
    blend : float, default=0.0
        Weight of the noisy value, beside 1 for every window that covers it.
    random_state : int, RandomState or None
        Seeds the choice of windows to learn from, where there are more than 40,000.

    Returns
    -------
    array of shape (n_samples, n_features)
        Floats, in the type of X.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelatoms import denoise_rows
    >>> t = np.linspace(0, 1, 200)
    >>> clean = np.sin(2 * np.pi * np.arange(3, 9)[:, None] * t)
    >>> noisy = clean + 0.3 * np.random.default_rng(0).standard_normal(clean.shape)
    >>> result = denoise_rows(noisy, sigma=0.3, random_state=0)
    >>> bool(np.std(result - clean) < 0.5 * np.std(noisy - clean))
    True
    """
    X, dictionary = on_cpu("denoise_rows", X=X, dictionary=dictionary)
    rows = check_array(X, dtype=FLOATS, order="C", input_name="X")
    dictionary = getattr(dictionary, "components_", dictionary)
    if window is None:
        window = min(64, rows.shape[1]) if dictionary is None else np.shape(dictionary)[-1]
    width = check_count("window", window)
    if width > rows.shape[1]:
        raise ValueError(
            f"window={width} is more than the {rows.shape[1]} columns of X; choose at most as many."
        )
    count = check_count("n_atoms", n_atoms) if n_atoms is not None else 2 * width
    if dictionary is not None:
        refuse_unused(denoise_rows, {"n_atoms": n_atoms, "max_iter": max_iter}, _GIVEN)
    denoiser = _Denoiser(dictionary, (1, width), count, max_iter, blend, random_state)
    plane = rows.astype(np.float64)
    level = sigma_of(plane, rows=True) if sigma is None else check_real("sigma", sigma, low=0)
    return denoiser.clean(plane, level).astype(rows.dtype)


class _Denoiser:
    """Takes noise off planes of numbers, by patches of one shape."""

    def __init__(
        self,
        dictionary: Any,
        shape: tuple[int, int],
        n_atoms: int,
        max_iter: int,
        blend: float,
        random_state: Any,
    ) -> None:
        n_values = shape[0] * shape[1]
        if dictionary is None and n_atoms < n_values:
            raise ValueError(
                f"n_atoms={n_atoms} are too few for {'patches' if shape[0] > 1 else 'windows'} of "
                f"{n_values} values, not all of which could be coded; take {n_values} or more."
            )
        self.atoms = None
        if dictionary is not None:
            self.atoms = check_dictionary("dictionary", dictionary, n_values, np.float64)
        self.shape, self.n_atoms = shape, n_atoms
        self.bound = _GAIN * float(np.sqrt(n_values))
        self.most_atoms = max(1, n_values // 2)
        self.max_iter = check_count("max_iter", max_iter, low=0)
        self.blend = check_real("blend", blend, low=0)
        self.rng = check_random_state(random_state)

    def clean(self, plane: Array, sigma: float) -> Array:
        """Return one plane (height, width) of float64 without its noise."""
        if sigma == 0:
            return plane.copy()
        # In units of the noise nothing depends on the image's, and float32 is exact enough.
        middle = float(plane.mean())
        wide = float(np.ptp(plane)) > _WIDE_RANGE * sigma
        noisy = ((plane - middle) / sigma).astype(np.float64 if wide else np.float32)
        if self.atoms is None:
            atoms = self._learned(noisy)
        else:
            centred = self.atoms - self.atoms.mean(axis=1, keepdims=True)
            atoms = unit_rows(centred[centred.any(axis=1)]).astype(noisy.dtype)
        return middle + sigma * self._coded(noisy, atoms)

    def _learned(self, noisy: Array) -> Array:
        """Return atoms learned on the patches that are larger than noise."""
        rows = self._training_patches(noisy)
        start = cosines(self.shape, self.n_atoms).astype(noisy.dtype)
        if len(rows) < _FEWEST_AN_ATOM * len(start):
            return start
        state = LearnerState.start(start)
        # Codes are bounded by the error, which therefore tells nothing of progress: no early end.
        learn(
            linear_problems, rows,
            OMP(self.most_atoms, max_residual=self.bound), KSVDUpdate(), state,
            max_iter=self.max_iter, tol=-np.inf,
        )  # fmt: skip
        return state.dictionary

    def _training_patches(self, noisy: Array) -> Array:
        """Return at most ``_MOST_PATCHES`` patches, their means set aside, larger than noise."""
        kept = []
        n_lines, n_columns = (n - side + 1 for n, side in zip(noisy.shape, self.shape, strict=True))
        # Chosen before they are looked at, so that no more than these are ever made.
        chosen = np.arange(n_lines * n_columns)
        if len(chosen) > 4 * _MOST_PATCHES:
            chosen = np.sort(self.rng.choice(len(chosen), 4 * _MOST_PATCHES, replace=False))
        for start in range(0, len(chosen), _BLOCK):
            rows, _ = patches_of(noisy, self.shape, chosen[start : start + _BLOCK])
            kept.append(rows[np.vecdot(rows, rows) > self.bound**2])
        found = np.concatenate(kept)
        if len(found) > _MOST_PATCHES:
            found = found[np.sort(self.rng.choice(len(found), _MOST_PATCHES, replace=False))]
        return found

    def _coded(self, noisy: Array, atoms: Array) -> Array:
        """Return the average of all coded patches and of the noisy plane, weighted by ``blend``."""
        known, total = LinearAtoms(atoms), PatchSum(noisy.shape, self.shape)
        # Whole lines of patches, so that they can be added up as planes.
        step = max(1, _BLOCK // total.per_line) * total.per_line
        for start in range(0, total.n_patches, step):
            chosen = np.arange(start, min(start + step, total.n_patches))
            rows, means = patches_of(noisy, self.shape, chosen)
            problem = LinearProblem(rows, known, complete=True)
            codes = omp(problem, self.most_atoms, max_residual=self.bound, absolute=True)
            total.add(start, codes.to_csr() @ atoms + means)
        return total.average(noisy, self.blend)
