"""No way of coding returns garbage: right, or refused in words, whatever the numbers."""

import zlib

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.datasets import load_digits

import hard_cases
from kernelatoms import sparse_encode
from kernelatoms.coding import LinearProblem, lasso, omp

SEEDS = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize("method", [*hard_cases.GREEDY, *hard_cases.L1, "ridge"])
@given(seed=SEEDS)
def test_every_way_of_coding(method, seed):
    hard_cases.run_case(np.random.default_rng(seed), method=method)


@pytest.mark.parametrize("kernel", hard_cases.ALL_KERNELS)
@given(seed=SEEDS)
@example(62)  # an indefinite kernel without a Gram matrix went on for ever
def test_every_kernel(kernel, seed):
    hard_cases.run_case(np.random.default_rng(seed), kernel=kernel)


@pytest.mark.slow
def test_many_more():
    told = [hard_cases.run_case(np.random.default_rng(seed)) for seed in range(20_000)]
    assert told.count("coded") > 0.8 * len(told)


@pytest.mark.parametrize("method", [*hard_cases.GREEDY, *hard_cases.L1, "ridge"])
def test_signals_of_any_size_are_coded(method):
    """Only what cannot be right may be refused: over atoms near 1 that is nothing."""
    n_coded = 0
    for seed in range(200):
        case = hard_cases.draw_case(np.random.default_rng(seed), method, "linear")
        if "uneven" not in case.notes and 1e-6 < float(case.notes["atoms"]) < 1e6:
            n_coded += 1
            assert hard_cases.try_case(case) == "coded", str(case)
    assert n_coded > 50


@pytest.mark.parametrize("selection", ["omp", "ols"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_digits_as_atoms(selection, dtype):
    """Nearly parallel atoms by the thousand: codes were worse than none, errors told as 0."""
    X = load_digits().data.astype(dtype)
    D, X = X[:1000] / np.linalg.norm(X[:1000], axis=1, keepdims=True), X[1000:1200]
    codes = omp(LinearProblem(X, D), 60, selection=selection)
    left = X.astype(np.float64) - codes.to_dense().astype(np.float64) @ D.astype(np.float64)
    energy = np.vecdot(X, X).astype(np.float64)
    assert (np.vecdot(left, left) <= energy).all()
    np.testing.assert_allclose(codes.error / energy, np.vecdot(left, left) / energy, atol=1e-4)


POWERS = [2.0**-110, 2.0**-70, 2.0**-31, 2.0**31, 2.0**70, 2.0**110]


@pytest.mark.parametrize("power", POWERS)
@pytest.mark.parametrize(
    "options",
    [
        {"n_nonzero_coefs": 4},
        {"n_nonzero_coefs": 4, "selection": "ols"},
        {"n_nonzero_coefs": 4, "positive": True},
        {"n_nonzero_coefs": 4, "positive": True, "selection": "ols"},
        {"max_residual": 0.3},
        {"n_nonzero_coefs": 3, "candidates": np.tile(np.arange(20), (30, 1))},
    ],
)
def test_a_power_of_two_changes_no_digit_of_float32_codes(options, power):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 12)).astype(np.float32)
    D = rng.standard_normal((40, 12)).astype(np.float32)
    for rows in (X, np.where(rng.random(X.shape) < 0.2, np.nan, X)):
        if np.isnan(rows).any() and options.get("positive"):
            continue
        plain = sparse_encode(rows, D, sparse_output=False, **options)
        scaled = sparse_encode(rows * np.float32(power), D, sparse_output=False, **options)
        assert (scaled == plain * np.float32(power)).all()
        # One signal of another size than the rest has the code that it has by itself.
        mixed = rows.copy()
        mixed[7] *= np.float32(power)
        among = sparse_encode(mixed, D, sparse_output=False, **options)
        assert (among[7] == plain[7] * np.float32(power)).all()
        assert (np.delete(among, 7, axis=0) == np.delete(plain, 7, axis=0)).all()


@pytest.mark.parametrize("power", [2.0**-55, 2.0**-40, 2.0**40, 2.0**55])
@pytest.mark.parametrize("selection", ["omp", "ols"])
@pytest.mark.parametrize("positive", [False, True])
def test_signals_and_atoms_far_from_one(positive, selection, power):
    """Products of their inner products are fourth powers."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 12)).astype(np.float32)
    D = rng.standard_normal((40, 12)).astype(np.float32)
    options = {"selection": selection, "positive": positive, "max_residual": 1e-2}
    plain = sparse_encode(X, D, sparse_output=False, **options)
    far = sparse_encode(
        X * np.float32(power), D * np.float32(power), sparse_output=False, **options
    )
    assert (far == plain).all()


@pytest.mark.parametrize("power", POWERS)
def test_an_absolute_residual_is_one_at_any_scale(power):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((20, 12)).astype(np.float32)
    D = rng.standard_normal((40, 12)).astype(np.float32)
    options = {"absolute": True, "sparse_output": False}
    plain = sparse_encode(X, D, max_residual=0.7, **options)
    scaled = sparse_encode(X * np.float32(power), D, max_residual=0.7 * power, **options)
    assert (scaled == plain * np.float32(power)).all()


@pytest.mark.parametrize("power", POWERS)
def test_a_power_of_two_changes_no_digit_of_l1_codes(power):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((20, 12)).astype(np.float32)
    D = rng.standard_normal((40, 12)).astype(np.float32)
    plain = lasso(LinearProblem(X, D), 0.5)
    scaled = lasso(LinearProblem(X * np.float32(power), D), 0.5 * power)
    assert (scaled.to_dense() == plain.to_dense() * np.float32(power)).all()
    assert (scaled.error == plain.error * power**2).all()
    assert (scaled.gap == plain.gap * power**2).all()


class TestRefusals:
    def test_atoms_whose_squares_are_no_numbers(self):
        D = np.eye(3, dtype=np.float32)
        for factor, what in ((1e-20, "underflows"), (1e20, "overflows")):
            with pytest.raises(ValueError, match=f"squared norm {what} float32; scale them"):
                sparse_encode(D, D * np.float32(factor), n_nonzero_coefs=1)

    def test_codes_that_are_no_numbers(self):
        D = np.eye(3, dtype=np.float32)
        with pytest.raises(ValueError, match="The codes overflow float32"):
            sparse_encode(D * np.float32(1e30), D * np.float32(1e-12), n_nonzero_coefs=1)
        with pytest.raises(ValueError, match="The codes underflow float32"):
            sparse_encode(D * np.float32(1e-30), D * np.float32(1e12), n_nonzero_coefs=1)

    def test_signals_beyond_float64(self):
        with pytest.raises(ValueError, match="squared norm overflows float64"):
            sparse_encode(np.full((1, 3), 1e200), np.eye(3), n_nonzero_coefs=1)

    def test_signals_of_1e_minus_200_are_right(self):
        codes = sparse_encode(np.full((1, 3), 1e-200), np.eye(3), n_nonzero_coefs=3)
        assert (codes.toarray() == 1e-200).all()

    def test_kernel_values_that_are_no_numbers(self):
        X = np.full((1, 3), 1e-15, np.float32)
        options = {"kernel": "poly", "coef0": 0, "n_nonzero_coefs": 1}
        with pytest.raises(ValueError, match="kernel underflows float32"):
            sparse_encode(X, np.eye(3, dtype=np.float32), **options)
        with pytest.raises(ValueError, match="kernel overflows"):
            sparse_encode(1 / X, np.eye(3, dtype=np.float32), **options)

    def test_a_kernel_that_is_of_no_vectors(self):
        rng = np.random.default_rng(0)
        X, D = rng.standard_normal((20, 3)), rng.standard_normal((30, 3))
        options = {"kernel": "sigmoid", "coef0": -1.0, "gamma": 5.0}
        with pytest.raises(ValueError, match="not positive semi-definite"):
            sparse_encode(X, D, n_nonzero_coefs=10, **options)

    def test_signals_of_no_vectors(self):
        """The atoms are those of vectors, but their codes explain more than k(x, x)."""
        rng = np.random.default_rng(0)
        X, D = rng.standard_normal((20, 4)), rng.standard_normal((6, 4))
        options = {"kernel": "sigmoid", "coef0": 1.0, "gamma": 0.25}
        with pytest.raises(ValueError, match=r"k\(x, x\) = .* of signal .* its code explains"):
            sparse_encode(X, D, n_nonzero_coefs=5, **options)


@pytest.mark.parametrize("case", [77487, 97987, 158215, 180016])
def test_cases_that_a_long_search_found(case):
    """Of 200,000: coefficients and kernel values under the smallest number, infinite ones."""
    hard_cases.run_case(np.random.default_rng([11, zlib.crc32(b"numbers"), case]))
