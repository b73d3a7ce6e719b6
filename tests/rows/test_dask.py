"""Rows of Dask arrays and data frames are the rows of the array, whatever their chunks."""

import itertools
import json
import re
import threading

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask import delayed
from dask.sizeof import sizeof
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from dask_cases import SMALL, chunkings, counted, in_dask, uneven
from kernelatoms import open_rows
from kernelatoms.rows import ArrayRows, SparseRows
from kernelatoms.rows.dask import source as in_source
from kernelatoms.rows.dask.answers import lazy_answers
from kernelatoms.rows.dask.source import DaskRows
from kernelatoms.rows.dask.tasks import Sized
from kernelatoms.rows.routed import Classes, ClassRows, reduce_routed, with_values
from oracles.row_sums import tree_sum

pytestmark = pytest.mark.filterwarnings(SMALL)


def numbers(n, n_columns=3, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).standard_normal((n, n_columns)).astype(dtype)


def listed(block, start, *values):
    """Work whose sums tell every row, its number and what was beside it, in order."""
    beside = zip(*(one.tolist() for one in values), strict=True) if values else [()] * len(block)
    return [(start + i, *row, *own) for i, (row, own) in enumerate(zip(block, beside, strict=True))]


@given(chunkings(), st.integers(1, 9))
def test_passes_see_every_row_once_in_order(chunks, block_rows):
    X = numbers(sum(chunks[0]))
    weights, labels = np.arange(len(X)) / 2, np.arange(len(X))[::-1]
    source = open_rows(in_dask(X, *chunks))
    found = source.reduce(listed, block_rows=block_rows, beside=(weights, labels))
    assert found == listed(X, 0, weights, labels)
    assert source.reduce(listed, block_rows=block_rows) == listed(X, 0)
    assert source.reduce(listed, block_rows=block_rows, add=None) is None


@given(chunkings(), st.integers(1, 9), st.sampled_from([np.float32, np.float64]))
def test_sums_are_those_of_chunks_added_along_a_tree(chunks, block_rows, dtype):
    X = numbers(sum(chunks[0]), dtype=dtype)
    found = open_rows(in_dask(X, *chunks)).reduce(
        lambda block, _: block.sum(axis=0), block_rows=block_rows
    )
    edges = np.cumsum([0, *chunks[0]])
    of_chunks = []
    for start, stop in itertools.pairwise(edges):
        starts = range(start, stop, block_rows)
        if len(starts):
            blocks = [X[i : min(i + block_rows, stop)].copy() for i in starts]
            of_chunks.append(tree_sum(block.sum(axis=0) for block in blocks))
    np.testing.assert_array_equal(found, tree_sum(of_chunks, fan_in=4))
    assert found.dtype == dtype


@given(chunkings(), st.data())
def test_rows_are_those_of_the_array(chunks, data):
    X = numbers(n := sum(chunks[0]))
    rows = in_dask(X, *chunks)
    source = open_rows(rows)
    # Merging columns needs the numbers of rows.
    assert source.shape == (n if chunks[2] or len(chunks[1]) > 1 else None, 3)
    wanted = data.draw(st.lists(st.integers(-n, n - 1), max_size=12))
    np.testing.assert_array_equal(source.take(wanted), X[np.array(wanted, int)])
    assert source.count() == len(source) == n
    assert source.row_chunks == chunks[0]
    np.testing.assert_array_equal(source.collect(), X)
    k = data.draw(st.integers(1, n + 3))
    drawn = [one.sample(k, np.random.RandomState(k)) for one in (source, ArrayRows(X))]
    np.testing.assert_array_equal(*drawn)
    blocks = list(source.blocks(k))
    assert [len(block) for block in blocks] == [min(k, n - i) for i in range(0, n, k)]
    np.testing.assert_array_equal(np.concatenate(blocks), X)


@given(chunkings())
def test_identity_tells_chunks_and_numbers(chunks):
    X = numbers(sum(chunks[0]))
    known = open_rows(in_dask(X, *chunks)).identity()
    assert json.loads(json.dumps(known)) == known
    for same in (in_dask(X, *chunks), in_dask(X, chunks[0])):
        assert open_rows(same).identity() == known
    others = [X + np.eye(len(X), 3), X.astype(np.float32), X[:, :2].copy()]
    others = [in_dask(other, chunks[0]) for other in others]
    others += [in_dask(X, (*chunks[0], 0)), in_dask(X, (0, *chunks[0]))]
    assert all(open_rows(other).identity() != known for other in others)


@pytest.mark.parametrize("threads", ["1", "2", "5"])
def test_any_number_of_threads_gives_the_same_bits(threads, monkeypatch):
    X = numbers(2_000, dtype=np.float32)
    seen = set()

    def work(block, _):
        seen.add(threading.get_ident())
        return block.sum(axis=0)

    sizes = uneven(2_000)
    monkeypatch.setenv("KERNELATOMS_NUM_THREADS", threads)
    found = open_rows(in_dask(X, sizes)).reduce(work, block_rows=16)
    monkeypatch.setenv("KERNELATOMS_NUM_THREADS", "1")
    np.testing.assert_array_equal(found, open_rows(in_dask(X, sizes)).reduce(work, block_rows=16))
    assert len(seen) <= int(threads) + 1


def test_sums_of_chunks_may_be_added_in_place():
    """What is added to is a copy: another worker may need it again."""
    given_out = []

    def work(block, _):
        given_out.append(block.sum(axis=0))
        return given_out[-1]

    def add(left, right):
        left += right
        return left

    X = numbers(60)
    source = open_rows(in_dask(X, 10))
    total = source.reduce(work, block_rows=10, add=add)
    np.testing.assert_allclose(total, X.sum(axis=0))
    sums = sorted(one.tolist() for one in given_out)
    assert sums == sorted(X[i : i + 10].sum(axis=0).tolist() for i in range(0, 60, 10))


def test_chunks_of_unknown_length_are_counted_once():
    X = numbers(60)
    rows, count = counted(in_dask(X, 20, known=False))
    source = open_rows(rows)
    assert count.n == 0
    assert source.count() == source.count() == 60
    assert source.row_chunks == (20, 20, 20)
    assert count.n == 3


@pytest.mark.parametrize(
    ("dtype", "delivered"), [(np.int16, "f8"), (bool, "f8"), (np.float16, "f4"), (">f4", "f4")]
)
def test_numbers_become_floats(dtype, delivered):
    X = (numbers(20) * 4).astype(dtype)
    source = open_rows(in_dask(X, 5))
    assert source.dtype == delivered
    assert source.collect().dtype == delivered
    np.testing.assert_array_equal(source.collect(), X.astype(delivered))
    types = source.reduce(lambda block, _: [block.dtype], block_rows=3)
    assert {one.str for one in types} == {np.dtype(delivered).str}
    assert open_rows(in_dask(X, 5), dtype="float32").take([3]).dtype == np.float32


def test_sparse_chunks():
    X = sparse.random_array((60, 5), density=0.3, format="csr", rng=np.random.default_rng(0))
    for kind in (sparse.csr_array, sparse.csr_matrix, sparse.csc_array):
        rows = in_dask(X.toarray(), 20).map_blocks(kind, meta=kind((0, 0)), dtype=float)
        source, here = open_rows(rows), SparseRows(X)
        for one, other in (
            (source.collect(), X),
            (source.take([41, 0, 3]), X[[41, 0, 3]]),
            (source.sample(7, np.random.RandomState(1)), here.sample(7, np.random.RandomState(1))),
            (sparse.vstack(list(source.blocks(7))), X),
        ):
            assert sparse.issparse(one)
            np.testing.assert_array_equal(one.toarray(), other.toarray())
        sums = [one.reduce(lambda b, _: b.sum(axis=0), block_rows=6) for one in (source, here)]
        np.testing.assert_allclose(*sums)
        assert source.identity() == open_rows(rows).identity()


def frame(n=60):
    X = numbers(n)
    table = pd.DataFrame({"a": X[:, 0], "b": X[:, 1].astype("f4"), "c": np.arange(n)})
    table["d"] = pd.array([None if i % 7 == 0 else i for i in range(n)], dtype="Int64")
    return table.assign(y=[f"label {i % 3}" for i in range(n)])


def test_data_frames():
    table = frame()
    names = ["a", "b", "c", "d"]
    X = table[names].to_numpy(float, na_value=np.nan)
    source = open_rows(dd.from_pandas(table, npartitions=4), label="y")
    assert source.shape == (None, 4)
    assert source.feature_names.tolist() == names
    assert source.labels().tolist() == table["y"].tolist()
    np.testing.assert_array_equal(source.collect(), X)
    assert source.row_chunks == (15, 15, 15, 15)
    some = open_rows(dd.from_pandas(table, npartitions=4), columns=["c", "a"])
    np.testing.assert_array_equal(some.collect(), X[:, [2, 0]])
    fewer = open_rows(dd.from_pandas(table, npartitions=4), drop=["y", "c"])
    assert fewer.feature_names.tolist() == ["a", "b", "d"]
    np.testing.assert_array_equal(fewer.collect(), X[:, [0, 1, 3]])


def test_types_of_data_frames():
    table = frame()
    for columns, dtype in (("b", "f4"), ("bc", "f8"), ("ab", "f8"), ("d", "f8")):
        source = open_rows(dd.from_pandas(table, npartitions=3), columns=list(columns))
        assert source.dtype == dtype
        assert source.collect().dtype == dtype
    asked = open_rows(dd.from_pandas(table, npartitions=3), columns=["a"], dtype="float32")
    np.testing.assert_array_equal(asked.collect(), table[["a"]].to_numpy("f4"))


def test_frames_with_empty_partitions():
    table = frame()
    rows = dd.from_pandas(table[["a", "c"]], npartitions=6)
    few = rows[rows["c"] >= 25]
    source = open_rows(few)
    assert source.row_chunks[:2] == (0, 0)
    np.testing.assert_array_equal(source.collect(), table[["a", "c"]].to_numpy(float)[25:])


def test_labels_and_values_in_dask():
    X, labels = numbers(60), np.array(["one", "three"])[np.arange(60) % 2]
    for y in (in_dask(labels, 20), in_dask(labels[:, None], 20), in_dask(labels, 20, known=False)):
        np.testing.assert_array_equal(open_rows(in_dask(X, 20), label=y).labels(), labels)
    np.testing.assert_array_equal(open_rows(in_dask(X, 20), label=labels).labels(), labels)
    series = dd.from_pandas(pd.Series(labels), npartitions=3)
    for y in (series, series.to_frame(), dd.from_pandas(pd.Series(np.arange(60)), npartitions=3)):
        values = open_rows(in_dask(X, 20)).values(y, "y")
        np.testing.assert_array_equal(values, np.ravel(y.compute()))


@given(chunkings(), st.integers(1, 9), st.integers(1, 4), st.data())
def test_rows_of_classes(chunks, block_rows, n_classes, data):
    n = sum(chunks[0])
    X, weights = numbers(n), np.arange(n) / 4
    numbered = np.array(data.draw(st.lists(st.integers(-1, n_classes - 1), min_size=n, max_size=n)))
    source, classes = open_rows(in_dask(X, *chunks)), Classes.of(numbered)
    for label in set(numbered.tolist()) - {-1}:
        members = np.flatnonzero(numbered == label)
        rows = ClassRows(source, classes, label)
        expected = listed(X[members], 0, weights[members])
        own = {"beside": (weights[members],), "block_rows": block_rows}
        assert rows.reduce(listed, **own) == expected
        assert rows.reduce(listed, **own, add=None) is None
        assert rows.map(np.negative, 3).reduce(
            lambda block, start, *values: listed(-block, start, *values), **own
        ) == expected  # fmt: skip
        np.testing.assert_array_equal(rows.collect(), X[members])
        np.testing.assert_array_equal(rows.take([-1]), X[members[-1:]])


@given(st.lists(st.integers(-2, 4), min_size=1, max_size=40))
def test_places_among_a_class(labels):
    labels = np.array(labels)
    classes = Classes.of(labels)
    assert classes.labels is labels
    assert classes.places.tolist() == [int(np.sum(labels[:i] == k)) for i, k in enumerate(labels)]


def test_all_classes_in_one_pass():
    X, labels = numbers(60), np.arange(60) // 20  # every class is in one chunk alone
    rows, count = counted(in_dask(X, 20))
    source, classes = open_rows(rows), Classes.of(labels)
    works = [(ClassRows(source, classes, k), listed) for k in (2, 0)]
    assert reduce_routed(source, works) == [listed(X[40:], 0), listed(X[:20], 0)]
    assert count.n == 3


@given(st.integers(1, 40), st.integers(1, 9))
def test_values_beside_rows_in_memory(n, block_rows):
    X, beside = numbers(n), (np.arange(n), np.arange(n) / 2)
    for source in (ArrayRows(X), ArrayRows(X).map(np.negative, 3).map(np.negative, 3)):
        found = source.reduce(listed, block_rows=block_rows, beside=beside)
        assert found == listed(X, 0, *beside)
    of_block = with_values(listed, beside)
    assert ArrayRows(X).reduce(of_block, block_rows=block_rows) == listed(X, 0, *beside)
    assert with_values(listed, ()) is listed


def test_values_are_brought_to_chunks_once(monkeypatch):
    source, weights = open_rows(in_dask(numbers(60), 20)), np.arange(60.0)
    source.reduce(listed, block_rows=9, beside=(weights,))
    with monkeypatch.context() as without:
        without.setattr(in_source.da, "from_array", None)
        source.reduce(listed, block_rows=9, beside=(weights,))
    found = source.reduce(listed, block_rows=9, beside=(weights + 1,))
    assert found[3][-1] == 4.0


@given(chunkings())
def test_answers_have_the_chunks_of_the_rows(chunks):
    X = numbers(sum(chunks[0]))
    source = open_rows(in_dask(X, *chunks))
    answers = lazy_answers(lambda b: b[:, :2] * 2, [source], np.empty((0, 2)), task_name="two_of")
    assert answers.chunks == (chunks[0], (2,))
    assert answers.name.startswith("two-of-")
    np.testing.assert_array_equal(answers.compute(), X[:, :2] * 2)
    ones = lazy_answers(
        lambda b, c: b[:, 0] * c[:, 0], [source, source], np.empty(0), task_name="x"
    )
    assert ones.chunks == (chunks[0],)
    np.testing.assert_array_equal(ones.compute(), X[:, 0] ** 2)


def test_bytes_moved_grow_with_every_pass():
    source = open_rows(in_dask(numbers(60), 20))
    moved = [source.bytes_moved]
    for _ in range(2):
        source.reduce(lambda block, _: block.T @ block, block_rows=9)
        moved.append(source.bytes_moved)
    assert moved[0] == 0
    assert moved[2] - moved[1] == moved[1] >= 3 * 72
    assert source.map(np.negative, 3).bytes_moved == moved[2]


def refused(words, kind=ValueError):
    return pytest.raises(kind, match=re.escape(words))


def test_what_are_no_rows():
    X = numbers(60)
    with refused("X must have 2 dimensions, rows and columns, got shape (60,)"):
        open_rows(in_dask(X[:, 0], 20))
    with refused("X has no columns: shape (60, 0)"):
        open_rows(in_dask(X[:, :0], 20))
    some = in_dask(X, 20)[:, da.from_array(np.array([True, False, True]), chunks=3)]
    with refused("X has an unknown number of columns, (60, nan): call X.compute_chunk_sizes()"):
        open_rows(some)
    assert open_rows(some.compute_chunk_sizes()).shape == (60, 2)
    with refused("rows must be numbers, got object", TypeError):
        open_rows(in_dask(X.astype(object), 20))
    with refused("There are no rows."):
        open_rows(in_dask(X[:0], (0, 0))).reduce(listed, block_rows=3)
    with refused("label, columns and drop name columns of tables"):
        open_rows(in_dask(X, 20), columns=["a"])
    with refused("label has 59 values for 60 rows"):
        open_rows(in_dask(X, 20), label=np.zeros(59))
    source = open_rows(in_dask(X, 20))
    with refused("below 60", IndexError):
        source.take([60])


def test_columns_of_frames_that_will_not_do():
    rows = dd.from_pandas(frame(), npartitions=2)
    with refused("The data frame has no column 'z'; it has: a, b, c, d, y."):
        open_rows(rows, label="z")
    for options in ({"columns": ["a", "z"]}, {"drop": ["z"]}):
        with refused("The data frame has no column 'z'"):
            open_rows(rows, **options)
    with refused("X: the column 'y' holds "):
        open_rows(rows)
    with refused("X.drop(columns=['y'])"):
        open_rows(rows)
    with refused("Give columns or drop, not both"):
        open_rows(rows, columns=["a"], drop=["b"])
    with refused("lists of names", TypeError):
        open_rows(rows, columns="a")
    with refused("no columns to learn from"):
        open_rows(rows[["y"]], label="y")
    with refused("got a series"):
        open_rows(rows["a"])


def test_values_that_are_not_beside_the_rows():
    X, y = numbers(60), np.arange(60.0)
    source = open_rows(in_dask(X, 20))
    different = "X and y are chunked differently: X has chunks of 20, 20, 20 rows, y of "
    for chunks in ((30, 30), (20, 20, 19), (20, 20, 10, 10), (20, 20)):
        with refused(different + ", ".join(map(str, chunks))):
            source.values(in_dask(y[: sum(chunks)], chunks), "y")
    many = open_rows(in_dask(X, 5))
    with refused("5, 5, 5, 5, 5, 5, ... (12 chunks)"):
        many.values(in_dask(y, 20), "y")
    holed = np.where(y % 25 == 24, np.nan, y)
    with refused("y is missing (None or NaN) in 1 rows of chunk 1"):
        source.values(in_dask(holed, 20), "y")
    for missing in (None, np.nan, pd.NA):
        words = np.array(["a", "b"], object)[np.arange(60) % 2]
        words[41:43] = missing
        with refused("y is missing (None or NaN) in 2 rows of chunk 2"):
            source.values(in_dask(words, 20), "y")
    with refused("y must be one column, got 2"):
        source.values(dd.from_pandas(frame()[["a", "b"]], npartitions=3), "y")
    kinds = in_dask(y, 20).map_blocks(
        lambda block: block.astype(str) if block[0] == 20 else block, dtype=float
    )
    with refused("y holds values of different types in different chunks"):
        source.values(kinds, "y")


def test_chunks_that_are_not_what_the_array_says():
    X = numbers(60)

    for change, words in (
        (lambda b: b.astype("f4"), "but it is of shape (20, 3) and type float32"),
        (lambda b: b[:, :2], "but it is of shape (20, 2) and type float64"),
        (lambda b: b[1:], "but it is of shape (19, 3) and type float64"),
    ):
        rows = in_dask(X, 20)
        # map_blocks would look at what it returns.
        parts = [delayed(change if i == 1 else np.copy)(rows.blocks[i]) for i in range(3)]
        parts = [da.from_delayed(part, (20, 3), dtype=float) for part in parts]
        source = open_rows(da.concatenate(parts))
        for work in (
            lambda s: s.reduce(listed, block_rows=9), lambda s: s.take([0, 59, 25]),
            lambda s: s.collect(), lambda s: s.identity(),
        ):  # fmt: skip
            with refused("chunk 1 of X must be of shape (20, 3) and type float64") as caught:
                work(source)
            assert words in str(caught.value)
            assert caught.value.__notes__ == ["In chunk 1 of X, rows 20 to 39."]


def test_errors_of_work_come_once_and_say_where():
    calls = []

    def work(block, start):
        calls.append(start)
        if start == 40:
            raise LookupError("mine")
        return 0

    with pytest.raises(LookupError, match="mine") as caught:
        open_rows(in_dask(numbers(60), 20)).reduce(work, block_rows=20)
    assert caught.value.__notes__ == ["In chunk 2 of X, rows 40 to 59."]
    assert calls.count(40) == 1
    assert "work" in [entry.name for entry in caught.traceback]


def test_only_dask_collections_are_taken_for_such():
    assert isinstance(open_rows(in_dask(numbers(60), 20)), DaskRows)
    assert isinstance(open_rows(numbers(60)), ArrayRows)
    assert open_rows(in_dask(numbers(60), 20)).is_distributed
    assert not ArrayRows(numbers(60)).is_distributed
    assert ArrayRows(numbers(60)).row_chunks is None


def test_dask_is_told_how_large_sums_are(rng):
    sums = {"cross": rng.standard_normal((50, 40)), "n": 3}
    assert 50 * 40 * 8 < sizeof(Sized.of(sums)) < 50 * 40 * 8 + 1000
    assert Sized.of(lambda: 0).n_bytes > 0  # cannot be pickled by name, and is no reason to fail
