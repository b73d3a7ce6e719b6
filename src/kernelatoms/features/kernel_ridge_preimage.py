"""The way back from virtual samples: a kernel ridge regression from them to rows.

A linear map cannot bring a row back from a few leading coordinates, nor from those of a narrow
kernel: the row is a curved function of them. So rows are regressed on their virtual samples under
a Gaussian kernel of these (or linearly, where that predicts better); how wide it is and how large
the ridge, exact leave-one-out errors decide. Kernel PCA goes back in the same manner (Bakir,
Weston and Schoelkopf, 2004), with a width and a ridge that the user has to know.

See docs/decisions/018-pre-images.md.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelatoms.engine import machine, to_numpy
from kernelatoms.features.linear_algebra import eigh

Array = NDArray[Any]

#: A regression on so many rows goes back about as well as one on more of them.
MOST_ROWS = 1000
# The width is chosen on so many of them.
_ROWS_TO_CHOOSE_BY = 400
# Gaussian kernels exp(-width d^2 / mean d^2) to choose from; None is the linear kernel. Errors
# hardly change in between, and wider ones are polynomials of what the widest sees already.
_WIDTHS = (None, 0.01, 0.1, 1.0, 3.0, 10.0)
_RIDGES = np.logspace(-12, 1, 27)  # shares of the mean k(f, f)
# Virtual samples are exact: of regressions that predict left-out rows about as well (within this
# share of the error), the one that leaves least of its own rows is taken.
_AS_GOOD = 1.02


@dataclass(frozen=True)
class WayBack:
    """Rows as a function of virtual samples: ``mean + k(F, centres) @ weights``.

    Parameters
    ----------
    centres : array of shape (n, r)
        Virtual samples, at mean squared norm 1.
    weights : array of shape (n, n_features)
        Their coefficients.
    mean : array of shape (n_features,)
        The mean row.
    size : float
        The norm that virtual samples are divided by.
    gamma : float or None
        Of the Gaussian kernel; None for 1 + f'c.
    """

    centres: Array
    weights: Array
    mean: Array
    size: float
    gamma: float | None

    def rows(self, F: Array) -> Array:
        """Return the rows (m, n_features) of virtual samples (m, r), block by block."""
        out = np.empty((len(F), len(self.mean)), F.dtype, like=F)

        def worker(start: int, stop: int) -> None:
            some = F[start:stop].astype(np.float64) / self.size
            K = _values(some @ self.centres.T, some, self.centres, self.gamma)
            with np.errstate(over="ignore"):
                out[start:stop] = K @ self.weights + self.mean

        machine(F).for_blocks(len(F), len(self.centres), 8, worker)
        return out


class _Fit(NamedTuple):
    left_out: float  # the root of the sum of squared leave-one-out errors
    own: float  # that of the errors on the rows themselves
    weights: Array


def learn_way_back(F: Array, X: Array) -> WayBack:
    """Return the regression of rows X (n, n_features) on their virtual samples F (n, r)."""
    F, X = F.astype(np.float64), X.astype(np.float64)
    size = float(np.sqrt(np.mean(np.vecdot(F, F)))) or 1.0
    F, mean = F / size, X.mean(axis=0)
    centred = X - mean
    # The mean squared distance of two rows, of which no pair need be looked at.
    spread = 2 * max(1.0 - float(np.sum(F.mean(axis=0) ** 2)), np.finfo(np.float64).eps)
    some = _spread_rows(len(F), _ROWS_TO_CHOOSE_BY)
    # Helper threads of BLAS cost more than they give on small matrices, and change last digits.
    with machine(F).one_blas_thread():
        gammas = [None if width is None else width / spread for width in _WIDTHS]
        fits = [_regress(F[some], centred[some], gamma) for gamma in gammas]
        gamma = gammas[fits.index(_chosen(fits))]
        weights = _regress(F, centred, gamma).weights
    return WayBack(F, weights, mean, size, gamma)


def more_rows(X: Array, landmarks: Array) -> Array:
    """Return rows to regress beside landmarks: evenly spread ones, none of them a landmark.

    A row met twice would be there when it is left out.
    """
    missing = MOST_ROWS - len(landmarks)
    if missing <= 0:
        return X[:0]
    known = {row.tobytes() for row in to_numpy(landmarks)}
    some = X[_spread_rows(len(X), MOST_ROWS)]
    others = some[[row.tobytes() not in known for row in to_numpy(some)]]
    return others[_spread_rows(len(others), missing)].copy()


def _spread_rows(n: int, most: int) -> Any:
    return slice(None) if n <= most else np.linspace(0, n - 1, most).astype(np.intp)


def _values(products: Array, A: Array, B: Array, gamma: float | None) -> Array:
    if gamma is None:
        return 1.0 + products
    squares = np.vecdot(A, A)[:, None] + np.vecdot(B, B) - 2 * products
    return np.exp(-gamma * np.maximum(squares, 0.0))


def _regress(F: Array, Y: Array, gamma: float | None) -> _Fit:
    """Return the regression of Y on F whose ridge predicts left-out rows best.

    With K = V S V', the errors on the rows themselves are E = V (a / (S + a)) V'Y, and those of
    rows left out E_i / (1 - h_i), where h_i is the diagonal of V (S / (S + a)) V'.
    """
    K = _values(F @ F.T, F, F, gamma)
    s, V = eigh(K)
    s, projected, squares = np.maximum(s, 0.0), V.T @ Y, V**2
    fits = []
    for ridge in _RIDGES * float(np.mean(np.diagonal(K))):
        left = ridge / (s + ridge)
        own = V @ (left[:, None] * projected)
        left_out = own / np.maximum(squares @ left, np.finfo(np.float64).tiny)[:, None]
        fits.append(_Fit(float(np.linalg.norm(left_out)), float(np.linalg.norm(own)), left / ridge))
    best = _chosen(fits)
    return best._replace(weights=V @ (best.weights[:, None] * projected))


def _chosen(fits: list[_Fit]) -> _Fit:
    least = min(fit.left_out for fit in fits)
    return min((fit for fit in fits if fit.left_out <= _AS_GOOD * least), key=lambda fit: fit.own)
