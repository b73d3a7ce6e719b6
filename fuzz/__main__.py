"""``python -m fuzz``: play cases of all kinds, or one again."""

import argparse
import os
import secrets
import sys
import time
from pathlib import Path

from fuzz.running import Run, Target, play_many, play_one


def _models() -> Target:
    from fuzz.models import prepare

    return prepare


def _tables() -> Target:
    from fuzz.tables import prepare

    return prepare


def _numbers() -> Target:
    from fuzz.numbers import prepare

    return prepare


def _codec() -> Target:
    from fuzz.codec import prepare

    return prepare


_TARGETS = {"models": _models, "tables": _tables, "numbers": _numbers, "codec": _codec}


def main() -> int:
    """Play cases; 0 if nothing broke."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="target", help=f"of {', '.join(_TARGETS)}")
    parser.add_argument("--seconds", type=float, default=600, help="for all targets together")
    parser.add_argument("--cases", type=int, help="stop a target earlier, at so many cases in all")
    parser.add_argument("--seed", type=int, help="go on with the run of this seed")
    parser.add_argument("--case", type=int, help="play this case alone, here")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--folder", type=Path, default=Path("build/fuzz"))
    options = parser.parse_args()
    names = options.targets or list(_TARGETS)
    for name in names:
        if name not in _TARGETS:
            parser.error(f"there is no target {name!r}; there are {', '.join(_TARGETS)}")
    # One thread a child, and one pool of memory: children are many, and their memory is limited.
    os.environ |= {"KERNELATOMS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"}
    os.environ |= {"ARROW_IO_THREADS": "1"}
    seed = secrets.randbits(32) if options.seed is None else options.seed
    if options.case is not None:
        for name in names:
            print(play_one(_TARGETS[name](), name, seed, options.case))
        return 0
    print(f"seed {seed}; go on with: python -m fuzz --seed {seed}")
    options.folder.mkdir(parents=True, exist_ok=True)
    n_failures = 0
    for name in names:
        run = Run(name, seed, options.folder)
        start, before = time.monotonic(), run.n_cases
        play_many(
            _TARGETS[name](), run, seconds=options.seconds / len(names), n_cases=options.cases,
            n_workers=options.workers,
        )  # fmt: skip
        words = ", ".join(f"{how} {n:,}" for how, n in sorted(run.outcomes.items()))
        took = time.monotonic() - start
        print(
            f"{name}: {run.n_cases:,} cases ({run.n_cases - before:,} now, {took:.0f} s): {words}"
        )
        n_failures += len(run.failures)
    print(f"{n_failures} failures" if n_failures else "nothing broke")
    return int(n_failures > 0)


if __name__ == "__main__":
    sys.exit(main())
