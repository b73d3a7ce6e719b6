"""Options that commands have in common."""

import pytest
import typer
from typer.testing import CliRunner

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
