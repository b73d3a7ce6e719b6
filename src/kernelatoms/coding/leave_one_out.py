"""Leave-one-out codes of training rows, and the weight mu that classifies them best.

With P = (A + mu I)^-1 and A the Gram matrix of all n atoms, the ridge code of atom i over the
others is w_j = -P_ji / P_ii: one eigendecomposition gives the exact leave-one-out accuracy of any
mu.

Atoms seen through a projection Psi of kernel values (section 4.2 of the KCRC-LCD paper), z_j =
sum_k psi_k G_kj, also lose the term of row i. With g = G_i, h = Z psi_i and s = |psi_i|^2, their
inner products become A - g h' - h g' + s g g', a change of rank two: the inverse follows from the
Woodbury formula. The identity is the case h = g, s = 1. If atoms are scaled to unit norm, so are
their inner products, g and h; the norms still include the term of row i, one of n.

Robust codes of left-out rows have no closed form: a held-out part of the rows is coded at every
weight that is tried.

See docs/decisions/029-leave-one-out.md.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelatoms.coding.class_residuals import (
    ClassParts,
    Members,
    members_of,
    parts_of_dense_codes,
    parts_of_vectors,
)
from kernelatoms.coding.robust import RobustDictionary
from kernelatoms.engine import Array, machine
from kernelatoms.features.linear_algebra import eigh

#: Weights that are tried, as multiples of the atoms' mean squared norm.
MULTIPLES = tuple(10.0**power for power in range(-10, 2))


def best_mu(
    gram: Array,
    labels: NDArray[np.intp],
    n_classes: int,
    *,
    projected: bool = False,
    psi: Array | None = None,
    unit: bool = False,
) -> tuple[float, float]:
    """Return the weight of |w|^2 under which all other rows classify most rows correctly.

    - ``gram`` (n, n): G, inner products of the rows.
    - ``labels`` (n,): their classes, ascending, 0 to n_classes - 1.
    - ``projected``, ``psi``: whether rows are seen through a projection of their kernel values, and
      which; None is the identity.
    - ``unit``: whether rows so seen are scaled to unit norm.
    - result: the middle of the best weights, often many, and the share of rows classified right.
    """
    rows = _Rows(gram, projected, psi, unit)
    scale = float(np.diagonal(rows.A).mean())
    if not scale > 0:
        return 1.0, 0.0
    members = members_of(labels, n_classes)

    def right(multiple: float) -> float:
        parts = rows.parts(rows.codes(multiple * scale), members)
        return float(np.mean(parts.shares(np.dtype(np.float64)).argmax(axis=1) == labels))

    # On our threads, each with one BLAS thread: a threaded BLAS waits for busy cores.
    found = machine(rows.A).each(right, MULTIPLES)
    return _middle_of_best(found) * scale, max(found)


class _Rows:
    """Training rows as atoms: A of the atoms, and the terms of row i: rows of G and Ht."""

    def __init__(self, gram: Array, projected: bool, psi: Array | None, unit: bool) -> None:
        self.projected = projected
        self.G = G = gram.astype(np.float64)
        with machine(G).one_blas_thread():
            if not projected:
                self.A = G
            elif psi is None:
                self.A, self.Ht, self.s = G @ G, G, np.ones(len(G), like=G)
            else:
                Z = G @ psi
                self.A, self.Ht, self.s = Z @ Z.T, psi @ Z.T, np.vecdot(psi, psi)
            if unit:
                norms = np.sqrt(np.diagonal(self.A))
                scales = np.where(norms > 0, 1 / np.where(norms > 0, norms, 1), 0)
                self.A = self.A * scales * scales[:, None]
                self.G = G * scales
                if projected:
                    self.Ht = self.G if psi is None else self.Ht * scales
            values, self.vectors = eigh(self.A)
        self.values = np.maximum(values, 0.0)

    def codes(self, mu: float) -> Array:
        """Return each row's code over the others, (n, n)."""
        P = (self.vectors / (self.values + mu)) @ self.vectors.T
        own = np.diagonal(P)

        def solved(right: Array) -> Array:
            """Return M^-1 of the rows of ``right``, as rows, M being A + mu I without i."""
            Q = (P @ right.T).T
            Q -= P * (np.diagonal(Q) / own)[:, None]
            np.fill_diagonal(Q, 0.0)
            return Q

        codes = -P / own[:, None]  # M^-1 A_i
        np.fill_diagonal(codes, 0.0)
        if not self.projected:
            return codes
        G, Ht, s = self.G, self.Ht, self.s
        Mg = solved(G)
        Mh = Mg if Ht is G else solved(Ht)
        g_own, h_own = np.diagonal(G)[:, None], np.diagonal(Ht)[:, None]
        # The signal is z_i less its own term too.
        x = codes - h_own * Mg - g_own * Mh + (s[:, None] * g_own) * Mg
        # (M + U C U') w = right with U = [g h], C = [[s, -1], [-1, 0]], C^-1 = [[0, -1], [-1, -s]]:
        # w = x - M^-1 U (C^-1 + U'M^-1 U)^-1 U'x.
        core = np.empty((len(G), 2, 2), like=G)
        core[:, 0, 0] = np.vecdot(G, Mg)
        core[:, 0, 1] = core[:, 1, 0] = np.vecdot(G, Mh) - 1.0
        core[:, 1, 1] = np.vecdot(Ht, Mh) - s
        right = np.stack([np.vecdot(G, x), np.vecdot(Ht, x)], axis=1)
        inner = np.linalg.solve(core, right[:, :, None])[:, :, 0]
        return x - inner[:, :1] * Mg - inner[:, 1:] * Mh

    def parts(self, codes: Array, members: Members) -> ClassParts:
        """Return residuals of classes for rows that are coded over all others."""
        A = self.A
        grams = [A[own, own] for own in members]
        found = parts_of_dense_codes(A, np.diagonal(A), codes, members, grams)
        if not self.projected:
            return found
        G, Ht, s = self.G, self.Ht, self.s[:, None]
        g_own, h_own = np.diagonal(G)[:, None], np.diagonal(Ht)[:, None]
        # The row's own term adds psi_i (G_ii - g'w_c) to the residual y - D_c w_c: subtract it.
        along_g = g_own - np.stack([np.vecdot(codes[:, own], G[:, own]) for own in members], 1)
        along_h = h_own - np.stack([np.vecdot(codes[:, own], Ht[:, own]) for own in members], 1)
        residuals2 = found.residuals2 - 2 * along_g * along_h + s * along_g**2
        energies = found.energies - (2 * g_own * h_own - s * g_own**2)[:, 0]
        return ClassParts(np.maximum(residuals2, 0.0), found.norms2, np.maximum(energies, 0.0))


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
    """Return the weight of |w|^2 under which neighbours classify most rows correctly.

    - ``grams``, ``corrs``, ``energies`` (n, K, K), (n, K) and (n,): inner products of each row's
      neighbours, itself not among them, of the row with these, and of the row with itself.
    - ``owners`` (n, K): the classes of the neighbours, -1 where there are fewer.
    - ``labels`` (n,): the classes of the rows.
    """
    norms2 = np.diagonal(grams, axis1=1, axis2=2) if not columns else np.vecdot(grams, grams)
    scale = float(norms2[owners >= 0].astype(np.float64).mean()) if (owners >= 0).any() else 0.0
    if not scale > 0:
        return 1.0
    engine, right = machine(corrs), []
    for multiple in MULTIPLES:
        weights = engine.ridge_local(grams, corrs, multiple * scale, columns)
        found = engine.class_parts_local(
            grams, corrs, energies, weights, owners, n_classes, columns
        )
        shares = ClassParts(found[0], found[1], energies).shares(np.dtype(np.float64))
        right.append(float(np.mean(shares.argmax(axis=1) == labels)))
    return _middle_of_best(right) * scale


def _middle_of_best(right: Sequence[float]) -> float:
    """Return the geometric mean of the multiples that classify most rows right."""
    best = [multiple for multiple, share in zip(MULTIPLES, right, strict=True)
            if share == max(right)]  # fmt: skip
    return float(np.exp(np.mean(np.log(best))))


#: Weights that are tried, as multiples of the atoms' mean |d|_1, until two in a row gain nothing.
#: Columns of kernel values are nearly alike and need large codes, and so small weights.
ROBUST_MULTIPLES = tuple(10.0**-power for power in range(7))
#: Of rows as they are: smaller weights gain nothing on whole rows and lose much on hidden parts.
ROW_MULTIPLES = ROBUST_MULTIPLES[:3]
# A row counts by log(r_other / r_own), its own class's residual and the least of others, clipped
# here: with some hundred rows this says more than the number of correct ones.
_CLEAR = 0.3
# A larger weight, with which occluded parts of a signal do less harm, may lose this much of 1.
_MARGIN = 0.01
# The multiple if held-out rows do not help to choose.
_UNKNOWN = 0.01
# The choice is the same at a hundredth of this gap.
_GAP = 1e-3


class LeftOut(NamedTuple):
    """Rows (n, n_entries) and atoms that they are coded over, with the classes of both."""

    rows: Array
    labels: NDArray[np.intp]
    atoms: Array
    owners: NDArray[np.intp]


def best_robust_mu(
    parts: Sequence[LeftOut], n_classes: int, multiples: Sequence[float] = ROBUST_MULTIPLES
) -> float:
    """Return the largest weight of |w|^2 that classifies held-out rows nearly as well as the best.

    Larger weights are safer for occluded signals, which are not among the held-out rows.
    """
    scale = float(np.mean([np.abs(part.atoms).sum(axis=1).mean() for part in parts]))
    if not scale > 0:
        return 1.0
    dictionaries = [RobustDictionary(part.atoms, scale) for part in parts]
    scores: list[float] = []
    for multiple in multiples:
        dictionaries = [one.with_mu(multiple * scale) for one in dictionaries]
        coded = zip(parts, dictionaries, strict=True)
        scores.append(float(np.concatenate([_clear(*each, n_classes) for each in coded]).mean()))
        if len(scores) > 2 and max(scores[-2:]) <= max(scores[:-2]):
            break
    if max(scores) <= -1:  # as where every class has one row
        return _UNKNOWN * scale
    enough = max(scores) - _MARGIN
    first = next(i for i, score in enumerate(scores) if score >= enough)
    return multiples[first] * scale


def _clear(part: LeftOut, dictionary: RobustDictionary, n_classes: int) -> Array:
    """Return how clearly rows are classified: from -1, clearly as another class, to 1."""
    found = dictionary.code(part.rows, _GAP)
    explained = part.rows - found.errors
    classes = parts_of_vectors(explained, part.atoms, found.weights, part.owners, n_classes)
    residuals = classes.residuals()
    at = (np.arange(len(residuals)), part.labels)
    own = residuals[at]
    residuals[at] = np.inf
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(residuals.min(axis=1)) - np.log(own)
    ratio[np.isnan(ratio)] = 0.0  # no class has a part, or two fit exactly: undecided
    return np.clip(ratio, -_CLEAR, _CLEAR) / _CLEAR
