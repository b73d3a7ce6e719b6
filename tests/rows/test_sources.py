"""Every kind of source: the same rows, blocks, samples and sums as the array in memory."""

import json
import pickle

import numpy as np
import pytest
from scipy import sparse

from oracles.row_sums import tree_sum
from rows.kinds import KINDS

N, P = 331, 7
NEEDS = {"zarr": "zarr"}


def rows_of(dtype=np.float64):
    return np.random.default_rng(3).standard_normal((N, P)).astype(dtype)


def dense(block):
    return block.toarray() if sparse.issparse(block) else block


@pytest.fixture(params=KINDS)
def kind(request):
    if request.param in NEEDS:
        pytest.importorskip(NEEDS[request.param])
    return request.param


@pytest.fixture(params=[np.float64, np.float32])
def X(request):  # noqa: N802
    return rows_of(request.param)


@pytest.fixture
def source(kind, X, tmp_path):
    return KINDS[kind](X, tmp_path)


def test_blocks_are_the_rows(source, X):
    assert source.n_features == P
    assert source.dtype == X.dtype
    assert source.n_rows in (None, N)
    for n in (1, 8, 50, 110, 330, 331, 5000):
        blocks = list(source.blocks(n))
        assert [b.shape[0] for b in blocks] == [min(n, N - i) for i in range(0, N, n)]
        for i, block in enumerate(blocks):
            assert block.dtype == X.dtype
            assert sparse.issparse(block) or block.flags.c_contiguous
            np.testing.assert_array_equal(dense(block), X[i * n : (i + 1) * n])
    assert source.n_rows == len(source) == N
    assert source.shape == (N, P)


def test_passes_may_interleave_and_stop_early(source, X):
    first, second = iter(source.blocks(100)), iter(source.blocks(60))
    np.testing.assert_array_equal(dense(next(first)), X[:100])
    np.testing.assert_array_equal(dense(next(second)), X[:60])
    np.testing.assert_array_equal(dense(next(first)), X[100:200])
    np.testing.assert_array_equal(dense(next(second)), X[60:120])
    first.close()
    np.testing.assert_array_equal(dense(next(second)), X[120:180])


def test_collect_and_default_blocks(source, X):
    np.testing.assert_array_equal(dense(source.collect()), X)
    np.testing.assert_array_equal(np.concatenate([dense(block) for block in source]), X)


def test_take_in_any_order_and_twice(source, X):
    wanted = np.array([330, 0, 5, 5, 120, -1, 3])
    np.testing.assert_array_equal(dense(source.take(wanted)), X[wanted])
    assert dense(source.take([])).shape == (0, P)
    for wrong in ([N], [-N - 1]):
        with pytest.raises(IndexError, match="below 331"):
            source.take(wrong)
    with pytest.raises(ValueError, match="whole numbers"):
        source.take([0.5])


@pytest.mark.parametrize("n", [1, 100, N, N + 5])
def test_samples_are_those_of_the_array(source, X, n):
    drawn = dense(source.sample(n, np.random.RandomState(7)))
    np.testing.assert_array_equal(drawn, X[np.random.RandomState(7).permutation(N)[:n]])


def test_count_without_a_pass_before(source):
    assert source.count() == N


@pytest.mark.parametrize("threads", ["1", "2", "5"])
def test_sums_are_the_same_bits_for_any_number_of_threads(source, X, threads, monkeypatch):
    monkeypatch.setenv("KERNELATOMS_NUM_THREADS", threads)
    starts = []

    def work(block, start):
        starts.append(start)
        return dense(block).sum(axis=0)

    total = source.reduce(work, block_rows=3)
    expected = tree_sum(np.ascontiguousarray(X[i : i + 3]).sum(axis=0) for i in range(0, N, 3))
    np.testing.assert_array_equal(total, expected)
    assert sorted(starts) == list(range(0, N, 3))


def test_a_source_is_no_array(source):
    with pytest.raises(TypeError, match="collect"):
        np.asarray(source)


def test_identity_can_be_written_and_is_the_same_before_and_after_a_pass(source):
    before = json.dumps(source.identity())
    source.count()
    assert json.dumps(source.identity()) == before


def test_identity_tells_other_rows(kind, tmp_path):
    X = rows_of()
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    known = KINDS[kind](X, tmp_path / "a").identity()
    X[0, 0] += 1
    assert KINDS[kind](X, tmp_path / "b").identity() != known


def test_maps_are_lazy_sources(source, X):
    calls = []

    def double(rows):
        calls.append(rows.shape[0])
        return 2 * dense(rows)[:, :3]

    mapped = source.map(double, 3, names=["a", "b", "c"])
    assert not calls
    assert mapped.labels() is None or len(mapped.labels()) == N
    blocks = list(mapped.blocks(100))
    assert calls == [100, 100, 100, 31]
    np.testing.assert_array_equal(np.concatenate(blocks), 2 * X[:, :3])
    np.testing.assert_array_equal(mapped.take([4, 2]), 2 * X[[4, 2], :3])
    rng = np.random.RandomState(0)
    order = np.random.RandomState(0).permutation(N)[:9]
    np.testing.assert_array_equal(mapped.sample(9, rng), 2 * X[order, :3])
    total = mapped.reduce(lambda block, start: block.sum(axis=0), block_rows=100)
    np.testing.assert_array_equal(total, tree_sum(block.sum(axis=0) for block in blocks))
    assert mapped.map(np.negative, 3).shape == (N, 3)
    assert mapped.feature_names.tolist() == ["a", "b", "c"]


def test_maps_to_sparse_rows_and_to_single_values(source, X):
    codes = source.map(lambda rows: sparse.csr_array(dense(rows) * (dense(rows) > 1)), P)
    assert sparse.issparse(codes.collect())
    np.testing.assert_array_equal(dense(codes.collect()), X * (X > 1))
    np.testing.assert_array_equal(dense(codes.take([9, 1])), (X * (X > 1))[[9, 1]])
    signs = source.map(lambda rows: dense(rows)[:, 0] > 0, None, dtype=bool)
    np.testing.assert_array_equal(signs.collect(), X[:, 0] > 0)
    assert signs.shape in ((N,), (None,))


def test_sources_can_be_pickled(kind, source, X):
    if kind == "mapped":
        pytest.skip("a lambda cannot be pickled")
    again = pickle.loads(pickle.dumps(source))
    np.testing.assert_array_equal(dense(again.collect()), X)
