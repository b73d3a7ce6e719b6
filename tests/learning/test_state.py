"""States of learners: passes, batches, what goes on exactly, and initial atoms."""

import copy
import pickle
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelatoms import KSCDL, KSVD, MOD, KernelKSVD
from kernelatoms.coding import OMP, Lasso, LinearProblem, omp
from kernelatoms.coding.problem import linear_problems
from kernelatoms.learning.ksvd import KSVDUpdate
from kernelatoms.learning.loop import UpdateResult, has_converged, learn, learn_batch
from kernelatoms.learning.mod import BlockDescent, LeastSquares
from kernelatoms.learning.state import LearnerState, atoms_from_rows, unit_rows


def start_of(X, n_atoms):
    return LearnerState.start(unit_rows(X[:n_atoms]), np.random.RandomState(0))


def passes(X, state, pursuit, update, n):
    learn(linear_problems, X, pursuit, update, state, max_iter=n, tol=0)


class Astray(KSVDUpdate):
    """An update that goes back to the start after two passes."""

    def __init__(self, start):
        super().__init__()
        self.start, self.met = start, []

    def apply(self, rows, codes, dictionary):
        updated = super().apply(rows, codes, dictionary)
        if len(self.met) >= 2:
            codes = omp(LinearProblem(rows, self.start), 3)
            updated = UpdateResult(self.start, float(codes.error.sum()), codes=codes)
        self.met.append(updated)
        return updated


def test_the_objective_is_what_passes_reached_and_the_best_counts(rng):
    X = rng.standard_normal((60, 10))
    state = start_of(X, 15)
    update = Astray(state.dictionary)
    learn(linear_problems, X, OMP(3), update, state, max_iter=20, tol=0)
    reached = [updated.objective for updated in update.met]
    assert state.objective == reached
    assert reached[2] > reached[1]  # it really rose, and is told
    assert state.best_pass == 1
    np.testing.assert_array_equal(state.best, update.met[1].dictionary)
    assert len(reached) == 5  # two good passes, then three in vain


@pytest.mark.parametrize(
    ("pursuit", "update"),
    [
        (OMP(3), KSVDUpdate()),
        (OMP(3, "ols", True), LeastSquares()),
        (Lasso(0.3), BlockDescent(0.3)),
    ],
)
def test_a_stopped_run_goes_on_exactly(pursuit, update, rng):
    X = rng.standard_normal((80, 8))
    whole, parts = start_of(X, 12), start_of(X, 12)
    passes(X, whole, pursuit, update, 6)
    passes(X, parts, pursuit, update, 2)
    parts = pickle.loads(pickle.dumps(parts))
    passes(X, parts, pursuit, update, 4)
    assert parts.objective == whole.objective
    assert parts.best_pass == whole.best_pass
    np.testing.assert_array_equal(parts.dictionary, whole.dictionary)
    np.testing.assert_array_equal(parts.best, whole.best)


@pytest.mark.parametrize("learner", [KSVD(12), MOD(12), MOD(12, alpha=0.3)])
def test_a_warm_start_on_the_same_rows_is_one_run(learner, rng):
    X = rng.standard_normal((80, 8))
    learner.set_params(tol=0, random_state=0, max_iter=6)
    whole = copy.deepcopy(learner).fit(X)
    parts = learner.set_params(warm_start=True, max_iter=2).fit(X).set_params(max_iter=4).fit(X)
    np.testing.assert_array_equal(parts.objective_, whole.objective_)
    np.testing.assert_array_equal(parts.components_, whole.components_)
    assert (parts.n_iter_, parts.best_pass_) == (whole.n_iter_, whole.best_pass_)
    # Other rows have objectives of their own: it starts from the atoms, and counts anew.
    assert parts.fit(X[::-1].copy()).n_iter_ == 4


@given(seed=st.integers(0, 2**31), positive=st.booleans())
def test_l1_objectives_never_rise_from_pass_to_pass(seed, positive):
    """Codes at the minimum, then a dictionary step that cannot rise: the raw values fall."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((50, 7))
    mod = MOD(10, alpha=0.3, positive=positive, max_iter=8, tol=0, random_state=seed % 1000).fit(X)
    slack = 2e-6 * float(np.vdot(X, X))  # the duality gap of the codes
    assert (np.diff(mod.objective_) <= slack).all()
    codes = mod.transform(X)
    value = 0.5 * ((X - codes @ mod.components_) ** 2).sum() + 0.3 * np.abs(codes.data).sum()
    assert value <= mod.objective_[mod.best_pass_] + slack
    assert not positive or codes.data.min(initial=0) >= 0


def test_convergence_looks_at_the_best_of_three_passes():
    assert not has_converged([5.0, 4.0, 3.0], 0.9)
    assert has_converged([5.0, 5.0, 5.0, 5.0], 0.0)
    assert not has_converged([5.0, 5.0, 5.0, 4.0], 0.1)
    assert has_converged([5.0, 5.0, 5.0, 4.9], 0.1)
    assert has_converged([3.0, 5.0, 5.0, 5.0], 0.0)  # worse passes are no progress


def test_pairs_that_make_no_sense_are_refused(rng):
    X = rng.standard_normal((20, 4))
    with pytest.raises(TypeError, match="KSVDUpdate learns from codes by OMP, not by Lasso"):
        passes(X, start_of(X, 5), Lasso(0.1), KSVDUpdate(), 1)
    with pytest.raises(TypeError, match="BlockDescent learns from codes by Lasso, not by OMP"):
        passes(X, start_of(X, 5), OMP(2), BlockDescent(0.1), 1)
    with pytest.raises(ValueError, match=r"alpha=0.1 asks for l1 codes and n_nonzero_coefs=2"):
        MOD(alpha=0.1, n_nonzero_coefs=2).fit(X)
    with pytest.raises(ValueError, match="selection='ols' belongs to greedy codes"):
        MOD(alpha=0.1, selection="ols").fit(X)
    with pytest.raises(TypeError, match="positive must be True or False, got 'no'"):
        MOD(positive="no").fit(X)


# Atoms that nobody uses ---------------------------------------------------------------------------


def batches(X, state, n_atoms=None, decay=1.0, pursuit=None):
    learn_batch(
        linear_problems, X, pursuit or OMP(1), LeastSquares(), state,
        n_atoms=n_atoms or len(state.dictionary), decay=decay,
    )  # fmt: skip


def test_one_batch_alone_judges_no_atom(rng):
    """A batch of one kind of signal: atoms of the other kind stay, however large it is."""
    axes = np.eye(4)
    state = LearnerState.start(axes.copy(), np.random.RandomState(0))
    one_kind = np.repeat(axes[:3], 500, axis=0) + 0.1 * rng.standard_normal((1500, 4))
    one_kind[:, 3] = 0
    batches(one_kind, state)
    np.testing.assert_array_equal(state.dictionary[3], axes[3])
    # Never used by anything over several batches, with other signals badly represented: replaced.
    batches(one_kind, state)
    assert not np.array_equal(state.dictionary[3], axes[3])
    assert state.use[3] == state.signals_seen[3] == state.batches_seen[3] == 0


def test_atoms_that_were_used_stay_until_their_use_has_faded():
    axes = np.eye(4)
    state = LearnerState.start(axes.copy(), np.random.RandomState(0))
    first, later = np.repeat(axes, 20, axis=0), np.repeat(axes[:3], 20, axis=0) + 0.1
    batches(first, state, decay=0.5)
    faded = 20.0
    for _ in range(40):
        before = state.dictionary[3].copy()
        batches(later, state, decay=0.5)
        faded /= 2
        if faded >= 1e-3:
            np.testing.assert_allclose(state.dictionary[3], axes[3])
        elif not np.allclose(state.dictionary[3], before):
            break
    else:
        raise AssertionError("the atom was never replaced")
    assert faded < 1e-3
    assert (state.sums.gram[3] == 0).all()  # nothing of the old atom comes back
    assert (state.sums.cross[3] == 0).all()


def test_small_batches_give_few_signals_to_judge_by(rng):
    axes = np.eye(30)
    state = LearnerState.start(axes.copy(), np.random.RandomState(0))
    for n in range(1, 40):
        batches(axes[:10] + 0.02 * np.abs(rng.standard_normal(30)) * (np.arange(30) < 10), state)
        changed = not np.array_equal(state.dictionary[10], axes[10])
        assert changed == (10 * n >= 300)
        if changed:
            break


def test_the_dictionary_grows_to_the_size_asked_for(rng):
    X = rng.standard_normal((100, 6))
    mod = MOD(20, n_nonzero_coefs=2, random_state=0)
    sizes = []
    for batch in np.split(X, 20):
        mod.partial_fit(batch)
        sizes.append(mod.n_atoms_)
    assert sizes[:5] == [5, 10, 15, 20, 20]
    assert mod.components_.shape == (20, 6)
    np.testing.assert_allclose(np.linalg.norm(mod.components_, axis=1), 1)
    kscdl = KSCDL(12, alpha=0.05, random_state=0)
    for batch in np.split(X, 20):
        kscdl.partial_fit(batch)
    assert kscdl.components_.shape == (12, 6)


def test_batches_keep_the_type_of_the_first(rng):
    X = rng.standard_normal((60, 6))
    mod = MOD(10, random_state=0).partial_fit(X.astype(np.float32)).partial_fit(X)
    assert mod.components_.dtype == np.float32
    mod = MOD(10, random_state=0).partial_fit(X).partial_fit(X.astype(np.float32))
    assert mod.components_.dtype == np.float64


def two_clusters(rng, kind, n=60):
    centre = np.array([[4.0, 0, 0, 0], [0, 0, 4.0, 0]])[kind]
    return centre + 0.3 * rng.standard_normal((n, 4))


@pytest.mark.parametrize(
    "learner",
    [
        KSCDL(12, alpha=0.02, gamma=0.3, random_state=0),
        MOD(12, n_nonzero_coefs=2, random_state=0),
        MOD(12, alpha=0.1, random_state=0),
    ],
    ids=["kscdl", "mod", "mod-l1"],
)
def test_batches_of_one_cluster_do_not_overwrite_the_other(learner, rng):
    """A stream that is of one kind for a while: what was learned of the other kind stays."""
    a, b = two_clusters(rng, 0, 200), two_clusters(rng, 1, 200)
    learner.fit(np.concatenate([a, b]))

    def error(rows):
        left = rows - learner.inverse_transform(learner.transform(rows))
        return float((left**2).sum())

    before = error(a)
    for _ in range(10):
        learner.partial_fit(two_clusters(rng, 1))
    assert error(a) <= 1.5 * before


def test_shares_of_rows_and_batches(rng):
    X = rng.standard_normal((80, 6))
    assert MOD(0.25, random_state=0).fit(X).n_atoms_ == 20
    assert KSVD(0.001, random_state=0).fit(X).n_atoms_ == 1
    assert KSCDL(0.1, random_state=0).fit(X).n_atoms_ == 8
    for learner in (MOD(0.25), KSCDL(0.25)):
        with pytest.raises(
            ValueError, match=r"n_atoms=0.25 is a share of the rows, .* is not known"
        ):
            learner.partial_fit(X)
    with pytest.raises(ValueError, match=r"share of the rows above 0 and at most 1, got 1.5"):
        KSVD(1.5).fit(X)


def test_what_cannot_fit_is_refused_before_work(rng):
    with pytest.raises(ValueError, match=r"n_atoms=1000000000 atoms need about .* GiB of memory"):
        MOD(10**9).partial_fit(rng.standard_normal((20, 4)))


def test_score_is_the_share_of_energy_kept(rng):
    X = rng.standard_normal((80, 8))
    for learner in (KSVD(16, n_nonzero_coefs=3), MOD(16, alpha=0.5), KSCDL(16, kernel="linear")):
        learner.set_params(random_state=0).fit(X)
        left = X - learner.inverse_transform(learner.transform(X))
        assert learner.score(X) == pytest.approx(1 - (left**2).sum() / (X**2).sum())
    assert KSVD(8, n_nonzero_coefs=8).fit(np.eye(8)).score(np.eye(8)) == 1.0
    some = X.copy()
    some[0, 3] = np.nan
    ksvd = KSVD(16, n_nonzero_coefs=3, random_state=0).fit(X)
    left = np.nan_to_num(some - ksvd.inverse_transform(ksvd.transform(some)))
    expected = 1 - (left**2).sum() / np.nansum(some**2)
    assert ksvd.score(some) == pytest.approx(expected)


def test_kernels_that_hold_arrays_can_change_between_calls(rng):
    """Two such kernels have no answer to whether they are equal; codes must come all the same."""

    def weighted(X, Y, w):
        return (X * w) @ Y.T

    X = rng.standard_normal((30, 4))
    model = KernelKSVD(
        5, kernel=weighted, kernel_params={"w": np.ones(4)}, n_nonzero_coefs=2, random_state=0
    ).fit(X)
    first = model.transform(X).toarray()
    model.set_params(kernel_params={"w": np.full(4, 0.5)})
    halved = model.transform(X).toarray()  # inner products half as large, over the same atoms
    np.testing.assert_allclose(halved, first / 2, atol=1e-10)
    model.set_params(kernel_params={"w": np.ones(4)})
    np.testing.assert_array_equal(model.transform(X).toarray(), first)


def test_the_gram_matrix_of_a_fitted_dictionary_is_computed_once(rng, monkeypatch):
    from kernelatoms.engine import cpu

    X = rng.standard_normal((60, 8))
    ksvd = KSVD(16, n_nonzero_coefs=2, random_state=0).fit(X)
    first = ksvd.transform(X)
    made = []
    gram_matrix = cpu.gram_matrix
    monkeypatch.setattr(cpu, "gram_matrix", lambda atoms: made.append(1) or gram_matrix(atoms))
    np.testing.assert_array_equal(ksvd.transform(X).toarray(), first.toarray())
    assert not made
    # Atoms that are assigned are used; copies and pickles code the same.
    again = pickle.loads(pickle.dumps(ksvd))
    changed = ksvd.components_.copy()
    changed[0] *= -1
    ksvd.components_ = changed
    assert (ksvd.transform(X).toarray()[:, 0] == -first.toarray()[:, 0]).all()
    assert made
    np.testing.assert_array_equal(again.transform(X).toarray(), first.toarray())


def drawn_rows(X, n_atoms, seed):
    """Return the rows by a copy of all of them, in the order that is drawn."""
    rows = X[np.random.RandomState(seed).permutation(len(X))]
    is_zero = (rows == 0).all(axis=1)
    chosen = np.concatenate([rows[~is_zero], rows[is_zero]])[:n_atoms].astype(X.dtype)
    norms = np.linalg.norm(chosen, axis=1, keepdims=True)
    return chosen / np.where(norms > 0, norms, 1)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_they_are_random_rows_at_unit_norm(dtype, rng):
    for seed in range(20):
        X = rng.standard_normal((30, 4)).astype(dtype)
        X[rng.random(30) < rng.choice([0.0, 0.5, 1.0])] = 0
        n_atoms = int(rng.integers(1, 31))
        found = atoms_from_rows(X, n_atoms, np.random.RandomState(seed))
        assert found.dtype == dtype
        np.testing.assert_allclose(found, drawn_rows(X, n_atoms, seed), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("order", ["C", "F"])
def test_all_rows_are_not_copied(order):
    X = np.asarray(np.random.default_rng(0).standard_normal((50_000, 40)), order=order)
    atoms_from_rows(X, 10, np.random.RandomState(0))  # compiles
    tracemalloc.start()
    atoms_from_rows(X, 10, np.random.RandomState(0))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # Numbers of rows, and which of them are zero: a few integers per row, of 40 numbers.
    assert peak < X.nbytes / 8
