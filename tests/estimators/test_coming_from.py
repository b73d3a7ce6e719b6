"""What docs/guide/coming-from.md says of other libraries, with them beside ours where at hand."""

import warnings

import numpy as np
import pytest
import sklearn.decomposition
import sklearn.linear_model
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem

import kernelatoms
from kernelatoms import (
    KSVD,
    MOD,
    ClassDictionaryClassifier,
    CRCClassifier,
    KernelKSVD,
    KernelLinearizer,
    KSADClassifier,
    SparseCoder,
    sparse_encode,
)


@pytest.fixture
def signals(rng):
    D = rng.standard_normal((20, 8))
    return rng.standard_normal((30, 8)), D / np.linalg.norm(D, axis=1, keepdims=True)


class TestScikitLearn:
    @pytest.mark.parametrize("algorithm", ["lasso_lars", "lasso_cd"])
    @pytest.mark.parametrize("positive", [False, True])
    def test_l1_codes(self, signals, algorithm, positive):
        X, D = signals
        theirs = sklearn.decomposition.sparse_encode(
            X, D, algorithm=algorithm, alpha=0.3, positive=positive, max_iter=100_000
        )
        ours = sparse_encode(X, D, method="lasso", alpha=0.3, positive=positive, gap_tol=1e-12)
        np.testing.assert_allclose(ours.toarray(), theirs, atol=1e-5)

    def test_other_codes(self, signals):
        X, D = signals
        theirs = sklearn.decomposition.sparse_encode(X, D, algorithm="threshold", alpha=0.3)
        ours = sparse_encode(X, D, method="threshold", alpha=0.3)
        np.testing.assert_allclose(ours.toarray(), theirs)
        theirs = sklearn.decomposition.sparse_encode(X, D, algorithm="omp", n_nonzero_coefs=3)
        np.testing.assert_allclose(sparse_encode(X, D, n_nonzero_coefs=3).toarray(), theirs)
        np.testing.assert_allclose(SparseCoder(D, n_nonzero_coefs=3).transform(X).toarray(), theirs)
        gram = sklearn.linear_model.orthogonal_mp_gram(D @ D.T, D @ X.T, n_nonzero_coefs=3).T
        ours = sparse_encode(X @ D.T, D @ D.T, kernel="precomputed", n_nonzero_coefs=3)
        np.testing.assert_allclose(ours.toarray(), gram)
        X = X[np.sum(X**2, axis=1) > 1]  # of signals that need no atom, theirs uses one
        for t in (0.01, 0.25, 1.0):
            theirs = sklearn.linear_model.orthogonal_mp(D.T, X.T, tol=t).T
            ours = sparse_encode(X, D, max_residual=t**0.5, absolute=True)
            np.testing.assert_allclose(ours.toarray(), theirs, atol=1e-10)

    def test_weights_of_regressions(self, signals):
        X, D = signals
        ridge = sklearn.linear_model.Ridge(alpha=0.7, fit_intercept=False).fit(D.T, X.T)
        ours = sparse_encode(X, D, method="ridge", mu=0.7, sparse_output=False)
        np.testing.assert_allclose(ours, ridge.coef_, atol=1e-12)
        lasso = sklearn.linear_model.Lasso(
            alpha=0.05, fit_intercept=False, tol=1e-13, max_iter=10**6
        ).fit(D.T, X.T)
        ours = sparse_encode(X, D, method="lasso", alpha=8 * 0.05, gap_tol=1e-12)
        np.testing.assert_allclose(ours.toarray(), lasso.coef_, atol=1e-6)

    def test_objectives_of_learning(self, signals):
        X, D = signals
        theirs = sklearn.decomposition.DictionaryLearning(
            12, alpha=0.5, fit_algorithm="cd", dict_init=D[:12], code_init=np.zeros((30, 12)),
            max_iter=30, tol=0,
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            theirs.fit(X)
        go_on = MOD(12, alpha=0.5, dict_init=theirs.components_, max_iter=1, tol=0).fit(X)
        assert go_on.objective_[0] == pytest.approx(theirs.error_[-1], rel=0.01)
        assert go_on.objective_[0] <= theirs.error_[-1] * (1 + 1e-4)

    def test_kernel_maps(self, rng):
        X = rng.standard_normal((40, 5))
        theirs = Nystroem("rbf", gamma=0.3, n_components=12, random_state=0).fit(X)
        ours = KernelLinearizer("rbf", gamma=0.3, sampling=theirs.components_).fit(X)
        F, G = ours.transform(X), theirs.transform(X)
        np.testing.assert_allclose(F @ F.T, G @ G.T, atol=1e-10)
        F = KernelLinearizer("rbf", gamma=0.3, n_landmarks=40).fit_transform(X)
        G = sklearn.decomposition.KernelPCA(kernel="rbf", gamma=0.3).fit_transform(X)
        F = F - F.mean(axis=0)
        np.testing.assert_allclose(F @ F.T, G @ G.T, atol=1e-10)

    def test_defaults(self, signals):
        X, D = signals
        assert MOD(alpha=0.5, max_iter=1).fit(X).n_atoms_ == 16
        assert MOD().max_iter == KSVD().max_iter == 20
        assert sklearn.decomposition.DictionaryLearning().max_iter == 1000
        ours, theirs = (
            sparse_encode(X, D),
            sklearn.decomposition.sparse_encode(X, D, algorithm="omp"),
        )
        np.testing.assert_allclose(ours.toarray(), theirs)


class TestTheirTests:
    """What scikit-learn's tests of dictionary learning ask, of our estimators."""

    def test_rows_that_cannot_be_written_to(self, rng, tmp_path):
        np.save(tmp_path / "rows.npy", rng.standard_normal((50, 8)))
        X, y = np.load(tmp_path / "rows.npy", mmap_mode="r"), np.arange(50) % 2
        atoms = np.eye(8)
        atoms.flags.writeable = False
        for method, options in (
            ("omp", {}),
            ("lasso", {"alpha": 0.1}),
            ("threshold", {"alpha": 1}),
        ):
            assert sparse_encode(X, atoms, method=method, **options).shape == (50, 8)
        for learner in (KSVD(5), MOD(5, alpha=0.5), KernelKSVD(5)):
            assert learner.set_params(max_iter=2).fit(X).transform(X).shape == (50, 5)
        for model in (ClassDictionaryClassifier(KSVD(5)), KSADClassifier(5), CRCClassifier()):
            assert model.fit(X, y).predict_proba(X).shape == (50, 2)

    def test_orders_of_memory_do_not_matter(self, signals):
        X, D = signals
        for method, options in (("omp", {}), ("lasso", {"alpha": 0.1}), ("ridge", {"mu": 0.1})):
            wanted = sparse_encode(X, D, method=method, **options).toarray()
            turned = np.asfortranarray(X), np.asfortranarray(D)
            found = sparse_encode(*turned, method=method, **options).toarray()
            np.testing.assert_array_equal(found, wanted)

    def test_a_coder_codes_without_fit(self, signals):
        X, D = signals
        coder = SparseCoder(D, n_nonzero_coefs=2)
        codes = coder.transform(X)
        np.testing.assert_array_equal(codes.toarray(), coder.fit(X).transform(X).toarray())
        with pytest.raises(ValueError, match="one column per feature"):
            SparseCoder(D).transform(X[:, :5])
        with pytest.raises(ValueError, match="method"):
            SparseCoder(D, method="best").transform(X)


def test_spams(signals):
    spams = pytest.importorskip("spams")
    X, D = signals
    columns, atoms = np.asfortranarray(X.T), np.asfortranarray(D.T)
    ours = sparse_encode(X, D, n_nonzero_coefs=3, selection="ols")
    theirs = spams.omp(columns, atoms, L=3, numThreads=1)
    np.testing.assert_allclose(ours.toarray(), theirs.toarray().T, atol=1e-10)
    ours = sparse_encode(X, D, max_residual=0.5, absolute=True, selection="ols")
    theirs = spams.omp(columns, atoms, eps=0.25, L=8, numThreads=1)
    np.testing.assert_allclose(ours.toarray(), theirs.toarray().T, atol=1e-10)
    for pos in (False, True):
        ours = sparse_encode(X, D, method="lasso", alpha=0.3, positive=pos, gap_tol=1e-12)
        theirs = spams.lasso(columns, atoms, lambda1=0.3, mode=2, pos=pos, numThreads=1)
        np.testing.assert_allclose(ours.toarray(), theirs.toarray().T, atol=1e-6)


def test_dictlearn(signals):
    dictlearn = pytest.importorskip("dictlearn")
    X, D = signals
    theirs = dictlearn.SparseCoder(D, n_nonzero_coefs=3).transform(X)
    np.testing.assert_allclose(sparse_encode(X, D, n_nonzero_coefs=3).toarray(), theirs, atol=1e-10)
    theirs = dictlearn.SparseCoder(D, transform_algorithm="fista", transform_alpha=0.6).transform(X)
    ours = sparse_encode(X, D, method="lasso", alpha=0.3)
    np.testing.assert_allclose(ours.toarray(), theirs, atol=1e-2)
    start = {"n_nonzero_coefs": 2, "max_iter": 3, "tol": 0, "dict_init": D[:10]}
    theirs = dictlearn.DictionaryLearning(10, fit_algorithm="mod", **start).fit(X)
    ours = kernelatoms.MOD(10, **start).fit(X)
    np.testing.assert_allclose(ours.components_, theirs.components_, atol=1e-8)
