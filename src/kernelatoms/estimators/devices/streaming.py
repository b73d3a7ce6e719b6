"""Numpy rows worked on by the device that is chosen; what comes back is numpy's.

Methods that answer row by row get their rows in blocks (``engine.gpu.arrays.streaming``); those
that learn, or look at all rows together, get them whole. A model's fitted state stays on the device
for the next call, until it is needed for other things or the choice ends (``use_device``).
"""

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator

from kernelatoms.coding.codes import as_csr, row_starts
from kernelatoms.engine import is_device_array
from kernelatoms.estimators.devices.conversion import is_leaf, matrices, rebuilt, to_machine
from kernelatoms.estimators.devices.use_device import VARIABLE, forget_all
from kernelatoms.features.memory import check_fits

# Rows of one block, in bytes, and the share of a device's free memory that a block may take with
# what is computed of it.
_BLOCK_BYTES = 1 << 27
_SHARE = 8

_CHOSEN = (
    f"[A device was chosen, by use_device or {VARIABLE}: 'cpu' there has this done on the CPU.]"
)


def _streams() -> Any:
    from kernelatoms.engine.gpu.arrays import streaming

    return streaming


class Stream:
    """Numpy rows on their way through a device; arguments as those of ``by_rows``."""

    def __init__(
        self,
        X: Any,
        name: str,
        owner: Any,
        device: Any,
        lines: Mapping[str, Any],
        shared: Mapping[str, Any],
        learns: bool = False,
    ) -> None:
        self.rows, self.name, self.owner, self.device = X, name, owner, device
        self.lines, self.shared, self.learns = lines, shared, learns

    def is_possible(self) -> bool:
        """Whether there is a way on the device: of other calls the CPU knows what is wrong."""
        return (
            (self.owner is None or self.owner._on_devices)
            and type(self.rows) in (np.ndarray, np.memmap)
            and self.rows.ndim == 2
            and self.rows.size > 0
            and self.rows.dtype.kind in "biuf"
            and all(value.shape[0] == len(self.rows) for value in self._per_row().values())
        )

    def by_rows(self, work: Callable[..., Any]) -> Any:
        """Return ``work(block, **lines, **shared)`` for all rows, in blocks."""
        with self._on_device():
            per_row = self._per_row()
            whole = {name: v for name, v in self.lines.items() if name not in per_row}
            shared = {name: self._there(value) for name, value in self.shared.items()}
            answer = _Answer(len(self.rows))

            def work_on(block: Any, start: int, stop: int) -> Any:
                lines = {name: self._there(v[start:stop]) for name, v in per_row.items()}
                return work(block, **whole, **lines, **shared)

            with _said_once():
                _streams().stream(self.rows, self._step(), self.transfers, work_on, answer.keep)
            return answer.whole()

    def at_once(self, work: Callable[..., Any]) -> Any:
        """Return ``work(rows, **shared)`` with all rows on the device, where its arrays stay."""
        with self._on_device():
            check_fits(
                float(self.rows.size) * self.transfers.dtype.itemsize,
                f"the rows of {self.name} on {str(self.device)!r}",
                f"Use MOD.partial_fit, fewer rows or the CPU. {_CHOSEN}",
                like=_streams().rest_on(self.device),
            )
            rows = self.transfers.bring(self.rows, self._step())
            return work(rows, **{name: self._there(v) for name, v in self.shared.items()})

    def learn(self, work: Callable[[Any], Any]) -> Any:
        """Return ``work(rows)``, the owner's fitted attributes on the device."""
        for name in [name for name in vars(self.owner) if name.endswith("_")]:
            vars(self.owner)[name] = self._moved(vars(self.owner)[name], name)
        return self.at_once(work)

    @contextmanager
    def _on_device(self) -> Iterator[None]:
        """Work on the device; errors say that it was chosen, and what else could be done."""
        dtype = self.rows.dtype if self.rows.dtype in (np.float32, np.float64) else np.float64
        self.transfers = _streams().Transfers(self.device, np.dtype(dtype).newbyteorder("="))
        self.free = _streams().free_memory(self.device)
        # Learning needs its rows whole, and models can be copied again.
        if self.learns or self.free // _SHARE < min(self.rows.nbytes, _BLOCK_BYTES):
            forget_all()
            self.free = _streams().free_memory(self.device)
        try:
            with _streams().working_on(self.device):
                yield
        except _streams().DeviceMemoryError as error:
            raise MemoryError(
                f"{str(self.device)!r} has too little memory: use fewer rows or atoms, "
                f"MOD.partial_fit, or the CPU. {_CHOSEN} ({error})"
            ) from error
        except (ValueError, TypeError) as error:
            if type(error) not in (ValueError, TypeError):
                raise
            raise self._in_context(error) from error

    def _per_row(self) -> dict[str, Any]:
        """Return the arguments with one entry per row as arrays."""
        given = {
            name: value.tocsr() if scipy.sparse.issparse(value) else np.asarray(value)
            for name, value in self.lines.items()
            if value is not None
        }
        return {name: value for name, value in given.items() if value.ndim > 0}

    def _there(self, value: Any) -> Any:
        """Return an array of the host as one of the device; anything else as it is."""
        if isinstance(value, BaseEstimator):
            return value
        return to_machine(value, _streams().rest_on(self.device))

    def _moved(self, value: Any, name: str) -> Any:
        if name == "classes_":
            return value
        return self._there(value) if is_leaf(value) else rebuilt(value, self._moved)

    def _step(self) -> int:
        """Return how many rows a block has: all blocks about as many."""
        n_rows, n_features = self.rows.shape
        itemsize = self.transfers.dtype.itemsize
        models = [self.owner, *self.lines.values(), *self.shared.values()]
        widest = max(
            (len(array) for model in models for _, array in matrices("", model)), default=0
        )
        step = min(
            _BLOCK_BYTES // (n_features * itemsize),
            self.free // _SHARE // ((n_features + widest) * itemsize),
        )
        n_blocks = -(-n_rows // max(step, 1))
        return -(-n_rows // n_blocks)

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
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    known = {(one.category, str(one.message)): one for one in reversed(caught)}
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
            rows = fetch(answer) if is_device_array(answer) else answer
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
