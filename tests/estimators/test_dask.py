"""Learning from Dask arrays is learning from numpy arrays; answers are lazy and the same."""

import pickle
import re
import subprocess
import sys
import warnings

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from dask_cases import SMALL, counted, in_dask, uneven
from kernelatoms import (
    KSAD,
    KSCDL,
    KSVD,
    MOD,
    Checkpoint,
    ClassDictionaryClassifier,
    CRCClassifier,
    DKSVDClassifier,
    FDDLClassifier,
    KernelKSVD,
    KernelLinearizer,
    KernelMOD,
    KSADClassifier,
    LCKSVDClassifier,
    NearestImputer,
    RowNormalizer,
    SparseCoder,
    SRCClassifier,
    TrainingImputer,
    load_model,
    open_rows,
    residual_norms,
    save_model,
    sparse_encode,
)
from kernelatoms.learning import loop
from kernelatoms.rows import ArrayRows
from source_cases import ALL, LEARNERS, fitted, same_bits, signals

pytestmark = [
    pytest.mark.filterwarnings(SMALL),
    pytest.mark.filterwarnings("ignore:Number of distinct clusters"),
]

ONE = MOD(6, n_nonzero_coefs=2, max_iter=3, random_state=0)
OF_CLASSES = ClassDictionaryClassifier(clone(ONE).set_params(n_atoms=4), random_state=0)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Rows in blocks of few, so that small chunks have several."""
    monkeypatch.setattr(loop, "_FEWEST_ROWS", 32)
    monkeypatch.setattr(loop, "_FEWEST_PRODUCTS", 0)


def short(learner):
    return clone(learner).set_params(max_iter=2)


def as_source(X):
    """Return rows of an array that learners read block by block."""
    return ArrayRows(X).map(np.asarray, X.shape[1])


def dictionaries(model):
    return getattr(model, "dictionaries_", [model])


def same(one, two):
    """Two models have learned the same bits."""
    for mine, theirs in zip(dictionaries(one), dictionaries(two), strict=True):
        same_bits(mine, theirs)


# Identities.


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("learner", ALL)
def test_one_chunk_is_the_array(learner, dtype):
    X, labels = signals(n=700, dtype=dtype)
    X = X.astype(dtype)
    learned = short(learner).fit(in_dask(X, 700))
    same(learned, short(learner).fit(as_source(X)))
    assert learned.components_.dtype == dtype
    assert learned.row_chunks_.tolist() == [700]
    classes = ClassDictionaryClassifier(short(learner).set_params(n_atoms=4), random_state=0)
    one = clone(classes).fit(in_dask(X, 700), in_dask(labels, 700))
    same(one, clone(classes).fit(as_source(X), labels))
    np.testing.assert_array_equal(one.classes_, [0, 1, 2])


@pytest.mark.parametrize("learner", [learner for learner, rtol in LEARNERS if rtol == 0])
def test_one_chunk_is_the_array_in_memory(learner):
    X, _ = signals(n=700)
    same(clone(learner).fit(in_dask(X, 700)), clone(learner).fit(X))


@pytest.mark.parametrize("learner", ALL)
def test_threads_change_no_bits(learner, monkeypatch):
    X, labels = signals(n=900, dtype=np.float32)
    sizes = uneven(900)
    classes = ClassDictionaryClassifier(short(learner).set_params(n_atoms=4), random_state=0)
    found = []
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("KERNELATOMS_NUM_THREADS", threads)
        one = short(learner).fit(in_dask(X, sizes, (3, 5)))
        found.append((one, clone(classes).fit(in_dask(X, sizes), in_dask(labels, sizes))))
    for one, other in found[1:]:
        same(one, found[0][0])
        same(other, found[0][1])
    assert found[0][0].row_chunks_.tolist() == list(sizes)


@pytest.mark.parametrize("learner", ALL)
def test_chunks_change_roundings_alone(learner):
    X, _ = signals(n=600)
    learned = short(learner).fit(in_dask(X, uneven(600), known=False))
    memory = short(learner).fit(as_source(X))
    np.testing.assert_allclose(learned.objective_, memory.objective_, rtol=1e-8)
    scale = np.abs(memory.components_).max()
    np.testing.assert_allclose(learned.components_, memory.components_, atol=1e-6 * scale)


def test_whole_numbers_and_flags():
    X = np.round(signals()[0] * 10).astype(np.int32)
    same(clone(ONE).fit(in_dask(X, 600)), clone(ONE).fit(X))
    same(clone(ONE).fit(in_dask(X > 0, 600)), clone(ONE).fit(X > 0))


def test_sparse_chunks():
    X, labels = signals()
    X = np.where(np.abs(X) > 1, X, 0)
    rows = in_dask(X, 600).map_blocks(sparse.csr_array, meta=sparse.csr_array((0, 0)), dtype=float)
    one = clone(ONE).fit(rows)
    same(one, clone(ONE).fit(open_rows(sparse.csr_array(X))))
    codes = one.transform(rows).compute()
    np.testing.assert_array_equal(codes.toarray(), one.transform(X).toarray())
    y = in_dask(labels, 600)
    model = clone(OF_CLASSES).fit(rows, y)
    memory = clone(OF_CLASSES).fit(X, labels)
    np.testing.assert_array_equal(model.predict(rows).compute(), memory.predict(X))


@pytest.mark.parametrize("weighted", [MOD(6, max_iter=3, random_state=0),
                                      MOD(6, alpha=0.3, max_iter=3, random_state=0)])  # fmt: skip
def test_weights(weighted):
    X, labels = signals()
    weights = np.random.default_rng(0).integers(0, 4, 600) / 2
    assert (weights == 0).any()
    for model in (weighted, ClassDictionaryClassifier(clone(weighted), random_state=0)):
        memory = clone(model).fit(X, labels, sample_weight=weights)
        for sizes in (600, 100, uneven(600)):
            learned = clone(model).fit(
                in_dask(X, sizes), in_dask(labels, sizes), sample_weight=in_dask(weights, sizes)
            )
            for mine, theirs in zip(dictionaries(learned), dictionaries(memory), strict=True):
                np.testing.assert_allclose(mine.components_, theirs.components_, atol=1e-9)
        unweighted = clone(model).fit(in_dask(X, 100), in_dask(labels, 100))
        assert np.abs(
            dictionaries(unweighted)[0].components_ - dictionaries(memory)[0].components_
        ).max() > 1e-3  # fmt: skip


@pytest.mark.parametrize("after_fit", [False, True])
@pytest.mark.parametrize(
    "learner", [KSVD(8, random_state=0), MOD(8, random_state=0), KSAD(8, random_state=0),
                MOD(8, alpha=0.3, random_state=0)],
)  # fmt: skip
def test_batches(learner, after_fit):
    X, _ = signals(n=900)
    here, there = clone(learner), clone(learner)
    if after_fit:
        here.fit(X)
        there.fit(X)
    for batch in np.split(X, 3):
        here.partial_fit(batch)
        there.partial_fit(in_dask(batch, 60))
    np.testing.assert_allclose(there.components_, here.components_, atol=1e-9)


def test_batches_of_classes():
    X, labels = signals(n=900)
    here, there = (
        ClassDictionaryClassifier(KSVD(4, random_state=0), random_state=0) for _ in range(2)
    )
    for some in np.split(np.arange(900), 3):
        here.partial_fit(X[some], labels[some])
        there.partial_fit(in_dask(X[some], 60), in_dask(labels[some], 60))
    for mine, theirs in zip(there.dictionaries_, here.dictionaries_, strict=True):
        np.testing.assert_allclose(mine.components_, theirs.components_, atol=1e-9)


def test_a_class_that_is_in_one_chunk_alone():
    X, labels = signals()
    order = np.argsort(labels, kind="stable")
    X, labels = X[order], np.array(["a", "b", "c"])[labels[order]]
    chunks = tuple(np.bincount(np.unique(labels, return_inverse=True)[1]).tolist())
    model = clone(OF_CLASSES).fit(in_dask(X, chunks), in_dask(labels, chunks))
    assert model.classes_.tolist() == ["a", "b", "c"]
    for one, name in zip(model.dictionaries_, model.classes_, strict=True):
        alone = clone(one).fit(X[labels == name])
        np.testing.assert_allclose(one.components_, alone.components_, atol=1e-9)


def test_fit_again_is_fit_once():
    X, labels = signals()
    rows, y = in_dask(X, 100), in_dask(labels, 100)
    for model in (ONE, KSAD(6, max_iter=2, random_state=0), OF_CLASSES):
        twice = clone(model).fit(rows, y).fit(rows, y)
        same(twice, clone(model).fit(rows, y))
    model = clone(OF_CLASSES).fit(rows, y).fit(rows, in_dask(labels + 5, 100))
    assert model.classes_.tolist() == [5, 6, 7]
    assert model.fit(X, labels + 1).classes_.tolist() == [1, 2, 3]


def test_warm_starts_go_on():
    X, _ = signals()
    rows = in_dask(X, uneven(600))
    whole = MOD(6, max_iter=6, tol=0, random_state=0).fit(rows)
    half = MOD(6, max_iter=3, tol=0, random_state=0, warm_start=True)
    half.fit(rows)
    same(half.fit(rows), whole)


def test_chunks_are_recorded():
    X, labels = signals()
    model = clone(ONE).fit(in_dask(X, uneven(600)))
    assert model.row_chunks_.tolist() == list(uneven(600))
    assert not hasattr(model.fit(X), "row_chunks_")
    assert not hasattr(model.fit(as_source(X)), "row_chunks_")
    classes = clone(OF_CLASSES).fit(in_dask(X, 60), in_dask(labels, 60))
    assert classes.row_chunks_.tolist() == [60] * 10


# Answers.


def models():
    X, labels = signals()
    return X, labels, [clone(learner).fit(X) for learner in ALL[:5]] + [
        clone(OF_CLASSES).fit(X, labels),
        clone(OF_CLASSES).set_params(scheme="collective", n_neighbors=3).fit(X, labels),
        KernelLinearizer(n_landmarks=30, random_state=0).fit(X),
        RowNormalizer().fit(X),
        SparseCoder(X[:9], n_nonzero_coefs=2).fit(X),
        NearestImputer(random_state=0).fit(X),
    ]  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_answers_are_lazy_and_those_of_numpy(dtype):
    X, _, fitted_models = models()
    X, sizes = X.astype(dtype), uneven(600)
    rows, count = counted(in_dask(X, sizes, (5, 3)))
    rows = rows.rechunk({1: -1})
    n_answers = 0
    for model in fitted_models:
        for name in ("transform", "predict", "predict_proba", "decision_function"):
            if not hasattr(model, name):
                continue
            count.n = 0
            lazy = getattr(model, name)(rows)
            assert isinstance(lazy, da.Array)
            assert lazy.chunks[0] == sizes
            assert count.n == 0
            here = getattr(model, name)(X)
            assert lazy.shape == here.shape
            assert lazy.dtype == here.dtype
            assert sparse.issparse(lazy._meta) == sparse.issparse(here)
            found = lazy.compute()
            assert type(found) is type(here)
            assert count.n > 0
            if sparse.issparse(here):
                assert lazy.blocks[3].compute().format == "csr"
                here, found = here.toarray(), found.toarray()
            if here.dtype.kind == "f":
                scale = np.abs(here).max()
                share = 1e-9 if dtype == np.float64 else 1e-4
                np.testing.assert_allclose(found, here, rtol=0, atol=share * scale)
            else:
                np.testing.assert_array_equal(found, here)
            n_answers += 1
    assert n_answers == 15


def test_codes_go_back_lazily():
    X, _, fitted_models = models()
    rows, count = counted(in_dask(X, uneven(600)))
    for model in fitted_models[:5]:
        codes = model.transform(rows)
        back = model.inverse_transform(codes)
        norms = residual_norms(rows, model, codes)
        coded = sparse_encode(rows, model, n_nonzero_coefs=2)
        for lazy in (back, norms, coded):
            assert isinstance(lazy, da.Array)
            assert lazy.chunks[0] == uneven(600)
        assert count.n == 0
        own = model.transform(X)
        np.testing.assert_allclose(back.compute(), model.inverse_transform(own), atol=1e-9)
        np.testing.assert_allclose(norms.compute(), residual_norms(X, model, own), atol=1e-7)
        here = sparse_encode(X, model, n_nonzero_coefs=2)
        np.testing.assert_allclose(coded.compute().toarray(), here.toarray(), atol=1e-9)
        count.n = 0


def test_scores():
    X, labels, fitted_models = models()
    rows, y = in_dask(X, uneven(600)), in_dask(labels, uneven(600))
    for model in fitted_models[:5]:
        assert model.score(rows) == pytest.approx(model.score(X), rel=1e-9)
    for model in fitted_models[5:7]:
        assert model.score(rows, y) == model.score(X, labels)
        assert model.score(rows, labels) == model.score(X, labels)
        weights = np.arange(600.0)
        weighted = model.score(rows, y, sample_weight=in_dask(weights, uneven(600)))
        assert weighted == pytest.approx(model.score(X, labels, sample_weight=weights))


def test_answers_are_those_of_the_model_as_it_was():
    X, _ = signals()
    model = clone(ONE).fit(X)
    codes, before = model.transform(in_dask(X, 100)), model.transform(X)
    model.fit(X[::2])
    np.testing.assert_array_equal(codes.compute().toarray(), before.toarray())


def test_pipelines():
    X, labels = signals()
    rows, y = in_dask(X, 100), in_dask(labels, 100)
    model = make_pipeline(
        RowNormalizer(), KernelLinearizer(n_landmarks=40, random_state=0), clone(OF_CLASSES)
    )
    memory = clone(model).fit(X, labels)
    model.fit(rows, y)
    assert model[-1].row_chunks_.tolist() == [100] * 6
    predicted = model.predict(rows)
    assert isinstance(predicted, da.Array)
    assert np.mean(predicted.compute() == memory.predict(X)) > 0.99
    assert model.score(rows, y) == np.mean(predicted.compute() == labels)
    np.testing.assert_allclose(
        model.predict_proba(rows).compute(), model.predict_proba(X), atol=1e-9
    )


def test_what_can_be_imputed():
    X, _ = signals()
    holed = X.copy()
    holed[::5, 2] = np.nan
    for imputer in (NearestImputer(random_state=0), TrainingImputer()):
        memory = clone(imputer).fit(holed).transform(holed)
        model = clone(imputer).fit(in_dask(holed, 100))
        np.testing.assert_array_equal(model.transform(in_dask(holed, 100)).compute(), memory)
        lazy = clone(imputer).fit_transform(in_dask(holed, 100))
        np.testing.assert_array_equal(lazy.compute(), clone(imputer).fit_transform(holed))
    here, there = clone(ONE).fit(as_source(holed)), clone(ONE).fit(in_dask(holed, 600))
    same(here, there)  # learned from what is observed


def test_data_frames_and_names():
    X, labels = signals()
    names = [f"column {j}" for j in range(8)]
    table = pd.DataFrame(X, columns=names).assign(y=labels)
    frame = dd.from_pandas(table, npartitions=5)
    rows, y = frame.drop(columns="y"), frame["y"]
    array = clone(OF_CLASSES).fit(in_dask(X, 120), in_dask(labels, 120))
    for model in (
        clone(OF_CLASSES).fit(rows, y),
        clone(OF_CLASSES).fit(open_rows(frame, label="y")),
        clone(OF_CLASSES).fit(rows, frame[["y"]]),
    ):
        same(model, array)
        assert model.feature_names_in_.tolist() == names
        predicted = model.predict(rows)
        assert predicted.chunks == ((120,) * 5,)
        np.testing.assert_array_equal(predicted.compute(), array.predict(X))
        with pytest.raises(ValueError, match="order"):
            model.predict(rows[names[::-1]])
    assert not hasattr(array, "feature_names_in_")


# What is seen from outside.


class Listener:
    """Notes what callbacks are told of passes."""

    max_propagation_depth = None

    def __init__(self):
        self.told = []

    def setup(self, estimator, context):
        pass

    teardown = on_fit_task_begin = setup

    def on_fit_task_end(self, estimator, context, *, metadata):
        if context.task_name == "pass":
            self.told.append(dict(metadata))
        return False


def test_callbacks_are_told_of_every_pass():
    X, labels = signals()
    for model, n_runs in ((ONE, 1), (OF_CLASSES, 3)):
        listener = Listener()
        learned = clone(model).set_callbacks(listener)
        learned.fit(in_dask(X, 100), in_dask(labels, 100))
        passes = [len(one.objective_) for one in dictionaries(learned)]
        assert len(listener.told) == sum(passes) > n_runs
        assert all(one["rows_per_second"] > 0 for one in listener.told)
        # Atoms go out; of every chunk come their Gram matrix and products with rows.
        assert all(one["bytes_moved"] > 0 for one in listener.told)
        told = sorted(float(one["objective"]) for one in listener.told)
        own = sorted(float(v) for one in dictionaries(learned) for v in one.objective_)
        assert told == own


def test_the_plan_is_logged_once_a_fit(caplog):
    X, labels = signals()
    for model in (ONE, KSAD(6, max_iter=2, random_state=0), OF_CLASSES):
        caplog.clear()
        with caplog.at_level("INFO", logger="kernelatoms"):
            clone(model).fit(in_dask(X, 100), in_dask(labels, 100))
        (record,) = caplog.records
        assert record.name == "kernelatoms"
        assert "600 rows in 6 chunks (0.0 MiB, at most 0.0 MiB each)" in record.getMessage()
        assert "threads of this process, no memory limit" in record.getMessage()


def test_small_chunks_are_warned_of_once():
    X, labels = signals()
    for model in (ONE, OF_CLASSES):
        for sizes in (100, 600):
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                clone(model).fit(in_dask(X, sizes), in_dask(labels, sizes))
            found = [str(one.message) for one in warned]
            assert len(found) == (sizes == 100)  # a single chunk is not too small
            assert all(one.startswith("Chunks of X are as small as 6 KiB, and") for one in found)


def test_fitted_models_need_no_dask(tmp_path):
    X, labels = signals()
    pipeline = make_pipeline(KernelLinearizer(n_landmarks=30, random_state=0), clone(OF_CLASSES))
    pipeline.fit(in_dask(X, 100), in_dask(labels, 100))
    np.save(tmp_path / "x.npy", X)
    (tmp_path / "model.pkl").write_bytes(pickle.dumps(pipeline))
    script = """
import pickle, sys
sys.modules["dask"] = sys.modules["distributed"] = None  # cannot be imported
import numpy as np
model = pickle.load(open("model.pkl", "rb"))
assert model[-1].row_chunks_.tolist() == [100] * 6
np.save("y.npy", model.predict(np.load("x.npy")))
"""
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), pipeline.predict(X))


def test_model_files(tmp_path):
    X, labels = signals()
    for model in (clone(ONE), clone(OF_CLASSES), KernelLinearizer(n_landmarks=30)):
        model.fit(in_dask(X, uneven(600)), in_dask(labels, uneven(600)))
        save_model(model, tmp_path / "m.kernelatoms")
        again, _ = load_model(tmp_path / "m.kernelatoms")
        assert again.row_chunks_.tolist() == list(uneven(600))
        assert type(again) is type(model)


class StopAfter:
    """Ends learning, as a kill would, when a pass begins."""

    max_propagation_depth = None

    def __init__(self, n):
        self.n = n

    def setup(self, estimator, context):
        pass

    teardown = setup

    def on_fit_task_begin(self, estimator, context):
        self.n -= context.task_name == "pass"
        if self.n < 0:
            raise KeyboardInterrupt

    def on_fit_task_end(self, estimator, context):
        return False


@pytest.mark.parametrize("learner", [ALL[0], ALL[1], ALL[3], ALL[4]])
def test_a_stopped_fit_goes_on_to_the_same_bits(learner, tmp_path):
    X, labels = signals()
    rows, y = in_dask(X, uneven(600)), in_dask(labels, uneven(600))
    learner = clone(learner).set_params(tol=0, n_atoms=6, max_iter=4)
    for model in (learner, ClassDictionaryClassifier(learner, random_state=0)):
        file = tmp_path / type(model).__name__
        whole = clone(model).fit(rows, y)
        with pytest.raises(KeyboardInterrupt):
            clone(model).set_callbacks(StopAfter(3), Checkpoint(file)).fit(rows, y)
        if model is learner:
            with pytest.raises(ValueError, match="other"):
                clone(model).set_callbacks(Checkpoint(file)).fit(in_dask(X, 100), y)
        same(clone(model).set_callbacks(Checkpoint(file)).fit(rows, y), whole)


# Bad input: words, and the model as it was.


def refused(words, kind=ValueError):
    return pytest.raises(kind, match=re.escape(words))


def spoilt(value, rows=slice(250, 251), columns=3):
    X, _ = signals()
    X[rows, columns] = value
    return in_dask(X, 100)


def test_missing_and_infinite_numbers_say_where():
    for value, learner, words in (
        (np.inf, ONE, "infinity"),
        (np.nan, MOD(6, alpha=0.1, random_state=0), "NaN"),
        (np.nan, KSCDL(6), "NaN"),
        (np.nan, KSAD(6), "NaN"),
    ):
        model = clone(learner).fit(signals()[0])
        before = fitted(model)
        with refused(words) as caught:
            model.fit(spoilt(value))
        if learner is ONE or isinstance(learner, MOD):
            assert "In chunk 2 of X, rows 200 to 299." in caught.value.__notes__
        after = fitted(model)
        assert all(after[name] is one for name, one in before.items())
    assert clone(ONE).fit(spoilt(np.nan)).n_atoms_ == 6  # learned from what is observed
    with refused("NaN"):
        clone(ONE).fit(spoilt(np.nan, slice(200, 300), slice(None)))


def test_labels_that_will_not_do():
    X, labels = signals()
    rows = in_dask(X, 100)
    model = clone(OF_CLASSES)
    missing = labels.astype(float)
    missing[350] = np.nan
    for y, words in (
        (in_dask(labels, 200), "X and y are chunked differently: X has chunks of 100"),
        (in_dask(labels[:500], 100), "X and y are chunked differently"),
        (in_dask(missing, 100), "y is missing (None or NaN) in 1 rows of chunk 3"),
        (in_dask(np.where(labels == 1, None, "a"), 100), "y is missing (None or NaN)"),
        (in_dask(np.zeros(600), 100), "two classes"),
        (None, "label"),
    ):
        with refused(words):
            model.fit(rows, y)
        assert not hasattr(model, "classes_")
    with refused("X and sample_weight are chunked differently"):
        clone(ONE).fit(rows, sample_weight=in_dask(np.ones(600), 200))
    with refused("X and y are chunked differently"):
        model.fit(X, labels).score(rows, in_dask(labels, 200))
    # In memory on one side, and in chunks on the other.
    same(clone(model).fit(rows, labels), clone(model).fit(rows, in_dask(labels, 100)))
    same(clone(model).fit(X, in_dask(labels, 200)), clone(model).fit(X, labels))


def test_rows_that_will_not_do():
    X, labels = signals()
    model = clone(ONE).fit(X)
    for rows, words, kind in (
        (in_dask(labels, 100), "2 dimensions", ValueError),
        (in_dask(X[:0], (0, 0)), "X is a source without rows", ValueError),
        (in_dask(X.astype(object), 100), "rows must be numbers", TypeError),
        (dd.from_pandas(pd.DataFrame(X).assign(s="x"), npartitions=2), "column 's'", ValueError),
    ):
        before = fitted(model)
        with refused(words, kind):
            model.fit(rows)
        assert all(fitted(model)[name] is one for name, one in before.items())
    for method in (model.transform, model.score):
        with refused("7 features"):
            method(in_dask(X[:, :7], 100))
    frame = model.set_output(transform="pandas")
    with refused("data frames"):
        frame.transform(in_dask(X, 100))


def test_codes_that_are_not_beside_the_rows():
    X, _ = signals()
    model = clone(ONE).fit(X)
    codes = model.transform(X)
    with refused("X is a Dask collection, and so must codes be", TypeError):
        residual_norms(in_dask(X, 100), model, codes)
    with refused("X and codes are chunked differently"):
        residual_norms(in_dask(X, 100), model, model.transform(in_dask(X, 200)))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "model",
    [CRCClassifier(), SRCClassifier(), FDDLClassifier(3, max_iter=2), DKSVDClassifier(9),
     LCKSVDClassifier(9), KSADClassifier(8)],
    ids=lambda model: type(model).__name__,
)  # fmt: skip
def test_what_cannot_be_distributed_says_so_and_predicts(model):
    X, labels = signals(n=60)
    rows, count = counted(in_dask(X, 20))
    y = in_dask(labels, 20)
    with refused(
        f"{type(model).__name__} needs all rows in memory (3.58e-06 GiB), and X is", TypeError
    ) as caught:
        clone(model).fit(rows, y)
    assert "or give X.compute(), if it fits in memory" in str(caught.value)
    assert count.n == 0
    model = clone(model).fit(X, labels)
    predicted = model.predict(rows)
    assert isinstance(predicted, da.Array)
    assert count.n == 0
    np.testing.assert_array_equal(predicted.compute(), model.predict(X))
    assert model.score(rows, y) == model.score(X, labels)


def test_exact_kernels_say_their_size():
    X, _ = signals(n=60)
    for learner in (KernelMOD(), KernelKSVD()):
        with refused("coordinates='exact' ") as caught:
            clone(learner).fit(in_dask(X, 20))
        assert "(2.68e-05 GiB for all 60 rows)" in str(caught.value)


def test_explanations_are_of_rows_in_memory():
    X, labels = signals()
    model = clone(OF_CLASSES).fit(X, labels)
    with refused("needs rows in memory, and got a Dask Array", TypeError):
        model.explain(in_dask(X, 100))


def test_errors_of_a_users_kernel_come_back_once():
    calls = []

    def kernel(a, b):
        calls.append(len(a))
        raise LookupError("mine")

    X, _ = signals()
    own = KernelMOD(6, kernel=kernel, coordinates=KernelLinearizer(n_landmarks=20))
    with pytest.raises(LookupError, match="mine") as caught:
        own.fit(in_dask(X, 100))
    assert len(calls) == 1
    assert "kernel" in [entry.name for entry in caught.traceback]


def test_labels_in_dask_beside_rows_that_are_not(rng):
    """Beside pandas' frames, whose ``values`` is no method, and rows of Dask that were mapped."""
    X, y = rng.standard_normal((90, 4)), np.arange(90) % 3
    labels = da.from_array(y, chunks=30)
    model = ClassDictionaryClassifier(MOD(n_atoms=5, max_iter=2), random_state=0)
    frame = pd.DataFrame(X, columns=list("abcd"))
    expected = model.fit(frame, y).predict(frame)
    np.testing.assert_array_equal(model.fit(frame, labels).predict(frame), expected)
    mapped = open_rows(da.from_array(X, chunks=(30, -1))).map(lambda block: block, 4)
    assert model.fit(mapped, labels).row_chunks_.tolist() == [30, 30, 30]
