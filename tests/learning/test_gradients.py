"""The dictionary step of KSCDL: sums that add up, the paper's gradient, never uphill."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from kernelatoms.coding import lasso
from kernelatoms.coding.codes import DenseCodes
from kernelatoms.coding.problem import KernelProblem
from kernelatoms.features.expansion import Expansion
from kernelatoms.learning.gradients import (
    GradientSums,
    coded_loss,
    move_atoms,
    project_to_ball,
    sum_gradients,
)
from kernelatoms.learning.mod import best_dictionaries
from kernelatoms.learning.moments import Moments
from kernelatoms.similarity import make_kernel
from kernelatoms.similarity.factory import names_of_kernels
from oracles import kscdl as book

GRADIENT_KERNELS = names_of_kernels("has_gradient")


def some_codes(rng, n, m, density=0.5):
    W = rng.standard_normal((n, m)) * (rng.random((n, m)) < density)
    return scipy.sparse.csr_array(W)


def test_objective_and_gradient_are_the_papers(rng):
    X, D = rng.standard_normal((7, 3)), rng.standard_normal((4, 3))
    W = some_codes(rng, 7, 4)
    here = sum_gradients(make_kernel("rbf", gamma=0.4), X, W, D, 0.2).finish(
        make_kernel("rbf", gamma=0.4), D
    )
    expected = book.objective(book.rbf(0.4), X, D, W.toarray(), 0.2)
    np.testing.assert_allclose(here.objective, expected)
    expected = book.rbf_gradient(X, D, W.toarray(), 0.4)
    np.testing.assert_allclose(here.gradient, expected, atol=1e-12)


@pytest.mark.parametrize("name", [name for name in GRADIENT_KERNELS if name != "polynomial"])
def test_gradient_is_the_slope_of_the_objective(name, rng):
    kernel = make_kernel(name, gamma=0.3, degree=2)
    X, D = rng.standard_normal((9, 4)), rng.standard_normal((5, 4))
    W, h = some_codes(rng, 9, 5), 1e-6
    sums = sum_gradients(kernel, X, W, D, 0.1)
    here = sums.finish(kernel, D)
    way = rng.standard_normal(D.shape)
    up, down = (coded_loss(kernel, X, W, sums.gram, D + s * h * way) for s in (1, -1))
    np.testing.assert_allclose(np.vdot(here.gradient, way), (up - down) / (2 * h), rtol=1e-5)
    reached = sums.constant + coded_loss(kernel, X, W, sums.gram, D)
    np.testing.assert_allclose(here.objective, reached, rtol=1e-12)
    if name != "laplacian":  # there H is a measure only
        np.testing.assert_allclose(here.curvature, here.curvature.T, atol=1e-12)


@given(
    seed=st.integers(0, 2**31),
    n=st.integers(2, 40),
    cut=st.floats(0, 1),
    name=st.sampled_from(["rbf", "poly", "laplacian", "cosine"]),
)
def test_blocks_add_up(seed, n, cut, name):
    rng = np.random.default_rng(seed)
    kernel = make_kernel(name, gamma=0.5)
    X, D, W = rng.standard_normal((n, 3)), rng.standard_normal((4, 3)), some_codes(rng, n, 4)
    k = min(max(round(cut * n), 1), n - 1)
    parts = [GradientSums.of(kernel, X[s], W[s], D, 0.1) for s in (slice(k), slice(k, n))]
    whole, both = sum_gradients(kernel, X, W, D, 0.1), parts[0] + parts[1]
    for field in ("constant", "inner", "gram", "pull", "stay"):
        np.testing.assert_allclose(getattr(both, field), getattr(whole, field), atol=1e-9)


def test_blocks_are_small_and_their_number_does_not_matter(rng, monkeypatch):
    kernel = make_kernel("rbf", gamma=0.5)
    X, D, W = rng.standard_normal((50, 3)), rng.standard_normal((4, 3)), some_codes(rng, 50, 4)
    whole = sum_gradients(kernel, X, W, D, 0.1)
    monkeypatch.setattr("kernelatoms.learning.gradients._FEWEST_ROWS", 7)
    monkeypatch.setattr("kernelatoms.learning.gradients._BLOCK_NUMBERS", 1)
    small = sum_gradients(kernel, X, W, D, 0.1)
    np.testing.assert_allclose(small.pull, whole.pull, atol=1e-12)
    np.testing.assert_allclose(small.inner, whole.inner)


@given(
    seed=st.integers(0, 2**31),
    name=st.sampled_from(GRADIENT_KERNELS),
    n=st.integers(1, 30),
    m=st.integers(1, 12),
    bounded=st.booleans(),
    optimal=st.booleans(),
)
def test_steps_never_lead_uphill(seed, name, n, m, bounded, optimal):
    """Also for codes that are no minimum, so that H may have negative eigenvalues."""
    rng = np.random.default_rng(seed)
    kernel = make_kernel(name, gamma=0.4, degree=2, coef0=1)
    X, D, W = rng.standard_normal((n, 3)), rng.standard_normal((m, 3)), some_codes(rng, n, m)
    if optimal and name != "sigmoid":
        W = lasso(KernelProblem(X, Expansion(kernel, D)), 0.1).to_csr()
    max_norm = float(np.linalg.norm(X, axis=1).max()) if bounded else None
    D = project_to_ball(D, max_norm)
    before = sum_gradients(kernel, X, W, D, 0.1).finish(kernel, D).objective
    step = move_atoms(kernel, X, W, D, 0.1, max_norm=max_norm)
    after = sum_gradients(kernel, X, W, step.atoms, 0.1).finish(kernel, step.atoms).objective
    assert step.objective <= before
    np.testing.assert_allclose(step.objective, after, rtol=1e-9, atol=1e-9)
    unused = np.setdiff1d(np.arange(m), W.indices)
    np.testing.assert_array_equal(step.atoms[unused], D[unused])
    if bounded:
        assert (np.linalg.norm(step.atoms, axis=1) <= max_norm * (1 + 1e-12)).all()


def test_the_step_of_a_linear_kernel_is_mod(rng):
    X, D, W = rng.standard_normal((60, 5)), rng.standard_normal((7, 5)), some_codes(rng, 60, 7)
    step = move_atoms(make_kernel("linear"), X, W, D, 0.1)
    np.testing.assert_allclose(step.atoms, np.linalg.lstsq(W.toarray(), X)[0], atol=1e-6)
    codes = DenseCodes(n_atoms=W.shape[1], error=np.zeros(60), weights=W.toarray())
    unit, norms, _ = best_dictionaries([Moments.of(X, codes)], [D])[0]
    np.testing.assert_allclose(step.atoms, unit * norms[:, None], atol=1e-6)


def test_bounded_atoms_of_a_linear_kernel_are_a_constrained_minimum(rng):
    """No projected gradient step improves what repeated steps have reached."""
    X, D, W = rng.standard_normal((60, 5)), rng.standard_normal((7, 5)), some_codes(rng, 60, 7)
    W, kernel, D = 0.3 * W, make_kernel("linear"), project_to_ball(D, 1.5)
    for _ in range(100):
        D = move_atoms(kernel, X, W, D, 0.1, max_norm=1.5).atoms
    gradient = W.T @ (W @ D - X)
    np.testing.assert_allclose(project_to_ball(D - 0.01 * gradient, 1.5), D, atol=1e-6)
    assert (np.linalg.norm(D, axis=1) > 1.5 - 1e-9).any()


def test_the_past_shortens_steps(rng):
    kernel = make_kernel("rbf", gamma=0.2)
    X, D = rng.standard_normal((40, 3)), rng.standard_normal((5, 3))
    W = lasso(KernelProblem(X, Expansion(kernel, D)), 0.1).to_csr()
    fresh = move_atoms(kernel, X, W, D, 0.1)
    late = move_atoms(kernel, X, W, D, 0.1, past=9 * fresh.curvature)
    np.testing.assert_allclose(late.curvature, 10 * fresh.curvature)
    moved = [np.linalg.norm(step.atoms - D) for step in (fresh, late)]
    assert 0 < moved[1] < 0.5 * moved[0]
