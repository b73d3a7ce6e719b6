"""Online LKDL: landmarks are renewed, dictionaries follow, classes learn from batches."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from sklearn.utils.estimator_checks import check_estimator

import oracles.linearize
from kernelatoms import (
    KSCDL,
    KSVD,
    MOD,
    ClassDictionaryClassifier,
    KernelKSVD,
    KernelLinearizer,
    nystrom_error,
)  # fmt: skip

OPTIONS = {"n_atoms": 12, "n_nonzero_coefs": 3, "random_state": 0}


def fitted_map(X, **options):
    options = {"kernel": "rbf", "gamma": 0.2, "random_state": 0, **options}
    return KernelLinearizer(options.pop("kernel"), **options).fit(X)


# New landmarks ------------------------------------------------------------------------------------


@given(
    seed=st.integers(0, 2**31),
    n_features=st.integers(1, 4),
    coef0=st.sampled_from([0.5, 1.0, 3.0]),
    n_old=st.integers(2, 30),
    n_new=st.integers(2, 30),
    rank=st.sampled_from([None, 4]),
)
def test_the_change_is_the_books(seed, n_features, coef0, n_old, n_new, rank):
    """Against vectors of feature space that are written out."""
    rng = np.random.default_rng(seed)
    old, new = (rng.standard_normal((n, n_features)) for n in (n_old, n_new))
    rank = None if rank is None else min(rank, n_old, n_new)
    linearizer = fitted_map(
        old, kernel="poly", degree=2, gamma=1, coef0=coef0, n_landmarks=1.0, n_components=rank
    )
    landmarks, coef = linearizer.landmarks_, linearizer.dual_coef_
    change = linearizer.renew(new)
    rows, old, new = (
        oracles.linearize.squares(X, coef0) for X in (new, landmarks, linearizer.landmarks_)
    )
    expected = oracles.linearize.change_of_coordinates(rows, old, coef, new, linearizer.dual_coef_)
    assert change.shape == (coef.shape[1], linearizer.n_components_)
    np.testing.assert_allclose(change, expected, atol=1e-6)


@pytest.mark.parametrize(("dtype", "atol"), [(np.float64, 1e-11), (np.float32, 1e-5)])
def test_the_same_landmarks_change_nothing(rng, dtype, atol):
    X = rng.standard_normal((40, 5)).astype(dtype)
    linearizer = fitted_map(X, n_landmarks=40)
    before = linearizer.transform(X)
    change = linearizer.renew(X)
    np.testing.assert_allclose(change, np.eye(40), atol=atol)
    assert change.dtype == dtype
    np.testing.assert_array_equal(linearizer.transform(X), before)


def test_between_exact_maps_the_change_is_a_rotation(rng):
    """(x'y + 1)^2 of three features has ten dimensions, which other landmarks span as well."""
    X = rng.standard_normal((60, 3))
    linearizer = fitted_map(X[:30], kernel="poly", degree=2, gamma=1, coef0=1, n_landmarks=12)
    F = linearizer.transform(X)
    change = linearizer.renew(X[30:])
    np.testing.assert_allclose(change @ change.T, np.eye(10), atol=1e-8)
    np.testing.assert_allclose(F @ change, linearizer.transform(X), atol=1e-7)


def test_rows_come_nearer_than_by_projection(rng):
    """What the old map misses of rows that are alike is alike: least squares learns it."""
    X = rng.standard_normal((5, 4))[np.arange(300) % 5] + 0.1 * rng.standard_normal((300, 4))
    linearizer = fitted_map(X[:6], n_landmarks=6)
    old = linearizer.transform(X), linearizer.dual_coef_, linearizer.landmarks_
    change = linearizer.set_params(n_landmarks=40).renew(X[:200])
    K = np.exp(-0.2 * ((old[2][:, None] - linearizer.landmarks_) ** 2).sum(axis=2))
    projection = old[1].T @ K @ linearizer.dual_coef_
    F, G = old[0][200:], linearizer.transform(X[200:])
    assert ((G - F @ change) ** 2).sum() < 0.9 * ((G - F @ projection) ** 2).sum()


def test_the_map_is_that_of_a_fit_under_the_same_kernel(rng):
    old, new = rng.standard_normal((50, 4)), 3 + rng.standard_normal((50, 4))
    linearizer = KernelLinearizer(n_landmarks=20, random_state=0).fit(old)  # gamma="scale"
    gamma = linearizer.gamma_
    linearizer.renew(new)
    assert linearizer.gamma_ == gamma
    other = KernelLinearizer(gamma=gamma, n_landmarks=20, random_state=0).fit(new)
    for name in ("landmarks_", "dual_coef_", "eigenvalues_", "preimage_coef_", "preimage_rows_"):
        np.testing.assert_array_equal(getattr(linearizer, name), getattr(other, name))


def test_what_cannot_be_renewed_says_so(rng):
    X = rng.standard_normal((20, 4))
    with pytest.raises(ValueError, match="sampling gives them"):
        KernelLinearizer(sampling=X[:5]).fit(X).renew(X)
    with pytest.raises(ValueError, match="precomputed"):
        KernelLinearizer("precomputed").fit(X @ X.T).renew(X @ X.T)
    linearizer = fitted_map(X, n_landmarks=5)
    landmarks = linearizer.landmarks_
    with pytest.raises(ValueError, match="3 features"):
        linearizer.renew(X[:, :3])
    assert linearizer.landmarks_ is landmarks


# Dictionaries that follow -------------------------------------------------------------------------


@pytest.mark.parametrize("codes", [{"n_nonzero_coefs": 3}, {"alpha": 0.1}])
def test_a_rotation_changes_nothing_that_is_learned(rng, codes):
    """Learning in other coordinates of the same vectors, before and after more batches."""
    X = rng.standard_normal((200, 6))
    basis = np.linalg.qr(rng.standard_normal((9, 6)))[0].T  # (6, 9), orthonormal rows
    here, there = (MOD(12, random_state=0, forget=0.8, **codes) for _ in "ab")
    here.partial_fit(X[:80])
    there.partial_fit(X[:80]).change_coordinates(basis)
    assert there.n_features_in_ == 9
    np.testing.assert_allclose(there.components_, here.components_ @ basis, atol=1e-10)
    for batch in (X[80:140], X[140:]):
        here.partial_fit(batch)
        there.partial_fit(batch @ basis)
    np.testing.assert_allclose(there.components_, here.components_ @ basis, atol=1e-8)
    np.testing.assert_allclose(there.objective_, here.objective_)
    np.testing.assert_allclose(
        there.transform(X @ basis).toarray(), here.transform(X).toarray(), atol=1e-8
    )


def test_sums_follow_a_projection(rng):
    """Against sums over the rows in the new coordinates; atoms keep unit norm, codes follow."""
    X = rng.standard_normal((80, 6))
    change = np.linalg.qr(rng.standard_normal((6, 6)))[0][:, :4]
    mod = MOD(**OPTIONS).partial_fit(X)
    # Codes that the sums are of, from the sums themselves: one row for every direction.
    gram, atoms = mod.state_.sums.gram, mod.components_
    W = np.linalg.cholesky(gram + 1e-12 * np.eye(12)).T
    rows = np.linalg.lstsq(W.T, mod.state_.sums.cross, rcond=None)[0]
    mod.change_coordinates(change)
    norms = np.linalg.norm(atoms @ change, axis=1)
    np.testing.assert_allclose(mod.components_, atoms @ change / norms[:, None], atol=1e-12)
    gram, cross = oracles.linearize.moved_sums(rows, W * norms, change)
    np.testing.assert_allclose(mod.state_.sums.gram, gram, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(mod.state_.sums.cross, cross, rtol=1e-6, atol=1e-6)


def test_atoms_of_which_nothing_is_left_are_replaced(rng):
    X = np.zeros((40, 4))
    X[np.arange(40), np.arange(40) % 4] = 1
    mod = MOD(n_nonzero_coefs=1, dict_init=np.eye(4)).partial_fit(X)
    mod.change_coordinates(np.eye(4)[:, :2])
    np.testing.assert_array_equal(mod.components_[2:], 0)
    assert mod.state_.sums.gram[2:].any() is np.False_
    rows = rng.standard_normal((60, 2))
    for _ in range(3):
        mod.partial_fit(rows)
    np.testing.assert_allclose(np.linalg.norm(mod.components_, axis=1), 1)


@pytest.mark.parametrize(("left", "kept"), [(1e-5, 1), (1e-7, 0)])
def test_a_millionth_of_an_atom_is_nothing(rng, left, kept):
    learner = MOD(**OPTIONS).fit(rng.standard_normal((60, 6)))
    atoms = learner.components_
    np.testing.assert_allclose(
        learner.change_coordinates(left * np.eye(6)).components_, kept * atoms, atol=1e-12
    )


def test_after_fit_and_with_names(rng):
    """Batches may follow a fit; names of columns are those of the old coordinates."""
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(rng.standard_normal((60, 5)), columns=list("abcde"))
    mod = MOD(**OPTIONS).fit(X)
    mod.change_coordinates(np.eye(5)[:, ::-1])
    assert not hasattr(mod, "feature_names_in_")
    rows = np.ascontiguousarray(X.to_numpy()[:, ::-1])
    np.testing.assert_allclose(mod.score(rows), MOD(**OPTIONS).fit(X).score(X))
    mod.partial_fit(rows)


def test_a_change_of_another_size_is_refused(rng):
    mod = MOD(**OPTIONS).partial_fit(rng.standard_normal((30, 5)))
    with pytest.raises(ValueError, match="a row for each of the 5 coordinates"):
        mod.change_coordinates(np.eye(4))


# Classes from batches -----------------------------------------------------------------------------


@pytest.fixture
def labelled(rng):
    y = np.arange(120) % 3
    X = rng.standard_normal((3, 6))[y] + 0.3 * rng.standard_normal((120, 6))
    return X, np.array(list("abc"))[y]


def test_every_class_learns_from_its_rows(labelled):
    X, y = labelled
    model = ClassDictionaryClassifier(MOD(6, n_nonzero_coefs=2), random_state=0)
    alone = {label: MOD(6, n_nonzero_coefs=2, random_state=seed) for label, seed in zip(
        "abc", np.random.RandomState(0).randint(np.iinfo(np.int32).max, size=3), strict=True
    )}  # fmt: skip
    for part in (slice(60), slice(60, 120)):
        model.partial_fit(X[part], y[part])
        for label, learner in alone.items():
            learner.partial_fit(X[part][y[part] == label])
    for label, learner in zip(model.classes_, model.dictionaries_, strict=True):
        np.testing.assert_array_equal(learner.components_, alone[label].components_)


def test_classes_may_come_late(labelled):
    """In the order of their labels at last, each as if it had come first."""
    X, y = labelled
    model = ClassDictionaryClassifier(MOD(6, n_nonzero_coefs=2), random_state=0)
    model.partial_fit(X[y == "c"], y[y == "c"])
    assert set(model.predict(X)) == {"c"}
    assert model.decision_function(X).shape == (120, 1)
    np.testing.assert_allclose(model.predict_proba(X), 1)
    first = model.dictionaries_[0].components_.copy()
    others = np.isin(y, ["a", "b"])
    model.partial_fit(X[others], y[others])
    assert model.classes_.tolist() == ["a", "b", "c"]
    seeds = np.random.RandomState(0).randint(np.iinfo(np.int32).max, size=3)  # as classes come
    assert [learner.random_state for learner in model.dictionaries_] == seeds[[1, 2, 0]].tolist()
    np.testing.assert_array_equal(model.dictionaries_[2].components_, first)
    assert model.score(X, y) > 0.9


def test_a_batch_that_fails_leaves_all_as_it_was(labelled):
    X, y = labelled
    model = ClassDictionaryClassifier(MOD(6, n_nonzero_coefs=2), random_state=0).partial_fit(X, y)
    before = [learner.components_ for learner in model.dictionaries_]
    with pytest.raises(ValueError, match="6 features"):
        model.partial_fit(X[:, :4], y)
    with pytest.raises(ValueError, match="coordinates"):
        model.change_coordinates(np.eye(4))
    for learner, atoms in zip(model.dictionaries_, before, strict=True):
        assert learner.components_ is atoms


def test_who_cannot_learn_from_batches_says_so(labelled):
    X, y = labelled
    assert not hasattr(ClassDictionaryClassifier(KernelKSVD()), "partial_fit")
    with pytest.raises(AttributeError, match="partial_fit"):
        ClassDictionaryClassifier(KSCDL()).partial_fit(X, y)
    with pytest.raises(ValueError, match="calibrate=True"):
        ClassDictionaryClassifier(MOD(), calibrate=True).partial_fit(X, y)


def test_labels_of_another_kind_are_refused(labelled):
    X, y = labelled
    model = ClassDictionaryClassifier(MOD(6, n_nonzero_coefs=2), random_state=0).partial_fit(X, y)
    with pytest.raises(
        ValueError, match=r"y must have labels like those before, such as 'a', got 0"
    ):
        model.partial_fit(X, np.arange(120) % 3)


def test_other_learners_dictionaries_do_not_go_on(labelled):
    X, y = labelled
    model = ClassDictionaryClassifier(KSVD(6, n_nonzero_coefs=2), random_state=0).fit(X, y)
    model.set_params(dictionary=MOD(6, n_nonzero_coefs=2))
    with pytest.raises(ValueError, match="learned by KSVD"):
        model.partial_fit(X, y)
    with pytest.raises(ValueError, match="learned by KSVD"):
        model.change_coordinates(np.eye(6))


@pytest.mark.parametrize("dictionary", [None, KSVD(6, n_nonzero_coefs=2)])
def test_classes_learn_from_batches_by_ksvd(dictionary, labelled):
    X, y = labelled
    model = ClassDictionaryClassifier(dictionary, random_state=0)
    for start in range(0, 120, 40):
        model.partial_fit(X[start : start + 40], y[start : start + 40])
    for label, learner in zip(model.classes_, model.dictionaries_, strict=True):
        alone = KSVD(**learner.get_params())
        for start in range(0, 120, 40):
            rows = X[start : start + 40]
            alone.partial_fit(rows[y[start : start + 40] == label])
        np.testing.assert_array_equal(learner.components_, alone.components_)
    assert model.score(X, y) > 0.5


def test_parameters_set_between_batches_count_for_all_classes(labelled):
    X, y = labelled
    model = ClassDictionaryClassifier(MOD(6, n_nonzero_coefs=2), random_state=0)
    model.partial_fit(X[y != "c"], y[y != "c"])
    model.set_params(dictionary__n_nonzero_coefs=3).partial_fit(X, y)
    assert [learner.n_nonzero_coefs_ for learner in model.dictionaries_] == [3, 3, 3]


@pytest.mark.filterwarnings("ignore:n_(atoms|nonzero)")
def test_the_common_checks_of_batches():
    check_estimator(ClassDictionaryClassifier(MOD(8), random_state=0))


def test_a_stream_with_new_landmarks():
    """Digits 0 to 4, then 5 to 9: landmarks of recent rows know the new digits' kernel better."""
    X, y = load_digits(return_X_y=True)
    order = np.argsort(y[:1400] >= 5, kind="stable")
    late = np.flatnonzero(y[1400:] >= 5) + 1400
    errors = {}
    for renewed in (False, True):
        linearizer = KernelLinearizer(gamma=1e-3, n_landmarks=40, random_state=0)
        model = ClassDictionaryClassifier(MOD(15, n_nonzero_coefs=4), random_state=0)
        for start in range(0, 1400, 200):
            rows = order[start : start + 200]
            if start == 0:
                linearizer.fit(X[rows])
            elif renewed:
                model.change_coordinates(linearizer.renew(X[rows]))
            model.partial_fit(linearizer.transform(X[rows]), y[rows])
        errors[renewed] = nystrom_error(linearizer, X[late])
        assert model.score(linearizer.transform(X[late]), y[late]) > 0.9
    assert errors[True] < 0.7 * errors[False]
