"""What columns are, how words and dates become numbers, and labels as they stand."""

import json
from dataclasses import asdict
from datetime import date, datetime, time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelatoms.files import ModelRecord, Table, TableError, rows_for, training_set
from kernelatoms.files.tables.column_kinds import CONSTANT, DATES, EMPTY, encoded, uses_of
from kernelatoms.files.tables.dates import date_order, day_text, to_days
from kernelatoms.files.tables.roles import NAMED, UNNAMED, doubts_about, labels_for, read_labels

N = 60
RNG = np.random.default_rng(5)
KIND = np.array(["x", "y"] * (N // 2), object)


def objects(values):
    column = np.empty(len(values), object)
    column[:] = values
    return column


def made(numbers=None, words=None, n=N, named=True, **more):
    """Return a table as a reader would; numbers and words by name."""
    numbers = numbers or {}
    matrix = np.column_stack([*numbers.values()]) if numbers else np.empty((n, 0))
    words = {name: objects(values) for name, values in (words or {}).items()}
    return Table(Path("t.csv"), list(numbers), matrix.astype(float), words, named=named, **more)


def use_of(values, name="c", **more):
    return uses_of(made(words={name: values}, n=len(values), **more), None)[name]


@pytest.mark.parametrize(
    ("values", "kind", "what"),
    [
        (["red", "green", "blue"] * 20, "category", ("blue", "green", "red")),
        ([f"v{i}" for i in range(20)] * 5, "category", None),
        ([f"v{i}" for i in range(21)] * 5, "left out", "it holds words, 21 different ones"),
        ([f"v{i}" for i in range(12)] * 5, "category", None),
        (
            [f"v{i}" for i in range(13)] * 4, "left out",
            "it holds words, 13 different ones in only 52 rows",
        ),
        (["yes", "no"] * 2, "yes/no", ("no", "yes")),
        (["No", "YES", None, "No"], "yes/no", ("No", "YES")),
        (["m", "f"] * 9, "yes/no", ("f", "m")),
        (["True", "False"], "yes/no", ("False", "True")),
        (["north", "south"] * 5, "yes/no", ("north", "south")),
        (["north", "south"] * 4, "left out", "it holds words, 2 different ones in only 8 rows"),
        ([" red", "red ", "blue"] * 20, "yes/no", ("blue", "red")),
        (["mg/l"] * N, "left out", CONSTANT),
        ([None] * N, "left out", EMPTY),
        (["a", "b", *[None] * 58], "left out", "it is nearly empty: 2 values in 60 rows"),
        (
            ["a", "b", "a", *[None] * 57], "left out",
            "it holds words, 2 different ones in only 3 rows",
        ),
        ([f"Mr. Smith {i}" for i in range(N)], "left out", "it holds words, 60 different ones"),
        ([f"A-{i:05}" for i in range(N)], "left out", NAMED),
        ([f"A-{i // 2:05}" for i in range(N)], "left out", "it holds words, 30 different ones"),
        ([f"2024-{i // 28 + 1:02}-{i % 28 + 1:02}" for i in range(N)], "left out", DATES),
        ([time(12, 30)] * N, "left out", "it holds times of day"),
        ([[1, 2]] * N, "left out", "it holds no numbers, words or dates"),
        (["2024-01-31", "2024-02-01"] * 30, "left out", DATES),
        ([date(2024, 1, 31), None], "left out", DATES),
    ],
)  # fmt: skip
def test_words(values, kind, what):
    use = use_of(values)
    assert use.kind == kind
    if what is not None:
        assert (use.why if kind == "left out" else use.values) == what


def test_numbers_that_say_nothing():
    some = np.full(N, np.nan)
    some[:2] = 1, 5
    enough = np.full(N, np.nan)
    enough[:3] = 1, 5, 7
    table = made({"a": RNG.normal(size=N), "same": np.ones(N), "rare": some, "some": enough})
    assert {name: use.why for name, use in uses_of(table, None).items()} == {
        "a": "", "same": CONSTANT, "rare": "it is nearly empty: 2 values in 60 rows", "some": "",
    }  # fmt: skip
    chosen = training_set(table, None, keep=["same", "rare"])
    assert chosen.columns == ["a", "same", "rare", "some"]


def test_a_signal_stays_whole():
    pixels = {f"pixel{i}": RNG.normal(size=N) for i in range(16)}
    pixels["pixel3"] = np.zeros(N)
    assert training_set(made(pixels), None).left_out == {}
    pixels.pop("pixel15")
    assert training_set(made(pixels), None).left_out == {"pixel3": CONSTANT}
    assert training_set(made({"0": np.zeros(N)}, named=False), None).left_out == {}


def test_an_unnamed_first_column_is_an_index():
    for values, why in ((RNG.normal(size=N), UNNAMED), (np.r_[:30, :30] * 1.0, UNNAMED)):
        table = made({"column 1": values, "a": RNG.normal(size=N)},
                     unnamed=frozenset({"column 1"}))  # fmt: skip
        assert training_set(table, None).left_out == {"column 1": why}
        assert training_set(table, None, keep=["column 1"]).left_out == {}
    words = made({"a": RNG.normal(size=N)}, {"column 1": ["u", "v"] * 30},
                 unnamed=frozenset({"column 1"}))  # fmt: skip
    assert training_set(words, None).left_out == {"column 1": UNNAMED}


TROUBLE = {"mixed": {"c": "the column 'c' holds numbers and words"}}


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["0", "1", "2", "3+"] * 15, "category"),
        ([*map(str, range(59)), "unknown"], None),  # a slip
        ([*map(str, range(40)), *["unknown"] * 20], None),  # what is missing has a mark
        (["1,5", "2,5", "3,5", "4,5"] * 15, None),  # decimal commas
        ([f"PC {i}" if i % 3 == 0 else str(i) for i in range(N)], "left out"),  # tickets
    ],
)
def test_numbers_and_words_in_one_column(values, kind):
    table = made({"a": RNG.normal(size=N)}, {"c": values}, **TROUBLE)
    if kind is None:
        with pytest.raises(TableError, match="holds numbers and words"):
            training_set(table, None)
        assert training_set(table, None, drop=["c"]).columns == ["a"]
    else:
        assert uses_of(table, None)["c"].kind == kind
        training_set(table, None)


def test_features_of_words_and_back_from_a_file():
    colours, flags = ["red", "green", None, "blue"] * 15, ["no", "yes", "yes", None] * 15
    days = ["31.12.2023", "01.01.2024", None, "02.01.2024"] * 15
    truth = np.array([True, False] * 30)
    table = made(
        {"a": np.arange(N) ** 2, "flag": truth},
        {"colour": colours, "member": flags, "since": days, "kind": KIND},
        exact={"flag": objects(truth.tolist())},
    )
    chosen = training_set(table, "kind", dates=True)
    assert chosen.columns == [
        "a", "flag=True", "colour=blue", "colour=green", "colour=red", "member=yes", "since",
    ]  # fmt: skip
    gap = np.nan
    np.testing.assert_array_equal(
        chosen.X[:4],
        [
            [0, 1, 0, 0, 1, 0, 0],
            [1, 0, 0, 1, 0, 1, 1],
            [4, 1, gap, gap, gap, 1, gap],
            [9, 0, 1, 0, 0, gap, 2],
        ],
    )
    record = ModelRecord(**json.loads(json.dumps(asdict(chosen.record()))))  # as a file keeps it
    assert record.sources == ["a", "flag", "colour", "member", "since"]
    assert record.uses() == {
        "kind": "label", "a": "number", "flag": "yes/no: 1 for True, 0 for False",
        "colour": "category: blue, green, red", "member": "yes/no: 1 for yes, 0 for no",
        "since": "days since 2023-12-31",
    }  # fmt: skip
    again, notes = rows_for(table, record, 7)
    np.testing.assert_array_equal(again, chosen.X)
    assert notes == []
    later = made(
        {"flag": [0, 1, 1], "a": [1, 2, 3]},
        {"since": ["yesterday", "31.01.2024", None], "member": ["YES", "perhaps", "no"],
         "colour": ["pink", "red", "mauve"]},
        n=3,
    )  # fmt: skip
    X, notes = rows_for(later, record, 7)
    np.testing.assert_array_equal(
        X, [[1, 0, 0, 0, 0, 1, gap], [2, 1, 0, 0, 1, gap, 31], [3, 1, 0, 0, 0, 0, gap]]
    )
    (note,) = notes
    assert "2 of 'colour' ('mauve', 'pink')" in note
    assert "1 of 'member' ('perhaps'), 1 of 'since' ('yesterday')" in note


def test_words_are_found_by_place_in_files_without_names():
    words = ["u", "v", "w"] * 20
    numbers = {"0": np.arange(N) + 1, "1": RNG.normal(size=N), "4": RNG.normal(size=N)}
    table = made(numbers, {"2": words, "3": KIND}, named=False)
    chosen = training_set(table, "3")
    assert chosen.columns == ["1", "4", "2=u", "2=v", "2=w"]
    assert list(chosen.left_out) == ["0"]
    record = chosen.record()
    np.testing.assert_array_equal(rows_for(table, record, 5)[0], chosen.X)
    without_label = made({"0": numbers["0"], "1": numbers["1"], "3": numbers["4"]},
                         {"2": words}, named=False)  # fmt: skip
    np.testing.assert_array_equal(rows_for(without_label, record, 5)[0], chosen.X)
    bare = made({"0": numbers["1"], "2": numbers["4"]}, {"1": words}, named=False)
    np.testing.assert_array_equal(rows_for(bare, record, 5)[0], chosen.X)
    with pytest.raises(TableError, match="has no column names"):
        rows_for(made({"0": numbers["1"]}, named=False), record, 5)


def test_words_beside_the_rows_of_an_archive_are_no_columns():
    table = made({"0": RNG.normal(size=N)}, {"y": KIND, "place": ["u", "v"] * 30}, named=False)
    assert training_set(table, "y").columns is None


def test_two_features_of_one_name_are_refused():
    table = made({"c=red": RNG.normal(size=N)}, {"c": ["red", "green", "blue"] * 20})
    with pytest.raises(TableError, match="two features would be called 'c=red'; rename"):
        training_set(table, None)


@pytest.mark.parametrize(
    "wrong",
    [
        {"c": {"kind": "category"}}, {"c": {"kind": "category", "values": []}},
        {"c": {"kind": "category", "values": ["a", "a"]}}, {"c": ["a"]},
        {"c": {"kind": "yes/no", "values": ["a"]}}, {"c": {"kind": "number", "values": ["a"]}},
        {"c": {"kind": "category", "values": [1]}},
        {"c": {"kind": "date", "order": "dym", "first": 0}},
        {"c": {"kind": "date", "order": "dmy", "first": 1e9}},
        {"c": {"kind": "category", "values": ["other"]}},
    ],
)  # fmt: skip
def test_records_whose_encodings_are_none(wrong):
    with pytest.raises((TypeError, ValueError), match=r"record: (encoded|columns)"):
        ModelRecord(columns=["c", "c=a"], encoded=wrong)


@given(st.lists(st.sampled_from(["a", "b", "c", None]), min_size=1, max_size=30))
def test_every_row_has_one_value_of_a_category(values):
    matrix, new = encoded(objects(values), {"kind": "category", "values": ["a", "b"]})
    for row, value in zip(matrix, values, strict=True):
        expected = [np.nan] * 2 if value is None else [value == "a", value == "b"]
        np.testing.assert_array_equal(row, expected)
    assert new == [value for value in values if value == "c"]


@pytest.mark.parametrize(
    ("texts", "order", "guessed", "days"),
    [
        (["1970-01-02", "1970-01-03 12:00"], "ymd", False, [1, 2.5]),
        (["1970-01-02T06:00:00Z", "1970/01/03"], "ymd", False, [1.25, 2]),
        (["31.12.2024", "1.1.1970"], "dmy", False, [20088, 0]),
        (["01.02.1970"], "dmy", False, [31]),
        (["12/31/2024", "01/02/1970"], "mdy", False, [20088, 1]),
        (["31/12/2024", "01/02/1970"], "dmy", False, [20088, 31]),
        (["01/02/1970", "03/04/1970"], "mdy", True, [1, 62]),
        (["1/2/70 2:30 PM"], "mdy", True, [1 + 14.5 / 24]),
        (["12/31/69 12:15 am"], "mdy", False, [-1 + 0.25 / 24]),
        (["2 Jan 1970", "3-Feb-1970"], "named", False, [1, 33]),
        (["Jan 2, 1970", "March 1 1970 01:00:30"], "named", False, [1, 59 + 3630 / 86400]),
        (["31/12/2024", "12/31/2024"], "", False, None),
        (["30.02.2024"], "", False, None),
        (["2024-01-01", "soon"], "", False, None),
        (["12:30"], "", False, None),
        (["1.2"], "", False, None),
        (["192.168.0.1"], "", False, None),
        (["2 Foo 1970"], "", False, None),
    ],
)
def test_dates(texts, order, guessed, days):
    found = date_order(texts)
    assert found[0] == order
    if order:
        assert found[1] == guessed
        np.testing.assert_allclose(to_days(objects(texts), order), days, rtol=1e-12)


def test_dates_of_python_and_back():
    moments = objects([date(2024, 2, 29), datetime(2024, 3, 1, 18), None])
    assert date_order(moments[:2]) == ("ymd", False)
    days = to_days(moments, "ymd")
    assert [day_text(d) for d in days[:2]] == ["2024-02-29", "2024-03-01 18:00:00"]
    assert np.isnan(days[2])


def test_a_guess_at_day_and_month_is_said():
    table = made({"a": RNG.normal(size=N)}, {"since": ["01/02/2024", "03/04/2024"] * 30})
    assert "do not tell day from month" in training_set(table, None, dates=True).notes[-1]
    assert training_set(table, None).notes == []


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["007", "7", "07"], ["007", "7", "07"]),
        ([2**60 + 1, 2**60 + 2, -3], [2**60 + 1, 2**60 + 2, -3]),
        ([2**70, 2**70 + 1], [str(2**70), str(2**70 + 1)]),
        ([True, False], [True, False]),
        (["TRUE", "FALSE"], ["TRUE", "FALSE"]),
        ([1, "a"], ["1", "a"]),
        ([date(2024, 1, 1)], ["2024-01-01"]),
    ],
)
def test_labels_come_back_as_they_stand(values, expected):
    numbers = not isinstance(values[0], str | date) and not isinstance(values[-1], str)
    floats = {"k": [float(v) for v in values]} if numbers else {}
    more = {"exact": {"k": objects([*values, None])}} if numbers else {}
    floats = {name: [*held, np.nan] for name, held in floats.items()}
    words = {} if numbers else {"k": [*values, None]}
    table = made(floats, words, n=len(values) + 1, **more)
    y, kept = read_labels(table, "k")
    assert y.tolist() == expected
    assert kept.tolist() == [True] * len(values) + [False]
    same, _ = labels_for(table, "k", np.unique(y))
    assert same.tolist() == expected
    assert same.dtype == y.dtype


def test_labels_that_are_numbers():
    assert read_labels(made({"k": [0.5, 1.0, 1.5]}), "k")[0].tolist() == ["0.5", "1.0", "1.5"]
    assert read_labels(made({"k": [3.0, 4.0]}), "k")[0].dtype == np.int64
    with pytest.raises(TableError, match=r"'k' of t.csv is infinite in row 1 \(counted from 0\)"):
        read_labels(made({"k": [1.0, np.inf]}), "k")
    with pytest.raises(TableError, match="is infinite in row 0"):  # however it was written
        read_labels(made({"k": [np.inf, 1.0]}, exact={"k": objects(["inf", "1"])}), "k")
    huge = read_labels(made({"k": [1e19, 1.0]}), "k")[0]
    assert huge.tolist() == ["10000000000000000000", "1"]


def test_true_is_true_however_it_is_written():
    table = made(words={"k": ["TRUE", "false"]}, n=2)
    assert labels_for(table, "k", np.array([False, True]))[0].tolist() == [True, False]


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (np.arange(100) // 5, None),  # 20 classes
        (np.arange(105) // 5, "21 different numbers in 105 rows: is it a quantity"),
        (np.arange(210) // 10, None),
        (np.arange(209) // 10, "21 different numbers"),
        (np.array([*"aabbccdddd"]), "3 of 4 classes in 'k' have fewer than 3 rows"),
        (np.array([*"aabbcccdddd"]), None),
        (np.array([*"aabbb"]), None),
    ],
)
def test_doubtful_labels(y, words):
    doubts = doubts_about(y, "k")
    assert len(doubts) == (words is not None)
    assert words is None or words in doubts[0]


def test_100000_columns_are_taken_in_linear_time():
    names = [f"c{i}" for i in range(100_000)]
    table = Table(Path("t.csv"), names, RNG.normal(size=(3, 100_000)), {}, named=True)
    chosen = training_set(table, None)
    X, _ = rows_for(table, chosen.record(), 100_000)
    assert X.shape == (3, 100_000)
