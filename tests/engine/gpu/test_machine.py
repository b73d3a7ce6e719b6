"""The machine of tensors: the functions of ``engine.cpu`` by the same names, with its results."""

import inspect

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelatoms.engine import cpu, to_numpy
from oracles import local as book

torch = pytest.importorskip("torch")

from kernelatoms.engine import gpu  # noqa: E402
from kernelatoms.engine.gpu import DeviceArray  # noqa: E402

seeds = st.integers(0, 2**31)
dtypes = st.sampled_from([np.float32, np.float64])


def device(array):
    return None if array is None else DeviceArray(torch.tensor(array))


def near(found, expected, rtol):
    """Check numbers and types; ``rtol`` is of the largest."""
    found = to_numpy(found)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    size = float(np.abs(expected[np.isfinite(expected)]).max(initial=0))
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol * size)


def rounding(dtype):
    return 100 * float(np.finfo(dtype).eps)


def coded(rng, n, n_atoms, n_nonzero, dtype):
    """Return padded codes, some of them shorter."""
    indices = np.sort(np.stack([rng.permutation(n_atoms)[:n_nonzero] for _ in range(n)]), axis=1)
    indices = indices.astype(np.int32)
    values = rng.standard_normal(indices.shape).astype(dtype)
    short = np.arange(n_nonzero) >= rng.integers(0, n_nonzero + 1, (n, 1))
    indices[short], values[short] = -1, 0
    return indices, values


def test_names_and_arguments_are_those_of_the_other_machine():
    """As far as a name is there at all: what is above must not know which machine it has."""
    common = set(gpu.__all__) & set(cpu.__all__)
    assert len(common) > 30
    for name in common:
        ours, theirs = (inspect.signature(getattr(m, name)).parameters for m in (gpu, cpu))
        assert list(ours) == list(theirs), name
        for one, other in zip(ours.values(), theirs.values(), strict=True):
            assert one.kind == other.kind, name
            # There is one CPU, and many devices: ``like`` must say which.
            assert one.default == other.default or one.name == "like", name


@given(seed=seeds, dtype=dtypes, scale=st.sampled_from([1.0, 1e-18, 1e18, 1e-30]))
def test_sizes_far_from_one(seed, dtype, scale):
    rng = np.random.default_rng(seed)
    rows = (rng.standard_normal((5, 4)) * scale).astype(dtype)
    rows[0], rows[1] = 0, rng.standard_normal(4)
    squares = cpu.squared_norms(rows)
    near(gpu.squared_norms(device(rows)), squares, 1e-14)
    found, expected = (
        gpu.in_safe_range(device(squares), dtype),
        cpu.in_safe_range(squares, np.dtype(dtype)),
    )
    np.testing.assert_array_equal(to_numpy(found), expected)
    assert gpu.all_ordinary(device(squares), dtype) == cpu.all_ordinary(squares, np.dtype(dtype))
    near_one, exponents = cpu.rescale_rows(rows, ~expected, np.dtype(dtype), 3)
    ours, own = gpu.rescale_rows(device(rows), ~found, np.dtype(dtype), 3)
    np.testing.assert_array_equal(to_numpy(ours), near_one)
    assert (own is None) == (exponents is None)
    if own is not None:
        np.testing.assert_array_equal(to_numpy(own), exponents)
    near(gpu.unit_rows(device(rows)), cpu.unit_rows(rows), 10 * float(np.finfo(dtype).eps))


@given(seed=seeds, dtype=dtypes, n=st.integers(1, 12))
def test_products(seed, dtype, n):
    rng = np.random.default_rng(seed)
    A, B = (rng.standard_normal((n, m)).astype(dtype) for m in (3, 5))
    gram = to_numpy(gpu.gram_matrix(device(A)))
    near(gpu.gram_matrix(device(A)), A @ A.T, rounding(dtype))
    np.testing.assert_array_equal(gram, gram.T)
    near(gpu.cross_products(device(A), device(B)), cpu.cross_products(A, B), rounding(dtype))
    near(gpu.times(device(A), device(A.T @ A)), cpu.times(A, A.T @ A), rounding(dtype))


def test_no_gram_matrix_of_very_many_atoms():
    assert not gpu.prefers_no_gram(4096, 10, 1, 4)
    assert gpu.prefers_no_gram(4097, 10**9, 1, 4)


@given(seed=seeds, dtype=dtypes)
def test_a_sweep_of_ksvd(seed, dtype):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, 6)).astype(dtype)
    D = cpu.unit_rows(rng.standard_normal((9, 6)).astype(dtype))
    indices, values = coded(rng, 40, 9, 3, dtype)
    if seed % 2:  # an atom without users, and one whose users have no use for it
        indices[indices == 8], values[indices == 7] = -1, 0
    left = cpu.residuals(X, D, indices, values)
    ours = [device(part) for part in (D, values)]
    own_left = gpu.residuals(device(X), ours[0], device(indices), ours[1])
    near(own_left, left, rounding(dtype))
    cpu.sweep_atoms(left, D, indices, values, 2, 2)
    gpu.sweep_atoms(own_left, ours[0], device(indices), ours[1], 2, 2)
    for found, expected in zip((own_left, *ours), (left, D, values), strict=True):
        near(found, expected, 1e3 * rounding(dtype))


@given(seed=seeds, dtype=dtypes)
def test_sums_of_codes_and_descent_on_atoms(seed, dtype):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((30, 5)).astype(dtype)
    indices, values = coded(rng, 30, 40, 3, dtype)
    used = indices >= 0
    indptr = np.concatenate([[0], np.cumsum(used.sum(axis=1))])
    given = (indptr, indices[used], values[used], X)
    sums = cpu.sum_products(*given, 40)
    for found, expected in zip(gpu.sum_products(*map(device, given), 40), sums, strict=True):
        near(found, expected, 1e-13)
    D = cpu.unit_rows(rng.standard_normal((40, 5)).astype(dtype))
    ours = device(D)
    made = cpu.descend_atoms(*sums, D, 3)
    assert gpu.descend_atoms(*map(device, sums), ours, 3) == made
    near(ours, D, 10 * rounding(dtype))


@given(seed=seeds, dtype=dtypes, n_classes=st.integers(1, 4), first=st.integers(0, 10))
def test_class_parts_of_codes(seed, dtype, n_classes, first):
    rng = np.random.default_rng(seed)
    X, D = (rng.standard_normal((n, 6)).astype(dtype) for n in (20, 12))
    indices, values = coded(rng, 20, 12, 4, dtype)
    used = indices >= 0
    indptr = np.concatenate([[0], np.cumsum(used.sum(axis=1))])[first:]
    flat, X = (indices[used], values[used]), X[first:]
    owner = rng.integers(0, n_classes, 12)
    corr = cpu.products_at(X, D, indptr, flat[0])
    own = gpu.products_at(*map(device, (X, D, indptr, flat[0])))
    near(own, corr, rounding(dtype))
    out = np.repeat(np.vecdot(X, X).astype(np.float64)[:, None], n_classes, axis=1)
    ours = device(out)
    cpu.subtract_class_parts(D @ D.T, corr, indptr, *flat, owner, out)
    gpu.subtract_class_parts(device(D @ D.T), own, *map(device, (indptr, *flat, owner)), ours)
    near(ours, out, rounding(dtype))
    members = [np.flatnonzero(owner == c) for c in range(n_classes)]
    weights, products = rng.standard_normal((len(X), 12)), (X @ D.T).astype(np.float64)
    grams = [D[own] @ D[own].T for own in members]
    dense = [np.zeros((len(X), n_classes)), device(np.zeros((len(X), n_classes)))]
    cpu.subtract_dense_class_parts(grams, products, weights, members, dense[0])
    gpu.subtract_dense_class_parts(
        [device(gram) for gram in grams], device(products), device(weights),
        [device(own) for own in members], dense[1],
    )  # fmt: skip
    near(dense[1], dense[0], rounding(dtype))


@given(
    seed=seeds, m=st.integers(1, 60), K=st.integers(1, 60), n_values=st.sampled_from([1, 3, 10**6]),
    dtype=dtypes, block=st.integers(1, 50),
)  # fmt: skip
def test_smallest_are_those_of_a_stable_sort(seed, m, K, n_values, dtype, block):
    """Few different values make ties, which go to the lower column."""
    K = min(K, m)
    values = np.random.default_rng(seed).integers(-n_values, n_values, (5, m)).astype(dtype)
    expected = book.nearest(values, K)
    indices, kept = gpu.smallest(device(values), K)
    np.testing.assert_array_equal(to_numpy(indices), expected)
    assert (indices.dtype, kept.dtype) == (np.int32, dtype)
    indices, kept = gpu.none_yet(5, K, dtype, like=device(values))
    for first in range(0, m, block):
        gpu.keep_smallest(device(values[:, first : first + block]), first, indices, kept)
    gpu.in_order(indices, kept)
    np.testing.assert_array_equal(to_numpy(indices), expected)


def test_offsets_a_factor_and_what_is_no_number(rng):
    products, norms2 = rng.standard_normal((5, 20)), rng.standard_normal(20)
    products[:, 3], products[0, 1:] = np.nan, np.nan
    both = []
    for engine, made in ((cpu, np.asarray), (gpu, device)):
        indices, values = engine.none_yet(5, 4, np.float64, like=made(products))
        engine.keep_smallest(made(products), 0, indices, values, offsets=made(norms2), factor=-2.0)
        engine.in_order(indices, values)
        both.append(to_numpy(indices))
    np.testing.assert_array_equal(*both)
    assert both[0][0].tolist() == [0, -1, -1, -1]


@given(seed=seeds, dtype=dtypes, columns=st.booleans(), mu=st.sampled_from([0.0, 1e-9, 0.1]))
def test_local_problems(seed, dtype, columns, mu):
    """Singular ones too: twins, padded lists, no ridge."""
    rng = np.random.default_rng(seed)
    X, D = (rng.standard_normal((n, 5)).astype(dtype) for n in (8, 20))
    D[1] = D[0]
    candidates = np.stack([rng.permutation(20)[:4] for _ in X]).astype(np.int32)
    candidates[0], candidates[1, 2:] = (0, 1, 2, 3), -1
    gram = D @ D.T
    grams = cpu.gather(gram, candidates)
    np.testing.assert_array_equal(to_numpy(gpu.gather(device(gram), device(candidates))), grams)
    corrs = np.where(candidates < 0, 0, np.vecdot(X[:, None], D[candidates])).astype(dtype)
    energies = np.vecdot(X, X).astype(np.float64)
    weights = cpu.ridge_local(grams, corrs, mu, columns)
    ours = gpu.ridge_local(device(grams), device(corrs), mu, columns)
    near(ours, weights, 1e-5 if mu == 0 and dtype == np.float32 else 1e-6)
    owners = np.where(candidates < 0, -1, candidates % 3)
    arguments = (grams, corrs, energies, weights, owners)
    expected = cpu.class_parts_local(*arguments, 3, columns)
    found = gpu.class_parts_local(*map(device, arguments), 3, columns)
    for one, other in zip(found, expected, strict=True):
        near(one, other, 1e-9)
    for with_grams in (True, False):
        theirs = cpu.gaussian_local(X, D, candidates, 0.3, with_grams=with_grams)
        own = gpu.gaussian_local(*map(device, (X, D, candidates)), 0.3, with_grams=with_grams)
        assert (own[0] is None) == (not with_grams)
        for one, other in zip(own, theirs, strict=True):
            if other is not None:
                near(one, other, rounding(dtype))


@given(seed=seeds, dtype=dtypes, stacked=st.booleans())
@pytest.mark.parametrize("name", ["l1_distances", "linf_distances", "chi2_distances"])
def test_distances_of_pairs(name, seed, dtype, stacked):
    rng = np.random.default_rng(seed)
    A, B = (rng.integers(0, 4, shape).astype(dtype) for shape in ((2, 5, 4), (3, 4)))
    A = A if stacked else A[0]
    near(getattr(gpu, name)(device(A), device(B)), getattr(cpu, name)(A, B), rounding(dtype))
    with pytest.raises(ValueError, match="as many features"):
        getattr(gpu, name)(device(A), device(B[:, :2]))


@given(seed=seeds, n=st.integers(1, 40), rank=st.integers(1, 45))
def test_pivoted_cholesky(seed, n, rank):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n, rank))
    K = rows @ rows.T
    F, pivots = gpu.pivoted_cholesky(device(K.copy()), n * 1e-15 * np.diagonal(K).max())
    near(F @ F.T, K, 1e-10)
    assert F.shape == (n, min(n, rank))
    assert len(np.unique(to_numpy(pivots))) == len(pivots)
    own = to_numpy(F[pivots])
    np.testing.assert_array_equal(own, np.tril(own))


def test_factors_and_solutions(rng):
    A = rng.standard_normal((7, 7))
    A = A @ A.T + np.eye(7)
    L = np.linalg.cholesky(A)
    near(gpu.cholesky(device(A)), L, 1e-12)
    assert gpu.cholesky(device(-A)) is None
    near(gpu.solve_triangular(device(L), device(A)), np.linalg.solve(L, A), 1e-12)
    transposed = gpu.solve_triangular(device(L), device(A), transposed=True)
    near(transposed, np.linalg.solve(L.T, A), 1e-12)
    root = gpu.root_of_inverse(device(A), 1e-8)
    near(root @ root.T, np.linalg.inv(A), 1e-12)
    assert gpu.root_of_inverse(device(A), 0.9) is None
    assert gpu.root_of_inverse(device(-A), 1e-8) is None
    low = A[:, :3] @ A[:, :3].T
    expected = np.linalg.lstsq(low, low[:, :2], rcond=1e-12)[0]
    near(gpu.least_squares(device(low), device(low[:, :2])), expected, 1e-9)


class TestCompressedRows:
    @given(seed=seeds, dtype=dtypes)
    def test_they_are_the_matrix(self, seed, dtype):
        rng = np.random.default_rng(seed)
        dense = (rng.standard_normal((6, 5)) * (rng.random((6, 5)) < 0.4)).astype(dtype)
        rows, columns = np.nonzero(dense)
        indptr = np.concatenate([[0], np.cumsum(np.count_nonzero(dense, axis=1))])
        made = gpu.csr(device(dense[rows, columns]), device(columns), device(indptr), 5)
        assert (made.shape, made.nnz, made.dtype, len(made)) == ((6, 5), len(rows), dtype, 6)
        np.testing.assert_array_equal(to_numpy(made.toarray()), dense)
        other = rng.standard_normal((5, 3))
        near(made @ device(other), (dense @ other), 1e-6 if dtype == np.float32 else 1e-14)
        np.testing.assert_array_equal(
            to_numpy(gpu.stacked([made, made]).toarray()), np.concatenate([dense, dense])
        )
        assert made.astype(np.float64).dtype == np.float64


def test_work_is_cut_into_large_blocks_in_order():
    seen = []
    gpu.for_blocks(1000, 10, 8, lambda start, stop: seen.append((start, stop)))
    assert seen == [(0, 1000)]
    seen.clear()
    gpu.for_blocks(1000, 1 << 24, 8, lambda start, stop: seen.append((start, stop)))
    assert [start for start, _ in seen] == [0, 256, 512, 768]
    assert seen[-1] == (768, 1000)
    assert gpu.each(lambda i: i * i, range(4)) == [0, 1, 4, 9]
