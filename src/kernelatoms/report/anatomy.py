"""A fitted model taken apart: its steps, where its atoms live, and the way back to features.

A pipeline's rows pass through three stretches: transformers before the kernel map (``front``; what
comes out is what the model "sees"), the kernel map and what follows it (``back``), and the last
step, which learned the dictionaries. Atoms are directions, so on the way back only the linear part
of an inverse counts: where an atom goes, less where 0 goes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from kernelatoms import (
    KSCDL,
    ClassDictionaryClassifier,
    CRCClassifier,
    DKSVDClassifier,
    FDDLClassifier,
    KernelLinearizer,
    KSADClassifier,
    LCKSVDClassifier,
    SparseCoder,
    SRCClassifier,
)
from kernelatoms.report.figures.style import signed_shades
from kernelatoms.report.page import Shades
from kernelatoms.report.words import list_words

Array = NDArray[Any]

# One dictionary whose atoms belong to classes.
LABELLED = (DKSVDClassifier, LCKSVDClassifier, FDDLClassifier, KSADClassifier)
# What a model may end in, beside learners of dictionaries.
OTHER_MODELS = (
    ClassDictionaryClassifier, CRCClassifier, SRCClassifier, KernelLinearizer, *LABELLED,
)  # fmt: skip
# Up to so many features are read by their names; more are a curve.
FEW_FEATURES = 30


@dataclass(frozen=True)
class Anatomy:
    """The fitted steps of a model, in the order that rows pass through them."""

    steps: tuple[Any, ...]

    @property
    def last(self) -> Any:
        """The step of the library that the model ends in."""
        return self.steps[-1]

    @property
    def _split(self) -> int:
        maps = (i for i, step in enumerate(self.steps) if isinstance(step, KernelLinearizer))
        return next(maps, len(self.steps) - 1)

    @property
    def front(self) -> tuple[Any, ...]:
        """The transformers before the kernel map, or before the last step if there is no map."""
        return self.steps[: self._split]

    @property
    def back(self) -> tuple[Any, ...]:
        """The kernel map and what follows it, without the last step."""
        return self.steps[self._split : -1]

    @property
    def linearizer(self) -> KernelLinearizer | None:
        """The kernel map."""
        step = self.steps[self._split]
        return step if isinstance(step, KernelLinearizer) else None

    @property
    def is_classifier(self) -> bool:
        """Whether the model answers with classes."""
        kinds = isinstance(self.last, ClassDictionaryClassifier), self.keeps_rows, self.labelled
        return any(kinds)

    @property
    def keeps_rows(self) -> bool:
        """Whether the training rows are the dictionary."""
        return isinstance(self.last, CRCClassifier | SRCClassifier)

    @property
    def labelled(self) -> bool:
        """Whether one dictionary was learned with the labels: its atoms belong to classes."""
        return isinstance(self.last, LABELLED)

    @property
    def codes_jointly(self) -> bool:
        """Whether rows are coded once, over the dictionaries of all classes together."""
        return getattr(self.last, "scheme", None) == "collective"

    @property
    def learners(self) -> list[Any]:
        """The fitted dictionaries: one a class, one, or none."""
        if isinstance(self.last, ClassDictionaryClassifier):
            return list(self.last.dictionaries_)
        return [self.last] if self.labelled or _is_dictionary(self.last) else []

    @property
    def atoms_by_class(self) -> list[tuple[int, NDArray[np.intp]]]:
        """Which dictionary, and which of its atoms, for every class; or for the only one."""
        if self.labelled:
            owners = self.last.atom_classes_
            return [(0, np.flatnonzero(owners == c)) for c in range(len(self.classes))]
        return [(c, np.arange(learner.n_atoms_)) for c, learner in enumerate(self.learners)]

    @property
    def in_feature_space(self) -> bool:
        """Whether dictionaries live in a kernel's feature space."""
        return self.linearizer is not None or self.kernel_atoms or self.row_atoms

    @property
    def row_atoms(self) -> bool:
        """Whether atoms are rows that a kernel compares with others: places, not directions."""
        return any(isinstance(learner, KSCDL) for learner in self.learners)

    @property
    def kernel_atoms(self) -> bool:
        """Whether atoms themselves are vectors of a feature space, known through anchors."""
        return any(hasattr(learner, "dual_coef_") for learner in self.learners)

    @property
    def is_precomputed(self) -> bool:
        """Whether the last step is given kernel values instead of rows."""
        kernel = getattr(self.last, "kernel", None)
        return isinstance(kernel, str) and kernel == "precomputed"

    @property
    def classes(self) -> list[Any]:
        """The labels that the model knows, none if it does not classify."""
        return self.last.classes_.tolist() if self.is_classifier else []

    @property
    def n_features(self) -> int | None:
        """How many columns the model takes, where its first step says so."""
        return getattr(self.steps[0], "n_features_in_", None)

    def see(self, X: Any) -> Any:
        """Return rows as they come to the kernel map, or to the dictionaries."""
        for step in self.front:
            X = step.transform(X)
        return X

    def enter(self, seen: Any) -> Array:
        """Return rows that were seen as they come to the dictionaries."""
        for step in self.back:
            seen = step.transform(seen)
        return as_floats(seen)


def _is_dictionary(step: Any) -> bool:
    """Return whether a step is a learner of the library, or one written like those."""
    return hasattr(step, "n_atoms") and hasattr(step, "transform")


def _is_ours(step: Any) -> bool:
    return _is_dictionary(step) or isinstance(step, OTHER_MODELS)


def dissect(model: Any) -> Anatomy:
    """Return the parts of a fitted model, or say why it cannot be reported on."""
    steps = tuple(_flatten(model))
    if not steps or not _is_ours(steps[-1]):
        hint = ""
        if hasattr(model, "best_estimator_"):
            hint = " A search holds its model in best_estimator_: pass that."
        what = f"a Pipeline that ends in {type(steps[-1]).__name__}" if len(steps) > 1 else model
        if isinstance(model, SparseCoder):
            what = "SparseCoder, which learned nothing"
        raise TypeError(
            "model must be a fitted KSVD, MOD, KernelKSVD, KernelMOD, KSAD, KSCDL, "
            "ClassDictionaryClassifier, DKSVDClassifier, LCKSVDClassifier, FDDLClassifier, "
            "KSADClassifier, CRCClassifier, SRCClassifier or KernelLinearizer, or a Pipeline that "
            "ends in one, got "
            f"{what!r}.{hint}"
        )
    for step in steps:
        if _is_ours(step):
            try:
                check_is_fitted(step)
            except NotFittedError as error:
                raise NotFittedError(
                    f"model must be fitted before it is reported on, but its "
                    f"{type(step).__name__} is not; call fit first."
                ) from error
    return Anatomy(steps)


def _flatten(model: Any) -> list[Any]:
    if not isinstance(model, Pipeline):
        return [model]
    steps = (step for _, step in model.steps if step is not None and step != "passthrough")
    return [inner for step in steps for inner in _flatten(step)]


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

    def rows(self, seen: Any) -> Array:
        """Return rows that the model saw as features."""
        return _undo_all(self.undone_front, as_floats(seen)).astype(np.float64)

    def shades(self, whose: str) -> Shades | None:
        """Return the legend of images in one colour; None where none are drawn."""
        if self.image_shape is None or len(self.image_shape) > 2:
            return None
        return signed_shades(f"Shades, of {whose} largest value:")

    @property
    def preimages(self) -> bool:
        """Whether atoms were brought back from a kernel's feature space."""
        return self.kernel_atoms or any(
            isinstance(step, KernelLinearizer) for step in self.undone_back
        )

    @property
    def units(self) -> str:
        """What values are drawn, in words; empty where they are the features as given."""
        words = []
        if self.preimages:
            words.append(
                "The atoms live in the kernel's feature space; their pre-images, estimated by "
                "ridge regression, show about which features they stand for."
            )
        if self.kept:
            names = list_words([type(step).__name__ for step in self.kept])
            words.append(f"Values are those after {names}.")
        if self.shifted:
            words.append("Rows and atoms are drawn as differences from the centre subtracted.")
        return " ".join(words)


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
    table = image_shape is None and n_features is not None and n_features <= FEW_FEATURES
    front = _trace_back(anatomy.front, back.probe, table=table)
    width = front.probe.shape[1]
    home = front.complete and n_features in (None, width)
    names = None
    if width <= FEW_FEATURES:
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
    """Return (rows before a step less where 0 was, where 0 was); None without affine inverse.

    Sums of atoms must stay sums: an inverse that bends them (of a logarithm, say) is none.
    """
    one_way = (
        isinstance(step, FunctionTransformer)
        and step.func is not None
        and step.inverse_func is None
    )
    if one_way or not hasattr(step, "inverse_transform"):
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


def as_floats(rows: Any) -> Array:
    """Return rows as the dictionaries take them; they refuse missing values where they cannot."""
    return check_array(
        rows, dtype=[np.float64, np.float32], order="C", input_name="X",
        ensure_all_finite="allow-nan",
    )  # fmt: skip
