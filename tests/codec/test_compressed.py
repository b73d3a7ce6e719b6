"""Files of all kinds through ``compress`` and back: within the bound, and all else as it was."""

import csv
import datetime
import io
import os
import zipfile
from types import SimpleNamespace

import numpy as np
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy
from pyarrow import parquet

from codec.containers import X, make
from kernelatoms import compress, decompress, inspect_compressed
from kernelatoms.codec import CodecError, fit_codec
from kernelatoms.codec.bounds import Bound, ColumnSums, ErrorStats
from kernelatoms.codec.container import Part
from kernelatoms.codec.file_writer import lost_columns
from kernelatoms.codec.packed.arrays import Layout
from kernelatoms.files import TableError

QUICK = {"model": "lags"}


def back(path, **options):
    """Compress a file and return what it comes back as."""
    compress(path, path.with_name("it.kac"), **{**QUICK, **options})
    return decompress(path.with_name("it.kac"), path.with_name(f"back{path.suffix}"))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder for many files of the same name."""
    return tmp_path_factory.mktemp("files")


ARRAYS = st.one_of(
    st_numpy.arrays(
        st.sampled_from(["<f8", "<f4", ">f8", "<f2"]),
        st_numpy.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5),
        elements=st.floats(-100, 100, width=16) | st.sampled_from([np.nan, np.inf, -np.inf]),
    ),
    st_numpy.arrays(
        st.sampled_from(["<i8", ">i4", "u1", "?", "<M8[s]", "U2", "S3", "c16"]),
        st_numpy.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
    ),
)


def check_array(array, again):
    assert (again.dtype, again.shape) == (array.dtype, array.shape)
    lossy = array.dtype.kind == "f" and 1 <= array.ndim <= 3
    if not lossy:
        assert again.tobytes("C") == array.tobytes("C")
    elif array.size:
        width = array.shape[-1] if array.ndim > 1 else 1
        rows = [a.astype("f8").reshape(-1, width) for a in (array, again)]
        assert not Bound(0.01).broken(*rows).any()


@given(ARRAYS, st.booleans())
def test_arrays(place, array, columns_first):
    if columns_first:
        array = np.asfortranarray(array)
    path = place / "array.npy"
    np.save(path, array)
    again = back(path)
    check_array(array, np.load(again))
    with path.open("rb") as one, again.open("rb") as other:
        n = np.lib.format.read_magic(one)[0] and 128
        assert one.read(n - 8) == other.read(n)[8:]  # the head, byte by byte


@given(st.dictionaries(st.text(st.characters(codec="ascii", categories=["L"]), min_size=1), ARRAYS,
                       max_size=4), st.booleans())  # fmt: skip
def test_archives(place, arrays, deflated):
    path = place / "arrays.npz"
    (np.savez_compressed if deflated else np.savez)(path, **arrays)
    with np.load(back(path)) as again:
        assert again.files == list(arrays)
        for name, array in arrays.items():
            check_array(array, again[name])


def test_members_that_are_no_arrays_of_numbers(tmp_path):
    path = tmp_path / "odd.npz"
    np.savez(path, a=np.array([1, None], object), b=np.ones((3, 2)))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("notes.txt", "measured on Monday")
    summary = compress(path, **QUICK)
    assert "a.npy is no array of plain numbers" in summary.notes[0]
    decompress(summary.path, tmp_path / "back.npz")
    with zipfile.ZipFile(path) as one, zipfile.ZipFile(tmp_path / "back.npz") as other:
        assert one.namelist() == other.namelist()
        for name in ("a.npy", "notes.txt"):
            assert one.read(name) == other.read(name)


# Fields as people and programs write them.
FIELDS = st.one_of(
    st.floats(-1e6, 1e6).map(lambda x: f"{x:.2f}"),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.integers(-(10**20), 10**20).map(str),
    st.sampled_from(["", "NA", "nan", "?", "007", "+1.5", "1e5", "-0", ".5", "5.", "1e999", " 2.5",
                     '""', '"a,b"', '"x\ny"', '"1.5"', "word", "2020-01-01", "é", "0x1f"]),
)  # fmt: skip


def parsed(field):
    """Return the number that a plain field is; NaN for all others."""
    text = field.strip().strip('"')
    try:
        return float(text) if text and text[0] in "-.0123456789" else np.nan
    except ValueError:
        return np.nan


@given(st.lists(st.lists(FIELDS, min_size=3, max_size=3), max_size=8),
       st.sampled_from([",", ";", "\t", "|"]), st.sampled_from(["\n", "\r\n"]), st.booleans(),
       st.sampled_from(["", "\ufeff"]))  # fmt: skip
def test_texts(place, rows, delimiter, end, open_end, mark):
    rows = [[f if delimiter not in f or f[0] == '"' else "x" for f in row] for row in rows]
    lines = [delimiter.join(fields) for fields in (["a", "b b", ""], *rows)]
    text = mark + end.join(lines) + ("" if open_end else end)
    path = place / "table.csv"
    path.write_bytes(text.encode())
    again = back(path).read_bytes().decode()
    if again == text:
        return
    one, other = (read_all(t, delimiter) for t in (text, again))
    assert [len(row) for row in one] == [len(row) for row in other]
    numbers = []
    for row, new in zip(one, other, strict=True):
        for a, b in zip(row, new, strict=True):
            assert a == b or not np.isnan(parsed(a))  # only numbers may differ
        numbers.append([(parsed(a), parsed(b)) for a, b in zip(row, new, strict=True) if a != b])
    for changed in numbers:
        if changed:
            a, b = np.array(changed).T
            # Values that did not change only make a row's norm larger: this is no bound, a look.
            assert (np.abs(a - b) <= 0.01 * 2e308).all()
    assert inspect_compressed(place / "it.kac", path).rows_beyond == 0


def read_all(text, delimiter):
    """Return the fields of all lines as they stand there, quotes included."""
    found, row, field, quoted = [], [], "", False
    for sign in text:
        if sign == '"':
            quoted = not quoted
        if sign in (delimiter, "\n") and not quoted:
            row.append(field)
            field = ""
            if sign == "\n":
                found.append(row)
                row = []
        else:
            field += sign
    return [*found, [*row, field]]


TEXTS = [
    "a,b\n1.5,2\n", "a,b\n1.5,2", "a\n1.5\n2\n\n3.25\n", "a,b\n", "a,b", "x\n", "1,2\n3,4\n",
    "title\n\n# made by hand\na,b,c\n1.0,2.0,x\n1.0,2.0\n3.5,4.5,y\n\n\n", "a,a,\n1.5,2.5,3\n",
    '"a,x",b\n1.25,"q\nr"\n0.5,""\n', "a, b\n1.5, 2.5\n3.5, 4.5\n", "a\r1.5\r2.5\r", "a,b\r\n1.5,2",
    "a,b\r\n1.5,2\n2.5,3\r\n", '"a"\n"1.5"\n"2.5"\n', "id,v\n007,1.5\n008,2.5\n", "é,b\n1.5,ü\n",
    "v\n-0.0\n.5\n5.\n+3.5\n007.5\n", "a;b\n1,5;2,5\n3,5;4,5\n", "a,b,c\n,,\n1.5,,\n,NA,?\n",
    "1.5 2.5\n3.5 4.5\n",
    "n\n9007199254740993\n18446744073709551615\n", "a,b\n1.5,x\n1.5\n2.5,y,z\n3.5,z\n",
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_comes_back_letter_by_letter(text, tmp_path):
    """The numbers in it are so few digits that they do not change within a bound this tight."""
    path = tmp_path / "a.csv"
    path.write_bytes(text.encode())
    assert back(path, max_error=1e-9).read_bytes() == text.encode()
    path.write_bytes(text.encode("utf-8-sig"))
    assert back(path, max_error=1e-9).read_bytes() == text.encode("utf-8-sig")


def test_pandas_exports(tmp_path, rng):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "when": pandas.date_range("2024-01-01", periods=60, freq="10min", tz="Europe/Berlin"),
            "t": (20 + rng.normal(size=60)).round(2),
            "p": 1000 + rng.normal(size=60),
            "n": rng.integers(100, size=60),
            "word": ["good", 'a "b", c', None, ""] * 15,
        }
    )
    frame.loc[3:5, "t"] = np.nan
    for how in ({}, {"sep": ";", "decimal": ","}, {"quoting": csv.QUOTE_ALL}, {"na_rep": "NA"}):
        path = tmp_path / "frame.csv"
        frame.to_csv(path, **how)
        read = {"sep": how.get("sep", ","), "decimal": how.get("decimal", "."), "index_col": 0}
        again = pandas.read_csv(back(path), **read)
        one = pandas.read_csv(path, **read)
        kept = ["when", "n", "word"]
        pandas.testing.assert_frame_equal(again[kept], one[kept])
        floats = [f[["t", "p"]].to_numpy() for f in (one, again)]
        assert not Bound(0.01).broken(*floats).any()


def test_decimals_are_at_most_those_of_the_column(tmp_path, rng):
    """Where the bound leaves room for it; else there are a few more."""
    path = tmp_path / "a.csv"
    path.write_text("a,b,c\n" + "".join(f"{x:.1f},{y:.2f},{z!r}\n" for x, y, z in
                                        (100 + rng.normal(size=(200, 3))).tolist()))  # fmt: skip
    lines = back(path, max_error=0.05, model="pca").read_text().splitlines()[1:]
    decimals = np.array([[len(f.partition(".")[2]) for f in line.split(",")] for line in lines])
    assert decimals.max() <= 5
    again = back(path, max_error=1e-7).read_text().splitlines()[1:]
    assert [line.split(",")[:2] for line in again] == [
        line.split(",")[:2] for line in path.read_text().splitlines()[1:]
    ]


def table(rng, n=300):
    start = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
    return pyarrow.table(
        {
            "f": rng.normal(size=n),
            "gaps": [None if i % 7 == 0 else (np.nan if i % 5 == 0 else i / 3) for i in range(n)],
            "narrow": pyarrow.array(rng.normal(size=n).astype("f4")),
            "half": pyarrow.array(rng.normal(size=n).astype("f2")),
            "id": np.arange(n) + 2**60,
            "large": pyarrow.array(np.arange(n, dtype="u8") + 2**63),
            "small": pyarrow.array([None if i % 3 else i % 100 for i in range(n)], pyarrow.int8()),
            "flag": [None, True, False] * (n // 3),
            "word": [f"w{i % 10}" if i % 9 else (None if i % 2 else "") for i in range(n)],
            "day": [datetime.date(2020, 1, 1) + datetime.timedelta(i) for i in range(n)],
            "when": pyarrow.array(
                [start + datetime.timedelta(seconds=i) for i in range(n)],
                pyarrow.timestamp("ns", "Europe/Berlin"),
            ),
            "lists": [[1.5] * (i % 3) for i in range(n)],
            "kinds": pyarrow.array(["aa", "bb", "aa"] * (n // 3)).dictionary_encode(),
            "none": pyarrow.nulls(n),
        }
    ).replace_schema_metadata({"who": "me"})


@pytest.mark.parametrize("block_rows", [None, 64])
def test_typed_tables(tmp_path, rng, block_rows):
    path = tmp_path / "t.parquet"
    parquet.write_table(table(rng), path, row_group_size=100)
    one = parquet.read_table(path)
    again = parquet.read_table(back(path, block_rows=block_rows))
    assert again.schema.equals(one.schema, check_metadata=True)
    floats = ["f", "gaps", "narrow", "half"]
    assert again.drop(floats).equals(one.drop(floats))
    for name in floats:
        assert again[name].is_null().equals(one[name].is_null())
    rows = [np.column_stack([t[n].to_numpy().astype("f8") for n in floats]) for t in (one, again)]
    assert not Bound(0.01).broken(*rows).any()


def test_columns_are_kept_as_asked(tmp_path, rng):
    path = tmp_path / "t.parquet"
    parquet.write_table(table(rng), path)
    options = {"approximate": ["id", "small"], "exact": ["f", "half"]}
    summary = compress(path, tmp_path / "it.kac", **QUICK, **options)
    assert summary.approximate == ("gaps", "narrow", "id", "small")
    again = parquet.read_table(decompress(tmp_path / "it.kac", tmp_path / "back.parquet"))
    one = parquet.read_table(path)
    for name in ("f", "half"):
        assert again[name].equals(one[name])
    assert again["id"].type == pyarrow.int64()
    assert not again["id"].equals(one["id"])
    assert again["small"].is_null().equals(one["small"].is_null())
    lines = "n,v\n" + "".join(f"{1000 + i},{i}.5\n" for i in range(50))
    text = tmp_path / "n.csv"
    text.write_text(lines)
    found = back(text, approximate=["n"], exact=["v"], max_error=0.05).read_text().splitlines()
    values = np.array([line.split(",")[0] for line in found[1:]], "i8")
    assert (np.abs(values - 1000 - np.arange(50)) <= 0.05 * 1050).all()
    assert [line.split(",")[1] for line in found[1:]] == [f"{i}.5" for i in range(50)]


def contents(path):
    if path.suffix == ".npy":
        return np.load(path)
    if path.suffix == ".parquet":
        return parquet.read_table(path)["v"].to_numpy()
    return np.array([line.split(",")[1] for line in path.read_text().splitlines()[1:]], float)


def write(path, values):
    if path.suffix == ".npy":
        np.save(path, values)
    elif path.suffix == ".parquet":
        parquet.write_table(pyarrow.table({"i": np.arange(len(values)), "v": values}), path)
    else:
        path.write_text("i,v\n" + "".join(f"{i},{v!r}\n" for i, v in enumerate(values.tolist())))
    return path


@pytest.mark.parametrize("suffix", [".npy", ".parquet", ".csv"])
def test_some_rows_more_rows_and_blocks(tmp_path, rng, suffix):
    values = 10 + rng.normal(size=90).cumsum()
    one, two = (write(tmp_path / f"{name}{suffix}", part) for name, part in
                (("one", values[:50]), ("two", values[50:])))  # fmt: skip
    kac, target = tmp_path / "it.kac", tmp_path / f"back{suffix}"
    compress(one, kac, append=True, block_rows=16, **QUICK)  # nothing is there yet
    summary = compress(two, kac, append=True, max_error=0.5, block_rows=16)
    assert (summary.n_rows, summary.max_error, summary.model) == (90, 0.01, "lags")
    assert summary.original_bytes == one.stat().st_size + two.stat().st_size
    again = contents(decompress(kac, target))
    assert not Bound(0.01).broken(values[:, None], again[:, None]).any()
    for rows in ((0, 90), (3, 4), (14, 70), slice(60, None)):
        start, stop = (rows.start, 90) if isinstance(rows, slice) else rows
        some = contents(decompress(kac, target, rows=rows))
        np.testing.assert_array_equal(some, again[start:stop])
    info = inspect_compressed(kac)
    assert info.n_blocks == 7
    assert 0 < info.row_errors[1.0] <= 0.01
    whole = write(tmp_path / f"whole{suffix}", values)
    assert inspect_compressed(kac, whole).rows_beyond == 0


def test_more_rows_of_another_table_are_refused(tmp_path, rng):
    kac = tmp_path / "it.kac"
    compress(write(tmp_path / "a.csv", rng.normal(size=9)), kac, **QUICK)
    old = kac.read_bytes()
    (tmp_path / "b.csv").write_text("i,w\n1,2.5\n")
    (tmp_path / "c.csv").write_text("i;v\n1;2.5\n")
    np.save(tmp_path / "d.npy", np.ones((3, 2)))
    for name, message in (("b.csv", "has other columns"), ("c.csv", "another delimiter"),
                          ("d.npy", "is no .csv file")):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            compress(tmp_path / name, kac, append=True)
    compress(tmp_path / "d.npy", tmp_path / "d.kac", **QUICK)
    np.save(tmp_path / "e.npy", np.ones((3, 4)))
    with pytest.raises(ValueError, match=r"shape \(3, 2\) and dtype float64, and"):
        compress(tmp_path / "e.npy", tmp_path / "d.kac", append=True)
    with pytest.raises(ValueError, match="append: columns are kept as in"):
        compress(tmp_path / "a.csv", kac, append=True, exact=["v"])
    assert kac.read_bytes() == old


def test_streams_in_small_pieces_equal_the_whole(tmp_path, rng, monkeypatch):
    values = rng.normal(size=500).cumsum()
    path = write(tmp_path / "a.csv", values)
    whole = back(path, block_rows=100).read_bytes()
    blocks = (tmp_path / "it.kac").read_bytes()
    monkeypatch.setattr("kernelatoms.codec.packed.csv_survey._CHUNK", 777)
    assert back(path, block_rows=100).read_bytes() == whole
    assert (tmp_path / "it.kac").read_bytes() == blocks
    path.write_text('a,b\n"never closed,1.5\n' + "1,2.5\n" * 1000)
    monkeypatch.setattr("kernelatoms.codec.packed.csv_survey._MOST_LINE", 2000)
    with pytest.raises(TableError, match="is a quote never closed"):
        compress(path)


def test_a_number_that_comes_late_does_no_harm(tmp_path):
    path = tmp_path / "late.csv"
    path.write_text("a,b\n" + "1,x\n" * 5000 + "2.25,x\nword,x\n")
    compress(path, **QUICK)
    lines = decompress(tmp_path / "late.csv.kac", tmp_path / "back.csv").read_text().splitlines()
    assert lines[-1] == "word,x"
    assert abs(float(lines[-2].split(",")[0]) - 2.25) <= 0.0225


def test_a_ratio_is_reached(tmp_path, rng):
    path = tmp_path / "a.npy"
    np.save(path, rng.normal(size=(300, 8)).cumsum(axis=0))
    summary = compress(path, ratio=9, **QUICK)
    assert 9 <= summary.ratio < 9.5
    assert summary.largest_row_error <= summary.max_error
    np.save(path, np.arange(300) * 7919 % 1001)
    with pytest.raises(ValueError, match=r"cannot become 900 times smaller; .* becomes \d"):
        compress(path, tmp_path / "b.kac", ratio=900)
    assert not (tmp_path / "b.kac").exists()


def test_a_model_of_history_serves_later_files(tmp_path, rng):
    days = rng.normal(size=(3, 80, 6)).cumsum(axis=1)
    for i, day in enumerate(days):
        np.save(tmp_path / f"{i}.npy", day)
    fitted = fit_codec(tmp_path / "0.npy", tmp_path / "m.kam", model="pca")
    assert fitted.model == "pca"
    model = tmp_path / "m.kam"
    kept = compress(tmp_path / "1.npy", model=model)
    referring = compress(tmp_path / "2.npy", model=model, store_model=False)
    assert referring.n_bytes < kept.n_bytes
    target = tmp_path / "back.npy"
    decompress(kept.path, target)
    with pytest.raises(CodecError, match=r"2\.npy\.kac: .* give the model file with the digest"):
        decompress(referring.path, target)
    fit_codec(tmp_path / "0.npy", tmp_path / "other.kam", model="lags")
    with pytest.raises(CodecError, match=r"of the digest .*, and the one given has"):
        decompress(referring.path, target, model=tmp_path / "other.kam")
    decompress(referring.path, target, model=model)
    assert not Bound(0.01).broken(days[2], np.load(target)).any()
    assert inspect_compressed(referring.path).stored is False
    np.save(tmp_path / "wide.npy", rng.normal(size=(9, 7)))
    with pytest.raises(ValueError, match="predicts rows of 6 approximate columns, and"):
        compress(tmp_path / "wide.npy", model=model)
    with pytest.raises(ValueError, match=r"store_model=False needs model to be a \.kam file"):
        compress(tmp_path / "1.npy", tmp_path / "x.kac", store_model=False)
    with pytest.raises(ValueError, match="holds compressed rows, and not a model"):
        compress(tmp_path / "1.npy", tmp_path / "x.kac", model=kept.path)
    with pytest.raises(ValueError, match="holds a model, and no rows"):
        decompress(model, tmp_path / "x.npy")


WRONG = [
    ({"max_error": 0}, "max_error must be above 0"),
    ({"max_error": 1.5}, "max_error must be above 0 and at most 1"),
    ({"max_error": "1%"}, "max_error must be a number"),
    ({"max_absolute": -1}, "max_absolute must be above 0"),
    ({"ratio": 1}, "ratio must be above 1"),
    ({"ratio": 5, "max_absolute": 1.0}, "give ratio or max_absolute"),
    ({"model": "best"}, "model must be one of 'auto'"),
    ({"model": 3}, "model must be a name or a .kam file"),
    ({"approximate": ["x"]}, "approximate: .* has no column 'x'"),
    ({"approximate": ["word"]}, "approximate: the column 'word' of .* holds no numbers"),
    ({"exact": [3]}, "exact must be names of columns"),
    ({"approximate": ["n"], "exact": ["n"]}, "'n' is named in both"),
    ({"symmetric": "no"}, "symmetric must be True or False"),
    ({"block_rows": 0}, "block_rows must be at least 1"),
]


@pytest.mark.parametrize(("options", "message"), WRONG)
def test_wrong_arguments_are_named_before_anything_is_written(tmp_path, options, message):
    path = tmp_path / "a.csv"
    path.write_text("n,v,word\n1,2.5,a\n2,3.5,b\n")
    with pytest.raises((ValueError, TypeError), match=message):
        compress(path, **options)
    assert os.listdir(tmp_path) == ["a.csv"]


def test_wrong_files_are_named(tmp_path):
    for name, content, message in (
        ("a.xlsx", b"x", "must end with .csv"),
        ("a.csv", b"", "is empty"),
        ("a.csv", b"\0\1\2", "binary file"),
        ("a.npy", b"x", "cannot be read as a NumPy file"),
        ("a.npz", b"x", "cannot be read as a NumPy file"),
        ("a.parquet", b"x", "cannot be read as a Parquet file"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(TableError, match=message):
            compress(tmp_path / name)
    with pytest.raises(TableError, match="there is no file"):
        compress(tmp_path / "b.csv")
    with pytest.raises(TableError, match="is a folder"):
        compress(tmp_path)
    (tmp_path / "a.csv").write_text("v\n1.5\n")
    compress(tmp_path / "a.csv", **QUICK)
    with pytest.raises(FileExistsError, match="is there already"):
        compress(tmp_path / "a.csv")
    kac = tmp_path / "a.csv.kac"
    wrong = {(0, 5): "rows must lie within 0 and 1, got 0 to 5", 3: "rows must be",
             (1, 1): "must lie within", "a": "rows must be"}  # fmt: skip
    with pytest.raises(ValueError, match="rows must follow each other"):
        decompress(kac, tmp_path / "b.csv", rows=slice(0, 1, 2))
    for rows, message in wrong.items():
        with pytest.raises((ValueError, TypeError), match=message):
            decompress(kac, tmp_path / "b.csv", rows=rows)
    with pytest.raises(ValueError, match=r"holds a \.csv file; the destination must end so"):
        decompress(kac, tmp_path / "b.npy")
    with pytest.raises(CodecError, match=r"a\.csv: this is not a compressed file"):
        decompress(tmp_path / "a.csv", tmp_path / "b.csv")


def test_exact_numbers_without_a_bound(tmp_path, rng):
    X = rng.normal(size=(40, 5))
    X[3, 2] = np.nan
    np.save(tmp_path / "a.npy", X)
    summary = compress(tmp_path / "a.npy", max_error=None, **QUICK)
    assert summary.largest_row_error == 0
    again = np.load(decompress(summary.path, tmp_path / "b.npy"))
    np.testing.assert_array_equal(again, X)


def test_inspection_tells_of_all_bytes(tmp_path, rng):
    np.savez(tmp_path / "a.npz", X=rng.normal(size=(30, 4)), y=np.arange(9))
    summary = compress(tmp_path / "a.npz", **QUICK)
    info = inspect_compressed(summary.path, tmp_path / "a.npz")
    assert sum(info.sections.values()) == info.n_bytes == summary.n_bytes
    assert info.shapes == {"X": "30 rows of 4 columns, float64",
                           "y": "shape (9,), int64, kept exactly"}  # fmt: skip
    assert info.measured
    assert info.rows_beyond == 0
    assert info.trials[0][0] == "X: lags"
    np.savez(tmp_path / "b.npz", X=rng.normal(size=(31, 4)), y=np.arange(9))
    with pytest.raises(ValueError, match="is not what was compressed: that had 39 rows"):
        inspect_compressed(summary.path, tmp_path / "b.npz")
    np.savez(tmp_path / "b.npz", X=rng.normal(size=(30, 4)), y=np.arange(9))
    assert inspect_compressed(summary.path, tmp_path / "b.npz").rows_beyond == 30


def test_damage_is_noticed_whatever_was_compressed(tmp_path, rng):
    parquet.write_table(table(rng, 30), tmp_path / "t.parquet")
    write(tmp_path / "t.csv", rng.normal(size=30))
    for name in ("t.parquet", "t.csv"):
        data = compress(tmp_path / name, tmp_path / "it.kac", **QUICK).path.read_bytes()
        for place in rng.integers(len(data), size=60):
            damaged = bytearray(data)
            damaged[place] ^= 1 << int(rng.integers(8))
            (tmp_path / "bad.kac").write_bytes(damaged)
            with pytest.raises(CodecError, match=r"bad\.kac: "):
                decompress(tmp_path / "bad.kac", tmp_path / f"back{name[1:]}")
        assert not (tmp_path / f"back{name[1:]}").exists()


def test_a_text_of_many_kinds_of_lines_streams(tmp_path):
    data = io.StringIO("n,v,w\n")
    data.seek(0, io.SEEK_END)
    for i in range(40):
        data.write(f"{i},{i / 8},x\n" + ("# a remark\n" if i % 11 == 0 else ""))
    path = tmp_path / "a.csv"
    path.write_text(data.getvalue())
    assert back(path, block_rows=7, max_error=1e-9).read_text() == data.getvalue()
    some = decompress(tmp_path / "it.kac", tmp_path / "some.csv", rows=(10, 13)).read_text()
    assert some == "n,v,w\n10,1.25,x\n11,1.375,x\n# a remark\n12,1.5,x\n"


def test_names_that_are_no_text_are_refused(tmp_path):
    layout = Layout(X.shape, False, X.dtype)
    part = Part(name="\ud800.npy", head=layout.head(), dtype=layout.matrix_dtype, model=0)
    path = tmp_path / "it.kac"
    path.write_bytes(make(kind="npz", parts=(part,)))
    with pytest.raises(CodecError, match="not text"):
        decompress(path, tmp_path / "back.npz")
    assert not (tmp_path / "back.npz").exists()


def test_columns_that_lose_their_variation_are_named(tmp_path, rng):
    day = np.sin(np.arange(600) / 20)
    table = np.stack([20 + 8 * day, 1013 + day + rng.normal(size=600), 9 + 0.1 * day], axis=1)
    lines = [",".join(f"{value:.4f}" for value in row) for row in table]
    (tmp_path / "t.csv").write_text("\n".join(["temp,pressure,wind", *lines, ""]))
    (text,) = compress(tmp_path / "t.csv", tmp_path / "t.kac").notes
    assert text.startswith("Less than half of the variance of some columns comes back: ")
    assert "wind (0%)" in text
    assert "max_absolute" in text
    assert not compress(tmp_path / "t.csv", tmp_path / "t.kac", max_error=0.0001).notes
    np.savez(tmp_path / "two.npz", a=table, b=np.arange(90.0).reshape(30, 3))
    (text,) = compress(tmp_path / "two.npz", tmp_path / "t.kac").notes
    assert "some columns of a comes back: 2 (0%)" in text
    # Columns of slices are no variables that one looks at by themselves.
    np.save(tmp_path / "slices.npy", table.reshape(20, 30, 3))
    assert not compress(tmp_path / "slices.npy", tmp_path / "t.kac").notes


def test_which_columns_are_named():
    kept = np.array([0.9, 0.51, 0.49, -3.0, 0.2, 0.1, 0.3, 0.4])
    ones = np.ones(len(kept))
    tally = ErrorStats()
    tally.add_columns(0, ColumnSums(9 * ones, ones, ones, 1 - kept))
    names = {"approximate": list("abcdefgh")}
    (text,) = lost_columns(SimpleNamespace(columns=names, parts=[None]), tally)
    assert "comes back: d (0%), f (10%), e (20%), g (30%) and 2 more. A bound" in text


@pytest.mark.parametrize(
    ("text", "approximate"),
    [
        ("1.5 2.5\n3.5 4.5\n", 2), ("a b c\n1.5 2.5 x\n3.5 4.5 y\n", 2),
        ("name\nAnn\nBob Smith\nMary Ann Smith\nTim\n", 0), ("v\n1.5\n2.5\n3.5 and more\n", 0),
        ("1.5 2.5\n3.5 4.5\n5.5\n1 2 3\n1 2 3 4\n", 0),
    ],
)  # fmt: skip
def test_spaces_part_the_fields_of_most_lines_or_none(text, approximate, tmp_path):
    (tmp_path / "a.csv").write_text(text)
    assert len(compress(tmp_path / "a.csv").approximate) == approximate
