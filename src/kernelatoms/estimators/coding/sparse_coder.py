"""``SparseCoder``: a transformer over a given dictionary."""

from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils.validation import check_is_fitted

from kernelatoms.engine import Array, is_array
from kernelatoms.estimators.base import Bring, Transformer
from kernelatoms.estimators.coding.arguments import METHODS, TAKEN_BY, refuse_of_other_methods
from kernelatoms.estimators.coding.encode import sparse_encode
from kernelatoms.estimators.devices.border import by_rows
from kernelatoms.estimators.state_checks import check_features, require_count
from kernelatoms.estimators.validation import (
    FLOATS,
    check_choice,
    check_codes,
    check_count,
    check_dictionary,
    dense_rows,
    validate_any,
    validate_new,
    wants_frame,
)
from kernelatoms.similarity.base import check_flag


class SparseCoder(ClassNamePrefixFeaturesOutMixin, Transformer):
    """Code signals over a given dictionary, by any pursuit: ``sparse_encode`` as a transformer.

    For dictionaries that are given: wavelets, a decoder of a language model. ``fit`` only looks at
    the shape of rows, and ``transform`` works without it. Rows with missing values (NaN) are coded
    by what is observed of them, by "omp"; tensors where they and the dictionary are.

    Parameters
    ----------
    dictionary : array of shape (n_atoms, n_features)
        Atoms, best at unit norm.
    method : {"omp", "lasso", "ridge", "threshold"}, default="omp"
        The pursuit, as in ``sparse_encode``.
    n_nonzero_coefs : int, optional
        For "omp": the most atoms a signal may use; by default a tenth of the features.
    max_residual : float, optional
        For "omp": stop once the residual's norm is at most this share of the signal's norm.
    absolute : bool, default=False
        Stop once the residual's norm is at most ``max_residual`` itself.
    selection : {"omp", "ols"}, default="omp"
        For "omp": pick atoms by correlation or by residual decrease.
    alpha : float, optional
        For "lasso" and "threshold": the weight of the penalty.
    mu : float, optional
        For "ridge": the weight of the penalty.
    positive : bool, default=False
        For "omp", "lasso" and "threshold": allow no negative coefficients.
    kernel : str, callable, object or class, default="linear"
        As in ``KernelLinearizer``; not "precomputed".
    gamma : float, "scale", "auto", "spread" or None, default="scale"
        As in ``sparse_encode``: "scale" is taken from the dictionary.
    degree, coef0 : float
        Parameters of the kernels by name, as in scikit-learn.
    kernel_params : dict, optional
        Further arguments of a function, or the arguments of a class.
    sparse_output : bool, default=True
        Whether ``transform`` returns a CSR array or a dense one.

    Attributes
    ----------
    n_atoms_ : int
        The atoms of the dictionary.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelatoms import SparseCoder
    >>> coder = SparseCoder(np.eye(3), n_nonzero_coefs=1, sparse_output=False)
    >>> coder.fit_transform([[1.0, 3.0, 2.0]])
    array([[0., 3., 0.]])
    """

    _on_devices = True

    _fits_columns_alone = True

    def __init__(
        self,
        dictionary: Any,
        *,
        method: str = "omp",
        n_nonzero_coefs: int | None = None,
        max_residual: float | None = None,
        absolute: bool = False,
        selection: str = "omp",
        alpha: float | None = None,
        mu: float | None = None,
        positive: bool = False,
        kernel: Any = "linear",
        gamma: float | str | None = "scale",
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        sparse_output: bool = True,
    ) -> None:
        self.dictionary = dictionary
        self.method = method
        self.n_nonzero_coefs = n_nonzero_coefs
        self.max_residual = max_residual
        self.absolute = absolute
        self.selection = selection
        self.alpha = alpha
        self.mu = mu
        self.positive = positive
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.sparse_output = sparse_output

    def _fit(self, X: Any) -> None:
        self._check_choices()
        X = validate_any(self, dense_rows(X), dtype=FLOATS, ensure_all_finite="allow-nan")
        self.n_atoms_ = len(check_dictionary("dictionary", self.dictionary, X.shape[1], X.dtype))

    def _check_choices(self) -> None:
        """Refuse parameters that no rows can be coded with."""
        check_choice("method", self.method, METHODS)
        for name in ("absolute", "positive", "sparse_output"):
            check_flag(name, getattr(self, name))
        own = {name: getattr(self, name) for name in TAKEN_BY if hasattr(self, name)}
        refuse_of_other_methods(self.method, SparseCoder, own)
        if isinstance(self.kernel, str) and self.kernel == "precomputed":
            raise ValueError(
                "kernel='precomputed' has no rows to code; call sparse_encode with k(signals, "
                "atoms) and k(atoms, atoms)."
            )

    def _transform(self, X: Any) -> scipy.sparse.csr_array | Array:
        self._check_choices()
        X = validate_new(self, X)
        # Not those that a subclass adds.
        options = {name: getattr(self, name) for name in SparseCoder._get_param_names()}
        options["dictionary"] = self._fitted(X)
        options["sparse_output"] = self.sparse_output and not wants_frame(self)
        return sparse_encode(X, **options)

    def _make_fitted(self, bring: Bring) -> Array:
        return bring(dense_rows(self.dictionary))

    def inverse_transform(self, codes: Any) -> Array:
        """Return the signals that codes represent under the linear kernel: ``codes @ dictionary``.

        Parameters
        ----------
        codes : dense or CSR array of shape (n_samples, n_atoms_)
            Coefficients, as ``transform`` returns them.

        Returns
        -------
        rows : array of shape (n_samples, n_features)
        """
        return by_rows(self._inverse_transform, codes, self, name="codes")

    def _inverse_transform(self, codes: Any) -> Array:
        check_is_fitted(self)
        if not (isinstance(self.kernel, str) and self.kernel == "linear"):
            raise ValueError(
                "inverse_transform needs kernel='linear'; under another kernel codes stand for "
                "vectors of its feature space: see preimage."
            )
        given = self._fitted(codes)
        atoms = given if is_array(given) else np.asarray(given)
        codes = check_codes(codes, len(atoms))
        atoms = atoms.astype(codes.dtype, copy=False)
        return np.asarray(codes @ atoms, like=atoms)

    def _check_state(self) -> None:
        """Refuse parameters and fitted attributes that contradict each other; see ``fitted``."""
        self._check_choices()
        if self.n_nonzero_coefs is not None:
            check_count("n_nonzero_coefs", self.n_nonzero_coefs)
        n_features = check_features(self)
        atoms = check_dictionary("dictionary", self.dictionary, n_features, np.float64)
        require_count(self, "n_atoms_", low=len(atoms), high=len(atoms))

    @property
    def _n_features_out(self) -> int:
        return self.n_atoms_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.method == "omp"
        tags.input_tags.sparse = True
        tags.requires_fit = False
        return tags
