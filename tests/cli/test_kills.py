"""A few of the kills of ``python -m fuzz.kills``, at fresh random moments."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX")
@pytest.mark.parametrize("name", ["KILL", "INT"])
def test_nothing_is_torn(name):
    """On a machine that other tests keep busy, Ctrl-C may take longer than by itself."""
    done = subprocess.run(
        [sys.executable, "-m", "fuzz.kills", "--signal", name, "--count", "8", "--patience", "5"],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
