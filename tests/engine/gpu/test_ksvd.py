"""Sweeps of K-SVD: one by one in plain torch, at once in Triton, against those of the CPU."""

import importlib.util
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelatoms.engine import cpu

torch = pytest.importorskip("torch")

import kernelatoms as ka  # noqa: E402
from kernelatoms.engine import gpu  # noqa: E402
from kernelatoms.engine.gpu import updates as ksvd  # noqa: E402

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
COMPILED = torch.cuda.is_available() and not INTERPRETED
HAS_TRITON = importlib.util.find_spec("triton") is not None and (INTERPRETED or COMPILED)
DEVICE = torch.device("cuda" if COMPILED else "cpu")
needs_triton = pytest.mark.skipif(not HAS_TRITON, reason="needs a card, or TRITON_INTERPRET=1")

WAYS = [
    "one by one",
    pytest.param("a launch a meeting", marks=needs_triton),
    pytest.param(
        "at once", marks=pytest.mark.skipif(not COMPILED, reason="programs that meet need a card")
    ),
]
DTYPES = [np.float32, np.float64]
# Signals, atoms, nonzeros, features: less and more than a slice of them; an atom of many signals.
SHAPES = [(12, 5, 2, 3), (9, 7, 3, 21), (300, 2, 1, 5), (1, 4, 2, 6), (11, 1, 1, 9), (1, 1, 1, 1)]


def problem(n, n_atoms, n_nonzero, n_features, dtype, seed=0, noise=0.3):
    """Return residuals, atoms, padded indices and values of signals near their codes."""
    rng = np.random.default_rng(seed)
    D = cpu.unit_rows(rng.standard_normal((n_atoms, n_features)).astype(dtype))
    indices = np.stack([rng.permutation(n_atoms)[:n_nonzero] for _ in range(n)]).astype(np.int32)
    values = rng.standard_normal(indices.shape).astype(dtype)
    gone = rng.random(indices.shape) < 0.1
    indices[gone], values[gone] = -1, 0
    left = noise * rng.standard_normal((n, n_features)).astype(dtype)
    return [left.astype(dtype), D, indices, values]


def swept(arrays, n_alternations=2, n_sweeps=2, way="cpu"):
    """Return residuals, atoms and values after sweeps, made in a given way."""
    if way == "cpu":
        left, D, indices, values = (array.copy() for array in arrays)
        cpu.sweep_atoms(left, D, indices, values, n_alternations, n_sweeps)
        return left, D, values
    left, D, indices, values = (torch.tensor(array, device=DEVICE) for array in arrays)
    if way == "one by one":
        ksvd._sweep_one_by_one(left, D, indices, values, n_alternations, n_sweeps)
    else:
        asked = [(left, D, indices, values, n_alternations, n_sweeps)]
        ksvd._sweep_all(asked, way == "at once")
    return tuple(found.cpu().numpy() for found in (left, D, values))


def check_same(found, expected, dtype):
    """Check numbers; those of the problems above are of the size of 1."""
    rtol = 1e-4 if dtype == np.float32 else 1e-11
    for own, theirs in zip(found, expected, strict=True):
        assert own.dtype == theirs.dtype
        np.testing.assert_allclose(own, theirs, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("n_alternations", "n_sweeps"), [(2, 2), (1, 1), (3, 1), (1, 3)])
def test_sweeps_are_those_of_the_cpu(shape, dtype, n_alternations, n_sweeps, way):
    arrays = problem(*shape, dtype)
    expected = swept(arrays, n_alternations, n_sweeps)
    check_same(swept(arrays, n_alternations, n_sweeps, way), expected, dtype)


@pytest.mark.skipif(not COMPILED, reason="programs that meet need a card")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(6000, 700, 11, 784), (20000, 64, 4, 64), (500, 40, 3, 4099)])
def test_programs_that_meet_find_what_launches_find(shape, dtype):
    arrays = problem(*shape, dtype)
    found = swept(arrays, way="at once")
    for own, theirs in zip(found, swept(arrays, way="a launch a meeting"), strict=True):
        np.testing.assert_array_equal(own, theirs)
    for own, theirs in zip(found, swept(arrays, way="at once"), strict=True):
        np.testing.assert_array_equal(own, theirs)
    check_same(found, swept(arrays), dtype)


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 2**31), dtype=st.sampled_from(DTYPES))
def test_no_sweep_raises_the_objective_and_residuals_stay_true(way, seed, dtype):
    arrays = problem(14, 5, 3, 11, dtype, seed)
    left, D, indices, values = arrays
    signals = left - cpu.residuals(np.zeros_like(left), D, indices, values)
    last = float((left.astype(np.float64) ** 2).sum())
    for _ in range(2):
        left, D, values = swept([left, D, indices, values], 2, 1, way)
        objective = float((left.astype(np.float64) ** 2).sum())
        eps = float(np.finfo(dtype).eps)
        assert objective <= last * (1 + 100 * eps)
        np.testing.assert_allclose(
            left, cpu.residuals(signals, D, indices, values), atol=1e3 * eps * np.abs(signals).max()
        )
        last = objective


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_atoms_of_nobody_and_atoms_without_a_direction_stay(dtype, way):
    left, D, indices, values = problem(20, 6, 3, 9, dtype)
    nobody, useless = 1, 4
    values[indices == nobody], values[indices == useless] = 0, 0
    indices[indices == nobody] = -1
    found = swept([left, D, indices, values], way=way)
    for atom in (nobody, useless):
        np.testing.assert_array_equal(found[1][atom], D[atom])
    assert not found[2][(indices == useless) | (indices < 0)].any()
    check_same(found, swept([left, D, indices, values]), dtype)


@pytest.mark.parametrize("way", WAYS)
def test_a_single_signal_of_an_atom_is_matched_exactly(way):
    left, D, indices, values = problem(1, 1, 1, 12, np.float64)
    indices[:], values[:] = 0, 0.5
    found_left, found, coefficient = swept([left, D, indices, values], way=way)
    signal = left[0] + 0.5 * D[0]
    np.testing.assert_allclose(found_left, 0, atol=1e-14)
    np.testing.assert_allclose(found[0], signal / np.linalg.norm(signal), atol=1e-14)
    np.testing.assert_allclose(coefficient[0, 0], np.linalg.norm(signal), rtol=1e-14)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_signals_twice_are_coded_alike(dtype, way):
    arrays = problem(10, 5, 2, 7, dtype)
    for i in (0, 2, 3):
        arrays[i] = np.concatenate([arrays[i], arrays[i]])
    found = swept(arrays, way=way)
    for own in (found[0], found[2]):
        np.testing.assert_allclose(own[:10], own[10:], rtol=0, atol=1e-5)
    check_same(found, swept(arrays), dtype)


# Few, since Triton's interpreter is slow; the last has an atom of many signals.
TOGETHER = [(7, 3, 1, 9), (1, 2, 1, 9), (140, 1, 1, 9)]


@pytest.mark.parametrize(("dtype", "at_a_launch"), [(np.float32, 3), (np.float64, 2)])
@pytest.mark.parametrize("way", WAYS[1:])
def test_dictionaries_together_are_those_of_each(way, dtype, at_a_launch, monkeypatch):
    from kernelatoms.engine.gpu import update_kernels as kernels

    arrays = [problem(*shape, dtype, seed) for seed, shape in enumerate(TOGETHER)]
    alone = [swept(own, 1, 2, way) for own in arrays]
    launches = [range(at_a_launch), range(at_a_launch, len(arrays))]
    monkeypatch.setattr(kernels, "_shares", lambda *_: [some for some in launches if some])
    given = [tuple(torch.tensor(a, device=DEVICE) for a in own) for own in arrays]
    ksvd._sweep_all([(*own, 1, 2) for own in given], way == "at once")
    for (left, D, indices, values), own, theirs in zip(given, arrays, alone, strict=True):
        np.testing.assert_array_equal(indices.cpu(), own[2])
        for found, expected in zip((left, D, values), theirs, strict=True):
            np.testing.assert_array_equal(found.cpu(), expected)


@pytest.mark.skipif(not COMPILED, reason="programs that meet need a card")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n_features", [784, 40, 4099])
def test_more_dictionaries_than_a_card_has_programs_for(dtype, n_features):
    arrays = [problem(200 + 10 * i, 30, 3, n_features, dtype, i) for i in range(70)]
    given = [tuple(torch.tensor(a, device=DEVICE) for a in own) for own in arrays]
    ksvd._sweep_all([(*own, 2, 2) for own in given])
    for (left, D, _, values), own in zip(given, arrays, strict=True):
        for found, expected in zip((left, D, values), swept(own, way="at once"), strict=True):
            np.testing.assert_array_equal(found.cpu(), expected)


@needs_triton
@pytest.mark.parametrize(("most", "at_once"), [(14 * 64, [2]), (14 * 64 - 1, [1, 1])])
def test_large_dictionaries_are_swept_alone(most, at_once, monkeypatch):
    from kernelatoms.engine.gpu import update_kernels as kernels

    seen, sweep_all = [], ksvd._sweep_all
    monkeypatch.setattr(
        ksvd, "_sweep_all", lambda asked: [seen.append(len(asked)), sweep_all(asked)][1]
    )
    arrays = [problem(*shape, np.float64, seed) for seed, shape in enumerate(TOGETHER[:2])]
    given = [tuple(torch.tensor(a, device=DEVICE) for a in own) for own in arrays]
    monkeypatch.setattr(kernels, "_MOST_NONZEROS", most)  # twice 7 of each of 64 tasks
    ksvd.sweep_atoms_all(given, 1, 1)
    assert seen == at_once
    for (left, D, _, values), own in zip(given, arrays, strict=True):
        found = [tensor.cpu().numpy() for tensor in (left, D, values)]
        check_same(found, swept(own, 1, 1), np.float64)


def test_dictionaries_of_classes_are_those_of_one_by_one(monkeypatch):
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(2), [5, 7])
    X = rng.standard_normal((2, 3, 6))[y, rng.integers(3, size=len(y))]
    X = torch.tensor(X + 0.3 * rng.standard_normal(X.shape), device=DEVICE)
    at_once, sweep_all = [], ksvd._sweep_all
    monkeypatch.setattr(
        ksvd, "_sweep_all", lambda asked: [at_once.append(len(asked)), sweep_all(asked)][1]
    )
    learner = ka.KSVD(2, n_nonzero_coefs=1, max_iter=1)
    model = ka.ClassDictionaryClassifier(learner, random_state=0)
    with gpu.cpu_as_device():
        found = model.fit(X, y).dictionaries_
        assert at_once == ([2] if HAS_TRITON else [])
        monkeypatch.setattr(gpu, "UPDATES_TOGETHER", 1)
        expected = model.fit(X, y).dictionaries_
    for own, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(own.components_.cpu(), theirs.components_.cpu())
        np.testing.assert_array_equal(own.objective_.cpu(), theirs.objective_.cpu())


def test_the_way_is_chosen_and_columns_may_come_first(monkeypatch):
    arrays = problem(30, 6, 3, 10, np.float32)
    expected = swept(arrays)
    left, D, indices, values = (torch.tensor(a.T.copy(), device=DEVICE).T for a in arrays)
    taken, ways = [], [(ksvd, "_sweep_one_by_one")]
    if HAS_TRITON:
        from kernelatoms.engine.gpu import update_kernels as kernels

        ways.append((kernels, "sweep"))
    for owner, name in ways:
        way = getattr(owner, name)
        monkeypatch.setattr(
            owner, name, lambda *given, way=way, name=name: [taken.append(name), way(*given)][1]
        )
    ksvd.sweep_atoms(left, D, indices, values, 2, 2)
    assert taken == ["sweep" if HAS_TRITON else "_sweep_one_by_one"]
    check_same([found.cpu().numpy() for found in (left, D, values)], expected, np.float32)


def test_no_codes_change_nothing():
    left, D, indices, values = (torch.tensor(array) for array in problem(3, 2, 1, 4, np.float32))
    before = D.clone()
    for few in (indices[:, :0], indices[:0], torch.full_like(indices, -1)):
        ksvd.sweep_atoms(left[: len(few)], D, few, values[: len(few), : few.shape[1]], 2, 2)
        assert torch.equal(D, before)
