"""Noise off images and rows: beside the textbook, and beside scikit-image where it is there."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_sample_image

import oracles.denoising
from kernelatoms import KSVD, denoise_image, denoise_rows, estimate_sigma
from oracles.denoising import psnr

SIGMA = 25.0


def china():
    return load_sample_image("china.jpg").mean(axis=2)


@pytest.fixture(scope="module")
def corner():
    """Return a piece of a photograph and the same with noise."""
    clean = china()[170:206, 290:330]
    return clean, clean + SIGMA * np.random.default_rng(0).standard_normal(clean.shape)


def test_without_learning_it_is_the_textbook(corner):
    _, noisy = corner
    expected = oracles.denoising.denoise(noisy, SIGMA, 5, 60, 0, blend=0.7)
    found = denoise_image(noisy, SIGMA, patch_size=5, n_atoms=60, max_iter=0, blend=0.7)
    # In float32 a patch at the very bound may end one atom sooner or later.
    assert np.sqrt(np.mean((found - expected) ** 2)) < 0.01 * SIGMA


def test_learned_atoms_are_as_good_as_the_textbooks(corner):
    clean, noisy = corner
    expected = oracles.denoising.denoise(noisy, SIGMA, 5, 40, 3, blend=0.5)
    found = denoise_image(noisy, SIGMA, patch_size=5, n_atoms=40, max_iter=3)
    assert abs(psnr(found, clean, 255) - psnr(expected, clean, 255)) < 0.1
    assert psnr(found, clean, 255) > psnr(noisy, clean, 255) + 3


def test_learning_helps_and_so_does_the_right_sigma():
    clean = china()[150:270, 250:400]
    noisy = clean + SIGMA * np.random.default_rng(1).standard_normal(clean.shape)
    learned = psnr(denoise_image(noisy, SIGMA, max_iter=5, random_state=0), clean, 255)
    assert learned > psnr(denoise_image(noisy, SIGMA, max_iter=0), clean, 255)
    for wrong in (SIGMA / 2, 2 * SIGMA):
        assert learned > psnr(denoise_image(noisy, wrong, max_iter=0), clean, 255) + 0.5


def test_units_do_not_matter(corner):
    _, noisy = corner
    plain = denoise_image(noisy, SIGMA, max_iter=2)
    for factor in (2.0**-60, 2.0**60):
        scaled = denoise_image(noisy * factor, SIGMA * factor, max_iter=2)
        np.testing.assert_allclose(scaled, plain * factor, rtol=1e-6)
    shifted = denoise_image(noisy + 1000, SIGMA, max_iter=0)
    np.testing.assert_allclose(shifted - 1000, denoise_image(noisy, SIGMA, max_iter=0), atol=0.5)


def test_little_noise_on_large_numbers_is_not_lost_in_rounding(rng):
    clean = np.repeat([0.0, 1e9], 20) + np.zeros((40, 1))
    noisy = clean + rng.standard_normal(clean.shape)
    assert np.std(denoise_image(noisy, 1.0, max_iter=0) - clean) < 0.8


def test_types_and_colours(corner):
    clean, noisy = corner
    counted = np.clip(np.rint(noisy), 0, 255).astype(np.uint8)
    back = denoise_image(counted, SIGMA, max_iter=1)
    assert back.dtype == np.uint8
    assert back.shape == counted.shape
    as_floats = denoise_image(counted.astype(float), SIGMA, max_iter=1)
    np.testing.assert_array_equal(back, np.clip(np.rint(as_floats), 0, 255))
    assert denoise_image(noisy.astype(np.float32), SIGMA, max_iter=0).dtype == np.float32
    # Three equal channels with noise of their own: brightness has all there is.
    noise = SIGMA * np.random.default_rng(2).standard_normal((*clean.shape, 3))
    colours = denoise_image(clean[..., None] + noise, SIGMA, max_iter=1)
    assert colours.shape == noise.shape
    grey = denoise_image(clean + noise[..., 0], SIGMA, max_iter=1)
    assert np.std(colours - clean[..., None]) < 0.8 * np.std(grey - clean)
    one = denoise_image(noisy[..., None], SIGMA, max_iter=0)
    np.testing.assert_allclose(one[..., 0], denoise_image(noisy, SIGMA, max_iter=0))


def test_a_given_dictionary_is_used(corner):
    _, noisy = corner
    atoms = oracles.denoising.cosines(8, 256)
    given_ = denoise_image(noisy, SIGMA, dictionary=7 * atoms + 3)  # neither length nor mean counts
    np.testing.assert_allclose(given_, denoise_image(noisy, SIGMA, max_iter=0), rtol=1e-5)
    learner = KSVD(20, n_nonzero_coefs=3, max_iter=2, random_state=0).fit(atoms)
    np.testing.assert_array_equal(
        denoise_image(noisy, SIGMA, dictionary=learner),
        denoise_image(noisy, SIGMA, dictionary=learner.components_),
    )


def test_no_noise_returns_what_came(corner):
    clean, _ = corner
    np.testing.assert_array_equal(denoise_image(clean, 0), clean)
    flat = np.full((40, 40), 7, np.uint8)
    np.testing.assert_array_equal(denoise_image(flat), flat)
    np.testing.assert_array_equal(denoise_rows(clean, 0), clean)


@given(
    height=st.integers(4, 9), width=st.integers(4, 23), side=st.integers(2, 4),
    channels=st.sampled_from([None, 1, 2, 3]),
)  # fmt: skip
def test_any_shape_comes_back(height, width, side, channels):
    shape = (height, width) if channels is None else (height, width, channels)
    image = np.random.default_rng(height * width).standard_normal(shape)
    found = denoise_image(image, 0.5, patch_size=side, n_atoms=16, max_iter=1)
    assert found.shape == shape
    assert np.isfinite(found).all()


@pytest.mark.parametrize(
    ("image", "options", "words"),
    [
        (np.zeros((5, 90)), {}, "image of 5 x 90 pixels is smaller than a patch of 8 x 8"),
        (np.zeros(50), {}, "image must be an array of numbers of shape"),
        (np.zeros((9, 9), bool), {}, "got shape \\(9, 9\\) of bool"),
        (np.full((9, 9), np.nan), {}, "image holds NaN or infinity"),
        (np.zeros((9, 9)), {"sigma": -1}, "sigma"),
        (np.zeros((9, 9)), {"dictionary": np.eye(5)}, "dictionary"),
        (np.zeros((9, 9)), {"patch_size": 1}, "patch_size"),
        (np.zeros((9, 9)), {"n_atoms": 63}, "n_atoms=63 are too few for patches of 64 values"),
        (np.zeros((9, 9)), {"blend": -0.1}, "blend"),
    ],
)
def test_bad_images_are_refused_in_words(image, options, words):
    with pytest.raises(ValueError, match=words):
        denoise_image(image, **options)


def test_rows_lose_their_noise(rng):
    t = np.linspace(0, 1, 150)
    clean = np.sin(2 * np.pi * rng.uniform(2, 6, (40, 1)) * (t + rng.random((40, 1))))
    noisy = clean + 0.3 * rng.standard_normal(clean.shape)
    by_windows = denoise_rows(noisy, 0.3, random_state=0)
    assert np.std(by_windows - clean) < 0.4 * np.std(noisy - clean)
    whole = denoise_rows(noisy, 0.3, window=150, max_iter=2)
    assert np.std(whole - clean) < 0.7 * np.std(noisy - clean)
    assert denoise_rows(noisy.astype(np.float32), 0.3, max_iter=0).dtype == np.float32


def test_whole_rows_are_coded_one_by_one(corner):
    rows = corner[1]
    atoms = np.random.default_rng(0).standard_normal((70, rows.shape[1]))
    centred = atoms - atoms.mean(axis=1, keepdims=True)
    unit = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    width = rows.shape[1]
    for row, found in zip(rows, denoise_rows(rows, SIGMA, dictionary=atoms), strict=True):
        x = row - row.mean()
        code = oracles.denoising.omp(x, unit, 1.15 * SIGMA * np.sqrt(width), width // 2)
        np.testing.assert_allclose(found, code @ unit + row.mean(), atol=1e-2)


def test_bad_rows_are_refused_in_words(rng):
    X = rng.standard_normal((5, 6))
    with pytest.raises(ValueError, match="window=7 is more than the 6 columns"):
        denoise_rows(X, 1, window=7)
    with pytest.raises(ValueError, match="NaN"):
        denoise_rows(np.where(X > 1e9, X, np.nan), 1)
    with pytest.raises(ValueError, match="cannot be estimated from rows of 2 columns"):
        denoise_rows(X[:, :2])


@pytest.mark.parametrize("sigma", [0.02, 5.0, 25.0])
def test_sigma_is_found(rng, sigma):
    noise = sigma * rng.standard_normal((300, 300))
    assert abs(estimate_sigma(noise) / sigma - 1) < 0.03
    assert abs(estimate_sigma(noise, rows=True) / sigma - 1) < 0.03
    framed = np.zeros((400, 400))
    framed[50:350, 50:350] = 100 + noise
    assert abs(estimate_sigma(framed) / sigma - 1) < 0.1  # squares half in the frame are quieter
    assert abs(estimate_sigma(noise[:40, :40]) / sigma - 1) < 0.2  # too few squares for a quantile
    three = np.stack([noise, noise[::-1], noise.T], axis=2)
    assert abs(estimate_sigma(three) / sigma - 1) < 0.03


@pytest.mark.parametrize("sigma", [15, 25, 50])
def test_sigma_of_a_photograph_is_found(rng, sigma):
    noisy = china() + sigma * rng.standard_normal((427, 640))
    assert 0.95 < estimate_sigma(noisy) / sigma < 1.1


def test_sigma_of_nothing():
    assert estimate_sigma(np.zeros((9, 9))) == 0
    assert estimate_sigma(np.full((50, 50), 1e300)) == 0
    with pytest.raises(ValueError, match="cannot be estimated from an image of 2 x 9"):
        estimate_sigma(np.zeros((2, 9)))


LARGE = """
import resource, numpy as np
from kernelatoms import denoise_image
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
denoise_image(np.zeros((64, 64)) + np.arange(64) * 9.0, 25.0, max_iter=1)
before = peak()
x = np.arange(2000.0)
image = 100 * np.sin(x[:, None] / 50) * np.cos(x / 70)
image += 25 * np.random.default_rng(0).standard_normal(image.shape)
denoise_image(image, 25.0, max_iter=1)
print(peak() - before)
"""


@pytest.mark.slow
def test_four_megapixels_in_a_few_hundred_mib():
    done = subprocess.run([sys.executable, "-c", LARGE], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 400


@pytest.mark.slow
@pytest.mark.parametrize("sigma", [15, 25, 50])
@pytest.mark.parametrize("name", ["camera", "china"])
def test_above_non_local_means(name, sigma):
    data = pytest.importorskip("skimage.data")
    restoration = pytest.importorskip("skimage.restoration")
    clean = china() if name == "china" else data.camera().astype(float)
    noisy = clean + sigma * np.random.default_rng(0).standard_normal(clean.shape)
    ours = psnr(denoise_image(noisy, sigma, random_state=0), clean, 255)
    theirs = max(
        psnr(
            restoration.denoise_nl_means(
                noisy, patch_size=size, patch_distance=6, h=share * sigma, sigma=sigma,
                fast_mode=True,
            ),
            clean, 255,
        )
        for size in (5, 7) for share in (0.5, 0.6, 0.8, 1.0)
    )  # fmt: skip
    assert ours > theirs
