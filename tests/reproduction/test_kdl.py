"""The kernel dictionary learning paper: measured by hand on small data; claims that can fail."""

import json

import numpy as np
import pytest

from kernelatoms import ClassDictionaryClassifier, KernelKSVD
from kernelatoms.datasets import load_usps
from reproduction.__main__ import main
from reproduction.corruption import add_noise, kept_pixels
from reproduction.figure import Curves
from reproduction.figures import FIGURES
from reproduction.kdl import one_class, pictures, synthetic, usps
from reproduction.kdl.one_class import (
    EXACT_ROWS,
    EXACT_SUMS,
    KERNEL_SEEN,
    OURS_ROWS,
    OURS_SUMS,
    PCA_SEEN,
)
from reproduction.kdl.reported import (
    CLASSWISE,
    JOINT,
    KERNEL,
    KERNEL_PRINTED,
    KERNEL_PUBLISHED,
    KERNEL_SWAPPED,
    LINEAR,
    LINEAR_PRINTED,
    MISSING,
    MOD,
    NOISE,
    PCA,
)
from reproduction.kdl.synthetic import HOMOGENEOUS, WIDE
from reproduction.kdl.usps import ClassComponents
from reproduction.lkdl import mnist as lkdl_mnist
from reproduction.lkdl import usps as lkdl_usps
from reproduction.lkdl.reported import N_TRAIN
from reproduction.page import figure_section, figure_table


def pursue(gram, correlations, n_nonzero):
    """KOMP of one signal as in Fig. 2 of the paper; return what its atoms explain."""
    chosen, coefficients = [], np.zeros(0)
    for _ in range(n_nonzero):
        left = correlations - gram[:, chosen] @ coefficients
        left[chosen] = 0
        chosen.append(int(np.abs(left).argmax()))
        coefficients = np.linalg.solve(gram[np.ix_(chosen, chosen)], correlations[chosen])
    return correlations[chosen] @ coefficients


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture
def data_home(tmp_path, rng):
    """USPS and MNIST in small: ten prototypes with noise, in the files' form."""
    folder = tmp_path / "data"
    folder.mkdir()

    def draw(n, side):
        y = np.arange(n) % 10
        prototypes = np.random.default_rng(side).random((10, side, side)) > 0.7
        return prototypes[y] + 0.25 * rng.standard_normal((n, side, side)), y.astype(np.uint8)

    (X_train, y_train), (X_test, y_test) = draw(200, 16), draw(100, 16)
    X_train, X_test = (np.clip(2 * X - 1, -1, 1).astype(np.float32) for X in (X_train, X_test))
    np.savez(folder / "usps.npz", X_train=X_train, y_train=y_train, X_test=X_test, y_test=y_test)
    (X_train, y_train), (X_test, y_test) = draw(300, 28), draw(50, 28)
    X_train, X_test = (
        np.clip(255 * X, 0, 255).astype(np.uint8) for X in (X_train, X_test)
    )  # fmt: skip
    np.savez(folder / "mnist.npz", X_train=X_train, y_train=y_train, X_test=X_test, y_test=y_test)
    return str(folder)


# Digits -------------------------------------------------------------------------------------------


def split_of(data_home, seed, n_train, n_test):
    """Return the pixels learned from, by class."""
    data = load_usps(data_home=data_home)
    pixels = (np.concatenate([data.X_train, data.X_test]) + 1) / 2
    labels = np.concatenate([data.y_train, data.y_test])
    rng = np.random.default_rng(seed)
    order = [rng.permutation(np.flatnonzero(labels == digit)) for digit in range(10)]
    return [pixels[o[len(o) * n_test // (n_test + n_train) :]] for o in order]


def split_by_hand(data_home, seed):
    """Return rows to learn from and pixels to test on, by class."""
    data = load_usps(data_home=data_home)
    pixels = (np.concatenate([data.X_train, data.X_test]) + 1) / 2
    labels = np.concatenate([data.y_train, data.y_test])
    rng = np.random.default_rng(seed)
    order = [rng.permutation(np.flatnonzero(labels == digit)) for digit in range(10)]
    # 30 rows per class: 2/7 of them are 8.
    return [pixels[o[8:]] for o in order], [pixels[o[:8]] for o in order]


def test_the_split_has_every_sample_once(data_home):
    digits = usps.split_digits(3, data_home, 500, 200)
    learned, tested = split_by_hand(data_home, 3)
    np.testing.assert_allclose(digits.rows, unit(np.concatenate(learned)), rtol=1e-5)
    np.testing.assert_array_equal(digits.test_pixels, np.concatenate(tested))
    assert np.bincount(digits.labels).tolist() == [22] * 10
    assert np.bincount(digits.test_labels).tolist() == [8] * 10


def test_a_large_class_gives_500_and_200(tmp_path, rng):
    y = np.repeat([0, 1], 720).astype(np.uint8)
    X = np.clip(rng.standard_normal((1440, 16, 16)), -1, 1).astype(np.float32)
    np.savez(tmp_path / "usps.npz", X_train=X, y_train=y, X_test=X[:1], y_test=y[:1])
    digits = usps.split_digits(0, str(tmp_path), 500, 200)
    assert (len(digits.rows), len(digits.test_pixels)) == (1000, 400)


@pytest.mark.parametrize("seen", [False, True])
@pytest.mark.parametrize("terms", [1, 4])
def test_compactness_against_plain_numpy(data_home, seen, terms):
    seed = 13  # the last digit is the class
    learned, tested = (unit(part[3].astype(float)) for part in split_by_hand(data_home, seed))
    rows = learned if seen else tested
    sizes = {"n_atoms": 12, "n_nonzero": 2, "passes": 4, "degree": 4}
    setting = {"method": KERNEL, "seen": seen, **sizes, "x": terms}
    model = KernelKSVD(
        12, kernel="poly", degree=4, gamma=1, coef0=0, n_nonzero_coefs=2, max_iter=4, tol=0,
        random_state=seed,
    ).fit(learned.astype(np.float32).astype(float))  # fmt: skip
    # The dictionary over all rows (the paper's A), so that Gram and correlations are plain K.
    A = np.zeros((len(learned), 12))
    near = ((model.anchors_[:, None] - learned) ** 2).sum(axis=2)
    assert near.min(axis=1).max() < 1e-10
    A[near.argmin(axis=1)] = model.dual_coef_
    K, k = (learned @ learned.T) ** 4, (rows @ learned.T) ** 4
    explained = [pursue(A.T @ K @ A, row @ A, terms) for row in k]
    measured = one_class.COMPACTNESS.run_once(setting, seed, data_home)
    assert measured["digit"] == 3
    assert measured["error"] == pytest.approx(100 * (1 - np.mean(explained)), rel=1e-4)

    values, vectors = np.linalg.eigh(K)
    projections = k @ vectors[:, ::-1][:, :terms] / np.sqrt(values[::-1][:terms])
    components = {"method": PCA, "seen": seen, "degree": 4, "x": terms}
    measured = one_class.COMPACTNESS.run_once(components, seed, data_home)
    left = 1 - (projections**2).sum(axis=1)
    assert measured["error"] == pytest.approx(100 * left.mean(), rel=1e-4)
    assert measured["median"] == pytest.approx(100 * np.median(left), rel=1e-4)


def test_rows_as_printed_have_the_papers_update_start_and_sizes(data_home):
    """More atoms than samples, by the exact sweep from sums; 60% of a class to learn from."""
    learned = [unit(part).astype(np.float32) for part in split_of(data_home, 1, 300, 200)]
    settings = [
        {**setting, "n_atoms": 25, "n_nonzero": 2, "passes": 3}
        for setting in usps.NOISY.full.settings
        if setting["method"] in (KERNEL_PRINTED, KERNEL_SWAPPED, LINEAR_PRINTED)
        and setting["x"] == 0
    ]
    assert [setting.get("n_train") for setting in settings] == [300, None, 300]
    for setting in settings:
        assert usps.NOISY.run_once(setting, 1, data_home)["accuracy"] > 90
        learner = usps.make_learner(setting)
        assert (learner.update, learner.init, learner.n_atoms) == ("exact", "sums", 25)
    printed = {**settings[0], "seen": False, "x": 2}
    measured = one_class.COMPACTNESS.run_once(printed, 1, data_home)
    model = KernelKSVD(
        25, kernel="poly", degree=4, gamma=1, coef0=0, n_nonzero_coefs=2, max_iter=3, tol=0,
        update="exact", init="sums", random_state=1,
    ).fit(learned[1].astype(float))  # fmt: skip
    assert (len(learned[1]), model.n_atoms_) == (18, 25)
    assert measured["error"] > 0
    sweeps = one_class.SWEEPS.run_once({**printed, "x": 2}, 1, data_home)
    assert sweeps["objective"] == pytest.approx(100 * model.objective_[:2].min() / 18, rel=1e-4)
    assert sweeps["passes_run"] == 3


def test_all_components_leave_nothing_of_what_they_are_made_of(data_home):
    setting = {"method": PCA_SEEN, "seen": True, "degree": 4, "x": 22}
    assert one_class.COMPACTNESS.run_once(setting, 0, data_home)["error"] == pytest.approx(
        0, abs=1e-6
    )


def test_class_components_against_projections_by_hand(data_home):
    digits = usps.split_digits(0, data_home, 500, 200)
    test = unit(add_noise(digits.test_pixels, 2.0, 0)).astype(np.float64)
    rows = digits.rows.astype(np.float64)
    model = ClassComponents(4, 5).fit(rows, digits.labels)
    left = []
    for digit in range(10):
        own = rows[digits.labels == digit]
        values, vectors = np.linalg.eigh((own @ own.T) ** 4)
        projections = (test @ own.T) ** 4 @ vectors[:, -5:] / np.sqrt(values[-5:])
        left.append(1 - (projections**2).sum(axis=1))
    predicted = model.predict(test)
    np.testing.assert_array_equal(predicted, np.argmin(left, axis=0))
    assert 0.2 < np.mean(predicted == digits.test_labels) < 1


def test_corruption_is_the_levels_and_the_seeds_alone():
    pixels = np.full((40, 256), 0.5, np.float32)
    np.testing.assert_array_equal(add_noise(pixels, 0.0, 1), pixels)
    noisy = add_noise(pixels, 0.6, 1)
    assert noisy.dtype == np.float32
    assert (noisy - pixels).std() == pytest.approx(0.6, rel=0.05)
    np.testing.assert_array_equal(noisy, add_noise(pixels, 0.6, 1))
    assert (noisy != add_noise(pixels, 0.6, 2)).all()
    kept = kept_pixels((40, 256), 0.3, 1)
    assert (kept.sum(axis=1) == 256 - 77).all()
    assert len(np.unique(kept, axis=0)) == 40


@pytest.mark.filterwarnings("ignore:n_atoms")
def test_every_method_of_fig_5_runs_and_missing_pixels_are_filled(data_home):
    first = {setting["method"]: setting for setting in reversed(usps.INCOMPLETE.full.settings)}
    assert len(first) == 12
    for method, setting in first.items():
        clean = usps.INCOMPLETE.run_once({**setting, "x": 0.0}, 0, data_home)["accuracy"]
        assert clean > 90, method
        if setting["fill"] == "nan":
            with pytest.raises(ValueError, match="NaN only in row 0"):
                usps.INCOMPLETE.run_once({**setting, "x": 1.0}, 0, data_home)
            continue
        nothing = usps.INCOMPLETE.run_once({**setting, "x": 1.0}, 0, data_home)["accuracy"]
        assert nothing <= 20, method  # ten classes, all images alike
    noisy = {**first[LINEAR], "x": 20.0}
    assert usps.NOISY.run_once(noisy, 0, data_home)["accuracy"] < 50


# The plane ----------------------------------------------------------------------------------------


def mapped(points):
    """Return phi of (x'y + 1)^2 in full."""
    x, y = points.T
    root = np.sqrt(2)
    return np.column_stack([np.ones_like(x), root * x, root * y, x**2, root * x * y, y**2])


SMALL = {"method": KERNEL, "n_points": 80, "n_atoms": 6, "passes": 5, "n_nonzero": 2}


def test_circles_against_the_feature_space_in_full():
    setting = {**SMALL, "degree": 2, "coef0": 1, "x": 0.25}
    measured = synthetic.CIRCLES.run_once(setting, 4, None)

    angles = np.random.default_rng(4).uniform(0, 2 * np.pi, (2, 80))
    rows = np.concatenate([r * np.column_stack([np.cos(a), np.sin(a)]) for r, a in
                           zip((1, 2), angles, strict=True)])  # fmt: skip
    learner = KernelKSVD(
        6, kernel="poly", degree=2, gamma=1, coef0=1, n_nonzero_coefs=2, max_iter=5, tol=0
    )
    model = ClassDictionaryClassifier(learner, random_state=4).fit(rows, np.repeat([0, 1], 80))
    turn = np.linspace(0, 2 * np.pi, 720, endpoint=False)
    circle = np.column_stack([np.cos(turn), np.sin(turn)])
    signals = mapped(np.concatenate([circle, 2 * circle]))
    errors = []
    for dictionary in model.dictionaries_:
        atoms = dictionary.dual_coef_.T @ mapped(dictionary.anchors_)
        gram = atoms @ atoms.T
        np.testing.assert_allclose(np.diagonal(gram), 1, rtol=1e-8)
        errors.append([z @ z - pursue(gram, atoms @ z, 2) for z in signals])
    own = np.concatenate([errors[0][:720], errors[1][720:]])
    other = np.concatenate([errors[1][:720], errors[0][720:]])
    margin = np.log10(other / own)
    assert measured["margin"] == pytest.approx(np.quantile(margin, 0.25), rel=1e-6)
    assert measured["smallest"] == pytest.approx(margin.min(), rel=1e-6)
    assert measured["right"] == pytest.approx(100 * np.mean(other > own))
    assert measured["own_error"] == pytest.approx(np.median(own), rel=1e-6)
    assert measured["other_error"] == pytest.approx(np.median(other), rel=1e-6)


def test_where_all_errors_are_rounding_no_class_wins():
    for setting in (SMALL, {**SMALL, "n_nonzero": 3, "degree": 2, "coef0": 0}):
        measured = synthetic.CIRCLES.run_once({**setting, "x": 0.0}, 0, None)
        assert measured["right"] == 0
        assert measured["margin"] == measured["smallest"] == 0


@pytest.mark.parametrize("degree", [None, 2])
def test_change_along_the_parabola_against_gradients_in_closed_form(degree):
    kernel = {} if degree is None else {"degree": 2, "coef0": 1}
    setting = {**SMALL, **kernel, "x": 1}
    learner, places = synthetic.parabola_dictionary(setting, 0)
    points = np.column_stack([places, places**2])
    np.testing.assert_array_equal(places, np.random.default_rng(0).uniform(-1, 1, 80))
    atom = (learner.transform(points).toarray() ** 2).sum(axis=0).argmax()
    if degree is None:
        gradient = np.tile(learner.components_[atom], (80, 1))
    else:
        inner = points @ learner.anchors_.T + 1
        gradient = (2 * inner * learner.dual_coef_[:, atom]) @ learner.anchors_
    tangent = np.column_stack([np.ones(80), 2 * places])
    along = (gradient * tangent).sum(axis=1) ** 2 / (tangent**2).sum(axis=1)
    whole = (gradient**2).sum(axis=1)
    measured = synthetic.measure_parabola(setting, 0, None)
    assert measured["along"] == pytest.approx(100 * along.sum() / whole.sum(), rel=1e-5)
    assert measured["direction"] == pytest.approx(100 * (along / whole).mean(), rel=1e-5)


# Figures ------------------------------------------------------------------------------------------


def curve(method, values, places):
    return {(method, x): [v, v] for x, v in zip(places, values, strict=True)}


def holds(name, *parts):
    values = {}
    for part in parts:
        values |= part
    return [claim.holds for claim in FIGURES[name].claims(Curves(values))]


def test_claims_of_fig_1_can_fail():
    terms = (1, 5, 100, 300)
    better, worse = [40, 30, 20, 19], [60, 45, 21, 18]  # beyond 100 nothing is claimed
    assert holds("kdl/fig1", curve(KERNEL, better, terms), curve(PCA, worse, terms)) == [True]
    assert holds("kdl/fig1", curve(KERNEL, [40, 30, 22, 19], terms), curve(PCA, worse, terms),
                 curve(KERNEL_SEEN, better, terms), curve(PCA_SEEN, worse, terms)) == [
        False, True,
    ]  # fmt: skip
    one_class = {(KERNEL, 1): [10.0, 31.0], (PCA, 1): [40.0, 30.0]}
    assert holds("kdl/fig1", one_class) == [False]  # the mean is lower, one class is not


def test_claims_of_fig_4_can_fail():
    flat = {(LINEAR, 0.0): [0.0, 0.0], (LINEAR, 0.5): [0.0, 0.0]}
    good = {(KERNEL, 0.0): [1.2, 0.1], (KERNEL, 0.5): [3.0, 3.0]}
    bad = {(KERNEL, 0.0): [1.2, -0.1], (KERNEL, 0.5): [3.0, 3.0]}
    assert holds("kdl/fig4a", good, flat) == [True, True]
    assert holds("kdl/fig4a", bad, flat) == [False, True]
    apart = {(HOMOGENEOUS, 0.0): [0.2], (HOMOGENEOUS, 0.5): [0.2]}
    assert holds("kdl/fig4a", good, flat, apart) == [True, True, False]
    printed = {(KERNEL_PUBLISHED, 0.0): [0.2, -0.1], (KERNEL_PUBLISHED, 0.5): [1.0, 1.0]}
    assert holds("kdl/fig4a", good, printed) == [True, False]
    for wide, expected in (([-0.1, 0.5], True), ([1.3, 0.5], False)):
        values = {(WIDE, 0.0): wide, (WIDE, 0.01): [0.3, 0.4]}
        assert holds("kdl/fig4a", good, values) == [True, expected]
    values = {(WIDE, 0.0): [-0.1, -0.2], (WIDE, 0.01): [-0.05, 0.4]}
    assert holds("kdl/fig4a", good, values) == [True, False]
    atoms = (1, 2, 3)
    assert holds("kdl/fig4b", curve(KERNEL, [80, 70, 60], atoms),
                 curve(LINEAR, [50, 50, 50], atoms)) == [True]  # fmt: skip
    assert holds("kdl/fig4b", curve(KERNEL, [80, 70, 49], atoms),
                 curve(LINEAR, [50, 50, 50], atoms)) == [False]  # fmt: skip


def test_claims_about_sweeps_can_fail():
    passes = (1, 20)
    ours, exact = curve(OURS_ROWS, [70, 50], passes), curve(EXACT_ROWS, [75, 51], passes)
    assert holds("kdl/sweeps", ours, exact) == [True, True]
    assert holds("kdl/sweeps", ours, curve(EXACT_ROWS, [69, 53], passes)) == [False, False]
    sums, printed = curve(OURS_SUMS, [90, 60], passes), curve(EXACT_SUMS, [95, 61], passes)
    assert holds("kdl/sweeps", ours, exact, sums, printed) == [True] * 5
    assert holds("kdl/sweeps", ours, curve(OURS_SUMS, [90, 50], passes)) == [False]


@pytest.mark.parametrize(("name", "levels", "start"), [("kdl/fig5a", NOISE, 0.6),
                                                       ("kdl/fig5b", MISSING, 0.4)])  # fmt: skip
def test_claims_of_fig_5_can_fail(name, levels, start):
    n = len(levels)
    linear, kernel = curve(LINEAR, [50] * n, levels), curve(KERNEL, [60] * n, levels)
    mod = [40 if x < start else 60 for x in levels]  # below the start nothing is claimed
    assert holds(name, linear, kernel, curve(MOD, mod, levels)) == [True, True]
    mod[-1] = 49
    assert holds(name, linear, kernel, curve(MOD, mod, levels)) == [True, False]
    literal = curve(KERNEL_PRINTED, [55] * n, levels)
    for linear_literal, expected in ((54, True), (55, False)):
        other = curve(LINEAR_PRINTED, [linear_literal] * n, levels)
        assert holds(name, literal, other) == [expected]
    assert holds(name, literal, curve(KERNEL_SWAPPED, [56] * n, levels)) == [True]
    equal = curve(CLASSWISE, [60] * n, levels)
    assert holds(name, linear, kernel, curve(JOINT, [20] * n, levels), equal) == [
        True, True, False,
    ]  # fmt: skip


def test_a_figure_without_reported_numbers_has_table_and_picture(tmp_path):
    figure = FIGURES["kdl/fig5a"]
    curves = Curves({(LINEAR, 0.0): [90.0, 92.0], (KERNEL, 0.0): [93.0, 94.0]})
    table = figure_table(figure, curves)
    assert table.header[1:] == [LINEAR, KERNEL]
    assert table.rows == [["0", "91.00 ± 1.00", "93.50 ± 0.50"]]
    assert table.caption.endswith("Reported: curves and pictures, no numbers.")
    (picture,) = figure_section(figure, curves, tmp_path, figure.study.quick).pictures
    assert "eported" not in picture.caption + picture.alt


@pytest.mark.filterwarnings("ignore:n_atoms")
@pytest.mark.slow
def test_the_command_runs_all_of_the_paper(data_home, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(pictures, "_N_GRID", 15)
    out = tmp_path / "out"
    arguments = ["kdl", "--seeds", "1", "--data-home", data_home, "-o", str(out)]
    assert main([*arguments, "--json"]) == 0
    figures = {f["name"]: f for f in json.loads(capsys.readouterr().out)["figures"]}
    assert list(figures) == [name for name in FIGURES if name.startswith("kdl/")]
    # No data is needed for these, so they are the paper's own claims at full size.
    for name in ("kdl/fig4a", "kdl/fig4b"):
        assert all(claim["holds"] for claim in figures[name]["claims"])
    page = (out / "kdl.html").read_text()
    assert page.count("<img") == 8  # a plot each, and two pictures of the plane
    assert "dotted, hollow" not in page


# Kernel K-SVD in the other paper ------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:n_atoms")
@pytest.mark.filterwarnings("ignore:n_nonzero")
def test_kernel_ksvd_stands_beside_lkdl(data_home):
    (setting,) = (s for s in lkdl_usps.LANDMARKS.full.settings if s["method"] == KERNEL)
    data = load_usps(data_home=data_home)
    train, test = (unit((X + 1) / 2) for X in (data.X_train, data.X_test))
    learner = KernelKSVD(
        300, kernel="poly", degree=2, gamma=1, coef0=0, n_nonzero_coefs=5, max_iter=5, tol=0
    )
    by_hand = ClassDictionaryClassifier(learner, random_state=2).fit(train, data.y_train)
    measured = lkdl_usps.measure_clean(setting, 2, data_home)
    assert measured["accuracy"] == 100 * by_hand.score(test, data.y_test)
    for study in (lkdl_usps.NOISY, lkdl_usps.INCOMPLETE):
        assert sum(s["method"] == KERNEL for s in study.full.settings) == len(
            {s["x"] for s in study.full.settings}
        )
    setting = next(s for s in lkdl_mnist.GROWTH.full.settings if s["method"] == KERNEL)
    measured = lkdl_mnist.measure_growth({**setting, "x": 250}, 0, data_home)
    assert set(measured) == {"accuracy", "learn", "classify"}
    assert measured["accuracy"] > 90


def test_claims_about_kernel_ksvd_in_the_other_paper_can_fail():
    assert holds("lkdl/fig1b", {(LINEAR, None): [95.5], (KERNEL, None): [95.6]})[:2] == [
        True, True,
    ]  # fmt: skip
    assert holds("lkdl/fig1b", {(LINEAR, None): [95.5], (KERNEL, None): [95.5]})[:2] == [
        True, False,
    ]  # fmt: skip
    assert holds("lkdl/fig3a", {(KERNEL, N_TRAIN[-1]): [98.2, 98.1]})[2:] == [True]
    assert holds("lkdl/fig3a", {(KERNEL, N_TRAIN[-1]): [98.1, 98.0]})[2:] == [False]
    assert len(holds("lkdl/fig3a", {(KERNEL, N_TRAIN[0]): [97.5]})) == 2
