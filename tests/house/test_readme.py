"""The commands at the top of the README work as they stand there."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

from kernelatoms.cli.app import main

README = Path(__file__).parents[2] / "README.md"
FLOWERS = Path(__file__).parents[1] / "cli" / "flowers.csv"


def test_first_commands(tmp_path, monkeypatch, capsys):
    block = re.search(r"```bash\n(.*?)```", README.read_text(), re.S)[1]
    commands = [
        shlex.split(line, comments=True)[1:]
        for line in block.splitlines()
        if line.startswith("kernelatoms ")
    ]
    assert [command[0] for command in commands] == ["fit", "predict"]
    monkeypatch.chdir(tmp_path)
    shutil.copy(FLOWERS, tmp_path)
    for command in commands:
        assert main(command) == 0
    assert 'virginica, late"' in capsys.readouterr().out


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
