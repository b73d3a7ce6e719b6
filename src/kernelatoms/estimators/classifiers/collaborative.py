"""``CRCClassifier`` and ``SRCClassifier``: all training rows are the dictionary."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.coding.codes import Codes, dense_as_csr
from kernelatoms.coding.decisions import ClassParts, parts_of_dense_codes, parts_of_sparse_codes
from kernelatoms.coding.lasso import lasso
from kernelatoms.coding.leave_one_out import best_local_mu, best_mu
from kernelatoms.coding.leave_one_out_robust import (
    ROBUST_MULTIPLES,
    ROW_MULTIPLES,
    LeftOut,
    best_robust_mu,
)
from kernelatoms.coding.omp import omp
from kernelatoms.engine import machine
from kernelatoms.estimators.classifiers.representation import RepresentationClassifier, Represented
from kernelatoms.estimators.classifiers.training_dictionary import LocalProblems, TrainingDictionary
from kernelatoms.estimators.state_checks import held, require_count, require_number
from kernelatoms.estimators.validation import check_count, check_real, clip_count
from kernelatoms.features.projections import IdentityProjection, Projection
from kernelatoms.similarity import Kernel, LinearKernel
from kernelatoms.similarity.base import check_flag
from kernelatoms.similarity.contrast import Limits

Array = NDArray[Any]

# Of rows at unit norm, by evidence over all data sets at hand (docs/guide/representation.md).
_ALPHA, _ROBUST_ALPHA = 0.01, 1.0
# Where k(x, y) is nearer than this to k(x, x), squares of kernel values tell rows apart no more: on
# ten kinds of data accuracy was at or near that of the most frequent class.
_ALIKE_IN_SQUARES = 1e-6
# Rows that are left out one by one to choose mu. Over neighbours there are fewer where these are
# many: their Gram matrices have so many entries in all.
_LEFT_OUT, _LEFT_OUT_LOCALLY, _LOCAL_ENTRIES = 2000, 4000, 12_000_000
# For robust codes: so many rows take part, of which so many are left out in so many parts.
_ROBUST_ATOMS, _ROBUST_ROWS, _PARTS = 400, 150, 5


class CRCClassifier(RepresentationClassifier):
    """Collaborative representation: a ridge code over all training rows, judged class by class.

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
        Weight of |w|^2. "search" leaves training rows out one by one and takes the weight that
        classifies most of them right, of several the middle one: exact and in closed form over all
        rows (at most 2,000 of them, evenly spaced), by coding up to 4,000 of them (100 at least)
        with ``n_neighbors``, fewer if these are many. Robust codes (``residual_norm="l1"``) have no
        closed form: up to 150 rows are coded over others, of 400 evenly spaced rows at most.
    residual_norm : {"l2", "l1"}, default="l2"
        "l1" distrusts a few entries of a signal: |e|_1 + mu |w|^2 with y = D w + e.
    tol : float, default=1e-4
        With ``residual_norm="l1"``: the duality gap that codes are to reach, as a share of the
        objective. Codes that do not reach it are told by a ``ConvergenceWarning``.
    projection : "auto", None, str or object, default="auto"
        How signals are seen. None: as vectors of the feature space. "identity": as the column of
        their kernel values with all training rows, the paper's KCRC (Psi = I). "kpca", "kfda",
        "random", "graph", or an object such as ``KPCAProjection(100)`` of ``kernelatoms.coding``:
        as inner products with fewer vectors. "auto" is None for the linear
        kernel and for others "identity", which classifies better on most data sets tried; it
        needs no positive semi-definite kernel.
    normalize_columns : bool, default=False
        Scale every training row as it is seen through a projection, a column of Psi' G, to unit
        norm (step 1 of Algorithms 1 and 2); codes are then over these, and zero columns stay zero.
        Not with ``projection=None``. It asks for a much smaller ``mu``
        (docs/guide/representation.md).
    n_neighbors : int, optional
        Code each signal over this many nearest training rows only: the locality constrained
        dictionary (LCD) of the paper. Neighbours of one class decide at once.
    distance : str or object, optional
        By which they are nearest: a name in ``similarity.DISTANCES`` or a distance. By default the
        distance in feature space, which a kernel made of a distance orders as that distance does.
    n_coarse : int, optional
        Look for the neighbours among this many nearest by ``coarse_distance``, at least
        ``n_neighbors``: pays where the distance is dear (Algorithm 4).
    coarse_distance : str or object, default="l2"
        A cheap distance, with ``n_coarse``.
    search : {"exact", "approximate"}, default="exact"
        How neighbours are found: "approximate" finds most of them, by "l2" or "correlation" (of
        two distances the coarse one), with pynndescent (``pip install kernelatoms[ann]``), for very
        many rows.
    image_shape : (height, width), optional
        Of images, for kernels and distances by name that need it.
    normalize : bool, default=True
        Scale rows to unit norm first; zero rows stay zero. Kernel values that are precomputed stay
        as they are.
    gamma : float, "scale", "auto", "spread" or None, default="spread"
        Of the kernel, as in ``KernelLinearizer``; "spread" is taken from the training rows, at unit
        norm with ``normalize=True``. The paper's beta is 0.5, for an RBF kernel of such rows: on
        some faces it is better (docs/guide/representation.md).
    degree, coef0 : float
        Parameters of the kernels by name, as in scikit-learn.
    kernel_params : dict, optional
        Further arguments of a function, or the arguments of a class.
    calibrate : bool, default=False
        Whether ``fit`` also learns how sure answers are, for ``predict_proba``: three copies learn
        from two thirds of the rows each, which makes ``fit`` about three times as long.
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
        As settled by the training rows.
    gamma_ : float or None
        The kernel's gamma; None if it has none.
    search_seed_ : int
        With ``search="approximate"``: what the index of the training rows is made with.
    inverse_temperature_, label_smoothing_ : float
        With ``calibrate=True``: what makes probabilities of scores (see ``predict_proba``).

    Notes
    -----
    ``predict_proba`` without ``calibrate`` are the shares of ``decision_function``; with it, their
    powers ``r_c^(-2 inverse_temperature_)`` over the sum of all, drawn towards equal ones by
    ``label_smoothing_``.

    A model file holds the training rows once, n_rows x n_features numbers, and Psi where there is
    one, n_rows x n_components: what is computed of them is computed anew. Global codes need the
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
        if not (isinstance(self.mu, str) and self.mu == "search"):
            if isinstance(self.mu, str):
                raise ValueError(f"mu must be a number above 0 or 'search', got {self.mu!r}.")
            check_real("mu", self.mu, low=0, low_open=True)

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
        """Settle mu: as given, or the one that classifies rows best that are left out."""
        if not isinstance(self.mu, str):
            self.mu_ = float(self.mu)
        elif self.n_neighbors_ is None:
            robust = self.residual_norm == "l1"
            self.mu_ = (self._search_robust_mu if robust else self._search_mu)(dictionary)
        else:
            self.mu_ = self._search_local_mu(dictionary)

    def _search_mu(self, dictionary: TrainingDictionary) -> float:
        labels, psi = self.labels_, dictionary.psi
        some = _spread(labels, _LEFT_OUT)
        part = np.ix_(some, some)
        mu, _ = best_mu(
            dictionary.atoms.gram[part], labels[some], len(self.classes_),
            projected=dictionary.projected, psi=None if psi is None else psi[some],
            unit=dictionary.unit,
        )  # fmt: skip
        # Eigenvalues grow with the number of atoms, and with that of the terms of a projection.
        terms = dictionary.projected and not dictionary.unit
        return mu * (len(labels) / len(some)) ** (2 if terms else 1)

    def _search_robust_mu(self, dictionary: TrainingDictionary) -> float:
        some = _spread(self.labels_, _ROBUST_ATOMS)
        mu = self._best_robust_mu(dictionary, self._left_out(dictionary, some))
        # As for ridge codes; |e|_1 grows with the number of entries too.
        terms = dictionary.projected and not dictionary.unit
        return mu * (len(self.labels_) / len(some)) ** (2 if terms else 1)

    def _best_robust_mu(self, dictionary: TrainingDictionary, parts: list[LeftOut]) -> float:
        multiples = ROBUST_MULTIPLES if dictionary.projected else ROW_MULTIPLES
        return best_robust_mu(parts, len(self.classes_), multiples)

    def _left_out(self, dictionary: TrainingDictionary, some: NDArray[np.intp]) -> list[LeftOut]:
        """Return some rows in parts, each with the others as atoms."""
        coded = np.linspace(0, len(some) - 1, min(_ROBUST_ROWS, len(some))).round().astype(np.intp)
        parts = []
        for part in range(_PARTS):
            out = coded[part::_PARTS]
            if not len(out):
                continue
            others = np.delete(some, out)
            vectors = dictionary.vectors_by(others)
            rows, atoms = some[out], vectors[others]
            if dictionary.unit:
                atoms = machine(atoms).unit_rows(atoms)
            parts.append(LeftOut(vectors[rows], self.labels_[rows], atoms, self.labels_[others]))
        return parts

    def _search_local_mu(self, dictionary: TrainingDictionary) -> float:
        locality = self._locality()
        assert locality is not None
        fits = _LOCAL_ENTRIES // locality.n_neighbors**2
        robust = self.residual_norm == "l1"
        most = _ROBUST_ROWS if robust else max(100, min(_LEFT_OUT_LOCALLY, fits))
        some = _spread(self.labels_, most)
        rows = self.dictionary_[some]
        near = dictionary.neighbors(rows, locality, skip=some)
        if robust:
            owners, each = self.labels_, dictionary.local_vectors(rows, near)
            parts = [
                LeftOut(signal[None], labels, atoms, owners[own[there]])
                for (signal, atoms, there), labels, own in zip(
                    each, owners[some][:, None], near, strict=True
                )
            ]
            return self._best_robust_mu(dictionary, parts)
        local = dictionary.local_problems(rows, near)
        return best_local_mu(
            local.grams, local.corrs, local.energies, dictionary.owners(self.labels_, near),
            self.labels_[some], len(self.classes_), columns=local.columns,
        )  # fmt: skip

    def _weight(self) -> float:
        return float(self.mu_)

    def _over_all(self, dictionary: TrainingDictionary, X: Array) -> Represented:
        inverse, problem = dictionary.ridge_inverse(self._weight()), dictionary.problem(X)
        members, grams = dictionary.class_grams
        weights = np.empty((len(X), dictionary.n_atoms), like=X)
        shape = (len(X), len(members))
        parts = ClassParts(
            np.empty(shape, like=X), np.empty(shape, like=X), np.empty(len(X), like=X)
        )

        def work(start: int, stop: int) -> None:
            corr, energies = problem.products(start, stop)
            assert energies is not None  # fit refuses kernels that do not know them
            corr = corr.astype(np.float64, copy=False)
            w = weights[start:stop] = corr @ inverse
            found = parts_of_dense_codes(corr, energies, w, members, grams)
            for whole, part in zip(vars(parts).values(), vars(found).values(), strict=True):
                whole[start:stop] = part

        machine(weights).for_blocks(len(X), 2 * dictionary.n_atoms, 8, work)
        return Represented(parts, dense_as_csr(weights))

    def _over_own(self, local: LocalProblems) -> Array:
        return machine(local.corrs).ridge_local(
            local.grams, local.corrs, self._weight(), local.columns
        )

    def _check_state(self) -> None:
        """Refuse parameters and fitted attributes that contradict each other; see ``fitted``."""
        super()._check_state()
        if not require_number(self, "mu_") > 0:
            raise ValueError(f"CRCClassifier.mu_ must be above 0, got {self.mu_}.")


class SRCClassifier(RepresentationClassifier):
    """Sparse representation: an l1 or greedy code over all training rows, judged class by class.

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
        stands beside |e|_1 instead, and is 1 by default. Not with ``n_nonzero_coefs``.
    n_nonzero_coefs : int, optional
        Code by orthogonal matching pursuit with so many rows, instead of by alpha.
    residual_norm : {"l2", "l1"}, default="l2"
        "l1" distrusts a few entries of a signal: |e|_1 + alpha |w|_1 with y = D w + e.
    tol : float, default=1e-4
        With ``residual_norm="l1"``: the duality gap that codes are to reach, as a share of the
        objective. Codes that do not reach it are told by a ``ConvergenceWarning``.
    projection : "auto", None, str or object, default="auto"
        How signals are seen. None: as vectors of the feature space. "identity": as the column of
        their kernel values with all training rows, the paper's KCRC (Psi = I). "kpca", "kfda",
        "random", "graph", or an object such as ``KPCAProjection(100)`` of ``kernelatoms.coding``:
        as inner products with fewer vectors. "auto" is None, the feature
        space, where the kernel is known to be positive semi-definite, and "identity" where not.
    n_neighbors : int, optional
        Code each signal over this many nearest training rows only: the locality constrained
        dictionary (LCD) of the paper. Neighbours of one class decide at once.
    distance : str or object, optional
        By which they are nearest: a name in ``similarity.DISTANCES`` or a distance. By default the
        distance in feature space, which a kernel made of a distance orders as that distance does.
    n_coarse : int, optional
        Look for the neighbours among this many nearest by ``coarse_distance``, at least
        ``n_neighbors``: pays where the distance is dear (Algorithm 4).
    coarse_distance : str or object, default="l2"
        A cheap distance, with ``n_coarse``.
    search : {"exact", "approximate"}, default="exact"
        How neighbours are found: "approximate" finds most of them, by "l2" or "correlation" (of
        two distances the coarse one), with pynndescent (``pip install kernelatoms[ann]``), for very
        many rows.
    image_shape : (height, width), optional
        Of images, for kernels and distances by name that need it.
    normalize : bool, default=True
        Scale rows to unit norm first; zero rows stay zero. Kernel values that are precomputed stay
        as they are.
    gamma : float, "scale", "auto", "spread" or None, default="spread"
        Of the kernel, as in ``KernelLinearizer``; "spread" is taken from the training rows, at unit
        norm with ``normalize=True``. The paper's beta is 0.5, for an RBF kernel of such rows: on
        some faces it is better (docs/guide/representation.md).
    degree, coef0 : float
        Parameters of the kernels by name, as in scikit-learn.
    kernel_params : dict, optional
        Further arguments of a function, or the arguments of a class.
    calibrate : bool, default=False
        Whether ``fit`` also learns how sure answers are, for ``predict_proba``: three copies learn
        from two thirds of the rows each, which makes ``fit`` about three times as long.
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
        As settled by the training rows.
    gamma_ : float or None
        The kernel's gamma; None if it has none.
    search_seed_ : int
        With ``search="approximate"``: what the index of the training rows is made with.
    inverse_temperature_, label_smoothing_ : float
        With ``calibrate=True``: what makes probabilities of scores (see ``predict_proba``).

    Notes
    -----
    ``predict_proba`` without ``calibrate`` are the shares of ``decision_function``; with it, their
    powers ``r_c^(-2 inverse_temperature_)`` over the sum of all, drawn towards equal ones by
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
        """Settle how many atoms a code may use, no more than there are."""
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

    def _over_all(self, dictionary: TrainingDictionary, X: Array) -> Represented:
        problem = dictionary.problem(X)
        codes: Codes
        if self.n_nonzero_coefs_ is None:
            codes = lasso(problem, self._weight())
        else:
            codes = omp(problem, self.n_nonzero_coefs_)
        parts = parts_of_sparse_codes(problem, codes, dictionary.labels, len(self.classes_))
        return Represented(parts, codes.to_csr())

    def _over_own(self, local: LocalProblems) -> Array:
        grams, corrs, energies = local.grams, local.corrs, local.energies
        if local.columns:  # inner products of the columns
            grams, corrs = grams.astype(np.float64), corrs.astype(np.float64)
            corrs, grams = (grams @ corrs[:, :, None])[:, :, 0], grams @ grams
        n_signals, n_own = corrs.shape
        missing = np.diagonal(grams, axis1=1, axis2=2) <= 0
        places = np.where(missing, -1, np.arange(n_own)).astype(np.int32)

        def problems(start: int, stop: int) -> tuple[Array, Array, Array]:
            return grams[start:stop], corrs[start:stop], energies[start:stop]

        engine, weights = machine(corrs), np.zeros((n_signals, n_own + 1), like=corrs)
        if self.n_nonzero_coefs_ is not None:
            indices, values, _ = engine.omp_local(problems, places, self.n_nonzero_coefs_)
            np.put_along_axis(weights, indices, values, axis=1)  # -1 is the last
        else:
            indptr, indices, values, *_ = engine.lasso_local(
                problems, places, corrs.dtype, self._weight()
            )
            weights[np.repeat(np.arange(n_signals), np.diff(indptr)), indices] = values
        return weights[:, :-1]

    def _check_state(self) -> None:
        """Refuse parameters and fitted attributes that contradict each other; see ``fitted``."""
        super()._check_state()
        if (held(self, "n_nonzero_coefs_") is None) != (self.n_nonzero_coefs is None):
            raise ValueError("n_nonzero_coefs and n_nonzero_coefs_ must both be None, or neither.")
        if self.n_nonzero_coefs_ is not None:
            require_count(self, "n_nonzero_coefs_", high=len(self.labels_))


def _spread(labels: NDArray[np.intp], most: int) -> NDArray[np.intp]:
    """Return the numbers of at most so many rows, evenly spaced in the order of the classes."""
    order = np.argsort(labels, kind="stable")
    if len(labels) <= most:
        return order
    return order[np.linspace(0, len(labels) - 1, most).round().astype(np.intp)]
