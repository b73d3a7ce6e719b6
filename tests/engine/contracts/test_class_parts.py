"""What the atoms of one class leave of signals."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from machines import NUMPY, assert_near
from padded_codes import random_codes


@given(
    seed=st.integers(0, 2**31),
    dtype=st.sampled_from([np.float32, np.float64]),
    n_classes=st.integers(1, 4),
    first=st.integers(0, 10),
)
def test_class_parts_of_codes(machine, seed, dtype, n_classes, first):
    tolerance = 100 * float(np.finfo(dtype).eps)
    rng = np.random.default_rng(seed)
    X, D = (rng.standard_normal((n, 6)).astype(dtype) for n in (20, 12))
    indices, values = random_codes(rng, 20, 12, 4, dtype)
    used = indices >= 0
    indptr = np.concatenate([[0], np.cumsum(used.sum(axis=1))])[first:]
    flat, X = (indices[used], values[used]), X[first:]
    owner = rng.integers(0, n_classes, 12)
    corr = NUMPY.products_at(X, D, indptr, flat[0])
    assert_near(machine.run("products_at", X, D, indptr, flat[0]), corr, tolerance)
    arguments = D @ D.T, corr, indptr, *flat, owner
    out = np.repeat(np.vecdot(X, X).astype(np.float64)[:, None], n_classes, axis=1)
    expected, ours = out.copy(), machine.array(out.copy())
    NUMPY.subtract_class_parts(*arguments, expected)
    machine.subtract_class_parts(*map(machine.array, arguments), ours)
    assert_near(machine.numpy(ours), expected, tolerance)
    members = [np.flatnonzero(owner == c) for c in range(n_classes)]
    weights, products = rng.standard_normal((len(X), 12)), (X @ D.T).astype(np.float64)
    grams = [D[own] @ D[own].T for own in members]
    expected, ours = (np.zeros((len(X), n_classes)) for _ in range(2))
    NUMPY.subtract_dense_class_parts(grams, products, weights, members, expected)
    ours = machine.array(ours)
    machine.subtract_dense_class_parts(
        [machine.array(gram) for gram in grams], machine.array(products), machine.array(weights),
        [machine.array(own) for own in members], ours,
    )  # fmt: skip
    assert_near(machine.numpy(ours), expected, tolerance)
