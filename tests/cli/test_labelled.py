"""D-KSVD, LC-KSVD and FDDL classifiers through the commands: classifiers with codes."""

import json

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import load_digits

from draws import later
from kernelatoms import (
    DKSVDClassifier,
    FDDLClassifier,
    KernelLinearizer,
    LCKSVDClassifier,
    explain,
    load_model,
)
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
    X, y = load_digits(return_X_y=True)
    words = np.array(["zero", "one", "two", "three", "four"])
    X, y = X[y < 5][:250], words[y[y < 5][:250]]
    np.savez(tmp_path / "digits.npz", X=X[:200], y=y[:200], X_new=X[200:], y_new=y[200:])
    return X[200:], y[200:]


FIT = ("fit", "digits.npz", "--rows", "X", "--label", "y", "-o", "m.skops", "--set", "max_iter=2")
NEW = ("m.skops", "digits.npz", "--rows", "X_new")


@pytest.mark.parametrize("name", [later("lcksvd"), "fddl", later("ksad")])
def test_a_table_from_fit_to_report(command, flowers, tmp_path, name):
    """The usual commands, each in a process of its own."""
    fitted = command("fit", "flowers.csv", "--label", "species", "--model", name, "--cv", "2")
    assert fitted.returncode == 0, fitted.stderr
    assert "12 rows, 2 features, 3 classes" in fitted.stdout
    assert "2 folds" in fitted.stdout
    model, _ = load_model(tmp_path / "model.skops")
    assert f"{model[-1].n_atoms_} atoms; their codes keep" in fitted.stdout
    predicted = command("predict", "model.skops", "flowers.csv", "--scores")
    assert predicted.stdout.splitlines()[0] == (
        'id,prediction,score setosa,score versicolor,"score virginica, late"'
    )
    told = command("explain", "model.skops", "flowers.csv", "--row", "3")
    assert told.returncode == 0, told.stderr
    assert "Answer: " in told.stdout
    assert ("contribution" in told.stdout) == (name == "lcksvd")
    shown = command("report", "model.skops", "flowers.csv")
    assert shown.returncode == 0, shown.stderr
    page = (tmp_path / "report.html").read_text()
    assert "<h2>Decision</h2>" in page
    assert "atoms per class" in page
    assert "n_atoms" in command("info", "model.skops").stdout


def test_presets_are_what_they_say(run, digits, tmp_path):
    run(*FIT, "--model", "lcksvd")
    model, _ = load_model(tmp_path / "m.skops")
    assert isinstance(model["map"], KernelLinearizer)
    assert (model["map"].kernel, model["map"].gamma) == ("rbf", 0.5)
    assert isinstance(model[-1], LCKSVDClassifier)
    assert (model[-1].n_atoms, model[-1].n_nonzero_coefs) == (None, 10)
    run(*FIT, "--model", "fddl")
    model, _ = load_model(tmp_path / "m.skops")
    assert list(dict(model.steps)) == ["fill", "scale", "learn"]
    assert model[-1].n_atoms_per_class == 20
    run(*FIT, "--model", "ksad", "--set", "n_atoms=40")
    model, _ = load_model(tmp_path / "m.skops")
    assert [type(step).__name__ for step in model] == [
        "NearestImputer", "RowNormalizer", "KSADClassifier",
    ]  # fmt: skip
    assert (model[-1].kernel, model[-1].gamma, model[-1].n_atoms) == ("rbf", "spread", 40)


@pytest.mark.parametrize("name", ["lcksvd", "fddl", "DKSVDClassifier"])
def test_codes_scores_and_energy_are_the_models(run, digits, tmp_path, name):
    new, truth = digits
    size = [] if name == "fddl" else ["--set", "n_atoms=40"]
    code, out, _ = run(*FIT, "--model", name, *size, "--json")
    assert code == 0
    model, _ = load_model(tmp_path / "m.skops")
    rows = model[:-1].transform(np.load(tmp_path / "digits.npz")["X"])
    left = rows - model[-1].transform(rows) @ model[-1].components_
    kept = 1 - np.sum(left**2) / np.sum(rows**2)
    assert json.loads(out)["fit"]["energy_kept"] == pytest.approx(kept, rel=1e-9)
    assert run("encode", *NEW)[0] == 0
    codes = scipy.sparse.load_npz(tmp_path / "codes.npz").toarray()
    np.testing.assert_array_equal(codes, model.transform(new).toarray())
    found = json.loads(run("predict", *NEW, "--label", "y_new", "--scores", "--json")[1])
    assert found["prediction"] == model.predict(new).tolist()
    assert found["accuracy"] == np.mean(model.predict(new) == truth) > 0.8
    scores = np.array([found[f"score {label}"] for label in model.classes_]).T
    np.testing.assert_allclose(scores, model.decision_function(new))
    told = json.loads(run("explain", *NEW, "--row", 7, "--json")[1])["explanations"][0]
    why = explain(model, new[7:8])[0]
    assert [atom["atom"] for atom in told["atoms"]] == why.atoms.tolist()
    assert told["label"] == why.label
    assert run("encode", *NEW, "--method", "lasso", "--alpha", 0.1)[0] == 0
    codes = scipy.sparse.load_npz(tmp_path / "codes.npz")
    assert codes.shape == (len(new), model[-1].n_atoms_)


@pytest.mark.parametrize(
    ("name", "settings", "expected"),
    [
        ("lcksvd", ["variant=1"], {"variant": 1}),
        ("lcksvd", ["n_atoms=60", "consistency_weight=0.01"],
         {"n_atoms": 60, "consistency_weight": 0.01}),
        ("fddl", ["decision=global"], {"decision": "global"}),
        ("fddl", ["n_atoms_per_class=5", "l1_weight=0.1"],
         {"n_atoms_per_class": 5, "l1_weight": 0.1}),
        ("DKSVDClassifier", ["label_weight=0.5"], {"label_weight": 0.5}),
        ("ksad", ["n_atoms=30", "within_class_metric=false", "n_neighbors=1"],
         {"n_atoms": 30, "within_class_metric": False, "n_neighbors": 1}),
    ],
    ids=str,
)  # fmt: skip
def test_settings_reach_the_model(run, digits, tmp_path, name, settings, expected):
    given = [word for setting in settings for word in ("--set", setting)]
    assert run(*FIT, "--model", name, *given)[0] == 0
    learner = load_model(tmp_path / "m.skops")[0][-1]
    assert {key: getattr(learner, key) for key in expected} == expected


@pytest.mark.parametrize("kind", [DKSVDClassifier, LCKSVDClassifier, FDDLClassifier])
def test_estimators_by_name_have_their_own_defaults(run, digits, tmp_path, kind):
    assert run(*FIT, "--model", kind.__name__, "--seed", "3")[0] == 0
    learner = load_model(tmp_path / "m.skops")[0][-1]
    assert type(learner) is kind
    assert learner.get_params() == kind(max_iter=2, random_state=3).get_params()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["lcksvd", "variant=3"], ["variant must be 1 or 2, got 3"]),
        (["lcksvd", "n_atoms=3"], ["n_atoms=3", "each of the 5 classes", "ask for 5 or more"]),
        (["lcksvd", "n_atoms=0"], ["n_atoms must be at least 1, got 0"]),
        (["lcksvd", "consistency_weight=-1"], ["consistency_weight must be", "-1"]),
        (["lcksvd", "decision=local"], ["decision: the model has no such parameter"]),
        (["fddl", "decision=best"], ["decision must be", "'best'"]),
        (["fddl", "l1_weight=0"], ["l1_weight must be above 0"]),
        (["fddl", "n_atoms=30"], ["no such parameter", "Did you mean 'n_atoms_per_class'?"]),
        (["DKSVDClassifier", "label_weight=much"], ["label_weight must be", "'much'"]),
    ],
    ids=str,
)
def test_mistakes_are_one_message(run, digits, tmp_path, arguments, words):
    name, setting = arguments
    code, out, said = run(*FIT, "--model", name, "--set", setting)
    assert (code, out) == (2, "")
    assert "Traceback" not in said
    last = said.strip().splitlines()[-1]
    assert last.startswith("Error: ")
    for word in words:
        assert word in last, last
    assert not (tmp_path / "m.skops").exists()
