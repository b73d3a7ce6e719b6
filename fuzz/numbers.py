"""Coding and learning at the edge of what numbers can hold, against numpy."""

import sys
import warnings
from pathlib import Path

import numpy as np

from fuzz.running import Play

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import hard_cases


def prepare() -> Play:
    """Return how a case is played."""
    warnings.simplefilter("ignore")
    _warm()

    def play(rng: np.random.Generator, folder: Path) -> str:
        return hard_cases.run_case(rng) or "right"

    return play


def _warm() -> None:
    """Load all loops, which takes memory and time that no case is to blame for."""
    for seed in range(200):
        hard_cases.run_case(np.random.default_rng(seed))
