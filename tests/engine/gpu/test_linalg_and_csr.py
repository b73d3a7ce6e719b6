"""Factors and solutions, compressed rows and blocks, which only device arrays have."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch")

from kernelatoms.engine import gpu, to_numpy
from machines import assert_near, tensor_machine

device = tensor_machine().array
seeds = st.integers(0, 2**31)
dtypes = st.sampled_from([np.float32, np.float64])


@given(seed=seeds, n=st.integers(1, 40), rank=st.integers(1, 45))
def test_pivoted_cholesky(seed, n, rank):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n, rank))
    K = rows @ rows.T
    F, pivots = gpu.pivoted_cholesky(device(K.copy()), n * 1e-15 * np.diagonal(K).max())
    assert_near(to_numpy(F @ F.T), K, 1e-10)
    assert F.shape == (n, min(n, rank))
    assert len(np.unique(to_numpy(pivots))) == len(pivots)
    own = to_numpy(F[pivots])
    np.testing.assert_array_equal(own, np.tril(own))


def test_factors_and_solutions(rng):
    A = rng.standard_normal((7, 7))
    A = A @ A.T + np.eye(7)
    L = np.linalg.cholesky(A)
    assert_near(to_numpy(gpu.cholesky(device(A))), L, 1e-12)
    assert gpu.cholesky(device(-A)) is None
    assert_near(to_numpy(gpu.solve_triangular(device(L), device(A))), np.linalg.solve(L, A), 1e-12)
    transposed = gpu.solve_triangular(device(L), device(A), transposed=True)
    assert_near(to_numpy(transposed), np.linalg.solve(L.T, A), 1e-12)
    root = gpu.root_of_inverse(device(A), 1e-8)
    assert_near(to_numpy(root @ root.T), np.linalg.inv(A), 1e-12)
    assert gpu.root_of_inverse(device(A), 0.9) is None
    assert gpu.root_of_inverse(device(-A), 1e-8) is None
    low = A[:, :3] @ A[:, :3].T
    expected = np.linalg.lstsq(low, low[:, :2], rcond=1e-12)[0]
    assert_near(to_numpy(gpu.least_squares(device(low), device(low[:, :2]))), expected, 1e-9)


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
        assert_near(
            to_numpy(made @ device(other)), (dense @ other), 1e-6 if dtype == np.float32 else 1e-14
        )
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


def test_no_gram_matrix_of_very_many_atoms():
    assert not gpu.prefers_no_gram(4096, 10, 1, 4)
    assert gpu.prefers_no_gram(4097, 10**9, 1, 4)
