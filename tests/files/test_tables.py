"""Tables from files: what is read, and what is said when it cannot be."""

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from kernelatoms.files.tables.table import TableError, read_table

CSV = '''id,"length, cm",width,garden,species
1,1.5,0.25,"north, ""upper""",setosa
2,NA,?,south,setosa
3,4,,,"late
one"
'''


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_csv_with_quotes_text_and_missing_values(tmp_path):
    table = read_table(write(tmp_path / "t.csv", CSV))
    assert table.columns == ["id", "length, cm", "width"]
    np.testing.assert_array_equal(
        table.numbers, [[1, 1.5, 0.25], [2, np.nan, np.nan], [3, 4, np.nan]]
    )
    assert table.words["garden"].tolist() == ['north, "upper"', "south", None]
    assert table.words["species"].tolist() == ["setosa", "setosa", "late\none"]
    assert table.named
    assert table.column("width").tolist()[0] == 0.25


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiters_are_found(tmp_path, delimiter):
    text = "a,b\n1,2\n3,4\n".replace(",", delimiter)
    table = read_table(write(tmp_path / "t.csv", text))
    assert table.columns == ["a", "b"]
    np.testing.assert_array_equal(table.numbers, [[1, 2], [3, 4]])


def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"\xef\xbb\xbfa,b\r\n1,2\r\n")
    assert read_table(tmp_path / "t.csv").columns == ["a", "b"]


def test_numbers_in_the_first_line_are_rows(tmp_path):
    table = read_table(write(tmp_path / "t.csv", "1,2\n3,4\n"))
    assert table.columns == ["0", "1"]
    assert not table.named
    np.testing.assert_array_equal(table.numbers, [[1, 2], [3, 4]])
    assert "starts with numbers" in table.notes[0]


def test_true_and_false_are_numbers_and_dates_are_words(tmp_path):
    table = read_table(write(tmp_path / "t.csv", "a,day\ntrue,2020-01-02\nfalse,2020-01-03\n"))
    np.testing.assert_array_equal(table.numbers, [[1], [0]])
    assert list(table.words) == ["day"]


def test_a_column_of_numbers_and_words_is_reported_with_its_row(tmp_path):
    table = read_table(write(tmp_path / "t.csv", "a,b\n1,2\n3,many\n"))
    assert "'b' holds numbers and words: 'many' in row 1 (line 3)" in table.mixed["b"]


@pytest.mark.slow
def test_very_wide_tables_are_read(tmp_path):
    n = 60_000
    line = ",".join(f"column_with_a_long_name_{i}" for i in range(n))
    values = ",".join(["0.123456789"] * n)
    table = read_table(write(tmp_path / "t.csv", f"{line}\n{values}\n{values}\n"))
    assert table.numbers.shape == (2, n)


def test_a_very_long_field_is_read(tmp_path):
    table = read_table(write(tmp_path / "t.csv", "a,b\n1," + "x" * 5_000_000 + "\n2,y\n"))
    assert len(table.words["b"][0]) == 5_000_000


def test_parquet_is_the_same_table(tmp_path):
    content = {"a": [1, None, 3], "b": [True, False, None], "w": ["x", None, "y"]}
    pyarrow.parquet.write_table(pyarrow.table(content), tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet")
    assert table.columns == ["a", "b"]
    np.testing.assert_array_equal(table.numbers, [[1, 1], [np.nan, 0], [3, np.nan]])
    assert table.words["w"].tolist() == ["x", None, "y"]


def test_arrays_keep_precision_and_images_their_shape(tmp_path, rng):
    images = rng.integers(0, 255, (5, 4, 3)).astype(np.uint8)
    np.savez(tmp_path / "t.npz", X_train=images, y_train=np.arange(5), X_test=images[:2])
    table = read_table(tmp_path / "t.npz", "X_train")
    assert table.image_shape == (4, 3)
    assert table.numbers.dtype == np.float32
    np.testing.assert_array_equal(table.numbers, images.reshape(5, 12))
    assert list(table.words) == ["y_train"]
    np.save(tmp_path / "t.npy", rng.normal(size=(3, 2)))
    assert read_table(tmp_path / "t.npy").numbers.dtype == np.float64


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("t.csv", b"", "is empty"),
        ("t.csv", b"\n1,2\n", "first line of"),
        ("t.csv", b"a,b\n", "no rows"),
        ("t.csv", b"a,b\n1,2\n3\n", "as many fields as the first one"),
        ("t.csv", b"a,a\n1,2\n", "more than one column called 'a'"),
        ("t.csv", b"a,b\n1,\xff\xfe\n", "UTF-8"),
        ("t.csv", b"\x89PNG\r\n\x1a\n\0\0", "binary"),
        ("t.csv", b"\xff\xd8\xff\xe0 no text\n", "binary"),
        ("t.parquet", b"PAR1 nonsense", "cannot be read as a Parquet file"),
        ("t.npy", b"\x93NUMPY\x01\x00v", "cannot be read as a NumPy file"),
        ("t.npz", b"PK\x03\x04 cut", "cannot be read as a NumPy file"),
        ("t.xlsx", b"PK", "must end with .csv"),
    ],
)
def test_files_that_are_no_tables(tmp_path, name, content, words):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TableError, match=r"(?s).*" + words):
        read_table(tmp_path / name)


@pytest.mark.parametrize(
    "options", [{}, {"use_dictionary": False}, {"data_page_version": "2.0", "compression": "none"}]
)
def test_groups_of_no_rows_are_nothing_but_that(tmp_path, rng, options):
    """Their columns begin nowhere, which Parquet writes as 0, behind a dictionary of no values."""
    none = pyarrow.table({"a": pyarrow.array([], "f8"), "b": pyarrow.array([], "string")})
    for n_rows in (0, *rng.integers(1, 20, size=3)):
        some = pyarrow.table({"a": rng.normal(size=n_rows), "b": [str(i) for i in range(n_rows)]})
        some = some.cast(none.schema)
        with pyarrow.parquet.ParquetWriter(tmp_path / "t.parquet", none.schema, **options) as file:
            for part in (none, some, none, some)[:: rng.choice([1, -1])]:
                file.write_table(part)
        if n_rows:
            table = read_table(tmp_path / "t.parquet")
            np.testing.assert_array_equal(table.numbers[:, 0], [*some["a"].to_numpy()] * 2)
        else:
            with pytest.raises(TableError, match="has no rows"):
                read_table(tmp_path / "t.parquet")


def test_arrays_that_are_no_tables(tmp_path):
    np.save(tmp_path / "one.npy", np.arange(3.0))
    with pytest.raises(TableError, match="its shape is"):
        read_table(tmp_path / "one.npy")
    np.save(tmp_path / "text.npy", np.array([["a"]]))
    with pytest.raises(TableError, match="must hold numbers"):
        read_table(tmp_path / "text.npy")
    np.save(tmp_path / "objects.npy", np.array([[{}]]), allow_pickle=True)
    with pytest.raises(TableError, match="Python objects"):
        read_table(tmp_path / "objects.npy")
    np.savez(tmp_path / "two.npz", A=np.eye(2), B=np.eye(2))
    with pytest.raises(TableError, match="rows='KEY'"):
        read_table(tmp_path / "two.npz")
    with pytest.raises(TableError, match="no key 'C'"):
        read_table(tmp_path / "two.npz", "C")
    with pytest.raises(TableError, match=r"^rows: .* has no keys"):
        read_table(write(tmp_path / "t.csv", "a\n1\n"), "C")
    with pytest.raises(TableError, match="there is no file"):
        read_table(tmp_path / "nothing.csv")
    with pytest.raises(TableError, match="is a folder"):
        read_table(tmp_path)


def test_long_whole_numbers_stay_exact(tmp_path):
    long = [2**53 + 1, 2**62 + 1, -(2**60) - 1]
    lines = [f"{v},{i},{v if i else ''}" for i, v in enumerate(long)]
    (tmp_path / "t.csv").write_text("\n".join(["id,a,gap", *lines]) + "\n")
    table = read_table(tmp_path / "t.csv")
    assert table.columns == ["id", "a", "gap"]
    assert table.column("id").tolist() == long
    assert table.column("gap").tolist() == [None, *long[1:]]
    assert table.column("a").tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize(
    ("first", "named"),
    [
        (",0.5,1.5", False),  # a row whose first value is missing
        ("NA,2,1", False),
        ("?,?,3.5", False),
        ("1,2,3", False),
        (",0,1", True),  # pandas, above an index and columns without names
        ("a,0,1", True),
        (",a,b", True),
        (",,", True),
    ],
)
def test_first_lines_of_numbers_are_rows(first, named, tmp_path):
    (tmp_path / "t.csv").write_text(f"{first}\n4,5.5,6\n7,8.5,9\n")
    table = read_table(tmp_path / "t.csv")
    assert table.named == named
    assert len(table) == (2 if named else 3)
