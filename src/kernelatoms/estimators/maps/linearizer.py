"""``KernelLinearizer``: rows to virtual samples, so that linear methods work in feature space."""

from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from kernelatoms.engine import Array, machine
from kernelatoms.estimators.base import Bring, Transformer
from kernelatoms.estimators.devices.border import at_once, by_rows, learn
from kernelatoms.estimators.devices.conversion import enter, to_machine
from kernelatoms.estimators.maps.kernel_choice import KernelChoice, kernel_on
from kernelatoms.estimators.state_checks import check_features, require_count, require_floats
from kernelatoms.estimators.training_rows import validate_training
from kernelatoms.estimators.validation import (
    FLOATS,
    check_any,
    check_choice,
    check_complete,
    check_count,
    check_real,
    check_row_numbers,
    clip_count,
    refuse_unused,
    validate_new,
)
from kernelatoms.features.coordinates import (
    Eigensolver,
    change_of_coordinates,
    check_training_kernel,
    in_float32,
    linearize,
    nystroem_error,
    ridge_preimage,
)
from kernelatoms.features.expansion import Expansion
from kernelatoms.features.imputation import shrink_to_energy, warn_of_estimates
from kernelatoms.features.linear_algebra import OVERFLOW
from kernelatoms.features.memory import check_fits
from kernelatoms.features.preimage_methods import (
    MOST_ROWS,
    InverseMap,
    learn_inverse_map,
    more_rows,
)
from kernelatoms.features.samplers import SAMPLERS
from kernelatoms.similarity import Kernel
from kernelatoms.similarity.contrast import Limits
from kernelatoms.similarity.missing import rows_with_missing

#: What ``solver`` may be.
SOLVERS = ("auto", "full", "randomized")
_DEFAULT_LANDMARKS = 500
# See docs/decisions/017-block-krylov.md.
_N_OVERSAMPLES, _N_PASSES = 20, 16

# Where kernel values of float32 rows differ by so many eps, one coordinate is left of 30 to 400.
_ALIKE = 256


class KernelLinearizer(KernelChoice, ClassNamePrefixFeaturesOutMixin, Transformer):
    """Map rows to virtual samples, whose inner products approximate a kernel.

    ``F = transform(X)`` has ``F @ F.T`` close to ``k(X, X)`` (equal, if every row is a landmark),
    so that any linear method on F is that method under the kernel. This is Algorithm 1 of
    Golts and Elad, *Linearized kernel dictionary learning*, 2016: a Nystroem map of reduced rank.

    ``fit`` leaves rows with missing values (NaN) out, with a warning. ``transform`` estimates their
    virtual samples from what is observed, and shrinks those above the estimate of k(x, x) to it;
    "chi2", "additive_chi2", "precomputed" and functions refuse NaN. Tensors are mapped where they
    are (float16 and bfloat16 in float32).

    Parameters
    ----------
    kernel : str, callable, object or class, default="rbf"
        One of scikit-learn's kernels by name; a distance by name (``similarity.DISTANCES``), for
        exp(-gamma d^2); a function ``k(X, Y)`` of two matrices; an object with ``values`` or
        ``__call__`` and what else it knows of ``similarity.Kernel``, or a class of such; or
        ``"precomputed"``: then fit takes k(train, train) and transform k(new, train).
    gamma : float, "scale", "auto", "spread" or None, default="scale"
        Parameter of the kernels by name: a number above 0, or a word. "scale" is
        1 / (n_features * X.var()) of the training rows, as in scikit-learn's ``SVC``; for
        "laplacian", "chi2", "sigmoid" and distances, 1 over the mean of what gamma multiplies (l1
        distances, squared norms, ...). "spread" makes rows at the mean of what it multiplies
        (squared distances, for "rbf") similar by a half. "auto" is 1 / n_features. None is the
        default of ``sklearn.metrics.pairwise``: 1 / n_features, 1 for "chi2" (0.5 for distances).
    degree, coef0 : float
        As in scikit-learn; ``kernel="poly", degree=4, gamma=1, coef0=0`` is the paper's (x'y)^4.
    kernel_params : dict, optional
        Further arguments of a function, or the arguments of a class.
    n_landmarks : int or float, optional
        Landmarks, or their share of the rows; by default 500, at most all rows. scikit-learn's
        Nystroem calls this n_components.
    n_components : int, optional
        The rank of the map: coordinates of a virtual sample; by default all there are.
    sampling : str or array of shape (n_landmarks, n_features), default="uniform"
        "uniform", "diagonal" (in proportion to k(x, x)^2), "column-norm", "kmeans", "coreset" (rows
        that the mean represents badly), "rpcholesky" (randomly pivoted Cholesky: in proportion to
        what is left of k(x, x)), or the landmarks themselves (row numbers, if precomputed).
    solver : {"auto", "full", "randomized"}, default="auto"
        Eigen-decomposition of the landmarks' kernel matrix. "randomized" is a block Krylov method
        (Halko et al., 2011) with a basis of 3.2 times ``n_components + n_oversamples`` vectors by
        default; where that is not less than the landmarks, it is "full". "auto" is randomised from
        1,000 landmarks on if the basis has at most half as many vectors.
    n_oversamples : int, default=20
        The randomised solver multiplies by blocks of a fifth of ``n_components + n_oversamples``
        vectors. Not with ``solver="full"``.
    n_passes : int, default=16
        How many such products it takes; not with ``solver="full"``. Where eigenvalues fall fast,
        ten are enough. See docs/decisions/017-block-krylov.md.
    dtype : {None, "float32", "float64"}, default=None
        The type of virtual samples; None for that of the rows. With "float32" kernel values are
        computed in it too, where that costs no coordinate, in half the time: scale columns first.
    random_state : int, RandomState or None
        Seeds the sampling and the randomised solver.

    Attributes
    ----------
    landmarks_ : array of shape (n_landmarks_, n_features)
        The landmarks; their row numbers, if precomputed.
    dual_coef_ : array of shape (n_landmarks_, n_components_)
        ``transform(X)`` is ``k(X, landmarks_) @ dual_coef_``.
    eigenvalues_ : array of shape (n_components_,)
        Leading eigenvalues of the landmarks' kernel matrix; negligible ones are dropped.
    n_landmarks_, n_components_ : int
        What the data allowed.
    gamma_ : float or None
        The kernel's gamma; None if it has none.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelatoms import KernelLinearizer, nystrom_error
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> linearizer = KernelLinearizer("rbf", n_landmarks=100).fit(X)
    >>> F = linearizer.transform(X)
    >>> from sklearn.metrics.pairwise import rbf_kernel
    >>> bool(np.allclose(F @ F.T, rbf_kernel(X, gamma=linearizer.gamma_)))
    True
    """

    _on_devices = True

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        gamma: float | str | None = "scale",
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        n_landmarks: int | float | None = None,
        n_components: int | None = None,
        sampling: Any = "uniform",
        solver: str = "auto",
        n_oversamples: int = _N_OVERSAMPLES,
        n_passes: int = _N_PASSES,
        dtype: Any = None,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.n_landmarks = n_landmarks
        self.n_components = n_components
        self.sampling = sampling
        self.solver = solver
        self.n_oversamples = n_oversamples
        self.n_passes = n_passes
        self.dtype = dtype
        self.random_state = random_state

    def _fit(self, X: Any) -> None:
        kernel = self._asked_kernel()
        solver = self._check_solver()
        if self.solver == "full":
            block = {"n_oversamples": self.n_oversamples, "n_passes": self.n_passes}
            refuse_unused(type(self), block, "is for solver='randomized' or 'auto', not for 'full'")
        dtype = self._check_dtype()
        X = validate_training(self, X)
        if dtype == np.float64:
            X = X.astype(np.float64, copy=False)
        if self._precomputed:
            check_training_kernel(X)
        self._make_map(X, self._fit_kernel(kernel, X), solver)

    def renew(self, X: Any) -> Array:
        """Choose new landmarks among the rows of X, and return how coordinates change.

        For rows that come in a stream and drift away from the landmarks. The kernel stays as
        ``fit`` chose it; landmarks are chosen as ``sampling`` and ``n_landmarks`` say.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Rows of the stream, more than ``n_components_`` of them: recent ones, or a sample of
            all so far. Those with missing values (NaN) are left out, with a warning.

        Returns
        -------
        change : array of shape (n_components_ before, n_components_)
            ``F @ change`` is about ``transform(X)``, by least squares, where F were the virtual
            samples of X under the old map. ``MOD.change_coordinates`` takes it, for atoms. Exact
            for what both maps span; the identity where no landmark changes.
        """
        change: Array = learn(self._renew, self, X, from_nothing=False)
        return change

    def _renew(self, X: Any) -> Array:
        check_is_fitted(self)
        if self._precomputed:
            raise ValueError(
                "renew needs rows to choose landmarks from, which kernel='precomputed' does not "
                "give."
            )
        if not isinstance(self.sampling, str):
            raise ValueError(
                "renew chooses landmarks, and sampling gives them: set_params(sampling='uniform') "
                "first, say, or give set_params the new landmarks and call fit."
            )
        solver = self._check_solver()
        old = MapState(self._kernel(), self.landmarks_, self.dual_coef_)
        X = validate_training(self, X, reset=False)
        if self._check_dtype() == np.float64:
            X = X.astype(np.float64, copy=False)
        self._make_map(X, self._kernel(), solver)
        wide = self.landmarks_.astype(np.float64, copy=False)
        change = change_of_coordinates(
            old.virtual_samples(X), self._fitted(X).virtual_samples(X),
            old.virtual_samples(wide), self.dual_coef_,
        )  # fmt: skip
        return change.astype(self.dual_coef_.dtype)

    def _make_map(self, X: Array, kernel: Kernel, solver: Eigensolver) -> None:
        """Choose landmarks among checked rows, and set what the map is made of."""
        dtype = self._check_dtype()
        X = self._in_range(kernel, X)
        rng = check_random_state(self.random_state)
        landmarks = self._choose_landmarks(X, kernel, rng)
        self.n_landmarks_ = len(landmarks)
        rank = self.n_landmarks_
        if self.n_components is not None:
            rank = check_count("n_components", self.n_components)
            rank = clip_count("n_components", rank, self.n_landmarks_, "there are landmarks")
        if self._precomputed:
            W = kernel(X[landmarks[:, 0]], landmarks)
        else:
            wide = landmarks.astype(np.float64, copy=False)
            W = kernel(wide, wide)
        if not np.isfinite(W).all():
            raise ValueError(OVERFLOW)
        result = linearize(landmarks, W, rank, solver, rng)
        if dtype == np.float32 and not self._precomputed:
            _check_fits(X, np.dtype(np.float32))
            if self._in_range(kernel, landmarks.astype(np.float32)).dtype == np.float32:
                result = in_float32(result, W) or result
        self.landmarks_ = landmarks[:, 0] if self._precomputed else result.landmarks
        self.dual_coef_ = result.coef
        self.eigenvalues_ = result.eigenvalues
        self.n_components_ = len(self.eigenvalues_)
        for name in ("preimage_coef_", "preimage_rows_"):
            self.__dict__.pop(name, None)
        if not self._precomputed:
            self.preimage_coef_ = ridge_preimage(result)
            self.preimage_rows_ = more_rows(X, landmarks)

    def _limits(self, kernel: Kernel, X: Array) -> Limits:
        """Coordinates of float32 kernel values that are nearly all the same are noise."""
        return Limits(alike=_ALIKE * float(np.finfo(X.dtype).eps))

    def _transform(self, X: Any) -> Array:
        check_is_fitted(self)
        return self._transformed(self._validate_new(X))

    def _transformed(self, X: Array) -> Array:
        """Return the virtual samples of checked rows, whatever ``set_output`` says."""
        check_fits(
            float(len(X)) * self.n_components_ * (self._check_dtype() or X.dtype).itemsize,
            f"{self.n_components_} virtual samples of each of {len(X)} rows",
            "Choose fewer components (n_components), or transform fewer rows at a time.",
            like=X,
        )
        state: MapState = self._fitted(X)
        F = state.virtual_samples(X)
        rows = rows_with_missing(X)
        if len(rows):
            some = F[rows]
            energy = state.kernel.diag(X[rows].astype(np.float64))  # squares of F fit
            excess = shrink_to_energy(some, enter(self.eigenvalues_, "_"), energy)
            F[rows] = some
            warn_of_estimates(excess)
        return F

    def inverse_transform(self, F: Any) -> Array:
        """Return rows whose virtual samples are about F: exact pre-images seldom exist.

        A kernel ridge regression of training rows on their virtual samples, tuned by leave-one-out
        errors. It is not linear; the best linear map, for atoms say, is ``F @ preimage_coef_``.

        Parameters
        ----------
        F : array of shape (n_samples, n_components_)
            Virtual samples, as ``transform`` returns them, or approximations of such.

        Returns
        -------
        rows : array of shape (n_samples, n_features)
        """
        return by_rows(self._inverse_transform, F, self, name="F")

    def _inverse_transform(self, F: Any) -> Array:
        check_is_fitted(self)
        if self._precomputed:
            raise ValueError(
                "inverse_transform needs the training rows, which kernel='precomputed' does not "
                "give."
            )
        F = check_any(F, dtype=FLOATS, input_name="F")
        if F.shape[1] != self.n_components_:
            raise ValueError(
                f"F must have n_components_ = {self.n_components_} columns, got {F.shape[1]}."
            )
        state: MapState = self._fitted(F)
        return state.inverse_map.rows(F)

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def _make_fitted(self, bring: Bring) -> "MapState":
        rows = None if self._precomputed else bring(self.preimage_rows_)
        return MapState(
            kernel_on(self._kernel(), bring), bring(self.landmarks_), bring(self.dual_coef_),
            self._check_dtype(), rows,
        )  # fmt: skip

    def _validate_new(self, X: Any) -> Array:
        if self._precomputed:
            shape = np.shape(X)
            if len(shape) == 2 and shape[1] != self.n_features_in_:
                raise ValueError(
                    "With kernel='precomputed', transform takes k(new, train) with one column "
                    f"for each of the {self.n_features_in_} training rows, got shape {shape}."
                )
        X = validate_new(self, X)
        if self._check_dtype() == np.float64:
            return X.astype(np.float64, copy=False)
        return X

    def _check_dtype(self) -> np.dtype[Any] | None:
        if self.dtype is None:
            return None
        try:
            dtype = np.dtype(self.dtype)
        except TypeError:
            dtype = np.dtype(object)
        if dtype not in FLOATS:
            raise ValueError(f"dtype must be None, 'float32' or 'float64', got {self.dtype!r}.")
        return dtype

    def _check_state(self) -> None:
        """Refuse parameters and fitted attributes that contradict each other; see ``fitted``."""
        self._check_solver()
        self._check_dtype()
        check_random_state(self.random_state)
        n_features, rank = check_features(self), require_count(self, "n_components_", low=0)
        n_landmarks = require_count(self, "n_landmarks_")
        self._check_rows_held("landmarks_", n_features, n_landmarks)
        require_floats(self, "dual_coef_", (n_landmarks, rank))
        require_floats(self, "eigenvalues_", (rank,), low=0)
        if not self._precomputed:
            require_floats(self, "preimage_coef_", (rank, n_features))
            require_floats(self, "preimage_rows_", (None, n_features))

    def _check_solver(self) -> Eigensolver:
        return Eigensolver(
            check_choice("solver", self.solver, SOLVERS),
            check_count("n_oversamples", self.n_oversamples, low=0),
            check_count("n_passes", self.n_passes),
        )

    def _choose_landmarks(self, X: Array, kernel: Kernel, rng: np.random.RandomState) -> Array:
        if not isinstance(self.sampling, str):
            landmarks = self._given_landmarks(X)
            if self.n_landmarks not in (None, len(landmarks)):
                raise ValueError(
                    f"n_landmarks={self.n_landmarks}, but sampling gives {len(landmarks)} "
                    "landmarks; leave n_landmarks out or make them agree."
                )
            return landmarks
        check_choice("sampling", self.sampling, tuple(SAMPLERS))
        n_samples = len(X)
        if self.n_landmarks is None:
            count = min(n_samples, _DEFAULT_LANDMARKS)
        elif isinstance(self.n_landmarks, float | np.floating):
            share = check_real("n_landmarks", self.n_landmarks, low=0, high=1, low_open=True)
            count = max(1, round(share * n_samples))
        else:
            count = check_count("n_landmarks", self.n_landmarks)
            count = clip_count("n_landmarks", count, n_samples, "there are rows")
        check_fits(
            3 * count**2 * X.itemsize,
            f"the kernel matrix of {count} landmarks and its factors",
            "Choose fewer landmarks (n_landmarks).",
            like=X,
        )
        return SAMPLERS[self.sampling](X, kernel, count, rng)

    def _given_landmarks(self, X: Array) -> Array:
        if self._precomputed:
            rows = np.asarray(enter(self.sampling, "_"), like=X)
            return check_row_numbers("sampling", rows, len(X), "a name or ")[:, None]
        if np.ndim(self.sampling) != 2:
            names = ", ".join(repr(name) for name in SAMPLERS)
            raise ValueError(
                f"sampling must be one of {names}, or landmarks of shape (n_landmarks, "
                f"n_features), got {self.sampling!r}."
            )
        landmarks = check_any(self.sampling, dtype=X.dtype, order="C", input_name="sampling")
        landmarks = to_machine(landmarks, X)
        if landmarks.shape[1] != X.shape[1]:
            raise ValueError(
                f"sampling gives landmarks of {landmarks.shape[1]} features, but X has "
                f"{X.shape[1]}."
            )
        return landmarks

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._precomputed
        tags.input_tags.sparse = True  # dense inside
        tags.input_tags.allow_nan = self._takes_missing  # in transform; fit leaves such rows out
        if self.dtype is not None:
            tags.transformer_tags.preserves_dtype = []
        return tags


def _check_fits(X: Array, dtype: np.dtype[Any]) -> None:
    """Refuse rows with values that a type does not have."""
    if X.dtype == dtype:
        return
    largest = np.nanmax(np.abs(X), initial=0.0)
    if largest > np.finfo(dtype).max:
        raise ValueError(
            f"X holds values up to {largest:.3g}, too large for dtype={dtype.name!r}: scale the "
            "columns, or leave dtype at None."
        )


def nystrom_error(linearizer: KernelLinearizer, X: Any) -> float:
    """Return |K - F F'|_F / |K|_F on rows X: eq. (30) of the LKDL paper.

    Parameters
    ----------
    linearizer : KernelLinearizer
        A fitted map.
    X : array of shape (n_samples, n_features)
        Rows to compare the kernel on, block by block; k(train, train) if precomputed.

    Returns
    -------
    float
        0 for an exact map.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelatoms import KernelLinearizer, nystrom_error
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> few, many = (KernelLinearizer(n_landmarks=c, random_state=0).fit(X) for c in (10, 100))
    >>> nystrom_error(few, X) > nystrom_error(many, X)
    True
    """
    if not isinstance(linearizer, KernelLinearizer):
        raise TypeError(f"linearizer must be a fitted KernelLinearizer, got {linearizer!r}.")
    return float(at_once(_nystrom_error, X, shared={"linearizer": linearizer}))


def _nystrom_error(X: Any, linearizer: KernelLinearizer) -> float:
    check_is_fitted(linearizer)
    X = linearizer._validate_new(X)
    check_complete(X)
    if linearizer._precomputed and X.shape[0] != X.shape[1]:
        raise ValueError("With kernel='precomputed', X must be the square k(train, train).")
    state: MapState = linearizer._fitted(X)
    return nystroem_error(state.kernel, X, state.virtual_samples(X))


class MapState:
    """The fitted state of a map: virtual samples are ``k(X, landmarks) @ coef``.

    They are computed in the type ``asked`` for where ``coef`` has it. ``preimage_rows`` are further
    training rows, from which the pre-image map is learned.
    """

    def __init__(
        self,
        kernel: Kernel,
        landmarks: Array,
        coef: Array,
        asked: np.dtype[Any] | None = None,
        preimage_rows: Array | None = None,
    ) -> None:
        self.kernel, self.landmarks, self.coef, self.asked = kernel, landmarks, coef, asked
        self.preimage_rows = preimage_rows

    def virtual_samples(self, X: Array) -> Array:
        """Return the virtual samples of checked rows."""
        asked, coef, landmarks = self.asked, self.coef, self.landmarks
        if asked is not None and asked == coef.dtype:
            _check_fits(X, asked)
            X = X.astype(asked, copy=False)
        dtype = np.result_type(X.dtype, coef.dtype)
        precomputed = landmarks.ndim == 1
        landmarks = landmarks[:, None] if precomputed else landmarks.astype(dtype, copy=False)
        F = Expansion(self.kernel, landmarks, coef.astype(dtype, copy=False)).project(X, asked)
        _check_range(self.kernel, X, F, precomputed)
        return F

    @cached_property
    def inverse_map(self) -> InverseMap:
        """The regression of landmarks, and some more training rows, on their virtual samples."""
        assert self.preimage_rows is not None
        rows = np.concatenate([self.landmarks[:MOST_ROWS], self.preimage_rows])
        return learn_inverse_map(self.virtual_samples(rows), rows)


def _check_range(kernel: Kernel, X: Array, F: Array, precomputed: bool) -> None:
    """Refuse rows whose virtual samples are no numbers of this type."""
    if F.dtype == np.float64:
        if not machine(F).all_finite(F) and not np.isfinite(F).all():  # a sum may overflow
            raise ValueError(OVERFLOW)
        return
    squares = machine(F).squared_norms(F)  # in float64, where those of float32 fit
    if not np.isfinite(squares).all():
        raise ValueError(OVERFLOW)
    shortest = float(np.finfo(F.dtype).tiny) ** 2
    doubtful = np.flatnonzero(squares < shortest)
    if len(doubtful) and not precomputed:
        energy = kernel.diag(X[doubtful].astype(np.float64))
        if np.any((energy > 0) & (energy < shortest)):
            raise ValueError(
                f"The virtual samples underflow {F.dtype.name}: k(x, x) is too small; scale X "
                "up, choose larger kernel parameters, or use float64."
            )
