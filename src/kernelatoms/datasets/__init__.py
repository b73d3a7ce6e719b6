"""The data sets of the field: original values, one signal per row, ready for scikit-learn.

Every set is one ``.npz`` file. A loader looks for it in the folder ``data_home``, or, where that is
None, in the folder named by the environment variable ``KERNELATOMS_DATA``; digits and AT&T faces
can be downloaded through scikit-learn instead. A set that is not found raises
`DatasetNotFoundError`, a file that is damaged or holds something else ValueError. All loaders
return a `sklearn.utils.Bunch` with

- the arrays: ``X_train, y_train, X_test, y_test`` where the set comes with a split, else ``X`` and
  ``y``, and what else the set has. Images are flat rows ``(n, height * width)``; labels are int64;
- ``image_shape``: ``(height, width)`` for ``X[i].reshape(image_shape)``, None for other signals;
- ``source``: the file or the web source the values came from;
- ``DESCR``, ``citation``, ``terms``: what it is, its citation, the terms of its licence.

The modules of this room:

- ``registry``: the table of the sets.
- ``files``: the arrays of a file, read and checked, or downloaded by scikit-learn's fetchers.
- ``loaders``: the public functions.
- ``generated``: ``make_rgbd_objects``, synthetic images of four channels.
"""

from kernelatoms.datasets.files import DatasetNotFoundError, data_folder
from kernelatoms.datasets.generated import make_rgbd_objects
from kernelatoms.datasets.loaders import (
    list_datasets,
    load_ar,
    load_dataset,
    load_mnist,
    load_orl,
    load_planetlab,
    load_pm25,
    load_traffic,
    load_usps,
    load_yaleb,
)
from kernelatoms.datasets.registry import ArraySpec, Dataset

__all__ = [
    "ArraySpec",
    "Dataset",
    "DatasetNotFoundError",
    "data_folder",
    "list_datasets",
    "load_ar",
    "load_dataset",
    "load_mnist",
    "load_orl",
    "load_planetlab",
    "load_pm25",
    "load_traffic",
    "load_usps",
    "load_yaleb",
    "make_rgbd_objects",
]
