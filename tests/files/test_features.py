"""Which columns a model learns from, the same columns of other files, and marks of rows."""

import numpy as np
import pytest

from kernelatoms.files.models.record import ModelRecord
from kernelatoms.files.tables.features import (
    MOST_MARKS,
    fingerprint,
    kept_marks,
    learned_share,
    row_marks,
    training_set,
)
from kernelatoms.files.tables.matching import row_identifiers, rows_for
from kernelatoms.files.tables.roles import labels_for
from kernelatoms.files.tables.table import TableError, read_table


@pytest.fixture
def table(tmp_path):
    def make(text, name="t.csv"):
        (tmp_path / name).write_text(text)
        return read_table(tmp_path / name)

    return make


FLOWERS = "id,a,garden,b,empty,kind\n7,1,north,10,,x\n8,,south,20,,y\n9,3,north,30,,\n"


def test_features_are_the_columns_of_numbers(table):
    chosen = training_set(table(FLOWERS), "kind")
    assert chosen.columns == ["a", "b"]
    np.testing.assert_array_equal(chosen.X, [[1, 10], [np.nan, 20]])
    assert chosen.y.tolist() == ["x", "y"]
    assert chosen.left_out == {
        "garden": "it holds words, 2 different ones in only 3 rows", "empty": "it is empty",
        "id": "it numbers the rows",
    }  # fmt: skip
    assert "1 of 3 rows has no label and is not learned from." in chosen.notes
    assert chosen.describe()["missing"] == 1


def test_identifiers_are_named_and_all_different(table):
    repeated = training_set(table("id,a,kind\n1,2,x\n1,3,y\n2,4,y\n1,5,x\n"), "kind")
    assert repeated.columns == ["id", "a"]  # the same number twice is a value
    other = training_set(table("grade,a,kind\n1,2,x\n2,3,y\n"), "kind")
    assert other.columns == ["grade", "a"]  # not called an identifier
    fractions = training_set(table("id,a,kind\n1.5,2,x\n2.5,3,y\n"), "kind")
    assert fractions.columns == ["id", "a"]


def test_columns_can_be_left_out_by_name(table):
    chosen = training_set(table(FLOWERS), "kind", ["b"])
    assert chosen.columns == ["a"]
    with pytest.raises(TableError, match=r"^drop: .* no column 'c'"):
        training_set(table(FLOWERS), "kind", ["c"])
    with pytest.raises(TableError, match="is the label"):
        training_set(table(FLOWERS), "kind", ["kind"])


def test_mixed_columns_stop_unless_left_out(table):
    mixed = table("a,b,kind\n1,2,x\nthree,4,y\n")
    with pytest.raises(TableError, match="'a' holds numbers and words: 'three' in row 1"):
        training_set(mixed, "kind")
    assert training_set(mixed, "kind", ["a"]).columns == ["b"]


def test_labels(table):
    with pytest.raises(TableError, match=r"^label: .* no column 'sort'; it has .*'kind'"):
        training_set(table(FLOWERS), "sort")
    with pytest.raises(TableError, match=r"'empty' of .* is empty"):
        training_set(table(FLOWERS), "empty")
    whole = training_set(table("a,k\n1,3.0\n2,4.0\n"), "k")
    assert whole.y.dtype == np.int64
    text = "a,k\n" + "".join(f"{i},{i / 7}\n" for i in range(50))
    with pytest.raises(TableError, match="50 different real numbers"):
        training_set(table(text), "k")


def test_nothing_to_learn_from(table):
    with pytest.raises(TableError, match="no column to learn from beside the label"):
        training_set(table("word,kind\nx,y\nz,w\n"), "kind")


def test_infinite_values_are_named(table):
    with pytest.raises(TableError, match=r"column 'b' is infinite in row 1 \(counted from 0\)"):
        training_set(table("a,b,k\n1,2,x\n3,inf,y\n"), "k")
    with pytest.raises(TableError, match="infinite in row 2"):  # of the file
        training_set(table("a,b,k\n1,2,x\n1,2,\n3,inf,y\n"), "k")


RECORD = ModelRecord(columns=["a", "b"], label="kind", left_out={"id": ""})


def test_later_files_are_read_by_name(table):
    X, notes = rows_for(table("extra,b,a\n0,1,2\n"), RECORD, 2)
    np.testing.assert_array_equal(X, [[2, 1]])
    assert notes == ["Not used, since the model does not know them: 'extra'."]
    X, notes = rows_for(table("b,a,kind,id\n1,2,x,5\n"), RECORD, 2)
    assert notes == []


def test_later_files_that_do_not_fit(table, tmp_path):
    with pytest.raises(TableError, match=r"lacks 'b', which the model was fitted on"):
        rows_for(table("a,c\n1,2\n"), RECORD, 2)
    with pytest.raises(TableError, match="as numbers, but the file has words"):
        rows_for(table("a,b\n1,x\n"), RECORD, 2)
    with pytest.raises(TableError, match="holds numbers and words"):
        rows_for(table("a,b\n1,x\n1,2\n"), RECORD, 2)
    np.save(tmp_path / "t.npy", np.eye(3))
    with pytest.raises(TableError, match="has no column names"):
        rows_for(read_table(tmp_path / "t.npy"), RECORD, 2)
    with pytest.raises(TableError, match="has 3 columns of numbers, but the model was fitted on 2"):
        rows_for(read_table(tmp_path / "t.npy"), ModelRecord(), 2)


def test_an_empty_column_is_all_missing(table):
    X, _ = rows_for(table("a,b\n1,\n2,\n"), RECORD, 2)
    np.testing.assert_array_equal(X, [[1, np.nan], [2, np.nan]])


def test_labels_are_compared_as_written(table):
    y, kept = labels_for(table("a,k\n1,3\n2,\n3,4\n"), "k", np.array(["3", "4"]))
    assert y.tolist() == ["3", "4"]
    assert kept.tolist() == [True, False, True]
    y, _ = labels_for(table("a,k\n1,new\n"), "k", np.array(["3", "4"]))
    assert y.tolist() == ["new"]


def test_identifiers_stand_beside_results(table):
    assert list(row_identifiers(table("id,a,b,garden\n1,2,3,x\n"), RECORD)) == ["id"]


def test_fingerprints(rng):
    X = rng.normal(size=(5000, 3))
    assert fingerprint(X, None) == fingerprint(np.asfortranarray(X), None)
    other = X.copy()
    other[4999, 2] += 1e-12
    assert fingerprint(X, None) != fingerprint(other, None)
    assert fingerprint(X, np.zeros(5000)) != fingerprint(X, np.ones(5000))


def test_equal_rows_have_equal_marks_and_others_do_not(rng):
    X = rng.normal(size=(20_000, 3))  # more than a block
    order = rng.permutation(len(X))
    np.testing.assert_array_equal(row_marks(X)[order], row_marks(X[order]))
    np.testing.assert_array_equal(row_marks(X), row_marks(np.asfortranarray(X)))
    assert len(np.unique(row_marks(X))) > 19_990
    # Bits are even: every one of 32 is set in half of the rows.
    bits = (row_marks(X)[:, None] >> np.arange(32, dtype=np.uint32)) & 1
    assert np.abs(bits.mean(axis=0) - 0.5).max() < 0.03
    swapped = row_marks(X[:, ::-1])
    assert (swapped != row_marks(X)).mean() > 0.999
    one_changed = X.copy()
    one_changed[:, 1] = np.nextafter(one_changed[:, 1], np.inf)
    assert (row_marks(one_changed) != row_marks(X)).mean() > 0.999


def test_numbers_that_are_the_same_have_the_same_marks():
    X = np.array([[0.0, np.nan, 1.0]])
    same = np.array([[-0.0, -np.nan, 1.0]])
    same[0, 1] = np.frombuffer(np.uint64(0x7FF8_0000_0000_0007).tobytes(), np.float64)[0]
    np.testing.assert_array_equal(row_marks(X), row_marks(same))
    np.testing.assert_array_equal(row_marks(np.float32([[0.5]])), row_marks(np.array([[0.5]])))
    np.testing.assert_array_equal(row_marks(np.array([[2]])), row_marks(np.array([[2.0]])))


def test_the_share_of_rows_that_were_learned_from(rng):
    X, new = rng.normal(size=(2, 300, 4))
    kept = kept_marks(X)
    assert learned_share(X, kept) == 1.0
    assert learned_share(X[rng.permutation(300)[:40]], kept) == 1.0
    assert learned_share(new, kept) == 0.0
    assert learned_share(np.vstack([X[:97], new[:3]]), kept) == pytest.approx(0.97)
    assert learned_share(X[:1], kept) == 1.0


def test_of_many_rows_a_sample_is_kept_and_tells_the_share(rng):
    X, new = rng.normal(size=(2, 60_000, 2))
    kept = kept_marks(X)
    assert len(kept) < 6 * MOST_MARKS
    assert learned_share(X, kept) == 1.0
    assert learned_share(X[5000:20_000], kept) == 1.0
    # A new row is taken for one with a probability of 60,000 / 2^32 over the sample's 4,000.
    assert learned_share(new, kept) <= 1e-3
    mixed = np.vstack([X[:30_000], new[:10_000]])
    assert learned_share(mixed, kept) == pytest.approx(0.75, abs=0.05)
    assert learned_share(X[:30], kept) is None  # two or so of these can be looked up


@pytest.mark.parametrize(
    "kept",
    [None, "", "all", "all:", "all:@", "all:AAA=", "some:AAA=", "none:AAAA", 3, "x:AAAAAA=="],
)
def test_nothing_is_said_without_marks_or_with_damaged_ones(kept):
    assert learned_share(np.ones((3, 2)), kept) is None
