"""``kernelatoms fit --checkpoint``: killed, and gone on from."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from answers import attributes, bits
from kernelatoms import load_model

ROOT = Path(__file__).parents[2]
# With an l1 penalty the objective falls in every pass: learning does not end by itself.
LONG = ("--set", "max_iter=1000", "--set", "tol=0", "--set", "n_atoms=10", "--set", "alpha=0.5")
SHORT = ("--set", "max_iter=9")


def refused(result, *words):
    """Check that a command said what was wrong, and how, in one line."""
    assert result.returncode == 2, result.stderr
    last = result.stderr.strip().splitlines()[-1]
    assert last.startswith("Error: "), result.stderr
    for word in words:
        assert word in last, last


@pytest.fixture
def rows(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((300, 12)), np.arange(300) % 3
    np.savez(tmp_path / "rows.npz", X=X, y=y)
    return "rows.npz", "--rows", "X"


@pytest.mark.skipif(os.name != "posix", reason="kill is POSIX")
def test_a_command_that_is_killed_goes_on(command, start_command, rows, tmp_path):
    fit = ("fit", *rows, "--model", "MOD", *LONG)
    assert command(*fit, "-o", "whole.skops").returncode == 0
    checkpoint = tmp_path / "run.ckpt"
    kept = (*fit, "--checkpoint", "run.ckpt", "-o", "model.skops")
    process = start_command(kept, [tmp_path / "out", tmp_path / "errors"])
    end = time.monotonic() + 100
    while not checkpoint.exists() and time.monotonic() < end:
        time.sleep(0.005)
    process.kill()
    process.join()
    assert not (tmp_path / "model.skops").exists()
    again = command(*kept)
    assert again.returncode == 0
    found = re.search(r"run\.ckpt: goes on after pass ([\d,]+) of 1,000\.", again.stderr)
    assert found, again.stderr
    assert 1 <= int(found[1].replace(",", "")) < 1000
    one, two = (load_model(tmp_path / f"{name}.skops")[0][-1] for name in ("model", "whole"))
    assert bits(attributes(one)) == bits(attributes(two))
    done = command(*kept)
    assert "run.ckpt: had ended after pass 1,000 of 1,000." in done.stderr
    told = load_model(tmp_path / "model.skops")[0][-1]
    assert bits(attributes(told)) == bits(attributes(two))


def test_a_classifier_that_is_tuned_and_validated(command, rows, tmp_path):
    """Only the fit itself is kept; tuning and folds are done again, to the same sizes."""
    fit = ("fit", *rows, "--label", "y", "--model", "linear", "--set", "max_iter=3", "--cv", "2")
    kept = ("--checkpoint", "run.ckpt", "--force")
    assert command(*fit, "-o", "whole.skops").returncode == 0
    for _ in range(2):
        done = command(*fit, *kept)
        assert done.returncode == 0, done.stderr
    assert "run.ckpt: had ended after " in done.stderr
    assert "of at most 9, those of 3 classes together." in done.stderr
    one, two = (load_model(tmp_path / f"{name}.skops")[0][-1] for name in ("model", "whole"))
    assert bits(attributes(one)) == bits(attributes(two))


def test_what_cannot_be_kept_is_refused(command, rows, tmp_path):
    kept = ("--checkpoint", "run.ckpt")
    refused(command("fit", *rows, "--label", "y", *kept), "--checkpoint", "'kcrc'", "passes")
    refused(command("fit", *rows, "--model", "KSVD", *kept, "-o", "run.ckpt"), "must end with")
    assert sorted(os.listdir(tmp_path)) == ["rows.npz"]
    assert command("fit", *rows, "--model", "KSVD", *SHORT, *kept).returncode == 0
    before = (tmp_path / "run.ckpt").read_bytes()
    other = command("fit", *rows, "--model", "KSVD", *SHORT, *kept, "--seed", "1")
    refused(other, "run.ckpt", "random_state is 0, and that of this fit 1", "delete this one")
    refused(
        command("fit", *rows, "--model", "KSVD", "--checkpoint", "rows.npz"),
        "rows.npz cannot be gone on from: it is no checkpoint",
    )
    assert (tmp_path / "run.ckpt").read_bytes() == before


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX")
def test_three_kills(tmp_path):
    """Of ``python -m fuzz.checkpoints``, at fresh random moments."""
    done = subprocess.run(
        [sys.executable, "-m", "fuzz.checkpoints", "--count", "3", "--only", "KSVD", "classes"],
        cwd=ROOT, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
