"""Ridge codes of every training row over all other rows, and the weight mu that classifies best.

With P = (A + mu I)^-1 and A the Gram matrix of all n atoms, the code of atom i over the others is
known without another inverse: w_j = -P_ji / P_ii. So one eigendecomposition tells how well a mu
classifies rows that are left out, exactly, for as many mu as one likes.

Where the atoms are columns of kernel values (Psi = I, eq. (13) of the KCRC-LCD paper), leaving a
row out takes its column and its coordinate: A = G^2 loses a row, a column and g g', with g the
column of row i. The inverse changes by the rank of one, and stays known too.
"""

from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from kernelatoms.engine import machine
from kernelatoms.space.decisions import ClassParts, Members, parts_of_dense_codes

Array = NDArray[Any]

#: Weights that are tried, as multiples of the atoms' mean squared norm.
MULTIPLES = tuple(10.0**power for power in range(-10, 2))


def best_mu(
    gram: Array, labels: NDArray[np.intp], n_classes: int, *, columns: bool
) -> tuple[float, float]:
    """Return the weight of |w|^2 under which most rows are classified right by all others.

    Parameters
    ----------
    gram : array of shape (n, n)
        G, inner products of the rows; symmetric.
    labels : array of shape (n,)
        Their classes, ascending, 0 to n_classes - 1.
    n_classes : int
        The number of classes.
    columns : bool
        Whether the columns of G are the atoms, instead of the vectors whose inner products they
        are.

    Returns
    -------
    mu : float
        The largest of the best: more weight is more stable.
    share : float
        The share of rows that it classifies right.
    """
    G = gram.astype(np.float64)
    scale = float(np.vecdot(G, G).mean() if columns else np.diagonal(G).mean())
    if not scale > 0:
        return 1.0, 0.0
    values, vectors = scipy.linalg.eigh(G, check_finite=False)
    values = values if columns else np.maximum(values, 0.0)
    product = G @ G if columns else G
    edges = np.searchsorted(labels, np.arange(n_classes + 1))
    members: Members = [slice(edges[c], edges[c + 1]) for c in range(n_classes)]
    best = (0.0, -1.0)
    for multiple in MULTIPLES:
        mu = multiple * scale
        codes = _codes(values, vectors, G, mu, columns)
        shares = _shares_left_out(G, product, codes, members, columns)
        right = float(np.mean(shares.argmax(axis=1) == labels))
        if right >= best[1]:
            best = (mu, right)
    return best


def left_out_codes(gram: Array, mu: float, *, columns: bool) -> Array:
    """Return the ridge code of every row over all other rows, (n, n) with zeros on the diagonal.

    Parameters
    ----------
    gram : array of shape (n, n)
        G, inner products of the rows.
    mu : float
        Weight of |w|^2, above 0.
    columns : bool
        Whether the columns of G are the atoms; leaving a row out then takes its coordinate too.
    """
    G = gram.astype(np.float64)
    values, vectors = scipy.linalg.eigh(G, check_finite=False)
    return _codes(values if columns else np.maximum(values, 0.0), vectors, G, mu, columns)


def _codes(values: Array, vectors: Array, G: Array, mu: float, columns: bool) -> Array:
    bottom = (values**2 if columns else values) + mu
    P = (vectors / bottom) @ vectors.T
    codes = -P / np.diagonal(P)[:, None]
    np.fill_diagonal(codes, 0.0)
    if not columns:
        return codes
    # (M - g g') w = a - G_ii g with M = A without row and column i, a = A_i: M^-1 a = codes, and
    # v = M^-1 g comes from Q = P G in the same way. Sherman-Morrison does the rest.
    Q = (vectors * (values / bottom)) @ vectors.T
    v = Q - P * (np.diagonal(Q) / np.diagonal(P))[:, None]
    np.fill_diagonal(v, 0.0)
    codes -= np.diagonal(G)[:, None] * v
    # 1 - g'v is above 0, but for rounding: M - g g' is positive definite.
    rest = np.maximum(1.0 - np.vecdot(G, v), np.finfo(np.float64).eps)
    return codes + v * (np.vecdot(G, codes) / rest)[:, None]


def _shares_left_out(
    G: Array, product: Array, codes: Array, members: Members, columns: bool
) -> Array:
    """Return the shares of classes for rows coded over the others."""
    grams = [product[own, own] for own in members]  # type: ignore[index]
    parts = parts_of_dense_codes(product, np.diagonal(product), codes, members, grams)
    if columns:  # less the coordinate of the row itself
        own_value = np.diagonal(G)
        explained = [np.vecdot(codes[:, own], G[:, own]) for own in members]
        parts = ClassParts(
            parts.residuals2 - (own_value[:, None] - np.stack(explained, axis=1)) ** 2,
            parts.norms2,
            parts.energies - own_value**2,
        )
    return parts.shares(np.dtype(np.float64))


def best_local_mu(
    grams: Array,
    corrs: Array,
    energies: Array,
    owners: NDArray[np.int64],
    labels: NDArray[np.intp],
    n_classes: int,
    *,
    columns: bool,
) -> float:
    """Return the weight of |w|^2 under which most rows are classified right by their neighbours.

    Parameters
    ----------
    grams, corrs, energies : arrays of shape (n, K, K), (n, K) and (n,)
        Inner products of each row's neighbours, itself not among them, of the row with these, and
        of the row with itself.
    owners : array of shape (n, K)
        The classes of the neighbours, -1 where there are fewer.
    labels : array of shape (n,)
        The classes of the rows.
    n_classes : int
        The number of classes.
    columns : bool
        As of ``best_mu``.

    Returns
    -------
    float
        The largest of the best.
    """
    norms2 = np.diagonal(grams, axis1=1, axis2=2) if not columns else np.vecdot(grams, grams)
    scale = float(norms2[owners >= 0].astype(np.float64).mean()) if (owners >= 0).any() else 0.0
    if not scale > 0:
        return 1.0
    engine, best = machine(corrs), (0.0, -1.0)
    for multiple in MULTIPLES:
        weights = engine.ridge_local(grams, corrs, multiple * scale, columns)
        found = engine.class_parts_local(
            grams, corrs, energies, weights, owners, n_classes, columns
        )
        shares = ClassParts(*found, energies).shares(np.dtype(np.float64))
        right = float(np.mean(shares.argmax(axis=1) == labels))
        if right >= best[1]:
            best = (multiple * scale, right)
    return best[0]
