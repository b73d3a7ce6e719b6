"""What scikit-learn's estimators may hold in a model file: what ``fit`` gives them, and no more."""

import contextlib
import copy
import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, KernelPCA
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    PolynomialFeatures,
    StandardScaler,
)

from forged_models import forge, members_of
from fuzz.genuine import WORDS, X, genuine
from kernelatoms import KSVD
from kernelatoms.files import ModelFileError, load_model, save_model
from kernelatoms.files.models.sklearn_types import RULES
from kernelatoms.files.models.soundness import check_model, forget_machine

GENUINE = genuine()
NAMES = [name for name, _, _ in GENUINE]


def name_of(model):
    return f"{type(model).__module__}.{type(model).__qualname__}"


def test_every_type_has_a_genuine_estimator():
    assert {name_of(model) for _, model, _ in GENUINE} == set(RULES)


@pytest.mark.parametrize(("name", "model", "rows"), GENUINE, ids=NAMES)
def test_what_fit_leaves_is_allowed(name, model, rows):
    """A new version of scikit-learn that keeps other attributes shows here."""
    check_model(copy.deepcopy(model), reading=True)


@pytest.mark.parametrize(("name", "model", "rows"), GENUINE[::7], ids=NAMES[::7])
def test_estimators_are_the_same_again(name, model, rows, tmp_path):
    again, _ = load_model(save_model(model, tmp_path / "m.skops"))
    for method in ("transform", "predict"):
        if hasattr(model, method) and "lsqr" not in repr(model):
            expected, found = (getattr(each, method)(rows) for each in (model, again))
            if hasattr(expected, "toarray"):
                expected, found = expected.toarray(), found.toarray()
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("name", "model", "rows"), GENUINE, ids=NAMES)
def test_no_attribute_may_be_more_missing_or_other(name, model, rows):
    """Each attribute in turn is taken away, or becomes what no rule can allow."""
    may_miss = {rule.removeprefix("may_") for rule in RULES[name_of(model)] if "may_" in rule}
    for attribute in set(vars(model)) - may_miss:
        if attribute == "n_features_in_" and not model.__sklearn_tags__().requires_fit:
            continue  # it learns nothing
        changed = copy.copy(model)
        del vars(changed)[attribute]
        if vars(model)[attribute] is not None or attribute in type(model)._get_param_names():
            with pytest.raises((ValueError, TypeError, AttributeError)):
                check_model(changed, reading=True)
    changed = copy.copy(model)
    changed.new_ = 1
    with pytest.raises(ValueError, match=rf"new_ is no attribute .* trust '{name_of(model)}'"):
        check_model(changed, reading=True)
    check_model(changed)  # a model of a newer scikit-learn is written
    check_model(changed, reading=True, trusted=[name_of(model)])


ODD = [None, -1, 10**18, 1.5, np.inf, "x", [], [1e9, -1e9, 3], {}, (1,), np.zeros((0, 0)),
       np.zeros((3, 3, 3)), np.full(2, np.nan), np.array(["a", "a"]), object()]  # fmt: skip
#: Attributes that no method but ``fit`` reads, or that any value of a kind may be.
UNREAD = {"scores_", "outliers_", "solver_", "rank_", "n_iter_", "dual_gap_", "n_jobs", "memory"}


@pytest.mark.parametrize(("name", "model", "rows"), GENUINE, ids=NAMES)
def test_whatever_passes_works(name, model, rows):
    """Odd attributes are refused; or the estimator does its work, or says in words why not."""
    fitted = [a for a in vars(model) if a not in model.get_params(deep=False) and a not in UNREAD]
    refused = 0
    for attribute in fitted:
        for odd in ODD:
            changed = copy.copy(model)
            vars(changed)[attribute] = odd
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    check_model(changed, reading=True)
            except (ValueError, TypeError, AttributeError):
                refused += 1
                continue
            for method in ("transform", "predict"):
                if hasattr(changed, method) and "lsqr" not in repr(model):
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        with contextlib.suppress(ValueError):  # not what Python itself raises
                            getattr(changed, method)(rows[:5])
    assert refused >= 8 * len(fitted)


@pytest.mark.parametrize(("name", "model", "rows"), GENUINE, ids=NAMES)
def test_whole_numbers_of_files_stay_small(name, model, rows):
    """A number alone makes nobody name 10^30 columns, nor is it more than NumPy holds."""
    for attribute, value in vars(model).items():
        if attribute in UNREAD or type(value) is not int:
            continue
        for odd in (10**30, -(10**30)):
            changed = copy.copy(model)
            vars(changed)[attribute] = odd
            try:
                check_model(changed, reading=True)
            except (ValueError, TypeError):
                continue
            assert attribute in ("n_samples_seen_", "n_samples_", "batch_size_"), attribute


@pytest.mark.parametrize("odd", [np.abs, np.add, None, "x"])
@pytest.mark.parametrize(
    ("model", "attribute"),
    [(OneHotEncoder(), "feature_name_combiner"), (KernelPCA(kernel="rbf"), "kernel"),
     (KernelRidge(kernel="rbf"), "kernel"), (Nystroem(n_components=2), "kernel")],
    ids=lambda value: getattr(value, "__name__", str(value)),
)  # fmt: skip
def test_functions_of_two_arguments_are_not_those_of_numpy(model, attribute, odd):
    """Of two arrays these write the second, which is the model's own."""
    model = copy.copy(model).fit(np.arange(12.0).reshape(6, 2), np.arange(6.0))
    setattr(model, attribute, odd)
    with pytest.raises((ValueError, TypeError)):
        check_model(model, reading=True)


def test_an_encoder_that_wrote_behind_its_matrix(tmp_path):
    """The sum of the widths is right, so that nothing but the widths themselves shows it."""
    encoder = OneHotEncoder().fit(WORDS)
    encoder._n_features_outs = [10**9, -(10**9) + 5]
    with pytest.raises(ModelFileError, match=r"OneHotEncoder\._n_features_outs must be \[3, 2\]"):
        load_model(forge(encoder, tmp_path / "m.skops"))
    encoder = OneHotEncoder().fit(WORDS)
    for kind in (float, object):  # found by bisection
        encoder.categories_[0] = np.array([5.0, 1.0, 3.0], kind)
        with pytest.raises(ModelFileError, match=r"categories_\[0\] must be .* ascending"):
            load_model(forge(encoder, tmp_path / "m.skops"))


def test_places_of_encoders_are_those_of_their_categories():
    for rows, options in ((WORDS, {}), (WORDS, {"min_frequency": 25}), (WORDS, {"drop": "first"})):
        encoder = OneHotEncoder(**options).fit(rows)
        for attribute, odd in (
            ("_n_features_outs", [2, 3]), ("_n_features_outs", np.array([3, 2])),
            ("_infrequent_indices", [None, None]),
            ("_infrequent_enabled", not encoder._infrequent_enabled),
            ("_default_to_infrequent_mappings", [np.array([0, 1, 7]), None]),
            ("_drop_idx_after_grouping", np.array([2, 5], object)),
            ("drop_idx_", np.array([0, None], object)), ("drop_idx_", np.array([1, 1], object)),
            ("dtype", "U5"), ("dtype", None),
        ):  # fmt: skip
            changed = copy.copy(encoder)
            vars(changed)[attribute] = odd
            with pytest.raises(ValueError, match="must be"):
                check_model(changed, reading=True)


def combinations(n, low, high, only, bias):
    """Count products of features by making all of them."""
    from itertools import combinations, combinations_with_replacement

    make = combinations if only else combinations_with_replacement
    return sum(len(list(make(range(n), d))) for d in range(max(low, 1), high + 1)) + bias


@pytest.mark.parametrize("only", [True, False])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("degree", [1, 4, (0, 2), (1, 3), (2, 3), (3, 3)])
def test_polynomials_have_as_many_columns_as_there_are(only, bias, degree):
    for n in (1, 3):
        model = PolynomialFeatures(degree, interaction_only=only, include_bias=bias)
        model.fit(np.ones((2, n)))
        check_model(model, reading=True)
        low, high = degree if isinstance(degree, tuple) else (0, degree)
        assert model.n_output_features_ == combinations(n, low, high, only, bias)
        for name in ("n_output_features_", "_n_out_full", "_min_degree", "_max_degree"):
            changed = copy.copy(model)
            vars(changed)[name] += 1
            with pytest.raises(ValueError, match="as degree says"):
                check_model(changed, reading=True)


def test_polynomials_of_a_small_file_stay_small():
    model = PolynomialFeatures(2).fit(np.ones((2, 4)))
    for degree in (10**6, (5, 10**18)):
        model.degree = model._max_degree = degree
        with pytest.raises(ValueError, match=r"as degree says|16,777,216 columns"):
            check_model(model, reading=True)


@pytest.mark.parametrize(
    "broken",
    [
        Pipeline([("a", 3), ("b", PCA(2).fit(X))]), Pipeline([("a", PCA(2)), ("b", Normalizer())]),
        Pipeline([(1, 2), (3, 4)]), Pipeline((1.5, 2)), Pipeline([]), Pipeline([("a",)]),
        Pipeline([("a__b", PCA(2).fit(X))]), Pipeline([("steps", PCA(2).fit(X))]),
        Pipeline([("a", Ridge().fit(X, X[:, 0])), ("b", PCA(2).fit(X))]),
        Pipeline([("a", "drop"), ("b", PCA(2).fit(X))]), Pipeline([("a", "x")]),
        Pipeline([("a", PCA(2).fit(X)), ("a", PCA(2).fit(X))]),
        Pipeline([("a", PCA(2).fit(X))], transform_input=["x"]),
        FeatureUnion([("a", PCA(2))]), FeatureUnion([("a", 3)]), FeatureUnion([("a", None)]),
        FeatureUnion([("a", PCA(2).fit(X))], transformer_weights={"b": 1}),
        FeatureUnion([("a", PCA(2).fit(X))], transformer_weights={"a": "x"}),
        FeatureUnion([("a", make_pipeline(PCA(2), PCA(1).fit(X)))]),
        FunctionTransformer(np.add), FunctionTransformer(np.invert), FunctionTransformer(PCA),
        FunctionTransformer(np.abs, kw_args={"out": X}), MinMaxScaler((2, 1)).fit,
        StandardScaler(with_mean="x"),
    ],
    ids=lambda model: repr(model)[:40].replace("\n", ""),
)  # fmt: skip
def test_containers_of_nonsense_are_refused(broken):
    with pytest.raises((ValueError, TypeError)):
        check_model(broken, reading=True)


CHANGES = [
    ("_transformer_to_input_indices", {"a": [0, 9], "b": [2], "remainder": [3]}),
    ("_transformer_to_input_indices", {"a": [0, 1]}), ("_columns", [[0, 1], [3]]),
    ("_columns", None), ("output_indices_", {"a": slice(0, 2), "b": slice(0, 1)}),
    ("output_indices_", {"a": slice(0, 2), "b": slice(5, 6), "remainder": slice(6, 7)}),
    ("output_indices_", {"a": 3, "b": slice(2, 3), "remainder": slice(3, 4)}),
    ("_remainder", ("remainder", 3, [3])), ("_remainder", None), ("sparse_output_", "x"),
    ("transformers_", []), ("transformers_", [("a", 3, [0, 1])]), ("transformers", [(1, 2, 3)]),
    ("transformers_", [("a", StandardScaler(), [0, 1]), ("b", "drop", [2])]),
    ("transformers_", [("a", "drop", [0, 99]), ("b", "drop", [2])]),
    ("transformers_", [("a", "drop", 1.5), ("b", "drop", [2])]),
]  # fmt: skip


@pytest.mark.parametrize(("attribute", "value"), CHANGES, ids=str)
def test_columns_are_among_those_that_there_are(attribute, value):
    parts = [("a", StandardScaler(), [0, 1]), ("b", MinMaxScaler(), [2])]
    model = ColumnTransformer(parts, remainder="passthrough").fit(X)
    check_model(model, reading=True)
    vars(model)[attribute] = value
    with pytest.raises((ValueError, TypeError)):
        check_model(model, reading=True)


@pytest.mark.parametrize("beyond", [5, -7, 1 + 2**40])
def test_columns_beyond_the_last_are_none_of_them(beyond):
    """Even where all attributes agree on them."""
    model = ColumnTransformer([("a", StandardScaler(), [0, 1])]).fit(X)
    model.transformers_[0] = ("a", model.transformers_[0][1], [0, beyond])
    model._columns = [[0, beyond]]
    model._transformer_to_input_indices["a"] = [0, beyond % 4]
    with pytest.raises(ValueError, match="columns among the 4"):
        check_model(model, reading=True)


def test_columns_by_name(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("pqrs"))
    for columns in (["p", "r"], "p", slice("p", "r"), [True, False, False, True]):
        first = Normalizer() if columns != "p" else "drop"
        model = ColumnTransformer([("a", first, columns)], remainder=MinMaxScaler()).fit(frame)
        again, _ = load_model(save_model(model, tmp_path / "m.skops"))
        np.testing.assert_array_equal(again.transform(frame), model.transform(frame))
        again.feature_names_in_ = np.array(list("wxyz"), object)
        if not isinstance(columns, list) or isinstance(columns[0], str):
            with pytest.raises(ValueError, match="columns among the 4"):
                check_model(again, reading=True)


# What a file says of the machine


def test_files_start_no_processes_and_cache_nowhere(tmp_path):
    union = FeatureUnion([("b", PCA(2)), ("c", Normalizer())])
    columns = ColumnTransformer([("a", union, [0, 1, 2])])
    model = Pipeline([("c", columns), ("k", KSVD(4, max_iter=1))]).fit(X)
    expected = model.transform(X)
    model.set_params(memory="cache", c__n_jobs=4, c__a__n_jobs=10_000)
    model[0].transformers_[0][1].n_jobs = 10_000
    path = save_model(model, tmp_path / "m.skops")
    assert b"10000" in members_of(path)["schema.json"]
    again, _ = load_model(path)
    held = [again, again[0], again[0].transformers[0][1], again[0].transformers_[0][1]]
    assert [vars(each).get("n_jobs") for each in held] == [None] * 4
    assert again.memory is None
    assert (model[0].n_jobs, model.memory) == (4, "cache")
    assert (again.transform(X) != expected).nnz == 0


def test_a_missing_choice_of_the_machine_is_not_made_up():
    model = make_pipeline(PCA(2)).fit(X)
    del model.memory
    forget_machine(model)
    with pytest.raises(ValueError, match=r"Pipeline\.memory is missing"):
        check_model(model, reading=True)


def test_types_without_rules_are_named(tmp_path):
    from sklearn.model_selection import GridSearchCV

    model = GridSearchCV(Ridge(), {"alpha": [1.0]}).fit(X, X[:, 0])
    assert isinstance(model, BaseEstimator)
    with pytest.raises(ModelFileError, match="GridSearchCV"):
        load_model(forge(model, tmp_path / "m.skops"))
