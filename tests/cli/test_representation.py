"""CRC and SRC classifiers through the commands: the training rows are the dictionary."""

import json
import os

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import load_digits

from kernelatoms import CRCClassifier, SRCClassifier, load_model, save_model
from kernelatoms.cli.app import main


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run a command in this process, which is faster; (exit code, output, errors)."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        code = main([str(argument) for argument in arguments])
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def digits(tmp_path):
    """Digits as images under X, as rows under F."""
    X, y = load_digits(return_X_y=True)
    images = X.reshape(-1, 8, 8).astype(np.uint8)
    np.savez(
        tmp_path / "digits.npz",
        X=images[:300], F=X[:300], y=y[:300], X_new=images[300:400], F_new=X[300:400],
        y_new=y[300:400],
    )  # fmt: skip
    return X[300:400], y[300:400]


FIT = ("fit", "digits.npz", "--label", "y", "-o", "m.skops")


def test_a_table_from_fit_to_report(command, flowers, tmp_path):
    """The usual commands, each in a process of its own."""
    fitted = command("fit", "flowers.csv", "--label", "species", "--model", "kcrc", "--cv", "2")
    assert fitted.returncode == 0, fitted.stderr
    assert "12 rows, 2 features, 3 classes" in fitted.stdout
    model, record = load_model(tmp_path / "model.skops")
    learner = model[-1]
    assert isinstance(learner, CRCClassifier)
    assert (learner.kernel, learner.gamma, learner.normalize) == ("rbf", "spread", False)
    np.testing.assert_allclose(learner.dictionary_.mean(axis=0), 0, atol=1e-12)
    assert f"over all of them, with a ridge of {learner.mu_:.2g}." in fitted.stdout
    assert "12 training rows are kept" in fitted.stdout
    assert "2 folds" in fitted.stdout
    assert record.fit["mu"] == learner.mu_
    assert record.fit["gamma"] == learner.gamma_
    predicted = command("predict", "model.skops", "flowers.csv", "--scores")
    lines = predicted.stdout.splitlines()
    header = 'id,prediction,score setosa,score versicolor,"score virginica, late"'
    assert lines[0] == header
    assert sum(map(float, lines[1].split(",")[-3:])) == pytest.approx(1)
    shown = command("report", "model.skops", "flowers.csv")
    assert shown.returncode == 0, shown.stderr
    page = (tmp_path / "report.html").read_text()
    assert "training rows kept" in page
    assert "<h2>Codes</h2>" in page
    assert "rows_kept" in command("info", "model.skops").stdout


def test_images_bring_their_shape(run, digits, tmp_path):
    """A stack of images needs no image_shape, also where the kernel compares images."""
    code, out, _ = run(*FIT, "--rows", "X", "--model", "kcrc-images", "--json")
    assert code == 0
    fit = json.loads(out)["fit"]
    assert (fit["rows_kept"], fit["n_neighbors"]) == (300, 50)
    code, out, _ = run(
        "predict", "m.skops", "digits.npz", "--rows", "X_new", "--label", "y_new", "--json",
    )  # fmt: skip
    assert json.loads(out)["accuracy"] > 0.9
    tangent = ("--model", "kcrc-images", "--set", "kernel=tangent", "--set", "mu=0.1")
    coarse = ("--set", "n_neighbors=10", "--set", "n_coarse=30")
    assert run(*FIT, "--rows", "X", *tangent, *coarse)[0] == 0
    assert load_model(tmp_path / "m.skops")[0][-1].image_shape == (8, 8)
    first = run("predict", "m.skops", "digits.npz", "--rows", "X_new")[1]
    shape = ("--set", "image_shape=(8,8)")
    assert run(*FIT, "--rows", "F", *tangent, *coarse, *shape)[0] == 0
    assert run("predict", "m.skops", "digits.npz", "--rows", "F_new")[1] == first


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (["projection=kpca"], {"projection": "kpca"}),
        (["distance=l1", "n_neighbors=40"], {"distance": "l1", "n_neighbors": 40}),
        (["residual_norm=l1"], {"residual_norm": "l1"}),
        (["image_shape=(8, 8)"], {"image_shape": (8, 8)}),
        (["mu=0.25", "kernel=poly", "degree=2"], {"mu": 0.25, "kernel": "poly", "degree": 2}),
    ],
)
def test_settings_reach_the_model(run, digits, tmp_path, settings, expected):
    given = [word for setting in settings for word in ("--set", setting)]
    assert run(*FIT, "--rows", "F", "--model", "CRCClassifier", *given)[0] == 0
    learner = load_model(tmp_path / "m.skops")[0][-1]
    assert {name: getattr(learner, name) for name in expected} == expected


def test_estimators_by_name_have_their_own_defaults(run, digits, tmp_path):
    for name, kind in (("CRCClassifier", CRCClassifier), ("SRCClassifier", SRCClassifier)):
        code, out, _ = run(*FIT, "--rows", "F", "--model", name, "--seed", "3")
        assert code == 0
        assert "300 training rows are kept" in out
        model, _ = load_model(tmp_path / "m.skops")
        assert type(model[-1]) is kind
        assert "scale" not in dict(model.steps)
        assert model[-1].get_params() == kind(random_state=3).get_params()


def test_unit_rows_are_the_pipelines(run, digits, tmp_path):
    """The preset's --scale is what scales: with none, sizes of rows count."""
    run(*FIT, "--rows", "F", "--model", "kcrc-images")
    rows = load_model(tmp_path / "m.skops")[0][-1].dictionary_
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1)
    run(*FIT, "--rows", "F", "--model", "kcrc-images", "--scale", "none", "--set", "gamma=scale")
    assert np.linalg.norm(load_model(tmp_path / "m.skops")[0][-1].dictionary_, axis=1).min() > 10


def test_codes_are_those_over_the_training_rows(run, digits, tmp_path):
    new, _ = digits
    run(*FIT, "--rows", "F", "--model", "kcrc-images", "--set", "n_neighbors=20")
    model, _ = load_model(tmp_path / "m.skops")
    code, out, _ = run("encode", "m.skops", "digits.npz", "--rows", "F_new")
    assert code == 0
    assert "100 codes over 300 atoms, 20.0 nonzeros per row" in out
    expected = model[-1].codes(model[:-1].transform(new)).toarray()
    np.testing.assert_array_equal(scipy.sparse.load_npz(tmp_path / "codes.npz").toarray(), expected)
    # A model without a pipeline around it too.
    save_model(model[-1], tmp_path / "bare.skops")
    assert run("encode", "bare.skops", "digits.npz", "--rows", "F_new", "-o", "c.npy")[0] == 0
    np.testing.assert_array_equal(np.load(tmp_path / "c.npy"), model[-1].codes(new).toarray())
    code, _, said = run(
        "encode", "m.skops", "digits.npz", "--rows", "F_new", "--method", "omp", "--nonzeros", "3"
    )
    assert code == 2
    assert "CRCClassifier codes over its training rows; leave --method out" in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--set", "kernel=tangent"], ["tangent", "give image_shape=(height, width)"]),
        (["--set", "distance=tangent"], ["tangent", "give image_shape=(height, width)"]),
        (["--set", "kernel=tangent", "--set", "image_shape=(8,9)"], ["image_shape", "72 pixels"]),
        (["--set", "image_shape=8x8"], ["image_shape must be (height, width)", "'8x8'"]),
        (["--set", "n_neighbors=0"], ["n_neighbors must be at least 1, got 0"]),
        (["--set", "n_coarse=10"], ["n_coarse must be at least n_neighbors = 50"]),
        (["--set", "distance=l7"], ["distance must be one of", "'l7'"]),
        (["--set", "kernel=l7"], ["kernel", "'l7'"]),
        (["--set", "projection=pca"], ["projection", "'pca'"]),
        (["--set", "residual_norm=l3"], ["residual_norm must be", "'l3'"]),
        (["--set", "mu=0"], ["mu must be above 0"]),
        (["--set", "alpha=1"], ["the model has no such parameter", "mu"]),
        (["--scale", "standard", "--set", "kernel=chi2"], ["chi2", "no negative values"]),
        (["--scale", "standard", "--set", "distance=chi2"], ["chi2", "no negative values"]),
    ],
    ids=lambda value: " ".join(value) if value[0].startswith("--") else None,
)
def test_mistakes_are_one_message(run, digits, tmp_path, arguments, words):
    code, out, said = run(*FIT, "--rows", "F", "--model", "kcrc-images", *arguments)
    assert (code, out) == (2, "")
    assert "Traceback" not in said
    last = said.strip().splitlines()[-1]
    assert last.startswith("Error: ")
    for word in words:
        assert word in last, last
    assert not os.path.exists(tmp_path / "m.skops")
