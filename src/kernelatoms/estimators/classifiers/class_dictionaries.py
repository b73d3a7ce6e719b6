"""``ClassDictionaryClassifier``: one dictionary per class, the smallest residual decides."""

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.callback._callback_support import callback_management_context
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from kernelatoms.coding.class_residuals import class_residuals, shares_of
from kernelatoms.coding.codes import Codes
from kernelatoms.coding.pursuits import code_over_nearest
from kernelatoms.engine import Array, machine
from kernelatoms.estimators.base import Bring, Estimator
from kernelatoms.estimators.classifiers.base import CodeClassifier, first_largest, probabilities
from kernelatoms.estimators.classifiers.class_learners import (
    check_learners,
    check_takes_weights,
    copied,
    fitted_attributes,
    make_learners,
    with_kernel_looked_at,
)
from kernelatoms.estimators.devices.border import collections_entered, learn
from kernelatoms.estimators.inspection.explanation import Explanation, codes_of_best, explain_codes
from kernelatoms.estimators.kept import kept, run_of_class
from kernelatoms.estimators.learners.base import DictionaryLearner
from kernelatoms.estimators.learners.linear import KSVD, BatchLinearLearner
from kernelatoms.estimators.state_checks import (
    check_features,
    check_labels,
    require_lists_of_rows,
    require_number,
)
from kernelatoms.estimators.training_rows import validate_batch, validate_weighted
from kernelatoms.estimators.validation import (
    check_choice,
    check_complete,
    check_count,
    validate_new,
)
from kernelatoms.features.coordinates import check_training_kernel
from kernelatoms.learning.runs import Run, run_all, run_routed
from kernelatoms.rows import RowSource
from kernelatoms.rows.routed import Classes, ClassRows
from kernelatoms.similarity.base import check_flag
from kernelatoms.similarity.factory import is_precomputed
from kernelatoms.similarity.missing import rows_with_missing


def _learns_from_batches(classifier: Any) -> bool:
    if isinstance(classifier.dictionary, BatchLinearLearner | None):
        return True
    raise AttributeError(
        "ClassDictionaryClassifier learns from batches with dictionary=KSVD(...) or MOD(...), got "
        f"{classifier.dictionary!r}."
    )


class ClassDictionaryClassifier(CodeClassifier, CallbackSupportMixin, Estimator):
    """Learn one dictionary per class; a signal belongs where its code leaves the smallest residual.

    Eq. (14) of Nguyen et al. (2012), eq. (25) of the LKDL paper: r_c = |x - D_c w_c|^2 for every
    class c. Give it a ``KernelKSVD`` to work in feature space, or put a ``KernelLinearizer``
    before it for LKDL.

    Parameters
    ----------
    dictionary : learner, optional
        ``KSVD()`` by default; cloned for every class. Its ``dict_init`` is where every class
        starts; with its ``warm_start``, a class starts from its dictionary of the last ``fit``.
    scheme : {"distributive", "collective"}, default="distributive"
        Code a signal over every class's dictionary by itself, or once over all of them together,
        and count what each class's part of that code leaves.
    n_neighbors : int, optional
        Code a signal over this many atoms alone, the nearest to it in feature space, of every
        class or of all together, as ``scheme`` says; rows must then be complete.
    calibrate : bool, default=False
        Whether to learn how sure answers are, from the rows left out of three more fits.
    random_state : int, RandomState or None
        Seeds the learners, each class with a seed of its own.

    Attributes
    ----------
    classes_ : array
        The labels.
    dictionaries_ : list
        The fitted learners, in the order of the classes.
    members_ : list of arrays
        With ``kernel="precomputed"``: the training rows of every class.
    mean_energy_ : float
        With ``kernel="precomputed"``: the mean k(x, x) of the training rows.
    inverse_temperature_, label_smoothing_ : float
        With ``calibrate=True``: what makes probabilities of scores (see ``predict_proba``).

    Notes
    -----
    Residuals know directions, not places: classes that lie on the same line through the origin
    (blobs at different distances, say) look alike to a linear dictionary. Use unit-norm rows,
    or a kernel. Residuals below 10 eps of a signal's energy count as 0; ties go to the class
    that comes first. Rows with missing values (NaN) are classified by the residual of their
    observed entries; with a kernel, by an estimate from them, which may be below 0.

    ``decision_function`` returns -r_c; of two classes (r_1 - r_2) / (r_1 + r_2), or r_1 - r_2 with
    a precomputed kernel. ``explain`` returns scores -r_c, and the code over the answer's
    dictionary, or the joint one.

    ``predict_proba`` without ``calibrate``: the share of a class is 1 / r_c over the sum of all;
    with it, r_c^-inverse_temperature_. A precomputed kernel does not know k(x, x) of new rows, only
    differences of residuals: there shares are a softmax of -r_c over ``mean_energy_``.

    Examples
    --------
    >>> from kernelatoms import ClassDictionaryClassifier, KSVD, KernelLinearizer
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.pipeline import make_pipeline
    >>> X, y = load_digits(return_X_y=True)
    >>> lkdl = make_pipeline(
    ...     KernelLinearizer("poly", degree=2, gamma=1e-3, random_state=0),
    ...     ClassDictionaryClassifier(KSVD(n_atoms=30, n_nonzero_coefs=4), random_state=0),
    ... )
    >>> lkdl.fit(X[:1000], y[:1000]).score(X[1000:], y[1000:]) > 0.9
    True
    """

    @property
    def _on_devices(self) -> bool:  # type: ignore[override]
        return self.dictionary is None or getattr(self.dictionary, "_on_devices", False)

    @property
    def _learns_missing(self) -> bool:  # type: ignore[override]
        return self.dictionary is None or getattr(self.dictionary, "_learns_missing", False)

    def __init__(
        self,
        dictionary: Any = None,
        *,
        scheme: str = "distributive",
        n_neighbors: int | None = None,
        calibrate: bool = False,
        random_state: Any = None,
    ) -> None:
        self.dictionary = dictionary
        self.scheme = scheme
        self.n_neighbors = n_neighbors
        self.calibrate = calibrate
        self.random_state = random_state

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn a dictionary for every class.

        Parameters
        ----------
        X : array or RowSource of shape (n_samples, n_features)
            Signals; missing values (NaN) as in the dictionary's ``fit``. Tensors are learned from
            where they are (float16 and bfloat16 in float32). A source of rows is read once per
            pass, for all classes together.
        y : array of shape (n_samples,)
            Their labels; of numbers given as a tensor, ``classes_`` is one too. By default those
            of the source (``open_rows(..., label=...)``).
        sample_weight : array of shape (n_samples,), optional
            How much every signal counts within its class, as in the dictionary's ``fit``; not with
            ``calibrate=True``.

        Returns
        -------
        self
        """
        warm = getattr(self.dictionary, "warm_start", False)
        X, y, sample_weight = collections_entered(X, y=y, sample_weight=sample_weight)
        with kept(self, X, y, sample_weight, goes_on=warm):
            learn(
                lambda rows, labels: self._fit(rows, labels, sample_weight), self, X, y=y,
                from_nothing=not warm,
            )  # fmt: skip
        return self

    def _from_source(self, source: RowSource) -> Any:
        if self.calibrate:
            raise ValueError(
                "calibrate=True learns from rows left out, in three more fits, and X is a source "
                "of rows: use calibrate=False."
            )
        if isinstance(self.dictionary, DictionaryLearner):
            self.dictionary._from_source(source)  # refuses what it cannot learn from
        return source

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        self._check_coding()
        if sample_weight is not None:
            check_takes_weights(self)
        last = self._learned()
        X, self.classes_, labels, weights = validate_weighted(self, X, y, sample_weight)
        is_source = isinstance(X, RowSource)
        if self._precomputed:
            check_training_kernel(X)
        n_classes = len(self.classes_)
        self._check_calibration(labels)
        learners = make_learners(self, np.bincount(labels), X)
        for label, learner in zip(self.classes_.tolist(), learners, strict=True):
            if getattr(learner, "warm_start", False) and type(last.get(label)) is type(learner):
                vars(learner).update(fitted_attributes(last[label]))
        members = [np.flatnonzero(labels == c) for c in range(n_classes)]
        classes = Classes.of(labels)
        if self._precomputed:
            self.members_, self.mean_energy_ = members, float(np.diagonal(X).mean())
        context = self._init_callback_context(max_subtasks=n_classes, sequential_subtasks=False)
        context.call_on_fit_task_begin(estimator=self, X=X, y=y)

        def learn_class(c: int) -> Run:
            task = context.subcontext(task_name=f"class {self.classes_[c]}", task_id=c)
            learner = learners[c]
            rows: Any = ClassRows(X, classes, c) if is_source else X[members[c]]
            if self._precomputed:
                rows = rows[:, members[c]]
            task.call_on_fit_task_begin(estimator=self, X=rows)
            with (
                task.propagate_callback_context(learner),
                callback_management_context(learner),
                run_of_class(self, learner, c, n_classes),
            ):
                own = () if weights is None else (weights[members[c]],)
                yield from with_kernel_looked_at(learner._learning(rows, *own))
            task.call_on_fit_task_end(estimator=self, X=rows)
            return learner

        runs = [learn_class(c) for c in range(n_classes)]
        if is_source:
            self.dictionaries_ = run_routed(runs, X)
        else:
            self.dictionaries_ = run_all(runs, like=X)
            self._calibrate(X, labels)
        context.call_on_fit_task_end(estimator=self, X=X, y=y)

    @available_if(_learns_from_batches)
    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Take in a batch: every class's dictionary learns from its rows.

        A class begins with its first rows, in whichever batch they come, and stays as it is where
        a batch has none of it. Only with ``KSVD()`` or ``MOD()`` as the dictionary.

        Parameters
        ----------
        X : array or RowSource of shape (n_samples, n_features)
            A batch of signals; missing values (NaN) are learned from what is observed. All rows of
            a source, or of a Dask array, are one batch.
        y : array of shape (n_samples,)
            Their labels.
        classes : ignored
            scikit-learn's classifiers ask for all labels at the first batch; these do not.

        Returns
        -------
        self
        """
        learn(self._partial_fit, self, X, y=y, from_nothing=False)
        return self

    def _partial_fit(self, X: Any, y: Any) -> None:
        self._check_coding()
        if self.calibrate:
            raise ValueError(
                "calibrate=True learns from rows left out, and partial_fit keeps none: use fit, or "
                "calibrate=False."
            )
        first = not hasattr(self, "dictionaries_")
        X, present, labels = validate_batch(self, X, y, reset=first)
        known = self._learned()
        self._check_goes_on(known, present)
        new = [label for label in present.tolist() if label not in known]
        # A class's seed depends on how many came before it, not on how batches divide the rows.
        seeds = check_random_state(self.random_state).randint(
            np.iinfo(np.int32).max, size=len(known) + len(new)
        )[len(known) :]
        learners = {label: copied(learner) for label, learner in known.items()}
        dictionary = self._learner()
        asked = dictionary.get_params(deep=False)
        for learner in learners.values():
            learner.set_params(**{**asked, "random_state": learner.random_state})
        for label, seed in zip(new, seeds, strict=True):
            learners[label] = clone(dictionary).set_params(random_state=int(seed))

        def learn_class(c: int) -> None:
            learners[present.tolist()[c]].partial_fit(X[labels == c])

        if isinstance(X, RowSource):
            classes = Classes.of(labels)
            own = [learners[label] for label in present.tolist()]
            rows = [ClassRows(X, classes, c) for c in range(len(own))]
            run_routed([o._learning_batch(r) for o, r in zip(own, rows, strict=True)], X)
        else:
            machine(X).each(learn_class, range(len(present)))
        self.classes_ = present if first else np.union1d(self.classes_, present)
        self.dictionaries_ = [learners[label] for label in self.classes_.tolist()]

    @available_if(_learns_from_batches)
    def change_coordinates(self, change: Any) -> Self:
        """Bring all dictionaries to other coordinates: see ``KSVD.change_coordinates``.

        Parameters
        ----------
        change : array of shape (n_features, n_new_features)
            Row vectors of coordinates times ``change`` are the new coordinates:
            what ``KernelLinearizer.renew`` returns.

        Returns
        -------
        self
        """
        learn(self._change_coordinates, self, change, name="change", from_nothing=False)
        return self

    def _change_coordinates(self, change: Any) -> None:
        check_is_fitted(self)
        self._check_goes_on(self._learned(), self.classes_)
        learners = [copied(learner) for learner in self.dictionaries_]
        self.dictionaries_ = [learner.change_coordinates(change) for learner in learners]
        self.n_features_in_ = self.dictionaries_[0].n_features_in_
        self.__dict__.pop("feature_names_in_", None)

    def _decision_function(self, X: Any) -> Array:
        check_is_fitted(self)
        if len(self.classes_) != 2 or self._precomputed:
            return super()._decision_function(X)
        shares = first_largest(*self._shares_of_classes(self._validated(X)))
        return shares[:, 1] - shares[:, 0]

    def _scores(self, X: Array) -> Array:
        return -self._residuals(X)

    def _explained(self, X: Array) -> list[Explanation]:
        codes, residual, residuals = self._code_to_decide(X)
        energies = self._known_energies(X)
        return explain_codes(
            codes, self._owners(), self._class_labels, 0.0 - residuals, residuals=residuals,
            residual=None if energies is None else residual, energies=energies,
        )  # fmt: skip

    def _code_to_decide(self, X: Array) -> tuple[scipy.sparse.csr_array, Array, Array]:
        """Return the codes that decide, what they leave, and what each class leaves."""
        if self.scheme == "collective":
            joint, residuals = self._code_jointly(X)
            return joint.to_csr(), joint.error, residuals
        each = list(self._codes_apart(X))
        residuals = np.stack([codes.error for codes in each], axis=1)
        codes = codes_of_best([codes.to_csr() for codes in each], residuals.argmin(axis=1))
        return codes, residuals.min(axis=1), residuals

    def _dictionaries(self) -> list[Any]:
        return self.dictionaries_

    def _deciding_codes(self, X: Array) -> scipy.sparse.csr_array:
        """Return the codes of validated rows over the atoms of all dictionaries."""
        return self._code_to_decide(X)[0]

    def _known_energies(self, X: Array) -> Array | None:
        """Return k(x, x) of checked rows, of what is observed of them; None if it is not known."""
        return None if self._precomputed else self.dictionaries_[0]._energies(X)

    def _validated(self, X: Any) -> Array:
        """Return rows that can be coded, or refuse them."""
        check_is_fitted(self)
        X = validate_new(self, X)
        self._check_coding()
        if self.n_neighbors is not None and len(rows_with_missing(X)):
            raise ValueError(
                "X contains NaN, and which atoms are nearest is known of complete rows only: "
                "impute what is missing (sklearn.impute), or leave n_neighbors at None."
            )
        if getattr(self.dictionary, "alpha", None) is not None:
            check_complete(X)  # l1 codes; kernels have words of their own
        return X

    def _shares_of_classes(self, X: Array) -> tuple[Array, NDArray[np.intp]]:
        left, energies = self._residuals(X), self._known_energies(X)
        best = left.argmin(axis=1)
        if energies is not None:
            return shares_of(left, energies, X.dtype), best
        # These residuals lack k(x, x), which differences of them do not need.
        scale = max(float(self.mean_energy_), np.finfo(np.float64).tiny)
        return probabilities(-left / scale, 1.0, 0.0), best

    def _residuals(self, X: Array) -> Array:
        """Return what each class leaves of checked rows: (n, n_classes)."""
        if self.scheme == "collective":
            return self._code_jointly(X)[1]
        residuals = np.empty((len(X), len(self.classes_)), like=X)
        for c, codes in enumerate(self._codes_apart(X)):
            residuals[:, c] = codes.error
        return residuals

    def _codes_apart(self, X: Array) -> Iterator[Codes]:
        """Code rows over every class's dictionary by itself."""
        members = self._fitted(X) if self._precomputed else None
        for c, learner in enumerate(self.dictionaries_):
            yield learner._encode(X if members is None else X[:, members[c]], self.n_neighbors)

    def _make_fitted(self, bring: Bring) -> list[NDArray[np.intp]]:
        """Return the training rows of every class, of a precomputed kernel."""
        return [bring(rows) for rows in self.members_]

    def _code_jointly(self, X: Array) -> tuple[Codes, Array]:
        """Code over all classes' atoms together; return codes and what each class's part leaves."""
        learners = self.dictionaries_
        if self._precomputed:
            raise ValueError(
                "scheme='collective' needs kernel values between the classes' anchors, which "
                "kernel='precomputed' does not keep; use scheme='distributive'."
            )
        problem = type(learners[0])._joint_problem(learners, X)
        # A joint code spans all atoms: what was asked for, not what the smallest class allowed.
        asked = getattr(self.dictionary, "n_nonzero_coefs", None)
        pursuit = learners[0]._joint_pursuit(problem.n_atoms, asked)
        codes = code_over_nearest(pursuit, problem, self.n_neighbors)
        residuals = class_residuals(problem, codes, self._owners(), len(learners))
        return codes, residuals

    def _owners(self) -> NDArray[np.intp]:
        """Return the class of every atom, atoms counted through all classes."""
        sizes = [learner.n_atoms_ for learner in self.dictionaries_]
        return np.repeat(np.arange(len(sizes)), sizes)

    @property
    def _precomputed(self) -> bool:
        return is_precomputed(getattr(self.dictionary, "kernel", None))

    def _check_coding(self) -> None:
        check_choice("scheme", self.scheme, ("distributive", "collective"))
        check_flag("calibrate", self.calibrate)
        if self.n_neighbors is not None:
            check_count("n_neighbors", self.n_neighbors)

    def _check_state(self) -> None:
        """Refuse parameters and fitted attributes that contradict each other."""
        self._check_coding()
        check_random_state(self.random_state)
        self._check_calibrated()
        if not isinstance(self.dictionary, DictionaryLearner | None):
            raise TypeError(
                f"dictionary must be a learner such as KSVD(), got {self.dictionary!r}."
            )
        n_features, n_classes = check_features(self), check_labels(self, "classes_")
        widths = [n_features] * n_classes
        if self._precomputed:
            require_number(self, "mean_energy_")
            members = require_lists_of_rows(self, "members_", n_features, n_classes)
            widths = [len(rows) for rows in members]
        check_learners(self, widths)

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also of the learner: ``dictionary__n_atoms`` of the default one too.

        Parameters
        ----------
        params : keyword arguments
            Values by the parameters' names.

        Returns
        -------
        self
        """
        nested = any(name.startswith("dictionary__") for name in params)
        if nested and params.get("dictionary", self.dictionary) is None:
            params = {**params, "dictionary": KSVD()}
        return super().set_params(**params)

    def _check_goes_on(self, known: dict[Any, Any], labels: Array) -> None:
        """Refuse to go on from another kind of learner, and with labels of another kind."""
        if not known:
            return
        learner = self.dictionaries_[0]
        asked = type(self._learner())
        if type(learner) is not asked:
            raise ValueError(
                f"dictionary is {asked.__name__}(...) and the model was learned by "
                f"{type(learner).__name__}: call fit, or begin with a new model."
            )
        if (labels.dtype.kind in "biuf") != (self.classes_.dtype.kind in "biuf"):
            raise ValueError(
                f"y must have labels like those before, such as {self.classes_.tolist()[0]!r}, got "
                f"{labels.tolist()[0]!r}."
            )

    def _learner(self) -> Any:
        """Return what learns the dictionary of a class."""
        return KSVD() if self.dictionary is None else self.dictionary

    def _learned(self) -> dict[Any, Any]:
        """Return the learners of the last fit by their classes' labels."""
        if not hasattr(self, "dictionaries_"):
            return {}
        return dict(zip(self.classes_.tolist(), self.dictionaries_, strict=True))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._precomputed
        tags.input_tags.sparse = True  # dense inside
        learner = self._learner()
        # Which atoms are nearest is known of complete rows only.
        if isinstance(learner, DictionaryLearner) and self.n_neighbors is None:
            tags.input_tags.allow_nan = get_tags(learner).input_tags.allow_nan
        return tags
