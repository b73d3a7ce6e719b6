"""The K-SAD paper: studies measured by hand on small data; claims can fail."""

import json

import numpy as np
import pytest

from kernelatoms import KSADClassifier, preimage
from kernelatoms.cli.app import main
from kernelatoms.papers import FIGURES
from kernelatoms.papers.figure import Curves
from kernelatoms.papers.kcrc.data import Split
from kernelatoms.papers.ksad import ablation, data, digits, faces, methods, preimages
from kernelatoms.papers.ksad.ablation import DEFAULT_BASE, LITERAL_BASE, NEAREST_MAPPED, changed
from kernelatoms.papers.ksad.pictures import atom_pictures
from kernelatoms.papers.ksad.preimages import DISTANCE, FIXED_POINT
from kernelatoms.papers.ksad.reported import (
    ALL_DIGITS,
    DEFAULTS,
    DEFAULTS_ATOMS,
    FDDL,
    FEW_DIGITS,
    LKDL,
    NEAREST,
    OMP,
    PUBLISHED,
)
from kernelatoms.papers.page import figure_picture, figure_table
from kernelatoms.papers.store import key_of

N_PEOPLE = 5
pytestmark = pytest.mark.filterwarnings("ignore:n_(atoms|nonzero|components|landmarks|neighbors)")


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture
def data_home(tmp_path, rng):
    """Faces and digits in small, in the files' form: a prototype a class, with noise."""
    folder = tmp_path / "data"
    folder.mkdir()

    def images(y, shape, n_classes):
        prototypes = rng.random((n_classes, *shape))
        noisy = 170 * prototypes[y] + 80 * rng.random((len(y), *shape))
        return noisy.astype(np.uint8)

    y = np.repeat(np.arange(N_PEOPLE), 10)
    X = images(y, (112, 92), N_PEOPLE)
    np.savez(folder / "orl.npz", X=X, y=(y + 1).astype(np.uint8))
    y = np.repeat(np.arange(N_PEOPLE), 36)
    people = (y + 1).astype(np.uint8)
    light = np.zeros(len(y), np.int16)
    X = images(y, (96, 84), N_PEOPLE)
    np.savez(
        folder / "yaleb_96x84.npz", X=X, y=people, subject=people, azimuth=light, elevation=light,
        X_corrupt=X[:2], y_corrupt=people[:2],
    )  # fmt: skip
    y = np.arange(160) % 10
    X = images(y, (28, 28), 10)
    labels = y.astype(np.uint8)
    parts = {"X_train": X[:120], "y_train": labels[:120], "X_test": X[120:], "y_test": labels[120:]}
    np.savez(folder / "mnist.npz", **parts)
    X = (images(y, (16, 16), 10) / 127.5 - 1).astype(np.float32)
    np.savez(folder / "usps.npz", **parts | {"X_train": X[:120], "X_test": X[120:]})
    return str(folder)


def of(study, method, x=None):
    return next(s for s in study.full.settings if s["method"] == method and s["x"] == x)


# Settings -----------------------------------------------------------------------------------------


def test_published_settings_are_the_papers():
    for study, n_atoms, x in (
        (faces.FACES_ORL, 240, None), (faces.FACES_YALEB, 740, None),
        (digits.DIGITS, 300, ALL_DIGITS),
    ):  # fmt: skip
        model = methods.make_classifier(of(study, PUBLISHED, x), 3)
        assert (model.n_atoms, model.kernel, model.degree, model.coef0) == (n_atoms, "poly", 8, 0)
        assert (model.l1_weight, model.fisher_weight, model.max_iter) == (0.1, 0.01, 20)
        assert (model.within_class_metric, model.distance, model.random_state) == (False, "l2", 3)
        assert (model.n_neighbors, model.sampling) == (1, "uniform")


def test_our_defaults_are_those_of_the_class():
    for study, x in ((faces.FACES_ORL, None), (faces.FACES_YALEB, None), (digits.DIGITS, 60_000)):
        params = methods.make_classifier(of(study, DEFAULTS, x), 3).get_params()
        assert params == KSADClassifier(random_state=3).get_params()
        assert set(of(study, DEFAULTS_ATOMS, x)["params"]) == {"n_atoms"}
    assert of(ablation.PARTS, DEFAULT_BASE, 2)["params"] == {}


def test_one_part_is_changed_at_a_time():
    for base in (LITERAL_BASE, DEFAULT_BASE):
        for x in ablation.DATA:
            start = methods.make_classifier(of(ablation.PARTS, base, x), 0).get_params()
            for name in ablation.rows_of(base):
                found = [
                    s for s in ablation.PARTS.full.settings if (s["method"], s["x"]) == (name, x)
                ]
                if found:
                    params = methods.make_classifier(found[0], 0).get_params()
                    other = {key for key in params if params[key] != start[key]}
                    kernel = {"kernel", "gamma", "degree", "coef0"}
                    assert len(other - kernel) <= 3, name
                    assert len(other & kernel) == 0 or other <= kernel, name


def test_settings_come_back_from_their_records():
    for name, figure in FIGURES.items():
        if name.startswith("ksad/"):
            for setting in figure.study.full.settings:
                assert json.loads(key_of(setting)) == setting


# Measures -----------------------------------------------------------------------------------------


def test_short_rows_have_the_inner_products_of_the_pixels(rng):
    split = Split(rng.random((7, 30)), np.arange(7), rng.random((5, 30)), np.arange(5))
    short, basis = data.short_rows(split)
    assert short.train.shape == (7, 8)
    np.testing.assert_allclose(short.train @ short.train.T, split.train @ split.train.T)
    np.testing.assert_allclose(short.test @ short.train.T, split.test @ split.train.T)
    np.testing.assert_allclose((short.test**2).sum(axis=1), (split.test**2).sum(axis=1))
    np.testing.assert_allclose(short.train @ basis, split.train, atol=1e-12)


@pytest.mark.parametrize("method", [PUBLISHED, DEFAULTS])
def test_faces_by_hand(data_home, method):
    setting = of(faces.FACES_ORL, method)
    measured = faces.measure_faces(setting, 1, data_home)
    with np.load(f"{data_home}/orl.npz") as file:
        X, y = unit(file["X"].reshape(50, -1).astype(float)), file["y"].astype(int)
    rng = np.random.default_rng(1)
    train = np.concatenate([rng.permutation(np.flatnonzero(y == c))[:6] for c in np.unique(y)])
    test = np.setdiff1d(np.arange(50), train)
    model = KSADClassifier(**setting["params"], random_state=1).fit(X[train], y[train])
    assert measured["accuracy"] == pytest.approx(100 * model.score(X[test], y[test]))
    assert measured["fit"] > 0 < measured["predict"]
    assert measured["turn"] == 0


@pytest.mark.parametrize("study", [faces.FACES_ORL, faces.FACES_YALEB])
def test_every_row_on_faces_runs(data_home, study):
    for setting in study.full.settings:
        measured = study.measure(setting, 0, data_home)
        assert 15 < measured["accuracy"] <= 100, setting
        assert (measured["turn"] > 0) == bool(setting.get("short"))


def test_every_row_on_digits_runs(data_home):
    for setting in digits.DIGITS.full.settings:
        if "map" in setting:  # as many as the small set allows
            setting = {**setting, "map": {**setting["map"], "n_components": 40}}
        measured = digits.measure_digits({**setting, "x": 100}, 0, data_home)
        assert measured["accuracy"] > 15, setting


@pytest.mark.slow
def test_every_part_runs(data_home):
    for setting in ablation.PARTS.full.settings:
        if setting["x"] == 0:
            assert ablation.measure_part(setting, 0, data_home)["accuracy"] > 15, setting


def test_test_codes_without_threshold(data_home):
    setting = of(ablation.PARTS, changed(LITERAL_BASE, "test codes without threshold"), 0)
    split = ablation.split_of("ORL", 0, data_home)
    model = methods.make_classifier(setting, 0).fit(split.train, split.train_labels)
    assert model.l1_weight_ > 0
    model.l1_weight_ = 0.0
    codes = model.transform(split.test).toarray()
    assert (codes != 0).all()
    right = 100 * model.score(split.test, split.test_labels)
    assert ablation.measure_part(setting, 0, data_home)["accuracy"] == pytest.approx(right)


def test_rotation_alone_changes_no_answer(data_home):
    """With a square orthonormal dictionary, no threshold and no term, codes are a turned map."""
    names = [changed(LITERAL_BASE, "no threshold, no term")]
    names += [changed(LITERAL_BASE, "no threshold, no term, 1 pass"), NEAREST_MAPPED]
    for x in ablation.DATA:
        settings = [of(ablation.PARTS, name, x) for name in names]
        found = {ablation.measure_part(s, 0, data_home)["accuracy"] for s in settings}
        assert len(found) == 1


def test_preimages_by_hand(data_home):
    setting = of(preimages.PREIMAGES, FIXED_POINT, 0)
    measured = preimages.measure_preimages(setting, 0, data_home)
    coef, anchors = preimages.shown_atoms("ORL", 0, data_home)
    found = preimage(coef, anchors, kernel="poly", degree=8, gamma=1, coef0=0, method="fixed-point")
    assert measured["error"] == pytest.approx(100 * found.error.mean())
    rows, _ = preimages.in_pixels("ORL", FIXED_POINT, 0, data_home)
    assert rows.shape == (len(found.rows), 112 * 92)


# Claims -------------------------------------------------------------------------------------------


def claims(name, values):
    return {c.statement: c.holds for c in FIGURES[f"ksad/{name}"].claims(Curves(values))}


def holds(name, values):
    return list(claims(name, values).values())


def test_claims_of_table_2_can_fail():
    good = {(PUBLISHED, None): [96.5], (DEFAULTS, None): [96.4], (OMP, None): [93.0]}
    # Near the paper twice, the least that we ask for, above the rival twice.
    assert holds("table2-orl", good) == [True, True, True, True, True]
    assert holds("table2-orl", good | {(PUBLISHED, None): [92.0]}) == [
        False, True, True, False, True,
    ]  # fmt: skip
    assert holds("table2-orl", good | {(DEFAULTS, None): [96.29]})[:3] == [True, True, False]
    assert holds("table2-yaleb", {(DEFAULTS, None): [97.9]}) == [False, False]
    times = {(PUBLISHED, None): [1.0], (FDDL, None): [2.0]}
    assert holds("table2-orl-seconds", times) == [True]
    assert holds("table2-orl-seconds", times | {(FDDL, None): [0.5]}) == [False]


def test_claims_of_table_3_can_fail():
    good = {(PUBLISHED, ALL_DIGITS): [96.2], (LKDL, ALL_DIGITS): [90.0]}
    assert holds("table3", good) == [True, True]
    assert holds("table3", good | {(PUBLISHED, ALL_DIGITS): [89.0]}) == [False, False]
    assert holds("table3", {(DEFAULTS, ALL_DIGITS): [96.3]}) == [True, False]
    times = {(PUBLISHED, ALL_DIGITS): [10.0], (LKDL, ALL_DIGITS): [600.0]}
    assert holds("table3-seconds", times) == [True, True, True]
    assert holds("table3-seconds", times | {(LKDL, ALL_DIGITS): [100.0]}) == [True, False, True]
    assert holds("table3-seconds", times | {(PUBLISHED, ALL_DIGITS): [700.0]}) == [False] * 3
    assert holds("table3-seconds", {(PUBLISHED, FEW_DIGITS): [2.0], (LKDL, FEW_DIGITS): [1.0]}) == [
        False
    ]  # fmt: skip


def test_claims_about_atoms_can_fail():
    assert holds("fig2", {(FIXED_POINT, 0): [40.0], (DISTANCE, 0): [90.0]}) == [True, True]
    assert holds("fig2", {(FIXED_POINT, 1): [60.0], (DISTANCE, 1): [110.0]}) == [False, False]


def test_claims_about_parts_can_fail():
    turned = changed(LITERAL_BASE, "no threshold, no term")
    same = {(turned, 0): [93.0, 94.0], (NEAREST_MAPPED, 0): [93.0, 94.0]}
    assert holds("ablation", same) == [True]
    assert holds("ablation", same | {(NEAREST_MAPPED, 0): [93.0, 94.1]}) == [False]
    bare = changed(LITERAL_BASE, "threshold 0")
    parts = {(LITERAL_BASE, 0): [80.0, 81.0], (bare, 0): [79.0, 80.1]}
    assert holds("ablation", parts) == [True]
    # Pairs count: +1 and -1 are nothing.
    assert holds("ablation", parts | {(bare, 0): [79.0, 82.0]}) == [False]
    ours = {(LITERAL_BASE, 0): [80.0], (DEFAULT_BASE, 0): [90.0]}
    assert holds("ablation", ours) == [True]
    other = changed(DEFAULT_BASE, "threshold 0")
    assert holds("ablation", ours | {(other, 0): [90.1]}) == [True, True]
    assert holds("ablation", ours | {(other, 0): [90.5]}) == [True, False]
    # A change that was not run on every data set has no say.
    assert holds("ablation", ours | {(other, 0): [99.0], (DEFAULT_BASE, 1): [90.0]}) == [True]


# Tables, pictures and the command -----------------------------------------------------------------


def test_methods_are_rows_of_the_table():
    figure = FIGURES["ksad/table2-yaleb"]
    table = figure_table(figure, Curves({(NEAREST, None): [77.0, 78.0], (OMP, None): [91.0]}))
    assert table.header == ["", "Extended Yale B", "reported: Extended Yale B"]
    assert table.rows[:2] == [[NEAREST, "77.50 ± 0.50", "-"], [OMP, "91.00", "91.97"]]
    # What was reported and not run stands below: FISTA minimises what the l1 row does.
    assert ["FISTA", "-", "94.50"] in table.rows
    figure = FIGURES["ksad/table3"]
    table = figure_table(figure, Curves({(PUBLISHED, 5000): [90.0], (PUBLISHED, 60_000): [91.0]}))
    assert table.header == ["", "5,000", "60,000", "reported: 60,000"]
    assert table.rows[0] == [PUBLISHED, "90.00", "91.00", "96.42"]
    assert len(figure_picture(figure, Curves({(PUBLISHED, 5000): [90.0]})).axes) == 1


def test_differences_are_of_pairs():
    figure = FIGURES["ksad/ablation-added"]
    bare = changed(LITERAL_BASE, "threshold 0")
    measured = Curves({(LITERAL_BASE, 0): [80.0, 90.0], (bare, 0): [81.0, 93.0, 99.0]})
    differences = figure.compared(measured)
    assert differences.methods == [bare]
    np.testing.assert_allclose(differences.at(bare, 0), [1, 3])
    assert figure_table(figure, differences).rows == [[bare, "+2.00 ± 1.00"]]
    assert "no seeds" in figure_table(figure, Curves({})).caption


def test_atoms_are_drawn_where_images_are_at_hand(data_home, tmp_path):
    pictures = atom_pictures(data_home)
    assert [picture.caption.split(":")[0] for picture in pictures] == 2 * ["ORL"] + 2 * ["Yale B"]
    assert atom_pictures(tmp_path) == []


def test_the_command_runs_what_is_small(data_home, tmp_path, capsys):
    out = tmp_path / "out"
    arguments = ["--seeds", "1", "--data-home", data_home, "-o", str(out), "--json"]
    assert main(["reproduce", "ksad/table2-orl", "ksad/fig2", *arguments]) == 0
    figures = {f["name"]: f for f in json.loads(capsys.readouterr().out)["figures"]}
    assert list(figures) == ["ksad/table2-orl", "ksad/table2-orl-seconds", "ksad/fig2"]
    page = (out / "ksad.html").read_text()
    assert page.count("<img") == 7  # a plot each, and four sheets of atoms
    assert "96.58" in page  # what the authors reported stands beside
