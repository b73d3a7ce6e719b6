"""Numpy rows worked on by the device that is chosen; what comes back is numpy's.

Methods that answer row by row get their rows block by block (``engine.gpu.streaming``); those that
learn, or look at all rows together, get them whole. Either runs on a *view* of its estimator whose
arrays are the device's; what it learns is copied back. What does not learn leaves them there for
the next call (``brought``).
"""

import copy
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator, is_classifier

from kernelatoms.engine import lives_elsewhere, on_host
from kernelatoms.estimators.device_choice import VARIABLE, brought
from kernelatoms.estimators.devices import moved
from kernelatoms.estimators.model_arrays import as_array, converted, gate, matrices, rebuilt
from kernelatoms.estimators.unchanged import begins_anew, fitted_names
from kernelatoms.space.codes import as_csr, row_starts
from kernelatoms.space.memory import check_fits
from kernelatoms.space.remembered import forget

# Rows of one block, in bytes, and the share of a device's free memory that a block may take with
# what is computed of it.
_BLOCK_BYTES = 1 << 27
_SHARE = 8

_BY_ROWS = (
    "transform", "predict", "predict_proba", "decision_function", "residuals", "codes", "errors",
    "sparse_encode",
)  # fmt: skip
_LEARNING = ("fit", "partial_fit", "renew", "change_coordinates")
_WHOLE = (*_LEARNING, "score", "lasso_path", "nystrom_error")
# Arguments with an entry, or a line, a row.
_OF_ROWS = ("max_residual", "candidates", "start", "energy")
# Arguments that are looked at on the host.
_ON_HOST = ("y", "sample_weight", "alphas")

_CHOSEN = (
    f"[A device was chosen, by use_device, {VARIABLE} or --device: 'cpu' there has this done on "
    "the CPU.]"
)


def _streams() -> Any:
    from kernelatoms.engine.gpu import streaming

    return streaming


class DeviceCall:
    """One call of a method, or a function, whose numpy rows go through a device.

    Parameters
    ----------
    method : function
        What is called, of arrays of any machine.
    owner : estimator or None
        Whose method it is.
    given : dict
        All arguments by name.
    name : str
        Which of them are the rows.
    device : torch.device
        Where the work is done.
    """

    def __init__(
        self, method: Any, owner: Any, given: dict[str, Any], name: str, device: Any
    ) -> None:
        self.method, self.owner, self.given, self.name = method, owner, given, name
        self.device = device
        self.rows: Any = given.get(name)
        self.learns = method.__name__ in _LEARNING

    def is_for_later(self) -> bool:
        """Whether a method of the owner, called in turn, has its rows go through the device."""
        return self.method.__name__ == "score" and is_classifier(self.owner)

    def is_possible(self) -> bool:
        """Whether there is a way on the device: of other calls the CPU knows what is wrong."""
        called = self.method.__name__
        learner = None if self.owner is None else getattr(type(self.owner), "fit", None)
        return (
            called in (*_BY_ROWS, *_WHOLE)
            and (learner is None or hasattr(learner, "takes_tensors"))
            and type(self.rows) in (np.ndarray, np.memmap)
            and self.rows.ndim == 2
            and self.rows.size > 0
            and self.rows.dtype.kind in "biuf"
            and all(value.shape[0] == len(self.rows) for value in self._lines().values())
        )

    def run(self) -> Any:
        """Run the method on the device and return its answer as the CPU would."""
        streams = _streams()
        dtype = self.rows.dtype if self.rows.dtype in (np.float32, np.float64) else np.float64
        self.transfers = streams.Transfers(self.device, np.dtype(dtype).newbyteorder("="))
        by_rows = self.method.__name__ in _BY_ROWS
        self._make_room()
        try:
            with streams.working_on(self.device):
                return self._by_blocks() if by_rows else self._whole()
        except streams.DeviceMemoryError as error:
            raise MemoryError(
                f"{str(self.device)!r} has too little memory for {self.method.__name__}: use "
                f"fewer rows or atoms, MOD.partial_fit, or the CPU. {_CHOSEN} ({error})"
            ) from error
        except (ValueError, TypeError) as error:
            if type(error) not in (ValueError, TypeError):
                raise
            raise self._in_context(error) from error

    def _make_room(self) -> None:
        """Let go what was brought before, where this call wants the memory."""
        self.brought = brought()
        self.free = _streams().free_memory(self.device)
        # Learning needs its rows whole, and leaves other arrays behind.
        if self.learns or self.brought.n_bytes > self.free:
            self.brought.forget()
            self.free = _streams().free_memory(self.device)

    # In

    def _lines(self) -> dict[str, Any]:
        """Return the arguments, but for the rows, that have a line a row, as arrays."""
        given = {name: self.given[name] for name in _OF_ROWS if self.given.get(name) is not None}
        lines = {
            name: value.tocsr() if scipy.sparse.issparse(value) else np.asarray(value)
            for name, value in given.items()
        }
        return {name: value for name, value in lines.items() if value.ndim > 0}

    def _there(self, value: Any, name: str = "") -> Any:
        """Return an array of the host as one of the device; anything else as it is."""
        if name == "classes_" or not (
            isinstance(value, np.ndarray) or scipy.sparse.issparse(value)
        ):
            return value
        tensor = converted(value, lambda array: gate().tensor_of(array, self.device))
        return as_array(tensor.to(self.device), name) if hasattr(tensor, "to") else tensor

    def _kept(self, value: Any, name: str) -> Any:
        """Return an array of the host as one of the device, which stays there."""
        numbers = isinstance(value, np.ndarray) and value.dtype.kind in "biuf"
        if not numbers or name == "classes_":
            return self._there(value, name)
        return self.brought.array(value, self.device, lambda array: self._there(array, name))

    def _view(self, model: Any) -> Any:
        """Return a model whose arrays are the device's; those that learning writes are its own."""
        if self.learns:
            return moved(model, self._there)
        return rebuilt(model, self._kept, stands_for=self.brought.stand_in)

    def _inside(self, name: str, value: Any) -> Any:
        if isinstance(value, BaseEstimator):
            return self._view(value)
        if name != "dictionary":
            return value if name in _ON_HOST else self._there(value, name)
        return self._kept(value if scipy.sparse.issparse(value) else np.asarray(value), name)

    # Rows whole

    def _whole(self) -> Any:
        check_fits(
            float(self.rows.size) * self.transfers.dtype.itemsize,
            f"the rows of {self.name} on {str(self.device)!r}",
            f"Use MOD.partial_fit, fewer rows or the CPU. {_CHOSEN}",
            like=_streams().rest_on(self.device),
        )
        rows = self.transfers.bring(self.rows, self._step())
        given = {self.name: rows} | {
            name: self._inside(name, value)
            for name, value in self.given.items()
            if name != self.name
        }
        if self.owner is None:
            return _here(self.method(**given))
        view = self._view(self._as_learning_begins())
        answer = self.method(view, **given)
        if self.learns:
            self._keep(view)
        return self.owner if answer is view else _here(answer)

    def _as_learning_begins(self) -> Any:
        """Return the estimator, without what ``fit`` learned before and begins without."""
        if not begins_anew(self.owner, self.method):
            return self.owner
        bare = copy.copy(self.owner)
        for name in fitted_names(bare):
            del vars(bare)[name]
        return bare

    def _keep(self, view: Any) -> None:
        """Give the estimator what the view has learned."""
        learned = {name: _here(vars(view)[name]) for name in fitted_names(view)}
        before = vars(self.owner)
        for name in fitted_names(self.owner):
            del before[name]
        before.update(learned)
        forget(self.owner)

    # Rows in blocks

    def _by_blocks(self) -> Any:
        lines = self._lines()
        given = {
            name: self._inside(name, value)
            for name, value in self.given.items()
            if name != self.name and name not in lines
        }
        view = [] if self.owner is None else [self._view(self.owner)]
        answer = _Answer(len(self.rows))

        def work(block: Any, start: int, stop: int) -> Any:
            parts = {name: self._there(value[start:stop], name) for name, value in lines.items()}
            return self.method(*view, **{self.name: block, **given, **parts})

        with _said_once():
            _streams().stream(self.rows, self._step(), self.transfers, work, answer.keep)
        return answer.whole()

    def _step(self) -> int:
        """Return how many rows a block has: all blocks about as many."""
        n_rows, n_features = self.rows.shape
        itemsize = self.transfers.dtype.itemsize
        models = [self.owner, *(v for name, v in self.given.items() if name != self.name)]
        widest = max(
            (len(array) for model in models for _, array in matrices("", model)), default=0
        )
        step = min(
            _BLOCK_BYTES // (n_features * itemsize),
            self.free // _SHARE // ((n_features + widest) * itemsize),
        )
        n_blocks = -(-n_rows // max(step, 1))
        return -(-n_rows // n_blocks)

    # Errors

    def _in_context(self, error: Exception) -> Exception:
        """Return an error that says, too, which device was chosen."""
        if "NaN" in str(error) and self.rows.dtype.kind == "f":
            missing = np.isnan(self.rows).any(axis=1)
            if missing.any():
                return ValueError(
                    f"Input {self.name} contains NaN (row {int(missing.argmax())} is the first), "
                    "and rows with missing values are worked on by the CPU alone: use it, or "
                    f"impute what is missing. {_CHOSEN}"
                )
        return type(error)(f"{error} {_CHOSEN}")


@contextmanager
def _said_once() -> Iterator[None]:
    """Hold warnings back, and then give each of them once: many blocks give the same."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        yield
    known = {(one.category, str(one.message)): one for one in reversed(heard)}
    for one in reversed(known.values()):
        warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)


class _Answer:
    """An answer for all rows, put together from those for blocks: dense, in CSR, or several."""

    def __init__(self, n_rows: int) -> None:
        self.n_rows = n_rows
        self.dense: Any = None
        self.sparse: list[Any] = []
        self.several: list[_Answer] = []

    def keep(self, answer: Any, fetch: Callable[[Any], Any], start: int, stop: int) -> None:
        """Take in the answer for rows start to stop, which are the next ones."""
        if isinstance(answer, tuple):
            self.several = self.several or [_Answer(self.n_rows) for _ in answer]
            for one, part in zip(self.several, answer, strict=True):
                one.keep(part, fetch, start, stop)
        elif hasattr(answer, "indptr"):
            arrays = (answer.data, answer.indices, answer.indptr)
            self.sparse.append((*(fetch(array).copy() for array in arrays), answer.shape[1]))
        else:
            rows = fetch(answer) if lives_elsewhere(answer) else answer
            if self.dense is None:
                self.dense = np.empty((self.n_rows, *rows.shape[1:]), rows.dtype)
            self.dense[start:stop] = rows

    def whole(self) -> Any:
        """Return the answer for all."""
        if self.several:
            return tuple(one.whole() for one in self.several)
        if not self.sparse:
            return self.dense
        data, indices, starts, widths = zip(*self.sparse, strict=True)
        counts = np.concatenate([np.diff(start) for start in starts])
        return as_csr(np.concatenate(data), np.concatenate(indices), row_starts(counts), widths[0])


def _here(value: Any) -> Any:
    """Return an answer, or what was learned, with numpy arrays for those of a device."""
    if lives_elsewhere(value):
        if not hasattr(value, "indptr"):
            return on_host(value)
        data, indices, indptr = map(on_host, (value.data, value.indices, value.indptr))
        return as_csr(data, indices, indptr, value.shape[1])
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_here(part) for part in value))
    return rebuilt(value, lambda array, _: _here(array))
