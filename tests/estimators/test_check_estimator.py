"""scikit-learn's own checks on every estimator.

Nothing is expected to fail but this: learners start from random rows, and repeated rows are others.
"""

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import estimator_checks_generator

import kernelatoms
from every_estimator import ESTIMATORS
from kernelatoms import SparseCoder
from kernelatoms.estimators.learners.base import WeightedLearner
from kernelatoms.estimators.registry import ESTIMATORS as REGISTERED

# A given dictionary must have the width of a check's rows, and every check has its own.
WIDTHS = (2, 3, 4, 5, 8, 10, 1, 20)


EQUIVALENCE = "check_sample_weight_equivalence"
REPEATS = pytest.mark.xfail(
    strict=True, reason="random rows of repeated rows: test_weights gives atoms"
)


def is_learner(estimator):
    return isinstance(estimator, WeightedLearner)


def test_every_estimator_is_here():
    names = [name for name in kernelatoms.__all__ if name[0].isupper() and name != "PRESETS"]
    found = {name for name in names if issubclass(getattr(kernelatoms, name), BaseEstimator)}
    assert found == set(REGISTERED)


def checks():
    for estimator in ESTIMATORS:
        for instance, check in estimator_checks_generator(estimator):
            name = getattr(check, "func", check).__name__
            marks = [REPEATS] if name.startswith(EQUIVALENCE) and is_learner(estimator) else []
            yield pytest.param(instance, check, id=f"{estimator!r}-{name}", marks=marks)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("estimator", "check"), list(checks()))
def test_check(estimator, check):
    check(estimator)


def coder(width):
    return SparseCoder(np.random.default_rng(0).standard_normal((6, width)))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "check",
    [check for _, check in estimator_checks_generator(coder(3))],
    ids=lambda check: getattr(check, "func", check).__name__,
)
def test_check_of_a_given_dictionary(check):
    """As scikit-learn checks its own: with a dictionary that fits the rows of the check."""
    for width in WIDTHS:
        try:
            return check(coder(width))
        except Exception as error:
            if not is_about_width(error):
                raise
    raise AssertionError("no dictionary fitted")


def is_about_width(error):
    while error is not None:
        if "one column per feature" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False
