"""An argument that others leave without use is refused, unless it is at its default."""

import inspect

import numpy as np
import pytest
from sklearn.base import clone

from kernelatoms import (
    CRCClassifier,
    KernelLinearizer,
    KSADClassifier,
    LCKSVDClassifier,
    SparseCoder,
    SRCClassifier,
    denoise_image,
    denoise_rows,
    lasso_path,
    preimage,
    sparse_encode,
)
from kernelatoms.coding.ksc import fksc, ksc
from kernelatoms.coding.lasso import lasso
from kernelatoms.coding.omp import omp
from kernelatoms.coding.ridge import ridge
from kernelatoms.coding.threshold import threshold
from kernelatoms.estimators.coding.arguments import METHODS, TAKEN_BY
from kernelatoms.estimators.validation import is_default

RNG = np.random.default_rng(0)
X, ATOMS = RNG.standard_normal((9, 4)), np.eye(4)
PURSUITS = {
    "omp": omp, "lasso": lasso, "ridge": ridge, "threshold": threshold, "ksc": ksc, "fksc": fksc,
}  # fmt: skip
ALL_METHODS = (*METHODS, "ksc", "fksc")
#: Arguments that every method takes.
ANY = {
    "X", "dictionary", "method", "sparse_output",
    "kernel", "gamma", "degree", "coef0", "kernel_params",
}  # fmt: skip
L1 = {"alpha": 0.1}
NEEDED = {
    "omp": {}, "ridge": {"mu": 0.1}, "threshold": L1, "lasso": L1, "ksc": L1, "fksc": L1,
}  # fmt: skip
#: Another value than the default of every argument that some methods take.
OTHERS = {
    "n_nonzero_coefs": 2, "max_residual": 0.5, "absolute": True, "selection": "ols",
    "candidates": np.tile(np.arange(4), (9, 1)), "alpha": 0.2, "mu": 0.2, "positive": True,
    "gap_tol": 1e-3, "change_tol": 1e-2, "start": np.zeros((9, 4)),
    "energy": np.full(9, 99.0), "return_gap": True,
}  # fmt: skip


def parameters(of):
    return inspect.signature(of).parameters


def given_with(name):
    """Return what else an argument needs, whatever the method."""
    if name == "absolute":
        return {"max_residual": 0.5}
    return {"kernel": "precomputed"} if name == "energy" else {}


class TestCoding:
    def test_the_table_knows_every_argument(self):
        assert set(parameters(sparse_encode)) == ANY | set(TAKEN_BY)
        assert set(OTHERS) == set(TAKEN_BY)
        assert set(parameters(SparseCoder)) <= set(parameters(sparse_encode))
        assert {taker for takers in TAKEN_BY.values() for taker in takers} == set(ALL_METHODS)

    @pytest.mark.parametrize("method", ALL_METHODS)
    def test_the_table_says_what_pursuits_take(self, method):
        own = {name for name, takers in TAKEN_BY.items() if method in takers}
        # Energies are the problem's, and gaps what a pursuit returns.
        own -= {"energy", "return_gap"}
        names = {"n_nonzero": "n_nonzero_coefs"}
        taken = {names.get(name, name) for name in parameters(PURSUITS[method])}
        assert taken & set(parameters(sparse_encode)) == own

    @pytest.mark.parametrize("method", ALL_METHODS)
    @pytest.mark.parametrize("name", TAKEN_BY)
    def test_arguments_of_other_methods_are_refused(self, method, name):
        options = {"method": method, **NEEDED[method]}
        if method in ("lasso", "ksc", "fksc") and name == "energy":
            options["gap_tol"] = 1e-2
        taken = method in TAKEN_BY[name]
        words = rf"{name} belongs to method='.*, not to '{method}'"
        calls = [lambda **more: sparse_encode(X, ATOMS, **options, **more)]
        if name in parameters(SparseCoder) and method in METHODS:
            coder = SparseCoder(ATOMS, **options)
            calls += [
                lambda **more: clone(coder).set_params(**more).fit(X),
                lambda **more: clone(coder).set_params(**more).transform(X),
            ]
        for call in calls:
            more = {name: OTHERS[name]} if name not in options else {}
            if taken:
                call(**more, **(given_with(name) if call is calls[0] or name == "absolute" else {}))
                continue
            with pytest.raises(ValueError, match=words):
                call(**more)
            call(**{name: parameters(sparse_encode)[name].default})

    @pytest.mark.parametrize("name", ["n_alphas", "smallest"])
    def test_paths(self, name):
        words = f"{name} chooses weights where none are given.*leave it at its default"
        with pytest.raises(ValueError, match=words):
            lasso_path(X, ATOMS, alphas=[1.0], **{name: 0.5 if name == "smallest" else 7})
        lasso_path(X, ATOMS, alphas=[1.0], **{name: parameters(lasso_path)[name].default})


@pytest.mark.parametrize("method", ["auto", "fixed-point", "distance", "ridge"])
@pytest.mark.parametrize(
    ("name", "value", "takers"),
    [
        ("n_neighbors", 3, ("auto", "distance")),
        ("max_iter", 7, ("auto", "fixed-point")),
        ("tol", 1e-3, ("auto", "fixed-point")),
    ],
)
def test_preimages(method, name, value, takers):
    call = {"coef": RNG.standard_normal(9), "anchors": X, "method": method, name: value}
    if method in takers:
        preimage(**call)
        return
    with pytest.raises(ValueError, match=f"{name} belongs to method='.*not to '{method}'"):
        preimage(**call)


@pytest.mark.parametrize("more", [{"n_atoms": 128}, {"max_iter": 3}])
def test_denoising(more):
    words = f"{next(iter(more))} is for learning atoms, and dictionary gives them"
    image, rows = RNG.standard_normal((16, 16)), RNG.standard_normal((4, 32))
    with pytest.raises(ValueError, match=words):
        denoise_image(image, 1.0, dictionary=np.eye(64), **more)
    with pytest.raises(ValueError, match=words):
        denoise_rows(rows, 1.0, dictionary=np.eye(16), **more)


LOCAL = {"n_neighbors": 3, "n_coarse": 5}
UNUSED = [
    (CRCClassifier(search="approximate"), "search .* needs n_neighbors"),
    (CRCClassifier(n_neighbors=3, coarse_distance="l1"), "coarse_distance .* needs n_coarse"),
    (SRCClassifier(coarse_distance="l1"), "coarse_distance .* needs n_coarse"),
    (SRCClassifier(alpha=0.1, n_nonzero_coefs=2), "alpha=0.1 asks for l1 codes"),
    (KernelLinearizer(solver="full", n_passes=3), "n_passes is for solver='randomized'"),
    (KernelLinearizer(solver="full", n_oversamples=3), "n_oversamples is for solver="),
    (KernelLinearizer(sampling=X[:5], n_landmarks=4), "n_landmarks=4, but sampling gives 5"),
    (
        KSADClassifier(3, within_class_metric=False, shrinkage=0.5),
        "shrinkage belongs to within_class_metric=True",
    ),
    (KSADClassifier(3, scatter="scalar"), "scatter belongs to fisher_weight above 0"),
    (LCKSVDClassifier(variant=1, label_weight=0.5), "label_weight belongs to variant=2"),
]
USED = [
    CRCClassifier(coarse_distance="l1", **LOCAL),
    CRCClassifier(search="exact", coarse_distance="l2"),
    SRCClassifier(alpha=0.1),
    KernelLinearizer(solver="randomized", n_passes=3, n_oversamples=3),
    KernelLinearizer(solver="full", n_passes=16, n_oversamples=20),
    KernelLinearizer(sampling=X[:5], n_landmarks=5),
    KSADClassifier(3, shrinkage=0.5),
    KSADClassifier(3, within_class_metric=False, fisher_weight=0.01, shrinkage=0.5),
    KSADClassifier(3, fisher_weight=0.01, scatter="scalar"),
    LCKSVDClassifier(variant=1, label_weight=0.0),
    LCKSVDClassifier(variant=2, label_weight=0.5),
]
LABELS = np.arange(9) % 2


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("estimator", "words"), UNUSED, ids=lambda one: str(one)[:60])
def test_estimators_refuse_in_fit(estimator, words):
    model = clone(estimator)  # __init__ and set_params take all
    with pytest.raises(ValueError, match=words):
        model.fit(X, LABELS)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("estimator", USED, ids=str)
def test_estimators_take_what_they_use(estimator):
    clone(estimator).fit(X, LABELS)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1e-6, True),
        (np.float64(1e-6), True),
        (1e-5, False),
        (np.full(3, 1e-6), False),
        (None, False),
    ],
)
def test_defaults_by_value(value, expected):
    assert is_default(sparse_encode, "gap_tol", value) is expected
