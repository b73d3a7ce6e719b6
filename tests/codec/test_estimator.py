"""``KernelCodec``: arrays to bytes and back."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from kernelatoms import KernelCodec, load_model, save_model
from kernelatoms.codec import CodecError
from kernelatoms.codec.bounds import Bound


def rows(rng, shape=(120, 6), dtype=np.float64):
    X = rng.normal(size=shape).cumsum(axis=0).astype(dtype)
    X.flat[7] = np.nan
    return X


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(120, 6), (8, 10, 5)], ids=str)
def test_rows_come_back_within_the_bound(rng, shape, dtype):
    X = rows(rng, shape, dtype)
    codec = KernelCodec(0.02, max_absolute=0.5, model="lags").fit(X)
    data = codec.encode(X)
    again = KernelCodec().decode(data)
    assert (again.dtype, again.shape) == (X.dtype, X.shape)
    flat = [a.reshape(-1, shape[-1]) for a in (X, again)]
    assert not Bound(0.02, 0.5).broken(*flat).any()
    assert len(data) < X.nbytes / 2
    assert codec.n_features_in_ == shape[-1]
    assert [name for name, _, _ in codec.trials_] == ["lags"] * len(codec.trials_)
    new = rows(rng, shape, dtype)
    np.testing.assert_allclose(codec.decode(codec.encode(new)), new, atol=0.51)


def test_a_model_is_chosen_by_itself(rng):
    codec = KernelCodec().fit(rows(rng))
    assert len({name for name, _, _ in codec.trials_}) > 3
    assert codec.model_.predictor in {name for name, _, _ in codec.trials_}


def test_exact_without_bounds(rng):
    X = rows(rng)
    codec = KernelCodec(None, model="lags").fit(X)
    np.testing.assert_array_equal(codec.decode(bytearray(codec.encode(X))), X)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"max_error": 0}, ValueError, "max_error must be above 0"),
        ({"max_error": "a"}, TypeError, "max_error must be a number"),
        ({"max_absolute": np.inf}, ValueError, "max_absolute must be above 0 and finite"),
        ({"model": "best"}, ValueError, "model must be one of 'auto'"),
        ({"symmetric": 1}, TypeError, "symmetric must be True or False"),
    ],
)
def test_wrong_parameters_are_named(rng, options, error, message):
    with pytest.raises(error, match=message):
        KernelCodec(**options).fit(rows(rng))


def test_rows_of_another_shape_are_refused(rng):
    codec = KernelCodec(model="lags").fit(rows(rng))
    with pytest.raises(ValueError, match="5 features, but KernelCodec is expecting 6"):
        codec.encode(rng.normal(size=(9, 5)))
    with pytest.raises(ValueError, match="must be a matrix of 6 columns as in fit"):
        codec.encode(rng.normal(size=(9, 2, 6)))
    with pytest.raises(ValueError, match="has 5 columns"):
        codec.encode(rng.normal(size=(9, 2, 5)))
    slices = KernelCodec(model="lags").fit(rng.normal(size=(4, 3, 6)))
    with pytest.raises(ValueError, match=r"slices of shape \(3, 6\) as in fit"):
        slices.encode(rng.normal(size=(9, 6)))
    with pytest.raises(ValueError, match="must hold values"):
        slices.fit(np.empty((4, 3, 0)))
    with pytest.raises(NotFittedError):
        KernelCodec().encode(rows(rng))
    with pytest.raises(TypeError, match="data must be bytes, got str"):
        codec.decode("text")
    with pytest.raises(CodecError, match="not a compressed file"):
        codec.decode(b"something else")


def test_a_codec_is_saved_and_cloned(rng, tmp_path):
    X = rows(rng)
    codec = KernelCodec(0.03, model="pca").fit(X)
    again, _ = load_model(save_model(codec, tmp_path / "codec.skops"))
    assert again.encode(X) == codec.encode(X)
    assert not hasattr(clone(codec), "model_")
