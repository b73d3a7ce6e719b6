"""Fig. 2 as the paper has it: learned atoms as faces."""

import numpy as np

from kernelatoms.datasets import DatasetNotFoundError
from kernelatoms.report import Picture, atoms_figure
from reproduction.ksad.data import IMAGE_SHAPES
from reproduction.ksad.preimages import DISTANCE, FIXED_POINT, PLACES, in_pixels
from reproduction.study import DataHome

_SEED = 0
_N_COLUMNS, _N_ROWS = 10, 3


def atom_pictures(data_home: DataHome) -> list[Picture]:
    """Draw atoms of the published method, first split; none where the images are not at hand."""
    pictures = []
    for data in PLACES.values():
        for method in (FIXED_POINT, DISTANCE):
            try:
                rows, _ = in_pixels(data, method, _SEED, data_home)
            except DatasetNotFoundError:
                break
            pictures.append(_sheet(data, method, rows))
    return pictures


def _sheet(data: str, method: str, rows: np.ndarray) -> Picture:
    some = np.linspace(0, len(rows) - 1, min(len(rows), _N_COLUMNS * _N_ROWS)).astype(int)
    return Picture(
        atoms_figure(rows[some], IMAGE_SHAPES[data], n_columns=_N_COLUMNS),
        f"{data}: {len(some)} learned atoms, first split; pre-images by {method}, each on its own "
        "scale, white at 0.",
        "A grid of faces, some of them lit from one side or only in part.",
    )
