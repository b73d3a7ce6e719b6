"""Small problems, one per signal: gathered, solved and split by class as in the textbook."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from machines import NUMPY, assert_near
from oracles import local as book

seeds = st.integers(0, 2**31)
dtypes = st.sampled_from([np.float32, np.float64])


def draw(seed, n, K, n_features, dtype, *, padded=0, twins=False):
    """Return signals, Gram matrices, correlations and energies of n lists of K atoms."""
    rng = np.random.default_rng(seed)
    X, D = rng.standard_normal((n, n_features)), rng.standard_normal((n, K, n_features))
    if twins:
        D[:, K // 2 : K // 2 * 2] = D[:, : K // 2]
    D[:, K - padded :] = 0
    grams, corrs = D @ D.mT, (D @ X[:, :, None])[:, :, 0]
    return grams.astype(dtype), corrs.astype(dtype), np.vecdot(X, X)


@given(
    seed=seeds, n=st.integers(0, 9), n_atoms=st.integers(1, 20), K=st.integers(1, 12), dtype=dtypes
)
def test_gathered_grams_are_the_textbooks(machine, seed, n, n_atoms, K, dtype):
    rng = np.random.default_rng(seed)
    gram = rng.standard_normal((n_atoms, n_atoms)).astype(dtype)
    candidates = rng.integers(-1, n_atoms, (n, K)).astype(np.int32)
    for whole in (gram, machine.run("pad_rows", gram), np.asfortranarray(gram)):
        grams = machine.run("gather", whole, candidates)
        np.testing.assert_array_equal(grams, book.gather(gram, candidates))
        assert grams.dtype == dtype


@given(
    seed=seeds,
    n=st.integers(0, 5),
    K=st.integers(1, 70),
    more=st.integers(0, 30),
    padded=st.integers(0, 3),
    mu=st.sampled_from([0.0, 1e-4, 0.3, 20.0]),
    columns=st.booleans(),
    dtype=dtypes,
)
def test_ridge_codes_are_the_textbooks(machine, seed, n, K, more, padded, mu, columns, dtype):
    grams, corrs, _ = draw(seed, n, K, K + more, dtype, padded=min(padded, K - 1))
    weights = machine.run("ridge_local", grams, corrs, mu, columns)
    assert (weights.shape, weights.dtype) == ((n, K), np.float64)
    for G, b, w in zip(grams.astype(float), corrs.astype(float), weights, strict=True):
        own = np.diagonal(G) > 0
        assert not w[~own].any()
        G, b, w = G[np.ix_(own, own)], b[own], w[own]
        condition = np.linalg.cond(G @ G + mu * np.eye(len(G)) if columns else G)
        if condition < 1e5:
            np.testing.assert_allclose(w, book.ridge(G, b, mu, columns), rtol=1e-8, atol=1e-9)


@given(
    seed=seeds, K=st.integers(2, 60), n_features=st.integers(1, 12), columns=st.booleans(),
    dtype=dtypes, mu=st.sampled_from([0.0, 1e-300, 1e-40]),
)  # fmt: skip
def test_codes_over_singular_grams_are_the_shortest(
    machine, seed, K, n_features, columns, dtype, mu
):
    """Twins, more atoms than features, no ridge to speak of: twins take the same share."""
    grams, corrs, _ = draw(seed, 3, K, n_features, dtype, twins=True)
    weights = machine.run("ridge_local", grams, corrs, mu, columns)
    rank = min(K - K // 2, n_features)
    for G, b, w in zip(grams.astype(float), corrs.astype(float), weights, strict=True):
        values = np.linalg.eigvalsh(G)[-rank:]
        if values[0] < 1e-3 * values[-1]:
            continue  # which eigenvalues are rounding is a matter of taste here
        expected = np.linalg.pinv(G, rcond=1e-4, hermitian=True) @ b
        tolerance = 1e4 * np.finfo(dtype).eps * (1 + np.abs(expected).max())
        np.testing.assert_allclose(w, expected, atol=tolerance)
        np.testing.assert_allclose(w[K // 2 : K // 2 * 2], w[: K // 2], atol=tolerance)


@pytest.mark.parametrize("columns", [False, True])
def test_small_pivots_do_not_hide_singular_grams(machine, columns, rng):
    """After a pivot of 1e-3, what should be 0 comes out a thousand times as large as rounding."""
    D = rng.standard_normal((600, 10, 9))
    grams = D @ D.mT
    corrs = (grams @ rng.standard_normal((600, 10, 1)))[:, :, 0]
    expected = (np.linalg.pinv(grams, rcond=1e-6, hermitian=True) @ corrs[:, :, None])[:, :, 0]
    values = np.linalg.eigvalsh(grams)
    clear = values[:, 1] > 1e-3 * values[:, -1]
    assert clear.sum() > 300
    weights = machine.run("ridge_local", grams, corrs, 0.0, columns)
    np.testing.assert_allclose(weights[clear], expected[clear], atol=1e-9)


@pytest.mark.parametrize("columns", [False, True])
def test_small_ridges_keep_their_digits(machine, columns, rng):
    """Where G G would lose half of them, the step of correction brings them back."""
    U = np.linalg.qr(rng.standard_normal((30, 30)))[0]
    values = np.logspace(-4, 1, 30)
    G, b, mu = (U * values) @ U.T, rng.standard_normal(30), 1e-9
    expected = U @ ((values / (values**2 + mu) if columns else 1 / (values + mu)) * (U.T @ b))
    G = (G + G.T) / 2
    w = machine.run("ridge_local", G[None], b[None], mu, columns)[0]
    assert np.abs(w - expected).max() < 1e-9 * np.abs(expected).max()


def test_negative_eigenvalues_count_as_zero_in_feature_space(machine, rng):
    """Kernels of some distances have such; the form on columns is defined as it is."""
    U = np.linalg.qr(rng.standard_normal((9, 9)))[0]
    values = np.array([-0.5, -0.1, 0.0, 0.2, 0.5, 1.0, 2.0, 3.0, 4.0])
    G, b, mu = (U * values) @ U.T, rng.standard_normal(9), 0.05
    w = machine.run("ridge_local", G[None], b[None], mu, False)[0]
    clipped = np.maximum(values, 0)
    np.testing.assert_allclose(w, U @ (U.T @ b / (clipped + mu)), atol=1e-10)
    w = machine.run("ridge_local", G[None], b[None], mu, True)[0]
    np.testing.assert_allclose(w, U @ (U.T @ b * values / (values**2 + mu)), atol=1e-10)


def test_eigenvalues_that_cancel_the_ridge_count_as_zero(machine):
    mu = 0.1
    for negative in (-0.8 * mu, -mu, -1.2 * mu):
        w = machine.run(
            "ridge_local", np.diag([1.0, negative])[None], np.array([[1.0, 1.0]]), mu, False
        )
        np.testing.assert_allclose(w, [[1 / 1.1, 1 / mu]])


@pytest.mark.parametrize("columns", [False, True])
def test_small_eigenvalues_take_part_where_a_ridge_bounds_them(machine, columns):
    """Not where nothing does: 2e-7 is rounding of a float32 Gram matrix with 1 in it."""
    small, b = np.float32(2e-7), np.array([[1.0, 1.0]])
    grams = np.diag(np.array([1, small], np.float32))[None]
    mu = 1e-12 if columns else 2e-7
    w = machine.run("ridge_local", grams, b, mu, columns)[0, 1]
    value = float(small)
    assert w == pytest.approx(value / (value**2 + mu) if columns else 1 / (value + mu))
    assert machine.run("ridge_local", grams, b, 0.0, columns)[0, 1] == 0


@given(
    seed=seeds, n=st.integers(0, 5), K=st.integers(1, 25), n_classes=st.integers(1, 6),
    padded=st.integers(0, 3), columns=st.booleans(), dtype=dtypes,
)  # fmt: skip
def test_class_parts_are_the_textbooks(machine, seed, n, K, n_classes, padded, columns, dtype):
    padded = min(padded, K)
    grams, corrs, energies = draw(seed, n, K, 6, dtype, padded=padded)
    rng = np.random.default_rng(seed)
    weights, owners = rng.standard_normal((n, K)), rng.integers(0, n_classes, (n, K))
    weights[:, K - padded :], owners[:, K - padded :] = 0, -1
    residuals2, norms2 = machine.run(
        "class_parts_local",
        grams,
        corrs,
        None if columns else energies,
        weights,
        owners,
        n_classes,
        columns,
    )
    for s in range(n):
        expected = book.class_parts(
            grams[s].astype(float), corrs[s].astype(float), energies[s], weights[s], owners[s],
            n_classes, columns,
        )  # fmt: skip
        np.testing.assert_allclose(residuals2[s], np.maximum(expected[0], 0), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(norms2[s], expected[1], rtol=1e-12)


def test_residuals_of_perfect_codes_are_not_negative(machine, rng):
    D = rng.standard_normal((50, 4, 30))
    weights = 1e3 * rng.standard_normal((50, 4))
    X = (weights[:, None] @ D)[:, 0]
    grams, corrs = D @ D.mT, (D @ X[:, :, None])[:, :, 0]
    owners = np.zeros((50, 4), int)
    residuals2, _ = machine.run(
        "class_parts_local", grams, corrs, np.vecdot(X, X), weights, owners, 1, False
    )
    assert (residuals2 >= 0).all()
    assert (residuals2 == 0).any()  # some would have been negative


@given(seed=seeds, dtype=dtypes, columns=st.booleans(), mu=st.sampled_from([0.0, 1e-9, 0.1]))
def test_hard_problems_are_solved_as_in_numpy(machine, seed, dtype, columns, mu):
    """Singular ones too: twins, padded lists, no ridge."""
    rng = np.random.default_rng(seed)
    X, D = (rng.standard_normal((n, 5)).astype(dtype) for n in (8, 20))
    D[1] = D[0]
    candidates = np.stack([rng.permutation(20)[:4] for _ in X]).astype(np.int32)
    candidates[0], candidates[1, 2:] = (0, 1, 2, 3), -1
    grams = NUMPY.gather(D @ D.T, candidates)
    corrs = np.where(candidates < 0, 0, np.vecdot(X[:, None], D[candidates])).astype(dtype)
    weights = NUMPY.ridge_local(grams, corrs, mu, columns)
    ours = machine.run("ridge_local", grams, corrs, mu, columns)
    assert_near(ours, weights, 1e-5 if mu == 0 and dtype == np.float32 else 1e-6)
    owners = np.where(candidates < 0, -1, candidates % 3)
    arguments = grams, corrs, np.vecdot(X, X).astype(np.float64), weights, owners, 3, columns
    expected = NUMPY.class_parts_local(*arguments)
    for one, other in zip(machine.run("class_parts_local", *arguments), expected, strict=True):
        assert_near(one, other, 1e-9)


@pytest.mark.parametrize("with_grams", [False, True])
@given(seed=seeds, dtype=dtypes)
def test_gaussian_values_among_candidates(machine, with_grams, seed, dtype):
    rng = np.random.default_rng(seed)
    X, D = (rng.standard_normal((n, 5)).astype(dtype) for n in (8, 20))
    D[1] = D[0]
    candidates = np.stack([rng.permutation(20)[:4] for _ in X]).astype(np.int32)
    candidates[0], candidates[1, 2:] = (0, 1, 2, 3), -1
    found = machine.run("gaussian_local", X, D, candidates, 0.3, with_grams=with_grams)
    expected = NUMPY.gaussian_local(X, D, candidates, 0.3, with_grams=with_grams)
    assert (found[0] is None) == (not with_grams)
    for one, other in zip(found, expected, strict=True):
        if other is not None:
            assert_near(one, other, 100 * float(np.finfo(dtype).eps))
