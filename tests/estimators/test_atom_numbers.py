"""Coherence, energy and purity of atoms, against textbook versions, for every learner."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelatoms import (
    KSCDL,
    KSVD,
    MOD,
    ClassDictionaryClassifier,
    CRCClassifier,
    DKSVDClassifier,
    FDDLClassifier,
    KernelKSVD,
    KernelLinearizer,
    KernelMOD,
    LCKSVDClassifier,
    atom_numbers,
    make_lkdl,
)
from kernelatoms.estimators.inspection.atom_numbers import coherences, purities
from tests.oracles import atoms as oracle

SHORT = {"max_iter": 2, "random_state": 0}
GREEDY = {"n_nonzero_coefs": 3, **SHORT}
LEARNERS = {
    "ksvd": KSVD(9, **GREEDY),
    "mod": MOD(9, **GREEDY),
    "mod l1": MOD(9, alpha=0.2, **SHORT),
    "kernel ksvd": KernelKSVD(9, gamma=0.05, **GREEDY),
    "kernel mod": KernelMOD(9, kernel="poly", degree=2, **GREEDY),
    "kscdl": KSCDL(9, alpha=0.05, **SHORT),
    "dksvd": DKSVDClassifier(20, **GREEDY),
    "lcksvd": LCKSVDClassifier(20, **GREEDY),
    "fddl": FDDLClassifier(2, **SHORT),
    "lkdl": make_lkdl(KSVD(9, **GREEDY), gamma=0.05, n_landmarks=40, random_state=0),
    "scaled": make_pipeline(StandardScaler(), KSVD(9, **GREEDY)),
}


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:300] / 16, y[:300], X[300:420] / 16, y[300:420]


def codes_of(model, X):
    codes = model.transform(X)
    return codes.toarray() if scipy.sparse.issparse(codes) else codes


def gram_of(model):
    """Return inner products of a model's atoms, by public names only."""
    last = model[-1] if hasattr(model, "steps") else model
    if hasattr(last, "atom_gram_"):
        return last.atom_gram_
    if isinstance(last, KSCDL):
        return rbf_kernel(last.components_, gamma=last.gamma_)
    return last.components_ @ last.components_.T


@pytest.mark.parametrize("name", LEARNERS)
def test_every_learner_against_the_book(name, digits):
    X, y, new, labels = digits
    model = LEARNERS[name].fit(X, y)
    numbers = atom_numbers(model, new, labels)
    codes, gram = codes_of(model, new), gram_of(model)
    largest, which = oracle.coherence(gram)
    np.testing.assert_allclose(numbers.coherence, largest, atol=1e-9)
    np.testing.assert_array_equal(numbers.nearest, which)
    np.testing.assert_allclose(numbers.energy, oracle.energy(codes, gram), atol=1e-12)
    np.testing.assert_array_equal(numbers.uses, np.count_nonzero(codes, axis=0))
    purity, purest = oracle.purity(codes, labels)
    np.testing.assert_allclose(numbers.purity, purity, rtol=1e-9)
    np.testing.assert_array_equal(numbers.purest, purest)
    assert numbers.n_rows == 120
    assert numbers.dictionary.tolist() == [0] * len(gram)
    assert numbers.classes.tolist() == list(range(10))
    assert numbers.chance == 0.1
    assert numbers.mutual_coherence == max(numbers.coherence)
    assert numbers.mean_coherence == np.mean(numbers.coherence)
    assert numbers.n_used == np.count_nonzero(codes.any(axis=0))
    assert numbers.n_effective == pytest.approx(1 / np.sum(numbers.energy**2))
    weighed = np.nansum(numbers.energy * numbers.purity)
    assert numbers.mean_purity == pytest.approx(weighed)
    assert numbers.energy.sum() == pytest.approx(1)
    alone = atom_numbers(model)
    np.testing.assert_array_equal(alone.coherence, numbers.coherence)
    assert alone.energy is alone.uses is alone.purity is alone.purest is alone.classes is None
    assert alone.n_used is alone.n_effective is alone.mean_purity is alone.chance is None


@pytest.mark.parametrize("scheme", ["distributive", "collective"])
def test_class_dictionaries_count_through_and_code_as_they_decide(scheme, digits):
    X, y, new, labels = digits
    model = ClassDictionaryClassifier(KSVD(4, **GREEDY), scheme=scheme, random_state=0).fit(X, y)
    numbers = atom_numbers(model, new, labels)
    codes = np.zeros((len(new), 40))
    for row, why in zip(codes, model.explain(new), strict=True):
        row[why.atoms] = why.coefficients
    np.testing.assert_allclose(numbers.energy, oracle.energy(codes, np.eye(40)), atol=1e-9)
    np.testing.assert_array_equal(numbers.uses, np.count_nonzero(codes, axis=0))
    assert numbers.dictionary.tolist() == np.repeat(np.arange(10), 4).tolist()
    for c, learner in enumerate(model.dictionaries_):
        largest, which = oracle.coherence(gram_of(learner))
        np.testing.assert_allclose(numbers.coherence[4 * c : 4 * c + 4], largest, atol=1e-9)
        np.testing.assert_array_equal(numbers.nearest[4 * c : 4 * c + 4], which + 4 * c)


@given(st.integers(1, 12), st.integers(1, 8), st.integers(0, 10_000))
def test_coherences_of_any_gram_matrix(n, d, seed):
    atoms = np.random.default_rng(seed).normal(size=(n, d))
    atoms[:: n + 3] *= seed % 2  # atoms that are 0 too
    gram = atoms @ atoms.T
    largest, which = coherences(gram)
    expected = oracle.coherence(gram)
    np.testing.assert_allclose(largest, np.minimum(expected[0], 1), atol=1e-12)
    np.testing.assert_allclose(
        largest[which >= 0], np.minimum(expected[0], 1)[which >= 0], atol=1e-12
    )
    order = np.random.default_rng(seed + 1).permutation(n)
    np.testing.assert_allclose(coherences(gram[np.ix_(order, order)])[0], largest[order])
    np.testing.assert_allclose(coherences(gram.astype(np.float32))[0], largest, atol=1e-5)


@given(st.integers(1, 30), st.integers(1, 6), st.integers(1, 4), st.integers(0, 10_000))
def test_purities_of_any_codes(n, n_atoms, n_classes, seed):
    rng = np.random.default_rng(seed)
    codes = rng.normal(size=(n, n_atoms)) * (rng.random((n, n_atoms)) < 0.4)
    y = rng.integers(n_classes, size=n)
    classes, labels = np.unique(y, return_inverse=True)
    found = purities(scipy.sparse.csr_array(codes**2), labels, len(classes))
    purity, which = oracle.purity(codes, y.tolist())
    np.testing.assert_allclose(found[0], purity)
    np.testing.assert_array_equal(found[1], which)


def test_orthonormal_atoms_have_no_coherence_and_share_the_explained_energy(rng):
    X = rng.normal(size=(40, 6)) * [5, 4, 3, 2, 1, 1]
    model = KSVD(6, n_nonzero_coefs=3, max_iter=1, random_state=0).fit(X)
    model.components_ = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    numbers = atom_numbers(model, X)
    assert numbers.mutual_coherence < 1e-15
    codes = model.transform(X).toarray()
    explained = np.sum(X**2) - np.sum((X - codes @ model.components_) ** 2)
    np.testing.assert_allclose(numbers.energy, np.sum(codes**2, axis=0) / explained, rtol=1e-9)


def test_large_classes_are_not_purer():
    X = np.ones((10, 1))
    model = KSVD(1, n_nonzero_coefs=1).fit(X)
    numbers = atom_numbers(model, X, ["a"] * 9 + ["b"])
    assert numbers.purity.tolist() == pytest.approx([0.5])
    assert numbers.chance == 0.5
    assert (numbers.coherence.tolist(), numbers.nearest.tolist()) == ([0.0], [-1])


def test_atoms_of_disjoint_classes_are_pure_and_unused_ones_of_none():
    X = np.array([[1.0, 0, 0], [2, 0, 0], [0, 3, 0]])
    model = KSVD(3, n_nonzero_coefs=1, random_state=0).fit(X)
    model.components_ = np.eye(3)
    numbers = atom_numbers(model, X, [7, 7, 5])
    np.testing.assert_array_equal(numbers.purity, [1, 1, np.nan])
    assert numbers.purest.tolist() == [1, 0, -1]
    np.testing.assert_allclose(numbers.energy, [5 / 14, 9 / 14, 0])
    assert numbers.uses.tolist() == [2, 1, 0]
    assert numbers.mean_purity == 1
    nothing = atom_numbers(model, np.zeros((2, 3)), [5, 7])
    assert nothing.energy.tolist() == [0, 0, 0]
    assert nothing.n_effective == 0
    assert np.isnan(nothing.mean_purity)


@pytest.mark.parametrize("size", [1e-200, 1e150])
def test_codes_far_from_one_have_shares_too(size):
    model = KSVD(2, n_nonzero_coefs=1, random_state=0).fit(np.eye(2))
    numbers = atom_numbers(model, size * np.array([[2.0, 0], [0, 1]]))
    np.testing.assert_allclose(np.sort(numbers.energy), [0.2, 0.8])


def test_a_linear_kernel_is_no_kernel(digits):
    X, _, new, labels = digits
    kernel = KernelKSVD(12, kernel="linear", **GREEDY).fit(X)
    linear = KSVD(12, **GREEDY).fit(X)
    linear.components_ = kernel.anchors_.T @ kernel.dual_coef_
    linear.components_ = np.ascontiguousarray(linear.components_.T)
    one, other = (atom_numbers(model, new, labels) for model in (kernel, linear))
    for name in ("coherence", "energy", "purity"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), atol=1e-6)
    np.testing.assert_array_equal(one.uses, other.uses)


def test_single_precision_is_near_and_the_order_of_atoms_is_free(digits):
    X, _, new, labels = digits
    model = KSVD(12, **GREEDY).fit(X)
    numbers = atom_numbers(model, new, labels)
    near = atom_numbers(model, new.astype(np.float32), labels)
    np.testing.assert_allclose(near.energy, numbers.energy, atol=1e-4)
    np.testing.assert_allclose(near.purity, numbers.purity, atol=1e-3)
    order = np.arange(12)[::-1]
    model.components_ = np.ascontiguousarray(model.components_[order])
    turned = atom_numbers(model, new, labels)
    np.testing.assert_allclose(turned.energy, numbers.energy[order], atol=1e-12)
    np.testing.assert_allclose(turned.purity, numbers.purity[order])
    np.testing.assert_array_equal(turned.nearest, 11 - numbers.nearest[order])


def test_missing_values_count_where_the_model_takes_them(digits):
    X, _, new, _ = digits
    holes = np.where(np.random.default_rng(0).random(new.shape) < 0.1, np.nan, new)
    model = KSVD(12, **GREEDY).fit(X)
    codes = model.transform(holes).toarray()
    expected = oracle.energy(codes, gram_of(model))
    np.testing.assert_allclose(atom_numbers(model, holes).energy, expected, atol=1e-9)
    with pytest.raises(ValueError, match="NaN"):
        atom_numbers(KSCDL(5, **SHORT).fit(X), holes)


@pytest.mark.parametrize("classified", [False, True])
def test_precomputed_kernels_are_given_kernel_values(classified, digits):
    X, y, new, labels = digits
    K, new_K = rbf_kernel(X, gamma=0.05), rbf_kernel(new, X, gamma=0.05)
    given = KernelKSVD(5, kernel="precomputed", **GREEDY)
    named = KernelKSVD(5, gamma=0.05, **GREEDY)
    if classified:
        given = ClassDictionaryClassifier(given, random_state=0)
        named = ClassDictionaryClassifier(named, random_state=0)
    one = atom_numbers(given.fit(K, y), new_K, labels)
    other = atom_numbers(named.fit(X, y), new, labels)
    np.testing.assert_allclose(one.energy, other.energy, atol=1e-6)
    np.testing.assert_allclose(one.coherence, other.coherence, atol=1e-6)


def test_labels_that_no_model_met(digits):
    X, y, new, _ = digits
    model = LCKSVDClassifier(20, **GREEDY).fit(X, y)
    numbers = atom_numbers(model, new, ["rose", "lily"] * 60)
    assert numbers.classes.tolist() == ["lily", "rose"]
    assert numbers.chance == 0.5


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (KSVD(), NotFittedError, "not fitted"),
        (KSVD, TypeError, "model must be a fitted learner"),
        ("ksvd", TypeError, "got 'ksvd'"),
        (LogisticRegression(), TypeError, "got LogisticRegression"),
        (make_pipeline(KernelLinearizer()), TypeError, "a Pipeline that ends in KernelLinearizer"),
        (CRCClassifier(), TypeError, "the training rows, which are not learned"),
    ],
)
def test_other_models_are_refused(model, error, message):
    with pytest.raises(error, match=message):
        atom_numbers(model)


def test_a_search_is_told_where_its_model_is(digits):
    search = GridSearchCV(KSVD(5, **GREEDY), {"n_nonzero_coefs": [2]}, cv=2).fit(digits[0])
    with pytest.raises(TypeError, match="best_estimator_"):
        atom_numbers(search)


def test_bad_labels_are_refused(digits):
    X, _, new, _ = digits
    model = KSVD(5, **GREEDY).fit(X)
    with pytest.raises(ValueError, match="one label for each of the 120 rows of X, got 3 labels"):
        atom_numbers(model, new, [1, 2, 3])
    with pytest.raises(ValueError, match="y needs the rows"):
        atom_numbers(model, y=[1, 2])
    with pytest.raises(ValueError, match="no label for row 2 and 1 more"):
        atom_numbers(model, new, [1.0, 2.0, np.nan, np.nan] + [1.0] * 116)
    with pytest.raises(ValueError, match="labels of one kind"):
        atom_numbers(model, new, np.array([1, "a"] * 60, dtype=object))
