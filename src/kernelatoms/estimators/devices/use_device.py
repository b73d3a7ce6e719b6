"""``use_device``: which device numpy rows go through, if any."""

import os
import re
import sys
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from kernelatoms.engine import is_device_array
from kernelatoms.engine.cpu import threads

VARIABLE = "KERNELATOMS_DEVICE"


@dataclass(frozen=True)
class _Choice:
    """The name of a device, "" where there is to be none; and the models used there since."""

    name: str
    users: "weakref.WeakSet[Any]" = field(default_factory=weakref.WeakSet)


# Without a choice, the environment variable counts.
_by_variable = _Choice("")
_chosen: ContextVar[_Choice | None] = ContextVar("chosen", default=None)


@contextmanager
def use_device(device: Any) -> Iterator[None]:
    """Have numpy rows worked on by a device, as long as the context lasts.

    What goes in and comes out are numpy arrays, as ever: rows are copied to the device block by
    block, so that they may be more than fit in its memory; ``fit`` needs them there whole. What a
    model has there stays until the context ends, the model changes or something is fitted. The
    environment variable ``KERNELATOMS_DEVICE`` chooses a device for a whole process, and
    ``--device`` for a command; this context wins.

    Parameters
    ----------
    device : str or torch.device
        "cuda", "cuda:1" and the like, which need torch (``pip install kernelatoms[gpu]``); "cpu"
        for the CPU.

    Yields
    ------
    None

    See Also
    --------
    to_device : A model, or an array, on another device: no copies back and forth.

    Notes
    -----
    ``sparse_encode``, ``lasso_path``, ``SparseCoder``, ``KSVD``, ``MOD``, ``KernelKSVD``,
    ``KernelMOD``, ``KernelLinearizer``, ``RowNormalizer``, ``ClassDictionaryClassifier``,
    ``CRCClassifier`` and ``SRCClassifier`` work on the device, alone and in pipelines. Everything
    else is computed on the CPU, and so are data frames, lists and sparse rows. What these methods
    do on the CPU alone (rows with missing values, some kernels) is refused while a device is
    chosen. Other threads and processes take their choice from ``KERNELATOMS_DEVICE``.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelatoms
    >>> X = np.random.default_rng(0).normal(size=(100, 8))
    >>> with kernelatoms.use_device("cpu"):  # "cuda" where there is a card
    ...     ksvd = kernelatoms.KSVD(n_atoms=16, random_state=0).fit(X)
    ...     codes = ksvd.transform(X)
    >>> type(ksvd.components_).__name__, codes.shape
    ('ndarray', (100, 16))
    """
    name = str(device).strip()
    _find(name)
    choice = _Choice(name)
    token = _chosen.set(choice)
    try:
        yield
    finally:
        forget_all()
        _chosen.reset(token)


def chosen_device() -> Any:
    """Return the device that numpy rows go through, or None: for all within work of the CPU."""
    if threads.is_pool_at_work():
        return None
    choice = _chosen.get()
    if choice is not None:
        return _find(choice.name) if choice.name else None
    name = os.environ.get(VARIABLE, "").strip()
    return _find(name, f"{VARIABLE}={name}: ") if name else None


def on_workers_device(rows: Any) -> Any:
    """Return rows of a chunk on the device that is chosen where a task works on them.

    As they are where none is, and outside of tasks: what is drawn from chunks stays on the CPU.
    """
    device = chosen_device() if threads.is_at_work() else None
    if device is None or is_device_array(rows):
        return rows
    from kernelatoms.engine.gpu.arrays.streaming import Transfers

    return Transfers(device, rows.dtype).bring(rows, len(rows))


def note_use(model: Any) -> None:
    """Note that a model has a fitted state on a device."""
    _current().users.add(model)


def forget_all() -> None:
    """Let the fitted states go that models have on the device that is chosen."""
    users = _current().users
    for model in list(users):
        model._leave_devices()
    users.clear()


def _current() -> _Choice:
    return _chosen.get() or _by_variable


@contextmanager
def on_the_cpu() -> Iterator[None]:
    """Choose no device for what a call on the CPU calls in turn."""
    token = _chosen.set(_Choice(""))
    try:
        yield
    finally:
        _chosen.reset(token)


def _find(name: str, said: str = "") -> Any:
    """Return a device by its name, None for the CPU; errors begin with how it was asked for."""
    if not re.fullmatch(r"cpu|cuda(:\d+)?", name):
        raise ValueError(f"{said}device must be 'cpu', 'cuda', 'cuda:1', ..., got {name!r}.")
    if name == "cpu" and "kernelatoms.engine.gpu" not in sys.modules:
        return None
    try:
        from kernelatoms.engine.gpu.arrays.streaming import card

        return card(name)
    except ImportError as error:
        raise ValueError(
            f"{said}device={name!r} needs torch, which is not installed: pip install "
            "kernelatoms[gpu]; 'cpu' needs nothing."
        ) from error
    except ValueError as error:
        raise ValueError(f"{said}{error}") from error
