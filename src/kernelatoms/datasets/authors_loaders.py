"""Loaders of sets that their authors distribute as files, and that are not at hand elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelatoms.datasets.files import DataHome
from kernelatoms.datasets.loaders import load_named

if TYPE_CHECKING:  # scikit-learn takes a second to import
    from sklearn.utils import Bunch


def load_scene15(*, data_home: DataHome = None) -> Bunch:
    """Load spatial pyramid features of 15 scene categories, the LC-KSVD authors' file.

    Parameters
    ----------
    data_home : path, default=None
        Folder of ``spatialpyramidfeatures4scene15.mat`` (variables ``featureMat`` and
        ``labelMat``); None takes the environment variable ``KERNELATOMS_DATA``.

    Returns
    -------
    data : Bunch
        ``X`` (4485, 3000), ``y`` the categories 1-15; and ``image_shape`` None, ``source``,
        ``DESCR``, ``citation``, ``terms``.

    Raises
    ------
    DatasetNotFoundError, ValueError
        As in `load_usps`.
    """
    return load_named("scene15", data_home)


def load_caltech101(*, data_home: DataHome = None) -> Bunch:
    """Load spatial pyramid features of Caltech 101, the LC-KSVD authors' file.

    Parameters
    ----------
    data_home : path, default=None
        Folder of ``spatialpyramidfeatures4caltech101.mat`` (variables ``featureMat`` and
        ``labelMat``); None takes the environment variable ``KERNELATOMS_DATA``.

    Returns
    -------
    data : Bunch
        ``X`` (9144, 3000), ``y`` the classes 1-102, the background among them; and
        ``image_shape`` None, ``source``, ``DESCR``, ``citation``, ``terms``.

    Raises
    ------
    DatasetNotFoundError, ValueError
        As in `load_usps`.
    """
    return load_named("caltech101", data_home)


def load_harvard(*, data_home: DataHome = None) -> Bunch:
    """Load round-trip times between the 226 clients of the Harvard set, in time slices.

    Parameters
    ----------
    data_home : path, default=None
        Folder of ``harvard226.npz``, with one array ``X``; None takes the environment variable
        ``KERNELATOMS_DATA``.

    Returns
    -------
    data : Bunch
        ``X`` (slices, 226, 226), time slice x node x node, as many slices as the file has; and
        ``image_shape`` None, ``source``, ``DESCR``, ``citation``, ``terms``.

    Raises
    ------
    DatasetNotFoundError, ValueError
        As in `load_usps`.
    """
    return load_named("harvard", data_home)


def load_rgbd(*, data_home: DataHome = None) -> Bunch:
    """Load rows of the Washington RGB-D objects, and which objects ten trials leave out.

    Parameters
    ----------
    data_home : path, default=None
        Folder of ``rgbd_objects.npz``; None takes the environment variable ``KERNELATOMS_DATA``.

    Returns
    -------
    data : Bunch
        ``X`` (n, features), pixels or features of one image per row; ``y`` the categories 1-51;
        ``instance`` the object within its category; ``test_instance`` (10, 51), the object of each
        category whose images a trial tests on; and ``image_shape`` None, ``source``, ``DESCR``,
        ``citation``, ``terms``.

    Raises
    ------
    DatasetNotFoundError, ValueError
        As in `load_usps`; ValueError also where a trial leaves out an object that has no rows.
    """
    return load_named("rgbd", data_home)
