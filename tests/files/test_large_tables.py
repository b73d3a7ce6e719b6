"""Tables read in parts: the same table, whatever the parts."""

import numpy as np
import pandas
import pyarrow
import pyarrow.feather
import pyarrow.parquet
import pytest

from kernelatoms.files import ReadOptions, TableError, read_table
from kernelatoms.files.tables import text_parts
from kernelatoms.files.tables.large import draw_sample, open_large
from kernelatoms.files.tables.survey import survey
from kernelatoms.files.tables.text_parts import _end_of_lines


def opened(path, memory=1, options=None):
    large = open_large(path, options or ReadOptions(), memory)
    assert large is not None
    return large


def assert_same(one, other):
    assert one.columns == other.columns
    assert list(one.words) == list(other.words)
    np.testing.assert_array_equal(one.numbers, other.numbers)
    assert one.numbers.dtype == other.numbers.dtype
    for name in one.words:
        np.testing.assert_array_equal(one.words[name], other.words[name])
    assert one.exact.keys() == other.exact.keys()
    for name in one.exact:
        np.testing.assert_array_equal(one.exact[name], other.exact[name])
    assert (one.named, one.unnamed, one.index) == (other.named, other.unnamed, other.index)


def random_frame(rng, n):
    texts = np.array(['a,"b"\nc', "plain", "007", "", "Zürich", None], object)
    frame = pandas.DataFrame({
        "whole": rng.integers(-5, 5, n), "real": rng.normal(size=n).round(3),
        "padded": [f"{i % 7:03d}" for i in range(n)], "text": texts[rng.integers(0, 6, n)],
        "long": rng.integers(2**60, 2**62, n), "truth": rng.integers(0, 2, n).astype(bool),
        "day": pandas.date_range("2020-01-01", periods=n).date,
    })  # fmt: skip
    frame.loc[3::11, "real"] = np.nan
    return frame


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["csv", "parquet", "feather", "npy"])
def test_parts_together_are_the_table(tmp_path, monkeypatch, kind, seed):
    monkeypatch.setattr(text_parts, "_FEWEST_BYTES", 500)
    rng = np.random.default_rng(seed)
    frame, path = random_frame(rng, 2500), tmp_path / f"t.{kind}"
    if kind == "csv":
        frame.to_csv(path, index=False)
    elif kind == "npy":
        np.save(path, rng.normal(size=(9000, 3)).astype(rng.choice(["f4", "f8"])))
    elif kind == "parquet":
        frame.to_parquet(path, row_group_size=700)
    else:
        frame.to_feather(path, chunksize=700)
    large = opened(path)
    found = list(large)
    assert len(found) > 1
    assert_same(large.collect(), read_table(path))
    whole = read_table(path)
    np.testing.assert_array_equal(np.concatenate([t.numbers for t in found]), whole.numbers)
    assert [t.first_row for t in found] == [0, *np.cumsum([len(t) for t in found])[:-1]]


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("header", ["x;y\n", ""])
def test_text_of_other_forms(tmp_path, monkeypatch, rng, line_end, header):
    monkeypatch.setattr(text_parts, "_FEWEST_BYTES", 300)
    rows = "\n".join(f"{x:.3f};{y}" for x, y in rng.normal(size=(4000, 2)))
    path = tmp_path / "t.csv"
    path.write_bytes((header + rows).replace("\n", line_end).encode())
    for options in (ReadOptions(), ReadOptions(decimal=".", encoding="latin-1")):
        large = opened(path, options=options)
        assert len(list(large)) >= 3
        assert_same(large.collect(), read_table(path, options))


def test_lines_end_outside_of_quotes():
    data = b'a,"b\nc"\nd,e\nf,"g\nh'
    assert data[: _end_of_lines(data)] == b'a,"b\nc"\nd,e\n'
    assert _end_of_lines(b'"a\nb') == 0
    assert _end_of_lines(b"no end") == 0
    assert _end_of_lines(b"") == 0


@pytest.mark.parametrize("n", [1, 10, 999, 4000, 9000])
def test_a_sample_is_the_rows_with_the_smallest_keys(tmp_path, rng, n):
    X = rng.normal(size=(4000, 3))
    np.save(tmp_path / "t.npy", X)
    expected = np.sort(np.argsort(np.random.default_rng(7).random(4000), kind="stable")[:n])
    for memory in (1, 90_000):
        sample = draw_sample(opened(tmp_path / "t.npy", memory), n, 7)
        np.testing.assert_array_equal(sample.rows, expected)
        np.testing.assert_array_equal(sample.table.numbers, X[expected])
        assert sample.n_rows == 4000


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_survey_finds_labels_and_numbering(tmp_path, rng, kind):
    n = 5000
    frame = pandas.DataFrame({
        "turned": rng.permutation(n) + 3, "x": rng.normal(size=n), "count": np.arange(n) - 9,
        "nearly": np.r_[np.arange(n - 1), n], "y": rng.choice(["b", "a", None], n),
    })  # fmt: skip
    frame.loc[4444, "y"] = "late"
    path = tmp_path / f"t.{kind}"
    frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
    known = survey(opened(path), "y", 100, 0)
    assert sorted(known.numbered) == ["count", "turned"]
    assert known.classes.tolist() == ["a", "b", "late"]
    words = np.append(known.classes.astype(object), None)[known.numbers]
    assert list(words) == [None if v is None or v != v else v for v in frame["y"]]
    assert 4444 in known.sample.rows
    assert 100 <= len(known.sample.rows) <= 110


def test_numbers_with_a_gap_do_not_number_the_rows(tmp_path, rng):
    numbers = rng.permutation(5000)
    numbers[numbers == 4999] = 5000
    np.save(tmp_path / "t.npy", np.column_stack([numbers, rng.normal(size=5000)]))
    assert survey(opened(tmp_path / "t.npy"), None, 100, 0).numbered == []


@pytest.mark.parametrize(
    ("labels", "classes"),
    [([1, 2, 1], ["1", "2"]), ([1.0, 2.0, np.nan], ["1", "2"]),
     (["007", "7", "8"], ["007", "7", "8"]), ([True, False, True], ["False", "True"]),
     ([0.5, 1.5, 0.5], ["0.5", "1.5"])],
)  # fmt: skip
def test_labels_are_those_of_the_table_in_memory(tmp_path, labels, classes):
    from kernelatoms.files.tables.roles import read_labels

    labels = labels * 2000
    for kind in ("csv", "parquet"):
        path = tmp_path / f"t.{kind}"
        frame = pandas.DataFrame({"x": np.arange(6000.0) ** 0.5, "y": labels})
        frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
        known = survey(opened(path), "y", 100, 0)
        y, kept = read_labels(read_table(path), "y")
        np.testing.assert_array_equal(known.numbers >= 0, kept)
        np.testing.assert_array_equal(known.classes[known.numbers[kept]], y)
        assert known.classes.dtype.kind == y.dtype.kind
        assert list(map(str, known.classes)) == classes


def test_what_fits_and_what_says_too_much(tmp_path):
    frame = pandas.DataFrame({"x": np.arange(100.0)})
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert open_large(tmp_path / "t.csv", ReadOptions(), None) is None
    assert open_large(tmp_path / "t.csv", ReadOptions(), 1 << 20) is None
    assert open_large(tmp_path / "absent.csv", ReadOptions(), 1) is None
    assert open_large("-", ReadOptions(), 1) is None
    with pytest.raises(TableError, match="max_size"):
        open_large(tmp_path / "t.csv", ReadOptions(max_size=10), 1)
    with pytest.raises(TableError, match="UTF-16"):
        list(opened(tmp_path / "t.csv", options=ReadOptions(encoding="utf-16")))
    np.save(tmp_path / "f.npy", np.asfortranarray(np.ones((50, 3))))
    with pytest.raises(TableError, match="column by column"):
        list(opened(tmp_path / "f.npy"))


def test_types_that_differ_between_files_are_refused(tmp_path):
    for i, value in enumerate(["a", "b"]):
        table = pyarrow.table({"x": pyarrow.array([1.0] * 9), "y": [value] * 9})
        if i:
            table = table.set_column(0, "x", pyarrow.array(["word"] * 9))
        pyarrow.parquet.write_table(table, tmp_path / f"{i}.parquet")
    with pytest.raises(TableError, match="differ in type"):
        opened(tmp_path / "*.parquet").collect()
