"""Files whose objects contradict themselves: they are refused, or what they hold still works.

Every attribute of every fitted estimator, and of what it holds, is replaced by what it must not
be. A file may then be refused. A model that loads must work or refuse in words: compiled loops do
not look at what they are given, so that a wrong shape there is a crash.
"""

import copy
import traceback
import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from draws import later, some
from forged_models import archive_of
from kernelatoms import (
    KSAD,
    KSCDL,
    KSVD,
    MOD,
    ClassDictionaryClassifier,
    CRCClassifier,
    DKSVDClassifier,
    FDDLClassifier,
    KernelCodec,
    KernelKSVD,
    KernelLinearizer,
    KernelMOD,
    KSADClassifier,
    LCKSVDClassifier,
    NearestImputer,
    RowNormalizer,
    SparseCoder,
    SRCClassifier,
    TrainingImputer,
    similarity,
)
from kernelatoms.files import ModelFileError, load_model, save_model
from kernelatoms.files.models.model_file import ALLOWED_TYPES
from kernelatoms.learning.moments import Moments
from kernelatoms.learning.state import LearnerState
from kernelatoms.limits import MODEL_COLUMNS
from kernelatoms.similarity.inner import PolynomialKernel

X = np.random.default_rng(0).normal(size=(40, 5))
Y = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")
K = X @ X.T
FEW = {"random_state": 0, "max_iter": 3}

MODELS = {
    "KSVD": lambda: KSVD(6, n_nonzero_coefs=2, **FEW).fit(X),
    "KSVD warm": lambda: KSVD(6, warm_start=True, random_state=np.random.RandomState(1)).fit(X),
    "MOD": lambda: MOD(6, n_nonzero_coefs=2, dict_init=X[:6], **FEW).fit(X),
    "MOD l1": lambda: MOD(9, alpha=0.3, **FEW).partial_fit(X[:4]),
    "KernelKSVD": lambda: KernelKSVD(6, n_nonzero_coefs=2, **FEW).fit(X),
    "KernelMOD": lambda: KernelMOD(6, kernel=PolynomialKernel(), **FEW).fit(X),
    "KernelKSVD precomputed": lambda: KernelKSVD(6, kernel="precomputed", **FEW).fit(K),
    "KSCDL": lambda: KSCDL(6, kernel="poly", degree=2, **FEW).fit(X),
    "KernelLinearizer": lambda: KernelLinearizer(n_landmarks=9, random_state=0).fit(X),
    "KernelLinearizer settled": lambda: KernelLinearizer("mahalanobis", n_landmarks=9).fit(X),
    "KernelLinearizer precomputed": lambda: KernelLinearizer("precomputed").fit(K),
    "SparseCoder": lambda: SparseCoder(X[:7], n_nonzero_coefs=2).fit(X),
    "distributive": lambda: ClassDictionaryClassifier(KSVD(3, max_iter=2)).fit(X, Y),
    "collective": lambda: ClassDictionaryClassifier(
        KernelKSVD(3, max_iter=2), scheme="collective"
    ).fit(X, Y),
    "CRC": lambda: CRCClassifier("rbf", projection="kpca").fit(X, Y),
    "CRC neighbours": lambda: CRCClassifier(
        "mahalanobis", n_neighbors=6, distance="mahalanobis", n_coarse=9
    ).fit(X, Y),
    "CRC robust": lambda: CRCClassifier(residual_norm="l1", mu=0.5).fit(X, Y),
    "CRC precomputed": lambda: CRCClassifier("precomputed", n_neighbors=6).fit(K, Y),
    "SRC": lambda: SRCClassifier(n_nonzero_coefs=3).fit(X, Y),
    "SRC neighbours": lambda: SRCClassifier("rbf", alpha=0.1, n_neighbors=6).fit(X, Y),
    "D-KSVD": lambda: DKSVDClassifier(6, n_nonzero_coefs=2, **FEW).fit(X, Y),
    "LC-KSVD": lambda: LCKSVDClassifier(6, n_nonzero_coefs=2, variant=1, **FEW).fit(X, Y),
    "FDDL": lambda: FDDLClassifier(3, **FEW).fit(X, Y),
    "FDDL global": lambda: FDDLClassifier(3, decision="global", mean_weight=0.2, **FEW).fit(X, Y),
    "KSAD": lambda: KSAD(6, **FEW).partial_fit(X),
    "KSAD precomputed": lambda: KSAD(4, kernel="precomputed", **FEW).fit(K),
    "KSADClassifier": lambda: KSADClassifier(6, **FEW).fit(X, Y),
    "KSADClassifier precomputed": lambda: KSADClassifier(4, kernel="precomputed", **FEW).fit(K, Y),
    "KernelCodec": lambda: KernelCodec(model="pca").fit(X),
    "NearestImputer": lambda: NearestImputer(3).fit(np.where(X > 2, np.nan, X)),
    "TrainingImputer": lambda: TrainingImputer().fit(X),
    "RowNormalizer": lambda: RowNormalizer(offset=1.0).fit(X),
    "precomputed": lambda: ClassDictionaryClassifier(KernelMOD(3, kernel="precomputed")).fit(K, Y),
}


def owners(held, path=""):
    """Yield the objects of the library in a model, each with where it is."""
    if isinstance(held, list):
        for i, entry in enumerate(held):
            yield from owners(entry, f"{path}[{i}]")
    elif type(held).__module__.startswith("kernelatoms."):
        yield path, held
        for name, value in vars(held).items():
            yield from owners(value, f"{path}.{name}")


def at(model, path):
    return eval(f"model{path}")


def bad_arrays(array):
    """Yield what an array must not be."""
    yield from (None, 3, "text", [], array.tolist(), {"a": 1}, np.float64(2.0))
    yield from (array[:-1], array[..., :0], array[None], array[..., None])
    yield np.concatenate([array, array])
    yield np.ma.masked_array(array)
    yield from (array.astype(kind) for kind in (object, "S8"))
    if array.dtype.kind in "US":
        return
    kinds = (complex, np.float16, bool, array.dtype.newbyteorder())
    yield from (array.astype(kind) for kind in kinds)
    if array.ndim == 2 and len(set(array.shape)) == 2:
        yield array.T
    worst = (-1, 10**6, np.iinfo(np.int64).min) if array.dtype.kind == "i" else (np.nan, np.inf)
    for value in worst:
        yield np.full_like(array, value)
        changed = array.copy()
        changed.flat[-1:] = value
        yield changed


def bad_values():
    """Yield what a number, a text or an object must not be."""
    yield from (None, "text", -1, 0, 10**9, 2**70, np.nan, -np.inf, True, 2.5, [], [1, 2], {})
    yield from (np.zeros(3), np.zeros((2, 2)), RandomState(pos=10**6), KSVD())


class RandomState:
    """Stands for a RandomState that points outside of its numbers."""

    def __new__(cls, pos):
        made = np.random.RandomState(0)
        state = made.get_state(legacy=False)
        state["state"]["pos"] = pos
        made.set_state(state)
        return made


def work(model):
    """Do all that a model can; words of refusal are right, results of a wrong shape are not."""
    rows = K if model.__sklearn_tags__().input_tags.pairwise else X
    with_gaps = rows.copy()
    with_gaps[0, 0] = np.nan
    calls = [
        lambda: model.transform(rows).shape[0] == len(rows),
        lambda: model.transform(with_gaps).shape[0] == len(rows),
        lambda: model.predict(rows).shape == (len(rows),),
        lambda: model.decision_function(with_gaps).shape[0] == len(rows),
        lambda: model.inverse_transform(model.transform(rows)).shape == rows.shape,
        lambda: model.score(rows, Y) <= 1 + 1e-6,
        lambda: len(model.get_feature_names_out()) > 0,
        lambda: model.decode(model.encode(with_gaps)).shape == rows.shape,
        lambda: copy.deepcopy(model).partial_fit(rows[:7]).partial_fit(rows[7:]) is not None,
    ]
    names = ["transform", "transform", "predict", "decision_function", "inverse_transform"]
    names += ["score", "get_feature_names_out", "decode", "partial_fit"]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for name, call in zip(names, calls, strict=True):
            if hasattr(model, name):
                try:
                    assert call(), name
                except (ValueError, TypeError) as error:
                    if not traceback.extract_tb(error.__traceback__)[-1].line.startswith("raise"):
                        raise  # an accident, and nobody's words


def try_file(path, model):
    """Return whether a file of this object is refused; else what it holds must work."""
    path.write_bytes(archive_of(model))
    try:
        loaded, _ = load_model(path)
    except ModelFileError:
        return True
    work(loaded)
    return False


# Sizes of arrays, which the arrays contradict if they are others.
SIZES = {"n_atoms_", "n_features_in_", "n_components_", "n_landmarks_", "n_nonzero_coefs_"}


def changes(model, reaches_loops, choose=list):
    """Yield models with one attribute missing or wrong, and which: those given to loops, or not."""
    for where, owner in list(owners(model)):
        for name, value in list(vars(owner).items()):
            array = isinstance(value, np.ndarray) and name not in ("dict_init", "dictionary")
            if (array or name in SIZES) != reaches_loops:
                continue
            others = list(bad_arrays(value) if isinstance(value, np.ndarray) else bad_values())
            for other in [MISSING, *choose(others)]:
                if other is None and value is None:
                    continue
                changed = copy.deepcopy(model)
                held = vars(at(changed, where))
                held[name] = other
                if other is MISSING:
                    held.pop(name)
                yield f"{where}.{name}", other, changed


MISSING = object()


def a_few(n, rng):
    """Return what chooses n of the wrong values of an attribute: all take a minute and more."""
    return lambda others: [others[i] for i in rng.permutation(len(others))[:n]]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("how_many", [4, later(None)])
def test_wrong_arrays_and_sizes_are_refused(name, how_many, tmp_path):
    model = MODELS[name]()
    # Every attribute of every model, and over the models all ways to be wrong.
    choose = a_few(how_many, np.random.default_rng(len(name))) if how_many else list
    for where, other, changed in changes(model, reaches_loops=True, choose=choose):
        if harmless(name, where, other):
            assert not try_file(tmp_path / "m.skops", changed), f"{where} = {other!r}"
        else:
            assert try_file(tmp_path / "m.skops", changed), f"{where} = {other!r}"


def harmless(name, where, other):
    """Tell what looks wrong and is not."""
    if where.endswith(".classes_"):  # texts and numbers of any kind name classes
        return type(other) is np.ndarray and other.shape == (2,)
    if name == "RowNormalizer" and where == ".n_features_in_":  # nothing else depends on it
        return type(other) is int and 1 <= other <= MODEL_COLUMNS
    if name == "NearestImputer" and where == ".rows_":  # any number of rows, and any gaps in them
        right = type(other) is np.ndarray and other.dtype in (np.float64, np.float32)
        return right and other.shape[1:] == X.shape[1:] and not np.isinf(other).any()
    return where.endswith(".sums") and other is None  # nothing was added up yet


OFTEN = ["KSVD", "MOD l1", "KernelKSVD", "KSCDL", "KernelLinearizer settled", "collective", "CRC",
         "SRC neighbours", "FDDL", "KSADClassifier", "KernelCodec"]  # fmt: skip


@pytest.mark.parametrize("name", some(MODELS, OFTEN))
def test_other_attributes_may_be_wrong_but_do_no_harm(name, tmp_path, rng):
    model = MODELS[name]()
    assert not try_file(tmp_path / "m.skops", model)

    refused = [
        try_file(tmp_path / "m.skops", changed)
        for _, _, changed in changes(model, reaches_loops=False, choose=a_few(2, rng))
    ]
    assert any(refused)


def test_every_estimator_of_the_library_answers_for_itself():
    kinds = [name for name in ALLOWED_TYPES if name.startswith("kernelatoms.estimators.")]
    covered = {type(model()).__name__ for model in MODELS.values()}
    for name in kinds:
        assert name.rpartition(".")[2] in covered, f"no test damages {name}"
    held = {type(owner).__name__ for make in MODELS.values() for _, owner in owners(make())}
    assert {LearnerState.__name__, Moments.__name__} <= held


@pytest.mark.parametrize(
    "content",
    [[1, 2], {"a": 1}, np.zeros((3, 3)), "model", 3, None, KSVD(), make_pipeline(KSVD()),
     StandardScaler(), similarity.RBFKernel(), np.random.RandomState(0)],
    ids=lambda content: type(content).__name__,
)  # fmt: skip
def test_what_is_no_fitted_estimator_is_no_model(content, tmp_path):
    path = tmp_path / "m.skops"
    path.write_bytes(archive_of(content))
    with pytest.raises(ModelFileError, match=r"no estimator|not fitted"):
        load_model(path)


def test_steps_before_the_last_must_be_fitted_too(tmp_path):
    model = make_pipeline(KernelLinearizer(), LogisticRegression()).fit(X, Y)
    model.steps[0] = ("map", KernelLinearizer())
    (tmp_path / "m.skops").write_bytes(archive_of(model))
    with pytest.raises(ModelFileError, match="not fitted"):
        load_model(tmp_path / "m.skops")


def test_values_in_the_place_of_methods_are_refused(tmp_path):
    for model, name in ((MODELS["KSVD"](), "_encode"), (StandardScaler().fit(X), "transform")):
        vars(model)[name] = np.log1p
        (tmp_path / "m.skops").write_bytes(archive_of(model))
        with pytest.raises(ModelFileError, match=f"{name} is a value in the place of a method"):
            load_model(tmp_path / "m.skops")


def test_random_states_point_at_their_own_numbers(tmp_path):
    for pos, right in ((0, True), (624, True), (625, False), (-1, False)):
        model = MODELS["KSVD"]()
        model.random_state = RandomState(pos)
        (tmp_path / "m.skops").write_bytes(archive_of(model))
        if right:
            load_model(tmp_path / "m.skops")
        else:
            with pytest.raises(ModelFileError, match="RandomState that no seed leads to"):
                load_model(tmp_path / "m.skops")


def test_kernel_objects_are_checked_as_if_just_made(tmp_path):
    for attributes in ({"gamma": -1.0}, {"degree": "two"}, {"degree": np.nan}, {"extra": 1}):
        kernel = PolynomialKernel(gamma=1.0)
        vars(kernel).update(attributes)
        model = MODELS["KernelMOD"]()
        model.kernel = kernel
        (tmp_path / "m.skops").write_bytes(archive_of(model))
        with pytest.raises(ModelFileError, match="damaged"):
            load_model(tmp_path / "m.skops")


def test_a_model_that_would_not_load_is_not_written(tmp_path):
    model = MODELS["KernelKSVD"]()
    model.atom_gram_ = np.eye(3)
    with pytest.raises(ValueError, match=r"KernelKSVD\.atom_gram_ must be .* shape \(6, 6\)"):
        save_model(model, tmp_path / "m.skops")
    assert not list(tmp_path.iterdir())


def test_the_error_names_the_attribute(tmp_path):
    model = MODELS["KSVD"]()
    model.components_ = model.components_[:, :4]
    (tmp_path / "m.skops").write_bytes(archive_of(model))
    with pytest.raises(ModelFileError, match=r"KSVD\.components_ must be .*\(6, 5\), got .*\(6, 4"):
        load_model(tmp_path / "m.skops")
    assert isinstance(model, BaseEstimator)
