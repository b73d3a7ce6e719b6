"""``kernelatoms report`` and ``info``: rows as the file has them, counts that are true."""

import html
import json
import re
from dataclasses import replace

import numpy as np
import pytest

from kernelatoms import load_model, save_model
from kernelatoms.cli.app import main
from kernelatoms.report.origin import record_facts


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run a command in this process; (exit code, output, errors)."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        code = main([str(argument) for argument in arguments])
        return code, *capsys.readouterr()

    return run


def write(path, rows):
    head = ["PassengerId,size,weight,kind"]
    path.write_text("\n".join(head + [",".join(map(str, row)) for row in rows]) + "\n")


@pytest.fixture
def passengers(tmp_path, run):
    """Sixty rows to learn from, sixty others; a third of all have no label."""
    rng = np.random.default_rng(0)
    rows = []
    for i in range(120):
        kind = i % 2
        size, weight = (rng.normal(size=2) + 1.5 * kind).round(4)
        rows.append([892 + i, size, weight, "" if i % 3 == 0 else ("small", "large")[kind]])
    write(tmp_path / "train.csv", rows[:60])
    write(tmp_path / "test.csv", rows[60:])
    fit = ["fit", "train.csv", "--label", "kind", "--model", "linear", "--set", "n_atoms=4"]
    assert run(*fit, "-o", "m.skops")[0] == 0
    return rows


@pytest.fixture
def lead_only(monkeypatch):
    """Pages without what stands below their first words, which takes most of the time."""
    monkeypatch.setattr("kernelatoms.report.model._sections", lambda *_: [])


def page_of(tmp_path, run, *arguments):
    code, out, err = run("report", "m.skops", *arguments, "-o", "r.html", "--json")
    assert code == 0, err
    text = (tmp_path / "r.html").read_text("utf-8")
    lead = html.unescape(re.search(r'<p class="lead">(.*?)</p>', text)[1])
    return json.loads(out), html.unescape(text), lead


def test_rows_keep_their_numbers_and_names(passengers, run, tmp_path):
    told, page, lead = page_of(tmp_path, run, "test.csv")
    assert (told["rows"], told["labelled_rows"], told["rows_in_file"]) == (40, 40, 60)
    assert "of 40 labelled rows are classified right" in lead
    assert "20 rows of the file's 60 have no label and are not in this report" in page
    named = re.findall(r'(?:Row |row">)(\d+), PassengerId (\d+)', page)
    assert len(named) >= 8
    for number, identifier in named:
        assert int(number) < 60
        assert int(identifier) == 892 + 60 + int(number)
        assert passengers[60 + int(number)][3]  # it has a label
    assert not re.search(r"Row \d+[^\d,]", page)  # none without its name
    # The same row, told by explain.
    number, identifier = named[-1]
    out = run("explain", "m.skops", "test.csv", "--row", number)[1]
    assert out.startswith(f"Row {number}, PassengerId {identifier}, true class ")


def test_the_lead_says_whether_rows_were_learned_from(passengers, run, tmp_path, lead_only):
    told, _, lead = page_of(tmp_path, run, "train.csv")
    assert told["share_learned_from"] == 1
    assert lead.startswith("On the rows it learned from: ")
    write(tmp_path / "some.csv", [row for row in reversed(passengers[:60]) if row[3]][:20])
    assert page_of(tmp_path, run, "some.csv")[2].startswith("On the rows it learned from: ")
    told, _, lead = page_of(tmp_path, run, "test.csv")
    assert told["share_learned_from"] == 0
    assert "learned" not in lead
    write(tmp_path / "both.csv", [row for row in passengers[:90] if row[3]])
    told, _, lead = page_of(tmp_path, run, "both.csv")
    assert told["share_learned_from"] == pytest.approx(40 / 60)
    assert lead.startswith("Mostly on rows it learned from (66.7% of them): ")


def test_without_marks_nothing_is_said_of_where_rows_come_from(
    passengers, run, tmp_path, lead_only
):
    model, record = load_model(tmp_path / "m.skops")
    unmarked = {key: value for key, value in record.data.items() if key != "row_marks"}
    save_model(model, tmp_path / "m.skops", replace(record, data=unmarked))
    told, _, lead = page_of(tmp_path, run, "train.csv")
    assert told["share_learned_from"] is None
    assert "learned" not in lead


def test_marks_are_kept_and_not_shown(passengers, run, tmp_path):
    assert load_model(tmp_path / "m.skops")[1].data["row_marks"].startswith("all:")
    for command in (["info", "m.skops"], ["info", "m.skops", "--json"]):
        assert "row_marks" not in run(*command)[1]
    out = run("fit", "train.csv", "--label", "kind", "--set", "n_atoms=4", "--json")[1]
    assert "row_marks" not in json.loads(out)["data"]


def test_facts_are_whole_and_folds_scores_are_told(passengers, tmp_path):
    record = load_model(tmp_path / "m.skops")[1]
    scores = {
        "mean": 0.9, "standard_error": 0.01, "folds": [0.9, 0.9], "most_frequent_class": 0.5,
        "balanced": {"mean": 0.8, "standard_error": 0.02}, "svm": {"mean": 0.95},
        "recall": {"small": 0.7, "large": 0.9},
    }  # fmt: skip
    many = {f"column {i}": "it is empty" for i in range(31)}
    told = record_facts(
        replace(record, fit={**record.fit, "cross_validation": scores}, left_out=many), None, None
    )
    assert told["cross-validated accuracy"] == "90.0% ± 1.0% over 2 folds"
    assert told["cross-validated balanced accuracy"] == "80.0% ± 2.0%"
    assert told["an RBF-SVM on the same folds"] == "95.0%"
    assert told["cross-validated recall by class"] == "small: 70.0%; large: 90.0%"
    left_out = told["left out (31 of the file's columns)"]
    assert left_out.count("it is empty") == 31
    assert "cross-validated accuracy" not in record_facts(record, None, None)
