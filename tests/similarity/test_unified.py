"""Several distances as one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.distance import DistanceContract
from kernelatoms.coding.neighbors import featurize_by, nearest_by
from kernelatoms.similarity import DistanceKernel, make_distance
from kernelatoms.similarity.distances import Mahalanobis
from kernelatoms.similarity.images import Tangent
from kernelatoms.similarity.named_distances import Unified

TRAINING = np.random.default_rng(3).random((300, 30))
THREE = ("l1", "tangent", "mahalanobis")


def make(form, distances=THREE):
    return Unified(distances, form, image_shape=(6, 5)).fitted_to(TRAINING)


@pytest.mark.parametrize("form", ["product", "sum", "union"])
class TestForms(DistanceContract):
    @pytest.fixture(autouse=True)
    def choose(self, form):
        self.form = form

    def make(self):
        return make(self.form)

    def rows(self, n, rng, dtype=np.float64):
        return rng.random((n, 30)).astype(dtype)


@given(seed=st.integers(0, 2**31), n=st.integers(1, 5), m=st.integers(1, 5))
def test_are_what_they_say(seed, n, m):
    rng = np.random.default_rng(seed)
    X, Y = rng.random((n, 30)), rng.random((m, 30))
    parts = [
        make_distance("l1"),
        Tangent((6, 5)),
        Mahalanobis().fitted_to(TRAINING),
    ]
    each = [part.compare(part.featurize(X), part.featurize(Y)) for part in parts]
    some = TRAINING[[int(i * 299 / 255) for i in range(256)]]
    off = ~np.eye(256, dtype=bool)
    described = [part.featurize(some) for part in parts]
    means = [part.compare(A, A)[off].mean() for part, A in zip(parts, described, strict=True)]
    expected = {
        "product": each[0] * each[1] * each[2],
        "sum": sum(far / mean for far, mean in zip(each, means, strict=True)),
        "union": each[0],
    }
    for form, D in expected.items():
        distance = make(form)
        mine = distance.compare(distance.featurize(X), distance.featurize(Y))
        np.testing.assert_allclose(mine, D, rtol=1e-9)
    scaled = Unified(parts, "product", scales=(2.0, 3.0, 4.0))  # scales belong to sums
    mine = scaled.compare(scaled.featurize(X), scaled.featurize(Y))
    np.testing.assert_allclose(mine, expected["product"], rtol=1e-9)


def test_sums_are_semidefinite_to_their_first_power():
    # exp(-d - d') is a product of kernels, exp(-(d + d')^2) is none.
    assert Unified(("l2", "l2"), "sum").semidefinite_to == 1
    assert Unified(("l2", "linf"), "sum").semidefinite_to == 0


def test_a_union_names_its_parts():
    assert make("union").parts == (
        make_distance("l1"), Tangent((6, 5)), Mahalanobis().fitted_to(TRAINING),
    )  # fmt: skip
    inner = Unified(("l1", "linf"), "union")
    assert Unified((inner, "l2"), "union").parts == tuple(map(make_distance, ("l1", "linf", "l2")))
    product = make("product")
    assert product.parts == (product,)


def test_what_parts_know_it_knows():
    assert Unified(("l2", "chi2")).non_negative
    assert not Unified(("l2", "l1")).non_negative
    for distances, form, to in (
        (("l2", "l1"), "sum", 1),
        (("l2", "linf"), "sum", 0),
        (("l2", "l2"), "product", 0),
        (("l2",), "product", 2),
        (("l1", "l2"), "union", 1),
    ):
        assert Unified(distances, form).semidefinite_to == to


def test_a_sum_is_fitted_once():
    assert Unified(("l1", "l2")).fitted_to(TRAINING) == Unified(("l1", "l2"))
    kernel = DistanceKernel(Unified(("l1", "l2"), "sum"))
    fitted = kernel.with_gamma_from(TRAINING)
    assert fitted.with_gamma_from(2 * TRAINING) == fitted
    assert len(fitted.distance.scales) == 2
    with pytest.raises(ValueError, match=r"takes their scales from training rows.*fitted_to"):
        kernel(TRAINING, TRAINING)
    equal = Unified(("l1", "l2"), "sum").fitted_to(np.ones((3, 2)))
    assert equal.scales == (1, 1)  # nothing to tell them by


def test_bad_parameters(rng):
    for bad in ("l1", None, {"l1"}):
        with pytest.raises(ValueError, match="distances must be a tuple of names"):
            Unified(bad)
    with pytest.raises(ValueError, match="at least one distance, got none"):
        Unified(())
    with pytest.raises(ValueError, match="distance must be one of"):
        Unified(("l2", "l7"))
    with pytest.raises(ValueError, match="form must be one of 'product', 'sum', 'union', got 'x'"):
        Unified(("l2",), "x")
    for bad in ((1.0,), (1.0, -1.0), (1.0, np.nan), "ab"):
        with pytest.raises(ValueError, match="scales must be 2 numbers above 0"):
            Unified(("l1", "l2"), "sum", scales=bad)
    with pytest.raises(ValueError, match="'tangent' compares images: give image_shape"):
        Unified(("l2", "tangent")).featurize(rng.random((2, 9)))

    class Means:
        def featurize(self, rows):
            return rows.mean(axis=1)

        def compare(self, A, B):
            return np.abs(A[:, None] - B)

    with pytest.raises(ValueError, match=r"need descriptors \(n, p\), and those of Means have"):
        Unified(("l2", Means())).featurize(rng.random((2, 9)))


class _Both:
    """A user's union: nearest by l1 or by linf, compared by l1."""

    parts = (make_distance("l1"), make_distance("linf"))

    def featurize(self, rows):
        return rows

    def compare(self, A, B):
        return np.abs(A[:, None] - B).sum(axis=2)


def test_a_users_union_names_its_parts(rng):
    X, Y = rng.standard_normal((9, 4)), rng.standard_normal((50, 4))
    mine, ours = make_distance(_Both()), Unified(("l1", "linf"), "union")
    found = [
        nearest_by(distance, featurize_by(distance, X), featurize_by(distance, Y), 5)
        for distance in (mine, ours)
    ]
    assert found[0].shape == (9, 10)
    np.testing.assert_array_equal(*found)
