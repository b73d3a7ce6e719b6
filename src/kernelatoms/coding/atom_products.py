"""Inner products of atoms, and of signals with atoms, each computed once.

``LinearAtoms`` are rows, compared by x'y; ``KernelAtoms`` are vectors of a feature space. Both have
what a coding problem asks of atoms (``problem``): ``gram`` and ``norms2``, ``inner(X)`` and
``energy(X)`` of rows, ``local`` and ``gram_times`` of candidates. Expensive results are cached: an
estimator with atoms in its fitted state computes them once.

See docs/decisions/019-kernel-blind-pursuits.md and docs/decisions/027-local-problems.md.
"""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.engine import Array, machine
from kernelatoms.features.expansion import Expansion
from kernelatoms.features.linear_algebra import OVERFLOW, check_gram, cholesky
from kernelatoms.features.memory import check_gram_fits
from kernelatoms.similarity import DistanceKernel, Kernel, RBFKernel, make_distance
from kernelatoms.similarity.distances import L2
from kernelatoms.similarity.missing import rows_with_missing
from kernelatoms.similarity.user_kernels import PrecomputedKernel

# Rows of a Gram matrix computed at once where there is no whole one, and bytes of candidates' rows.
_ROWS_AT_ONCE, _AT_ONCE = 256, 1 << 24


class LinearAtoms:
    """Rows as atoms, compared by x'y."""

    knows_energy = True

    def __init__(self, rows: Array) -> None:
        self.rows = rows
        self.n_atoms = len(rows)
        self.dtype = rows.dtype

    @cached_property
    def gram(self) -> Array:
        """Inner products of the atoms."""
        check_gram_fits(len(self.rows), self.rows.itemsize, like=self.rows)
        gram = machine(self.rows).gram_matrix(self.rows)
        self._check_norms(np.diagonal(gram))
        return gram

    @property
    def gram_is_known(self) -> bool:
        """Whether ``gram`` has been computed already."""
        return "gram" in self.__dict__

    @cached_property
    def norms2(self) -> Array:
        """Squared norms of the atoms."""
        if self.gram_is_known:
            return np.diagonal(self.gram).copy()
        with np.errstate(over="ignore"):
            norms2 = np.vecdot(self.rows, self.rows)
        self._check_norms(norms2)
        return norms2

    @property
    def gains_digits(self) -> bool:
        """Whether inner products of the same atoms in float64 have more digits."""
        return bool(self.dtype == np.float32)

    @cached_property
    def in_float64(self) -> "LinearAtoms":
        """The same atoms, compared in float64."""
        return LinearAtoms(self.rows.astype(np.float64))

    @cached_property
    def columns(self) -> Array:
        """The atoms, transposed: BLAS is faster by up to a quarter with columns in memory."""
        return np.ascontiguousarray(self.rows.T, like=self.rows)

    def gram_rows(self, atoms: NDArray[np.integer]) -> Array:
        """Return rows of the Gram matrix."""
        return self.gram[atoms] if self.gram_is_known else self.inner(self.rows[atoms])

    def inner(self, X: Array) -> Array:
        """Return the inner products of rows with all atoms."""
        return X @ self.columns

    def energy(self, X: Array) -> Array:
        """Return the squared norms of rows, in float64."""
        return machine(X).squared_norms(X)

    def local(self, X: Array, candidates: NDArray[np.int32]) -> tuple[Array, Array]:
        """Return Gram matrices of each row's candidates, and its products with them; 0 for -1."""
        _ = self.norms2  # atoms whose inner products do not fit are refused
        own = self.rows[candidates]
        own[candidates < 0] = 0
        corr = (own @ X[:, :, None])[:, :, 0]
        if self.gram_is_known:
            return machine(self.gram).gather(self.gram, candidates), corr
        return own @ own.mT, corr

    def gram_times(self, weights: Array, candidates: NDArray[np.int32]) -> Array:
        """Return the inner products of combined atoms with all atoms."""
        near, exponents = machine(self.rows).rescale_if_needed(weights)
        products = (near[:, None] @ self.rows[candidates])[:, 0] @ self.columns
        if exponents is None:
            return products
        return np.ldexp(products.astype(np.float64), exponents[:, None])

    def check_semidefinite(self) -> None:
        """Do nothing: x'y is positive semi-definite."""

    def _check_norms(self, norms2: Array) -> None:
        """Refuse atoms other than 0 whose squares overflow or underflow."""
        if machine(norms2).all_in_safe_range(norms2, self.dtype):
            return
        numbers = np.finfo(self.dtype)
        if not norms2.max(initial=0) <= numbers.max / 4:  # nor if it is NaN
            raise ValueError(
                f"The dictionary holds atoms whose squared norm overflows {self.dtype.name}; scale "
                "them down or use float64."
            )
        if norms2.min(initial=1) < numbers.tiny and self.rows[norms2 < numbers.tiny].any():
            raise ValueError(
                f"The dictionary holds atoms whose squared norm underflows {self.dtype.name}; "
                "scale them up (atoms are best at unit norm), or use float64."
            )


class KernelAtoms:
    """Vectors of a feature space as atoms, with a Gram matrix from coordinates if that is known."""

    def __init__(self, expansion: Expansion, gram: Array | None = None) -> None:
        self.expansion = expansion
        self.n_atoms = expansion.n_vectors
        self.dtype = expansion.anchors.dtype
        if gram is not None:
            if gram.shape != (self.n_atoms, self.n_atoms):
                raise ValueError(
                    f"The Gram matrix of {self.n_atoms} atoms must be square, got {gram.shape}."
                )
            self.gram = _checked(gram)

    @property
    def kernel(self) -> Kernel:
        """The kernel of the feature space."""
        return self.expansion.kernel

    @property
    def knows_energy(self) -> bool:
        """Whether k(x, x) of rows is known."""
        return not isinstance(self.kernel, PrecomputedKernel)

    @cached_property
    def gram(self) -> Array:
        """Inner products of the atoms in feature space."""
        anchors = self.expansion.anchors
        check_gram_fits(len(anchors), anchors.itemsize, like=anchors)
        with np.errstate(all="ignore"):  # what overflows is refused
            gram = _checked(self.expansion.gram())
        if self.expansion.coef is None and self.knows_energy:
            self._check_underflow(anchors, np.diagonal(gram))
        return gram

    @property
    def gains_digits(self) -> bool:
        """Whether float64 gives more digits; some kernels compute in float32 whatever the type."""
        exact = self.kernel.semidefinite and self.kernel.exact_in_float64
        return bool(self.dtype == np.float32 and exact)

    @cached_property
    def in_float64(self) -> "KernelAtoms":
        """The same atoms, compared in float64."""
        anchors, coef = self.expansion.anchors.astype(np.float64), self.expansion.coef
        wide = None if coef is None else coef.astype(np.float64)
        return KernelAtoms(Expansion(self.kernel, anchors, wide))

    @property
    def gram_is_known(self) -> bool:
        """Whether ``gram`` has been computed already."""
        return "gram" in self.__dict__

    @cached_property
    def norms2(self) -> Array:
        """Squared norms of the atoms."""
        if self.gram_is_known or self.expansion.coef is not None:
            return np.diagonal(self.gram).copy()
        with np.errstate(all="ignore"):
            norms2 = _finite(self.kernel.diag(self.expansion.anchors))
        if (norms2 < 0).any():
            raise ValueError(
                "The Gram matrix of the atoms is not positive semi-definite: k(d, d) is negative "
                f"for atom {int(norms2.argmin())}; choose another kernel or other parameters."
            )
        self._check_underflow(self.expansion.anchors, norms2)
        return norms2

    def gram_rows(self, atoms: NDArray[np.integer]) -> Array:
        """Return rows of the Gram matrix."""
        if self.gram_is_known or self.expansion.coef is not None:
            return self.gram[atoms]
        return self.inner(self.expansion.anchors[atoms])

    def inner(self, X: Array) -> Array:
        """Return the inner products of mapped rows with all atoms."""
        with np.errstate(all="ignore"):
            inner = self.expansion.inner(X)
        return inner if self.kernel.bounded else _finite(inner)

    def energy(self, X: Array) -> Array | None:
        """Return k(x, x) of rows; None for a precomputed kernel."""
        if not self.knows_energy:
            return None
        with np.errstate(all="ignore"):
            return self._check_underflow(X, self.kernel.diag(X))

    def local(self, X: Array, candidates: NDArray[np.int32]) -> tuple[Array, Array]:
        """Return Gram matrices of each row's candidates, and its products with them."""
        anchors, grams = self.expansion.anchors, None
        if self.expansion.coef is not None or isinstance(self.kernel, PrecomputedKernel):
            own = np.take_along_axis(self.inner(X), np.maximum(candidates, 0), axis=1)
            corr = np.where(candidates < 0, 0, own)
        else:
            own_grams = not self.gram_is_known
            grams, corr = local_values(self.kernel, X, anchors, candidates, with_grams=own_grams)
            _finite(corr)
        if grams is None:
            return machine(self.gram).gather(self.gram, candidates), corr
        _finite(grams)
        if self.knows_energy:
            norms2 = np.diagonal(grams, axis1=1, axis2=2)
            small = (candidates >= 0) & (norms2 < 1)
            self._check_underflow(anchors[candidates[small]], norms2[small])
        return grams, corr

    def gram_times(self, weights: Array, candidates: NDArray[np.int32]) -> Array:
        """Return the inner products of combined atoms with all atoms."""
        used = np.unique(candidates[weights != 0])
        place = np.searchsorted(used, candidates)
        rows, columns = np.nonzero(weights)
        combined = np.zeros((len(weights), len(used)), weights.dtype, like=weights)
        combined[rows, place[rows, columns]] = weights[rows, columns]
        out = np.zeros((len(weights), self.n_atoms), weights.dtype, like=weights)
        for first in range(0, len(used), _ROWS_AT_ONCE):
            part = slice(first, first + _ROWS_AT_ONCE)
            out += combined[:, part] @ self.gram_rows(used[part])
        return out

    def _check_underflow(self, X: Array, energy: Array) -> Array:
        """Refuse rows whose k(x, x) is above 0 but underflows this type."""
        numbers = np.finfo(energy.dtype)
        doubtful = np.flatnonzero(energy < numbers.tiny / (100 * numbers.eps) ** 2)
        if not len(doubtful):
            return energy
        rows = X[doubtful].astype(np.float64)
        sizes = np.abs(rows).max(axis=1, keepdims=True)
        near_one = rows / np.where(sizes > 0, sizes, 1)
        there = self.kernel.diag(rows)
        # 0 here but not at a size near 1: lost in float64 too. Not so for a kernel that is not 0 at
        # the zero row: it may be 0 at a row because of where that is.
        by_size = self.kernel.diag(np.zeros_like(rows[:1]))[0] == 0
        lost = (there == 0) & (self.kernel.diag(near_one) > 0) & by_size
        if ((there > 0) | lost).any():
            raise ValueError(
                f"kernel underflows {energy.dtype.name} on these rows: k(x, x) is too small; "
                "scale them up, choose larger kernel parameters, or use float64."
            )
        return energy

    def check_semidefinite(self) -> None:
        """Refuse atoms whose Gram matrix is not positive semi-definite."""
        if not self.kernel.semidefinite:
            _ = self._is_semidefinite

    @cached_property
    def _is_semidefinite(self) -> bool:
        check_eigenvalues(self.gram)
        return True


def _finite(K: Array) -> Array:
    """Return kernel values; refuse infinite and undefined ones."""
    # A sum is faster than a test of every value, and propagates NaN and infinity.
    with np.errstate(over="ignore", invalid="ignore"):
        total = np.sum(K)
    if not np.isfinite(total) and not np.isfinite(K).all():
        raise ValueError(OVERFLOW)
    return K


def _checked(gram: Array) -> Array:
    check_gram(gram, "the kernel on the atoms")
    return machine(gram).pad_rows(gram)


def check_eigenvalues(gram: Array) -> None:
    """Refuse a Gram matrix with negative eigenvalues, over which a pursuit has no minimum."""
    if not len(gram):
        return
    scale = float(np.diagonal(gram).max())
    rounding = 10 * len(gram) * np.finfo(gram.dtype).eps * scale
    shifted = gram.astype(np.float64) + rounding * np.eye(len(gram), like=gram)
    with machine(gram).one_blas_thread():
        factor = cholesky(shifted, overwrite=True)
    if factor is None:
        raise ValueError(
            "The Gram matrix of the atoms is not positive semi-definite, so l1 and ridge coding "
            "over it have no minimum; choose another kernel (sigmoid kernels often are not) or "
            "other parameters."
        )


def local_values(
    kernel: Kernel, X: Array, anchors: Array, candidates: NDArray[np.int32], *, with_grams: bool
) -> tuple[Array | None, Array]:
    """Return k(a, a') of every row's candidates (n, K, K), and k(x, a) (n, K); 0 for -1."""
    gamma = gaussian_gamma(kernel, X.shape[1])
    if gamma is not None and X.dtype == anchors.dtype and not len(rows_with_missing(X)):
        return machine(X).gaussian_local(X, anchors, candidates, gamma, with_grams=with_grams)
    n, n_local = candidates.shape
    corrs = np.empty((n, n_local), X.dtype, like=X)
    grams = np.empty((n, n_local, n_local), X.dtype, like=X) if with_grams else None
    at_once = max(_AT_ONCE // max(8 * n_local * X.shape[1], 1), 1)
    for start in range(0, n, at_once):
        part = slice(start, start + at_once)
        own = anchors[candidates[part]]
        corrs[part] = stack_values(kernel, X[part, None], own)[:, 0]
        if grams is not None:
            grams[part] = stack_values(kernel, own, own)
    padded = candidates < 0
    corrs[padded] = 0
    if grams is not None:
        grams[padded] = 0
        grams.mT[padded] = 0
    return grams, corrs


def gaussian_gamma(kernel: Any, n_features: int) -> float | None:
    """Return gamma of a kernel that is exp(-gamma |x - y|^2); None of any other."""
    kernel = getattr(kernel, "kernel", kernel)  # of descriptors, which are the rows for l2
    if not falls_with_l2(kernel) or getattr(kernel, "power", 2) != 2:
        return None
    return float(kernel.gamma_for(n_features))


def falls_with_l2(kernel: Any) -> bool:
    """Whether k(x, y) is a decreasing function of |x - y|."""
    kernel = getattr(kernel, "kernel", kernel)
    if type(kernel) is DistanceKernel:
        return type(make_distance(kernel.distance)) is L2
    return type(kernel) is RBFKernel


def stack_values(kernel: Kernel, X: Array, Y: Array) -> Array:
    """Return the kernel values of each pair of matrices."""
    with np.errstate(all="ignore"):
        if kernel.takes_stacks:
            return kernel(X, Y)
        return np.stack([kernel(x, y) for x, y in zip(X, Y, strict=True)])
