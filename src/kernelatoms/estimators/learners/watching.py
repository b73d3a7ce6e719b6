"""``PassReporter``: scikit-learn's callbacks follow the passes of a learner."""

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]


class PassReporter:
    """Inform scikit-learn's callbacks (progress bars, early stopping) about every pass.

    ``attributes(state)`` are those of an estimator that would stop there; a state knows the
    objective of its passes.
    """

    def __init__(
        self,
        estimator: Any,
        X: Array,
        max_iter: int,
        attributes: Callable[[Any], dict[str, Any]],
    ) -> None:
        self._estimator, self._X, self._attributes = estimator, X, attributes
        self._context = estimator._init_callback_context(max_subtasks=max_iter)
        self._context.call_on_fit_task_begin(estimator=estimator, X=X)

    def begin_pass(self) -> None:
        """Tell that a pass starts."""
        self._pass = self._context.subcontext(task_name="pass")
        self._pass.call_on_fit_task_begin(estimator=self._estimator, X=self._X)

    def end_pass(self, state: Any) -> bool:
        """Report what a pass reached; return whether a callback asks to stop."""
        return self._pass.call_on_fit_task_end(
            estimator=self._estimator,
            X=self._X,
            metadata={"objective": state.objective[-1]},
            reconstruction_attributes=lambda: self._attributes(state),
        )

    def end(self) -> None:
        """Tell that learning has ended."""
        self._context.call_on_fit_task_end(estimator=self._estimator, X=self._X)
