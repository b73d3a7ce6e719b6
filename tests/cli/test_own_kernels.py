"""Kernels of the user's own, from a module beside the data, through the real command."""

import json

import numpy as np
import pytest
import scipy.sparse

from kernelatoms import KernelKSVD
from kernelatoms.similarity import RBFKernel, channel_kernel

MODULE = '''
import numpy as np


class Power:
    """(x'y + 1) to some power."""

    def __init__(self, power=2):
        self.power = power

    def __call__(self, X, Y):
        return (X @ Y.T + 1) ** self.power

    def diag(self, X):
        return (np.sum(X * X, axis=1) + 1) ** self.power


def cube(X, Y):
    return (X @ Y.T + 1) ** 3


NUMBER = 3
'''


@pytest.fixture
def own(command, tmp_path, rng):
    """Rows with classes, a module with kernels; a command as the console script runs it."""
    (tmp_path / "mykernels.py").write_text(MODULE)
    X = rng.normal(size=(60, 4))
    lines = [",".join(map(repr, row)) for row in X.tolist()]
    kinds = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")
    rows = [f"{line},{kind}" for line, kind in zip(lines, kinds, strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,c,d,kind", *rows]) + "\n")

    def run(*arguments):
        return command(*arguments, as_script=True)

    return run, X


def refused(result, *words):
    assert result.returncode == 2, result.stderr
    assert "Traceback" not in result.stderr
    for word in words:
        assert word in result.stderr, result.stderr


def test_a_class_from_fit_to_report(own, tmp_path):
    run, X = own
    learn = ("fit", "t.csv", "--label", "kind", "--model", "KernelKSVD", "--set", "n_atoms=10",
             "--set", "n_nonzero_coefs=2", "--set", "max_iter=3", "--json")  # fmt: skip
    kernel = ("--set", "kernel=mykernels:Power", "--set", "kernel_params={'power': 3}")
    fitted = run(*learn, *kernel)
    assert fitted.returncode == 0, fitted.stderr
    assert json.loads(fitted.stdout)["fit"]["n_atoms"] == 10
    shown = run("info", "model.skops")  # reads the record and builds nothing
    assert shown.returncode == 0, shown.stderr
    assert "mykernels.Power" in shown.stdout
    for command in ("encode", "report"):
        refused(run(command, "model.skops", "t.csv"), "mykernels.Power", "--trust mykernels:Power")
        refused(run(command, "model.skops", "t.csv", "--trust", "mykernels:cube"),
                "--trust mykernels:Power")  # fmt: skip
        trusting = run(command, "model.skops", "t.csv", "--trust", "mykernels:Power")
        assert trusting.returncode == 0, trusting.stderr
    codes = scipy.sparse.load_npz(tmp_path / "codes.npz").toarray()
    named = KernelKSVD(
        10, kernel="poly", degree=3, gamma=1, coef0=1, n_nonzero_coefs=2, max_iter=3, random_state=0
    ).fit(X)
    np.testing.assert_allclose(codes, named.transform(X).toarray(), atol=1e-6)


@pytest.mark.slow
def test_a_function_in_a_classifier(own):
    run, _ = own
    learn = (
        "fit",
        "t.csv",
        "--label",
        "kind",
        "--model",
        "lkdl",
        "--set",
        "max_iter=3",
        "--cv",
        "2",
    )
    fitted = run(*learn, "--set", "kernel=mykernels:cube")
    assert fitted.returncode == 0, fitted.stderr
    refused(run("predict", "model.skops", "t.csv"), "mykernels.cube", "--trust mykernels:cube")
    predicted = run("predict", "model.skops", "t.csv", "--trust", "mykernels:cube", "--json")
    assert predicted.returncode == 0, predicted.stderr
    assert json.loads(predicted.stdout)["accuracy"] > 0.8
    assert run("report", "model.skops", "--trust", "mykernels:cube").returncode == 0


@pytest.mark.slow
def test_a_kernel_for_every_channel(own, tmp_path):
    """An object of a module, made of the library's kernels: nobody else needs the module."""
    run, X = own
    module = "from kernelatoms.similarity import RBFKernel, channel_kernel\n"
    (tmp_path / "channels.py").write_text(f"{module}TWO = channel_kernel(RBFKernel('scale'), 2)\n")
    learn = ("fit", "t.csv", "--label", "kind", "--model", "KernelKSVD", "--set", "n_atoms=10",
             "--set", "n_nonzero_coefs=2", "--set", "max_iter=3", "--set")  # fmt: skip
    fitted = run(*learn, "kernel=channels:TWO")
    assert fitted.returncode == 0, fitted.stderr
    (tmp_path / "channels.py").unlink()
    encoded = run("encode", "model.skops", "t.csv")
    assert encoded.returncode == 0, encoded.stderr
    codes = scipy.sparse.load_npz(tmp_path / "codes.npz").toarray()
    kernel = channel_kernel(RBFKernel("scale"), 2)
    named = KernelKSVD(10, kernel=kernel, n_nonzero_coefs=2, max_iter=3, random_state=0).fit(X)
    np.testing.assert_allclose(codes, named.transform(X).toarray(), atol=1e-6)
    parts = ("--set", "kernel_params={'parts': [('rbf', [0, 1]), ('linear', [2, 3])]}")
    by_class = run(*learn, "kernel=kernelatoms.similarity:ProductKernel", *parts)
    assert by_class.returncode == 0, by_class.stderr
    assert run("encode", "model.skops", "t.csv").returncode == 0
    refused(run(*learn, "kernel=kernelatoms.similarity:ProductKernel"), "ProductKernel", "'parts'")
    outside = ("--set", "kernel_params={'parts': [('rbf', [0, 9])]}")
    refused(run(*learn, "kernel=kernelatoms.similarity:SumKernel", *outside),
            "parts[0]: columns must be of rows with n_features=4")  # fmt: skip


def test_kernels_that_cannot_be_had(own, tmp_path):
    run, _ = own
    (tmp_path / "broken.py").write_text("def half(:\n")
    (tmp_path / "raising.py").write_text("raise RuntimeError('no licence')\n")
    fit = ("fit", "t.csv", "--model", "KernelKSVD", "--set")
    for value, words in (
        ("nowhere:Power", ["nowhere", "cannot be imported"]),
        ("mykernels:Powr", ["'mykernels' has no 'Powr'"]),
        ("mykernels:NUMBER", ["must be a function of two matrices", "got 3"]),
        ("mykernels:", ["module:Class"]),
        ("broken:half", ["--set kernel=broken:half", "SyntaxError"]),
        ("raising:k", ["--set kernel=raising:k", "RuntimeError: no licence"]),
    ):
        refused(run(*fit, f"kernel={value}"), *words)
    parameters = ("--set", "kernel_params={'pwer': 3}")
    refused(run(*fit, "kernel=mykernels:Power", *parameters), "Power", "'pwer'")
    assert not (tmp_path / "model.skops").exists()


def test_trusted_modules_that_are_gone(own, tmp_path):
    run, _ = own
    assert run("fit", "t.csv", "--model", "KernelLinearizer", "--set",
               "kernel=mykernels:Power").returncode == 0  # fmt: skip
    (tmp_path / "mykernels.py").unlink()
    refused(run("encode", "model.skops", "t.csv", "--trust", "mykernels:Power"),
            "needs 'mykernels.Power'", "No module named 'mykernels'")  # fmt: skip
    refused(run("encode", "model.skops", "t.csv", "--trust", "mykernels"), "--trust takes")
