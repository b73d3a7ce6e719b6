"""Faces: Table II on AT&T (ORL) and Extended Yale B, all pixels, unit rows, one split per seed.

K-SAD, kernel K-SVD and nearest neighbours see all pixels. What learns atoms of pixels, or codes
over training rows, gets rows in the training rows' span (``data.short_rows``): the same answers,
and times of rows so short, turning included.
"""

import time
from typing import Any

from reproduction.ksad.data import ORL, YALEB, pixels, short_rows
from reproduction.ksad.methods import (
    PAPER,
    POLYNOMIAL,
    ksad,
    low_rank_map,
    measure,
    published,
)
from reproduction.ksad.reported import (
    DEFAULTS,
    DEFAULTS_ATOMS,
    FDDL,
    FDDL_LOCAL,
    KERNEL_KSVD,
    KERNEL_KSVD_3,
    L1,
    LKDL,
    MAP_FDDL,
    MAP_FDDL_LOCAL,
    METRIC_2,
    METRIC_8,
    NEAREST,
    OMP,
    OMP_10,
    PUBLISHED,
)
from reproduction.study import DataHome, Setting, Size, Study

#: Atoms in all and atoms per person, by data set.
N_ATOMS = {ORL: (240, 6), YALEB: (740, 20)}
# The same for both sets: the paper states none of its rivals'. The global decision of FDDL is the
# library's advice for classes of few rows. docs/papers/index.md says what was seen before.
_OMP_NONZERO, _KSVD_NONZERO = 30, 5
_N_TRAIN = {ORL: 240, YALEB: 1216}
_QUICK = {
    ORL: (NEAREST, PUBLISHED, DEFAULTS, METRIC_8, OMP, L1, LKDL),
    YALEB: (NEAREST, DEFAULTS, L1),
}


def _settings(data: str) -> list[Setting]:
    each = N_ATOMS[data][1]
    map_ = low_rank_map(_N_TRAIN[data])
    learned = {"n_nonzero_coefs": _KSVD_NONZERO}
    nearest = {"n_neighbors": 1, **POLYNOMIAL}
    fddl = {"n_atoms_per_class": each, "decision": "global"}
    rows: list[dict[str, Any]] = [
        {"method": NEAREST, "model": "nearest", "params": {}},
        published(PUBLISHED),
        ksad(DEFAULTS),
        ksad(DEFAULTS_ATOMS, ["n_atoms"]),
        ksad(METRIC_8, ["n_atoms", "degree"], **nearest),
        ksad(METRIC_2, ["n_atoms"], degree=2, **nearest),
        {"method": OMP, "model": "src", "params": {"n_nonzero_coefs": _OMP_NONZERO}, "short": True},
        {"method": L1, "model": "src", "params": {}, "short": True},
        {"method": KERNEL_KSVD, "model": "kernel-ksvd",
         "params": {"n_atoms": each, **learned, **POLYNOMIAL}, "from_paper": ["degree"]},
        {"method": FDDL, "model": "fddl", "params": fddl, "short": True},
        {"method": MAP_FDDL, "model": "fddl", "params": fddl, "map": map_},
        {"method": LKDL, "model": "ksvd", "params": {"n_atoms": each, **learned}, "map": map_},
    ]  # fmt: skip
    if data == ORL:
        rows += _other_choices(each, map_)
    return [{**row, "data": data, "x": None} for row in rows]


def _other_choices(each: int, map_: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what was tried of the rivals, and not kept."""
    local = {"n_atoms_per_class": each}
    learned = {"n_atoms": each, "n_nonzero_coefs": 3, **POLYNOMIAL}
    return [
        {"method": OMP_10, "model": "src", "params": {"n_nonzero_coefs": 10}, "short": True},
        {"method": KERNEL_KSVD_3, "model": "kernel-ksvd", "params": learned,
         "from_paper": ["degree"]},
        {"method": FDDL_LOCAL, "model": "fddl", "params": local, "short": True},
        {"method": MAP_FDDL_LOCAL, "model": "fddl", "params": local, "map": map_},
    ]  # fmt: skip


def measure_faces(setting: Setting, seed: int, data_home: DataHome) -> dict[str, float]:
    """Return the accuracy in percent and the seconds to turn rows, to learn and to classify."""
    split = pixels(setting["data"], seed, data_home)
    started = time.perf_counter()
    if setting.get("short"):
        split = short_rows(split).split
    turning = time.perf_counter() - started if setting.get("short") else 0.0
    return {**measure(setting, split, seed), "turn": turning}


def _study(data: str, name: str, dataset: str, quick: str, full: str) -> Study:
    settings = _settings(data)
    return Study(
        name=f"ksad/faces-{name}",
        dataset=dataset,
        quick=Size([s for s in settings if s["method"] in _QUICK[data]], 1, quick),
        full=Size(settings, 10, full),
        measure=measure_faces,
        parameters={"n_atoms": N_ATOMS[data][0], **PAPER},
    )


FACES_ORL = _study(ORL, "orl", "orl", "5 s", "1 min")
FACES_YALEB = _study(YALEB, "yaleb", "yaleb_96x84", "10 s", "12 min")
