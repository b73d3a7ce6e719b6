"""The LKDL paper's sentences as claims that can fail; choices on training rows; the stream."""

import itertools

import numpy as np
import pytest
from scipy.linalg import sqrtm
from scipy.ndimage import gaussian_filter
from sklearn.model_selection import StratifiedKFold

from kernelatoms import KSVD, MOD, ClassDictionaryClassifier, FDDLClassifier, KernelLinearizer
from reproduction.figure import Curves
from reproduction.figures import FIGURES
from reproduction.lkdl import chosen, faces, fddl, online, sentences, usps
from reproduction.lkdl.reported import (
    BEST,
    COLUMN_NORM,
    CORESET,
    DIAGONAL,
    FIG_2A,
    KERNEL,
    KMEANS,
    LINEAR,
    UNIFORM,
)

few_rows = pytest.mark.filterwarnings("ignore:n_(atoms|nonzero|components|landmarks)")


def holds(sentences_of, values, *more):
    return [claim.holds for claim in sentences_of(Curves(values), *more)]


# Sentences ----------------------------------------------------------------------------------------


def test_sentences_of_fig_1a_can_fail():
    good = {(KMEANS, 0.1): [0.014], (BEST, 0.1): [0.01]}
    others = {(m, 0.1): [0.02] for m in (UNIFORM, CORESET, DIAGONAL, COLUMN_NORM)}
    assert holds(sentences.sentences_1a, good | others) == [True, True]
    assert holds(sentences.sentences_1a, good | {(KMEANS, 0.1): [0.016]}) == [False]
    assert holds(sentences.sentences_1a, others | {(UNIFORM, 0.1): [0.031]}) == [False]


def test_sentences_of_fig_1b_can_fail():
    good = {(LINEAR, None): [95.0, 95.0], (KERNEL, None): [96.0, 96.0]}
    good |= {(m, x): [95.7, 95.9] for m in usps.SAMPLING_OF for x in (0.2, 0.5)}
    good |= {(KMEANS, x): [95.8, 96.0] for x in (0.2, 0.5)}
    assert holds(sentences.sentences_1b, good) == [True] * 5
    assert holds(sentences.sentences_1b, good | {(LINEAR, None): [95.6]}) == [
        False, False, True, True, True,
    ]  # fmt: skip
    assert holds(sentences.sentences_1b, good | {(UNIFORM, 0.5): [96.5]})[2] is False
    worse = {(KMEANS, 0.2): [95.5, 95.6], (KMEANS, 0.5): [96.1, 96.1]}
    assert holds(sentences.sentences_1b, good | worse) == [True, True, True, False, False]


def test_sentences_of_fig_2_can_fail():
    four = usps.to_the_fourth
    good = {(CORESET, 1.0): [85.0], (KERNEL, 1.0): [86.9]}
    assert holds(sentences.sentences_2, good, FIG_2A) == [True]
    assert holds(sentences.sentences_2, good | {(KERNEL, 1.0): [87.1]}, FIG_2A) == [False]
    fourth = {(four(CORESET), 1.0): [85.0], (four(KERNEL), 1.0): [82.0]}
    assert holds(sentences.sentences_2, good | fourth, FIG_2A) == [True, False]


def test_sentences_of_fig_3_can_fail():
    good = {(LINEAR, 60_000): [97.0], (CORESET, 60_000): [98.0], (KERNEL, 60_000): [98.2]}
    assert holds(sentences.sentences_3a, good) == [True]
    assert holds(sentences.sentences_3a, good | {(KERNEL, 60_000): [98.4]}) == [False]
    assert holds(sentences.sentences_3a, good | {(LINEAR, 60_000): [98.0]}) == [False]
    times = {(CORESET, 60_000): [10.0], (KERNEL, 60_000): [190.0]}
    assert holds(sentences.sentences_3b, times) == [True]
    assert holds(sentences.sentences_3b, times | {(KERNEL, 60_000): [180.0]}) == [False]


def test_degree_4_stands_beside_degree_2():
    for name, degree in (("fig1a", 2), ("fig1a-degree4", 4), ("fig1b", 2), ("fig1b-degree4", 4)):
        settings = FIGURES[f"lkdl/{name}"].study.full.settings
        assert {s["degree"] for s in settings if "degree" in s} == {degree}
    exact = {
        (s["method"], s["degree"]) for s in usps.NOISY.full.settings
        if "degree" in s and "sampling" not in s
    }  # fmt: skip
    assert exact == {(KERNEL, 2), (usps.to_the_fourth(KERNEL), 4)}


def test_our_row_on_usps_can_fail():
    figure = FIGURES["lkdl/fig1b"]
    for accuracy, right in ((95.8, True), (95.7, False)):
        claims = figure.claims(Curves({(usps.OURS, None): [accuracy]}))
        assert [claim.holds for claim in claims] == [right]


# Choices on training rows -------------------------------------------------------------------------


@pytest.fixture
def data_home(tmp_path, rng):
    """Digits and faces in small, in the files' form."""
    y = (np.arange(200) % 10).astype(np.uint8)
    prototypes = rng.random((10, 16, 16)) > 0.7
    digits = np.clip(2 * prototypes[y] - 1 + rng.standard_normal((200, 16, 16)), -1, 1)
    digits = digits.astype(np.float32)
    np.savez(
        tmp_path / "usps.npz", X_train=digits[:150], y_train=y[:150], X_test=digits[150:],
        y_test=y[150:],
    )  # fmt: skip
    y = np.repeat(np.arange(1, 12), 36).astype(np.uint8)
    X = rng.standard_normal((11, 504))[y - 1] + 3 * rng.standard_normal((len(y), 504))
    np.savez(tmp_path / "yaleb_randomface504.npz", X=X.astype(np.float32), y=y)
    return str(tmp_path)


SMALL = {
    "blurs": [0.0, 1.0], "gammas": [2.0], "shrinkages": [0.0, 0.3], "atoms": [6],
    "nonzeros": [2, 3], "rank": 40, "n_atoms": 6,
}  # fmt: skip


def unit(rows):
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def by_hand(data_home, seed):
    """Return rows by blur, and the accuracy of every choice over three folds, one at a time."""
    with np.load(f"{data_home}/usps.npz") as file:
        pixels = {k: (file[k] + 1) / 2 for k in ("X_train", "X_test")}
        labels = {k: file[k].astype(int) for k in ("y_train", "y_test")}
    rows, scores = {}, {}
    for blur in SMALL["blurs"]:
        rows[blur] = [
            unit(np.stack([gaussian_filter(image, blur, mode="constant") if blur else image
                           for image in pixels[k]]).reshape(-1, 256))
            for k in ("X_train", "X_test")
        ]  # fmt: skip
        X, y = rows[blur][0], labels["y_train"]
        tried = ("gammas", "shrinkages", "atoms", "nonzeros")
        for cell in itertools.product(*(SMALL[name] for name in tried)):
            right = 0
            folds = StratifiedKFold(3, shuffle=True, random_state=seed).split(X, y)
            for train, left_out in folds:
                F, G, model = models(cell, X[train], y[train], X[left_out], seed)
                right += (model.fit(F, y[train]).predict(G) == y[left_out]).sum()
            scores[blur, *cell] = right / len(y)
    return rows, labels, scores


def models(cell, train, labels, test, seed):
    """Return rows as a choice has them, and its classifier."""
    gamma, shrinkage, n_atoms, n_nonzero = cell
    map_ = KernelLinearizer(
        gamma=gamma, n_landmarks=0.2, n_components=SMALL["rank"], random_state=seed
    )
    F, G = map_.fit_transform(train), map_.transform(test)
    if shrinkage:
        scatter = 0
        for f, label in zip(F.astype(float), labels, strict=True):
            d = f - F[labels == label].mean(axis=0, dtype=float)
            scatter = scatter + np.outer(d, d) / len(F)
        s = np.linalg.eigvalsh(scatter)
        metric = np.linalg.inv(sqrtm(scatter + shrinkage * s.mean() * np.eye(len(s))))
        F, G = unit(F @ metric), unit(G @ metric)
    learner = KSVD(n_atoms, n_nonzero_coefs=n_nonzero, max_iter=5, tol=0)
    return F, G, ClassDictionaryClassifier(learner, random_state=seed)


@few_rows
def test_lkdl_chooses_on_training_rows(data_home):
    setting = {**usps.LANDMARKS.full.settings[-1], **SMALL}
    assert setting["method"] == usps.OURS
    measured = usps.measure_clean(setting, 1, data_home)
    rows, labels, scores = by_hand(data_home, 1)
    best = max(scores, key=lambda cell: scores[cell])
    names = ("blur", "gamma", "shrinkage", "atoms", "nonzeros")
    assert tuple(measured[name] for name in names) == best
    assert measured["validation"] == pytest.approx(scores[best])
    train, test = rows[best[0]]
    F, G, model = models(best[1:], train, labels["y_train"], test, 1)
    right = model.fit(F, labels["y_train"]).score(G, labels["y_test"])
    assert measured["accuracy"] == pytest.approx(100 * right)


@few_rows
def test_test_labels_have_no_part_in_a_choice(data_home, tmp_path):
    """With other test rows and labels, the same is chosen."""
    setting = {**usps.LANDMARKS.full.settings[-1], **SMALL}
    other = tmp_path / "other"
    other.mkdir()
    with np.load(f"{data_home}/usps.npz") as file:
        arrays = dict(file)
    arrays |= {"X_test": -arrays["X_test"], "y_test": 9 - arrays["y_test"]}
    np.savez(other / "usps.npz", **arrays)
    here, there = (usps.measure_clean(setting, 0, str(home)) for home in (data_home, other))
    assert here.pop("accuracy") != there.pop("accuracy")
    assert here == there


@few_rows
def test_fddl_takes_the_kernel_of_lkdl(data_home):
    setting = {**fddl.FISHER.full.settings[-1], **SMALL, "weights": [0.1, 0.4], "passes": 5}
    assert setting["method"] == fddl.OURS
    measured = fddl.measure_fddl(setting, 1, data_home)
    rows, labels, scores = by_hand(data_home, 1)
    blur, *cell = max(scores, key=lambda cell: scores[cell])
    assert (measured["blur"], measured["gamma"], measured["shrinkage"]) == (blur, *cell[:2])
    train, test = rows[blur]
    F, G, _ = models(cell, train, labels["y_train"], test, 1)
    model = FDDLClassifier(
        6, l1_weight=measured["weight"], init_max_iter=0, max_iter=5, tol=0, random_state=1
    ).fit(F, labels["y_train"])
    right = model.score(G, labels["y_test"])
    assert measured["accuracy"] == pytest.approx(100 * right)


@few_rows
def test_faces_choose_on_training_rows(data_home):
    setting = faces.YALEB_CHOSEN.full.settings[-1]
    small = {"gammas": [0.1, 0.5], "nonzeros": [2, 4], "atoms_each": 2, "folds": 2}
    small |= {"passes": 1, "init_passes": 1}
    measured = faces.YALEB_CHOSEN.run_once({**setting, **small}, 0, data_home)
    assert measured["gamma"] in small["gammas"]
    assert measured["nonzeros"] in small["nonzeros"]
    fixed = {"gamma": measured["gamma"], "n_nonzero": int(measured["nonzeros"])}
    plain = {k: v for k, v in {**setting, **small}.items() if k not in ("gammas", "nonzeros")}
    again = faces.YALEB_CHOSEN.run_once({**plain, **fixed}, 0, data_home)
    assert measured["accuracy"] == pytest.approx(again["accuracy"])


def test_the_first_of_equals_is_taken():
    assert chosen.best_of({(1.0,): 0.5, (2.0,): 0.7, (3.0,): 0.7}) == (2.0,)


# The stream ---------------------------------------------------------------------------------------


@pytest.fixture
def mnist_home(tmp_path, rng):
    y = (np.arange(1200) % 10).astype(np.uint8)
    prototypes = rng.random((10, 28, 28)) > 0.7
    X = (30 * prototypes[y] + 220 * rng.random((1200, 28, 28))).astype(np.uint8)
    np.savez(tmp_path / "mnist.npz", X_train=X[:1000], y_train=y[:1000], X_test=X[1000:],
             y_test=y[1000:])  # fmt: skip
    return str(tmp_path)


TINY = {"n_rows": 800, "batch": 100, "landmarks": 30, "n_atoms": 6, "n_nonzero": 2,
        "renew_every": 2, "n_recent": 150, "n_sampled": 120, "judge_every": 200}  # fmt: skip


@few_rows
@pytest.mark.parametrize("method", [online.KEPT, online.RECENT, online.SAMPLED, online.BATCH])
def test_every_way_through_the_stream(mnist_home, method):
    half, end = (
        online.STREAM.run_once({"method": method, **TINY, "x": x}, 0, mnist_home)
        for x in (400, 800)
    )
    assert half["accuracy"] == half["now"]  # all digits so far come now
    assert min(*half.values(), *end.values()) > 20  # 10 would be chance
    assert end["accuracy"] != end["now"]


@few_rows
def test_the_stream_by_hand(mnist_home):
    """Landmarks kept: a map of the first batch, dictionaries from one batch after another."""
    rows = online._stream(800, 3, mnist_home)
    assert set(rows.train_labels[:400]) == set(range(5))
    assert set(rows.train_labels[400:]) == set(range(5, 10))
    map_ = KernelLinearizer("poly", degree=2, gamma=1, coef0=0, n_landmarks=30, random_state=3)
    model = ClassDictionaryClassifier(MOD(6, n_nonzero_coefs=2, max_iter=5, tol=0), random_state=3)
    map_.fit(rows.train[:100])
    for start in range(0, 800, 100):
        batch = slice(start, start + 100)
        model.partial_fit(map_.transform(rows.train[batch]), rows.train_labels[batch])
    right = model.score(map_.transform(rows.test), rows.test_labels)
    setting = {"method": online.KEPT, **TINY, "x": 800}
    measured = online.STREAM.run_once(setting, 3, mnist_home)
    assert measured["accuracy"] == pytest.approx(100 * right)


def test_claims_of_the_stream_can_fail():
    end = online.PLACES[-1]
    good = {(online.KEPT, end): [95.5], (online.SAMPLED, end): [95.1], (online.BATCH, end): [96.0]}
    claims = FIGURES["lkdl/online"].claims
    assert [c.holds for c in claims(Curves(good))] == [True, True]
    low = good | {(online.SAMPLED, end): [94.9]}
    assert [c.holds for c in claims(Curves(low))] == [True, False]
    now = {(online.KEPT, end): [95.0, 95.1], (online.RECENT, end): [95.5, 95.7]}
    claims = FIGURES["lkdl/online-now"].claims
    assert [c.holds for c in claims(Curves(now))] == [True]
    assert [c.holds for c in claims(Curves(now | {(online.RECENT, end): [95.0, 95.9]}))] == [False]
