"""On which classes' atoms codes have their weight: the report's matrix is that of the codes."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from kernelatoms import KSVD, ClassDictionaryClassifier, CRCClassifier, SRCClassifier, sparse_encode
from kernelatoms.report import coding, model_sections


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:300], y[:300], X[300:400], y[300:400].copy()


def expected_weights(codes, owners, truth, n_classes):
    out = np.zeros((n_classes, n_classes))
    for code, c in zip(np.abs(codes), truth, strict=True):
        if c >= 0:
            out[c] += [code[owners == d].sum() for d in range(n_classes)]
    return out


def pictures(model, rows, truth):
    (section,) = (s for s in model_sections(model, rows, truth) if s.title == "Accuracy")
    return [picture for picture in section.pictures if "weight of codes" in picture.caption]


def cells(ax):
    return {tuple(reversed(text.get_position())): text.get_text() for text in ax.texts}


@pytest.mark.parametrize("kind", ["collective", "crc", "src"])
def test_the_matrix_is_that_of_the_codes(digits, kind, monkeypatch):
    X, y, new, truth = digits
    monkeypatch.setattr(coding, "_BLOCK_ROWS", 7)
    if kind == "collective":
        learner = KSVD(8, n_nonzero_coefs=3, max_iter=3)
        last = ClassDictionaryClassifier(learner, scheme="collective", random_state=0)
    else:
        last = CRCClassifier(n_neighbors=30) if kind == "crc" else SRCClassifier(alpha=0.05)
    model = make_pipeline(Normalizer(), last).fit(X, y)
    signals = model[0].transform(new)
    if kind == "collective":
        atoms = np.concatenate([learner.components_ for learner in last.dictionaries_])
        codes = sparse_encode(signals, atoms, n_nonzero_coefs=3, sparse_output=False)
        owners = np.repeat(np.arange(10), 8)
    else:
        codes, owners = last.codes(signals).toarray(), last.labels_
    known = np.where(np.arange(100) % 9 == 0, -1, truth)  # labels that the model never met
    weights = expected_weights(codes, owners, known, 10)
    (picture,) = pictures(model, new, known)
    shares = weights / weights.sum(axis=1, keepdims=True)
    (ax,) = picture.figure.axes
    np.testing.assert_allclose(ax.images[0].get_array() ** 2, shares)
    assert cells(ax) == {
        (i, j): f"{100 * shares[i, j]:.0f}" for i in range(10) for j in range(10)
        if shares[i, j] >= 0.005
    }  # fmt: skip
    least = int(np.diagonal(shares).argmin())
    assert picture.caption.startswith(
        f"{100 * np.trace(weights) / weights.sum():.1f}% of the weight of codes"
    )
    assert f"the least, {100 * shares[least, least]:.1f}%, of rows of {least}." in picture.caption


def test_codes_over_the_answers_dictionary_alone_have_no_matrix(digits):
    X, y, new, truth = digits
    few, some = y < 3, truth < 3
    model = ClassDictionaryClassifier(KSVD(8, max_iter=2), random_state=0).fit(X[few], y[few])
    assert pictures(model, new[some], truth[some]) == []


def test_of_many_rows_some_are_weighed(digits, monkeypatch):
    X, y, new, truth = digits
    model = CRCClassifier(n_neighbors=30).fit(X, y)
    monkeypatch.setattr(coding, "_WEIGHED_ROWS", 10)
    rows = np.linspace(0, 99, 10).round().astype(int)
    expected = expected_weights(model.codes(new[rows]).toarray(), model.labels_, truth[rows], 10)
    (picture,) = pictures(model, new, truth)
    assert f"{100 * np.trace(expected) / expected.sum():.1f}% of the weight" in picture.caption


def test_of_many_classes_those_with_the_least_are_drawn(rng):
    y = np.repeat(np.arange(25), 4)
    X = np.eye(25)[y] + 0.4 * rng.random((100, 25))
    model = CRCClassifier(mu=0.5).fit(X, y)
    new = np.eye(25)[y] + 0.4 * rng.random((100, 25))
    weights = expected_weights(model.codes(new).toarray(), model.labels_, y, 25)
    own = np.diagonal(weights) / weights.sum(axis=1)
    shown = np.sort(np.argsort(own)[:20])
    (picture,) = pictures(model, new, y)
    figure = picture.figure
    figure.draw_without_rendering()
    names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert names == [str(c) for c in shown]
    assert "The 20 of 25 classes with the least are drawn." in picture.caption
