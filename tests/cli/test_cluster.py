"""``--scheduler`` and ``--workers``: what is refused before work; more in ``tests/cluster``."""

import sys
from contextlib import nullcontext

import numpy as np
import pytest

from kernelatoms import KSVD, save_model
from kernelatoms.cli import cluster
from kernelatoms.cli.app import main
from kernelatoms.files.tables import on_workers

COMMANDS = {
    "fit": ["fit", "t.npy", "--model", "KSVD"],
    "predict": ["predict", "m.skops", "t.npy"],
    "encode": ["encode", "m.skops", "t.npy"],
}


@pytest.fixture
def refused(tmp_path, monkeypatch, capsys):
    """Run a command that must be refused; what it says."""
    monkeypatch.chdir(tmp_path)
    X = np.random.default_rng(0).standard_normal((30, 4))
    np.save("t.npy", X)
    save_model(KSVD(n_atoms=3, n_nonzero_coefs=1, max_iter=1).fit(X), "m.skops")

    def run(*arguments):
        before = sorted(tmp_path.iterdir())
        assert main([str(argument) for argument in arguments]) == 2
        assert sorted(tmp_path.iterdir()) == before
        out, err = capsys.readouterr()
        assert out == ""
        assert "Traceback" not in err
        return err

    return run


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_cluster_is_there_or_started(refused, command):
    said = refused(*command, "--workers", "2", "--scheduler", "tcp://127.0.0.1:1")
    assert "--scheduler names a cluster that exists, and --workers starts one" in said
    assert "greater than or equal to 1" in refused(*command, "--workers", "0")
    assert "--scheduler: give an address" in refused(*command, "--scheduler", " ")


def test_workers_use_no_device(refused):
    with pytest.raises(ValueError, match=r"workers compute on the CPU, got 'cuda'.*--workers"):
        cluster.are_asked_for(None, 2, "cuda")
    assert cluster.are_asked_for(None, 2, "cpu")
    assert not cluster.are_asked_for(None, None, "cuda")


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_workers_read_files(refused, command, tmp_path):
    (tmp_path / "t.jsonl").write_text('{"a": 1}\n')

    def of(table):
        return [table if word == "t.npy" else word for word in command]

    assert "standard input cannot be read by workers" in refused(*of("-"), "--workers", "1")
    assert "nothing.npy does not exist" in refused(*of("nothing.npy"), "--workers", "1")
    assert "no file matches no*.npy" in refused(*of("no*.npy"), "--workers", "1")
    said = refused(*of("t.jsonl"), "--workers", "1")
    assert "workers read a table in parts, and .jsonl files are read as a whole" in said


def test_models_that_need_all_rows_are_refused(refused):
    said = refused("fit", "t.npy", "--label", "0", "--model", "kcrc", "--workers", "1")
    assert "--model: kcrc learns from all rows at once, and workers hold a part of them" in said
    assert "lkdl" in said


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_without_dask_the_extra_is_named(refused, command, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert "pip install 'kernelatoms[dask]'" in refused(*command, "--workers", "1")


def test_no_scheduler_answers(refused, monkeypatch):
    pytest.importorskip("distributed")
    from kernelatoms.rows.dask import connection

    monkeypatch.setattr(connection, "_ANSWER", 0.2)
    for address in ("tcp://127.0.0.1:1", "no address"):
        said = refused(*COMMANDS["encode"], "--scheduler", address)
        assert f"--scheduler: no Dask scheduler answers at '{address}'" in said
        assert said.count("\n") == 1


class KilledWorker(Exception):  # noqa: N818 - as Dask calls it
    pass


@pytest.mark.parametrize(
    ("error", "cause", "kind", "said"),
    [(RuntimeError("r"), KilledWorker("k"), OSError, "several workers died .* Dask says: k"),
     (ConnectionError("c"), None, OSError, "connection to the Dask cluster was lost.*--checkpoint"),
     (RuntimeError("a bug"), None, RuntimeError, "a bug")],
)  # fmt: skip
def test_losses_are_said_in_words(monkeypatch, error, cause, kind, said, capsys):
    monkeypatch.setattr(on_workers, "connected", lambda *_: nullcontext(2))
    with pytest.raises(kind, match=said), cluster.connected(None, 2):
        raise error from cause
    assert "by 2 workers of this machine" in capsys.readouterr().err
