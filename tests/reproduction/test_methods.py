"""Which method? Splits, corruption, cells within budgets, and tables made of records."""

import warnings

import numpy as np
import pytest

from reproduction.figure import Curves
from reproduction.figures import FIGURES
from reproduction.methods import cells, claims
from reproduction.methods.classifiers import (
    BASELINES,
    GRIDS,
    METHODS,
    OURS,
    SVM,
    make_method,
)
from reproduction.methods.data import BUNDLED, CONDITIONS, DATA, MADE, Split, split_of
from reproduction.methods.study import STUDY, place_of
from reproduction.page import figure_table, picture_in_words


@pytest.mark.parametrize("name", [*BUNDLED, *MADE])
def test_splits_are_apart_and_the_same_for_clean_and_tuned(name):
    split = split_of(name, "clean", 1)
    assert len(split.train) <= 600
    assert len(split.test) <= 300
    assert set(split.test_labels) <= set(split.labels)
    for ours, theirs in zip(split, split_of(name, "tuned", 1), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    if name in MADE:
        assert not np.array_equal(split.train, split_of(name, "clean", 2).train)


def test_corruption_is_as_large_as_it_says():
    clean, noise, missing, wrong = (split_of("hard", c, 0) for c in CONDITIONS[:4])
    added = (noise.test - clean.test).std(axis=0) / clean.train.std(axis=0)
    np.testing.assert_allclose(added, 0.5, rtol=0.15)
    assert np.isnan(missing.train).mean() == pytest.approx(0.2, abs=0.02)
    assert np.isnan(missing.test).mean() == pytest.approx(0.2, abs=0.02)
    assert np.mean(wrong.labels != clean.labels) == pytest.approx(0.1, abs=0.001)
    np.testing.assert_array_equal(wrong.test_labels, clean.test_labels)
    np.testing.assert_array_equal(wrong.train, clean.train)


def small_split(rng):
    y = np.tile([0, 1], 20)
    X = rng.normal(size=(40, 3)) + 3 * y[:, None]
    return Split(X[:30], y[:30], X[30:], y[30:])


@pytest.mark.parametrize("name", METHODS)
def test_grids_name_parameters_and_every_method_runs(name, rng):
    model = make_method(name, 30, 0, False)
    assert set(GRIDS[name]) <= set(model.get_params())
    if name in ("fddl", "gradient boosting", "ksad"):
        return  # seconds; the study runs them
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of sizes that so few rows clip
        found = cells.run_cell(name, small_split(rng), 0, False)
    assert set(found) == {"accuracy", "balanced", "fit", "predict", "bytes"}
    assert 0 <= found["accuracy"] <= 100


@pytest.mark.filterwarnings("ignore:y_pred contains classes")
def test_measures_are_what_they_say(rng):
    split = small_split(rng)
    split.test_labels[:] = 1  # rows of both classes, all called the second
    found = cells.run_cell(SVM, split, 0, False)
    model = make_method(SVM, 30, 0, False).fit(split.train, split.labels)
    right = np.mean(model.predict(split.test) == 1)
    assert found["accuracy"] == pytest.approx(100 * right)
    assert found["balanced"] == pytest.approx(100 * right)


class Line:
    """The other end of a worker's line, as a process would be."""

    def __init__(self, ready=True, answer=None):
        self.ready, self.answer = ready, answer

    def send(self, question):
        self.question = question

    def poll(self, seconds):
        return self.ready

    def recv(self):
        if self.answer is None:
            raise EOFError
        return self.answer


class Process:
    """A process that can be ended."""

    killed = 0

    def kill(self):
        Process.killed += 1

    def join(self):
        pass


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (Line(ready=False), {"over budget": "time"}),
        (Line(), {"over budget": "memory"}),
        (Line(answer={"accuracy": 90.0}), {"accuracy": 90.0}),
    ],
)
def test_what_is_over_budget_is_ended_and_said(line, expected, monkeypatch):
    worker = cells.Worker()
    worker._process, worker._line = Process(), line
    killed = Process.killed
    assert worker.measure({"method": "m"}, 0, None) == expected
    over = "over budget" in expected
    assert (worker._process is None, Process.killed - killed) == (over, over)


@pytest.mark.slow
def test_a_process_measures_and_one_that_takes_too_long_is_ended():
    setting = {"method": SVM, "data": "iris", "condition": "clean", "x": 0}
    worker = cells.Worker()
    assert worker.measure(setting, 0, None)["accuracy"] > 80
    worker.end()
    hasty = cells.Worker(seconds=0.01)
    assert hasty.measure(setting, 0, None) == {"over budget": "time"}
    small = cells.Worker(n_bytes=1 << 30)
    faces = {**setting, "method": "kcrc", "data": "digits"}
    assert set(small.measure(faces, 0, None)) & {"accuracy", "over budget"}
    small.end()


def curves_of(numbers):
    """Return curves from {(method, data, condition): values}."""
    return Curves({(m, place_of(d, c)): v for (m, d, c), v in numbers.items()})


def test_gaps_medians_and_ranks():
    numbers = {
        ("kcrc", "iris", "clean"): [90.0, 92.0], (SVM, "iris", "clean"): [90.0, 90.0],
        ("kcrc", "wine", "clean"): [80.0], (SVM, "wine", "clean"): [83.0],
        ("kcrc", "moons", "clean"): [95.0], (SVM, "moons", "clean"): [95.0],
        ("kcrc", "iris", "noise"): [float("nan")], (SVM, "iris", "noise"): [70.0],
    }  # fmt: skip
    curves = curves_of(numbers)
    assert claims.gaps(curves, "kcrc", DATA, "clean") == [1.0, -3.0, 0.0]
    assert claims.gaps(curves, "kcrc", DATA, "noise") == []
    assert claims.summary(curves).at("kcrc", 0).tolist() == [0.0]
    assert claims.ranks(curves).at("kcrc", 0).tolist() == [1.0, 2.0, 1.5]
    assert claims.medians(curves).at(SVM, 0).tolist() == [90.0]
    held = claims.claims_summary(claims.summary(curves))
    assert [claim.holds for claim in held] == [True]
    bundled = tuple(BUNDLED)
    worst = claims.claims_of(bundled)(claims.only(bundled, "clean")(curves))
    assert [claim.holds for claim in worst] == [False]
    assert worst[0].evidence == "at worst -3.0 points, on wine"
    lower = curves_of({("kcrc", "iris", "clean"): [89.4], (SVM, "iris", "clean"): [90.0]})
    assert [c.holds for c in claims.claims_summary(claims.summary(lower))] == [False]


def test_images_are_judged_by_our_best():
    best = {("ksad", 0): [96.0], ("kcrc", 0): [90.0], (SVM, 0): [95.0], (SVM, 1): [50.0]}
    assert [c.holds for c in claims.claims_images(Curves(best))] == [True]
    best["ksad", 0] = [94.0]
    assert [c.holds for c in claims.claims_images(Curves(best))] == [False]


def test_over_budget_is_printed():
    figure = FIGURES["methods/bundled-clean"]
    assert figure.measured({"over budget": "time"}) != figure.measured({"accuracy": 1.0})
    curves = Curves({("kcrc", 0): [float("nan")], (SVM, 0): [97.0]})
    table = figure_table(figure, curves)
    assert table.header == ["", "iris"]
    assert table.rows == [["kcrc", "over budget"], [SVM, "97.0"]]


def test_the_study_holds_every_classifier():
    assert {"kcrc", "lkdl", "src", "dksvd"} <= set(OURS)
    assert len(BASELINES) == 4
    assert len({(s["method"], s["x"]) for s in STUDY.full.settings}) == len(STUDY.full.settings)


def test_tables_over_data_sets_say_so_and_others_count_seeds():
    curves = Curves({("kcrc", 0): [1.0, 2.0], ("RBF-SVM", 0): [1.0]})
    by_name = {name.split("/")[1]: FIGURES[name] for name in FIGURES if name.startswith("methods/")}
    said = {name: figure_table(by_name[name], curves).caption for name in by_name}
    for name in ("summary", "fit", "predict", "bytes"):
        assert said[name].endswith(": median over data sets.")
    assert said["ranks"] == "mean rank: mean ± standard error over data sets."
    assert "standard error of 1 to 2 seeds" in said["made-clean"]
    assert picture_in_words(by_name["ranks"], curves).startswith("Dots: mean ± standard error over")
