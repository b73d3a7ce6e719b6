"""What the commands do when all is well."""

import csv
import io
import json
import subprocess
import sys
import time

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import rbf_kernel

from kernelatoms import explain, load_model, sparse_encode
from kernelatoms.cli import encode, scoring
from kernelatoms.cli.app import main
from kernelatoms.datasets import list_datasets


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run a command in this process, which is faster; (exit code, output, errors)."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        code = main([str(argument) for argument in arguments])
        return code, *capsys.readouterr()

    return run


def test_from_a_hand_made_csv_to_predictions(command, flowers):
    """The three commands at the top of the README, in processes of their own."""
    fitted = command("fit", "flowers.csv", "--label", "species", "--cv", "2")
    assert fitted.returncode == 0, fitted.stderr
    assert "12 rows, 2 features, 3 classes" in fitted.stdout
    assert "2 folds" in fitted.stdout
    assert "numbers (2): petal length, 'petal width, cm'" in fitted.stderr
    assert "left out: id (it numbers the rows)" in fitted.stderr
    assert "left out: garden (it holds words, 4 different ones in only 12 rows)" in fitted.stderr
    assert "1 missing value is filled from the 12 nearest rows; so are later ones." in fitted.stderr
    predicted = command("predict", "model.skops", "flowers.csv")
    assert predicted.returncode == 0
    rows = list(csv.reader(io.StringIO(predicted.stdout)))
    assert rows[0] == ["id", "prediction"]
    assert rows[1] == ["1", "setosa"]
    assert rows[12] == ["12", "virginica, late"]
    assert "100.0% of 12 labelled rows are predicted right" in predicted.stderr
    assert "\x1b" not in fitted.stdout + fitted.stderr  # no terminal: no colours, no bars


def test_columns_may_come_in_any_order(run, flowers, tmp_path):
    run("fit", "flowers.csv", "--label", "species")
    rows = list(csv.reader(flowers.open()))
    turned = tmp_path / "turned.csv"
    with turned.open("w") as file:
        csv.writer(file).writerows([[*row[:4][::-1], "new"] for row in rows])
    first = run("predict", "model.skops", "flowers.csv")[1]
    code, second, notes = run("predict", "model.skops", turned)
    assert code == 0
    assert second == first
    assert "'new'" in notes


def test_help_is_quick_and_has_examples(command):
    start = time.perf_counter()
    result = command("--help")
    seconds = time.perf_counter() - start
    assert result.returncode == 0
    for name in ("demo", "fit", "predict", "encode", "explain", "info", "report", "datasets"):
        assert name in result.stdout
        shown = command(name, "--help") if name != "demo" else command("demo", "-h")
        assert "Example" in shown.stdout
    # What makes it slow is an import at the top of a file; a clock would only guess.
    code = (
        "import sys; import kernelatoms.cli.app;"
        "print(sorted({'numpy', 'sklearn', 'numba', 'matplotlib', 'pyarrow', 'skops', 'scipy'}"
        " & set(sys.modules)))"
    )
    heavy = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
    assert heavy.strip() == "[]", f"imported for --help ({seconds:.2f} s): {heavy}"


@pytest.mark.parametrize("package", ["typer", "rich"])
def test_without_its_extra_the_command_says_so_in_one_line(package):
    code = (
        f"import sys; sys.modules[{package!r}] = None; sys.argv = ['kernelatoms', '--help'];"
        "from kernelatoms.__main__ import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    words = f"The kernelatoms command needs {package}, which is not installed"
    assert done.stderr == f"{words}: pip install 'kernelatoms[cli]'.\n"
    assert done.returncode == 1


@pytest.fixture
def digits(tmp_path):
    X, y = load_digits(return_X_y=True)
    images = X.reshape(-1, 8, 8).astype(np.uint8)
    np.savez(
        tmp_path / "digits.npz",
        X_train=images[:600], y_train=y[:600], X_test=images[600:800], y_test=y[600:800],
    )  # fmt: skip
    return y[600:800]


def test_images_from_npz(run, digits, tmp_path):
    code, out, _ = run(
        "fit", "digits.npz", "--rows", "X_train", "--label", "y_train", "--model", "lkdl-images",
        "--set", "n_atoms=12", "--set", "max_iter=4", "-o", "d.skops", "--json",
    )  # fmt: skip
    assert code == 0
    result = json.loads(out)
    assert result["fit"]["n_atoms"] == 120
    model, record = load_model(tmp_path / "d.skops")
    assert record.image_shape == (8, 8)
    assert record.columns is None
    assert model[-1].dictionary.n_atoms == 12
    code, out, _ = run(
        "predict", "d.skops", "digits.npz", "--rows", "X_test", "--label", "y_test", "--scores",
        "-o", "p.npz", "--json",
    )  # fmt: skip
    accuracy = json.loads(out)["accuracy"]
    with np.load(tmp_path / "p.npz") as predicted:
        assert accuracy == pytest.approx(np.mean(predicted["prediction"] == digits))
        scores = np.stack([predicted[f"score {c}"] for c in range(10)], axis=1)
        np.testing.assert_array_equal(scores.argmax(axis=1), predicted["prediction"])
    assert accuracy > 0.85
    code, out, _ = run("report", "d.skops", "digits.npz", "--rows", "X_test", "--label", "y_test")
    assert code == 0
    page = (tmp_path / "report.html").read_text()
    assert f"{round(accuracy * 200)} of 200 labelled rows are classified right" in page
    assert "others" in page


def test_codes_of_a_classifier_are_those_of_the_predicted_class(run, digits, tmp_path):
    run("fit", "digits.npz", "--rows", "X_train", "--label", "y_train", "--model", "linear")
    code, out, _ = run("encode", "model.skops", "digits.npz", "--rows", "X_test", "--json")
    assert code == 0
    codes = scipy.sparse.load_npz(tmp_path / "codes.npz")
    assert codes.shape == (200, json.loads(out)["atoms"])
    model, _ = load_model(tmp_path / "model.skops")
    X = np.load(tmp_path / "digits.npz")["X_test"].reshape(200, -1).astype(np.float32)
    signals, predictions = model[:-1].transform(X), model.predict(X)
    atoms = np.vstack([learner.components_ for learner in model[-1].dictionaries_])
    residuals = ((signals - codes @ atoms) ** 2).sum(axis=1)
    best = -model.decision_function(X).max(axis=1)
    np.testing.assert_allclose(residuals, best, atol=1e-5)
    own = np.repeat(model.classes_, [d.n_atoms_ for d in model[-1].dictionaries_])
    for row in range(200):
        assert set(own[codes[[row]].indices]) <= {predictions[row]}


@pytest.mark.parametrize(
    "settings",
    [["n_neighbors=6"], ["scheme=collective"], ["scheme=collective", "n_neighbors=9"]],
    ids=str,
)
@pytest.mark.parametrize("name", ["linear", "kdl"])
def test_classifiers_give_the_codes_that_decided(
    run, digits, tmp_path, monkeypatch, name, settings
):
    given = [word for setting in settings for word in ("--set", setting)]
    run(
        "fit", "digits.npz", "--rows", "X_train", "--label", "y_train", "--model", name, *given,
        "--set", "n_atoms=12", "--set", "max_iter=2",
    )  # fmt: skip
    monkeypatch.setattr(encode, "_BLOCK_ROWS", 70)
    assert run("encode", "model.skops", "digits.npz", "--rows", "X_test")[0] == 0
    codes = scipy.sparse.load_npz(tmp_path / "codes.npz")
    model, _ = load_model(tmp_path / "model.skops")
    X = np.load(tmp_path / "digits.npz")["X_test"].reshape(200, -1).astype(np.float32)
    expected = np.zeros(codes.shape)
    for row, why in enumerate(explain(model, X)):
        expected[row, why.atoms] = why.coefficients
    # Of float32, in blocks of other sizes: a few of its last digits.
    atol = 16 * np.finfo(np.float32).eps * np.abs(expected).max()
    np.testing.assert_allclose(codes.toarray(), expected, atol=atol)
    assert codes.has_sorted_indices


@pytest.mark.parametrize("name", ["KSVD", "mod"])
def test_learners_without_labels(run, digits, tmp_path, name):
    code, out, _ = run(
        "fit", "digits.npz", "--rows", "X_train", "--model", name, "--scale", "unit",
        "--set", "n_atoms=20", "--set", "n_nonzero_coefs=3", "--set", "max_iter=3",
    )  # fmt: skip
    assert code == 0
    assert "20 atoms; their codes keep" in out
    code, out, _ = run("encode", "model.skops", "digits.npz", "--rows", "X_test")
    codes = scipy.sparse.load_npz(tmp_path / "codes.npz")
    model, record = load_model(tmp_path / "model.skops")
    X = np.load(tmp_path / "digits.npz")["X_test"].reshape(200, -1).astype(np.float32)
    np.testing.assert_array_equal(codes.toarray(), model.transform(X).toarray())
    kept = record.fit["energy_kept"]
    assert 0.5 < kept < 1
    code, _, err = run("predict", "model.skops", "digits.npz", "--rows", "X_test")
    assert code == 2
    assert "predicts no classes" in err


def test_codes_by_another_method_than_the_models(run, digits, tmp_path):
    run("fit", "digits.npz", "--rows", "X_train", "--model", "KSVD", "--scale", "unit")
    code, _, _ = run(
        "encode", "model.skops", "digits.npz", "--rows", "X_test", "--method", "lasso",
        "--alpha", "0.1", "--positive",
    )  # fmt: skip
    assert code == 0
    codes = scipy.sparse.load_npz(tmp_path / "codes.npz")
    model, _ = load_model(tmp_path / "model.skops")
    X = np.load(tmp_path / "digits.npz")["X_test"].reshape(200, -1).astype(np.float32)
    signals = model[:-1].transform(X)
    options = {"method": "lasso", "alpha": 0.1, "positive": True}
    expected = sparse_encode(signals, model[-1].components_, **options)
    np.testing.assert_allclose(codes.toarray(), expected.toarray(), atol=1e-6)
    run("encode", "model.skops", "digits.npz", "--rows", "X_test", "--method", "omp",
        "--nonzeros", "2")  # fmt: skip
    assert scipy.sparse.load_npz(tmp_path / "codes.npz").nnz == 400
    run("fit", "digits.npz", "--rows", "X_train", "--label", "y_train", "--model", "linear")
    code, _, _ = run(
        "encode", "model.skops", "digits.npz", "--rows", "X_test", "--method", "lasso",
        "--alpha", "0.3",
    )  # fmt: skip
    assert code == 0
    codes = scipy.sparse.load_npz(tmp_path / "codes.npz")
    model, _ = load_model(tmp_path / "model.skops")
    own = np.repeat(model.classes_, [d.n_atoms_ for d in model[-1].dictionaries_])
    for row, label in enumerate(model.predict(X)):
        assert set(own[codes[[row]].indices]) <= {label}


def test_greedy_codes_to_a_residual_and_without_negative_coefficients(run, tmp_path, rng):
    X = rng.normal(size=(60, 6)) * rng.uniform(1, 4, size=(60, 1))
    np.save(tmp_path / "t.npy", X)
    run("fit", "t.npy", "--model", "KSVD", "--set", "n_atoms=12")
    model = load_model(tmp_path / "model.skops")[0][-1]
    for arguments, options in (
        (["--max-residual", "0.4"], {"max_residual": 0.4}),
        (["--max-residual", "0.9", "--absolute"], {"max_residual": 0.9, "absolute": True}),
        (["--nonzeros", "3", "--positive"], {"n_nonzero_coefs": 3, "positive": True}),
    ):
        code, _, err = run("encode", "model.skops", "t.npy", "--method", "omp", *arguments)
        assert code == 0, err
        codes = scipy.sparse.load_npz(tmp_path / "codes.npz").toarray()
        np.testing.assert_array_equal(codes, sparse_encode(X, model, **options).toarray())
        if "positive" in options:
            assert codes.min() >= 0
        else:
            norms = 1 if "absolute" in options else np.linalg.norm(X, axis=1)
            left = np.linalg.norm(X - codes @ model.components_, axis=1)
            assert (left <= options["max_residual"] * norms * (1 + 1e-9)).all()


@pytest.mark.parametrize("name", ["KSCDL", "kscdl"])
def test_l1_codes_under_a_kernel(run, digits, tmp_path, name):
    """The estimator as it comes, and the preset of the same name, which chooses gamma."""
    code, out, _ = run(
        "fit", "digits.npz", "--rows", "X_train", "--model", name, "--scale", "unit",
        "--set", "n_atoms=20", "--set", "max_iter=3",
    )  # fmt: skip
    assert code == 0
    assert "20 atoms; their codes keep" in out
    code, _, _ = run("encode", "model.skops", "digits.npz", "--rows", "X_test")
    codes = scipy.sparse.load_npz(tmp_path / "codes.npz")
    model, record = load_model(tmp_path / "model.skops")
    X = np.load(tmp_path / "digits.npz")["X_test"].reshape(200, -1).astype(np.float32)
    np.testing.assert_array_equal(codes.toarray(), model.transform(X).toarray())
    assert hasattr(model[-1], "gamma_scores_") == (name == "kscdl")
    assert 0.5 < record.fit["energy_kept"] < 1
    code, _, _ = run("report", "model.skops", "digits.npz", "--rows", "X_test")
    assert code == 0


@pytest.mark.parametrize("name", ["KSVD", "MOD", "KernelKSVD", "KernelMOD", "KSCDL"])
def test_energy_kept_is_that_of_the_codes_that_transform_gives(run, tmp_path, rng, name):
    X = rng.normal(size=(90, 8))
    np.save(tmp_path / "t.npy", X)
    kernel = [] if name in ("KSVD", "MOD") else ["--set", "gamma=0.1"]
    code, out, _ = run(
        "fit", "t.npy", "--model", name, "--set", "n_atoms=12", "--set", "max_iter=5", "--json",
        *kernel,
    )  # fmt: skip
    assert code == 0
    model = load_model(tmp_path / "model.skops")[0][-1]
    kept = json.loads(out)["fit"]["energy_kept"]
    assert kept == pytest.approx(share_kept(model, X), rel=1e-9)
    assert 0 < kept < 1


@pytest.mark.parametrize("name", ["linear", "lkdl", "kdl"])
def test_energy_kept_by_classes_is_that_of_their_own_dictionaries(run, tmp_path, rng, name):
    X, y = rng.normal(size=(90, 8)), np.arange(90) % 3
    np.savez(tmp_path / "t.npz", X=X, y=y)
    code, out, _ = run(
        "fit", "t.npz", "--label", "y", "--model", name, "--set", "n_atoms=9", "--set",
        "max_iter=5", "--json",
    )  # fmt: skip
    assert code == 0
    model, _ = load_model(tmp_path / "model.skops")
    signals = model[:-1].transform(X)
    energies, kept = [], []
    for c, learner in enumerate(model[-1].dictionaries_):
        own = signals[y == c]
        energies.append(len(own) if name == "kdl" else np.sum(own**2))
        kept.append(share_kept(learner, own) * energies[-1])
    expected = sum(kept) / sum(energies)
    assert json.loads(out)["fit"]["energy_kept"] == pytest.approx(expected, rel=1e-9)


def share_kept(learner, X):
    """Return 1 - |phi(X) - codes|^2 / |phi(X)|^2, written out."""
    W = learner.transform(X).toarray()
    if not hasattr(learner, "kernel"):
        return 1 - np.sum((X - W @ learner.components_) ** 2) / np.sum(X**2)
    anchors = getattr(learner, "anchors_", learner.components_)
    dual = getattr(learner, "dual_coef_", np.eye(len(anchors)))
    gamma = learner.gamma or 1 / X.shape[1]
    products = rbf_kernel(X, anchors, gamma=gamma) @ dual
    gram = dual.T @ rbf_kernel(anchors, gamma=gamma) @ dual
    lost = len(X) - 2 * np.sum(W * products) + np.sum((W @ gram) * W)
    return 1 - lost / len(X)


def test_a_kernel_map(run, digits, tmp_path):
    code, _, _ = run(
        "fit", "digits.npz", "--rows", "X_train", "--model", "KernelLinearizer",
        "--set", "kernel=poly", "--set", "n_landmarks=0.1", "--set", "degree=2",
    )  # fmt: skip
    assert code == 0
    run("encode", "model.skops", "digits.npz", "--rows", "X_test", "-o", "f.npy")
    assert np.load(tmp_path / "f.npy").shape == (200, 60)
    assert run("report", "model.skops")[0] == 0


def test_info(run, flowers):
    run("fit", "flowers.csv", "--label", "species")
    code, out, _ = run("info", "model.skops")
    assert code == 0
    for words in (
        "kcrc",
        "column: petal length ",
        "column: petal width, cm ",
        "left out: it numbers the rows",
        "flowers.csv",
    ):
        assert words in out
    facts = json.loads(run("info", "model.skops", "--json")[1])
    assert len(facts["data: fingerprint"]) == 64
    assert facts["with: kernelatoms"]
    code, out, _ = run("info", "flowers.csv")
    assert "missing values      1" in out
    assert "3 different values" in out


def test_the_report_says_whether_rows_were_learned_from(run, flowers, tmp_path):
    run("fit", "flowers.csv", "--label", "species")
    assert run("report", "model.skops", "flowers.csv")[0] == 0
    assert "the ones it learned from" in (tmp_path / "report.html").read_text()


def test_seeds_and_settings_reach_the_model(run, flowers, tmp_path):
    run("fit", "flowers.csv", "--label", "species", "--model", "lkdl", "--seed", "5",
        "--set", "dictionary=MOD", "--set", "n_atoms=3", "--scale", "none",
        "--set", "map__kernel=poly")  # fmt: skip
    model, _ = load_model(tmp_path / "model.skops")
    assert [name for name, _ in model.steps] == ["fill", "map", "learn"]
    assert type(model[-1].dictionary).__name__ == "MOD"
    assert model[-1].dictionary.n_atoms == 3
    assert model["map"].kernel == "poly"
    assert model["map"].random_state == model[-1].random_state == 5


def test_missing_values_at_prediction_come_from_the_nearest_rows(run, tmp_path):
    (tmp_path / "t.csv").write_text("a,b,k\n1,5,x\n2,6,x\n3,7,x\n-1,-5,y\n-2,-6,y\n-3,-7,y\n")
    run("fit", "t.csv", "--label", "k", "--set", "fill__n_neighbors=3")
    (tmp_path / "n.csv").write_text("a,b\n,6\n2,6\n,\n0,0\n")
    _, out, said = run("predict", "model.skops", "n.csv", "--scores")
    gap, filled, nothing, medians = out.splitlines()[1:]
    assert gap == filled  # the rows of x are the nearest, and 2 is their mean
    assert nothing == medians  # of a row of which nothing is known
    assert (
        "3 missing values in 2 of 4 rows: filled from the 3 nearest training rows. 1 of these rows "
        "holds nothing"
    ) in said


def test_of_a_part_of_the_rows_learned_from_predict_says_which_part(run, tmp_path, monkeypatch):
    draw = scoring.drawn_rows
    monkeypatch.setattr(scoring, "drawn_rows", lambda *args: draw(*args[:2], 240, args[3]))
    rows = [f"{i % 2 * 4 + i / 700:.4f},{'xy'[i % 2]}" for i in range(600)]
    (tmp_path / "t.csv").write_text("\n".join(["a,k", *rows]))
    assert run("fit", "t.csv", "--label", "k")[0] == 0
    said = run("predict", "model.skops", "t.csv")[2]
    assert "the model learned from 40.0% of these rows" in said


def test_data_sets_are_listed_and_written(run, tmp_path):
    code, out, _ = run("datasets")
    assert code == 0
    bundled = ("iris", "wine", "digits")
    listed = [line.split()[0] for line in out.split("\n\n")[0].splitlines()]
    assert listed == [*bundled, *(dataset.name for dataset in list_datasets())]
    assert "usps" in out
    assert json.loads(run("datasets", "usps", "--json")[1])[0]["file"] == "usps.npz"
    assert "USPS" in run("datasets", "usps")[1]
    for name, shape in (("iris", (151, 5)), ("wine", (179, 14)), ("digits", (1798, 65))):
        assert run("datasets", name, "-o", f"{name}.csv")[0] == 0
        rows = list(csv.reader((tmp_path / f"{name}.csv").open()))
        assert (len(rows), len(rows[0])) == shape


def test_files_of_data_sets_at_hand_are_named(run, tmp_path, monkeypatch):
    monkeypatch.delenv("KERNELATOMS_DATA", raising=False)
    (tmp_path / "orl.npz").write_bytes(b"")

    def found(*arguments):
        return {row["name"] for row in json.loads(run(*arguments, "--json")[1]) if row["at hand"]}

    bundled = {"iris", "wine", "digits"}
    assert found("datasets") == bundled
    assert found("datasets", "--data-home", tmp_path) == {*bundled, "orl"}
    assert found("datasets", "orl", "--data-home", tmp_path) == {"orl"}
    assert found("datasets", "usps", "--data-home", tmp_path) == set()
    monkeypatch.setenv("KERNELATOMS_DATA", str(tmp_path))
    assert found("datasets") == {*bundled, "orl"}
    lines = run("datasets")[1].splitlines()
    assert ["at hand" in line for line in lines if line[:4] in ("orl ", "usps")] == [False, True]


def test_completion_knows_models(command):
    environment = {
        "_KERNELATOMS_COMPLETE": "complete_bash",
        "COMP_WORDS": "kernelatoms fit x.csv --model lk",
        "COMP_CWORD": "4",
    }
    assert command(env=environment).stdout.split() == ["lkdl", "lkdl-images"]


def test_version(run):
    from kernelatoms import __version__

    assert run("--version") == (0, f"{__version__}\n", "")
