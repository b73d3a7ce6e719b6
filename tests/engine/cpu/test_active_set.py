"""The factor of the active set: what is kept as atoms come and go is what one would make afresh."""

import numpy as np
import pytest

from kernelatoms.engine.cpu import lasso_loops
from kernelatoms.engine.cpu.l1 import MOST_ACTIVE, MOST_ACTIVE_AT_ALL

ROUNDING, ALPHA = 1e-11, 0.3


@pytest.mark.parametrize("seed", range(8))
def test_the_factor_and_the_half_solved_system_stay_those_of_the_active_atoms(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_atoms = int(rng.integers(5, 40))
    D = rng.normal(size=(n_atoms, n_atoms + 5))
    H, b = D @ D.T, rng.normal(size=n_atoms)
    L, z = np.zeros((n_atoms + 1, n_atoms + 1)), np.zeros(n_atoms + 1)
    active, role = np.zeros(n_atoms + 1, np.int64), np.zeros(n_atoms, np.int64)
    signs, expected, k = np.zeros(n_atoms + 1), list[tuple[int, float]](), 0
    for _ in range(60):
        free = np.setdiff1d(np.arange(n_atoms), active[:k])
        if k and (not len(free) or rng.random() < 0.4):
            at = int(rng.integers(k))
            lasso_loops._drop(L, k, at, active, signs, z)
            expected.pop(at)
            k -= 1
        else:
            new = int(rng.choice(free)), float(rng.choice([-1.0, 1.0]))
            k = lasso_loops._enter(L, k, H, b, ALPHA, active, signs, z, role, *new, ROUNDING)
            expected.append(new)
        assert list(zip(active[:k], signs[:k], strict=True)) == expected
        factor = np.tril(L[:k, :k], -1) + np.diag(1 / np.diagonal(L)[:k])
        atoms = active[:k]
        assert np.allclose(factor @ factor.T, H[np.ix_(atoms, atoms)], rtol=1e-9, atol=1e-9)
        assert np.allclose(factor @ z[:k], b[atoms] - ALPHA * signs[:k], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("start", ["nothing", "codes of another alpha", "random codes"])
@pytest.mark.parametrize("n_atoms", [6, 37, 150])
def test_active_sets_reach_the_gap_by_themselves(n_atoms: int, start: str, positive: bool) -> None:
    """No pass of coordinate descent may follow: a wrong factor would hide behind it."""
    rng = np.random.default_rng(n_atoms)
    D = rng.normal(size=(n_atoms, 40))
    D /= np.linalg.norm(D, axis=1, keepdims=True)
    X = 3 * rng.normal(size=(60, 40))
    gram, corr, energy = D @ D.T, X @ D.T, np.vecdot(X, X)
    w = np.zeros(corr.shape)
    if start == "codes of another alpha":
        _solve(gram, corr, energy, 2 * ALPHA, positive, w)
    elif start == "random codes":
        w = np.where(rng.random(corr.shape) < 0.2, rng.normal(size=corr.shape), 0.0)
        w = np.abs(w) if positive else w
    _solve(gram, corr, energy, ALPHA, positive, w)
    gaps, errors = np.empty(len(X)), np.empty(len(X))
    lasso_loops.certify(gram, corr, energy, ALPHA, positive, w, gaps, errors)
    assert (gaps <= 1e-10 * energy).all()
    assert np.count_nonzero(w, axis=1).max() > min(n_atoms, 40) / 3


def _solve(gram, corr, energy, alpha, positive, w) -> None:  # type: ignore[no-untyped-def]
    most = (MOST_ACTIVE, MOST_ACTIVE_AT_ALL)
    lasso_loops.solve_lasso(gram, corr, energy, alpha, positive, 1e-10, most, ROUNDING, 0, w)
