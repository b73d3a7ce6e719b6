"""Results are the same to the last bit, whoever compiled the loops, when, and in which order."""

import hashlib
import json
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from llvmlite.binding import ObjectFileRef

from draws import later

PUBLIC_OUTPUTS = Path(__file__).with_name("public_outputs.py")

# Sums that may be reordered, in a loop that is called and not inlined; the stack of ``code`` holds
# arguments while it decides about another; numba compiles a function for powers, which must not be
# reordered in ``code`` and may be in ``update``.
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
        if np.float64(coefs[0]) ** 2 < 100.0:
            subtract(out, start, stop, rows, coefs, n)


@jit()
def code(out, rows, coefs, scale):
    update(out, rows, coefs, 5 if scale > 0.0 else 2)
    update(out, rows, coefs, len(coefs) if scale > 0.0 else 3)
    out[0] *= scale**2
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


# Words of the command line are loops to call, and functions of others that numba compiles as well.
CALL = """
import sys

import numba
import numpy as np

from kernelatoms import sparse_encode
from kernelatoms.engine.cpu.atoms import descend_atoms

rng = np.random.default_rng(0)
X, D = rng.standard_normal((50, 30)), rng.standard_normal((40, 30))


def powers(x):
    return np.hypot(x, max(x, x**2)) + abs(np.sqrt(x)) ** 3 + np.empty(2)[0]


calls = {
    "dense": lambda: descend_atoms(D @ D.T, D @ X[:30].T, rng.standard_normal((40, 30)), 2),
    "sparse": lambda: descend_atoms(np.eye(40), D, D.copy(), 2),
    "fksc": lambda: sparse_encode(X, D, method="fksc", alpha=0.1),
    "exact": lambda: numba.njit(nogil=True, error_model="numpy")(powers)(2.0),
    "fast": lambda: numba.njit(nogil=True, error_model="numpy", fastmath=True)(powers)(2.0),
}
for word in sys.argv[1:]:
    calls[word]()
"""


def machine_code(cache):
    """Return a digest of the machine code of every loop in a cache, by the names of the files."""
    digests = {}
    for path in cache.rglob("*.nbc"):
        (_, _, (compiled, _)), *_ = pickle.loads(path.read_bytes()[32:])
        sections = ObjectFileRef.from_data(compiled).sections()
        code = [each.data() for each in sections if each.is_text()]
        digests[path.name] = hashlib.sha256(b"".join(code)).hexdigest()
    return digests


@pytest.mark.parametrize("words", [["exact", "fksc", "sparse", "dense"], later(["fast", "sparse"])])
def test_machine_code_after_other_loops(words, tmp_path):
    """Also after those of other packages, which share numba and its functions."""
    running = []
    for name, calls in (("first", ["dense", "sparse", "fksc"]), ("then", words)):
        cache = {"NUMBA_CACHE_DIR": str(tmp_path / name), "PYTHONHASHSEED": str(len(running))}
        command = [sys.executable, "-c", CALL, *calls]
        running.append(subprocess.Popen(command, env={**os.environ, **cache}))
    assert [process.wait(120) for process in running] == [0, 0]
    first, then = (machine_code(tmp_path / name) for name in ("first", "then"))
    assert len(then) >= (6 if "fksc" in words else 2)
    assert [name for name in then if then[name] != first[name]] == []


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
    code = machine_code(tmp_path)
    for part in ("compress", "learn", "code", "compare"):
        public_outputs(tmp_path / part, dtype, part, seed="1")
        own = machine_code(tmp_path / part)
        assert own
        assert [name for name in own if own[name] != code[name]] == []
        shutil.rmtree(tmp_path / part)
    for seed in ("1", "2"):  # the second mixes loops of three processes
        for path in sorted(tmp_path.rglob("*.nbc")):
            if rng.random() < 0.3:
                path.unlink()
        assert public_outputs(tmp_path, dtype, seed=seed) == cold
