"""K-SAD: an orthonormal dictionary whose codes also tell classes apart.

With signals x_i as rows of X, codes Q and atoms Z as rows, Z Z' = I, K-SAD (Chhabra, Wallace and
Hopgood; eq. (5), with the signs that its text describes: discrimination is maximised) minimises

    J = |X - Q Z|^2 + l1 |Q|_1 - fisher t(Q)

The discriminative term t compares the scatter of codes within and between classes. With n_c codes
in class c, m_c their mean and m the mean of all, it is of matrices (``FullScatter``)

    t = tr(S_W^-1 S_B),   S_B = sum_c n_c (m_c - m)(m_c - m)'
    S_W = sum_c sum_{i in c} (q_i - m_c)(q_i - m_c)' + ridge I

or of numbers, as the paper's text has it (``ScalarScatter``)

    t = s_B / s_W,   s_B = sum_c n_c |m_c - m|^2,   s_W = sum_c v_c^2 + ridge
    v_c^2 = sum_{i in c} |q_i - m_c|^2 / n_c

With a ridge of at least the weight ``fisher``, t <= |Q|^2 / ridge and J has a lower bound; with
more atoms than rows less classes, only then.

Codes take one proximal step per pass (eq. (11)). With h = |X - Q Z|^2 - fisher t(Q),

    Q+ = soft(Q - grad h / 2a, l1 / 2a),   grad h = 2 (Q - X Z') - fisher grad t

with a from 1 up, doubled until h lies below its bound of curvature a, that is until t(Q+) >= t(Q) +
<grad t, D> - (a - 1) |D|^2 / fisher with D = Q+ - Q. J then falls. Without discrimination a = 1 is
exact: the step is soft(X Z', l1 / 2), the minimum (Proposition 1). Atoms are the polar factor of
Q'X (``mod``; Proposition 2), which lowers J as well.

See docs/decisions/039-ksad-coordinates.md.
"""

from collections.abc import Callable
from typing import NamedTuple, Self

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from kernelatoms.coding.closed_form import soft_threshold
from kernelatoms.engine import Array, machine
from kernelatoms.learning.loop import PassObserver, each_pass
from kernelatoms.learning.mod import rotate_to
from kernelatoms.learning.state import CoupledState

# From this curvature on, steps change nothing but rounding.
_SHORTEST_STEP = 2.0**40


class Weights(NamedTuple):
    """Weights of the terms of the objective, and the ridge of S_W."""

    l1: float
    fisher: float
    ridge: float


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

        def fill(rows: slice, out: Array) -> None:
            own = labels[rows]
            np.matmul(codes[rows] - means[own], turn, out=out)
            np.subtract(pull[own], out, out=out)
            out *= 2

        return _filled(codes, fill)


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

        def fill(rows: slice, out: Array) -> None:
            own = labels[rows]
            np.multiply(codes[rows], -shares[own][:, None], out=out)
            out += constant[own]

        return _filled(codes, fill)


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


def _filled(codes: Array, fill: Callable[[slice, Array], None]) -> Array:
    """Return an array like codes; ``fill(rows, out)`` writes blocks that stay in a core's cache."""
    out = np.empty_like(codes)

    def work(start: int, stop: int) -> None:
        fill(slice(start, stop), out[start:stop])

    machine(codes).for_blocks(len(codes), 4 * codes.shape[1], codes.itemsize, work)
    return out


def start_ksad(rows: Array, atoms: Array, weights: Weights) -> CoupledState:
    """Return orthonormal atoms with codes over them: where to start."""
    return CoupledState(atoms, soft_threshold(machine(rows).times(rows, atoms.T), weights.l1 / 2))


def learn_ksad(
    rows: Array,
    labels: NDArray[np.intp],
    state: CoupledState,
    weights: Weights,
    *,
    max_iter: int,
    tol: float,
    scatter: str = "full",
    observer: PassObserver | None = None,
) -> CoupledState:
    """Learn atoms and codes; J of every pass is that of both, and never rises.

    - ``labels`` (n_samples,): the class of every signal, ascending from 0, none left out.
    - ``state``: where to start (``start_ksad``), or to go on; changed.
    - ``max_iter``: the most passes: the best atoms for the codes, then a step of all codes.
    - ``tol``: stop when three passes together lower the objective by no more than this share of it.
    - ``scatter``, {"full", "scalar"}: what the discriminative term is made of.
    - ``observer``: called before and after every pass; may stop learning.
    """
    energy = float(machine(rows).squared_norms(rows).sum())
    at: Scatter | None = None
    if weights.fisher:
        at = SCATTERS[scatter].of(state.codes, labels, weights.ridge)
    for _ in each_pass(state, max_iter, tol=tol, observer=observer):
        with machine(rows).one_blas_thread():
            cross = machine(rows).cross_products(state.codes, rows)
            state.dictionary = rotate_to(cross, state.dictionary)
            products = machine(rows).times(rows, state.dictionary.T)
            if at is not None:
                state.codes, at, state.curvature = step(
                    state.codes, products, labels, at, weights, state.curvature
                )
            else:
                state.codes = soft_threshold(products, weights.l1 / 2)
        both = float(np.vecdot(products, state.codes, dtype=np.float64).sum())
        of_codes = float(machine(rows).squared_norms(state.codes).sum())
        squares = max(energy - 2 * both + of_codes, 0.0)
        l1_norm = float(np.abs(state.codes).sum(dtype=np.float64))
        gained = 0.0 if at is None else weights.fisher * at.value
        state.objective.append(squares + weights.l1 * l1_norm - gained)
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

    def go_downhill(rows: slice, out: Array) -> None:
        out[:] = 2 * (products[rows] - codes[rows])
        out += codes.dtype.type(weights.fisher) * uphill[rows]

    downhill = _filled(codes, go_downhill)
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
    sums, length = np.empty((len(codes), 2)), codes.dtype.type(1 / (2 * a))

    def go(rows: slice, out: Array) -> None:
        out[:] = soft_threshold(codes[rows] + length * downhill[rows], l1 / (2 * a))
        moved = out - codes[rows]
        sums[rows, 0] = np.vecdot(moved, moved, dtype=np.float64)
        sums[rows, 1] = np.vecdot(uphill[rows], moved, dtype=np.float64)

    new = _filled(codes, go)
    moved2, promised = sums.sum(axis=0).tolist()
    return new, moved2, promised


def atom_owners(codes: Array, labels: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return for every atom the class whose codes have most energy in it, per row."""
    return class_means(np.square(codes, dtype=np.float64), np.bincount(labels)).argmax(axis=0)
