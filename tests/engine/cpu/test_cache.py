"""The cache of compiled loops: damage, full disks and haste cost a compilation, never an error."""

import importlib.util
import os
import shutil
import signal
import subprocess
import sys

import numba
import numpy as np
import pytest

from kernelatoms.engine.cpu import jit

# Two loops that call one another, in a module of the test's own: soon compiled.
LOOPS = """
from kernelatoms.engine.cpu.jit import jit

@jit()
def double(x):
    return {factor} * x

@jit()
def total(values):
    out = 0.0
    for i in range(values.shape[0]):
        out += double(values[i])
    return out
"""
USE = """
import numpy as np, loops
print(loops.total(np.ones(5)), bool(loops.total.stats.cache_misses))
"""


@pytest.fixture
def use(tmp_path, monkeypatch):
    """Import the loops as a new process would, use them, tell whether that compiled them."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))

    def run(factor=2):
        write_loops(tmp_path, factor)
        spec = importlib.util.spec_from_file_location("loops", tmp_path / "loops.py")
        loops = importlib.util.module_from_spec(spec)
        exec(compile((tmp_path / "loops.py").read_text(), spec.origin, "exec"), vars(loops))
        assert loops.total(np.ones(5)) == 5.0 * factor
        assert loops.total(np.ones(5, np.float32)) == 5.0 * factor
        return bool(loops.total.stats.cache_misses)

    return run


def write_loops(folder, factor):
    """Write the source if it is another: some versions of numba go by its time."""
    path, source = folder / "loops.py", LOOPS.format(factor=factor)
    if not path.exists() or path.read_text() != source:
        path.write_text(source)


def environment(tmp_path):
    write_loops(tmp_path, 2)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": path}


def files(tmp_path):
    found = [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert found
    return sorted(found)


def cut(data):
    return data[: len(data) // 2]


def flip_in_the_middle(data):
    """One bit of the machine code, say."""
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


def flip_all_over(data):
    return bytes(byte ^ (i % 7 == 0) for i, byte in enumerate(data))


@pytest.mark.parametrize(
    "damage", [cut, flip_in_the_middle, flip_all_over, lambda data: b"", lambda data: b"x" * 1000]
)
def test_damaged_files_are_compiled_anew(damage, use, tmp_path):
    assert use()
    assert not use()
    for path in files(tmp_path):
        path.write_bytes(damage(path.read_bytes()))
    assert use()
    assert not use(), "the damage was not mended"


def test_files_that_changed_places(use, tmp_path):
    """Whole files each, but not of what their names say."""
    use()
    contents = [path.read_bytes() for path in files(tmp_path)]
    for path, content in zip(files(tmp_path), contents[1:] + contents[:1], strict=True):
        path.write_bytes(content)
    assert use()
    assert not use()


def test_files_that_are_missing(use, tmp_path):
    use()
    for path in files(tmp_path)[::2]:
        path.unlink()
    use()
    for path in files(tmp_path)[1::2]:
        path.unlink()
    use()
    assert not use()


def test_files_that_are_folders(use, tmp_path):
    use()
    for path in files(tmp_path):
        path.unlink()
        path.mkdir()
    assert use()


def test_code_of_an_older_source_is_never_used(use, tmp_path):
    """Also if the process that replaced it was killed half way, leaving any mixture."""
    use(factor=2)
    old = {path: path.read_bytes() for path in files(tmp_path)}
    assert use(factor=3)
    assert not use(factor=3)
    new = {path: path.read_bytes() for path in files(tmp_path)}
    for path in old.keys() & new.keys():
        path.write_bytes(old[path])
        use(factor=3)
        path.write_bytes(new[path])
    assert len(new) == len(old), "files of older sources pile up"


def test_code_of_another_compiler_is_never_used(use, tmp_path, monkeypatch):
    """Where the loops themselves are the same."""
    monkeypatch.setattr(jit, "_compiler_state", jit._compiler_state.__wrapped__)
    (tmp_path / "older.py").write_text("# other rules")
    assert use()
    for name, other in [("FASTMATH", {"contract"}), ("__file__", str(tmp_path / "older.py"))]:
        monkeypatch.setattr(jit, name, other)
        assert use()
        assert not use()


def test_a_full_disk(use, tmp_path):
    """A limit on the size of files stands for the full disk: writes fail half way."""
    resource = pytest.importorskip("resource")

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    done = subprocess.run(
        [sys.executable, "-c", USE], env=environment(tmp_path), preexec_fn=limit,
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.stdout == "10.0 True\n", done.stderr
    assert "File too large" in done.stderr
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert use()
    assert not use()


def test_no_folder_to_cache_in(use, tmp_path, monkeypatch):
    """Not even the source's own, as in a system-wide installation."""
    (tmp_path / "cache").write_text("a file, where the folder should be")
    (tmp_path / "__pycache__").write_text("a file, where the folder should be")
    monkeypatch.setenv("HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert use()
    assert use()


def test_a_folder_that_goes_away(use, tmp_path, caplog):
    loops = tmp_path / "cache"
    assert use()
    shutil.rmtree(loops)
    original = numba.core.caching.FunctionCache.save_overload
    loops.mkdir()
    jit._tell_once.cache_clear()

    def folder_goes(self, *args):
        shutil.rmtree(loops, ignore_errors=True)
        if not loops.exists():
            loops.write_text("a file, where the folder should be")
        original(self, *args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numba.core.caching.FunctionCache, "save_overload", folder_goes)
        assert use()
    assert caplog.text.count("Every process will compile them anew") == 1


def test_processes_that_compile_at_once(tmp_path):
    running = [
        subprocess.Popen(
            [sys.executable, "-c", USE],
            env=environment(tmp_path),
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    for process in running:
        output, _ = process.communicate(timeout=120)
        assert process.returncode == 0
        assert output.startswith("10.0 ")
    assert not list((tmp_path / "cache").rglob("*.tmp*"))


class PressesCtrlC(numba.core.event.Listener):
    """While LLVM is at work; tells what became of it."""

    def on_start(self, event):
        self.still_there = False
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        self.still_there = True

    def on_end(self, event):
        pass


def test_ctrl_c_waits_until_a_loop_is_compiled(use):
    """Else numba may free an object of LLVM twice, which ends the process."""
    handler, press = signal.getsignal(signal.SIGINT), PressesCtrlC()
    with (
        pytest.raises(KeyboardInterrupt),
        numba.core.event.install_listener("numba:compile", press),
    ):
        use()
    assert press.still_there
    assert signal.getsignal(signal.SIGINT) is handler
    use()
    assert not use()


def test_code_of_an_older_import_is_never_used(tmp_path):
    """The same two loops in two modules, of which the imported one changes."""
    run = {"env": environment(tmp_path), "capture_output": True, "text": True}
    near, far = LOOPS.split("@jit()\ndef total")
    (tmp_path / "loops.py").write_text(
        "from kernelatoms.engine.cpu.jit import jit\nfrom near import double\n\n"
        f"@jit()\ndef total{far}"
    )
    for factor in (2, 3):
        (tmp_path / "near.py").write_text(near.format(factor=factor))
        for compiled in (True, False):
            done = subprocess.run([sys.executable, "-c", USE], **run)
            assert done.stdout == f"{5.0 * factor} {compiled}\n", done.stderr
