"""Every public estimator: as it is, and in ways that lead to other code."""

import numpy as np

from kernelatoms import (
    KSAD,
    KSCDL,
    KSVD,
    MOD,
    ClassDictionaryClassifier,
    CRCClassifier,
    DKSVDClassifier,
    FDDLClassifier,
    FillFromNearest,
    FillToLearn,
    KernelCodec,
    KernelKSVD,
    KernelLinearizer,
    KernelMOD,
    KSADClassifier,
    LCKSVDClassifier,
    SparseCoder,
    SRCClassifier,
    UnitRows,
)

#: To be fitted to any rows; ``SparseCoder`` needs atoms of their width.
ESTIMATORS = [
    KernelLinearizer(),
    MOD(),
    MOD(alpha=0.1),
    KSVD(),
    KernelMOD(),
    KernelKSVD(),
    KSCDL(),
    ClassDictionaryClassifier(),
    CRCClassifier(),
    CRCClassifier("rbf", n_neighbors=10),
    CRCClassifier("rbf", residual_norm="l1", mu=0.1, n_neighbors=20),
    SRCClassifier(),
    SRCClassifier(n_nonzero_coefs=3, n_neighbors=20),
    DKSVDClassifier(),
    LCKSVDClassifier(),
    LCKSVDClassifier(variant=1),
    FDDLClassifier(),
    FDDLClassifier(decision="global"),
    KSAD(),
    KSADClassifier(),
    KSADClassifier(solver="randomized", fisher_weight=0.1, scatter="scalar", threshold_new=False),
    KernelCodec(model="lags"),
    FillFromNearest(3, random_state=0),
    FillToLearn(),
    UnitRows(),
    UnitRows(offset=0.5),
]

LEARNS = {"n_atoms": 6, "max_iter": 2, "random_state": 0}
KERNELS = [
    {"gamma": 0.2},
    {"kernel": "poly", "degree": 2},
    {"kernel": "poly", "degree": 3, "coef0": 0.5},
    {"kernel": "linear"},
    {"kernel": "mahalanobis", "gamma": 0.1},
]
LOCAL = {"n_neighbors": 7, "kernel": "rbf"}
APPROXIMATE = {**LOCAL, "search": "approximate"}
REPRESENTATIONS = [
    {"kernel": "rbf"},
    {"kernel": "rbf", "projection": "kpca"},
    {"kernel": "rbf", "projection": "kfda"},
    {"kernel": "rbf", "projection": None},
    {"residual_norm": "l1"},
    {"residual_norm": "l1", "kernel": "rbf", "projection": "identity"},
    {"residual_norm": "l1", "kernel": "rbf", "projection": "kpca", "n_neighbors": 5},
    LOCAL,
    {**LOCAL, "distance": "l1"},
    {**LOCAL, "distance": "correlation"},
    {**LOCAL, "n_coarse": 12, "distance": "l1"},
    {**LOCAL, "n_coarse": 12, "distance": "l1", "coarse_distance": "linf"},
    {**APPROXIMATE},
    {**APPROXIMATE, "distance": "correlation"},
    {**APPROXIMATE, "random_state": 1},
    {**APPROXIMATE, "random_state": 1, "distance": "l1", "n_coarse": 12},
    {"normalize": False},
    {"calibrate": True},
]
#: What is not at its default, of every estimator, and values that lead to other code.
WAYS = [
    (KSVD(**LEARNS), [
        {}, {"n_nonzero_coefs": 2}, {"selection": "ols"}, {"n_atoms": 0.1}, {"update": "exact"},
        {"init": "sums"},
    ]),
    (
        MOD(**LEARNS),
        [{}, {"alpha": 0.1}, {"alpha": 0.2, "positive": True}, {"n_nonzero_coefs": 2}],
    ),
    (KernelKSVD(**LEARNS), [
        {}, *KERNELS, {"coordinates": 0.1}, {"selection": "ols"}, {"update": "exact"},
        {"init": "sums"},
    ]),
    (KernelMOD(**LEARNS), [{}, *KERNELS, {"coordinates": KernelLinearizer(n_landmarks=9)}]),
    (
        KSCDL(**LEARNS),
        [{}, *KERNELS[:-1], {"alpha": 0.02}, {"transform_n_nonzero_coefs": 2}],
    ),
    (KSAD(**LEARNS), [{}, *KERNELS, {"l1_weight": 0.1}]),
    (
        KernelLinearizer(n_landmarks=12, random_state=0),
        [{}, *KERNELS, {"n_components": 3}, {"dtype": "float32"}, {"sampling": "kmeans"}],
    ),
    (SparseCoder(np.eye(5)), [
        {}, {"method": "lasso", "alpha": 0.1}, {"method": "ridge", "mu": 0.1},
        {"kernel": "rbf", "n_nonzero_coefs": 2},
    ]),
    (ClassDictionaryClassifier(KSVD(4, max_iter=2), random_state=0), [
        {}, {"scheme": "collective"}, {"n_neighbors": 3}, {"dictionary": MOD(3, max_iter=2)},
        {"dictionary": KernelKSVD(3, max_iter=2)}, {"calibrate": True},
    ]),
    (CRCClassifier(mu=0.1, random_state=0), [
        {}, *REPRESENTATIONS, {"mu": 0.5}, {"mu": "search"},
        {"kernel": "rbf", "normalize_columns": True},
        {**LOCAL, "normalize_columns": True, "mu": "search"},
    ]),
    (
        SRCClassifier(random_state=0),
        [{}, *REPRESENTATIONS[::4], {"alpha": 0.1}, {"n_nonzero_coefs": 3}],
    ),
    (
        DKSVDClassifier(6, max_iter=2, init_max_iter=2, random_state=0),
        [{}, {"label_weight": 0.0}, {"calibrate": True}],
    ),
    (
        LCKSVDClassifier(6, max_iter=2, init_max_iter=2, random_state=0),
        [{}, {"variant": 1}, {"class_weight": "balanced"}],
    ),
    (
        FDDLClassifier(2, max_iter=1, init_max_iter=1, random_state=0),
        [{}, {"decision": "global"}, {"mean_weight": 0.1}],
    ),
    (KSADClassifier(6, max_iter=2, random_state=0), [
        {}, {"distance": "l2"}, {"within_class_metric": False}, {"kernel": "poly", "degree": 2},
        {"search": "approximate"}, {"search": "approximate", "distance": "l2"},
        {"search": "approximate", "random_state": 1}, {"calibrate": True},
        {"solver": "randomized", "fisher_weight": 0.1, "scatter": "scalar", "threshold_new": False},
    ]),
    (KernelCodec(model="lags"), [{}, {"max_error": 0.5}]),
    (FillFromNearest(3, random_state=0), [{}, {"n_neighbors": 1}, {"max_rows": 20}]),
    (FillToLearn(), [{}]),
    (UnitRows(), [{}, {"offset": 0.5}]),
]  # fmt: skip
