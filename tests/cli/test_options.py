"""Options that commands have in common."""

import gzip

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from kernelatoms import KSVD, save_model
from kernelatoms.cli.app import app
from kernelatoms.cli.options import MaxSize, parse_size


@pytest.mark.parametrize(
    ("text", "size"),
    [("20GiB", 20 << 30), ("500MB", 500 * 10**6), ("4096", 4096), ("4096B", 4096), ("1kB", 1000),
     ("1 KiB", 1024), ("1.5gib", 3 << 29), ("2TiB", 2 << 40), (" 7 ", 7), (7, 7)],
)  # fmt: skip
def test_sizes_are_read(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "text",
    ["", "0", "0GiB", "-1", "GiB", "20G", "20iB", "1.5", "1e9", "twenty", "20GiBs", "nan", "²"],
)
def test_other_words_are_refused(text):
    with pytest.raises(typer.BadParameter, match="such as 20GiB, 500MB or 4096"):
        parse_size(text)


def test_commands_get_bytes():
    app, heard = typer.Typer(), []

    @app.command()
    def read(max_size: MaxSize = None) -> None:
        heard.append(max_size)

    assert CliRunner().invoke(app, ["--max-size", "2KiB"]).exit_code == 0
    assert CliRunner().invoke(app, []).exit_code == 0
    assert heard == [2048, None]
    done = CliRunner().invoke(app, ["--max-size", "lots"])
    assert done.exit_code == 2
    assert "--max-size" in done.output
    assert "20GiB" in done.output


@pytest.fixture
def zeros(tmp_path):
    """A table of a kilobyte that becomes one of a megabyte."""
    lines = b"a,b,kind\n" + b"0.5,1,x\n1.5,2,y\n" * 4000
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(lines))
    return tmp_path / "t.csv.gz"


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_commands_say_by_which_option_a_table_may_become_more(zeros):
    for command in (["info"], ["fit", "--label", "kind"], ["denoise", "-o", "x.csv"]):
        done = run(command[0], zeros, *command[1:], "--max-size", "1kB")
        assert done.exit_code == 2
        assert "and 1,000 bytes are allowed" in done.output
        assert "allow more by --max-size, such as --max-size 20GiB." in done.output
    assert run("info", zeros, "--max-size", "10MB").exit_code == 0
    assert run("info", zeros).exit_code == 0


def test_commands_say_by_which_option_a_model_may_become_more(zeros, tmp_path):
    model = save_model(KSVD(2, max_iter=1).fit(np.eye(2)), tmp_path / "m.skops")
    others = ["-o", tmp_path / "x.csv"]
    for command in (["info", model], ["report", model], ["encode", model, zeros, *others],
                    ["explain", model, zeros, "--row", "0"], ["predict", model, zeros, *others],
                    ["decode", model, zeros, *others]):  # fmt: skip
        done = run(*command, "--max-size", "1kB")
        assert done.exit_code == 2, command
        assert "m.skops was not opened: its" in done.output
        assert "--max-size 20GiB" in done.output
    done = run("info", model, "--max-size", "1MB")
    assert done.exit_code == 0
