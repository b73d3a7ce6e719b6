"""Pseudo-transformations: projections of kernel values on few components.

Section 4.2 of the KCRC-LCD paper. With G the Gram matrix of n rows D, the columns of Psi (n, c)
combine mapped rows to vectors R = Phi Psi (eq. (9)), and a row x becomes its inner products with
these, Psi' k(D, x) (eq. (10)): an ordinary vector of c numbers. Every class here chooses Psi from
G. Distances are those of feature space, |phi(x) - phi(y)|^2 = G_xx - 2 G_xy + G_yy.

See docs/decisions/030-training-rows-as-atoms.md.
"""

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import scipy.linalg

from kernelatoms.engine import Array, machine
from kernelatoms.similarity.base import check_number, is_whole

# Eigenvalues below this share of the largest are rounding.
_ROUNDING = 1e-12


class Projection:
    """A way to choose Psi. Subclasses write ``coefficients``."""

    def coefficients(self, gram: Array, labels: Array, rng: np.random.RandomState) -> Array | None:
        """Return Psi (n, c) for the Gram matrix of rows with these classes, or None for I."""
        raise NotImplementedError(f"{type(self).__name__} must define coefficients.")


@dataclass(frozen=True)
class IdentityProjection(Projection):
    """Psi = I: a row is its column of kernel values. The paper's default."""

    def coefficients(self, gram: Array, labels: Array, rng: np.random.RandomState) -> None:
        """Return None, which is the identity."""


@dataclass(frozen=True)
class KPCAProjection(Projection):
    """Kernel principal components, eq. (15): eigenvectors of G over the roots of eigenvalues.

    Parameters
    ----------
    n_components : int or float
        How many; a float is a share of the rows. No more than G has eigenvalues above rounding.
    """

    n_components: int | float = 0.8

    def __post_init__(self) -> None:
        _check_components(self.n_components)

    def coefficients(self, gram: Array, labels: Array, rng: np.random.RandomState) -> Array:
        """Return Psi (n, c)."""
        n_rows = len(gram)
        c = _count(self.n_components, n_rows)
        # The last ones are the largest.
        with machine(gram).one_blas_thread(n_rows < 500):
            values, vectors = scipy.linalg.eigh(
                gram.astype(np.float64), subset_by_index=(n_rows - c, n_rows - 1)
            )
        keep = values > _ROUNDING * values[-1]
        # lambda psi'psi = 1 (below (15)) with lambda the eigenvalue of G over n.
        psi = vectors[:, keep] * np.sqrt(n_rows / values[keep])
        return np.ascontiguousarray(psi[:, ::-1])


@dataclass(frozen=True)
class KFDAProjection(Projection):
    """Kernel Fisher discriminants, eqs. (16) and (17): far class means, narrow classes.

    The quasi-scatters are those of the columns of G. There are at most as many vectors as classes,
    less one.

    Parameters
    ----------
    ridge : float
        Added to the within-class scatter, which has no inverse; a share of its mean eigenvalue.
    """

    ridge: float = 1e-3

    def __post_init__(self) -> None:
        check_number("ridge", self.ridge, above=0)

    def coefficients(self, gram: Array, labels: Array, rng: np.random.RandomState) -> Array:
        """Return Psi (n, c), columns of unit norm."""
        columns = gram.astype(np.float64)  # symmetric: row i is the column of row i
        sizes = np.bincount(labels)
        n_classes = len(sizes)
        means = np.stack([columns[labels == c].mean(axis=0) for c in range(n_classes)])
        # sum_ij (u_i - u_j)(u_i - u_j)' = 2 k sum_i (u_i - u)(u_i - u)' with u the mean of means.
        between = (means - means.mean(axis=0)) * np.sqrt(2 / (n_classes - 1))
        around = (columns - means[labels]) / np.sqrt(n_classes * sizes[labels])[:, None]
        within = around.T @ around
        mean_eigenvalue = float(np.trace(within)) / len(within)
        within[np.diag_indices_from(within)] += self.ridge * (mean_eigenvalue or 1.0)
        # S_w^-1 S_b psi = lambda psi with S_b = B B': psi = S_w^-1 B v, small eigenproblem for v.
        towards = scipy.linalg.solve(within, between.T, assume_a="pos")
        values, vectors = scipy.linalg.eigh(between @ towards)
        keep = values > _ROUNDING * values[-1]
        return _unit_columns(towards @ vectors[:, keep][:, ::-1])


@dataclass(frozen=True)
class RandomProjection(Projection):
    """Gaussian random combinations (section 4.2.3), of squared norm 1 on average.

    Parameters
    ----------
    n_components : int or float
        How many; a float is a share of the rows.
    """

    n_components: int | float = 0.8

    def __post_init__(self) -> None:
        _check_components(self.n_components)

    def coefficients(self, gram: Array, labels: Array, rng: np.random.RandomState) -> Array:
        """Return Psi (n, c)."""
        c = _count(self.n_components, len(gram))
        return rng.standard_normal((len(gram), c)) / np.sqrt(c)


@dataclass(frozen=True)
class GraphProjection(Projection):
    """Smoothest functions on a graph of neighbours, eqs. (18) to (22), as Laplacian eigenmaps.

    Parameters
    ----------
    n_components : int or float
        How many; a float is a share of the rows.
    n_neighbors : int
        Rows are connected where one is among so many nearest neighbours of the other.
    radius : float, optional
        Connect rows with |phi(x) - phi(y)|^2 below this instead (the paper's epsilon).
    weights : {"heat", "binary"}
        exp(-|phi(x) - phi(y)|^2 / width) (eq. (18), whose sign is a misprint), or 1.
    width : float, optional
        Of the heat weights; the mean over all edges by default.
    """

    n_components: int | float = 0.8
    n_neighbors: int = 35
    radius: float | None = None
    weights: str = "heat"
    width: float | None = None

    def __post_init__(self) -> None:
        _check_components(self.n_components)
        _check_count("n_neighbors", self.n_neighbors)
        for name in ("radius", "width"):
            if getattr(self, name) is not None:
                check_number(name, getattr(self, name), above=0)
        if self.weights not in ("heat", "binary"):
            raise ValueError(f"weights must be one of 'heat', 'binary', got {self.weights!r}.")

    def coefficients(self, gram: Array, labels: Array, rng: np.random.RandomState) -> Array:
        """Return Psi (n, c), columns of unit norm."""
        W = self.edges(gram)
        degrees = W.sum(axis=1)
        degrees[degrees == 0] = 1.0  # of a row without neighbours
        roots = np.sqrt(degrees)
        # (21) is L g = lambda B g; with g = B^(-1/2) h it is the problem of a symmetric matrix.
        laplacian = -W / np.outer(roots, roots)
        laplacian[np.diag_indices_from(laplacian)] += W.sum(axis=1) / degrees
        # Its eigenvalues are at most 2: the constant g, whose is 0, is moved behind all others.
        constant = roots / np.linalg.norm(roots)
        laplacian += 3.0 * np.outer(constant, constant)
        c = min(_count(self.n_components, len(gram)), max(len(gram) - 1, 1))
        _, vectors = scipy.linalg.eigh(laplacian, subset_by_index=(0, c - 1))
        return _unit_columns(vectors / roots[:, None])

    def edges(self, gram: Array) -> Array:
        """Return the weights W (n, n) of the graph, 0 where two rows are not connected."""
        norms2 = np.diagonal(gram).astype(np.float64)
        far = np.maximum(norms2[:, None] + norms2 - 2 * gram.astype(np.float64), 0.0)
        np.fill_diagonal(far, np.inf)
        if self.radius is not None:
            connected = far < self.radius
        else:
            k = min(self.n_neighbors, max(len(gram) - 1, 1))
            nearest = np.argsort(far, axis=1, kind="stable")[:, :k]
            connected = np.zeros(far.shape, bool)
            np.put_along_axis(connected, nearest, True, axis=1)
            connected |= connected.T
            np.fill_diagonal(connected, False)
        W = np.zeros(far.shape)
        if self.weights == "binary":
            W[connected] = 1.0
        elif connected.any():
            width = float(far[connected].mean()) if self.width is None else self.width
            W[connected] = np.exp(-far[connected] / (width or 1.0))
        return W


PROJECTIONS: dict[str, type[Projection]] = {
    "identity": IdentityProjection,
    "kpca": KPCAProjection,
    "kfda": KFDAProjection,
    "random": RandomProjection,
    "graph": GraphProjection,
}


def make_projection(projection: Any) -> Any:
    """Return a projection: by a name in ``PROJECTIONS``, or as it is; None stays None."""
    if projection is None:
        return None
    if isinstance(projection, str) and projection in PROJECTIONS:
        return PROJECTIONS[projection]()
    own = getattr(projection, "coefficients", None)
    if callable(own) and not isinstance(projection, str | type):
        return projection
    names = ", ".join(repr(name) for name in PROJECTIONS)
    raise ValueError(
        f"projection must be 'auto', None, one of {names}, or an object with coefficients(gram, "
        f"labels, rng) such as PROJECTIONS['kpca'](100), got {projection!r}."
    )


def _check_count(name: str, value: Any) -> None:
    if not is_whole(value):
        raise TypeError(f"{name} must be a whole number, got {value!r}.")
    if value < 1:
        raise ValueError(f"{name} must be at least 1, got {value}.")


def _check_components(n_components: Any) -> None:
    if isinstance(n_components, bool) or not isinstance(n_components, Real):
        raise TypeError(f"n_components must be a number or a share, got {n_components!r}.")
    if is_whole(n_components):
        _check_count("n_components", n_components)
    elif not 0 < float(n_components) <= 1:
        raise ValueError(
            f"n_components must be a whole number, or a share above 0 and at most 1, got "
            f"{n_components}."
        )


def _count(n_components: int | float, n_rows: int) -> int:
    """Return how many components are asked for, no more than there are rows."""
    if is_whole(n_components):
        return min(int(n_components), n_rows)
    return max(1, round(float(n_components) * n_rows))


def _unit_columns(psi: Array) -> Array:
    norms = np.linalg.norm(psi, axis=0)
    return psi / np.where(norms > 0, norms, 1)
