"""The report on classifiers that keep their training rows, against the models' own answers."""

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_wine
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelatoms import CRCClassifier, SRCClassifier
from kernelatoms.report import model_sections, write_model_report
from kernelatoms.report.words import percent

pytestmark = pytest.mark.filterwarnings("error")


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:200], y[:200], X[200:260], y[200:260]


@pytest.fixture(scope="module")
def wine():
    data = load_wine()
    names = np.array(["red", "rosé", "white"])[data.target]
    return data.data[::2], names[::2], data.data[1::2], names[1::2]


def by_title(sections):
    return {section.title: section for section in sections}


def bars_of(ax):
    """Return the bars of an axes by their place."""
    return {round(bar.get_y() + bar.get_height() / 2): bar.get_width() for bar in ax.patches}


def images_of(figure):
    return {ax.get_title(): ax.images[0].get_array() for ax in figure.axes if ax.images}


def test_settings_sizes_and_what_was_settled(wine):
    rows, names, _, _ = wine
    crc = CRCClassifier("rbf", n_neighbors=20, gamma="scale", normalize=False)
    model = make_pipeline(StandardScaler(), crc).fit(rows, names)
    (fitted,) = model_sections(model)
    assert fitted.title == "What was fitted"
    assert "CRCClassifier with kernel 'rbf', n_neighbors 20" in fitted.text
    counts = np.unique(names, return_counts=True)[1]
    assert dict(fitted.table.rows) == {
        "features": "13",
        "classes": "3",
        "training rows kept": "89",
        "training rows per class": f"{counts.min()} to {counts.max()}",
        "rows a code may use": "20",
        "numbers kept": f"{89 * 13 * 8 / 2**20:.3g} MiB",
        "weight of the ridge, mu": f"{crc.mu_:.3g}",
        "gamma of the kernel": f"{crc.gamma_:.4g}",
    }


def test_projections_and_sparse_codes_say_how_large_they_are(digits):
    X, y, _, _ = digits
    projected = CRCClassifier("rbf", projection="kfda", mu=0.1).fit(X, y)
    table = dict(model_sections(projected)[0].table.rows)
    n_components = projected.projection_.shape[1]
    assert table["components of the projection"] == str(n_components)
    assert table["numbers kept"] == f"{200 * (64 + n_components) * 8 / 2**20:.3g} MiB"
    assert table["rows a code may use"] == "200"
    greedy = dict(model_sections(SRCClassifier(n_nonzero_coefs=5).fit(X, y))[0].table.rows)
    assert greedy["nonzeros per code, at most"] == "5"
    sparse = dict(model_sections(SRCClassifier(alpha=0.02).fit(X, y))[0].table.rows)
    assert sparse["weight of the l1 penalty"] == "0.02"


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_answers_are_the_models(digits, kernel):
    X, y, new, truth = digits
    model = CRCClassifier(kernel, n_neighbors=15).fit(X[:50], y[:50])
    answers, shares = model.predict(new), model.predict_proba(new)
    sections = by_title(model_sections(model, new, truth, image_shape=(8, 8)))
    right = int((answers == truth).sum())
    assert list(sections) == ["What was fitted", "Codes", "Accuracy", "Worst mistakes", "Time"]
    assert f"{right} of 60 labelled rows are classified right" in sections["Accuracy"].text
    rows = np.arange(60)
    others = shares.copy()
    others[rows, truth] = -1
    medians = [np.median(shares[rows, truth]), np.median(others.max(axis=1))]
    caption = sections["Accuracy"].pictures[1].caption
    assert (
        f"the median share is {percent(medians[0])} by the row's own class and "
        f"{percent(medians[1])} by the best other one" in caption
    )
    wrong = np.flatnonzero(answers != truth)
    assert len(wrong) > 1
    margin = shares[wrong, truth[wrong]] - others[wrong].max(axis=1)
    worst = wrong[np.argsort(margin, kind="stable")][:6]
    assert sections["Worst mistakes"].table.rows == [
        [str(row), str(truth[row]), str(answers[row]), percent(shares[row, truth[row]]),
         percent(shares[row].max())]
        for row in worst
    ]  # fmt: skip


@pytest.mark.parametrize("n_neighbors", [12, None])
def test_bars_are_the_codes_parts_and_the_residuals(wine, n_neighbors):
    rows, names, new, truth = wine
    crc = CRCClassifier(n_neighbors=n_neighbors)
    model = make_pipeline(StandardScaler(), crc).fit(rows, names)
    signals, last = model[0].transform(new), model[-1]
    section = by_title(model_sections(model, new, truth))["Codes"]
    won = model.predict_proba(new).max(axis=1)
    row = int(np.abs(won - np.median(won)).argmin())
    assert f"Row {row}, a typical one" in section.pictures[0].caption
    left, right = section.pictures[0].figure.axes
    answer = int(model.predict_proba(new[row : row + 1]).argmax())
    for ax in (left, right):
        colours = {round(bar.get_y() + 0.35): bar.get_facecolor() for bar in ax.patches}
        marked = colours.pop(answer)
        assert marked not in colours.values()
    code = last.codes(signals[row : row + 1]).toarray()[0]
    parts = np.array([(code[last.labels_ == c] ** 2).sum() for c in range(3)])
    np.testing.assert_allclose([bars_of(left)[c] for c in range(3)], parts / parts.sum())
    residuals = last.residuals(signals[row : row + 1])[0]
    found = bars_of(right)
    assert set(found) == set(np.flatnonzero(np.isfinite(residuals)))
    for c, width in found.items():
        assert width == pytest.approx(residuals[c])
    assert len(right.texts) == int(np.isinf(residuals).sum())


def test_classes_without_a_part_get_words_in_place_of_a_bar():
    """Two neighbours of one class: the other two classes take no part."""
    rows = np.kron(np.eye(3), np.ones((2, 1))) + 0.01 * np.arange(6)[:, None]
    model = CRCClassifier(n_neighbors=2, mu=0.1).fit(rows, [0, 0, 1, 1, 2, 2])
    section = by_title(model_sections(model, rows))["Codes"]
    right = section.pictures[0].figure.axes[1]
    assert len(bars_of(right)) == 1
    assert [text.get_text() for text in right.texts] == [" no part in the code"] * 2
    calls = by_title(model_sections(model, rows, [0, 0, 1, 1, 2, 2]))["Closest calls"].table.rows
    assert len(calls) == 6
    for _, true, other, *shares in calls:
        assert true != other
        assert shares == ["100.0%", "0.0%"]


def test_robust_models_show_what_they_distrust(digits):
    X, y, new, _ = digits
    model = CRCClassifier(residual_norm="l1", mu=20.0).fit(X, y)
    spoiled = new[:5].copy()
    spoiled[:, 20:28] = 16
    section = by_title(model_sections(model, spoiled, image_shape=(8, 8)))["Codes"]
    assert "distrusts" in section.text
    row = int(section.pictures[0].caption.split()[1].rstrip(","))
    size = np.linalg.norm(spoiled[row])
    shown = images_of(section.pictures[0].figure)
    errors = model.errors(spoiled[row : row + 1])
    assert np.abs(errors).max() > 0.05
    np.testing.assert_allclose(shown["distrusted"].ravel(), size * np.abs(errors)[0])
    np.testing.assert_allclose(shown["the row"].ravel(), spoiled[row])
    total = model.codes(spoiled[row : row + 1]) @ model.dictionary_
    np.testing.assert_allclose(shown["its training rows' sum"].ravel(), size * total[0])


def test_training_rows_with_the_largest_coefficients_are_drawn(digits):
    X, y, new, _ = digits
    model = CRCClassifier("rbf", n_neighbors=15).fit(X, y)
    picture = by_title(model_sections(model, new, image_shape=(8, 8)))["Codes"].pictures[0]
    row = int(picture.caption.split()[1].rstrip(","))
    code = model.codes(new[row : row + 1]).toarray()[0]
    most = np.argsort(-np.abs(code), kind="stable")[:5]
    shown = [ax for ax in picture.figure.axes if "·" in ax.get_title()]
    assert [ax.get_title() for ax in shown] == [
        f"{code[i]:+.2g} ·\n{model.classes_[model.labels_[i]]}" for i in most
    ]
    for ax, i in zip(shown, most, strict=True):
        np.testing.assert_allclose(ax.images[0].get_array().ravel(), model.dictionary_[i])
    # Under a kernel a sum of rows is no image, and nothing pretends that it is.
    assert "its training rows' sum" not in images_of(picture.figure)


def test_no_mistakes_shows_the_closest_calls(digits):
    X, y, _, _ = digits
    model = CRCClassifier("rbf", mu=1e-6).fit(X, y)
    assert model.score(X, y) == 1
    shares = model.predict_proba(X)
    own = shares.max(axis=1)
    other = np.sort(shares, axis=1)[:, -2]
    section = by_title(model_sections(model, X, y))["Closest calls"]
    closest = np.argsort(own - other, kind="stable")[:6]
    assert [line[0] for line in section.table.rows] == [str(row) for row in closest]
    assert section.table.header[2] == "next best"


def test_rows_without_labels_and_labels_nobody_knows(digits):
    X, y, new, _ = digits
    model = CRCClassifier().fit(X, y)
    sections = model_sections(model, new)
    assert [section.title for section in sections] == ["What was fitted", "Codes", "Time"]
    assert "true" not in sections[1].pictures[0].caption
    strange = by_title(model_sections(model, new, np.full(60, 11)))
    assert "60 rows with labels that the model never met (11: 60)" in strange["Accuracy"].text
    assert "Worst mistakes" not in strange
    assert "Closest calls" not in strange


def test_kernel_values_instead_of_rows(digits, tmp_path):
    X, y, new, truth = digits
    gamma = 1e-3
    model = CRCClassifier("precomputed", n_neighbors=20).fit(rbf_kernel(X, gamma=gamma), y)
    columns = rbf_kernel(new, X, gamma=gamma)
    page = write_model_report(tmp_path / "page.html", model, columns, truth).read_text("utf-8")
    right = int((model.predict(columns) == truth).sum())
    assert f"{right} of 60 labelled rows are classified right" in page
    assert "CRCClassifier: the training rows as dictionary" in page
    lead = write_model_report(tmp_path / "page.html", model, columns).read_text("utf-8")
    won = np.median(model.predict_proba(columns).max(axis=1))
    assert f"share of the fit is at least {percent(won)}" in lead


def test_many_classes_show_the_best(rng):
    """Of twelve classes the ten with the largest shares are drawn, in the order of their names."""
    centres = rng.standard_normal((12, 6))
    X = np.repeat(centres, 4, axis=0) + 0.3 * rng.standard_normal((48, 6))
    model = CRCClassifier(mu=0.1).fit(X, np.repeat(np.arange(12), 4))
    picture = by_title(model_sections(model, X[:1]))["Codes"].pictures[0]
    shares = model.predict_proba(X[:1])[0]
    best = np.sort(np.argsort(-shares, kind="stable")[:10])
    names = [text.get_text().split()[0] for text in picture.figure.axes[0].get_yticklabels()]
    assert names == [str(c) for c in best]
    assert "10 of 12 classes" in picture.caption
