"""The table of the data sets, one row each: read by the loaders, the messages and the tests."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: Reads the named arrays of a file; returns those it found, and the names of all the file has.
Reader = Callable[[Path, tuple[str, ...]], tuple[dict[str, Any], set[str]]]


@dataclass(frozen=True)
class ArraySpec:
    """What one array of a file must look like.

    Parameters
    ----------
    axes : tuple of int or str
        A number is a fixed length. A name is a free length, the same wherever the name occurs in
        one file: ``X_train`` and ``y_train`` share "train".
    dtype : str
        Name of the NumPy dtype; "str" is text of any length, "number" any real numbers.
    """

    axes: tuple[int | str, ...]
    dtype: str


@dataclass(frozen=True)
class Dataset:
    """One row of the table.

    Parameters
    ----------
    name : str
        Short name; sets that come in several versions have one row per version.
    file : str
        Name of the file.
    description, citation : str
        What it is, and its citation.
    arrays : mapping of str to ArraySpec
        The keys of the file.
    sizes : mapping of str to int
        The published length of every named axis. A file may differ, so that parts can be loaded.
    image_shape : tuple of int or None
        (height, width) where the signals are images.
    terms : str
        Licence or terms of use, as far as the source states them; "" where it does not.
    online : str
        Where scikit-learn can download it from; "" where it cannot.
    read : callable or None
        Reads a file that is not in ``.npz`` format: ``read(path, keys)`` returns the arrays by
        name, and the names of all that the file has.
    convert : callable or None
        Turns the arrays of the file into those that the loader returns, and raises ValueError
        where that is impossible; None returns them as they are.
    """

    name: str
    file: str
    description: str
    citation: str
    arrays: Mapping[str, ArraySpec] = field(repr=False)
    sizes: Mapping[str, int] = field(repr=False)
    image_shape: tuple[int, int] | None = None
    terms: str = ""
    online: str = ""
    read: Reader | None = field(default=None, repr=False)
    convert: Callable[[Mapping[str, Any]], dict[str, Any]] | None = field(default=None, repr=False)

    def published_shape(self, key: str) -> tuple[int, ...]:
        """Return the shape that an array has in the published set.

        Parameters
        ----------
        key : str
            The array's name in the file, a key of ``arrays``.

        Returns
        -------
        tuple of int
        """
        axes = self.arrays[key].axes
        return tuple(axis if isinstance(axis, int) else self.sizes[axis] for axis in axes)


def _split_images(height: int, width: int, dtype: str) -> dict[str, ArraySpec]:
    return {
        "X_train": ArraySpec(("train", height, width), dtype),
        "y_train": ArraySpec(("train",), "uint8"),
        "X_test": ArraySpec(("test", height, width), dtype),
        "y_test": ArraySpec(("test",), "uint8"),
    }


def _labelled(*signal: int, dtype: str = "uint8") -> dict[str, ArraySpec]:
    return {"X": ArraySpec(("n", *signal), dtype), "y": ArraySpec(("n",), "uint8")}


_YALEB_CITATION = (
    "A. Georghiades, P. Belhumeur, D. Kriegman, IEEE PAMI 23(6), 2001; "
    "K.-C. Lee, J. Ho, D. Kriegman, IEEE PAMI 27(5), 2005"
)

DATASETS: tuple[Dataset, ...] = (
    Dataset(
        name="usps",
        file="usps.npz",
        description="USPS zip-code digits, 16x16 grey values in [-1, 1], -1 is background.",
        citation="J. J. Hull, IEEE PAMI 16(5), 1994; Y. Le Cun et al., 1990; split of T. Hastie, "
        "R. Tibshirani, J. Friedman, The Elements of Statistical Learning",
        arrays=_split_images(16, 16, "float32"),
        sizes={"train": 7291, "test": 2007},
        image_shape=(16, 16),
        online="scikit-learn's fetch_openml: USPS, version 2",
    ),
    Dataset(
        name="mnist",
        file="mnist.npz",
        description="MNIST handwritten digits, 28x28 grey values 0-255, 0 is background.",
        citation="Y. LeCun, C. Cortes, C. J. C. Burges, The MNIST database of handwritten digits, "
        "1998",
        arrays=_split_images(28, 28, "uint8"),
        sizes={"train": 60000, "test": 10000},
        image_shape=(28, 28),
        online="scikit-learn's fetch_openml: mnist_784, version 1",
    ),
    Dataset(
        name="yaleb_96x84",
        file="yaleb_96x84.npz",
        description="Extended Yale B faces under known lights, 38 people, the 192x168 crops "
        "averaged over 2x2 pixels.",
        citation=_YALEB_CITATION,
        arrays={
            **_labelled(96, 84),
            "subject": ArraySpec(("n",), "uint8"),
            "azimuth": ArraySpec(("n",), "int16"),
            "elevation": ArraySpec(("n",), "int16"),
            "X_corrupt": ArraySpec(("corrupt", 96, 84), "uint8"),
            "y_corrupt": ArraySpec(("corrupt",), "uint8"),
        },
        sizes={"n": 2414, "corrupt": 18},
        image_shape=(96, 84),
    ),
    Dataset(
        name="yaleb_32x32",
        file="yaleb_32x32.npz",
        description="Extended Yale B faces, 38 people, the 32x32 version of D. Cai, X. He et al.",
        citation=_YALEB_CITATION,
        arrays=_labelled(32, 32),
        sizes={"n": 2414},
        image_shape=(32, 32),
    ),
    Dataset(
        name="yaleb_randomface504",
        file="yaleb_randomface504.npz",
        description="Extended Yale B faces, 504 random projections of the 192x168 crops; "
        "regenerated by the published recipe, not the published feature file.",
        citation=f"{_YALEB_CITATION}; recipe: J. Wright et al., 2009; Z. Jiang, Z. Lin, "
        "L. S. Davis, LC-KSVD, 2011/2013",
        arrays=_labelled(504, dtype="float32"),
        sizes={"n": 2414},
    ),
    Dataset(
        name="ar",
        file="ar_60x43.npz",
        description="AR faces without disguise, 50 men then 50 women, 60x43 crops; training from "
        "session 1, test from session 2.",
        citation="A. M. Martinez, R. Benavente, CVC Technical Report 24, 1998; crop and split: "
        "J. Wright et al., 2009; L. Zhang, M. Yang, X. Feng, 2011",
        arrays=_split_images(60, 43, "uint8"),
        sizes={"train": 700, "test": 699},
        image_shape=(60, 43),
        terms="Non-commercial research only; check the database's terms before passing images on.",
    ),
    Dataset(
        name="orl",
        file="orl.npz",
        description="AT&T (ORL) faces, 40 people with 10 images each, 112x92 grey values 0-255.",
        citation="F. Samaria, A. Harter, 1994; AT&T Laboratories Cambridge",
        arrays=_labelled(112, 92),
        sizes={"n": 400},
        image_shape=(112, 92),
        online="scikit-learn's fetch_olivetti_faces: 64x64 in [0, 1], not the original 112x92",
    ),
    Dataset(
        name="planetlab",
        file="planetlab490.npz",
        description="Round-trip times between 490 PlanetLab nodes in 18 time slices (by their "
        "size ms; the source states no unit).",
        citation="R. Zhu, B. Liu, D. Niu, Z. Li, H. V. Zhao, IEEE/ACM Trans. Networking 25(2), "
        "2017",
        arrays={"X": ArraySpec(("slice", "node", "node"), "float32")},
        sizes={"slice": 18, "node": 490},
        terms="MIT licence.",
    ),
    Dataset(
        name="traffic",
        file="guangzhou_50x15.npz",
        description="Traffic speed in Guangzhou in km/h, ten-minute windows x road segments x "
        "days; a part of the published set (214 segments, 61 days).",
        citation="X. Chen, Y. Chen, Z. He, Urban traffic speed dataset of Guangzhou, China, "
        "Zenodo record 1205229, 2018",
        arrays={"X": ArraySpec(("window", "segment", "day"), "float32")},
        sizes={"window": 144, "segment": 50, "day": 15},
    ),
    Dataset(
        name="pm25",
        file="pm25_beijing36.npz",
        description="Hourly PM2.5 in ug/m3 at 36 stations of Beijing, 2014-05-01 to 2015-04-30; "
        "a part of the Urban Air set (174 stations, 43 cities).",
        citation="Y. Zheng et al., Forecasting fine-grained air quality based on big data, KDD "
        "2015; Beijing sample: X. Yi et al., ST-MVL, IJCAI 2016",
        arrays={
            "X": ArraySpec(("hour", "station"), "float32"),
            "eval_mask": ArraySpec(("hour", "station"), "bool"),
            "hour": ArraySpec(("hour",), "int32"),
            "latlon": ArraySpec(("station", 2), "float32"),
            "station": ArraySpec(("station",), "str"),
        },
        sizes={"hour": 8759, "station": 36},
    ),
)

BY_NAME: Mapping[str, Dataset] = {dataset.name: dataset for dataset in DATASETS}
