"""Rows from virtual samples by kernel ridge regression: leave-one-out errors, and choices."""

import numpy as np
import pytest

import oracles.ridge_preimage
from kernelatoms.features import preimage_methods
from kernelatoms.features.preimage_methods import MOST_ROWS, learn_inverse_map, more_rows


@pytest.mark.parametrize("gamma", [None, 0.7])
@pytest.mark.parametrize("ridge", [1e-3, 0.5])
def test_errors_of_rows_left_out_are_exact(rng, monkeypatch, gamma, ridge):
    F, Y = rng.standard_normal((12, 3)), rng.standard_normal((12, 2))
    monkeypatch.setattr(preimage_methods, "_RIDGES", np.array([ridge]))
    fit = preimage_methods._regress(F, Y, gamma)
    errors, weights, own = oracles.ridge_preimage.left_out(F, Y, gamma, ridge)
    np.testing.assert_allclose(fit.left_out, np.linalg.norm(errors), rtol=1e-7)
    np.testing.assert_allclose(fit.own, np.linalg.norm(own), rtol=1e-7)
    np.testing.assert_allclose(fit.weights, weights, rtol=1e-6, atol=1e-8)


def test_what_predicts_as_well_and_fits_its_own_rows_is_taken():
    fits = [preimage_methods._Fit(left_out, own, None) for left_out, own in
            ((1.03, 0.0), (1.0, 0.5), (1.019, 0.1), (1.01, 0.3))]  # fmt: skip
    assert preimage_methods._chosen(fits) is fits[2]


def test_bent_rows_come_back_and_straight_ones_exactly(rng):
    angle = rng.uniform(0, 3, (300, 1))
    F = np.hstack([angle, angle**2])
    X = np.hstack([np.cos(3 * angle), np.sin(3 * angle), angle**3])
    back = learn_inverse_map(F[:250], X[:250])
    assert back.gamma is not None
    inside = (F[250:, 0] > 0.1) & (F[250:, 0] < 2.9)
    assert np.abs(back.rows(F[250:]) - X[250:])[inside].max() < 0.02
    straight = F @ rng.standard_normal((2, 5)) + 3
    found = learn_inverse_map(F[:250], straight[:250])
    np.testing.assert_allclose(found.rows(F[250:]), straight[250:], atol=1e-5)


def test_the_units_of_rows_and_virtual_samples_do_not_matter(rng):
    F, X = rng.standard_normal((60, 3)), rng.standard_normal((60, 4))
    plain = learn_inverse_map(F[:50], X[:50]).rows(F[50:])
    scaled = learn_inverse_map(F[:50] * 2.0**40, X[:50] * 2.0**-30).rows(F[50:] * 2.0**40)
    np.testing.assert_allclose(scaled, plain * 2.0**-30, rtol=1e-9)


def test_further_rows_are_no_landmarks(rng):
    X = rng.standard_normal((1500, 2))
    landmarks = X[rng.permutation(1500)[:600]]
    rows = more_rows(X, landmarks)
    assert len(rows) <= MOST_ROWS - 600
    assert len(np.unique(np.concatenate([landmarks, rows]), axis=0)) == 600 + len(rows)
    assert len(more_rows(X, X[:1200])) == 0
    few = X[:700]
    assert len(more_rows(few, few[::7])) == 600  # all that are left


def test_one_row_and_rows_all_alike_come_back():
    one = learn_inverse_map(np.ones((1, 2)), np.array([[3.0, 4.0]]))
    np.testing.assert_allclose(one.rows(np.ones((1, 2))), [[3.0, 4.0]], atol=1e-9)
    alike = learn_inverse_map(np.zeros((5, 2)), np.full((5, 2), 7.0))
    np.testing.assert_allclose(alike.rows(np.zeros((2, 2))), 7.0)
