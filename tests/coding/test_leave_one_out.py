"""Codes of rows over all other rows, against leaving them out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelatoms.coding.leave_one_out import MULTIPLES, _Rows, best_local_mu, best_mu
from oracles import representation as oracle


def left_out_codes(gram, mu, *, projected=False, psi=None, unit=False):
    return _Rows(gram, projected, psi, unit).codes(mu)


def rbf_gram(rng, n, gamma=0.3):
    X = rng.standard_normal((n, 4))
    return np.exp(-gamma * ((X[:, None] - X) ** 2).sum(axis=2))


@given(
    seed=st.integers(0, 2**32 - 1), n=st.integers(2, 14), exponent=st.integers(-4, 1),
    kind=st.sampled_from(["feature space", "identity", "projection"]),
)  # fmt: skip
def test_codes_are_those_of_the_rows_that_stay(seed, n, exponent, kind):
    rng = np.random.default_rng(seed)
    G, mu = rbf_gram(rng, n), 10.0**exponent
    psi = rng.standard_normal((n, 3)) if kind == "projection" else np.eye(n)
    codes = left_out_codes(
        G, mu, projected=kind != "feature space", psi=psi if kind == "projection" else None
    )
    for i in range(n):
        if kind == "feature space":
            others = np.arange(n) != i
            expected = np.zeros(n)
            expected[others] = np.linalg.solve(
                G[np.ix_(others, others)] + mu * np.eye(n - 1), G[others, i]
            )
        else:
            expected, _ = oracle.left_out_code(G, psi, i, mu)
        # Two systems of this condition number are solved one after the other.
        A = G if kind == "feature space" else G @ psi @ psi.T @ G
        tol = 1e-15 * n * (1 + np.linalg.norm(A, 2) / mu) ** 1.5
        assert tol < 1e-3
        np.testing.assert_allclose(codes[i], expected, atol=max(tol, 1e-10))


@pytest.mark.parametrize("n_components", [None, 5])
def test_residuals_do_not_know_the_row_itself(n_components):
    rng = np.random.default_rng(1)
    G, labels, mu = rbf_gram(rng, 12), np.repeat([0, 1, 2], 4), 0.01
    psi = None if n_components is None else rng.standard_normal((12, n_components))
    rows = _Rows(G, True, psi, unit=False)
    parts = rows.parts(rows.codes(mu), [slice(0, 4), slice(4, 8), slice(8, 12)])
    for i in range(12):
        code, mapped = oracle.left_out_code(G, np.eye(12) if psi is None else psi, i, mu)
        expected = oracle.residuals(mapped, labels, mapped[i], code, 3)
        np.testing.assert_allclose(parts.residuals()[i], expected, rtol=1e-6)
        np.testing.assert_allclose(parts.energies[i], mapped[i] @ mapped[i], rtol=1e-9)


@pytest.mark.parametrize("n_components", [None, 5])
def test_columns_of_unit_norm_are_left_out_too(n_components):
    """Each is scaled by its norm with all rows, that of the row left out among them."""
    rng = np.random.default_rng(2)
    G, labels, mu = rbf_gram(rng, 12), np.repeat([0, 1, 2], 4), 1e-3
    psi = None if n_components is None else rng.standard_normal((12, n_components))
    full = np.eye(12) if psi is None else psi
    scales = 1 / np.linalg.norm(G @ full, axis=1)
    rows = _Rows(G, True, psi, unit=True)
    np.testing.assert_allclose(np.diagonal(rows.A), 1)
    codes = left_out_codes(G, mu, projected=True, psi=psi, unit=True)
    parts = rows.parts(codes, [slice(0, 4), slice(4, 8), slice(8, 12)])
    for i in range(12):
        code, mapped = oracle.left_out_code(G, full, i, mu, scales)
        np.testing.assert_allclose(codes[i], code, atol=1e-9)
        expected = oracle.residuals(mapped, labels, mapped[i], code, 3)
        np.testing.assert_allclose(parts.residuals()[i], expected, rtol=1e-6)
        np.testing.assert_allclose(parts.energies[i], mapped[i] @ mapped[i], rtol=1e-9)
    vectors = np.diag([1.0, 2.0, 3.0]) + 0.1  # in feature space atoms are scaled as well
    G = vectors @ vectors.T
    over = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    codes = left_out_codes(G, mu, unit=True)
    np.testing.assert_allclose(codes[0, 1:], oracle.crc_code(over[1:], over[0], mu), atol=1e-12)


@pytest.mark.parametrize("projected", [False, True])
def test_the_best_weight_is_the_middle_of_those_that_classify_most_rows_right(projected):
    rng = np.random.default_rng(3)
    labels = np.repeat([0, 1, 2], 15)
    X = rng.standard_normal((45, 4)) + 1.2 * rng.standard_normal((3, 4))[labels]
    G = np.exp(-0.2 * ((X[:, None] - X) ** 2).sum(axis=2))
    scale = (G @ G if projected else G).diagonal().mean()
    right = []
    for multiple in MULTIPLES:
        hits = 0
        for i in range(45):
            others = np.arange(45) != i
            if projected:
                code, mapped = oracle.left_out_code(G, np.eye(45), i, multiple * scale)
                found = oracle.residuals(mapped, labels, mapped[i], code, 3).argmin()
            else:
                root = np.linalg.cholesky(G + 1e-13 * np.eye(45))
                code = np.zeros(45)
                code[others] = oracle.crc_code(root[others], root[i], multiple * scale)
                found = oracle.residuals(root, labels, root[i], code, 3).argmin()
            hits += found == labels[i]
        right.append(hits / 45)
    mu, share = best_mu(G, labels, 3, projected=projected)
    assert share == pytest.approx(max(right))
    best = [np.log(MULTIPLES[i]) for i, hits in enumerate(right) if hits == max(right)]
    assert mu == pytest.approx(np.exp(np.mean(best)) * scale)
    assert min(right) < max(right)  # else anything would do


def test_rows_of_zeros_have_some_weight():
    assert best_mu(np.zeros((4, 4)), np.array([0, 0, 1, 1]), 2)[0] > 0
    owners = np.zeros((2, 3), np.int64)
    zeros = np.zeros((2, 3, 3)), np.zeros((2, 3)), np.zeros(2)
    assert best_local_mu(*zeros, owners, np.array([0, 1]), 2, columns=False) > 0
