"""The figure of hidden parts: textures, kernels per block, runs on made-up faces, claims."""

import numpy as np
import pytest

from reproduction.figure import Curves
from reproduction.kcrc import occlusion
from reproduction.kcrc.data import Split
from reproduction.kcrc.occlusion import (
    CRC,
    DIGITS,
    FACES,
    KCRC,
    KCRC_BLOCKS,
    KRCRC,
    KRCRC_BLOCKS,
    METHODS,
    OCCLUSION,
    RCRC,
    block_kernel,
    claims,
    hide,
    name,
)


@pytest.mark.parametrize("percent", [0, 10, 30, 50])
def test_a_block_of_every_image_becomes_a_texture(percent):
    images = np.full((40, 30, 24), 7.0)
    images[:, 0, 0] = 8.0
    hidden = hide(images, percent, seed=3)
    changed = hidden != images
    tall, wide = round(30 * (percent / 100) ** 0.5), round(24 * (percent / 100) ** 0.5)
    corners = set()
    for image, where in zip(hidden, changed, strict=True):
        assert where.sum() == tall * wide
        if percent:
            rows, columns = np.flatnonzero(where.any(axis=1)), np.flatnonzero(where.any(axis=0))
            assert len(rows) == rows[-1] - rows[0] + 1 == tall
            assert len(columns) == columns[-1] - columns[0] + 1 == wide
            assert 0 <= image.min() <= image.max() <= 8.0
            corners.add((rows[0], columns[0]))
    assert len(corners) > 10 or not percent
    np.testing.assert_array_equal(hide(images, percent, seed=3), hidden)


def test_the_kernel_per_block_is_a_mean_of_gaussians():
    rng = np.random.default_rng(0)
    X = rng.random((12, 6 * 5))
    kernel = block_kernel((6, 5), 2).fitted_to(X)
    values = kernel(X, X)
    pixels = np.arange(30).reshape(6, 5)
    expected = np.zeros((12, 12))
    for rows in (slice(0, 3), slice(3, 6)):
        for columns in (slice(0, 3), slice(3, 5)):
            block = X[:, pixels[rows, columns].ravel()]
            block = block / np.linalg.norm(block, axis=1, keepdims=True)
            far = 1 - block @ block.T
            part = [p for p in kernel.parts if list(p[1]) == pixels[rows, columns].ravel().tolist()]
            expected += np.exp(-part[0][0].gamma * far) / 4
    np.testing.assert_allclose(values, expected, atol=1e-12)
    # A block that is hidden takes its own share away and no more.
    hidden = X.copy()
    hidden[:, pixels[:3, :3].ravel()] = rng.random((12, 9))
    assert (np.diag(kernel(hidden, X)) >= 0.75).all()


def test_every_method_runs(monkeypatch):
    rng = np.random.default_rng(0)
    people = rng.random((4, 12, 10)) ** 3
    labels = np.repeat(np.arange(4), 6)
    faces = people[labels] * rng.uniform(0.5, 1, (24, 1, 1)) + 0.1 * rng.random((24, 12, 10))
    train = np.arange(24) % 6 < 4
    split = Split(faces[train], labels[train], faces[~train], labels[~train])
    monkeypatch.setattr(occlusion, "images", lambda *args: split)
    occlusion._fitted.cache_clear()
    for method in METHODS:
        setting = next(s for s in OCCLUSION.full.settings if s["method"] == name(method, "ORL"))
        found = OCCLUSION.run_once({**setting, "n_sides": 3}, 0)
        assert found["accuracy"] == 100
        assert found["mu"] > 0
    occlusion._fitted.cache_clear()


def test_ten_splits_of_two_sets_of_faces_and_clean_digits():
    settings = OCCLUSION.full.settings
    assert len(OCCLUSION.full.each_seed) == 10
    assert {s["x"] for s in settings if s["data"] in FACES} == {0, 10, 20, 30, 40, 50}
    assert {s["x"] for s in settings if s["data"] in DIGITS} == {0}


def test_claims_can_fail():
    def values(**changed):
        means = {(CRC, 30): 60, (RCRC, 30): 75, (KCRC, 0): 95, (KRCRC, 0): 94.5, (KCRC, 30): 70,
                 (KRCRC, 30): 82, (KCRC_BLOCKS, 30): 90, (KRCRC_BLOCKS, 30): 91}  # fmt: skip
        means |= {{"clean": (KRCRC, 0), "rcrc": (RCRC, 30), "krcrc": (KRCRC, 30),
                   "blocks": (KRCRC_BLOCKS, 30), "ridge": (KCRC_BLOCKS, 30)}[key]: value
                  for key, value in changed.items()}  # fmt: skip
        there = {(name(method, data), x): [mean, mean] for data in FACES
                 for (method, x), mean in means.items()}  # fmt: skip
        return [claim.holds for claim in claims(Curves(there))]

    assert values() == [True] * 5
    assert values(clean=93.9) == [False, True, True, True, True]
    assert values(rcrc=69) == [True, False, True, True, True]
    assert values(krcrc=79) == [True, True, False, True, True]
    assert values(blocks=79) == [True, True, True, False, True]
    assert values(ridge=79) == [True, True, True, True, False]
    assert [claim.holds for claim in claims(Curves({}))] == [False, False, False]
