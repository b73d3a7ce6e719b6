"""``KernelCodec``: arrays to bytes and back, within an error bound that holds for every row."""

from typing import Any, Self

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from kernelatoms.codec.arguments import check_max_size, checked_bound
from kernelatoms.codec.bounds import Bound
from kernelatoms.codec.models.codec_model import CodecModel, check_description
from kernelatoms.codec.models.model_selection import NAMES, choose_model
from kernelatoms.codec.packed.arrays import decode_array, encode_array
from kernelatoms.engine import Array
from kernelatoms.estimators.base import Estimator
from kernelatoms.estimators.devices.border import learn, on_cpu
from kernelatoms.estimators.state_checks import check_features, held
from kernelatoms.estimators.validation import FLOATS, check_choice
from kernelatoms.similarity.base import check_flag


class KernelCodec(Estimator):
    """Compress numeric matrices; every row comes back within an error bound.

    ``fit`` chooses the model with which rows take the fewest bytes; ``encode`` compresses rows like
    these to bytes that include the model. For files see ``compress``.

    Parameters
    ----------
    max_error : float or None, default=0.01
        The largest relative error per row, |row - decoded| <= max_error * |row|. None for no such
        bound.
    max_absolute : float or None, default=None
        The largest error per value. Without both bounds, values come back exactly.
    model : str, default="auto"
        "auto" for the model that takes the fewest bytes, or the name of one.
    symmetric : bool or None, default=None
        Whether matrices (slices of a 3-d array) are symmetric; None to check.

    Attributes
    ----------
    model_ : CodecModel
        The chosen model.
    trials_ : list of (str, int, str)
        The models that were compared: name, bytes, settings.
    n_features_in_ : int
        Values per row.

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

    _instead_of_sources = "Compress files of any size by kernelatoms.compress"

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
        """Choose a model and train it.

        Parameters
        ----------
        X : array of shape (n_rows, n_columns) or (n_slices, n_rows, n_columns)
            float32 or float64; NaN where a value is missing.
        y : ignored
            Present for API consistency.

        Returns
        -------
        KernelCodec
            The fitted codec.
        """
        learn(self._fit, self, X)
        return self

    def _fit(self, X: Any) -> None:
        bound = self._bound()
        names = check_choice("model", self.model, ("auto", *NAMES))
        if self.symmetric is not None:
            check_flag("symmetric", self.symmetric)
        X = self._validated(X, reset=True)
        self.model_, self.trials_ = choose_model(
            X.reshape(-1, X.shape[-1]), bound,
            slice_rows=X.shape[1] if X.ndim == 3 else 0, symmetric=self.symmetric,
            names=None if names == "auto" else [names],
        )  # fmt: skip

    def encode(self, X: Any) -> bytes:
        """Compress rows to bytes.

        Parameters
        ----------
        X : array of shape (n_rows, n_columns) or (n_slices, n_rows, n_columns)
            Rows like those of ``fit``: as many columns, and slices of as many rows.

        Returns
        -------
        bytes
            The compressed rows, including the model.
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
        """Restore the rows of ``encode``; the codec need not be fitted.

        Parameters
        ----------
        data : bytes
            The result of ``encode``.
        max_size : int or None, default=None
            The bytes that the rows may become; by default 4 GiB, or 256 times ``data`` if more.

        Returns
        -------
        array of shape (n_rows, n_columns) or (n_slices, n_rows, n_columns)
            The rows, each within the bound.
        """
        if not isinstance(data, bytes | bytearray | memoryview):
            raise TypeError(f"data must be bytes, got {type(data).__name__}.")
        check_max_size(max_size)
        return decode_array(bytes(data), vars(self).get("model_"), max_size)

    def _bound(self) -> Bound:
        return checked_bound(self.max_error, self.max_absolute)

    def _validated(self, X: Any, *, reset: bool) -> Array:
        """Return X as floats; the features of slices are their last axis."""
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
        """Check the state of a loaded codec."""
        self._bound()
        n_features = check_features(self)
        model = held(self, "model_")
        if type(model) is not CodecModel:
            raise TypeError("KernelCodec.model_ must be a CodecModel.")
        check_description(model)
        if model.n_columns != n_features:
            raise ValueError("KernelCodec.model_ must predict as many columns as there were.")
        again = CodecModel.from_bytes(model.to_bytes())
        if again.digest != model.digest:
            raise ValueError("KernelCodec.model_ must be one that bytes can hold.")


def _shape(slice_rows: int, n_columns: int) -> str:
    if slice_rows:
        return f"slices of shape ({slice_rows}, {n_columns})"
    return f"a matrix of {n_columns} columns"
