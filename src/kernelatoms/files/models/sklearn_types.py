"""Types of scikit-learn that a model file may hold without trust, and what each may hold.

Reading a file gives an estimator any attributes, and scikit-learn believes them. So each type here
has a rule for every attribute beside its parameters, which scikit-learn checks itself. An attribute
without a rule is refused: another version of scikit-learn may read it. Other types (trees,
neighbours, support vectors, searches) are read if the user names them.
"""

from typing import Any

from kernelatoms.estimators.state_checks import held
from kernelatoms.files.models.sklearn_containers import check_columns, check_pipeline, check_union
from kernelatoms.files.models.sklearn_encoders import check_encoder, check_imputer, check_polynomial
from kernelatoms.files.models.sklearn_rules import (
    Rule,
    Rules,
    Sizes,
    anything,
    both,
    count,
    either,
    fault,
    features,
    flag,
    floats,
    function,
    integers,
    labels,
    list_of,
    none_or,
    number,
    numbers_by_name,
    of_numpy,
    one_of,
    part,
    trusted_function,
    where,
)


def _rules(**rules: Rule) -> Rules:
    """Return rules by attribute; the prefix ``may_`` marks attributes that may be missing."""
    return {"n_features_in_": features, "may_feature_names_in_": anything, **_bare(**rules)}


def _bare(**rules: Rule) -> Rules:
    """Return rules of a type without ``n_features_in_``."""
    return rules | {"may__sklearn_output_config": _output}


def _output(owner: Any, name: str, sizes: Sizes) -> None:
    del sizes
    config = held(owner, name)
    if type(config) is not dict or set(config) - {"transform"}:
        raise fault(owner, name, "a choice of outputs")
    if config.get("transform") not in (None, "default", "pandas", "polars"):
        raise ValueError(f"{type(owner).__name__}.{name} names no kind of output.")


def _whole(check: Any) -> Rule:
    """Return a rule about an estimator and its features as a whole."""

    def rule(owner: Any, name: str, sizes: Sizes) -> None:
        del name
        check(owner, sizes["f"])

    return rule


def _feature_range(owner: Any, name: str, sizes: Sizes) -> None:
    del sizes
    value = held(owner, name)
    right = isinstance(value, tuple | list) and len(value) == 2
    if not right or not all(isinstance(side, int | float) for side in value):
        raise fault(owner, name, "two numbers")
    if not -1e300 <= value[0] < value[1] <= 1e300:
        raise fault(owner, name, "two numbers in ascending order")


def _row_per_class(owner: Any, name: str, sizes: Sizes) -> None:
    """Coefficients: one row per class, one row for two classes."""
    if sizes["c"] < 2:
        raise fault(owner, "classes_", "at least two classes")
    sizes["rows"] = 1 if sizes["c"] == 2 else sizes["c"]
    floats("rows", "f")(owner, name, sizes)


def _row_or_vector(owner: Any, name: str, sizes: Sizes) -> None:
    """Coefficients of a ridge classifier: those of two classes may be a vector."""
    two = sizes["c"] == 2 and getattr(held(owner, name), "ndim", 0) == 1
    sizes["rows"] = 1
    (floats("f") if two else _row_per_class)(owner, name, sizes)


_ANY = floats("f", missing=True)
_VALUES, _COUNTS = floats("f"), either(count(), floats("f", low=0), integers("f"), number)
_ITERATIONS = none_or(count(), integers("i"), integers("i", "j"))
_LINEAR = {
    "coef_": either(floats("f"), floats("t", "f")),
    "intercept_": either(number, floats("t"), floats(1)),
}
_CLASSES = {"classes_": labels("c"), "coef_": _row_per_class,
            "intercept_": either(floats("rows"), number)}  # fmt: skip
_PCA = {
    "components_": floats("k", "f"), "mean_": floats("f"), "noise_variance_": number,
    "explained_variance_": floats("k"), "explained_variance_ratio_": floats("k", missing=True),
    "singular_values_": floats("k"), "n_components_": count("k"),
}  # fmt: skip
_KERNEL = {"kernel": either(one_of("linear", "poly", "polynomial", "rbf", "sigmoid", "cosine",
                                   "laplacian", "chi2", "additive_chi2", "precomputed"),
                            trusted_function),
           "kernel_params": none_or(numbers_by_name)}  # fmt: skip
_ENCODER = {
    "categories_": _whole(check_encoder), "_infrequent_enabled": flag,
    "may__infrequent_indices": anything, "may__default_to_infrequent_mappings": anything,
}  # fmt: skip

#: Rules by the full name of the type; those of parameters are beside scikit-learn's own.
RULES: dict[str, Rules] = {
    f"sklearn.{name}": rules
    for name, rules in {
        "compose._column_transformer.ColumnTransformer": _rules(
            transformers_=_whole(check_columns), sparse_output_=flag, _columns=anything,
            _transformer_to_input_indices=anything, _remainder=anything, output_indices_=anything,
            may__transformers_feature_names_out=labels("outs"),
        ),
        "decomposition._fastica.FastICA": _rules(
            components_=floats("k", "f"), mixing_=floats("f", "k"), _unmixing=floats("k", "k"),
            mean_=where("whiten", floats("f")), whitening_=where("whiten", floats("k", "f")),
            n_iter_=count(),
        ),
        "decomposition._incremental_pca.IncrementalPCA": _rules(
            **_PCA, var_=floats("f"), n_samples_seen_=_COUNTS, batch_size_=count()
        ),
        "decomposition._kernel_pca.KernelPCA": _rules(
            **_KERNEL, X_fit_=floats("n", "f"), eigenvectors_=floats("n", "k"),
            eigenvalues_=floats("k", low=0), gamma_=number,
            _centerer=part("KernelCenterer", n_features_in_="n"),
            dual_coef_=where("fit_inverse_transform", floats("n", "f")),
            X_transformed_fit_=where("fit_inverse_transform", floats("n", "k")),
        ),
        "decomposition._pca.PCA": _rules(
            **_PCA, n_samples_=count(),
            _fit_svd_solver=one_of("full", "covariance_eigh", "arpack", "randomized"),
        ),
        "decomposition._truncated_svd.TruncatedSVD": _rules(
            components_=floats("k", "f"), explained_variance_=floats("k"),
            explained_variance_ratio_=floats("k", missing=True), singular_values_=floats("k"),
        ),
        "discriminant_analysis.LinearDiscriminantAnalysis": _rules(
            **_CLASSES, priors_=floats("c", low=0), means_=floats("c", "f"),
            _max_components=count(below="c"), may__n_features_out=count(below="c"),
            xbar_=where("solver", floats("f"), "svd"), may_covariance_=floats("f", "f"),
            scalings_=where("solver", floats("f", "m"), "svd", "eigen"),
            may_explained_variance_ratio_=floats("ratios"),
            covariance_estimator=one_of(None),
        ),
        "discriminant_analysis.QuadraticDiscriminantAnalysis": _rules(
            classes_=labels("c"), priors_=floats("c", low=0), means_=floats("c", "f"),
            scalings_=list_of("c", "*"), rotations_=list_of("c", "f", "*"),
            may_covariance_=list_of("c", "f", "f"),
        ),
        "feature_selection._variance_threshold.VarianceThreshold": _rules(variances_=_ANY),
        "impute._base.MissingIndicator": _rules(
            features_=integers("found", below="f"), _n_features=count("f"), _precomputed=flag
        ),
        "impute._base.SimpleImputer": _rules(
            statistics_=_whole(check_imputer), _fit_dtype=anything, _fill_dtype=anything,
            indicator_=none_or(part("MissingIndicator", n_features_in_="f")),
        ),
        "kernel_approximation.Nystroem": _rules(
            **_KERNEL, components_=floats("k", "f"), normalization_=floats("k", "k"),
            component_indices_=integers("k"), _n_features_out=count("k"),
        ),
        "kernel_approximation.RBFSampler": _rules(
            random_weights_=floats("f", "k"), random_offset_=floats("k"), _gamma=number,
            _n_features_out=count("k"),
        ),
        "kernel_ridge.KernelRidge": _rules(
            **_KERNEL, X_fit_=floats("n", "f"),
            dual_coef_=either(floats("n"), floats("n", "t")),
        ),
        "linear_model._base.LinearRegression": _rules(
            **_LINEAR, may_rank_=anything, may_singular_=floats("s")
        ),
        "linear_model._bayes.BayesianRidge": _rules(
            coef_=_VALUES, intercept_=number, alpha_=number, lambda_=number, n_iter_=count(),
            X_offset_=_VALUES, X_scale_=_VALUES, sigma_=floats("f", "f"), scores_=anything,
        ),
        "linear_model._coordinate_descent.ElasticNet": _rules(
            **_LINEAR, n_iter_=either(count(), anything), dual_gap_=either(number, floats("t"))
        ),
        "linear_model._coordinate_descent.Lasso": _rules(
            **_LINEAR, n_iter_=either(count(), anything), dual_gap_=either(number, floats("t")),
            l1_ratio=number,
        ),
        "linear_model._huber.HuberRegressor": _rules(
            coef_=_VALUES, intercept_=number, scale_=number, n_iter_=count(), outliers_=anything
        ),
        "linear_model._logistic.LogisticRegression": _rules(**_CLASSES, n_iter_=_ITERATIONS),
        "linear_model._ridge.Ridge": _rules(
            **_LINEAR, n_iter_=_ITERATIONS, solver_=either(one_of(None), anything)
        ),
        "linear_model._ridge.RidgeClassifier": _rules(
            **{**_CLASSES, "coef_": _row_or_vector}, n_iter_=_ITERATIONS,
            solver_=anything, _label_binarizer=part("LabelBinarizer"),
        ),
        "naive_bayes.GaussianNB": _rules(
            classes_=labels("c"), theta_=floats("c", "f"), var_=floats("c", "f", low=0),
            class_prior_=floats("c", low=0), class_count_=floats("c", low=0), epsilon_=number,
        ),
        "pipeline.FeatureUnion": _bare(verbose=flag, verbose_feature_names_out=flag
        ),
        "pipeline.Pipeline": _bare(verbose=flag),
        "preprocessing._data.Binarizer": _rules(),
        "preprocessing._data.KernelCenterer": _rules(K_fit_rows_=floats("f"), K_fit_all_=number),
        "preprocessing._data.MaxAbsScaler": _rules(
            scale_=_ANY, max_abs_=_ANY, n_samples_seen_=_COUNTS
        ),
        "preprocessing._data.MinMaxScaler": _rules(
            feature_range=_feature_range, scale_=_ANY, min_=_ANY, data_min_=_ANY, data_max_=_ANY,
            data_range_=_ANY, n_samples_seen_=_COUNTS,
        ),
        "preprocessing._data.Normalizer": _rules(),
        "preprocessing._data.PowerTransformer": _rules(
            lambdas_=_ANY,
            _scaler=where("standardize", part("StandardScaler", n_features_in_="f")),
        ),
        "preprocessing._data.QuantileTransformer": _rules(
            n_quantiles_=count("q", low=1), references_=floats("q", low=0),
            quantiles_=floats("q", "f", missing=True),
        ),
        "preprocessing._data.RobustScaler": _rules(
            center_=where("with_centering", _ANY), scale_=where("with_scaling", _ANY)
        ),
        "preprocessing._data.StandardScaler": _rules(
            mean_=both(where("with_mean", _ANY), where("with_std", _ANY)),
            var_=where("with_std", _ANY), scale_=where("with_std", _ANY),
            n_samples_seen_=both(_COUNTS, of_numpy),
        ),
        "preprocessing._encoders.OneHotEncoder": _rules(
            **_ENCODER, drop_idx_=anything, _drop_idx_after_grouping=anything,
            _n_features_outs=anything,
            feature_name_combiner=either(one_of("concat"), trusted_function),
        ),
        "preprocessing._encoders.OrdinalEncoder": _rules(**_ENCODER, _missing_indices=anything),
        "preprocessing._function_transformer.FunctionTransformer": _rules(
            func=function, inverse_func=function, feature_names_out=one_of(None, "one-to-one"),
            kw_args=one_of(None), inv_kw_args=one_of(None),
        ),
        "preprocessing._label.LabelBinarizer": _bare(classes_=labels("c"), sparse_input_=flag,
            y_type_=one_of("binary", "multiclass", "multilabel-indicator"),
        ),
        "preprocessing._label.LabelEncoder": _bare(classes_=labels("c")),
        "preprocessing._polynomial.PolynomialFeatures": _rules(
            n_output_features_=_whole(check_polynomial), _n_out_full=anything,
            _min_degree=anything, _max_degree=anything,
        ),
        "random_projection.GaussianRandomProjection": _rules(
            components_=floats("k", "f"), n_components_=count("k"), _n_features_out=count("k"),
            inverse_components_=where("compute_inverse_components", floats("f", "k")),
        ),
        "svm._classes.LinearSVC": _rules(**_CLASSES, n_iter_=count()),
        "svm._classes.LinearSVR": _rules(
            coef_=_VALUES, intercept_=either(number, floats(1)), n_iter_=count()
        ),
    }.items()
}  # fmt: skip

_CONTAINERS = {"sklearn.pipeline.Pipeline": check_pipeline, "sklearn.pipeline.FeatureUnion":
               check_union}  # fmt: skip


def check_estimator(estimator: Any, *, reading: bool) -> None:
    """Refuse an estimator of a type in ``RULES`` whose attributes break a rule.

    ``reading``: it comes from a file. A newer scikit-learn may write attributes without a rule; to
    be read, its type must be trusted.
    """
    kind = type(estimator)
    name = f"{kind.__module__}.{kind.__qualname__}"
    rules, parameters = RULES[name], kind._get_param_names()
    for parameter in parameters:
        value = held(estimator, parameter)
        if isinstance(value, int) and abs(value) >= 1 << 63:
            raise fault(estimator, parameter, "a number that NumPy holds")
    if hasattr(kind, "_parameter_constraints"):
        estimator._validate_params()
    known = {rule.removeprefix("may_") for rule in rules}
    fitted = [attribute for attribute in vars(estimator) if attribute not in parameters]
    unknown = sorted(set(fitted) - known)
    if unknown and reading:
        raise ValueError(
            f"{kind.__name__}.{unknown[0]} is no attribute that this kernelatoms knows; if you "
            f"know who made the file, trust {name!r}"
        )
    if name in _CONTAINERS:
        _CONTAINERS[name](estimator)
    sizes: Sizes = {}
    is_fitted = any(attribute.endswith("_") for attribute in fitted)
    for rule_of, rule in rules.items():
        attribute = rule_of.removeprefix("may_")
        if attribute not in parameters and not is_fitted:
            continue  # a pattern for others, or one that learns nothing
        if attribute == rule_of or attribute in vars(estimator):
            rule(estimator, attribute, sizes)
