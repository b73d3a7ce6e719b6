"""``fit --cv``: balanced accuracy, recalls, the machine beside; groups; sizes; large tables."""

import json

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, recall_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from kernelatoms import NearestImputer, make_preset
from kernelatoms.cli import scoring
from kernelatoms.cli.scoring import cross_validate, verdicts


def quiet(done, total, words):
    pass


def table(rng, n=60):
    y = np.repeat(["no", "no", "yes"], n // 3)
    return rng.normal(size=(n, 3)) + 2 * (y == "yes")[:, None], y


def test_numbers_are_scikit_learns(rng):
    X, y = table(rng)
    X[rng.random(X.shape) < 0.4] = np.nan
    model = make_preset("kcrc")
    found = cross_validate(model, X, y, 3, 5, quiet)
    folds = StratifiedKFold(3, shuffle=True, random_state=5)
    predicted = cross_val_predict(model, X, y, cv=folds)
    parts = [test for _, test in folds.split(X, y)]
    assert found["folds"] == [np.mean(predicted[p] == y[p]) for p in parts]
    assert found["mean"] == pytest.approx(np.mean(found["folds"]))
    balanced = [balanced_accuracy_score(y[p], predicted[p]) for p in parts]
    assert found["balanced_accuracy"]["mean"] == pytest.approx(np.mean(balanced))
    assert list(found["recall"].values()) == pytest.approx(recall_score(y, predicted, average=None))
    assert found["most_frequent_class"] == pytest.approx(2 / 3)
    machine = make_pipeline(NearestImputer(), StandardScaler(), SVC())
    theirs = cross_val_predict(machine, X, y, cv=folds)
    assert found["svm"]["folds"] == [np.mean(theirs[p] == y[p]) for p in parts]


def test_the_machine_learns_from_a_part_of_many_rows(rng, monkeypatch, capsys):
    X, y = table(rng)
    monkeypatch.setattr(scoring, "_MOST_SVM_ROWS", 30)
    found = cross_validate(make_preset("kcrc"), X, y, 2, 0, quiet)
    assert found["svm"]["rows"] == 30
    scoring.tell_scores(found, 60)
    assert "learned from 30 rows" not in capsys.readouterr().out  # all that a fold has
    monkeypatch.setattr(scoring, "_MOST_SVM_ROWS", 20)
    scoring.tell_scores(cross_validate(make_preset("kcrc"), X, y, 2, 0, quiet), 60)
    assert "SVC), learned from 20 rows: " in capsys.readouterr().out


def test_groups_stay_together_and_are_no_feature(rng):
    X, y = table(rng)
    groups = np.tile(np.arange(10), 6)
    seen = []

    class Watching(type(make_preset("kcrc"))):
        def fit(self, X, y=None, **params):
            seen.append(X)
            return super().fit(X, y, **params)

    cross_validate(Watching(make_preset("kcrc").steps), X, y, 5, 0, quiet, groups)
    for train in seen:
        inside = {float(row[0]) for row in train}
        shares = [np.mean([float(row[0]) in inside for row in X[groups == g]]) for g in range(10)]
        assert set(shares) <= {0.0, 1.0}
    alone = np.repeat(np.arange(3), 20)  # each class of one group, or half of one
    with pytest.raises(ValueError, match=r"--groups: with 3 folds the class 'yes'"):
        cross_validate(make_preset("kcrc"), X, y, 3, 0, quiet, alone)


def scores(ours, theirs, most=0.5):
    return {
        "folds": ours, "mean": np.mean(ours), "most_frequent_class": most,
        "standard_error": np.std(ours, ddof=1) / np.sqrt(len(ours)), "svm": {"folds": theirs},
    }  # fmt: skip


def test_verdicts():
    assert verdicts(scores([0.9, 0.92], [0.91, 0.91])) == []
    assert "worse than guessing" in verdicts(scores([0.4, 0.41], [0.4, 0.4]))[0]
    assert "no better than guessing" in verdicts(scores([0.48, 0.54], [0.5, 0.5]))[0]
    better = verdicts(scores([0.8, 0.82], [0.85, 0.87]))
    assert better == [
        "The support vector machine is clearly better here, by 5.0 points. Use it, unless you "
        "need atoms, codes or explanations."
    ]
    # Better on average, but not on every fold; and better by next to nothing.
    assert verdicts(scores([0.8, 0.82], [0.79, 0.87])) == []
    assert verdicts(scores([0.8, 0.82], [0.804, 0.824])) == []


def test_many_recalls_show_the_lowest_and_say_so():
    text = scoring._recalls_in_words({f"c{i}": 1 - i / 20 for i in range(14)})
    assert text.startswith("c13 35.0%, c12 40.0%")
    assert text.endswith("(the 12 lowest of 14; --json has all)")


def test_rows_are_drawn_by_class_and_small_ones_stay_whole(rng):
    y = np.repeat([0, 1, 2], [3000, 1000, 30])
    some = scoring.spread_over_classes(rng.permutation(y), 400, 0)
    assert np.all(np.diff(some) > 0)
    some = scoring.spread_over_classes(y, 400, 0)
    assert np.bincount(y[some]).tolist() == [298, 100, 30]


@pytest.fixture
def visits(tmp_path, rng):
    X, y = table(rng)
    lines = [
        f"{a:.4f},{b:.4f},p{i % 12:03d},{label}"
        for i, ((a, b, _), label) in enumerate(zip(X, y, strict=True))
    ]
    (tmp_path / "visits.csv").write_text("a,b,patient,well\n" + "\n".join(lines) + "\n")


def test_the_command_tells_all_of_it(command, visits):
    told = command("fit", "visits.csv", "--label", "well", "--cv", "3", "--groups", "patient")
    assert told.returncode == 0, told.stderr
    assert "The model is kcrc, the default for up to 20,000 rows" in told.stderr
    assert "patient (it names the groups)" in told.stderr
    assert "3 folds that keep groups together" in told.stdout
    for words in ("Balanced accuracy", "Recall by class: no ", "An RBF support vector machine"):
        assert words in told.stdout


def test_the_command_tunes(command, visits):
    result = command("fit", "visits.csv", "--label", "well", "--model", "linear", "--tune")
    assert result.returncode == 0, result.stderr
    chosen = "Chosen, the smallest within a standard error of the best: n_atoms="
    assert result.stdout.index(chosen) < result.stdout.index("fitted in")
    wrong = command("fit", "visits.csv", "--label", "well", "--model", "kcrc", "--tune")
    assert wrong.returncode == 2
    assert "--tune" in wrong.stderr
    assert "--model lkdl" in wrong.stderr


@pytest.mark.parametrize(
    ("options", "name", "why"),
    [
        ([], "kcrc", "the default for up to 20,000 rows"),
        (["--set", "gamma=0.5"], "kcrc", "the default"),
        (["--set", "n_atoms=3"], "lkdl", "since n_atoms is about atoms"),
        (["--tune"], "lkdl", "since --tune is about atoms"),
    ],
)
def test_the_default_model_has_what_is_asked_for(command, visits, options, name, why):
    result = command("fit", "visits.csv", "--label", "well", *options)
    assert result.returncode == 0, result.stderr
    assert f"{name} on visits.csv" in result.stdout
    assert f"The model is {name}, {why}" in result.stderr


def test_the_default_for_images(command, tmp_path):
    X = np.random.default_rng(0).normal(size=(20, 4, 4))
    np.savez(tmp_path / "t.npz", X=X, y=np.arange(20) % 2)
    result = command("fit", "t.npz", "--label", "y", "--set", "n_atoms=3")
    assert result.stdout.startswith("lkdl-images on t.npz"), result.stderr
    assert "the default for images" in result.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--groups", "patient"], "give --cv too"),
        (["--groups", "nurse", "--cv", "2"], "no column 'nurse'"),
        (["--groups", "patient", "--cv", "15"], "at least 15 groups, but --groups has 12"),
    ],
)
def test_groups_that_cannot_be(command, visits, options, words):
    wrong = command("fit", "visits.csv", "--label", "well", *options)
    assert wrong.returncode == 2
    assert words in wrong.stderr


def test_large_tables_learn_atoms_from_a_part(command, tmp_path, rng):
    y = rng.integers(0, 2, 20_001)
    X = rng.normal(size=(len(y), 2)) + 3 * y[:, None]
    np.savez(tmp_path / "large.npz", X=X, y=y)
    settings = ["--set", "n_atoms=4", "--set", "max_iter=1", "--set", "n_landmarks=20", "--json"]
    result = command("fit", "large.npz", "--rows", "X", "--label", "y", *settings)
    assert result.returncode == 0, result.stderr
    assert "lkdl, the default beyond 20,000 rows; it learns from 20,000 of 20,001" in result.stderr
    told = json.loads(result.stdout)
    assert (told["name"], told["data"]["rows"]) == ("lkdl", 20_001)
