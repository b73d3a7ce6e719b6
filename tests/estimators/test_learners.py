"""MOD and KSVD: the contract of all learners, and MOD's batches."""

import numpy as np
import pytest

from contracts.learner import LinearLearnerContract
from kernelatoms import KSVD, MOD


class TestKSVD(LinearLearnerContract):
    def make(self, **parameters):
        return KSVD(**parameters)


class TestMOD(LinearLearnerContract):
    def make(self, **parameters):
        return MOD(**parameters)

    def test_one_batch_of_everything_is_one_pass(self, rng):
        X = rng.standard_normal((100, 8))
        options = {"n_atoms": 12, "n_nonzero_coefs": 2, "random_state": 0}
        batch = MOD(**options).partial_fit(X)
        whole = MOD(max_iter=1, **options).fit(X)
        np.testing.assert_allclose(batch.components_, whole.components_, atol=1e-10)
        np.testing.assert_allclose(batch.objective_, whole.objective_)

    def test_sums_of_batches_are_the_sums_of_all(self, rng):
        """With one atom per signal and fixed atoms, codes do not change from batch to batch."""
        atoms = np.eye(6)
        # Every batch uses every atom: one that it does not use would be replaced.
        X = 3 * atoms[np.arange(120) % 6] + 0.01 * rng.standard_normal((120, 6))
        parts = MOD(n_nonzero_coefs=1, dict_init=atoms)
        for batch in np.split(X, 4):
            parts.partial_fit(batch)
        whole = MOD(n_nonzero_coefs=1, dict_init=atoms, max_iter=1).fit(X)
        np.testing.assert_allclose(parts.components_, whole.components_, atol=1e-4)

    def test_batches_learn(self, rng):
        X = rng.standard_normal((2000, 12))
        held_out = rng.standard_normal((300, 12))
        mod = MOD(n_atoms=24, n_nonzero_coefs=3, forget=0.7, random_state=0)
        errors = []
        for batch in np.split(X, 20):
            mod.partial_fit(batch)
            codes = mod.transform(held_out)
            errors.append(((held_out - mod.inverse_transform(codes)) ** 2).sum())
        assert np.mean(errors[-5:]) < 0.95 * errors[0]

    def test_fit_forgets_batches(self, rng):
        X = rng.standard_normal((50, 6))
        clean = MOD(n_atoms=8, random_state=0).fit(X)
        again = MOD(n_atoms=8, random_state=0).partial_fit(X[::-1]).fit(X)
        np.testing.assert_array_equal(again.components_, clean.components_)
        np.testing.assert_array_equal(again.state_.sums.gram, clean.state_.sums.gram)

    def test_batches_after_fit_add_to_it(self, rng):
        X = rng.standard_normal((500, 8))
        mod = MOD(n_atoms=16, n_nonzero_coefs=3, random_state=0).fit(X)
        before = mod.components_
        mod.partial_fit(rng.standard_normal((5, 8)))
        assert np.abs(np.vecdot(before, mod.components_)).min() > 0.9

    def test_atoms_of_faint_signals_live(self):
        """Coefficients of very different sizes: no atom may be rounded away."""
        X = np.concatenate([np.eye(8)[:4], 1e-9 * np.eye(8)[4:]]).repeat(5, axis=0)
        mod = MOD(n_nonzero_coefs=1, dict_init=np.eye(8)).fit(X)
        np.testing.assert_allclose(np.linalg.norm(mod.components_, axis=1), 1)
        mod = MOD(n_nonzero_coefs=1, dict_init=np.eye(8), forget=0.5).partial_fit(np.eye(8))
        for _ in range(60):
            mod.partial_fit(np.eye(8)[:4])
        np.testing.assert_allclose(mod.components_, np.eye(8), atol=1e-12)

    @pytest.mark.parametrize("forget", [0, 1.5, "slowly"])
    def test_bad_forget_is_named(self, forget, rng):
        with pytest.raises((ValueError, TypeError), match="forget must be"):
            MOD(forget=forget).partial_fit(rng.standard_normal((20, 4)))


class TestBatchesOfKSVD:
    def test_are_those_of_mod_with_fading_sums(self, rng):
        X = rng.standard_normal((400, 8))
        options = {"n_atoms": 16, "n_nonzero_coefs": 3, "random_state": 0}
        ksvd, mod = KSVD(**options), MOD(**options)
        for t, batch in enumerate(np.split(X, 8), start=1):
            ksvd.partial_fit(batch)
            mod.set_params(forget=(1 - 1 / t) ** 3 or None).partial_fit(batch)
            np.testing.assert_array_equal(ksvd.components_, mod.components_)
            np.testing.assert_array_equal(ksvd.objective_, mod.objective_)
        assert "(1 - 1/t)^3" in KSVD.__doc__

    def test_after_fit_add_to_it(self, rng):
        """A few rows hardly change what many have taught, though sweeps keep no sums of them."""
        X = rng.standard_normal((500, 8))
        ksvd = KSVD(n_atoms=16, n_nonzero_coefs=3, random_state=0).fit(X)
        before, reached = ksvd.components_, ksvd.objective_[ksvd.best_pass_]
        ksvd.partial_fit(rng.standard_normal((5, 8)))
        assert np.abs(np.vecdot(before, ksvd.components_)).min() > 0.9
        assert np.abs(ksvd.components_ - before).max() > 1e-6
        assert 0.5 * reached < ksvd.objective_[0] < 1.5 * reached

    def test_fit_forgets_them(self, rng):
        X = rng.standard_normal((50, 6))
        clean = KSVD(n_atoms=8, random_state=0).fit(X)
        again = KSVD(n_atoms=8, random_state=0).partial_fit(X[::-1]).fit(X)
        np.testing.assert_array_equal(again.components_, clean.components_)

    def test_may_start_from_sums_of_rows(self, rng):
        ksvd = KSVD(n_atoms=12, n_nonzero_coefs=2, init="sums", random_state=0)
        ksvd.partial_fit(rng.standard_normal((8, 6)))
        assert ksvd.components_.shape == (12, 6)

    def test_learn(self, rng):
        X, held_out = rng.standard_normal((2000, 12)), rng.standard_normal((300, 12))
        ksvd = KSVD(n_atoms=24, n_nonzero_coefs=3, random_state=0)
        errors = []
        for batch in np.split(X, 20):
            codes = ksvd.partial_fit(batch).transform(held_out)
            errors.append(((held_out - ksvd.inverse_transform(codes)) ** 2).sum())
        assert np.mean(errors[-5:]) < 0.95 * errors[0]


def test_l1_batches_fade_by_the_power_that_the_docstring_names(rng):
    X = rng.standard_normal((60, 8))
    mod = MOD(n_atoms=12, alpha=0.5, random_state=0)
    energy = 0.0
    for t, batch in enumerate(np.split(X, 3), start=1):
        energy = (1 - 1 / t) ** 3 * energy + np.sum(batch**2)
        assert mod.partial_fit(batch).state_.sums.energy == pytest.approx(energy, rel=1e-12)
    assert "(1 - 1/t)^3" in MOD.__doc__
