"""The one table of estimators: a new one is a file and a row here.

Read by the public names of ``kernelatoms``, model files, presets and the command line, the report,
the documentation and the tests. Nothing is imported until an estimator is asked for.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

Parameters = Mapping[str, Any]
_NONE: Parameters = {}


# A NamedTuple: dataclasses take longer to import than all the rest of ``import kernelatoms``.
class Entry(NamedTuple):
    """What the package knows of an estimator.

    Parameters
    ----------
    module : str
        Where it is, below ``kernelatoms``.
    group : str
        The heading of the documentation and the kind of report.
    what : str
        One line for the command line's list of models; without it the command line has none.
    small : mapping
        Parameters with which tests fit it to a few rows.
    ways, checked : tuples of mappings
        Parameters tried by the common tests, each leading to other code; by scikit-learn's checks.
    """

    module: str
    group: str
    what: str = ""
    small: Parameters = _NONE
    ways: tuple[Parameters, ...] = ()
    checked: tuple[Parameters, ...] = (_NONE,)


_FEW = {"n_atoms": 6, "max_iter": 2, "random_state": 0}
_KERNELS: tuple[Parameters, ...] = (
    {"gamma": 0.2},
    {"kernel": "poly", "degree": 2},
    {"kernel": "poly", "degree": 3, "coef0": 0.5},
    {"kernel": "linear"},
    {"kernel": "mahalanobis", "gamma": 0.1},
)
_NEAR = {"n_neighbors": 7, "kernel": "rbf"}

ESTIMATORS = {
    "KSVD": Entry(
        "estimators.learners.linear", "learners", "learn a dictionary by K-SVD", _FEW,
        ({"n_nonzero_coefs": 2}, {"selection": "ols"}, {"n_atoms": 0.1}, {"update": "exact"},
         {"init": "sums"}),
    ),
    "MOD": Entry(
        "estimators.learners.linear", "learners", "learn a dictionary by MOD", _FEW,
        ({"alpha": 0.1}, {"alpha": 0.2, "positive": True}, {"n_nonzero_coefs": 2}),
        ({}, {"alpha": 0.1}),
    ),
    "KernelKSVD": Entry(
        "estimators.learners.kernel", "learners", "learn a dictionary under a kernel by K-SVD",
        _FEW,
        (*_KERNELS, {"coordinates": 0.1}, {"selection": "ols"}, {"update": "exact"},
         {"init": "sums"}),
    ),
    "KernelMOD": Entry(
        "estimators.learners.kernel", "learners", "learn a dictionary under a kernel by MOD", _FEW,
        _KERNELS,
    ),
    "KSAD": Entry(
        "estimators.learners.ksad", "learners", "learn orthonormal atoms under a kernel", _FEW,
        (*_KERNELS, {"l1_weight": 0.1}),
    ),
    "KSCDL": Entry(
        "estimators.learners.kscdl", "learners",
        "learn atoms that are rows, for l1 codes under a kernel", _FEW,
        (*_KERNELS[:-1], {"alpha": 0.02}, {"transform_n_nonzero_coefs": 2}),
    ),
    "KernelLinearizer": Entry(
        "estimators.maps.linearizer", "maps", "map rows to virtual samples of a kernel",
        {"n_landmarks": 12, "random_state": 0},
        (*_KERNELS, {"n_components": 3}, {"dtype": "float32"}, {"sampling": "kmeans"}),
    ),
    "ClassDictionaryClassifier": Entry(
        "estimators.classifiers.class_dictionaries", "class dictionaries",
        "one dictionary per class, the smallest residual decides",
        {"dictionary__n_atoms": 4, "dictionary__max_iter": 2, "random_state": 0},
        ({"scheme": "collective"}, {"n_neighbors": 3}, {"calibrate": True}),
    ),
    "DKSVDClassifier": Entry(
        "estimators.classifiers.dksvd", "supervised dictionaries",
        "one dictionary and a linear decision on its codes, learned together",
        {**_FEW, "init_max_iter": 2}, ({"label_weight": 0.0}, {"calibrate": True}),
    ),
    "LCKSVDClassifier": Entry(
        "estimators.classifiers.dksvd", "supervised dictionaries",
        "the same with codes that resemble each other within a class",
        {**_FEW, "init_max_iter": 2}, ({"variant": 1}, {"class_weight": "balanced"}),
        ({}, {"variant": 1}),
    ),
    "FDDLClassifier": Entry(
        "estimators.classifiers.fddl", "supervised dictionaries",
        "one dictionary whose atoms serve one class and no other",
        {"n_atoms_per_class": 2, "max_iter": 1, "init_max_iter": 1, "random_state": 0},
        ({"decision": "global"}, {"mean_weight": 0.1}),
        ({}, {"decision": "global"}),
    ),
    "KSADClassifier": Entry(
        "estimators.classifiers.ksad", "supervised dictionaries",
        "orthonormal atoms under a kernel, the nearest training codes decide", _FEW,
        ({"distance": "l2"}, {"within_class_metric": False}, {"kernel": "poly", "degree": 2},
         {"search": "approximate"}, {"search": "approximate", "distance": "l2"},
         {"search": "approximate", "random_state": 1}, {"calibrate": True},
         {"solver": "randomized", "fisher_weight": 0.1, "scatter": "scalar",
          "threshold_new": False}),
        ({}, {"solver": "randomized", "fisher_weight": 0.1, "scatter": "scalar",
          "threshold_new": False}),
    ),
    "CRCClassifier": Entry(
        "estimators.classifiers.collaborative", "training rows",
        "ridge codes over the training rows", {"mu": 0.1, "random_state": 0},
        ({"kernel": "rbf"}, {"kernel": "rbf", "projection": "kpca"},
         {"kernel": "rbf", "projection": "kfda"}, {"kernel": "rbf", "projection": None},
         {"residual_norm": "l1"},
         {"residual_norm": "l1", "kernel": "rbf", "projection": "identity"},
         {"residual_norm": "l1", "kernel": "rbf", "projection": "kpca", "n_neighbors": 5},
         _NEAR, {**_NEAR, "distance": "l1"}, {**_NEAR, "distance": "correlation"},
         {**_NEAR, "n_coarse": 12, "distance": "l1"},
         {**_NEAR, "n_coarse": 12, "distance": "l1", "coarse_distance": "linf"},
         {**_NEAR, "search": "approximate"},
         {**_NEAR, "search": "approximate", "distance": "correlation"},
         {**_NEAR, "search": "approximate", "random_state": 1},
         {**_NEAR, "search": "approximate", "random_state": 1, "distance": "l1", "n_coarse": 12},
         {"normalize": False}, {"calibrate": True}, {"mu": 0.5}, {"mu": "search"},
         {"kernel": "rbf", "normalize_columns": True},
         {**_NEAR, "normalize_columns": True, "mu": "search"}),
        ({}, {"kernel": "rbf", "n_neighbors": 10},
         {"kernel": "rbf", "residual_norm": "l1", "mu": 0.1, "n_neighbors": 20}),
    ),
    "SRCClassifier": Entry(
        "estimators.classifiers.sparse_representation", "training rows",
        "l1 or greedy codes over the training rows", {"random_state": 0},
        ({"kernel": "rbf"}, {"residual_norm": "l1"}, {**_NEAR, "distance": "l1"},
         {**_NEAR, "search": "approximate"}, {"normalize": False}, {"alpha": 0.1},
         {"n_nonzero_coefs": 3}),
        ({}, {"n_nonzero_coefs": 3, "n_neighbors": 20}),
    ),
    "SparseCoder": Entry(
        "estimators.coding.sparse_coder", "coders", "",
        {"dictionary": [[float(i == j) for i in range(5)] for j in range(5)]},
        ({"method": "lasso", "alpha": 0.1}, {"method": "ridge", "mu": 0.1},
         {"kernel": "rbf", "n_nonzero_coefs": 2}),
    ),
    "NearestImputer": Entry(
        "estimators.maps.imputers", "preparation", "", {"n_neighbors": 3, "random_state": 0},
        ({"n_neighbors": 1}, {"max_rows": 20}),
        checked=({"n_neighbors": 3, "random_state": 0},),
    ),
    "TrainingImputer": Entry("estimators.maps.imputers", "preparation"),
    "RowNormalizer": Entry(
        "estimators.maps.row_normalizer", "preparation", ways=({"offset": 0.5},),
        checked=({}, {"offset": 0.5}),
    ),
    "KernelCodec": Entry(
        "codec.estimator", "codec", "", {"model": "lags"}, ({"max_error": 0.5},),
        checked=({"model": "lags"},),
    ),
}  # fmt: skip


def load(name: str) -> Any:
    """Return an estimator's class by its name."""
    return getattr(import_module(f"kernelatoms.{ESTIMATORS[name].module}"), name)


def names_of(*groups: str) -> list[str]:
    """Return the names of the estimators of some groups, in the order of the table."""
    return [name for name, entry in ESTIMATORS.items() if entry.group in groups]


def types() -> set[str]:
    """Return the dotted names of all estimators, as model files have them."""
    return {f"kernelatoms.{entry.module}.{name}" for name, entry in ESTIMATORS.items()}
