"""How good answers are: against scikit-learn's numbers, and in words that do not flatter."""

import html
import re
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.metrics import balanced_accuracy_score, precision_score, recall_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelatoms import KSVD, ClassDictionaryClassifier, CRCClassifier, LCKSVDClassifier
from kernelatoms.report import RowsOfFile, model_sections, write_model_report
from kernelatoms.report.coding import find_labels
from kernelatoms.report.origin import left_out_words, origin_words
from kernelatoms.report.sections.scores import accuracy_words, answers_section
from kernelatoms.report.words import percent

pytestmark = pytest.mark.filterwarnings("error")

LEARNERS = {
    "class dictionaries": ClassDictionaryClassifier(
        KSVD(4, n_nonzero_coefs=2, max_iter=2, random_state=0)
    ),
    "training rows": CRCClassifier(),
    "labels": LCKSVDClassifier(9, n_nonzero_coefs=2, max_iter=2, random_state=0),
}


@pytest.fixture(scope="module")
def wine():
    data = load_wine()
    names = np.array(["red", "rosé", "white"])[data.target]
    train = np.arange(len(names)) % 2 == 0
    return data.data[train], names[train], data.data[~train], names[~train]


@pytest.fixture(scope="module", params=LEARNERS)
def model(request, wine):
    return make_pipeline(StandardScaler(), LEARNERS[request.param]).fit(*wine[:2])


@pytest.fixture(scope="module")
def crc(wine):
    return CRCClassifier().fit(*wine[:2])


@pytest.fixture(scope="module")
def shown(model, wine):
    """Rows of uneven classes with their labels, where they come from, and the sections on them."""
    X, y = wine[2:]
    keep = np.flatnonzero((y != "white") | (np.arange(len(y)) % 3 == 0))
    numbers = 1000 + 7 * keep
    names = {"bottle": [f"b{number}" for number in numbers]}
    rows = RowsOfFile(numbers, names, n_in_file=3000, learned=1.0)
    return X[keep], y[keep], rows, model_sections(model, X[keep], y[keep], rows=rows)


def mentions(sections):
    """Return every place of a page that may name rows, by where it stands."""
    found = {}
    for section in sections:
        found[section.title, "text"] = section.text
        for table in [section.table, *(fold.content for fold in section.folds)]:
            if table is not None and not isinstance(table, str) and table.header[0] == "row":
                found[section.title, "table", id(table)] = " | ".join(row[0] for row in table.rows)
        for i, picture in enumerate(section.pictures):
            found[section.title, "caption", i] = picture.caption
            found[section.title, "alt", i] = picture.alt
    return found


def lead_of(path):
    return html.unescape(re.search(r'<p class="lead">(.*?)</p>', path.read_text("utf-8"))[1])


def test_balanced_accuracy_recall_and_precision_are_scikit_learns(
    model, shown, tmp_path, monkeypatch
):
    X, y, rows, sections = shown
    answers = model.predict(X)
    monkeypatch.setattr("kernelatoms.report.model._sections", lambda *_: [])
    path = write_model_report(tmp_path / "a.html", model, X, y, rows=rows)
    section = {s.title: s for s in sections}["Accuracy"]
    balanced = percent(balanced_accuracy_score(y, answers))
    words = f"the mean share of right answers over 3 classes, is {balanced}."
    assert words in section.text
    assert words in lead_of(path)
    right = (answers == y).sum()
    assert lead_of(path).startswith(f"On the rows it learned from: {right} of {len(y)} labelled")
    recalls = recall_score(y, answers, average=None)
    precisions = precision_score(y, answers, average=None)
    assert [row[:4] for row in section.table.rows] == [
        [name, str((y == name).sum()), percent(recall), percent(precision)]
        for name, recall, precision in zip(model.classes_, recalls, precisions, strict=True)
    ]
    for row in section.table.rows:
        wrong = answers[(y == row[0]) & (answers != row[0])]
        most = max(model.classes_, key=lambda c: (wrong == c).sum()) if len(wrong) else ""
        assert row[4] == most


def words_on(y, chosen, classes, **known):
    """Return the words about such answers to rows with such labels."""
    source = RowsOfFile(**known)
    subject = SimpleNamespace(y=y, anatomy=SimpleNamespace(classes=classes), source=source)
    answers = SimpleNamespace(
        truth=find_labels(classes, y, len(y)), chosen=find_labels(classes, chosen, len(y))
    )
    return answers_section(subject, answers), accuracy_words(subject, answers)


def test_labels_that_nobody_learned_are_classes_without_a_right_answer():
    y = np.array(["a"] * 4 + ["b"] * 2 + ["new 1", "new 2", "new 1"])
    section, words = words_on(y, ["a", "a", "a", "b", "b", "a", "a", "b", "a"], ["a", "b", "c"])
    assert f"over 4 classes, is {percent((3 / 4 + 1 / 2) / 4)}." in words
    assert "3 rows with labels that the model never met (new 1: 2, new 2: 1) count as mistakes" in (
        section.text
    )
    assert [row[:3] for row in section.table.rows] == [["a", "4", "75.0%"], ["b", "2", "50.0%"]]


def test_many_unknown_labels_are_all_listed():
    y = np.array([f"new {i:02d}" for i in range(20)])
    section, _ = words_on(y, ["a"] * 20, ["a", "b"])
    assert "(the first 5 of 20)" in section.text
    fold = section.folds[0]
    assert fold.summary == "All 20 labels that the model never met"
    assert len(fold.content.rows) == 20


def test_worse_than_guessing_is_said():
    def words(n_right, n_often, n_rows=100):
        y = ["a"] * n_right + ["b"] * n_often + ["c"] * (n_rows - n_right - n_often)
        return words_on(np.array(y), ["a"] * n_rows, ["a", "b", "c"])[1]

    assert 'worse than guessing: always answering "b", the most frequent label' in words(39, 40)
    assert "would be right for 40.0%." in words(39, 40)
    # Guessing would give the same answers.
    assert "worse than" not in words(40, 40)
    assert "so the model is hardly better than guessing." in words(40, 40)
    assert "so the model is hardly better than guessing." in words(60, 40)
    y = np.repeat(["a", "b"], 50)
    assert "guessing" not in words_on(y, y, ["a", "b"])[1]


@pytest.mark.parametrize(
    ("learned", "lead", "text"),
    [
        (None, "", "A page cannot know whether the model learned from these rows"),
        (0.0, "", "The model learned from none of these rows."),
        (0.04, "", "4.0% of these rows are equal, in every feature, to rows that the model"),
        (0.5, "Mostly on rows it learned from (50.0% of them): ", "50.0% of these rows are equal"),
        (0.97, "Mostly on rows it learned from (97.0% of them): ", "97.0% of these rows are equal"),
        (1.0, "On the rows it learned from: ", "or from rows equal to them: expect less on new"),
    ],
)
def test_the_first_words_say_whether_rows_were_learned_from(learned, lead, text):
    y = np.repeat(["a", "b"], 3)
    assert origin_words(RowsOfFile(learned=learned)) == lead
    assert text in words_on(y, y, ["a", "b"], learned=learned)[0].text


def test_rows_are_named_by_their_file_everywhere(shown):
    _, _, rows, sections = shown
    found = mentions(sections)
    names = [
        match
        for text in found.values()
        for match in re.findall(r"[Rr]ow (\d+(?:, \w+ b\d+)?)", text)
    ]
    names += [
        name for place, text in found.items() if place[1] == "table" for name in text.split(" | ")
    ]
    assert len(names) >= 8
    for name in names:
        number = int(name.split(",")[0])
        assert number in rows.numbers
        assert name == f"{number}, bottle b{number}"


def test_rows_that_are_left_out_are_counted():
    words = left_out_words(RowsOfFile(n_in_file=100), 89, labelled=True)
    assert words.startswith("11 rows of the file's 100 have no label and are not in this report")
    assert left_out_words(RowsOfFile(n_in_file=89), 89, labelled=True) == ""
    assert "no label" not in left_out_words(RowsOfFile(n_in_file=100), 89, labelled=False)


def test_long_facts_are_folded_and_not_cut(crc):
    facts = {"left out": "; ".join(f"column {i}: it is empty" for i in range(60))}
    section = model_sections(crc, facts=facts)[0]
    (fold,) = section.folds
    assert (fold.summary, fold.content) == ("left out", facts["left out"])
    assert "column 59" not in section.text


@pytest.mark.parametrize(
    ("rows", "error", "words"),
    [
        (RowsOfFile([1, 2]), ValueError, "a whole number for each of the 89 rows of X, got int64"),
        (RowsOfFile(np.ones(89)), ValueError, "numbers must hold a whole number"),
        (RowsOfFile(identifiers={"id": [1]}), ValueError, r"identifiers\['id'\] must hold a value"),
        (RowsOfFile(identifiers=["id"]), TypeError, "identifiers must map names to values"),
        (RowsOfFile(n_in_file=88), ValueError, "n_in_file must be at least the 89 rows"),
        (RowsOfFile(learned=1.5), ValueError, "learned must lie between 0 and 1, got 1.5"),
        ([1, 2], TypeError, "rows must be a RowsOfFile"),
    ],
)
def test_bad_input(crc, wine, rows, error, words):
    with pytest.raises(error, match=words):
        model_sections(crc, *wine[2:], rows=rows)


def test_rows_need_x(crc):
    with pytest.raises(ValueError, match="pass X too"):
        model_sections(crc, rows=RowsOfFile())
