"""``CRCClassifier`` and ``SRCClassifier``: all training rows are the dictionary."""

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from kernelatoms.engine import machine
from kernelatoms.estimators.checks import check_count, check_real, clip_count
from kernelatoms.estimators.fitted import held, held_number
from kernelatoms.estimators.representation import RepresentationClassifier, Represented
from kernelatoms.estimators.training_dictionary import LocalProblems, TrainingDictionary
from kernelatoms.pursuit.lasso import lasso
from kernelatoms.pursuit.left_out import best_local_mu, best_mu
from kernelatoms.pursuit.omp import omp
from kernelatoms.similarity import Kernel, LinearKernel
from kernelatoms.space.codes import Codes
from kernelatoms.space.decisions import ClassParts, parts_of_dense_codes, parts_of_sparse_codes

Array = NDArray[Any]

# The weight of |w|_2^2 beside |e|_1, of rows at unit norm; see the measured table in the guide.
_ROBUST_MU = 1.0
# Rows that are left out one by one to choose mu: of all, and over neighbours.
_LEFT_OUT, _LEFT_OUT_LOCALLY = 2000, 300


class CRCClassifier(RepresentationClassifier):
    """TODO."""

    def __init__(
        self,
        kernel: Any = "linear",
        *,
        mu: float | str = "search",
        residual_norm: str = "l2",
        projection: Any = "auto",
        n_neighbors: int | None = None,
        distance: Any = None,
        n_coarse: int | None = None,
        coarse_distance: Any = "l2",
        image_shape: tuple[int, int] | None = None,
        normalize: bool = True,
        gamma: float | str | None = 0.5,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.mu = mu
        self.residual_norm = residual_norm
        self.projection = projection
        self.n_neighbors = n_neighbors
        self.distance = distance
        self.n_coarse = n_coarse
        self.coarse_distance = coarse_distance
        self.image_shape = image_shape
        self.normalize = normalize
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not (isinstance(self.mu, str) and self.mu == "search"):
            if isinstance(self.mu, str):
                raise ValueError(f"mu must be a number above 0 or 'search', got {self.mu!r}.")
            check_real("mu", self.mu, low=0, low_open=True)

    def _sees_columns(self, kernel: Kernel) -> bool:
        """Kernel values as vectors classify better than feature space, by evidence."""
        return not isinstance(kernel, LinearKernel)

    def _fit_weight(self, dictionary: TrainingDictionary) -> None:
        """Settle mu: as given, or the one that classifies rows best that are left out."""
        if not isinstance(self.mu, str):
            self.mu_ = float(self.mu)
        elif self.residual_norm == "l1":
            self.mu_ = _ROBUST_MU
        elif self.n_neighbors_ is None:
            self.mu_ = self._search_mu(dictionary)
        else:
            self.mu_ = self._search_local_mu(dictionary)

    def _search_mu(self, dictionary: TrainingDictionary) -> float:
        labels, psi = self.labels_, dictionary.psi
        some = _spread(labels, _LEFT_OUT)
        part = np.ix_(some, some)
        mu, _ = best_mu(
            dictionary.atoms.gram[part], labels[some], len(self.classes_),
            projected=dictionary.projected, psi=None if psi is None else psi[some],
        )  # fmt: skip
        # Eigenvalues grow with the number of atoms, and with that of the terms of a projection.
        return mu * (len(labels) / len(some)) ** (2 if dictionary.projected else 1)

    def _search_local_mu(self, dictionary: TrainingDictionary) -> float:
        locality = self._locality()
        assert locality is not None
        some = _spread(self.labels_, _LEFT_OUT_LOCALLY)
        rows = self.dictionary_[some]
        near = dictionary.neighbors(rows, locality, skip=some)
        local = dictionary.local_problems(rows, near)
        return best_local_mu(
            local.grams, local.corrs, local.energies, dictionary.owners(self.labels_, near),
            self.labels_[some], len(self.classes_), columns=local.columns,
        )  # fmt: skip

    def _weight(self) -> float:
        return self.mu_

    def _over_all(self, dictionary: TrainingDictionary, X: Array) -> Represented:
        inverse, problem = dictionary.ridge_inverse(self.mu_), dictionary.problem(X)
        members, grams = dictionary.class_grams(self.labels_, len(self.classes_))
        weights = np.empty((len(X), dictionary.n_atoms))
        shape = (len(X), len(members))
        parts = ClassParts(np.empty(shape), np.empty(shape), np.empty(len(X)))

        def work(start: int, stop: int) -> None:
            corr, energies = problem.products(start, stop)
            corr = corr.astype(np.float64, copy=False)
            w = weights[start:stop] = corr @ inverse
            found = parts_of_dense_codes(corr, energies, w, members, grams)
            for whole, part in zip(vars(parts).values(), vars(found).values(), strict=True):
                whole[start:stop] = part

        machine(weights).for_blocks(len(X), 2 * dictionary.n_atoms, 8, work)
        return Represented(parts, scipy.sparse.csr_array(weights))

    def _over_own(self, local: LocalProblems) -> Array:
        return machine(local.corrs).ridge_local(local.grams, local.corrs, self.mu_, local.columns)

    def _check_state(self) -> None:
        """Refuse parameters and fitted attributes that contradict each other; see ``fitted``."""
        super()._check_state()
        if not held_number(self, "mu_") > 0:
            raise ValueError(f"CRCClassifier.mu_ must be above 0, got {self.mu_}.")


class SRCClassifier(RepresentationClassifier):
    """TODO."""

    _penalty = "l1"

    def __init__(
        self,
        kernel: Any = "linear",
        *,
        alpha: float = 0.01,
        n_nonzero_coefs: int | None = None,
        residual_norm: str = "l2",
        projection: Any = "auto",
        n_neighbors: int | None = None,
        distance: Any = None,
        n_coarse: int | None = None,
        coarse_distance: Any = "l2",
        image_shape: tuple[int, int] | None = None,
        normalize: bool = True,
        gamma: float | str | None = 0.5,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.n_nonzero_coefs = n_nonzero_coefs
        self.residual_norm = residual_norm
        self.projection = projection
        self.n_neighbors = n_neighbors
        self.distance = distance
        self.n_coarse = n_coarse
        self.coarse_distance = coarse_distance
        self.image_shape = image_shape
        self.normalize = normalize
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_real("alpha", self.alpha, low=0, low_open=True)
        if self.n_nonzero_coefs is not None:
            check_count("n_nonzero_coefs", self.n_nonzero_coefs)
            if self.residual_norm == "l1":
                raise ValueError(
                    "residual_norm='l1' codes by a penalty: leave n_nonzero_coefs at None."
                )

    def _sees_columns(self, kernel: Kernel) -> bool:
        """l1 codes need inner products of vectors: those of feature space, if surely there."""
        return not kernel.semidefinite

    def _fit_weight(self, dictionary: TrainingDictionary) -> None:
        """Settle how many atoms a code may use, no more than there are."""
        self.n_nonzero_coefs_ = None
        if self.n_nonzero_coefs is not None:
            most = self.n_neighbors_ or dictionary.n_atoms
            self.n_nonzero_coefs_ = clip_count(
                "n_nonzero_coefs", self.n_nonzero_coefs, most, "a signal has atoms"
            )

    def _weight(self) -> float:
        return float(self.alpha)

    def _over_all(self, dictionary: TrainingDictionary, X: Array) -> Represented:
        problem = dictionary.problem(X)
        codes: Codes
        if self.n_nonzero_coefs_ is None:
            codes = lasso(problem, self._weight())
        else:
            codes = omp(problem, self.n_nonzero_coefs_)
        parts = parts_of_sparse_codes(problem, codes, self.labels_, len(self.classes_))
        return Represented(parts, codes.to_csr())

    def _over_own(self, local: LocalProblems) -> Array:
        grams, corrs, energies = local.grams, local.corrs, local.energies
        if local.columns:  # inner products of the columns
            grams, corrs = grams.astype(np.float64), corrs.astype(np.float64)
            corrs, grams = (grams @ corrs[:, :, None])[:, :, 0], grams @ grams
        n_signals, n_own = corrs.shape
        missing = np.diagonal(grams, axis1=1, axis2=2) <= 0
        places = np.where(missing, -1, np.arange(n_own, dtype=np.int32)).astype(np.int32)

        def problems(start: int, stop: int) -> tuple[Array, Array, Array]:
            return grams[start:stop], corrs[start:stop], energies[start:stop]

        engine, weights = machine(corrs), np.zeros((n_signals, n_own + 1))
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
        if held(self, "n_nonzero_coefs_") is not None:
            check_count("n_nonzero_coefs_", self.n_nonzero_coefs_)


def _spread(labels: NDArray[np.intp], most: int) -> NDArray[np.intp]:
    """Return the numbers of at most so many rows, evenly spaced in the order of the classes."""
    order = np.argsort(labels, kind="stable")
    if len(labels) <= most:
        return order
    return order[np.linspace(0, len(labels) - 1, most).round().astype(np.intp)]
