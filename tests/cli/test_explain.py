"""``kernelatoms explain``: why rows of a file are given their classes."""

import json

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from kernelatoms import KSVD, CRCClassifier, explain, load_model, save_model
from kernelatoms.cli.app import main


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run a command in this process, which is faster; (exit code, output, errors)."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        code = main([str(argument) for argument in arguments])
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def fitted(run, flowers):
    assert run("fit", "flowers.csv", "--label", "species", "--model", "lkdl")[0] == 0
    return run


def explained(run, *arguments):
    code, out, err = run("explain", "model.skops", *arguments, "--json")
    assert code == 0, err
    return json.loads(out)["explanations"]


def test_a_table_through_the_real_command(command, flowers):
    assert command("fit", "flowers.csv", "--label", "species", "--model", "lkdl").returncode == 0
    shown = command("explain", "model.skops", "flowers.csv", "--row", "9")
    assert shown.returncode == 0, shown.stderr
    lines = shown.stdout.splitlines()
    assert lines[0] == "Row 9, id 10, true class 'virginica, late': the answer is right"
    assert lines[1].startswith("Answer: 'virginica, late' (score ")
    assert lines[2].startswith("Next best: 'versicolor' (score ")
    assert lines[3].split() == ["atom", "class", "coefficient"]


def test_what_is_printed_is_what_the_library_says(fitted, tmp_path):
    code, out, _ = fitted("explain", "model.skops", "flowers.csv", "--row", 11, "--row", 0)
    assert code == 0
    model, record = load_model(tmp_path / "model.skops")
    table = np.genfromtxt(tmp_path / "flowers.csv", delimiter=",", skip_header=1, usecols=(1, 2))
    first, second = explain(model, table[[11, 0]])
    assert f"\n{first}\n\nRow 0, id 1, true" in out
    assert out.endswith(f"\n{second}\n")
    told = explained(fitted, "flowers.csv", "--row", 11, "--row", 0)
    for each, why, number in zip(told, (first, second), (11, 0), strict=True):
        assert each["row"] == number
        assert each["identifiers"] == {"id": number + 1}
        assert each["true_label"] == ("setosa" if number == 0 else "virginica, late")
        rest = {key: each[key] for key in why.to_dict()}
        assert rest == why.to_dict()
    assert record.label == "species"


def test_without_labels_nothing_is_said_of_them(fitted, tmp_path):
    text = (tmp_path / "flowers.csv").read_text().splitlines()
    (tmp_path / "new.csv").write_text("\n".join(line.rsplit(",", 1)[0] for line in text[:4]))
    code, out, _ = fitted("explain", "model.skops", "new.csv", "--row", 1)
    assert code == 0
    assert out.splitlines()[0] == "Row 1, id 2"
    assert explained(fitted, "new.csv", "--row", 1)[0]["true_label"] is None


def test_a_wrong_answer_is_called_wrong(fitted, tmp_path):
    text = (tmp_path / "flowers.csv").read_text().replace("12,5.6,1.8,north", "12,1.4,0.2,north")
    # The row before it has no label, which moves no row to another's.
    text = text.replace('11,5.9,2.1,south,"virginica, late"', "11,5.9,2.1,south,")
    (tmp_path / "new.csv").write_text(text)
    _, out, _ = fitted("explain", "model.skops", "new.csv", "--row", 11, "--row", 10)
    first, second = out.split("\n\n")
    assert first.startswith("Row 11, id 12, true class 'virginica, late': the answer is wrong\n")
    assert first.splitlines()[1].startswith("Answer: 'setosa'")
    assert second.startswith("Row 10, id 11\n")


def test_training_rows_and_keys_of_a_file(run, tmp_path):
    X, y = load_digits(return_X_y=True)
    np.savez(tmp_path / "d.npz", X=X[:200], y=y[:200], X_new=X[200:300], y_new=y[200:300])
    assert run("fit", "d.npz", "--rows", "X", "--label", "y", "--model", "CRCClassifier")[0] == 0
    (told,) = explained(run, "d.npz", "--rows", "X_new", "--label", "y_new", "--row", 7)
    assert told["true_label"] == y[207]
    assert told["identifiers"] == {}
    model, _ = load_model(tmp_path / "model.skops")
    assert told["label"] == model.predict(X[207:208])[0]
    crc = model[-1] if hasattr(model, "steps") else model
    assert isinstance(crc, CRCClassifier)
    most = told["atoms"][0]
    assert most["label"] == crc.classes_[crc.labels_[most["atom"]]]
    out = run("explain", "model.skops", "d.npz", "--rows", "X_new", "--row", 7)[1]
    assert f"and {len(told['atoms']) - 10} atoms more" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["flowers.csv", "--row", 12], "--row must be a row of flowers.csv, counted from 0 to 11"),
        (["flowers.csv", "--row", -1], "counted from 0 to 11, got -1"),
        (["flowers.csv", "--row", 0, "--row", 99], "got 99"),
        (["narrow.csv", "--row", 0], "lacks 'petal width, cm'"),
        (["flowers.csv", "--row", 0, "--label", "kind"], "no column 'kind'"),
        (["none.csv", "--row", 0], "none.csv"),
    ],
)
def test_bad_input(fitted, tmp_path, arguments, words):
    (tmp_path / "narrow.csv").write_text("petal length\n1.4\n")
    code, out, err = fitted("explain", "model.skops", *arguments)
    assert (code, out) == (2, "")
    assert err.splitlines()[-1].startswith("Error: ")
    assert words in err


@pytest.mark.parametrize("arguments", [[], ["--row", "first"], ["--row", "1.5"]])
def test_row_numbers_are_needed(fitted, arguments):
    code, out, err = fitted("explain", "model.skops", "flowers.csv", *arguments)
    assert (code, out) == (2, "")
    assert "--row" in err


def test_models_that_cannot_explain(run, tmp_path):
    X, y = load_digits(return_X_y=True)
    np.save(tmp_path / "x.npy", X[:50])
    save_model(KSVD(5, max_iter=1).fit(X[:50]), tmp_path / "k.skops")
    save_model(LogisticRegression(max_iter=2000).fit(X[:50], y[:50]), tmp_path / "l.skops")
    for name, words in (
        ("k", "predicts no classes, so there is none to explain"),
        ("l", "model must be a fitted classifier of kernelatoms"),
    ):
        code, out, err = run("explain", f"{name}.skops", "x.npy", "--row", 0)
        assert (code, out) == (2, "")
        assert words in err
        assert "Traceback" not in err


def test_names_with_line_ends_stay_in_one_line(run, tmp_path):
    lines = ["id,a,b,k", *(f'"r\n{i}",{i % 3},{i % 5},"x\ny"' for i in range(4))]
    lines += [f'"r\n{i}",{-i % 3},{i},z' for i in range(4, 8)]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    assert run("fit", "t.csv", "--label", "k")[0] == 0
    code, out, _ = run("explain", "model.skops", "t.csv", "--row", 1)
    assert code == 0
    assert out.splitlines()[0].startswith("Row 1, id r\\n1, true class 'x\\ny': the answer is ")
