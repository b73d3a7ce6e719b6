"""Data sets in the layout in which their authors distribute them, for those who have the files.

``load_authors("scene15")`` returns rows and labels like the loaders of ``kernelatoms.datasets``.
Signals of the LC-KSVD files are columns, and a label is a column of zeros with a single 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.datasets import ArraySpec, Dataset, load_dataset
from reproduction.authors_readers import read_csv, read_mat

if TYPE_CHECKING:
    from sklearn.utils import Bunch

    from reproduction.study import DataHome

Arrays = dict[str, NDArray[Any]]

_YALEB = (
    "A. Georghiades, P. Belhumeur, D. Kriegman, IEEE PAMI 23(6), 2001; "
    "K.-C. Lee, J. Ho, D. Kriegman, IEEE PAMI 27(5), 2005"
)
_LCKSVD = "Z. Jiang, Z. Lin, L. S. Davis, Label consistent K-SVD, IEEE PAMI 35(11), 2013"
_PYRAMIDS = (
    "S. Lazebnik, C. Schmid, J. Ponce, Beyond bags of features, CVPR 2006; the feature file: "
)


def _labels_of(marks: NDArray[Any], key: str) -> NDArray[np.int64]:
    """Return the classes 1, 2, ... of columns that have a single 1."""
    single = ((marks != 0).sum(axis=0) == 1) & (marks.sum(axis=0) == 1)
    if not single.all():
        column = int(np.flatnonzero(~single)[0])
        raise ValueError(
            f"{key} must have a single 1 in every column, at the signal's class, and zeros; column "
            f"{column} (counted from 0) has not"
        )
    return marks.argmax(axis=0).astype(np.int64) + 1


def labelled_columns(arrays: Mapping[str, NDArray[Any]]) -> Arrays:
    """Return rows and labels of ``featureMat`` and ``labelMat``."""
    rows = np.ascontiguousarray(arrays["featureMat"].T)
    return {"X": rows, "y": _labels_of(arrays["labelMat"], "labelMat")}


def divided_columns(arrays: Mapping[str, NDArray[Any]]) -> Arrays:
    """Return rows and labels of ``training_feats``, ``H_train``, ``testing_feats``, ``H_test``."""
    return {
        "X_train": np.ascontiguousarray(arrays["training_feats"].T),
        "y_train": _labels_of(arrays["H_train"], "H_train"),
        "X_test": np.ascontiguousarray(arrays["testing_feats"].T),
        "y_test": _labels_of(arrays["H_test"], "H_test"),
    }


def windows_first(arrays: Mapping[str, NDArray[Any]]) -> Arrays:
    """Return windows x segments x days of ``tensor``, segments x days x windows."""
    return {"X": np.ascontiguousarray(arrays["tensor"].transpose(2, 0, 1), np.float32)}


def stations_side_by_side(arrays: Mapping[str, NDArray[Any]]) -> Arrays:
    """Return hours x stations of a table of lines, the last one of each station and hour."""
    dates = "time must be dates such as 2014-05-01 00:00:00"
    # NumPy also takes "", "now" and "today" for dates.
    undated = ~np.strings.isdecimal(arrays["time"].astype("U4"))
    if undated.any():
        raise ValueError(f"{dates}, got {str(arrays['time'][undated][0])!r}")
    try:
        times = arrays["time"].astype("datetime64[h]")
    except ValueError as error:
        raise ValueError(f"{dates}: {error}") from error
    stations, column = np.unique(arrays["station_id"], return_inverse=True)
    hour = (times - np.datetime64("2014-05-01T00", "h")).astype(np.int64)
    first, last = int(hour.min()), int(hour.max())
    X = np.full((last - first + 1, len(stations)), np.nan, np.float32)
    X[hour - first, column] = arrays["PM25_Concentration"]
    return {"X": X, "hour": np.arange(first, last + 1), "station": stations}


def objects_and_trials(arrays: Mapping[str, NDArray[Any]]) -> Arrays:
    """Return the arrays, once every trial leaves out an instance that every category has."""
    pairs = set(zip(arrays["y"].tolist(), arrays["instance"].tolist(), strict=True))
    n_categories = arrays["test_instance"].shape[1]
    if set(arrays["y"].tolist()) != set(range(1, n_categories + 1)):
        raise ValueError(
            f"y must have all of the categories 1 to {n_categories}, the columns of test_instance"
        )
    for trial, left_out in enumerate(arrays["test_instance"].tolist()):
        for category, instance in enumerate(left_out, start=1):
            if (category, instance) not in pairs:
                raise ValueError(
                    f"test_instance leaves instance {instance} of category {category} out in trial "
                    f"{trial}, and no row is of it"
                )
    return dict(arrays)


def _lcksvd(name: str, file: str, what: str, cite: str, sizes: tuple[int, int, int]) -> Dataset:
    features, classes, n = sizes
    return Dataset(
        name=name,
        file=file,
        description=what,
        citation=f"{cite}{_LCKSVD}",
        arrays={
            "featureMat": ArraySpec(("feature", "n"), "number"),
            "labelMat": ArraySpec(("class", "n"), "number"),
        },
        sizes={"feature": features, "class": classes, "n": n},
        read=read_mat,
        convert=labelled_columns,
    )


AUTHORS_DATASETS: tuple[Dataset, ...] = (
    _lcksvd(
        "yaleb_lcksvd504", "randomfaces4extendedyaleb.mat",
        "Extended Yale B faces, 504 random projections: the LC-KSVD authors' feature file.",
        f"{_YALEB}; the feature file: ", (504, 38, 2414),
    ),
    Dataset(
        name="yaleb_lcksvdsplit",
        file="featurevectors.mat",
        description="Extended Yale B faces, the same features as the LC-KSVD authors divided them.",
        citation=f"{_YALEB}; the feature file: {_LCKSVD}",
        arrays={
            "training_feats": ArraySpec(("feature", "train"), "number"),
            "H_train": ArraySpec(("class", "train"), "number"),
            "testing_feats": ArraySpec(("feature", "test"), "number"),
            "H_test": ArraySpec(("class", "test"), "number"),
        },
        sizes={"feature": 504, "class": 38, "train": 1216, "test": 1198},
        read=read_mat,
        convert=divided_columns,
    ),
    _lcksvd(
        "ar_lcksvd540", "randomfaces4ar.mat",
        "AR faces with disguises, 100 people, 540 random projections of 165x120 crops: the LC-KSVD "
        "authors' feature file.",
        "A. M. Martinez, R. Benavente, CVC Technical Report 24, 1998; the feature file: ",
        (540, 100, 2600),
    ),
    _lcksvd(
        "scene15", "spatialpyramidfeatures4scene15.mat",
        "15 scene categories, spatial pyramid features reduced to 3000 by PCA: the LC-KSVD "
        "authors' feature file.",
        _PYRAMIDS, (3000, 15, 4485),
    ),
    _lcksvd(
        "caltech101", "spatialpyramidfeatures4caltech101.mat",
        "Caltech 101 (with background 102 classes), spatial pyramid features reduced to 3000 by "
        "PCA: the LC-KSVD authors' feature file.",
        f"L. Fei-Fei, R. Fergus, P. Perona, 2004; {_PYRAMIDS}", (3000, 102, 9144),
    ),
    Dataset(
        name="harvard",
        file="harvard226.npz",
        description="Round-trip times between 226 Azureus clients over 72 hours, in time slices.",
        citation="J. Ledlie, P. Gardner, M. Seltzer, Network coordinates in the wild, NSDI 2007",
        arrays={"X": ArraySpec(("slice", "node", "node"), "number")},
        sizes={"slice": 864, "node": 226},
    ),
    Dataset(
        name="traffic_214x61",
        file="tensor.mat",
        description="Traffic speed in Guangzhou in km/h, the whole published set: ten-minute "
        "windows x 214 road segments x 61 days, 0 is missing.",
        citation="X. Chen, Y. Chen, Z. He, Urban traffic speed dataset of Guangzhou, China, "
        "Zenodo record 1205229, 2018",
        arrays={"tensor": ArraySpec(("segment", "day", "window"), "number")},
        sizes={"segment": 214, "day": 61, "window": 144},
        read=read_mat,
        convert=windows_first,
    ),
    Dataset(
        name="pm25_urbanair",
        file="airquality.csv",
        description="Hourly PM2.5 in ug/m3, the whole Urban Air set: 437 stations of 43 cities, "
        "2014-05-01 to 2015-04-30.",
        citation="Y. Zheng et al., Forecasting fine-grained air quality based on big data, KDD "
        "2015",
        arrays={
            "station_id": ArraySpec(("line",), "str"),
            "time": ArraySpec(("line",), "str"),
            "PM25_Concentration": ArraySpec(("line",), "float32"),
        },
        sizes={"line": 2891393},
        read=read_csv,
        convert=stations_side_by_side,
    ),
    Dataset(
        name="rgbd",
        file="rgbd_objects.npz",
        description="Washington RGB-D objects, 300 objects of 51 categories: one row of pixels or "
        "features per image, and the object that each of ten trials leaves out of each category.",
        citation="K. Lai, L. Bo, X. Ren, D. Fox, A large-scale hierarchical multi-view RGB-D "
        "object dataset, ICRA 2011",
        arrays={
            "X": ArraySpec(("n", "feature"), "number"),
            "y": ArraySpec(("n",), "int64"),
            "instance": ArraySpec(("n",), "int64"),
            "test_instance": ArraySpec(("trial", "category"), "int64"),
        },
        sizes={"n": 41877, "feature": 28900, "trial": 10, "category": 51},
        convert=objects_and_trials,
    ),
)  # fmt: skip


def load_authors(name: str, data_home: DataHome = None) -> Bunch:
    """Load a data set of ``AUTHORS_DATASETS`` from its file in ``data_home``.

    Raises ``DatasetNotFoundError``, which names the file, and ValueError for a file with other
    content.
    """
    return load_dataset(_BY_NAME[name], data_home=data_home)


_BY_NAME = {dataset.name: dataset for dataset in AUTHORS_DATASETS}
