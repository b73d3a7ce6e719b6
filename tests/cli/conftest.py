"""What tests of the command line share."""

import shutil
from pathlib import Path

import pytest

from commands import command, start_command
from pictures import drawn, undrawn_pictures

__all__ = ["command", "drawn", "start_command", "undrawn_pictures"]


@pytest.fixture
def flowers(tmp_path):
    """A table made by hand: quotes, a text label, an identifier, a missing value."""
    path = tmp_path / "flowers.csv"
    shutil.copy(Path(__file__).with_name("flowers.csv"), path)
    return path
