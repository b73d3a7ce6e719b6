"""The public loaders: each asks the table for its row and documents what comes back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kernelatoms.datasets import download
from kernelatoms.datasets.authors import BY_NAME, DATASETS
from kernelatoms.datasets.files import Arrays, DataHome, data_folder, not_found, read_arrays
from kernelatoms.datasets.registry import Dataset

if TYPE_CHECKING:  # scikit-learn takes a second to import; loaders import it when called
    from sklearn.utils import Bunch

YALEB_SIZES = ("96x84", "32x32", "randomface504", "lcksvd504", "lcksvdsplit")


def list_datasets() -> tuple[Dataset, ...]:
    """List what can be loaded, and the file that each set needs.

    Returns
    -------
    datasets : tuple of Dataset
        One row a file, with ``name``, ``file``, ``description``, ``citation``, ``terms``,
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
    yaleb_lcksvd504     randomfaces4extendedyaleb.mat
    yaleb_lcksvdsplit   featurevectors.mat
    ar_lcksvd540        randomfaces4ar.mat
    scene15             spatialpyramidfeatures4scene15.mat
    caltech101          spatialpyramidfeatures4caltech101.mat
    harvard             harvard226.npz
    traffic_214x61      tensor.mat
    pm25_urbanair       airquality.csv
    rgbd                rgbd_objects.npz
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
        Without the file, download from OpenML through scikit-learn, cached in `data_home` (or
        scikit-learn's own folder). False raises instead.

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
    return load_named("usps", data_home, download_if_missing)


def load_mnist(*, data_home: DataHome = None, download_if_missing: bool = True) -> Bunch:
    """Load the MNIST handwritten digits: ten classes, enough rows to test at scale.

    Parameters
    ----------
    data_home : path, default=None
        Folder of ``mnist.npz``; None takes the environment variable ``KERNELATOMS_DATA``.
    download_if_missing : bool, default=True
        Without the file, download from OpenML through scikit-learn, cached in `data_home` (or
        scikit-learn's own folder). False raises instead.

    Returns
    -------
    data : Bunch
        ``X_train`` (60000, 784) and ``X_test`` (10000, 784) uint8; ``y_train``, ``y_test`` the
        digits 0-9; and ``image_shape``, ``source``, ``DESCR``, ``citation``, ``terms``.

    Raises
    ------
    DatasetNotFoundError, ValueError
        As in `load_usps`.
    """
    return load_named("mnist", data_home, download_if_missing)


def load_yaleb(*, size: str = "96x84", data_home: DataHome = None) -> Bunch:
    """Load the Extended Yale B faces: 38 people under many lights, for face recognition.

    Parameters
    ----------
    size : {"96x84", "32x32", "randomface504", "lcksvd504", "lcksvdsplit"}, default="96x84"
        Image size, or 504 random projections of the full crops. "randomface504" were made anew by
        the published recipe: accuracies agree with the published feature file, values do not.
        "lcksvd504" is that file, ``randomfaces4extendedyaleb.mat``, "lcksvdsplit" the same
        features as its authors divided them, ``featurevectors.mat``.
    data_home : path, default=None
        Folder of ``yaleb_<size>.npz``, or of the authors' file; None takes the environment
        variable ``KERNELATOMS_DATA``.

    Returns
    -------
    data : Bunch
        ``X`` (2414, 8064) or (2414, 1024) uint8, or (2414, 504) float32; ``y`` the people 1-38,
        59 to 64 rows each; and ``image_shape``, ``source``, ``DESCR``, ``citation``, ``terms``.
        "lcksvd504" as "randomface504"; "lcksvdsplit" has ``X_train`` (1216, 504), ``y_train``,
        ``X_test`` (1198, 504), ``y_test``. For "96x84" also ``subject`` (the database's number,
        there is no 14), ``azimuth`` and ``elevation`` of the light in degrees, and ``X_corrupt``
        (18, 8064), ``y_corrupt``: the images that the database itself marks as bad.

    Raises
    ------
    DatasetNotFoundError, ValueError
        As in `load_usps`; ValueError also for an unknown size.
    """
    if size not in YALEB_SIZES:
        raise ValueError(f"size must be one of {YALEB_SIZES}, got {size!r}.")
    return load_named(f"yaleb_{size}", data_home)


def load_ar(*, size: str = "60x43", data_home: DataHome = None) -> Bunch:
    """Load the AR faces: 100 people, trained on one day, tested on another.

    For non-commercial research; check the database's terms before passing the images on.

    Parameters
    ----------
    size : {"60x43", "lcksvd540"}, default="60x43"
        Image size, or the LC-KSVD authors' 540 random projections of larger crops, with disguises.
    data_home : path, default=None
        Folder of ``ar_60x43.npz`` or ``randomfaces4ar.mat``; None takes the environment variable
        ``KERNELATOMS_DATA``.

    Returns
    -------
    data : Bunch
        ``X_train`` (700, 2580) and ``X_test`` (699, 2580) uint8; ``y_train``, ``y_test`` the people
        1-100 (50 men, then 50 women), 7 rows each but for 6 test rows of person 77. "lcksvd540":
        ``X`` (2600, 540), ``y`` the people 1-100, 26 rows each. And
        ``image_shape``, ``source``, ``DESCR``, ``citation``, ``terms``.

    Raises
    ------
    DatasetNotFoundError, ValueError
        As in `load_usps`.
    """
    return load_named(_sized("ar", size, "60x43", "lcksvd540"), data_home)


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

    Raises
    ------
    DatasetNotFoundError, ValueError
        As in `load_usps`.
    """
    return load_named("orl", data_home, download_if_missing)


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
        its diagonal, nothing missing; and ``image_shape`` None, ``source``, ``DESCR``,
        ``citation``, ``terms``. ``X[t]`` is a matrix whose rows are signals.

    Raises
    ------
    DatasetNotFoundError, ValueError
        As in `load_usps`.
    """
    return load_named("planetlab", data_home)


def load_traffic(*, size: str = "50x15", data_home: DataHome = None) -> Bunch:
    """Load traffic speeds of Guangzhou: daily patterns of road segments.

    Parameters
    ----------
    size : {"50x15", "214x61"}, default="50x15"
        50 road segments on 15 days, or the whole published set: its ``tensor.mat``.
    data_home : path, default=None
        Folder of ``guangzhou_50x15.npz`` or ``tensor.mat``; None takes the environment variable
        ``KERNELATOMS_DATA``.

    Returns
    -------
    data : Bunch
        ``X`` (144, 50, 15) float32, km/h, ten-minute window x road segment x day. 0 is missing:
        segment 47 has no data, the rest is complete. "214x61": (144, 214, 61). And
        ``image_shape`` None, ``source``, ``DESCR``, ``citation``, ``terms``.
        ``X.transpose(1, 2, 0).reshape(-1, 144)`` has one day of one segment per row.

    Raises
    ------
    DatasetNotFoundError, ValueError
        As in `load_usps`.
    """
    return load_named(_sized("traffic", size, "50x15", "214x61"), data_home)


def load_pm25(*, size: str = "beijing36", data_home: DataHome = None) -> Bunch:
    """Load hourly PM2.5 of Beijing: signals with values truly missing, and a mask to test on.

    Parameters
    ----------
    size : {"beijing36", "urbanair"}, default="beijing36"
        The 36 stations of Beijing, or the whole Urban Air set: its ``airquality.csv``, of which the
        columns ``station_id``, ``time`` and ``PM25_Concentration`` are read.
    data_home : path, default=None
        Folder of ``pm25_beijing36.npz`` or ``airquality.csv``; None takes the environment variable
        ``KERNELATOMS_DATA``.

    Returns
    -------
    data : Bunch
        ``X`` (8759, 36) float32, ug/m3, hour x station, NaN where missing; ``eval_mask`` (8759, 36)
        bool, the observed entries that the literature hides to test imputation; ``hour`` since
        2014-05-01 00:00; ``latlon`` (36, 2) float32 and ``station`` (36,) str of the columns.
        "urbanair" has ``X``, ``hour`` and ``station`` alone. And
        ``image_shape`` None, ``source``, ``DESCR``, ``citation``, ``terms``.

    Raises
    ------
    DatasetNotFoundError, ValueError
        As in `load_usps`.
    """
    return load_named(_sized("pm25", size, "beijing36", "urbanair"), data_home)


def _sized(family: str, size: str, first: str, other: str) -> str:
    """Return the name of a set that comes in two sizes; the first has the family's own name."""
    if size not in (first, other):
        raise ValueError(f"size must be one of {(first, other)}, got {size!r}.")
    return family if size == first else f"{family}_{other}"


def load_named(name: str, data_home: DataHome, download_if_missing: bool = False) -> Bunch:
    """Read the file where there is one; else download where that is wanted and possible."""
    if not isinstance(download_if_missing, bool):
        raise TypeError(f"download_if_missing must be True or False, got {download_if_missing!r}.")
    dataset = BY_NAME[name]
    folder = data_folder(data_home)
    if folder is not None and (folder / dataset.file).is_file():
        path = folder / dataset.file
        return _bunch(dataset, read_arrays(dataset, path), source=str(path))
    if not dataset.online:
        raise not_found(dataset, data_home, "")
    if not download_if_missing:
        hint = f"Or download it ({dataset.online}) with download_if_missing=True."
        raise not_found(dataset, data_home, hint)
    # Only a folder named in the call is written to: a shared KERNELATOMS_DATA may be read-only.
    cache = None if data_home is None else folder
    try:
        arrays = download.FETCHERS[name](cache)
    except download.DOWNLOAD_ERRORS as error:
        hint = f"Downloading it ({dataset.online}) failed: {type(error).__name__}: {error}"
        raise not_found(dataset, data_home, hint) from error
    return _bunch(dataset, arrays, source=dataset.online)


def _bunch(dataset: Dataset, arrays: Arrays, source: str) -> Bunch:
    from sklearn.utils import Bunch

    fields: dict[str, object] = {}
    image_shape = None
    for key, array in arrays.items():
        if key.startswith("X") and dataset.image_shape is not None:
            # From the array, not from the table: a download may have another size.
            image_shape = array.shape[1:]
            fields[key] = array.reshape(len(array), -1)
        elif array.ndim == 1 and array.dtype.kind in "iu":
            # Labels, degrees, hours: in uint8, 3 - 5 would be 254.
            fields[key] = array.astype(np.int64)
        else:
            fields[key] = array
    texts = (dataset.description, f"Cite: {dataset.citation}.", dataset.terms, f"From: {source}")
    return Bunch(
        **fields,
        image_shape=image_shape,
        source=source,
        DESCR="\n".join(text for text in texts if text),
        citation=dataset.citation,
        terms=dataset.terms,
    )
