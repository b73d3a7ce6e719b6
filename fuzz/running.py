"""Cases on all processors, in child processes that are watched.

A case is known by the run's seed and its number. Children take chunks of cases; each finished
chunk is one line of a JSON file, so that a run that was stopped, however rudely, goes on from what
it had finished. A child that dies or hangs is replaced, and its case written down as a failure with
the files that it had before it.
"""

import faulthandler
import json
import multiprocessing
import os
import resource
import shutil
import tempfile
import time
import traceback
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import numpy as np

#: What a case may take: seconds, and bytes beyond what the child holds before its first case.
MOST_SECONDS = 10
MOST_BYTES = 1 << 30

#: How many cases a child takes at once; part of what a line of the file means.
CHUNK = 200

#: ``play(rng, folder)`` plays one case with files in a folder and says in a word how it ended.
Play = Callable[[np.random.Generator, Path], str]

#: ``target()`` prepares (models, tables) and returns how a case is played.
Target = Callable[[], Play]


@dataclass
class Run:
    """What has been done for one target with one seed."""

    name: str
    seed: int
    folder: Path
    most_seconds: float = MOST_SECONDS
    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[int] = field(default_factory=list)
    finished: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        if not self.file.exists():
            return
        for line in self.file.read_text().splitlines():
            try:
                self._add(json.loads(line))
            except ValueError:  # the last line of a run that was killed
                continue

    @property
    def file(self) -> Path:
        """The lines of finished chunks."""
        return self.folder / f"{self.name}-{self.seed}.jsonl"

    @property
    def n_cases(self) -> int:
        """How many cases have been played."""
        return sum(self.outcomes.values())

    def write_down(self, chunk: int, outcomes: Counter[str], failures: list[int]) -> None:
        """Note a finished chunk."""
        line = {"chunk": chunk, "outcomes": outcomes, "failures": failures}
        with self.file.open("a") as file:
            file.write(json.dumps(line) + "\n")
        self._add(line)

    def chunks(self) -> Iterator[int]:
        """Return the numbers of chunks that have not been played."""
        chunk = 0
        while True:
            if chunk not in self.finished:
                yield chunk
            chunk += 1

    def keep(self, case: int, folder: Path, words: str) -> None:
        """Keep the files of a failure, with what went wrong."""
        kept = self.folder / "failures" / f"{self.name}-{self.seed}-{case}"
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(folder, kept)
        again = f"python -m fuzz {self.name} --seed {self.seed} --case {case}\n\n"
        (kept / "what.txt").write_text(again + words)
        print(f"\n{self.name}, case {case}: {words.strip().splitlines()[-1]}\n  kept in {kept}")

    def _add(self, line: dict[str, Any]) -> None:
        if line["chunk"] not in self.finished:
            self.finished.add(line["chunk"])
            self.outcomes.update(line["outcomes"])
            self.failures += line["failures"]


def check_words(error: Exception) -> None:
    """Complain about an error that says nothing."""
    if not str(error).strip():
        raise AssertionError(f"{type(error).__name__} without words") from error


def generator(name: str, seed: int, case: int) -> np.random.Generator:
    """Return the random numbers of a case."""
    return np.random.default_rng([seed, zlib.crc32(name.encode()), case])


def play_one(target: Target, name: str, seed: int, case: int) -> str:
    """Play one case here, with whatever it raises."""
    with tempfile.TemporaryDirectory() as folder:
        return target()(generator(name, seed, case), Path(folder))


def play_many(
    target: Target, run: Run, *, seconds: float, n_cases: int | None, n_workers: int
) -> None:
    """Play further cases of a run for so many seconds, or until so many have been played in all.

    Preparing does not count.
    """
    end = float("inf")
    chunks = run.chunks()
    crew = [_Worker(target, run, i) for i in range(n_workers)]
    try:
        going = list(crew)
        while going:
            for worker in list(going):
                enough = n_cases is not None and run.n_cases + _under_way(crew) >= n_cases
                if worker.chunk is None and (time.monotonic() > end or enough):
                    going.remove(worker)
                elif worker.chunk is None:
                    worker.give(next(chunks))
                else:
                    worker.look()
            if end == float("inf") and any(worker.is_ready for worker in crew):
                end = time.monotonic() + seconds
            time.sleep(0.01)
    finally:
        for worker in crew:
            worker.end()


def _under_way(crew: "list[_Worker]") -> int:
    return CHUNK * sum(worker.chunk is not None for worker in crew)


class _Worker:
    """A child process, its folder, and the chunk it works on."""

    def __init__(self, target: Target, run: Run, number: int) -> None:
        self._target, self._run, self._number = target, run, number
        self._folder = Path(tempfile.mkdtemp(prefix=f"fuzz-{run.name}-"))
        self._context = multiprocessing.get_context("spawn")
        self._process: BaseProcess | None = None
        self.chunk: int | None = None
        self.is_ready = False
        self._outcomes: Counter[str] = Counter()
        self._failures: list[int] = []

    def give(self, chunk: int) -> None:
        """Have the child play a chunk."""
        self.chunk, self._outcomes, self._failures = chunk, Counter(), []
        self._go_on_at(chunk * CHUNK)

    def look(self) -> None:
        """See what the child has to say, or that it says nothing any more."""
        try:
            if not self._child.poll():
                return
            case, outcomes, trouble = self._child.recv()
        except (EOFError, ConnectionError):
            self._replace()
            return
        if case < 0:
            self.is_ready = True
        elif trouble:
            self._note_failure(case, trouble)
            self._child.send(None)  # the folder has been kept; it may be used again
        else:
            self._outcomes.update(outcomes)
            self._close()

    def end(self) -> None:
        """Stop the child."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _go_on_at(self, first: int) -> None:
        if self._process is None or not self._process.is_alive():
            self._child, ours = self._context.Pipe()
            self._current = self._context.RawValue("q", -1)
            self._process = self._context.Process(
                target=_serve,
                args=(self._target, self._run, self._folder, ours, self._current),
                daemon=True,
            )
            self._process.start()
            ours.close()  # so that its end is noticed here
        assert self.chunk is not None
        self._child.send((first, (self.chunk + 1) * CHUNK))

    def _replace(self) -> None:
        """Note the case that killed the child, and go on behind it with another child."""
        assert self._process is not None
        self._process.join()
        case, code = int(self._current.value), self._process.exitcode
        if case < 0:
            raise RuntimeError(f"{self._run.name} cannot be prepared (exit code {code}).")
        log = (self._folder / "log.txt").read_text(errors="replace")
        how = (
            f"took over {self._run.most_seconds:g} s"
            if "Timeout" in log
            else f"ended with exit code {code}"
        )
        self._note_failure(case, f"{log}\nthe process {how}")
        # Outcomes of the cases before it are lost with the child; they were no failures.
        played = case - (self.chunk or 0) * CHUNK - sum(self._outcomes.values())
        self._outcomes["not counted"] += max(0, played - len(self._failures) + 1)
        if case + 1 < ((self.chunk or 0) + 1) * CHUNK:
            self._go_on_at(case + 1)
        else:
            self._close()

    def _note_failure(self, case: int, words: str) -> None:
        self._failures.append(case)
        self._run.keep(case, self._folder, words)

    def _close(self) -> None:
        assert self.chunk is not None
        self._outcomes["failed"] += len(self._failures)
        self._run.write_down(self.chunk, +self._outcomes, self._failures)
        self.chunk = None


def _serve(target: Target, run: Run, folder: Path, parent: Any, current: Any) -> None:
    """Play chunks of cases, as a child."""
    play = target()
    log = (folder / "log.txt").open("w")
    faulthandler.enable(log)
    _limit_memory()
    parent.send((-1, None, ""))
    while True:
        first, last = parent.recv()
        outcomes: Counter[str] = Counter()
        for case in range(first, last):
            _clear(folder)
            current.value = case
            # A thread of C's own ends the process, whatever it is doing.
            faulthandler.dump_traceback_later(run.most_seconds, exit=True, file=log)
            trouble = ""
            try:
                outcomes[play(generator(run.name, run.seed, case), folder)] += 1
            except BaseException:
                trouble = traceback.format_exc()
            faulthandler.cancel_dump_traceback_later()
            if trouble:
                parent.send((case, None, trouble))
                parent.recv()
        parent.send((last, outcomes, ""))


def _clear(folder: Path) -> None:
    for file in folder.iterdir():
        if file.is_dir():
            shutil.rmtree(file)
        elif file.name != "log.txt":
            file.unlink()


def _limit_memory() -> None:
    """Let allocations beyond what is held now fail."""
    status = Path("/proc/self/statm")
    if status.exists():
        held = int(status.read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (held + MOST_BYTES,) * 2)
