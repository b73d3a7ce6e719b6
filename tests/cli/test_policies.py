"""What is decided and said about missing values, columns and right answers."""

import numpy as np
import pytest
from sklearn.impute import SimpleImputer
from sklearn.metrics import accuracy_score, balanced_accuracy_score, recall_score
from sklearn.pipeline import make_pipeline

from kernelatoms import KSVD, NearestImputer, TrainingImputer
from kernelatoms.cli.models import find_choice, make_model
from kernelatoms.cli.predict import evaluate, evaluation_in_words
from kernelatoms.cli.summaries import lines_of_columns, note_about_rows, note_about_training
from kernelatoms.files import ModelRecord

RNG = np.random.default_rng(0)
SIGNALS = RNG.random((40, 12)) + 1


@pytest.mark.parametrize("model", ["kcrc", "lkdl", "linear", "KSVD", "fddl"])
def test_every_model_fills_from_the_nearest_rows(model):
    pipeline = make_model(find_choice(model), None, [], 7)
    assert isinstance(pipeline["fill"], NearestImputer)
    assert (pipeline["fill"].n_neighbors, pipeline["fill"].random_state) == (15, 7)
    assert note_about_training(0, pipeline, 40) == ""
    said = note_about_training(1, pipeline, 40)
    assert said == "1 missing value is filled from the 15 nearest rows; so are later ones."
    said = note_about_training(1200, pipeline, 12)
    assert said == "1,200 missing values are filled from the 12 nearest rows; so are later ones."


@pytest.mark.parametrize(
    ("steps", "how"),
    [
        ([NearestImputer(4), KSVD(6)], "filled from the 4 nearest training rows"),
        ([NearestImputer(50), KSVD(6)], "filled from the 40 nearest training rows"),
        ([TrainingImputer(), KSVD(6)], "coded by what is observed of {}"),
        ([SimpleImputer(), KSVD(6)], "filled by what the training rows have"),
    ],
)
def test_what_is_said_of_missing_values(steps, how):
    pipeline = make_pipeline(*steps).fit(SIGNALS)
    X = SIGNALS.copy()
    assert note_about_rows(pipeline, X) == ""
    X[3, 1] = np.nan
    said = note_about_rows(pipeline, X)
    assert said == f"1 missing value in 1 of 40 rows: {how.format('it')}."
    X[5] = np.nan
    said = note_about_rows(pipeline, X)
    assert said == (
        f"13 missing values in 2 of 40 rows: {how.format('them')}. 1 of these rows holds nothing "
        "that the model knows, and is taken as medians."
    )


def test_sizes_of_filling_have_full_names_only():
    pipeline = make_model(find_choice("kcrc"), None, ["n_neighbors=3", "fill__n_neighbors=5"], 0)
    assert (pipeline["learn"].n_neighbors, pipeline["fill"].n_neighbors) == (3, 5)
    with pytest.raises(ValueError, match="max_rows: the model has no such parameter"):
        make_model(find_choice("kcrc"), None, ["max_rows=3"], 0)


def test_judgements_are_those_of_scikit_learn():
    truth, answers = RNG.choice(["a", "b", "c"], 90), RNG.choice(["a", "b"], 90)
    found = evaluate(answers, truth, np.array(["a", "b"]))
    assert found["accuracy"] == accuracy_score(truth, answers)
    assert found["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(truth, answers))
    recalls = recall_score(truth, answers, average=None, labels=["a", "b", "c"])
    np.testing.assert_allclose(list(found["recall"].values()), recalls)
    assert found["unknown_labels"] == {"c": int(np.sum(truth == "c"))}
    said = " ".join(evaluation_in_words(found, 100))
    assert "of 90 labelled rows are predicted right (10 of 100 rows have no label)" in said
    assert "Recall of each class, the worst first: c 0.0%" in said


@pytest.mark.parametrize(("n_right", "guessing"), [(5, True), (6, True), (7, False)])
def test_guessing_is_named_as_such(n_right, guessing):
    truth = np.array([*"aaaaaabbbb"])
    answers = np.where(np.arange(10) < n_right, truth, "?")
    said = " ".join(evaluation_in_words(evaluate(answers, truth, np.array(["a", "b"])), 10))
    assert ("no better than guessing: always answering 'a' would be right for 60.0%" in said) == (
        guessing
    )
    alone = evaluate(truth[:2], truth[:2], np.array(["a", "b"]))
    assert "guessing" not in " ".join(evaluation_in_words(alone, 2))  # one class only


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
