"""The real command, in a process of its own."""

import os
import subprocess
import sys

import pytest


@pytest.fixture
def command(tmp_path):
    """Run ``kernelatoms ...`` in an empty folder; returns the finished process."""

    def run(*arguments, **options):
        environment = {**os.environ, "COLUMNS": "100", **options.pop("env", {})}
        environment.pop("KERNELATOMS_DATA", None)
        return subprocess.run(
            [sys.executable, "-m", "kernelatoms.cli.app", *map(str, arguments)],
            cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, **options,
        )  # fmt: skip

    return run


FLOWERS = """id,"petal length","petal width, cm",garden,species
1,1.4,0.2,"north, upper",setosa
2,1.3,0.2,south,setosa
3,1.5,,north,setosa
4,1.7,0.4,"the ""old"" one",setosa
5,4.7,1.4,south,versicolor
6,4.5,1.5,north,versicolor
7,4.9,1.5,south,versicolor
8,4.0,1.3,north,versicolor
9,6.0,2.5,south,"virginica, late"
10,5.1,1.9,north,"virginica, late"
11,5.9,2.1,south,"virginica, late"
12,5.6,1.8,north,"virginica, late"
"""


@pytest.fixture
def flowers(tmp_path):
    """A table made by hand: quotes, a text label, an identifier, a missing value."""
    path = tmp_path / "flowers.csv"
    path.write_text(FLOWERS)
    return path
