"""Run contenders side by side, fairly.

Every contender has a child process of its own, with the same number of threads; it prepares
its data in the layout it likes best and warms up (JIT, BLAS) before anything is timed. Then the
parent asks them in turn, round after round, while all others sleep: one call to wake the clock and
the threads, and one that is timed. Because a process can be lucky with its memory (SPAMS is up to
twice as fast in some as in others), everything is repeated with fresh children and the median is
taken over all.
"""

import importlib
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from typing import Any

N_THREADS = int(os.environ.get("BENCH_THREADS", "2"))
#: Contenders that run in the children of any tree, by public names only.
ANY_TREE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "any_tree")
_PAUSE = 0.15  # lets BLAS helper threads of the last contender go to sleep


@dataclass
class Contender:
    """A function ``<module>.<function>(**arguments)`` that returns what to time.

    What is timed returns a number, or a function that computes what is reported, untimed.
    """

    label: str
    function: str
    arguments: dict[str, Any]
    once: bool = False  # one call, timed, not woken up first: for the very slow
    tree: str | None = None  # run the package and the benchmarks of this checkout, not of this one
    threads: int | None = None  # of its own, not as many as all others


@dataclass
class Result:
    """Median seconds, the last return value, the peak resident memory in GiB, and all seconds.

    ``runs`` has a list for every generation of children, in the order of the rounds.
    """

    seconds: float
    value: Any
    peak_gib: float
    runs: list[list[float]]


def compare(
    contenders: list[Contender],
    rounds: int = 5,
    generations: int = 1,
    *,
    threads: int = N_THREADS,
    module: str = "benchmarks.contenders",
) -> dict[str, Result]:
    """Time all contenders alternately and return their results by label."""
    times: dict[str, list[list[float]]] = {c.label: [] for c in contenders}
    answers: dict[str, dict[str, Any]] = {}
    for generation in range(generations):
        taking_part = [c for c in contenders if generation == 0 or not c.once]
        if generation % 2:  # nobody is always the first
            taking_part.reverse()
        for c in taking_part:
            times[c.label].append([])
        children = {c.label: _start(c, threads, module) for c in taking_part}
        try:
            for label, child in children.items():
                _read(child, label)  # "ready"
            for turn in range(rounds):
                for c in taking_part:
                    if turn == 0 or not c.once:
                        time.sleep(_PAUSE)
                        answers[c.label] = _ask(children[c.label], c)
                        times[c.label][-1].append(answers[c.label]["seconds"])
        finally:
            for child in children.values():
                child.kill()
    return {
        c.label: Result(
            statistics.median(chain(*times[c.label])), answers[c.label]["value"],
            answers[c.label]["peak_gib"], times[c.label],
        )
        for c in contenders
    }  # fmt: skip


def _start(contender: Contender, n_threads: int, module: str) -> subprocess.Popen[str]:
    threads = str(contender.threads or n_threads)
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
    env = {**os.environ, **dict.fromkeys(names, threads), "KERNELATOMS_NUM_THREADS": threads}
    if contender.tree is not None:
        # The other tree has its own contenders; those that any tree can run are added.
        env["PYTHONPATH"] = os.pathsep.join([os.path.join(contender.tree, "src"), ANY_TREE])
    return subprocess.Popen(
        [sys.executable, "-m", "benchmarks.harness", module, contender.function,
         json.dumps(contender.arguments)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env,
        cwd=contender.tree,
    )  # fmt: skip


def _ask(child: subprocess.Popen[str], contender: Contender) -> dict[str, Any]:
    assert child.stdin is not None
    child.stdin.write("once\n" if contender.once else "twice\n")
    child.stdin.flush()
    return _read(child, contender.label)


def _read(child: subprocess.Popen[str], label: str) -> dict[str, Any]:
    assert child.stdout is not None
    line = child.stdout.readline()
    if not line:
        raise RuntimeError(f"{label} died; its message is above.")
    return json.loads(line)


def _serve(module: str, function: str, arguments: dict[str, Any]) -> None:
    """Prepare and warm up, say so, then time one call for every line on standard input."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever the contender prints goes to standard error
    call = getattr(importlib.import_module(module), function)(**arguments)
    print(json.dumps("ready"), file=answers, flush=True)
    for wish in sys.stdin:
        if wish.strip() == "twice":
            call()
        start = time.perf_counter()
        value = call()
        seconds = time.perf_counter() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        if callable(value):
            value = value()
        elif not isinstance(value, int | float | None):
            value = None
        answer = {"seconds": seconds, "value": value, "peak_gib": peak}
        print(json.dumps(answer), file=answers, flush=True)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "(not installed)"


def describe_machine() -> str:
    """Return one line on machine, load and versions, for the head of a table."""
    packages = ("kernelatoms", "numpy", "scipy", "numba", "scikit-learn",
                "spams-bin", "dictlearn", "dictol")  # fmt: skip
    versions = ", ".join(f"{name} {_version(name)}" for name in packages)
    cpu = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo") as lines:
            cpu = next(line.split(":")[1].strip() for line in lines if "model name" in line)
    except OSError:
        pass
    load = os.getloadavg()[0]
    return (
        f"{cpu}, {os.cpu_count()} cores, {N_THREADS} threads a contender, load before the run "
        f"{load:.2f}; Python {platform.python_version()}, {versions}."
    )


if __name__ == "__main__":
    _serve(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]))
