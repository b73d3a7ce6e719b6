"""Small problems, one a signal: gathered, solved and split by class as by the book."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kernelatoms.engine import cpu
from oracles import local as book

seeds = st.integers(0, 2**31)
dtypes = st.sampled_from([np.float32, np.float64])


def draw(seed, n, K, n_features, dtype, *, padded=0, twins=False):
    """Return signals, Gram matrices, correlations and energies of n lists of K atoms."""
    rng = np.random.default_rng(seed)
    X, D = rng.standard_normal((n, n_features)), rng.standard_normal((n, K, n_features))
    if twins:
        D[:, K // 2 :] = D[:, : K - K // 2]
    D[:, K - padded :] = 0
    grams, corrs = D @ D.mT, (D @ X[:, :, None])[:, :, 0]
    return grams.astype(dtype), corrs.astype(dtype), np.vecdot(X, X)


@given(
    seed=seeds, n=st.integers(0, 9), n_atoms=st.integers(1, 20), K=st.integers(1, 12), dtype=dtypes
)
def test_gathered_grams_are_the_textbooks(seed, n, n_atoms, K, dtype):
    rng = np.random.default_rng(seed)
    gram = rng.standard_normal((n_atoms, n_atoms)).astype(dtype)
    candidates = rng.integers(-1, n_atoms, (n, K)).astype(np.int32)
    for whole in (gram, cpu.laid_out(gram), np.asfortranarray(gram)):
        grams = cpu.gather(whole, candidates)
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
def test_ridge_codes_are_the_textbooks(seed, n, K, more, padded, mu, columns, dtype):
    grams, corrs, _ = draw(seed, n, K, K + more, dtype, padded=min(padded, K - 1))
    weights = cpu.ridge_local(grams, corrs, mu, columns)
    assert (weights.shape, weights.dtype) == ((n, K), np.float64)
    for G, b, w in zip(grams.astype(float), corrs.astype(float), weights, strict=True):
        own = np.diagonal(G) > 0
        assert not w[~own].any()
        G, b, w = G[np.ix_(own, own)], b[own], w[own]
        condition = np.linalg.cond(G @ G + mu * np.eye(len(G)) if columns else G)
        if condition < 1e5:
            np.testing.assert_allclose(w, book.ridge(G, b, mu, columns), rtol=1e-8, atol=1e-9)
