"""Atoms to start from, and learning that goes on: on every learner, and class by class."""

import numpy as np
import pytest
from sklearn.base import clone

from kernelatoms import (
    KSAD,
    KSCDL,
    KSVD,
    MOD,
    ClassDictionaryClassifier,
    KernelKSVD,
    KernelMOD,
    load_model,
    save_model,
)

LEARNERS = {
    "KSVD": KSVD(n_nonzero_coefs=2),
    "MOD": MOD(n_nonzero_coefs=2),
    "MOD l1": MOD(alpha=0.3),
    "KernelKSVD": KernelKSVD(gamma=0.1, n_nonzero_coefs=2),
    "KernelMOD": KernelMOD(gamma=0.1, n_nonzero_coefs=2),
    "KernelKSVD linear": KernelKSVD(kernel="linear", n_nonzero_coefs=2),
    "KSAD": KSAD(gamma=0.1),
    "KSCDL": KSCDL(gamma=0.1),
}
GOES_ON_EXACTLY = ("KSVD", "MOD", "MOD l1", "KSAD", "KSCDL")


@pytest.fixture
def rows(rng):
    return rng.standard_normal((60, 6))


def learners(names=tuple(LEARNERS)):
    return pytest.mark.parametrize("name", names)


def make(name, **parameters):
    return clone(LEARNERS[name]).set_params(random_state=0, tol=0, **parameters)


@learners()
def test_random_rows_given_are_random_rows_drawn(name, rows):
    """The default start is rows of the data: given as dict_init, they lead to the same atoms."""
    order = np.random.RandomState(0).permutation(60)
    drawn = make(name, n_atoms=20, max_iter=2)
    if name == "KSAD":  # landmarks given, none are drawn before the start
        drawn.set_params(sampling=rows)
        order = np.sort(np.random.RandomState(0).permutation(60)[:20])
    given = clone(drawn).set_params(dict_init=rows[order[:20]])
    np.testing.assert_allclose(given.fit(rows).objective_, drawn.fit(rows).objective_, rtol=1e-8)
    np.testing.assert_allclose(given.components_, drawn.components_, atol=1e-6)
    assert given.set_params(n_atoms=None).fit(rows).n_atoms_ == 20


@learners(GOES_ON_EXACTLY)
def test_going_on_is_not_having_stopped(name, rows):
    whole = make(name, n_atoms=9, max_iter=6).fit(rows)
    parts = make(name, n_atoms=9, max_iter=3, warm_start=True).fit(rows).fit(rows)
    np.testing.assert_allclose(parts.objective_, whole.objective_, rtol=1e-9)
    np.testing.assert_allclose(parts.components_, whole.components_, rtol=1e-6, atol=1e-9)


@learners(("KernelKSVD", "KernelMOD", "KernelKSVD linear"))
def test_kernel_learners_start_from_their_atoms(name, rows):
    warm = make(name, n_atoms=9, max_iter=3, warm_start=True).fit(rows)
    reached = warm.objective_.min()
    cold = make(name, n_atoms=9, max_iter=1).fit(rows).objective_[0]
    first = warm.set_params(max_iter=1).fit(rows).objective_[0]
    assert first <= reached * (1 + 1e-6) < cold


@learners()
def test_going_on_with_other_rows_starts_from_the_atoms(name, rows, rng):
    learner = make(name, n_atoms=9, max_iter=4, warm_start=True).fit(rows)
    other = rows[:40] + 1e-6 * rng.standard_normal((40, 6))
    cold = clone(learner).set_params(max_iter=1).fit(other).objective_[0]
    warm = learner.set_params(max_iter=1).fit(other)
    assert warm.n_iter_ == 1
    assert warm.objective_[0] < cold
    assert warm.n_atoms_ == 9


@learners()
def test_what_does_not_fit_is_refused_and_changes_nothing(name, rows):
    learner = make(name, n_atoms=9, max_iter=1, warm_start=True).fit(rows)
    before = learner.transform(rows).toarray()
    with pytest.raises(ValueError, match=r"n_atoms=5"):
        learner.set_params(n_atoms=5).fit(rows)
    with pytest.raises(ValueError, match=r"warm_start|one column per feature"):
        learner.set_params(n_atoms=9).fit(rows[:, :4])
    np.testing.assert_array_equal(learner.transform(rows).toarray(), before)
    with pytest.raises(ValueError, match=r"dict_init"):
        make(name, dict_init=np.ones((9, 5))).fit(rows)
    with pytest.raises(ValueError, match=r"n_atoms=5, but dict_init has 9 atoms"):
        make(name, n_atoms=5, dict_init=rows[:9]).fit(rows)
    with pytest.raises(TypeError, match="warm_start"):
        make(name, warm_start="yes").fit(rows)


@learners(("KernelKSVD", "KernelMOD", "KSAD"))
def test_precomputed_kernels_start_from_row_numbers(name, rows):
    own = make(name, dict_init=rows[:9], max_iter=2)
    if name == "KSAD":
        own.set_params(sampling=rows[:30])
    own.fit(rows)
    K = np.exp(-0.1 * ((rows[:, None] - rows) ** 2).sum(axis=2))
    given = make(name, kernel="precomputed", gamma=None, dict_init=np.arange(9), max_iter=2)
    if name == "KSAD":
        given.set_params(sampling=np.arange(30))
    np.testing.assert_allclose(given.fit(K).objective_, own.objective_, rtol=1e-6)
    again = given.set_params(warm_start=True).fit(K).objective_
    assert again[-1] <= own.objective_.min() * (1 + 1e-6)
    with pytest.raises(ValueError, match=r"dict_init .*row numbers"):
        given.set_params(dict_init=[99], warm_start=False).fit(K)


@learners()
def test_files_hold_them(name, rows, tmp_path):
    learner = make(name, dict_init=rows[:9], max_iter=2, warm_start=True).fit(rows)
    again, _ = load_model(save_model(learner, tmp_path / "model.skops"))
    np.testing.assert_allclose(again.fit(rows).objective_, learner.fit(rows).objective_)


@learners(("KSVD", "KernelKSVD", "KSCDL"))
def test_class_dictionaries_pass_both_on(name, rows):
    y = np.array(["ant", "bee", "cat"])[np.arange(60) % 3]
    start = make(name, n_atoms=None, max_iter=2, dict_init=rows[:5])
    model = ClassDictionaryClassifier(start, random_state=0).fit(rows, y)
    assert [learner.n_atoms_ for learner in model.dictionaries_] == [5, 5, 5]
    warm = ClassDictionaryClassifier(
        make(name, n_atoms=5, max_iter=3, warm_start=True), random_state=0
    ).fit(rows, y)
    before = [learner.objective_ for learner in warm.dictionaries_]
    kept = warm.dictionaries_[0].objective_.copy()
    old = warm.dictionaries_[0]
    warm.fit(rows, y)
    for learner, objective in zip(warm.dictionaries_, before, strict=True):
        assert learner.objective_[-1] <= objective.min() * (1 + 1e-6)
        if name != "KernelKSVD":
            np.testing.assert_allclose(learner.objective_[:3], objective)
            assert learner.n_iter_ == 6
    np.testing.assert_array_equal(old.objective_, kept)
    if name != "KernelKSVD":  # where the old ones stopped, too
        assert len(old.state_.objective) == 3
    cold = ClassDictionaryClassifier(make(name, n_atoms=5, max_iter=3), random_state=0).fit(rows, y)
    again = clone(cold).fit(rows, y)
    np.testing.assert_array_equal(cold.predict(rows), again.predict(rows))
