"""Text files as people have them: names or none, marks, encodings, packings, pipes."""

import bz2
import gzip
import io
import json
import os
import sys
import threading

import numpy as np
import pyarrow
import pyarrow.feather
import pyarrow.parquet
import pytest
import scipy.sparse
import zstandard

from kernelatoms.features import memory
from kernelatoms.files import ReadOptions, TableError, read_table
from kernelatoms.files.tables.table import is_table


def read(tmp_path, content, options=None, name="t.csv"):
    data = content if isinstance(content, bytes) else content.encode()
    (tmp_path / name).write_bytes(data)
    return read_table(tmp_path / name, options)


# Names or none

IRIS = "5.1,3.5,setosa\n4.9,3.0,setosa\n6.3,3.3,virginica\n"


def test_a_first_row_is_not_lost(tmp_path):
    table = read(tmp_path, IRIS)
    assert not table.named
    assert table.names == ["0", "1", "2"]
    assert table.column("2").tolist() == ["setosa", "setosa", "virginica"]
    assert "starts with a row like those below" in table.notes[0]
    assert "header=True" in table.notes[0]


@pytest.mark.parametrize(
    ("first", "row"),
    [
        ("5,3,setosa", True),  # the word stands below
        ("5,5,rose", True),  # a number is there twice
        ("5.1,3,rose", True),  # a fraction names nothing
        ("5,3,rose", False),
        ("2019,2020,country", False),
        ("a,b,c", False),
        ("a,3.5,setosa", False),  # a word above numbers is a name
        ("NA,3.5,setosa", True),
    ],
)
def test_which_first_lines_are_rows(tmp_path, first, row):
    table = read(tmp_path, f"{first}\n{IRIS}")
    assert table.named is not row
    assert len(table) == 3 + row
    # Whoever could think otherwise is told how to say so.
    assert bool(table.notes) == (row or first[0] in "52")


def test_words_above_words_are_names_unless_all_stand_below(tmp_path):
    assert read(tmp_path, "x,s\nx,y\nb,s\n").named is False
    assert read(tmp_path, "x,t\nx,y\nb,s\n").named
    assert read(tmp_path, "x\nx\nb\n").named


def test_one_may_say_so(tmp_path):
    table = read(tmp_path, "2019,2020\n1,2\n", ReadOptions(header=True))
    assert (table.named, table.columns, len(table)) == (True, ["2019", "2020"], 1)
    table = read(tmp_path, "a,b\nc,d\n", ReadOptions(header=False))
    assert (table.named, len(table), table.notes) == (False, 2, [])


# Marks


def test_decimal_commas_are_recognised_and_said(tmp_path):
    table = read(tmp_path, "name;a;b;c\nx, y;1,5;-0,25;3\nz;2;;4\n")
    assert table.columns == ["a", "b", "c"]
    np.testing.assert_array_equal(table.numbers, [[1.5, -0.25, 3], [2, np.nan, 4]])
    assert table.notes == [
        f"{tmp_path / 't.csv'}: 'a', 'b': decimal commas are read as points (decimal='.' if not)."
    ]
    assert table.words["name"].tolist() == ["x, y", "z"]


@pytest.mark.parametrize("decimal", [None, ","])
@pytest.mark.parametrize(
    "text",
    [
        "1,5;2,5;3,5\n4,5;5,5;6,5\n",  # commas part as many fields in every line
        "a;b\n1,5e3;+2,5\n4,25;,5\n",
        "a\n1,5\n2,5\n",
        "a\tb\n1,5\t2,5\n",
        'a,b\n"1,5","2"\n',
    ],
)
def test_decimal_commas_between_any_delimiters(tmp_path, text, decimal):
    if decimal and "a,b" in text:
        pytest.skip("fields are not parted by decimal marks")
    table = read(tmp_path, text, ReadOptions(decimal=decimal))
    rows = [line for line in text.splitlines() if line[0] not in "a"]
    delimiter = next((d for d in (";", "\t", '","') if d in text), ";")
    cells = [[c.strip('"').replace(",", ".") for c in r.split(delimiter)] for r in rows]
    np.testing.assert_array_equal(table.numbers, np.array(cells, float))


def test_thousands(tmp_path):
    table = read(tmp_path, "a;b\n1.234,5;2\n12;3\n")
    np.testing.assert_array_equal(table.numbers, [[1234.5, 2], [12, 3]])
    assert "separates thousands" in table.notes[0]
    table = read(tmp_path, 'a,b\n"1,234.5",2\n12,3\n')
    np.testing.assert_array_equal(table.numbers, [[1234.5, 2], [12, 3]])
    # 1,234 may be either, where commas part the fields too.
    text = 'a,b\n"1,234",2\n"12",3\n'
    assert "decimal=" in read(tmp_path, text).mixed["a"]
    table = read(tmp_path, text, ReadOptions(decimal="."))
    np.testing.assert_array_equal(table.numbers, [[1234, 2], [12, 3]])
    np.testing.assert_array_equal(read(tmp_path, "a;b\n1,234;2\n").numbers, [[1.234, 2]])
    table = read(tmp_path, "a;b\n1.234;2\n", ReadOptions(decimal=","))
    np.testing.assert_array_equal(table.numbers, [[1234, 2]])
    # Groups are of three, and telephone numbers are no quantities.
    assert read(tmp_path, "a;b\n1.23,5;2\n").columns == ["b"]
    assert read(tmp_path, "a;b\n123.456.789;2\n").words["a"].tolist() == ["123.456.789"]


def test_one_word_among_decimal_commas_is_named_with_its_line(tmp_path):
    table = read(tmp_path, 'a;w\n1,5;"two\nlines"\n\n2;x\nmany;y\n')
    assert "'a' holds numbers and words: '1,5' in row 0 (line 2)" in table.mixed["a"]
    table = read(tmp_path, 'a;w\n15;"two\nlines"\n\n2;x\nmany;y\n')
    assert "'a' holds numbers and words: 'many' in row 2 (line 6)" in table.mixed["a"]


# Encodings

GERMAN = "Stadt;Fläche\nMünchen;310,7\nKöln;405\n"


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1", "utf-16", "utf-16-le", "utf-8"])
def test_encodings(tmp_path, encoding):
    table = read(tmp_path, GERMAN.encode(encoding), ReadOptions(encoding=encoding))
    assert table.names == ["Fläche", "Stadt"]
    assert table.words["Stadt"].tolist() == ["München", "Köln"]


def test_utf_16_with_a_mark_and_utf_8_with_one(tmp_path):
    for encoding in ("utf-16", "utf-8-sig"):
        table = read(tmp_path, GERMAN.encode(encoding))
        assert table.names == ["Fläche", "Stadt"]
    assert "UTF-16" in read(tmp_path, GERMAN.encode("utf-16")).notes[0]


def test_another_encoding_is_named(tmp_path):
    with pytest.raises(TableError, match=r"byte 0xe4 in line 1.*'Fläche'.*encoding='cp1252'"):
        read(tmp_path, GERMAN.encode("cp1252"))
    with pytest.raises(TableError, match=r"line 3.*encoding='latin-1'"):
        read(tmp_path, b"a;b\n1;x\n2;\x81\xfc\n")
    with pytest.raises(TableError, match="encoding='utf-16'"):
        read(tmp_path, GERMAN.encode("utf-16-le"))
    with pytest.raises(TableError, match="no text in the encoding ascii"):
        read(tmp_path, GERMAN, ReadOptions(encoding="ascii"))
    for wrong in ("klingon", "base64", "a\0b"):
        with pytest.raises(ValueError, match="there is no encoding"):
            ReadOptions(encoding=wrong)
    with pytest.raises(ValueError, match=r"decimal must be '\.' or ','"):
        ReadOptions(decimal=";")


# Lines


@pytest.mark.parametrize(
    "text",
    [
        "a,b\r\n1,x\r\n2,y\r\n",
        "a,b\r1,x\r2,y\r",
        "a,b\n1,x\n2,y",
        "a,b\n1,x\n2,y\n\n\n",
        "a, b\n1, x\n2, y\n",
        "a, b\n1,  x\n2, y\n",
        'a, "b"\n1, "x"\n2, "y"\n',
        "a,b,\n1,x,\n2,y,\n",
        "sep=,\na,b\n1,x\n2,y\n",
        "\ufeffa;b\n1;x\n2;y\n",
        "a b\n1 x\n2 y\n",
        "  a    b\n  1    x\n  2    y  \n",
        "a | b\n1 | x\n2 | y\n",
    ],
)
def test_lines_as_programs_write_them(tmp_path, text):
    table = read(tmp_path, text, name="t.txt")
    assert table.column("a").tolist() == [1, 2]
    assert [word.strip() for word in table.column("b").tolist()] == ["x", "y"]
    assert table.names == ["a", "b"]


def test_spaces_within_quotes_stay(tmp_path):
    table = read(tmp_path, 'a, b\n1, "x, ""y"", z"\n2, NA\n')
    assert table.column("b").tolist() == ['x, "y", z', None]
    assert table.column("a").tolist() == [1, 2]


def test_names_over_two_lines(tmp_path):
    table = read(tmp_path, 'a,"long\nname"\n1,2\n3,4\n')
    assert table.columns == ["a", "long\nname"]
    np.testing.assert_array_equal(table.numbers, [[1, 2], [3, 4]])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n1,2\n3\n", "line 3 has 1 fields"),
        ("a,b\n1,2\n3,4,5\n", "line 3 has 3 fields"),
        ('a,b\n1,"x\ny"\n\n3,4,5\n', "line 5 has 3 fields"),
        ("a;b\n1,5;2\n1,5\n", "line 3 has 1 fields"),
        ("sep=;\na;b\n1;2;3\n", "line 3 has 3 fields"),
        ("1,2\n3,4,5\n", "line 2 has 3 fields"),
    ],
)
def test_lines_of_other_lengths_are_named(tmp_path, text, words):
    with pytest.raises(TableError, match=words):
        read(tmp_path, text)


# Packed, typed, through pipes

TABLE = {"a": [1.5, None, 3.0], "w": ["x", "y", None]}
TEXT = "a,w\n1.5,x\n,y\n3.0,\n"


def in_every_form():
    rows = [dict(zip(TABLE, row, strict=True)) for row in zip(*TABLE.values(), strict=True)]
    lines = "\n".join(map(json.dumps, rows)).encode()
    table, forms = pyarrow.table(TABLE), {}
    for name, write in (("parquet", pyarrow.parquet.write_table),
                        ("feather", pyarrow.feather.write_feather)):  # fmt: skip
        file = io.BytesIO()
        write(table, file)
        forms[f"t.{name}"] = file.getvalue()
    file = io.BytesIO()
    with pyarrow.ipc.new_stream(file, table.schema) as stream:
        stream.write_table(table)
    packed = {".gz": gzip.compress, ".bz2": bz2.compress, ".zst": zstandard.compress}
    text = {"t.csv": TEXT.encode(), "t.tsv": TEXT.replace(",", "\t").encode(), "t.jsonl": lines,
            "t.ndjson": lines}  # fmt: skip
    forms |= text
    for ending, pack in packed.items():
        forms |= {name + ending: pack(data) for name, data in text.items()}
    return forms | {"stream.arrow": file.getvalue()}


FORMS = in_every_form()


def check(table):
    assert table.names == ["a", "w"]
    np.testing.assert_array_equal(table.numbers[:, 0], [1.5, np.nan, 3])
    assert table.words["w"].tolist() == ["x", "y", None]


@pytest.mark.parametrize("name", FORMS)
def test_every_form_is_the_same_table(tmp_path, name):
    assert is_table(tmp_path / name)
    check(read(tmp_path, FORMS[name], name=name))


class Stdin:
    def __init__(self, data):
        self.buffer = io.BytesIO(data)


@pytest.mark.parametrize("name", [name for name in FORMS if name != "stream.arrow"])
def test_standard_input_is_recognised(monkeypatch, name):
    monkeypatch.setattr(sys, "stdin", Stdin(FORMS[name]))
    table = read_table("-")
    check(table)
    assert str(table.path) == "standard input"


def test_arrays_through_standard_input(monkeypatch, rng):
    X = rng.normal(size=(4, 3))
    for write in (np.save, lambda file, X: np.savez(file, X=X, y=np.arange(4))):
        file = io.BytesIO()
        write(file, X)
        monkeypatch.setattr(sys, "stdin", Stdin(file.getvalue()))
        np.testing.assert_array_equal(read_table("-").numbers, X)
    for empty in (b"", gzip.compress(b"")):
        monkeypatch.setattr(sys, "stdin", Stdin(empty))
        with pytest.raises(TableError, match="standard input is empty"):
            read_table("-")
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(TableError, match="closed"):
        read_table("-")


def test_pipes_are_read_and_devices_are_not(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_text, args=(TEXT,))
    writer.start()
    check(read_table(tmp_path / "pipe"))
    writer.join()
    with pytest.raises(TableError, match="is a device"):
        read_table("/dev/zero")


def test_gzip_members_follow_each_other(tmp_path):
    data = gzip.compress(b"a,w\n1.5,x\n") + gzip.compress(b",y\n3.0,\n") + b"\0" * 512
    check(read(tmp_path, data, name="t.csv.gz"))
    data = bz2.compress(b"a,w\n1.5,x\n") + bz2.compress(b",y\n3.0,\n")
    check(read(tmp_path, data, name="t.csv.bz2"))


@pytest.mark.parametrize("name", [n for n in FORMS if n.endswith((".gz", ".bz2", ".zst"))])
def test_packed_files_that_are_damaged(tmp_path, name, rng):
    data = FORMS[name]
    for broken in (data[:-5], data[: len(data) // 2], data[:9], b"no packing", b""):
        with pytest.raises(TableError, match=r"cannot be unpacked|is empty"):
            read(tmp_path, broken, name=name)


def test_files_under_a_wrong_name(tmp_path):
    with pytest.raises(TableError, match=r"begins as \.parquet files do"):
        read(tmp_path, FORMS["t.parquet"])
    with pytest.raises(TableError, match=r"begins as \.gz files do"):
        read(tmp_path, FORMS["t.csv.gz"])
    for name in ("t.xlsx", "t.parquet.gz", "t.gz", "t"):
        with pytest.raises(TableError, match="must end with"):
            read(tmp_path, b"x", name=name)
        assert not is_table(name)


def test_lines_that_are_no_json(tmp_path):
    with pytest.raises(TableError, match="line 3 is no JSON "):
        read(tmp_path, '{"a": 1}\n\n{"a": \n', name="t.jsonl")
    with pytest.raises(TableError, match="line 2 is no JSON object"):
        read(tmp_path, '{"a": 1}\n[1]\n', name="t.jsonl")
    table = read(tmp_path, '{"a": 1, "b": NaN}\n{"a": "many", "b": 1e400}\n', name="t.jsonl")
    assert "'many' in row 1" in table.mixed["a"]
    np.testing.assert_array_equal(table.column("b"), [np.nan, np.inf])


def test_options_for_text_only(tmp_path):
    for options in (ReadOptions(decimal=","), ReadOptions(header=True), ReadOptions(encoding="u8")):
        with pytest.raises(TableError, match="is no table of text"):
            read(tmp_path, FORMS["t.parquet"], options, "t.parquet")
    with pytest.raises(TableError, match=r"^header: .* is no table of text"):
        read(tmp_path, FORMS["t.jsonl"], ReadOptions(header=True), "t.jsonl")


# Sparse


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "dia"])
@pytest.mark.parametrize("kind", ["array", "matrix"])
def test_sparse_matrices_of_scipy(tmp_path, rng, form, kind):
    dense = rng.normal(size=(6, 4)) * (rng.random((6, 4)) < 0.4)
    made = getattr(scipy.sparse, f"{form}_{kind}")(dense)
    scipy.sparse.save_npz(tmp_path / "t.npz", made)
    np.testing.assert_array_equal(read_table(tmp_path / "t.npz").numbers, dense)


@pytest.mark.parametrize("end", ["\n", ""])
@pytest.mark.parametrize("levels", [102, 5_000, 100_000])
def test_deep_json_is_refused_before_the_stack_ends(tmp_path, levels, end):
    for begin, close in (
        ('{"a":', "}"),
        ("[", "]"),
        ("[\n", "\n]"),
        ('["[]",{"\\"]":', '}, "\\\\"]'),
    ):
        deep = f'{{"a": 1}}\n{{"a": {begin * levels}1{close * levels}}}{end}'
        for text in (deep, deep[: deep.index("1", 10) - 1]):
            with pytest.raises(TableError, match="more than 100 levels deep, or do not end"):
                read(tmp_path, text, name="t.jsonl")


def test_brackets_in_texts_nest_nothing(tmp_path):
    lines = [
        json.dumps({"a": i, "b": ["[{" * i, '\\"[' * i, [[i]], {"]": "\n["}]}) for i in range(400)
    ]
    table = read(tmp_path, "\n".join(lines), name="t.jsonl")
    np.testing.assert_array_equal(table.numbers[:, 0], np.arange(400))
    shallow = '{"a": 1, "b": ' + "[" * 99 + "]" * 99 + "}"
    assert len(read(tmp_path, f"{shallow}\n{shallow}\n", name="t.jsonl").numbers) == 2


def test_sparse_matrices_that_are_damaged_or_too_large(tmp_path, monkeypatch):
    def write(**changes):
        arrays = {"format": b"csr", "shape": (2, 3), "data": [1.0, 2.0], "indices": [0, 2],
                  "indptr": [0, 1, 2]}  # fmt: skip
        np.savez(tmp_path / "t.npz", **(arrays | changes))
        return read_table(tmp_path / "t.npz", max_size=1 << 40).numbers

    np.testing.assert_array_equal(write(), [[1, 0, 0], [0, 0, 2]])
    for changes in (
        {"format": b"xyz"}, {"format": 3.5}, {"shape": (2,)}, {"shape": (-2, 3)},
        {"shape": (1, 3)}, {"data": ["a", "b"]}, {"indices": [0, 7]}, {"indices": [0, -1]},
        {"indptr": [0, 1, 9]}, {"indptr": [0, 2, 1]}, {"indices": [0]},
        {"indptr": [0, 2]}, {"indptr": [1, 1, 2]}, {"indptr": [0.0, 1.0, 2.0]},
        {"indptr": [0, 1, 1]}, {"indices": [0.0, 2.0]}, {"format": b"bsr"}, {"format": b"coo"},
        {"format": b"dia", "offsets": [0]}, {"format": b"csc"}, {"shape": (2.0, np.inf)},
        {"shape": (np.nan, 3.0)},
    ):  # fmt: skip
        with pytest.raises(TableError, match="sparse matrix"):
            write(**changes)
    monkeypatch.setattr(memory, "available_bytes", lambda: 1 << 30)
    with pytest.raises(ValueError, match=r"The 100,000 x 30,000 values .* need about 22\.4 GiB"):
        write(shape=(100_000, 30_000))
    for no_rows in ((0, 3), (3, 0)):
        with pytest.raises(TableError):
            write(shape=no_rows, data=[], indices=np.zeros(0, int), indptr=[0] * (no_rows[0] + 1))


# Wide


@pytest.mark.parametrize("odd", ["word", "007", "", "1e3", "12345678901234567890"])
def test_wide_tables_say_what_narrow_ones_say(tmp_path, odd):
    """Arrow is told the types of wide ones, by their first lines; later ones may disagree."""
    n_rows, n_columns = 150, 600
    cells = np.full((n_rows, n_columns), "0.5", dtype=object)
    cells[140, 7] = cells[140, 599] = odd
    cells[:, 3] = "5"
    names = [f"c{i}" for i in range(n_columns)]
    lines = [",".join(row) for row in (names, *cells.tolist())]
    wide = read(tmp_path, "\n".join(lines))
    kept = [0, 3, 7, 599]
    lines = [",".join(row) for row in (np.array(names)[kept], *cells[:, kept].tolist())]
    narrow = read(tmp_path, "\n".join(lines))
    assert wide.words.keys() == narrow.words.keys()
    assert wide.exact.keys() == narrow.exact.keys()
    assert wide.mixed == narrow.mixed
    for name in narrow.names:
        np.testing.assert_array_equal(wide.column(name), narrow.column(name))
