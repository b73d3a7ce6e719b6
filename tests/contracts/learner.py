"""What dictionary learners must do: every one, those with greedy codes, those over rows."""

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


class StopAfterTwo:
    """A callback that looks at every pass, and stops after the second."""

    def __init__(self, look):
        self.look, self.seen = look, []

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context, *, metadata, fitted_estimator):
        if context.task_name == "pass":
            self.seen.append(metadata["objective"])
            self.look(fitted_estimator)
        return len(self.seen) == 2


class LearnerContract:
    """Subclasses give ``make(**parameters)``; ``one_atom`` are parameters for very sparse codes."""

    one_atom: dict

    def make(self, **parameters):
        raise NotImplementedError

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_dtype_stays(self, dtype, rng):
        X = rng.standard_normal((50, 6)).astype(dtype)
        learner = self.make(n_atoms=9, max_iter=2, random_state=0).fit(X)
        assert learner.components_.dtype == dtype
        assert learner.components_.shape == (9, 6)
        codes = learner.transform(X)
        assert codes.dtype == dtype
        assert learner.inverse_transform(codes).dtype == dtype
        assert len(learner.objective_) == learner.n_iter_ == 2
        assert np.isfinite(learner.objective_).all()

    def test_float32_is_near_float64(self, rng):
        """After one pass with one atom per signal, in most of seven sets of signals.

        Rounding may break a tie between two atoms, after which all may differ. With 60 signals and
        10 atoms one set in about 200 has a tie within 1e-5: four of seven, one try in 10 million.
        """
        runs = {"n_atoms": 10, "max_iter": 1, "random_state": 0, **self.one_atom}
        apart = []
        for X in rng.standard_normal((7, 60, 12)).astype(np.float32):
            single = self.make(**runs).fit(X).objective_
            double = self.make(**runs).fit(X.astype(np.float64)).objective_
            apart.append(abs(single[-1] / double[-1] - 1))
        assert np.median(apart) < 1e-4

    def test_same_seed_same_dictionary(self, rng):
        X = rng.standard_normal((60, 8))
        one, two, other = (
            self.make(n_atoms=12, max_iter=3, random_state=seed).fit(X).components_
            for seed in (3, 3, 4)
        )
        np.testing.assert_array_equal(one, two)
        assert (one != other).any()

    def test_tol_stops_early(self, rng):
        X = rng.standard_normal((100, 10))
        assert self.make(n_atoms=20, max_iter=50, tol=0.9, random_state=0).fit(X).n_iter_ == 4

    def test_the_best_pass_is_named_and_kept(self, rng):
        """``objective_`` is what every pass reached; the atoms are those of the lowest."""
        X = rng.standard_normal((60, 8))
        runs = {"n_atoms": 16, "tol": 0, "random_state": 0}
        learner = self.make(max_iter=8, **runs).fit(X)
        best = learner.best_pass_
        assert best < len(learner.objective_) == learner.n_iter_ <= 8
        assert learner.objective_[best] == learner.objective_.min()
        shorter = self.make(max_iter=int(best) + 1, **runs).fit(X)
        np.testing.assert_allclose(shorter.components_, learner.components_, atol=1e-10)
        np.testing.assert_allclose(shorter.objective_, learner.objective_[: best + 1])

    def test_codes_have_a_column_per_atom(self, rng):
        X = rng.standard_normal((40, 8))
        learner = self.make(n_atoms=16, max_iter=2, random_state=0).fit(X)
        codes = learner.transform(X)
        assert codes.shape == (40, 16) == (40, learner.n_atoms_)
        assert codes.format == "csr"
        assert codes.has_canonical_format
        assert learner.inverse_transform(codes).shape == X.shape
        dense = learner.set_params(sparse_output=False).transform(X)
        np.testing.assert_array_equal(dense, codes.toarray())
        one_by_one = np.concatenate([learner.transform(x[None]) for x in X])
        np.testing.assert_allclose(one_by_one, dense, atol=1e-6)

    def test_callbacks_follow_the_passes_and_can_stop(self, rng):
        X = rng.standard_normal((60, 8))

        def look(fitted):
            assert fitted.transform(X).shape == (60, 12)

        callback = StopAfterTwo(look)
        learner = self.make(n_atoms=12, max_iter=9, tol=0, random_state=0)
        learner.set_callbacks(callback).fit(X)
        assert learner.n_iter_ == 2
        np.testing.assert_allclose(learner.objective_, callback.seen, rtol=1e-12)

    @pytest.mark.parametrize(
        ("parameters", "error", "message"),
        [
            ({"n_atoms": 0}, ValueError, "n_atoms must be at least 1, got 0"),
            ({"n_atoms": 2.5}, ValueError, "n_atoms must be a whole number, or a share"),
            ({"max_iter": 0}, ValueError, "max_iter must be at least 1"),
            ({"tol": -1}, ValueError, "tol must be at least 0"),
            ({"tol": "small"}, TypeError, "tol must be a number"),
        ],
    )
    def test_bad_parameters_are_named(self, parameters, error, message):
        with pytest.raises(error, match=message):
            self.make(**parameters).fit(np.random.default_rng(0).standard_normal((20, 4)))

    def test_too_many_atoms_are_clipped_with_one_warning(self, rng):
        X = rng.standard_normal((20, 4))
        message = r"n_atoms=99 is more than there are rows \(20\)"
        with pytest.warns(UserWarning, match=message) as warned:
            learner = self.make(n_atoms=99, max_iter=2).fit(X)
        assert len(warned) == 1
        assert learner.n_atoms_ == 20

    def test_bad_signals_are_refused(self, rng):
        X = rng.standard_normal((20, 4))
        infinite = X.copy()
        infinite[3, 2] = np.inf
        with pytest.raises(ValueError, match="infinity"):
            self.make().fit(infinite)
        learner = self.make(n_atoms=8, max_iter=2).fit(X)
        with pytest.raises(ValueError, match="infinity"):
            learner.transform(infinite)
        with pytest.raises(ValueError, match="3 features"):
            learner.transform(X[:, :3])
        with pytest.raises(ValueError, match="one column for each of the 8 atoms"):
            learner.inverse_transform(np.ones((2, 3)))

    def test_equal_signals_do_no_harm(self, rng):
        X = np.repeat(rng.standard_normal((2, 4)), 6, axis=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            learner = self.make(n_atoms=5, max_iter=4, random_state=0).fit(X)
        assert np.isfinite(learner.components_).all()
        assert np.isfinite(learner.transform(X).data).all()
        assert np.isfinite(learner.objective_).all()


class GreedyLearnerContract(LearnerContract):
    """Those whose codes have a bounded number of nonzeros: OMP and OLS."""

    one_atom = {"n_nonzero_coefs": 1}  # noqa: RUF012

    @pytest.mark.parametrize("selection", ["omp", "ols"])
    def test_codes_use_no_more_atoms_than_allowed(self, selection, rng):
        X = rng.standard_normal((60, 9))
        learner = self.make(
            n_atoms=14, n_nonzero_coefs=3, selection=selection, max_iter=2, random_state=0
        ).fit(X)
        assert learner.n_nonzero_coefs_ == 3
        counts = np.diff(learner.transform(X).indptr)
        assert counts.max() == 3

    @pytest.mark.parametrize(
        ("parameters", "error", "message"),
        [
            ({"n_nonzero_coefs": -1}, ValueError, "n_nonzero_coefs must be at least 1"),
            ({"n_nonzero_coefs": 1.5}, TypeError, "n_nonzero_coefs must be a whole number"),
            ({"selection": "best"}, ValueError, "selection must be one of 'omp', 'ols'"),
        ],
    )
    def test_bad_greedy_parameters_are_named(self, parameters, error, message):
        with pytest.raises(error, match=message):
            self.make(**parameters).fit(np.random.default_rng(0).standard_normal((20, 4)))

    def test_too_many_nonzeros_are_clipped_with_one_warning(self, rng):
        X = rng.standard_normal((20, 4))
        message = "n_nonzero_coefs=50 is more than"
        with pytest.warns(UserWarning, match=message) as warned:
            learner = self.make(n_atoms=8, n_nonzero_coefs=50, max_iter=2).fit(X)
        assert len(warned) == 1
        assert learner.n_nonzero_coefs_ <= 8


class LinearLearnerContract(GreedyLearnerContract):
    """Those over rows: atoms of unit norm, that can be given and gone on from."""

    # Every learner inherits this test: that is the point, and no database is replayed.
    @settings(suppress_health_check=[HealthCheck.differing_executors])
    @given(
        seed=st.integers(0, 2**31),
        n_samples=st.integers(5, 60),
        n_features=st.integers(2, 25),
        n_atoms=st.integers(2, 30),
        n_nonzero=st.integers(1, 5),
        selection=st.sampled_from(["omp", "ols"]),
        dtype=st.sampled_from([np.float32, np.float64]),
    )
    def test_atoms_are_unit_vectors_and_objectives_are_errors_of_codes(
        self, seed, n_samples, n_features, n_atoms, n_nonzero, selection, dtype
    ):
        X = np.random.default_rng(seed).standard_normal((n_samples, n_features)).astype(dtype)
        n_atoms = min(n_atoms, n_samples)
        n_nonzero = min(n_nonzero, n_atoms, n_features)
        learner = self.make(
            n_atoms=n_atoms, n_nonzero_coefs=n_nonzero, selection=selection, max_iter=8, tol=0,
            random_state=seed,
        ).fit(X)  # fmt: skip
        energy = float(np.vdot(X, X))
        floor = 50 * np.finfo(dtype).eps * energy
        assert (learner.objective_ >= -floor).all()
        assert (learner.objective_ <= energy + floor).all()
        assert learner.components_.dtype == dtype
        norms = np.linalg.norm(learner.components_, axis=1)
        np.testing.assert_allclose(norms, 1, atol=1e-4)

    def test_objective_is_the_error_of_some_sparse_codes(self, rng):
        """An update for codes of these atoms cannot leave more than the codes themselves."""
        X = rng.standard_normal((80, 10))
        start = rng.standard_normal((15, 10))
        start /= np.linalg.norm(start, axis=1, keepdims=True)
        options = {"n_nonzero_coefs": 3, "max_iter": 1, "dict_init": start}
        learner = self.make(**options).fit(X)
        over_start = self.make(**options).fit(X)
        over_start.components_ = start
        back = over_start.inverse_transform(over_start.transform(X))
        coded = float(((X - back) ** 2).sum())
        assert 0 < learner.objective_[0] <= coded * (1 + 1e-9)

    def test_generating_atoms_are_found(self):
        """Most of them: local minima with two atoms in one place are the field's common lot."""
        found = []
        for seed in range(8):
            rng = np.random.default_rng(seed)
            atoms = rng.standard_normal((12, 20))
            atoms /= np.linalg.norm(atoms, axis=1, keepdims=True)
            W = np.zeros((1000, 12))
            for row in W:
                row[rng.permutation(12)[:2]] = rng.standard_normal(2)
            learner = self.make(
                n_atoms=12, n_nonzero_coefs=2, max_iter=60, tol=0, random_state=seed
            )
            learner.fit(W @ atoms)
            found.append((np.abs(learner.components_ @ atoms.T).max(axis=0) > 0.99).mean())
        assert np.mean(found) > 0.8

    def test_unused_atoms_become_signals(self, rng):
        X = np.abs(rng.standard_normal((50, 6)))
        # A copy of an atom ties with it everywhere and is never picked.
        start = np.concatenate([X[:5], X[4:5]])
        learner = self.make(n_nonzero_coefs=1, max_iter=1, dict_init=start).fit(X)
        unit = X / np.linalg.norm(X, axis=1, keepdims=True)
        assert (np.abs(learner.components_[5] - unit).max(axis=1) < 1e-12).any()

    def test_warm_start_goes_on_where_it_stopped(self, rng):
        X = rng.standard_normal((100, 10))
        options = {"n_atoms": 20, "tol": 0, "random_state": 0}
        learner = self.make(max_iter=3, warm_start=True, **options).fit(X).fit(X)
        whole = self.make(max_iter=6, **options).fit(X)
        np.testing.assert_array_equal(learner.components_, whole.components_)
        np.testing.assert_array_equal(learner.objective_, whole.objective_)

    def test_as_many_atoms_as_features_give_signals_back(self, rng):
        X = rng.standard_normal((40, 8))
        learner = self.make(n_atoms=16, n_nonzero_coefs=8, max_iter=3, random_state=0).fit(X)
        back = learner.inverse_transform(learner.transform(X))
        np.testing.assert_allclose(back, X, atol=1e-6)

    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"dict_init": np.eye(3)}, "dict_init must have one column per feature"),
            ({"n_atoms": 3, "dict_init": np.eye(4)}, "n_atoms=3, but dict_init has 4"),
            ({"dict_init": np.full((2, 4), np.nan)}, "dict_init contains NaN"),
        ],
    )
    def test_bad_atoms_to_start_from_are_named(self, parameters, message):
        with pytest.raises(ValueError, match=message):
            self.make(**parameters).fit(np.random.default_rng(0).standard_normal((20, 4)))

    def test_zero_and_constant_signals_are_coded_without_error(self):
        X = np.zeros((10, 4))
        learner = self.make(n_atoms=3).fit(X)
        assert learner.objective_[-1] == 0
        assert learner.transform(X).nnz == 0
        learner = self.make(n_atoms=3).fit(np.ones((10, 4)))
        assert learner.objective_[-1] < 1e-20
