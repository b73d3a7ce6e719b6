"""``SRCClassifier``: sparse codes over all training rows."""

from typing import Any

from kernelatoms.engine import Array
from kernelatoms.estimators.classifiers.representation import RepresentationClassifier
from kernelatoms.estimators.classifiers.row_coding import RowCoder, SparseRowCoder
from kernelatoms.estimators.classifiers.training_dictionary import TrainingDictionary
from kernelatoms.estimators.state_checks import held, require_count
from kernelatoms.estimators.validation import check_count, check_real, clip_count
from kernelatoms.similarity import Kernel
from kernelatoms.similarity.contrast import Limits

# Of rows at unit norm, by evidence over all data sets at hand (docs/guide/representation.md).
_ALPHA, _ROBUST_ALPHA = 0.01, 1.0


class SRCClassifier(RepresentationClassifier):
    """Sparse representation: an l1 or greedy code over all training rows, compared class by class.

    SRC (Wright et al. 2009), under a kernel KSRC:

        min 1/2 |y - D w|_2^2 + alpha |w|_1,     r_c = |y - D_c w_c| / |w_c|,

    where D are the training rows and the class of the smallest r_c wins (eq. (3) of Liu et al.
    2015); robust against hidden and corrupted entries with ``residual_norm="l1"``; local with
    ``n_neighbors`` (KSRC-LCD).

    Parameters
    ----------
    kernel : str, callable, object or class, default="linear"
        As in ``KernelLinearizer``; names of distances (``similarity.DISTANCES``) are kernels
        exp(-gamma d^2) too.
    alpha : float, optional
        Weight of |w|_1; 0.01 by default, for rows at unit norm. With ``residual_norm="l1"`` it
        weighs |w|_1 against |e|_1, and is 1 by default. Not with ``n_nonzero_coefs``.
    n_nonzero_coefs : int, optional
        Code by orthogonal matching pursuit with so many rows, instead of by alpha.
    residual_norm : {"l2", "l1"}, default="l2"
        "l1" allows a few entries of a signal to be wrong: |e|_1 + alpha |w|_1 with y = D w + e.
    tol : float, default=1e-4
        With ``residual_norm="l1"``: the duality gap that codes are to reach, as a share of the
        objective; else there is a ``ConvergenceWarning``.
    projection : "auto", None, str or object, default="auto"
        How signals are seen. None: as vectors of the feature space. "identity": as the column of
        their kernel values with all training rows, the paper's KCRC (Psi = I). "kpca", "kfda",
        "random", "graph", or an object such as ``KPCAProjection(100)`` of ``kernelatoms.coding``:
        as inner products with fewer vectors. "auto" is None where the kernel is known to be
        positive semi-definite, and "identity" where not.
    n_neighbors : int, optional
        Code a signal over this many nearest training rows: the locality constrained dictionary
        (LCD) of the paper. Neighbours of one class decide at once.
    distance : str or object, optional
        By which they are nearest, by name (``similarity.DISTANCES``) or a distance; by default in
        feature space, which a kernel made of a distance orders as that does.
    n_coarse : int, optional
        Look for them among this many nearest by ``coarse_distance``: pays where ``distance`` is
        dear (Algorithm 4).
    coarse_distance : str or object, default="l2"
        A cheap distance, with ``n_coarse``.
    search : {"exact", "approximate"}, default="exact"
        "approximate" finds most neighbours, for very many rows, by "l2" or "correlation" (of two
        distances the coarse one), with pynndescent (``pip install kernelatoms[ann]``).
    image_shape : (height, width), optional
        Of images, for kernels and distances by name that need it.
    normalize : bool, default=True
        Scale rows to unit norm first, but for zero rows and precomputed kernel values.
    gamma : float, "scale", "auto", "spread" or None, default="spread"
        As in ``KernelLinearizer``, found from the scaled training rows. The paper's beta is 0.5,
        for an RBF kernel: on some faces it is better (docs/guide/representation.md).
    degree, coef0 : float
        Parameters of the kernels by name, as in scikit-learn.
    kernel_params : dict, optional
        Further arguments of a function, or the arguments of a class.
    calibrate : bool, default=False
        Whether to learn how sure answers are, from the rows left out of three more fits.
    random_state : int, RandomState or None
        Seeds random projections and approximate search.

    Attributes
    ----------
    classes_ : array
        The labels.
    dictionary_ : array of shape (n_training_rows, n_features)
        The training rows, scaled, in the order of the classes; k(train, train) with
        ``kernel="precomputed"``.
    labels_ : array of shape (n_training_rows,)
        Their classes, as numbers of ``classes_``.
    n_nonzero_coefs_ : int or None
        No more than there are atoms.
    projection_ : array of shape (n_training_rows, n_components) or None
        Psi; None without a projection, and where it is the identity.
    projected_ : bool
        Whether signals are seen through a projection.
    n_neighbors_ : int or None
        No more than there are rows.
    distance_, coarse_distance_ : distances or None
        As fitted to the training rows.
    gamma_ : float or None
        The kernel's gamma; None if it has none.
    search_seed_ : int
        With ``search="approximate"``: what the index of the training rows is made with.
    inverse_temperature_, label_smoothing_ : float
        With ``calibrate=True``: what makes probabilities of scores (see ``predict_proba``).

    Notes
    -----
    ``decision_function`` returns shares: 1 / r_c^2 over the sum of all; 0 for a class without a
    part in the code, 1 where all neighbours are of one class (``explain`` and ``residuals`` code
    such rows, too). A residual below 10 eps of the signal's energy counts as that.
    ``predict_proba`` without ``calibrate`` returns these shares; with it, their powers
    ``r_c^(-2 inverse_temperature_)`` over the sum of all, drawn towards equal ones by
    ``label_smoothing_``.

    A model file holds the training rows once; see ``CRCClassifier``.

    See Also
    --------
    CRCClassifier : The same with a ridge code, in closed form.

    Examples
    --------
    >>> from kernelatoms import SRCClassifier
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> src = SRCClassifier(alpha=0.01).fit(X[:500], y[:500])
    >>> src.score(X[500:800], y[500:800]) > 0.9
    True
    """

    _penalty = "l1"

    def __init__(
        self,
        kernel: Any = "linear",
        *,
        alpha: float | None = None,
        n_nonzero_coefs: int | None = None,
        residual_norm: str = "l2",
        tol: float = 1e-4,
        projection: Any = "auto",
        n_neighbors: int | None = None,
        distance: Any = None,
        n_coarse: int | None = None,
        coarse_distance: Any = "l2",
        search: str = "exact",
        image_shape: tuple[int, int] | None = None,
        normalize: bool = True,
        gamma: float | str | None = "spread",
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        calibrate: bool = False,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.n_nonzero_coefs = n_nonzero_coefs
        self.residual_norm = residual_norm
        self.tol = tol
        self.projection = projection
        self.n_neighbors = n_neighbors
        self.distance = distance
        self.n_coarse = n_coarse
        self.coarse_distance = coarse_distance
        self.search = search
        self.image_shape = image_shape
        self.normalize = normalize
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.calibrate = calibrate
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.alpha is not None:
            check_real("alpha", self.alpha, low=0, low_open=True)
        if self.n_nonzero_coefs is not None:
            check_count("n_nonzero_coefs", self.n_nonzero_coefs)
            if self.residual_norm == "l1":
                raise ValueError(
                    "residual_norm='l1' codes by a penalty: leave n_nonzero_coefs at None."
                )

    def _refuse_unused(self) -> None:
        super()._refuse_unused()
        if self.alpha is not None and self.n_nonzero_coefs is not None:
            raise ValueError(
                f"alpha={self.alpha} asks for l1 codes and n_nonzero_coefs={self.n_nonzero_coefs} "
                "for greedy ones; give one of them."
            )

    def _sees_columns(self, kernel: Kernel) -> bool:
        """l1 codes need inner products of vectors: those of feature space, if surely there."""
        return not kernel.semidefinite

    def _limits(self, kernel: Kernel, X: Array) -> Limits:
        """l1 codes in feature space leave out what is similar by less than alpha."""
        thresholded = self.n_nonzero_coefs is None and self._made_projection(kernel) is None
        return Limits(unrelated=self._weight()) if thresholded else Limits()

    def _fit_weight(self, dictionary: TrainingDictionary) -> None:
        """Set how many atoms a code may use, no more than there are."""
        self.n_nonzero_coefs_ = None
        if self.n_nonzero_coefs is not None:
            most = self.n_neighbors_ or dictionary.n_atoms
            self.n_nonzero_coefs_ = clip_count(
                "n_nonzero_coefs", int(self.n_nonzero_coefs), most, "a signal has atoms"
            )

    def _weight(self) -> float:
        if self.alpha is not None:
            return float(self.alpha)
        return _ALPHA if self.residual_norm == "l2" else _ROBUST_ALPHA

    def _make_coder(self, dictionary: TrainingDictionary) -> RowCoder:
        return SparseRowCoder(dictionary, self._locality(), self._weight(), self.n_nonzero_coefs_)

    def _check_state(self) -> None:
        """Refuse parameters and fitted attributes that contradict each other."""
        super()._check_state()
        if (held(self, "n_nonzero_coefs_") is None) != (self.n_nonzero_coefs is None):
            raise ValueError("n_nonzero_coefs and n_nonzero_coefs_ must both be None, or neither.")
        if self.n_nonzero_coefs_ is not None:
            require_count(self, "n_nonzero_coefs_", high=len(self.labels_))
