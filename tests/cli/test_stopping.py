"""Ctrl-C at any moment: one word, exit code 130, no traceback, nothing half written."""

import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from draws import later

pytestmark = pytest.mark.skipif(os.name != "posix", reason="Ctrl-C reaches processes another way")

# In C, without the GIL, for a minute: what Ctrl-C itself cannot interrupt.
STUBBORN = "hashlib.pbkdf2_hmac('sha256', b'', b'', 10**9)"
SWALLOWS = """
        try:
            time.sleep(600)
        except BaseException:
            time.sleep(600)"""
KERNEL = """
import atexit, hashlib, os, signal, time

class Kernel:
    def __call__(self, A, B):
        open("started", "w").close()
        {work}
        return A @ B.T
"""
FIT = ("fit", "t.npy", "--model", "KernelKSVD", "--set", "kernel=own:Kernel", "--set", "n_atoms=2",
       "--set", "n_nonzero_coefs=1")  # fmt: skip


@pytest.fixture
def start(tmp_path):
    """Start ``kernelatoms fit`` with a kernel that does ``work``; wait until it is in it."""
    np.save(tmp_path / "t.npy", np.random.default_rng(0).standard_normal((20, 3)))
    (tmp_path / "model.skops").write_bytes(b"PK\x03\x04 old")

    def begin(work="time.sleep(600)", command=("-m", "kernelatoms", *FIT), env=None):
        (tmp_path / "own.py").write_text(KERNEL.format(work=work))
        process = subprocess.Popen(
            [sys.executable, *command],
            cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, **(env or {})},
            # Shells start background jobs with Ctrl-C ignored, and children inherit that.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )  # fmt: skip
        deadline = time.monotonic() + 120
        while not (tmp_path / "started").exists():
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.01)
        return process

    return begin


def stop(process, times=1):
    """Press Ctrl-C; the process must end with one word."""
    pressed = time.monotonic()
    for _ in range(times):
        process.send_signal(signal.SIGINT)
        time.sleep(0.02)
    output, errors = process.communicate(timeout=60)
    seconds = time.monotonic() - pressed
    assert process.returncode == 130, errors
    # What was said of the columns before does not count.
    said = re.sub(r"\AColumns of .*\n(  .*\n)+", "", errors)
    assert said == "\nStopped before it was done.\n"
    assert output == ""
    assert seconds < 10, "it waited for the work"  # under a second on an idle machine


@pytest.mark.parametrize("times", [later(1), 3])
@pytest.mark.parametrize("work", [later("time.sleep(600)"), STUBBORN, SWALLOWS])
def test_whatever_a_command_is_at(work, times, start, tmp_path):
    stop(start(work), times)
    assert (tmp_path / "model.skops").read_bytes() == b"PK\x03\x04 old"
    assert sorted(set(os.listdir(tmp_path)) - {"__pycache__"}) == [
        "model.skops", "own.py", "started", "t.npy",
    ]  # fmt: skip


@pytest.mark.parametrize("work", [later("time.sleep(600)"), STUBBORN])
def test_while_modules_are_imported(work, start, tmp_path):
    slow = tmp_path / "slow"
    slow.mkdir()
    (slow / "typer.py").write_text(
        f"import hashlib, time\nopen('started', 'w').close()\n{work}\nraise SystemExit(5)"
    )
    path = os.pathsep.join([str(slow), os.environ.get("PYTHONPATH", "")])
    stop(start(env={"PYTHONPATH": path}), times=2)


@pytest.mark.parametrize("work", [later("time.sleep(600)"), STUBBORN])
def test_while_a_file_is_written(work, start, tmp_path):
    code = (
        "import hashlib, os, sys, time; import kernelatoms.files.writing as writing\n"
        f"def fsync(_):\n    open('started', 'w').close()\n    {work}\n"
        "writing.os.fsync = fsync\n"
        f"sys.argv = ['kernelatoms', 'datasets', 'iris', '-o', 'iris.csv']\n"
        "from kernelatoms.__main__ import main; main()"
    )
    (tmp_path / "iris.csv").write_bytes(b"old")
    stop(start(command=("-c", code)))
    assert (tmp_path / "iris.csv").read_bytes() == b"old"
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".tmp")]


LAST_MOMENT = """global last
        class Last:
            def __del__(self, kill=os.kill, me=os.getpid()):
                kill(me, 2)
        last = last if "last" in globals() else Last()"""


@pytest.mark.parametrize(
    "work", [later("atexit.register(os.kill, os.getpid(), signal.SIGINT)"), LAST_MOMENT]
)
def test_when_it_is_done_there_is_nothing_to_stop(work, start):
    process = start(work)
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert "Model: model.skops" in output
    assert "Traceback" not in errors


@pytest.mark.slow
def test_a_job_in_the_background_ignores_it(start):
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        f"sys.argv = ['kernelatoms', *{FIT!r}]\nfrom kernelatoms.__main__ import main; main()"
    )
    process = start("time.sleep(1)", command=("-c", code))
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors


@pytest.mark.parametrize("redirect", [later("|"), "2>&1 |"])
@pytest.mark.parametrize("arguments", ["datasets", "datasets --json", "--help", "fit --help"])
def test_a_closed_pipe_is_no_error(arguments, redirect, tmp_path):
    line = f"{sys.executable} -m kernelatoms {arguments} {redirect} true; echo ${{PIPESTATUS[0]}}"
    # As users have it: what is printed waits in a buffer until the end.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
    result = subprocess.run(
        ["bash", "-c", line], capture_output=True, text=True, cwd=tmp_path, env=environment
    )
    assert result.stderr == ""
    assert result.stdout in ("0\n", "1\n")


@pytest.mark.parametrize(
    ("redirect", "code", "said"),
    [(">&-", 0, ""), (">&- 2>&-", 0, ""), ("2>&-", 0, ""),
     pytest.param("> /dev/full", 1, "Error: No space left on device", marks=pytest.mark.skipif(
         not os.path.exists("/dev/full"), reason="no /dev/full here"))],
)  # fmt: skip
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_outputs_that_cannot_be_written_to(redirect, code, said, unbuffered, tmp_path):
    line = f"{sys.executable} -m kernelatoms datasets {redirect}"
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    result = subprocess.run(
        ["bash", "-c", line], capture_output=True, text=True, cwd=tmp_path, env=environment
    )
    assert result.returncode == code
    assert result.stderr.strip() == said
