"""What the README tells its reader to do works as it stands there."""

import contextlib
import io
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from kernelatoms.cli.app import main

README = Path(__file__).parents[2] / "README.md"
TEXT = README.read_text()


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


def commands(block):
    return [shlex.split(line, comments=True) for line in block.splitlines()]


def test_it_is_short():
    assert len(TEXT.splitlines()) <= 100


def test_the_first_commands_set_everything_up():
    makefile = (README.parent / "Makefile").read_text()
    assert commands(blocks("bash")[0]) == [["make", "demo"], ["make", "test"]]
    assert re.search("^demo: ", makefile, re.MULTILINE)
    assert re.search("^test: ", makefile, re.MULTILINE)


def test_commands(tmp_path, monkeypatch, capsys):
    asked = commands(blocks("bash")[1])
    assert [command[:2] for command in asked] == [
        ["kernelatoms", name] for name in ("datasets", "fit", "predict")
    ]
    monkeypatch.chdir(tmp_path)
    for command in asked:
        assert main(command[1:]) == 0
    said = capsys.readouterr().out.splitlines()
    assert [line for line in said if line == "virginica"]


@pytest.mark.slow
def test_commands_on_a_machine_with_nothing(tmp_path):
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", README.parent, clone], check=True)
    assert "`pip install .`" in TEXT
    where = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    install = "python3 -m venv .venv && . .venv/bin/activate && pip install .\n"
    done = subprocess.run(
        ["bash", "-e", "-c", install + blocks("bash")[1]],
        cwd=clone, env=where, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "virginica" in done.stdout


def test_the_example_prints_what_it_says():
    (example,) = blocks("python")
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(example, {})
    assert out.getvalue().strip() == re.search(r"\)  # (.*)", example)[1]


@pytest.mark.parametrize("name", ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_files_that_are_named_exist(name):
    text = (README.parent / name).read_text()
    for target in re.findall(r"\]\(([\w./-]+\.(?:md|png))\)", text):
        assert (README.parent / target).exists(), target
