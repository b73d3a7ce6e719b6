"""``Checkpoint``: a callback that writes the state of learning, and finds it again.

See docs/decisions/060-checkpoints.md.
"""

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from kernelatoms.estimators.kept import KeptFit, Progress, StateKeeper
from kernelatoms.estimators.validation import check_count
from kernelatoms.files.locking import one_writer
from kernelatoms.files.state_files import StateFileError, read_state_file, write_state_file
from kernelatoms.files.writing import check_target
from kernelatoms.learning.state_arrays import StateWriter, from_tree

_SEEDS = np.iinfo(np.int32).max
# How many differences an error names, and how much of a value.
_MOST_TOLD, _LONGEST = 5, 60
# What damaged or hostile trees make of the functions that read them.
_NO_TREE = (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError)


class Checkpoint(StateKeeper):
    """Write the state of learning to a file, and go on from it where the same ``fit`` is called.

    A callback for dictionary learners and for the classifiers that learn a dictionary. After a pass
    the file holds all that learning needs to go on; a ``fit`` with the same parameters, of the same
    rows, reads it and goes on after the last pass written. Results are the same to the last bit as
    those of a run that was never stopped. Where the run had ended, its results are there at once.

    Parameters
    ----------
    path : str or path
        The file. It is replaced when the next one is complete, so that there is always a whole one.
    every : int, default=1
        Write after so many passes; always after the last one. Of ``ClassDictionaryClassifier``, a
        pass is one over the rows of all classes.
    on_resume : callable, optional
        Called with words where a fit goes on: "goes on after pass 7 of 20".

    Raises
    ------
    ValueError
        In ``fit``, before it starts: the file is damaged, or of other parameters, rows, labels or
        another version. Nothing is written then.
    OSError
        In ``fit``: the file cannot be written. The last one is whole.

    Notes
    -----
    What comes before the passes is computed again: maps, landmarks, the search for gamma. Atoms in
    coordinates of a feature space go on where these are computed to the same bits, that is with the
    same processor and libraries. The estimator's ``random_state`` may be None: the file holds a
    seed. ``partial_fit`` is not concerned.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from kernelatoms import KSVD, Checkpoint
    >>> X = np.random.default_rng(0).normal(size=(200, 16))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     checkpoint = Checkpoint(Path(folder) / "run.ckpt", on_resume=print)
    ...     ksvd = KSVD(n_atoms=32, max_iter=5, tol=0, random_state=0).set_callbacks(checkpoint)
    ...     first = ksvd.fit(X).components_
    ...     again = ksvd.fit(X).components_
    had ended after pass 5 of 5
    >>> bool((first == again).all())
    True
    """

    def __init__(
        self, path: Any, every: int = 1, *, on_resume: Callable[[str], None] | None = None
    ) -> None:
        self.path = Path(path)
        self.every = check_count("every", every)
        self.on_resume = on_resume

    @contextmanager
    def _keeping(self, identity: dict[str, Any]) -> Iterator[KeptFit]:
        check_target(self.path)
        with one_writer(self.path):
            fit = _CheckpointedFit(self.path, self.every, identity)
            if self.on_resume is not None and (words := fit.in_words()):
                self.on_resume(words)
            yield fit


class _CheckpointedFit:
    """One fit and its file. Runs of several classes come from several threads."""

    def __init__(self, path: Path, every: int, identity: dict[str, Any]) -> None:
        self._path, self._every, self._identity = path, every, identity
        self._lock = threading.Lock()
        self._runs: dict[str, dict[str, Any]] = {}
        self._arrays: dict[str, list[Any]] = {}
        self._n_runs, self._since = 1, 0
        self.seed = int(check_random_state(None).randint(_SEEDS))
        if os.path.lexists(path):
            self._read()

    def _read(self) -> None:
        try:
            text, arrays = read_state_file(self._path)
            told = self._differences(text["identity"])
            if told:
                raise StateFileError(f"it is that of another fit: {'; '.join(told)}")
            self.seed, self._n_runs = text["seed"], text["n_runs"]
            if any(type(n) is not int or n < 0 for n in (self.seed, self._n_runs)):
                raise StateFileError("its seed is none")
            for key, run in text["runs"].items():
                first, last = _check_run(run)
                self._runs[key], self._arrays[key] = run, arrays[first:last]
        except StateFileError as error:
            raise self.refuse(str(error)) from error
        except _NO_TREE as error:
            raise self.refuse("its text does not say what a checkpoint says") from error

    def _differences(self, found: dict[str, Any]) -> list[str]:
        """Return in words how the fit that wrote the file differs from this one."""
        # Of another class everything is different.
        asked = self._identity
        names = tuple(asked) if found["class"] == asked["class"] else ("class",)
        return differences({n: found[n] for n in names}, {n: asked[n] for n in names})

    def refuse(self, words: str) -> ValueError:
        return ValueError(
            f"Checkpoint: {self._path} cannot be gone on from: {words}. Nothing was changed; give "
            "another file, or delete this one to begin anew."
        )

    def in_words(self) -> str:
        """Return how far the runs had come; "" where there was no file."""
        if not self._runs:
            return ""
        passes = sum(run["n_passes"] for run in self._runs.values())
        most = max(run["max_iter"] for run in self._runs.values())
        begins = "had ended" if self._all_done() else "goes on"
        if self._n_runs == 1:
            return f"{begins} after pass {passes:,} of {most:,}"
        return (
            f"{begins} after {passes:,} passes of at most {most * self._n_runs:,}, those of "
            f"{self._n_runs:,} classes together"
        )

    def found(self, key: str) -> Progress | None:
        run = self._runs.get(key)
        if run is None:
            return None
        try:
            state = from_tree(run["state"], self._arrays[key])
        except _NO_TREE as error:
            raise self.refuse("its state is none") from error
        plain = {name: run[name] for name in ("n_passes", "is_done", "max_iter", "coordinates")}
        return Progress(state, **plain)

    def keep(self, key: str, progress: Progress, n_runs: int) -> None:
        writer = StateWriter()
        told = {**vars(progress), "state": writer.tree(progress.state)}
        with self._lock:
            self._runs[key], self._arrays[key], self._n_runs = told, writer.arrays, n_runs
            self._since += 1
            if self._since >= self._every * n_runs or self._all_done():
                self._write()
                self._since = 0
            if n_runs == 1:  # the next write is of another state
                self._arrays[key] = []

    def _all_done(self) -> bool:
        runs = self._runs.values()
        return len(runs) == self._n_runs and all(run["is_done"] for run in runs)

    def _write(self) -> None:
        runs: dict[str, Any] = {}
        arrays: list[Any] = []
        for key, run in self._runs.items():
            runs[key] = {**run, "arrays": [len(arrays), len(self._arrays[key])]}
            arrays += self._arrays[key]
        text = {"identity": self._identity, "seed": self.seed, "n_runs": self._n_runs, "runs": runs}
        try:
            write_state_file(self._path, text, arrays)
        except OSError as error:
            was = "the one before is whole" if self._path.exists() else "there is none yet"
            raise OSError(
                error.errno,
                f"Checkpoint: cannot write this one ({error.strerror or error}); {was}. The same "
                "fit goes on from it when there is room",
                str(self._path),
            ) from error


def _check_run(run: Mapping[str, Any]) -> tuple[int, int]:
    """Refuse what does not say how far a run has come; return its arrays, from where to where."""
    known = {"n_passes", "max_iter", "is_done", "coordinates", "state", "arrays"}
    if set(run) != known:
        raise StateFileError("it holds what this version does not know")
    first, count = run["arrays"]
    counts = (run["n_passes"], run["max_iter"], first, count)
    if any(type(n) is not int or n < 0 for n in counts) or type(run["is_done"]) is not bool:
        raise StateFileError("it does not say how far it has come")
    return first, first + count


def differences(found: Any, asked: Any, path: str = "") -> list[str]:
    """Return in words how what a file is of differs from what is asked for, few at most."""
    if _is_array(found) and _is_array(asked):
        return [] if found == asked else [_of_arrays(_called(path), found, asked)]
    if isinstance(found, dict) and isinstance(asked, dict):
        told: list[str] = []
        for name in sorted({*found, *asked}):
            if name not in found or name not in asked:
                where = "the file" if name in found else "this fit"
                told.append(f"only {where} has {_called(f'{path}.{name}')}")
            else:
                told += differences(found[name], asked[name], f"{path}.{name}")
        return told[:_MOST_TOLD]
    # Equal numbers of several types are one; NaN is NaN.
    if found == asked or (found != found and asked != asked):
        return []
    if path == ".goes_on_from":
        return [_of_starts(found, asked)]
    return [f"its {_called(path)} is {_shown(found)}, and that of this fit {_shown(asked)}"]


def _of_starts(found: Any, asked: Any) -> str:
    begins = {None: "from nothing"}
    last = "from a fitted model (warm_start)"
    if found is not None and asked is not None:
        return f"both begin {last}, and from different ones"
    return f"it began {begins.get(found, last)}, and this fit begins {begins.get(asked, last)}"


def _of_arrays(name: str, found: dict[str, Any], asked: dict[str, Any]) -> str:
    def told(one: dict[str, Any]) -> str:
        return f"{' x '.join(map(str, one['shape']))} of {one['type']}"

    if told(found) == told(asked):
        return f"its {name} have other values ({told(found)})"
    return f"its {name} are {told(found)}, and those of this fit {told(asked)}"


def _is_array(told: Any) -> bool:
    return isinstance(told, dict) and set(told) == {"shape", "type", "crc32"}


def _called(path: str) -> str:
    return path.removeprefix(".").removeprefix("parameters.")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
