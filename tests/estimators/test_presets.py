"""Presets: pipelines by name, sizes by rows."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from kernelatoms import PRESETS, Preset, RowNormalizer, default_preset, make_preset


def test_the_default_keeps_rows_up_to_20_000_and_learns_atoms_beyond():
    assert [default_preset(n) for n in (1, 20_000, 20_001)] == ["kcrc", "kcrc", "lkdl"]
    assert PRESETS["lkdl"].enough_rows == 20_000
    assert PRESETS["kcrc"].enough_rows is None


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_learns_from_rows_with_gaps(name, rng):
    X = rng.normal(size=(40, 6)) + 4 * np.repeat([0, 1], 20)[:, None]
    X[rng.random(X.shape) < 0.05] = np.nan
    y = np.repeat(["a", "b"], 20)
    model = make_preset(name, random_state=0)
    if name == "fddl":
        model.set_params(learn__n_atoms_per_class=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of sizes that so few rows clip
        model.fit(X, y if PRESETS[name].needs_label else None)
    if PRESETS[name].needs_label:
        assert model.predict(X).shape == (40,)


def test_sizes_change_beyond_2_000_rows():
    few, many = (make_preset("kcrc", n_rows=n) for n in (2_000, 2_001))
    assert few[-1].n_neighbors is None
    assert many[-1].n_neighbors == 100
    few, many = (make_preset("lkdl", n_rows=n)[-1].dictionary for n in (2_000, 2_001))
    assert (few.n_atoms, few.n_nonzero_coefs) == (50, 5)
    assert (many.n_atoms, many.n_nonzero_coefs) == (100, 10)


def test_scales():
    scale = {name: make_preset(scale=name).named_steps for name in ("standard", "unit", "range")}
    assert isinstance(scale["standard"]["scale"], StandardScaler)
    assert scale["unit"]["scale"].offset is None
    assert isinstance(scale["range"]["range"], MinMaxScaler)
    assert isinstance(scale["range"]["scale"], RowNormalizer)
    assert scale["range"]["scale"].offset == 1.0
    assert list(make_preset(scale="none").named_steps) == ["fill", "learn"]
    # A preset's own scale is what it says.
    assert list(make_preset("linear").named_steps) == ["fill", "range", "scale", "learn"]


def test_seeds_reach_every_step():
    model = make_preset("lkdl", random_state=7)
    assert (model["map"].random_state, model["learn"].random_state) == (7, 7)


def test_rows_of_ones_own():
    model = make_preset(Preset("mine", "MOD", parameters={"learn__n_atoms": 7}))
    assert (type(model[-1]).__name__, model[-1].n_atoms) == ("MOD", 7)


def test_what_is_not_there_is_named():
    with pytest.raises(TypeError, match="must be a Preset or its name, got 3"):
        make_preset(3)
    with pytest.raises(ValueError, match=r"preset must be one of kcrc, .*, got 'svm'"):
        make_preset("svm")
    with pytest.raises(ValueError, match=r"scale must be one of standard, .*, got 'rows'"):
        make_preset(scale="rows")


def test_half_the_digits_for_many_rows_lose_nothing():
    """Also of columns far from 0: they are standardised before digits go."""
    X, y = make_classification(
        2_600, 8, n_informative=5, n_classes=3, n_clusters_per_class=1, random_state=0
    )
    X += 1e7
    single = make_preset("lkdl", n_rows=len(X), random_state=0).fit(X[:2_200], y[:2_200])
    assert single[:-1].transform(X[:3]).dtype == np.float32
    double = clone(single).set_params(map__dtype=None).fit(X[:2_200], y[:2_200])
    scores = [model.score(X[2_200:], y[2_200:]) for model in (single, double)]
    assert min(scores) > 0.85
    assert abs(scores[0] - scores[1]) < 0.02
