"""What scikit-learn's users are used to: data frames, nested grids, sparse rows, plain errors."""

import re
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import kernelatoms
from draws import later
from kernelatoms import (
    KSAD,
    KSCDL,
    KSVD,
    MOD,
    ClassDictionaryClassifier,
    CRCClassifier,
    DKSVDClassifier,
    FDDLClassifier,
    KernelKSVD,
    KernelLinearizer,
    KernelMOD,
    KSADClassifier,
    LCKSVDClassifier,
    SparseCoder,
    SRCClassifier,
    lasso_path,
    make_lkdl,
    residual_norms,
    sparse_encode,
)
from kernelatoms.estimators import validation
from kernelatoms.estimators.devices import border
from kernelatoms.features import memory

TRANSFORMERS = [
    KSVD(8),
    MOD(8),
    KernelKSVD(8),
    KernelMOD(8),
    KSAD(8),
    KSCDL(8, alpha=0.01),
    KernelLinearizer(),
    DKSVDClassifier(9),
    LCKSVDClassifier(9),
    FDDLClassifier(3),
    KSADClassifier(8),
    SparseCoder(np.eye(6), n_nonzero_coefs=2),
]
CLASSIFIERS = [
    ClassDictionaryClassifier(KSVD(4)),
    CRCClassifier(),
    SRCClassifier(),
    DKSVDClassifier(9),
    FDDLClassifier(3),
    KSADClassifier(8),
]


def by_name(estimators):
    return pytest.mark.parametrize(
        "estimator", estimators, ids=[type(one).__name__ for one in estimators]
    )


def seeded(estimator):
    given = estimator.get_params()
    wanted = {"random_state": 0, "max_iter": 3}
    return clone(estimator).set_params(**{n: v for n, v in wanted.items() if n in given})


@pytest.fixture
def labelled(rng):
    y = np.arange(60) % 3
    X = np.eye(6)[y] + 0.3 * rng.standard_normal((60, 6))
    return np.where(np.abs(X) < 0.2, 0.0, X), y


@by_name(TRANSFORMERS)
def test_data_frames(estimator, labelled):
    pandas = pytest.importorskip("pandas")
    X, y = labelled
    frame = pandas.DataFrame(X, columns=list("abcdef"), index=np.arange(60) + 100)
    model = seeded(estimator).fit(frame, y)
    plain = model.transform(frame)
    plain = plain.toarray() if scipy.sparse.issparse(plain) else plain
    codes = model.set_output(transform="pandas").transform(frame)
    np.testing.assert_array_equal(codes.to_numpy(), plain)
    assert codes.index.tolist() == frame.index.tolist()
    assert codes.columns.tolist() == model.get_feature_names_out().tolist()
    assert codes.columns[0] == type(estimator).__name__.lower() + "0"
    with sklearn.config_context(transform_output="pandas"):
        again = seeded(estimator).fit(frame, y)
        np.testing.assert_array_equal(again.transform(frame).to_numpy(), plain)


def test_frames_that_do_not_fit_are_refused(labelled, monkeypatch):
    pytest.importorskip("pandas")
    X, _ = labelled
    model = KSVD(8, max_iter=1).set_output(transform="pandas").fit(X)
    monkeypatch.setattr(memory, "_ALWAYS_FITS", 0)
    monkeypatch.setattr(memory, "available_bytes", lambda: 10)
    with pytest.raises(ValueError, match="Dense codes of 60 signals over 8 atoms"):
        model.transform(X)


@pytest.mark.parametrize("learner", [KSVD(), MOD(), KernelKSVD(), KSAD(), KSCDL()], ids=repr)
def test_grids_over_learners(learner, labelled):
    X, _ = labelled
    search = GridSearchCV(seeded(learner), {"n_atoms": [2, 5]}, cv=2).fit(X)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_params_ == {"n_atoms": 5}


def test_nested_grids_over_defaults(labelled):
    X, y = labelled
    grid = {"dictionary__n_atoms": [1, 3], "dictionary__max_iter": [2]}
    search = GridSearchCV(ClassDictionaryClassifier(random_state=0), grid, cv=2).fit(X, y)
    best = search.best_estimator_.dictionary
    assert isinstance(best, KSVD)
    assert best.n_atoms == search.best_params_["dictionary__n_atoms"]
    lkdl = make_lkdl(ClassDictionaryClassifier(random_state=0), gamma=0.5, random_state=0)
    grid = {"learn__dictionary__n_atoms": [1, 3], "map__gamma": [0.1]}
    search = GridSearchCV(lkdl, grid, cv=2).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    model = ClassDictionaryClassifier(MOD()).set_params(dictionary__n_atoms=4)
    assert isinstance(model.dictionary, MOD)
    both = {"dictionary": MOD(), "dictionary__n_atoms": 2}
    assert repr(ClassDictionaryClassifier().set_params(**both).dictionary) == repr(MOD(2))
    with pytest.raises(ValueError, match="Invalid parameter 'atoms'"):
        ClassDictionaryClassifier().set_params(dictionary__atoms=4)


@pytest.mark.parametrize("kind", [scipy.sparse.csr_array, later(scipy.sparse.csc_matrix)])
@by_name([*TRANSFORMERS[:-1], *CLASSIFIERS])
def test_sparse_rows_are_the_same_rows(estimator, kind, labelled):
    X, y = labelled
    dense, sparse = seeded(estimator).fit(X, y), seeded(estimator).fit(kind(X), y)
    assert sklearn.utils.get_tags(sparse).input_tags.sparse
    for name in ("transform", "predict", "predict_proba", "decision_function", "residuals"):
        if hasattr(dense, name):
            wanted, found = (getattr(*pair)(X) for pair in ((dense, name), (sparse, name)))
            same(getattr(sparse, name)(kind(X)), found)
            same(found, wanted)


@by_name([KSVD(8), KernelLinearizer(), *CLASSIFIERS])
def test_large_sparse_rows_go_in_blocks(estimator, labelled, monkeypatch):
    """Never all of them dense at once: there is no memory for more than a block."""
    X, y = labelled
    model = seeded(estimator).fit(X, y)
    whole = {
        name: getattr(model, name)(X)
        for name in ("transform", "predict", "predict_proba", "explain", "codes")
        if hasattr(model, name)
    }
    monkeypatch.setattr(border, "_BLOCK", 7 * 6 * 8)
    seen = []
    monkeypatch.setattr(
        validation, "dense_rows", lambda X, name="X": seen.append(X.shape[0]) or X.toarray()
    )
    for name, wanted in whole.items():
        seen.clear()
        found = getattr(model, name)(scipy.sparse.csr_array(X))
        assert max(seen) == 7
        assert sum(seen) == 60
        if name == "explain":
            assert [why.label for why in found] == [why.label for why in wanted]
        else:
            same(found, wanted)


def same(one, two):
    one, two = (x.toarray() if scipy.sparse.issparse(x) else x for x in (one, two))
    if one.dtype.kind == "f":
        np.testing.assert_allclose(one, two, rtol=1e-7, atol=1e-9)
    else:
        np.testing.assert_array_equal(one, two)


def test_functions_take_sparse_rows_and_atoms(labelled):
    X, _ = labelled
    atoms = np.eye(6)[:4]
    rows, sparse_atoms = scipy.sparse.csr_array(X), scipy.sparse.csr_array(atoms)
    codes = sparse_encode(X, atoms, n_nonzero_coefs=2)
    same(sparse_encode(rows, sparse_atoms, n_nonzero_coefs=2), codes)
    same(SparseCoder(sparse_atoms, n_nonzero_coefs=2).fit_transform(rows), codes)
    same(residual_norms(rows, sparse_atoms, codes), residual_norms(X, atoms, codes))
    same(lasso_path(rows, atoms).codes[-1], lasso_path(X, atoms).codes[-1])


def test_sparse_rows_that_do_not_fit_are_refused_with_their_size():
    huge = scipy.sparse.csr_array((10**6, 10**7))
    words = r"1,000,000 x 10,000,000 values of X.* need about 74,506 GiB of memory"
    for call in (KSVD().fit, KernelLinearizer().fit, lambda X: sparse_encode(X, np.eye(3))):
        with pytest.raises(ValueError, match=words):
            call(huge)


def test_transposed_dictionaries_are_errors_that_say_so(labelled):
    X, _ = labelled
    atoms = np.ones((6, 9))  # (n_features, n_atoms)
    words = r"its shape is \(6, 9\); it looks transposed: pass {}\.T"
    with pytest.raises(ValueError, match=words.format("dictionary")):
        sparse_encode(X, atoms)
    with pytest.raises(ValueError, match=words.format("dictionary")):
        lasso_path(X, atoms)
    with pytest.raises(ValueError, match=words.format("dictionary")):
        SparseCoder(atoms).fit(X)
    for learner in (KSVD(), MOD(), KernelKSVD(), KSCDL()):
        with pytest.raises(ValueError, match=words.format("dict_init")):
            clone(learner).set_params(dict_init=atoms).fit(X)
    with pytest.raises(ValueError, match=r"its shape is \(5, 9\)\.$"):
        sparse_encode(X, np.ones((5, 9)))


def test_messages_name_public_classes_only():
    """In no text of the library is there a class that a user cannot import."""
    source = Path(kernelatoms.__file__).parent
    private = set()
    for path in (source / "estimators").rglob("*.py"):
        private |= set(re.findall(r"^class (\w+)", path.read_text(), re.MULTILINE))
    private -= set(kernelatoms.__all__) | set(kernelatoms.__dict__)
    assert "DictionaryCoder" in private
    words = re.compile(rf"\b({'|'.join(sorted(private))})\b")
    for path in [*(source / "estimators").rglob("*.py"), source / "codec" / "estimator.py"]:
        if path.name == "registry.py":
            continue
        for text in re.findall(r'^\s+f?"(.*)"', path.read_text(), re.MULTILINE):
            assert not words.search(text), (path.name, text)


def test_errors_of_python_name_no_private_class():
    private = re.compile(
        r"\b(Linear|Kernel|Dictionary|Label)Learner|Coder\.|Dictionary\.|Estimator\.|tionClass"
    )
    for kind in {type(one) for one in (*TRANSFORMERS, *CLASSIFIERS)} - {SparseCoder}:
        calls = [lambda kind=kind: kind(atoms=3), lambda kind=kind: kind().fit()]
        names = ("transform", "predict", "predict_proba", "decision_function", "score")
        model = kind()
        calls += [getattr(model, name) for name in names if hasattr(model, name)]
        for call in calls:
            with pytest.raises(TypeError) as error:
                call()
            if "sklearn" not in str(error.traceback[-1].path):
                assert not private.search(str(error.value)), error.value
