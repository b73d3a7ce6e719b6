"""Reports and contact sheets of K-SAD, against the models' own codes and answers."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from kernelatoms import KSAD, KSADClassifier, atom_numbers, atom_preimages
from kernelatoms.report import contact_sheet, model_sections, write_model_report
from kernelatoms.report.words import percent


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:250], y[:250], X[250:350], y[250:350]


@pytest.fixture(scope="module")
def classifier(digits):
    return make_pipeline(Normalizer(), KSADClassifier(40, random_state=0)).fit(*digits[:2])


def by_title(sections):
    return {section.title: section for section in sections}


def test_a_classifier_from_settings_to_mistakes(classifier, digits):
    new, truth = digits[2:]
    sections = by_title(model_sections(classifier, new, truth, image_shape=(8, 8)))
    assert list(sections) == [
        "What was fitted", "Convergence", "Atoms and codes", "Atoms one by one", "Decision",
        "Accuracy", "Worst mistakes", "Time",
    ]  # fmt: skip
    last, table = classifier[-1], dict(sections["What was fitted"].table.rows)
    assert table["atoms"] == "40"
    assert table["landmarks of the kernel map"] == "160"
    assert table["within-class metric"] == "yes"
    assert table["training codes that vote"] == "3 of 250"
    right = int(np.sum(classifier.predict(new) == truth))
    assert f"{right} of 100 labelled rows are classified right" in sections["Accuracy"].text
    assert "vote" in sections["Decision"].text
    # Codes are over all atoms: n_neighbors is no locality here.
    left = last._encode(last._validated(Normalizer().transform(new))).error
    words = " ".join(picture.caption for picture in sections["Atoms and codes"].pictures)
    assert f"leave over at most {percent(float(np.median(left)))}" in words


def test_the_decision_shows_votes(classifier, digits):
    (picture,) = by_title(model_sections(classifier, *digits[2:]))["Decision"].pictures
    *_, left, right = picture.figure.axes
    assert right.get_title() == "votes"
    assert sum(bar.get_width() for bar in right.patches) == 3
    assert sum(bar.get_width() for bar in left.patches) == pytest.approx(1)


def test_a_negative_objective_is_told_in_numbers(digits):
    X, y = digits[:2]
    model = KSADClassifier(30, max_iter=4, tol=0, random_state=0).fit(X / 16, y)
    model.objective_ = np.array([1.0, -2.0, -2.5, -3.0])  # as of classes far apart
    section = by_title(model_sections(model))["Convergence"]
    assert "It fell from 1 to -3." in section.text
    assert not section.pictures


def test_the_transformer_has_a_page_too(digits, tmp_path):
    X, _, new, _ = digits
    model = KSAD(20, random_state=0).fit(X / 16)
    sections = by_title(model_sections(model, new / 16, image_shape=(8, 8)))
    table = dict(sections["What was fitted"].table.rows)
    assert table["weight of the l1 penalty"] == f"{model.l1_weight_:.4g}"
    assert "penalty on the size of their coefficients" in sections["Convergence"].text
    page = write_model_report(tmp_path / "page.html", model, new / 16, image_shape=(8, 8))
    assert "KSAD under the rbf kernel: what was learned" in page.read_text("utf-8")


def test_orthonormal_atoms_have_coherence_0(classifier, digits):
    new, truth = digits[2:]
    model = KSAD(20, random_state=0).fit(digits[0])
    for each in (model, classifier):
        numbers = atom_numbers(each, new, truth)
        assert numbers.mutual_coherence < 1e-9
        assert numbers.energy.sum() == pytest.approx(1)
        assert np.nanmax(numbers.purity) <= 1


def test_preimages_undo_the_metric_and_the_sheet_shows_their_error(classifier, digits):
    rows, error, _ = atom_preimages(classifier, np.arange(5))
    assert rows.shape == (5, 64)
    assert (error < 1).all()  # nearer to their atoms than nothing is
    figure = contact_sheet(classifier, *digits[2:], image_shape=(8, 8), n_atoms=6)
    texts = " ".join(text.get_text() for text in figure.findobj(lambda a: hasattr(a, "get_text")))
    assert "coherence 0.00" in texts
    assert "error" in texts
