"""Checks of fitted attributes, which may come from a file and so be anything.

Loops are compiled for arrays of certain types and shapes, and look at neither. An estimator's
``_check_state`` therefore says what it holds, attribute by attribute, in terms of these checks; a
model is asked before it is written and when it is read. Each error names the attribute, what was
wrong and what would be right.
"""

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np

from kernelatoms.engine import Array
from kernelatoms.learning.moments import Moments
from kernelatoms.learning.state import LearnerState
from kernelatoms.limits import MODEL_COLUMNS


def held(owner: Any, name: str) -> Any:
    """Return an attribute that must be there."""
    if name not in vars(owner):
        raise ValueError(f"{_called(owner, name)} is missing.")
    return vars(owner)[name]


def require_count(owner: Any, name: str, *, low: int = 1, high: int | None = None) -> int:
    """Return a whole number between two bounds."""
    value = held(owner, name)
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{_called(owner, name)} must be a whole number, got {_shown(value)}.")
    if value < low or (high is not None and value > high):
        span = f"at least {low}" + (f" and at most {high}" if high is not None else "")
        raise ValueError(f"{_called(owner, name)} must be {span}, got {value}.")
    return int(value)


def require_number(owner: Any, name: str) -> float:
    """Return a finite number."""
    value = held(owner, name)
    if isinstance(value, bool) or not isinstance(value, Real) or not np.isfinite(float(value)):
        raise TypeError(f"{_called(owner, name)} must be a finite number, got {_shown(value)}.")
    return float(value)


def require_floats(
    owner: Any,
    name: str,
    shape: tuple[int | None, ...],
    *,
    low: float | None = None,
    missing: bool = False,
) -> Array:
    """Return an array of float64 or float32; None in a shape means any length.

    Values are finite, or with ``missing`` perhaps NaN.
    """
    value = _array(owner, name, held(owner, name), shape, (np.float64, np.float32))
    if np.isinf(value).any() or (not missing and np.isnan(value).any()):
        raise ValueError(f"{_called(owner, name)} holds {'' if missing else 'NaN or '}infinity.")
    if low is not None and value.min(initial=low) < low:
        raise ValueError(f"{_called(owner, name)} must be at least {low:g}, got {value.min():g}.")
    return value


def require_rows(owner: Any, name: str, n_rows: int, length: int | None = None) -> Array:
    """Return numbers of rows, each below ``n_rows``."""
    return _rows(owner, name, held(owner, name), n_rows, length)


def require_lists_of_rows(owner: Any, name: str, n_rows: int, count: int) -> list[Array]:
    """Return a list of so many arrays of row numbers."""
    value = held(owner, name)
    if not isinstance(value, list) or len(value) != count:
        raise ValueError(f"{_called(owner, name)} must be a list of {count} arrays.")
    return [_rows(owner, f"{name}[{i}]", rows, n_rows, None) for i, rows in enumerate(value)]


def check_features(owner: Any) -> int:
    """Check what scikit-learn keeps of the features; return their number.

    It makes a name for each of them when asked, so that the number alone could fill the memory.
    """
    n_features = require_count(owner, "n_features_in_", high=MODEL_COLUMNS)
    names = vars(owner).get("feature_names_in_")
    if names is not None:
        _array(owner, "feature_names_in_", names, (n_features,), (object,))
        if not all(isinstance(name, str) for name in names):
            raise TypeError(f"{_called(owner, 'feature_names_in_')} must hold texts.")
    return n_features


def check_passes(learner: Any) -> None:
    """Check what the learner says of its passes."""
    n_passes = require_count(learner, "n_iter_", low=0)
    require_floats(learner, "objective_", (n_passes,))
    if "best_pass_" in vars(learner):  # there is none where the objective never rises
        require_count(learner, "best_pass_", low=-1, high=n_passes - 1)


def check_learner_state(learner: Any, n_atoms: int, n_features: int, sums: Any) -> None:
    """Check where learning stopped, and its sums by ``sums(state)``."""
    state = held(learner, "state_")
    if type(state) is not LearnerState:
        raise TypeError(
            f"{_called(learner, 'state_')} must be a LearnerState, got {_shown(state)}."
        )
    for name in ("dictionary", "best"):
        require_floats(state, name, (n_atoms, n_features))
    if state.dictionary.dtype != state.best.dtype:
        raise ValueError("LearnerState.dictionary and best must be of one type.")
    for name in ("use", "signals_seen", "batches_seen"):
        require_floats(state, name, (n_atoms,), low=0)
    require_count(state, "n_batches", low=0)
    objective = held(state, "objective")
    if not isinstance(objective, list) or not all(_is_finite(value) for value in objective):
        raise TypeError("LearnerState.objective must be a list of finite numbers.")
    require_count(state, "best_pass", low=-1, high=len(objective) - 1)
    if not isinstance(held(state, "random_state"), np.random.RandomState):
        raise TypeError("LearnerState.random_state must be a RandomState.")
    if not isinstance(held(state, "data"), tuple | None):
        raise TypeError("LearnerState.data must be a tuple or None.")
    if held(state, "sums") is not None:
        sums(state)
    if state.pending is not None:
        _check_pending(state.pending, n_atoms, n_features)


def _check_pending(pending: Any, n_atoms: int, n_features: int) -> None:
    """Check a step that a pass is to judge: see ``learning.descent``."""
    try:
        atoms, _, gradient, curvature, uses, reached, enough, n_tried = pending
        numbers = [*reached, enough, n_tried]
        shapes = [part.shape for part in (atoms, gradient, curvature, uses)]
    except (TypeError, ValueError, AttributeError) as error:
        raise TypeError("LearnerState.pending must be None or of a step.") from error
    square, wide = (n_atoms, n_atoms), (n_atoms, n_features)
    if shapes != [wide, wide, square, (n_atoms,)] or not all(map(_is_finite, numbers)):
        raise ValueError("LearnerState.pending must be of a step of these atoms.")


def check_moments(owner: Any, name: str, n_atoms: int, n_features: int) -> None:
    """Check sums over codes and rows."""
    moments = held(owner, name)
    if type(moments) is not Moments:
        raise TypeError(f"{_called(owner, name)} must be Moments, got {_shown(moments)}.")
    require_floats(moments, "gram", (n_atoms, n_atoms))
    require_floats(moments, "cross", (n_atoms, n_features))
    require_number(moments, "energy")
    require_number(moments, "l1_norm")
    if moments.missing is not None:
        require_floats(moments, "missing", (n_features,), low=0)


def check_labels(owner: Any, name: str) -> int:
    """Check the names of classes; return how many there are."""
    labels = held(owner, name)
    if type(labels) is not np.ndarray or labels.ndim != 1 or labels.dtype.kind not in "biufUSO":
        raise TypeError(f"{_called(owner, name)} must be a list of labels, got {_shown(labels)}.")
    if labels.dtype.kind == "O" and not all(
        isinstance(label, str | int | float | np.generic) for label in labels
    ):
        raise TypeError(f"{_called(owner, name)} must hold texts or numbers.")
    if len(labels) < 2:
        raise ValueError(f"{_called(owner, name)} must hold at least two classes.")
    if not holds_letters(labels):
        raise ValueError(f"{_called(owner, name)} holds what is no letter.")
    return len(labels)


def holds_letters(texts: Array) -> bool:
    """Whether all texts in an array can be written; a file may put any numbers for letters."""
    if texts.dtype.kind == "O":
        return all(
            text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)
            for text in texts.ravel().tolist()
            if isinstance(text, str)
        )
    if texts.dtype.kind != "U" or not texts.size:
        return True
    # Never all as objects of Python's: a small file holds very many.
    plain = np.ascontiguousarray(texts)
    letters = plain.view(np.dtype(np.uint32).newbyteorder(plain.dtype.byteorder))
    return not ((letters > 0x10FFFF) | ((letters >= 0xD800) & (letters <= 0xDFFF))).any()


def _rows(owner: Any, name: str, value: Any, n_rows: int, length: int | None) -> Array:
    rows = _array(owner, name, value, (length,), (np.int64, np.int32, np.uint64, np.uint32))
    if len(rows) and (rows.min() < 0 or rows.max() >= n_rows):
        raise ValueError(f"{_called(owner, name)} must hold row numbers 0..{n_rows - 1}.")
    return rows


def _array(
    owner: Any, name: str, value: Any, shape: tuple[int | None, ...], dtypes: Sequence[Any]
) -> Array:
    # Subclasses may mean anything by their values: masked arrays, say.
    right = type(value) is np.ndarray and value.dtype in [np.dtype(kind) for kind in dtypes]
    if not right or len(value.shape) != len(shape) or any(
        wanted not in (None, side) for wanted, side in zip(shape, value.shape, strict=True)
    ):  # fmt: skip
        sides = ", ".join("any" if side is None else str(side) for side in shape)
        kinds = " or ".join(np.dtype(kind).name for kind in dtypes[:2])
        raise ValueError(
            f"{_called(owner, name)} must be an array of {kinds} of shape ({sides}), got "
            f"{_shown(value)}."
        )
    return value


def _is_finite(value: Any) -> bool:
    return isinstance(value, Real) and bool(np.isfinite(float(value)))


def _called(owner: Any, name: str) -> str:
    return f"{type(owner).__name__}.{name}"


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype} of shape {value.shape}"
    text = repr(value)
    return text if len(text) <= 60 else f"a {type(value).__name__}"
