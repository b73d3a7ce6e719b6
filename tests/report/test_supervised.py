"""The report on dictionaries learned with labels, against the models' own codes and answers."""

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

from kernelatoms import (
    DKSVDClassifier,
    FDDLClassifier,
    KernelLinearizer,
    LCKSVDClassifier,
    explain,
)
from kernelatoms.report import model_sections, write_model_report
from kernelatoms.report.words import percent

pytestmark = pytest.mark.filterwarnings("error")

GREEDY = {"n_atoms": 40, "n_nonzero_coefs": 4, "max_iter": 3, "init_max_iter": 3}
KINDS = {
    "dksvd": DKSVDClassifier(**GREEDY, random_state=0),
    "lcksvd": LCKSVDClassifier(**GREEDY, random_state=0),
    "local": FDDLClassifier(4, max_iter=2, random_state=0),
    "global": FDDLClassifier(4, decision="global", max_iter=2, random_state=0),
}
TITLES = [
    "What was fitted", "Convergence", "Atoms and codes", "Atoms one by one", "Decision", "Accuracy",
]  # fmt: skip


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:250], y[:250], X[250:350], y[250:350]


@pytest.fixture(scope="module", params=list(KINDS))
def model(request, digits):
    return make_pipeline(Normalizer(), KINDS[request.param]).fit(*digits[:2])


@pytest.fixture(scope="module")
def sections(model, digits):
    return model_sections(model, *digits[2:], image_shape=(8, 8))


def by_title(sections):
    return {section.title: section for section in sections}


def bars_of(ax):
    return {round(bar.get_y() + bar.get_height() / 2): bar.get_width() for bar in ax.patches}


def test_what_was_fitted(model, sections):
    last, fitted = model[-1], sections[0]
    assert type(last).__name__ in fitted.text
    table = dict(fitted.table.rows)
    counts = np.bincount(last.atom_classes_)
    span = f"{counts.min()} to {counts.max()}" if counts.min() < counts.max() else f"{counts[0]}"
    assert (table["classes"], table["atoms"], table["atoms per class"]) == ("10", "40", span)
    if isinstance(last, FDDLClassifier):
        assert table["weight of the l1 penalty"] == f"{last.l1_weight_:.4g}"
        assert table["weight of Fisher's criterion"] == "0.001"
        assert table["decision"] == {"local": "class by class", "global": "over all atoms"}.get(
            last.decision
        )
    else:
        assert table["nonzeros per code, at most"] == "4"
        assert table["weight of the labels"] == f"{last.label_weight:g}"
        assert ("weight of label consistency" in table) == isinstance(last, LCKSVDClassifier)


def test_convergence_is_that_of_all_terms(model, sections):
    section, objective = by_title(sections)["Convergence"], model[-1].objective_
    (line,) = section.pictures[0].figure.axes[0].get_lines()
    np.testing.assert_allclose(line.get_ydata(), 100 * objective / objective[0])
    fisher = isinstance(model[-1], FDDLClassifier)
    words = "spread of codes within classes" if fisher else "marks of their classes"
    assert words in section.text


def test_answers_and_mistakes_are_the_models(model, sections, digits):
    _, _, new, truth = digits
    answers, shares = model.predict(new), model.predict_proba(new)
    assert [section.title for section in sections] == [*TITLES, "Worst mistakes", "Time"]
    right = int((answers == truth).sum())
    assert (
        f"{right} of 100 labelled rows are classified right" in by_title(sections)["Accuracy"].text
    )
    rows, others = np.arange(100), shares.copy()
    others[rows, truth] = -1
    wrong = np.flatnonzero(answers != truth)
    margin = shares[wrong, truth[wrong]] - others[wrong].max(axis=1)
    worst = wrong[np.argsort(margin, kind="stable")][:6]
    found = by_title(sections)["Worst mistakes"]
    assert found.table.rows == [
        [str(row), str(truth[row]), str(answers[row]), percent(shares[row, truth[row]]),
         percent(shares[row].max())]
        for row in worst
    ]  # fmt: skip
    assert len(found.pictures) == len(worst)


def test_a_typical_row_is_explained(model, sections, digits):
    new, last = digits[2], model[-1]
    won = model.predict_proba(new).max(axis=1)
    row = int(np.abs(won - np.median(won)).argmin())
    (picture,) = by_title(sections)["Decision"].pictures
    assert picture.caption.startswith(f"Row {row}, a typical one")
    why = explain(model, new[row : row + 1])[0]
    assert f"{len(why.atoms)} atom" in picture.caption
    *images, left, right = picture.figure.axes
    expected = why.code_energies()
    if getattr(last, "decision", "") == "local":
        expected = why.residuals / why.energy
    np.testing.assert_allclose([bars_of(left)[c] for c in range(10)], expected, atol=1e-12)
    np.testing.assert_allclose([bars_of(right)[c] for c in range(10)], why.scores, atol=1e-12)
    assert right.get_title() == (
        "share of the fit" if isinstance(last, FDDLClassifier) else "score"
    )
    shown = {ax.get_title(): ax.images[0].get_array().ravel() for ax in images}
    total = why.coefficients @ last.components_[why.atoms]
    np.testing.assert_allclose(shown["its atoms' sum"], total)
    first = f"{why.coefficients[0]:+.2g} ·\n{why.classes[why.owners[0]]}"
    np.testing.assert_allclose(shown[first], last.components_[why.atoms[0]])


def test_weights_are_those_of_the_codes(model, sections, digits):
    _, _, new, truth = digits
    codes = abs(model.transform(new)).toarray()
    sums = np.array([codes[truth == c].sum(axis=0) for c in range(10)])
    weights = np.stack([sums[:, model[-1].atom_classes_ == c].sum(axis=1) for c in range(10)], 1)
    shares = weights / weights.sum(axis=1, keepdims=True)
    *_, matrix, energy = by_title(sections)["Accuracy"].pictures
    np.testing.assert_allclose(matrix.figure.axes[0].images[0].get_array() ** 2, shares)
    least = int(np.diagonal(shares).argmin())
    assert energy.caption.startswith(f"Rows of {least}, whose codes")
    assert percent(1 - shares[least, least]) in energy.caption
    heights = [bar.get_height() for bar in energy.figure.axes[0].patches]
    np.testing.assert_allclose(heights, sums[least])


def test_atoms_are_drawn_class_by_class_the_most_used_first(model, sections, digits):
    last, uses = model[-1], np.asarray((model.transform(digits[2]) != 0).sum(axis=0)).ravel()
    picture = by_title(sections)["Atoms and codes"].pictures[0]
    assert "of each class" in picture.caption
    drawn = [ax.images[0].get_array().ravel() for ax in picture.figure.axes if ax.images]
    own = np.flatnonzero(last.atom_classes_ == 0)
    first = last.components_[own[np.argsort(-uses[own], kind="stable")[0]]]
    np.testing.assert_allclose(np.abs(drawn[0]), np.abs(first) / np.abs(first).max())
    assert f"{np.count_nonzero(uses)} of 40 atoms are used" in " ".join(
        picture.caption for picture in by_title(sections)["Atoms and codes"].pictures
    )


def test_without_rows_there_are_the_atoms_alone(model, tmp_path):
    found = model_sections(model, image_shape=(8, 8))
    assert [section.title for section in found] == [
        "What was fitted", "Convergence", "Atoms", "Atoms one by one",
    ]  # fmt: skip
    page = write_model_report(tmp_path / "page.html", model, image_shape=(8, 8))
    assert f"<h1>{type(model[-1]).__name__}: what was learned</h1>" in page.read_text("utf-8")


def test_rows_without_labels(model, digits):
    found = model_sections(model, digits[2])
    assert [section.title for section in found] == [*TITLES[:5], "Time"]
    assert "true" not in found[4].pictures[0].caption


@pytest.mark.parametrize("kind", ["lcksvd", "local"])
def test_named_features_two_classes_and_a_kernel(kind, tmp_path):
    data = load_wine()
    names = np.array(["red", "white"])[(data.target > 0).astype(int)]
    last = KINDS[kind].__class__(**{**KINDS[kind].get_params(), "max_iter": 1})
    model = make_pipeline(
        StandardScaler(), KernelLinearizer("rbf", n_landmarks=40, random_state=0), last
    ).fit(data.data[::2], names[::2])
    new, truth = data.data[1::2], names[1::2]
    path = write_model_report(
        tmp_path / "page.html", model, new, truth, feature_names=data.feature_names
    )
    page = path.read_text("utf-8")
    assert f"<h1>{type(last).__name__} under the rbf kernel: what was learned</h1>" in page
    assert (
        f"{int((model.predict(new) == truth).sum())} of 89 labelled rows are classified right"
        in page
    )
    strange = by_title(model_sections(model, new, np.full(89, "green")))
    assert "labels that the model never met (green: 89)" in strange["Accuracy"].text
    assert "Worst mistakes" not in strange


def test_a_dense_output_changes_nothing(digits):
    X, y, new, truth = digits
    few, some = y < 3, truth < 3
    X, y, new, truth = X[few], y[few], new[some], truth[some]
    dense = DKSVDClassifier(**GREEDY, sparse_output=False, random_state=0).fit(X, y)
    sparse = DKSVDClassifier(**GREEDY, random_state=0).fit(X, y)
    for a, b in zip(
        model_sections(dense, new, truth)[1:-1], model_sections(sparse, new, truth)[1:-1],
        strict=True,
    ):  # fmt: skip
        assert (a.title, a.text) == (b.title, b.text)
        assert [p.caption for p in a.pictures] == [p.caption for p in b.pictures]
