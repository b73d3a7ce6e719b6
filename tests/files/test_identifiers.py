"""Columns that number or name rows go, columns that describe them stay."""

import uuid

import numpy as np
import pytest

from kernelatoms.files.models.record import ModelRecord
from kernelatoms.files.tables.features import training_set
from kernelatoms.files.tables.matching import row_identifiers, rows_for
from kernelatoms.files.tables.roles import INDEX, NAMED, NUMBERED, sounds_like_identifier
from kernelatoms.files.tables.table import TableError, read_table

N = 60
RNG = np.random.default_rng(7)
COUNTED = np.arange(N)
SHUFFLED = RNG.permutation(N)
SAMPLED = np.sort(RNG.choice(5000, N, replace=False))
DRAWN = RNG.integers(0, N, N)  # with replacement: 63% different
LONG = RNG.choice(10**7, N, replace=False) + 10**7
INCOME = RNG.choice(90_000, N, replace=False) + 8_000  # whole, all different, and a feature
FEW = RNG.integers(0, 5, N)
REAL = RNG.normal(size=N)
WITH_GAP = [*LONG[:-1], ""]

#: (name, values, whether it is the first column of the file)
GO = [
    ("", COUNTED, True),
    ("", COUNTED + 1, True),
    ("", SHUFFLED, True),
    ("", SAMPLED, True),
    ("", DRAWN, True),
    ("", SAMPLED, False),
    ("Unnamed: 0", SAMPLED, True),
    ("Unnamed: 0.1", SAMPLED, True),
    ("Unnamed: 7", SAMPLED, False),
    ("index", SHUFFLED + 1, False),
    ("index", SAMPLED, True),
    ("id", SAMPLED, False),
    ("ID", LONG, False),
    ("Id", COUNTED * 10, False),
    ("CustomerID", LONG, False),
    ("CustomerID", WITH_GAP, False),
    ("customerId", DRAWN + 500, False),
    ("customer_id", LONG, False),
    ("CUSTOMER ID", LONG, False),
    ("customerid", LONG, False),
    ("PassengerId", COUNTED + 1, False),
    ("id_client", LONG, False),
    ("patient.id", SAMPLED, False),
    ("uuid", LONG, False),
    ("row_uuid", LONG, False),
    ("order key", LONG, False),
    ("InvoiceNo", LONG, False),
    ("invoice no.", LONG, False),
    ("Kunden-Nr.", LONG, False),
    ("Kundennummer", LONG, False),
    ("account_number", LONG, False),
    ("phone number", LONG, False),
    ("row_num", SHUFFLED, False),
    ("Row#", SAMPLED, False),
    ("S.No", COUNTED + 1, False),
    ("No", COUNTED + 1, False),
    ("product code", LONG, False),
    ("SSN", LONG, False),
    ("__index_level_0__", SAMPLED, False),
    ("id", 7 + np.r_[:31, :29], False),  # 31 of 60 differ
    ("long_id", 2**60 + COUNTED, False),  # one number, once rounded to float64
    ("X", COUNTED + 1, True),  # what R makes of row names
    ("X", SHUFFLED + 1, True),
    ("X", SHUFFLED, True),
    ("time", COUNTED, False),  # says no more than the order of the file
    ("x7", COUNTED + 1, False),
    ("sample", COUNTED + 4001, False),
    ("sample", SHUFFLED + 4001, True),
    ("year", 1950 + COUNTED, False),  # says no more than the order of the file
    ("rownum", SAMPLED, False),
    ("#", SAMPLED, False),
    ("No.", SAMPLED, False),
    ("Nr", SAMPLED, False),
    ("employee number", LONG, False),
]

STAY = [
    ("income", INCOME, False),
    ("income", np.sort(INCOME), True),
    ("population", LONG, True),
    ("steps", SAMPLED, False),
    ("rank", SHUFFLED + 1, False),
    ("age", RNG.integers(18, 90, N), True),
    ("year", 1950 + COUNTED // 2, True),
    ("year", 1950 + SHUFFLED, False),
    ("even", 2 * COUNTED, True),
    ("temperature", REAL, True),
    ("id", REAL, False),  # fractions identify nothing
    ("", REAL, False),
    ("", FEW, False),
    ("store_id", FEW, False),  # a few values, again and again: a group
    ("CustomerID", FEW, False),
    ("id", 7 + np.r_[:30, :30], False),  # 30 of 60 differ
    ("key", FEW, False),
    ("citric acid", INCOME, False),
    ("acid", INCOME, False),
    ("paid", INCOME, False),
    ("humid", SAMPLED, False),
    ("bid", INCOME, False),
    ("grid", INCOME, False),
    ("casino", INCOME, False),
    ("monkey", SAMPLED, False),
    ("turnkey", INCOME, False),
    ("piano", SAMPLED, False),
    ("NO", SAMPLED, False),  # nitric oxide
    ("NO2", SAMPLED, False),
    ("num", SAMPLED, False),
    ("atomic number", SAMPLED, False),
    ("Reynolds number", INCOME, False),
    ("total_number", SAMPLED, False),
    ("number of rooms", SAMPLED, False),
    ("no_of_visits", SAMPLED, False),
    ("wavenumber", INCOME, False),
    ("body mass index", SAMPLED, False),
    ("price_index", INCOME, False),
    ("idle time", SAMPLED, False),
    ("zip code", LONG, False),
    ("keystrokes", SAMPLED, False),
    ("identity", INCOME, False),
    ("%", SAMPLED, False),
    ("x", np.r_[COUNTED[:-1], 0], True),
    ("x", np.r_[COUNTED[1:], -1], True),
]


def write(path, columns):
    """Write a table by hand: names and values exactly as they are here."""
    lines = [",".join(name for name, _ in columns)]
    lines += [",".join(map(str, row)) for row in zip(*(v for _, v in columns), strict=True)]
    path.write_text("\n".join(lines) + "\n")
    return read_table(path)


def table_with(path, name, values, first):
    others = [("a", REAL), ("kind", np.where(REAL > 0, "x", "y"))]
    tested = (name, values)
    return write(path, [tested, *others] if first else [*others, tested])


def called(name, first):
    return name or ("column 1" if first else "column 3")


@pytest.mark.parametrize(("name", "values", "first"), GO, ids=lambda value: str(value)[:20])
def test_identifiers_go(name, values, first, tmp_path):
    table = table_with(tmp_path / "t.csv", name, values, first)
    chosen = training_set(table, "kind")
    assert chosen.columns == ["a"]
    assert chosen.left_out == {called(name, first): NUMBERED}
    kept = training_set(table, "kind", keep=[called(name, first)])
    assert sorted(kept.columns) == sorted(["a", called(name, first)])
    assert kept.left_out == {}
    record = ModelRecord(columns=chosen.columns, label="kind", left_out=chosen.left_out)
    assert list(row_identifiers(table, record)) == [called(name, first)]


@pytest.mark.parametrize(("name", "values", "first"), STAY, ids=lambda value: str(value)[:20])
def test_features_stay(name, values, first, tmp_path):
    chosen = training_set(table_with(tmp_path / "t.csv", name, values, first), "kind")
    assert sorted(chosen.columns) == sorted(["a", called(name, first)])
    assert chosen.left_out == {}


def test_few_rows_are_not_counted(tmp_path):
    """1, 2, 3, ... in 19 rows may be what was measured; in 20 rows it is a count."""
    for n, columns in ((19, ["a", "b"]), (20, ["b"])):
        kind = np.where(REAL[:n] > 0, "x", "y")
        table = write(
            tmp_path / "t.csv", [("a", 1 + np.arange(n)), ("b", REAL[:n]), ("kind", kind)]
        )
        assert training_set(table, "kind").columns == columns


def test_words_that_name_rows(tmp_path):
    names = [str(uuid.UUID(int=i)) for i in range(N)]
    mixed = [f"A{i}" if i % 2 else str(i) for i in range(N)]
    colours = ["red", "blue"] * (N // 2)
    kind = ["x", "y"] * (N // 2)
    table = write(
        tmp_path / "t.csv",
        [("", names), ("TicketNo", mixed), ("colour_id", colours), ("a", REAL), ("kind", kind)],
    )
    chosen = training_set(table, "kind")
    assert chosen.columns == ["a", "colour_id=red"]  # two values, again and again: a group
    # Numbers and words in one column are a mistake, but not where they are only names.
    assert chosen.left_out == {"column 1": NAMED, "TicketNo": NAMED}
    assert list(row_identifiers(table, chosen.record())) == ["column 1", "TicketNo"]


def test_what_cannot_be_kept(tmp_path):
    table = write(tmp_path / "t.csv", [("id", COUNTED), ("a", REAL), ("empty", [""] * N),
                                       ("kind", ["x", "y"] * (N // 2)),
                                       ("mixed", [*["1"] * (N - 1), "one"])])  # fmt: skip
    for keep, ignore, message in (
        (["b"], ["mixed"], r"^keep: .* has no column 'b'; it has 'id'"),
        (["kind"], ["mixed"], "^keep: 'kind' is the label"),
        (["id"], ["mixed", "id"], "^keep: 'id' is in drop, too"),
        (["empty"], ["mixed"], "^keep: 'empty' cannot be learned from, since it is empty"),
        (["mixed"], [], "'mixed' holds numbers and words"),
    ):
        with pytest.raises(TableError, match=message):
            training_set(table, "kind", ignore, keep)


def test_nothing_but_an_identifier_says_how_to_keep_it(tmp_path):
    table = write(tmp_path / "t.csv", [("id", LONG), ("kind", ["x", "y"] * (N // 2))])
    with pytest.raises(TableError, match=r"no column to learn from.*keep=\['id'\]"):
        training_set(table, "kind")
    assert training_set(table, "kind", keep=["id"]).columns == ["id"]


@pytest.mark.parametrize("name", [None, "sensor", "depth"])
def test_the_index_of_a_parquet_file(name, tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": REAL, "kind": ["x", "y"] * (N // 2)}, index=SAMPLED / 2)
    frame.index.name = name
    frame.to_parquet(tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet")
    called = name or "__index_level_0__"
    chosen = training_set(table, "kind")
    assert (chosen.columns, chosen.left_out) == (["a"], {called: INDEX})
    assert training_set(table, "kind", keep=[called]).columns == ["a", called]
    record = ModelRecord(columns=["a"], label="kind", left_out=chosen.left_out)
    assert list(row_identifiers(table, record)) == [called]
    frame.reset_index(drop=True).to_parquet(tmp_path / "u.parquet")
    np.testing.assert_array_equal(rows_for(read_table(tmp_path / "u.parquet"), record, 1)[0][:, 0],
                                  REAL)  # fmt: skip


def test_words_in_the_index_of_a_parquet_file(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": REAL}, index=[f"p{i % 3}" for i in range(N)])
    frame.to_parquet(tmp_path / "t.parquet")
    assert training_set(read_table(tmp_path / "t.parquet"), None).left_out == {
        "__index_level_0__": INDEX
    }


def test_rows_that_are_images_have_no_identifiers(tmp_path):
    images = RNG.normal(size=(N, 2, 2))
    images[:, 0, 0] = COUNTED
    np.save(tmp_path / "t.npy", images)
    chosen = training_set(read_table(tmp_path / "t.npy"), None)
    assert chosen.X.shape == (N, 4)
    assert chosen.image_shape == (2, 2)


# A matrix without names: row numbers, then two features and the class.
MATRIX = np.column_stack([SHUFFLED + 1, REAL, REAL**2, FEW])


@pytest.mark.parametrize("suffix", ["csv", "npy"])
@pytest.mark.parametrize("label_last", [True, False])
def test_files_without_names_may_have_row_numbers_or_not(suffix, label_last, tmp_path):
    path = tmp_path / f"t.{suffix}"

    def read(*columns):
        chosen = [3, 0, 1, 2] if not label_last else [0, 1, 2, 3]
        matrix = MATRIX[:, [c for c in chosen if c in columns]]
        if suffix == "npy":
            np.save(path, matrix)
        else:
            np.savetxt(path, matrix, delimiter=",", fmt="%.17g")
        return read_table(path)

    label, count = ("3", "0") if label_last else ("0", "1")
    table = read(0, 1, 2, 3)
    chosen = training_set(table, label)
    assert chosen.left_out == {count: NUMBERED}
    np.testing.assert_array_equal(chosen.X, MATRIX[:, 1:3])
    record = ModelRecord(columns=None, label=label, left_out=chosen.left_out)
    for columns in ((0, 1, 2, 3), (1, 2), (0, 1, 2), (1, 2, 3)):
        X, notes = rows_for(read(*columns), record, 2)
        np.testing.assert_array_equal(X, MATRIX[:, 1:3], err_msg=str(columns))
        assert any("Not used" in text for text in notes) == (len(columns) == 3)
    with pytest.raises(TableError, match="has 1 columns of numbers, but the model was fitted on 2"):
        rows_for(read(1), record, 2)


@pytest.mark.parametrize("name", ["", " ", "Unnamed: 12", "level_0", "GebäudeID", "XMLKey"])
def test_names_alone(name):
    assert sounds_like_identifier(name)
