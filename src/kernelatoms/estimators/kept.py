"""How ``fit`` and its passes speak with a callback that keeps the state of learning.

``Checkpoint`` is such a callback: it is in ``files``, which estimators do not know. While ``fit``
lasts, an estimator has a ``KeptRun``, and so has the learner of every class.

See docs/decisions/060-checkpoints.md.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Protocol

import numpy as np
import scipy.sparse

from kernelatoms.engine import is_device_array
from kernelatoms.estimators.devices.conversion import rebuilt, to_machine
from kernelatoms.estimators.fit_identity import array_identity, fit_identity
from kernelatoms.estimators.state_checks import check_learner_state, check_moments, require_floats
from kernelatoms.learning.moments import Moments
from kernelatoms.learning.state import CoupledState, LearnerState


@dataclass(frozen=True)
class Progress:
    """How far a run has come.

    ``n_passes`` of at most ``max_iter`` are those of this call of ``fit``; ``is_done`` says that no
    pass follows; ``coordinates`` tell apart the rows that are learned from, if they are not those
    of ``fit``.
    """

    state: Any
    n_passes: int
    max_iter: int
    is_done: bool
    coordinates: Any = None


class KeptFit(Protocol):
    """One call of ``fit`` whose state is kept: one run, or one for each class."""

    #: Seeds the fit where its ``random_state`` is None.
    seed: int

    def found(self, key: str) -> Progress | None:
        """Return how far a run had come; None if it had not begun."""

    def keep(self, key: str, progress: Progress, n_runs: int) -> None:
        """Keep how far a run has come."""

    def refuse(self, words: str) -> Exception:
        """Return an error that says why what was found cannot be gone on from."""


class StateKeeper:
    """The base of callbacks that keep the state of learning: after all others, which may end it."""

    def setup(self, estimator: Any, context: Any) -> None:
        """Refuse an estimator that does not give its state.

        Parameters
        ----------
        estimator : estimator
            What is fitted.
        context : CallbackContext
            That of the fit.
        """
        if kept_run(estimator) is None:
            raise TypeError(
                f"{type(self).__name__} keeps the state of kernelatoms's dictionary learners and "
                f"classifiers, and {type(estimator).__name__} gives none."
            )

    def teardown(self, estimator: Any, context: Any) -> None:
        """Do nothing: what was kept stays.

        Parameters
        ----------
        estimator : estimator
            What is fitted.
        context : CallbackContext
            That of the fit.
        """

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Do nothing.

        Parameters
        ----------
        estimator : estimator
            What is fitted.
        context : CallbackContext
            That of the task: the fit, or a pass.
        """

    def on_fit_task_end(self, estimator: Any, context: Any) -> bool:
        """Do nothing: the state is kept when all callbacks have been called.

        Parameters
        ----------
        estimator : estimator
            What is fitted.
        context : CallbackContext
            That of the task: the fit, or a pass.

        Returns
        -------
        False
            Learning goes on.
        """
        return False

    def _keeping(self, identity: dict[str, Any]) -> AbstractContextManager[KeptFit]:
        """Return the context of a fit; ``identity`` says what it is made of."""
        raise NotImplementedError


@contextmanager
def kept(
    estimator: Any, X: Any, y: Any = None, sample_weight: Any = None, *, goes_on: bool = False
) -> Iterator[None]:
    """Keep the state of what ``fit`` learns within this context, if a callback asks for it.

    A fit without ``random_state`` gets a seed, so that it begins as before where it goes on.
    """
    keepers = state_keepers(estimator)
    if not keepers:
        yield
        return
    if len(keepers) > 1:
        raise ValueError(f"set_callbacks: one Checkpoint is enough, got {len(keepers)}.")
    unseeded = estimator.random_state is None
    identity = fit_identity(estimator, X, y, sample_weight, goes_on=goes_on)
    with keepers[0]._keeping(identity) as fit:
        vars(estimator)["_kept"] = KeptRun(fit)
        if unseeded:
            vars(estimator)["random_state"] = fit.seed
        try:
            yield
        finally:
            vars(estimator).pop("_kept", None)
            if unseeded:
                vars(estimator)["random_state"] = None


def state_keepers(estimator: Any) -> list[StateKeeper]:
    """Return the callbacks of an estimator that keep the state of learning."""
    given = getattr(estimator, "_skl_callbacks", ())
    return [callback for callback in given if isinstance(callback, StateKeeper)]


def kept_run(estimator: Any) -> "KeptRun | None":
    """Return the run of an estimator that is being fitted, if it is kept."""
    found: KeptRun | None = vars(estimator).get("_kept")
    return found


@contextmanager
def run_of_class(classifier: Any, learner: Any, number: int, n_classes: int) -> Iterator[None]:
    """Let one class's learner have a run of its own, if the classifier's is kept."""
    run = kept_run(classifier)
    if run is None:
        yield
        return
    vars(learner)["_kept"] = run.of_class(number, n_classes)
    try:
        yield
    finally:
        vars(learner).pop("_kept", None)


class KeptRun:
    """A run whose state is kept: that of an estimator, or of one class's learner."""

    def __init__(self, fit: KeptFit, key: str = "fit", n_runs: int = 1) -> None:
        self._fit, self._key, self._n_runs = fit, key, n_runs
        self.n_passes, self.is_done, self._max_iter = 0, False, 0
        self._coordinates: Any = None

    def of_class(self, number: int, n_classes: int) -> "KeptRun":
        """Return the run of one class's learner."""
        return KeptRun(self._fit, f"class {number}", n_classes)

    def resumed(self, start: Any, max_iter: int, rows: Any) -> Any:
        """Return the state to go on from: what was kept, or the start.

        ``rows`` are those that are learned from, if they are not those of ``fit``.
        """
        self._max_iter = max_iter
        self._coordinates = None if rows is None else array_identity(rows)
        found = self._fit.found(self._key)
        if found is None:
            return start
        if found.coordinates != self._coordinates:
            raise self._fit.refuse(
                "its atoms are in other coordinates of the feature space than those computed now, "
                "which is another processor's or another version's rounding"
            )
        try:
            _check_like(start, found.state)
            passes = len(found.state.objective) - len(start.objective)
            if not 0 < found.n_passes == passes <= max_iter:
                raise ValueError(f"it has {found.n_passes} passes, and lists {passes}")
        except (ValueError, TypeError, AttributeError) as error:
            raise self._fit.refuse(f"its state does not fit: {error}") from error
        self.n_passes, self.is_done = found.n_passes, found.is_done
        if is_device_array(start.dictionary):
            return rebuilt(found.state, lambda array, _: to_machine(array, start.dictionary))
        return found.state

    def keep(self, state: Any, is_done: bool) -> None:
        """Keep the state after a pass."""
        self.n_passes += 1
        progress = Progress(state, self.n_passes, self._max_iter, is_done, self._coordinates)
        self._fit.keep(self._key, progress, self._n_runs)


def _check_like(start: Any, state: Any) -> None:
    """Refuse a state that cannot be one that this start leads to; a file may hold anything."""
    if type(state) is not type(start):
        raise TypeError(f"it is a {type(state).__name__}, not a {type(start).__name__}")
    if getattr(state.dictionary, "dtype", None) != start.dictionary.dtype:
        raise ValueError("its atoms are of another type")
    n_atoms, n_features = start.dictionary.shape
    if isinstance(state, LearnerState):
        held = SimpleNamespace(state_=state)
        check_learner_state(held, n_atoms, n_features, lambda owner: _check_sums(owner, start))
        return
    require_floats(state, "dictionary", (n_atoms, n_features))
    _check_codes(state, start)
    require_floats(SimpleNamespace(objective=np.array(state.objective)), "objective", (None,))


def _check_sums(state: LearnerState, start: LearnerState) -> None:
    n_atoms, n_features = start.dictionary.shape
    if isinstance(state.sums, Moments):
        check_moments(state, "sums", n_atoms, n_features)
    else:
        require_floats(state, "sums", (n_atoms, n_atoms))


def _check_codes(state: CoupledState, start: CoupledState) -> None:
    codes = state.codes
    if type(codes) is not type(start.codes) or codes.shape != start.codes.shape:
        raise ValueError("its codes are of other rows or atoms")
    numbers = codes.data if scipy.sparse.issparse(codes) else codes
    if numbers.dtype != start.codes.dtype or not np.isfinite(numbers).all():
        raise ValueError("its codes are no numbers, or of another type")
