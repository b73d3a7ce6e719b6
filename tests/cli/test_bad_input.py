"""A user's mistakes, through the real command: one message, the right exit code, no traceback."""

import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from contextlib import chdir

import numpy as np
import pytest

from kernelatoms.cli.app import main


def refused(result, *words):
    """Check that a command said what was wrong, in one line, and how."""
    assert result.returncode == 2, result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""
    last = result.stderr.strip().splitlines()[-1]
    assert last.startswith("Error: "), result.stderr
    for word in words:
        assert word in last, last


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("t.csv", b"", ["t.csv is empty"]),
        ("t.csv", b"a,b,k\n", ["no rows"]),
        ("t.csv", b"a,b,k\n1,2,x\n3,4", ["as many fields as the first one (3)"]),
        ("t.csv", bytes(range(256)) * 20, ["binary"]),
        ("t.csv", b"a,b,k\n1,2,x\nmany,4,y\n", ["'a' holds numbers and words", "row 1 (line 3)"]),
        ("t.csv", b"a,b,c\n1,2,x\n3,4,y\n", ["--label", "no column 'k'", "'a', 'b', 'c'"]),
        ("t.csv", b"a,b,k\n1,2,\n3,4,\n", ["the column 'k'", "is empty"]),
        ("t.csv", b"a,b,k\n1,2,x\n3,4,x\n", ["two classes", "every label is"]),
        ("t.csv", b"w,k\nq,x\nr,y\n", ["no column to learn from"]),
        ("t.csv", b"a,k\n1,x\ninf,y\n", ["infinite in row 1 (counted from 0)"]),
        ("t.parquet", b"PAR1 cut short", ["Parquet"]),
        ("t.npy", b"\x93NUMPY cut", ["NumPy"]),
        ("t.npz", b"PK\x03\x04 cut", ["NumPy"]),
        ("t.xls", b"a,b\n1,2\n", ["must end with .csv"]),
    ],
    ids=["empty", "names only", "truncated", "binary", "mixed", "label unknown", "label empty",
         "one class", "words only", "infinite", "parquet", "npy", "npz", "suffix"],
)  # fmt: skip
def test_files_that_cannot_be_learned_from(command, tmp_path, name, content, words):
    (tmp_path / name).write_bytes(content)
    refused(command("fit", name, "--label", "k"), *words)
    assert os.listdir(tmp_path) == [name]


LKDL = ("--label", "species", "--model", "lkdl")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["--label", "species", "--model", "kcrc", "--set", "n_atoms=3"],
            ["n_atoms", "--model lkdl has it"],
        ),
        (["--label", "species", "--model", "lkld"], ["--model", "Did you mean 'lkdl'?"]),
        ([], ["--label", "needs the name of the column"]),
        ([*LKDL, "--set", "n_atms=3"], ["n_atms", "Did you mean 'n_atoms'?"]),
        (["--label", "species", "--set", "n_atoms"], ["name=value"]),
        ([*LKDL, "--set", "n_atoms=0"], ["n_atoms must be at least 1"]),
        ([*LKDL, "--set", "n_atoms=few"], ["n_atoms must be a whole number"]),
        (["--label", "species", "--set", "kernel=rfb"], ["kernel"]),
        ([*LKDL, "--set", "random_state=1"], ["more than one"]),
        (["--label", "species", "--scale", "big"], ["--scale must be one of"]),
        (["--label", "species", "--drop", "x"], ["--drop", "no column 'x'"]),
        (["--label", "species", "--cv", "1"], ["--cv", "at least 2"]),
        (["--label", "species", "--cv", "9"], ["--cv 9", "has 4"]),
        (["--label", "species", "--rows", "X"], ["--rows"]),
        (["--label", "species", "-o", "no/m.skops"], ["folder 'no' does not exist"]),
        (["--label", "species", "-o", "."], ["is a folder"]),
        (["--model", "KSVD", "--cv", "3"], ["--cv"]),
    ],
    ids=lambda value: " ".join(value) if value and value[0].startswith("--") else None,
)  # fmt: skip
def test_arguments_of_fit(command, flowers, tmp_path, arguments, words):
    refused(command("fit", "flowers.csv", *arguments), *words)
    assert os.listdir(tmp_path) == ["flowers.csv"]


@pytest.fixture
def model(command, flowers):
    assert command("fit", "flowers.csv", "--label", "species", "--model", "lkdl").returncode == 0


def test_a_model_on_other_columns(command, model, tmp_path):
    (tmp_path / "o.csv").write_text("petal length,colour\n1,red\n")
    refused(command("predict", "model.skops", "o.csv"), "lacks 'petal width, cm'", "it has")
    np.save(tmp_path / "o.npy", np.eye(2))
    refused(command("predict", "model.skops", "o.npy"), "no column names")
    (tmp_path / "w.csv").write_text('petal length,"petal width, cm"\n1,wide\n')
    refused(command("predict", "model.skops", "w.csv"), "as numbers, but the file has words")
    refused(command("predict", "model.skops", "flowers.csv", "--label", "kind"), "no column 'kind'")
    refused(command("predict", "model.skops", "flowers.csv", "-o", "p.doc"), "must end with")
    refused(command("report", "model.skops", "flowers.csv", "--image-shape", "8"), "HEIGHTxWIDTH")
    refused(command("report", "model.skops", "flowers.csv", "--image-shape", "8x8"), "image_shape")
    for shape in ("8x8x3x2", "8x0", "8x8x", "x8"):
        shaped = command("report", "model.skops", "flowers.csv", "--image-shape", shape)
        refused(shaped, "HEIGHTxWIDTHxCHANNELS")
    shaped = command("report", "model.skops", "flowers.csv", "--image-shape", "8x8x3")
    refused(shaped, "image_shape=(8, 8, 3) makes 192 pixels")
    refused(command("encode", "model.skops", "nothing.csv"), "there is no file")
    lasso = ("encode", "model.skops", "flowers.csv", "--method", "lasso")
    refused(command(*lasso), "needs alpha")
    refused(command(*lasso, "--alpha", "0"), "alpha must be above 0")
    refused(command(*lasso, "--nonzeros", "3"), "n_nonzero_coefs belongs to method='omp'")
    refused(command(*lasso[:-1], "lars", "--alpha", "1"), "method must be one of 'omp', 'lasso'")
    refused(command(*lasso[:-2], "--alpha", "1"), "go with --method")
    refused(command(*lasso[:-2], "--absolute"), "go with --method")
    refused(command(*lasso[:-1], "omp", "--absolute"), "--absolute goes with --max-residual")


def test_no_command_overwrites_what_it_reads(command, flowers, model, tmp_path, capsys):
    """Under any name: the same one, another spelling, a link of either kind."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "link.csv").symlink_to("flowers.csv")
    os.link(flowers, tmp_path / "hard.csv")
    (tmp_path / "link.skops").symlink_to(tmp_path / "model.skops")
    (tmp_path / "model.csv").symlink_to("model.skops")
    before = {name: (tmp_path / name).read_bytes() for name in ("flowers.csv", "model.skops")}
    fit = ("fit", "flowers.csv", "--label", "species")
    predict = ("predict", "model.skops", "flowers.csv")
    encode = ("encode", "model.skops", "flowers.csv")
    report = ("report", "model.skops", "flowers.csv")
    for arguments, output in (
        (fit, "flowers.csv"),
        (fit, "folder/../flowers.csv"),
        (fit, "link.csv"),
        (fit, tmp_path / "hard.csv"),
        (predict, "folder/../flowers.csv"),
        (predict, "hard.csv"),
        (predict, "model.csv"),
        (encode, "link.csv"),
        (("encode", "model.skops", "link.csv"), flowers),
        (("encode", "link.skops", "flowers.csv"), "model.csv"),
        (report, "flowers.csv"),
        (report, "link.skops"),
        (report[:2], "model.skops"),
    ):
        code = run_here(tmp_path, *arguments, "-o", output)
        said = capsys.readouterr()
        assert code == 2, (arguments, output, said.err)
        assert said.out == ""
        assert f"--output: {output} is the file" in said.err
    for name, content in before.items():
        assert (tmp_path / name).read_bytes() == content
    refused(command(*predict, "-o", "flowers.csv"), "--output: flowers.csv is the file")


def run_here(folder, *arguments):
    """Run a command in this process, in a folder; many of them are quick this way."""
    with chdir(folder):
        return main([str(argument) for argument in arguments])


def test_a_model_file_that_is_none(command, flowers, model, tmp_path):
    refused(command("predict", "flowers.csv", "flowers.csv"), "no kernelatoms model file")
    refused(command("predict", "nothing.skops", "flowers.csv"), "there is no model file")
    whole = (tmp_path / "model.skops").read_bytes()
    (tmp_path / "cut.skops").write_bytes(whole[: len(whole) // 2])
    refused(command("info", "cut.skops"), "no kernelatoms model file, or a damaged one")
    newer = tmp_path / "newer.skops"
    newer.write_bytes(whole)
    with zipfile.ZipFile(newer) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    header = json.loads(members["kernelatoms.json"])
    members["kernelatoms.json"] = json.dumps({**header, "format_version": 99})
    with zipfile.ZipFile(newer, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    refused(command("predict", "newer.skops", "flowers.csv"), "format 99", "newer kernelatoms")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write")
def test_a_read_only_folder(command, flowers, tmp_path):
    folder = tmp_path / "closed"
    folder.mkdir()
    folder.chmod(0o500)
    refused(
        command("fit", "flowers.csv", "--label", "species", "-o", "closed/m.skops"),
        "cannot write in the folder 'closed'",
    )


@pytest.mark.skipif(not os.path.exists("/proc/version"), reason="needs a file system like /proc")
def test_a_folder_that_takes_no_files(command, flowers):
    refused(
        command("fit", "flowers.csv", "--label", "species", "-o", "/proc/m.skops"),
        "cannot write in the folder '/proc'",
    )


def test_a_full_disk_leaves_the_old_model(flowers, model, tmp_path):
    """A limit on the size of files stands for the full disk: writes fail half way."""
    resource = pytest.importorskip("resource")
    old = (tmp_path / "model.skops").read_bytes()

    def limit():
        # Without this the system would kill the process instead of failing the write.
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    result = subprocess.run(
        [sys.executable, "-m", "kernelatoms", "fit", "flowers.csv", "--label", "species"],
        cwd=tmp_path, capture_output=True, text=True, preexec_fn=limit,
    )  # fmt: skip
    assert result.returncode == 1, result.stderr
    assert "Traceback" not in result.stderr
    assert "File too large" in result.stderr
    assert (tmp_path / "model.skops").read_bytes() == old
    assert sorted(os.listdir(tmp_path)) == ["flowers.csv", "model.skops"]


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C reaches processes another way")
def test_ctrl_c_in_the_middle(tmp_path):
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "t.npz", X=rng.normal(size=(20_000, 200)), y=np.arange(20_000) % 4)
    (tmp_path / "model.skops").write_bytes(b"PK\x03\x04 old")
    arguments = ["fit", "t.npz", "--label", "y", "--model", "linear"]
    for setting in ("max_iter=100000", "tol=0", "n_atoms=300", "n_nonzero_coefs=60"):
        arguments += ["--set", setting]
    process = subprocess.Popen(
        [sys.executable, "-m", "kernelatoms", *arguments],
        cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        start_new_session=True,
        # Shells start background jobs with Ctrl-C ignored, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    while "numbers: 200 columns" not in process.stderr.readline():  # said before it fits
        assert process.poll() is None
    time.sleep(1)
    assert process.poll() is None, "it was done before it could be stopped"
    os.kill(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert "Stopped before it was done." in errors
    assert (tmp_path / "model.skops").read_bytes() == b"PK\x03\x04 old"
    assert sorted(os.listdir(tmp_path)) == ["model.skops", "t.npz"]


def test_unknown_options_and_commands(command):
    for arguments in (["fly"], ["fit"], ["fit", "x.csv", "--colour"], ["demo", "--seed", "-1"]):
        result = command(*arguments)
        assert result.returncode == 2
        assert "Traceback" not in result.stderr


def test_data_sets_that_do_not_exist(command):
    refused(command("datasets", "uspss"), "no data set 'uspss'")
    refused(command("datasets", "usps", "-o", "u.csv"), "--output writes one of iris")
    refused(command("datasets", "-o", "u.csv"), "name it first")


def test_codes_that_do_not_fit_are_refused_before_they_are_made(tmp_path, monkeypatch, capsys):
    from kernelatoms.cli import encode
    from kernelatoms.features import memory

    monkeypatch.chdir(tmp_path)
    np.save("rows.npy", np.random.default_rng(0).standard_normal((100_000, 2)))
    assert main(["fit", "rows.npy", "--model", "KSVD", "--set", "n_atoms=60", "--set",
                 "max_iter=1"]) == 0  # fmt: skip
    monkeypatch.setattr(memory, "available_bytes", lambda: 90 * 2**20)
    monkeypatch.setattr(encode, "codes_of", lambda *_: pytest.fail("it codes first"))
    assert main(["encode", "model.skops", "rows.npy", "-o", "codes.npy"]) == 2
    error = capsys.readouterr().err
    assert "Dense codes of 100000 rows over 60 atoms need about 0.0894 GiB" in error
    assert "to an .npz file" in error
