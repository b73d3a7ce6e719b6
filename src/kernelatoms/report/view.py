"""How atoms and rows are drawn: the inverse path from dictionaries to features.

Atoms are directions, so only the linear part of an inverse counts: where an atom goes, less where
0 goes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.preprocessing import FunctionTransformer

from kernelatoms.report.anatomy import Anatomy, Array, as_floats
from kernelatoms.report.figures.style import signed_shades
from kernelatoms.report.page import Shades
from kernelatoms.report.words import list_words

# Up to so many features are drawn with their names; more are a curve.
_FEW_FEATURES = 30


@dataclass(frozen=True)
class View:
    """How atoms and rows are drawn: the steps undone on the way to features, and as what."""

    undone_back: tuple[Any, ...]
    undone_front: tuple[Any, ...]
    kept: tuple[Any, ...]
    shifted: bool
    image_shape: tuple[int, ...] | None
    feature_names: list[str] | None
    kernel_atoms: bool = False

    def atoms(self, atoms: Array) -> Array:
        """Return atoms, or sums of them, as features."""
        return self.rows(_undo_all(self.undone_back, atoms))

    def rows(self, before: Any) -> Array:
        """Return rows that the model saw as features."""
        return _undo_all(self.undone_front, as_floats(before)).astype(np.float64)

    def shades(self, whose: str) -> Shades | None:
        """Return the legend of images in one colour; None where none are drawn."""
        if self.image_shape is None or len(self.image_shape) > 2:
            return None
        return signed_shades(f"Shades, of {whose} largest value:")

    @property
    def preimages(self) -> bool:
        """Whether atoms are pre-images of vectors of a kernel's feature space."""
        back = self.undone_back
        return self.kernel_atoms or any(hasattr(step, "preimage_coef_") for step in back)

    @property
    def units(self) -> str:
        """What values are drawn, in words; empty where they are the features as given."""
        words = []
        if self.preimages:
            words.append(
                "The atoms live in the kernel's feature space; their pre-images, estimated by "
                "ridge regression, show which features they correspond to."
            )
        if self.kept:
            names = list_words([type(step).__name__ for step in self.kept])
            words.append(f"Values are those after {names}.")
        if self.shifted:
            words.append("Rows and atoms are drawn as differences from the centre subtracted.")
        return " ".join(words)


def check_names(names: Any, anatomy: Anatomy, n_features: int | None) -> list[str] | None:
    """Return the names of features, by default those of the data frame learned from."""
    if names is None:
        names = getattr(anatomy.steps[0], "feature_names_in_", None)
        return None if names is None else [str(name) for name in names]
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise TypeError(f"feature_names must be a list of names, got {names!r}.")
    names = [str(name) for name in names]
    if n_features is not None and len(names) != n_features:
        raise ValueError(
            f"feature_names must name each of the {n_features} features, got {len(names)} names."
        )
    return names


def make_view(
    anatomy: Anatomy,
    n_features: int | None,
    image_shape: tuple[int, ...] | None,
    feature_names: Sequence[Any] | None,
) -> View | None:
    """Return how a model's atoms can be drawn; None if there is no way back from feature space."""
    if anatomy.keeps_rows and not anatomy.is_precomputed:
        probe = np.asarray(anatomy.last.dictionary_[:16], np.float64)
    elif anatomy.learners and hasattr(anatomy.learners[0], "components_"):
        probe = np.asarray(anatomy.learners[0].components_[:16], np.float64)
    else:
        return None
    back = _trace_back(anatomy.back, probe, table=False)
    if not back.complete:
        return None
    # Features of a table are compared with each other, in the units that a scaler gave them.
    table = image_shape is None and n_features is not None and n_features <= _FEW_FEATURES
    front = _trace_back(anatomy.front, back.probe, table=table)
    width = front.probe.shape[1]
    home = front.complete and n_features in (None, width)
    names = None
    if width <= _FEW_FEATURES:
        given = feature_names if home else None
        names = [f"feature {i}" for i in range(width)] if given is None else list(map(str, given))
    return View(
        back.undone, front.undone, front.kept, front.shifted, image_shape if home else None, names,
        anatomy.kernel_atoms,
    )  # fmt: skip


@dataclass(frozen=True)
class _Trace:
    """A way back through some steps, the last one first, tried out on some rows."""

    undone: tuple[Any, ...]
    kept: tuple[Any, ...]
    probe: Array
    shifted: bool
    complete: bool


def _trace_back(steps: Sequence[Any], probe: Array, *, table: bool) -> _Trace:
    """Undo what can be undone; stop at a step that cannot be and that changed the columns."""
    undone: list[Any] = []
    kept: list[Any] = []
    shifted = False
    for i, step in reversed(list(enumerate(steps))):
        found = None if table and _is_scaler(step, probe.shape[1]) else _undo(step, probe)
        if found is not None:
            undone.append(step)
            probe, origin = found
            shifted |= bool(np.any(np.abs(origin) > 1e-9 * (np.abs(probe).max() or 1)))
            continue
        kept.insert(0, step)
        if getattr(step, "n_features_in_", None) != probe.shape[1]:
            return _Trace(tuple(undone), (*steps[:i], *kept), probe, shifted, complete=False)
    return _Trace(tuple(undone), tuple(kept), probe, shifted, complete=True)


def _undo(step: Any, rows: Array) -> tuple[Array, Array] | None:
    """Return (rows before a step less where 0 was, where 0 was); None without affine inverse."""
    if isinstance(step, FunctionTransformer) and step.func and not step.inverse_func:
        return None
    if not hasattr(step, "inverse_transform"):
        return None
    stack = np.vstack([np.zeros_like(rows[:1]), rows, 2 * rows])
    try:
        with np.errstate(all="ignore"):
            result = np.asarray(_back(step, stack), np.float64)
    except (TypeError, ValueError, NotImplementedError):
        # An imputer without indicators and a precomputed kernel have the method, but no inverse.
        return None
    origin, once, twice = np.split(result, [1, 1 + len(rows)])
    once, twice = once - origin, twice - origin
    size = float(np.abs(twice).max())
    # Sums of atoms must stay sums: an inverse that bends them (of a logarithm, say) is none.
    straight = np.isfinite(size) and np.allclose(twice, 2 * once, rtol=1e-3, atol=1e-5 * size)
    return (once, origin[0]) if straight else None


def _back(step: Any, rows: Array) -> Array:
    """Return rows before a step; before a kernel map by its linear way back, since atoms add up."""
    if hasattr(step, "preimage_coef_"):
        return rows @ step.preimage_coef_
    return step.inverse_transform(rows)


def _undo_all(steps: Sequence[Any], rows: Array) -> Array:
    for step in steps:
        result = np.asarray(_back(step, np.vstack([np.zeros_like(rows[:1]), rows])))
        rows = result[1:] - result[0]
    return rows


def _is_scaler(step: Any, width: int) -> bool:
    """Return whether a step does no more than shift and scale every column by itself."""
    found = _undo(step, np.eye(width))
    if found is None or found[0].shape != (width, width):
        return False
    return bool(np.array_equal(found[0], np.diag(np.diagonal(found[0]))))
