"""Records of runs: one JSON line per (setting, seed), appended when the run ends.

An interrupted run loses nothing but itself: a last line without its end is dropped when the next
record is written.
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

Record = dict[str, Any]


def key_of(setting: Mapping[str, Any]) -> str:
    """Return one text for equal settings, however their keys are ordered."""
    return json.dumps(dict(setting), sort_keys=True)


def read_records(path: Path) -> list[Record]:
    """Return the records of a file; none, if there is no file."""
    if not path.exists():
        return []
    whole, _ = _split_torn_end(path.read_bytes())
    records = []
    for number, line in enumerate(whole.splitlines(), start=1):
        try:
            record = json.loads(line)
            key_of(record["setting"]), record["seed"], record["measures"]
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"line {number} of {path} is no record of a run; delete the line, or move the file "
                "away to start anew."
            ) from error
        records.append(record)
    return records


def append_record(path: Path, record: Record) -> None:
    """Add one line and see that it is on the disk.

    Writers take turns, since half a line of another process would be taken for a torn one.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps(record, sort_keys=True).encode() + b"\n"
    with path.open("ab+") as file, _locked(file):
        file.seek(0)
        whole, torn = _split_torn_end(file.read())
        if torn:
            file.truncate(len(whole))
        file.write(line)
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def _locked(file: IO[bytes]) -> Iterator[None]:
    """Wait until no other process writes the file; the lock ends with the process at the latest."""
    try:
        import fcntl
    except ImportError:  # Windows: one process at a time is up to the user
        yield
        return
    with suppress(OSError):  # a file system without locks
        fcntl.flock(file, fcntl.LOCK_EX)
    yield  # closing the file unlocks it


def _split_torn_end(data: bytes) -> tuple[bytes, bytes]:
    end = data.rfind(b"\n") + 1
    return data[:end], data[end:]
