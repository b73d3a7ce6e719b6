"""The ``kernelatoms`` command, also as ``python -m kernelatoms``."""

import sys

from kernelatoms.cli import stopping


def main() -> None:
    """Run the command line as a process of its own; Ctrl-C is understood from here on."""
    try:
        stopping.listen()
        try:
            from kernelatoms.cli.app import main as run

            code = run()
        finally:
            stopping.finish()
    except KeyboardInterrupt:
        stopping.end()
    sys.exit(code)


if __name__ == "__main__":
    main()
