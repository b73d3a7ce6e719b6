"""What is decided and said about missing values, columns and right answers."""

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, balanced_accuracy_score, recall_score

from kernelatoms.cli.choosing import find_choice, make_model
from kernelatoms.cli.columns import lines_of_columns
from kernelatoms.cli.judging import judge
from kernelatoms.cli.missing import note_about_rows, settle_missing, stay_missing
from kernelatoms.files import ModelRecord

RNG = np.random.default_rng(0)
SIGNALS = RNG.random((40, 12)) + 1  # no column has a tenth of the energy
TABLE = SIGNALS[:, :9]  # every column has


def with_holes(X, share):
    gone = np.arange(X.size).reshape(X.shape) % 100 < 100 * share
    return np.where(gone, np.nan, X)


@pytest.mark.parametrize(
    ("model", "X", "why"),
    [
        ("lkdl", TABLE, ""),
        ("lkdl", with_holes(TABLE, 0.6), ""),
        ("linear", SIGNALS, ""),
        ("lkdl-images", with_holes(SIGNALS, 0.2), ""),
        ("linear", with_holes(SIGNALS, 0.4), "more than 30% of the values"),
        ("linear", TABLE, "single columns are large parts"),
        ("linear", SIGNALS[:, :1], ""),
        ("KSVD", SIGNALS, ""),
        ("KSVD", TABLE, "single columns are large parts"),
        ("kcrc", SIGNALS, "CRCClassifier takes complete rows only"),
        ("fddl", SIGNALS, "FDDLClassifier takes complete rows only"),
    ],
)
def test_where_missing_values_stay(model, X, why):
    pipeline = make_model(find_choice(model), None, [], 0)
    found = settle_missing(pipeline, X)
    assert found.startswith(why)
    assert bool(found) == bool(why)
    assert stay_missing(pipeline) == (not why)
    assert type(pipeline[0]).__name__ == ("SimpleImputer" if why else "FillToLearn")


def test_what_is_said_of_missing_values():
    pipeline = make_model(find_choice("lkdl"), None, [], 0)
    X = SIGNALS.copy()
    assert note_about_rows(pipeline, X) == ""
    X[3, 1] = np.nan
    said = note_about_rows(pipeline, X)
    assert said == "1 missing value in 1 of 40 rows: coded by what is observed of it."
    X[5] = np.nan
    assert "13 missing values in 2 of 40 rows" in note_about_rows(pipeline, X)
    assert "1 of them hold nothing that the model knows" in note_about_rows(pipeline, X)


def test_judgements_are_those_of_scikit_learn():
    truth, answers = RNG.choice(["a", "b", "c"], 90), RNG.choice(["a", "b"], 90)
    found = judge(answers, truth, 100, np.array(["a", "b"]))
    assert found.accuracy == accuracy_score(truth, answers)
    assert found.balanced_accuracy == pytest.approx(balanced_accuracy_score(truth, answers))
    recalls = recall_score(truth, answers, average=None, labels=["a", "b", "c"])
    np.testing.assert_allclose(list(found.recall.values()), recalls)
    assert found.unknown == {"c": int(np.sum(truth == "c"))}
    said = " ".join(found.lines())
    assert "of 90 labelled rows are predicted right (10 of 100 rows have no label)" in said
    assert "Recall of each class, the worst first: c 0.0%" in said


@pytest.mark.parametrize(("n_right", "guessing"), [(5, True), (6, True), (7, False)])
def test_guessing_is_named_as_such(n_right, guessing):
    truth = np.array([*"aaaaaabbbb"])
    answers = np.where(np.arange(10) < n_right, truth, "?")
    said = " ".join(judge(answers, truth, 10, np.array(["a", "b"])).lines())
    assert ("no better than guessing: always answering 'a' would be right for 60.0%" in said) == (
        guessing
    )
    alone = judge(truth[:2], truth[:2], 2, np.array(["a", "b"]))
    assert "guessing" not in " ".join(alone.lines())  # one class only


def test_groups_of_columns_are_cut_aloud():
    record = ModelRecord(
        columns=[*(f"n{i}" for i in range(11)), "a, b", *(f"c={i}" for i in range(21)), "d=yes"],
        encoded={"c": {"kind": "category", "values": [str(i) for i in range(21)]},
                 "d": {"kind": "yes/no", "values": ["no", "yes"]}},
        label="k",
        left_out={f"w{i}": f"reason {i}" for i in range(10)},
    )  # fmt: skip
    label, numbers, flags, categories, *left_out = lines_of_columns(record, "m.skops")
    see = "see 'kernelatoms info m.skops'"
    assert label == "label: k"
    assert numbers.startswith("numbers (12): n0, n1, ")
    assert numbers.endswith(f"n9 and 2 more: {see}")
    assert flags == "yes/no: d (1 for yes, 0 for no)"
    assert categories.endswith(f"18, 19 and 1 more: {see})")
    assert left_out[0] == "left out: w0 (reason 0)"
    assert left_out[-1] == f"left out: 2 more columns: {see}"
    assert len(left_out) == 9
    few = ModelRecord(columns=["a, b", "c"])
    assert lines_of_columns(few, "m.skops") == ["numbers (2): 'a, b', c"]
    assert lines_of_columns(ModelRecord(data={"features": 64}), "m.skops") == [
        "numbers: 64 columns, by their places"
    ]
