"""Block coordinate descent on atoms: in plain torch and in Triton, against the CPU's."""

import importlib.util
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelatoms.engine import cpu

torch = pytest.importorskip("torch")

from kernelatoms.engine.gpu import updates  # noqa: E402

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
COMPILED = torch.cuda.is_available() and not INTERPRETED
HAS_TRITON = importlib.util.find_spec("triton") is not None and (INTERPRETED or COMPILED)
DEVICE = torch.device("cuda" if COMPILED else "cpu")
needs_triton = pytest.mark.skipif(not HAS_TRITON, reason="needs a card, or TRITON_INTERPRET=1")
WAYS = ["plain", pytest.param("kernel", marks=needs_triton)]

shapes = {
    "seed": st.integers(0, 2**32 - 1),
    # Less and more than a block of atoms, and than eight steps of others.
    "n_atoms": st.sampled_from([1, 2, 9, 31, 33, 40]),
    "n_features": st.sampled_from([1, 2, 5, 16, 19]),
    "share": st.sampled_from([0.02, 0.3, 1.0]),
    "dtype": st.sampled_from([np.float32, np.float64]),
}
few = settings(max_examples=8, deadline=None)


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def random_sums(seed, n_atoms, n_features, share, dtype=np.float64, n_signals=60):
    """W'W, W'X and atoms in the unit ball; ``share`` of the coefficients are nonzero."""
    rng = np.random.default_rng(seed)
    W = np.where(rng.random((n_signals, n_atoms)) < share, 1, 0) * rng.standard_normal(
        (n_signals, n_atoms)
    )
    X, D = rng.standard_normal((n_signals, n_features)), rng.standard_normal((n_atoms, n_features))
    D /= np.maximum(np.linalg.norm(D, axis=1, keepdims=True), 1)
    return W.T @ W, W.T @ X, D.astype(dtype)


def descended(way, A, B, D, n_sweeps):
    """Return better atoms, and the sweeps made."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(updates, "compiles_for", lambda device: way == "kernel")
        found = torch.tensor(D, device=DEVICE)
        sums = (torch.tensor(part, device=DEVICE) for part in (A, B))
        n_made = updates.descend_atoms(*sums, found, n_sweeps)
    return found.cpu().numpy(), n_made


def objective(A, B, D):
    D = D.astype(np.float64)
    return 0.5 * np.vdot(A @ D, D) - np.vdot(B, D)


@pytest.mark.parametrize("way", WAYS)
@few
@given(**shapes, n_sweeps=st.integers(0, 3))
def test_atoms_are_those_of_the_cpu(way, seed, n_atoms, n_features, share, dtype, n_sweeps):
    A, B, D = random_sums(seed, n_atoms, n_features, share, dtype)
    found, n_made = descended(way, A, B, D, n_sweeps)
    assert n_made == cpu.descend_atoms(A, B, D, n_sweeps)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, D, rtol=0, atol=1e-6 if dtype == np.float32 else 1e-9)


@pytest.mark.parametrize("way", WAYS)
@few
@given(**shapes)
def test_the_objective_never_rises_and_atoms_without_users_stay(
    way, seed, n_atoms, n_features, share, dtype
):
    A, B, D = random_sums(seed, n_atoms, n_features, share)
    unused = np.random.default_rng(seed).random(n_atoms) < 0.2
    A[unused] = A[:, unused] = B[unused] = 0
    D[unused] *= 3  # not theirs to judge
    floor = 1e-12 * (np.abs(B).sum() + np.abs(A).sum())
    now = D
    for _ in range(2):
        better, _ = descended(way, A, B, now, 1)
        assert objective(A, B, better) <= objective(A, B, now) + floor
        now = better
    assert (np.linalg.norm(now[~unused], axis=1) <= 1 + 1e-12).all()
    np.testing.assert_array_equal(now[unused], D[unused])


@pytest.mark.parametrize("way", WAYS)
def test_more_features_than_are_held_at_once(way, monkeypatch):
    if way == "kernel":
        from kernelatoms.engine.gpu import update_kernels as kernels

        monkeypatch.setattr(kernels, "_FEATURES", 16)
    A, B, D = random_sums(3, 20, 50, 0.3)
    A[4] = A[:, 4] = B[4] = 0
    found, _ = descended(way, A, B, D, 2)
    cpu.descend_atoms(A, B, D, 2)
    np.testing.assert_allclose(found, D, rtol=0, atol=1e-11)


@pytest.mark.parametrize("way", WAYS)
def test_sizes_whose_squares_do_not_exist(way):
    A, B, D = random_sums(0, 12, 6, 0.5)
    plain = descended(way, A, B, D, 2)[0]
    for factor in (1e-150, 1e150):
        found = descended(way, A * factor, B * factor, D, 2)[0]
        np.testing.assert_allclose(found, plain, rtol=1e-9)
    # A coefficient of 1e-160 beside signals of size 1 points the atom at them and no more.
    A, B, D = np.array([[1e-320]]), np.array([[3e-160, 4e-160]]), np.zeros((1, 2))
    np.testing.assert_allclose(descended(way, A, B, D, 1)[0], [[0.6, 0.8]])


@pytest.mark.parametrize("way", WAYS)
def test_columns_may_come_first_and_sweeps_end(way):
    A, B, D = random_sums(1, 10, 7, 0.2, n_signals=400)
    expected, n_made = descended(way, A, B, D, 500)
    assert 1 < n_made == cpu.descend_atoms(A, B, D.copy(), 500) < 500
    assert descended(way, A, B, expected, 5)[1] == 1
    turned = [torch.tensor(part.T.copy(), device=DEVICE).T for part in (A, B, D)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(updates, "compiles_for", lambda device: way == "kernel")
        updates.descend_atoms(*turned, 500)
    np.testing.assert_array_equal(turned[2].cpu().numpy(), expected)


def test_the_way_is_chosen(monkeypatch):
    taken = []
    monkeypatch.setattr(updates, "_descend_block", lambda *given: taken.append("plain"))
    if HAS_TRITON:
        from kernelatoms.engine.gpu import update_kernels as kernels

        monkeypatch.setattr(kernels, "descend_block", lambda *given: taken.append("kernel"))
    A, B, D = random_sums(1, 40, 3, 0.5)
    updates.descend_atoms(*(torch.tensor(part, device=DEVICE) for part in (A, B, D)), 1)
    assert taken == 2 * ["kernel" if HAS_TRITON else "plain"]
