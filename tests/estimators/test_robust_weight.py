"""Robust CRC: the weight that rows left out choose, the tolerance, and the warning."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from kernelatoms import CRCClassifier, SRCClassifier
from kernelatoms.coding import leave_one_out as left_out_robust
from kernelatoms.coding.leave_one_out import (
    ROBUST_MULTIPLES,
    LeftOut,
    _clear,
    best_robust_mu,
)
from kernelatoms.coding.robust import RobustDictionary
from kernelatoms.estimators.classifiers import collaborative, row_coding
from oracles import representation as oracle


def draw(seed, n=36, n_features=5, n_classes=3):
    rng = np.random.default_rng(seed)
    y = np.sort(np.arange(n) % n_classes)
    means = rng.standard_normal((n_classes, n_features))
    return means[y] + rng.standard_normal((n, n_features)), y


def rbf(A, B, gamma=0.5):
    return np.exp(-gamma * ((A[:, None] - B) ** 2).sum(axis=2))


def naive_score(part, mu):
    codes, _ = oracle.robust_codes(part.atoms, part.rows, mu, n_sweeps=1000)
    scores = []
    for row, label, code in zip(part.rows, part.labels, codes, strict=True):
        left = row - code @ part.atoms
        error = np.where(np.abs(left) > 1e-3 * np.abs(row).mean(), left, 0.0)
        residuals = oracle.residuals(part.atoms, part.owners, row - error, code, 3)
        others = np.delete(residuals, label).min()
        scores.append(np.clip(np.log(others / residuals[label]) / 0.3, -1, 1))
    return np.array(scores)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_largest_weight_near_the_best_is_chosen(seed, monkeypatch):
    monkeypatch.setattr(left_out_robust, "_GAP", 1e-9)
    X, y = draw(seed, n=24)
    parts = []
    for part in range(3):
        out = np.arange(24) % 3 == part
        kept = X[~out]
        parts.append(LeftOut(rbf(X[out], kept), y[out], rbf(kept, kept), y[~out]))
    scale = np.mean([np.abs(part.atoms).sum(axis=1).mean() for part in parts])
    scores = []
    for multiple in ROBUST_MULTIPLES:
        own = [naive_score(part, multiple * scale) for part in parts]
        for part, expected in zip(parts, own, strict=True):
            found = _clear(part, RobustDictionary(part.atoms, multiple * scale), 3)
            np.testing.assert_allclose(found, expected, atol=0.05)
        scores.append(np.concatenate(own).mean())
        if len(scores) > 2 and max(scores[-2:]) <= max(scores[:-2]):
            break
    expected = next(m for m, score in zip(ROBUST_MULTIPLES, scores, strict=False)
                    if score >= max(scores) - 0.01)  # fmt: skip
    assert best_robust_mu(parts, 3) == pytest.approx(expected * scale, rel=1e-12)


def test_rows_that_tell_nothing_leave_a_weight_in_the_middle():
    X = np.random.default_rng(0).standard_normal((4, 5))
    model = CRCClassifier("rbf", residual_norm="l1").fit(X, np.arange(4))
    assert 0 < model.mu_ < 0.1
    nothing = LeftOut(np.zeros((2, 3)), np.zeros(2, int), np.zeros((2, 3)), np.zeros(2, int))
    assert best_robust_mu([nothing], 1) == 1.0


@pytest.mark.parametrize("projection", ["identity", "kpca"])
def test_the_weight_follows_the_size_of_kernel_values(projection):
    """|e|_1 grows with them, so that the same code needs a weight that does."""
    X, y = load_digits(return_X_y=True)
    rows = X[:90] / np.linalg.norm(X[:90], axis=1, keepdims=True)
    K = rbf(rows, rows, 4.0)
    model = CRCClassifier("precomputed", residual_norm="l1", projection=projection)
    small, large = clone(model).fit(K, y[:90]), clone(model).fit(64 * K, y[:90])
    grown = 64 if projection == "identity" else 8  # psi shrinks by the root
    assert large.mu_ == pytest.approx(grown * small.mu_, rel=1e-6)


def test_a_kernel_gets_a_weight_of_its_own_size():
    """Weight 10, once that of every kernel, loses many answers on columns of kernel values."""
    X, y = load_digits(return_X_y=True)
    train, test, known = X[:200], X[400:800], y[400:800]
    model = CRCClassifier("rbf", residual_norm="l1", tol=1e-3).fit(train, y[:200])
    right = model.score(test, known)
    ridge = CRCClassifier("rbf").fit(train, y[:200])
    assert right > ridge.score(test, known) - 0.02
    assert model.set_params(mu=10.0).fit(train, y[:200]).score(test, known) < right - 0.02


@pytest.mark.parametrize(
    ("projection", "unit", "grown"), [(None, False, 3.0), ("identity", False, 9.0),
                                      ("identity", True, 3.0)],
)  # fmt: skip
def test_some_of_very_many_rows_choose_the_robust_weight(projection, unit, grown, monkeypatch):
    """Entries of kernel columns grow in number with the rows too, but not columns at unit norm."""
    X, y = draw(5, n=90)
    kernel = "linear" if projection is None else "rbf"
    model = CRCClassifier(
        kernel, residual_norm="l1", projection=projection, gamma=0.5, normalize_columns=unit
    )
    monkeypatch.setattr(collaborative, "_ROBUST_ATOMS", 30)
    whole = clone(model).fit(X, y)
    some = np.linspace(0, 89, 30).round().astype(int)
    part = clone(model).fit(X[some], y[some])
    np.testing.assert_allclose(whole.mu_, grown * part.mu_, rtol=1e-6)


@pytest.mark.parametrize("n_neighbors", [None, 6])
def test_columns_at_unit_norm_have_a_weight_of_their_own(n_neighbors):
    """Rows are coded over scaled columns, and so they are when the weight is chosen."""
    X, y = draw(6)
    seen = []

    def watched(parts, n_classes, multiples):
        seen.extend(parts)
        return 1.0

    model = CRCClassifier(
        "rbf", residual_norm="l1", normalize_columns=True, gamma=0.5, n_neighbors=n_neighbors
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(collaborative, "best_robust_mu", watched)
        model.fit(X, y)
    for part in seen:
        np.testing.assert_allclose(np.linalg.norm(part.atoms, axis=1), 1.0)
    rows = model.dictionary_
    if n_neighbors is None:
        others = np.delete(np.arange(36), np.arange(36)[::5])
        np.testing.assert_allclose(seen[0].rows, rbf(rows, rows)[::5][:, others], rtol=1e-10)


def test_over_neighbours_the_row_itself_is_left_out():
    """A row that is its own nearest neighbour would be right under every weight."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 4)), np.arange(40) % 2
    model = CRCClassifier("rbf", residual_norm="l1", n_neighbors=5)
    seen = []

    def watched(parts, n_classes, multiples):
        seen.extend(parts)
        return 1.0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(collaborative, "best_robust_mu", watched)
        model.fit(X, y)
    assert len(seen) == 40
    for part in seen:
        assert part.rows.shape == (1, 5)
        assert part.rows.max() < 1.0  # k(x, x) is not among the entries


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("n_neighbors", [None, 30])
def test_answers_do_not_change_when_the_tolerance_falls(kernel, n_neighbors):
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    test = X[300:400] + 12 * (rng.random((100, 64)) < 0.15)
    model = CRCClassifier(kernel, residual_norm="l1", n_neighbors=n_neighbors, mu=0.1)
    model.fit(X[:200], y[:200])
    loose = model.predict(test)
    np.testing.assert_array_equal(model.set_params(tol=1e-6).predict(test), loose)


@pytest.mark.parametrize("n_neighbors", [None, 8])
@pytest.mark.parametrize("make", [CRCClassifier, SRCClassifier])
def test_one_warning_per_call_tells_of_all_rows(make, n_neighbors, monkeypatch):
    monkeypatch.setattr(row_coding, "_VALUES_AT_ONCE", 64)
    X, y = draw(7)
    weight = {"mu": 0.1} if make is CRCClassifier else {"alpha": 0.1}
    model = make(residual_norm="l1", tol=1e-15, n_neighbors=n_neighbors, **weight).fit(X, y)
    T = np.random.default_rng(1).standard_normal((70, 5))
    for call in (model.predict, model.codes, model.errors, model.explain):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            call(T)
        assert [one.category for one in told] == [ConvergenceWarning]
        assert "where 1e-15 is wanted" in str(told[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.set_params(tol=1e-4).predict(T)


@pytest.mark.parametrize("tol", [0, -1.0, "small", np.nan])
def test_tolerances_that_are_none_are_refused(tol):
    X, y = draw(9)
    with pytest.raises((TypeError, ValueError), match="tol must be"):
        CRCClassifier(residual_norm="l1", tol=tol).fit(X, y)
