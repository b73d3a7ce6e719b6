"""The commands at the top of the README work as they stand there."""

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from kernelatoms.cli.app import main

README = Path(__file__).parents[2] / "README.md"


def first_commands():
    return re.search(r"```bash\n(.*?)```", README.read_text(), re.S)[1].splitlines()


def test_first_commands(tmp_path, monkeypatch, capsys):
    set_up, *commands = [shlex.split(line, comments=True) for line in first_commands()]
    assert set_up[-3:] == ["pip", "install", "."]
    assert [command[:2] for command in commands] == [
        ["kernelatoms", name] for name in ("datasets", "fit", "predict")
    ]
    monkeypatch.chdir(tmp_path)
    for command in commands:
        assert main(command[1:]) == 0
    said = capsys.readouterr().out.splitlines()
    assert [line for line in said if line == "virginica"]


@pytest.mark.slow
def test_first_commands_on_a_machine_with_nothing(tmp_path):
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", README.parent, clone], check=True)
    where = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    done = subprocess.run(
        ["bash", "-e", "-c", "\n".join(first_commands())],
        cwd=clone, env=where, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "virginica" in done.stdout


def test_python_blocks_run():
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.S)
    assert len(blocks) >= 3
    names = {}
    for block in blocks:
        exec(block, names)
    assert names["model"].score(names["test"], names["y_test"]) > 0.97
    assert names["codes"].shape[1] == 128


@pytest.mark.parametrize("name", ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_files_that_are_named_exist(name):
    text = (README.parent / name).read_text()
    for target in re.findall(r"\]\(([\w./-]+\.md)\)", text):
        assert (README.parent / target).exists(), target
