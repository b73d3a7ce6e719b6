"""Learning does not depend on the scale of the data, from the smallest numbers to the largest."""

import warnings

import numpy as np
import pytest

from kernelatoms import (
    KSCDL,
    KSVD,
    MOD,
    ClassDictionaryClassifier,
    KernelKSVD,
    KernelLinearizer,
    KernelMOD,
)

FAR = {np.float32: [-100, -43, 30, 99], np.float64: [-464, -100, 100, 464]}


def learners(scale):
    """Learners that should do the same at a scale; penalties are in units of the data."""
    options = {"n_atoms": 16, "max_iter": 6, "random_state": 0}
    greedy = options | {"n_nonzero_coefs": 3}
    return {
        "K-SVD": KSVD(**greedy),
        "K-SVD by OLS": KSVD(selection="ols", **greedy),
        "MOD": MOD(**greedy),
        "positive MOD": MOD(positive=True, **greedy),
        "l1 MOD": MOD(alpha=0.5 * scale, **options),
        "kernel K-SVD": KernelKSVD(kernel="linear", **greedy),
        "kernel MOD": KernelMOD(kernel="linear", **greedy),
        # Its atoms are as long as the data, so that the penalty is in units of squares.
        "KSCDL": KSCDL(kernel="linear", alpha=0.5 * scale**2, **options),
    }


def directions(model, name, scale):
    if name.startswith("kernel"):
        return model.atom_gram_
    return model.components_ / (scale if name == "KSCDL" else 1)


def rows(dtype):
    return np.random.default_rng(0).standard_normal((120, 8)).astype(dtype)


@pytest.mark.parametrize("name", learners(1.0))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_power_of_two_changes_nothing(name, dtype):
    X = rows(dtype)
    plain = learners(1.0)[name].fit(X)
    for exponent in FAR[dtype]:
        scale = 2.0**exponent
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            model = learners(scale)[name].fit(X * dtype(scale))
            score = model.score(X * dtype(scale))
        np.testing.assert_allclose(model.objective_ / scale / scale, plain.objective_, rtol=1e-6)
        assert score == pytest.approx(plain.score(X), abs=1e-6)
        found, expected = (directions(m, name, s) for m, s in ((model, scale), (plain, 1.0)))
        if name.startswith("kernel"):  # float32 rows far from 1 are learned from in float64
            np.testing.assert_allclose(found, expected, atol=1e-5)
        else:
            assert (found == expected).all()


@pytest.mark.parametrize("name", learners(1.0))
@pytest.mark.parametrize(("dtype", "scales"), [
    (np.float32, [1e-30, 1e-13, 1e9, 1e30]), (np.float64, [1e-140, 1e140])])  # fmt: skip
def test_other_factors_change_little(name, dtype, scales):
    X = rows(dtype)
    plain = learners(1.0)[name].fit(X)
    for scale in scales:
        model = learners(scale)[name].fit((X * scale).astype(dtype))
        reached = model.objective_[model.best_pass_] / scale / scale
        assert reached == pytest.approx(plain.objective_[plain.best_pass_], rel=0.05)


@pytest.mark.parametrize("options", [{"n_nonzero_coefs": 3}, {"alpha": 0.5}])
def test_batches(options):
    X = rows(np.float32)
    for exponent in FAR[np.float32]:
        scale = 2.0**exponent
        scaled = options | ({"alpha": options["alpha"] * scale} if "alpha" in options else {})
        plain, model = MOD(16, random_state=0, **options), MOD(16, random_state=0, **scaled)
        for batch in np.split(X, 4):
            plain.partial_fit(batch)
            model.partial_fit(batch * np.float32(scale))
        assert (model.components_ == plain.components_).all()
        np.testing.assert_allclose(model.objective_ / scale / scale, plain.objective_, rtol=1e-12)


def test_batches_of_different_scale():
    """A batch of 1e-20 is as good as nothing beside the others, and does no harm."""
    X = rows(np.float32)
    one, other = (MOD(16, n_nonzero_coefs=3, random_state=0) for _ in range(2))
    for i, batch in enumerate(np.split(X, 4)):
        one.partial_fit(batch)
        other.partial_fit(batch * np.float32(1e-20 if i == 2 else 1))
    assert np.isfinite(other.components_).all()
    np.testing.assert_allclose(np.linalg.norm(other.components_, axis=1), 1, rtol=1e-5)
    assert other.score(X) == pytest.approx(one.score(X), abs=0.05)


@pytest.mark.parametrize("scheme", ["distributive", "collective"])
@pytest.mark.parametrize("learner", [KSVD, MOD, KernelKSVD])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_classes(dtype, learner, scheme):
    y = np.repeat([0, 1, 2], 40)
    X = rows(dtype) + 2 * np.eye(3, 8, dtype=dtype)[y]
    X[0, 1] = np.nan
    kernel = {"kernel": "linear"} if learner is KernelKSVD else {}
    template = learner(8, n_nonzero_coefs=2, max_iter=4, **kernel)
    model = ClassDictionaryClassifier(template, scheme=scheme, random_state=0).fit(X[1:], y[1:])
    for exponent in FAR[dtype]:
        scale = dtype(2.0**exponent)
        far = ClassDictionaryClassifier(template, scheme=scheme, random_state=0)
        far.fit(X[1:] * scale, y[1:])
        agree = (far.predict(X * scale) == model.predict(X)).mean()
        assert agree == 1 if learner is not KernelKSVD else agree > 0.98


@pytest.mark.parametrize("scheme", ["distributive", "collective"])
def test_classes_of_rows_with_missing_values(scheme):
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((80, 6)).astype(np.float32), np.arange(80) % 2
    X[:, :3] += 3 * y[:, None]
    holes = np.where(rng.random(X.shape) < 0.2, np.float32(np.nan), X)
    options = {"scheme": scheme, "random_state": 0}
    model = ClassDictionaryClassifier(KSVD(4, n_nonzero_coefs=2, max_iter=2), **options)
    scores = model.fit(X, y).decision_function(holes)
    for exponent in FAR[np.float32]:
        scale = np.float32(2.0**exponent)
        far = ClassDictionaryClassifier(KSVD(4, n_nonzero_coefs=2, max_iter=2), **options)
        there = far.fit(X * scale, y).decision_function(holes * scale)
        np.testing.assert_allclose(there, scores, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("exponent", [-40, -30, -25, -22, -15, 15])
def test_virtual_samples_of_squares_are_right_or_refused(exponent):
    """Those of (x'y)^2 are as long as |x|^2, and their pre-images as x."""
    X = (rows(np.float64) * 10.0**exponent).astype(np.float32)
    X[3] = 0
    options = {"degree": 2, "gamma": 1.0, "coef0": 0.0, "n_landmarks": 80, "random_state": 0}
    linearizer = KernelLinearizer("poly", **options).fit(X)
    if exponent <= -22:
        with pytest.raises(ValueError, match="virtual samples underflow float32"):
            linearizer.transform(X)
        return
    F = linearizer.transform(X)
    lengths = np.linalg.norm(F.astype(np.float64), axis=1)
    np.testing.assert_allclose(lengths, np.vecdot(X, X, dtype=np.float64), rtol=1e-3)
    assert np.isfinite(linearizer.inverse_transform(F)).all()


@pytest.mark.parametrize("kernel", ["linear", "cosine"])
def test_virtual_samples_of_rows_with_missing_values(kernel):
    X = rows(np.float32)
    holes = np.where(np.random.default_rng(1).random(X.shape) < 0.2, np.float32(np.nan), X)
    linearizer = KernelLinearizer(kernel, n_landmarks=30, random_state=0)
    near = linearizer.fit(X).transform(holes)
    near = near @ near.T
    for exponent in FAR[np.float32]:
        scale = np.float32(2.0**exponent)
        far = linearizer.fit(X * scale).transform(holes * scale).astype(np.float64)
        far = far / (scale if kernel == "linear" else 1)
        np.testing.assert_allclose(far @ far.T, near, atol=1e-3)


def test_rows_that_have_nothing_in_common_with_the_landmarks_are_mapped_to_zero():
    linearizer = KernelLinearizer("linear", n_landmarks=2).fit(np.eye(2, 4, dtype=np.float32))
    np.testing.assert_allclose(linearizer.transform(np.eye(4, dtype=np.float32))[2:], 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_virtual_samples(dtype):
    X = rows(dtype)
    for exponent in FAR[dtype]:
        scale = 2.0**exponent
        linearizer = KernelLinearizer("linear", n_landmarks=30, random_state=0)
        F = linearizer.fit(X * dtype(scale)).transform(X * dtype(scale))
        assert F.dtype == dtype
        F = F.astype(np.float64) / scale
        np.testing.assert_allclose(F @ F.T, X @ X.T, atol=1e-4)


@pytest.mark.parametrize("exponent", [-25, -8, 8, 25])
def test_float32_codes_over_float64_atoms_are_right_or_refused(exponent):
    """Atoms under a polynomial kernel have unit norm, so codes are as long as k(x, x) ** 0.5."""
    X = (rows(np.float64) * 10.0**exponent).astype(np.float32)
    options = {"kernel": "poly", "degree": 2, "gamma": 1.0, "coef0": 0.0, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        model = KernelKSVD(16, n_nonzero_coefs=3, max_iter=3, **options).fit(X)
        if abs(exponent) == 8:
            wide = KernelKSVD(16, n_nonzero_coefs=3, max_iter=3, **options).fit(X.astype(float))
            largest = abs(wide.transform(X.astype(float))).max()
            np.testing.assert_allclose(abs(model.transform(X)).max(), largest, rtol=1e-3)
        else:
            word = "overflow" if exponent > 0 else "underflow"
            with pytest.raises(ValueError, match=f"The codes {word} float32"):
                model.transform(X)
