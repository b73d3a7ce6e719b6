"""scikit-learn's own checks on every estimator; nothing is expected to fail."""

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator

import kernelatoms
from kernelatoms import (
    KSCDL,
    KSVD,
    MOD,
    ClassDictionaryClassifier,
    KernelKSVD,
    KernelLinearizer,
    KernelMOD,
)

ESTIMATORS = [
    KernelLinearizer(),
    MOD(),
    KSVD(),
    KernelMOD(),
    KernelKSVD(),
    KSCDL(),
    ClassDictionaryClassifier(),
]


def test_every_estimator_is_here():
    public = {getattr(kernelatoms, name) for name in kernelatoms.__all__ if name[0].isupper()}
    assert public == {type(estimator) for estimator in ESTIMATORS}


def checks():
    for estimator in ESTIMATORS:
        for instance, check in estimator_checks_generator(estimator):
            name = getattr(check, "func", check).__name__
            yield pytest.param(instance, check, id=f"{type(estimator).__name__}-{name}")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("estimator", "check"), list(checks()))
def test_check(estimator, check):
    check(estimator)
