"""The data sets of the papers: original values, one signal per row, ready for scikit-learn.

Every set is one file: ``.npz``, or ``.mat`` or ``.csv`` as its authors have it. A loader looks for
it in the folder ``data_home``, or, where that is None, in the folder named by the environment
variable ``KERNELATOMS_DATA``; digits and AT&T faces can be downloaded through scikit-learn instead.
All loaders return a `sklearn.utils.Bunch` with

- the arrays: ``X_train, y_train, X_test, y_test`` where the set comes with a split, else ``X`` and
  ``y``, and what else the set has. Images are flat rows ``(n, height * width)``; labels are int64;
- ``image_shape``: ``(height, width)`` for ``X[i].reshape(image_shape)``, None for other signals;
- ``source``: the file or the web source the values came from;
- ``DESCR``, ``citation``, ``terms``: what it is, whom to cite, the terms of its licence.

The modules of this room:

- ``registry``: the table of the sets; everything else here reads it.
- ``authors``: sets as their authors distribute them, and how those become rows and labels.
- ``foreign``: reads ``.mat`` and ``.csv`` files.
- ``files``: from a folder to checked arrays, and the messages when that fails.
- ``download``: the same arrays through scikit-learn's fetchers.
- ``loaders``, ``authors_loaders``: the public functions.
- ``generated``: synthetic images (``make_rgbd_objects``) in place of a set that is not available.
"""

from kernelatoms.datasets.authors_loaders import (
    load_caltech101,
    load_harvard,
    load_rgbd,
    load_scene15,
)
from kernelatoms.datasets.files import DatasetNotFoundError, data_folder
from kernelatoms.datasets.generated import make_rgbd_objects
from kernelatoms.datasets.loaders import (
    list_datasets,
    load_ar,
    load_mnist,
    load_orl,
    load_planetlab,
    load_pm25,
    load_traffic,
    load_usps,
    load_yaleb,
)

__all__ = [
    "DatasetNotFoundError",
    "data_folder",
    "list_datasets",
    "load_ar",
    "load_caltech101",
    "load_harvard",
    "load_mnist",
    "load_orl",
    "load_planetlab",
    "load_pm25",
    "load_rgbd",
    "load_scene15",
    "load_traffic",
    "load_usps",
    "load_yaleb",
    "make_rgbd_objects",
]
