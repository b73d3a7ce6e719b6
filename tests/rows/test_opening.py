"""What ``open_rows`` takes, what it says of what it cannot take, and files that change."""

import json
import os
import sys

import numpy as np
import pyarrow
import pytest
from pyarrow import csv as arrow_csv
from pyarrow import feather, parquet

from kernelatoms import open_rows
from kernelatoms.rows.source import draw
from rows.kinds import KINDS, Blocks, Dicts, table

X = np.random.default_rng(0).standard_normal((30, 3))


def write_table(name, folder, columns):
    path = folder / name
    found = pyarrow.table(columns)
    if path.suffix == ".parquet":
        parquet.write_table(found, path)
    elif path.suffix == ".csv":
        arrow_csv.write_csv(found, path)
    else:
        feather.write_feather(found, str(path))
    return path


@pytest.fixture(params=[".parquet", ".feather", ".csv"])
def suffix(request):
    return request.param


# Tables


def test_labels_columns_and_drop(suffix, tmp_path):
    names = np.array(["a", "b"], dtype=object)[np.arange(30) % 2]
    columns = {"id": [str(i) for i in range(30)], "u": X[:, 0], "v": X[:, 1], "y": names}
    path = write_table(f"x{suffix}", tmp_path, columns)
    rows = open_rows(path, label="y", drop=["id"])
    assert rows.feature_names.tolist() == ["u", "v"]
    np.testing.assert_array_equal(rows.collect(), X[:, :2])
    assert rows.labels().tolist() == names.tolist()
    rows = open_rows([path, str(path)], label="y", columns=["v", "u"])
    np.testing.assert_array_equal(rows.collect(), np.tile(X[:, [1, 0]], (2, 1)))
    assert rows.labels().tolist() == 2 * names.tolist()
    assert rows.map(np.negative, 2).labels().tolist() == 2 * names.tolist()
    assert open_rows(path, columns=["u"]).labels() is None
    assert open_rows(path, columns=["u"], label=names).labels().tolist() == names.tolist()


def test_numbers_of_all_kinds_and_missing_ones(suffix, tmp_path):
    columns = {
        "whole": pyarrow.array([1, None, 3], pyarrow.int16()),
        "flag": [True, False, None],
        "small": pyarrow.array([0.5, 1.5, None], pyarrow.float32()),
        "none": pyarrow.array([None, None, None], pyarrow.null()),
    }
    if suffix == ".parquet":
        columns["price"] = pyarrow.array([1, 2, 3]).cast(pyarrow.decimal128(25, 2))
        columns["coded"] = pyarrow.array([7.0, 8.0, 7.0]).dictionary_encode()
    if suffix == ".feather":
        columns["half"] = pyarrow.array(np.array([1, 2, 3], np.float16))
    rows = open_rows(write_table(f"x{suffix}", tmp_path, columns))
    expected = [[1, 1, 0.5, np.nan], [np.nan, 0, 1.5, np.nan], [3, np.nan, np.nan, np.nan]]
    extra = {".parquet": [[1, 7], [2, 8], [3, 7]], ".feather": [[1], [2], [3]], ".csv": [[]] * 3}
    np.testing.assert_array_equal(rows.collect(), np.hstack([expected, extra[suffix]]))
    assert rows.dtype == np.float64


def test_types_of_rows(tmp_path):
    for stored, expected in (
        (np.float16, "float32"), (np.float32, "float32"), (np.float64, "float64"),
        (np.int8, "float64"), (np.uint64, "float64"), (bool, "float64"),
    ):  # fmt: skip
        values = (X > 0).astype(stored)
        np.save(tmp_path / "x.npy", values)
        for rows in (open_rows(values), open_rows(tmp_path / "x.npy"), open_rows(Blocks(values))):
            assert rows.dtype == expected
            np.testing.assert_array_equal(rows.collect(), X > 0)
        assert open_rows(values, dtype="float32").dtype == np.float32
    with pytest.raises(ValueError, match="dtype must be float32 or float64, got int64"):
        open_rows(X, dtype=int)


def test_columns_in_another_order_are_found_by_name(suffix, tmp_path):
    write_table(f"a{suffix}", tmp_path, {"u": X[:, 0], "v": X[:, 1]})
    write_table(f"b{suffix}", tmp_path, {"v": X[:, 1], "u": X[:, 0]})
    rows = open_rows(f"{tmp_path}/*{suffix}")
    np.testing.assert_array_equal(rows.collect(), np.tile(X[:, :2], (2, 1)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"label": "z"}, "label names the column 'z', which .* does not have; it has: u, s"),
        ({"columns": ["u", "z"]}, "columns names the column 'z'"),
        ({"drop": ["z"]}, "drop names the column 'z'"),
        ({}, r"the column 's' holds string and no numbers.*drop=\['s'\].*label='s'"),
        ({"columns": ["s"]}, "holds string and no numbers"),
        ({"columns": ["u", "s"], "label": "s"}, "'s' is the label"),
        ({"columns": ["u"], "drop": ["s"]}, "columns or drop, not both"),
        ({"columns": []}, "one column or more"),
        ({"columns": ["u", "u"]}, "each once"),
        ({"columns": ["u"], "label": [1, 2]}, "label has 2 values for 30 rows"),
        ({"columns": ["u"], "tensor": "t"}, "tensor names a tensor in .safetensors"),
    ],
)
def test_columns_that_cannot_be(tmp_path, options, message):
    path = write_table("x.parquet", tmp_path, {"u": X[:, 0], "s": ["a"] * 30})
    with pytest.raises(ValueError, match=message):
        open_rows(path, **options)
    with pytest.raises(TypeError, match="lists of names"):
        open_rows(path, columns="u")


def test_files_that_differ_are_named(suffix, tmp_path):
    write_table(f"a{suffix}", tmp_path, {"u": [1.5], "v": [1.5]})
    write_table(f"b{suffix}", tmp_path, {"u": [1.5], "v": ["x"]})
    message = rf"'v' is double in .*a{suffix} and string in .*b{suffix}"
    with pytest.raises(ValueError, match=message):
        open_rows(f"{tmp_path}/*{suffix}")
    for columns in ({"u": [1.5]}, {"u": [1.5], "v": [2.5], "w": [1.5]}):
        write_table(f"b{suffix}", tmp_path, columns)
        with pytest.raises(ValueError, match=rf"must have the same columns: .*{suffix} has [vw],"):
            open_rows(f"{tmp_path}/*{suffix}")
    assert open_rows(f"{tmp_path}/*{suffix}", columns=["u"]).count() == 2
    write_table(f"b{suffix}", tmp_path, {"u": [1.5], "w": [2.5]})
    with pytest.raises(ValueError, match=rf"b{suffix} must have one column 'v'"):
        open_rows(f"{tmp_path}/*{suffix}", columns=["v"])


def test_numbers_of_other_types_need_a_type(tmp_path):
    write_table("a.parquet", tmp_path, {"u": [1.5]})
    write_table("b.parquet", tmp_path, {"u": [2]})
    with pytest.raises(ValueError, match=r"'u' is double in .* and int64 in .* dtype="):
        open_rows(f"{tmp_path}/*.parquet")
    assert open_rows(f"{tmp_path}/*.parquet", dtype="float64").collect().tolist() == [[1.5], [2]]


def test_csv_columns_that_begin_otherwise_than_they_go_on(tmp_path):
    path = tmp_path / "x.csv"
    n = 1_500_000  # more than is looked at first
    path.write_text("a;b\n" + "1;\n" * n + "2.5;3.5\n" * n)
    rows = open_rows(path)
    assert rows.count() == 2 * n
    np.testing.assert_array_equal(rows.take([0, 2 * n - 1]), [[1, np.nan], [2.5, 3.5]])
    path.write_text("a;b\n" + "1;\n" * n + "2.5;word\n")
    with pytest.raises(ValueError, match=r"x\.csv cannot be read: .*word"):
        open_rows(path).count()


def test_csv_without_names(tmp_path):
    (tmp_path / "x.csv").write_text("1,2\n3,4\n")
    assert open_rows(tmp_path / "x.csv").collect().tolist() == [[1, 2], [3, 4]]
    (tmp_path / "x.tsv").write_text("a\tb\n3\t4\n")
    assert open_rows(tmp_path / "x.tsv").collect().tolist() == [[3, 4]]


def test_lists_of_another_length_are_refused(tmp_path):
    path = write_table("x.parquet", tmp_path, {"v": [[1.0, 2.0], [3.0, 4.0], [5.0]]})
    with pytest.raises(ValueError, match="'v' must all have 2 numbers"):
        open_rows(path).collect()
    path = write_table("x.parquet", tmp_path, {"v": [[1.0, 2.0], None]})
    with pytest.raises(ValueError, match="'v' must all have 2 numbers"):
        open_rows(path).collect()
    path = write_table("x.parquet", tmp_path, {"v": [[1.0, 2.0], [3.0], [4.0, 5.0, 6.0]]})
    with pytest.raises(ValueError, match="'v' must all have 2 numbers"):
        open_rows(path).collect()


def test_an_index_of_pandas_is_no_column(tmp_path):
    import pandas

    frame = pandas.DataFrame(X[:, :2], columns=["u", "v"])[1::2]
    frame.to_parquet(tmp_path / "x.parquet")
    frame.to_csv(tmp_path / "x.csv")
    numbered = open_rows(tmp_path / "x.csv", drop=[""])
    for rows in (open_rows(frame), open_rows(tmp_path / "x.parquet"), numbered):
        assert rows.feature_names.tolist() == ["u", "v"]
        np.testing.assert_array_equal(rows.collect(), X[1::2, :2])
    with pytest.raises(ValueError, match=r"a column without a name.*drop=\[''\]"):
        open_rows(tmp_path / "x.csv")
    (tmp_path / "x.csv").write_text("u,v,u\n1,2,3\n")
    with pytest.raises(ValueError, match="more than one column called 'u'"):
        open_rows(tmp_path / "x.csv")


def test_empty_files_are_left_out(suffix, tmp_path):
    whole = {"u": X[:, 0], "v": X[:, 1]}
    for name, columns in (("a", {k: v[:0] for k, v in whole.items()}), ("b", whole)):
        write_table(f"{name}{suffix}", tmp_path, columns)
    np.testing.assert_array_equal(open_rows(f"{tmp_path}/*{suffix}").collect(), X[:, :2])
    if suffix != ".csv":
        empty = pyarrow.array([], pyarrow.list_(pyarrow.float64()))
        write_table(f"a{suffix}", tmp_path, {"v": empty})
        write_table(f"b{suffix}", tmp_path, {"v": list(X)})
        np.testing.assert_array_equal(open_rows(f"{tmp_path}/*{suffix}").collect(), X)


# Names of files


def test_names_that_are_no_rows(tmp_path):
    (tmp_path / "x.txt").write_text("1")
    np.save(tmp_path / "x.npy", X)
    for name, kind, message in (
        ("y.npy", FileNotFoundError, "There is no file .*y.npy"),
        ("*.parquet", FileNotFoundError, r"No file matches .*\*.parquet"),
        ("x.txt", ValueError, "x.txt cannot be read block by block; what can: .npy"),
        (".", ValueError, r"is a folder: give a pattern such as .*\*.parquet"),
        ("x.*", ValueError, "must be of one kind, got .npy, .txt"),
    ):
        with pytest.raises(kind, match=message):
            open_rows(tmp_path / name)
    with pytest.raises(ValueError, match="label, columns and drop name columns of tables"):
        open_rows(tmp_path / "x.npy", label="y")
    with pytest.raises(ValueError, match="name columns of tables; an array has no names"):
        open_rows(X, columns=["a"])
    with pytest.raises(ValueError, match="rows are open already"):
        open_rows(open_rows(X), label="y")
    rows = open_rows(X)
    assert open_rows(rows) is rows


def test_natural_order(tmp_path):
    for i in (10, 9, 100, 1):
        np.save(tmp_path / f"{i}.npy", np.full((1, 2), float(i)))
    assert open_rows(f"{tmp_path}/*.npy").collect()[:, 0].tolist() == [1, 9, 10, 100]


# Damaged files


@pytest.mark.parametrize(
    "suffix", [".parquet", ".feather", ".arrow", ".csv", ".npy", ".safetensors"]
)
def test_files_of_another_kind_and_empty_ones(suffix, tmp_path):
    path = tmp_path / f"x{suffix}"
    options = {"tensor": "t"} if suffix == ".safetensors" else {}
    for content in (b"", b"\x00" * 100, bytes(range(256)) * 10):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=rf"x{suffix}"):
            open_rows(path, **options).count()


def test_numpy_files_that_lie(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, X)
    honest = path.read_bytes()
    for lie, message in (
        (honest[:-8], "cut short: 30 rows of 3 columns take 848 bytes, and it has 840"),
        (honest.replace(b"(30, 3)", b"(900000"), "x.npy cannot be read as a NumPy file"),
        (honest.replace(b"(30, 3), ", b"(99, 99),"), "cut short: 99 rows"),
        (honest.replace(b"(30, 3), ", b"(-3, -3),"), "negative"),
        (honest.replace(b"(30, 3), ", b"(90,),   "), r"shape \(90,\); rows need 2 dimensions"),
    ):
        path.write_bytes(lie)
        with pytest.raises(ValueError, match=message):
            open_rows(path)
    np.save(path, np.array([["a", "b"]]))
    with pytest.raises(ValueError, match="holds <U1; rows must be numbers"):
        open_rows(path)
    np.save(path, np.array([[{}]]), allow_pickle=True)
    with pytest.raises(ValueError, match="holds object; rows must be numbers"):
        open_rows(path)


def test_numpy_files_that_differ(tmp_path):
    np.save(tmp_path / "a.npy", X)
    np.save(tmp_path / "b.npy", X[:, :2])
    with pytest.raises(ValueError, match=r"a.npy has 3 and .*b.npy has 2"):
        open_rows(f"{tmp_path}/*.npy")
    np.save(tmp_path / "b.npy", X.astype(np.float32))
    with pytest.raises(ValueError, match=r"a.npy has float64 and .*b.npy has float32. With dtype="):
        open_rows(f"{tmp_path}/*.npy")
    assert open_rows(f"{tmp_path}/*.npy", dtype="float32").collect().dtype == np.float32


def write_tensors(path, header, data):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def test_bfloat16_tensors(tmp_path):
    path = tmp_path / "x.safetensors"
    values = np.array([[1.0, -2.5], [0.15625, 3e38]], np.float32)
    upper = (values.view(np.uint32) >> 16).astype("<u2")
    entry = {"dtype": "BF16", "shape": [2, 2], "data_offsets": [0, 8]}
    write_tensors(path, {"t": entry}, upper.tobytes())
    rows = open_rows(path, tensor="t")
    assert rows.dtype == np.float32
    expected = (upper.astype(np.uint32) << 16).view(np.float32)
    np.testing.assert_array_equal(rows.collect(), expected)
    np.testing.assert_array_equal(rows.take([1]), expected[1:])


def test_tensors_as_the_library_writes_them(tmp_path):
    library = pytest.importorskip("safetensors.numpy")
    library.save_file({"t": X, "u": X[:2]}, tmp_path / "x.safetensors")
    np.testing.assert_array_equal(open_rows(tmp_path / "x.safetensors", tensor="t").collect(), X)


def test_tensors_that_lie(tmp_path):
    path = tmp_path / "x.safetensors"
    honest = {"dtype": "F64", "shape": [2, 3], "data_offsets": [0, 48]}
    write_tensors(path, {"t": honest}, bytes(48))
    with pytest.raises(ValueError, match="Say which tensor of"):
        open_rows(path)
    with pytest.raises(ValueError, match=r"has no tensor 'u'; it has: t\."):
        open_rows(path, tensor="u")
    for lie, message in (
        ({"shape": [2, 4]}, "contradicts its shape"),
        ({"shape": [-2, -3]}, "contradicts its shape"),
        ({"shape": [2, 3.0]}, "contradicts its shape"),
        ({"shape": [10**12, 3], "data_offsets": [0, 24 * 10**12]}, "cut short"),
        ({"data_offsets": [-8, 40]}, "contradicts its shape"),
        ({"data_offsets": [48, 0]}, "contradicts its shape"),
        ({"data_offsets": [0]}, "header is damaged"),
        ({"data_offsets": [8, 56]}, "cut short"),
        ({"dtype": "F8_E4M3"}, "of type F8_E4M3"),
        ({"shape": [6]}, "2 dimensions"),
    ):
        write_tensors(path, {"t": honest | lie}, bytes(48))
        with pytest.raises(ValueError, match=message):
            open_rows(path, tensor="t")
    for header in (b"{", b"[1]", b'{"t": 3}', b'{"t": {"dtype": "F64"}}', b"\xff\xfe"):
        write_tensors(path, header, bytes(48))
        with pytest.raises(ValueError, match=r"x\.safetensors"):
            open_rows(path, tensor="t")
    path.write_bytes((1 << 60).to_bytes(8, "little") + bytes(48))
    with pytest.raises(ValueError, match="is no safetensors file, or is cut short"):
        open_rows(path, tensor="t")


# Files that change


FILES = ["npy", "npy by columns", "memmap", "parquet", "feather", "csv", "safetensors"]


@pytest.mark.parametrize("kind", FILES)
def test_files_that_vanish_or_change(kind, tmp_path):
    long = np.random.default_rng(0).standard_normal((3000, 3))
    rows = KINDS[kind](long, tmp_path)
    paths = sorted(tmp_path.iterdir())
    rows.count()
    last = paths[-1]
    held = last.read_bytes()
    os.utime(last, (1, 1))
    with pytest.raises(ValueError, match=f"{last.name} has changed since these rows were opened"):
        rows.reduce(lambda block, start: 0, block_rows=100)
    last.write_bytes(held[: len(held) // 2])
    with pytest.raises(ValueError, match=f"{last.name} has changed"):
        list(rows.blocks(100))
    last.unlink()
    for read in (rows.collect, rows.count if rows.n_rows is None else rows.collect):
        with pytest.raises(FileNotFoundError, match=f"{last.name} is gone"):
            read()


@pytest.mark.parametrize("kind", ["npy", "parquet", "feather", "csv", "safetensors"])
def test_a_file_that_vanishes_during_a_pass(kind, tmp_path):
    rows = KINDS[kind](np.random.default_rng(0).standard_normal((3000, 3)), tmp_path)
    blocks = rows.blocks(10)
    next(blocks)
    path = tmp_path / next(p.name for p in tmp_path.iterdir() if p.stem == "part-10")
    path.unlink()
    with pytest.raises(FileNotFoundError, match=r"part-10\.\w+ is gone"):
        list(blocks)


def test_a_numpy_file_that_is_cut_during_a_pass(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.zeros((3000, 3)))
    blocks = open_rows(path).blocks(10)
    next(blocks)
    os.truncate(path, 10_000)
    with pytest.raises(ValueError, match=r"x\.npy was cut short while it was read"):
        list(blocks)


# Iterables


def test_what_gives_its_rows_once_is_refused():
    for once in ((row for row in X), iter([X]), map(np.asarray, [X])):
        with pytest.raises(TypeError, match=r"gives its rows once.*partial_fit"):
            open_rows(once)
    for nothing in (3, None, object()):
        with pytest.raises(TypeError, match="holds no rows"):
            open_rows(nothing)


class Items:
    def __init__(self, *items):
        self.items = items

    def __iter__(self):
        return iter(self.items)


def test_dicts_and_labels():
    rows = open_rows(Dicts(X), label="y", columns=["vector"])
    assert rows.labels().tolist() == [i % 3 for i in range(30)]
    batches = Items({"a": [1, 2], "b": [[3, 4], [5, 6]], "y": ["u", "v"]})
    rows = open_rows(batches, label="y")
    assert rows.collect().tolist() == [[1, 3, 4], [2, 5, 6]]
    assert rows.labels().tolist() == ["u", "v"]
    assert open_rows(Items({"a": [1, 2, 3]}, {"a": [4, 5, 6]})).collect().shape == (2, 3)
    single = Items({"image": [[1, 2], [3, 4]], "y": 0}, {"image": [[5, 6], [7, 8]], "y": 1})
    assert open_rows(single, label="y").collect().tolist() == [[1, 2, 3, 4], [5, 6, 7, 8]]
    assert open_rows([{"a": 1, "b": 2}, {"b": 4, "a": 3}]).collect().tolist() == [[1, 2], [3, 4]]
    assert open_rows(Items([1, 2], (3, 4))).collect().tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("items", "options", "message"),
    [
        ([], {}, "yields no rows"),
        ([[1, 2], [1, 2, 3]], {}, "the first has 2, another has 3"),
        ([[1, 2], ["a", "b"]], {}, "Items must be rows of numbers"),
        ([np.zeros((2, 2, 2))], {}, "Items must be rows of numbers"),
        ([[1, 2], {"a": 1, "b": 2}], {}, "All items must be dicts, or none"),
        ([{"a": 1}, {"b": 1}], {}, "An item has no 'a'; it has: b"),
        ([{"a": 1, "s": "x"}], {}, r"'s' holds <U1 and no numbers. .*drop=\['s'\]"),
        ([{"a": 1}], {"label": "y"}, "An item has no 'y'"),
        ([{"a": [1, 2], "b": [1]}], {}, "differ in length"),
        ([[1, 2]], {"label": "y"}, "the items are no dicts"),
        ([{"a": 1, "y": 1}], {"columns": ["a", "y"], "label": "y"}, "not the label"),
    ],
)
def test_items_that_are_no_rows(items, options, message):
    with pytest.raises(ValueError, match=message):
        open_rows(Items(*items), **options).count()


def test_iterables_that_change_their_length():
    items = Blocks(X)
    rows = open_rows(items)
    assert rows.n_rows is None
    with pytest.raises(TypeError, match="not been counted"):
        len(rows)
    assert rows.count() == 30
    starts = []
    for other in (X[:-1], np.vstack([X, X])):
        items.X = other
        with pytest.raises(ValueError, match="there were 30 and there are now"):
            rows.reduce(lambda block, start: starts.append(start), block_rows=7, add=None)
    assert max(starts) <= 28  # no block of the rows that are too many


# Samples


def test_draws_of_many_rows():
    class Draws(np.random.RandomState):
        def permutation(self, n):
            raise AssertionError("so many numbers are not shuffled")

    n = 10**8
    drawn = draw(n, 100_000, Draws(0))
    # In the order in which they were drawn; a number that comes again is left out.
    first = list(dict.fromkeys(np.random.RandomState(0).randint(0, n, 100_000).tolist()))
    assert len(first) < 100_000
    assert drawn[: len(first)].tolist() == first
    assert len(np.unique(drawn)) == 100_000
    assert drawn.min() >= 0
    assert drawn.max() < n
    again = draw(n, 100_000, np.random.RandomState(0))
    np.testing.assert_array_equal(drawn, again)
    assert abs(drawn.mean() / n - 0.5) < 0.02
    # A draw that repeats.
    drawn = draw((1 << 22) + 1, 1 << 18, np.random.RandomState(0))
    assert len(np.unique(drawn)) == 1 << 18


def test_a_missing_package_is_named(monkeypatch, tmp_path):
    path = write_table("x.parquet", tmp_path, table(X).to_pydict())
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"needs pyarrow.*pip install 'kernelatoms\[cli\]'"):
        open_rows(path)
    monkeypatch.setitem(sys.modules, "zarr", None)
    (tmp_path / "x.zarr").mkdir()
    with pytest.raises(ImportError, match=r"needs zarr.*pip install 'kernelatoms\[zarr\]'"):
        open_rows(tmp_path / "x.zarr")
