"""The border between what users have and what the engine works on.

A method, or a function, passes the border by one of four functions:

- ``by_rows``: its answer for a row depends on that row alone (``transform``, ``predict``);
- ``at_once``: it looks at all rows together (``score``);
- ``learn``: it sets fitted attributes (``fit``);
- ``on_cpu``: it works on the CPU alone (``explain``).

Inside, everything is an array of one machine: numpy's, or a ``DeviceArray`` for tensors that are
not on the CPU. Answers and fitted attributes leave in the form of the rows: numpy arrays for numpy
arrays, tensors of the same device for tensors. Numbers of 16 bits (float16, bfloat16) are worked on
in float32. Without tensors and a chosen device torch is never imported.

See docs/decisions/044-device-border.md.
"""

import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator
from sklearn.utils._set_output import _get_output_config

from kernelatoms.engine import is_device_array
from kernelatoms.estimators.devices import streaming
from kernelatoms.estimators.devices.conversion import (
    all_to_numpy,
    as_numpy,
    enter,
    holds_tensor,
    is_tensor,
    leave,
    matrices,
    place_of,
    rebuilt,
    torch_side,
)
from kernelatoms.estimators.devices.source_columns import note_columns
from kernelatoms.estimators.devices.use_device import chosen_device, on_the_cpu
from kernelatoms.rows import RowSource, open_rows
from kernelatoms.rows.opening import is_dask

Arguments = Mapping[str, Any]
_NONE: Arguments = MappingProxyType({})
_NO_LABELS = object()

# Dense values of sparse rows at once, in bytes.
_BLOCK = 1 << 26


def by_rows(
    work: Callable[..., Any],
    X: Any,
    owner: Any = None,
    *,
    name: str = "X",
    lines: Arguments = _NONE,
    shared: Arguments = _NONE,
    frames: bool = False,
) -> Any:
    """Return ``work(X, **lines, **shared)``, whose answer for a row depends on that row alone.

    Parameters
    ----------
    work : callable
        Works on arrays of one machine.
    X : array, sparse array or tensor of shape (n_samples, n_features)
        Rows, in the form in which the answer is returned. Sparse rows are worked on in blocks; so
        are numpy rows where a device is chosen (``use_device``).
    owner : Estimator, optional
        Whose method it is.
    name : str
        What errors call X.
    lines : mapping
        Further arguments with one entry per row, or one for all rows; None where not given.
    shared : mapping
        Further arguments that all rows have in common: arrays, models.
    frames : bool
        Whether scikit-learn makes data frames of the answer where ``set_output`` asks for them.
    """
    if isinstance(X, RowSource) or is_dask(X):
        if frames:
            _refuse_frames(owner, "are read block by block")
        return _by_blocks(work, X, owner, name=name, lines=lines, shared=shared)
    if scipy.sparse.issparse(X) and X.ndim == 2 and not lines:
        step = max(1, int(_BLOCK // max(1, X.shape[1] * (4 if X.dtype == np.float32 else 8))))
        if X.shape[0] > step:
            rows = X.tocsr()
            blocks = (rows[i : i + step] for i in range(0, X.shape[0], step))
            return _joined([by_rows(work, b, owner, name=name, shared=shared) for b in blocks])
    device = chosen_device()
    if device is None and "torch" not in sys.modules:
        return work(X, **lines, **shared)
    if (call := _Call(X, owner, name, lines, shared)).has_tensors():
        if frames:
            call.refuse_frames()
        return call.answer(work)
    if device is None or is_device_array(X):
        return work(X, **lines, **shared)
    stream = streaming.Stream(X, name, owner, device, lines, shared)
    if stream.is_possible():
        return stream.by_rows(work)
    with on_the_cpu():
        return work(X, **lines, **shared)


def at_once(
    work: Callable[..., Any],
    X: Any,
    owner: Any = None,
    *,
    name: str = "X",
    shared: Arguments = _NONE,
) -> Any:
    """Return ``work(X, **shared)``, which looks at all rows together; see ``by_rows``.

    ``work`` looks at a ``RowSource`` block by block itself.
    """
    if isinstance(X, RowSource) or is_dask(X):
        return work(open_rows(X), **shared)
    device = chosen_device()
    if device is None and "torch" not in sys.modules:
        return work(X, **shared)
    if (call := _Call(X, owner, name, _NONE, shared)).has_tensors():
        return call.answer(work)
    if device is None or is_device_array(X):
        return work(X, **shared)
    stream = streaming.Stream(X, name, owner, device, _NONE, shared)
    if stream.is_possible():
        return all_to_numpy(stream.at_once(work))
    with on_the_cpu():
        return work(X, **shared)


def learn(
    work: Callable[..., Any],
    owner: Any,
    X: Any,
    *,
    y: Any = _NO_LABELS,
    name: str = "X",
    from_nothing: bool = True,
) -> Any:
    """Return what ``work(X)`` returns, or ``work(X, y)``, which sets the owner's attributes.

    If it ends early (bad data, no memory, Ctrl-C), the estimator is as it was before. Learning
    begins without the fitted attributes of the last ``fit``, unless it is to go on from them.
    """
    with _rolled_back_on_error(owner):
        if from_nothing:
            for fitted in fitted_names(owner):
                del vars(owner)[fitted]
        X, y = collections_entered(X, y=y)
        if isinstance(X, RowSource):
            y = X.labels() if y is None else y
            return _learn_from_source(work, owner, X, y)
        return _learn_from_rows(work, owner, X, y, name)


def _learn_from_rows(work: Callable[..., Any], owner: Any, X: Any, y: Any, name: str) -> Any:
    """Return what work returns, which sets attributes, where rows or a chosen device are."""
    labels = () if y is _NO_LABELS else (as_labels(y),)
    device = chosen_device()
    if device is None and "torch" not in sys.modules:
        return work(X, *labels)
    call = _Call(X, owner, name, _NONE, _NONE)
    if call.has_tensors() or is_tensor(y):
        return call.learn(lambda rows: work(rows, *labels), y)
    if device is None or is_device_array(X):
        return work(X, *labels)
    stream = streaming.Stream(X, name, owner, device, _NONE, _NONE, learns=True)
    if stream.is_possible():
        answer = stream.learn(lambda rows: work(rows, *labels))
        _convert(owner, lambda value, _: all_to_numpy(value))
        vars(owner).pop("_fitted_states", None)
        return all_to_numpy(answer)
    with on_the_cpu():
        return work(X, *labels)


def _learn_from_source(work: Callable[..., Any], owner: Any, source: RowSource, y: Any) -> Any:
    """Return the same of a source, or of what is learned from instead: a sample, say."""
    X = owner._from_source(source)
    if source.is_distributed and X is source:  # its passes may run on devices
        answer = work(X, *(() if y is _NO_LABELS else (as_labels(y),)))
    else:
        answer = _learn_from_rows(work, owner, X, y, "X")
    if X is not source:  # a sample, whose columns have no names
        note_columns(owner, source)
    if source.row_chunks is not None:
        owner.row_chunks_ = np.array(source.row_chunks)
    return answer


def collections_entered(X: Any, **values: Any) -> tuple[Any, ...]:
    """Return a source for rows in Dask, and arrays for values per row (labels, weights) in Dask.

    Anything else is returned as it is. Values must have the chunks of the rows.
    """
    if is_dask(X):
        X = open_rows(X)
    # Those beside a Dask array are compared with its chunks.
    bring = getattr(X, "values", None) if isinstance(X, RowSource) else None
    entered = []
    for name, value in values.items():
        if is_dask(value):
            value = np.asarray(value) if bring is None else bring(value, name)
        entered.append(value)
    return X, *entered


def computed(answers: Any) -> Any:
    """Return the answers of a lazy Dask array as an array in memory."""
    from kernelatoms.rows.dask.source import compute

    return compute(answers, "answering for rows")


def refuse_source(what: str, X: Any, instead: str) -> None:
    """Refuse a source of rows where rows in memory are needed."""
    if is_dask(X):
        raise TypeError(
            f"{what} needs rows in memory, and got a Dask {type(X).__name__}: give some of them, "
            "X[:10].compute() say."
        )
    if isinstance(X, RowSource):
        raise TypeError(f"{what} needs rows in memory, and got a source of rows: {instead}.")


def block_worker(owner: Any) -> Any:
    """Return a model that answers for blocks of rows, whose columns have no names.

    It is what the model is now: answers are computed later, when blocks are read.
    """
    worker = object.__new__(type(owner))
    vars(worker).update(vars(owner))
    vars(worker).pop("feature_names_in_", None)
    return worker


def on_cpu(what: str, **values: Any) -> Any:
    """Return arguments of what works on the CPU alone: numpy arrays for tensors.

    Models may hold tensors of the CPU. Whatever is on a device is refused.
    """
    found = []
    for name, value in values.items():
        refuse_source(what, value, "give it some of them, X.take([0, 1, 2])")
        if "torch" in sys.modules:
            for path, array in matrices(name, value):
                check_is_on_cpu(what, path, array)
        found.append(as_labels(value) if name == "y" else enter(value, name))
    return found[0] if len(found) == 1 else found


def as_labels(y: Any) -> Any:
    """Return labels, or weights of rows, which are looked at on the CPU."""
    if is_tensor(y):
        return as_numpy(y, "y")
    return all_to_numpy(y) if is_device_array(y) else y


def check_is_on_cpu(what: str, name: str, array: Any) -> None:
    """Refuse an array that is not on the CPU."""
    place = place_of(array)
    if place not in ("cpu", None):
        raise ValueError(
            f"{what} works on the CPU alone, and {name} is on {place}: kernelatoms.to_device(..., "
            "'cpu') brings models and arrays there."
        )


def fitted_names(estimator: Any) -> list[str]:
    """Return the names of the fitted attributes that an estimator has."""
    return [name for name in vars(estimator) if name.endswith("_")]


@contextmanager
def _rolled_back_on_error(owner: Any) -> Iterator[None]:
    vars(owner).pop("_fitted_states", None)  # made again on first use; frees its memory for fit
    before = dict(vars(owner))
    if "state_" in before:  # the one attribute that learning changes in place
        vars(owner)["state_"] = before["state_"].copy()
    try:
        yield
    except BaseException:
        vars(owner).clear()
        vars(owner).update(before)
        raise
    # Filled in place on first use: scikit-learn wants no new attributes after fit.
    vars(owner).setdefault("_fitted_states", {})


def _convert(owner: Any, make: Callable[[Any, str], Any]) -> None:
    """Convert the fitted attributes of an estimator; its fitted state stays."""
    for name in fitted_names(owner):
        vars(owner)[name] = make(vars(owner)[name], name)


class _Call:
    """One call with tensors: what comes in, what goes out."""

    def __init__(self, X: Any, owner: Any, name: str, lines: Arguments, shared: Arguments) -> None:
        self.X, self.owner, self.name = X, owner, name
        self.lines, self.shared = lines, shared

    def has_tensors(self) -> bool:
        values = (self.X, *self.lines.values(), *self.shared.values())
        models = (self.owner, *self.shared.values())
        return any(map(is_tensor, values)) or (
            not is_device_array(self.X)
            and any(holds_tensor(model) for model in models if isinstance(model, BaseEstimator))
        )

    def refuse_frames(self) -> None:
        """Refuse tensors where data frames are asked for."""
        _refuse_frames(self.owner, "are tensors")

    def answer(self, work: Callable[..., Any]) -> Any:
        """Return the answer to a call that leaves models as they are."""
        self._check()
        with torch_side().undisturbed():
            X = enter(self.X, self.name)
            lines = {name: self._moved(value, name) for name, value in self.lines.items()}
            shared = {name: enter(value, name) for name, value in self.shared.items()}
            return self._leave(work(X, **lines, **shared))

    def learn(self, work: Callable[..., Any], y: Any) -> Any:
        """Return the answer to a call that sets fitted attributes."""
        self._check()
        with torch_side().undisturbed():
            _convert(self.owner, lambda value, name: _entered(value, name))
            answer = work(enter(self.X, self.name))

            def outside(value: Any, name: str) -> Any:
                if name != "classes_":
                    return self._leave(value)
                as_tensor = is_tensor(y) and self.owner._on_devices
                return leave(value, y.device) if as_tensor else value

            _convert(self.owner, outside)
            return self._leave(answer)

    def _leave(self, value: Any) -> Any:
        if not is_tensor(self.X) or not (self.owner is None or self.owner._on_devices):
            return value
        return leave(value, self.X.device)

    def _moved(self, value: Any, name: str) -> Any:
        """Return an argument of one entry per row where the rows are."""
        if is_tensor(value) and place_of(value) != place_of(self.X):
            value = value.to(self.X.device) if is_tensor(self.X) else value.cpu()
        return enter(value, name)

    def _check(self) -> None:
        """Refuse rows of a strange form, and what is on several devices."""
        place = place_of(self.X) or "cpu"
        if self.owner is not None and not self.owner._on_devices:
            check_is_on_cpu(type(self.owner).__name__, self.name, self.X)
        if is_tensor(self.X) and self.X.ndim > 2:
            raise ValueError(
                f"{self.name} must have rows and columns, and is of shape {tuple(self.X.shape)}: "
                f"rows are signals, so give {self.name}.flatten(0, -2)."
            )
        models = {} if self.owner is None else {type(self.owner).__name__: self.owner}
        for path, model in {**models, **self.shared}.items():
            for where, array in matrices(path, model):
                other = place_of(array)
                if other not in (place, None):
                    raise ValueError(
                        f"{self.name} is on {place} and {where} on {other}, and they must be on "
                        "one device: kernelatoms.to_device(..., device) brings a model or an array "
                        "there ('cpu' for numpy arrays)."
                    )


def _refuse_frames(owner: Any, rows_are: str) -> None:
    if _get_output_config("transform", owner)["dense"] != "default":
        raise ValueError(
            f"set_output asks for data frames, and these rows {rows_are}: give numpy arrays, or "
            'set_output(transform="default").'
        )


def _entered(value: Any, name: str) -> Any:
    """Return a fitted attribute with the engine's arrays for its tensors."""
    if name == "classes_":
        return as_labels(value)
    return enter(value, name) if is_tensor(value) else rebuilt(value, enter)


def _by_blocks(
    work: Callable[..., Any], X: Any, owner: Any, *, name: str, lines: Arguments, **given: Any
) -> Any:
    """Return the answers for the rows of a source, block by block as they are asked for.

    Those for a Dask collection are a lazy Dask array.
    """
    for line, value in lines.items():
        if np.ndim(value) or is_tensor(value):
            raise ValueError(
                f"{line} has an entry per row, and {name} is a source of rows: give the rows of "
                f"each block, and their {line}, by themselves (for block in {name}: ...)."
            )
    in_dask = is_dask(X)
    if owner is not None and getattr(work, "__self__", None) is owner:
        work = getattr(block_worker(owner), work.__name__)

    def answer(block: Any) -> Any:
        found = by_rows(work, block, owner, name=name, lines=lines, **given)
        return all_to_numpy(found) if in_dask else found

    X = open_rows(X)
    # Answers are lazy in Dask: no row is looked at.
    one: Any = np.ones((1, X.n_features), X.dtype) if in_dask else next(X.blocks(1), None)
    if one is None:
        raise ValueError(f"{name} is a source without any rows.")
    with _silent(in_dask):
        first = answer(one)
    if not hasattr(first, "ndim"):
        raise ValueError(
            f"The answer is no array, and {name} is a source of rows: ask for it block by block "
            f"(for block in {name}: ...)."
        )
    if owner is not None and name == "X":
        note_columns(owner, X, reset=False)
    if in_dask:
        from kernelatoms.rows.dask.answers import lazy_answers

        return lazy_answers(answer, [X], first[:0], task_name=work.__name__.strip("_"))
    return X.map(answer, first.shape[1] if first.ndim == 2 else None, dtype=first.dtype)


@contextmanager
def _silent(wanted: bool) -> Iterator[None]:
    with warnings.catch_warnings():
        if wanted:
            warnings.simplefilter("ignore")
        yield


def _joined(parts: list[Any]) -> Any:
    if scipy.sparse.issparse(parts[0]):
        return scipy.sparse.csr_array(scipy.sparse.vstack(parts, format="csr"))
    if isinstance(parts[0], list):
        return [one for part in parts for one in part]
    return np.concatenate(parts)
