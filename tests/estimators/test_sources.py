"""Learning over sources of rows: what learns does so as in memory; what cannot says so."""

import re
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline

import kernelatoms
from kernelatoms import (
    KSAD,
    KSCDL,
    KSVD,
    MOD,
    ClassDictionaryClassifier,
    KernelKSVD,
    KernelLinearizer,
    KernelMOD,
    NearestImputer,
    RowNormalizer,
    SparseCoder,
    TrainingImputer,
    make_lkdl,
    open_rows,
    residual_norms,
    sparse_encode,
)
from kernelatoms.engine.cpu.threads import n_threads
from kernelatoms.estimators import base as sampling
from kernelatoms.rows import ArrayRows, RowSource, SparseRows

from every_estimator import WAYS

LANDMARKS = {"coordinates": KernelLinearizer(n_landmarks=40), "gamma": 0.1}
#: Learners that see in a source just what they see in memory, and the digits they agree to.
LEARNERS = [
    (MOD(12, n_nonzero_coefs=3, max_iter=4, random_state=0), 0.0),
    (MOD(12, alpha=0.3, max_iter=4, random_state=0), 0.0),
    (KernelMOD(12, n_nonzero_coefs=3, max_iter=4, random_state=0, **LANDMARKS), 1e-9),
    (KSAD(12, max_iter=4, random_state=0), 1e-9),
]
#: Learners by other steps than in memory.
OTHERS = [
    KSVD(12, n_nonzero_coefs=3, max_iter=8, random_state=0),
    KernelKSVD(12, n_nonzero_coefs=3, max_iter=8, random_state=0, **LANDMARKS),
    KSCDL(12, alpha=0.05, gamma=0.1, max_iter=8, tol=0, random_state=0),
    KSCDL(12, alpha=0.05, kernel="linear", max_iter=8, tol=0, random_state=0),
]
ALL = [learner for learner, _ in LEARNERS] + OTHERS


def signals(seed=0, n=600, n_features=8, dtype=np.float64):
    """Return sparse combinations of few directions, and classes that use some of them each."""
    rng = np.random.default_rng(seed)
    atoms = rng.standard_normal((12, n_features))
    labels = rng.integers(0, 3, n)
    W = np.zeros((n, 12))
    for i, label in enumerate(labels):
        W[i, 4 * label + rng.permutation(4)[:2]] = rng.standard_normal(2)
    return (W @ atoms + 0.05 * rng.standard_normal((n, n_features))).astype(dtype), labels


def fitted(learner):
    """Return what a learner has learned, as arrays by name."""
    return {
        name: value
        for name, value in vars(learner).items()
        if name.endswith("_") and isinstance(value, np.ndarray)
    }


def same_bits(one, two):
    one, two = fitted(one), fitted(two)
    assert one.keys() == two.keys() and one
    for name, value in one.items():
        np.testing.assert_array_equal(value, two[name], err_msg=name)


class Uncounted(RowSource):
    """Rows that are counted by the first pass; another number of them in a later one."""

    def __init__(self, X, later=None):
        super().__init__(None, X.shape[1], X.dtype)
        self.X, self.later, self.n_passes = X, later, 0

    def _read(self, block_rows):
        self.n_passes += 1
        X = self.X if self.later is None or self.n_passes < 4 else self.later
        for start in range(0, len(X), block_rows):
            yield X[start : start + block_rows]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("learner", "rtol"), LEARNERS)
def test_a_source_is_as_good_as_an_array(learner, rtol, dtype, tmp_path):
    X, _ = signals(dtype=dtype)
    np.save(tmp_path / "x.npy", X)
    memory, files = clone(learner).fit(X), clone(learner).fit(open_rows(tmp_path / "x.npy"))
    if rtol == 0:
        return same_bits(memory, files)
    rtol = rtol if dtype == np.float64 else 2e-3
    np.testing.assert_allclose(files.objective_, memory.objective_, rtol=rtol)
    scale = np.abs(memory.components_).max()
    if dtype == np.float64:
        np.testing.assert_allclose(files.components_, memory.components_, atol=1e-6 * scale)
    return None


def clone(learner):
    import sklearn

    return sklearn.clone(learner)


@pytest.mark.parametrize("learner", OTHERS)
def test_other_steps_lead_as_far(learner):
    X, _ = signals()
    memory, source = clone(learner).fit(X), clone(learner).fit(ArrayRows(X).map(np.asarray, 8))
    assert source.objective_.min() <= 1.1 * memory.objective_.min()
    assert len(source.objective_) <= learner.max_iter
    assert source.score(X) > 0.9 * memory.score(X)


@pytest.mark.parametrize("learner", ALL)
def test_the_same_bits_from_every_kind_of_source(learner, tmp_path):
    import pyarrow.parquet

    X, _ = signals(dtype=np.float32)
    np.save(tmp_path / "x.npy", X)
    table = pyarrow.table({f"x{j}": column for j, column in enumerate(X.T.copy())})
    pyarrow.parquet.write_table(table, tmp_path / "x.parquet", row_group_size=97)
    sources = [
        open_rows(tmp_path / "x.npy"),
        open_rows(tmp_path / "x.parquet"),
        SparseRows(sparse.csr_array(X)),
        Uncounted(X),
    ]
    models = [clone(learner).fit(source) for source in sources]
    for model in models[1:]:
        same_bits(models[0], model)


@pytest.mark.parametrize("learner", ALL)
def test_threads_and_second_fits_change_no_bits(learner, monkeypatch):
    X, _ = signals(n=2000)
    source = ArrayRows(X).map(np.asarray, 8)
    monkeypatch.setenv("NUMBA_NUM_THREADS", "1")
    one = clone(learner).fit(source)
    again = clone(learner)
    same_bits(one, again.fit(source).fit(source))


@pytest.mark.parametrize("learner", [KSVD(5, max_iter=2), *ALL[2:]])
def test_all_classes_learn_from_one_source(learner, tmp_path):
    X, labels = signals()
    order = np.argsort(labels, kind="stable")  # the last class is in the last rows alone
    X, labels = X[order], np.array(["a", "b", "c"])[labels[order]]
    np.save(tmp_path / "x.npy", X)
    model = ClassDictionaryClassifier(clone(learner).set_params(n_atoms=4), random_state=0)
    source = open_rows(tmp_path / "x.npy", label=labels)
    files = clone(model).fit(source)
    memory = clone(model).fit(X, labels)
    assert files.classes_.tolist() == ["a", "b", "c"]
    answers = files.predict(source)
    assert isinstance(answers, RowSource)
    answers = answers.collect()
    np.testing.assert_array_equal(answers, files.predict(X))
    assert files.score(source) == np.mean(answers == labels)
    assert files.score(source) > memory.score(X, labels) - 0.05


def test_all_classes_learn_in_as_many_passes_as_one():
    X, labels = signals()
    for dictionary in (KernelMOD(4, max_iter=3, tol=0, **LANDMARKS), KSAD(4, max_iter=3, tol=0)):
        counts = []
        for classes in (labels % 2, labels):
            source = Uncounted(X)
            ClassDictionaryClassifier(dictionary, random_state=0).fit(source, classes)
            counts.append(source.n_passes)
        assert counts[0] == counts[1] < 16


@pytest.mark.parametrize("learner", ALL)
def test_answers_are_those_of_arrays(learner):
    X, _ = signals()
    source = ArrayRows(X).map(np.asarray, 8)
    model = clone(learner).fit(X)
    codes = model.transform(source)
    assert isinstance(codes, RowSource) and codes.shape == (600, 12)
    np.testing.assert_allclose(codes.collect().toarray(), model.transform(X).toarray(), atol=1e-9)
    back = model.inverse_transform(codes).collect()
    np.testing.assert_allclose(back, model.inverse_transform(model.transform(X)), atol=1e-6)
    assert model.score(source) == pytest.approx(model.score(X), rel=1e-9)
    coded = sparse_encode(source, model, n_nonzero_coefs=2, max_residual=0.01)
    here = sparse_encode(X, model, n_nonzero_coefs=2, max_residual=0.01)
    np.testing.assert_allclose(coded.collect().toarray(), here.toarray(), atol=1e-9)
    norms = residual_norms(X, model, here)
    for codes in (coded, here, here.toarray()):
        found = residual_norms(source, model, codes)
        assert isinstance(found, RowSource)
        np.testing.assert_allclose(found.collect(), norms, atol=1e-7)
        np.testing.assert_allclose(found.take([5, 3]), norms[[5, 3]], atol=1e-7)


def test_answers_are_those_of_the_model_as_it_was():
    X, _ = signals()
    model = MOD(12, max_iter=2, random_state=0).fit(X)
    codes, before = model.transform(ArrayRows(X)), model.transform(X)
    model.fit(X[::2])
    np.testing.assert_array_equal(codes.collect().toarray(), before.toarray())


def test_pipelines_of_sources(tmp_path):
    X, labels = signals()
    source = ArrayRows(X, labels)
    for first in (RowNormalizer(), RowNormalizer(0.5), None):
        steps = [] if first is None else [first]
        model = make_pipeline(
            *steps,
            KernelLinearizer(n_landmarks=50, random_state=0),
            ClassDictionaryClassifier(MOD(4, n_nonzero_coefs=2, max_iter=3), random_state=0),
        )
        memory = model.fit(X, labels).predict(X)
        assert np.mean(model.fit(source).predict(source).collect() == memory) > 0.99
    model = make_lkdl(
        ClassDictionaryClassifier(KSVD(4, max_iter=3), random_state=0), n_landmarks=50,
        unit_rows=True, random_state=0,
    )  # fmt: skip
    memory = model.fit(X, labels).score(X, labels)
    assert model.fit(source).score(source, labels) > memory - 0.03


def test_holes_of_a_source_are_filled():
    X, labels = signals()
    holed = X.copy()
    holed[::5, 2] = np.nan
    source = ArrayRows(holed, labels)
    with pytest.raises(ValueError, match="NaN"):
        MOD(6).fit(source)
    for imputer in (NearestImputer(random_state=0), TrainingImputer()):
        memory = imputer.fit(holed).transform(holed)
        np.testing.assert_array_equal(imputer.fit(source).transform(source).collect(), memory)
        filled = imputer.fit_transform(source).collect()
        np.testing.assert_array_equal(filled, imputer.fit_transform(holed))
        assert np.isfinite(filled).all()
        model = make_pipeline(imputer, KSVD(6, max_iter=2, random_state=0)).fit(source)
        assert model[-1].score(ArrayRows(filled)) > 0.3


def test_the_map_may_be_that_of_a_sample(monkeypatch):
    """With fewer rows in the sample than there are, all of them are learned from."""
    X, labels = signals(n=3000)
    monkeypatch.setattr(sampling, "_SAMPLE_ROWS", 300)
    source = ArrayRows(X, labels).map(np.asarray, 8)
    for learner in (LEARNERS[2][0], KSAD(8, max_iter=4, random_state=0)):
        model = clone(learner).fit(source)
        own = model.anchors_
        assert all((own[:, None] == X).all(axis=2).any(axis=1))  # rows of the source
        assert model.score(source) > clone(learner).fit(X).score(X) - 0.1
        # The objective is that of all rows: codes' errors and the penalty or what is outside.
        assert model.objective_[-1] > 5 * clone(learner).fit(X[:300]).objective_[-1]
        per_class = ClassDictionaryClassifier(clone(learner).set_params(n_atoms=4), random_state=0)
        assert per_class.fit(source, labels).score(source, labels) > 0.8
    gamma = KSCDL(8, gamma="search", max_iter=2, random_state=0).fit(source).gamma_
    assert gamma > 0


def test_what_is_learned_from_a_sample_is_what_is_learned_from_those_rows(monkeypatch):
    X, _ = signals(n=500)
    monkeypatch.setattr(sampling, "_SAMPLE_ROWS", 100)
    drawn = np.sort(np.random.RandomState(0).permutation(500)[:100])
    a = KernelLinearizer(n_landmarks=20, random_state=0).fit(ArrayRows(X))
    same_bits(a, KernelLinearizer(n_landmarks=20, random_state=0).fit(X[drawn]))


def test_names_of_columns(tmp_path):
    import pyarrow.parquet

    X, labels = signals()
    names = [f"x{j}" for j in range(8)]
    table = pyarrow.table(dict(zip(names, X.T.copy(), strict=True)))
    pyarrow.parquet.write_table(table, tmp_path / "x.parquet")
    pyarrow.parquet.write_table(table.select(names[::-1]), tmp_path / "turned.parquet")
    source, turned = open_rows(tmp_path / "x.parquet"), open_rows(tmp_path / "turned.parquet")
    models = [
        MOD(6, max_iter=2), KSAD(6, max_iter=2), KernelLinearizer(n_landmarks=20), RowNormalizer(),
        NearestImputer(), SparseCoder(X[:6]),
    ]  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for model in models:
            assert model.fit(source).feature_names_in_.tolist() == names
            model.transform(source).collect()
        assert models[0].score(source) > 0
        classifier = ClassDictionaryClassifier(MOD(4, max_iter=2)).fit(source, labels)
        assert classifier.predict_proba(source).collect().shape == (600, 3)
    for model in models:
        with pytest.raises(ValueError, match="order"):
            model.transform(turned)
    with pytest.raises(ValueError, match="order"):
        models[0].score(turned)
    with pytest.raises(ValueError, match="7 features"):
        models[0].transform(ArrayRows(X[:, :7]))
    with pytest.raises(ValueError, match="7 features"):
        classifier.predict(ArrayRows(X[:, :7]))


@pytest.mark.parametrize(
    ("learner", "words"),
    [
        (KernelMOD(), r"coordinates='exact' .* \(2\.68e-05 GiB for all 60 rows\).*KernelLinear"),
        (KernelKSVD(coordinates=0.1), "coordinates=0.1 .*KernelLinearizer"),
        (KernelMOD(kernel="precomputed"), "precomputed.*source of rows"),
        (KSAD(kernel="precomputed"), "precomputed.*source of rows"),
    ],
)
def test_what_cannot_learn_from_a_source_says_what_can(learner, words):
    class Unread(Uncounted):
        def _read(self, block_rows):
            raise AssertionError("no row is read")

    X, labels = signals(n=60)
    source = Unread(X)
    source.n_rows = 60
    for model in (learner, ClassDictionaryClassifier(learner)):
        with pytest.raises(ValueError, match=words):
            model.fit(source, labels)
        assert not hasattr(model, "n_features_in_")


@pytest.mark.parametrize(("estimator", "ways"), WAYS, ids=lambda given: type(given).__name__)
def test_every_estimator_learns_from_a_source_or_names_what_does(estimator, ways):
    digits, y = load_digits(return_X_y=True)
    X, y = digits[y < 3][:90, 10:15] + 1.0, y[y < 3][:90]
    for way in ways:
        model = clone(estimator).set_params(**way)
        before = dict(vars(model))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.fit(ArrayRows(X), y)
        except (TypeError, ValueError) as error:
            advice = r"source of rows.*(ClassDictionary|KernelLinearizer|compress|calibrate=False)"
            assert re.search(advice, str(error)), error
            assert vars(model) == before
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.fit(X, y)
        names = ("transform", "predict", "decision_function", "predict_proba")
        for name in names:
            if not hasattr(model, name):
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                lazy, here = getattr(model, name)(ArrayRows(X)), getattr(model, name)(X)
            assert isinstance(lazy, RowSource)
            lazy = lazy.collect()
            here, lazy = (
                some.toarray() if sparse.issparse(some) else some for some in (here, lazy)
            )
            np.testing.assert_allclose(lazy, here, rtol=1e-6, atol=1e-7 * np.abs(here).max())
        for name in ("explain", "encode", "partial_fit"):
            if hasattr(model, name):
                given = (ArrayRows(X), y) if name == "partial_fit" else (ArrayRows(X),)
                with pytest.raises(TypeError, match="rows in memory"):
                    getattr(model, name)(*given)


@pytest.mark.parametrize("learner", ALL)
def test_a_source_that_changes_leaves_the_learner_as_it_was(learner):
    X, labels = signals()
    model = clone(learner).fit(X)
    before = fitted(model)
    with pytest.raises(ValueError, match="rows have changed since they were counted"):
        model.fit(Uncounted(X, later=X[:-1]))
    after = fitted(model)
    assert before.keys() == after.keys()
    assert all(after[name] is value for name, value in before.items())
    classifier = ClassDictionaryClassifier(clone(learner).set_params(n_atoms=3))
    with pytest.raises(ValueError, match="rows have changed"):
        classifier.fit(Uncounted(X, later=np.concatenate([X, X[:1]])), labels)
    assert not hasattr(classifier, "dictionaries_")


def test_bad_labels_and_rows_are_refused():
    X, labels = signals()
    model = ClassDictionaryClassifier(MOD(4))
    for y, words in ((None, "label"), (labels[:-1], "599"), (np.zeros(600), "two classes")):
        with pytest.raises(ValueError, match=words):
            model.fit(ArrayRows(X), y)
    for bad in (np.nan, np.inf):
        spoilt = X.copy()
        spoilt[-1, 3] = bad
        for learner in ALL:
            with pytest.raises(ValueError, match="NaN|infinity"):
                clone(learner).fit(ArrayRows(spoilt))
    with pytest.raises(ValueError, match="data frames"):
        MOD(4).fit(X).set_output(transform="pandas").transform(ArrayRows(X))
    with pytest.raises(ValueError, match="max_residual has an entry per row"):
        sparse_encode(ArrayRows(X), X[:5], max_residual=np.ones(600))
    with pytest.raises(ValueError, match="return_gap"):
        sparse_encode(ArrayRows(X), X[:5], method="lasso", alpha=1.0, return_gap=True)
    with pytest.raises(ValueError, match="more rows than the other"):
        residual_norms(ArrayRows(X), X[:5], np.zeros((599, 5))).collect()


def test_public_names_know_sources():
    assert kernelatoms.open_rows is open_rows and n_threads() >= 1
