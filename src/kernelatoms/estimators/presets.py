"""``PRESETS`` and ``make_preset``: pipelines for kinds of data, as the command line has them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kernelatoms.estimators.registry import load

#: How a preset treats rows and columns before anything is learned.
SCALES = ("standard", "unit", "range", "none")

# Beyond few rows, codes are over the nearest ones; beyond many, atoms are learned, from so many
# rows. See docs/decisions/045-default-model.md.
_FEW_ROWS, _NEAREST, _MANY_ROWS = 2_000, 100, 20_000


@dataclass(frozen=True)
class Preset:
    """A model by name: how rows are scaled, whether they are mapped, who learns.

    Parameters
    ----------
    what : str
        What it is for, in words.
    estimator : str
        The name of the estimator that learns.
    scale : {"none", "standard", "unit", "range"}
        What is done to rows and columns before; see ``make_preset``.
    mapped : bool
        Whether a ``KernelLinearizer`` comes before the estimator.
    dictionary : str
        The name of the learner inside the estimator, where it has one.
    parameters : mapping of str to object
        Parameters of the pipeline that are not the defaults.
    for_many : mapping of str to object
        Those that change where there are more than 2,000 rows to learn from.
    enough_rows : int or None
        How many rows are enough to learn from; None for all.

    Examples
    --------
    >>> from kernelatoms import PRESETS, Preset, make_preset
    >>> PRESETS["lkdl"].scale
    'standard'
    >>> mine = Preset("atoms of my signals", "MOD", "unit", parameters={"learn__n_atoms": 64})
    >>> make_preset(mine)[-1]
    MOD(n_atoms=64)
    """

    what: str
    estimator: str
    scale: str = "none"
    mapped: bool = False
    dictionary: str = "KSVD"
    parameters: Mapping[str, Any] = field(default_factory=dict)
    for_many: Mapping[str, Any] = field(default_factory=dict)
    enough_rows: int | None = None

    def __post_init__(self) -> None:
        """Check the flag."""
        if not isinstance(self.mapped, bool):
            raise TypeError(f"mapped must be True or False, got {self.mapped!r}.")

    @property
    def needs_label(self) -> bool:
        """Tell whether it classifies."""
        return self.estimator.endswith("Classifier")


def _sizes(n_atoms: int, n_nonzero_coefs: int) -> dict[str, Any]:
    return {
        "learn__dictionary__n_atoms": n_atoms,
        "learn__dictionary__n_nonzero_coefs": n_nonzero_coefs,
    }


#: Models by name. What they do on which data, and why their sizes are these, is in
#: docs/guide/which-method.md.
PRESETS = {
    "kcrc": Preset(
        "classify tables by the training rows themselves: standardised columns, RBF kernel, ridge "
        f"codes over all rows, or over the {_NEAREST} nearest where there are more than "
        f"{_FEW_ROWS:,}",
        "CRCClassifier", "standard",
        parameters={
            "learn__kernel": "rbf", "learn__gamma": "spread", "learn__normalize": False,
            "learn__projection": None,
        },
        for_many={"learn__n_neighbors": _NEAREST},
    ),
    "kcrc-images": Preset(
        "classify images by the training images themselves: unit-norm rows, RBF kernel, ridge "
        "codes over the 50 nearest",
        "CRCClassifier", "unit",
        parameters={
            "learn__kernel": "rbf", "learn__gamma": 0.5, "learn__n_neighbors": 50,
            "learn__normalize": False,
        },
    ),
    "lkdl": Preset(
        "classify tables by learned atoms: standardised columns, RBF kernel, one dictionary per "
        "class",
        "ClassDictionaryClassifier", "standard", mapped=True,
        parameters={"map__kernel": "rbf", **_sizes(50, 5)},
        for_many={"map__dtype": "float32", **_sizes(100, 10)},
        enough_rows=_MANY_ROWS,
    ),
    "lkdl-images": Preset(
        "classify images, spectra, signals: unit-norm rows, kernel (x'y)^2, one dictionary "
        "per class",
        "ClassDictionaryClassifier", "unit", mapped=True,
        parameters={
            "map__kernel": "poly", "map__degree": 2, "map__gamma": 1, "map__coef0": 0,
            **_sizes(200, 10),
        },
    ),
    "linear": Preset(
        "classify tables without a kernel: columns to [0, 1], a column of ones, unit-norm rows, "
        "one dictionary per class",
        "ClassDictionaryClassifier", "range",
        parameters=_sizes(200, 2),
    ),
    "linear-images": Preset(
        "classify images, spectra, signals without a kernel: unit-norm rows, one dictionary per "
        "class",
        "ClassDictionaryClassifier", "unit",
        parameters=_sizes(200, 10),
    ),
    "kdl": Preset(
        "classify small tables exactly in feature space: standardised columns, RBF kernel, one "
        "kernel K-SVD dictionary per class",
        "ClassDictionaryClassifier", "standard",
        dictionary="KernelKSVD",
        parameters=_sizes(50, 5),
        for_many=_sizes(100, 10),
    ),
    "kscdl": Preset(
        "represent signals sparsely: unit-norm rows, RBF kernel whose width is chosen on held-out "
        "rows, atoms that are rows",
        "KSCDL", "unit",
        parameters={"learn__gamma": "search"},
    ),
    "lcksvd": Preset(
        "classify images, spectra, signals by one dictionary learned with the labels: unit-norm "
        "rows, RBF kernel, LC-KSVD",
        "LCKSVDClassifier", "unit", mapped=True,
        parameters={"map__kernel": "rbf", "map__gamma": 0.5, "learn__n_nonzero_coefs": 10},
    ),
    "fddl": Preset(
        "classify images, spectra, signals by atoms that serve one class and no other: unit-norm "
        "rows, FDDL",
        "FDDLClassifier", "unit",
        parameters={"learn__n_atoms_per_class": 20},
    ),
    "ksad": Preset(
        "classify images, spectra, signals by the nearest training rows: unit-norm rows, RBF "
        "kernel, within-class metric, codes over orthonormal atoms (K-SAD)",
        "KSADClassifier", "unit",
    ),
}  # fmt: skip


def default_preset(n_rows: int, *, as_images: bool = False) -> str:
    """Return the name of the preset that ``kernelatoms fit`` learns where none is asked for.

    Parameters
    ----------
    n_rows : int
        How many rows there are to learn from.
    as_images : bool, default=False
        Whether each row is an image.

    Returns
    -------
    str
        "kcrc" for up to 20,000 rows, "lkdl" beyond; "lkdl-images" for images.

    Examples
    --------
    >>> from kernelatoms import default_preset
    >>> default_preset(150), default_preset(200_000)
    ('kcrc', 'lkdl')
    """
    from kernelatoms.similarity.base import check_flag

    if check_flag("as_images", as_images):
        return "lkdl-images"
    return "kcrc" if n_rows <= _MANY_ROWS else "lkdl"


def make_preset(
    preset: str | Preset = "kcrc",
    *,
    n_rows: int | None = None,
    scale: str | None = None,
    random_state: Any = None,
) -> Any:
    """Return the pipeline of a preset, not yet fitted: fill in, scale, (map,) learn.

    What ``kernelatoms fit --model`` fits, for use in Python.

    Parameters
    ----------
    preset : str or Preset, default="kcrc"
        A name in ``PRESETS``, or a row of one's own.
    n_rows : int, optional
        How many rows there are to learn from: some sizes depend on it. By default few.
    scale : {"standard", "unit", "range", "none"}, optional
        Columns to mean 0 and variance 1; rows to norm 1; columns to [0, 1] and, with a column of
        ones beside them, rows to norm 1; nothing. By default the preset's.
    random_state : int, RandomState or None
        Seeds every step that draws.

    Returns
    -------
    Pipeline
        With steps called "fill", "scale" (after "range", where there is one), "map" and "learn".

    Examples
    --------
    >>> from kernelatoms import make_preset
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> bool(make_preset("kcrc").fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.9)
    True
    """
    from sklearn.pipeline import Pipeline

    if isinstance(preset, str):
        if preset not in PRESETS:
            raise ValueError(f"preset must be one of {', '.join(PRESETS)}, got {preset!r}.")
        preset = PRESETS[preset]
    elif not isinstance(preset, Preset):
        raise TypeError(f"preset must be a Preset or its name, got {preset!r}.")
    steps: list[tuple[str, Any]] = _before(preset.scale if scale is None else scale)
    if preset.mapped:
        steps.append(("map", _make_estimator("KernelLinearizer")))
    steps.append(("learn", _make_estimator(preset.estimator, preset.dictionary)))
    model = Pipeline(steps).set_params(**preset.parameters)
    if n_rows is not None and n_rows > _FEW_ROWS:
        model.set_params(**preset.for_many)
    seeds = [key for key in model.get_params() if key.split("__")[-1] == "random_state"]
    return model.set_params(**dict.fromkeys(seeds, random_state))


def _make_estimator(name: str, dictionary: str = "KSVD") -> Any:
    """Return one of the library's estimators with its defaults, its learner spelled out."""
    estimator = load(name)()
    if "dictionary" in estimator.get_params(deep=False):
        estimator.set_params(dictionary=load(dictionary)())
    return estimator


def _before(scale: str) -> list[tuple[str, Any]]:
    """Return the steps before anything is learned."""
    from sklearn.preprocessing import MinMaxScaler, StandardScaler

    from kernelatoms.estimators.maps.imputers import NearestImputer
    from kernelatoms.estimators.maps.row_normalizer import RowNormalizer

    steps: list[tuple[str, Any]] = [("fill", NearestImputer())]
    if scale == "standard":
        return [*steps, ("scale", StandardScaler())]
    if scale == "unit":
        return [*steps, ("scale", RowNormalizer())]
    if scale == "range":
        return [*steps, ("range", MinMaxScaler()), ("scale", RowNormalizer(offset=1.0))]
    if scale != "none":
        raise ValueError(f"scale must be one of {', '.join(SCALES)}, got {scale!r}.")
    return steps
