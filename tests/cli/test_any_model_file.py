"""Every command on every model file that loads: it works, or says in words why not."""

import io
import json
import os
import pty
import select
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from rich.console import Console
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from typer.testing import CliRunner

from draws import later, some
from forged_models import archive_of
from kernelatoms import (
    KSCDL,
    KSVD,
    MOD,
    ClassDictionaryClassifier,
    CRCClassifier,
    KernelKSVD,
    KernelLinearizer,
    KernelMOD,
    SparseCoder,
    SRCClassifier,
    save_model,
    sparse_encode,
)
from kernelatoms.cli.app import app
from kernelatoms.cli.console import print_table, visible
from kernelatoms.files import ModelRecord
from kernelatoms.report import Table

X = np.random.default_rng(0).normal(size=(60, 4))
Y = np.where(X[:, 0] > 0, "a", "b")
K = X @ X.T
PRECOMPUTED = {"kernel": "precomputed", "max_iter": 2}

BARE = {
    "KSVD": lambda: KSVD(6, max_iter=2).fit(X),
    "dense": lambda: KSVD(6, max_iter=2, sparse_output=False).fit(X),
    "MOD l1": lambda: MOD(6, alpha=0.2, max_iter=2).fit(X),
    "KernelKSVD": lambda: KernelKSVD(6, max_iter=2).fit(X),
    "precomputed": lambda: KernelKSVD(6, **PRECOMPUTED).fit(K),
    "KSCDL": lambda: KSCDL(6, max_iter=2).fit(X),
    "KernelLinearizer": lambda: KernelLinearizer().fit(X),
    "SparseCoder": lambda: SparseCoder(X[:8]).fit(X),
    "classifier": lambda: ClassDictionaryClassifier(KSVD(3, max_iter=2)).fit(X, Y),
    "dense classifier": lambda: ClassDictionaryClassifier(
        KSVD(3, max_iter=2, sparse_output=False), scheme="collective"
    ).fit(X, Y),
    "precomputed classifier": lambda: ClassDictionaryClassifier(KernelMOD(3, **PRECOMPUTED)).fit(
        K, Y
    ),
    "CRC": lambda: CRCClassifier("rbf", mu=0.1).fit(X, Y),
    "precomputed CRC": lambda: CRCClassifier("precomputed", mu=0.1, n_neighbors=9).fit(K, Y),
    "SRC": lambda: make_pipeline(StandardScaler(), SRCClassifier(n_neighbors=9)).fit(X, Y),
    "one step": lambda: make_pipeline(KSVD(6, max_iter=2)).fit(X),
    "nested": lambda: make_pipeline(StandardScaler(), make_pipeline(KSVD(6, max_iter=2))).fit(X),
    "no width": lambda: make_pipeline(FunctionTransformer(), KSVD(6, max_iter=2)).fit(X),
    "scikit-learn": lambda: make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y),
    "regression": lambda: Ridge().fit(X, X[:, 0]),
    "PCA": lambda: make_pipeline(PCA(2)).fit(X),
    "codes inside": lambda: make_pipeline(KSVD(6, sparse_output=False), LogisticRegression()).fit(
        X, Y
    ),
}


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a command; a traceback, or an exit that is neither 0 nor 2, is a failure."""
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", X)
    np.save("k.npy", K)

    def call(*arguments):
        done = CliRunner().invoke(app, [str(argument) for argument in arguments])
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        assert done.exit_code in (0, 2), done.output
        assert done.exit_code == 0 or "Error: " in done.output
        assert "subscriptable" not in done.output
        return done

    return call


OFTEN = ["KernelKSVD", "classifier", "precomputed CRC", "nested", "no width", "regression"]


@pytest.mark.parametrize("name", some(BARE, OFTEN))
def test_models_without_a_record(name, run):
    model = BARE[name]()
    save_model(model, "m.skops")
    data = "k.npy" if "precomputed" in name else "x.npy"
    assert run("info", "m.skops").exit_code == 0
    assert json.loads(run("info", "m.skops", "--json").output)["what"] == "not recorded"
    for arguments in ([], [data], [data, "--image-shape", "2x2"], [data, "--json"]):
        run("report", "m.skops", *arguments)
    run("predict", "m.skops", data, "--scores")
    run("predict", "m.skops", data, "--label", "0")
    predicted = run("predict", "m.skops", data)
    assert (predicted.exit_code == 0) == hasattr(model, "predict")
    run("encode", "m.skops", data, "-o", "c.csv", "--method", "omp", "--nonzeros", "2")
    encoded = run("encode", "m.skops", data, "-o", "c.npy")
    last = model[-1] if hasattr(model, "steps") else model
    has_codes = any(
        hasattr(one, name)
        for one, name in ((model, "transform"), (last, "dictionaries_"), (last, "codes"))
    )
    assert (encoded.exit_code == 0) == has_codes, encoded.output
    if hasattr(model, "transform"):
        codes = model.transform(K if "precomputed" in name else X)
        dense = codes.toarray() if scipy.sparse.issparse(codes) else codes
        np.testing.assert_array_equal(np.load("c.npy"), dense)


def test_bare_learners_code_otherwise_too(run):
    model = BARE["KSVD"]()
    save_model(model, "m.skops")
    run("encode", "m.skops", "x.npy", "-o", "c.npz", "--method", "lasso", "--alpha", "0.1")
    expected = sparse_encode(X, model, method="lasso", alpha=0.1)
    np.testing.assert_array_equal(scipy.sparse.load_npz("c.npz").toarray(), expected.toarray())


def test_a_bare_classifier_codes_over_the_predicted_class(run):
    model = BARE["classifier"]()
    save_model(model, "m.skops")
    run("encode", "m.skops", "x.npy", "-o", "c.npz")
    codes, n_first = scipy.sparse.load_npz("c.npz").toarray(), model.dictionaries_[0].n_atoms_
    first = model.predict(X) == "a"
    np.testing.assert_array_equal(
        codes[first, :n_first], model.dictionaries_[0].transform(X[first]).toarray()
    )
    assert not codes[first, n_first:].any()
    assert not codes[~first, :n_first].any()


def test_l1_learners_are_reported_with_their_penalty(run):
    save_model(BARE["MOD l1"](), "m.skops")
    assert run("report", "m.skops", "x.npy").exit_code == 0


@pytest.mark.parametrize(
    "record",
    [
        {"data": {"rows": 3}}, {"data": {"file": "x"}}, {"data": {"mine": [1, {"a": None}]}},
        {"fit": {"seconds": 1}}, {"fit": {"energy_kept": None, "other": float("nan")}},
        {"fit": {"cross_validation": {"mean": 1, "standard_error": 0, "folds": []}}},
        {"name": "[bold]it[/]"}, {"columns": ["0", "1", "2", "3"]}, {"label": "0"},
        {"left_out": {"4": "it is empty"}, "label": "7"}, {"image_shape": (2, 2)},
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("name", [later("KSVD"), "classifier"])
def test_any_record_that_can_be_written(name, record, run):
    save_model(BARE[name](), "m.skops", ModelRecord(**record))
    assert run("info", "m.skops").exit_code == 0
    for arguments in ([], ["x.npy"]):
        run("report", "m.skops", *arguments)
    for command in ("encode", "predict"):
        run(command, "m.skops", "x.npy", "-o", "c.npy")


def test_damaged_files_are_one_message(run):
    save_model(BARE["KSVD"](), "m.skops")
    with open("m.skops", "r+b") as file:
        file.seek(200)
        file.write(b"damage")
    with open("text.skops", "w") as file:
        file.write("no model")
    for path in ("m.skops", "text.skops"):
        for command in ("info", "report", "predict", "encode"):
            done = run(command, path, *(["x.npy"] if command in ("predict", "encode") else []))
            assert done.exit_code == 2
            assert done.output.count("Error: ") == 1


def test_steps_of_scikit_learn_that_a_file_damaged(run):
    """They are refused; trusted, they raise what comes of it, and the command says so."""
    model = BARE["scikit-learn"]()
    del model[0].mean_, model[0].scale_
    Path("m.skops").write_bytes(archive_of(model))
    done = run("predict", "m.skops", "x.npy")
    assert done.exit_code == 2
    assert "m.skops is damaged: StandardScaler.mean_ is missing" in done.output
    trust = ["--trust", "sklearn.preprocessing._data:StandardScaler"]
    done = run("predict", "m.skops", "x.npy", *trust)
    assert done.exit_code == 2
    assert "cannot be applied (AttributeError" in done.output


# Terminals

EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202egnp\u2066\r[red]x[/red]"


@pytest.fixture
def on_terminal(start_command):
    """Run the command with a terminal for its output; return what reached the terminal."""

    def run(*arguments):
        ours, theirs = pty.openpty()
        try:
            process = start_command(arguments, [os.ttyname(theirs)] * 2, env={"TERM": "dumb"})
            shown = b""
            alive = True
            while alive:
                alive = process.is_alive()
                while select.select([ours], [], [], 0.05)[0]:
                    shown += os.read(ours, 4096)
        finally:
            os.close(ours)
            os.close(theirs)
        return shown.decode()

    return run


def test_no_text_of_a_file_is_obeyed_by_a_terminal(on_terminal, tmp_path):
    columns = [f"{EVIL}{i}" for i in range(4)]
    labels = np.array([f"{EVIL}a", "b"])[(X[:, 0] > 0).astype(int)]
    model = ClassDictionaryClassifier(KSVD(3, max_iter=1)).fit(X, labels)
    record = ModelRecord(
        name=EVIL, columns=columns, label=EVIL, left_out={EVIL: EVIL},
        data={"file": EVIL, EVIL: EVIL}, fit={"warnings": [EVIL]}, made_with={EVIL: EVIL},
    )  # fmt: skip
    save_model(model, tmp_path / "m.skops", record)
    with open(tmp_path / "x.csv", "w", newline="") as file:
        file.write(",".join(f'"{name}"' for name in columns) + "\n")
        np.savetxt(file, X, delimiter=",")
    with open(tmp_path / "other.csv", "w", newline="") as file:
        file.write(f'"{EVIL}z",b,c,d\n')
        np.savetxt(file, X, delimiter=",")
    for arguments in (
        ["info", "m.skops"], ["info", "x.csv"], ["predict", "m.skops", "x.csv"],
        ["predict", "m.skops", "other.csv"], ["report", "m.skops", "x.csv"],
        ["info", "m.skops", "--json"],
    ):  # fmt: skip
        shown = on_terminal(*arguments)
        assert shown.strip()
        for sign in "\x1b\x07\x9b\u202e\u2066":
            assert sign not in shown, (arguments, shown)
        assert "\r" not in shown.replace("\r\n", "\n"), (arguments, shown)


def test_redirected_results_are_exact(run):
    labels = np.array([f"{EVIL}a", "b"])[(X[:, 0] > 0).astype(int)]
    save_model(ClassDictionaryClassifier(KSVD(3, max_iter=1)).fit(X, labels), "m.skops")
    assert (
        f"{EVIL}a" in CliRunner().invoke(app, ["predict", "m.skops", "x.npy"]).stdout_bytes.decode()
    )


def test_tables_show_names_as_they_are():
    stream = io.StringIO()
    print_table(
        Console(file=stream, width=100, force_terminal=True, color_system=None),
        Table(["[bold]name[/]", "n"], [["[red]a[/red]", "\x1b[31m"]]),
    )
    assert "[bold]name[/]" in stream.getvalue()
    assert "[red]a[/red]" in stream.getvalue()
    assert "\\x1b[31m" in stream.getvalue()
    assert "\x1b[31m" not in stream.getvalue()


def test_what_is_visible_stays():
    text = "Größe ± 3 µm, 数字 é, 'naïve' 🙂\n\ta line\u00a0more"
    assert visible(text) == text
    assert visible("a\x00b\x7f\x85\u2028\ud800\ufeff") == "a\\x00b\\x7f\\x85\\u2028\\ud800\\ufeff"
