"""What ``CRCClassifier`` and ``SRCClassifier`` share: a signal written in all training rows."""

from collections.abc import Callable
from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from kernelatoms.coding.codes import stacked_csr
from kernelatoms.coding.robust import warn_not_converged
from kernelatoms.engine import Array, is_device_array, machine, to_numpy
from kernelatoms.estimators.base import Bring, Estimator, unnamed
from kernelatoms.estimators.classifiers.base import CodeClassifier
from kernelatoms.estimators.classifiers.neighbor_parameters import NeighborParameters
from kernelatoms.estimators.classifiers.row_coding import Near, Represented, RobustCoder, RowCoder
from kernelatoms.estimators.classifiers.training_dictionary import TrainingDictionary
from kernelatoms.estimators.devices.border import by_rows, learn
from kernelatoms.estimators.inspection.explanation import Explanation, explain_codes
from kernelatoms.estimators.maps.kernel_choice import kernel_on
from kernelatoms.estimators.state_checks import (
    check_features,
    check_labels,
    held,
    require_floats,
    require_rows,
)
from kernelatoms.estimators.training_rows import validate_labelled
from kernelatoms.estimators.validation import check_choice, check_real
from kernelatoms.features.coordinates import check_training_kernel
from kernelatoms.features.memory import check_fits
from kernelatoms.features.projections import IdentityProjection, Projection, make_projection
from kernelatoms.similarity import Kernel
from kernelatoms.similarity.base import check_flag
from kernelatoms.similarity.inner import LinearKernel


@unnamed
class RepresentationClassifier(CodeClassifier, NeighborParameters, Estimator):
    """A signal is coded over all training rows; the class whose part of the code fits best wins.

    Subclasses say how: ``_fit_weight`` finds the weight of a code's size, ``_weight`` returns it,
    ``_make_coder`` makes the fitted state.
    """

    kernel: Any
    residual_norm: str
    tol: float
    projection: Any
    normalize: bool

    _on_devices = True

    #: What the size of a code is counted by, in robust coding.
    _penalty = "l2"
    #: Whether the columns that atoms are seen as through a projection have unit norm.
    _unit_columns = False

    def _sees_columns(self, kernel: Kernel) -> bool:
        """Tell whether ``projection="auto"`` means the identity under this kernel."""
        raise NotImplementedError

    def _fit_weight(self, dictionary: TrainingDictionary) -> None:
        """Find the weight of a code's size by the training rows."""
        raise NotImplementedError

    def _weight(self) -> float:
        """Return that weight."""
        raise NotImplementedError

    def _make_coder(self, dictionary: TrainingDictionary) -> RowCoder:
        """Return what codes signals over the training rows: the fitted state."""
        raise NotImplementedError

    # Fit

    def fit(self, X: Any, y: Any) -> Self:
        """Keep the training rows, and choose the weight and the projection by them.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Training rows; k(train, train) with ``kernel="precomputed"``. Tensors are kept where
            they are (float16 and bfloat16 in float32).
        y : array of shape (n_samples,)
            Their labels, of at least two classes; of numbers given as a tensor, ``classes_`` is
            one too.

        Returns
        -------
        self
        """
        learn(self._fit, self, X, y=y)
        return self

    def _fit(self, X: Any, y: Any) -> None:
        self._check_parameters()
        self._refuse_unused()
        X, self.classes_, labels = validate_labelled(self, X, y)
        if self._precomputed:
            check_training_kernel(X)
        self._check_calibration(labels)
        self._check_memory(X)
        # Classes in order make slices of atoms; the columns of a given kernel stay where they are.
        if not self._precomputed:
            order = np.argsort(labels, kind="stable")
            X, labels = X[order], labels[order]
        rows = self._scaled(X)
        kernel = self._fit_kernel(self._asked_kernel(), rows)
        self.dictionary_, self.labels_ = rows, np.asarray(labels, like=rows)
        self._fit_neighbors(rows)
        projection = self._made_projection(kernel)
        in_space = self._in_space(rows, not isinstance(projection, IdentityProjection | None))
        self._fit_projection(projection, in_space, labels)
        dictionary = self._seen(in_space, self.projection_)
        self._fit_weight(dictionary)
        self._calibrate(X, labels)
        self._keep_fitted(self._coder(dictionary), X)

    def _check_memory(self, X: Array) -> None:
        """Refuse rows whose Gram matrix ``predict`` would need and cannot have."""
        n_rows = len(X)
        if self.residual_norm == "l1" and is_device_array(X):
            raise ValueError(
                "residual_norm='l1' is coded on the CPU alone: give rows of the CPU "
                "(kernelatoms.to_device(X, 'cpu')), or use residual_norm='l2'."
            )
        explicit = self.residual_norm == "l1" and isinstance(self._asked_kernel(), LinearKernel)
        if self.n_neighbors is None and not explicit:
            check_fits(
                8.0 * n_rows**2, f"inner products of all pairs of {n_rows} training rows",
                "Code over neighbours alone (n_neighbors=50, say), or keep fewer rows.", like=X,
            )  # fmt: skip

    def _fit_projection(
        self, projection: Projection | None, in_space: TrainingDictionary, labels: NDArray[np.intp]
    ) -> None:
        """Find the projection of rows in feature space."""
        self.projected_, self.projection_ = projection is not None, None
        if projection is None:
            if self._precomputed:
                raise ValueError(
                    "projection=None needs k(x, x) of new rows, which kernel='precomputed' does "
                    "not give; use projection='identity' (or 'auto')."
                )
            if self.n_neighbors_ is None:
                in_space.atoms.check_semidefinite()
            return
        if isinstance(projection, IdentityProjection):
            return
        rng = check_random_state(self.random_state)
        gram = in_space.atoms.gram
        psi = np.asarray(projection.coefficients(to_numpy(gram), labels, rng), np.float64)
        if psi.ndim != 2 or len(psi) != len(labels) or not np.isfinite(psi).all():
            raise ValueError(
                f"projection must return finite coefficients of shape ({len(labels)}, "
                f"n_components), got {psi.shape}."
            )
        self.projection_ = np.asarray(psi, like=gram)

    def _made_projection(self, kernel: Kernel) -> Projection | None:
        given = self.projection
        if self._is_auto:
            given = "identity" if self._sees_columns(kernel) else None
        projection = make_projection(given)
        in_space = projection is None and not isinstance(kernel, LinearKernel)
        if in_space and self.residual_norm == "l1":
            raise ValueError(
                "residual_norm='l1' counts the entries of residuals, which vectors of a feature "
                "space do not have; use projection='identity' (or 'auto'), or kernel='linear'."
            )
        return projection

    def _check_parameters(self) -> None:
        check_choice("residual_norm", self.residual_norm, ("l2", "l1"))
        check_real("tol", self.tol, low=0, low_open=True)
        check_flag("normalize", self.normalize)
        check_flag("calibrate", self.calibrate)
        self._check_neighbors()
        make_projection(None if self._is_auto else self.projection)

    @property
    def _is_auto(self) -> bool:
        return isinstance(self.projection, str) and self.projection == "auto"

    def _scaled(self, X: Array) -> Array:
        """Return rows at unit norm, if that is asked for; zero rows stay zero."""
        if not self.normalize or self._precomputed:
            return X
        return machine(X).unit_rows(X)

    # The fitted state

    def _make_fitted(self, bring: Bring) -> RowCoder:
        psi = None if self.projection_ is None else bring(self.projection_)
        in_space = self._in_space(bring(self.dictionary_), psi is not None, bring)
        return self._coder(self._seen(in_space, psi))

    def _coder(self, dictionary: TrainingDictionary) -> RowCoder:
        if self.residual_norm == "l2":
            return self._make_coder(dictionary)
        return RobustCoder(
            dictionary, self._locality(), self._weight(), self._penalty, float(self.tol)
        )

    def _in_space(
        self, rows: Array, vectors: bool, bring: Bring = lambda array: array
    ) -> TrainingDictionary:
        """Return the training rows in feature space; as projections, which may be ``vectors``.

        Over all rows, or projections that are vectors, in float64: the eigenvalues of a large Gram
        matrix in float32 are wrong by more than a good mu (1 to 4 points on Extended Yale B).
        """
        if self.n_neighbors_ is None or vectors:
            rows = rows.astype(np.float64, copy=False)
        kernel = kernel_on(self._kernel(), bring)
        return TrainingDictionary(rows, kernel, bring(self.labels_), len(self.classes_))

    def _seen(self, in_space: TrainingDictionary, psi: Array | None) -> TrainingDictionary:
        """Return the training rows as signals are compared with them."""
        return in_space.through(psi, self._unit_columns) if self.projected_ else in_space

    # Use

    def residuals(self, X: Any) -> Array:
        """Return the regularised residual r_c = |y - D_c w_c| / |w_c| of every class.

        Infinite for a class without a part in the code. Neighbours of one class are coded here too.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Signals.

        Returns
        -------
        residuals : array of shape (n_samples, n_classes)
        """
        return by_rows(self._residuals, X, self)

    def _residuals(self, X: Any) -> Array:
        return np.concatenate(self._seen_in(X, lambda found: found.parts.residuals()))

    def codes(self, X: Any) -> scipy.sparse.csr_array:
        """Return the coefficients of every row over the training rows (``dictionary_``).

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Signals.

        Returns
        -------
        codes : sparse array of shape (n_samples, n_training_rows)
        """
        return by_rows(self._codes, X, self)

    def _codes(self, X: Any) -> scipy.sparse.csr_array:
        return stacked_csr(self._seen_in(X, lambda found: found.codes()))

    def errors(self, X: Any) -> Array:
        """Return what a robust code leaves unexplained: the wrong entries of rows.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Signals.

        Returns
        -------
        errors : array of shape (n_samples, n_features)
            e of y = D w + e, 0 where the code explains an entry; of rows at unit norm. Through a
            projection the entries are those of the projection.
        """
        check_is_fitted(self)
        if self.residual_norm != "l1":
            raise ValueError("errors are known to robust codes only: use residual_norm='l1'.")
        return by_rows(self._errors, X, self)

    def _errors(self, X: Any) -> Array:
        return np.concatenate(self._seen_in(X, lambda found: np.asarray(found.errors)))

    def _seen_in(self, X: Any, see: Callable[[Represented], Any]) -> list[Any]:
        """Return what is seen in the codes of blocks of rows."""
        return self._represent(self._validated(X), lambda rows, near, found: see(found))

    def _explained(self, X: Array) -> list[Explanation]:
        coder: RowCoder = self._fitted(X)

        def explain(rows: Array, near: Near | None, found: Represented) -> list[Explanation]:
            scores, codes = found.parts.shares(rows.dtype), found.codes()
            if near is not None:
                owners = coder.owners(near)
                alone = _of_one_class(owners)
                scores[alone] = np.arange(len(self.classes_)) == owners[alone, :1]
            whole = coder.whole(rows, near, codes)
            return explain_codes(
                codes, coder.dictionary.labels, self._class_labels, scores,
                residuals=found.parts.residuals2, residual=whole.residuals2[:, 0],
                energies=whole.energies,
            )  # fmt: skip

        return [one for block in self._represent(X, explain) for one in block]

    def _scores(self, X: Array) -> Array:
        coder: RowCoder = self._fitted(X)

        def shares_and_gaps(rows: Array, near: Near | None) -> tuple[Array, Array | None]:
            if near is None:
                found = coder.code(rows, near)
                return found.parts.shares(rows.dtype), found.gaps
            owners = coder.owners(near)
            alone = _of_one_class(owners)
            shares = np.zeros((len(rows), len(self.classes_)), like=rows)
            # Neighbours of one class decide at once (Algorithm 3, step 2).
            shares[alone, owners[alone, 0]] = 1.0
            if alone.all():
                return shares, None
            found = coder.code(rows[~alone], near[~alone])
            shares[~alone] = found.parts.shares(rows.dtype)
            return shares, found.gaps

        each = coder.in_blocks(X, self._scaled, shares_and_gaps)
        self._warn_unconverged([gaps for _, gaps in each])
        return np.concatenate([shares for shares, _ in each])

    def _represent(
        self, X: Array, see: Callable[[Array, Near | None, Represented], Any]
    ) -> list[Any]:
        """Return ``see(rows, near, found)`` of blocks of checked rows and their codes, in a list.

        ``near`` are the training rows that each may use, None for all.
        """
        coder: RowCoder = self._fitted(X)

        def work(rows: Array, near: Near | None) -> tuple[Any, Array | None]:
            found = coder.code(rows, near)
            return see(rows, near, found), found.gaps

        each = coder.in_blocks(X, self._scaled, work)
        self._warn_unconverged([gaps for _, gaps in each])
        return [seen for seen, _ in each]

    def _warn_unconverged(self, gaps: list[Array | None]) -> None:
        """Warn of robust codes that are not at the minimum, once for all blocks of a call."""
        known = [gap for gap in gaps if gap is not None]
        if known:
            warn_not_converged(np.concatenate(known), self.tol)

    # What a file may hold

    def _check_state(self) -> None:
        """Refuse parameters and fitted attributes that contradict each other."""
        self._check_parameters()
        self._check_calibrated()
        check_random_state(self.random_state)
        n_features, n_classes = check_features(self), check_labels(self, "classes_")
        rows = require_floats(self, "dictionary_", (None, n_features))
        self._check_kernel(n_features)
        labels = require_rows(self, "labels_", n_classes, len(rows))
        if len(np.unique(labels)) != n_classes:
            raise ValueError(f"{type(self).__name__}.labels_ must hold every class.")
        if self._precomputed:
            check_training_kernel(rows)
        elif (np.diff(labels) < 0).any():
            raise ValueError(f"{type(self).__name__}.labels_ must be ascending.")
        projection = self._made_projection(self._kernel())
        if check_flag("projected_", held(self, "projected_")) != (projection is not None):
            raise ValueError("projected_ is not what projection asks for.")
        if isinstance(projection, IdentityProjection | None):
            if held(self, "projection_") is not None:
                raise ValueError("projection_ must be None, of this projection.")
        else:
            if not require_floats(self, "projection_", (len(rows), None)).shape[1]:
                raise ValueError("projection_ must have columns.")
        self._check_held_neighbors(rows)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._precomputed
        tags.input_tags.sparse = True  # dense inside
        return tags


def _of_one_class(owners: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Tell which rows have neighbours of one class alone; -1 fills shorter lists."""
    alike: NDArray[np.bool_] = ((owners == owners[:, :1]) | (owners < 0)).all(axis=1)
    return alike
