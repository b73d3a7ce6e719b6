"""Fig. 4 as the paper has it: on which atoms the codes of one person's test images lie."""

from pathlib import Path

import numpy as np

from kernelatoms.report import Picture
from kernelatoms.report.figures.code_energies import code_energy_figure
from reproduction.lkdl.faces import CODES, FOUR, SHOWN, our_weights
from reproduction.store import read_records


def code_pictures(folder: Path) -> list[Picture]:
    """Draw the sums of |coefficients| of one person's test images, with published weights, ours."""
    sums: dict[str, list[float]] = {}
    each = 1
    for record in read_records(CODES.path(folder)):
        setting, measures = record["setting"], record["measures"]
        if setting["x"] == SHOWN and "a1" in measures:
            n_atoms = sum(name[0] == "a" for name in measures)
            sums[setting["method"]] = [measures[f"a{i}"] for i in range(1, n_atoms + 1)]
            each = setting["atoms_each"]
    pictures = []
    for which, names in (
        ("published weights, rank 400", {m: m for m in FOUR}),
        ("our weights, all components", {m: our_weights(m) for m in FOUR}),
    ):
        codes = {m: np.array([sums[name]]) for m, name in names.items() if name in sums}
        if not codes:
            continue
        owners = {m: np.arange(row.size) // each for m, row in codes.items()}
        people = range(1, max(int(owner[-1]) for owner in owners.values()) + 2)
        pictures.append(
            Picture(
                code_energy_figure(codes, owners, people, own=SHOWN),
                f"Test images of person {SHOWN} (in red), first split, {which}: sums of "
                "|coefficients| by atom, and by person.",
                f"Bars for every atom and every person, person {SHOWN} in a colour of their own.",
            )
        )
    return pictures
