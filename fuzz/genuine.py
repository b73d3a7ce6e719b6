"""Fitted estimators of scikit-learn, at least one of each type that model files hold untrusted."""

import warnings
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, FastICA, IncrementalPCA, KernelPCA, TruncatedSVD
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import (
    BayesianRidge,
    ElasticNet,
    HuberRegressor,
    Lasso,
    LinearRegression,
    LogisticRegression,
    Ridge,
    RidgeClassifier,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KernelCenterer,
    LabelBinarizer,
    LabelEncoder,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.random_projection import GaussianRandomProjection
from sklearn.svm import LinearSVC, LinearSVR

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
GAPS = np.where(RNG.random(X.shape) < 0.1, np.nan, X)
EMPTY = np.column_stack([X[:, :3], np.full(60, np.nan)])
SMALL = RNG.integers(0, 4, size=(60, 3)).astype(float)
SMALL[0, 0], SMALL[1, 1] = np.nan, 9.0
WORDS = np.array([["a", "x"], ["b", "y"], ["c", "x"]] * 20, dtype=object)
RARE = np.concatenate([WORDS, [["q", "z"], ["r", None]]])
TWO = np.where(X[:, 0] > 0, "a", "b")
THREE = RNG.integers(0, 3, size=60)

_SEEN = [
    *(kind for kind in (StandardScaler(), MinMaxScaler(clip=True), MaxAbsScaler(), RobustScaler(),
                        PowerTransformer(), SimpleImputer(), VarianceThreshold())),
]  # fmt: skip
_DENSE = [
    *_SEEN, StandardScaler(with_std=False), StandardScaler(with_mean=False, with_std=False),
    RobustScaler(with_centering=False), PowerTransformer(standardize=False),
    QuantileTransformer(n_quantiles=20),
    QuantileTransformer(n_quantiles=9, output_distribution="normal"),
    Normalizer(), Binarizer(), PolynomialFeatures(), PolynomialFeatures((2, 3), include_bias=False),
    PolynomialFeatures((1, 3)), PolynomialFeatures(3, interaction_only=True, include_bias=False),
    PolynomialFeatures((2, 9), interaction_only=True), FunctionTransformer(),
    FunctionTransformer(np.abs, np.negative, feature_names_out="one-to-one"),
    PCA(2), PCA(), PCA(0.9, whiten=True), PCA(2, svd_solver="randomized"), IncrementalPCA(2),
    TruncatedSVD(2), FastICA(2), FastICA(whiten=False), KernelPCA(2, kernel="rbf"),
    KernelPCA(2, kernel="poly", fit_inverse_transform=True), GaussianRandomProjection(3),
    GaussianRandomProjection(3, compute_inverse_components=True), Nystroem(n_components=5),
    RBFSampler(), SimpleImputer(strategy="constant", fill_value=3.0), KernelCenterer(),
    make_pipeline(StandardScaler(), "passthrough", PCA(2)),
    FeatureUnion([("a", PCA(2)), ("b", "passthrough"), ("c", "drop")],
                 transformer_weights={"a": 2.0}, n_jobs=1),
    FeatureUnion([("a", make_pipeline(StandardScaler(), PCA(1))), ("b", Normalizer())]),
    ColumnTransformer([("a", StandardScaler(), [0, 1]), ("b", PCA(1), slice(1, 4)),
                       ("c", "passthrough", [-1]), ("d", "drop", 2)]),
    ColumnTransformer([("a", make_pipeline(StandardScaler()), np.array([0, 2]))],
                      remainder="passthrough", transformer_weights={"a": 3}),
    ColumnTransformer([("a", MinMaxScaler(), [True, False, True, False]), ("b", PCA(1), [])],
                      remainder=StandardScaler()),
    ColumnTransformer([("a", MinMaxScaler(), [0, 1, 2, 3])], remainder=StandardScaler()),
    StandardScaler().set_output(transform="default"),
]  # fmt: skip
_GAPPY = [*_SEEN, SimpleImputer(strategy="median", add_indicator=True), MissingIndicator(),
          SimpleImputer(strategy="most_frequent"), OrdinalEncoder()]  # fmt: skip
_CODED = [
    OneHotEncoder(), OneHotEncoder(sparse_output=False, dtype=np.float32),
    OneHotEncoder(drop="first"), OneHotEncoder(drop="if_binary", handle_unknown="ignore"),
    OneHotEncoder(min_frequency=3, handle_unknown="infrequent_if_exist"),
    OneHotEncoder(max_categories=2, drop="first"), OrdinalEncoder(),
    OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
    OrdinalEncoder(min_frequency=3, encoded_missing_value=-2),
    OrdinalEncoder(max_categories=2, handle_unknown="use_encoded_value", unknown_value=np.nan),
]  # fmt: skip
_CLASSIFIERS = [
    LogisticRegression(), RidgeClassifier(), LinearSVC(), GaussianNB(),
    QuadraticDiscriminantAnalysis(), QuadraticDiscriminantAnalysis(store_covariance=True),
    LinearDiscriminantAnalysis(), LinearDiscriminantAnalysis(solver="lsqr"),
    LinearDiscriminantAnalysis(solver="eigen", shrinkage="auto"),
    LogisticRegression(fit_intercept=False), LinearSVC(fit_intercept=False),
]  # fmt: skip
_REGRESSORS = [
    LinearRegression(), LinearRegression(positive=True), Ridge(), Ridge(solver="sag"), Lasso(0.01),
    ElasticNet(0.01), BayesianRidge(), BayesianRidge(compute_score=True), HuberRegressor(),
    LinearSVR(), LinearSVR(fit_intercept=False), KernelRidge(), KernelRidge(kernel="rbf"),
    Ridge(fit_intercept=False),
]  # fmt: skip


def genuine() -> list[tuple[str, Any, Any]]:
    """Return (name, fitted estimator, rows) of all kinds."""
    cases: list[tuple[Any, Any, Any]] = [(model, X, None) for model in _DENSE]
    cases += [(model, GAPS, None) for model in _GAPPY]
    cases += [(model, EMPTY, None) for model in _SEEN if type(model) is not PowerTransformer]
    cases += [(model, rows, None) for model in _CODED for rows in (WORDS, SMALL)]
    cases += [(model, RARE, None) for model in _CODED if "drop" not in repr(model)]
    cases += [(model, X, y) for model in _CLASSIFIERS for y in (TWO, THREE)]
    cases += [(model, X, X[:, 0]) for model in _REGRESSORS]
    cases += [(model, X, X[:, :2]) for model in _REGRESSORS if "t" in _targets(model)]
    cases += [(OneHotEncoder(drop=["a", "y"]), WORDS, None),
              (OneHotEncoder(drop=["b", "y"], min_frequency=3), RARE, None),
              (SimpleImputer(strategy="most_frequent", missing_values=None), RARE, None),
              (SimpleImputer(strategy="constant", missing_values=None), RARE, None)]  # fmt: skip
    fitted = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for model, rows, y in cases:
            again = type(model)(**model.get_params(deep=False))
            if type(model) is KernelCenterer:
                rows = rows @ rows.T
            fitted.append((f"{len(fitted)} {type(model).__name__}", again.fit(rows, y), rows))
    labels: list[tuple[Any, Any]] = [
        (LabelEncoder().fit(TWO), TWO),
        (LabelBinarizer().fit(THREE), THREE),
    ]
    return fitted + [(type(model).__name__, model, rows) for model, rows in labels]


def _targets(model: Any) -> str:
    several = (LinearRegression, Ridge, Lasso, ElasticNet, KernelRidge)
    return "t" if isinstance(model, several) and "sag" not in repr(model) else ""
