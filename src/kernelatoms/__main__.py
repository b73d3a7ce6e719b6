"""The ``kernelatoms`` command, also as ``python -m kernelatoms``."""

import gc
import sys

from kernelatoms.cli import interrupts
from kernelatoms.lazy import OF_CLI, missing_extra

# Containers made before the collector of cycles looks: modules and figures are very many and stay,
# and looking through them again and again took a tenth of a command's time.
_MADE_BEFORE_A_LOOK = 50_000


def main() -> None:
    """Run the command line as a process of its own; Ctrl-C is understood from here on."""
    gc.set_threshold(_MADE_BEFORE_A_LOOK)
    try:
        interrupts.listen()
        try:
            code = _run()
        finally:
            interrupts.finish()
    except KeyboardInterrupt:
        interrupts.end()
    sys.exit(code)


def _run() -> int:
    try:
        from kernelatoms.cli.app import main as run

        return run()
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in OF_CLI:
            raise
        print(missing_extra("The kernelatoms command", error.name or ""), file=sys.stderr)
        return 1


if __name__ == "__main__":
    main()
