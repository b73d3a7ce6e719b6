"""One fit and prediction in a process of its own, which may not take too long or too much memory.

The process stays warm for the next run: loops are loaded once, and every method has learned from a
few rows before it is timed. A process over its budget is ended, and a new one is started.
"""

import multiprocessing
import pickle
import time
import warnings
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from sklearn.metrics import balanced_accuracy_score

from reproduction.methods.classifiers import make_method
from reproduction.methods.data import TUNED, Split, split_of
from reproduction.study import DataHome, NotAvailable, Setting

#: Seconds and bytes that one run may take.
SECONDS, BYTES = 600.0, 8 << 30
OVER = "over budget"


class Worker:
    """A process that measures; started on first use, and again after it was ended."""

    def __init__(self, seconds: float = SECONDS, n_bytes: int = BYTES) -> None:
        self.seconds, self.n_bytes = seconds, n_bytes
        self._process: Any = None
        self._line: Connection | None = None

    def measure(self, setting: Setting, seed: int, data_home: DataHome) -> dict[str, float | str]:
        """Return what a run gave, or that it was over its budget, and of what."""
        if self._process is None:
            self._begin()
        assert self._line is not None
        try:
            self._line.send((dict(setting), seed, data_home))
            # What a process may do before it is timed is a few rows of the same method.
            if not self._line.poll(self.seconds):
                self.end()
                return {OVER: "time"}
            found = self._line.recv()
        except (EOFError, ConnectionError):  # killed, by the system that had no memory left
            self.end()
            return {OVER: "memory"}
        if isinstance(found, Exception):
            raise found
        return dict(found)

    def _begin(self) -> None:
        # Not forked from here: a process with threads cannot be copied safely.
        context = multiprocessing.get_context("spawn")
        self._line, other = context.Pipe()
        self._process = context.Process(target=_serve, args=(other, self.n_bytes), daemon=True)
        self._process.start()
        other.close()

    def end(self) -> None:
        """End the process, if there is one."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process = self._line = None


_WORKER = Worker()


def measure(setting: Setting, seed: int, data_home: DataHome) -> dict[str, float | str]:
    """Return accuracies, times and size of one method on one data set."""
    return _WORKER.measure(setting, seed, data_home)


def _serve(line: Connection, n_bytes: int) -> None:
    _limit_memory(n_bytes)
    warm: set[tuple[str, bool]] = set()
    while True:
        try:
            setting, seed, data_home = line.recv()
        except EOFError:
            return
        try:
            line.send(_measured(setting, seed, data_home, warm))
        except MemoryError:
            line.send({OVER: "memory"})
        except (NotAvailable, ValueError, TypeError, FloatingPointError) as error:
            line.send(error)


def _limit_memory(n_bytes: int) -> None:
    try:
        import resource
    except ImportError:  # not on Windows
        return
    resource.setrlimit(resource.RLIMIT_DATA, (n_bytes, n_bytes))


def _measured(
    setting: Setting, seed: int, data_home: DataHome, warm: set[tuple[str, bool]]
) -> dict[str, float | str]:
    name, condition = setting["method"], setting["condition"]
    split = split_of(setting["data"], condition, seed, data_home)
    with warnings.catch_warnings():
        # Small classes clip sizes, and that is what the defaults are meant to do.
        warnings.simplefilter("ignore")
        if name not in {known for known, _ in warm}:
            few = _few(split)
            make_method(name, len(few.train), seed, False).fit(few.train, few.labels).predict(
                few.test
            )
            warm.add((name, False))
        return run_cell(name, split, seed, condition == TUNED)


def run_cell(name: str, split: Split, seed: int, tuned: bool) -> dict[str, float | str]:
    """Learn, predict, and say how well, how fast and how large: percent, seconds, bytes."""
    model = make_method(name, len(split.train), seed, tuned)
    start = time.perf_counter()
    model.fit(split.train, split.labels)
    fitted = time.perf_counter()
    predicted = model.predict(split.test)
    done = time.perf_counter()
    best = getattr(model, "best_estimator_", model)
    return {
        "accuracy": 100 * float(np.mean(predicted == split.test_labels)),
        "balanced": 100 * float(balanced_accuracy_score(split.test_labels, predicted)),
        "fit": fitted - start,
        "predict": done - fitted,
        "bytes": float(len(pickle.dumps(best))),
    }


def _few(split: Split) -> Split:
    """Return a few rows of every class, to load what has to be loaded."""
    some = np.concatenate(
        [np.flatnonzero(split.labels == label)[:6] for label in np.unique(split.labels)[:4]]
    )
    return Split(split.train[some], split.labels[some], split.test[:5], split.test_labels[:5])
