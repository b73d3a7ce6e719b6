"""Reports on dictionaries in feature space."""

import re

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from draws import later
from kernelatoms import (
    KSVD,
    ClassDictionaryClassifier,
    KernelKSVD,
    atom_numbers,
    sparse_encode,
)
from kernelatoms.report import model_sections
from kernelatoms.report.anatomy import dissect
from kernelatoms.report.coding import code_rows, code_signals
from kernelatoms.report.page import render_page

KERNEL = {"kernel": "poly", "degree": 2, "gamma": 1, "coef0": 0}


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:300], y[:300], X[300:400], y[300:400]


def test_energies_are_kernel_values(digits):
    X, _, Z, _ = digits
    model = KernelKSVD(20, n_nonzero_coefs=3, max_iter=3, random_state=0, **KERNEL).fit(X)
    coded = code_rows(dissect(model), Z)
    np.testing.assert_allclose(coded.energy, (Z**2).sum(axis=1) ** 2, rtol=1e-10)
    np.testing.assert_allclose(coded.least, model._encode(Z).error, rtol=1e-6)
    assert (coded.share(coded.least) < 0.6).all()
    text = render_page("x", model_sections(model, Z, image_shape=(8, 8)))
    assert "pre-images of atoms" in text
    assert "in feature space" in text
    assert re.search(r"anchors per dictionary</th><td[^>]*>300<", text)


@pytest.mark.parametrize("scheme", ["distributive", "collective"])
@pytest.mark.parametrize("kernel", [True, later(False)])
def test_answers_are_the_classifiers(digits, scheme, kernel):
    X, y, Z, truth = digits
    sizes = {"n_atoms": 8, "n_nonzero_coefs": 2, "max_iter": 3}
    learner = KernelKSVD(**sizes, **KERNEL) if kernel else KSVD(**sizes)
    model = make_pipeline(
        Normalizer(), ClassDictionaryClassifier(learner, scheme=scheme, random_state=0)
    ).fit(X, y)
    coded = code_rows(dissect(model), Z, truth)
    np.testing.assert_array_equal(model.classes_[coded.chosen], model.predict(Z))
    right = int((model.predict(Z) == truth).sum())
    text = render_page("x", model_sections(model, Z, truth, image_shape=(8, 8)))
    assert f"{right} of 100 labelled rows are classified right" in text


def test_collective_reports_count_the_atoms_of_collective_codes(digits):
    """One code over the atoms of all classes: two atoms per row, not two of every class."""
    X, y, Z, truth = digits
    learner = KSVD(n_atoms=8, n_nonzero_coefs=2, max_iter=3)
    model = ClassDictionaryClassifier(learner, scheme="collective", random_state=0).fit(X, y)
    atoms = np.vstack([dictionary.components_ for dictionary in model.dictionaries_])
    codes = sparse_encode(Z, atoms, n_nonzero_coefs=2, sparse_output=False)
    coded = code_rows(dissect(model), Z, truth)
    np.testing.assert_array_equal(np.concatenate(coded.uses), np.count_nonzero(codes, axis=0))
    # What is left of each row by its class's part of that code.
    parts = np.einsum("nck,ckd->ncd", codes.reshape(-1, 10, 8), atoms.reshape(10, 8, -1))
    left = ((Z[:, None] - parts) ** 2).sum(axis=2)
    np.testing.assert_allclose(coded.least, left.min(axis=1), rtol=1e-8)
    text = render_page("x", model_sections(model, Z, truth, image_shape=(8, 8)))
    assert "a row uses 2.0 on average" in text
    assert "shares are of all rows" in text
    assert "coded once, over the atoms of all classes together" in text
    np.testing.assert_array_equal(coded.n_coded, 100)


def test_pictures_show_the_parts_of_collective_codes(digits):
    X, y, Z, _ = digits
    learner = KSVD(n_atoms=8, n_nonzero_coefs=2, max_iter=3)
    model = ClassDictionaryClassifier(learner, scheme="collective", random_state=0).fit(X, y)
    codes, residuals = code_signals(dissect(model), Z)
    atoms = np.vstack([dictionary.components_ for dictionary in model.dictionaries_])
    joint = sparse_encode(Z, atoms, n_nonzero_coefs=2, sparse_output=False)
    np.testing.assert_allclose(np.hstack([code.toarray() for code in codes]), joint)
    assert residuals.shape == (100, 10)
    np.testing.assert_allclose(-residuals, model.decision_function(Z))


def test_precomputed_kernels_are_reported_without_rows(digits):
    X = digits[0]
    K = (X @ X.T) ** 2 / 1e6
    model = KernelKSVD(10, kernel="precomputed", n_nonzero_coefs=2, max_iter=2).fit(K)
    sections = model_sections(model)
    titles = [section.title for section in sections]
    assert titles == ["What was fitted", "Convergence", "Atoms one by one"]
    assert sections[-1].pictures == []
    assert sections[-1].table.rows[0][1] == f"{atom_numbers(model).mutual_coherence:.3f}"
    with pytest.raises(ValueError, match="report on them without X"):
        model_sections(model, K)
