"""Atoms as rows: exact where they are rows, the better sign, undone steps, honest errors."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler

from kernelatoms import (
    KSCDL,
    KSVD,
    ClassDictionaryClassifier,
    KernelKSVD,
    KernelLinearizer,
    atom_preimages,
    make_lkdl,
    preimage,
)
from tests.oracles.atoms import best_square_root

GREEDY = {"n_nonzero_coefs": 3, "max_iter": 3, "random_state": 0}
SQUARE = {"kernel": "poly", "degree": 2, "gamma": 1, "coef0": 0}


@pytest.fixture(scope="module", name="X")
def digits():
    return load_digits().data[:200] / 16


def error_of(kernel, rows, anchors, coef):
    """Return |phi(x) - v|^2 / |v|^2 of every row and its vector."""
    energy = np.vecdot(coef.T, (kernel(anchors) @ coef).T)
    own = np.array([kernel(row[None])[0, 0] for row in rows])
    return (own - 2 * np.vecdot(kernel(rows, anchors), coef.T) + energy) / energy


def rbf(A, B=None):
    return rbf_kernel(A, B, gamma=0.05)


def test_atoms_that_are_rows_are_themselves(X):
    for model in (KSVD(7, **GREEDY), KSCDL(7, max_iter=2, random_state=0)):
        found = atom_preimages(model.fit(X))
        np.testing.assert_array_equal(found.rows, model.components_)
        assert found.error.tolist() == [0.0] * 7
        assert found.sign.tolist() == [1] * 7


def test_kernel_atoms_have_the_better_sign(X):
    model = KernelKSVD(8, gamma=0.05, **GREEDY).fit(X)
    expected = atom_preimages(model)
    model.dual_coef_[:, ::2] *= -1  # the same atoms
    found = atom_preimages(model)
    np.testing.assert_allclose(found.rows, expected.rows, atol=1e-9)
    np.testing.assert_array_equal(found.sign, expected.sign * np.tile([-1, 1], 4))
    signed = model.dual_coef_ * found.sign
    np.testing.assert_allclose(
        found.error, error_of(rbf, found.rows, model.anchors_, signed), atol=1e-9
    )
    for sign in (1, -1):
        either = preimage(sign * model.dual_coef_, model.anchors_, gamma=0.05).error
        assert (found.error <= either + 1e-9).all()


def test_some_atoms_in_any_order(X):
    model = ClassDictionaryClassifier(KernelKSVD(3, gamma=0.05, **GREEDY), random_state=0)
    model.fit(X, np.arange(200) % 4)
    whole, some = atom_preimages(model), atom_preimages(model, [7, 0, 11])
    assert whole.rows.shape == (12, 64)
    np.testing.assert_allclose(some.rows, whole.rows[[7, 0, 11]], atol=1e-9)
    np.testing.assert_allclose(some.error, whole.error[[7, 0, 11]], atol=1e-9)


def test_linear_kernels_are_exact_and_upright(X):
    model = KernelKSVD(6, kernel="linear", **GREEDY).fit(X)
    model.dual_coef_[:, 0] *= -1
    found = atom_preimages(model)
    atoms = (model.anchors_.T @ model.dual_coef_).T
    np.testing.assert_allclose(found.rows, atoms * found.sign[:, None], atol=1e-9)
    np.testing.assert_allclose(found.error, 0, atol=1e-9)
    largest = found.rows[np.arange(6), np.abs(found.rows).argmax(axis=1)]
    assert (largest > 0).all()


def test_even_degrees_of_signed_data_reach_the_leading_eigenvector(rng):
    """phi(x) is x x': the nearest to a symmetric M is its largest eigenvalue's vector."""
    X = rng.normal(size=(60, 4))
    model = KernelKSVD(5, **SQUARE, **GREEDY).fit(X)
    found = atom_preimages(model)
    for j in range(5):
        matrix = (model.anchors_.T * model.dual_coef_[:, j]) @ model.anchors_
        best = min(best_square_root(matrix), best_square_root(-matrix))
        assert found.error[j] == pytest.approx(best, abs=1e-4)
    largest = found.rows[np.arange(5), np.abs(found.rows).argmax(axis=1)]
    assert (largest > 0).all()  # x and -x are the same to this kernel


def test_atoms_of_virtual_samples_are_vectors_of_the_landmarks(X):
    model = make_lkdl(KSVD(6, **GREEDY), gamma=0.05, n_landmarks=50, random_state=0).fit(X)
    found = atom_preimages(model)
    linearizer, learner = model
    coef = linearizer.dual_coef_ @ learner.components_.T
    np.testing.assert_allclose(
        found.error, error_of(rbf, found.rows, linearizer.landmarks_, coef * found.sign), atol=1e-9
    )


def test_steps_between_map_and_dictionary_are_undone(X):
    steps = [KernelLinearizer(gamma=0.05, n_landmarks=50, n_components=10, random_state=0)]
    model = make_pipeline(Normalizer(), *steps, StandardScaler(), Normalizer(), KSVD(6, **GREEDY))
    found = atom_preimages(model.fit(X))
    samples = model[-1].components_ * model[2].scale_
    samples /= np.linalg.norm(samples, axis=1, keepdims=True)
    coef = model[1].dual_coef_ @ samples.T * found.sign
    expected = error_of(rbf, found.rows, model[1].landmarks_, coef)
    np.testing.assert_allclose(found.error, expected, atol=1e-9)


def test_functions_as_kernels(X):
    model = KernelKSVD(4, kernel=lambda A, B: polynomial_kernel(A, B, degree=2), **GREEDY).fit(X)
    found = atom_preimages(model)
    expected = error_of(
        lambda A, B=None: polynomial_kernel(A, B, degree=2), found.rows, model.anchors_,
        model.dual_coef_ * found.sign,
    )  # fmt: skip
    np.testing.assert_allclose(found.error, expected, atol=1e-9)


def test_what_has_no_way_back_is_refused(X):
    K = X @ X.T
    with pytest.raises(ValueError, match="precomputed"):
        atom_preimages(KernelKSVD(3, kernel="precomputed", **GREEDY).fit(K))
    with pytest.raises(ValueError, match="precomputed"):
        atom_preimages(make_lkdl(KSVD(3, **GREEDY), "precomputed").fit(K))
    with pytest.raises(ValueError, match="feature space of a feature space"):
        atom_preimages(make_lkdl(KernelKSVD(3, **GREEDY)).fit(X))
    bent = FunctionTransformer(np.tanh, np.arctanh)
    with pytest.raises(ValueError, match="FunctionTransformer stands between"):
        atom_preimages(make_pipeline(KernelLinearizer(), bent, KSVD(3, **GREEDY)).fit(X))
    one_way = FunctionTransformer(np.abs)
    with pytest.raises(ValueError, match="FunctionTransformer stands between"):
        atom_preimages(make_pipeline(KernelLinearizer(), one_way, KSVD(3, **GREEDY)).fit(X))


@pytest.mark.parametrize(
    ("atoms", "message"),
    [([5], r"outside 0\.\.4"), ([-1], "outside"), ([], "list of atoms"), ([0.5], "list of atoms")],
)
def test_bad_numbers_of_atoms(atoms, message, X):
    with pytest.raises(ValueError, match=message):
        atom_preimages(KSVD(5, **GREEDY).fit(X), atoms)
