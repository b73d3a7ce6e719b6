"""What ``KSADClassifier`` computes: fitted attributes from passes, and its fitted state."""

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelatoms.coding.neighbors import ApproximateNeighbors, nearest_in_space
from kernelatoms.coding.problem import CodingProblem, GivenProblem, LinearProblem
from kernelatoms.engine import Array, machine
from kernelatoms.estimators.maps.linearizer import KernelLinearizer
from kernelatoms.features.expansion import Expansion
from kernelatoms.features.linear_algebra import OVERFLOW
from kernelatoms.learning.ksad import Weights, atom_owners
from kernelatoms.learning.state import CoupledState


class KSADFitted:
    """The fitted state: atoms to compare rows with, and training codes to compare codes with."""

    def __init__(self, model: Any) -> None:
        self._kernel, self._anchors = model._kernel(), model.anchors_
        if model._precomputed:  # row numbers
            self._anchors = self._anchors[:, None]
        self._analysis_coef, self._coef = model.analysis_coef_, model.dual_coef_
        self._knows_energy, self._in_metric = not model._precomputed, model.in_metric_
        self.components = None if model._precomputed else model.components_
        self._codes, self._distance = model.codes_, model.distance
        self._seed = model._search_seed() if model.search == "approximate" else None

    def problem(self, X: Array) -> CodingProblem:
        """Return the problem of coding rows over the atoms."""
        kernel, coef = self._kernel, self._analysis_coef
        rows, anchors = X.astype(np.result_type(X, coef), copy=False), self._anchors
        if self._knows_energy:
            anchors = anchors.astype(rows.dtype, copy=False)
        with np.errstate(all="ignore"):  # what overflows is refused
            corr = Expansion(kernel, anchors, coef).project(rows)
            energy = kernel.diag(rows).astype(np.float64) if self._knows_energy else None
        if not np.isfinite(corr).all():
            raise ValueError(OVERFLOW)
        if self._in_metric:
            # There are as many atoms as coordinates: inner products have the norm of the row.
            corr = machine(corr).unit_rows(corr)
            energy = machine(corr).squared_norms(corr)
        return GivenProblem(np.eye(coef.shape[1], dtype=rows.dtype), corr, energy, assume_psd=True)

    @cached_property
    def expansion(self) -> Expansion:
        """The atoms at unit norm in feature space; in the metric they have unit norm already."""
        gram = Expansion(self._kernel, self._anchors, self._coef).gram()
        norms = np.sqrt(np.maximum(np.diagonal(gram), np.finfo(self._coef.dtype).tiny))
        return Expansion(self._kernel, self._anchors, self._coef / norms)

    def nearest(self, codes: Array, k: int) -> NDArray[np.int32]:
        """Return the k training codes nearest to each code, the nearest first."""
        codes = codes.astype(self._codes.dtype, copy=False)
        if self._seed is not None:
            return self._index.nearest(codes, k)
        if self._distance == "correlation":
            codes = machine(codes).unit_rows(codes)
        return nearest_in_space(LinearProblem(codes, self._compared, complete=True), k)

    @cached_property
    def _index(self) -> ApproximateNeighbors:
        return ApproximateNeighbors(self._codes, self._distance, random_state=self._seed)

    @cached_property
    def _compared(self) -> Array:
        if self._distance == "correlation":
            return machine(self._codes).unit_rows(self._codes)
        return self._codes


class KSADMap(NamedTuple):
    """How rows became codes: the kernel map, the metric and its inverse, classes in order."""

    linearizer: KernelLinearizer
    metric: tuple[Array, Array] | None
    order: NDArray[np.intp]
    labels: NDArray[np.intp]
    weights: Weights

    def attributes(self, state: CoupledState) -> dict[str, Any]:
        """Return the fitted attributes of a classifier that would stop there."""
        owners = atom_owners(state.codes, self.labels)
        by_class = np.argsort(owners, kind="stable")
        atoms = state.dictionary[by_class]
        codes = np.empty_like(state.codes)
        codes[self.order] = state.codes[:, by_class]
        times, linearizer = machine(atoms).times, self.linearizer
        seen = made = atoms
        if self.metric is not None:
            seen, made = (times(atoms, side) for side in self.metric)
        fitted = {
            "anchors_": linearizer.landmarks_,
            "analysis_coef_": times(linearizer.dual_coef_, seen.T),
            "dual_coef_": times(linearizer.dual_coef_, made.T),
            "atom_classes_": owners[by_class],
            "codes_": codes,
            "in_metric_": self.metric is not None,
            "labels_": self.labels[np.argsort(self.order)],
            "l1_weight_": self.weights.l1,
            "objective_": np.array(state.objective),
            "n_atoms_": len(atoms),
            "n_iter_": len(state.objective),
        }
        if hasattr(linearizer, "preimage_coef_"):
            fitted["components_"] = times(made, linearizer.preimage_coef_)
        return fitted
