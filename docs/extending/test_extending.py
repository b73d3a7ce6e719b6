"""The worked examples keep the contracts that they claim to keep."""

import copy
import importlib.util
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest
from cauchy import Cauchy
from coordinate import CoordinateDescent, CoordinateUpdate
from farthest import farthest_point
from hypothesis import given
from hypothesis import strategies as st
from intersection import intersection
from shifted import Shifted
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator
from subspace import SubspaceClassifier
from threshold import Threshold, ThresholdKSVD

from answers import DATA, answers, attributes, fitted, same
from contracts.distance import DistanceContract
from contracts.kernel import KernelContract
from contracts.learner import LinearLearnerContract
from kernelatoms import ClassDictionaryClassifier, KernelLinearizer, load_model, save_model
from kernelatoms.coding import omp
from kernelatoms.coding.problem import GivenProblem, KernelProblem, LinearProblem
from kernelatoms.estimators.registry import ESTIMATORS, Entry, load, types
from kernelatoms.features.expansion import Expansion
from kernelatoms.features.samplers import SAMPLERS
from kernelatoms.learning.ksvd import KSVDUpdate
from kernelatoms.learning.loop import learn
from kernelatoms.learning.state import LearnerState, unit_rows
from kernelatoms.similarity import make_kernel

RBF = make_kernel("rbf", gamma=0.5)
ROW = Entry(
    "estimators.classifiers.subspace", "class dictionaries",
    "one subspace per class, the nearest one decides", {"n_components": 2},
    ({"n_components": 1}, {"along": 0.5}),
)  # fmt: skip
# Of repeated rows, learners start from others than of weighted ones.
RANDOM_START = dict.fromkeys(
    [f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")],
    "atoms start from random rows",
)


class TestIntersection(KernelContract):
    def make(self):
        return make_kernel(intersection)

    def test_is_the_textbooks(self, rng):
        X, Y = rng.random((6, 4)), rng.random((5, 4))
        naive = [[sum(np.minimum(x, y)) for y in Y] for x in X]
        np.testing.assert_allclose(intersection(X, Y), naive)

    def test_has_no_negative_eigenvalues(self, rng):
        X = rng.random((30, 4))
        assert np.linalg.eigvalsh(intersection(X, X)).min() > -1e-12


class TestCauchy(KernelContract):
    def make(self):
        return make_kernel(Cauchy(gamma=0.7))

    def test_is_the_textbooks(self, rng):
        X, Y = rng.random((6, 4)), rng.random((5, 4))
        naive = [[1 / (1 + 0.7 * sum((x - y) ** 2)) for y in Y] for x in X]
        np.testing.assert_allclose(self.make()(X, Y), naive)


class TestShifted(DistanceContract):
    def make(self):
        return Shifted()

    def test_is_the_textbooks(self, rng):
        X, Y = rng.random((6, 7)), rng.random((5, 7))
        naive = [[min(np.linalg.norm(x - np.roll(y, s)) for s in range(7)) for y in Y] for x in X]
        np.testing.assert_allclose(self.between(X, Y), naive)

    def test_shifts_cost_nothing(self, rng):
        X = rng.random((6, 7))
        np.testing.assert_allclose(np.diagonal(self.between(X, np.roll(X, 2, 1))), 0, atol=1e-7)


class TestFarthestPoint:
    def naive(self, X, first, n):
        """All distances in feature space, from scratch at every step."""
        K = RBF(X, X)
        D = np.add.outer(np.diag(K), np.diag(K)) - 2 * K
        chosen = [first]
        while len(chosen) < n:
            chosen.append(int(np.argmax(D[:, chosen].min(axis=1))))
        return X[np.sort(chosen)]

    def test_is_the_textbooks(self, rng):
        X = rng.standard_normal((60, 3))
        landmarks = farthest_point(X, RBF, 12, np.random.RandomState(3))
        first = np.random.RandomState(3).randint(60)
        np.testing.assert_array_equal(landmarks, self.naive(X, first, 12))

    def test_landmarks_are_different_rows_even_of_equal_ones(self):
        landmarks = farthest_point(np.zeros((9, 2)), RBF, 9, np.random.RandomState(0))
        assert landmarks.shape == (9, 2)

    def test_a_precomputed_kernel_is_enough(self, rng):
        X = rng.standard_normal((40, 3))
        numbers = farthest_point(RBF(X, X), make_kernel("precomputed"), 8, np.random.RandomState(0))
        rows = farthest_point(X, RBF, 8, np.random.RandomState(0))
        np.testing.assert_array_equal(X[numbers[:, 0]], rows)

    def test_a_row_in_the_table_is_a_sampling(self, rng, monkeypatch):
        monkeypatch.setitem(SAMPLERS, "farthest", farthest_point)
        X = rng.standard_normal((50, 3))
        linearizer = KernelLinearizer("rbf", sampling="farthest", n_landmarks=10).fit(X)
        assert linearizer.landmarks_.shape == (10, 3)


class TestThreshold:
    def naive(self, x, D, n_nonzero):
        """One signal at a time, least squares from scratch."""
        scores = np.abs(D @ x) / np.linalg.norm(D, axis=1)
        support = np.sort(np.argsort(-scores)[:n_nonzero])
        code = np.zeros(len(D))
        code[support] = np.linalg.lstsq(D[support].T, x, rcond=None)[0]
        return code

    @given(
        seed=st.integers(0, 2**31),
        n_features=st.integers(3, 20),
        n_atoms=st.integers(2, 40),
        n_nonzero=st.integers(1, 5),
    )
    def test_is_the_textbooks(self, seed, n_features, n_atoms, n_nonzero):
        rng = np.random.default_rng(seed)
        X, D = rng.standard_normal((15, n_features)), rng.standard_normal((n_atoms, n_features))
        n_nonzero = min(n_nonzero, n_atoms, n_features)
        codes = Threshold(n_nonzero)(LinearProblem(X, D))
        naive = np.array([self.naive(x, D, n_nonzero) for x in X])
        dense = codes.to_dense()
        np.testing.assert_allclose(dense @ D, naive @ D, atol=1e-6)
        np.testing.assert_array_equal(dense != 0, naive != 0)
        np.testing.assert_allclose(codes.error, ((X - dense @ D) ** 2).sum(axis=1), atol=1e-6)

    def test_on_orthogonal_atoms_it_is_omp(self, rng):
        X, D = rng.standard_normal((30, 8)), np.linalg.qr(rng.standard_normal((8, 8)))[0]
        one, two = Threshold(3)(LinearProblem(X, D)), omp(LinearProblem(X, D), 3)
        np.testing.assert_allclose(one.to_dense(), two.to_dense(), atol=1e-10)

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_any_problem_will_do(self, rng, dtype):
        X, D = (rng.standard_normal((n, 6)).astype(dtype) for n in (20, 12))
        linear = Threshold(3)(LinearProblem(X, D))
        kernel = Threshold(3)(KernelProblem(X, Expansion(make_kernel("linear"), D)))
        given = Threshold(3)(GivenProblem(D @ D.T, X @ D.T))
        for codes in (kernel, given):
            assert codes.values.dtype == dtype
            np.testing.assert_allclose(codes.to_dense(), linear.to_dense(), atol=1e-3)
        energy = np.vecdot(X, X)
        np.testing.assert_allclose(given.error + energy, linear.error, atol=1e-3)

    def test_equal_atoms_do_no_harm(self, rng):
        X, D = rng.standard_normal((5, 6)), unit_rows(rng.standard_normal((4, 6)))
        codes = Threshold(4)(LinearProblem(X, np.concatenate([D, D])))
        assert np.isfinite(codes.values).all()
        assert (codes.error <= np.vecdot(X, X)).all()

    def test_missing_values_are_refused_in_words(self, rng):
        X, D = rng.standard_normal((5, 6)), rng.standard_normal((8, 6))
        X[2, 3] = np.nan
        with pytest.raises(ValueError, match="complete signals"):
            Threshold(2)(LinearProblem(X, D))

    def test_an_update_that_does_not_take_it_says_so(self, rng):
        X = rng.standard_normal((30, 6))
        with pytest.raises(TypeError, match="KSVDUpdate learns from codes by OMP, not by Thresh"):
            learn(
                lambda atoms: LinearProblem(X, atoms), X, Threshold(2), KSVDUpdate(),
                LearnerState.start(unit_rows(X[:8])), max_iter=3, tol=0,
            )  # fmt: skip


class TestThresholdKSVD:
    def test_codes_are_those_of_thresholding(self, rng):
        X = rng.standard_normal((80, 10))
        learner = ThresholdKSVD(n_atoms=15, n_nonzero_coefs=3, random_state=0).fit(X)
        codes = Threshold(3)(LinearProblem(X, learner.components_))
        np.testing.assert_allclose(learner.transform(X).toarray(), codes.to_dense(), atol=1e-10)

    def test_its_update_lowers_the_error_of_its_codes(self, rng):
        X = rng.standard_normal((80, 10))
        start = unit_rows(X[:15])
        before = Threshold(3)(LinearProblem(X, start)).error.sum()
        learner = ThresholdKSVD(n_nonzero_coefs=3, max_iter=10, dict_init=start).fit(X)
        assert learner.objective_[0] < before
        assert learner.objective_[learner.best_pass_] == learner.objective_.min()
        assert learner.score(X) > 1 - before / np.sum(X**2)

    def test_classes_coded_together_are_thresholded_too(self, rng):
        X = np.concatenate([rng.standard_normal((40, 2)) @ np.eye(2, 6, i) for i in (0, 3)])
        y = np.repeat([0, 1], 40)
        learner = ThresholdKSVD(n_atoms=4, n_nonzero_coefs=2)
        for scheme in ("distributive", "collective"):
            model = ClassDictionaryClassifier(learner, scheme=scheme, random_state=0).fit(X, y)
            assert model.score(X, y) > 0.95
        assert isinstance(model.dictionaries_[0]._joint_pursuit(8, None), Threshold)

    def test_is_a_scikit_learn_estimator(self):
        check_estimator(ThresholdKSVD(n_atoms=4), expected_failed_checks=RANDOM_START)


class TestCoordinateDescent(LinearLearnerContract):
    def make(self, **parameters):
        return CoordinateDescent(**parameters)

    def test_is_the_textbooks(self, rng):
        X, D = rng.standard_normal((50, 6)), unit_rows(rng.standard_normal((8, 6)))
        codes = omp(LinearProblem(X, D), 2)
        W, naive = codes.to_dense(), D.copy()
        for j in range(8):
            rest = X - W @ naive + np.outer(W[:, j], naive[j])
            naive[j] = W[:, j] @ rest / (W[:, j] @ W[:, j])
        update = CoordinateUpdate()
        new, objective, *_ = update.solve(update.sums(X, codes, D), D)
        np.testing.assert_allclose(new, unit_rows(naive), atol=1e-10)
        assert objective == pytest.approx(np.sum((X - W @ naive) ** 2))

    def test_is_a_scikit_learn_estimator(self):
        check_estimator(CoordinateDescent(n_atoms=4), expected_failed_checks=RANDOM_START)


class TestSubspaceClassifier:
    """The common tests of the registry, run on one more row."""

    @pytest.fixture
    def registered(self, monkeypatch):
        """Return the class as a file and a row of the library would have it."""
        name = f"kernelatoms.{ROW.module}"
        spec = importlib.util.spec_from_file_location(name, Path(__file__).parent / "subspace.py")
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        monkeypatch.setitem(ESTIMATORS, "SubspaceClassifier", ROW)
        return load("SubspaceClassifier")

    def test_is_the_textbooks(self, rng):
        X, y = rng.standard_normal((40, 6)), np.arange(40) % 3
        naive = []
        for x in rng.standard_normal((20, 6)):
            left = []
            for c in range(3):
                mean = X[y == c].mean(axis=0)
                V = np.linalg.svd(X[y == c] - mean)[2][:2]
                outside = x - mean - V.T @ (V @ (x - mean))
                left.append(sum(outside**2) + 0.3 * sum((V @ (x - mean)) ** 2))
            naive.append((x, np.argmin(left)))
        rows, expected = zip(*naive, strict=True)
        model = SubspaceClassifier(2, along=0.3).fit(X, y)
        np.testing.assert_array_equal(model.predict(np.array(rows)), expected)

    def test_is_a_scikit_learn_estimator(self, registered):
        for parameters in ROW.checked:
            check_estimator(registered(**parameters))

    def test_fitted_anew_it_is_as_fresh(self, registered):
        model = registered(**ROW.small)
        for changes in ({}, *ROW.ways):
            for X, y in DATA:
                fresh = fitted(clone(model).set_params(**changes), X, y)
                fitted(model.set_params(**changes), X, y)
                same(attributes(model), attributes(fresh), changes)
                same(answers(model, X, y), answers(fresh, X, y), changes)
                np.testing.assert_array_equal(model.predict(X), fresh.predict(X))

    def test_a_failed_fit_changes_nothing(self, registered):
        (X, y), (wider, labels) = DATA[1], DATA[-1]
        model = registered(**ROW.small).fit(X, y)
        before = pickle.dumps(copy.deepcopy(model.__getstate__()))
        for bad in (np.full_like(wider, np.nan), wider[:3]):
            with pytest.raises(ValueError, match=r"NaN|inconsistent"):
                model.fit(bad, labels)
            assert pickle.dumps(copy.deepcopy(model.__getstate__())) == before

    def test_a_model_file_gives_the_same_answers(self, registered, tmp_path):
        assert f"kernelatoms.{ROW.module}.SubspaceClassifier" in types()
        X, y = DATA[1]
        model = SubspaceClassifier(**ROW.small).fit(X, y)
        held = ["subspace.SubspaceClassifier"]
        again, _ = load_model(save_model(model, tmp_path / "m.skops"), trusted=held)
        same(attributes(again), attributes(model), held)
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
