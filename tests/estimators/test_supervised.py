"""Dictionaries learned from labels: D-KSVD, LC-KSVD and FDDL as classifiers and transformers."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.decomposition import DictionaryLearning
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from kernelatoms import (
    KSVD,
    DKSVDClassifier,
    FDDLClassifier,
    KernelLinearizer,
    LCKSVDClassifier,
    load_model,
    make_lkdl,
    save_model,
    sparse_encode,
)
from oracles.supervised import (
    fisher_objective,
    local_value,
    nearest_probabilities,
    ridge_map,
    stacked,
)

MAKERS = {
    "D-KSVD": lambda **p: DKSVDClassifier(12, n_nonzero_coefs=3, max_iter=4, random_state=0, **p),
    "LC-KSVD1": lambda **p: LCKSVDClassifier(
        12, n_nonzero_coefs=3, variant=1, max_iter=4, random_state=0, **p
    ),
    "LC-KSVD2": lambda **p: LCKSVDClassifier(
        12, n_nonzero_coefs=3, max_iter=4, random_state=0, **p
    ),
    "FDDL": lambda **p: FDDLClassifier(4, max_iter=2, random_state=0, **p),
    "FDDL global": lambda **p: FDDLClassifier(
        4, max_iter=2, decision="global", random_state=0, **p
    ),
}
every = pytest.mark.parametrize("name", MAKERS)
greedy = pytest.mark.parametrize("name", ["D-KSVD", "LC-KSVD1", "LC-KSVD2"])
fisher = pytest.mark.parametrize("name", ["FDDL", "FDDL global"])


@pytest.fixture
def flowers(rng):
    """Return three classes of rows, sums of two directions of their own each."""
    planes = rng.standard_normal((3, 2, 10))
    labels = rng.permutation(np.repeat(np.arange(3), 20))
    weights = rng.uniform(0.5, 2, (60, 1, 2))
    X = (weights @ planes[labels])[:, 0] + 0.05 * rng.standard_normal((60, 10))
    return X, labels


@every
class TestEveryOne:
    def test_it_tells_classes_apart(self, name, flowers):
        X, y = flowers
        model = MAKERS[name]().fit(X[:45], y[:45])
        assert model.score(X[45:], y[45:]) >= 0.8

    def test_what_is_fitted(self, name, flowers):
        X, y = flowers
        model = MAKERS[name]().fit(X, y)
        assert model.components_.shape == (12, 10)
        assert model.n_atoms_ == 12
        np.testing.assert_array_equal(model.atom_classes_, np.repeat([0, 1, 2], 4))
        assert (np.linalg.norm(model.components_, axis=1) <= 1 + 1e-12).all()
        assert len(model.objective_) == model.n_iter_

    def test_predictions_scores_and_probabilities_agree(self, name, flowers):
        X, y = flowers
        model = MAKERS[name]().fit(X, y)
        scores, shares = model.decision_function(X), model.predict_proba(X)
        np.testing.assert_array_equal(model.predict(X), scores.argmax(axis=1))
        np.testing.assert_array_equal(model.predict(X), shares.argmax(axis=1))
        np.testing.assert_allclose(shares.sum(axis=1), 1)
        assert (shares >= 0).all()

    def test_codes_are_those_over_the_atoms(self, name, flowers):
        X, y = flowers
        model = MAKERS[name]().fit(X, y)
        codes = model.transform(X)
        assert scipy.sparse.issparse(codes)
        given = {"n_nonzero_coefs": 3} if "K" in name else {
            "method": "lasso", "alpha": model.l1_weight_ / 2
        }  # fmt: skip
        np.testing.assert_allclose(
            codes.toarray(), sparse_encode(X, model.components_, **given).toarray(), atol=1e-9
        )
        np.testing.assert_allclose(
            codes.toarray(), sparse_encode(X, model, **given).toarray(), atol=1e-9
        )
        np.testing.assert_allclose(model.inverse_transform(codes), codes @ model.components_)
        dense = MAKERS[name](sparse_output=False).fit(X, y).transform(X)
        np.testing.assert_array_equal(dense, codes.toarray())

    def test_batch_is_one_by_one(self, name, flowers):
        X, y = flowers
        model = MAKERS[name]().fit(X, y)
        one = np.concatenate([model.predict_proba(X[i : i + 1]) for i in range(10)])
        np.testing.assert_allclose(model.predict_proba(X[:10]), one, atol=1e-7)

    def test_unit_of_the_signals_does_not_matter(self, name, flowers):
        """Weights are relative to the signals' energy; powers of two change no digit."""
        X, y = flowers
        model, other = MAKERS[name]().fit(X, y), MAKERS[name]().fit(1024 * X, y)
        np.testing.assert_allclose(other.components_, model.components_, atol=1e-9)
        np.testing.assert_array_equal(other.predict(1024 * X), model.predict(X))
        np.testing.assert_allclose(other.objective_, 2.0**20 * model.objective_, rtol=1e-6)

    def test_float32_is_near_float64(self, name, flowers):
        """The first pass is, before rounding has chosen other atoms."""
        X, y = flowers
        model = MAKERS[name]().set_params(max_iter=1).fit(X, y)
        single = clone(model).fit(X.astype(np.float32), y)
        assert (
            single.components_.dtype == single.transform(X.astype(np.float32)).dtype == np.float32
        )
        assert single.objective_[0] == pytest.approx(model.objective_[0], rel=0.1)
        assert np.mean(single.predict(X.astype(np.float32)) == model.predict(X)) > 0.8

    @pytest.mark.parametrize(
        "names", [np.array(["iris", "rose", "tulip"]), np.array([30, -5, 7]), np.array([2.0, 1, 0])]
    )
    def test_labels_of_any_kind(self, name, names, flowers):
        X, y = flowers
        model, plain = MAKERS[name]().fit(X, names[y]), MAKERS[name]().fit(X, y)
        np.testing.assert_array_equal(model.classes_, np.unique(names))
        assert set(model.predict(X)) <= set(names)
        # Classes in another order start with other seeds: it need not be the same model.
        assert abs(model.score(X, names[y]) - plain.score(X, y)) < 0.3

    def test_booleans(self, name, flowers):
        X, y = flowers
        model = MAKERS[name]().fit(X, y == 2)
        assert model.classes_.dtype == bool
        scores = model.decision_function(X)
        assert scores.shape == (60,)
        np.testing.assert_array_equal(model.predict(X), scores > 0)

    def test_a_class_of_one_row_and_small_classes(self, name, flowers):
        X, y = flowers
        y = y.copy()
        y[0], y[1:3] = 7, 5
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = MAKERS[name]().fit(X, y)
        counts = np.bincount(model.atom_classes_)
        assert len(counts) == 5
        assert counts[4] == 1
        assert (counts <= np.unique(y, return_counts=True)[1]).all()
        np.testing.assert_array_equal(model.classes_, [0, 1, 2, 5, 7])
        assert model.predict_proba(X).shape == (60, 5)

    def test_one_class_is_refused(self, name, flowers):
        X, _ = flowers
        with pytest.raises(ValueError, match="at least two classes"):
            MAKERS[name]().fit(X, np.zeros(60))

    def test_numbers_to_regress_on_are_refused(self, name, flowers):
        X, _ = flowers
        with pytest.raises(ValueError, match="nknown label type"):
            MAKERS[name]().fit(X, X[:, 0])

    def test_same_seed_same_model(self, name, flowers):
        X, y = flowers
        one, two = MAKERS[name]().fit(X, y), MAKERS[name]().fit(X, y)
        np.testing.assert_array_equal(one.components_, two.components_)

    def test_zero_rows_have_an_answer(self, name, flowers):
        X, y = flowers
        X = X.copy()
        X[:3] = 0
        model = MAKERS[name]().fit(X, y)
        shares = model.predict_proba(np.zeros((1, 10)))
        assert np.isfinite(shares).all()
        assert shares.sum() == pytest.approx(1)

    def test_rows_of_zeros_alone(self, name):
        model = MAKERS[name]().fit(np.zeros((20, 3)), np.arange(20) % 2)
        assert np.isfinite(model.predict_proba(np.ones((2, 3)))).all()

    def test_files(self, name, flowers, tmp_path):
        X, y = flowers
        model = MAKERS[name]().fit(X, y)
        again, _ = load_model(save_model(model, tmp_path / "model.skops"))
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
        also = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(also.predict_proba(X), model.predict_proba(X))

    def test_after_a_kernel_map_in_a_grid(self, name, flowers):
        X, y = flowers
        model = make_lkdl(MAKERS[name](), "rbf", n_landmarks=20, random_state=0)
        search = GridSearchCV(model, {"map__gamma": [0.01, 0.1], "learn__max_iter": [1]}, cv=2)
        search.fit(X, y)
        assert search.best_score_ > 0.5
        assert search.best_estimator_[-1].n_iter_ == 1

    def test_explanations(self, name, flowers):
        X, y = flowers
        model = MAKERS[name]().fit(X, np.array(["a", "b", "c"])[y])
        shown = model.explain(X)
        assert [why.label for why in shown] == model.predict(X).tolist()
        scores = model.decision_function(X)
        np.testing.assert_allclose([why.scores for why in shown], scores, atol=1e-9)
        for i, why in enumerate(shown[:20]):
            np.testing.assert_array_equal(why.owners, model.atom_classes_[why.atoms])
            left = X[i] - why.coefficients @ model.components_[why.atoms]
            assert why.residual == pytest.approx(left @ left)
            assert why.energy == pytest.approx(X[i] @ X[i])
            if name == "FDDL":  # coded over the answer's atoms alone
                assert set(why.owners) == {scores[i].argmax()}
                assert why.residuals[scores[i].argmax()] == pytest.approx(why.residual)
                continue
            codes = model.transform(X[i : i + 1]).toarray()[0]
            np.testing.assert_array_equal(np.sort(why.atoms), np.flatnonzero(codes))
            for c in range(3):
                own = model.atom_classes_ == c
                left = X[i] - codes[own] @ model.components_[own]
                assert why.residuals[c] == pytest.approx(left @ left)
        if "K" in name:
            total = [why.contributions.sum() for why in shown]
            np.testing.assert_allclose(total, scores.max(axis=1), atol=1e-9)
        else:
            assert shown[0].contributions is None

    def test_callbacks_follow_and_stop(self, name, flowers):
        class Stop:
            seen = 0

            def setup(self, estimator, context):
                pass

            def teardown(self, estimator, context):
                pass

            def on_fit_task_begin(self, estimator, context):
                pass

            def on_fit_task_end(self, estimator, context, *, metadata, fitted_estimator):
                if context.task_name == "pass":
                    Stop.seen += 1
                    assert (
                        fitted_estimator().predict(X[:2]).shape == (2,)
                        if callable(fitted_estimator)
                        else fitted_estimator.predict(X[:2]).shape == (2,)
                    )
                return Stop.seen == 1

        X, y = flowers
        model = MAKERS[name]().set_callbacks(Stop())
        assert model.fit(X, y).n_iter_ == 1


@greedy
class TestLabelRows:
    def test_the_objective_is_that_of_all_terms(self, name, flowers):
        """Of the last pass's atoms: coded afresh they can only be that good or better by chance."""
        X, y = flowers
        model = MAKERS[name](tol=0).fit(X, y)
        energy = np.mean(np.sum(X**2, axis=1))
        alpha = energy * getattr(model, "consistency_weight", 0.0)
        beta = energy * model.label_weight * (name != "LC-KSVD1")
        whole = stacked(X, y, model.atom_classes_, alpha, beta)
        # No code at all leaves the energy; what the first pass leaves is far less.
        assert model.objective_[0] < 0.5 * np.sum(whole**2)
        assert model.objective_.min() == model.objective_[model.best_pass_]
        if name == "LC-KSVD1":  # whose map is not the one that was learned with the atoms
            return
        T = model.coef_[model.atom_classes_]
        joint = np.vstack([model.components_.T, np.sqrt(alpha) * T, np.sqrt(beta) * model.coef_]).T
        joint /= np.linalg.norm(joint, axis=1, keepdims=True)
        codes = sparse_encode(whole.T.copy(), joint, n_nonzero_coefs=3)
        left = float(np.sum((whole.T - codes @ joint) ** 2))
        # Greedy codes made afresh are others; weights of another unit would be ten times off.
        assert left == pytest.approx(model.objective_.min(), rel=0.4)

    def test_missing_values(self, name, flowers):
        X, y = flowers
        model = MAKERS[name]().fit(X, y)
        holes = X.copy()
        holes[::2, 3] = np.nan
        assert np.mean(model.predict(holes) == model.predict(X)) > 0.8
        with pytest.warns(UserWarning, match="NaN in 30 of 60 rows"):
            assert MAKERS[name]().fit(holes, y).n_atoms_ == 12

    @pytest.mark.filterwarnings("ignore:X contains NaN")
    def test_a_class_that_misses_values_everywhere(self, name, flowers):
        X, y = flowers
        X = X.copy()
        X[y == 1, 0] = np.nan
        with pytest.raises(ValueError, match="every row of class"):
            MAKERS[name]().fit(X, y)

    def test_probabilities_are_the_nearest_to_scores(self, name, flowers):
        X, y = flowers
        model = MAKERS[name]().fit(X, y)
        scores = model.decision_function(X)
        wanted = [nearest_probabilities(row) for row in scores]
        np.testing.assert_allclose(model.predict_proba(X), wanted, atol=1e-12)

    @pytest.mark.parametrize("size", [1e-20, 1.0, 1e20])
    def test_probabilities_of_any_scores(self, name, size, flowers):
        X, y = flowers
        model = MAKERS[name]().fit(X, y)
        model.coef_ = size * model.coef_
        shares = model.predict_proba(X)
        np.testing.assert_allclose(shares.sum(axis=1), 1)
        if size >= 1:  # 1e-20 is nothing beside a third
            np.testing.assert_array_equal(shares.argmax(axis=1), model.predict(X))

    def test_scores_are_the_map_of_codes(self, name, flowers):
        X, y = flowers
        model = MAKERS[name]().fit(X, y)
        np.testing.assert_allclose(
            model.decision_function(X), model.transform(X) @ model.coef_.T, atol=1e-12
        )

    @pytest.mark.parametrize("exponent", [-140, -80, 60, 110])
    def test_float32_far_from_one(self, name, exponent, rng):
        """Pixels, of which one column in three is bright; the map of short ones is large."""
        y = np.arange(60) % 3
        X = rng.integers(1, 80, (60, 9)) + 150 * (np.arange(9) % 3 == y[:, None])
        X = X.astype(np.float32)
        far = np.ldexp(X, exponent)
        words, model = "", MAKERS[name]()
        try:
            scores = model.fit(far, y).decision_function(far)
        except ValueError as refusal:
            words = str(refusal)
        if words:
            assert exponent == -140
            assert "codes underflow float32" in words
            return
        assert np.isfinite(scores).all()
        assert np.mean(model.predict(far) == MAKERS[name]().fit(X, y).predict(X)) > 0.9

    def test_atoms_stay_with_their_class(self, name, rng):
        """A class of one direction has use for one atom; the others become none of its rivals."""
        X = rng.standard_normal((40, 6))
        X[:, 0] = 0
        X[:20] = np.outer(rng.uniform(1, 2, 20), np.eye(6)[0])
        model = MAKERS[name](tol=0).set_params(n_atoms=8, n_nonzero_coefs=1)
        model.fit(X, np.repeat([0, 1], 20))
        mine = model.components_[model.atom_classes_ == 0]
        np.testing.assert_allclose(np.abs(mine[:, 0]), 1, atol=1e-6)

    def test_rounding_breaks_no_tie(self, name, flowers):
        X, y = flowers
        model = MAKERS[name]().fit(X, y)
        model.coef_ = np.zeros_like(model.coef_)
        model.coef_[2], model.coef_[0] = 1e-18, -1.0
        codes = model.transform(X).toarray().sum(axis=1)
        wanted = np.where(codes > 0, 1, 0)  # the second and third are alike: the second
        np.testing.assert_array_equal(model.predict(X), wanted)
        np.testing.assert_array_equal(model.predict_proba(X).argmax(axis=1), wanted)

    def test_sizes(self, name, flowers):
        X, y = flowers
        with pytest.raises(ValueError, match=r"n_atoms=2 .* ask for 3 or more"):
            MAKERS[name]().set_params(n_atoms=2).fit(X, y)
        with pytest.warns(UserWarning, match=r"n_atoms=100 is more than there are rows \(60\)"):
            assert MAKERS[name]().set_params(n_atoms=100).fit(X, y).n_atoms_ == 60
        with pytest.warns(UserWarning, match=r"n_nonzero_coefs=11 is more than .*\(10\)"):
            model = MAKERS[name]().set_params(n_nonzero_coefs=11).fit(X, y)
        assert model.n_nonzero_coefs_ == 10
        assert MAKERS[name]().set_params(n_atoms=None).fit(X, y).n_atoms_ == 20
        model = MAKERS[name]().set_params(n_nonzero_coefs=None).fit(X, y)
        assert model.n_nonzero_coefs_ == 1

    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"label_weight": -1}, "label_weight must be at least 0"),
            ({"label_weight": float("inf")}, "label_weight must be at least 0 and finite"),
            ({"ridge": 0}, "ridge must be above 0"),
            ({"n_atoms": 0}, "n_atoms must be at least 1"),
            ({"n_nonzero_coefs": 0}, "n_nonzero_coefs must be at least 1"),
            ({"init_max_iter": 0}, "init_max_iter must be at least 1"),
            ({"max_iter": 0}, "max_iter must be at least 1"),
            ({"tol": -1}, "tol must be at least 0"),
        ],
    )
    def test_bad_parameters(self, name, parameters, message, flowers):
        with pytest.raises(ValueError, match=message):
            MAKERS[name]().set_params(**parameters).fit(*flowers)


class TestTermsOfNoWeight:
    """Each method is another's without one of its terms."""

    def test_lc2_without_consistency_is_dksvd(self, flowers):
        one = MAKERS["LC-KSVD2"](consistency_weight=0.0, label_weight=0.4).fit(*flowers)
        other = MAKERS["D-KSVD"](label_weight=0.4).fit(*flowers)
        np.testing.assert_array_equal(one.components_, other.components_)
        np.testing.assert_array_equal(one.coef_, other.coef_)

    def test_lc2_without_labels_is_lc1(self, flowers):
        one = MAKERS["LC-KSVD2"](label_weight=0.0).fit(*flowers)
        other = MAKERS["LC-KSVD1"]().fit(*flowers)
        np.testing.assert_array_equal(one.components_, other.components_)
        np.testing.assert_array_equal(one.coef_, other.coef_)

    def test_with_equal_classes_lc2_is_dksvd_of_all_weight(self, flowers):
        """Four atoms per class: 4 x 0.1 + 0.2."""
        one = MAKERS["LC-KSVD2"](consistency_weight=0.1, label_weight=0.2).fit(*flowers)
        other = MAKERS["D-KSVD"](label_weight=0.6).fit(*flowers)
        np.testing.assert_allclose(one.components_, other.components_, atol=1e-8)
        np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-7)

    @pytest.mark.parametrize("name", ["D-KSVD", "LC-KSVD1"])
    def test_without_any_it_is_ksvd_and_ridge(self, name, flowers):
        X, y = flowers
        no_terms = {"label_weight": 0.0} if name == "D-KSVD" else {"consistency_weight": 0.0}
        model = MAKERS[name](ridge=0.3, init_max_iter=1, tol=0, **no_terms).fit(X, y)
        energy = np.mean(np.sum(X**2, axis=1))
        theta = ridge_map(model.transform(X).toarray(), y, 0.3 * energy)
        np.testing.assert_allclose(model.coef_, theta, atol=1e-10)
        left = X - model.transform(X) @ model.components_
        # Signals alone: coded afresh, much as the best pass left them.
        assert np.sum(left**2) == pytest.approx(model.objective_.min(), rel=0.1)

    def test_ridge_is_where_the_map_starts(self, flowers):
        one, other = (MAKERS["LC-KSVD2"](ridge=r).fit(*flowers) for r in (0.01, 10))
        assert np.abs(one.coef_ - other.coef_).max() > 1e-3

    @pytest.mark.parametrize("variant", [0, 3, "2", True])
    def test_other_variants(self, variant, flowers):
        with pytest.raises(ValueError, match="variant must be 1 or 2"):
            LCKSVDClassifier(variant=variant).fit(*flowers)

    def test_bad_consistency(self, flowers):
        with pytest.raises(ValueError, match="consistency_weight must be at least 0"):
            LCKSVDClassifier(consistency_weight=-1).fit(*flowers)


@fisher
class TestFisher:
    def test_the_objective_is_real_and_does_not_rise(self, name, flowers):
        X, y = flowers
        model = MAKERS[name](tol=0).set_params(max_iter=6).fit(X, y)
        assert len(model.objective_) == 6
        assert (np.diff(model.objective_) <= 1e-9 * model.objective_[0]).all()
        assert model.objective_[-1] < model.objective_[0]

    def test_classes_start_by_themselves(self, name, flowers):
        """One pass from there reaches what k-means centres take more for."""
        X, y = flowers
        first, plain = (MAKERS[name](init_max_iter=n, tol=0).fit(X, y) for n in (10, 0))
        assert first.objective_[0] < plain.objective_[0]

    def test_missing_values_are_refused(self, name, flowers):
        X, y = flowers
        model = MAKERS[name]().fit(X, y)
        X = X.copy()
        X[0, 0] = np.nan
        for use in (model.predict, model.transform, lambda Z: clone(model).fit(Z, y)):
            with pytest.raises(ValueError, match="NaN"):
                use(X)

    def test_sizes(self, name, flowers):
        X, y = flowers
        with pytest.warns(UserWarning, match="n_atoms_per_class=50 .* smallest class"):
            model = MAKERS[name]().set_params(n_atoms_per_class=50).fit(X, y)
        assert model.n_atoms_ == 60
        assert MAKERS[name]().set_params(n_atoms_per_class=None).fit(X, y).n_atoms_ == 30

    def test_rows_that_repeat(self, name):
        """Fewer different rows than atoms per class."""
        X = np.repeat(np.eye(4), 10, axis=0)
        y = np.repeat([0, 0, 1, 1], 10)
        assert MAKERS[name]().fit(X, y).score(X, y) == 1

    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"l1_weight": 0}, "l1_weight must be above 0"),
            ({"fisher_weight": -1}, "fisher_weight must be at least 0"),
            ({"convexity": 0.5}, "convexity must be at least 1"),
            ({"mean_weight": -1}, "mean_weight must be at least 0"),
            ({"decision": "both"}, "decision must be one of 'local', 'global'"),
            ({"n_atoms_per_class": 0}, "n_atoms_per_class must be at least 1"),
            ({"max_iter": 0}, "max_iter must be at least 1"),
            ({"init_max_iter": -1}, "init_max_iter must be at least 0"),
        ],
    )
    def test_bad_parameters(self, name, parameters, message, flowers):
        with pytest.raises(ValueError, match=message):
            MAKERS[name]().set_params(**parameters).fit(*flowers)

    @pytest.mark.parametrize("parameters", [{"fisher_weight": 0.0}, {"mean_weight": 0.0}])
    def test_terms_of_no_weight(self, name, parameters, flowers):
        X, y = flowers
        assert MAKERS[name](**parameters).fit(X, y).score(X, y) > 0.8


class TestFisherDecisions:
    def test_local_values(self, flowers):
        """The share of a class is 1 / e over the sum, e the least value over its own atoms."""
        X, y = flowers
        model = MAKERS["FDDL"](fisher_weight=0.05).fit(X, y)
        for row in X[:5]:
            left = [
                local_value(
                    row, model.components_[own].T, model.mean_codes_[c, own], model.l1_weight_, 0.05
                )
                for c, own in ((c, model.atom_classes_ == c) for c in range(3))
            ]
            wanted = (1 / np.array(left)) / np.sum(1 / np.array(left))
            np.testing.assert_allclose(model.predict_proba(row[None])[0], wanted, rtol=1e-4)

    def test_global_values(self, flowers):
        X, y = flowers
        model = MAKERS["FDDL global"](mean_weight=0.7).fit(X, y)
        codes = model.transform(X).toarray()
        left = np.empty((60, 3))
        for c in range(3):
            own = model.atom_classes_ == c
            part = X - codes[:, own] @ model.components_[own]
            apart = codes - model.mean_codes_[c]
            left[:, c] = np.sum(part**2, axis=1) + 0.7 * np.sum(apart**2, axis=1)
        wanted = (1 / left) / np.sum(1 / left, axis=1, keepdims=True)
        np.testing.assert_allclose(model.predict_proba(X), wanted, rtol=1e-6)

    def test_the_means_count_as_much_as_they_say(self, flowers):
        assert FDDLClassifier(fisher_weight=0.3)._mean_weight == 0.3
        assert FDDLClassifier(fisher_weight=0.3, decision="global")._mean_weight == 0.5
        assert FDDLClassifier(mean_weight=0.1, decision="global")._mean_weight == 0.1

    def test_mean_codes_and_objective_are_those_of_the_training_rows(self, flowers):
        """Codes of least J over the atoms that were learned, by an independent way, agree."""
        from oracles.supervised import fisher_codes

        X, y = flowers
        model = MAKERS["FDDL"](l1_weight=0.3, fisher_weight=0.01).fit(X, y)
        l1 = 0.3 * np.sqrt(np.mean(np.sum(X**2, axis=1)))
        assert model.l1_weight_ == pytest.approx(l1)
        parts = (X.T, y, model.components_.T, model.atom_classes_)
        far = fisher_codes(*parts, l1, 0.01, 1.0, 5000)
        means = np.stack([far[:, y == c].mean(axis=1) for c in range(3)])
        # Rounds of coding end where they bring 1e-4 of the objective.
        np.testing.assert_allclose(model.mean_codes_, means, atol=0.05 * np.abs(means).max())
        best = fisher_objective(*parts, far, l1, 0.01, 1.0)
        assert model.objective_[-1] == pytest.approx(best, rel=1e-3)


class TestMakeLKDL:
    def test_steps(self):
        model = make_lkdl(DKSVDClassifier(), "poly", degree=2, unit_rows=True, n_landmarks=0.2)
        assert list(model.named_steps) == ["scale", "map", "learn"]
        assert model["map"].get_params()["degree"] == 2
        assert model["map"].n_landmarks == 0.2
        assert list(make_lkdl(KSVD()).named_steps) == ["map", "learn"]

    def test_all_rows_and_a_linear_kernel_change_nothing(self, flowers):
        """Virtual samples of the linear kernel are the rows, turned: the same model."""
        X, y = flowers
        plain = MAKERS["LC-KSVD2"]().fit(X, y)
        mapped = make_lkdl(MAKERS["LC-KSVD2"](), "linear", n_landmarks=60).fit(X, y)
        np.testing.assert_allclose(mapped[-1].objective_, plain.objective_, rtol=1e-5)
        np.testing.assert_array_equal(mapped.predict(X), plain.predict(X))

    def test_the_learner_is_cloned(self):
        learner = DKSVDClassifier()
        assert make_lkdl(learner)["learn"] is not learner

    def test_any_learner_of_rows(self, flowers):
        X, y = flowers
        assert make_lkdl(RidgeClassifier(), gamma=0.1).fit(X, y).score(X, y) > 0.8
        codes = make_lkdl(DictionaryLearning(5, max_iter=2), n_landmarks=9).fit_transform(X)
        assert codes.shape == (60, 5)

    @pytest.mark.parametrize(
        ("arguments", "options", "message"),
        [
            ((KSVD,), {}, "learner must be an estimator"),
            (("KSVD",), {}, "learner must be an estimator"),
            ((KSVD(),), {"n_atoms": 3}, "n_atoms is no parameter of KernelLinearizer"),
            ((KSVD(),), {"unit_rows": 1}, "unit_rows must be True or False"),
        ],
    )
    def test_bad_arguments(self, arguments, options, message):
        with pytest.raises(TypeError, match=message):
            make_lkdl(*arguments, **options)

    def test_on_sparse_codes(self):
        """The paper's last idea: a kernel of the codes, not of the signals."""
        X, y = load_digits(return_X_y=True)
        coder = KSVD(100, n_nonzero_coefs=6, max_iter=5, sparse_output=False, random_state=0)
        learner = DKSVDClassifier(100, n_nonzero_coefs=6, random_state=0)
        mapped = make_lkdl(learner, gamma=0.3, unit_rows=True, random_state=0)
        linear, kernel = (
            make_pipeline(Normalizer(), clone(coder), last).fit(X[:600], y[:600])
            for last in (learner, mapped)
        )
        scores = [model.score(X[600:1200], y[600:1200]) for model in (linear, kernel)]
        assert min(scores) > 0.8


@pytest.mark.slow
def test_digits_with_and_without_a_kernel_map():
    X, y = load_digits(return_X_y=True)
    X = Normalizer().fit_transform(X)
    plain = LCKSVDClassifier(200, n_nonzero_coefs=8, random_state=0)
    mapped = make_pipeline(KernelLinearizer("rbf", gamma=0.5, random_state=0), clone(plain))
    scores = [m.fit(X[:900], y[:900]).score(X[900:], y[900:]) for m in (plain, mapped)]
    assert min(scores) > 0.9


class TestWeightsOfClasses:
    @pytest.mark.parametrize("name", ["D-KSVD", "LC-KSVD1", "LC-KSVD2"])
    def test_whole_weights_are_repeated_rows(self, name, flowers, monkeypatch):
        """From the same start: atoms are shared out and drawn by rows, which are not the same."""
        X, y = flowers
        start = X[np.r_[0:4, 20:24, 40:44]]
        start = start / np.linalg.norm(start, axis=1, keepdims=True)
        module = "kernelatoms.estimators.classifiers.supervised"
        monkeypatch.setattr(f"{module}.class_atoms", lambda *args, **options: start.copy())
        monkeypatch.setattr(f"{module}.allocate_atoms", lambda n_atoms, sizes: np.array([4, 4, 4]))
        weight = {0: 1, 1: 2, 2: 5}
        often = np.array([weight[label] for label in y.tolist()])
        repeated = MAKERS[name]().fit(np.repeat(X, often, axis=0), np.repeat(y, often))
        weighted = MAKERS[name]().set_params(class_weight=weight).fit(X, y)
        plain = MAKERS[name]().fit(X, y)
        np.testing.assert_allclose(weighted.objective_, repeated.objective_, rtol=1e-9)
        np.testing.assert_allclose(weighted.components_, repeated.components_, atol=1e-7)
        np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-7)
        assert np.abs(weighted.coef_ - plain.coef_).max() > 1e-3

    @pytest.mark.parametrize("name", ["D-KSVD", "LC-KSVD1", "LC-KSVD2"])
    def test_equal_weights_change_nothing(self, name, flowers):
        X, y = flowers
        plain = MAKERS[name]().fit(X, y)
        balanced = MAKERS[name]().set_params(class_weight="balanced").fit(X, y)  # as they are
        np.testing.assert_allclose(balanced.coef_, plain.coef_, rtol=1e-12)

    def test_balanced_weights_find_the_rare_class(self, rng):
        X = rng.standard_normal((330, 6)) + np.repeat([[1.2], [0.0]], [30, 300], axis=0)
        y = np.repeat(["rare", "usual"], [30, 300])
        found = {}
        for weight in (None, "balanced"):
            model = DKSVDClassifier(20, n_nonzero_coefs=6, class_weight=weight, random_state=0)
            found[weight] = np.mean(model.fit(X, y).predict(X[:30]) == "rare")
        assert found["balanced"] > found[None]

    def test_what_is_refused(self, flowers, tmp_path):
        X, y = flowers
        for given, words in (
            ({7: 2}, "class 7, which is not in y; it has 0, 1, 2"),
            ({0: -1}, r"class_weight\[0\] must be above 0"),
            ("even", "class_weight must be None, 'balanced' or a dict"),
        ):
            with pytest.raises(ValueError, match=words):
                DKSVDClassifier(class_weight=given).fit(X, y)
        model = MAKERS["D-KSVD"]().set_params(class_weight={0: 2.0, 2: 0.5}).fit(X, y)
        again, _ = load_model(save_model(model, tmp_path / "model.skops"))
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        assert again.class_weight == {0: 2.0, 2: 0.5}
