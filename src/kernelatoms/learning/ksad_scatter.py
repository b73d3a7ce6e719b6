"""Scatter of codes within and between classes: K-SAD's discriminative term, and our metric.

With codes q_i as rows, n_c of them in class c, m_c their mean and m the mean of all, the term is

    t = tr(S_W^-1 S_B)
    S_B = sum_c n_c (m_c - m)(m_c - m)'
    S_W = sum_c sum_{i in c} (q_i - m_c)(q_i - m_c)' + ridge I

with matrices (``FullScatter``). The paper's text makes numbers of both (``ScalarScatter``):

    t = s_B / s_W,   s_B = sum_c n_c |m_c - m|^2,   s_W = sum_c v_c^2 + ridge
    v_c^2 = sum_{i in c} |q_i - m_c|^2 / n_c

It prints the squared norm of the matrix S_B; that is a fourth power of codes over a square of them,
so that J would have no lower bound whatever the ridge. The trace of S_B is a square too.

See docs/decisions/039-ksad-coordinates.md.
"""

from collections.abc import Callable
from typing import NamedTuple, Self

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from kernelatoms.engine import Array, machine


class FullScatter(NamedTuple):
    """Means of codes by class, and t = tr(S_W^-1 S_B) of them."""

    means: Array
    between: Array
    solved: Array
    value: float

    @classmethod
    def of(cls, codes: Array, labels: NDArray[np.intp], ridge: float) -> Self:
        """Return the scatter of codes, classes in one piece; ``between`` are rows m_c - m."""
        counts = np.bincount(labels)
        means = class_means(codes, counts)
        between = means - (counts @ means) / len(codes)
        within = within_scatter(codes, means, labels)
        within[np.diag_indices_from(within)] += ridge
        with machine(codes).one_blas_thread():
            factor = scipy.linalg.cho_factor(within, lower=True, check_finite=False)
            solved = scipy.linalg.cho_solve(factor, between.T, check_finite=False).T
        value = float(counts @ np.vecdot(solved, between))
        return cls(means, between, np.ascontiguousarray(solved), value)

    def gradient(self, codes: Array, labels: NDArray[np.intp]) -> Array:
        """Return grad t, in the type of the codes."""
        counts = np.bincount(labels)
        turn = (counts[:, None] * self.solved).T @ self.solved  # S_W^-1 S_B S_W^-1
        pull, means, turn = (part.astype(codes.dtype) for part in (self.solved, self.means, turn))
        out = np.empty_like(codes)

        def work(start: int, stop: int) -> None:
            own = labels[start:stop]
            np.matmul(codes[start:stop] - means[own], turn, out=out[start:stop])
            np.subtract(pull[own], out[start:stop], out=out[start:stop])
            out[start:stop] *= 2

        in_blocks(codes, work)
        return out


class ScalarScatter(NamedTuple):
    """Means of codes by class, and t = s_B / s_W of them."""

    means: Array
    between: Array
    within: float
    value: float

    @classmethod
    def of(cls, codes: Array, labels: NDArray[np.intp], ridge: float) -> Self:
        """Return the scatter of codes, classes in one piece; ``between`` are rows m_c - m."""
        counts = np.bincount(labels)
        means = class_means(codes, counts)
        between = means - (counts @ means) / len(codes)
        within = scalar_within(codes, means, labels) + ridge
        return cls(means, between, within, float(counts @ np.vecdot(between, between)) / within)

    def gradient(self, codes: Array, labels: NDArray[np.intp]) -> Array:
        """Return grad t: of row i in class c, 2 (m_c - m) / s_W - 2 t (q_i - m_c) / (n_c s_W)."""
        shares = 2 * self.value / (self.within * np.bincount(labels))
        constant = 2 * self.between / self.within + shares[:, None] * self.means
        constant, shares = (part.astype(codes.dtype) for part in (constant, shares))
        out = np.empty_like(codes)

        def work(start: int, stop: int) -> None:
            own = labels[start:stop]
            np.multiply(codes[start:stop], -shares[own][:, None], out=out[start:stop])
            out[start:stop] += constant[own]

        in_blocks(codes, work)
        return out


Scatter = FullScatter | ScalarScatter
#: What the classifier's ``scatter`` may be.
SCATTERS: dict[str, type[FullScatter] | type[ScalarScatter]] = {
    "full": FullScatter,
    "scalar": ScalarScatter,
}


def class_means(codes: Array, counts: NDArray[np.intp]) -> Array:
    """Return the mean of every class, in float64: rows of a class are in one piece."""
    # Six times as fast as np.add.reduceat.
    pieces = np.split(codes, np.cumsum(counts)[:-1])
    return np.stack([piece.sum(axis=0, dtype=np.float64) for piece in pieces]) / counts[:, None]


def within_scatter(codes: Array, means: Array, labels: NDArray[np.intp]) -> Array:
    """Return the sum of (q - m_c)(q - m_c)' over all codes, in float64."""
    apart = codes - means.astype(codes.dtype)[labels]
    return machine(codes).cross_products(apart, apart)


def scalar_within(codes: Array, means: Array, labels: NDArray[np.intp]) -> float:
    """Return the sum over classes of the mean |q - m_c|^2, in float64."""
    apart = codes - means.astype(codes.dtype)[labels]
    return float(machine(codes).squared_norms(apart) @ (1 / np.bincount(labels))[labels])


def within_class_metric(
    rows: Array, labels: NDArray[np.intp], shrinkage: float
) -> tuple[Array, Array] | None:
    """Return the whitening of scatter S within classes, (S + e I)^(-1/2), and its inverse.

    Our addition to K-SAD: tr(S_W^-1 S_B) is in this metric, which soft-threshold codes over an
    orthonormal dictionary cannot represent. ``shrinkage`` is e as a share of the mean eigenvalue of
    S. None where no class has two different rows.
    """
    means = class_means(rows, np.bincount(labels))
    S = within_scatter(rows, means, labels) / len(rows)
    with machine(rows).one_blas_thread():
        values, vectors = scipy.linalg.eigh(S, check_finite=False)
        mean = float(np.maximum(values, 0).mean())
        # Rounding of equal rows is not scatter.
        energy = float(machine(rows).squared_norms(rows).sum())
        if mean <= float(np.finfo(rows.dtype).eps) * energy / rows.size:
            return None
        # Bounds the length of directions without scatter by rounding.
        share = max(shrinkage, _least_share(rows))
        lengths = np.sqrt(np.maximum(values, 0) + share * mean)
        return (vectors / lengths) @ vectors.T, (vectors * lengths) @ vectors.T


def ridge_of(
    codes: Array, labels: NDArray[np.intp], fisher: float, shrinkage: float, scatter: str
) -> float:
    """Return the ridge of S_W: twice the term's weight, and a share of the mean eigenvalue.

    The share, at least rounding, is of the scatter of these initial codes; of their energy, if they
    have none within classes. A scalar is its own eigenvalue.
    """
    means, energy = class_means(codes, np.bincount(labels)), machine(codes).squared_norms(codes)
    if scatter == "scalar":
        mean = scalar_within(codes, means, labels) or float(energy.sum())
    else:
        total = float(np.trace(within_scatter(codes, means, labels))) or float(energy.sum())
        mean = total / codes.shape[1]
    return 2 * fisher + max(shrinkage, _least_share(codes)) * (mean or 1.0)


def _least_share(rows: Array) -> float:
    """Return the share of the mean eigenvalue that is above the rounding of a scatter matrix."""
    return 10 * rows.shape[1] * float(np.finfo(rows.dtype).eps)


def in_blocks(codes: Array, work: Callable[[int, int], None]) -> None:
    """Work on blocks of rows that stay in a core's cache, on all threads."""
    machine(codes).for_blocks(len(codes), 4 * codes.shape[1], codes.itemsize, work)
