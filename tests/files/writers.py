"""Many processes that add rows to one file at once: ``python writers.py FOLDER``.

First to ``patient.kac``, where they wait for each other, then to ``impatient.kac``, where they do
not. Half of them know the file by another name, a link. Every one prints a line: the file, its
number, and "done" or what was wrong.
"""

import os
import sys
import time
from pathlib import Path

import numpy as np

from kernelatoms import compress
from kernelatoms.files import locking

N_WRITERS, N_ROWS = 10, 30


def rows_of(writer):
    """Return the rows of one of them; no two have a value in common."""
    return writer + np.arange(N_ROWS * 2.0).reshape(N_ROWS, 2) / 1000


def write_all(folder, target, patience):
    """Let all writers start at the same moment."""
    locking.PATIENCE = patience
    (folder / f"link-{target}").symlink_to(target)
    start = time.time() + 0.3
    for writer in range(N_WRITERS):
        if os.fork() == 0:
            np.save(folder / f"{writer}.npy", rows_of(writer))
            time.sleep(max(0, start - time.time()))
            name = folder / (f"link-{target}" if writer % 2 else target)
            try:
                compress(folder / f"{writer}.npy", name, append=True)
                said = "done"
            except Exception as error:
                said = f"{type(error).__name__}: {error}"
            os.write(1, f"{target} {writer} {said}\n".encode())
            os._exit(0)
    for _ in range(N_WRITERS):
        os.wait()


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    np.save(folder / "first.npy", rows_of(-1))
    for target, patience in {"patient.kac": 60, "impatient.kac": 0}.items():
        # Twice, so that all that is loaded when it is first needed is loaded here, once.
        for _ in range(2):
            compress(folder / "first.npy", folder / target, max_error=None, append=True)
        write_all(folder, target, patience)
