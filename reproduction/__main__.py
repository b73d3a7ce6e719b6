"""``python -m reproduction``: run the experiments of the papers."""

import os
import sys
from collections.abc import Sequence

STOPPED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    try:
        code = _run(argv)
    except KeyboardInterrupt:  # while modules are imported
        code = STOPPED
    if code == STOPPED:
        print("\nStopped before it was done.", file=sys.stderr, flush=True)
    return code


def _run(argv: Sequence[str] | None) -> int:
    try:
        import kernelatoms  # noqa: F401
        from reproduction.command import app
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "reproduction":
            raise
        hint = "pip install -e '.[cli]' installs it"
        print(f"python -m reproduction needs {error.name}; {hint}.", file=sys.stderr)
        return 1
    try:
        app(args=argv, prog_name="python -m reproduction")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def run() -> None:
    """Run the command line as a process of its own."""
    code = main()
    if code == STOPPED:
        # An interrupt that has passed through exec() would make Python exit with another code.
        sys.stdout.flush()
        os._exit(code)
    sys.exit(code)


if __name__ == "__main__":
    run()
