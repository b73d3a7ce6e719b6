"""``CRCClassifier``: ridge codes over all training rows, and the search of their weight."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.coding.leave_one_out import (
    ROBUST_MULTIPLES,
    ROW_MULTIPLES,
    LeftOut,
    best_local_mu,
    best_mu,
    best_robust_mu,
)
from kernelatoms.engine import Array, machine
from kernelatoms.estimators.classifiers.representation import RepresentationClassifier
from kernelatoms.estimators.classifiers.row_coding import RidgeCoder, RowCoder
from kernelatoms.estimators.classifiers.training_dictionary import Locality, TrainingDictionary
from kernelatoms.estimators.state_checks import require_number
from kernelatoms.estimators.validation import check_real
from kernelatoms.features.projections import IdentityProjection, Projection
from kernelatoms.similarity import Kernel
from kernelatoms.similarity.base import check_flag
from kernelatoms.similarity.contrast import Limits
from kernelatoms.similarity.inner import LinearKernel

# Where k(x, y) is nearer than this to k(x, x), squares of kernel values tell rows apart no more: on
# ten kinds of data accuracy was at or near that of the most frequent class.
_ALIKE_IN_SQUARES = 1e-6

# Rows that are left out one by one. Over neighbours there are fewer where these are many: their
# Gram matrices have so many entries in all.
_LEFT_OUT, _LEFT_OUT_LOCALLY, _LOCAL_ENTRIES = 2000, 4000, 12_000_000
# For robust codes: so many rows take part, of which so many are left out in so many parts.
_ROBUST_ATOMS, _ROBUST_ROWS, _PARTS = 400, 150, 5


class CRCClassifier(RepresentationClassifier):
    """Collaborative representation: a ridge code over all training rows, compared class by class.

    CRC (Zhang et al. 2011) and, under a kernel, KCRC of Liu et al. (2015): Algorithm 1,

        min |y - D w|_2^2 + mu |w|_2^2,     r_c = |y - D_c w_c| / |w_c|,

    where D are the training rows and the class of the smallest r_c wins; robust against hidden and
    corrupted entries with ``residual_norm="l1"`` (RCRC, KRCRC, Algorithm 2); local with
    ``n_neighbors`` (KCRC-LCD, Algorithms 3 and 4).

    Parameters
    ----------
    kernel : str, callable, object or class, default="linear"
        As in ``KernelLinearizer``; names of distances (``similarity.DISTANCES``) are kernels
        exp(-gamma d^2) too.
    mu : "search" or float, default="search"
        Weight of |w|^2. "search" takes the weight that classifies most left-out training rows
        right, of several the middle one: in closed form over all rows (at most 2,000, evenly
        spaced); by coding 100 to 4,000 of them with ``n_neighbors``, the fewer the more these are;
        with ``residual_norm="l1"`` by coding up to 150 of 400 rows over the others.
    residual_norm : {"l2", "l1"}, default="l2"
        "l1" allows a few entries of a signal to be wrong: |e|_1 + mu |w|^2 with y = D w + e.
    tol : float, default=1e-4
        With ``residual_norm="l1"``: the duality gap that codes are to reach, as a share of the
        objective; else there is a ``ConvergenceWarning``.
    projection : "auto", None, str or object, default="auto"
        How signals are seen. None: as vectors of the feature space. "identity": as the column of
        their kernel values with all training rows, the paper's KCRC (Psi = I). "kpca", "kfda",
        "random", "graph", or an object such as ``KPCAProjection(100)`` of ``kernelatoms.coding``:
        as inner products with fewer vectors. "auto" is None for the linear kernel; for others
        "identity", which classifies better on most data sets and takes indefinite kernels.
    normalize_columns : bool, default=False
        Code over columns of Psi' G, the training rows as a projection sees them, at unit norm (step
        1 of Algorithms 1 and 2); zero columns stay zero. Not with ``projection=None``. It asks for
        a much smaller ``mu`` (docs/guide/representation.md).
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
    mu_ : float
        The weight.
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

    A model file holds the training rows, and Psi where there is one. Codes over all rows need the
    n_rows x n_rows Gram matrix in memory (but for ``residual_norm="l1"`` under the linear kernel),
    and so do projections with a Psi; ``n_neighbors`` without one does not.

    See Also
    --------
    SRCClassifier : The same with few rows in a code.

    Examples
    --------
    >>> from kernelatoms import CRCClassifier
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> crc = CRCClassifier("rbf", n_neighbors=40).fit(X[:1000], y[:1000])
    >>> crc.score(X[1000:], y[1000:]) > 0.96
    True
    """

    def __init__(
        self,
        kernel: Any = "linear",
        *,
        mu: float | str = "search",
        residual_norm: str = "l2",
        tol: float = 1e-4,
        projection: Any = "auto",
        normalize_columns: bool = False,
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
        self.mu = mu
        self.residual_norm = residual_norm
        self.tol = tol
        self.projection = projection
        self.normalize_columns = normalize_columns
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
        check_flag("normalize_columns", self.normalize_columns)
        if not isinstance(self.mu, str):
            check_real("mu", self.mu, low=0, low_open=True)
        elif self.mu != "search":
            raise ValueError(f"mu must be a number above 0 or 'search', got {self.mu!r}.")

    def _sees_columns(self, kernel: Kernel) -> bool:
        """Kernel values as vectors classify better than feature space, by evidence."""
        return not isinstance(kernel, LinearKernel)

    @property
    def _unit_columns(self) -> bool:  # type: ignore[override]
        return self.normalize_columns

    def _made_projection(self, kernel: Kernel) -> Projection | None:
        projection = super()._made_projection(kernel)
        if projection is None and self.normalize_columns:
            raise ValueError(
                "normalize_columns=True scales columns of kernel values, and projection=None (what "
                "'auto' is for the linear kernel) sees none; use projection='identity', or leave "
                "normalize_columns at False."
            )
        return projection

    def _limits(self, kernel: Kernel, X: Array) -> Limits:
        """Codes in columns go by K^2, in which small differences are lost."""
        columns = isinstance(self._made_projection(kernel), IdentityProjection)
        squared = columns and self.n_neighbors is None and self.residual_norm == "l2"
        return Limits(alike=_ALIKE_IN_SQUARES) if squared else Limits()

    def _fit_weight(self, dictionary: TrainingDictionary) -> None:
        """Set mu: as given, or the one that classifies left-out rows best."""
        if not isinstance(self.mu, str):
            self.mu_ = float(self.mu)
            return
        find = find_robust_mu if self.residual_norm == "l1" else find_mu
        self.mu_ = find(dictionary, self._locality())

    def _weight(self) -> float:
        return float(self.mu_)

    def _make_coder(self, dictionary: TrainingDictionary) -> RowCoder:
        return RidgeCoder(dictionary, self._locality(), self._weight())

    def _check_state(self) -> None:
        """Refuse parameters and fitted attributes that contradict each other."""
        super()._check_state()
        if not require_number(self, "mu_") > 0:
            raise ValueError(f"CRCClassifier.mu_ must be above 0, got {self.mu_}.")


def find_mu(dictionary: TrainingDictionary, locality: Locality | None) -> float:
    """Return the weight of ridge codes over all rows, or over each row's own."""
    labels, n_classes = dictionary.labels, dictionary.n_classes
    if locality is not None:
        fits = _LOCAL_ENTRIES // locality.n_neighbors**2
        some = _spread(labels, max(100, min(_LEFT_OUT_LOCALLY, fits)))
        rows = dictionary.rows[some]
        near = dictionary.neighbors(rows, locality, skip=some)
        local = dictionary.local_problems(rows, near)
        return best_local_mu(
            local.grams, local.corrs, local.energies, dictionary.owners(labels, near),
            labels[some], n_classes, columns=local.columns,
        )  # fmt: skip
    some, psi = _spread(labels, _LEFT_OUT), dictionary.psi
    mu, _ = best_mu(
        dictionary.atoms.gram[np.ix_(some, some)], labels[some], n_classes,
        projected=dictionary.projected, psi=None if psi is None else psi[some],
        unit=dictionary.unit,
    )  # fmt: skip
    return mu * _growth(dictionary, len(some))


def find_robust_mu(dictionary: TrainingDictionary, locality: Locality | None) -> float:
    """Return the weight of robust codes over all rows, or over each row's own."""
    labels, n_classes = dictionary.labels, dictionary.n_classes
    multiples = ROBUST_MULTIPLES if dictionary.projected else ROW_MULTIPLES
    if locality is None:
        some = _spread(labels, _ROBUST_ATOMS)
        mu = best_robust_mu(_left_out(dictionary, some), n_classes, multiples)
        return mu * _growth(dictionary, len(some))
    some = _spread(labels, _ROBUST_ROWS)
    rows = dictionary.rows[some]
    near = dictionary.neighbors(rows, locality, skip=some)
    each = dictionary.local_vectors(rows, near)
    parts = [
        LeftOut(signal[None], own_labels, atoms, labels[own[there]])
        for (signal, atoms, there), own_labels, own in zip(
            each, labels[some][:, None], near, strict=True
        )
    ]
    return best_robust_mu(parts, n_classes, multiples)


def _growth(dictionary: TrainingDictionary, n_some: int) -> float:
    """Return how many times as large mu is for all rows as for some of them.

    Eigenvalues grow with the number of atoms, and with that of the terms of a projection; |e|_1
    grows with the number of entries, too.
    """
    terms = dictionary.projected and not dictionary.unit
    return (dictionary.n_atoms / n_some) ** (2 if terms else 1)


def _left_out(dictionary: TrainingDictionary, some: NDArray[np.intp]) -> list[LeftOut]:
    """Return some rows in parts, each with the others as atoms."""
    coded = np.linspace(0, len(some) - 1, min(_ROBUST_ROWS, len(some))).round().astype(np.intp)
    labels, parts = dictionary.labels, []
    for part in range(_PARTS):
        out = coded[part::_PARTS]
        if not len(out):
            continue
        others = np.delete(some, out)
        vectors = dictionary.vectors_by(others)
        rows, atoms = some[out], vectors[others]
        if dictionary.unit:
            atoms = machine(atoms).unit_rows(atoms)
        parts.append(LeftOut(vectors[rows], labels[rows], atoms, labels[others]))
    return parts


def _spread(labels: NDArray[np.intp], most: int) -> NDArray[np.intp]:
    """Return the numbers of at most so many rows, evenly spaced in the order of the classes."""
    order = np.argsort(labels, kind="stable")
    if len(labels) <= most:
        return order
    return order[np.linspace(0, len(labels) - 1, most).round().astype(np.intp)]
