"""Estimates for rows with missing values: entries from the nearest rows, and kernel coordinates.

``fill_from_nearest`` estimates entries. With zeros for missing values, x and y the rows, and p and
q marking the entries that they have, the squared difference over common entries and their number
are

    sum_i p_i y_i^2 - 2 x_i y_i + q_i x_i^2   and   sum_i p_i q_i,

four matrix products. The distance is the first over the second, computed in float32.

``consistent_estimates`` estimates coordinates. Estimated kernel values k need not be inner products
of any vector with the anchors: coordinates f_i = (V'k)_i / sqrt(s_i) divide their errors by the
eigenvalues s_i of the anchors' kernel matrix. Where |f|^2 is above the estimate of k(x, x), ridge
regression shrinks the least certain coordinates most, with the smallest lambda such that

    sum_i (f_i s_i / (s_i + lambda))^2 <= k(x, x).

See docs/decisions/031-missing-values-in-signals.md and docs/decisions/047-nearest-imputation.md.
"""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
from numpy.typing import NDArray

from kernelatoms.engine import Array, machine
from kernelatoms.similarity import Kernel
from kernelatoms.similarity.missing import rows_with_missing

# Rows compared at once: enough for BLAS, and a few MiB of distances.
_ROWS, _KEPT = 256, 1024


def fill_from_nearest(rows: Array, kept: Array, n_neighbors: int) -> Array:
    """Return rows with missing values replaced by the means of their nearest rows.

    - ``rows``, ``kept``: rows to fill and to fill from, of a common scale, NaN for missing values.
    - ``n_neighbors``: of so many nearest rows, those that have an entry give it. Rows without an
      entry in common are no neighbours.
    - result: 0 where no neighbour has the entry.
    """
    filled = np.empty_like(rows)
    # Complete rows first: of these, every row has as many entries in common as it has itself.
    lacking = np.isnan(kept).any(axis=1)
    kept, n_complete = kept[np.argsort(lacking, kind="stable")], np.count_nonzero(~lacking)
    theirs = np.nan_to_num(kept, nan=0.0)
    has = (~np.isnan(kept)).astype(rows.dtype)
    compared = np.hstack([theirs**2, theirs, has]).astype(np.float32)
    has_single = has.astype(np.float32)
    engine = machine(rows)

    def work(start: int, stop: int) -> None:
        block = rows[start:stop]
        gone = np.isnan(block)
        own, known = np.where(gone, 0, block), (~gone).astype(np.float32)
        count = np.maximum(known.sum(axis=1, keepdims=True), 1)
        comparing = (np.hstack([known, -2 * own, own**2]) / count).astype(np.float32)
        nearest = engine.TopK.empty(len(block), n_neighbors, comparing.dtype)
        for first in range(0, len(kept), _KEPT):
            part = slice(first, first + _KEPT)
            far = comparing @ compared[part].T
            if part.stop > n_complete:
                common = known @ has_single[part].T
                far *= count / np.maximum(common, 1)
                far[common == 0] = np.inf  # never kept
            nearest.push(far, first)
        nearest.indices[gone.all(axis=1)] = -1
        chosen = _choice(nearest.indices, len(kept), rows.dtype)
        means = (chosen @ theirs) / np.maximum(chosen @ has, 1)
        filled[start:stop] = np.where(gone, means, block)

    engine.for_rows(len(rows), _ROWS, work)
    return filled


def _choice(indices: NDArray[np.int32], n_kept: int, dtype: Any) -> Any:
    """Return a sparse array with a 1 for every neighbour; -1 is none."""
    found = indices >= 0
    ends = np.concatenate([[0], np.cumsum(found.sum(axis=1))])
    columns = indices[found]
    shape = (len(indices), n_kept)
    return scipy.sparse.csr_array((np.ones(len(columns), dtype), columns, ends), shape=shape)


# Squared norms this many times k(x, x) are far from consistent; a tenth of such rows is many.
_FAR_ABOVE = 4.0
_MANY = 0.1
_MAX_STEPS = 100
_N_CHECKED = 100


def shrink_to_energy(F: Array, eigenvalues: Array, energy: Array) -> Array:
    """Shrink rows of coordinates F whose squared norm is above their energy, in place.

    ``eigenvalues`` are those of the landmarks' kernel matrix, ``energy`` estimates of k(x, x).
    Return (n,) how many times its energy every row's squared norm was; 0 where both are 0.
    """
    excess = np.empty(len(F))
    s = eigenvalues.astype(np.float64)

    def worker(start: int, stop: int) -> None:
        rows = F[start:stop].astype(np.float64)
        allowed = np.maximum(energy[start:stop].astype(np.float64), 0.0)
        norms2 = np.vecdot(rows, rows)
        tiny = np.finfo(np.float64).tiny
        with np.errstate(over="ignore"):  # infinitely many times no energy
            excess[start:stop] = np.where(norms2 > 0, norms2 / np.maximum(allowed, tiny), 0.0)
        above = np.flatnonzero(norms2 > allowed)
        F[start + above] = _ridge(rows[above], s, np.sqrt(allowed[above]))

    machine(F).for_blocks(len(F), F.shape[1], 8, worker)
    return excess


@dataclass(frozen=True, eq=False)
class ConsistentEstimates(Kernel):
    """A kernel whose values with some anchors are those of a vector even if x has missing values.

    Those of rows with missing values are made of coordinates shrunk to the estimate of k(x, x).
    ``eigenvalues`` and ``eigenvectors`` are those of the anchors' kernel matrix.
    """

    kernel: Kernel
    eigenvalues: Array
    eigenvectors: Array

    def __call__(self, X: Array, Y: Array) -> Array:
        """Return k(x, y) for all rows x of X and the anchors Y."""
        K = self.kernel(X, Y)
        rows = rows_with_missing(X)
        if len(rows):
            F, _ = self.coordinates(X[rows], K[rows])
            K[rows] = (F * np.sqrt(self.eigenvalues)) @ self.eigenvectors.T
        return K

    def diag(self, X: Array) -> Array:
        """Return k(x, x) for all rows of X."""
        return self.kernel.diag(X)

    def coordinates(self, X: Array, K: Array) -> tuple[Array, Array]:
        """Return the shrunk coordinates of rows with kernel values K, and how far off they were."""
        F = (K @ self.eigenvectors) / np.sqrt(self.eigenvalues)
        return F, shrink_to_energy(F, self.eigenvalues, self.kernel.diag(X))


def consistent_estimates(kernel: Kernel, anchors: Array, X: Array) -> ConsistentEstimates:
    """Return the kernel with consistent values of rows X with the anchors; warn if far off."""
    K = kernel(anchors, anchors)
    s, V = scipy.linalg.eigh(K, check_finite=False)
    keep = s > len(s) * np.finfo(s.dtype).eps * s[-1]
    consistent = ConsistentEstimates(kernel, s[keep], np.ascontiguousarray(V[:, keep]))
    few = X[np.linspace(0, len(X) - 1, min(len(X), _N_CHECKED)).astype(np.intp)]
    warn_of_estimates(consistent.coordinates(few, kernel(few, anchors))[1])
    return consistent


def _ridge(F: Array, s: Array, radius: Array) -> Array:
    """Return f_i s_i / (s_i + lambda) of norm ``radius``, which is below the norm of every f.

    By Newton's method on 1 / |p(lambda)| = 1 / radius (Moré and Sorensen, 1983), a concave
    function: steps from 0 do not pass the root.
    """
    found = np.zeros_like(F)
    active = np.flatnonzero(radius > 0)
    weight = np.zeros(len(F))
    for _ in range(_MAX_STEPS):
        if not len(active):
            break
        scale = 1 / (s + weight[active, None])
        p = F[active] * (s * scale)
        norm = np.sqrt(np.vecdot(p, p))
        found[active] = p
        ratio = norm / radius[active]
        slope = np.vecdot(p, p * scale)
        weight[active] += norm**2 / slope * np.maximum(ratio - 1, 0.0)
        active = active[ratio > 1 + 1e-12]
    norms = np.sqrt(np.vecdot(found, found))
    factors = np.divide(radius, norms, out=np.zeros_like(norms), where=norms > radius)
    return found * np.where(norms > radius, factors, 1.0)[:, None]


def warn_of_estimates(excess: Array) -> None:
    """Warn if the squared norm of many rows, ``excess`` in units of k(x, x), is far above 1."""
    if np.count_nonzero(excess > _FAR_ABOVE) > _MANY * len(excess):
        # Without numbers, so that the same warning of many classes is shown once.
        warnings.warn(
            "Many rows with missing values have estimates that contradict each other: their "
            f"kernel values would need more than {_FAR_ABOVE:g} times the squared norm k(x, x). "
            "They are shrunk to it, but too little is observed for this kernel to rely on them; "
            "compare with a linear dictionary (KSVD), which needs no estimates, or with imputed "
            "values.",
            UserWarning,
            stacklevel=4,
        )
