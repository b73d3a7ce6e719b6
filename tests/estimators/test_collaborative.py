"""CRCClassifier and SRCClassifier against the paper's algorithms, one signal at a time."""

import gc
import pickle
import warnings
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier

from kernelatoms import CRCClassifier, SRCClassifier, load_model, save_model, sparse_encode
from kernelatoms.coding.closed_form import inverse_gram
from kernelatoms.coding.leave_one_out import MULTIPLES
from kernelatoms.coding.robust import RobustDictionary
from kernelatoms.estimators.classifiers import collaborative, row_coding
from kernelatoms.estimators.classifiers.training_dictionary import TrainingDictionary
from kernelatoms.features.projections import KPCAProjection
from kernelatoms.similarity import CentredKernel, DistanceKernel, make_kernel
from oracles import representation as oracle


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def draw(seed, n=30, n_features=6, n_classes=3, dtype=np.float64):
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)])
    means = 1.5 * rng.standard_normal((n_classes, n_features))
    X = means[y] + rng.standard_normal((n, n_features))
    T = means[rng.integers(0, n_classes, 8)] + rng.standard_normal((8, n_features))
    return X.astype(dtype), y, T.astype(dtype)


def seen(kernel, rows, signals, projection, psi=None):
    """Return atoms and signals as explicit vectors, the way a classifier sees them."""
    k = make_kernel(kernel, gamma=0.5)
    G, K = k(rows, rows), k(signals, rows)
    if projection is None:  # F F' = G, and <f, F_i> = k_i for the signals
        values, vectors = np.linalg.eigh(G)
        keep = values > 1e-13 * values[-1]
        root = vectors[:, keep] * np.sqrt(values[keep])
        inside = K @ (vectors[:, keep] / np.sqrt(values[keep]))
        outside = np.sqrt(np.maximum(k.diag(signals) - (inside**2).sum(axis=1), 0))
        return np.hstack([root, np.zeros((len(rows), 1))]), np.hstack([inside, outside[:, None]])
    psi = np.eye(len(rows)) if psi is None else psi
    return G @ psi, K @ psi


@given(
    seed=st.integers(0, 2**32 - 1), n=st.integers(4, 30), n_features=st.integers(2, 8),
    n_classes=st.integers(2, 4), kernel=st.sampled_from(["linear", "rbf", "l1"]),
    projection=st.sampled_from([None, "identity"]), exponent=st.integers(-2, 1),
    dtype=st.sampled_from([np.float32, np.float64]),
)  # fmt: skip
def test_crc_is_algorithm_1(seed, n, n_features, n_classes, kernel, projection, exponent, dtype):
    X, y, T = draw(seed, n, n_features, n_classes, dtype)
    if kernel == "l1":
        projection = "identity"  # exp(-l1^2/2) need not be positive semi-definite
    mu = 10.0**exponent
    model = CRCClassifier(kernel, projection=projection, mu=mu, gamma=0.5).fit(X, y)
    rows, labels, signals = model.dictionary_, model.labels_, unit(T)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, rtol=1e-6)
    np.testing.assert_array_equal(model.classes_[labels], np.sort(y))
    exact = rows.astype(np.float64), signals.astype(np.float64)
    atoms, vectors = seen(kernel, *exact, projection)
    codes, residuals = model.codes(T).toarray(), model.residuals(T)
    tol = 1e-7 if dtype == np.float64 else 2e-4
    for s in range(len(T)):
        code = oracle.crc_code(atoms, vectors[s], mu)
        np.testing.assert_allclose(codes[s], code, atol=tol / min(mu, 1))
        expected = oracle.residuals(atoms, labels, vectors[s], code, len(model.classes_))
        np.testing.assert_allclose(residuals[s], expected, rtol=max(100 * tol, 1e-5), atol=1e-4)
    best = model.residuals(T).argmin(axis=1)
    np.testing.assert_array_equal(model.predict(T), model.classes_[best])


@pytest.mark.parametrize("projection", ["kpca", "kfda", "random", "graph", KPCAProjection(5)])
def test_projections_are_crc_on_mapped_rows(projection):
    X, y, T = draw(7, n=40)
    model = CRCClassifier("rbf", projection=projection, mu=1e-3, gamma=0.5, random_state=0).fit(
        X, y
    )
    atoms, signals = seen("rbf", model.dictionary_, unit(T), projection, model.projection_)
    for s, residuals in enumerate(model.residuals(T)):
        code = oracle.crc_code(atoms, signals[s], 1e-3)
        expected = oracle.residuals(atoms, model.labels_, signals[s], code, 3)
        np.testing.assert_allclose(residuals, expected, rtol=1e-5)


@given(
    seed=st.integers(0, 2**32 - 1), n=st.integers(5, 30), n_classes=st.integers(2, 4),
    kernel=st.sampled_from(["linear", "rbf", "l1"]), exponent=st.integers(-3, 1),
    projection=st.sampled_from(["identity", "random", KPCAProjection(3)]),
    dtype=st.sampled_from([np.float32, np.float64]),
)  # fmt: skip
def test_unit_columns_are_algorithm_1_as_printed(
    seed, n, n_classes, kernel, exponent, projection, dtype
):
    X, y, T = draw(seed, n, n_classes=n_classes, dtype=dtype)
    if kernel == "l1":
        projection = "identity"
    mu = 10.0**exponent
    model = CRCClassifier(
        kernel, projection=projection, normalize_columns=True, mu=mu, gamma=0.5, random_state=0
    ).fit(X, y)
    k = make_kernel(kernel, gamma=0.5)
    rows, signals = model.dictionary_.astype(np.float64), unit(T).astype(np.float64)
    G, values = k(rows, rows), k(signals, rows)
    psi = np.eye(n) if model.projection_ is None else model.projection_
    codes, residuals = model.codes(T).toarray(), model.residuals(T)
    tol = 1e-7 if dtype == np.float64 else 2e-4
    for s in range(len(T)):
        code, expected = oracle.algorithm_1(G, values[s], psi, model.labels_, mu, n_classes)
        size = np.linalg.norm(psi.T @ values[s])
        np.testing.assert_allclose(codes[s], code, atol=tol * size / min(mu, 1))
        np.testing.assert_allclose(residuals[s], expected, rtol=max(100 * tol, 1e-5), atol=1e-4)
    found = model.classes_[residuals.argmin(axis=1)]
    np.testing.assert_array_equal(model.predict(T), found)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("projection", ["identity", "random"])
def test_unit_columns_of_neighbours(projection, dtype):
    """Those of the neighbours' own Gram matrix; through Psi, of all kernel values."""
    X, y, T = draw(4, n=40, dtype=dtype)
    model = CRCClassifier(
        "rbf", projection=projection, normalize_columns=True, n_neighbors=9, mu=1e-3, gamma=0.5,
        random_state=0,
    ).fit(X, y)  # fmt: skip
    rows, signals = model.dictionary_.astype(np.float64), unit(T).astype(np.float64)
    k = make_kernel("rbf", gamma=0.5)
    G, values = k(rows, rows), k(signals, rows)
    codes, residuals = model.codes(T).toarray(), model.residuals(T)
    for s in range(len(T)):
        near = np.sort(np.argsort(-values[s], kind="stable")[:9])
        own = np.ix_(near, near) if projection == "identity" else np.s_[:, near]
        psi = np.eye(9) if projection == "identity" else model.projection_
        seen_as = values[s][near] if projection == "identity" else values[s]
        code, expected = oracle.algorithm_1(G[own], seen_as, psi, model.labels_[near], 1e-3, 3)
        tol = 1e-6 if dtype == np.float64 else 1e-2
        np.testing.assert_allclose(codes[s][near], code, rtol=tol, atol=tol)
        np.testing.assert_allclose(residuals[s], expected, rtol=tol)


def test_robust_codes_are_over_unit_columns():
    X, y, T = draw(6, n=30)
    how = {"residual_norm": "l1", "mu": 0.1, "gamma": 0.5, "normalize_columns": True}
    model = CRCClassifier("rbf", **how).fit(X, y)
    atoms, signals = seen("rbf", model.dictionary_, unit(T), "identity")
    expected = RobustDictionary(unit(atoms), 0.1, "l2").code(signals)
    np.testing.assert_allclose(model.codes(T).toarray(), expected.weights, atol=1e-8)
    near = CRCClassifier("rbf", n_neighbors=30, **how).fit(X, y)
    np.testing.assert_allclose(near.codes(T).toarray(), expected.weights, rtol=0.05, atol=0.01)


@pytest.mark.parametrize("n_neighbors", [None, 15])
def test_unit_columns_have_a_weight_of_their_own(n_neighbors):
    """A chosen mu classifies about as well as that of columns as they are."""
    X, y = load_digits(return_X_y=True)
    train, test = np.arange(300), np.arange(300, 700)
    right = {}
    for scaled in (False, True):
        model = CRCClassifier("rbf", normalize_columns=scaled, n_neighbors=n_neighbors, gamma=0.5)
        right[scaled] = model.fit(X[train], y[train]).score(X[test], y[test])
    assert right[True] > right[False] - 0.02


def test_unit_columns_need_columns():
    X, y, _ = draw(0)
    for kernel, projection in (("linear", "auto"), ("rbf", None)):
        model = CRCClassifier(kernel, projection=projection, normalize_columns=True)
        with pytest.raises(ValueError, match=r"normalize_columns=True .* projection='identity'"):
            model.fit(X, y)
    with pytest.raises(TypeError, match="normalize_columns must be True or False"):
        CRCClassifier("rbf", normalize_columns="yes").fit(X, y)


@pytest.mark.parametrize("options", [{}, {"n_neighbors": 5, "distance": "l1"}])
def test_training_rows_are_prepared_once(options, monkeypatch):
    X, y, T = draw(1)
    made = []
    prepare = TrainingDictionary.__init__
    monkeypatch.setattr(
        TrainingDictionary, "__init__",
        lambda self, *given, **more: [made.append(self), prepare(self, *given, **more)][1],
    )  # fmt: skip
    inverses = []
    monkeypatch.setattr(
        row_coding, "inverse_gram",
        lambda gram, mu: [inverses.append(mu), inverse_gram(gram, mu)][1],
    )  # fmt: skip
    model = CRCClassifier("rbf", mu=0.1, **options).fit(X, y)
    n_made = len(made)
    expected = model.predict(T)
    assert model._fitted().dictionary in made[:n_made]  # that of ``fit`` serves ``predict``
    model.residuals(T), model.codes(T), model.predict_proba(T)
    assert len(made) == n_made
    assert len(inverses) == (0 if options else 1)
    again = pickle.loads(pickle.dumps(model))
    assert "_fitted_states" not in vars(again)
    np.testing.assert_array_equal(again.predict(T), expected)
    again.predict(T)
    assert len(made) <= 2 * n_made  # once more
    prepared = weakref.ref(model._fitted().dictionary)
    made.clear()
    model.mu_ = 0.2
    gc.collect()
    assert prepared() is None  # released with the state that a new attribute drops


@given(
    seed=st.integers(0, 2**32 - 1), n=st.integers(6, 40), n_neighbors=st.integers(1, 12),
    dtype=st.sampled_from([np.float32, np.float64]),
)  # fmt: skip
def test_neighbours_are_algorithm_3(seed, n, n_neighbors, dtype):
    X, y, T = draw(seed, n, dtype=dtype)
    model = CRCClassifier("rbf", n_neighbors=min(n_neighbors, n), mu=0.01, gamma=0.5).fit(X, y)

    def kernel(A, B):
        A, B = A.astype(np.float64), B.astype(np.float64)
        return np.exp(-0.5 * ((A[:, None] - B) ** 2).sum(axis=2))

    expected = oracle.algorithm_3(
        kernel, model.dictionary_, model.labels_, unit(T), model.n_neighbors_, 0.01, 3
    )
    shares = np.sort(model.predict_proba(T), axis=1)
    clear = shares[:, -1] > 1.01 * shares[:, -2]
    np.testing.assert_array_equal(model.predict(T)[clear], model.classes_[expected][clear])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("projection", [None, "identity", "kpca"])
@pytest.mark.parametrize("residual_norm", ["l2", "l1"])
def test_all_rows_as_neighbours_are_the_global_dictionary(kernel, projection, residual_norm, dtype):
    if residual_norm == "l1" and kernel == "rbf" and projection is None:
        pytest.skip("vectors of a feature space have no entries")
    X, y, T = draw(3, n=25, dtype=dtype)
    everywhere = CRCClassifier(
        kernel, projection=projection, residual_norm=residual_norm, mu=0.05, tol=1e-8
    ).fit(X, y)
    near = clone(everywhere).set_params(n_neighbors=25).fit(X, y)
    tol = {"rtol": 1e-4, "atol": 1e-5} if residual_norm == "l2" else {"rtol": 0.01, "atol": 1e-3}
    np.testing.assert_allclose(near.codes(T).toarray(), everywhere.codes(T).toarray(), **tol)
    np.testing.assert_allclose(near.residuals(T), everywhere.residuals(T), **tol)


@pytest.mark.parametrize("n_neighbors", [None, 9])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_src_codes_are_those_of_sparse_encode(kernel, n_neighbors):
    X, y, T = draw(5, n=40)
    for options in ({"alpha": 0.05}, {"n_nonzero_coefs": 3}):
        model = SRCClassifier(kernel, n_neighbors=n_neighbors, gamma=0.5, **options).fit(X, y)
        rows, signals = model.dictionary_, unit(T)
        near = None
        if n_neighbors is not None:
            order = np.argsort(-(signals @ rows.T), axis=1, kind="stable")
            near = np.sort(order[:, :n_neighbors], axis=1).astype(np.int32)
        expected = sparse_encode(
            signals, rows, kernel=kernel, gamma=0.5 if kernel == "rbf" else None, candidates=near,
            method="lasso" if "alpha" in options else "omp", **options,
        )  # fmt: skip
        expected = expected if isinstance(expected, np.ndarray) else expected.toarray()
        np.testing.assert_allclose(model.codes(T).toarray(), expected, atol=2e-3)
        atoms, vectors = seen(kernel, rows, signals, None)
        for s, residuals in enumerate(model.residuals(T)):
            right = oracle.residuals(atoms, model.labels_, vectors[s], expected[s], 3)
            known = np.isfinite(right)
            np.testing.assert_array_equal(np.isfinite(residuals), known)
            np.testing.assert_allclose(residuals[known], right[known], rtol=0.02, atol=1e-4)


def test_src_codes_in_columns_of_neighbours_are_lasso_codes_of_the_columns():
    X, y, T = draw(6, n=30)
    model = SRCClassifier("rbf", projection="identity", alpha=0.1, n_neighbors=8, gamma=0.5).fit(
        X, y
    )
    k, rows = make_kernel("rbf", gamma=0.5), model.dictionary_
    for s, code in enumerate(model.codes(T).toarray()):
        K = k(unit(T)[s : s + 1], rows)[0]
        near = np.sort(np.argsort(-K, kind="stable")[:8])
        expected = (
            sparse_encode(
                K[near][None],
                k(rows[near], rows[near]),
                method="lasso",
                alpha=0.1,
                normalize=False,
            )
            if False
            else sparse_encode(K[near][None], k(rows[near], rows[near]), method="lasso", alpha=0.1)
        )
        expected = expected if isinstance(expected, np.ndarray) else expected.toarray()
        np.testing.assert_allclose(code[near], expected[0], atol=2e-3)


@pytest.mark.parametrize("make", [CRCClassifier, SRCClassifier])
@pytest.mark.parametrize("projection", ["identity", "kpca"])
def test_precomputed_kernels_are_kernels(make, projection):
    X, y, T = draw(8)
    X, T = unit(X), unit(T)
    k = make_kernel("rbf", gamma=0.5)
    for near in (None, 7):
        own = make("rbf", projection=projection, n_neighbors=near, gamma=0.5).fit(X, y)
        given = make("precomputed", projection=projection, n_neighbors=near).fit(k(X, X), y)
        np.testing.assert_allclose(
            given.predict_proba(k(T, X)), own.predict_proba(T), rtol=1e-5, atol=1e-7
        )


def test_a_coarse_choice_of_all_rows_changes_nothing():
    X, y, T = draw(9, n=40)
    for distance in (None, "l1", "linf"):
        fine = CRCClassifier("rbf", n_neighbors=6, distance=distance, mu=0.01).fit(X, y)
        coarse = clone(fine).set_params(n_coarse=40, coarse_distance="correlation").fit(X, y)
        np.testing.assert_allclose(coarse.predict_proba(T), fine.predict_proba(T), rtol=1e-9)
        few = clone(fine).set_params(n_coarse=6, coarse_distance="linf").fit(X, y)
        others = clone(fine).set_params(distance="linf").fit(X, y)
        np.testing.assert_allclose(few.predict_proba(T), others.predict_proba(T), rtol=1e-9)


@pytest.mark.parametrize("distance", ["l2", "l1", "linf", "correlation", "chi2", "mahalanobis"])
def test_one_neighbour_is_the_nearest_neighbour(distance):
    X, y, T = draw(10, n=40)
    X, T = unit(np.abs(X)), unit(np.abs(T))
    model = CRCClassifier(n_neighbors=1, distance=distance).fit(X, y)
    d = model.distance_
    nearest = d.compare(d.featurize(T), d.featurize(model.dictionary_)).argmin(axis=1)
    np.testing.assert_array_equal(model.predict(T), model.classes_[model.labels_[nearest]])
    if distance == "l2":
        knn = KNeighborsClassifier(1).fit(X, y)
        np.testing.assert_array_equal(model.predict(T), knn.predict(T))


def test_neighbours_of_one_class_decide_and_absent_classes_have_no_share():
    X = np.array([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0], [0.1, 1.0], [-1.0, 0.0], [-1.0, 0.1]])
    y = np.array(["a", "a", "b", "b", "c", "c"])
    model = CRCClassifier("rbf", n_neighbors=2).fit(X, y)
    shares = model.predict_proba([[1.0, 0.05], [1.0, 0.9]])
    np.testing.assert_array_equal(shares[0], [1, 0, 0])
    assert shares[1, 2] == 0
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert np.isinf(model.residuals([[1.0, 0.05]])[0, 1:]).all()
    # Before any code, which here is 0.
    empty = SRCClassifier(alpha=10.0, n_neighbors=2).fit(X, y)
    assert empty.codes([[1.0, 0.05]]).count_nonzero() == 0
    np.testing.assert_array_equal(empty.predict_proba([[1.0, 0.05]]), [[1, 0, 0]])


def test_shares_are_reciprocal_squared_residuals():
    X, y, T = draw(11)
    for model in (CRCClassifier("rbf"), SRCClassifier(), CRCClassifier(residual_norm="l1")):
        r = model.fit(X, y).residuals(T)
        expected = 1 / r**2
        expected /= expected.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(model.predict_proba(T), expected, rtol=1e-6, atol=1e-12)
        np.testing.assert_array_equal(model.decision_function(T), model.predict_proba(T))
    two = CRCClassifier().fit(X, y > 0)
    shares = two.predict_proba(T)
    np.testing.assert_allclose(two.decision_function(T), shares[:, 1] - shares[:, 0])


def test_robust_errors_are_those_of_the_pursuit():
    X, y, T = draw(12)
    T[:, 2] += 5
    model = CRCClassifier(residual_norm="l1", mu=0.5).fit(X, y)
    found = RobustDictionary(model.dictionary_, 0.5).code(unit(T))
    np.testing.assert_allclose(model.errors(T), found.errors, atol=1e-12)
    assert model.errors(T).shape == T.shape
    src = SRCClassifier(residual_norm="l1", alpha=0.3).fit(X, y)
    found = RobustDictionary(src.dictionary_, 0.3, "l1").code(unit(T))
    np.testing.assert_allclose(src.codes(T).toarray(), found.weights, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_features", [2, 3, 5, 16, 64, 256])
def test_kernels_tell_classes_of_one_direction_apart(n_features, dtype):
    """Fig. 3: features of U[1, 3] and U[-3, -1], noise of variance 0.15."""
    rng = np.random.default_rng(n_features)

    def rows(n):
        y = np.arange(n) % 2
        X = rng.uniform(1, 3, (n, n_features)) * np.where(y == 0, 1, -1)[:, None]
        return (X + np.sqrt(0.15) * rng.standard_normal(X.shape)).astype(dtype), y

    (X, y), (T, t) = rows(200), rows(500)
    linear = CRCClassifier().fit(X, y).score(T, t)
    assert linear < 0.9
    for near in (None, 20):
        assert CRCClassifier("rbf", n_neighbors=near).fit(X, y).score(T, t) == 1


def test_unions_of_neighbours_are_coded_over_together():
    from kernelatoms.similarity.named_distances import Unified

    X, y, T = draw(13, n=40)
    union = Unified(("l2", "linf"), form="union")
    model = CRCClassifier("rbf", n_neighbors=5, distance=union, mu=0.01).fit(X, y)
    for s, code in enumerate(model.codes(T).toarray()):
        one = CRCClassifier("rbf", n_neighbors=5, distance="l2").fit(X, y)
        two = CRCClassifier("rbf", n_neighbors=5, distance="linf").fit(X, y)
        near = (one.codes(T[s : s + 1]) != 0) + (two.codes(T[s : s + 1]) != 0)
        np.testing.assert_array_equal(code != 0, near.toarray()[0])


def test_mu_is_searched_for_again_by_fit_and_in_grids():
    X, y = load_digits(return_X_y=True)
    X, y = X[:300], y[:300]
    grid = GridSearchCV(
        CRCClassifier("rbf"), {"n_neighbors": [None, 20], "projection": ["identity", "kpca"]}, cv=2
    ).fit(X, y)
    assert grid.best_score_ > 0.85
    model = CRCClassifier("rbf").fit(X, y)
    by_hand = CRCClassifier("rbf", mu=model.mu_).fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X[:9]), by_hand.predict_proba(X[:9]))
    assert CRCClassifier("rbf", gamma=5.0).fit(X, y).mu_ != model.mu_


def test_rows_of_zeros_are_kept_and_judged_alike():
    X, y, T = draw(14)
    X[3], T[0] = 0, 0
    for make in (CRCClassifier, SRCClassifier):
        for near in (None, 5):
            shares = make(n_neighbors=near).fit(X, y).predict_proba(T)
            assert np.isfinite(shares).all()
            np.testing.assert_allclose(shares.sum(axis=1), 1)
    np.testing.assert_allclose(CRCClassifier().fit(X, y).predict_proba(T)[0], 1 / 3)


def test_kernels_that_are_not_semidefinite_are_vectors_of_values():
    """Kernel values as vectors need no feature space; without them there is no minimum."""
    X, y, T = draw(15, n=60)
    kernel = DistanceKernel("linf", gamma=2.0, power=2)
    assert np.linalg.eigvalsh(kernel(unit(X), unit(X)))[0] < -1e-3
    assert CRCClassifier(kernel).fit(X, y).projected_
    assert SRCClassifier(kernel).fit(X, y).projected_
    np.testing.assert_allclose(CRCClassifier(kernel).fit(X, y).predict_proba(T).sum(axis=1), 1)
    with pytest.raises(ValueError, match="not positive semi-definite"):
        CRCClassifier(kernel, projection=None).fit(X, y)
    with pytest.raises(ValueError, match="not positive semi-definite"):
        SRCClassifier(kernel, projection=None).fit(X, y)


def test_approximate_neighbours_are_near():
    pytest.importorskip("pynndescent")
    X, y = load_digits(return_X_y=True)
    X, y, T, t = X[:1200], y[:1200], X[1200:], y[1200:]
    exact = CRCClassifier("rbf", n_neighbors=30, mu=0.01).fit(X, y)
    near = clone(exact).set_params(search="approximate", random_state=0).fit(X, y)
    assert (near.codes(T) != 0).multiply(exact.codes(T) != 0).nnz > 0.95 * 30 * len(T)
    assert abs(near.score(T, t) - exact.score(T, t)) < 0.01
    fine = {"kernel": "tangent", "image_shape": (8, 8), "n_coarse": 60, "n_neighbors": 10}
    assert clone(near).set_params(**fine).fit(X, y).score(T[:100], t[:100]) > 0.9


X, Y, T = draw(0)
MISTAKES = [
    (CRCClassifier(n_neighbors=5, search="random"), "search must be one of"),
    (CRCClassifier(n_neighbors=5, search="approximate", distance="l1"), "'l2' and 'correlation'"),
    (CRCClassifier("poly", n_neighbors=5, search="approximate"), "'l2' and 'correlation'"),
    (CRCClassifier(mu=0), "mu must be above 0"),
    (CRCClassifier(mu="best"), "mu must be a number above 0 or 'search'"),
    (CRCClassifier(residual_norm="l3"), "residual_norm must be one of"),
    (CRCClassifier("rbf", projection=None, residual_norm="l1"), "residual_norm='l1' counts"),
    (CRCClassifier(projection="pca"), "projection must be 'auto', None, one of"),
    (CRCClassifier(n_neighbors=0), "n_neighbors must be at least 1"),
    (CRCClassifier(n_neighbors=2.5), "n_neighbors must be a whole number"),
    (CRCClassifier(distance="l1"), "they need n_neighbors"),
    (CRCClassifier(n_neighbors=5, n_coarse=3), "n_coarse must be at least n_neighbors = 5"),
    (CRCClassifier(n_neighbors=5, distance="l7"), "distance must be one of"),
    (CRCClassifier(n_neighbors=5, distance="chi2"), "negative"),
    (CRCClassifier(n_neighbors=5, distance="tangent"), "image_shape"),
    (CRCClassifier("tangent"), "image_shape"),
    (CRCClassifier("tangent", image_shape=(5, 5)), "image_shape"),
    (CRCClassifier(image_shape=5), "image_shape must be \\(height, width\\)"),
    (CRCClassifier(image_shape=(2, 0)), "image_shape's width must be at least 1"),
    (CRCClassifier(normalize="yes"), "normalize must be True or False"),
    (SRCClassifier(alpha=0), "alpha must be above 0"),
    (SRCClassifier(n_nonzero_coefs=0), "n_nonzero_coefs must be at least 1"),
    (SRCClassifier(n_nonzero_coefs=3, residual_norm="l1"), "leave n_nonzero_coefs at None"),
]


@pytest.mark.parametrize(("model", "message"), MISTAKES, ids=lambda v: str(v)[:60])
def test_mistakes_are_named(model, message):
    with pytest.raises((ValueError, TypeError), match=message):
        clone(model).fit(X, Y)


def test_more_mistakes_are_named():
    with pytest.raises(ValueError, match="at least two classes"):
        CRCClassifier().fit(X, np.zeros(len(X)))
    with pytest.raises(ValueError, match="precomputed"):
        CRCClassifier("precomputed", projection=None).fit(X @ X.T, Y)
    with pytest.raises(ValueError, match="gives no rows to compare"):
        CRCClassifier("precomputed", n_neighbors=5, distance="l2").fit(X @ X.T, Y)
    with pytest.raises(ValueError, match="robust codes only"):
        CRCClassifier().fit(X, Y).errors(T)
    with pytest.warns(UserWarning, match="n_neighbors=99 is more than there are training rows"):
        assert CRCClassifier(n_neighbors=99).fit(X, Y).n_neighbors_ == len(X)
    with pytest.warns(UserWarning, match="n_nonzero_coefs=99"):
        assert SRCClassifier(n_nonzero_coefs=99).fit(X, Y).n_nonzero_coefs_ == len(X)


SAVED = [
    CRCClassifier(),
    CRCClassifier("rbf", projection="kpca"),
    CRCClassifier("rbf", projection=KPCAProjection(4), n_neighbors=8),
    CRCClassifier("mahalanobis", n_neighbors=8, distance="mahalanobis", n_coarse=12),
    CRCClassifier(DistanceKernel("l1", power=1), residual_norm="l1", mu=0.2),
    SRCClassifier("rbf", n_nonzero_coefs=3),
    SRCClassifier(alpha=0.1, n_neighbors=7),
]


@pytest.mark.parametrize("model", SAVED, ids=str)
def test_model_files_hold_them(model, tmp_path):
    model = clone(model).fit(X.astype(np.float32), Y)
    shares = model.predict_proba(T)
    path = save_model(model, tmp_path / "model.skops")
    loaded, _ = load_model(path)
    np.testing.assert_array_equal(loaded.predict_proba(T), shares)


def test_model_files_hold_the_rows_once(tmp_path):
    rng = np.random.default_rng(0)
    rows, labels = rng.standard_normal((400, 100)).astype(np.float32), np.arange(400) % 4
    for model in (CRCClassifier("rbf"), CRCClassifier("rbf", n_neighbors=10), SRCClassifier()):
        model.fit(rows, labels).predict(rows[:5])
        size = save_model(model, tmp_path / "model.skops").stat().st_size
        assert 400 * 100 * 4 * 0.8 < size < 400 * 100 * 4 * 1.1 + 20_000


def test_nothing_warns():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for model in (CRCClassifier("rbf"), CRCClassifier("rbf", n_neighbors=6), SRCClassifier()):
            model.fit(X, Y).predict(T)


def test_a_training_row_may_be_the_origin_of_its_kernel(rng):
    X, y = rng.standard_normal((30, 3)), np.arange(30) % 2
    for n_neighbors in (None, 5):
        how = {"normalize": False, "mu": 0.1, "n_neighbors": n_neighbors, "projection": None}
        model = CRCClassifier(CentredKernel("l2", origin=X[3]), **how)
        moved = CRCClassifier("linear", **how)
        test = np.concatenate([X, rng.standard_normal((20, 3))])
        shares = model.fit(X, y).predict_proba(test)
        expected = moved.fit(X - X[3], y).predict_proba(test - X[3])
        others = np.arange(len(test)) != 3  # the origin itself has no direction
        np.testing.assert_allclose(shares[others], expected[others], atol=1e-9)


def _best(atoms_of, labels, scale):
    """Return the middle of the weights under which most rows, left out, are classified right."""
    right = np.zeros(len(MULTIPLES))
    for m, multiple in enumerate(MULTIPLES):
        for i, (atoms, owners, signal) in enumerate(map(atoms_of, range(len(labels)))):
            code = oracle.crc_code(atoms, signal, multiple * scale)
            right[m] += oracle.residuals(atoms, owners, signal, code, 3).argmin() == labels[i]
    return scale * np.exp(np.log(MULTIPLES)[right == right.max()].mean())


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize(
    "where",
    [
        {"projection": "identity"},
        {"projection": None},
        {"projection": "identity", "distance": "l1"},
        {"projection": "identity", "distance": "l1", "n_coarse": 12, "coarse_distance": "linf"},
    ],
)
def test_mu_over_neighbours_leaves_the_row_itself_out(where, seed):
    X, y, _ = draw(seed, n=60)
    model = CRCClassifier("rbf", n_neighbors=6, gamma=0.5, **where).fit(X, y)
    rows, labels = model.dictionary_, model.labels_
    apart = np.abs(rows[:, None] - rows)
    G = np.exp(-0.5 * (apart**2).sum(axis=2))
    root = np.linalg.cholesky(G + 1e-14 * np.eye(60))
    fine = apart.sum(axis=2) if "distance" in where else -G
    coarse = apart.max(axis=2) if "n_coarse" in where else None

    def near(i):
        others = np.flatnonzero(np.arange(60) != i)
        if coarse is not None:
            others = others[np.argsort(coarse[i, others], kind="stable")[:12]]
        return others[np.argsort(fine[i, others], kind="stable")[:6]]

    def atoms_of(i):
        own = near(i)
        if where["projection"] is None:
            return root[own], labels[own], root[i]
        return G[np.ix_(own, own)], labels[own], G[i, own]

    scale = np.mean([(atoms_of(i)[0] ** 2).sum(axis=1) for i in range(60)])
    np.testing.assert_allclose(model.mu_, _best(atoms_of, labels, scale), rtol=1e-6)


@pytest.mark.parametrize("projection", [None, "identity"])
def test_some_of_very_many_rows_choose_mu(projection, monkeypatch):
    X, y, _ = draw(13, n=90)
    monkeypatch.setattr(collaborative, "_LEFT_OUT", 30)
    whole = CRCClassifier("rbf", projection=projection, gamma=0.5).fit(X, y)
    some = np.argsort(y, kind="stable")[np.linspace(0, 89, 30).round().astype(int)]
    part = CRCClassifier("rbf", projection=projection, gamma=0.5).fit(X[some], y[some])
    # Eigenvalues grow with the rows, and in columns of kernel values with their squares.
    grown = 3.0 if projection is None else 9.0
    np.testing.assert_allclose(whole.mu_, grown * part.mu_, rtol=1e-6)


@pytest.mark.parametrize("n_neighbors", [None, 12])
def test_robust_residuals_are_those_of_what_is_trusted(n_neighbors):
    X, y, T = draw(14, n=30, n_features=40)
    T[:, 0] += 20.0
    model = CRCClassifier(residual_norm="l1", mu=0.1, n_neighbors=n_neighbors).fit(X, y)
    errors, codes = model.errors(T), model.codes(T).toarray()
    assert (np.abs(errors).sum(axis=1) > 0.1).all()
    for s, residuals in enumerate(model.residuals(T)):
        trusted = unit(T)[s] - errors[s]  # Algorithm 2, step 6
        expected = oracle.residuals(model.dictionary_, model.labels_, trusted, codes[s], 3)
        np.testing.assert_allclose(residuals, expected, rtol=1e-6)
