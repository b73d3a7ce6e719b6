"""Signals of any size: codes of c x are c times those of x, or refused in words."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelatoms import KSVD, MOD, lasso_path, residual_norms, sparse_encode
from kernelatoms.coding import LinearProblem, lasso, omp
from kernelatoms.coding.lasso import fksc, ksc

LISTS = np.tile(np.arange(15, dtype=np.int32), (6, 1))

METHODS = {
    "omp": {"n_nonzero_coefs": 3},
    "omp to a residual": {"max_residual": 0.3},
    "omp to a length": {"max_residual": 0.4, "absolute": True},
    "omp of candidates": {"max_residual": 0.5, "candidates": LISTS},
    "ols": {"n_nonzero_coefs": 3, "selection": "ols"},
    "ols to a residual": {"max_residual": 0.3, "selection": "ols"},
    "positive": {"max_residual": 0.5, "positive": True},
    "linear": {"max_residual": 0.3, "kernel": "linear"},
    "missing": {"max_residual": 0.3},
    "missing to a length": {"max_residual": 0.4, "absolute": True},
    "lasso": {"method": "lasso", "alpha": 0.3},
    "positive lasso": {"method": "lasso", "alpha": 0.3, "positive": True},
    "lasso of candidates": {"method": "lasso", "alpha": 0.3, "candidates": LISTS},
    "linear lasso": {"method": "lasso", "alpha": 0.3, "kernel": "linear"},
    "ksc": {"method": "ksc", "alpha": 0.3},
    "fksc": {"method": "fksc", "alpha": 0.3},
    "ridge": {"method": "ridge", "mu": 0.1},
    "threshold": {"method": "threshold", "alpha": 0.3},
}


def draw(seed, dtype, missing=False):
    rng = np.random.default_rng(seed)
    D = rng.standard_normal((20, 8))
    X = rng.standard_normal((6, 8))
    if missing:
        X[:, :2] = np.nan
    return X.astype(dtype), (D / np.linalg.norm(D, axis=1, keepdims=True)).astype(dtype)


def scaled(options, exponent):
    """Return the options for signals at 2^exponent."""
    options = dict(options)
    if "alpha" in options:
        options["alpha"] = float(np.ldexp(options["alpha"], exponent))
    if options.get("absolute"):
        options["max_residual"] = float(np.ldexp(options["max_residual"], exponent))
    return options


def dense(codes):
    return codes.toarray() if hasattr(codes, "toarray") else codes


@pytest.mark.parametrize("method", METHODS)
@given(
    seed=st.integers(0, 2**32 - 1),
    dtype=st.sampled_from([np.float32, np.float64]),
    share=st.floats(0.0, 1.0),
)
def test_scale_does_not_matter(method, seed, dtype, share):
    """From the smallest numbers that have all digits on, up to squares that float64 holds."""
    exponent = round(-950 + share * 1400) if dtype == np.float64 else round(-90 + share * 180)
    X, D = draw(seed, dtype, method.startswith("missing"))
    plain = dense(sparse_encode(X, D, **METHODS[method]))
    assert plain.any()
    found = sparse_encode(np.ldexp(X, exponent), D, **scaled(METHODS[method], exponent))
    rtol = 1e-3 if dtype == np.float32 else 1e-6
    back = np.ldexp(dense(found), -exponent)
    np.testing.assert_allclose(back, plain, rtol=rtol, atol=rtol * np.abs(plain).max())


@pytest.mark.parametrize("method", METHODS)
def test_the_smallest_numbers_are_coded_as_well_as_they_can_be(method):
    """Some bits above the smallest numbers there are, whose multiples signals and codes are."""
    options = METHODS[method]
    for dtype, exponent in ((np.float64, -1050), (np.float32, -125)):
        X, D = draw(0, dtype, method.startswith("missing"))
        plain = dense(sparse_encode(X, D, **options))
        found = dense(sparse_encode(np.ldexp(X, exponent), D, **scaled(options, exponent)))
        with np.errstate(under="ignore"):
            expected = np.ldexp(plain, exponent)
        atol = 64 * float(np.finfo(dtype).smallest_subnormal)
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=atol)


@pytest.mark.parametrize("method", METHODS)
def test_squares_of_few_digits(method):
    """Squared norms near the smallest number there is: not 0 yet, but hardly a digit is left."""
    X, D = draw(5, np.float64, method.startswith("missing"))
    plain = dense(sparse_encode(X, D, **METHODS[method]))
    for exponent in (-538, -537, -536):
        found = sparse_encode(np.ldexp(X, exponent), D, **scaled(METHODS[method], exponent))
        np.testing.assert_allclose(np.ldexp(dense(found), -exponent), plain, rtol=1e-6, atol=1e-8)


def test_tiny_signals_beside_others(rng):
    """Every other row is tiny, one is zero; penalties and goals mean the same for all."""
    X, D = draw(1, np.float64)
    X[4] = 0
    far = np.ldexp(X, np.array([0, -700, 0, -900, 0, -560])[:, None])
    mixed = sparse_encode(far, D, max_residual=0.2)
    back = np.ldexp(dense(mixed), -np.array([0, -700, 0, -900, 0, -560])[:, None])
    np.testing.assert_allclose(back, dense(sparse_encode(X, D, max_residual=0.2)), rtol=1e-6)
    # To an absolute length, or under a penalty near 1, there is nothing to code in them.
    for options in ({"max_residual": 0.3, "absolute": True}, {"method": "lasso", "alpha": 0.3}):
        expected = dense(sparse_encode(np.where(np.abs(far) < 1e-100, 0, far), D, **options))
        np.testing.assert_allclose(dense(sparse_encode(far, D, **options)), expected)
        assert expected[[0, 2]].any()


@pytest.mark.parametrize("length", [2.0**-300, 2.0**300])
def test_over_atoms_of_any_length(length):
    X, D = draw(2, np.float64)
    for exponent in (-950, -650, -300):
        for options in ({"max_residual": 0.3}, {"method": "lasso", "alpha": 0.3}):
            own = scaled(options, exponent)
            if "alpha" in own:
                own["alpha"] *= length
            far = np.ldexp(X, exponent)
            if own.get("alpha") == 0:
                continue  # no number
            if exponent == -950 and length > 1:
                with pytest.raises(ValueError, match=r"codes underflow float64.*scale X up"):
                    sparse_encode(far, D * length, **own)
                continue
            found = sparse_encode(far, D * length, **own)
            plain = dense(sparse_encode(X, D, **options))
            back = np.ldexp(dense(found) * length, -exponent)
            np.testing.assert_allclose(back, plain, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("pursue", [lasso, ksc, fksc])
def test_gaps_and_counts_are_those_of_the_signals(pursue):
    X, D = draw(3, np.float64)
    X[1] = np.ldexp(X[1], -700)
    # As many rows in both, since BLAS may round products of fewer rows otherwise.
    ordinary = X.copy()
    ordinary[1] = X[0]
    mixed, plain = (pursue(LinearProblem(rows, D), 0.3) for rows in (X, ordinary))
    others = [0, 2, 3, 4, 5]
    np.testing.assert_array_equal(mixed.gap[others], plain.gap[others])
    np.testing.assert_array_equal(mixed.error[others], plain.error[others])
    assert mixed.error[1] == mixed.gap[1] == 0
    if mixed.n_updates is not None:
        np.testing.assert_array_equal(mixed.n_updates[others], plain.n_updates[others])


def test_paths_and_residuals():
    X, D = draw(4, np.float64)
    plain = lasso_path(X, D, alphas=[0.5, 0.1])
    codes = omp(LinearProblem(X, D), 2).to_dense()
    norms = residual_norms(X, D, codes)
    for exponent in (-950, -600, -540):
        c = np.ldexp(1.0, exponent)
        path = lasso_path(X * c, D, alphas=[0.5 * c, 0.1 * c])
        for ours, expected in zip(path.codes, plain.codes, strict=True):
            np.testing.assert_allclose(ours.toarray() / c, expected.toarray(), rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(residual_norms(X * c, D, codes * c) / c, norms, rtol=1e-9)
    with pytest.raises(ValueError, match="squares overflow float64; scale both down"):
        residual_norms(np.ldexp(X, 600), D, np.ldexp(codes, 600))


@pytest.mark.parametrize(
    "learner",
    [
        KSVD(n_atoms=6, n_nonzero_coefs=2, max_iter=3, random_state=0),
        MOD(n_atoms=6, n_nonzero_coefs=2, max_iter=3, random_state=0),
        MOD(n_atoms=6, alpha=0.1, max_iter=3, random_state=0),
    ],
    ids=["ksvd", "mod", "mod alpha"],
)
def test_learners_refuse_data_whose_squares_are_no_numbers(learner, rng):
    X = rng.standard_normal((60, 8))
    learner.fit(X)
    for exponent in (-1050, -600, -540):
        tiny = np.ldexp(X, exponent)
        with pytest.raises(ValueError, match="squared norms of X underflow float64"):
            learner.score(tiny)
        with pytest.raises(ValueError, match="squared norms of X underflow float64"):
            learner.fit(tiny)
        if not isinstance(learner, KSVD):
            with pytest.raises(ValueError, match="underflow float64"):
                MOD(n_atoms=6, n_nonzero_coefs=2).partial_fit(tiny)
        learner.fit(X)
    # Beside others such rows are as good as zeros.
    X[::7] = np.ldexp(X[::7], -700)
    assert 0.5 < learner.fit(X).score(X) < 1
