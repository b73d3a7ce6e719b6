"""Files of every version of the format that was ever written are still read, to the same bytes.

Beside ``name.kac`` stands ``name.json`` with the SHA-256 of what comes out of it. New ones are made
by ``make_fixtures.py``; old ones are never made again.
"""

import json
from pathlib import Path

import pytest

from codec.make_fixtures import digest_of
from kernelatoms import inspect_compressed
from kernelatoms.codec.decompressing import restored_name

FOLDER = Path(__file__).parent / "fixtures"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.kac")), ids=lambda path: path.name)
def test_files_of_every_version_are_read(path, tmp_path):
    told = json.loads(path.with_suffix(".json").read_text())
    model = FOLDER / told["model"] if told.get("model") else None
    assert digest_of(path, tmp_path / restored_name(path).name, model) == told["sha256"]
    assert inspect_compressed(path).kind == told["kind"]
