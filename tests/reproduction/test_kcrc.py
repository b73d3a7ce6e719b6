"""The KCRC-LCD paper: measured by hand on small data; claims that can fail."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import KFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier

from kernelatoms import CRCClassifier, DKSVDClassifier, LCKSVDClassifier, SRCClassifier
from kernelatoms.similarity import DISTANCES, DistanceKernel, make_distance
from oracles import representation as oracle
from reproduction.__main__ import main
from reproduction.kcrc import alone, data, digits, direction, distances, faces, speed
from reproduction.kcrc.distances import LEFT_OUT, nearest, unified
from reproduction.kcrc.faces import global_lcd
from reproduction.kcrc.methods import METHODS, make_classifier, papers_mu
from reproduction.kcrc.pictures import (
    confusion_pictures,
    direction_pictures,
    face_pictures,
)
from reproduction.kcrc.reported import (
    CORRELATION,
    CRC,
    DKSVD,
    IDENTITY,
    KCRC,
    L2,
    LCD,
    LCKSVD,
    PAPERS_MU,
    SRC,
    as_printed,
    of_length,
    of_square,
)
from reproduction.store import append_record, key_of

N_PEOPLE, N_IMAGES = 5, 40
with_image_distances = pytest.mark.skipif(
    "tangent" not in DISTANCES, reason="distances of images are not there yet"
)


def unit(rows):
    rows = rows.reshape(len(rows), -1).astype(float)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def by_hand(train, labels, test, mu):
    """KCRC over Gram columns (Alg. 1, without unit columns): the labels of test rows."""
    G = np.exp(-((train[:, None] - train) ** 2).sum(axis=2) / 2)
    k = np.exp(-((test[:, None] - train) ** 2).sum(axis=2) / 2)
    classes = np.unique(labels)
    found = []
    for y in k:
        w = np.linalg.solve(G @ G + mu * np.eye(len(G)), G @ y)
        own = [labels == c for c in classes]
        r = [np.linalg.norm(y - G[:, m] @ w[m]) / np.linalg.norm(w[m]) for m in own]
        found.append(classes[np.argmin(r)])
    return np.array(found)


@pytest.fixture
def data_home(tmp_path, rng):
    """All sets in small: prototypes with noise, in the files' form."""
    folder = tmp_path / "data"
    folder.mkdir()

    def draw(n, side, noise):
        y = np.arange(n) % 10
        prototypes = np.random.default_rng(side).random((10, side, side)) > 0.7
        return prototypes[y] + noise * rng.standard_normal((n, side, side)), y.astype(np.uint8)

    (X_train, y_train), (X_test, y_test) = draw(200, 16, 0.5), draw(100, 16, 0.5)
    X_train, X_test = (np.clip(2 * X - 1, -1, 1).astype(np.float32) for X in (X_train, X_test))
    np.savez(folder / "usps.npz", X_train=X_train, y_train=y_train, X_test=X_test, y_test=y_test)
    (X_train, y_train), (X_test, y_test) = draw(2300, 28, 3.0), draw(120, 28, 3.0)
    X_train, X_test = (np.clip(255 * X, 0, 255).astype(np.uint8) for X in (X_train, X_test))
    np.savez(folder / "mnist.npz", X_train=X_train, y_train=y_train, X_test=X_test, y_test=y_test)
    y = np.repeat(np.arange(1, N_PEOPLE + 1), N_IMAGES).astype(np.uint8)
    X = rng.standard_normal((N_PEOPLE, 504))[y - 1] + 4 * rng.standard_normal((len(y), 504))
    np.savez(folder / "yaleb_randomface504.npz", X=X.astype(np.float32), y=y)
    images = rng.random((N_PEOPLE, 96, 84))[y - 1] + 0.5 * rng.random((len(y), 96, 84))
    np.savez(
        folder / "yaleb_96x84.npz", X=(160 * images).astype(np.uint8), y=y, subject=y,
        azimuth=y.astype(np.int16), elevation=y.astype(np.int16),
        X_corrupt=np.zeros((1, 96, 84), np.uint8), y_corrupt=y[:1],
    )  # fmt: skip
    return str(folder)


# Splits -------------------------------------------------------------------------------------------


def test_splits_are_nested_and_test_rows_stay(data_home):
    large = data.faces(1216, "randomface504", 1, data_home)
    small = data.faces(10 * N_PEOPLE, "randomface504", 1, data_home)
    assert len(large.train) == 32 * N_PEOPLE
    assert np.bincount(small.train_labels)[1:].tolist() == [10] * N_PEOPLE
    np.testing.assert_array_equal(small.train, large.train[np.arange(32 * N_PEOPLE) % 32 < 10])
    np.testing.assert_array_equal(small.test, large.test)
    both = np.concatenate([large.train, large.test])
    assert len(np.unique(both, axis=0)) == N_PEOPLE * N_IMAGES
    np.testing.assert_allclose(np.linalg.norm(both, axis=1), 1)
    images = data.faces(1216, "96x84", 1, data_home)
    np.testing.assert_array_equal(images.test_labels, large.test_labels)
    other = data.faces(1216, "randomface504", 2, data_home)
    assert (other.test != large.test).any()

    large, small = (data.digits(n, 40, 3, data_home) for n in (2000, 100))
    assert np.bincount(small.train_labels).tolist() == [10] * 10
    np.testing.assert_array_equal(small.train, large.train[np.arange(2000) % 200 < 10])
    np.testing.assert_array_equal(small.test, large.test)
    few = data.digits(100, 10, 3, data_home)
    assert all((row == small.test).all(axis=1).any() for row in few.test)
    whole = data.digits(100, 10_000, 3, data_home)
    assert len(whole.test) == 120
    assert (whole.test_labels == np.arange(120) % 10).all()


# Classifiers --------------------------------------------------------------------------------------


def test_settings_make_their_classifiers():
    local = {**METHODS[LCD], "decades": -1.0, "n_neighbors": 70}
    model = make_classifier(local, 1000, 5)
    assert (model.kernel, model.gamma, model.n_neighbors) == ("rbf", 0.5, 70)
    assert model.mu == pytest.approx(0.0001 * 70 / 700)
    # K of all atoms is the global dictionary.
    assert make_classifier(local, 70, 5).n_neighbors is None
    whole = make_classifier({**METHODS[CRC], "decades": PAPERS_MU}, 1400, 5)
    assert (whole.kernel, whole.mu) == ("linear", pytest.approx(0.002))
    assert make_classifier({**METHODS[KCRC], "decades": None}, 10, 5).mu == "search"
    assert isinstance(make_classifier(METHODS[SRC], 10, 5), SRCClassifier)
    learned = make_classifier({**METHODS[LCKSVD], "n_learned": 380}, 1216, 5)
    assert isinstance(learned, LCKSVDClassifier)
    assert (learned.n_atoms, learned.n_nonzero_coefs, learned.variant) == (380, 30, 2)
    assert isinstance(make_classifier({**METHODS[DKSVD], "n_learned": 9}, 9, 5), DKSVDClassifier)


def test_table_1_by_hand(data_home):
    split = data.faces(1216, "randomface504", 0, data_home)
    mu = papers_mu(32 * N_PEOPLE) / 10
    found = by_hand(split.train, split.train_labels, split.test, mu)
    setting = {"method": IDENTITY, **faces._SEEN[IDENTITY], "decades": -1.0, "x": -1.0}
    measured = faces.PROJECTIONS.run_once(setting, 0, data_home)
    assert measured["accuracy"] == pytest.approx(100 * np.mean(found == split.test_labels))
    assert 25 < measured["accuracy"] < 100
    assert measured["mu"] == pytest.approx(mu)
    methods = {setting["method"]: setting for setting in faces.PROJECTIONS.full.settings}
    assert len(methods) == 17
    for setting in methods.values():
        small = {**setting, "n_components": 20} if "n_components" in setting else setting
        assert faces.PROJECTIONS.run_once(small, 0, data_home)["accuracy"] > 25


def test_as_printed_is_algorithm_1_word_by_word(data_home):
    split = data.faces(1216, "randomface504", 0, data_home)
    mu = papers_mu(32 * N_PEOPLE)
    how = next(
        s
        for s in faces.PROJECTIONS.full.settings
        if s["method"] == as_printed(IDENTITY) and s["x"] == PAPERS_MU
    )
    D, T = split.train, split.test
    G = np.exp(-0.5 * np.sqrt(((D[:, None] - D) ** 2).sum(axis=2)))
    k = np.exp(-0.5 * np.sqrt(((T[:, None] - D) ** 2).sum(axis=2)))
    found = [
        oracle.algorithm_1(G, y, np.eye(len(G)), split.train_labels - 1, mu, N_PEOPLE)[1].argmin()
        for y in k
    ]
    measured = faces.PROJECTIONS.run_once(how, 0, data_home)["accuracy"]
    assert measured == pytest.approx(100 * np.mean(np.array(found) + 1 == split.test_labels))
    dimensions = {
        s["method"]: s["n_components"]
        for s in faces.PROJECTIONS.full.settings if "n_components" in s
    }  # fmt: skip
    assert set(dimensions.values()) == {80}
    assert len(dimensions) == 6


def test_parameters_of_the_paper_can_be_changed(data_home):
    how = {**METHODS[KCRC], "decades": PAPERS_MU}
    model = make_classifier({**how, "beta": 5.0, "mu_of_700": 0.1}, 1400, 0)
    assert (model.gamma, model.mu) == (5.0, pytest.approx(0.2))
    setting = {"method": KCRC, **how, "x": PAPERS_MU, "n_atoms": 5 * N_PEOPLE}
    measured = faces.PROJECTIONS.run_once(setting, 0, data_home)
    assert measured["mu"] == pytest.approx(papers_mu(5 * N_PEOPLE))


def test_one_face_by_hand(data_home):
    how = {"code": "crc", "kernel": "linear", "decades": PAPERS_MU}
    measured = [
        faces.ONE_FACE.run_once({"method": CRC, **how, "x": person}, 0, data_home)
        for person in range(1, N_PEOPLE + 1)
    ]
    split = data.faces(1216, "randomface504", 0, data_home)
    D, face = split.train.T, split.test[split.test_labels == 1][0]
    mu = papers_mu(D.shape[1])
    w = np.linalg.solve(D.T @ D + mu * np.eye(D.shape[1]), D.T @ face).reshape(N_PEOPLE, 32)
    parts = D.reshape(504, N_PEOPLE, 32)
    residuals = [
        np.linalg.norm(face - parts[:, i] @ w[i]) / np.linalg.norm(w[i]) for i in range(N_PEOPLE)
    ]
    for person, of in enumerate(measured):
        assert of["residual"] == pytest.approx(residuals[person] / min(residuals))
        share = 100 * np.abs(w[person]).sum() / np.abs(w).sum()
        assert of["share"] == pytest.approx(share)
        weights = [of[f"w{i}"] for i in range(1, 33)]
        np.testing.assert_allclose(weights, w[person] / np.abs(w).max(), atol=6e-5)


def test_local_digits_by_hand(data_home):
    setting = next(
        s
        for s in digits.NEIGHBOURS.full.settings
        if s["method"] == global_lcd(500) and s["x"] == 20
    )
    measured = digits.measure_digits(setting, 0, data_home)
    split = data.digits(500, 1000, 0, data_home)
    right = []
    for row, label in zip(split.test, split.test_labels, strict=True):
        near = np.argsort(((split.train - row) ** 2).sum(axis=1))[:20]
        labels = split.train_labels[near]
        alone = len(np.unique(labels)) == 1
        found = (
            labels[:1] if alone else by_hand(split.train[near], labels, row[None], papers_mu(20))
        )
        right.append(found[0] == label)
    assert measured["accuracy"] == pytest.approx(100 * np.mean(right))
    assert 25 < measured["accuracy"] < 100


def test_every_method_of_figs_4_and_5_runs(data_home):
    for study, measure in (
        (digits.DICTIONARIES, digits.measure_digits), (faces.DICTIONARIES, faces.measure_faces),
    ):  # fmt: skip
        smallest = {s["method"]: s for s in reversed(study.full.settings)}
        for method, setting in smallest.items():
            small = {**setting, "n_test": 60, "n_atoms": 100}
            if "n_neighbors" in setting:
                small["n_neighbors"] = 15
            if "n_learned" in setting:
                small |= {"n_learned": 15, "n_nonzero": 5}
            assert measure(small, 0, data_home)["accuracy"] > 20, method


def test_large_k_asks_fewer_queries():
    asked = {s["x"]: s["n_test"] for s in digits.DICTIONARIES.full.settings if s["method"] == LCD}
    assert asked == {100: 1000, 200: 1000, 500: 200, 700: 200, 1000: 100, 1500: 100}
    sizes = [s for s in faces.DICTIONARIES.full.settings if s["method"] == LCD]
    asked = {s["x"]: s.get("n_test") for s in sizes}
    assert asked == {380: None, 570: 300, 760: 300, 950: 300, 1216: None}


def test_some_faces_are_drawn(data_home):
    setting = {**faces._local_settings(LCD, 1216, (20,))[0], "n_test": 7}
    accuracy = faces.measure_faces(setting, 0, data_home)["accuracy"]
    assert accuracy * 7 / 100 == pytest.approx(round(accuracy * 7 / 100))
    assert faces.measure_faces(setting, 0, data_home)["accuracy"] == accuracy


def test_confusions_are_counted(data_home):
    setting = next(s for s in digits.CONFUSION.full.settings if s["method"] == LCD)
    setting = {**setting, "n_atoms": 200, "n_neighbors": 20}
    rows = [digits.measure_confusion({**setting, "x": d}, 0, data_home) for d in range(10)]
    counts = np.array([[row[f"as{d}"] for d in range(10)] for row in rows])
    assert counts.sum(axis=1).tolist() == [12] * 10
    assert [row["accuracy"] for row in rows] == pytest.approx(100 * np.diagonal(counts) / 12)
    split = data.digits(200, 10_000, 0, data_home)
    model = CRCClassifier("rbf", n_neighbors=20, gamma=0.5).fit(split.train, split.train_labels)
    right = np.mean(model.predict(split.test) == split.test_labels)
    assert np.trace(counts) / 120 == pytest.approx(right)


# One direction ------------------------------------------------------------------------------------


def test_classes_lie_in_one_direction():
    rows, labels = direction.one_direction(5000, 3, np.random.default_rng(0))
    assert np.bincount(labels).tolist() == [5000, 5000]
    for label, sign in ((0, -1), (1, 1)):
        own = sign * rows[labels == label]
        assert own.mean() == pytest.approx(2, abs=0.03)
        assert own.var() == pytest.approx(4 / 12 + 0.15, rel=0.05)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_kernels_tell_one_direction_apart_and_crc_does_not(dtype):
    for n_features in (2, 256):
        own = {"dtype": dtype, "x": n_features}
        accuracy = {
            m: direction.measure_direction({"method": m, **direction.how_of(m), **own}, 0, None)
            for m in (CRC, KCRC, LCD)
        }
        assert accuracy[KCRC] == accuracy[LCD] == {"accuracy": 100}
        assert accuracy[CRC]["accuracy"] < 75


# Distances ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["mnist", "usps", "yaleb"])
def test_given_kernel_values_change_no_answer(data_home, name):
    study = {"mnist": distances.MNIST, "usps": distances.USPS, "yaleb": distances.FACES}[name]
    setting = next(
        s for s in study.full.settings
        if s["method"] == of_length(CORRELATION) and s["x"] == PAPERS_MU
    )  # fmt: skip
    setting = {**setting, "n_neighbors": 30}
    split = {
        "mnist": lambda: data.digits(200, 10_000, 1, data_home),
        "usps": lambda: data.usps(data_home),
        "yaleb": lambda: data.faces(1216, "randomface504", 1, data_home),
    }[name]()
    model = CRCClassifier(
        "correlation", n_neighbors=30, mu=papers_mu(30), gamma=0.5, kernel_params={"power": 1}
    )
    right = model.fit(split.train, split.train_labels).score(split.test, split.test_labels)
    measured = study.run_once(setting, 1, data_home)["accuracy"]
    assert measured == pytest.approx(100 * right)
    assert measured > 20
    other = next(
        s for s in study.full.settings if s["method"] == of_square(L2) and s["x"] == PAPERS_MU
    )
    other = {**other, "n_neighbors": 30}
    model = CRCClassifier("rbf", n_neighbors=30, mu=papers_mu(30), gamma=0.5)
    right = model.fit(split.train, split.train_labels).score(split.test, split.test_labels)
    assert study.run_once(other, 1, data_home)["accuracy"] == pytest.approx(100 * right)


def test_folds_ask_training_digits(data_home):
    """Those of the fold choose no neighbours, and mu neither; all forms take two distances."""
    rng, labels = np.random.default_rng(0), np.arange(200) % 10
    X = np.random.default_rng(1).random((10, 16, 16))[labels] + 4 * rng.random((200, 16, 16))
    X = (X / 5).astype(np.float32)
    np.savez(
        Path(data_home) / "usps.npz", X_train=X[:150], y_train=labels[:150].astype(np.uint8),
        X_test=X[150:], y_test=labels[150:].astype(np.uint8),
    )  # fmt: skip
    split = data.usps(data_home)
    for form in ("product", "sum", "union"):
        setting = next(
            s
            for s in distances.unified_settings(distances._FAST)
            if s["method"] == of_square(unified(form, "correlation, l2")) and s["x"] == LEFT_OUT
        )
        setting = {**setting, "n_neighbors": 15, "decades": PAPERS_MU}
        measured = distances.UNIFIED.run_once(setting, 0, data_home)["accuracy"]
        both = make_distance("unified", distances=("correlation", "l2"), form=form)
        kernel = DistanceKernel(both, gamma=0.5, power=2)
        model = CRCClassifier(
            kernel, distance=both, n_neighbors=15, mu=papers_mu(15), gamma=None, normalize=False
        )
        right = cross_val_score(model, split.train, split.train_labels, cv=KFold(5))
        assert measured == pytest.approx(100 * right.mean(), abs=0.6), form  # a row in 200
        assert 20 < measured < 100


def test_digits_are_smoothed(rng):
    images = rng.random((3, 16, 16))
    whole = distances.smooth(images, 0.7)[1].reshape(16, 16)
    assert np.linalg.norm(whole) == pytest.approx(1)
    weights = np.exp(-(np.arange(-3.0, 4) ** 2) / (2 * 0.7**2))
    mask = np.outer(weights, weights)
    one, other = (np.sum(mask * images[1, y - 3 : y + 4, 4:11]) for y in (8, 5))
    assert whole[8, 7] / whole[5, 7] == pytest.approx(one / other)


def test_tables_hold_the_distances_of_all_pairs(rng, monkeypatch):
    monkeypatch.setattr(distances, "_BLOCK", 3)
    train, test = rng.random((8, 5)), rng.random((4, 5))
    table = distances.table_of(make_distance("l1"), train, test)
    both = np.concatenate([train, test])
    np.testing.assert_allclose(table, np.abs(both[:, None] - train).sum(axis=2))
    looked_up = distances.LookedUp(table)
    np.testing.assert_array_equal(
        looked_up.compare(np.array([[9.0], [2.0]]), np.array([[1.0], [0.0], [7.0]])),
        table[np.ix_([9, 2], [1, 0, 7])],
    )
    stacks = rng.integers(0, 8, (2, 3, 1)).astype(float)
    found = looked_up.compare(stacks, stacks)
    assert found.shape == (2, 3, 3)
    assert found[1, 0, 2] == table[int(stacks[1, 0, 0]), int(stacks[1, 2, 0])]


def test_the_nearest_neighbour_is_scikit_learns(data_home):
    setting = next(s for s in distances.MNIST.full.settings if s["method"] == nearest(L2))
    split = data.digits(200, 10_000, 2, data_home)
    peer = KNeighborsClassifier(1).fit(split.train, split.train_labels)
    measured = distances.MNIST.run_once(setting, 2, data_home)["accuracy"]
    assert measured == pytest.approx(100 * peer.score(split.test, split.test_labels))


@with_image_distances
@pytest.mark.slow
def test_every_distance_runs_on_its_images(data_home, monkeypatch):
    monkeypatch.setitem(distances.N_ATOMS, "mnist", 50)
    for study in (distances.USPS, distances.FACES, distances.MNIST, distances.SHAPES):
        for setting in study.full.settings:
            if setting["x"] == PAPERS_MU:
                small = {**setting, "n_test": 20, "n_neighbors": 20}
                accuracy = study.run_once(small, 0, data_home)["accuracy"]
                assert 0 <= accuracy <= 100
                # A setting that came back from its record means the same.
                again = json.loads(key_of(small))
                assert study.run_once(again, 0, data_home)["accuracy"] == accuracy


# Speed --------------------------------------------------------------------------------------------


def test_queries_are_timed(data_home):
    for setting in speed._query_settings("mnist", (1, 10)):
        assert 0 < speed.measure_queries(setting, 0, data_home)["ms"] < 10_000
    src = [s["x"] for s in speed.MNIST.full.settings if s["method"] == SRC]
    assert src == [1, 10, 100, 1000]


@pytest.mark.slow
def test_a_process_of_its_own_tells_time_and_memory(data_home):
    setting = {**speed._contenders()[0], "n_atoms": 400, "side": 14, "x": 400}
    measures = speed.measure_growth(setting, 0, data_home)
    assert measures["ms"] > 0
    assert measures["prepare"] > 0
    assert 0 <= measures["mib"] < measures["peak"] < 4000
    with pytest.raises(RuntimeError, match="the process of KCRC-LCD ended with"):
        alone.run_alone({"method": LCD}, {})


@pytest.mark.slow
def test_memory_is_that_of_this_process():
    # A new process: this one may have room to give before it grows.
    code = (
        "import json, numpy as np\n"
        "from reproduction.kcrc.alone import _resident\n"
        "held = _resident('VmRSS')\n"
        "block = np.ones(80 << 17)\n"
        "now = _resident('VmRSS')\n"
        "del block\n"
        "print(json.dumps([held, now, _resident('VmHWM'), _resident('VmNothing')]))"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    held, now, most, nothing = json.loads(told.stdout)
    assert nothing is None
    if held is not None:  # not every system tells
        assert now - held == pytest.approx(80, abs=8)
        assert most - held == pytest.approx(80, abs=8)  # the system counts in lots


def test_digits_get_other_sizes(rng):
    rows = rng.random((3, 784))
    small = speed._resized(rows, 7).reshape(3, 7, 7)
    assert small[1, 2, 3] == pytest.approx(rows[1].reshape(28, 28)[8:12, 12:16].mean())
    np.testing.assert_array_equal(speed._resized(rows, 28), rows)
    large = speed._resized(rows, 56).reshape(3, 56, 56)
    np.testing.assert_array_equal(large[:, ::2, 1::2], rows.reshape(3, 28, 28))


# Pictures and the command -------------------------------------------------------------------------


def test_a_face_is_drawn_from_its_records(tmp_path):
    assert face_pictures(tmp_path) == []
    for setting in faces.ONE_FACE.quick.settings:
        residual = 1.0 if setting["x"] == 1 else 2.0 + setting["x"]
        measures = {"residual": residual, "share": 2.0, "w1": 0.5, "w2": -0.25}
        append_record(
            faces.ONE_FACE.path(tmp_path), {"setting": setting, "seed": 0, "measures": measures}
        )
    (picture,) = face_pictures(tmp_path)
    titles = [ax.get_title() for ax in picture.figure.axes]
    assert titles[:2] == [f"{SRC}: coefficients", f"{SRC}: residuals"]
    assert len(titles) == 6
    bars = [bar.get_height() for bar in picture.figure.axes[1].patches]
    assert bars == [1.0, *(2.0 + person for person in range(2, 39))]
    stems = [s for c in picture.figure.axes[0].collections for s in c.get_segments()]
    assert len(stems) == 2 * 38
    np.testing.assert_array_equal(stems[3], [[3, 0], [3, -0.25]])


def test_the_plane_is_divided_by_kernels_only(tmp_path):
    (picture,) = direction_pictures(tmp_path)
    maps = {ax.get_title(): ax.collections[0].get_array().reshape(81, 81)
            for ax in picture.figure.axes}  # fmt: skip
    for method in (KCRC, LCD):
        assert maps[method][60:, 60:].all()  # both features above 2
        assert not maps[method][:21, :21].any()
    assert 0 < maps[CRC][60:, 60:].mean() < 1


def test_confusions_are_drawn_over_all_splits(tmp_path):
    assert confusion_pictures(tmp_path) == []
    for seed in (0, 1):
        for setting in digits.CONFUSION.full.settings:
            measures = {f"as{d}": 7 if d == setting["x"] else 0 for d in range(10)}
            append_record(
                digits.CONFUSION.path(tmp_path),
                {"setting": setting, "seed": seed, "measures": {"accuracy": 100.0, **measures}},
            )
    local, whole = confusion_pictures(tmp_path)
    assert local.caption.startswith(f"{LCD}: ")
    assert whole.caption.startswith(f"{CRC}: ")
    assert "2 splits" in local.caption
    assert [text.get_text() for text in local.figure.axes[0].texts] == ["14"] * 10


def test_the_command_runs_what_is_small(data_home, tmp_path, capsys):
    out = tmp_path / "out"
    arguments = ["--seeds", "1", "--data-home", data_home, "-o", str(out), "--json"]
    assert main(["kcrc/fig3", "kcrc/table5-usps", *arguments]) == 0
    figures = {f["name"]: f for f in json.loads(capsys.readouterr().out)["figures"]}
    assert list(figures) == ["kcrc/fig3", "kcrc/table5-usps"]
    # No data is needed for this one, so these are the paper's own claims.
    assert all(claim["holds"] for claim in figures["kcrc/fig3"]["claims"])
    page = (out / "kcrc.html").read_text()
    assert page.count("<img") == 3  # a plot each, and the plane
    assert "95.49" in page  # what the authors reported stands beside
    assert "chosen" in page
