"""Missing values and weights of rows: learned from over sources as in memory."""

import numpy as np
import pytest
from sklearn.base import clone

from kernelatoms import (
    KSCDL,
    KSVD,
    MOD,
    Checkpoint,
    ClassDictionaryClassifier,
    KernelKSVD,
    KernelMOD,
    open_rows,
)
from kernelatoms.rows import ArrayRows
from source_cases import LANDMARKS, Uncounted, same_bits, signals

FEW = {"n_nonzero_coefs": 3, "max_iter": 4, "tol": 0, "random_state": 0}
GREEDY = [MOD(16, **FEW), KSVD(16, **FEW), KSVD(16, init="sums", **FEW)]
KERNEL = [KernelMOD(12, **FEW, **LANDMARKS), KernelKSVD(12, **FEW, **LANDMARKS)]
L1 = MOD(12, alpha=0.3, max_iter=4, random_state=0)


def holed(seed=0, n=600, dtype=np.float64):
    """Return signals of which a fifth of the values is missing, and no row has none."""
    X, labels = signals(seed, n, dtype=dtype)
    rng = np.random.default_rng(seed)
    gone = rng.random(X.shape) < 0.2
    gone[np.arange(n), rng.integers(0, X.shape[1], n)] = False
    return np.where(gone, np.nan, X), labels


def weights_of(n, seed=0):
    return np.random.default_rng(seed).integers(0, 4, n)


def read(X):
    """Return rows that are read as those of files are."""
    return ArrayRows(X).map(np.asarray, X.shape[1])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [90, 20_000])
def test_files_are_as_good_as_memory(n, dtype, tmp_path):
    """To the bit: MOD by the same sums, with weights, missing values or both."""
    (X, _), weights = holed(n=n, dtype=dtype), weights_of(n)
    np.save(tmp_path / "x.npy", X)
    source = open_rows(tmp_path / "x.npy")
    for given in (None, weights):
        learner = MOD(80, **FEW)  # some atoms start from rows with missing values, some die
        same_bits(
            clone(learner).fit(X, sample_weight=given),
            clone(learner).fit(source, sample_weight=given),
        )
    complete, _ = signals(n=n, dtype=dtype)
    for learner in (MOD(12, **FEW), L1):
        same_bits(
            clone(learner).fit(complete, sample_weight=weights),
            clone(learner).fit(Uncounted(complete), sample_weight=weights),
        )


@pytest.mark.parametrize("learner", GREEDY, ids=repr)
def test_all_sources_and_threads_give_the_same_bits(learner, monkeypatch, tmp_path):
    (X, labels), weights = holed(n=20_000), weights_of(20_000)
    np.save(tmp_path / "x.npy", X)
    sources = [read(X), Uncounted(X), open_rows(tmp_path / "x.npy")]
    learner = clone(learner).set_params(max_iter=2)
    classes = ClassDictionaryClassifier(clone(learner).set_params(n_atoms=6), random_state=0)
    monkeypatch.setenv("KERNELATOMS_NUM_THREADS", "1")
    one = clone(learner).fit(sources[0], sample_weight=weights)
    by_one = clone(classes).fit(sources[0], labels, sample_weight=weights)
    monkeypatch.setenv("KERNELATOMS_NUM_THREADS", "5")
    for source in sources:
        same_bits(one, clone(learner).fit(source, sample_weight=weights))
    by_five = clone(classes).fit(sources[1], labels, sample_weight=weights)
    for mine, theirs in zip(by_one.dictionaries_, by_five.dictionaries_, strict=True):
        same_bits(mine, theirs)


@pytest.mark.parametrize("learner", [*GREEDY[:2], L1], ids=repr)
def test_whole_weights_are_repetitions(learner):
    X, labels = signals() if learner is L1 else holed()
    start = signals(1)[0][:8]
    weights = weights_of(len(X))
    learner = clone(learner).set_params(dict_init=start, n_atoms=8, max_iter=3)
    rows = np.repeat(np.arange(len(X)), weights)
    weighted = clone(learner).fit(read(X), sample_weight=weights)
    repeated = clone(learner).fit(read(X[rows]))
    np.testing.assert_allclose(weighted.objective_, repeated.objective_, rtol=1e-7)
    plain = clone(learner).fit(read(X[weights > 0]))
    assert not np.allclose(weighted.objective_, plain.objective_, rtol=1e-3)
    model = ClassDictionaryClassifier(learner, random_state=0)
    model.fit(read(X), labels, sample_weight=weights)
    for label, one in enumerate(model.dictionaries_):
        own = labels == label
        alone = clone(one).fit(read(X[own]), sample_weight=weights[own])
        np.testing.assert_allclose(one.objective_, alone.objective_, rtol=1e-8)


@pytest.mark.parametrize("learner", KERNEL, ids=repr)
def test_weights_under_a_kernel(learner):
    """As in memory by the same sums; weights of 0 are absence; weights of one are none."""
    (X, _), weights = signals(), weights_of(600)
    fits = [
        clone(learner).fit(read(X), sample_weight=weights),
        clone(learner).fit(read(X[weights > 0]), sample_weight=weights[weights > 0]),
        clone(learner).fit(read(X), sample_weight=np.ones(600)),
        clone(learner).fit(read(X)),
    ]
    same_bits(fits[0], fits[1])
    same_bits(fits[2], fits[3])
    memory = clone(learner).fit(X, sample_weight=weights)
    if isinstance(learner, KernelMOD):
        np.testing.assert_allclose(fits[0].objective_, memory.objective_, rtol=1e-7)
    else:
        assert fits[0].objective_.min() < 1.2 * memory.objective_.min()
    assert not np.allclose(fits[0].objective_, fits[3].objective_, rtol=0.1)


@pytest.mark.parametrize("learner", GREEDY[:2], ids=repr)
def test_learning_from_observed_values_of_a_file_beats_leaving_rows_out(learner):
    X, _ = signals(n=2000)
    gone = np.random.default_rng(0).random(X.shape) < 0.15
    gone[:60] = False
    learner = clone(learner).set_params(n_atoms=12, max_iter=15)
    whole, few = (clone(learner).fit(read(rows)).score(X) for rows in (X, X[:60]))
    partly = clone(learner).fit(read(np.where(gone, np.nan, X))).score(X)
    assert whole - 0.03 < partly
    assert few < partly


class Stopped(BaseException):
    pass


class Ends(Uncounted):
    """Rows whose disk fails after some readings."""

    def __init__(self, X, n):
        super().__init__(X)
        self.n = n

    def identity(self):
        return {"kind": "test"}

    def _read(self, block_rows):
        self.n -= 1
        if self.n < 0:
            raise Stopped
        yield from super()._read(block_rows)


@pytest.mark.parametrize("learner", GREEDY[:2], ids=repr)
@pytest.mark.parametrize("of_classes", [False, True])
def test_a_stopped_fit_goes_on_to_the_same_bits(learner, of_classes, tmp_path):
    (X, labels), weights = holed(), weights_of(600)
    model = clone(learner).set_params(n_atoms=6)
    y = labels if of_classes else None
    model = ClassDictionaryClassifier(model, random_state=0) if of_classes else model
    whole = clone(model).fit(Ends(X, 99), y, sample_weight=weights)
    found = clone(model).set_callbacks(Checkpoint(tmp_path / "kept"))
    for n in range(3, 20):
        try:
            found.fit(Ends(X, n), y, sample_weight=weights)
            break
        except Stopped:
            assert n < 19
    assert n > 3
    pairs = (
        zip(found.dictionaries_, whole.dictionaries_, strict=True)
        if of_classes
        else [(found, whole)]
    )
    for one, other in pairs:
        same_bits(one, other)


@pytest.mark.parametrize("learner", [GREEDY[0], GREEDY[1]], ids=repr)
def test_other_weights_are_another_fit(learner, tmp_path):
    (X, _), weights = holed(), weights_of(600)
    path = tmp_path / "kept"
    clone(learner).set_callbacks(Checkpoint(path)).fit(X, sample_weight=weights)
    other = clone(learner).set_callbacks(Checkpoint(path))
    with pytest.raises(ValueError, match="weights"):
        other.fit(X, sample_weight=weights + 1)
    with pytest.raises(ValueError, match="weights"):
        other.fit(X)


def test_warm_starts_know_the_weights():
    (X, _), weights = holed(), weights_of(600)
    learner = MOD(12, warm_start=True, **{**FEW, "max_iter": 2})
    once = MOD(12, **FEW).fit(X, sample_weight=weights)
    twice = clone(learner).fit(X, sample_weight=weights).fit(X, sample_weight=weights)
    same_bits(once, twice)
    other = clone(learner).fit(X, sample_weight=weights).fit(X)
    assert other.n_iter_ == 2


def test_rows_that_cannot_be_learned_from_are_refused():
    X, labels = holed()
    for learner in (L1, KSCDL(4), *KERNEL):
        with pytest.raises(ValueError, match="Input X contains NaN"):
            clone(learner).fit(read(X))
        with pytest.raises(ValueError, match="Input X contains NaN"):
            ClassDictionaryClassifier(clone(learner)).fit(read(X), labels)
    X[77] = np.nan
    for model in (GREEDY[0], ClassDictionaryClassifier(GREEDY[1])):
        with pytest.raises(ValueError, match=r"rows of nothing but NaN.*leave them out"):
            clone(model).fit(read(X), labels)
    with pytest.raises(ValueError, match=r"sample_weight.shape == \(3,\), expected \(600,\)"):
        MOD(4).fit(read(X), sample_weight=[1, 2, 3])
    with pytest.raises(ValueError, match="takes no sample_weight"):
        ClassDictionaryClassifier(KSCDL(4)).fit(read(X), labels, sample_weight=np.ones(600))


def test_labels_of_a_source_go_with_weights():
    (X, labels), weights = holed(), weights_of(600)
    model = ClassDictionaryClassifier(KSVD(4, **{**FEW, "n_nonzero_coefs": 2}), random_state=0)
    given = clone(model).fit(read(X), labels, sample_weight=weights)
    own = clone(model).fit(open_rows(X, label=labels), sample_weight=weights)
    for one, other in zip(own.dictionaries_, given.dictionaries_, strict=True):
        same_bits(one, other)
