"""What a column holds comes back as it was: long numbers, leading zeros, truth, infinity."""

import datetime
import decimal
import json

import numpy as np
import pyarrow
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelatoms.files import ReadOptions, read_table
from kernelatoms.files.tables.csv_tables import has_padded_numbers

LONG = 2**53 + 1


def column(tmp_path, *cells, name="a"):
    """Read a column of a text file whose other column is made of plain numbers."""
    lines = [f"x,{name}", *(f"{i},{cell}" for i, cell in enumerate(cells))]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    table = read_table(tmp_path / "t.csv")
    assert table.column("x").dtype == float
    return table, table.column(name).tolist()


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["007", "7", "10"], ["007", "7", "10"]),
        (["7", "007", ""], ["7", "007", None]),
        (["00", "0"], ["00", "0"]),
        (["-007", "-7"], ["-007", "-7"]),
        (["+07", "7"], ["+07", "7"]),
        (["007", "7.5"], ["007", "7.5"]),
        (["0x10", "16"], ["0x10", "16"]),
        (['"007"', '"7"'], ["007", "7"]),
        ([" 007", "7"], ["007", "7"]),
        (["true", "FALSE", ""], ["true", "FALSE", None]),
        (["1", "true", "0"], ["1", "true", "0"]),
        (["1", "inf", "-inf"], ["1", "inf", "-inf"]),
        (["Infinity", "2"], ["Infinity", "2"]),
        (["1e400", "2"], ["1e400", "2"]),
        ([str(LONG), str(LONG - 1)], [LONG, LONG - 1]),
        (["1234567890123456", "9999999999999999"], [1234567890123456, 9999999999999999]),
        ([str(10**19 + 1), "", str(10**19)], [10**19 + 1, None, 10**19]),
        ([str(10**400 + 1), str(10**400)], [str(10**400 + 1), str(10**400)]),
        ([f"0{LONG}", str(LONG)], [f"0{LONG}", str(LONG)]),
        ([f"+{LONG}", str(LONG - 1)], [LONG, LONG - 1]),
        (["1_000", "5"], ["1_000", "5"]),
    ],
)
def test_columns_come_back_as_written(tmp_path, cells, expected):
    assert column(tmp_path, *cells)[1] == expected


@pytest.mark.parametrize(
    "cells", [["0.5", "0"], ["10", "20"], ["2020.5", "1e20"], ["00.5", "01.5"], ["-0", "0"]]
)
def test_plain_numbers_stay_floats(tmp_path, cells):
    table, values = column(tmp_path, *cells)
    assert table.exact == {}
    assert values == [float(cell) for cell in cells]


def test_numbers_stay_beside_what_was_written(tmp_path):
    table, _ = column(tmp_path, "007", "7", "")
    np.testing.assert_array_equal(table.numbers[:, 1], [7, 7, np.nan])
    table, _ = column(tmp_path, "true", "False", "")
    np.testing.assert_array_equal(table.numbers[:, 1], [1, 0, np.nan])


def test_python_s_underscores_make_no_numbers(tmp_path):
    assert "'1_000' in row 0 (line 2)" in column(tmp_path, "1_000", "5")[0].mixed["a"]


def test_dates_and_times_are_not_taken_for_leading_zeros():
    assert not has_padded_numbers(b"2020-01-05 00:10,0.5,10,0\n100,1e-05,12:05\n", ",")
    assert has_padded_numbers(b"1,2\n1, 05\n", ",")
    assert has_padded_numbers(b"05,1\n", ",")
    assert not has_padded_numbers(b"", ",")


@given(st.lists(st.text('0123456789.-+xX "', max_size=5), min_size=1, max_size=6), st.data())
def test_the_look_for_leading_zeros_misses_none(cells, data):
    """Whatever else it takes for one: a second reading decides."""
    place = data.draw(st.integers(0, len(cells)))
    padded = data.draw(st.sampled_from(["00", "007", "-01", "+09", "0x1", " 05", '"03"']))
    text = ";".join([*cells[:place], padded, *cells[place:]])
    assert has_padded_numbers(text.encode(), ";")


def test_leading_zeros_are_found_in_every_block():
    for place in (0, (1 << 18) - 2, (1 << 18) - 1, 1 << 18, 3 << 17):
        text = b"1" * place + b",01," + b"1" * 300_000
        assert has_padded_numbers(text, ",")
        assert not has_padded_numbers(text.replace(b",01,", b",10,"), ",")


def test_dates_of_typed_files_are_dates(tmp_path):
    days = [datetime.date(2020, 1, 1), None, datetime.date(2020, 1, 2), datetime.date(2020, 1, 1)]
    table = pyarrow.table({"day": days, "x": [1.0] * 4})
    table = pyarrow.concat_tables([table, table.slice(1)])  # in more than one piece
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet").words["day"].tolist() == [*days, *days[1:]]


def test_typed_files_keep_truth_and_long_numbers(tmp_path):
    held = {
        "flag": pyarrow.array([True, None, False]),
        "long": pyarrow.array([LONG, None, 1], pyarrow.int64()),
        "unsigned": pyarrow.array([2**64 - 1, 0, 1], pyarrow.uint64()),
        "short": pyarrow.array([1, None, 3], pyarrow.int64()),
        "money": pyarrow.array([decimal.Decimal(10**30 + 1)] * 3, pyarrow.decimal128(38, 0)),
        "kind": pyarrow.array(["x", None, "y"]).dictionary_encode(),
        "half": pyarrow.array([1.5, None, np.inf], pyarrow.float16()),
    }
    pyarrow.parquet.write_table(pyarrow.table(held), tmp_path / "t.parquet")
    pyarrow.feather.write_feather(pyarrow.table(held), tmp_path / "t.feather")
    for name in ("t.parquet", "t.feather"):
        table = read_table(tmp_path / name)
        assert table.columns == ["flag", "long", "unsigned", "short", "money", "half"]
        assert table.column("flag").tolist() == [True, None, False]
        assert table.column("long").tolist() == [LONG, None, 1]
        assert table.column("unsigned").tolist() == [2**64 - 1, 0, 1]
        assert table.column("money").tolist() == [10**30 + 1] * 3
        assert table.column("kind").tolist() == ["x", None, "y"]
        assert set(table.exact) == {"flag", "long", "unsigned", "money"}
        np.testing.assert_array_equal(table.column("short"), [1, np.nan, 3])
        np.testing.assert_array_equal(table.column("half"), [1.5, np.nan, np.inf])


def test_json_keeps_truth_and_long_numbers(tmp_path):
    rows = [
        {"a": LONG, "b": True, "c": 10**30, "d": {"e": 1.5, "f": {"g": "w"}}},
        {"a": None, "b": None, "c": 1.5},
        {"a": LONG - 1, "b": False, "c": 2, "h": "late"},
    ]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n\n")
    table = read_table(tmp_path / "t.jsonl")
    assert table.column("a").tolist() == [LONG, None, LONG - 1]
    assert table.column("b").tolist() == [True, None, False]
    assert table.column("c").tolist() == [10**30, 1.5, 2]
    np.testing.assert_array_equal(table.column("d.e"), [1.5, np.nan, np.nan])
    assert table.column("d.f.g").tolist() == ["w", None, None]
    assert table.column("h").tolist() == [None, None, "late"]


def test_arrays_of_long_whole_numbers(tmp_path):
    np.save(tmp_path / "t.npy", np.array([[LONG, 1], [LONG - 1, 2]]))
    table = read_table(tmp_path / "t.npy")
    assert table.column("0").tolist() == [LONG, LONG - 1]
    assert set(table.exact) == {"0"}


def test_decimal_commas_leave_the_rest_exact(tmp_path):
    (tmp_path / "t.csv").write_text("a;b;c\n007;1,5;true\n7;2;false\n")
    for options in (None, ReadOptions(decimal=",")):
        table = read_table(tmp_path / "t.csv", options)
        assert table.column("a").tolist() == ["007", "7"]
        assert table.column("b").tolist() == [1.5, 2.0]
        assert table.column("c").tolist() == ["true", "false"]
