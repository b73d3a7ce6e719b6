"""Digits: Table III on MNIST, unit rows, float32; all 10,000 test digits.

The place on the axis is the number of training digits, drawn by the seed where it is not all of
them; else the seed draws landmarks and starts only.
"""

from typing import Any

from reproduction.ksad.data import mnist
from reproduction.ksad.methods import PAPER, ksad, low_rank_map, measure, published
from reproduction.ksad.reported import (
    ALL_DIGITS,
    DEFAULTS,
    DEFAULTS_ATOMS,
    FDDL,
    FEW_DIGITS,
    LKDL,
    MAP_FDDL,
    NEAREST,
    PUBLISHED,
    SVM,
)
from reproduction.study import DataHome, Setting, Size, Study

N_ATOMS, EACH = 300, 30
#: K-SAD's own default: four landmarks per atom.
N_LANDMARKS = 1200
_KSVD = {"n_atoms": EACH, "n_nonzero_coefs": 5, "max_iter": 20, "tol": 0}
_MAP = low_rank_map(N_LANDMARKS)
_FDDL = {"n_atoms_per_class": EACH}

_ROWS: tuple[tuple[dict[str, Any], tuple[int, ...]], ...] = (
    ({"method": NEAREST, "model": "nearest", "params": {}}, (FEW_DIGITS, ALL_DIGITS)),
    (published(PUBLISHED), (FEW_DIGITS, ALL_DIGITS)),
    (ksad(DEFAULTS_ATOMS, ["n_atoms"]), (FEW_DIGITS, ALL_DIGITS)),
    (ksad(DEFAULTS), (FEW_DIGITS, ALL_DIGITS)),
    ({"method": LKDL, "model": "ksvd", "params": _KSVD, "map": _MAP}, (FEW_DIGITS, ALL_DIGITS)),
    ({"method": SVM, "model": "svm", "params": {"C": 10, "gamma": "scale"}}, (FEW_DIGITS,)),
    ({"method": FDDL, "model": "fddl", "params": _FDDL}, (FEW_DIGITS,)),
    ({"method": MAP_FDDL, "model": "fddl", "params": _FDDL, "map": _MAP}, (FEW_DIGITS,)),
)  # fmt: skip
_QUICK = (NEAREST, PUBLISHED, DEFAULTS_ATOMS, LKDL)


def _settings() -> list[Setting]:
    return [{**row, "x": n_train} for row, places in _ROWS for n_train in places]


def measure_digits(setting: Setting, seed: int, data_home: DataHome) -> dict[str, float]:
    """Return the accuracy in percent and the seconds to learn and to classify."""
    return measure(setting, mnist(setting["x"], seed, data_home), seed)


DIGITS = Study(
    name="ksad/mnist",
    dataset="mnist",
    quick=Size(
        [s for s in _settings() if s["method"] in _QUICK and s["x"] == FEW_DIGITS], 1, "15 s"
    ),
    full=Size(_settings(), 5, "15 min"),
    measure=measure_digits,
    parameters={"n_atoms": N_ATOMS, **PAPER},
)
