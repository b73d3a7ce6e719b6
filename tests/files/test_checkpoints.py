"""Files of checkpoints: damaged, cut, made up, and disks that are full."""

import errno
import json
import os
import subprocess
import sys
import tracemalloc
from hashlib import blake2b

import numpy as np
import pytest
import scipy.sparse

from answers import bits
from kernelatoms import MOD, Checkpoint
from kernelatoms.files import checkpoints, state_files
from kernelatoms.files.state_files import (
    SIGNATURE,
    StateFileError,
    read_state_file,
    write_state_file,
)
from kernelatoms.learning.moments import Moments
from kernelatoms.learning.state import CoupledState, LearnerState
from kernelatoms.learning.state_arrays import StateWriter, from_tree

X = np.random.default_rng(0).standard_normal((20, 3))


class Stopped(BaseException):
    pass


class StopAfter:
    def __init__(self, n):
        self.n = n

    def setup(self, estimator, context):
        pass

    teardown = setup

    def on_fit_task_begin(self, estimator, context):
        self.n -= context.task_name == "pass"
        if self.n < 0:
            raise Stopped

    def on_fit_task_end(self, estimator, context):
        return False


def small(**parameters):
    return MOD(**{"n_atoms": 2, "max_iter": 3, "tol": 0, "random_state": 0, **parameters})


@pytest.fixture
def file(tmp_path):
    """A checkpoint of a fit that was stopped after its second pass."""
    path = tmp_path / "run.ckpt"
    with pytest.raises(Stopped):
        small().set_callbacks(StopAfter(2), Checkpoint(path)).fit(X)
    return path


def is_refused(path, words=None):
    before = path.read_bytes()
    with pytest.raises(ValueError, match=words) as caught:
        small().set_callbacks(StopAfter(0), Checkpoint(path)).fit(X)
    assert path.read_bytes() == before
    text = str(caught.value)
    assert text.startswith(f"Checkpoint: {path} cannot be gone on from: ")
    assert text.endswith(
        "Nothing was changed; give another file, or delete this one to begin anew."
    )
    return text


def test_of_every_length(file):
    """A file that is cut short says so, wherever it is cut."""
    whole = file.read_bytes()
    for length in range(len(whole)):
        file.write_bytes(whole[:length])
        is_refused(file, "it is cut short")
    for more in (b"\0", b"more"):
        file.write_bytes(whole + more)
        is_refused(file, "cut short or damaged")
    file.write_bytes(whole)
    small().set_callbacks(Checkpoint(file)).fit(X)


def test_every_byte_counts(file):
    whole, rng = bytearray(file.read_bytes()), np.random.default_rng(0)
    for place in range(len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << int(rng.integers(8))
        file.write_bytes(damaged)
        is_refused(file)


def test_other_files(file):
    for content in (b"", b"PK\x03\x04" + bytes(100), b"\x93NUMPY" + bytes(200), b"a,b\n1,2\n" * 9):
        file.write_bytes(content)
        is_refused(file, "no checkpoint|cut short")
    later = SIGNATURE[:-1] + b"2"
    file.write_bytes(later + bytes(300))
    is_refused(file, "version '2' of the format, and this version of kernelatoms reads '1'")


def forged(text, arrays=b"", length=None):
    line = text if isinstance(text, bytes) else json.dumps(text).encode()
    size = len(line) if length is None else length
    body = SIGNATURE + size.to_bytes(8, "little") + line + arrays
    return body + blake2b(body, digest_size=16).digest()


LARGE = {"type": "<f8", "shape": [1 << 20, 1 << 20]}
FORGED = {
    "a long text": forged(b"{}", length=1 << 62),
    "no object": forged(b"[]"),
    "no json": forged(b"{"),
    "no arrays": forged({}),
    "nested": forged(b"[" * 100_000),
    "nested objects": forged(b'{"a":' * 100_000),
    "a long number": forged(b'{"arrays": ' + b"9" * 10_000 + b"}"),
    "large arrays": forged({"arrays": [LARGE]}),
    "many large arrays": forged({"arrays": [LARGE] * 1000}),
    "a negative side": forged({"arrays": [{"type": "<f8", "shape": [-1, -8]}]}, bytes(64)),
    "a side that is true": forged({"arrays": [{"type": "<f8", "shape": [True]}]}, bytes(8)),
    "many sides": forged({"arrays": [{"type": "<f8", "shape": [1] * 64}]}, bytes(8)),
    "objects": forged({"arrays": [{"type": "|O", "shape": [1]}]}, bytes(8)),
    "empty arrays without end": forged({"arrays": [{"type": "<f8", "shape": [0]}] * 60_000}),
    "nothing else": forged({"arrays": []}),
}


@pytest.mark.parametrize("name", FORGED)
def test_made_up_files_cost_nothing(name, file):
    """Their checksums are right; all they say of sizes is not believed."""
    file.write_bytes(FORGED[name])
    tracemalloc.start()
    try:
        is_refused(file)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 64 << 20


def rewritten(file, change):
    text, arrays = read_state_file(file)
    run = text["runs"]["fit"]
    change(text, run, run["state"].get("LearnerState", {}), arrays)
    write_state_file(file, text, arrays)


def set_in(where, name, value):
    def change(text, run, state, arrays):
        {"text": text, "run": run, "state": state}[where][name] = value

    return change


def set_array(name, make):
    def change(text, run, state, arrays):
        number = state[name].get("array", state[name].get("floats"))
        arrays[number] = np.ascontiguousarray(make(arrays[number]))

    return change


def of_random_state(place, value):
    def change(text, run, state, arrays):
        state["random_state"]["random_state"][place] = value

    return change


CHANGES = {
    "seed": set_in("text", "seed", -1),
    "runs": set_in("text", "n_runs", None),
    "passes": set_in("run", "n_passes", 3),
    "no passes": set_in("run", "n_passes", 0),
    "passes as text": set_in("run", "n_passes", "2"),
    "done": set_in("run", "is_done", "yes"),
    "arrays": set_in("run", "arrays", [0, "all"]),
    "further": set_in("run", "partial", {}),
    "coordinates": set_in("run", "coordinates", {"crc32": 1}),
    "no state": set_in("run", "state", None),
    "a number as state": set_in("run", "state", 5),
    "unknown kind": set_in("run", "state", {"Popen": {}}),
    "other kind": set_in("run", "state", {"CoupledState": {}}),
    "two kinds": set_in("run", "state", {"array": 0, "floats": 0}),
    "fields": set_in("state", "more", 1),
    "array -1": set_in("state", "use", {"array": -1}),
    "array 99": set_in("state", "use", {"array": 99}),
    "array true": set_in("state", "use", {"array": True}),
    "best pass": set_in("state", "best_pass", 7),
    "objective": set_in("state", "objective", ["low"]),
    "a float as atoms": set_in("state", "dictionary", 1.5),
    "atoms of other width": set_array("dictionary", lambda a: a[:, :2]),
    "fewer atoms": set_array("dictionary", lambda a: a[:1]),
    "atoms in float32": set_array("dictionary", lambda a: a.astype(np.float32)),
    "nan": set_array("dictionary", lambda a: a * np.nan),
    "use": set_array("use", lambda a: -a - 1),
    "infinite objective": set_array("objective", lambda a: a * np.inf),
    "objective of integers": set_array("objective", lambda a: a.view(np.int64)),
    "place of the generator": of_random_state(2, 1 << 40),
    "negative place": of_random_state(2, -5),
    "name of the generator": of_random_state(0, "PCG64"),
    "sums": set_in("state", "sums", {"array": 0}),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_somebody_who_knows_the_format_writes(name, file):
    rewritten(file, CHANGES[name])
    is_refused(file)


def test_a_file_is_the_same_after_nothing_was_changed(file):
    before = file.read_bytes()
    rewritten(file, lambda *args: None)
    assert file.read_bytes() == before


def test_states_come_back_to_the_bit(tmp_path):
    """Also the place of the random numbers, and arrays that are one array."""
    rng, drawn = np.random.RandomState(3), np.random.default_rng(0)
    rng.standard_normal(3)
    atoms = drawn.standard_normal((4, 5)).astype(np.float32)
    state = LearnerState.start(atoms, rng)
    state.objective, state.best_pass, state.data = (
        [0.1, 1e-300, float(np.pi)],
        1,
        ((3, 4), "<f8", 7),
    )
    state.sums = Moments(np.eye(4), np.asfortranarray(drawn.standard_normal((4, 5))), 0.1, 2.5)
    codes = scipy.sparse.random_array((6, 4), density=0.4, rng=drawn, format="csr")
    for value in (CoupledState(atoms, codes, [1.0], 4.0), CoupledState(atoms, atoms, []), state):
        writer = StateWriter()
        tree = json.loads(json.dumps(writer.tree(value)))
        write_state_file(tmp_path / "state", {"tree": tree}, writer.arrays)
        text, arrays = read_state_file(tmp_path / "state")
        back = from_tree(text["tree"], arrays)
        assert type(back) is type(value)
        for name, held in vars(value).items():
            assert bits(vars(back)[name]) == bits(held)
    assert back.best is back.dictionary
    np.testing.assert_array_equal(back.random_state.standard_normal(9), rng.standard_normal(9))
    with pytest.raises(TypeError, match="cannot hold a set"):
        StateWriter().tree([{1, 2}])


def test_a_write_that_fails_leaves_the_old_file(file, monkeypatch):
    before, replacing = file.read_bytes(), state_files.replacing

    class Full:
        def __init__(self, real, room):
            self.real, self.room = real, room

        def write(self, part):
            self.room -= len(part)
            if self.room < 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return self.real.write(part)

    for room in range(0, len(before), 101):

        class Disk:
            def __init__(self, path):
                self.inner = replacing(path)

            def __enter__(self):
                return Full(self.inner.__enter__(), room)  # noqa: B023

            def __exit__(self, *why):
                return self.inner.__exit__(*why)

        monkeypatch.setattr(state_files, "replacing", Disk)
        learner = small().set_callbacks(Checkpoint(file))
        with pytest.raises(OSError, match=r"No space left on device.*the one before is whole"):
            learner.fit(X)
        assert file.read_bytes() == before
        assert os.listdir(file.parent) == [file.name]
        assert not [name for name in vars(learner) if name.endswith("_")]
    monkeypatch.undo()
    again = small().set_callbacks(Checkpoint(file)).fit(X)
    np.testing.assert_array_equal(again.components_, small().fit(X).components_)


_ON_A_FULL_DISK = """
import resource, signal, sys
import numpy as np
from kernelatoms import KSVD, Checkpoint
X = np.random.default_rng(0).standard_normal((200, 50))
KSVD(4, max_iter=1).fit(X)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
try:
    KSVD(40, max_iter=4, tol=0, random_state=0).set_callbacks(Checkpoint(sys.argv[1])).fit(X)
except OSError as error:
    print(error)
"""


def test_a_system_that_refuses_to_write(tmp_path):
    path = tmp_path / "run"
    done = subprocess.run(
        [sys.executable, "-c", _ON_A_FULL_DISK, path, "5000"], capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, check=True,
    )  # fmt: skip
    assert "Checkpoint: cannot write this one (File too large); there is none yet" in done.stdout
    assert not list(tmp_path.iterdir())


def test_the_text_of_differences():
    array = {"shape": [3, 4], "type": "float64", "crc32": 5}
    found = {"parameters": {"a": 1, "b": array, "c": float("nan"), "old": 2}, "rows": array}
    asked = {"parameters": {"a": 2, "b": {**array, "crc32": 6}, "c": float("nan")}, "rows": array}
    assert checkpoints.differences(found, asked) == [
        "its a is 1, and that of this fit 2",
        "its b have other values (3 x 4 of float64)",
        "only the file has old",
    ]
    assert checkpoints.differences(found, found) == []


def test_signatures_are_of_this_package():
    assert SIGNATURE.startswith(b"\xe1KA")
    with pytest.raises(StateFileError, match="begins otherwise"):
        state_files._check_signature(b"something")
