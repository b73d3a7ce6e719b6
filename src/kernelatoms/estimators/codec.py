"""``KernelCodec``: arrays to bytes and back, within a bound that holds on every row."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from kernelatoms.codec.arrays import decode_array, encode_array
from kernelatoms.codec.bounds import Bound
from kernelatoms.codec.choosing import NAMES, choose_model
from kernelatoms.codec.models import CodecModel
from kernelatoms.codec.stored_models import checked_model
from kernelatoms.estimators.base import Estimator
from kernelatoms.estimators.devices.border import learn, on_cpu
from kernelatoms.estimators.state_checks import check_features, held
from kernelatoms.estimators.validation import FLOATS, check_choice, check_count, check_real
from kernelatoms.similarity.base import check_flag

Array = NDArray[Any]


class KernelCodec(Estimator):
    """Compress matrices of sensors, traffic or latencies; every row comes back within a bound.

    ``fit`` finds the model that predicts rows best, counted in bytes; ``encode`` turns rows like
    these into bytes, which hold all that ``decode`` needs. For files see ``compress``.

    Parameters
    ----------
    max_error : float or None, default=0.01
        The largest error of every row: |row - decoded| <= max_error * |row|. None for none.
    max_absolute : float or None, default=None
        The largest error of every value. With neither bound, values come back exactly.
    model : str, default="auto"
        "auto" for the model that takes the fewest bytes, or the name of one.
    symmetric : bool or None, default=None
        Whether matrices (the slices of a 3-d array) are symmetric; None to look.

    Attributes
    ----------
    model_ : CodecModel
        The model.
    trials_ : list of (str, int, str)
        What was tried: name, bytes, and a note.
    n_features_in_ : int
        Values in a row.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelatoms import KernelCodec
    >>> X = np.cumsum(np.random.default_rng(0).normal(size=(300, 6)), axis=0)
    >>> codec = KernelCodec(max_error=0.02).fit(X)
    >>> data = codec.encode(X)
    >>> decoded = KernelCodec().decode(data)
    >>> errors = np.linalg.norm(X - decoded, axis=1) / np.linalg.norm(X, axis=1)
    >>> bool(errors.max() <= 0.02)
    True
    """

    def __init__(
        self,
        max_error: float | None = 0.01,
        *,
        max_absolute: float | None = None,
        model: str = "auto",
        symmetric: bool | None = None,
    ) -> None:
        self.max_error = max_error
        self.max_absolute = max_absolute
        self.model = model
        self.symmetric = symmetric

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.three_d_array = True
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose a model, and learn what it needs.

        Parameters
        ----------
        X : array of shape (n_rows, n_columns) or (n_slices, n_rows, n_columns)
            float32 or float64; NaN where a value is missing.
        y : ignored
            There for scikit-learn's sake.

        Returns
        -------
        KernelCodec
            The codec itself.
        """
        learn(self._fit, self, X)
        return self

    def _fit(self, X: Any) -> None:
        bound = self._bound()
        names = check_choice("model", self.model, ("auto", *NAMES))
        if self.symmetric is not None:
            check_flag("symmetric", self.symmetric)
        X = self._validated(X, reset=True)
        choice = choose_model(
            X.reshape(-1, X.shape[-1]), bound,
            slice_rows=X.shape[1] if X.ndim == 3 else 0, symmetric=self.symmetric,
            names=None if names == "auto" else [names],
        )  # fmt: skip
        self.model_ = choice.model
        self.trials_ = [(trial.name, trial.n_bytes, trial.note) for trial in choice.trials]

    def encode(self, X: Any) -> bytes:
        """Return rows as bytes.

        Parameters
        ----------
        X : array of shape (n_rows, n_columns) or (n_slices, n_rows, n_columns)
            Rows like those of ``fit``: as many columns, and slices of as many rows.

        Returns
        -------
        bytes
            What ``decode`` makes rows of, model included.
        """
        check_is_fitted(self)
        bound = self._bound()
        X = self._validated(on_cpu("KernelCodec.encode", X=X), reset=False)
        slice_rows = X.shape[1] if X.ndim == 3 else 0
        if slice_rows != self.model_.slice_rows:
            raise ValueError(
                f"X must be {_shape(self.model_.slice_rows, self.model_.n_columns)} as in fit, but "
                f"its shape is {X.shape}."
            )
        return encode_array(X, bound, self.model_)

    def decode(self, data: Any, *, max_size: int | None = None) -> Array:
        """Return the rows of ``encode``; an unfitted codec can, too.

        Parameters
        ----------
        data : bytes
            What ``encode`` returned.
        max_size : int or None, default=None
            The bytes that the rows may become. By default 4 GiB, or 256 times those of ``data``
            where that is more.

        Returns
        -------
        array of shape (n_rows, n_columns) or (n_slices, n_rows, n_columns)
            The rows, each within the bound.
        """
        if not isinstance(data, bytes | bytearray | memoryview):
            raise TypeError(f"data must be bytes, got {type(data).__name__}.")
        if max_size is not None:
            check_count("max_size", max_size)
        return decode_array(bytes(data), vars(self).get("model_"), max_size)

    def _bound(self) -> Bound:
        relative, absolute = self.max_error, self.max_absolute
        if relative is not None:
            relative = check_real("max_error", relative, low=0, high=1, low_open=True)
        if absolute is not None:
            absolute = check_real("max_absolute", absolute, low=0, low_open=True)
        return Bound(relative, absolute)

    def _validated(self, X: Any, *, reset: bool) -> Array:
        """Return X as floats; slices are counted by their last axis."""
        options: dict[str, Any] = {"dtype": FLOATS, "order": "C", "ensure_all_finite": False}
        if np.ndim(X) != 3 or not hasattr(X, "shape"):
            return validate_data(self, X, reset=reset, **options)
        X = check_array(X, allow_nd=True, **options)
        if 0 in X.shape:
            raise ValueError(f"X must hold values, but its shape is {X.shape}.")
        if reset:
            if hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
            self.n_features_in_ = X.shape[-1]
        elif X.shape[-1] != self.n_features_in_:
            raise ValueError(
                f"X has {X.shape[-1]} columns, but {type(self).__name__} is expecting "
                f"{self.n_features_in_}."
            )
        return X

    def _check_state(self) -> None:
        """Check what may come from a file."""
        self._bound()
        n_features = check_features(self)
        model = held(self, "model_")
        if type(model) is not CodecModel:
            raise TypeError("KernelCodec.model_ must be a CodecModel.")
        checked_model(model)
        if model.n_columns != n_features:
            raise ValueError("KernelCodec.model_ must predict as many columns as there were.")
        again = CodecModel.from_bytes(model.to_bytes())
        if again.digest != model.digest:
            raise ValueError("KernelCodec.model_ must be one that bytes can hold.")


def _shape(slice_rows: int, n_columns: int) -> str:
    if slice_rows:
        return f"slices of shape ({slice_rows}, {n_columns})"
    return f"a matrix of {n_columns} columns"
