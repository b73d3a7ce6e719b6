"""Several writers of one compressed file: nobody's rows are lost without a word."""

import errno
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from files import writers
from kernelatoms import compress, decompress
from kernelatoms.cli.app import app
from kernelatoms.codec.arguments import open_compressed
from kernelatoms.codec.packed.arrays import decode_array
from kernelatoms.files import locking
from kernelatoms.files.locking import one_writer

EXACT = {"max_error": None, "model": "lags"}
OPTIONS = {
    "max_error": None, "max_absolute": None, "ratio": None, "model": "lags", "approximate": (),
    "exact": (), "symmetric": None, "block_rows": None, "store_model": True,
}  # fmt: skip

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@pytest.fixture
def place(tmp_path):
    """A folder with rows, and a compressed file of them."""
    np.save(tmp_path / "rows.npy", np.arange(8.0).reshape(4, 2))
    compress(tmp_path / "rows.npy", tmp_path / "all.kac", **EXACT)
    return tmp_path


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(locking, "PATIENCE", 0.0)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@needs_fork
def test_ten_writers_at_once(tmp_path):
    there = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, sys.path)),
             "KERNELATOMS_NUM_THREADS": "1"}  # fmt: skip
    done = subprocess.run([sys.executable, writers.__file__, str(tmp_path)], env=there,
                          capture_output=True, text=True, timeout=90)  # fmt: skip
    said = [line.split(" ", 2) for line in done.stdout.splitlines()]
    assert len(said) == 2 * writers.N_WRITERS, done.stderr
    for target in ("patient.kac", "impatient.kac"):
        expected = [writers.rows_of(-1)] * 2
        for writer, words in [line[1:] for line in said if line[0] == target]:
            if words == "done":
                expected.append(writers.rows_of(int(writer)))
            else:
                assert target == "impatient.kac"
                assert words.startswith("BlockingIOError: ")
                assert f"{target} is being written by another process" in words
        rows = decode_array((tmp_path / target).read_bytes())
        assert sorted(map(tuple, rows)) == sorted(map(tuple, np.concatenate(expected)))
        assert (tmp_path / f"link-{target}").is_symlink()
    assert not [name for name in names(tmp_path) if name.startswith(".")]


def test_threads_wait_for_each_other(place, monkeypatch):
    monkeypatch.setattr(locking, "PATIENCE", 60.0)
    heard = []

    def add(i):
        np.save(place / f"{i}.npy", np.full((3, 2), 10.0 + i))
        compress(place / f"{i}.npy", place / "all.kac", append=True)
        heard.append(i)

    crew = [threading.Thread(target=add, args=(i,)) for i in range(4)]
    for thread in crew:
        thread.start()
    for thread in crew:
        thread.join()
    rows = decode_array((place / "all.kac").read_bytes())[4:, 0]
    assert sorted(rows) == sorted(10.0 + i for i in heard for _ in range(3))
    assert len(heard) == 4


@pytest.mark.usefixtures("impatient")
def test_who_cannot_wait_says_so_and_changes_nothing(place):
    before = (place / "all.kac").read_bytes()
    with one_writer(place / "all.kac"):
        for append in (True, False):
            with pytest.raises(BlockingIOError, match=r"all\.kac is being written by another"):
                compress(place / "rows.npy", place / "all.kac", append=append)
        command = ["compress", str(place / "rows.npy"), "-o", str(place / "all.kac"), "--append"]
        said = CliRunner().invoke(app, command)
        assert said.exit_code == 1
        assert "all.kac is being written by another process or thread" in said.output
        assert "Traceback" not in said.output
        # Other files are nobody's concern, and readers need not wait.
        compress(place / "rows.npy", place / "other.kac", **EXACT)
        decompress(place / "all.kac", place / "back.npy")
    assert (place / "all.kac").read_bytes() == before
    assert names(place) == ["all.kac", "back.npy", "other.kac", "rows.npy"]
    assert compress(place / "rows.npy", place / "all.kac", append=True).n_rows == 8


@needs_fork
@pytest.mark.usefixtures("impatient")
def test_a_lock_ends_with_its_process(place):
    """Killed while it writes: the lock file stays, and the next writer takes it over."""
    heard, tell = os.pipe()
    child = os.fork()
    if child == 0:
        with one_writer(place / "all.kac"):
            os.write(tell, b"x")
            signal.pause()
    os.read(heard, 1)
    with pytest.raises(BlockingIOError):
        compress(place / "rows.npy", place / "all.kac", append=True)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert ".all.kac.lock" in names(place)
    assert compress(place / "rows.npy", place / "all.kac", append=True).n_rows == 8
    assert names(place) == ["all.kac", "rows.npy"]


@pytest.mark.usefixtures("impatient")
def test_a_lock_that_was_removed_meanwhile_is_none(place, monkeypatch):
    """Who waited for it has got a file that nobody finds any more."""
    lock, file = locking._lock_now, place / ".all.kac.lock"
    calls = []

    def late(handle):
        lock(handle)
        if not calls:
            file.unlink()
            file.touch()
        calls.append(handle)

    monkeypatch.setattr(locking, "_lock_now", late)
    monkeypatch.setattr(locking, "PATIENCE", 1.0)
    with one_writer(place / "all.kac"):
        monkeypatch.setattr(locking, "PATIENCE", 0.0)
        assert len(calls) == 2
        with pytest.raises(BlockingIOError), one_writer(place / "all.kac"):
            raise AssertionError("two at once")
    assert not file.exists()


def test_interrupted_while_waiting(place):
    def interrupt():
        raise KeyboardInterrupt

    with one_writer(place / "all.kac"):
        with pytest.raises(KeyboardInterrupt), one_writer(place / "all.kac", interrupt):
            raise AssertionError("two at once")
        assert ".all.kac.lock" in names(place)
    assert names(place) == ["all.kac", "rows.npy"]


def test_the_lock_goes_with_whatever_happens(place):
    with pytest.raises(ZeroDivisionError), one_writer(place / "all.kac"):
        raise ZeroDivisionError
    assert names(place) == ["all.kac", "rows.npy"]


@pytest.mark.parametrize("locks", [True, False], ids=["locks", "no locks"])
def test_a_program_that_knows_of_no_locks_loses_nothing(place, monkeypatch, locks):
    """The file is replaced, removed or there at last, just before rows are added to it."""
    if not locks:

        def none(handle):
            raise OSError(errno.ENOLCK, "No locks available")

        monkeypatch.setattr(locking, "_lock_now", none)
    target = place / "all.kac"
    other = target.read_bytes() + b"other"

    def meanwhile(done, total, what):
        if what == "compressing":
            (place / "new").write_bytes(other)
            (place / "new").replace(target)

    with pytest.raises(BlockingIOError, match="was changed by another program meanwhile"):
        compress(place / "rows.npy", target, append=True, on_step=meanwhile, **OPTIONS)
    assert target.read_bytes() == other
    target.unlink()
    with pytest.raises(BlockingIOError, match="was changed by another program meanwhile"):
        compress(place / "rows.npy", target, append=True, on_step=meanwhile, **OPTIONS)
    assert target.read_bytes() == other
    assert names(place) == ["all.kac", "rows.npy"]


def test_a_reader_keeps_the_file_that_it_opened(place):
    with open_compressed(place / "all.kac") as opened:
        compress(place / "rows.npy", place / "all.kac", append=True)
        compress(place / "rows.npy", place / "all.kac", max_error=0.5, model="exact")
        blocks = [block.matrix for block in opened.blocks()]
    assert np.array_equal(np.concatenate(blocks), np.arange(8.0).reshape(4, 2))


def test_a_name_that_is_taken_while_waiting_is_not_replaced(place):
    target = place / "rows.npy.kac"
    release = threading.Event()

    def hold():
        with one_writer(target):
            held.set()
            release.wait(10)
            target.write_bytes(b"somebody's")

    held = threading.Event()
    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(10)

    def waiting(done, total, what):
        if what == "waiting for another writer":
            release.set()

    with pytest.raises(FileExistsError, match="is there already"):
        compress(place / "rows.npy", append=False, on_step=waiting, **OPTIONS)
    thread.join()
    assert target.read_bytes() == b"somebody's"


def test_a_lock_file_that_leads_elsewhere_is_not_followed(place):
    victim = place / "victim"
    (place / ".all.kac.lock").symlink_to(victim)
    with pytest.raises(OSError):
        compress(place / "rows.npy", place / "all.kac", append=True)
    assert not victim.exists()
    assert Path(place / "all.kac").exists()
