"""K-SVD as in Fig. 3 of the kernel dictionary learning paper: exact updates, starts from sums."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone

from kernelatoms import (
    KSVD,
    ClassDictionaryClassifier,
    KernelKSVD,
    load_model,
    save_model,
)
from kernelatoms.coding import LinearProblem, omp
from kernelatoms.learning.ksvd import KSVDUpdate
from kernelatoms.learning.state import atoms_from_sums
from oracles import kernel_learning as book

PUBLISHED = {"update": "exact", "init": "sums"}
POLY = {"kernel": "poly", "degree": 2, "gamma": 0.5, "coef0": 1}


def summing_start(K, n_atoms, n_terms, seed):
    """Return columns with T0 random ones each, at unit norm in feature space."""
    rng = np.random.RandomState(seed)
    A = np.zeros((len(K), n_atoms))
    for k in range(n_atoms):
        A[rng.permutation(len(K))[:n_terms], k] = 1
    return A / np.sqrt(np.einsum("ik,ik->k", A, K @ A))


def test_it_is_the_algorithm_of_the_paper(rng):
    """From the same start, with N x N matrices."""
    X = rng.standard_normal((50, 6))
    K = (0.5 * X @ X.T + 1) ** 2
    model = KernelKSVD(
        12, n_nonzero_coefs=3, max_iter=1, tol=0, random_state=5, **POLY, **PUBLISHED
    ).fit(X)
    A = summing_start(K, 12, 3, 5)
    W = book.code_all(K, A, 3)
    expected = book.objective(K, *book.kernel_ksvd_pass(K, A, W))
    np.testing.assert_allclose(model.objective_, expected, rtol=1e-8)


@pytest.mark.parametrize(("n_rows", "n_atoms"), [(20, 12), (12, 18)])
def test_an_update_is_the_papers_also_of_more_atoms_than_rows(n_rows, n_atoms, rng):
    """Of sums of few rows two may fit a signal equally well: both have the same codes here."""
    X = rng.standard_normal((n_rows, 6))
    K = (0.5 * X @ X.T + 1) ** 2
    F = np.linalg.cholesky(K)
    D = atoms_from_sums(F, n_atoms, 3, np.random.RandomState(5))
    codes = omp(LinearProblem(F, D), 3)
    updated = KSVDUpdate(exact=True).apply(F, codes, D)
    A, W = book.kernel_ksvd_pass(K, summing_start(K, n_atoms, 3, 5), codes.to_dense().T)
    assert updated.objective == pytest.approx(book.objective(K, A, W), rel=1e-8)
    np.testing.assert_allclose(
        np.abs(F @ updated.dictionary.T), np.abs(K @ A), atol=1e-6 * np.sqrt(K.max())
    )


@pytest.mark.parametrize("init", ["rows", "sums"])
@pytest.mark.parametrize("update", ["approximate", "exact"])
def test_a_linear_kernel_is_the_linear_method(update, init, rng):
    X = rng.standard_normal((60, 12))
    same = {"n_nonzero_coefs": 3, "max_iter": 4, "tol": 0, "update": update, "init": init}
    ours = KernelKSVD(15, kernel="linear", random_state=3, **same).fit(X)
    linear = KSVD(15, random_state=3, **same).fit(X)
    np.testing.assert_allclose(ours.objective_, linear.objective_, rtol=1e-8)
    np.testing.assert_allclose(ours.dual_coef_.T @ ours.anchors_, linear.components_, atol=1e-6)


@pytest.mark.parametrize("init", ["rows", "sums"])
def test_a_kernel_is_the_linear_method_on_its_coordinates(init, rng):
    """Kernel K-SVD on K is K-SVD on any F with F F' = K, from the same start."""
    X = rng.standard_normal((40, 5))
    K = (0.5 * X @ X.T + 1) ** 2
    values, vectors = np.linalg.eigh(K)
    kept = values > 1e-10 * values[-1]
    F = vectors[:, kept] * np.sqrt(values[kept])
    same = {"n_nonzero_coefs": 3, "max_iter": 3, "tol": 0, "update": "exact", "init": init}
    ours = KernelKSVD(10, random_state=1, **POLY, **same).fit(X)
    linear = KSVD(10, random_state=1, **same).fit(F)
    np.testing.assert_allclose(ours.objective_, linear.objective_, rtol=1e-7)
    np.testing.assert_allclose(
        np.abs(ours.transform(X).toarray()), np.abs(linear.transform(F).toarray()), atol=1e-6
    )


def test_the_step_leaves_no_more_than_the_approximate_one_for_the_first_atom(rng):
    """An SVD is the best rank-1 matrix: with one atom no other update leaves less."""
    X = rng.standard_normal((30, 8))
    D = X[:1] / np.linalg.norm(X[0])
    codes = omp(LinearProblem(X, D), 1)
    exact = KSVDUpdate(exact=True).apply(X, codes, D).objective
    assert exact == pytest.approx((np.linalg.svd(X, compute_uv=False)[1:] ** 2).sum())
    assert exact < KSVDUpdate().apply(X, codes, D).objective


def test_sums_are_of_distinct_rows_that_are_not_zero(rng):
    X = np.concatenate([np.zeros((30, 6)), np.eye(6)])
    atoms = atoms_from_sums(X, 50, 3, np.random.RandomState(0))
    np.testing.assert_allclose(np.sort(atoms, axis=1)[:, 3:], 1 / np.sqrt(3))
    assert len(np.unique(atoms, axis=0)) > 10
    assert atoms_from_sums(X[:5], 4, 3, np.random.RandomState(0)).any() == 0
    few = atoms_from_sums(np.eye(2), 3, 5, np.random.RandomState(0))
    np.testing.assert_allclose(few, 1 / np.sqrt(2))


@pytest.mark.parametrize("learner", [KSVD(), KernelKSVD(**POLY)])
def test_more_atoms_than_rows_when_asked_for(learner, rng):
    X = rng.standard_normal((15, 8))
    learner = clone(learner).set_params(n_atoms=25, n_nonzero_coefs=2, max_iter=5, random_state=0)
    with pytest.warns(UserWarning, match="n_atoms=25 is more than there are rows"):
        assert learner.fit(X).n_atoms_ == 15
    learner.set_params(init="sums").fit(X)
    assert learner.n_atoms_ == 25
    assert learner.transform(X).shape == (15, 25)
    assert learner.score(X) > 0.8
    assert learner.set_params(n_atoms=None).fit(X).n_atoms_ == 15


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("learner", [KSVD(), KernelKSVD(**POLY)])
def test_class_dictionaries_may_have_more_atoms_than_rows(learner, rng):
    X = rng.standard_normal((30, 8))
    y = np.repeat([0, 1, 1], 10)
    learner = clone(learner).set_params(n_atoms=15, n_nonzero_coefs=3, max_iter=3, **PUBLISHED)
    model = ClassDictionaryClassifier(learner, random_state=0).fit(X, y)
    assert [own.n_atoms_ for own in model.dictionaries_] == [15, 15]
    assert [own.n_nonzero_coefs_ for own in model.dictionaries_] == [3, 3]


@pytest.mark.parametrize("learner", [KSVD(9), KernelKSVD(9, gamma=0.1)])
def test_files_keep_both(learner, rng, tmp_path):
    X = rng.standard_normal((40, 6))
    learner = (
        clone(learner).set_params(n_nonzero_coefs=2, max_iter=2, random_state=0, **PUBLISHED).fit(X)
    )
    again, _ = load_model(save_model(learner, tmp_path / "model.skops"))
    assert (again.update, again.init) == ("exact", "sums")
    np.testing.assert_array_equal(again.fit(X).objective_, learner.objective_)
    assert pickle.loads(pickle.dumps(learner)).update == "exact"


@pytest.mark.parametrize("learner", [KSVD(5), KernelKSVD(5)])
def test_bad_choices_are_named(learner, rng):
    learner = clone(learner)
    X = rng.standard_normal((20, 4))
    with pytest.raises(ValueError, match=r"update must be one of 'approximate', 'exact', got 'ex"):
        learner.set_params(update="exactly").fit(X)
    with pytest.raises(ValueError, match=r"init must be one of 'rows', 'sums', got 'random'"):
        learner.set_params(update="exact", init="random").fit(X)
    with pytest.raises(ValueError, match=r"init='sums' draws .* dict_init gives them"):
        learner.set_params(init="sums", dict_init=X[:5]).fit(X)


def test_devices_are_refused_in_words(rng, monkeypatch):
    X = rng.standard_normal((20, 4))
    monkeypatch.setattr("kernelatoms.learning.ksvd.is_device_array", lambda rows: True)
    with pytest.raises(ValueError, match=r"update='exact' works on the CPU alone"):
        KSVD(5, update="exact").fit(X)
    assert KSVD(5, init="sums", max_iter=1).fit(X).n_atoms_ == 5


@pytest.mark.parametrize("learner", [KSVD(40), KernelKSVD(40, kernel="poly", degree=2)])
def test_bits_do_not_depend_on_threads_or_on_an_earlier_fit(learner, rng, monkeypatch):
    X = rng.standard_normal((400, 30))
    learner = clone(learner).set_params(n_nonzero_coefs=3, max_iter=3, random_state=0, **PUBLISHED)
    fits = []
    for threads in ("1", "1", "2"):
        monkeypatch.setenv("KERNELATOMS_NUM_THREADS", threads)
        learner.fit(X)
        fits.append(learner.components_.tobytes() + learner.objective_.tobytes())
    assert fits[0] == fits[1] == fits[2]
