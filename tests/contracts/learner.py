"""What every dictionary learner must do."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


class LearnerContract:
    """Subclasses give ``make(**parameters)``."""

    def make(self, **parameters):
        raise NotImplementedError

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
    def test_objective_never_rises(
        self, seed, n_samples, n_features, n_atoms, n_nonzero, selection, dtype
    ):
        X = np.random.default_rng(seed).standard_normal((n_samples, n_features)).astype(dtype)
        n_atoms = min(n_atoms, n_samples)
        n_nonzero = min(n_nonzero, n_atoms, n_features)
        learner = self.make(
            n_atoms=n_atoms, n_nonzero_coefs=n_nonzero, selection=selection, max_iter=8, tol=0,
            random_state=seed,
        ).fit(X)  # fmt: skip
        objective = learner.objective_
        floor = 50 * np.finfo(dtype).eps * float(np.vdot(X, X))
        assert (np.diff(objective) <= floor).all()
        assert learner.components_.dtype == dtype
        norms = np.linalg.norm(learner.components_, axis=1)
        np.testing.assert_allclose(norms, 1, atol=1e-4)

    def test_objective_is_the_error_of_some_sparse_codes(self, rng):
        X = rng.standard_normal((80, 10))
        learner = self.make(n_atoms=15, n_nonzero_coefs=3, max_iter=4, tol=0, random_state=0).fit(X)
        best = self.make(n_atoms=15, n_nonzero_coefs=3, max_iter=1, dict_init=learner.components_)
        coded = best.fit(X).objective_[0]
        assert coded <= learner.objective_[-1] * 1.1
        assert 0 < learner.objective_[-1] < np.vdot(X, X)

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

    def test_same_seed_same_dictionary(self, rng):
        X = rng.standard_normal((60, 8))
        one, two = (self.make(n_atoms=12, random_state=3).fit(X).components_ for _ in range(2))
        np.testing.assert_array_equal(one, two)

    def test_float32_is_near_float64(self, rng):
        X = rng.standard_normal((200, 12))
        runs = {"n_atoms": 20, "n_nonzero_coefs": 3, "max_iter": 3, "tol": 0, "dict_init": X[:20]}
        double = self.make(**runs).fit(X)
        single = self.make(**runs).fit(X.astype(np.float32))
        np.testing.assert_allclose(single.objective_, double.objective_, rtol=0.01)

    def test_unused_atoms_become_signals(self, rng):
        X = np.abs(rng.standard_normal((50, 6)))
        start = np.concatenate([X[:5], [[1, -1, 0, 0, 0, 0]]])
        # Signals of positive entries use an atom like the last one only if nothing fits better.
        learner = self.make(n_nonzero_coefs=1, max_iter=1, dict_init=start).fit(X)
        unit = X / np.linalg.norm(X, axis=1, keepdims=True)
        assert (np.abs(learner.components_[5] - unit).max(axis=1) < 1e-12).any()

    def test_warm_start_goes_on_where_it_stopped(self, rng):
        X = rng.standard_normal((100, 10))
        learner = self.make(n_atoms=20, max_iter=3, tol=0, random_state=0, warm_start=True).fit(X)
        reached = learner.objective_[-1]
        atoms = learner.components_
        learner.fit(X)
        fresh = self.make(n_atoms=20, max_iter=3, tol=0, dict_init=atoms).fit(X)
        np.testing.assert_allclose(learner.components_, fresh.components_)
        assert learner.objective_[-1] < reached

    def test_tol_stops_early(self, rng):
        X = rng.standard_normal((100, 10))
        assert self.make(n_atoms=20, max_iter=50, tol=0.9, random_state=0).fit(X).n_iter_ == 4

    def test_transform_and_back(self, rng):
        X = rng.standard_normal((40, 8))
        learner = self.make(n_atoms=16, n_nonzero_coefs=8, random_state=0).fit(X)
        codes = learner.transform(X)
        assert codes.shape == (40, 16)
        assert codes.format == "csr"
        np.testing.assert_allclose(learner.inverse_transform(codes), X, atol=1e-6)
        dense = learner.set_params(sparse_output=False).transform(X)
        np.testing.assert_array_equal(dense, codes.toarray())

    def test_callbacks_follow_the_passes_and_can_stop(self, rng):
        X = rng.standard_normal((60, 8))
        seen = []

        class StopAfterTwo:
            def setup(self, estimator, context):
                pass

            def teardown(self, estimator, context):
                pass

            def on_fit_task_begin(self, estimator, context):
                pass

            def on_fit_task_end(self, estimator, context, *, metadata, fitted_estimator):
                if context.task_name == "pass":
                    seen.append(metadata["objective"])
                    assert fitted_estimator.transform(X).shape == (60, 12)
                return len(seen) == 2

        learner = self.make(n_atoms=12, max_iter=9, tol=0, random_state=0)
        learner.set_callbacks(StopAfterTwo()).fit(X)
        assert learner.n_iter_ == 2
        np.testing.assert_array_equal(learner.objective_, seen)

    @pytest.mark.parametrize(
        ("parameters", "error", "message"),
        [
            ({"n_atoms": 0}, ValueError, "n_atoms must be at least 1, got 0"),
            (
                {"n_atoms": 2.5},
                ValueError,
                "n_atoms must be a whole number, or a share",
            ),
            ({"n_nonzero_coefs": -1}, ValueError, "n_nonzero_coefs must be at least 1"),
            ({"selection": "best"}, ValueError, "selection must be one of 'omp', 'ols'"),
            ({"max_iter": 0}, ValueError, "max_iter must be at least 1"),
            ({"tol": -1}, ValueError, "tol must be at least 0"),
            ({"tol": "small"}, TypeError, "tol must be a number"),
            ({"dict_init": np.eye(3)}, ValueError, "dict_init must have one column per feature"),
            ({"n_atoms": 3, "dict_init": np.eye(4)}, ValueError, "n_atoms=3, but dict_init has 4"),
            ({"dict_init": np.full((2, 4), np.nan)}, ValueError, "dict_init contains NaN"),
        ],
    )
    def test_bad_parameters_are_named(self, parameters, error, message, rng):
        with pytest.raises(error, match=message):
            self.make(**parameters).fit(rng.standard_normal((20, 4)))

    @pytest.mark.parametrize(
        ("parameters", "message", "fitted"),
        [
            ({"n_atoms": 99}, r"n_atoms=99 is more than there are rows \(20\)", "n_atoms_"),
            ({"n_nonzero_coefs": 50}, "n_nonzero_coefs=50 is more than", "n_nonzero_coefs_"),
        ],
    )
    def test_too_much_is_clipped_with_one_warning(self, parameters, message, fitted, rng):
        with pytest.warns(UserWarning, match=message) as warned:
            learner = self.make(**parameters).fit(rng.standard_normal((20, 4)))
        assert len(warned) == 1
        assert getattr(learner, fitted) in (4, 20)

    def test_bad_signals_are_refused(self, rng):
        X = rng.standard_normal((20, 4))
        bad = X.copy()
        bad[3, 2] = np.nan
        with pytest.raises(ValueError, match="infinity"):
            self.make().fit(np.where(bad == bad, X, np.inf))
        learner = self.make(n_atoms=8).fit(X)
        with pytest.raises(ValueError, match="infinity"):
            learner.transform(np.where(bad == bad, X, np.inf))
        with pytest.raises(ValueError, match="3 features"):
            learner.transform(X[:, :3])
        with pytest.raises(ValueError, match="one column for each of the 8 atoms"):
            learner.inverse_transform(np.ones((2, 3)))

    def test_constant_and_zero_signals_do_no_harm(self):
        X = np.zeros((10, 4))
        learner = self.make(n_atoms=3).fit(X)
        assert learner.objective_[-1] == 0
        assert learner.transform(X).nnz == 0
        learner = self.make(n_atoms=3).fit(np.ones((10, 4)))
        assert learner.objective_[-1] < 1e-20
