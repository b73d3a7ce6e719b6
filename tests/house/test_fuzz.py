"""The fuzzer notices what it is there for, and goes on where it stopped."""

import ctypes
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from fuzz.running import CHUNK, Run, generator, play_many  # noqa: E402

#: What the cases of the toy target do; all others do nothing.
TROUBLE = {3: "wrong", 40: "crash", 41: "hang", 90: "memory", CHUNK - 1: "crash"}


def toy_target():
    cases = {int(generator("toy", 7, case).integers(2**63)): t for case, t in TROUBLE.items()}

    def play(rng, folder):
        (folder / "input").write_text("what was played")
        trouble = cases.get(int(rng.integers(2**63)))
        if trouble == "wrong":
            raise AssertionError("a wrong answer")
        if trouble == "crash":
            ctypes.string_at(0)
        if trouble == "hang":
            time.sleep(60)
        if trouble == "memory":
            np.ones(2**28)
        return "well"

    return play


def test_trouble_is_noticed_kept_and_gone_on_from(tmp_path, capfd):
    run = Run("toy", 7, tmp_path, most_seconds=1)
    play_many(toy_target, run, seconds=60, n_cases=2 * CHUNK, n_workers=1)
    assert sorted(run.failures) == sorted(TROUBLE)
    assert run.outcomes["failed"] == len(TROUBLE)
    assert run.n_cases == 2 * CHUNK
    words = {case: (tmp_path / "failures" / f"toy-7-{case}" / "what.txt") for case in TROUBLE}
    expected = {3: "a wrong answer", 40: "exit code", 41: "took over 1 s", 90: "MemoryError"}
    for case, text in expected.items():
        assert text in words[case].read_text()
        assert f"--case {case}\n" in words[case].read_text()
        assert words[case].with_name("input").exists()
    # A torn last line is forgotten; what was finished is not played again.
    with run.file.open("a") as file:
        file.write('{"chunk": 2, "outc')
    again = Run("toy", 7, tmp_path)
    assert again.outcomes == run.outcomes
    assert next(again.chunks()) == 2


@pytest.mark.slow
def test_a_minute_of_fuzzing(tmp_path):
    command = [sys.executable, "-m", "fuzz", "--seconds", "60", "--folder", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
    assert "nothing broke" in done.stdout
