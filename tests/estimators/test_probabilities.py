"""Probabilities of classes: one rule for every classifier, against the rule written out."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from draws import later, some
from kernelatoms import (
    KSVD,
    ClassDictionaryClassifier,
    CRCClassifier,
    DKSVDClassifier,
    FDDLClassifier,
    KernelKSVD,
    KSADClassifier,
    LCKSVDClassifier,
    SRCClassifier,
    load_model,
    save_model,
)
from kernelatoms.estimators.classifiers.base import likeliest_temperature, probabilities
from kernelatoms.report.figures.calibration import reliability

CLASSIFIERS = {
    "dictionaries": ClassDictionaryClassifier(KSVD(5, n_nonzero_coefs=2), random_state=0),
    "together": ClassDictionaryClassifier(
        KSVD(5, n_nonzero_coefs=2), scheme="collective", random_state=0
    ),
    "kernel": ClassDictionaryClassifier(KernelKSVD(5, n_nonzero_coefs=2), random_state=0),
    "D-KSVD": DKSVDClassifier(15, n_nonzero_coefs=3, random_state=0),
    "LC-KSVD": LCKSVDClassifier(15, n_nonzero_coefs=3, random_state=0),
    "FDDL": FDDLClassifier(4, random_state=0),
    "FDDL global": FDDLClassifier(4, decision="global", random_state=0),
    "K-SAD": KSADClassifier(10, random_state=0),
    "CRC": CRCClassifier(mu=0.1),
    "CRC local": CRCClassifier("rbf", mu=0.1, n_neighbors=7),
    "SRC": SRCClassifier(n_nonzero_coefs=4),
}


def draw(rng, n_classes=3, n_rows=60, dtype=np.float64):
    """Return rows along noisy directions of their classes."""
    y = np.arange(n_rows) % n_classes
    X = 2.0 * np.eye(8)[y] + 0.8 * rng.standard_normal((n_rows, 8))
    return X.astype(dtype), np.array(["ant", "bee", "cat", "dog"])[y]


# One of every kind of evidence; the others with ``make test-slow``.
SOON = ("dictionaries", "D-KSVD", "K-SAD", "CRC local")


def classifiers(soon=tuple(CLASSIFIERS)):
    return pytest.mark.parametrize("name", some(list(CLASSIFIERS), soon))


@classifiers()
@pytest.mark.parametrize("calibrate", [True, later(False)])
def test_rows_add_up_to_one_and_the_largest_is_the_answer(name, calibrate, rng):
    for n_classes, dtype in ((2, np.float32), (3, np.float64)):
        X, y = draw(rng, n_classes, dtype=dtype)
        model = clone(CLASSIFIERS[name]).set_params(calibrate=calibrate).fit(X, y)
        new = np.concatenate([draw(rng, n_classes, 100, dtype)[0], X[:5], np.zeros((1, 8), dtype)])
        p = model.predict_proba(new)
        assert p.shape == (106, n_classes)
        assert (p >= 0).all()
        np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-12)
        np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(new))
        assert hasattr(model, "inverse_temperature_") == calibrate


@classifiers(SOON)
def test_inverse_temperature_is_the_likeliest_of_rows_left_out(name, rng):
    """Written out: three copies, the rows that each has not seen, a fine grid."""
    X, y = draw(rng)
    plain = clone(CLASSIFIERS[name])
    model = clone(plain).set_params(calibrate=True).fit(X, y)
    labels = np.unique(y, return_inverse=True)[1]
    evidence = np.empty((60, 3))
    for kept, out in StratifiedKFold(3, shuffle=True, random_state=0).split(X, y):
        copy = clone(plain).fit(X[kept], y[kept])
        scores = copy.decision_function(X[out])
        if name in ("dictionaries", "together", "kernel"):
            scores = -np.log(-scores)
        elif not ("K-S" in name or "KSVD" in name):
            with np.errstate(divide="ignore"):
                scores = np.log(scores)
        evidence[out] = scores

    def surprise(inverse_temperature):
        powers = np.exp(inverse_temperature * (evidence - evidence.max(axis=1, keepdims=True)))
        shares = powers / powers.sum(axis=1, keepdims=True)
        return -np.log(61 / 62 * shares + 1 / 62 / 3)[np.arange(60), labels].mean()

    grid = np.exp(np.linspace(np.log(1e-3), np.log(1e3), 601))
    lowest = min(surprise(inverse_temperature) for inverse_temperature in grid)
    assert surprise(model.inverse_temperature_) <= lowest + 1e-9
    assert model.label_smoothing_ == 1 / 62


@classifiers(SOON)
def test_calibrating_changes_nothing_but_probabilities(name, rng):
    X, y = draw(rng)
    plain = clone(CLASSIFIERS[name]).fit(X, y)
    model = clone(plain).set_params(calibrate=True).fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X), plain.decision_function(X))
    model.set_params(calibrate=False).fit(X, y)
    assert not hasattr(model, "inverse_temperature_")
    np.testing.assert_array_equal(model.predict_proba(X), plain.predict_proba(X))


def test_shares_of_class_dictionaries_are_one_over_residuals(rng):
    X, y = draw(rng)
    model = clone(CLASSIFIERS["dictionaries"]).fit(X, y)
    fits = 1 / -model.decision_function(X)
    np.testing.assert_allclose(model.predict_proba(X), fits / fits.sum(axis=1, keepdims=True))


def test_residuals_of_zero():
    """Rows that one dictionary holds exactly are its own; those that two hold, equally both's."""
    X = np.repeat(np.eye(4), 6, axis=0)
    y = np.repeat([0, 0, 1, 1], 6)
    X[-6:] = X[0]  # class 1 has a direction of class 0 too
    for dtype in (np.float64, np.float32):
        model = ClassDictionaryClassifier(KSVD(2, n_nonzero_coefs=1), random_state=0)
        p = model.fit(X.astype(dtype), y).predict_proba(X[[7, 13, 0]].astype(dtype))
        assert p[0, 0] > 1 - 1e-5
        assert p[1, 1] > 1 - 1e-5
        np.testing.assert_allclose(p[2], 0.5)
        assert p[2].argmax() == model.predict(X[:1].astype(dtype))[0] == 0


def test_precomputed_kernels_go_by_differences(rng):
    """Of residuals, in which the unknown k(x, x) of new rows cancels."""
    X, y = draw(rng)
    new = draw(rng)[0]

    def kernel(A, B):
        return (1 + A @ B.T) ** 2

    learner = KernelKSVD(5, kernel="precomputed", n_nonzero_coefs=2)
    given = ClassDictionaryClassifier(learner, random_state=0).fit(kernel(X, X), y)
    own = clone(given).set_params(
        dictionary__kernel="poly", dictionary__degree=2, dictionary__gamma=1.0
    ).fit(X, y)  # fmt: skip
    scores = own.decision_function(new) / np.mean((1 + np.sum(X**2, axis=1)) ** 2)
    wanted = np.exp(scores - scores.max(axis=1, keepdims=True))
    wanted /= wanted.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(given.predict_proba(kernel(new, X)), wanted, rtol=1e-6)
    sure = clone(given).set_params(calibrate=True).fit(kernel(X, X), y)
    wanted = probabilities(scores, sure.inverse_temperature_, sure.label_smoothing_)
    np.testing.assert_allclose(sure.predict_proba(kernel(new, X)), wanted, rtol=1e-5)
    assert sure.inverse_temperature_ > 1.5  # copies know the columns of their own rows alone


def test_what_rounding_makes_equal_keeps_its_order(rng):
    X, y = draw(rng)
    model = clone(CLASSIFIERS["D-KSVD"]).set_params(calibrate=True).fit(X, y)
    model.inverse_temperature_ = 1e-30
    np.testing.assert_array_equal(
        model.classes_[model.predict_proba(X).argmax(axis=1)], model.predict(X)
    )


def test_probabilities_of_any_evidence(rng):
    evidence = rng.standard_normal((20, 4)) * 10.0 ** rng.integers(-9, 9, (20, 1))
    evidence[0, 1:] = -np.inf
    for inverse_temperature in (1e-4, 1.0, 1e4):
        p = probabilities(evidence, inverse_temperature, 0.01)
        np.testing.assert_allclose(p.sum(axis=1), 1)
        assert p.min() >= 0.01 / 4 * (1 - 1e-12)
    np.testing.assert_allclose(p[0], [0.99 + 0.0025, 0.0025, 0.0025, 0.0025])


def test_weights_count_as_repeated_rows(rng):
    evidence, labels = rng.standard_normal((30, 3)), rng.integers(0, 3, 30)
    counts = rng.integers(0, 4, 30)
    rows = np.repeat(np.arange(30), counts)
    np.testing.assert_allclose(
        likeliest_temperature(evidence, labels, 0.01, counts),
        likeliest_temperature(evidence[rows], labels[rows], 0.01), rtol=1e-4,
    )  # fmt: skip


@classifiers(SOON)
def test_calibrated_models_are_saved_and_loaded(name, rng, tmp_path):
    X, y = draw(rng)
    sure = clone(CLASSIFIERS[name]).set_params(calibrate=True).fit(X, y)
    again, _ = load_model(save_model(sure, tmp_path / "model.skops"))
    np.testing.assert_array_equal(again.predict_proba(X), sure.predict_proba(X))
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(sure)).predict_proba(X), sure.predict_proba(X)
    )
    sure.inverse_temperature_ = -1.0
    with pytest.raises(ValueError, match="inverse_temperature_ must be above 0"):
        save_model(sure, tmp_path / "model.skops")


def test_what_cannot_be_left_out_is_refused(rng):
    X, y = draw(rng)
    y[0] = "dog"
    with pytest.raises(ValueError, match=r"calibrate=True.* 'dog' has 1"):
        CRCClassifier(calibrate=True).fit(X, y)
    with pytest.raises(TypeError, match="calibrate"):
        CRCClassifier(calibrate="yes").fit(X, y)


def test_calibrated_digits_are_as_sure_as_they_are_right():
    X, y = load_digits(return_X_y=True)
    model = ClassDictionaryClassifier(KSVD(20, n_nonzero_coefs=3, max_iter=3), random_state=0)
    plain = make_pipeline(Normalizer(), model).fit(X[:900], y[:900])
    sure = make_pipeline(Normalizer(), clone(model).set_params(calibrate=True))
    sure.fit(X[:900], y[:900])
    before, after = (reliability(y[900:], m.predict_proba(X[900:])) for m in (plain, sure))
    assert before.error > 0.4
    assert after.error < 0.05
    assert after.log_loss < before.log_loss / 4
