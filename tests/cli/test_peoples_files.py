"""Files as people have them, from shell to shell: what is printed, and what comes back."""

import csv
import gzip
import io
import json
import uuid

import numpy as np
import pytest

from kernelatoms import load_model

N = 60


@pytest.fixture
def play(command, tmp_path):
    """Fit on a table (columns by name), predict a file of it, return what was said and answered."""

    def run(columns, *options, label="kind", new=None, quick=True):
        write(tmp_path / "t.csv", columns)
        small = ("--set", "n_atoms=4", "--set", "n_nonzero_coefs=2") if quick else ()
        fitted = command("fit", "t.csv", "--label", label, *options, *small)
        assert fitted.returncode == 0, fitted.stderr
        write(tmp_path / "n.csv", columns if new is None else new)
        predicted = command("predict", "model.skops", "n.csv")
        assert predicted.returncode == 0, predicted.stderr
        rows = list(csv.DictReader(io.StringIO(predicted.stdout)))
        return fitted.stderr, predicted.stderr, rows

    return run


def write(path, columns):
    lines = [list(columns), *zip(*columns.values(), strict=True)]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(lines)


def rng():
    return np.random.default_rng(2)


def told_apart(kind=("x", "y")):
    """Return a number that tells two classes apart, and the classes."""
    kinds = [kind[i % 2] for i in range(N)]
    return [i % 2 * 4 + value for i, value in enumerate(rng().normal(size=N).round(3))], kinds


def test_passengers(play):
    """Names, tickets, sexes, ages that are missing, cabins that mostly are."""
    fare, survived = told_apart((0, 1))
    columns = {
        "PassengerId": range(1, N + 1),
        "Survived": survived,
        "Name": [f"Smith, Mr. No {i}" for i in range(N)],
        "Sex": [("male", "female")[i % 2] for i in range(N)],
        "Age": ["" if i % 5 == 0 else 20 + i % 37 for i in range(N)],
        "Ticket": [f"PC {i}" if i % 3 == 0 else 7000 + 3 * i for i in range(N)],
        "Cabin": ["C85" if i == 7 else "" for i in range(N)],
        "Embarked": ["SCQ"[i % 3] for i in range(N)],
        "Fare": fare,
    }
    new = {name: values for name, values in columns.items() if name != "Survived"}
    new["Embarked"] = ["X", *new["Embarked"][1:]]
    said, noted, rows = play(columns, label="Survived", new=new)
    for line in (
        "label: Survived", "numbers (2): Age, Fare", "yes/no: Sex (1 for male, 0 for female)",
        "categories: Embarked (C, Q, S)", "left out: PassengerId (it numbers the rows)",
        "left out: Name, Ticket (it holds words, 60 different ones)",
        "left out: Cabin (it holds one value only)",
        "12 missing values are filled from the 15 nearest rows; so are later ones.",
    ):  # fmt: skip
        assert line in said
    assert "Values that the model never saw: 1 of 'Embarked' ('X')" in noted
    assert "12 missing values in 12 of 60 rows: filled from the 15 nearest training rows." in noted
    assert [row["PassengerId"] for row in rows] == [str(i) for i in range(1, N + 1)]
    assert sum(row["prediction"] == str(i % 2) for i, row in enumerate(rows)) > 50


def test_a_churn_export(play, command):
    """UUIDs, dates in two styles, yes/no, 90 columns of numbers, rows without a label."""
    usage, churn = told_apart(("No", "Yes"))
    columns = {
        "customer": [str(uuid.UUID(int=i * 2**70 + i)) for i in range(N)],
        "joined": [f"{i % 28 + 1:02}/03/2024" for i in range(N)],
        "last seen": [f"2024-05-{i % 30 + 1:02} 10:00" for i in range(N)],
        "active": ["yes" if i % 3 else "no" for i in range(N)],
        "plan": [("basic", "gold", "silver")[i % 3] for i in range(N)],
        "country": ["AT"] * N,
        "notes": [""] * N,
        **{f"usage {chr(97 + i % 26)}{chr(97 + i // 26)}": rng().normal(size=N) for i in range(89)},
        "usage": usage,
        "churn": ["" if i in (3, 8) else kind for i, kind in enumerate(churn)],
    }
    said, noted, rows = play(columns, label="churn")
    for line in (
        "numbers (90): usage aa, usage ba", "and 80 more: see 'kernelatoms info model.skops'",
        "yes/no: active (1 for yes, 0 for no)", "categories: plan (basic, gold, silver)",
        "left out: customer (it names the rows)",
        "left out: joined, last seen (it holds dates; --dates learns from them)",
        "left out: country (it holds one value only)", "left out: notes (it is empty)",
        "2 of 60 rows have no label and are not learned from.",
    ):  # fmt: skip
        assert line in said
    assert "of 58 labelled rows are predicted right (2 of 60 rows have no label)" in noted
    assert "the model learned from these very rows" in noted
    assert rows[5]["customer"] == columns["customer"][5]
    everything = command("info", "model.skops").stdout
    assert sum(name in everything for name in columns) == len(columns)
    with_dates, _, _ = play(columns, "--dates", label="churn")
    assert (
        "dates (2): joined (days since 2024-03-01), last seen (days since 2024-05-01" in with_dates
    )


def test_a_laboratory(play):
    """Sample numbers, units, chemical names, words as classes."""
    ph, batch = told_apart(("B007", "B012"))
    columns = {
        "Sample No.": range(5001, 5001 + N),
        "unit": ["mg/l"] * N,
        "operator": [("AB", "CD", "EF")[i % 3] for i in range(N)],
        "pH": ph,
        "NO": rng().choice(900, N, replace=False),
        "citric acid": rng().random(N).round(2),
        "batch": batch,
    }
    said, _, rows = play(columns, label="batch")
    assert "numbers (3): pH, NO, citric acid" in said
    assert "left out: Sample No. (it numbers the rows)" in said
    assert "--keep 'Sample No.' learns from it nevertheless." in said
    assert rows[0] == {"Sample No.": "5001", "prediction": rows[0]["prediction"]}
    assert {row["prediction"] for row in rows} == {"B007", "B012"}


def test_a_quantity_for_a_label(play):
    size, _ = told_apart()
    said, noted, _ = play({"size": size, "age": [i // 2 for i in range(N)]}, label="age")
    assert "'age' holds 30 different numbers in 60 rows: is it a quantity rather than" in said
    assert "No fewer atoms than rows in 30 of 30 classes: 0 (2), 1 (2)" in said
    assert "and 10 more (--json has all)" in noted


def test_nothing_to_learn_is_said(play):
    noise = rng().normal(size=(2, N))
    columns = {"a": noise[0], "kind": ["x" if i % 4 else "y" for i in range(N)]}
    other = {"a": noise[1], "kind": ["x" if i % 4 else "y" for i in range(N)]}
    _, noted, _ = play(columns, new=other)
    assert "This is no better than guessing: always answering 'x' would be right for 75.0%" in noted
    assert "balanced accuracy" in noted
    assert "Recall of each class, the worst first: y " in noted


def test_classes_that_the_model_never_saw(play, command):
    size, kind = told_apart()
    new = {"size": size, "kind": [*["z"] * 3, *kind[3:50], *[""] * 10]}
    _, noted, _ = play({"size": size, "kind": kind}, new=new)
    assert (
        "3 labelled rows are of classes that the model has never seen, and count as wrong" in noted
    )
    assert "'z' (3)" in noted
    assert "of 50 labelled rows are predicted right (10 of 60 rows have no label)" in noted
    told = json.loads(command("predict", "model.skops", "n.csv", "--json").stdout)
    assert told["labelled_rows"] == 50
    assert told["unknown_labels"] == {"z": 3}
    assert told["recall"]["z"] == 0
    assert told["balanced_accuracy"] == pytest.approx(sum(told["recall"].values()) / 3)
    assert told["accuracy"] <= 0.94
    assert told["share_learned_from"] == 1


def test_an_export_of_pandas_with_its_index(play):
    size, kind = told_apart()
    index = [f"{value:.2f}" for value in rng().normal(size=N)]
    said, _, rows = play({"": index, "size": size, "kind": kind})
    assert "left out: column 1 (it stands first and has no name, as an index)" in said
    assert rows[3]["column 1"] == str(float(index[3]))


def test_a_survey(play, command):
    """Grades as words, counts that end with 3+, yes/no in capitals, an answer never given."""
    size, kind = told_apart()
    columns = {
        "respondent": [f"r{i}" for i in range(N)],
        "children": [("0", "1", "2", "3+")[i % 4] for i in range(N)],
        "smoker": [("YES", "No")[i % 2] for i in range(N)],
        "grade": ["ABCDE"[i % 5] for i in range(N)],
        "size": size,
        "kind": kind,
    }
    said, _, _ = play(columns)
    assert "categories (2): children (0, 1, 2, 3+), grade (A, B, C, D, E)" in said
    assert "yes/no: smoker (1 for YES, 0 for No)" in said
    assert "left out: respondent (it holds words, 60 different ones)" in said
    fitted = command("fit", "t.csv", "--label", "kind", "--drop", "grade", "--keep", "respondent",
                     "--drop", "size", "--json", "--set", "n_atoms=3")  # fmt: skip
    told = json.loads(fitted.stdout)
    assert told["left_out"] == dict.fromkeys(("grade", "size"), "named in drop")
    assert len(told["columns"]) == 4 + 1 + 60
    assert told["uses"]["kind"] == "label"


def test_images_with_missing_pixels(command, tmp_path):
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    gone = rng().random(X.shape) < 0.6
    np.savez(tmp_path / "t.npz", X=X[:300], y=y[:300])
    np.savez(tmp_path / "n.npz", X=np.where(gone, np.nan, X)[300:], y=y[300:])
    fitted = command("fit", "t.npz", "--label", "y")
    assert "label: y\n  numbers: 64 columns, by their places" in fitted.stderr
    predicted = command("predict", "model.skops", "n.npz", "--json")
    assert "of 1,497 rows: filled from the 15 nearest training rows." in predicted.stderr
    reached = json.loads(predicted.stdout)["accuracy"]
    model, _ = load_model(tmp_path / "model.skops")
    filled = np.where(gone, np.median(X[:300], axis=0), X)[300:]
    assert reached > model.score(filled, y[300:]) + 0.1


def test_a_table_without_names(command, tmp_path):
    """As instruments write them: row numbers, readings, the class last; no line of names."""
    size, kind = told_apart((1, 2))
    table = np.column_stack([np.arange(N) + 1, size, rng().normal(size=N), kind])
    np.savetxt(tmp_path / "t.csv", table, delimiter=";")
    fitted = command("fit", "t.csv", "--label", "3", "--json", "--set", "n_atoms=4")
    assert "left out: 0 (it numbers the rows)" in fitted.stderr
    told = json.loads(fitted.stdout)
    assert told["columns"] is None
    assert told["data"]["features"] == 2
    np.savetxt(tmp_path / "n.csv", table[:, 1:3], delimiter=";")
    assert command("predict", "model.skops", "n.csv").stdout.splitlines()[1:3] == ["1", "2"]


def test_labels_and_identifiers_of_64_bits(command, tmp_path):
    """Two labels that are one number in float64 stay two, to the last digit."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    size, _ = told_apart()
    labels = [2**60 + 1 + i % 2 for i in range(N)]
    ids = [2**61 + 7 * i for i in range(N)]
    parquet.write_table(pyarrow.table({"user_id": ids, "size": size, "shop": labels}),
                        tmp_path / "t.parquet")  # fmt: skip
    fitted = command("fit", "t.parquet", "--label", "shop", "--set", "n_atoms=4")
    assert "2 classes" in fitted.stdout
    predicted = command("predict", "model.skops", "t.parquet")
    rows = list(csv.DictReader(io.StringIO(predicted.stdout)))
    assert [int(row["user_id"]) for row in rows] == ids
    assert {int(row["prediction"]) for row in rows} == {2**60 + 1, 2**60 + 2}
    assert "of 60 labelled rows are predicted right" in predicted.stderr


def test_pixels_in_columns_stay_whole(play):
    size, kind = told_apart()
    pixels = {f"pixel{i}": [0] * N if i < 3 else rng().integers(0, 9, N) for i in range(20)}
    said, _, _ = play({**pixels, "pixel20": size, "kind": kind})
    assert "numbers (21): pixel0, pixel1" in said
    assert "left out" not in said


def test_a_slip_is_named_and_a_rare_class_too(command, tmp_path):
    size, kind = told_apart()
    write(tmp_path / "t.csv", {"size": [*size[:-1], "unknown"], "kind": kind})
    refused = command("fit", "t.csv", "--label", "kind")
    assert refused.returncode == 2
    assert "'size' holds numbers and words: 'unknown'" in refused.stderr
    rare = {"size": size, "kind": [f"k{i // 2}" if i < 20 else "many" for i in range(N)]}
    write(tmp_path / "t.csv", rare)
    fitted = command("fit", "t.csv", "--label", "kind", "--set", "n_atoms=2")
    assert "10 of 11 classes in 'kind' have fewer than 3 rows" in fitted.stderr


def lines_of(labels=("x", "y"), delimiter=",", size=str):
    """Return lines of two numbers and a class, without names."""
    value, kinds = told_apart(labels)
    return [
        delimiter.join((size(f"{v:.3f}"), size(f"{i % 7}.5"), kind))
        for i, (v, kind) in enumerate(zip(value, kinds, strict=True))
    ]


def as_text(names, lines, end="\n"):
    return end.join([names, *lines]) + end


COMMA = {"size": lambda text: text.replace(".", ",")}


@pytest.mark.parametrize(
    ("name", "data", "options", "said", "answers"),
    [
        ("leading zeros.csv", as_text("a,b,kind", lines_of(("007", "7"))), [], "numbers (2): a, b",
         {"007", "7"}),
        ("sixteen digits.csv",
         as_text("a,b,kind", lines_of(("1234567890123456", "1234567890123457"))), [],
         "label: kind", {"1234567890123456", "1234567890123457"}),
        ("truth.csv", as_text("a,b,kind", lines_of(("TRUE", "FALSE"))), [], "label: kind",
         {"TRUE", "FALSE"}),
        ("windows.csv", "\ufeff" + as_text("a,b,kind", lines_of(), "\r\n") + "\r\n", [],
         "numbers (2): a, b", {"x", "y"}),
        ("tabs.tsv", as_text("a\tb\tkind", lines_of(delimiter="\t")), [], "numbers (2): a, b",
         {"x", "y"}),
        ("spaces.csv", as_text("a, b, kind", lines_of(delimiter=", ")), [], "numbers (2): a, b",
         {"x", "y"}),
        ("trailing.csv", as_text("a,b,kind,", [line + "," for line in lines_of()]), [],
         "ends with a delimiter", {"x", "y"}),
        ("excel.csv",
         as_text("Größe;Breite;kind", lines_of(("Bär", "Löwe"), ";", **COMMA)).encode("cp1252"),
         ["--encoding", "cp1252"], "decimal commas are read as points", {"Bär", "Löwe"}),
        ("wide letters.csv", as_text("a,b,kind", lines_of()).encode("utf-16"), [],
         "is read in the encoding UTF-16", {"x", "y"}),
        ("no names.csv", "\n".join(lines_of()), ["--label", "2"],
         "starts with a row like those below it, not with names", {"x", "y"}),
        ("packed.csv.gz", gzip.compress(as_text("a,b,kind", lines_of()).encode()), [],
         "numbers (2): a, b", {"x", "y"}),
        ("log.jsonl",
         "\n".join(
             json.dumps(dict(zip(("a", "b", "kind"), (float(v), float(w), kind), strict=True)))
             for v, w, kind in (line.split(",") for line in lines_of())
         ), [], "numbers (2): a, b", {"x", "y"}),
    ],
    ids=lambda value: value if isinstance(value, str) and value.endswith("v") else None,
)  # fmt: skip
def test_text_files_of_many_makes(command, tmp_path, name, data, options, said, answers):
    (tmp_path / name).write_bytes(data.encode() if isinstance(data, str) else data)
    label = [] if "--label" in options else ["--label", "kind"]
    fitted = command("fit", name, *label, *options)
    assert fitted.returncode == 0, fitted.stderr
    assert said in fitted.stderr
    assert fitted.stdout.startswith(f"kcrc on {name}: {N} rows, 2 features, 2 classes")
    reading = options if "--encoding" in options else []
    predicted = command("predict", "model.skops", name, *reading)
    assert predicted.returncode == 0, predicted.stderr
    assert set(predicted.stdout.splitlines()[1:]) == answers
    assert f"of {N} labelled rows are predicted right" in predicted.stderr
