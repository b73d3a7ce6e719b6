"""``--workers`` and ``--scheduler``: the command line on Dask clusters."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas
import pytest
import scipy.sparse
from distributed import LocalCluster
from sklearn.datasets import load_digits

from kernelatoms import load_model
from kernelatoms.cli.app import main
from kernelatoms.files.tables import on_workers

pytestmark = pytest.mark.cluster

FIT = ("fit", "big/*.parquet", "--label", "digit", "--model", "lkdl-images", "--set", "n_atoms=10",
       "--set", "n_nonzero_coefs=3", "--set", "max_iter=3")  # fmt: skip


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run a command in this process; (output, errors)."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        assert code == 0, err
        return out, err

    return run


@pytest.fixture
def digits(tmp_path):
    """Digits in three files, some of them without a label."""
    X, y = load_digits(return_X_y=True)
    frame = pandas.DataFrame(X[:900], columns=[f"p{i}" for i in range(64)])
    frame["digit"] = y[:900].astype(float)
    frame.loc[::50, "digit"] = np.nan
    (tmp_path / "big").mkdir()
    for i in range(3):
        frame[i * 300 : (i + 1) * 300].to_parquet(
            tmp_path / "big" / f"part-{i}.parquet", row_group_size=100
        )
    return frame


def components(path):
    return np.concatenate([one.components_ for one in load_model(path)[0][-1].dictionaries_])


def test_any_number_of_workers_learns_the_same_model(run, digits, tmp_path, monkeypatch):
    monkeypatch.setattr(on_workers, "_CHUNK_BYTES", 200 * 65 * 8)  # two row groups
    found = []
    for n in (1, 2, 3):
        out, err = run(*FIT, "--workers", n, "-o", f"{n}.skops")
        some = f"{n} worker{'s' * (n > 1)}"
        assert f"The table is read in parts, by {some} of this machine." in err
        assert "Note: 882 rows in 6 chunks" in err
        assert "chunks of 16 to 64 MiB" not in err
        assert "882 rows, 64 features, 10 classes; fitted" in out
        found.append(components(tmp_path / f"{n}.skops"))
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
    _, err = run("predict", "2.skops", "big/*.parquet", "-o", "p.csv")
    assert float(err.split("%")[0]) > 90


def test_answers_of_workers_are_the_same_bytes(run, digits, tmp_path, monkeypatch):
    from kernelatoms.cli import parts

    monkeypatch.setattr(parts, "_MOST_ROWS", 192)
    run(*FIT, "--memory", "100kB")
    asked = "predict", "model.skops", "big/*.parquet", "--scores"
    told = run(*asked, "-o", "here.csv")
    there = run(*asked, "-o", "there.csv", "--workers", 2)
    assert (tmp_path / "here.csv").read_bytes() == (tmp_path / "there.csv").read_bytes()
    assert there[1].endswith(told[1])
    asked = "encode", "model.skops", "big/*.parquet"
    run(*asked, "-o", "here.npz")
    run(*asked, "-o", "there.npz", "--workers", 2)
    here, there = (scipy.sparse.load_npz(tmp_path / f"{name}.npz") for name in ("here", "there"))
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(here, name), getattr(there, name))


def test_a_cluster_that_exists_and_a_checkpoint(run, digits, tmp_path):
    with LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None,
        scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
    ) as cluster:  # fmt: skip
        asked = [*FIT, "--scheduler", cluster.scheduler_address, "--checkpoint", "run.ckpt"]
        _, err = run(*asked)
        assert f"by 1 worker of the cluster at {cluster.scheduler_address}." in err
        first = components(tmp_path / "model.skops")
        _, err = run(*asked)
        assert "run.ckpt: had ended after" in err
        np.testing.assert_array_equal(components(tmp_path / "model.skops"), first)
        assert len(cluster.scheduler.workers) == 1  # it is not the command's to close


def test_an_error_of_a_worker_is_one_sentence(run, digits, tmp_path, capsys):
    run(*FIT, "--memory", "100kB")
    asked = "encode", "model.skops", "big/*.parquet", "--method", "omp", "--nonzeros", "0"
    for more in ((), ("--workers", "1")):
        assert main([*asked, *more]) == 2
        err = capsys.readouterr().err
        assert "Error: " in err
        assert "Traceback" not in err
        assert not (tmp_path / "codes.npz").exists()


@pytest.mark.skipif(os.name != "posix", reason="Ctrl-C reaches processes another way")
def test_ctrl_c_ends_the_command_and_its_workers(run, digits, tmp_path):
    asked = [*FIT, "--set", "max_iter=100000", "--set", "tol=0", "--workers", "2"]
    said = tmp_path / "said"
    with said.open("w") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "kernelatoms", *asked], cwd=tmp_path, stderr=file,
            stdout=file, start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )  # fmt: skip
    deadline = time.monotonic() + 60
    while "chunks" not in said.read_text():
        assert process.poll() is None, said.read_text()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    time.sleep(0.5)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all processes
    assert process.wait(timeout=30) == 130
    assert said.read_text().endswith("\nStopped before it was done.\n")
    assert "Traceback" not in said.read_text()
    assert not (tmp_path / "model.skops").exists()
    while any_left(process.pid):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def any_left(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
