"""Learning over sources of rows is as learning in memory."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel

from kernelatoms import (
    KSAD,
    KSCDL,
    KSVD,
    Checkpoint,
    ClassDictionaryClassifier,
    KernelLinearizer,
    KernelMOD,
    open_rows,
)
from kernelatoms.estimators import base as sampling
from kernelatoms.learning import loop
from kernelatoms.rows import ArrayRows, RowSource, SparseRows
from source_cases import ALL, LANDMARKS, LEARNERS, Uncounted, same_bits, signals


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


@pytest.mark.parametrize("parameters", [{"gamma": 0.1}, {"kernel": "linear"}, {"step": 1.5}])
def test_steps_judged_by_the_next_pass_lead_as_far(parameters):
    """Within 2% of KSCDL in memory; 0.2% on digits and photograph patches (decision 036)."""
    X, _ = signals()
    model = KSCDL(12, alpha=0.05, max_iter=25, tol=0, random_state=0, **parameters)
    memory, source = clone(model).fit(X), clone(model).fit(ArrayRows(X).map(np.asarray, 8))
    assert len(source.objective_) == 25
    assert source.objective_.min() <= 1.02 * memory.objective_.min()


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
    monkeypatch.setattr(loop, "_FEWEST_PRODUCTS", 0)
    X, labels = signals(n=5_000)  # several blocks
    source = ArrayRows(X).map(np.asarray, 8)
    dictionary = clone(learner).set_params(max_iter=2, n_atoms=6)
    classifier = ClassDictionaryClassifier(dictionary, random_state=0)
    monkeypatch.setenv("KERNELATOMS_NUM_THREADS", "1")
    one, classes = clone(dictionary).fit(source), clone(classifier).fit(source, labels)
    monkeypatch.setenv("KERNELATOMS_NUM_THREADS", "5")
    same_bits(one, dictionary.fit(source))
    same_bits(one, dictionary.fit(source))
    classifier.fit(source, labels)
    for mine, theirs in zip(classifier.dictionaries_, classes.dictionaries_, strict=True):
        same_bits(mine, theirs)


@pytest.mark.parametrize("learner", [KSVD(5, max_iter=2), *ALL[2:]])
def test_all_classes_learn_from_one_source(learner, tmp_path):
    X, labels = signals()
    order = np.argsort(labels, kind="stable")  # the last class is in the last rows alone
    X, labels = X[order], np.array(["a", "b", "c"])[labels[order]]
    np.save(tmp_path / "x.npy", X)
    model = ClassDictionaryClassifier(clone(learner).set_params(n_atoms=4), random_state=0)
    source = open_rows(tmp_path / "x.npy", label=labels)
    files = clone(model).fit(source)
    assert files.classes_.tolist() == ["a", "b", "c"]
    answers = files.predict(source)
    assert isinstance(answers, RowSource)
    answers = answers.collect()
    np.testing.assert_array_equal(answers, files.predict(X))
    assert files.score(source) == np.mean(answers == labels)
    for one, name in zip(files.dictionaries_, files.classes_, strict=True):
        alone = clone(one).fit(ArrayRows(X[labels == name]).map(np.asarray, 8))
        np.testing.assert_allclose(one.objective_, alone.objective_, rtol=1e-8)


def test_all_classes_learn_in_as_many_passes_as_one():
    X, labels = signals()
    for dictionary in (KernelMOD(4, max_iter=3, tol=0, **LANDMARKS), KSAD(4, max_iter=3, tol=0)):
        counts = []
        for classes in (labels % 2, labels):
            source = Uncounted(X)
            ClassDictionaryClassifier(dictionary, random_state=0).fit(source, classes)
            counts.append(source.n_passes)
        assert counts[0] == counts[1] < 16


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
        per_class.fit(source, labels)
        monkeypatch.setattr(sampling, "_SAMPLE_ROWS", 100)  # three classes share the 300
        for label, one in enumerate(per_class.dictionaries_):
            alone = clone(one).fit(ArrayRows(X[labels == label]).map(np.asarray, 8))
            np.testing.assert_allclose(one.objective_, alone.objective_, rtol=1e-8)
        monkeypatch.setattr(sampling, "_SAMPLE_ROWS", 300)
    gamma = KSCDL(8, gamma="search", max_iter=2, random_state=0).fit(source).gamma_
    assert gamma > 0


def test_what_is_learned_from_a_sample_is_what_is_learned_from_those_rows(monkeypatch):
    X, _ = signals(n=500)
    monkeypatch.setattr(sampling, "_SAMPLE_ROWS", 100)
    drawn = np.sort(np.random.RandomState(0).permutation(500)[:100])
    source = ArrayRows(X).map(np.asarray, 8)
    a = KernelLinearizer(n_landmarks=20, random_state=0).fit(source)
    same_bits(a, KernelLinearizer(n_landmarks=20, random_state=0).fit(X[drawn]))


class StopAfter:
    """Ends learning, as a kill would, when a pass begins: any, of classes."""

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


@pytest.mark.parametrize("stopped_after", [1, 3])
@pytest.mark.parametrize("learner", ALL)
def test_a_stopped_fit_goes_on_to_the_same_bits(learner, stopped_after, tmp_path):
    X, labels = signals()
    source, learner = ArrayRows(X).map(np.asarray, 8), clone(learner).set_params(tol=0, n_atoms=6)
    for model in (learner, ClassDictionaryClassifier(learner, random_state=0)):
        file = tmp_path / type(model).__name__
        whole = clone(model).fit(source, labels)
        stopped = clone(model).set_callbacks(StopAfter(stopped_after), Checkpoint(file))
        with pytest.raises(KeyboardInterrupt):
            stopped.fit(source, labels)
        again = clone(model).set_callbacks(Checkpoint(file)).fit(source, labels)
        ours, theirs = (getattr(one, "dictionaries_", [one]) for one in (again, whole))
        for one, other in zip(ours, theirs, strict=True):
            same_bits(one, other)


def test_bounds_and_shares_are_of_all_rows(monkeypatch):
    """Where one of the first, middle or last rows is the longest, in blocks of their own."""
    for longest in (0, 350, 699):
        X = np.random.default_rng(0).standard_normal((700, 2000))
        X[longest] *= 3
        model = KSCDL(3, kernel="linear", alpha=5.0, max_iter=1, random_state=0)
        norm = model.fit(ArrayRows(X).map(np.asarray, 2000)).max_norm_
        assert norm == pytest.approx(np.linalg.norm(X[longest]))
    X, _ = signals()
    monkeypatch.setattr(sampling, "_SAMPLE_ROWS", 100)
    source = ArrayRows(X).map(np.asarray, 8)
    assert KSAD(0.02, max_iter=1, random_state=0).fit(source).n_atoms_ == 12  # of 600 rows
    model = KSAD(12, kernel="linear", l1_weight=1.0, n_landmarks=60, max_iter=1, random_state=0)
    weight = model.fit(source).l1_weight_  # the linear map keeps all of a row
    assert weight == pytest.approx(np.sqrt(np.mean(np.sum(X**2, axis=1))))


def test_what_no_landmark_reaches_is_part_of_the_objective():
    X, _ = signals()
    few = KernelLinearizer(n_landmarks=3, random_state=0)
    model = KernelMOD(2, n_nonzero_coefs=2, coordinates=few, gamma=0.1, max_iter=3, random_state=0)
    model.fit(ArrayRows(X).map(np.asarray, 8))
    # Codes with all atoms are projections: of the map's span, then of the atoms'.
    G, R = model.atom_gram_, rbf_kernel(X, model.anchors_, gamma=0.1) @ model.dual_coef_
    left = len(X) - np.sum(R * np.linalg.solve(G, R.T).T)
    assert model.objective_[model.best_pass_] >= left * (1 - 1e-9)
    assert model.objective_[model.best_pass_] == pytest.approx(left, rel=0.05)
