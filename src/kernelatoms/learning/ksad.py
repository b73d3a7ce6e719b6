"""K-SAD: an orthonormal dictionary whose codes also tell classes apart.

With signals x_i as rows of X, codes Q and atoms Z as rows, Z Z' = I, K-SAD (Chhabra, Wallace and
Hopgood; eq. (5), with the signs that its text describes: discrimination is maximised) minimises

    J = |X - Q Z|^2 + l1 |Q|_1 - fisher t(Q),   t = tr(S_W^-1 S_B)

S_W and S_B the scatter of codes within and between classes, as matrices or as numbers
(``ksad_scatter``), and S_W with a fixed ridge. J has a lower bound if the ridge is at least the
weight ``fisher``, since t <= |Q|^2 / ridge; with more atoms than rows less classes, only then.

Codes take one proximal step per pass (eq. (11)). With h = |X - Q Z|^2 - fisher t(Q),

    Q+ = soft(Q - grad h / 2a, l1 / 2a),   grad h = 2 (Q - X Z') - fisher grad t

with a from 1 up, doubled until h lies below its bound of curvature a, that is until t(Q+) >= t(Q) +
<grad t, D> - (a - 1) |D|^2 / fisher with D = Q+ - Q. J then falls. Without discrimination a = 1 is
exact: the step is soft(X Z', l1 / 2), the minimum (Proposition 1). Atoms are the polar factor of
Q'X (``procrustes``; Proposition 2), which lowers J as well.

See docs/decisions/039-ksad-coordinates.md.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from kernelatoms.coding.threshold import soft_threshold
from kernelatoms.engine import Array, machine
from kernelatoms.learning.ksad_scatter import SCATTERS, Scatter, class_means, in_blocks
from kernelatoms.learning.loop import PassObserver, has_converged
from kernelatoms.learning.procrustes import rotate_to

# From this curvature on, steps change nothing but rounding.
_SHORTEST_STEP = 2.0**40


class Weights(NamedTuple):
    """Weights of the terms of the objective, and the ridge of S_W."""

    l1: float
    fisher: float
    ridge: float


@dataclass
class KSADState:
    """Atoms, codes over them, and what every pass reached."""

    dictionary: Array
    codes: Array
    objective: list[float] = field(default_factory=list)


def learn_ksad(
    rows: Array,
    labels: NDArray[np.intp],
    atoms: Array,
    weights: Weights,
    *,
    max_iter: int,
    tol: float,
    scatter: str = "full",
    observer: PassObserver | None = None,
) -> KSADState:
    """Learn atoms and codes; J of every pass is that of both, and never rises.

    - ``labels`` (n_samples,): the class of every signal, ascending from 0, none left out.
    - ``atoms`` (n_atoms, n_features): where to start, orthonormal.
    - ``max_iter``: the most passes: the best atoms for the codes, then a step of all codes.
    - ``tol``: stop when three passes together lower the objective by no more than this share of it.
    - ``scatter``, {"full", "scalar"}: what the discriminative term is made of (``ksad_scatter``).
    - ``observer``: called before and after every pass; may stop learning.
    """
    energy = float(machine(rows).squared_norms(rows).sum())
    state = KSADState(atoms, soft_threshold(machine(rows).times(rows, atoms.T), weights.l1 / 2))
    at: Scatter | None = None
    if weights.fisher:
        at = SCATTERS[scatter].of(state.codes, labels, weights.ridge)
    a = 1.0
    for _ in range(max_iter):
        if observer is not None:
            observer.begin_pass()
        with machine(rows).one_blas_thread():
            cross = machine(rows).cross_products(state.codes, rows)
            state.dictionary = rotate_to(cross, state.dictionary)
            products = machine(rows).times(rows, state.dictionary.T)
            if at is not None:
                state.codes, at, a = step(state.codes, products, labels, at, weights, a)
            else:
                state.codes = soft_threshold(products, weights.l1 / 2)
        both = float(np.vecdot(products, state.codes, dtype=np.float64).sum())
        squares = max(energy - 2 * both + _energy(state.codes), 0.0)
        l1_norm = float(np.abs(state.codes).sum(dtype=np.float64))
        gained = 0.0 if at is None else weights.fisher * at.value
        state.objective.append(squares + weights.l1 * l1_norm - gained)
        if observer is not None and observer.end_pass(state):
            break
        if has_converged(state.objective, tol):
            break
    return state


def step(
    codes: Array,
    products: Array,
    labels: NDArray[np.intp],
    scatter: Scatter,
    weights: Weights,
    a: float,
) -> tuple[Array, Scatter, float]:
    """Return better codes, their scatter, and the curvature a at which they were found.

    ``products`` are the inner products X Z' of signals and atoms, ``scatter`` is that of the codes.
    The search begins at half of ``a``, the curvature of the step before.
    """
    uphill = scatter.gradient(codes, labels)
    downhill = np.empty_like(codes)

    def go_downhill(start: int, stop: int) -> None:
        rows = slice(start, stop)
        downhill[rows] = 2 * (products[rows] - codes[rows])
        downhill[rows] += codes.dtype.type(weights.fisher) * uphill[rows]

    in_blocks(codes, go_downhill)
    a = max(a / 2, 1.0)
    while a <= _SHORTEST_STEP:
        new, moved2, promised = _go(codes, downhill, uphill, weights.l1, a)
        try:
            reached = type(scatter).of(new, labels, weights.ridge)
        except scipy.linalg.LinAlgError:  # codes so large that the ridge is lost in rounding
            a *= 2
            continue
        fallen_short = weights.fisher * (scatter.value + promised - reached.value)
        if fallen_short <= (a - 1) * moved2:
            return new, reached, a
        a *= 2
    return codes, scatter, a


def _go(
    codes: Array, downhill: Array, uphill: Array, l1: float, a: float
) -> tuple[Array, float, float]:
    """Return Q+, |Q+ - Q|^2 and <grad t, Q+ - Q> of a step of curvature a."""
    new, sums = np.empty_like(codes), np.empty((len(codes), 2))
    length = codes.dtype.type(1 / (2 * a))

    def work(start: int, stop: int) -> None:
        rows = slice(start, stop)
        new[rows] = soft_threshold(codes[rows] + length * downhill[rows], l1 / (2 * a))
        moved = new[rows] - codes[rows]
        sums[rows, 0] = np.vecdot(moved, moved, dtype=np.float64)
        sums[rows, 1] = np.vecdot(uphill[rows], moved, dtype=np.float64)

    in_blocks(codes, work)
    moved2, promised = sums.sum(axis=0).tolist()
    return new, moved2, promised


def atom_owners(codes: Array, labels: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return for every atom the class whose codes have most energy in it, per row."""
    return class_means(np.square(codes, dtype=np.float64), np.bincount(labels)).argmax(axis=0)


def _energy(codes: Array) -> float:
    return float(machine(codes).squared_norms(codes).sum())
