"""sparse_encode: one function, any kernel."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel

from kernelatoms import KSVD, KernelKSVD, KernelLinearizer, sparse_encode


@pytest.fixture
def signals(rng):
    return rng.standard_normal((25, 10))


@pytest.fixture
def atoms(rng):
    return rng.standard_normal((40, 10))


def test_output_is_csr_or_dense(signals, atoms):
    codes = sparse_encode(signals, atoms, n_nonzero_coefs=3)
    assert codes.format == "csr"
    assert codes.shape == (25, 40)
    assert (np.diff(codes.indptr) == 3).all()
    dense = sparse_encode(signals, atoms, n_nonzero_coefs=3, sparse_output=False)
    np.testing.assert_array_equal(codes.toarray(), dense)


def test_defaults(signals, atoms):
    assert (np.diff(sparse_encode(signals, atoms).indptr) == 1).all()
    codes = sparse_encode(signals, atoms, max_residual=0.3)
    share = np.linalg.norm(signals - codes @ atoms, axis=1) / np.linalg.norm(signals, axis=1)
    assert (share <= 0.3).all()


def test_linear_kernel_is_the_linear_method(signals, atoms):
    linear = sparse_encode(signals, atoms, n_nonzero_coefs=3, sparse_output=False)
    poly = {"degree": 1, "gamma": 1, "coef0": 0}
    kernel = sparse_encode(
        signals, atoms, n_nonzero_coefs=3, kernel="poly", kernel_params=poly, sparse_output=False
    )
    mine = sparse_encode(
        signals, atoms, n_nonzero_coefs=3, kernel=lambda X, Y: X @ Y.T, sparse_output=False
    )
    np.testing.assert_allclose(kernel, linear, atol=1e-10)
    np.testing.assert_allclose(mine, linear, atol=1e-10)


@pytest.mark.parametrize("selection", ["omp", "ols"])
def test_kernel_omp_is_omp_on_exact_virtual_samples(signals, atoms, selection):
    everything = np.concatenate([signals, atoms])
    space = KernelLinearizer("rbf", gamma=0.05, n_landmarks=65).fit(everything)
    options = {"n_nonzero_coefs": 4, "selection": selection, "sparse_output": False}
    virtual = sparse_encode(space.transform(signals), space.transform(atoms), **options)
    kernel = sparse_encode(signals, atoms, kernel="rbf", kernel_params={"gamma": 0.05}, **options)
    given = sparse_encode(
        rbf_kernel(signals, atoms, 0.05), rbf_kernel(atoms, gamma=0.05), kernel="precomputed",
        **options,
    )  # fmt: skip
    np.testing.assert_allclose(kernel, virtual, atol=1e-5)
    np.testing.assert_allclose(given, kernel, atol=1e-9)


def test_candidates_limit_the_atoms(signals, atoms):
    lists = np.tile([3, 9, -1, 20], (25, 1))
    codes = sparse_encode(signals, atoms, n_nonzero_coefs=3, candidates=lists)
    assert set(np.unique(codes.indices)) <= {3, 9, 20}


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            {"method": "magic"},
            ValueError,
            "method must be one of 'omp', 'lasso', 'ridge', 'threshold', 'ksc', 'fksc', got",
        ),
        ({"selection": "best"}, ValueError, "selection must be one of 'omp', 'ols'"),
        ({"n_nonzero_coefs": 0}, ValueError, "n_nonzero_coefs must be at least 1"),
        ({"n_nonzero_coefs": True}, TypeError, "n_nonzero_coefs must be a whole number"),
        ({"max_residual": 1.5}, ValueError, "max_residual must be at least 0 and at most 1"),
        ({"max_residual": float("nan")}, ValueError, "max_residual must be"),
        ({"candidates": np.zeros((3, 2), int)}, ValueError, "candidates must be whole numbers"),
        ({"candidates": np.zeros((25, 2))}, ValueError, "candidates must be whole numbers"),
        ({"candidates": np.full((25, 2), 40)}, ValueError, "candidates must be atoms 0..39"),
        ({"candidates": np.zeros((25, 0), int)}, ValueError, "at least one atom"),
        ({"kernel": "precomputed"}, ValueError, r"expected shape \(10, 10\), got \(40, 10\)"),
        ({"kernel": "gauss"}, ValueError, "kernel must be one of"),
        ({"kernel_params": {"gamma": 1}}, ValueError, "kernel 'linear' does not take"),
        ({"kernel": "rbf", "kernel_params": {"gamma": -1}}, ValueError, "gamma must be above 0"),
        ({"kernel": "sigmoid", "kernel_params": {"coef0": -9}}, ValueError, "on the atoms is not"),
    ],
)
def test_bad_arguments_are_named(arguments, error, message, signals, atoms):
    with pytest.raises(error, match=message):
        sparse_encode(signals, atoms, **arguments)


def test_bad_arrays_are_refused(signals, atoms):
    with pytest.raises(ValueError, match="dictionary must have one column per feature: 10"):
        sparse_encode(signals, atoms[:, :4])
    with pytest.raises(ValueError, match="dictionary contains NaN"):
        sparse_encode(signals, np.full((3, 10), np.nan))
    with pytest.raises(ValueError, match="X contains infinity"):
        sparse_encode(np.full((3, 10), np.inf), atoms)
    with pytest.raises(ValueError, match="2D array"):
        sparse_encode(signals[0], atoms)
    with pytest.raises(ValueError, match="max_residual needs k"):
        sparse_encode(signals @ atoms.T, atoms @ atoms.T, kernel="precomputed", max_residual=0.1)


def test_impossible_gram_matrices_are_refused(signals, atoms):
    corr, gram = signals @ atoms.T, atoms @ atoms.T
    for bad, message in (
        (-gram, "is negative"),
        (gram + np.triu(np.ones_like(gram), 1), "is not symmetric"),
        (gram - 1.5 * np.diag(np.diagonal(gram)) / 2, "not positive semi-definite"),
    ):
        with pytest.raises(ValueError, match=message):
            sparse_encode(corr, bad, n_nonzero_coefs=2, kernel="precomputed")


def test_candidates_may_be_unsigned(signals, atoms):
    lists = np.tile([1, 5, 2], (25, 1))
    codes = sparse_encode(signals, atoms, n_nonzero_coefs=2, candidates=lists)
    same = sparse_encode(signals, atoms, n_nonzero_coefs=2, candidates=lists.astype(np.uint8))
    np.testing.assert_array_equal(codes.toarray(), same.toarray())


@pytest.mark.parametrize("scale", [1e-30, 1e30, 1e100])
def test_ols_does_not_care_for_the_atoms_scale(signals, atoms, scale):
    options = {"n_nonzero_coefs": 3, "selection": "ols", "sparse_output": False}
    codes = sparse_encode(signals, atoms, **options)
    scaled = sparse_encode(signals, scale * atoms, **options)
    np.testing.assert_allclose(scale * scaled, codes, atol=1e-9)


def test_overflowing_atoms_are_refused(signals, atoms):
    with pytest.raises(ValueError, match="atoms whose squared norm overflows float32"):
        sparse_encode(signals.astype(np.float32), (atoms * 1e25).astype(np.float32))


def test_too_many_nonzeros_are_clipped_with_one_warning(signals, atoms):
    with pytest.warns(UserWarning, match="n_nonzero_coefs=99 is more than") as warned:
        codes = sparse_encode(signals, atoms, n_nonzero_coefs=99)
    assert len(warned) == 1
    np.testing.assert_allclose(codes @ atoms, signals, atol=1e-8)


@pytest.mark.parametrize(
    "learner",
    [
        KSVD(12, n_nonzero_coefs=3, max_iter=2, random_state=0),
        KernelKSVD(12, gamma=0.1, n_nonzero_coefs=3, max_iter=2, random_state=0),
    ],
    ids=["linear", "kernel"],
)
def test_a_fitted_learner_is_a_dictionary(rng, learner):
    X = rng.standard_normal((60, 8))
    learner.fit(X)
    same = sparse_encode(X, learner, n_nonzero_coefs=3)
    np.testing.assert_allclose(same.toarray(), learner.transform(X).toarray(), atol=1e-12)
    codes, gap = sparse_encode(X, learner, method="lasso", alpha=0.05, return_gap=True)
    assert (gap <= 1e-6 * learner._problem(X).energy(0, 60)).all()
    assert codes.nnz > 0
    assert sparse_encode(X.astype("f4"), learner, method="lasso", alpha=0.05).dtype == np.float32
    with pytest.raises(ValueError, match="Leave kernel and its parameters"):
        sparse_encode(X, learner, n_nonzero_coefs=3, kernel="rbf")
    with pytest.raises(ValueError, match="8 features"):
        sparse_encode(X[:, :5], learner, n_nonzero_coefs=3)
    with pytest.raises(NotFittedError):
        sparse_encode(X, clone(learner), n_nonzero_coefs=3)
