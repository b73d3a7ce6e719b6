"""Parameters at their extremes: a finite result, or an error that names them; never nonsense."""

import warnings

import numpy as np
import pytest

from kernelatoms import (
    KSCDL,
    KSVD,
    MOD,
    KernelKSVD,
    KernelLinearizer,
    lasso_path,
    preimage,
    sparse_encode,
)

X = np.random.default_rng(0).standard_normal((30, 5))
D = X[:8]
VALUES = [
    2**70, -1, 0, 1.5, 1e9, 1e308, 1e-320, np.nan, np.inf, -np.inf, True, "3", None, [1],
    np.float64(2), np.int64(3),
]  # fmt: skip


def encode(**options):
    return lambda name, value: sparse_encode(X, D, **options, **{name: value})


def fit(kind, **options):
    return lambda name, value: kind(**(options | {name: value})).fit(X).transform(X)


CALLS = {
    "n_nonzero_coefs": [encode(), fit(KSVD, max_iter=2), fit(KernelKSVD, max_iter=2)],
    "max_residual": [encode()],
    "alpha": [encode(method="lasso"), fit(MOD, max_iter=2), fit(KSCDL, max_iter=2)],
    "gap_tol": [encode(method="lasso", alpha=0.1)],
    "mu": [encode(method="ridge")],
    "gamma": [encode(kernel=kernel) for kernel in ("rbf", "poly", "sigmoid", "laplacian")],
    "degree": [encode(kernel="poly")],
    "coef0": [encode(kernel="poly"), encode(kernel="sigmoid")],
    "n_atoms": [fit(KSVD, max_iter=2), fit(MOD, max_iter=2), fit(KSCDL, max_iter=2)],
    "tol": [fit(KSVD, max_iter=2), fit(KSCDL, max_iter=2)],
    "forget": [fit(MOD, max_iter=2)],
    "coordinates": [fit(KernelKSVD, max_iter=2)],
    "n_landmarks": [fit(KernelLinearizer)],
    "n_components": [fit(KernelLinearizer)],
    "transform_n_nonzero_coefs": [fit(KSCDL, n_atoms=4, max_iter=2)],
    "n_neighbors": [lambda name, value: preimage(np.ones(8), D, **{name: value}).rows],
    "n_alphas": [lambda name, value: lasso_path(X, D, **{name: value}).codes[-1]],
    "smallest": [lambda name, value: lasso_path(X, D, **{name: value}).codes[-1]],
}
# What the words of a refusal may speak of beside the argument itself.
ALSO = {"degree": "kernel", "coef0": "kernel", "gamma": "kernel", "mu": "codes", "n_alphas": "fit"}


@pytest.mark.parametrize("value", VALUES, ids=repr)
@pytest.mark.parametrize("name", CALLS)
def test_right_or_refused(name, value):
    for call in CALLS[name]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", RuntimeWarning)
            try:
                result = call(name, value)
            except (TypeError, ValueError, MemoryError) as refusal:
                words = str(refusal)
                assert name in words or ALSO.get(name, name) in words
                continue
        result = result if isinstance(result, np.ndarray) else result.toarray()
        assert np.isfinite(result).all()


@pytest.mark.parametrize("name", ["alpha", "gap_tol", "tol"])
def test_infinity_is_no_parameter(name):
    with pytest.raises(ValueError, match=f"{name} must be .* and finite, got inf"):
        CALLS[name][0](name, np.inf)


def test_any_residual_is_allowed():
    codes = sparse_encode(X, D, max_residual=np.inf, absolute=True)
    assert codes.nnz == 0
