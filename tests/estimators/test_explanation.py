"""Why a row was given its class: what explanations say is what classifiers decided by."""

import json

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelatoms import (
    KSCDL,
    KSVD,
    MOD,
    ClassDictionaryClassifier,
    CRCClassifier,
    Explanation,
    KernelKSVD,
    KernelLinearizer,
    SRCClassifier,
    explain,
)
from kernelatoms.estimators.inspection.explanation import explain_codes
from oracles import explaining as oracle

N_CLASSES = 3
CLASS_DICTIONARIES = [
    ClassDictionaryClassifier(KSVD(5, n_nonzero_coefs=2), random_state=0),
    ClassDictionaryClassifier(KSVD(5, n_nonzero_coefs=2), scheme="collective", random_state=0),
    ClassDictionaryClassifier(KSVD(5, n_nonzero_coefs=2), n_neighbors=3, random_state=0),
    ClassDictionaryClassifier(
        MOD(5, alpha=0.3), scheme="collective", n_neighbors=6, random_state=0
    ),
]
KERNEL_DICTIONARIES = [
    ClassDictionaryClassifier(KernelKSVD(5, n_nonzero_coefs=2, kernel="rbf"), random_state=0),
    ClassDictionaryClassifier(
        KernelKSVD(5, n_nonzero_coefs=2, kernel="poly"), scheme="collective", random_state=0
    ),
    ClassDictionaryClassifier(KSCDL(5, alpha=0.1, max_iter=3), random_state=0),
]
IN_ENTRIES = [  # the row and the training rows as they are, at unit norm
    CRCClassifier(mu=0.05),
    SRCClassifier(alpha=0.05),
    SRCClassifier(n_nonzero_coefs=4),
    CRCClassifier(mu=0.05, n_neighbors=7),
    SRCClassifier(alpha=0.05, n_neighbors=7),
    CRCClassifier(mu=0.5, residual_norm="l1"),
    SRCClassifier(alpha=0.5, residual_norm="l1"),
    CRCClassifier(mu=0.5, residual_norm="l1", n_neighbors=7),
]
ELSEWHERE = [
    CRCClassifier("rbf", gamma=0.5, mu=0.05),
    CRCClassifier("rbf", gamma=0.5, mu=0.05, n_neighbors=7),
    CRCClassifier("rbf", gamma=0.5, mu=0.05, n_neighbors=2),
    CRCClassifier("rbf", gamma=0.5, mu=0.05, projection="kpca"),
    SRCClassifier("rbf", gamma=0.5, alpha=0.05),
    SRCClassifier("rbf", gamma=0.5, alpha=0.05, projection="identity", n_neighbors=7),
    CRCClassifier("rbf", gamma=0.5, mu=0.5, residual_norm="l1", projection="identity"),
    SRCClassifier(
        "rbf", gamma=0.5, alpha=0.5, residual_norm="l1", projection="identity", n_neighbors=7
    ),
]
ALL = [*CLASS_DICTIONARIES, *KERNEL_DICTIONARIES, *IN_ENTRIES, *ELSEWHERE]


def draw(seed=0, n=36, n_features=6, dtype=np.float64):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % N_CLASSES
    means = 1.5 * rng.standard_normal((N_CLASSES, n_features))
    X = means[y] + rng.standard_normal((n, n_features))
    T = means[np.arange(9) % N_CLASSES] + rng.standard_normal((9, n_features))
    return X.astype(dtype), y, T.astype(dtype)


def stack(explanations, name):
    return np.array([getattr(why, name) for why in explanations])


def dense(why, n_atoms):
    code = np.zeros(n_atoms)
    code[why.atoms] = why.coefficients
    return code


@pytest.mark.parametrize("model", ALL, ids=repr)
def test_the_answer_is_that_of_predict_and_the_scores_those_it_goes_by(model):
    X, y, T = draw()
    found = model.fit(X, y).explain(T)
    assert all(isinstance(why, Explanation) for why in found)
    np.testing.assert_array_equal(stack(found, "label"), model.predict(T))
    np.testing.assert_array_equal(stack(found, "scores"), model.decision_function(T))
    best = stack(found, "scores").argmax(axis=1)
    np.testing.assert_array_equal(stack(found, "label"), model.classes_[best])
    for why in found:
        sizes = np.abs(why.coefficients)
        assert (np.diff(sizes) <= 0).all()
        assert (sizes > 0).all()
        np.testing.assert_array_equal(why.classes, model.classes_)
        shares = why.code_energies()
        expected = [(why.coefficients[why.owners == c] ** 2).sum() for c in range(N_CLASSES)]
        np.testing.assert_allclose(shares, np.array(expected) / sum(expected))
        assert json.loads(json.dumps(why.to_dict())) == why.to_dict()


@pytest.mark.parametrize("model", ALL, ids=repr)
def test_batches_are_one_by_one(model):
    X, y, T = draw(1)
    model.fit(X, y)
    for i, why in enumerate(model.explain(T)):
        alone = model.explain(T[i : i + 1])[0]
        assert alone.label == why.label
        np.testing.assert_array_equal(alone.atoms[:3], why.atoms[:3])
        np.testing.assert_allclose(alone.coefficients, why.coefficients, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(alone.residuals, why.residuals, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(
            [alone.energy, alone.residual], [why.energy, why.residual], rtol=1e-8, atol=1e-10
        )


@pytest.mark.parametrize("model", [*CLASS_DICTIONARIES, *IN_ENTRIES, *ELSEWHERE], ids=repr)
def test_float32_is_near_float64(model):
    X, y, T = draw(2)
    exact = model.fit(X, y).explain(T)
    rough = model.explain(T.astype(np.float32))
    for one, other in zip(exact, rough, strict=True):
        np.testing.assert_allclose(other.residuals, one.residuals, rtol=1e-3, atol=2e-4)
        np.testing.assert_allclose(
            [other.energy, other.residual], [one.energy, one.residual], rtol=1e-3, atol=2e-4
        )


@pytest.mark.parametrize("model", CLASS_DICTIONARIES, ids=repr)
@pytest.mark.parametrize("missing", [False, True])
def test_class_dictionaries_by_the_book(model, missing):
    X, y, T = draw(3)
    model.fit(X, y)
    if missing:
        if model.n_neighbors is not None:
            pytest.skip("which atoms are nearest is known of complete rows only")
        T[::2, 1] = np.nan
    atoms = np.concatenate([learner.components_ for learner in model.dictionaries_])
    owners = np.repeat(np.arange(N_CLASSES), 5)
    for x, why in zip(T, model.explain(T), strict=True):
        code = dense(why, len(atoms))
        energy, residual, residuals = oracle.explained(x, atoms, code, owners, N_CLASSES)
        np.testing.assert_allclose([why.energy, why.residual], [energy, residual], atol=1e-10)
        np.testing.assert_array_equal(why.owners, owners[why.atoms])
        best = int(np.flatnonzero(model.classes_ == why.label)[0])
        if model.scheme == "collective":
            np.testing.assert_allclose(why.residuals, residuals, atol=1e-10)
        else:
            assert set(why.owners) <= {best}
            np.testing.assert_allclose(why.residuals[best], residuals[best], atol=1e-10)
            assert why.residual == why.residuals.min()
    if not missing and model.scheme == "distributive" and model.n_neighbors is None:
        left = [
            ((T - learner.inverse_transform(learner.transform(T))) ** 2).sum(axis=1)
            for learner in model.dictionaries_
        ]
        np.testing.assert_allclose(stack(model.explain(T), "residuals"), np.transpose(left))


@pytest.mark.parametrize("model", IN_ENTRIES, ids=repr)
def test_training_rows_by_the_book(model):
    X, y, T = draw(4)
    model.fit(X, y)
    errors = model.errors(T) if model.residual_norm == "l1" else np.zeros_like(T)
    codes = model.codes(T).toarray()
    for i, why in enumerate(model.explain(T)):
        x, code = T[i] / np.linalg.norm(T[i]), dense(why, len(X))
        np.testing.assert_array_equal(code, codes[i])
        energy, residual, _ = oracle.explained(x, model.dictionary_, code, model.labels_, 3)
        np.testing.assert_allclose([why.energy, why.residual], [energy, residual], atol=1e-12)
        # Robust codes judge classes by what they trust of a row.
        trusted = oracle.explained(x - errors[i], model.dictionary_, code, model.labels_, 3)
        np.testing.assert_allclose(why.residuals, trusted[2], atol=1e-12)
        np.testing.assert_array_equal(why.owners, model.labels_[why.atoms])


@pytest.mark.parametrize("model", [*IN_ENTRIES, *ELSEWHERE], ids=repr)
def test_residuals_are_those_that_training_rows_are_judged_by(model):
    X, y, T = draw(5)
    parts = model.fit(X, y)._represent(T, lambda rows, near, found: found.parts)
    found = model.explain(T)
    expected = np.concatenate([part.residuals2 for part in parts])
    np.testing.assert_array_equal(stack(found, "residuals"), expected)
    norms2 = [np.bincount(why.owners, why.coefficients**2, minlength=3) for why in found]
    with np.errstate(divide="ignore", invalid="ignore"):
        regularised = np.sqrt(stack(found, "residuals") / norms2)
    regularised[np.array(norms2) == 0] = np.inf
    np.testing.assert_allclose(regularised, model.residuals(T), rtol=1e-6)


@pytest.mark.parametrize("model", ELSEWHERE, ids=repr)
def test_what_is_left_in_feature_space_and_through_projections(model):
    """From inner products of what the classifier sees, one row at a time."""
    X, y, T = draw(6)
    model.fit(X, y)
    unit = T / np.linalg.norm(T, axis=1, keepdims=True)

    def rbf(A, B):
        return np.exp(-0.5 * ((A[:, None] - B) ** 2).sum(axis=2))

    gram, corr = rbf(model.dictionary_, model.dictionary_), rbf(unit, model.dictionary_)
    near = np.ones(corr.shape, bool)
    if model.n_neighbors is not None:
        order = np.argsort(-corr, axis=1)
        near[np.arange(len(T))[:, None], order[:, model.n_neighbors :]] = False
    for i, why in enumerate(model.explain(T)):
        code = dense(why, len(X))
        if not model.projected_:
            energy, residual = 1.0, 1.0 - 2 * corr[i] @ code + code @ gram @ code
        else:
            psi = np.eye(len(X))[:, near[i]] if model.projection_ is None else model.projection_
            energy, residual, _ = oracle.explained(corr[i] @ psi, gram @ psi, code, y, 1)
        np.testing.assert_allclose([why.energy, why.residual], [energy, residual], atol=1e-9)


def test_neighbours_of_one_class_decide_at_once():
    X, y, T = draw(7)
    model = CRCClassifier("rbf", mu=0.05, n_neighbors=2).fit(X, y)
    found = model.explain(T)
    alone = [why for why in found if len(set(model.labels_[why.atoms])) == 1]
    assert 0 < len(alone) < len(found)
    for why in alone:
        np.testing.assert_array_equal(np.sort(why.scores), [0, 0, 1])
        assert len(why.atoms) == 2


@pytest.mark.parametrize("model", [*CLASS_DICTIONARIES[:2], *IN_ENTRIES], ids=repr)
def test_a_zero_row_has_an_empty_code(model):
    X, y, _ = draw(8)
    (why,) = model.fit(X, y).explain(np.zeros((1, X.shape[1])))
    assert why.label == model.predict(np.zeros((1, X.shape[1])))[0] == 0
    assert (why.energy, why.residual, len(why.atoms)) == (0, 0, 0)
    np.testing.assert_array_equal(why.residuals, 0)
    np.testing.assert_array_equal(why.code_energies(), 0)
    assert "The row is 0" in str(why)
    assert "No atom is used" in str(why)


@pytest.mark.parametrize(
    "names", [["a", "b"], [True, False], [7, -3], np.array([b"x", b"y"], object)], ids=str
)
@pytest.mark.parametrize("model", [CLASS_DICTIONARIES[0], CRCClassifier(mu=0.1)], ids=repr)
def test_two_classes_have_two_scores_and_labels_of_any_kind(model, names):
    X, y, T = draw(9)
    names = np.asarray(names)
    if names.dtype == object:
        names = names.astype(str).astype(object)
    labels = names[np.minimum(y, 1)]
    model.fit(X, labels)
    found = model.explain(T)
    np.testing.assert_array_equal(stack(found, "label"), model.predict(T))
    scores = stack(found, "scores")
    wanted = scores[:, 1] - scores[:, 0]
    if isinstance(model, ClassDictionaryClassifier):  # residuals, relative to their sum
        wanted = wanted / -scores.sum(axis=1)
    np.testing.assert_allclose(wanted, model.decision_function(T), rtol=1e-12)
    told = found[0].to_dict()
    assert told["label"] in names.tolist()
    assert json.loads(json.dumps(told)) == told
    assert [each["label"] for each in told["classes"]] == model.classes_.tolist()


def test_precomputed_kernels_do_not_know_the_energy():
    X, y, T = draw(10)
    learner = KernelKSVD(4, n_nonzero_coefs=2, kernel="rbf", gamma=0.3)
    model = ClassDictionaryClassifier(learner, random_state=0).fit(X, y)
    given = ClassDictionaryClassifier(
        KernelKSVD(4, n_nonzero_coefs=2, kernel="precomputed"), random_state=0
    )

    def rbf(A, B):
        return np.exp(-0.3 * ((A[:, None] - B) ** 2).sum(axis=2))

    given.fit(rbf(X, X), y)
    for one, other in zip(model.explain(T), given.explain(rbf(T, X)), strict=True):
        assert (other.energy, other.residual) == (None, None)
        assert one.energy == pytest.approx(1)
        assert one.label == other.label
        np.testing.assert_allclose(other.residuals + 1, one.residuals, atol=1e-8)
        np.testing.assert_array_equal(other.atoms, one.atoms)
        np.testing.assert_allclose(other.coefficients, one.coefficients, atol=1e-8)
        apart = np.sort(other.residuals)
        assert f"leaves {apart[1] - apart[0]:.4g} more of the row than" in str(other)
        assert "is not known" in str(other)


def test_missing_values_under_kernels():
    X, y, T = draw(11)
    T[:4, 2] = np.nan
    for kernel in ("rbf", "linear"):
        learner = KernelKSVD(4, n_nonzero_coefs=2, kernel=kernel)
        model = ClassDictionaryClassifier(learner, random_state=0).fit(X, y)
        found = model.explain(T)
        np.testing.assert_array_equal(stack(found, "label"), model.predict(T))
        expected = np.nansum(T**2, axis=1) if kernel == "linear" else np.ones(len(T))
        np.testing.assert_allclose(stack(found, "energy"), expected)


def test_linear_kernels_score_what_is_observed():
    X, _, T = draw(15)
    T[:4, 2] = np.nan
    model = KernelKSVD(4, n_nonzero_coefs=2, kernel="linear", random_state=0).fit(X)
    rows = model.transform(T).toarray() @ model.components_
    left = np.nansum((T - rows) ** 2)
    assert model.score(T) == pytest.approx(1 - left / np.nansum(T**2))


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 6), n_atoms=st.integers(1, 12))
def test_codes_are_told_by_falling_size(seed, n, n_atoms):
    rng = np.random.default_rng(seed)
    # Whole numbers: many are alike, some are stored as 0.
    W = rng.integers(-2, 3, (n, n_atoms)) * (rng.random((n, n_atoms)) < 0.8)
    codes = scipy.sparse.csr_array(np.ones((n, n_atoms)))
    codes.data[:] = W.ravel()
    owners, weights = rng.integers(0, 4, n_atoms), rng.standard_normal((4, n_atoms))
    scores = codes @ weights.T
    found = explain_codes(codes, owners, np.array(list("abcd")), scores, score_weights=weights)
    for w, score, why in zip(W, scores, found, strict=True):
        used = sorted(np.flatnonzero(w), key=lambda i: (-abs(w[i]), i))
        assert why.atoms.tolist() == used
        assert why.coefficients.tolist() == w[used].tolist()
        assert why.owners.tolist() == owners[used].tolist()
        assert why.label == "abcd"[score.argmax()]
        np.testing.assert_allclose(why.contributions.sum(), score.max(), atol=1e-12)
        assert (why.energy, why.residual, why.residuals) == (None, None, None)


def test_in_words():
    codes = scipy.sparse.csr_array([[(-1) ** i * (i + 1.0) for i in range(14)]])
    classes = np.array(["low\nland", "up"])
    owners = np.repeat([0, 1], 7)
    (why,) = explain_codes(
        codes, owners, classes, np.array([[0.25, 0.5]]), residuals=np.array([[3.0, 0.001]]),
        residual=np.array([1.0]), energies=np.array([4.0]), score_weights=np.full((2, 14), 0.5),
    )  # fmt: skip
    lines = str(why).splitlines()
    assert lines[:5] == [
        "Answer: 'up' (score 0.5), leaves below 0.1% of the row's energy, "
        "has 86.2% of the code's energy",
        "Next best: 'low\\nland' (score 0.25), leaves 75.0% of the row's energy, "
        "has 13.8% of the code's energy",
        "All atoms together leave 25.0%",
        "atom        class  coefficient  contribution",
        "  13         'up'          -14            -7",
    ]
    assert lines[-2:] == ["   4  'low\\nland'           +5          +2.5", "and 4 atoms more"]
    told = why.to_dict()
    assert told["atoms"][0] == {
        "atom": 13, "label": "up", "coefficient": -14.0, "contribution": -7.0,
    }  # fmt: skip
    assert told["classes"][0] == {
        "label": "low\nland", "score": 0.25, "residual": 3.0,
        "code_energy": pytest.approx(140 / 1015),
    }  # fmt: skip
    assert (told["label"], told["energy"], told["residual"]) == ("up", 4.0, 1.0)


def test_neighbours_of_one_class_decide_without_a_code():
    """A penalty that allows no atom: the neighbours' class is the answer all the same."""
    X, y, T = draw(7)
    model = SRCClassifier(alpha=1e3, n_neighbors=1).fit(X, y)
    found = model.explain(T)
    np.testing.assert_array_equal(stack(found, "label"), model.predict(T))
    np.testing.assert_array_equal(stack(found, "scores"), model.predict_proba(T))
    assert {len(why.atoms) for why in found} == {0}
    assert len(set(stack(found, "label").tolist())) > 1


def test_in_words_of_one_class_alone():
    codes, classes = scipy.sparse.csr_array([[0.0, 2.0]]), np.array([False, True])
    (why,) = explain_codes(
        codes, [0, 1], classes, np.array([[-3.9999, -0.0]]), residuals=np.array([[3.9999, 0.0]]),
        residual=np.array([0.0]), energies=np.array([4.0]),
    )  # fmt: skip
    assert str(why).splitlines()[:3] == [
        "Answer: True (score -0), leaves 0.0% of the row's energy",
        "Next best: False (score -4), leaves above 99.9% of the row's energy",
        "atom  class  coefficient",
    ]


def test_scores_of_nothing_left_are_0():
    model = ClassDictionaryClassifier(KSVD(2, n_nonzero_coefs=2)).fit(np.eye(4), [1, 1, 2, 2])
    (why,) = model.explain(np.eye(4)[:1])
    assert str(why).startswith("Answer: 1 (score 0), leaves 0.0%")


class TestAnyModel:
    def test_rows_pass_through_the_steps(self):
        X, y, T = draw(12)
        inner = make_pipeline(
            KernelLinearizer("rbf", gamma=0.2, random_state=0),
            ClassDictionaryClassifier(KSVD(4, n_nonzero_coefs=2), random_state=0),
        )
        model = make_pipeline(StandardScaler(), "passthrough", inner).fit(X, y)
        expected = model[-1][-1].explain(model[-1][0].transform(model[0].transform(T)))
        for one, other in zip(explain(model, T), expected, strict=True):
            assert str(one) == str(other)
        alone = make_pipeline(CRCClassifier(mu=0.1)).fit(X, y)
        assert str(explain(alone, T)[0]) == str(explain(alone[-1], T)[0])

    @pytest.mark.parametrize(
        ("model", "words"),
        [
            (KSVD(), r"got KSVD\."),
            (make_pipeline(StandardScaler(), LogisticRegression()), "ends in LogisticRegression"),
            (make_pipeline(StandardScaler(), "passthrough"), "ends in StandardScaler"),
            (GridSearchCV(CRCClassifier(), {}), r"got GridSearchCV\.$"),
            (CRCClassifier, "got <class"),
            (None, "got NoneType"),
        ],
        ids=str,
    )
    def test_other_models_are_refused(self, model, words):
        with pytest.raises(TypeError, match=f"model must be a fitted classifier.*{words}"):
            explain(model, np.eye(3))

    def test_a_search_holds_its_model(self):
        X, y, _ = draw(13)
        search = GridSearchCV(CRCClassifier(), {"mu": [0.1]}, cv=2).fit(X, y)
        with pytest.raises(TypeError, match="in best_estimator_: pass that"):
            explain(search, X)

    def test_bad_rows_are_refused_as_predict_does(self):
        X, y, _ = draw(14)
        for model in (CLASS_DICTIONARIES[2].fit(X, y), CRCClassifier(mu=0.1).fit(X, y)):
            with pytest.raises(ValueError, match="NaN"):
                model.explain(np.where(np.eye(6), np.nan, 1))
            with pytest.raises(ValueError, match="6 features"):
                model.explain(X[:, :4])
