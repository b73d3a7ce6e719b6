"""Results are the same to the last bit, whoever compiled the loops, when, and in which order."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from draws import later

PUBLIC_OUTPUTS = Path(__file__).with_name("public_outputs.py")

# Sums that may be reordered, in a loop that is called and not inlined; the stack of ``code`` holds
# arguments while it decides about another.
LOOPS = """
import numpy as np

from kernelatoms.engine.cpu.jit import jit


@jit(fastmath=True)
def subtract(out, start, stop, rows, coefs, n):
    j = np.uintp(0)
    while j + 4 <= n:
        c0, c1, c2, c3 = coefs[j], coefs[j + 1], coefs[j + 2], coefs[j + 3]
        for i in range(start, stop):
            out[i] -= (c0 * rows[j, i] + c1 * rows[j + 1, i]) + (
                c2 * rows[j + 2, i] + c3 * rows[j + 3, i]
            )
        j += np.uintp(4)
    if j + 2 <= n:
        c0, c1 = coefs[j], coefs[j + 1]
        for i in range(start, stop):
            out[i] -= c0 * rows[j, i] + c1 * rows[j + 1, i]


@jit(fastmath=True)
def update(out, rows, coefs, n):
    for first in range(0, out.shape[0], 64):
        start, stop = np.uintp(first), np.uintp(min(first + 64, out.shape[0]))
        if n > 0:
            subtract(out, start, stop, rows, coefs, n)


@jit()
def code(out, rows, coefs, scale):
    update(out, rows, coefs, 5 if scale > 0.0 else 2)
    update(out, rows, coefs, len(coefs) if scale > 0.0 else 3)
    return out
"""
# Words of the command line are loops to call before. Names in LLVM's code differ: they hold a count
# of what a process has compiled, a set, and the addresses of numba's objects (in constants).
USE = r"""
import hashlib, json, re, sys

import numpy as np

import loops

rng = np.random.default_rng(0)
rows = rng.standard_normal((30, 128)).astype(np.float32)
coefs = rng.standard_normal(30).astype(np.float32)
for loop in sys.argv[1:]:
    if loop == "subtract":
        loops.subtract(np.zeros(128, np.float32), np.uintp(0), np.uintp(128), rows, coefs, 30)
    if loop == "update":
        loops.update(np.zeros(128, np.float32), rows, coefs, 30)
out = loops.code(rng.standard_normal(128).astype(np.float32), rows, coefs, 1.5)
digests = {}
for loop in (loops.subtract, loops.update, loops.code):
    for result in loop.overloads.values():
        text = str(result.library._get_module_for_linking())
        text = re.sub(r"(?m)_ZN\w+|^@.*$|^.*@.?\.const.*$", "", text)
        key = f"{loop.__name__} {result.signature}"
        digests[key] = hashlib.sha256(text.encode()).hexdigest()
print(json.dumps([out.tobytes().hex(), digests, loops.code.stats.cache_misses.total()]))
"""


def start(source, cache, *before, seed="0"):
    """Start a process that uses the loops of one folder and keeps them in another."""
    path = os.pathsep.join([str(source), os.environ.get("PYTHONPATH", "")])
    home = {"HOME": str(cache), "XDG_CACHE_HOME": str(cache), "NUMBA_CACHE_DIR": str(cache)}
    return subprocess.Popen(
        [sys.executable, "-c", USE, *before],
        env={**os.environ, **home, "PYTHONPATH": path, "PYTHONHASHSEED": seed},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def finish(process):
    """Return the bytes that a process computed, LLVM's code, and whether it compiled ``code``."""
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    computed, code, misses = json.loads(output)
    return computed, code, misses == 1


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """The loops' folder, their cache, what the process computed that compiled them, its code."""
    source, cache = (tmp_path_factory.mktemp(name) for name in ("source", "cache"))
    (source / "loops.py").write_text(LOOPS)
    computed, code, was_cold = finish(start(source, cache))
    assert was_cold
    assert len(code) == 3
    return source, cache, computed, code


def test_a_process_that_loads(compiled):
    source, cache, expected, _ = compiled
    computed, _, was_cold = finish(start(source, cache))
    assert not was_cold
    assert computed == expected


@pytest.mark.parametrize(
    ("missing", "before"),
    [
        (["code"], ["subtract"]),
        later([], ["subtract", "update"]),
        later(["update"], []),
        later(["subtract"], ["update"]),
        later(["subtract", "code"], []),
        later(["update", "code"], ["update", "subtract"]),
        later(["subtract", "update", "code"], ["subtract", "update"]),
    ],
)
def test_a_process_that_compiles_what_is_missing(missing, before, compiled, tmp_path):
    """Beside loops that another process compiled, in another order, and with sets in another."""
    source, full, expected, all_code = compiled
    cache = shutil.copytree(full, tmp_path / "cache")
    for loop in missing:
        for path in cache.rglob(f"loops.{loop}-*.nbc"):
            path.unlink()
    computed, code, was_cold = finish(start(source, cache, *before, seed="1"))
    assert was_cold == ("code" in missing)
    assert computed == expected
    assert code
    assert [key for key in code if code[key] != all_code[key]] == []


@pytest.mark.slow
def test_a_process_that_can_keep_nothing(compiled, tmp_path):
    *_, expected, all_code = compiled
    (tmp_path / "loops.py").write_text(LOOPS)
    for name in ("cache", "__pycache__"):
        (tmp_path / name).write_text("a file, where the folder should be")
    for _ in range(2):
        assert finish(start(tmp_path, tmp_path / "cache")) == (expected, all_code, True)


@pytest.mark.slow
def test_processes_that_compile_at_once(compiled, tmp_path):
    source, _, expected, all_code = compiled
    running = [start(source, tmp_path, seed=str(seed)) for seed in range(3)]
    for computed, code, _ in map(finish, running):
        assert computed == expected
        assert all(all_code[key] == code[key] for key in code)


def public_outputs(cache, *what, seed):
    done = subprocess.run(
        [sys.executable, str(PUBLIC_OUTPUTS), *what], capture_output=True, text=True,
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache), "PYTHONHASHSEED": seed},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_all_outputs(dtype, rng, tmp_path):
    cold = public_outputs(tmp_path, dtype, seed="0")
    assert len(cold) > 300
    assert public_outputs(tmp_path, dtype, seed="0") == cold
    for seed in ("1", "2"):  # the second mixes loops of three processes
        for path in sorted(tmp_path.rglob("*.nbc")):
            if rng.random() < 0.3:
                path.unlink()
        assert public_outputs(tmp_path, dtype, seed=seed) == cold
