"""Problems of l1 coding of all kinds, and one way to code them in every form on any machine."""

from itertools import pairwise

import numpy as np
from hypothesis import strategies as st

from oracles import lasso as book

#: By a Gram matrix, by rows of signals and atoms (which numpy's machine takes as on request), by
#: callables on request.
FORMS = ["gram", "rows", "asked"]
KINDS = ["plain", "unit", "alike", "clusters", "twins", "near"]


def draw(seed, n_signals, n_features, n_atoms, kind):
    rng = np.random.default_rng(seed)
    X, D = rng.standard_normal((n_signals, n_features)), rng.standard_normal((n_atoms, n_features))
    if kind == "unit":
        D /= np.linalg.norm(D, axis=1, keepdims=True)
    elif kind == "alike":
        D = 5 + np.abs(D)
    elif kind == "clusters":  # cosines of 0.95
        centres = rng.standard_normal((n_atoms // 8 + 1, n_features))
        both = (centres[np.arange(n_atoms) % len(centres)], D)
        C, D = (a / np.linalg.norm(a, axis=1, keepdims=True) for a in both)
        D = np.sqrt(0.95) * C + np.sqrt(0.05) * D
    elif kind == "twins":
        D[n_atoms // 2] = D[0]
        D[n_atoms // 3] = -D[1]
        D[-1] = 0
    elif kind == "near":
        half = n_atoms // 2
        D[half : 2 * half] = D[:half] + 1e-6 * rng.standard_normal((half, n_features))
    return X, D


def products_of(machine, X, D):
    with np.errstate(over="ignore"):
        energy = np.vecdot(X.astype(np.float64), X.astype(np.float64))
    A = machine.array
    return lambda start, stop: (A(X[start:stop] @ D.T), A(energy[start:stop]))


def local_of(machine, X, D):
    def local(start, stop, lists):
        lists = machine.numpy(lists)
        own = D[np.maximum(lists, 0)] * (lists >= 0)[:, :, None]
        corr = np.einsum("nkp,np->nk", own, X[start:stop])
        return machine.array(own @ own.transpose(0, 2, 1)), machine.array(corr)

    return local


def gram_times_of(machine, D):
    def gram_times(weights, lists):
        own = D[np.maximum(machine.numpy(lists), 0)]
        return machine.array((machine.numpy(weights)[:, None] @ own)[:, 0] @ D.T)

    return gram_times


def code(machine, form, X, D, alpha, **options):
    """Code by one form of the problem; return dense codes and the rest."""
    n, m, products = len(X), len(D), products_of(machine, X, D)
    local, gram_times = local_of(machine, X, D), gram_times_of(machine, D)
    if options.get("start") is not None:
        options["start"] = machine.array(options["start"])
    if form == "gram":
        gram = machine.array(D @ D.T)
        coded = machine.lasso(gram, products, n, X.dtype, alpha, **options)
    elif form == "candidates":
        lists = machine.array(np.tile(np.arange(m, dtype=np.int32), (n, 1)))
        coded = machine.lasso_local(
            lambda first, stop: (*local(first, stop, lists[first:stop]), products(first, stop)[1]),
            lists, X.dtype, alpha, **options,
        )  # fmt: skip
    else:
        rows = (machine.array(X), machine.array(D)) if form == "rows" else None
        asked = (products, local, gram_times)
        if rows and machine.name == "tensors":  # which need nothing but the rows
            asked = (None, None, None)
        coded = machine.lasso_without_gram(*asked, n, m, X.dtype, alpha, rows=rows, **options)
    return unpacked(machine, coded, n, m)


def unpacked(machine, coded, n_signals, n_atoms):
    indptr, indices, values, error, gap, missed = map(machine.numpy, coded)
    assert indptr.dtype == np.int64
    assert indices.dtype == np.int32
    assert error.dtype == gap.dtype == np.float64
    assert missed.dtype == np.bool_
    assert len(indptr) == n_signals + 1
    W = np.zeros((n_signals, n_atoms), values.dtype)
    for s, (first, stop) in enumerate(pairwise(indptr)):
        assert (np.diff(indices[first:stop]) > 0).all()
        W[s, indices[first:stop]] = values[first:stop]
    assert np.count_nonzero(W) == len(values)
    return W, error, gap, missed


def alpha_of(X, D, share):
    return float(share * np.abs(X @ D.T).max())


def check_certified(X, D, alpha, positive, coded, gap_tol=1e-6):
    W, error, gap, missed = coded
    X, D, W = (a.astype(np.float64) for a in (X, D, W))
    energy = (X**2).sum(axis=1)
    gaps = [book.duality_gap(x, D, w, alpha, positive) for x, w in zip(X, W, strict=True)]
    np.testing.assert_allclose(gap, gaps, rtol=0, atol=1e-8 * energy.max())
    np.testing.assert_allclose(
        error, ((X - W @ D) ** 2).sum(axis=1), rtol=0, atol=1e-8 * energy.max()
    )
    assert not missed.any()
    assert (gap <= gap_tol * energy * (1 + 1e-5)).all()
    assert not positive or (W >= 0).all()


problems = {
    "seed": st.integers(0, 2**31),
    "n_features": st.integers(2, 30),
    "n_atoms": st.integers(2, 60),
    "kind": st.sampled_from(KINDS),
    "share": st.sampled_from([0.9, 0.5, 0.1, 0.01, 0.001]),
    "positive": st.booleans(),
}
