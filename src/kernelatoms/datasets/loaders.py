"""The public loaders: each asks the table for its row and documents what comes back.

All raise what `load_usps` raises.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kernelatoms.datasets.files import (
    DOWNLOAD_ERRORS,
    FETCHERS,
    Arrays,
    DataHome,
    data_folder,
    not_found,
    read_arrays,
)
from kernelatoms.datasets.registry import BY_NAME, DATASETS, Dataset

if TYPE_CHECKING:  # scikit-learn takes a second to import; loaders import it when called
    from sklearn.utils import Bunch

YALEB_SIZES = ("96x84", "32x32", "randomface504")


def list_datasets() -> tuple[Dataset, ...]:
    """List what can be loaded, and the file that each set needs.

    Returns
    -------
    datasets : tuple of Dataset
        One row per file, with ``name``, ``file``, ``description``, ``citation``, ``terms``,
        ``arrays`` (key -> axes and dtype), ``sizes`` (published length of the named axes),
        ``image_shape`` and ``online``.

    Examples
    --------
    >>> from kernelatoms.datasets import list_datasets
    >>> for dataset in list_datasets():
    ...     print(f"{dataset.name:20}{dataset.file}")
    usps                usps.npz
    mnist               mnist.npz
    yaleb_96x84         yaleb_96x84.npz
    yaleb_32x32         yaleb_32x32.npz
    yaleb_randomface504 yaleb_randomface504.npz
    ar                  ar_60x43.npz
    orl                 orl.npz
    planetlab           planetlab490.npz
    traffic             guangzhou_50x15.npz
    pm25                pm25_beijing36.npz
    """
    return DATASETS


def load_usps(*, data_home: DataHome = None, download_if_missing: bool = True) -> Bunch:
    """Load the USPS zip-code digits: small images, ten classes, a hard test set.

    Values are the original ones in [-1, 1]; ``(X + 1) / 2`` brings them to [0, 1].

    Parameters
    ----------
    data_home : path, default=None
        Folder of ``usps.npz``; None takes the environment variable ``KERNELATOMS_DATA``.
    download_if_missing : bool, default=True
        Download a missing file from OpenML (to `data_home`, if given); False raises instead.

    Returns
    -------
    data : Bunch
        ``X_train`` (7291, 256) and ``X_test`` (2007, 256) float32; ``y_train``, ``y_test`` the
        digits 0-9; and ``image_shape``, ``source``, ``DESCR``, ``citation``, ``terms``.

    Raises
    ------
    DatasetNotFoundError
        There is no file and no download; the message says which file to put where.
    ValueError
        The file is damaged or holds something else.
    """
    return _load_or_download("usps", data_home, download_if_missing)


def load_mnist(*, data_home: DataHome = None, download_if_missing: bool = True) -> Bunch:
    """Load the MNIST handwritten digits: ten classes, enough rows to test at scale.

    Parameters
    ----------
    data_home : path, default=None
        Folder of ``mnist.npz``; None takes the environment variable ``KERNELATOMS_DATA``.
    download_if_missing : bool, default=True
        Download a missing file from OpenML (to `data_home`, if given); False raises instead.

    Returns
    -------
    data : Bunch
        ``X_train`` (60000, 784) and ``X_test`` (10000, 784) uint8; ``y_train``, ``y_test`` the
        digits 0-9; and ``image_shape``, ``source``, ``DESCR``, ``citation``, ``terms``.
    """
    return _load_or_download("mnist", data_home, download_if_missing)


def load_yaleb(*, size: str = "96x84", data_home: DataHome = None) -> Bunch:
    """Load the Extended Yale B faces: 38 people under many lights, for face recognition.

    Parameters
    ----------
    size : {"96x84", "32x32", "randomface504"}, default="96x84"
        Image size, or 504 random projections of the full crops. "randomface504" were made anew by
        the published recipe: accuracies agree with the published feature file, values do not.
    data_home : path, default=None
        Folder of ``yaleb_<size>.npz``; None takes the environment variable ``KERNELATOMS_DATA``.

    Returns
    -------
    data : Bunch
        ``X`` (2414, 8064) or (2414, 1024) uint8, or (2414, 504) float32; ``y`` the people 1-38,
        59 to 64 rows each; and ``image_shape``, ``source``, ``DESCR``, ``citation``, ``terms``.
        For "96x84" also ``subject`` (the database's number, there is no 14), ``azimuth`` and
        ``elevation`` of the light in degrees, and ``X_corrupt`` (18, 8064), ``y_corrupt``: the
        images that the database itself marks as bad.
    """
    if size not in YALEB_SIZES:
        raise ValueError(f"size must be one of {YALEB_SIZES}, got {size!r}.")
    return load_dataset(BY_NAME[f"yaleb_{size}"], data_home=data_home)


def load_ar(*, data_home: DataHome = None) -> Bunch:
    """Load the AR faces: 100 people, trained on one day, tested on another.

    For non-commercial research; check the database's terms before passing the images on.

    Parameters
    ----------
    data_home : path, default=None
        Folder of ``ar_60x43.npz``; None takes the environment variable ``KERNELATOMS_DATA``.

    Returns
    -------
    data : Bunch
        ``X_train`` (700, 2580) and ``X_test`` (699, 2580) uint8; ``y_train``, ``y_test`` the people
        1-100 (50 men, then 50 women), 7 rows each but for 6 test rows of person 77; and
        ``image_shape``, ``source``, ``DESCR``, ``citation``, ``terms``.
    """
    return load_dataset(BY_NAME["ar"], data_home=data_home)


def load_orl(*, data_home: DataHome = None, download_if_missing: bool = True) -> Bunch:
    """Load the AT&T (ORL) faces: 40 people, ten images each, few signals of many values.

    Parameters
    ----------
    data_home : path, default=None
        Folder of ``orl.npz``; None takes the environment variable ``KERNELATOMS_DATA``.
    download_if_missing : bool, default=True
        Without the file, download scikit-learn's Olivetti faces, cached in `data_home` (or
        scikit-learn's own folder). These are the same photographs at 64x64, float32 in [0, 1]:
        results differ from those on the original images. False raises instead.

    Returns
    -------
    data : Bunch
        ``X`` (400, 10304) uint8, downloaded (400, 4096) float32; ``y`` the people 1-40; and
        ``image_shape`` (112, 92), downloaded (64, 64); ``source`` (says which), ``DESCR``,
        ``citation``, ``terms``.
    """
    return _load_or_download("orl", data_home, download_if_missing)


def load_planetlab(*, data_home: DataHome = None) -> Bunch:
    """Load round-trip times between PlanetLab nodes: heavy-tailed matrices to complete.

    Parameters
    ----------
    data_home : path, default=None
        Folder of ``planetlab490.npz``; None takes the environment variable ``KERNELATOMS_DATA``.

    Returns
    -------
    data : Bunch
        ``X`` (18, 490, 490) float32, time slice x node x node: each slice symmetric, zero only on
        its diagonal, nothing missing; ``X[t]`` is a matrix whose rows are signals; and
        ``image_shape`` None, ``source``, ``DESCR``, ``citation``, ``terms``.
    """
    return load_dataset(BY_NAME["planetlab"], data_home=data_home)


def load_traffic(*, data_home: DataHome = None) -> Bunch:
    """Load traffic speeds of Guangzhou: daily patterns of road segments.

    Parameters
    ----------
    data_home : path, default=None
        Folder of ``guangzhou_50x15.npz``; None takes that of ``KERNELATOMS_DATA``.

    Returns
    -------
    data : Bunch
        ``X`` (144, 50, 15) float32, km/h, ten-minute window x road segment x day. 0 is missing:
        segment 47 has no data, the rest is complete; and ``image_shape`` None, ``source``,
        ``DESCR``, ``citation``, ``terms``. ``X.transpose(1, 2, 0).reshape(-1, 144)`` has one day of
        one segment per row.
    """
    return load_dataset(BY_NAME["traffic"], data_home=data_home)


def load_pm25(*, data_home: DataHome = None) -> Bunch:
    """Load hourly PM2.5 of Beijing: signals with values truly missing, and a mask to test on.

    Parameters
    ----------
    data_home : path, default=None
        Folder of ``pm25_beijing36.npz``; None takes the environment variable ``KERNELATOMS_DATA``.

    Returns
    -------
    data : Bunch
        ``X`` (8759, 36) float32, ug/m3, hour x station, NaN where missing; ``eval_mask`` (8759, 36)
        bool, the observed entries that the literature hides to test imputation; ``hour`` since
        2014-05-01 00:00; ``latlon`` (36, 2) float32 and ``station`` (36,) str of the columns; and
        ``image_shape`` None, ``source``, ``DESCR``, ``citation``, ``terms``.
    """
    return load_dataset(BY_NAME["pm25"], data_home=data_home)


def load_dataset(dataset: Dataset, *, data_home: DataHome = None) -> Bunch:
    """Load a data set from its file, as a row of the table describes it; the row may be yours.

    Parameters
    ----------
    dataset : Dataset
        Which file to read, the arrays that it must hold, and how to read it.
    data_home : path, default=None
        Folder of the file; None takes the environment variable ``KERNELATOMS_DATA``.

    Returns
    -------
    data : Bunch
        The arrays, images as flat rows; and ``image_shape``, ``source``, ``DESCR``,
        ``citation``, ``terms``.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from kernelatoms.datasets import ArraySpec, Dataset, load_dataset
    >>> mine = Dataset(
    ...     "mine", "mine.npz", "My signals.", "unpublished",
    ...     {"X": ArraySpec(("n", 3), "float64")}, {"n": 10},
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/mine.npz", X=np.zeros((10, 3)))
    ...     load_dataset(mine, data_home=folder).X.shape
    (10, 3)
    """
    data = _from_file(dataset, data_home)
    if data is None:
        raise not_found(dataset, data_home, "")
    return data


def _load_or_download(name: str, data_home: DataHome, download_if_missing: bool) -> Bunch:
    """Read the file if there is one; else download the data set, if that is allowed."""
    if not isinstance(download_if_missing, bool):
        raise TypeError(f"download_if_missing must be True or False, got {download_if_missing!r}.")
    dataset = BY_NAME[name]
    data = _from_file(dataset, data_home)
    if data is not None:
        return data
    if not download_if_missing:
        hint = f"Or download it ({dataset.online}) with download_if_missing=True."
        raise not_found(dataset, data_home, hint)
    # Only a folder named in the call is written to: a shared KERNELATOMS_DATA may be read-only.
    cache = None if data_home is None else data_folder(data_home)
    try:
        arrays = FETCHERS[name](cache)
    except DOWNLOAD_ERRORS as error:
        hint = f"Downloading it ({dataset.online}) failed: {type(error).__name__}: {error}"
        raise not_found(dataset, data_home, hint) from error
    return _bunch(dataset, arrays, source=dataset.online)


def _from_file(dataset: Dataset, data_home: DataHome) -> Bunch | None:
    folder = data_folder(data_home)
    if folder is None or not (folder / dataset.file).is_file():
        return None
    path = folder / dataset.file
    return _bunch(dataset, read_arrays(dataset, path), source=str(path))


def _bunch(dataset: Dataset, arrays: Arrays, source: str) -> Bunch:
    from sklearn.utils import Bunch

    fields, image_shape = dict(arrays), None
    for key, array in arrays.items():
        if key.startswith("X") and dataset.image_shape is not None:
            # From the array, not from the table: a download may have another size.
            image_shape = array.shape[1:]
            fields[key] = array.reshape(len(array), -1)
        elif array.ndim == 1 and array.dtype.kind in "iu":
            # Labels, degrees, hours: in uint8, 3 - 5 would be 254.
            fields[key] = array.astype(np.int64)
    texts = (dataset.description, f"Cite: {dataset.citation}.", dataset.terms, f"From: {source}")
    return Bunch(
        **fields, image_shape=image_shape, source=source,
        DESCR="\n".join(text for text in texts if text), citation=dataset.citation,
        terms=dataset.terms,
    )  # fmt: skip
