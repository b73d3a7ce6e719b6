"""Kernel MOD and kernel K-SVD: the textbook's N x N versions, identities, bad input."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics.pairwise import pairwise_kernels

from contracts.learner import GreedyLearnerContract
from draws import some
from kernelatoms import (
    KSVD,
    MOD,
    ClassDictionaryClassifier,
    KernelKSVD,
    KernelLinearizer,
    KernelMOD,
    load_model,
    save_model,
)
from kernelatoms.coding import omp
from kernelatoms.coding.problem import LinearProblem
from kernelatoms.features.coordinates import exact_coordinates, pivoted_cholesky
from kernelatoms.learning.ksvd import KSVDUpdate
from kernelatoms.learning.mod import LeastSquares, best_dictionaries
from kernelatoms.learning.state import unit_rows
from kernelatoms.similarity import make_kernel
from oracles import kernel_learning as book

KERNELS = [
    ("poly", {"degree": 2, "gamma": 1.0, "coef0": 1.0}),
    ("poly", {"degree": 4, "gamma": 0.5, "coef0": 0.0}),
    ("rbf", {"gamma": 0.3}),
    ("laplacian", {"gamma": 0.2}),
    ("linear", {}),
]
LEARNERS = [KernelKSVD, KernelMOD]


def gram(name, parameters, X, Y=None):
    return pairwise_kernels(X, X if Y is None else Y, metric=name, **parameters)


@given(
    seed=st.integers(0, 2**31),
    n=st.integers(1, 40),
    rank=st.integers(1, 40),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_coordinates_give_the_matrix_back(seed, n, rank, dtype):
    B = np.random.default_rng(seed).standard_normal((n, min(rank, n))).astype(dtype)
    K = B @ B.T
    F, pivots = pivoted_cholesky(K.copy())
    np.testing.assert_allclose(F @ F.T, K, atol=200 * np.finfo(dtype).eps * n * np.trace(K))
    assert len(set(pivots)) == F.shape[1] <= min(rank, n)
    # Pivots' own coordinates are lower triangular: solving with them is cheap and stable.
    assert np.array_equal(np.tril(F[pivots]), F[pivots])


@pytest.mark.parametrize(("name", "parameters"), KERNELS)
@pytest.mark.parametrize("method", ["mod", "ksvd"])
def test_the_textbook_pass_by_pass(name, parameters, method, rng):
    """Codes, residuals, objective: ours in coordinates, the paper's with N x N matrices."""
    X = rng.standard_normal((40, 5))
    K = gram(name, parameters, X)
    n_atoms, n_nonzero = 8, 3
    kernel = make_kernel(name, **parameters)
    coordinates = exact_coordinates(kernel, X, X)
    D = unit_rows(coordinates.rows[:n_atoms])
    A = np.zeros((len(X), n_atoms))
    A[range(n_atoms), range(n_atoms)] = 1 / np.sqrt(np.diagonal(K)[:n_atoms])
    scale = np.trace(K)
    for _ in range(3):
        codes = omp(LinearProblem(coordinates.rows, D), n_nonzero)
        W = book.code_all(K, A, n_nonzero)
        np.testing.assert_allclose(codes.to_dense(), W.T, atol=1e-5 * np.sqrt(scale))
        np.testing.assert_allclose(codes.error.sum(), book.objective(K, A, W), rtol=1e-6)
        if method == "ksvd":
            D, objective, *_ = KSVDUpdate(exact=True).apply(coordinates.rows, codes, D)
            A, W = book.kernel_ksvd_pass(K, A, W)
        else:
            sums = LeastSquares().sums(coordinates.rows, codes, D)
            [(D, norms, sums)] = best_dictionaries([sums], [D])
            objective = sums.objective(D)
            A, W = book.kernel_mod(K, W), (codes.to_dense() * norms).T
        np.testing.assert_allclose(
            objective, book.objective(K, A, W), rtol=1e-5, atol=1e-10 * scale
        )
        ours = coordinates.rows @ D.T  # <phi(x), d>, which knows atoms up to their sign
        np.testing.assert_allclose(np.abs(ours), np.abs(K @ A), atol=2e-4 * np.sqrt(scale))
        # Go on from one and the same dictionary: rounding must not add up over passes.
        A = np.linalg.lstsq(K, ours, rcond=None)[0]


@pytest.mark.parametrize(("name", "parameters"), KERNELS)
@pytest.mark.parametrize("Learner", LEARNERS)
def test_codes_of_new_signals_are_komps(name, parameters, Learner, rng):
    X, Z = rng.standard_normal((50, 6)), rng.standard_normal((20, 6))
    model = Learner(
        10, kernel=name, n_nonzero_coefs=3, max_iter=4, random_state=0, **parameters
    ).fit(X)
    codes = model.transform(Z).toarray()
    K = gram(name, parameters, model.anchors_)
    k_z = gram(name, parameters, Z, model.anchors_)
    expected = np.array([book.komp(K, row, model.dual_coef_, 3) for row in k_z])
    np.testing.assert_allclose(codes, expected, atol=1e-6 * np.abs(expected).max())
    atoms = model.dual_coef_.T @ K @ model.dual_coef_
    np.testing.assert_allclose(np.diagonal(atoms), 1, atol=1e-6)
    np.testing.assert_allclose(atoms, model.atom_gram_, atol=1e-6)
    energy = np.diagonal(gram(name, parameters, Z))
    w = expected
    errors = energy - 2 * np.einsum("ij,ij->i", k_z @ model.dual_coef_, w)
    errors += np.einsum("ij,jk,ik->i", w, atoms, w)
    np.testing.assert_allclose(model._encode(Z).error, errors, atol=1e-7 * energy.max())


@pytest.mark.parametrize(("kernel_learner", "learner"), [(KernelKSVD, KSVD), (KernelMOD, MOD)])
def test_a_linear_kernel_is_the_linear_method(kernel_learner, learner, rng):
    X = rng.standard_normal((60, 12))
    same = {"n_nonzero_coefs": 3, "max_iter": 5, "tol": 0, "random_state": 3}
    ours = kernel_learner(15, kernel="linear", **same).fit(X)
    linear = learner(15, **same).fit(X)
    np.testing.assert_allclose(ours.objective_, linear.objective_, rtol=1e-8)
    np.testing.assert_allclose(
        ours.transform(X).toarray(), linear.transform(X).toarray(), atol=1e-7
    )
    np.testing.assert_allclose(ours.dual_coef_.T @ ours.anchors_, linear.components_, atol=1e-7)


@pytest.mark.parametrize("Learner", LEARNERS)
def test_all_rows_as_landmarks_are_exact(Learner, rng):
    X = rng.standard_normal((40, 4))
    same = {"kernel": "rbf", "gamma": 0.5, "n_nonzero_coefs": 2, "max_iter": 4, "tol": 0}
    exact = Learner(8, random_state=0, **same).fit(X)
    # The start is a random choice of rows, and sampling draws from the same stream first.
    maps = KernelLinearizer(sampling=X)
    landmarks = Learner(8, coordinates=maps, random_state=0, **same).fit(X)
    np.testing.assert_allclose(landmarks.objective_, exact.objective_, rtol=1e-5)
    based = Learner(8, base=X[::-1], random_state=0, **same).fit(X)
    np.testing.assert_allclose(based.objective_, exact.objective_, rtol=1e-5)


@pytest.mark.parametrize("Learner", LEARNERS)
def test_precomputed_is_the_same(Learner, rng):
    X, Z = rng.standard_normal((40, 4)), rng.standard_normal((9, 4))
    same = {"n_atoms": 8, "n_nonzero_coefs": 2, "max_iter": 4, "tol": 0, "random_state": 0}
    named = Learner(kernel="rbf", gamma=0.5, **same).fit(X)
    given_ = Learner(kernel="precomputed", **same).fit(gram("rbf", {"gamma": 0.5}, X))
    np.testing.assert_allclose(given_.objective_, named.objective_, rtol=1e-9)
    K = gram("rbf", {"gamma": 0.5}, Z, X)
    np.testing.assert_allclose(
        given_.transform(K).toarray(), named.transform(Z).toarray(), atol=1e-9
    )
    with pytest.raises(ValueError, match="needs the training rows"):
        given_.inverse_transform(given_.transform(K))
    some = Learner(kernel="precomputed", base=[1, 5, 7, 9], **{**same, "n_atoms": 3})
    assert set(some.fit(gram("rbf", {"gamma": 0.5}, X)).anchors_) <= {1, 5, 7, 9}


class TestKernelKSVDContract(GreedyLearnerContract):
    def make(self, **parameters):
        return KernelKSVD(kernel="rbf", gamma=0.1, **parameters)


class TestKernelMODContract(GreedyLearnerContract):
    def make(self, **parameters):
        return KernelMOD(kernel="poly", degree=2, gamma=0.2, **parameters)


@given(
    seed=st.integers(0, 2**31),
    n=st.integers(4, 40),
    n_atoms=st.integers(2, 12),
    kernel=st.sampled_from(["rbf", "poly", "cosine", "laplacian"]),
    learner=st.sampled_from(LEARNERS),
    coordinates=st.sampled_from(["exact", 0.05, KernelLinearizer(n_landmarks=0.5)]),
    dtype=st.sampled_from([np.float32, np.float64]),
)
@pytest.mark.filterwarnings("ignore:n_")
def test_singular_kernels_of_all_kinds_are_learned_from(
    seed, n, n_atoms, kernel, learner, coordinates, dtype
):
    X = np.random.default_rng(seed).standard_normal((n, 3)).astype(dtype)
    X[n // 2] = X[0]  # a repeated row makes K singular
    model = learner(
        n_atoms, kernel=kernel, n_nonzero_coefs=2, max_iter=5, tol=0, coordinates=coordinates,
        random_state=seed,
    ).fit(X)  # fmt: skip
    energy = float(np.trace(gram(kernel, {}, X)))
    assert (model.objective_ >= -1e-6 * energy).all()
    assert (model.objective_ <= 1.01 * energy).all()
    assert model.dual_coef_.dtype == dtype
    codes = model.transform(X)
    assert codes.dtype == dtype
    # Fresh codes of a greedy pursuit may be worse than those that the dictionary was fitted to; no
    # code is worse than none.
    assert model._encode(X).error.sum() <= 1.001 * energy


def test_pruning_keeps_fewer_anchors_to_the_stated_accuracy(rng):
    X = rng.standard_normal((200, 3))
    same = {"kernel": "rbf", "gamma": 0.2, "n_nonzero_coefs": 3, "max_iter": 5, "random_state": 0}
    exact = KernelKSVD(20, **same).fit(X)
    pruned = KernelKSVD(20, coordinates=0.001, **same).fit(X)
    assert len(pruned.anchors_) < 0.6 * len(exact.anchors_)
    # What the anchors' span leaves of all signals is the stated share, and in the objective.
    cross = gram("rbf", {"gamma": 0.2}, X, pruned.anchors_)
    inside = cross @ np.linalg.lstsq(gram("rbf", {"gamma": 0.2}, pruned.anchors_), cross.T)[0]
    left = len(X) - np.trace(inside)
    assert 0 < left <= 0.001 * len(X)


@pytest.mark.filterwarnings("ignore:n_nonzero_coefs")
def test_what_pruned_anchors_leave_is_in_the_objective(rng):
    """Codes of all atoms leave nothing else."""
    X = rng.standard_normal((200, 3))
    model = KernelKSVD(
        60, kernel="rbf", gamma=0.2, coordinates=0.1, n_nonzero_coefs=60, max_iter=2, random_state=0
    ).fit(X)
    cross = gram("rbf", {"gamma": 0.2}, X, model.anchors_)
    inside = cross @ np.linalg.lstsq(gram("rbf", {"gamma": 0.2}, model.anchors_), cross.T)[0]
    left = len(X) - np.trace(inside)
    assert 0.01 * len(X) < left <= 0.1 * len(X)
    np.testing.assert_allclose(model.objective_, left, rtol=1e-6)
    assert model._encode(X).error.sum() == pytest.approx(left, rel=1e-6)


def with_outliers(rng, n, n_outliers):
    """Two classes of four clusters each, the last rows far away from all of them."""
    centres = 2 * np.random.default_rng(1).standard_normal((8, 10))
    cluster = rng.integers(0, 8, n)
    X = centres[cluster] + rng.standard_normal((n, 10))
    X[n - n_outliers :] += 10 * rng.standard_t(2, (n_outliers, 10))
    return X / 3, cluster % 2


@pytest.mark.parametrize(
    "kernel",
    [{"kernel": "poly", "degree": 3, "gamma": 0.1, "coef0": 1}, {"kernel": "rbf", "gamma": 0.1}],
    ids=["poly", "rbf"],
)
@pytest.mark.parametrize("coordinates", [0.1, 0.01])
def test_outliers_do_not_stand_for_all_when_anchors_are_pruned(kernel, coordinates, rng):
    """Of the largest remainders all are outliers', and under poly so is most of the trace.

    By draws about half of the anchors are (0.43 on average, standard deviation 0.04).
    """
    X, y = with_outliers(rng, 1200, 120)
    test, y_test = with_outliers(rng, 600, 0)
    learner = KernelKSVD(30, n_nonzero_coefs=3, max_iter=5, **kernel)
    exact = ClassDictionaryClassifier(learner, random_state=0).fit(X, y)
    learner = learner.set_params(coordinates=coordinates)
    pruned = ClassDictionaryClassifier(learner, random_state=0).fit(X, y)
    anchors = pruned.dictionaries_[0].anchors_
    assert len(anchors) < 0.5 * (y == 0).sum()
    assert (anchors[:, None] == X[1080:]).all(axis=2).any(axis=1).mean() < 0.7
    if kernel["kernel"] == "rbf":  # under poly outliers also mislead the exact learner
        # No worse on average, with a standard deviation of 0.007.
        assert pruned.score(test, y_test) > exact.score(test, y_test) - 0.05


@pytest.mark.parametrize("Learner", LEARNERS)
def test_pruning_needs_no_kernel_matrix_and_is_seeded(Learner, rng):
    X = rng.standard_normal((600, 3))
    widths = []

    def kernel(A, B):
        widths.append(len(B))
        return gram("rbf", {"gamma": 0.1}, A, B)

    same = {"n_nonzero_coefs": 2, "max_iter": 3, "coordinates": 0.02}
    model = Learner(20, kernel=kernel, random_state=0, **same).fit(X)
    assert max(widths) <= 128
    named = Learner(20, kernel="rbf", gamma=0.1, random_state=0, **same).fit(X)
    np.testing.assert_array_equal(model.anchors_, named.anchors_)
    other = Learner(20, kernel="rbf", gamma=0.1, random_state=1, **same).fit(X)
    assert other.anchors_.tolist() != named.anchors_.tolist()


def test_pruned_bases_and_precomputed_kernels(rng):
    X = rng.standard_normal((80, 3))
    parameters = {"degree": 2, "gamma": 1.0, "coef0": 1.0}
    same = {"n_atoms": 6, "n_nonzero_coefs": 2, "max_iter": 3, "coordinates": 0.1}
    K = gram("poly", parameters, X)
    for base, rows in ((None, None), (X[10:50], np.arange(10, 50))):
        named = KernelKSVD(kernel="poly", base=base, random_state=0, **parameters, **same).fit(X)
        given_ = KernelKSVD(kernel="precomputed", base=rows, random_state=0, **same).fit(K)
        np.testing.assert_array_equal(X[given_.anchors_], named.anchors_)
        np.testing.assert_allclose(given_.objective_, named.objective_)
        assert base is None or set(given_.anchors_) <= set(rows)
        assert len(named.anchors_) < 10


@pytest.mark.parametrize("Learner", LEARNERS)
def test_pruning_refuses_what_exact_coordinates_refuse(Learner, rng):
    X = rng.standard_normal((20, 4))
    with pytest.raises(ValueError, match="not positive semi-definite"):
        Learner(kernel="sigmoid", gamma=3.0, coordinates=0.01).fit(X)
    with pytest.raises(ValueError, match="zero on all rows"):
        Learner(kernel="linear", coordinates=0.1).fit(np.zeros((5, 3)))
    with pytest.raises(ValueError, match="overflows"):
        Learner(kernel="poly", degree=300, gamma=10.0, coordinates=0.1).fit(100 * X)


@pytest.mark.parametrize("Learner", some(LEARNERS, LEARNERS[:1]))
def test_exact_coordinates_that_cannot_fit_are_refused_before_the_kernel_is_computed(
    Learner, rng, monkeypatch
):
    calls = []

    def kernel(A, B):
        calls.append(len(A) * len(B))
        return gram("rbf", {"gamma": 0.1}, A, B)

    monkeypatch.setattr("kernelatoms.features.memory.available_bytes", lambda: 300 * 2**20)
    X = rng.standard_normal((5000, 2))
    message = (
        r"Exact coordinates of 5000 rows need about 0\.373 GiB of memory, and 0\.293 GiB are "
        r"available\. Use coordinates=0\.01.*KernelLinearizer"
    )
    with pytest.raises(ValueError, match=message):
        Learner(4, kernel=kernel).fit(X)
    assert sum(calls) < 100 * len(X)  # the diagonal alone
    model = Learner(4, kernel=kernel, n_nonzero_coefs=2, max_iter=2, coordinates=0.01).fit(X)
    assert len(model.anchors_) < 200
    with pytest.raises(ValueError, match=r"still leave .*% of the kernel's trace need about"):
        Learner(4, kernel="rbf", gamma=1e6, coordinates=0.01).fit(
            np.repeat(X, 3, axis=0) / 2 + X[0]
        )


@pytest.mark.parametrize("Learner", LEARNERS)
def test_atoms_have_preimages(Learner, rng):
    X = rng.standard_normal((100, 5)) @ rng.standard_normal((5, 8))
    model = Learner(20, kernel="poly", degree=2, n_nonzero_coefs=20, random_state=0).fit(X)
    assert model.components_.shape == (20, 8)
    back = model.inverse_transform(model.transform(X))
    assert np.linalg.norm(back - X) < 0.5 * np.linalg.norm(X)


def circles(rng, n=300):
    angle, ring = rng.uniform(0, 2 * np.pi, n), np.arange(n) % 2
    return (1 + ring)[:, None] * np.column_stack([np.cos(angle), np.sin(angle)]), ring


@pytest.mark.parametrize("scheme", ["distributive", "collective"])
def test_circles_are_told_apart_under_a_kernel_only(scheme, rng):
    X, y = circles(rng)
    # In feature space a circle spans five dimensions, not the same five as the other circle.
    kernel = KernelKSVD(10, kernel="poly", degree=2, gamma=1, coef0=1, n_nonzero_coefs=5)
    model = ClassDictionaryClassifier(kernel, scheme=scheme, random_state=0).fit(X, y)
    # One code over both classes may borrow atoms of the other: in six dimensions it often does,
    # and 0.87 are right on average, with a standard deviation of 0.06.
    assert model.score(*circles(rng)) >= (1 if scheme == "distributive" else 0.55)
    linear = ClassDictionaryClassifier(KSVD(10, n_nonzero_coefs=2), random_state=0)
    assert linear.fit(X, y).score(*circles(rng)) < 0.7


def test_collective_residuals_by_hand(rng):
    X = rng.standard_normal((60, 5))
    y = np.arange(60) % 3
    for learner in (KSVD(6, n_nonzero_coefs=4), KernelKSVD(6, kernel="linear", n_nonzero_coefs=4)):
        model = ClassDictionaryClassifier(learner, scheme="collective", random_state=0).fit(X, y)
        parts = [
            d.components_ if isinstance(d, KSVD) else d.dual_coef_.T @ d.anchors_
            for d in model.dictionaries_
        ]
        D = np.concatenate(parts)
        codes = omp(LinearProblem(X, D), 4).to_dense()
        expected = np.stack(
            [((X - codes[:, 6 * c : 6 * c + 6] @ parts[c]) ** 2).sum(axis=1) for c in range(3)], 1
        )
        np.testing.assert_allclose(model._residuals(X), expected, atol=1e-8)


def test_classes_by_precomputed_kernel(rng):
    X, y = circles(rng, 120)
    Z, _ = circles(rng, 40)
    parameters = {"degree": 2, "gamma": 1.0, "coef0": 1.0}
    learner = KernelKSVD(8, kernel="precomputed", n_nonzero_coefs=3)
    given_ = ClassDictionaryClassifier(learner, random_state=0).fit(gram("poly", parameters, X), y)
    named = ClassDictionaryClassifier(
        KernelKSVD(8, kernel="poly", n_nonzero_coefs=3, **parameters), random_state=0
    ).fit(X, y)
    K = gram("poly", parameters, Z, X)
    np.testing.assert_array_equal(given_.predict(K), named.predict(Z))
    # Scores of two classes are a difference: the unknown k(z, z) cancels.
    scores = np.array([why.scores for why in named.explain(Z)])
    difference = scores[:, 1] - scores[:, 0]
    np.testing.assert_allclose(given_.decision_function(K), difference, atol=1e-7)
    collective = ClassDictionaryClassifier(learner, scheme="collective")
    with pytest.raises(ValueError, match="use scheme='distributive'"):
        collective.fit(gram("poly", parameters, X), y).predict(K)


def test_models_can_be_kept(rng, tmp_path):
    X, y = circles(rng, 80)
    model = ClassDictionaryClassifier(KernelMOD(6, n_nonzero_coefs=2), random_state=0).fit(X, y)
    again, _ = load_model(save_model(model, tmp_path / "m.skops"))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"coordinates": "fast"}, ValueError, "coordinates must be one of 'exact'"),
        ({"coordinates": 2.0}, ValueError, "coordinates must be above 0 and at most 1"),
        ({"coordinates": 5}, TypeError, "coordinates must be 'exact', the share"),
        (
            {"coordinates": KernelLinearizer(), "base": np.eye(4)},
            ValueError,
            "both choose the rows",
        ),
        ({"base": np.eye(3)}, ValueError, "base must have the 4 features"),
        ({"kernel": "sigmoid", "gamma": 3.0}, ValueError, "not positive semi-definite"),
        ({"kernel": "gauss"}, ValueError, "kernel must be one of"),
        ({"n_atoms": 0}, ValueError, "n_atoms must be at least 1"),
        ({"selection": "best"}, ValueError, "selection must be one of"),
        ({"max_iter": 0}, ValueError, "max_iter must be at least 1"),
    ],
)
@pytest.mark.parametrize("Learner", LEARNERS)
def test_bad_parameters_are_named(Learner, parameters, error, message, rng):
    with pytest.raises(error, match=message):
        Learner(**parameters).fit(rng.standard_normal((20, 4)))


@pytest.mark.parametrize("Learner", LEARNERS)
def test_bad_kernels_are_refused(Learner, rng):
    X = rng.standard_normal((20, 4))
    K = X @ X.T
    lopsided = K.copy()
    lopsided[3, 4] += 1
    with pytest.raises(ValueError, match="not symmetric"):
        Learner(kernel="precomputed").fit(lopsided)
    indefinite = np.eye(6) - 0.4
    with pytest.raises(ValueError, match="not positive semi-definite"):
        Learner(kernel="precomputed").fit(indefinite)
    with pytest.raises(ValueError, match="square matrix"):
        Learner(kernel="precomputed").fit(K[:, :7])
    fitted = Learner(5, kernel="precomputed").fit(K)
    with pytest.raises(ValueError, match="20 features"):
        fitted.transform(K[:, :7])
    with pytest.raises(ValueError, match="overflows"):
        Learner(kernel="poly", degree=300, gamma=10.0).fit(100 * X)
    with pytest.raises(ValueError, match="zero on all rows"):
        Learner(kernel="linear").fit(np.zeros((5, 3)))


@pytest.mark.parametrize("Learner", LEARNERS)
def test_repeated_rows_do_no_harm(Learner, rng):
    X = np.repeat(rng.standard_normal((6, 3)), 5, axis=0)
    model = Learner(6, kernel="rbf", n_nonzero_coefs=1, max_iter=10, random_state=0).fit(X)
    assert len(model.anchors_) <= 6
    assert np.isfinite(model.dual_coef_).all()
    assert model.objective_[-1] < 0.7 * len(X)
