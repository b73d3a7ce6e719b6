"""``kernelatoms compress``, ``decompress``, ``inspect`` and ``codec fit``."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from kernelatoms.cli.app import app


@pytest.fixture
def sensors(tmp_path):
    t = np.arange(400)
    lines = ["time,sensor,temp,hum,count"]
    lines += [
        f"2024-01-01 {i // 60:02}:{i % 60:02},s{i % 3},{20 + np.sin(i / 30):.2f},"
        f"{50 + i % 7}.5,{i * 7}"
        for i in t
    ]
    (tmp_path / "sensors.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_there_and_back(sensors, command):
    done = command("compress", "sensors.csv", "--model", "lags")
    assert done.returncode == 0, done.stderr
    assert "times smaller, with the model 'lags': sensors.csv.kac" in done.stdout
    assert "Errors are at most 0.01 of every row's norm; the largest are 0.00" in done.stdout
    again = command("compress", "sensors.csv")
    assert (again.returncode, again.stdout) == (2, "")
    assert again.stderr.startswith("Error: sensors.csv.kac is there already; --force replaces it")
    done = command("decompress", "sensors.csv.kac", "-o", "back.csv")
    assert done.stdout.endswith("bytes: back.csv\n")
    one, other = ((sensors / f).read_text().splitlines() for f in ("sensors.csv", "back.csv"))
    assert [line.split(",")[:2] for line in one] == [line.split(",")[:2] for line in other]
    assert [line.split(",")[4] for line in one] == [line.split(",")[4] for line in other]
    assert "is there already" in command("decompress", "sensors.csv.kac").stderr
    some = command("decompress", "sensors.csv.kac", "-o", "some.csv", "--rows", "10:12", "--json")
    assert json.loads(some.stdout)["output"] == "some.csv"
    assert (sensors / "some.csv").read_text().splitlines() == [other[0], *other[11:13]]
    (sensors / "tiny.csv").write_text("a\n1\n")
    grown = command("compress", "tiny.csv").stdout
    assert "4 bytes became" in grown
    assert "times larger" in grown


def test_inspection(sensors, command):
    command("compress", "sensors.csv", "--max-error", "2%", "--model", "lags")
    arguments = ("inspect", "sensors.csv.kac", "--original", "sensors.csv", "--picture", "p.png")
    done = command(*arguments)
    assert done.returncode == 0, done.stderr
    for words in ("400 rows, 5 columns, 2 of them approximate", "times smaller", "all undamaged",
                  "error at most  0.02 of every row's norm", "lags (stored", "exact columns",
                  "measured on the", "Picture: p.png"):  # fmt: skip
        assert words in done.stdout
    assert (sensors / "p.png").read_bytes()[:4] == b"\x89PNG"
    info = json.loads(command("inspect", "sensors.csv.kac", "--json").stdout)
    assert sum(info["sections"].values()) == info["n_bytes"]
    assert info["max_error"] == 0.02
    assert "is there already" in command(*arguments).stderr
    (sensors / "other.csv").write_text(
        (sensors / "sensors.csv").read_text().replace(".5,", ".9,").replace("20.", "30.")
    )
    other = command("inspect", "sensors.csv.kac", "--original", "other.csv")
    assert other.returncode == 2
    assert "are not within the bound; is it the file that was compressed?" in other.stderr


def test_a_model_of_history(sensors, command):
    for name in ("monday", "tuesday"):
        np.save(sensors / f"{name}.npy", np.random.default_rng(0).normal(size=(60, 5)).cumsum(0))
    done = command("codec", "fit", "monday.npy", "-o", "week.kam", "--model", "lags")
    assert "The model 'lags'" in done.stdout
    assert "Chosen: lags, by bytes" in done.stdout
    done = command("compress", "tuesday.npy", "--model", "week.kam", "--no-store-model")
    assert done.returncode == 0, done.stderr
    bare = command("decompress", "tuesday.npy.kac", "-o", "b.npy")
    assert (bare.returncode, bare.stderr.count("\n")) == (2, 1)
    assert "give the model file with the digest" in bare.stderr
    assert command("decompress", "tuesday.npy.kac", "-o", "b.npy", "--model", "week.kam").stdout
    assert "in a file of its own (not stored" in command("inspect", "tuesday.npy.kac").stdout
    more = command("compress", "monday.npy", "-o", "tuesday.npy.kac", "--append",
                   "--model", "week.kam", "--json")  # fmt: skip
    assert json.loads(more.stdout)["n_rows"] == 120


MISTAKES = {
    ("compress", "nothing.csv"): "there is no file nothing.csv",
    ("compress", "sensors.csv", "--max-error", "200%"): "--max-error must be above 0 and at most",
    ("compress", "sensors.csv", "--max-error", "x"): "--max-error takes a share such as 0.01 or 1%",
    ("compress", "sensors.csv", "--ratio", "5", "--max-error", "1%"): "give one of them, not both",
    ("compress", "sensors.csv", "--model", "best"): "model must be one of 'auto'",
    ("compress", "sensors.csv", "--exact", "nope"): "exact: sensors.csv has no column 'nope'",
    ("compress", "sensors.csv", "--no-store-model"): "store_model=False needs model to be a .kam",
    ("compress", "sensors.csv", "-o", "sensors.csv", "--force"): "is the file sensors.csv itself",
    ("decompress", "sensors.csv", "-o", "b.csv"): "sensors.csv: this is not a compressed file",
    ("decompress", "sensors.csv", "-o", "b.csv", "--rows", "5"): "--rows takes START:STOP",
    ("inspect", "sensors.csv"): "sensors.csv: this is not a compressed file",
    ("inspect", "sensors.csv", "--picture", "p.txt"): "--picture: p.txt must end with .png",
    ("codec", "fit", "sensors.csv", "-o", "m.txt"): "--output: m.txt must end with .kam",
}


@pytest.mark.parametrize("arguments", MISTAKES, ids=" ".join)
def test_mistakes_are_told_in_one_line(sensors, command, arguments):
    done = command(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Error: ")
    assert done.stderr.count("\n") == 1
    assert MISTAKES[arguments] in done.stderr
    assert sorted(p.name for p in sensors.iterdir() if p.name[0] != ".") == ["sensors.csv"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("decompress", "x.kac", "-o", "back.npy"),
        ("inspect", "x.kac", "--original", "x.npy"),
        ("compress", "x.npz", "-o", "x.kac", "--append"),
        ("codec", "fit", "x.npz", "-o", "x.kam"),
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_files_may_become_what_is_allowed(tmp_path, arguments):
    from kernelatoms import compress

    np.save(tmp_path / "x.npy", np.ones((2000, 2)))
    np.savez_compressed(tmp_path / "x.npz", np.ones((2000, 2)))
    compress(tmp_path / "x.npz" if "--append" in arguments else tmp_path / "x.npy",
             tmp_path / "x.kac", model="lags")  # fmt: skip
    paths = [str(tmp_path / a) if "." in a else a for a in arguments]
    for size, code in (("20KiB", 2), ("40KB", 0)):
        said = CliRunner().invoke(app, [*paths, "--max-size", size])
        assert said.exit_code == code, said.output
    said = CliRunner().invoke(app, [*paths, "--max-size", "20KiB", *["--force"] * ("-o" in paths)])
    words = " ".join(said.output.split())
    assert "would become 32," in words
    assert "or more, and 20,480 bytes are allowed" in words
    assert "Traceback" not in words
