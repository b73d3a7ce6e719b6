"""What a reader must know to judge a time or to repeat a run: code, machine, time."""

import functools
import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kernelatoms import __version__, n_threads


def circumstances() -> dict[str, Any]:
    """Return the circumstances of a run that begins now."""
    return {
        "version": __version__,
        "commit": commit(),
        "time": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "machine": f"{_processor()}, {os.cpu_count()} cores",
        "threads": n_threads(),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
    }


@functools.cache
def commit() -> str | None:
    """Return the commit of the code that runs; None for code that is not under version control.

    ``-changed`` follows where files of the package or of the reproduction differ from that commit.
    """
    clone = Path(__file__).parents[1]
    if not (clone / ".git").exists():  # the version says it all
        return None
    name = _git(clone, "rev-parse", "--short=10", "HEAD")
    changed = _git(clone, "status", "--porcelain", "--", "src", "reproduction")
    return f"{name}-changed" if name and changed else name


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=folder, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()
