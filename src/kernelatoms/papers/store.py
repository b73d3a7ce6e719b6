"""Records of runs: one JSON line per (setting, seed), appended the moment a run ends.

A run that is interrupted loses itself and nothing before it: a last line without its end is
dropped when the next record is written.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kernelatoms.files.locking import one_writer

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

    One process at a time: another's line that is half written would be taken for a torn one.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps(record, sort_keys=True).encode() + b"\n"
    with one_writer(path), path.open("ab+") as file:
        file.seek(0)
        whole, torn = _split_torn_end(file.read())
        if torn:
            file.truncate(len(whole))
        file.write(line)
        file.flush()
        os.fsync(file.fileno())


def _split_torn_end(data: bytes) -> tuple[bytes, bytes]:
    end = data.rfind(b"\n") + 1
    return data[:end], data[end:]
