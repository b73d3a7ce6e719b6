"""l1 coding on every machine: certified gaps, the textbook, numpy's codes, and every form."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lasso_cases import FORMS, alpha_of, check_certified, code, draw, problems
from machines import NUMPY
from oracles import lasso as book


@pytest.mark.parametrize("form", FORMS)
@given(**problems)
def test_codes_are_certified_minima(
    machine, form, seed, n_features, n_atoms, kind, share, positive
):
    X, D = draw(seed, 4, n_features, n_atoms, kind)
    alpha = alpha_of(X, D, share)
    coded = code(machine, form, X, D, alpha, positive=positive)
    check_certified(X, D, alpha, positive, coded)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["unit", "clusters"])
def test_over_many_atoms_they_are_numpys(machine, form, kind):
    """More atoms than one small problem has, so that lists grow; the same supports."""
    for positive in (False, True):
        X, D = draw(1, 8, 40, 300, kind)
        alpha = alpha_of(X, D, 0.1)
        coded = code(machine, form, X, D, alpha, positive=positive, gap_tol=1e-11)
        check_certified(X, D, alpha, positive, coded, gap_tol=1e-11)
        W = code(NUMPY, "gram", X, D, alpha, positive=positive, gap_tol=1e-11)[0]
        np.testing.assert_array_equal(coded[0] != 0, W != 0)
        np.testing.assert_allclose(coded[0], W, atol=1e-6 * np.abs(W).max())


@pytest.mark.parametrize("form", ["gram", "rows"])
def test_every_gap_asked_for_is_reached(machine, form):
    """Coarse ones too, between those that rounds of working sets happen to end at."""
    X, D = draw(4, 12, 40, 300, "unit")
    alpha = alpha_of(X, D, 0.05)
    for gap_tol in np.geomspace(1e-3, 0.3, 8):
        check_certified(
            X, D, alpha, False, code(machine, form, X, D, alpha, gap_tol=gap_tol), gap_tol
        )


@pytest.mark.parametrize("form", FORMS)
def test_the_textbooks_objective(machine, form):
    X, D = draw(3, 2, 12, 20, "twins")
    for share in (0.5, 0.05):
        alpha = alpha_of(X, D, share)
        for positive in (False, True):
            W = code(machine, form, X, D, alpha, positive=positive)[0]
            for x, w in zip(X, W, strict=True):
                theirs = book.coordinate_descent(x, D, alpha, positive, n_passes=1000)
                most = book.objective(x, D, theirs, alpha) + 1e-6 * (x @ x)
                assert book.objective(x, D, w, alpha) <= most


@pytest.mark.parametrize("form", FORMS)
def test_float32_is_near_float64(machine, form):
    X, D = draw(5, 6, 20, 150, "unit")
    single = code(machine, form, X.astype(np.float32), D.astype(np.float32), 0.3)
    np.testing.assert_allclose(single[0], code(machine, form, X, D, 0.3)[0], atol=1e-4)
    assert not single[3].any()


@pytest.mark.parametrize("form", FORMS)
def test_one_by_one_is_the_batch(machine, form):
    X, D = draw(6, 7, 15, 140, "clusters")
    alpha = alpha_of(X, D, 0.1)
    batch = code(machine, form, X, D, alpha, gap_tol=1e-10)
    alone = np.vstack([code(machine, form, x[None], D, alpha, gap_tol=1e-10)[0] for x in X])
    np.testing.assert_allclose(alone, batch[0], atol=1e-9)


@given(**problems, scale=st.sampled_from([0.0, 1e-3, 1.0, 1e3]))
def test_any_start_leads_to_the_same_minimum(
    machine, seed, n_features, n_atoms, kind, share, positive, scale
):
    X, D = draw(seed, 4, n_features, n_atoms, kind)
    alpha = alpha_of(X, D, share)
    start = scale * np.random.default_rng(seed).standard_normal((4, n_atoms))
    check_certified(
        X, D, alpha, positive, code(machine, "gram", X, D, alpha, positive=positive, start=start)
    )


@pytest.mark.parametrize("n_atoms", [40, 200])
def test_codes_within_the_gap_stay_as_they_are(machine, n_atoms):
    X, D = draw(9, 5, 20, n_atoms, "unit")
    cold = code(machine, "gram", X, D, 0.2)[0]
    start = cold.copy()
    start[0] = 0  # this one has to be found again
    again = code(machine, "gram", X, D, 0.2, start=start)[0]
    np.testing.assert_array_equal(again[1:], cold[1:])
    np.testing.assert_allclose(again[0], cold[0], atol=1e-6)


def test_all_candidates_are_all_atoms(machine):
    X, D = draw(10, 5, 20, 30, "clusters")
    found, expected = (code(machine, form, X, D, 0.2)[0] for form in ("candidates", "gram"))
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("form", FORMS)
def test_large_supports(machine, form):
    """More nonzeros than any kernel's tableau holds: lists grow round by round."""
    X, D = draw(11, 2, 200, 210, "unit")
    alpha = alpha_of(X, D, 1e-3)
    coded = code(machine, form, X, D, alpha)
    assert np.count_nonzero(coded[0], axis=1).min() > 150
    check_certified(X, D, alpha, False, coded)


@pytest.mark.parametrize("form", FORMS)
def test_nothing_to_code(machine, form):
    X, D = draw(12, 5, 8, 130, "unit")
    X[1] = 0
    alpha = 1.0001 * np.abs(X @ D.T).max()
    W, error, gap, missed = code(machine, form, X, D, alpha)
    assert not W.any()
    assert not missed.any()
    np.testing.assert_allclose(error, (X**2).sum(axis=1))
    np.testing.assert_allclose(gap, 0, atol=1e-12)
    W, error, gap, _ = code(machine, form, X[1:2], D, 0.1)  # a signal of zeros
    assert not W.any()
    assert error[0] == gap[0] == 0
    W, error, gap, _ = code(machine, form, X[:0], D, 0.1)
    assert W.shape == (0, 130)
    assert len(error) == len(gap) == 0


@pytest.mark.parametrize("form", ["gram", "rows"])
def test_no_atoms(machine, form):
    X, D = draw(13, 3, 8, 4, "unit")
    W, error, gap, missed = code(machine, form, X, D[:0], 0.1)
    assert W.shape == (3, 0)
    np.testing.assert_allclose(error, (X**2).sum(axis=1))
    assert not gap.any()
    assert not missed.any()
