"""Spans of large tables: what a worker of a cluster reads by itself is what one pass reads."""

import pickle

import numpy as np
import pandas
import pyarrow
import pytest

from kernelatoms.files import ModelRecord
from kernelatoms.files.tables import large as large_tables
from kernelatoms.files.tables.large import open_large
from kernelatoms.files.tables.on_workers import _Place, _Reader
from kernelatoms.files.tables.parts import runs_of
from kernelatoms.files.tables.table import ReadOptions, TableError

KINDS = ("csv", "parquet", "feather", "arrow", "npy")


@pytest.fixture
def table(tmp_path, rng, monkeypatch):
    """A table in files of all kinds, read in many parts."""
    monkeypatch.setattr(large_tables, "_LARGEST", 1 << 15)
    n = 9000
    frame = pandas.DataFrame({
        "x": rng.normal(size=n), "n": rng.integers(0, 9, n),
        "town": rng.choice(["Bern", "Zürich", 'Oslo,\n"N"'], n),
    })  # fmt: skip
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet", row_group_size=700)
    frame.to_feather(tmp_path / "t.feather", chunksize=900)
    arrow = pyarrow.Table.from_pandas(frame)
    with pyarrow.ipc.new_stream(tmp_path / "t.arrow", arrow.schema) as stream:
        stream.write_table(arrow, max_chunksize=500)
    np.save(tmp_path / "t.npy", np.ascontiguousarray(frame[["x", "n"]].to_numpy()))
    return lambda kind: open_large(tmp_path / f"t.{kind}", ReadOptions(), None, on_workers=True)


def rows_of(parts):
    tables = [part.table for part in parts]
    words = {name: [v for t in tables for v in t.words[name]] for name in tables[0].words}
    return np.concatenate([t.numbers for t in tables]), words, [t.notes for t in tables][-1]


@pytest.mark.parametrize("kind", KINDS)
def test_spans_together_are_the_table(table, kind):
    large = table(kind)
    assert not large.fits
    numbers, words, notes = rows_of(part for _, part in large.parts())
    file = pickle.loads(pickle.dumps(large.files[0]))  # as it is sent
    spans = file.spans(40_000)
    assert len(spans) == 1 if kind == "arrow" else len(spans) > 3  # a stream has no groups
    start = 0
    for span in spans:
        found = rows_of(file.parts(span))
        stop = start + span.n_rows
        assert span.first_row == start == next(file.parts(span)).table.first_row
        np.testing.assert_array_equal(found[0], numbers[start:stop])
        assert found[1:] == ({name: held[start:stop] for name, held in words.items()}, notes)
        start = stop
    assert start == len(numbers) == 9000


def test_spans_do_not_depend_on_the_memory(tmp_path, table):
    found = []
    for memory in (1 << 20, 1 << 40):
        large = open_large(tmp_path / "t.csv", ReadOptions(), memory, on_workers=True)
        list(large)
        found.append(large.files[0].spans(40_000))
    assert found[0] == found[1]


def test_runs_are_as_long_as_they_may_be():
    assert runs_of([], 5) == []
    assert runs_of([2, 2, 2, 2], 4) == [range(2), range(2, 4)]
    assert runs_of([9, 9], 4) == [range(1), range(1, 2)]


def test_readers_say_what_workers_do_not_see(table, tmp_path):
    large = table("parquet")
    list(large)
    record = ModelRecord(columns=["x", "n"])
    reader = _Reader(large.files, record, 2, np.dtype(np.float64))
    span = large.files[0].spans(40_000)[1]
    kept = np.arange(span.n_rows) % 3 == 0
    rows = reader(_Place.of(0, span, kept))
    whole = reader(_Place.of(0, span, np.ones(span.n_rows, bool)))
    np.testing.assert_array_equal(rows, whole[kept])
    stamp = (tmp_path / "t.parquet").read_bytes()
    (tmp_path / "t.parquet").unlink()
    with pytest.raises(FileNotFoundError, match=r"a worker finds no file .*t\.parquet"):
        reader(_Place.of(0, span, kept))
    (tmp_path / "t.parquet").write_bytes(stamp)
    with pytest.raises((TableError, ValueError), match="has changed since"):
        reader(_Place.of(0, span, kept))
