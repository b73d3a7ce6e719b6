"""A classifier in a process of its own, so that its memory is measured alone.

The other process reads ``setting.json`` and ``rows.npz`` in a folder and prints what it measured as
JSON.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from reproduction.kcrc.methods import make_classifier
from reproduction.study import Setting

_STATUS = Path("/proc/self/status")


def run_alone(setting: Setting, rows: Mapping[str, Any]) -> dict[str, float]:
    """Return time and memory of a classifier on ``train``, ``labels`` and ``test`` of rows."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "setting.json").write_text(json.dumps(dict(setting)), encoding="utf-8")
        np.savez(Path(folder, "rows.npz"), **rows)
        command = [sys.executable, "-c", f"from {__name__} import main; main()", folder]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"the process of {setting['method']} ended with:\n{done.stderr}")
    measures: dict[str, float] = json.loads(done.stdout)
    return measures


def measure_here(setting: Setting, train: Any, labels: Any, test: Any) -> dict[str, float]:
    """Measure in this process: rows of ``test`` one by one, the first of which prepares."""
    warm_up = make_classifier(setting, 100, 0)
    if setting.get("n_neighbors"):
        warm_up.set_params(n_neighbors=10)
    some = np.concatenate([np.flatnonzero(labels == c)[:10] for c in np.unique(labels)])
    warm_up.fit(train[some], labels[some]).predict(test[:20])
    before = _resident("VmRSS")
    start = time.perf_counter()
    model = make_classifier(setting, len(train), 0).fit(train, labels)
    model.predict(test[:1])
    laps = [time.perf_counter()]
    for row in test[1:]:
        model.predict(row[None])
        laps.append(time.perf_counter())
    measures = {"ms": 1000 * float(np.median(np.diff(laps))), "prepare": laps[0] - start}
    peak = _resident("VmHWM")
    if before is not None and peak is not None:
        measures |= {"mib": peak - before, "peak": peak}
    return measures


def _resident(field: str) -> float | None:
    """Return memory in MiB as the system counts it: VmRSS now, VmHWM at most; None if unknown.

    ``getrusage`` will not do: a new process inherits there what the one that started it held.
    """
    if not _STATUS.exists():
        return None
    for line in _STATUS.read_text(encoding="utf-8").splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) / 1024
    return None


def main() -> None:
    """Measure what is in the folder that the command line names."""
    folder = sys.argv[1]
    setting = json.loads(Path(folder, "setting.json").read_text(encoding="utf-8"))
    with np.load(Path(folder, "rows.npz")) as rows:
        train, labels, test = (rows[name] for name in ("train", "labels", "test"))
    print(json.dumps(measure_here(setting, train, labels, test)))
