"""``Estimator``: what all estimators share: one fitted state; ``Transformer``, of rows.

``fit`` sets public attributes. What later calls need beside them (Gram matrices, factors, an index
of neighbours) is one private object, the *fitted state*: made of the public attributes on first
use, kept in ``_fitted_states``, one for each device where the estimator is used. Assigning or
deleting a public attribute drops it, and so do ``fit``, copies and pickles. Editing fitted arrays
in place is undefined, as in scikit-learn.

See docs/decisions/043-fitted-state.md.
"""

from collections.abc import Callable
from typing import Any, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state

from kernelatoms.engine import Array
from kernelatoms.estimators.devices.border import by_rows, learn
from kernelatoms.estimators.devices.conversion import place_of, to_machine
from kernelatoms.estimators.devices.use_device import note_use
from kernelatoms.features.memory import gib
from kernelatoms.learning.runs import Run, TakeRequest, run
from kernelatoms.rows import ArrayRows, RowSource, draw
from kernelatoms.rows.routed import class_behind

#: Brings a fitted attribute to where the fitted state is: an array of numpy, or of a device.
Bring = Callable[[Any], Any]

Class = TypeVar("Class", bound=type)

# What is learned from a sample of a source sees at most so many rows, and so many bytes of them.
_SAMPLE_ROWS, _SAMPLE_BYTES = 100_000, 1 << 28
# The fitted states, and what ``fit`` has while it lasts and a ``Checkpoint`` is set.
_OF_THIS_PROCESS = ("_fitted_states", "_kept")


class Estimator(BaseEstimator):
    """Keeps a fitted state for each device where it is used.

    Subclasses make it (``_make_fitted``), of immutable parts and parts that are computed once.
    """

    #: Whether methods take rows of a device; else they take those of the CPU alone.
    _on_devices = False
    #: Whether ``fit`` learns from rows with missing values; else it leaves them out, or refuses.
    _learns_missing = False
    #: What learns from a source of rows where this estimator does not.
    _instead_of_sources = (
        "Learn from the source with ClassDictionaryClassifier, whose dictionaries are KSVD(), "
        "MOD(), KSAD() or KSCDL()"
    )

    def _fitted(self, X: Any = None) -> Any:
        """Return the fitted state where the rows X are; where the CPU's are without them."""
        place = place_of(X) or "cpu"
        states = self.__dict__.setdefault("_fitted_states", {})
        if place not in states:
            if place != "cpu":
                note_use(self)
            states[place] = self._make_fitted(lambda array: to_machine(array, X))
        return states[place]

    def _make_fitted(self, bring: Bring) -> Any:
        """Return the fitted state, ``bring(self.attribute_)`` for the arrays that it is made of."""
        raise NotImplementedError

    def _keep_fitted(self, state: Any, X: Any) -> None:
        """Keep the fitted state that ``fit`` has made already, where the rows X are."""
        place = place_of(X) or "cpu"
        self.__dict__["_fitted_states"] = {place: state}
        if place != "cpu":
            note_use(self)

    def _from_source(self, source: RowSource) -> Any:
        """Return what ``fit`` learns from instead of a source of rows: itself, or a sample of it.

        A subclass says how it learns; others need all rows in memory.
        """
        n_rows = source.count() if source.is_distributed else source.n_rows or 0
        n_bytes = float(n_rows) * (source.n_features or 1) * source.dtype.itemsize
        size = f" ({gib(n_bytes)})" if n_bytes else ""
        raise TypeError(
            f"{type(self).__name__} needs all rows in memory{size}, and X is a source of rows. "
            f"{self._instead_of_sources}; or give {source.how_to_collect}, if it fits in memory."
        )

    def _leave_devices(self) -> None:
        """Keep the fitted state of the CPU alone."""
        states = vars(self).get("_fitted_states", {})
        for place in [place for place in states if place != "cpu"]:
            del states[place]

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_"):
            self.__dict__.pop("_fitted_states", None)
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        if not name.startswith("_"):
            self.__dict__.pop("_fitted_states", None)
        super().__delattr__(name)

    def _set(self, **attributes: Any) -> None:
        for name, value in attributes.items():
            setattr(self, name, value)

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {name: held for name, held in state.items() if name not in _OF_THIS_PROCESS}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.pop("_fitted_states", None)
        super().__setstate__(state)


def sample_of(source: RowSource, random_state: Any) -> Array:
    """Return all rows of a source that has few, else a random sample, in their order."""
    return run(sample_rows(source, random_state))


def sample_rows(source: RowSource, random_state: Any) -> Run:
    """Return the same, as a run; all rows of an array."""
    if isinstance(source, ArrayRows):
        return source.collect()
    n_rows, most = source.count(), _largest_sample(source)
    if n_rows <= most:
        return (yield TakeRequest(source, np.arange(n_rows)))
    drawn = draw(n_rows, most, check_random_state(random_state))
    return (yield TakeRequest(source, np.sort(drawn)))


def _largest_sample(source: RowSource) -> int:
    """Return how many rows a sample has at most; all classes of a source share them."""
    n_bytes = (source.n_features or 1) * source.dtype.itemsize
    most = max(1, min(_SAMPLE_ROWS, _SAMPLE_BYTES // n_bytes))
    found = class_behind(source)
    if found is None or found[0].parent.count() <= most:
        return most
    return max(1, most // found[0].n_classes)


def unnamed(cls: Class) -> Class:
    """Have errors of Python name a base class's methods without their class.

    ``KSVD(atoms=3)`` would be an error of ``LinearLearner.__init__()``, which nobody has called.
    """
    for member in list(vars(cls).values()):
        while hasattr(member, "__qualname__") and hasattr(member, "__code__"):
            member.__qualname__ = member.__name__
            member = getattr(member, "__wrapped__", None)
    return cls


@unnamed
class Transformer(TransformerMixin, Estimator):
    """Maps rows, each by itself: ``_fit`` learns how, ``_transform`` does it."""

    #: Whether ``fit`` looks at no more of the rows than how many columns they have.
    _fits_columns_alone = False

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check parameters and training rows, and learn from these.

        Parameters
        ----------
        X : array or RowSource of shape (n_samples, n_features)
            Training rows, NaN where values are missing. Of a source of many rows, a random sample
            of 100,000 rows, or of 256 MiB if that is less.
        y : ignored

        Returns
        -------
        self
        """
        learn(self._fit, self, X)
        return self

    def transform(self, X: Any) -> Any:
        """Return what rows are mapped to.

        Parameters
        ----------
        X : array or RowSource of shape (n_samples, n_features)
            Rows, NaN where values are missing.

        Returns
        -------
        array or RowSource of shape (n_samples, n_features_out)
            Of a source of rows a source, whose blocks are computed when they are read.
        """
        return by_rows(self._transform, X, self, frames=True)

    def _from_source(self, source: RowSource) -> Any:
        if self._fits_columns_alone:
            return next(source.blocks(1))
        return sample_of(source, getattr(self, "random_state", None))

    def _fit(self, X: Any) -> Any:
        raise NotImplementedError

    def _transform(self, X: Any) -> Any:
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
