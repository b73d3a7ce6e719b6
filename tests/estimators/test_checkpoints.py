"""A fit that is stopped and called again ends in the same bits as one that was never stopped."""

import pickle
import threading

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.callback import ProgressBar
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from answers import attributes, bits, quietly
from kernelatoms import (
    KSAD,
    KSCDL,
    KSVD,
    MOD,
    Checkpoint,
    ClassDictionaryClassifier,
    DKSVDClassifier,
    FDDLClassifier,
    KernelKSVD,
    KernelLinearizer,
    KernelMOD,
    KSADClassifier,
    LCKSVDClassifier,
)
from kernelatoms.files.state_files import read_state_file

N_PASSES = 4
FEW = {"n_atoms": 6, "max_iter": N_PASSES, "tol": 0, "random_state": 0}
LEARNERS = {
    "KSVD": KSVD(**FEW),
    "KSVD exact, no seed": KSVD(**{**FEW, "random_state": None}, update="exact"),
    "KSVD random state": KSVD(**{**FEW, "random_state": np.random.RandomState(5)}),
    "MOD": MOD(**FEW),
    "MOD l1": MOD(alpha=0.2, **FEW),
    "KernelKSVD": KernelKSVD(**FEW),
    "KernelMOD landmarks": KernelMOD(**FEW, coordinates=KernelLinearizer(n_landmarks=20)),
    "KernelMOD pruned, no seed": KernelMOD(**{**FEW, "random_state": None}, coordinates=0.1),
    "KSAD": KSAD(**FEW),
    "KSAD no seed": KSAD(**{**FEW, "random_state": None}),
    "KSCDL": KSCDL(**FEW),
    "KSCDL search, no seed": KSCDL(**{**FEW, "random_state": None}, gamma="search"),
    "KSCDL change_tol": KSCDL(6, max_iter=9, method="ksc", change_tol=0.02, random_state=0),
}
CLASSIFIERS = {
    "class KSVD": ClassDictionaryClassifier(KSVD(4, max_iter=N_PASSES, tol=0), random_state=0),
    "class MOD, no seed": ClassDictionaryClassifier(MOD(4, max_iter=N_PASSES, tol=0)),
    "class KernelKSVD": ClassDictionaryClassifier(
        KernelKSVD(4, max_iter=N_PASSES, tol=0), random_state=0, calibrate=True
    ),
    "class KSAD": ClassDictionaryClassifier(KSAD(4, max_iter=N_PASSES, tol=0), random_state=0),
    "DKSVD": DKSVDClassifier(**FEW, init_max_iter=1),
    "LCKSVD": LCKSVDClassifier(**{**FEW, "random_state": None}, init_max_iter=1),
    "FDDL": FDDLClassifier(2, max_iter=N_PASSES, tol=0, init_max_iter=1, random_state=0),
    "KSAD Fisher": KSADClassifier(**FEW, fisher_weight=0.1),
    "KSAD scalar": KSADClassifier(**FEW, fisher_weight=0.1, scatter="scalar", calibrate=True),
    "KSAD whitened": KSADClassifier(**FEW),
}
ALL = LEARNERS | CLASSIFIERS


class Stopped(BaseException):
    pass


class StopAfter:
    """Have a fit end with an exception when pass ``n`` (from 0) of all runs together begins."""

    max_propagation_depth = None

    def __init__(self, n):
        self.n, self._lock = n, threading.Lock()

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        if context.task_name == "pass":
            with self._lock:
                self.n -= 1
                if self.n < 0:
                    raise Stopped

    def on_fit_task_end(self, estimator, context):
        return False


def data(dtype):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((45, 5)).astype(dtype)
    y = np.repeat(["one", "three", "two"], 15)
    X[:, 0] += np.repeat([0, 1, 2], 15)
    return X, y


def copied(estimator):
    """Return what another process would make: a RandomState is at its beginning."""
    return pickle.loads(pickle.dumps(estimator))


def fit(estimator, X, y, *callbacks):
    return quietly(copied(estimator).set_callbacks(*callbacks).fit, X, y)


def stop(estimator, n, path, X, y, **options):
    with pytest.raises(Stopped):
        fit(estimator, X, y, StopAfter(n), Checkpoint(path, **options))


def results(model):
    return bits(attributes(model))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ALL)
def test_after_every_pass(name, dtype, tmp_path):
    """Stopped at any pass, once or at each of them, and found when all is done."""
    (X, y), estimator = data(dtype), ALL[name]
    unseeded = estimator.random_state is None
    np.random.seed(3)  # noqa: NPY002 (where the seed is drawn)
    whole = fit(estimator, X, y, Checkpoint(tmp_path / "whole"))
    if not unseeded:
        assert results(whole) == results(fit(estimator, X, y))
    n_runs = 3 if isinstance(estimator, ClassDictionaryClassifier) else 1
    passes = n_runs * N_PASSES if n_runs > 1 else whole.n_iter_
    often = tmp_path / "often"
    for n in range(1, passes):
        once = tmp_path / f"once{n}"
        if unseeded:
            np.random.seed(3)  # noqa: NPY002
        stop(estimator, n, once, X, y)
        if n_runs == 1:
            assert once.exists()
        elif unseeded and not once.exists():  # too early: the next fit has another seed
            continue
        said = []
        again = fit(estimator, X, y, Checkpoint(once, on_resume=said.append))
        assert results(again) == results(whole)
        if n_runs == 1:
            assert said == [f"goes on after pass {n} of {estimator.max_iter}"]
        if not unseeded:
            stop(estimator, n_runs if n_runs > 1 else 1, often, X, y)
            if n_runs > 1:
                break
    if not unseeded:
        assert results(fit(estimator, X, y, Checkpoint(often))) == results(whole)
    # All is done: no further pass.
    finished = fit(estimator, X, y, StopAfter(0), Checkpoint(tmp_path / "whole"))
    assert results(finished) == results(whole)
    assert finished.random_state is None or not unseeded


@pytest.mark.parametrize("name", ["KSVD", "KSVD exact, no seed", "MOD", "class KSVD", "class MOD"])
def test_with_missing_values_and_weights(name, tmp_path):
    X, y = data(np.float64)
    X[np.arange(0, 45, 2), np.arange(0, 45, 2) % 5] = np.nan
    weights = np.arange(45) % 4
    classes = CLASSIFIERS["class KSVD"]
    of_classes = clone(classes).set_params(dictionary=MOD(4, max_iter=N_PASSES, tol=0))
    estimator = (ALL | {"class MOD": of_classes})[name]
    estimator = clone(estimator).set_params(random_state=0)
    whole = copied(estimator).fit(X, y, sample_weight=weights)
    path = tmp_path / "kept"
    stop_after = StopAfter(5 if "class" in name else 2)
    with pytest.raises(Stopped):
        copied(estimator).set_callbacks(stop_after, Checkpoint(path)).fit(X, y, weights)
    said = []
    again = copied(estimator).set_callbacks(Checkpoint(path, on_resume=said.append))
    assert results(again.fit(X, y, sample_weight=weights)) == results(whole)
    assert said
    with pytest.raises(ValueError, match="weights"):
        again.fit(X, y)


@pytest.mark.parametrize("name", ["KSVD", "MOD l1", "KSCDL", "KSAD", "KernelKSVD"])
def test_a_warm_start_that_is_stopped(name, tmp_path):
    """The second fit goes on from the first one, which is another fit than from nothing."""
    X, _ = data(np.float64)
    one = clone(LEARNERS[name]).set_params(warm_start=True)
    quietly(one.fit, X)
    whole = quietly(copied(one).fit, X)
    with pytest.raises(Stopped):
        quietly(copied(one).set_callbacks(StopAfter(2), Checkpoint(tmp_path / "two")).fit, X)
    again = copied(one).set_callbacks(Checkpoint(tmp_path / "two"))
    assert results(quietly(again.fit, X)) == results(whole)
    with pytest.raises(ValueError, match="this fit begins from nothing"):
        fit(clone(one), X, None, Checkpoint(tmp_path / "two"))
    with pytest.raises(ValueError, match="from different ones"):
        quietly(again.fit, X)


def test_a_class_dictionary_with_a_warm_start(tmp_path):
    X, y = data(np.float64)
    model = ClassDictionaryClassifier(
        KSVD(4, max_iter=3, tol=0, warm_start=True), random_state=0
    ).fit(X, y)
    whole = copied(model).fit(X, y)
    stopped = copied(model).set_callbacks(StopAfter(7), Checkpoint(tmp_path / "run"))
    with pytest.raises(Stopped):
        stopped.fit(X, y)
    again = copied(model).set_callbacks(Checkpoint(tmp_path / "run")).fit(X, y)
    assert results(again) == results(whole)


def test_the_stopped_estimator_itself_goes_on(tmp_path):
    """As in a notebook, after Ctrl-C."""
    X, _ = data(np.float64)
    ksvd = KSVD(**FEW).set_callbacks(StopAfter(2), Checkpoint(tmp_path / "run"))
    with pytest.raises(Stopped):
        ksvd.fit(X)
    assert not attributes(ksvd)
    assert "_kept" not in vars(ksvd)
    ksvd.set_callbacks(Checkpoint(tmp_path / "run")).fit(X)
    assert results(ksvd) == results(KSVD(**FEW).fit(X))


def test_every_says_when_to_write(tmp_path, monkeypatch):
    X, y = data(np.float64)
    path, written = tmp_path / "run", []

    class Watch(StopAfter):
        def on_fit_task_begin(self, estimator, context):
            if context.task_name == "pass":
                runs = read_state_file(path)[0]["runs"] if path.exists() else {}
                written.append(sum(run["n_passes"] for run in runs.values()))

    estimator = KSVD(**{**FEW, "max_iter": 8})
    fit(estimator, X, None, Watch(0), Checkpoint(path, every=3))
    assert written == [0, 0, 0, 3, 3, 3, 6, 6]
    assert read_state_file(path)[0]["runs"]["fit"]["n_passes"] == 8
    # Three classes: once per three passes of any of them.
    path.unlink()
    stop(CLASSIFIERS["class KSVD"], 8, path, X, y)
    runs = read_state_file(path)[0]["runs"].values()
    assert sum(run["n_passes"] for run in runs) == 6


def test_a_callback_that_ends_learning_ends_it_for_good(tmp_path):
    X, _ = data(np.float64)

    class Enough(StopAfter):
        def on_fit_task_begin(self, estimator, context):
            pass

        def on_fit_task_end(self, estimator, context):
            self.n -= context.task_name == "pass"
            return self.n == 0

    two = fit(KSVD(**FEW), X, None, Enough(2), Checkpoint(tmp_path / "run"))
    assert two.n_iter_ == 2
    again = fit(KSVD(**FEW), X, None, Enough(2), Checkpoint(tmp_path / "run"))
    assert results(again) == results(two)


def test_what_ends_by_tol(tmp_path):
    X, _ = data(np.float64)
    estimator = KSVD(6, max_iter=50, tol=0.9, random_state=0)
    whole = estimator.fit(X)
    for n in range(1, whole.n_iter_):
        stop(clone(estimator), n, tmp_path / f"{n}", X, None)
        again = fit(clone(estimator), X, None, Checkpoint(tmp_path / f"{n}"))
        assert results(again) == results(whole)


def test_progress_bars_follow(tmp_path):
    X, _ = data(np.float64)
    stop(KSVD(**FEW), 2, tmp_path / "run", X, None)
    ids = []

    class Ids(StopAfter):
        def on_fit_task_begin(self, estimator, context):
            ids.append((context.task_name, context.task_id))

    fit(KSVD(**FEW), X, None, Ids(0), Checkpoint(tmp_path / "run"))
    assert ids == [("fit", 0), ("pass", 2), ("pass", 3)]
    KSVD(**FEW).set_callbacks(ProgressBar(), Checkpoint(tmp_path / "run")).fit(X)


def test_the_last_step_of_a_pipeline(tmp_path):
    X, _ = data(np.float64)
    pipeline = make_pipeline(KernelLinearizer(n_landmarks=20, random_state=0), KSVD(**FEW))
    whole = results(clone(pipeline).fit(X)[-1])
    pipeline[-1].set_callbacks(Checkpoint(tmp_path / "run"))
    with pytest.raises(Stopped):
        quietly(pipeline.set_callbacks(StopAfter(2)).fit, X)
    pipeline.set_callbacks()
    assert (tmp_path / "run").exists()
    assert results(pipeline.fit(X)[-1]) == whole


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"n_atoms": 7}, "n_atoms is 6, and that of this fit 7"),
        ({"max_iter": 5}, "max_iter is 4, and that of this fit 5"),
        ({"random_state": 1}, "random_state is 0, and that of this fit 1"),
        ({"n_nonzero_coefs": 2}, "n_nonzero_coefs is None, and that of this fit 2"),
        ({"dict_init": np.eye(6, 5)}, "dict_init is None, and that of this fit"),
    ],
)
def test_other_parameters_are_refused(changed, words, tmp_path):
    X, _ = data(np.float64)
    stop(KSVD(**FEW), 2, tmp_path / "run", X, None)
    before = (tmp_path / "run").read_bytes()
    with pytest.raises(ValueError, match=words):
        fit(clone(KSVD(**FEW)).set_params(**changed), X, None, Checkpoint(tmp_path / "run"))
    assert (tmp_path / "run").read_bytes() == before


def test_other_rows_labels_and_classes_are_refused(tmp_path):
    (X, y), path = data(np.float64), tmp_path / "run"
    other = X.copy()
    other[3, 2] = np.nextafter(other[3, 2], 9)
    stop(KSVD(**FEW), 2, path, X, None)
    refusals = [
        (KSVD(**FEW), other, "rows have other values"),
        (KSVD(**FEW), X[:-1], "rows are 45 x 5 of float64, and those of this fit 44 x 5"),
        (KSVD(**FEW), X.astype(np.float32), "those of this fit 45 x 5 of float32"),
        (MOD(**FEW), X, "KSVD', and that of this fit '.*MOD'"),
    ]
    for estimator, rows, words in refusals:
        with pytest.raises(ValueError, match=words):
            fit(estimator, rows, None, Checkpoint(path))
    path = tmp_path / "classes"
    stop(CLASSIFIERS["class KSVD"], 5, path, X, y)
    with pytest.raises(ValueError, match="labels have other values"):
        fit(CLASSIFIERS["class KSVD"], X, y[::-1], Checkpoint(path))
    other = ClassDictionaryClassifier(KSVD(5, max_iter=N_PASSES, tol=0), random_state=0)
    with pytest.raises(ValueError, match=r"dictionary\.n_atoms is 4, and that of this fit 5"):
        fit(other, X, y, Checkpoint(path))
    stop(LEARNERS["KSVD random state"], 2, tmp_path / "state", X, None)
    advanced = KSVD(**{**FEW, "random_state": np.random.RandomState(6)})
    with pytest.raises(ValueError, match=r"random_state\.RandomState is"):
        fit(advanced, X, None, Checkpoint(tmp_path / "state"))


def test_parameters_without_a_part_in_learning_may_change(tmp_path):
    X, _ = data(np.float64)
    stop(KSVD(**FEW), 2, tmp_path / "run", X, None)
    fit(KSVD(**FEW, sparse_output=False), X, None, Checkpoint(tmp_path / "run"))


def test_another_version_is_refused(tmp_path, monkeypatch):
    X, _ = data(np.float64)
    stop(KSVD(**FEW), 2, tmp_path / "run", X, None)
    monkeypatch.setattr("kernelatoms.__version__", "9.8")
    with pytest.raises(ValueError, match=r"version is '.*', and that of this fit '9\.8'"):
        fit(KSVD(**FEW), X, None, Checkpoint(tmp_path / "run"))


def test_other_coordinates_are_refused(tmp_path, monkeypatch):
    """As another processor may compute them: eigenvectors have the sign that they have."""
    X, _ = data(np.float64)
    stop(LEARNERS["KSAD"], 2, tmp_path / "run", X, None)
    mapped = KernelLinearizer._transformed
    monkeypatch.setattr(KernelLinearizer, "_transformed", lambda *args: -mapped(*args))
    with pytest.raises(ValueError, match="other coordinates of the feature space"):
        fit(LEARNERS["KSAD"], X, None, Checkpoint(tmp_path / "run"))


def test_two_checkpoints_or_one_of_every_class_are_refused(tmp_path):
    X, y = data(np.float64)
    one = Checkpoint(tmp_path / "run")
    with pytest.raises(ValueError, match="one Checkpoint is enough, got 2"):
        fit(KSVD(**FEW), X, None, one, Checkpoint(tmp_path / "other"))
    with pytest.raises(ValueError, match="give it to the classifier"):
        ClassDictionaryClassifier(KSVD(4).set_callbacks(one)).fit(X, y)
    with pytest.raises(TypeError, match="LogisticRegression gives none"):
        LogisticRegression().set_callbacks(one).fit(X, y)
    with pytest.raises(ValueError, match="every"):
        Checkpoint(tmp_path / "run", every=0)
    with pytest.raises(NotADirectoryError, match="does not exist"):
        fit(KSVD(**FEW), X, None, Checkpoint(tmp_path / "nowhere" / "run"))
    assert not list(tmp_path.iterdir())


def test_two_fits_at_once_are_refused(tmp_path, monkeypatch):
    X, _ = data(np.float64)
    monkeypatch.setattr("kernelatoms.files.locking.PATIENCE", 0.1)

    class Second(StopAfter):
        def on_fit_task_begin(self, estimator, context):
            with pytest.raises(BlockingIOError, match="another process or thread"):
                fit(KSVD(**FEW), X, None, Checkpoint(tmp_path / "run"))

    fit(KSVD(**FEW), X, None, Second(0), Checkpoint(tmp_path / "run"))


def test_nothing_else_is_left(tmp_path):
    """Neither files beside the checkpoint nor attributes of the estimator."""
    X, _ = data(np.float64)
    model = fit(KSVD(**FEW), X, None, Checkpoint(tmp_path / "run"))
    assert [file.name for file in tmp_path.iterdir()] == ["run"]
    plain = fit(KSVD(**FEW), X, None)
    assert set(vars(model)) == set(vars(plain)) | {"_skl_callbacks"}
    pickle.dumps(model)


def test_float32_rows_of_a_frame_and_sparse_rows(tmp_path):
    import pandas as pd
    import scipy.sparse

    X, _ = data(np.float64)
    for number, rows in enumerate([pd.DataFrame(X).rename(columns=str), X.tolist(), X]):
        path = tmp_path / f"{number}"
        stop(KSVD(**FEW), 2, path, rows, None)
        again = fit(KSVD(**FEW), rows, None, Checkpoint(path))
        assert results(again) == results(fit(KSVD(**FEW), rows, None))
    y = np.repeat([0, 1, 2], 15)
    rows = scipy.sparse.csr_array(X)
    stop(CLASSIFIERS["class KSVD"], 5, tmp_path / "sparse", rows, y)
    again = fit(CLASSIFIERS["class KSVD"], rows, y, Checkpoint(tmp_path / "sparse"))
    assert results(again) == results(fit(CLASSIFIERS["class KSVD"], rows, y))
