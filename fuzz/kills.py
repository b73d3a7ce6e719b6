"""Commands killed and interrupted at random moments: python -m fuzz.kills --signal INT --count 100.

Every command first runs to its end, which says how long it takes and what it gives. Then it runs
again and again over a good older output, and is hit at a random moment. Whatever that moment was:
the output is the old one or the new one, whole; a process that got Ctrl-C is gone within two
seconds (``--patience``) with one word, exit code 130 and no file left beside the output; and the
same command run once more gives what an uninterrupted one gives.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kernelatoms import compress, load_model
from kernelatoms.codec.packed.arrays import decode_array

# Where a process is when it is hit: the system's own handler writes its stack, whatever it is at.
_CHILD = """
import faulthandler, signal, sys
if sys.argv[1] == "reproduction":
    del sys.argv[1]
    from reproduction.__main__ import run as main
else:
    from kernelatoms.__main__ import main
signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # when the interpreter is taken down
faulthandler.register(signal.SIGUSR1, open("where", "w"), all_threads=False)
main()
"""

_ROOT = str(Path(__file__).parents[1])

# Until the package's first line runs, Ctrl-C is answered by Python itself, with a traceback.
_STARTING = "while Python starts"


@dataclass(frozen=True)
class Command:
    """A command, the file that it writes, and what tells whether that is whole and right."""

    arguments: tuple[str, ...]
    output: str
    content: Callable[[Path], object]
    goes_on: bool = False  # its own records, which the next run takes up
    adds: bool = False  # its output is also what it starts from


def _model(path: Path) -> object:
    model, record = load_model(path)
    X = np.load(path.parent / "rows.npz")["X"]
    return record.name, model.transform(X) if hasattr(model, "transform") else model.predict(X)


def _page(path: Path) -> object:
    text = path.read_text().strip().lower()
    assert text.startswith("<!doctype html>"), "the page has no beginning"
    assert text.endswith("</html>"), "the page has no end"
    return True


def _records(path: Path) -> object:
    lines = path.read_bytes().split(b"\n")
    lines.pop()  # what a killed process has not finished is dropped by the next one
    records = [json.loads(line) for line in lines]
    return sorted(json.dumps([r["setting"], r["seed"], r["measures"]]) for r in records)


def _rows_of(path: Path) -> object:
    """Return all rows of a compressed array."""
    return decode_array(path.read_bytes())


_ROWS = ("rows.npz", "--rows", "X")
_LONG = ("--set", "max_iter=60", "--set", "tol=0")  # as long as the imports, or longer
COMMANDS = {
    "fit lkdl": Command(
        ("fit", *_ROWS, "--label", "y", "--model", "lkdl", "-o", "model.skops", *_LONG),
        "model.skops",
        _model,
    ),
    "fit KernelKSVD": Command(
        ("fit", *_ROWS, "--model", "KernelKSVD", "-o", "exact.skops", *_LONG),
        "exact.skops", _model,
    ),
    "fit KSCDL": Command(
        ("fit", *_ROWS, "--model", "KSCDL", "--set", "n_atoms=60", "-o", "kscdl.skops", *_LONG),
        "kscdl.skops", _model,
    ),
    "predict": Command(
        ("predict", "good.skops", "many.npz", "--rows", "X", "--scores", "-o", "labels.csv"),
        "labels.csv", Path.read_bytes,
    ),
    "encode omp": Command(
        ("encode", "linear.skops", "many.npz", "--rows", "X", "-o", "codes.npz"),
        "codes.npz", Path.read_bytes,
    ),
    "encode lasso": Command(
        ("encode", "linear.skops", "many.npz", "--rows", "X", "-o", "l1.npz", "--method", "lasso",
         "--alpha", "0.05"),
        "l1.npz", Path.read_bytes,
    ),
    "report": Command(
        ("report", "good.skops", *_ROWS, "-o", "report.html"), "report.html", _page
    ),
    "compress": Command(
        ("compress", "long.csv", "-o", "long.kac", "--force", "--block-rows", "4000"), "long.kac",
        Path.read_bytes,
    ),
    "compress --append": Command(
        ("compress", "more.npy", "-o", "rows.kac", "--append"), "rows.kac", _rows_of, adds=True
    ),
    "decompress": Command(
        ("decompress", "good.kac", "-o", "back.csv", "--force"), "back.csv", Path.read_bytes
    ),
    "reproduction": Command(
        ("reproduction", "kdl/fig4a", "-o", "runs"), "runs/kdl/circles.jsonl", _records,
        goes_on=True,
    ),
}  # fmt: skip


class TroubleError(AssertionError):
    """What must not happen did."""


class Range:
    """A folder with data and models, and one with the good outputs of every command."""

    def __init__(self, folder: Path, patience: float) -> None:
        self.folder, self.patience = folder, patience
        self.good = folder / "good"
        self.good.mkdir()
        rng = np.random.default_rng(0)
        X, y = rng.standard_normal((1500, 20)), np.arange(1500) % 3
        X[:, 0] += y
        np.savez(folder / "rows.npz", X=X, y=y)
        np.savez(folder / "many.npz", X=np.tile(X, (80, 1)), y=np.tile(y, 80))
        walk = np.round(20 + rng.normal(size=(60000, 6)).cumsum(axis=0) / 50, 3)
        lines = [f"{i}," + ",".join(map(str, row)) for i, row in enumerate(walk.tolist())]
        (folder / "long.csv").write_text("\n".join(["i,a,b,c,d,e,f", *lines]) + "\n")
        np.save(folder / "some.npy", walk[:30000])
        np.save(folder / "more.npy", walk[30000:])
        compress(folder / "long.csv", folder / "good.kac", model="lags")
        compress(folder / "some.npy", folder / "before.kac", model="lags")
        shutil.copy(folder / "before.kac", folder / "rows.kac")
        self._finish("fit", *_ROWS, "--label", "y", "-o", "good.skops")
        self._finish("fit", *_ROWS, "--model", "KSVD", "-o", "linear.skops")
        self.seconds: dict[str, float] = {}
        self.expected: dict[str, object] = {}

    def prepare(self, name: str) -> None:
        """Run a command to its end."""
        command = COMMANDS[name]
        start = time.perf_counter()
        self._finish(*command.arguments)
        self.seconds[name] = time.perf_counter() - start
        self.expected[name] = command.content(self.folder / command.output)
        kept = self.good / command.output
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(self.folder / command.output, kept)

    def hit(self, name: str, number: signal.Signals, moment: float) -> str | None:
        """Run a command over a good output and hit it; tell where, None if it was done before.

        Raises ``TroubleError``.
        """
        command = COMMANDS[name]
        output = self.folder / command.output
        old = self._put_old(command, output)
        (self.folder / "where").unlink(missing_ok=True)
        before = self._files(output)
        process = self._start(*command.arguments)
        time.sleep(moment * self.seconds[name])
        if process.poll() is not None:  # too late: it was quicker than before
            process.communicate()
            self.seconds[name] *= moment
            return None
        try:
            where = self._look(process)
        finally:
            hit = time.perf_counter()
            process.send_signal(number)
        try:
            _, errors = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            raise TroubleError(f"{where}: still there after a minute") from None
        gone = time.perf_counter() - hit
        told = f"{where}, gone after {gone:.2f} s, exit code {process.returncode}"
        if where == _STARTING and process.returncode in (-signal.SIGINT, 1):
            return told
        if process.returncode not in (0, 130 if number == signal.SIGINT else -number):
            raise TroubleError(f"{told}: {errors[-2000:]}")
        if "Traceback" in errors or "rror" in errors:
            raise TroubleError(f"{told}: {errors[-2000:]}")
        if process.returncode == 130 and not errors.endswith("\nStopped before it was done.\n"):
            raise TroubleError(f"{told}: said {errors[-200:]!r}")
        if number == signal.SIGINT and gone > self.patience:
            raise TroubleError(f"{told}: too late")
        left = self._files(output) - before - {output.name}
        if number == signal.SIGINT and left:
            raise TroubleError(f"{told}: left {left}")
        for file in left:
            (output.parent / file).unlink()
        self._check(name, output, old, process.returncode == 0, told)
        return told

    def _put_old(self, command: Command, output: Path) -> bytes:
        if command.goes_on:
            shutil.rmtree(self.folder / "runs")
            return b""
        if command.adds:
            shutil.copy(self.folder / "before.kac", output)
            return output.read_bytes()
        shutil.copy(self.good / command.output, output)
        if command.content is not _page and command.content is not _model:
            output.write_bytes(b"an older result")
        return output.read_bytes()

    def _check(self, name: str, output: Path, old: bytes, done: bool, told: str) -> None:
        command, expected = COMMANDS[name], self.expected[name]
        if command.goes_on:
            if output.exists():
                found = command.content(output)
                if not set(found) <= set(expected):  # type: ignore[call-overload]
                    raise TroubleError(f"{told}: records that an uninterrupted run has not")
            self._finish(*command.arguments)
        elif output.read_bytes() == old:
            if done:
                raise TroubleError(f"{told}: done, and the old file is there")
            return
        if not _same(command.content(output), expected):
            raise TroubleError(f"{told}: {output.name} is not what an uninterrupted run gives")

    def _files(self, output: Path) -> set[str]:
        if not output.parent.is_dir():
            return set()
        return set(os.listdir(output.parent)) - {"where"}

    def _start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", _CHILD, *arguments], cwd=self.folder, text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([_ROOT, *sys.path])},
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            # Shells start background jobs with Ctrl-C ignored, and children inherit that.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )  # fmt: skip

    def _finish(self, *arguments: str) -> None:
        process = self._start(*arguments)
        _, errors = process.communicate()
        if process.returncode != 0:
            raise TroubleError(f"kernelatoms {' '.join(arguments)} failed: {errors}")

    def _look(self, process: subprocess.Popen[str]) -> str:
        """Return the innermost lines of the package and of all, where the main thread is."""
        where = self.folder / "where"
        if not where.exists():
            return _STARTING
        process.send_signal(signal.SIGUSR1)
        time.sleep(0.005)
        frames = [
            line.split('"')[1].split("site-packages/")[-1].split("src/")[-1]
            + ":" + line.rsplit(" ", 1)[-1]
            for line in where.read_text().splitlines() if line.count('"') == 2  # whole ones
        ]  # fmt: skip
        ours = [frame for frame in frames if frame.startswith("kernelatoms/")]
        return " < ".join(dict.fromkeys([*frames[:1], *ours[:1]])) or "in its last moments"


def _same(a: object, b: object) -> bool:
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(_same(x, y) for x, y in zip(a, b, strict=True))
    if hasattr(a, "toarray") and hasattr(b, "toarray"):
        return bool((a != b).nnz == 0)
    return bool(np.array_equal(a, b))


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--signal", choices=["KILL", "INT", "TERM"], default="INT")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--patience", type=float, default=2.0, help="seconds after Ctrl-C")
    parser.add_argument("--only", choices=COMMANDS, default=None)
    chosen = parser.parse_args()
    seed = random.SystemRandom().randrange(10**6) if chosen.seed is None else chosen.seed
    print(f"{chosen.count} SIG{chosen.signal}, seed {seed}", flush=True)
    draw, number = random.Random(seed), signal.Signals[f"SIG{chosen.signal}"]
    names = [chosen.only] if chosen.only else list(COMMANDS)
    troubles = 0
    with tempfile.TemporaryDirectory() as folder:
        place = Range(Path(folder), chosen.patience)
        n_hit = 0
        while n_hit < chosen.count:
            name = names[n_hit % len(names)]
            if name not in place.seconds:
                place.prepare(name)
            moment = draw.random()
            try:
                told = place.hit(name, number, moment)
            except Exception as trouble:
                troubles += 1
                told = f"TROUBLE: {trouble}"
            if told is None:
                continue
            n_hit += 1
            print(f"{n_hit:>4} {name:<15} at {moment:4.0%}: {told}", flush=True)
    print(f"{chosen.count} SIG{chosen.signal}, seed {seed}: {troubles} troubles")
    return int(troubles > 0)


if __name__ == "__main__":
    sys.exit(main())
