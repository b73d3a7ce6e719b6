"""KernelLinearizer: exact with all rows, the paper's formulas otherwise, clear when misused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_digits, make_blobs
from sklearn.decomposition import KernelPCA
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.utils import get_tags

import oracles.linearize
from kernelatoms import KernelLinearizer, nystrom_error
from kernelatoms.features.coordinates import Eigensolver, linearize
from kernelatoms.features.samplers import SAMPLERS

KERNELS = {
    "linear": {},
    "poly": {"degree": 2, "gamma": 1, "coef0": 0},
    "rbf": {"gamma": 0.3},
    "laplacian": {"gamma": 0.2},
    "cosine": {},
}


@given(
    seed=st.integers(0, 2**31),
    n=st.integers(2, 60),
    n_features=st.integers(1, 8),
    kernel=st.sampled_from(sorted(KERNELS)),
)
def test_all_rows_as_landmarks_are_exact(seed, n, n_features, kernel):
    X = np.random.default_rng(seed).standard_normal((n, n_features))
    model = KernelLinearizer(kernel, n_landmarks=n, **KERNELS[kernel]).fit(X)
    K = pairwise_kernels(X, metric=kernel, **KERNELS[kernel])
    F = model.transform(X)
    np.testing.assert_allclose(F @ F.T, K, atol=1e-6 * np.abs(K).max())
    assert nystrom_error(model, X) < 1e-6


@given(seed=st.integers(0, 2**31), c=st.integers(2, 30), share=st.floats(0.1, 1))
def test_virtual_samples_are_the_papers(seed, c, share):
    X = np.random.default_rng(seed).standard_normal((40, 6))
    k = max(1, int(share * c))
    model = KernelLinearizer("rbf", gamma=0.2, n_landmarks=c, n_components=k, random_state=0)
    F = model.fit_transform(X)
    K_xr = pairwise_kernels(X, model.landmarks_, metric="rbf", gamma=0.2)
    K_rr = pairwise_kernels(model.landmarks_, metric="rbf", gamma=0.2)
    expected = oracles.linearize.virtual_samples(K_xr, K_rr, model.n_components_)
    np.testing.assert_allclose(F @ F.T, expected @ expected.T, atol=1e-7)
    K = pairwise_kernels(X, metric="rbf", gamma=0.2)
    assert nystrom_error(model, X) == pytest.approx(
        oracles.linearize.nystroem_error(K, expected), abs=1e-7
    )


@pytest.mark.parametrize("sampling", SAMPLERS)
def test_more_landmarks_lower_the_error(sampling, rng):
    X = rng.standard_normal((300, 3))
    errors = [
        nystrom_error(
            KernelLinearizer("rbf", n_landmarks=c, sampling=sampling, random_state=0).fit(X), X
        )
        for c in (5, 30, 120)
    ]
    assert errors[0] > errors[1] > errors[2]


def test_kmeans_beats_uniform(rng):
    X = np.concatenate(
        [rng.standard_normal((100, 5)) + 4 * rng.standard_normal(5) for _ in "12345"]
    )
    means = {
        sampling: np.mean(
            [
                nystrom_error(
                    KernelLinearizer(n_landmarks=25, sampling=sampling, random_state=s).fit(X), X
                )
                for s in range(8)
            ]
        )
        for sampling in ("kmeans", "uniform")
    }
    assert means["kmeans"] < means["uniform"]


def test_batch_is_one_by_one_and_blocks_do_not_show(rng):
    X = rng.standard_normal((5000, 4))
    model = KernelLinearizer(n_landmarks=30, random_state=0).fit(X)
    F = model.transform(X)
    np.testing.assert_allclose(model.transform(X[17:18]), F[17:18], atol=1e-12)


def test_given_landmarks_are_used(rng):
    X = rng.standard_normal((50, 4))
    model = KernelLinearizer(gamma=0.25, sampling=X[:7]).fit(X)
    np.testing.assert_array_equal(model.landmarks_, X[:7])
    F = model.transform(X[:7])
    np.testing.assert_allclose(F @ F.T, pairwise_kernels(X[:7], metric="rbf"), atol=1e-9)


@pytest.mark.parametrize("sampling", ["uniform", "diagonal", "column-norm", "rpcholesky"])
def test_precomputed_is_the_same_map(sampling, rng):
    X, new = rng.standard_normal((40, 4)), rng.standard_normal((9, 4))
    rows = KernelLinearizer("rbf", gamma=0.5, n_landmarks=15, sampling=sampling, random_state=0)
    given = KernelLinearizer("precomputed", n_landmarks=15, sampling=sampling, random_state=0)
    K = pairwise_kernels(X, metric="rbf", gamma=0.5)
    rows.fit(X)
    given.fit(K)
    np.testing.assert_array_equal(X[given.landmarks_], rows.landmarks_)
    K_new = pairwise_kernels(new, X, metric="rbf", gamma=0.5)
    np.testing.assert_allclose(given.transform(K_new), rows.transform(new), atol=1e-8)
    assert nystrom_error(given, K) == pytest.approx(nystrom_error(rows, X), rel=1e-6)


def test_precomputed_landmarks_by_number(rng):
    X = rng.standard_normal((30, 4))
    K = pairwise_kernels(X, metric="rbf")
    given = KernelLinearizer("precomputed", sampling=[3, 8, 20]).fit(K)
    rows = KernelLinearizer("rbf", gamma=0.25, sampling=X[[3, 8, 20]]).fit(X)
    np.testing.assert_allclose(given.transform(K), rows.transform(X), atol=1e-9)


def test_callable_kernel(rng):
    X = rng.standard_normal((30, 4))
    mine = KernelLinearizer(
        lambda A, B, c: (A @ B.T + c) ** 2, kernel_params={"c": 1}, n_landmarks=30
    ).fit(X)
    named = KernelLinearizer("poly", degree=2, gamma=1, coef0=1, n_landmarks=30).fit(X)
    F, G = mine.transform(X), named.transform(X)
    np.testing.assert_allclose(F @ F.T, G @ G.T, atol=1e-8)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_randomized_solver_is_near_the_full_one(dtype, rng):
    X = (rng.standard_normal((300, 20)) * 0.7 ** np.arange(20)).astype(dtype)
    options = {"n_landmarks": 200, "n_components": 20, "random_state": 0}
    full = KernelLinearizer("rbf", solver="full", **options).fit(X)
    fast = KernelLinearizer("rbf", solver="randomized", **options).fit(X)
    rounding = 1e-6 if dtype is np.float64 else 1e-5
    np.testing.assert_allclose(fast.eigenvalues_, full.eigenvalues_, rtol=rounding)
    assert nystrom_error(fast, X) < 1.0001 * nystrom_error(full, X)
    rough = KernelLinearizer("rbf", solver="randomized", n_oversamples=0, n_passes=2, **options)
    assert (rough.fit(X).eigenvalues_[-5:] < (1 - 1e-3) * full.eigenvalues_[-5:]).all()


def is_randomized(n, k, *solver, monkeypatch):
    """Tell whether the randomised solver is asked for k of n eigenpairs."""
    monkeypatch.setattr(
        "kernelatoms.features.coordinates.leading_eigenpairs",
        lambda W, k, *_, **__: (np.ones(k), np.eye(n)[:, :k], 0.0),
    )
    diagonal = np.full(n, 2.0)
    map_ = linearize(np.eye(n), np.diag(diagonal), k, Eigensolver(*solver), np.random.RandomState())
    return map_.eigenvalues[0] == 1


@pytest.mark.parametrize(
    ("n", "k", "expected"),
    [(1000, 10, True), (999, 10, False), (1000, 135, True), (1000, 136, False)],
)
def test_auto_is_randomized_for_many_landmarks_and_few_components(n, k, expected, monkeypatch):
    assert is_randomized(n, k, "auto", 20, 16, monkeypatch=monkeypatch) == expected


@pytest.mark.parametrize(("n", "expected"), [(30, False), (31, True)])
def test_a_basis_as_large_as_the_matrix_is_no_basis(n, expected, monkeypatch):
    assert is_randomized(n, 10, "randomized", 0, 15, monkeypatch=monkeypatch) == expected
    assert not is_randomized(n, 10, "full", 0, 15, monkeypatch=monkeypatch)


def test_the_randomized_solver_finds_kernels_that_are_none(rng):
    X = rng.standard_normal((200, 4))
    model = KernelLinearizer("sigmoid", gamma=0.5, solver="randomized", n_landmarks=200)
    with pytest.raises(ValueError, match="not positive semi-definite: on the landmarks its small"):
        model.set_params(n_components=5, random_state=0).fit(X)


def test_duplicated_landmarks_give_a_map_of_their_rank(rng):
    X = np.repeat(rng.standard_normal((10, 4)), 30, axis=0)
    model = KernelLinearizer(
        "rbf", n_landmarks=300, n_components=40, solver="randomized", random_state=0
    ).fit(X)
    assert model.n_components_ == 10
    assert nystrom_error(model, X) < 1e-10


@pytest.mark.parametrize("name", ["n_oversamples", "n_passes"])
def test_a_kept_solver_that_nobody_could_have_asked_for_is_refused(name, rng):
    model = KernelLinearizer().fit(rng.standard_normal((20, 4)))
    setattr(model, name, -1)
    with pytest.raises(ValueError, match=f"{name} must be at least"):
        model._check_state()


def test_float32_is_near_float64(rng):
    X = rng.standard_normal((80, 5))
    model = KernelLinearizer("poly", degree=2, n_landmarks=40, n_components=10, random_state=0)
    single = model.fit_transform(X.astype(np.float32))
    double = model.fit_transform(X)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single @ single.T, double @ double.T, rtol=1e-2, atol=1e-2)


def test_preimages_come_back(rng):
    angle = rng.random(400) * 2 * np.pi
    X = np.stack([np.cos(angle), np.sin(angle), angle / 6], axis=1)
    model = KernelLinearizer("rbf", gamma=1, n_landmarks=150, random_state=0).fit(X[:300])
    back = model.inverse_transform(model.transform(X[300:]))
    assert np.abs(back - X[300:]).max() < 0.05
    assert model.get_feature_names_out()[0] == "kernellinearizer0"


def kernel_pca_error(train, test, kernel, gamma, n_components, alphas):
    """Return scikit-learn's relative error there and back, at its best alpha for these rows."""
    errors = []
    for alpha in alphas:
        pca = KernelPCA(
            n_components, kernel=kernel, gamma=gamma, fit_inverse_transform=True, alpha=alpha
        ).fit(train)
        errors.append(relative_error(pca, test))
    return min(errors)


def relative_error(model, rows):
    back = model.inverse_transform(model.transform(rows))
    return np.linalg.norm(back - rows) / np.linalg.norm(rows)


@pytest.mark.parametrize("gamma", [0.01, 0.1, None])
def test_rows_come_back_as_in_scikit_learns_own_test(gamma):
    # test_kernel_pca_inverse_transform_reconstruction, at further gammas: its alpha is 1e-3.
    X, _ = make_blobs(n_samples=100, n_features=4, random_state=0)
    model = KernelLinearizer("rbf", gamma=gamma, n_components=20).fit(X)
    assert relative_error(model, X) <= kernel_pca_error(X, X, "rbf", gamma, 20, [1e-3])
    assert relative_error(model, X) < 1e-1


@pytest.mark.parametrize("gamma", [0.01, 0.1, None, 0.5, 1])
def test_new_blobs_come_back_as_from_kernel_pca(gamma):
    X, _ = make_blobs(n_samples=300, n_features=4, random_state=0)
    model = KernelLinearizer("rbf", gamma=gamma, n_components=20).fit(X[:100])
    alphas = [1e-6, 1e-4, 1e-3, 1e-2, 0.1, 1]
    assert relative_error(model, X[100:]) <= kernel_pca_error(
        X[:100], X[100:], "rbf", gamma, 20, alphas
    )


def slowly(*case):
    return pytest.param(*case, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    ("kernel", "gamma", "n_components"),
    [("rbf", 0.05, 10), ("poly", None, 10), ("cosine", None, 10)]
    + [slowly("rbf", gamma, n) for gamma in (0.01, 0.05, 0.2) for n in (10, 50)]
    + [slowly("poly", gamma, n) for gamma in (None, 0.1) for n in (10, 50)]
    + [slowly(kernel, None, n) for kernel in ("linear", "cosine") for n in (10, 50)],
)
def test_new_digits_come_back_as_from_kernel_pca(kernel, gamma, n_components):
    X = load_digits().data / 16
    X = X[np.random.default_rng(0).permutation(len(X))]
    train, test = X[:250], X[1300:]
    # Kernel PCA sets the mean aside; here it is the first coordinate.
    model = KernelLinearizer(kernel, gamma=gamma, n_components=n_components + 1).fit(train)
    alphas = [1e-4, 1e-2, 1] if kernel != "linear" else [1e-2, 1]
    best = kernel_pca_error(train, test, kernel, gamma, n_components, alphas)
    assert relative_error(model, test) <= best


def test_rows_that_are_no_landmarks_help_pre_images():
    X = load_digits().data / 16
    model = KernelLinearizer("rbf", gamma=0.05, n_landmarks=60, random_state=0).fit(X[:400])
    assert len(model.preimage_rows_) == 340
    error = relative_error(model, X[1300:])
    model.preimage_rows_ = model.preimage_rows_[:0]
    model._check_state()
    assert error < relative_error(model, X[1300:])


def test_the_linear_pre_image_is_kept_for_sums(rng):
    X = rng.standard_normal((200, 4))
    model = KernelLinearizer("rbf", gamma=0.1, random_state=0).fit(X)
    F = model.transform(X)
    back = F @ model.preimage_coef_
    assert np.linalg.norm(back - X) < 0.05 * np.linalg.norm(X)
    assert model.inverse_transform(F.astype(np.float32)).dtype == np.float32


def test_linear_preimage_is_exact(rng):
    X = rng.standard_normal((60, 5))
    model = KernelLinearizer("linear", n_landmarks=30, random_state=0).fit(X)
    np.testing.assert_allclose(model.inverse_transform(model.transform(X)), X, atol=1e-4)


def test_float32_rows_of_a_float64_map_are_as_good(rng):
    X = rng.standard_normal((200, 5))
    model = KernelLinearizer("rbf", gamma=0.01, random_state=0).fit(X)
    single = model.transform(X.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(
        single @ single.T, model.transform(X) @ model.transform(X).T, atol=1e-4
    )


class TestBadInput:
    @pytest.mark.parametrize(
        ("parameters", "error", "message"),
        [
            ({"n_landmarks": 0}, ValueError, "n_landmarks must be at least 1, got 0"),
            ({"n_landmarks": -0.1}, ValueError, "n_landmarks must be above 0 and at most 1"),
            ({"n_landmarks": 1.5}, ValueError, "n_landmarks must be above 0 and at most 1"),
            ({"n_components": 0}, ValueError, "n_components must be at least 1"),
            ({"sampling": "best"}, ValueError, "sampling must be one of 'uniform'"),
            ({"sampling": np.ones((3, 9))}, ValueError, "landmarks of 9 features, but X has 4"),
            ({"solver": "quick"}, ValueError, "solver must be one of 'auto'"),
            ({"n_oversamples": -1}, ValueError, "n_oversamples must be at least 0, got -1"),
            ({"n_oversamples": 2.5}, TypeError, "n_oversamples must be a whole number, got 2.5"),
            ({"n_passes": 0}, ValueError, "n_passes must be at least 1, got 0"),
            ({"n_passes": "two"}, TypeError, "n_passes must be a whole number, got 'two'"),
            ({"kernel": "gauss"}, ValueError, "kernel must be one of"),
            ({"gamma": -1}, ValueError, "gamma must be above 0"),
            ({"kernel": "poly", "degree": "a"}, ValueError, "degree must be a finite number"),
            ({"kernel": [1]}, ValueError, "kernel must be one of"),
            ({"kernel_params": "abc"}, TypeError, "kernel_params must be a dictionary"),
            ({"sampling": None}, ValueError, "sampling must be one of 'uniform'"),
            ({"kernel": "sigmoid", "gamma": 5}, ValueError, "not positive semi-definite"),
            ({"kernel": "poly", "degree": 9000}, ValueError, "kernel overflows"),
        ],
    )
    @pytest.mark.filterwarnings("ignore:overflow")
    def test_bad_parameters_are_named(self, parameters, error, message, rng):
        with pytest.raises(error, match=message):
            KernelLinearizer(**parameters).fit(3 * rng.standard_normal((30, 4)))

    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"n_landmarks": 31}, r"n_landmarks=31 is more than there are rows \(30\)"),
            ({"n_landmarks": 10, "n_components": 11}, "n_components=11 is more than"),
        ],
    )
    def test_too_much_is_clipped_with_one_warning(self, parameters, message, rng):
        with pytest.warns(UserWarning, match=message) as warned:
            KernelLinearizer(**parameters).fit(rng.standard_normal((30, 4)))
        assert len(warned) == 1

    def test_precomputed_matrices_are_checked(self, rng):
        X = rng.standard_normal((10, 3))
        K = pairwise_kernels(X, metric="rbf")
        fit = KernelLinearizer("precomputed").fit
        with pytest.raises(ValueError, match=r"square matrix k\(train, train\), got shape"):
            fit(K[:, :7])
        lopsided = K.copy()
        lopsided[2, 3] += 0.5
        with pytest.raises(ValueError, match="not symmetric"):
            fit(lopsided)
        with pytest.raises(ValueError, match=r"K\[0, 0\] = -1 is negative"):
            fit(-K)
        with pytest.raises(ValueError, match="larger than sqrt"):
            fit(np.ones((10, 10)) + 2 * (1 - np.eye(10)))
        indefinite = 2 * np.eye(3) - np.ones((3, 3)) * 0.99
        np.fill_diagonal(indefinite, 1.0)
        with pytest.raises(ValueError, match="not positive semi-definite"):
            KernelLinearizer("precomputed").fit(indefinite)

    def test_wrong_test_kernel_shape_says_what_is_right(self, rng):
        K = pairwise_kernels(rng.standard_normal((10, 3)), metric="rbf")
        model = KernelLinearizer("precomputed").fit(K)
        with pytest.raises(ValueError, match=r"k\(new, train\).*10 training rows, got shape"):
            model.transform(K[:4, :9])
        with pytest.raises(ValueError, match="inverse_transform needs the training rows"):
            model.inverse_transform(np.ones((2, model.n_components_)))

    def test_landmarks_that_cannot_fit_are_refused(self, rng, monkeypatch):
        monkeypatch.setattr("kernelatoms.features.memory.available_bytes", lambda: 200 * 2**20)
        X = rng.standard_normal((4000, 2))
        with pytest.raises(ValueError, match="The kernel matrix of 4000 landmarks and its factors"):
            KernelLinearizer(n_landmarks=4000).fit(X)
        KernelLinearizer(n_landmarks=10).fit(X)

    def test_nan_and_wrong_columns(self, rng):
        X = rng.standard_normal((10, 3))
        model = KernelLinearizer().fit(X)
        with pytest.raises(ValueError, match="NaN"):
            KernelLinearizer().fit(np.full((4, 3), np.nan))
        with pytest.raises(ValueError, match="2 features"):
            model.transform(X[:, :2])
        with pytest.raises(ValueError, match="F must have n_components_"):
            model.inverse_transform(np.ones((2, 99)))

    def test_overflow_on_new_rows_is_said(self, rng):
        X = rng.standard_normal((30, 4)).astype(np.float32)
        model = KernelLinearizer("poly", degree=4, gamma=1).fit(X)
        with pytest.raises(ValueError, match="kernel overflows on these rows"):
            model.transform(X * np.float32(1e12))
        with pytest.raises(TypeError, match="linearizer must be a fitted KernelLinearizer"):
            nystrom_error("map", X)

    def test_a_zero_kernel_has_nothing_to_linearize(self):
        with pytest.raises(ValueError, match="zero on all landmarks"):
            KernelLinearizer("linear").fit(np.zeros((5, 3)))


def test_float32_rows_keep_the_rank_of_float64_ones(rng):
    """Their kernel matrix is factored in float64: rounding is a share of its largest eigenvalue."""
    X = rng.random((200, 30)) + 1
    double = KernelLinearizer(gamma=0.035, n_landmarks=200, random_state=0).fit(X)
    single = KernelLinearizer(gamma=0.035, n_landmarks=200, random_state=0).fit(
        X.astype(np.float32)
    )
    # In float32 alone the smallest would have to be above 200 eps of the largest.
    assert double.eigenvalues_[-1] < 200 * np.finfo(np.float32).eps * double.eigenvalues_[0]
    assert single.n_components_ == double.n_components_ == 200
    assert single.dual_coef_.dtype == single.transform(X.astype(np.float32)).dtype == np.float32
    one, other = (m.transform(X.astype(np.float32)).astype(float) for m in (single, double))
    np.testing.assert_allclose(one @ one.T, other @ other.T, atol=1e-4)


def test_eigenvalues_that_float32_kernel_values_cannot_tell_from_0_are_dropped():
    n, eps = 4, np.finfo(np.float32).eps
    edge = 1000 * eps * 2  # a thousand eps of the largest k(x, x), times the root of n
    W = np.diag([1.0, 0.5, 1.01 * edge, 0.99 * edge])
    solver = Eigensolver("full", 20, 16)
    wide = linearize(np.eye(n, dtype=np.float32), W, n, solver, np.random.RandomState(0))
    assert len(wide.eigenvalues) == 3
    assert wide.coef.dtype == np.float32
    assert len(linearize(np.eye(n), W, n, solver, np.random.RandomState(0)).eigenvalues) == 4


@given(seed=st.integers(0, 2**31), given=st.sampled_from(["float32", "float64"]))
def test_a_type_that_is_asked_for_is_that_of_virtual_samples(seed, given):
    X = np.random.default_rng(seed).standard_normal((40, 5)).astype(given)
    plain = KernelLinearizer(n_landmarks=12, random_state=0).fit(X.astype(np.float64))
    expected = plain.transform(X.astype(np.float64))
    for asked, tolerance in (("float32", 1e-4), (np.float64, 1e-12)):
        own = KernelLinearizer(n_landmarks=12, dtype=asked, random_state=0).fit(X)
        F = own.transform(X)
        assert F.dtype == asked
        np.testing.assert_allclose(F @ F.T, expected @ expected.T, atol=tolerance)
        assert get_tags(own).transformer_tags.preserves_dtype == []


@pytest.mark.parametrize(("gamma", "inside"), [(5.0, np.float32), (0.02, np.float64)])
def test_single_precision_costs_no_coordinate(gamma, inside, rng):
    """Kernel values are float32 only where they tell all coordinates of float64 apart."""
    X = rng.standard_normal((200, 3))
    plain = KernelLinearizer(gamma=gamma, n_landmarks=30, random_state=0).fit(X)
    single = KernelLinearizer(gamma=gamma, n_landmarks=30, dtype="float32", random_state=0).fit(X)
    assert single.landmarks_.dtype == single.dual_coef_.dtype == inside
    assert single.n_components_ == plain.n_components_
    assert single.transform(X).dtype == np.float32
    np.testing.assert_allclose(single.transform(X), plain.transform(X), atol=1e-4)
    np.testing.assert_allclose(
        single.inverse_transform(single.transform(X)), plain.inverse_transform(plain.transform(X)),
        atol=0.01,
    )  # fmt: skip


def test_kernel_values_that_are_no_float32_numbers_stay_float64(rng):
    X = 1e15 * rng.standard_normal((40, 4))
    how = {"degree": 3, "gamma": 1e-9, "coef0": 0, "n_landmarks": 3, "random_state": 0}
    plain = KernelLinearizer("poly", **how).fit(X)
    single = KernelLinearizer("poly", dtype="float32", **how).fit(X)
    assert single.landmarks_.dtype == np.float64
    np.testing.assert_allclose(single.transform(X), plain.transform(X), rtol=1e-5, atol=1e-5 * 1e31)


@pytest.mark.parametrize("dtype", ["half", np.float16, int, "no type", object()])
def test_other_types_are_refused(dtype):
    with pytest.raises(ValueError, match="dtype must be None, 'float32' or 'float64', got"):
        KernelLinearizer(dtype=dtype).fit(np.eye(3))


def test_values_too_large_for_a_type_are_refused():
    X = np.eye(4)
    model = KernelLinearizer(dtype="float32").fit(X)
    for act in (model.fit, model.transform):
        with pytest.raises(ValueError, match=r"X holds values up to 1e\+39, too large for dtype="):
            act(X * 1e39)


def test_missing_values_stay_missing_in_another_type():
    X = np.random.default_rng(0).standard_normal((30, 4))
    model = KernelLinearizer(dtype="float32", random_state=0).fit(X)
    X[3, 1] = np.nan
    plain = KernelLinearizer(random_state=0).fit(model.landmarks_)
    F, expected = model.transform(X), plain.transform(X.astype(np.float32))
    np.testing.assert_allclose(F @ F.T, expected @ expected.T, atol=1e-5)
