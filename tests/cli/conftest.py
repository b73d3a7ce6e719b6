"""The real command, in a process of its own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture
def command(tmp_path):
    """Run ``kernelatoms ...`` in an empty folder; returns the finished process."""

    def run(*arguments, **options):
        environment = {**os.environ, "COLUMNS": "100", **options.pop("env", {})}
        environment.pop("KERNELATOMS_DATA", None)
        return subprocess.run(
            [sys.executable, "-m", "kernelatoms", *map(str, arguments)],
            cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, **options,
        )  # fmt: skip

    return run


@pytest.fixture
def flowers(tmp_path):
    """A table made by hand: quotes, a text label, an identifier, a missing value."""
    path = tmp_path / "flowers.csv"
    shutil.copy(Path(__file__).with_name("flowers.csv"), path)
    return path
