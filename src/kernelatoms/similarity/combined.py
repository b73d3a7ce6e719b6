"""Kernels made of kernels that each see some columns, their values added or multiplied.

Sums (with weights from 0) and products of positive semi-definite kernels are positive
semi-definite, and gradients, estimates and bounds follow from those of the parts:

    sum        k = sum_i w_i k_i        dk / dk_i = w_i
    product    k = prod_i k_i           dk / dk_i = prod_(j != i) k_j

See docs/decisions/036-kscdl-steps.md.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from kernelatoms.engine import Array
from kernelatoms.similarity.base import Kernel
from kernelatoms.similarity.columns import (
    Part,
    as_given,
    checked_part,
    errors_of,
    fitted_part,
    key_of,
)
from kernelatoms.similarity.factory import make_kernel
from kernelatoms.similarity.gradients import Slopes, weighted_values


def _all_parts(name: str) -> property:
    """Return a property: whether it is true of all parts."""
    return property(lambda self: all(getattr(part.kernel, name) for part in self.used))


def _any_part(name: str) -> property:
    """Return a property: whether it is true of some part."""
    return property(lambda self: any(getattr(part.kernel, name) for part in self.used))


@dataclass(frozen=True, eq=False)
class CombinedKernel(Kernel):
    """The base of sums and products of kernels; subclasses define ``combine`` and ``factors``."""

    parts: Any
    _own = True

    def __post_init__(self) -> None:
        if not isinstance(self.parts, list | tuple):
            raise ValueError(
                "parts must be a list of kernels, or of pairs (kernel, columns), got "
                f"{self.parts!r}."
            )
        if not self.parts:
            raise ValueError("parts must hold at least one kernel, got none.")
        parts = []
        for place, part in enumerate(self.parts):
            with errors_of(place):
                parts.append(checked_part(part))
        object.__setattr__(self, "parts", tuple(parts))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CombinedKernel):
            return NotImplemented
        ours, others = ([kernel for kernel, _ in each.parts] for each in (self, other))
        return self._key() == other._key() and ours == others

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        return (type(self), *(key_of(columns) for _, columns in self.parts))

    # How values of the parts become one, and what follows from that

    def combine(self, values: Sequence[Array]) -> Array:
        """Return the values of the kernel, given those of its parts, which stay as they are."""
        raise NotImplementedError

    def factors(self, values: Sequence[Array]) -> Sequence[Any]:
        """Return how much the kernel changes with every part, given their values."""
        raise NotImplementedError

    @property
    def used(self) -> list[Part]:
        """The parts that count, as kernels."""
        return [
            Part(make_kernel(kernel), columns, place)
            for place, (kernel, columns) in enumerate(self.parts)
        ]

    @property
    def name(self) -> str:
        """The kind of combination, of the kernels of its parts."""
        names = dict.fromkeys(part.kernel.name for part in self.used)
        return f"{type(self).__name__}({', '.join(names)})"

    @property
    def semidefinite(self) -> bool | None:  # type: ignore[override]
        """True if all parts are; what it is itself, of one part; not known otherwise."""
        known = [part.kernel.semidefinite for part in self.used]
        return known[0] if len(known) == 1 else (all(known) or None)

    bounded = _all_parts("bounded")
    takes_stacks = _all_parts("takes_stacks")
    exact_in_float64 = _all_parts("exact_in_float64")
    has_gradient = _all_parts("has_gradient")
    takes_missing = _all_parts("takes_missing")
    non_negative = _any_part("non_negative")
    featurizes = _any_part("featurizes")

    def values(self, X: Array, Y: Array) -> Array:
        """Return k(x, y) for all pairs of rows, also in stacks where all parts take them."""
        return self.combine([part.kernel._checked(*part.both(X, Y)) for part in self.used])

    def _diag(self, X: Array) -> Array:
        return self.combine([part.kernel._diag(part.rows(X)) for part in self.used])

    def _checked(self, X: Array, Y: Array) -> Array:
        return self.values(X, Y).astype(X.dtype, copy=False)  # those of parts are checked

    def _check_rows(self, X: Array) -> None:
        for part in self.used:
            rows = part.rows(X)
            with errors_of(part.place):
                part.kernel._check_rows(rows)

    def into_domain(self, rows: Array) -> Array:
        """Return rows with the columns of every part where its kernel is defined."""
        if not self.non_negative:
            return rows
        allowed = rows.copy()
        for part in self.used:
            allowed[..., part.index(rows.shape[-1])] = part.kernel.into_domain(part.rows(allowed))
        return allowed

    # What it takes from rows

    def fitted_to(self, rows: Array) -> Self:
        """Return the kernel with parts, and their gammas, fitted to their columns of rows."""
        parts, same = list(self.parts), True
        for part in self.used:
            seen = part.rows(rows)
            given = self.parts[part.place][0]
            with errors_of(part.place):
                kernel = fitted_part(given, seen)
            if kernel is not given:
                same = False
                parts[part.place] = (kernel, part.columns)
        return self if same else dataclasses.replace(self, parts=tuple(parts))

    def with_gamma_from(self, X: Array) -> Self:
        """Return the kernel fitted to rows X."""
        return self.fitted_to(X)

    def with_gamma(self, gamma: float | str | None) -> Self:
        """Refuse: every part has a gamma of its own."""
        raise ValueError(
            f"kernel {self.name} has no gamma of its own: give one to the kernels of its parts, "
            "such as RBFKernel(gamma=0.5)."
        )

    def featurize(self, rows: Array) -> Array:
        """Return descriptors of rows (..., n_features), those of the parts side by side."""
        plan = self._featurized_parts(rows.shape[-1])
        if plan is None:
            return rows
        pieces = [
            part.kernel.featurize(part.rows(rows)) if featurizes else part.rows(rows)
            for part, (featurizes, _) in zip(self.used, plan, strict=True)
        ]
        return np.concatenate(pieces, axis=-1)

    def for_features(self, n_features: int) -> Kernel:
        """Return the same kernel of descriptors, for rows of so many features."""
        plan = self._featurized_parts(n_features)
        if plan is None:
            return self
        parts, end = [], 0
        for part, (featurizes, size) in zip(self.used, plan, strict=True):
            kernel = part.kernel.for_features(part.width(n_features)) if featurizes else part.kernel
            parts.append((as_given(kernel), slice(end, end + size)))
            end += size
        return self._of_used(parts)

    def _of_used(self, parts: list[Any]) -> Kernel:
        """Return the same combination of other parts in place of the used ones."""
        return dataclasses.replace(self, parts=tuple(parts))

    def _featurized_parts(self, n_features: int) -> list[tuple[bool, int]] | None:
        """Return which parts are featurized as rows of numbers, and all widths; None if none is."""
        plan = []
        for part in self.used:
            width = part.width(n_features)
            shape, kind = (1, width), ""
            if part.kernel.featurizes:
                with errors_of(part.place):
                    one = part.kernel.featurize(np.zeros((1, width)))
                shape, kind = one.shape, one.dtype.kind
            beside = kind == "f" and len(shape) == 2
            plan.append((beside, shape[1] if beside else width))
        return plan if any(featurizes for featurizes, _ in plan) else None

    # Gradients

    def why_no_gradient(self) -> str:
        """Return which part has none, and why."""
        part = next(part for part in self.used if not part.kernel.has_gradient)
        return f"{self.name!r}, and of it parts[{part.place}], {part.kernel.why_no_gradient()}"

    def slopes(self, X: Array, Y: Array) -> Slopes:
        """Return k(x, y), and factors a, b that are right in size.

        They are means over groups of columns that the same parts see.
        """
        if not self.has_gradient:
            return super().slopes(X, Y)
        slopes, factors = self._slopes_of_parts(X, Y)
        along_x, along_y = np.zeros_like(slopes[0].values), None
        for share, factor, own in zip(self._shares(X.shape[-1]), factors, slopes, strict=True):
            along_x += share * factor * own.along_x
            if own.along_y is not None:
                along_y = np.zeros_like(along_x) if along_y is None else along_y
                along_y += share * factor * own.along_y
        return Slopes(self.combine([own.values for own in slopes]), along_x, along_y)

    def weighted_gradient(
        self, weights: Any, X: Array, Y: Array, slopes: Slopes | None = None
    ) -> Array:
        """Return the sums over i of weights[i, j] d k(x_i, y_j) / d y_j, part by part."""
        if not self.has_gradient:
            self.slopes(X, Y)  # raises
        gradient = np.zeros_like(Y)
        own_slopes, factors = self._slopes_of_parts(X, Y)
        for part, own, factor in zip(self.used, own_slopes, factors, strict=True):
            shape = own.values.shape
            weighted = weighted_values(weights, np.broadcast_to(factor, shape))
            moved = part.kernel.weighted_gradient(weighted, *part.both(X, Y), own)
            gradient[:, part.index(Y.shape[-1])] += moved
        return gradient

    def column_sizes(self, Y: Array) -> Array:
        """Return how much steeper it is along each column than the means in ``slopes``."""
        slopes, factors = self._slopes_of_parts(Y, Y)
        means = [
            float(np.abs(factor * own.along_x).mean())
            for own, factor in zip(slopes, factors, strict=True)
        ]
        sizes = np.zeros(Y.shape[1])
        for part, mean in zip(self.used, means, strict=True):
            within = part.kernel.column_sizes(part.rows(Y))
            sizes[part.index(Y.shape[1])] += mean * (1.0 if within is None else within)
        typical = float(self._shares(Y.shape[1]) @ means)
        return np.where(sizes > 0, sizes, typical) / typical if typical > 0 else np.ones_like(sizes)

    def _slopes_of_parts(self, X: Array, Y: Array) -> tuple[list[Slopes], Sequence[Any]]:
        slopes = [part.kernel.slopes(*part.both(X, Y)) for part in self.used]
        return slopes, self.factors([own.values for own in slopes])

    def _shares(self, n_features: int) -> Array:
        """Return in which share of the groups of columns every part is."""
        groups = np.unique(self._sees(n_features), axis=1)
        return groups[:, groups.any(axis=0)].mean(axis=1)

    def _sees(self, n_features: int) -> NDArray[np.bool_]:
        """Return which part sees which column."""
        sees = np.zeros((len(self.used), n_features), bool)
        for row, part in zip(sees, self.used, strict=True):
            row[part.index(n_features)] = True
        return sees

    # Parts of rows

    def values_from_parts(self, X: Array, Y: Array) -> Array:
        """Estimate k(x, y) of rows x with missing values, each part from what it sees of them."""
        self._refuse_unseen(X)
        return self.combine([part.kernel(*part.both(X, Y)) for part in self.used])

    def diag_from_parts(self, X: Array) -> Array:
        """Estimate k(x, x) of rows x with missing values."""
        self._refuse_unseen(X)
        return self.combine([part.kernel.diag(part.rows(X)) for part in self.used])

    def _refuse_unseen(self, X: Array) -> None:
        for part in self.used:
            if np.isnan(part.rows(X)).all(axis=-1).any():
                raise ValueError(
                    f"parts[{part.place}]: X holds a row without any value in the columns of this "
                    "part: all of them are NaN. A part needs one value at least to be estimated."
                )

    # The way back

    def inversion(self, n_features: int) -> Any:
        """Return that of its kernel, if one part sees all columns; None otherwise."""
        one = self._one_of_all(n_features)
        return None if one is None else one.inversion(n_features)

    def exact_preimage(self, weights: Any, rows: Array) -> Array | None:
        """Return that of its kernel, if one part sees all columns; None otherwise."""
        one = self._one_of_all(rows.shape[1])
        return None if one is None else one.exact_preimage(weights, rows)

    def _one_of_all(self, n_features: int) -> Kernel | None:
        """Return the kernel that this is, if one part sees all columns in their order."""
        first = self.used[0]
        index = first.index(n_features)
        whole = isinstance(index, slice) and index.indices(n_features) == (0, n_features, 1)
        return first.kernel if whole and len(self.used) == 1 else None
