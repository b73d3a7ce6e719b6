"""Fits with a checkpoint, killed at random moments: python -m fuzz.checkpoints --count 100.

Every scenario first runs to its end, without a checkpoint. Then it runs with one again and again,
and is killed at a random moment, sometimes more than once; after that it runs to its end. Whatever
those moments were: the checkpoint is whole, and the fitted attributes are the same to the last bit.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet

from kernelatoms import (
    KSAD,
    KSVD,
    MOD,
    Checkpoint,
    ClassDictionaryClassifier,
    KernelKSVD,
    LCKSVDClassifier,
    load_model,
    open_rows,
)

_ROOT = str(Path(__file__).parents[1])
_LONG = {"max_iter": 60, "tol": 0, "random_state": 0}
_CHECKPOINT, _BEGUN, _RESULT = "run.ckpt", "begun", "result.npz"
# Another kill follows one so often.
_AGAIN = 0.5


@dataclass(frozen=True)
class Scenario:
    """A fit in a process of its own: a function of the folder and callbacks, or a command.

    ``fit`` returns a fitted model; ``command`` are the arguments of ``kernelatoms``, which writes
    model.skops. A source of rows is what ``fit`` opens in the folder.
    """

    fit: Callable[[Path, tuple[Any, ...]], Any] | None = None
    command: tuple[str, ...] = ()


def _of(estimator: Any) -> Scenario:
    """Return the scenario of an estimator that learns from arrays."""

    def fit(folder: Path, callbacks: tuple[Any, ...]) -> Any:
        with np.load(folder / "rows.npz") as rows:
            return estimator.set_callbacks(*callbacks).fit(rows["X"], rows["y"])

    return Scenario(fit)


def _of_file(estimator: Any, name: str) -> Scenario:
    """Return the scenario of an estimator that learns from a file, block by block."""

    def fit(folder: Path, callbacks: tuple[Any, ...]) -> Any:
        label = "y" if name.endswith(".parquet") else None
        return estimator.set_callbacks(*callbacks).fit(open_rows(folder / name, label=label))

    return Scenario(fit)


def _with_command(*arguments: str) -> Scenario:
    longer = ("--set", "max_iter=60", "--set", "tol=0", "-o", "model.skops")
    return Scenario(command=("fit", "rows.npz", "--rows", "X", *arguments, *longer))


SCENARIOS = {
    "KSVD": _of(KSVD(80, **_LONG)),
    "MOD": _of(MOD(80, **_LONG)),
    "MOD l1": _of(MOD(60, alpha=0.5, **_LONG)),
    "KernelKSVD": _of(KernelKSVD(40, **_LONG)),
    "KSAD": _of(KSAD(100, **_LONG)),
    "classes": _of(ClassDictionaryClassifier(KSVD(40, max_iter=60, tol=0), random_state=0)),
    "LCKSVD": _of(LCKSVDClassifier(80, **_LONG)),
    "fit MOD": _with_command("--model", "MOD", "--set", "n_atoms=80"),
    "KSVD npy": _of_file(KSVD(80, **_LONG), "rows.npy"),
    "MOD Parquet": _of_file(MOD(80, **_LONG), "rows.parquet"),
    "classes Parquet": _of_file(
        ClassDictionaryClassifier(MOD(40, max_iter=60, tol=0), random_state=0), "rows.parquet"
    ),
    "fit large": Scenario(
        command=(
            "fit",
            "rows.parquet",
            "--label",
            "y",
            "--model",
            "lkdl",
            "--memory",
            "100KB",
            "--set",
            "max_iter=60",
            "--set",
            "tol=0",
            "-o",
            "model.skops",
        )
    ),
    "fit lkdl": _with_command("--model", "lkdl", "--label", "y"),
}


class TroubleError(AssertionError):
    """What must not happen did."""


class Range:
    """A folder with rows, and what every scenario learns when nothing stops it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        rng = np.random.default_rng(0)
        X, y = rng.standard_normal((1500, 20)), np.arange(1500) % 3
        X[:, 0] += y
        np.savez(folder / "rows.npz", X=X, y=y)
        np.save(folder / "rows.npy", X)
        columns = {f"x{i}": column for i, column in enumerate(X.T)}
        table = pyarrow.table({**columns, "y": [f"class {label}" for label in y]})
        pyarrow.parquet.write_table(table, folder / "rows.parquet", row_group_size=400)
        self.seconds: dict[str, float] = {}
        self.expected: dict[str, dict[str, Any]] = {}

    def prepare(self, name: str) -> None:
        """Run a scenario to its end, without a checkpoint."""
        self._clear()  # of what another scenario has left
        process = self._start(name, with_checkpoint=False)
        start = time.perf_counter()
        self._finish(name, process)
        self.seconds[name] = time.perf_counter() - start
        self.expected[name] = self._result()

    def play(self, name: str, draw: random.Random) -> list[str]:
        """Kill a scenario, once or more often, and have it end; tell when it was hit."""
        self._clear()
        told: list[str] = []
        while not told or draw.random() < _AGAIN:
            process = self._start(name)
            time.sleep(draw.random() * self.seconds[name])
            if process.poll() is not None:
                self._finish(name, process)
                told.append("after its end")
                break
            process.send_signal(signal.SIGKILL)
            process.communicate()
            told.append(self._look())
        self._finish(name, self._start(name))
        found, expected = self._result(), self.expected[name]
        if found.keys() != expected.keys():
            raise TroubleError(f"{told}: other attributes: {found.keys() ^ expected.keys()}")
        for attribute, array in expected.items():
            if (
                array.dtype != found[attribute].dtype
                or array.tobytes() != found[attribute].tobytes()
            ):
                raise TroubleError(f"{told}: {attribute} is another one")
        return told

    def _look(self) -> str:
        """Return what a killed process has left."""
        left = "in a write" if list(self.folder.glob(f".{_CHECKPOINT}.*.tmp")) else "in a pass"
        path = self.folder / _CHECKPOINT
        for file in self.folder.glob(f".{_CHECKPOINT}.*.tmp"):
            file.unlink()
        if not path.exists():
            return f"{left}, no checkpoint yet"
        from kernelatoms.files.state_files import read_state_file

        runs = read_state_file(path)[0]["runs"].values()
        return f"{left}, {sum(run['n_passes'] for run in runs)} passes kept"

    def _clear(self) -> None:
        for name in (_CHECKPOINT, _RESULT, "model.skops"):
            (self.folder / name).unlink(missing_ok=True)

    def _result(self) -> dict[str, Any]:
        command = self.folder / "model.skops"
        if command.exists():
            return fitted_arrays(load_model(command)[0][-1])
        with np.load(self.folder / _RESULT) as arrays:
            return dict(arrays)

    def _start(self, name: str, with_checkpoint: bool = True) -> subprocess.Popen[str]:
        """Start a scenario; wait until it fits, or begins to be imported."""
        (self.folder / _BEGUN).unlink(missing_ok=True)
        scenario = SCENARIOS[name]
        if scenario.command:
            kept = ("--checkpoint", _CHECKPOINT) if with_checkpoint else ()
            arguments = ("-m", "kernelatoms", *scenario.command, *kept)
        else:
            arguments = (
                "-m",
                "fuzz.checkpoints",
                "--child",
                name,
                *["--plain"] * (not with_checkpoint),
            )
        process = subprocess.Popen(
            [sys.executable, *arguments], cwd=self.folder, text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([_ROOT, *sys.path])},
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip
        while not (scenario.command or (self.folder / _BEGUN).exists()):
            if process.poll() is not None:
                raise TroubleError(f"{name} failed: {process.communicate()[1]}")
            time.sleep(0.002)
        return process

    def _finish(self, name: str, process: subprocess.Popen[str]) -> None:
        errors = process.communicate()[1]
        if process.returncode != 0:
            raise TroubleError(f"{name} failed: {errors}")


def fitted_arrays(model: Any, before: str = "") -> dict[str, Any]:
    """Return the fitted attributes of a model, and of the learners in it, as arrays."""
    found: dict[str, Any] = {}
    for name, value in vars(model).items():
        if name == "dictionaries_":
            for number, learner in enumerate(value):
                found |= fitted_arrays(learner, f"{before}{number}.")
        elif name.endswith("_") and not name.startswith("_") and value is not None:
            array = np.asarray(getattr(value, "dictionary", value))
            if array.dtype != object:
                found[before + name] = array
    return found


def _be_child(name: str, with_checkpoint: bool) -> None:
    """Fit in the current folder, and write what was learned."""
    folder, callbacks = Path.cwd(), (Checkpoint(_CHECKPOINT),) if with_checkpoint else ()
    fit = SCENARIOS[name].fit
    assert fit is not None
    (folder / _BEGUN).touch()
    np.savez(folder / _RESULT, **fitted_arrays(fit(folder, callbacks)))


def main() -> int:
    """Run what the command line asks for; 0 if there was no trouble."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=100, help="kills")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--only", choices=SCENARIOS, nargs="*", default=list(SCENARIOS))
    parser.add_argument("--child", choices=SCENARIOS, help=argparse.SUPPRESS)
    parser.add_argument("--plain", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.child:
        _be_child(chosen.child, not chosen.plain)
        return 0
    seed = random.SystemRandom().randrange(10**6) if chosen.seed is None else chosen.seed
    draw, n_hit, troubles = random.Random(seed), 0, 0
    print(f"{chosen.count} kills, seed {seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        place = Range(Path(folder))
        for turn in range(10**9):
            if n_hit >= chosen.count:
                break
            name = chosen.only[turn % len(chosen.only)]
            try:
                if name not in place.seconds:
                    place.prepare(name)
                told = place.play(name, draw)
            except TroubleError as trouble:
                troubles += 1
                told = [f"TROUBLE: {trouble}"]
            n_hit += len(told)
            print(f"{n_hit:>4} {name:<10} {'; '.join(told)}", flush=True)
    print(f"{n_hit} kills, seed {seed}: {troubles} troubles")
    return int(troubles > 0)


if __name__ == "__main__":
    sys.exit(main())
