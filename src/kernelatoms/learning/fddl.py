"""Fisher discriminative dictionary learning: codes that are similar within classes only.

With signals as columns, X_i those of class i, G_i their codes over all atoms and G_i^j their parts
over the atoms D_j of class j, FDDL (M. Yang, L. Zhang, X. Feng and D. Zhang, 2014) minimises

    J = sum_i r(X_i, D, G_i) + l1 |G|_1 + fisher (tr(S_W - S_B) + convexity |G|^2)       (eq. (7))
    r = |X_i - D G_i|^2 + |X_i - D_i G_i^i|^2 + sum_{j != i} |D_j G_i^j|^2               (eq. (5))

over codes and atoms of at most unit norm, S_W and S_B the scatter of codes within and between
classes (eq. (6); equations of the LKDL paper). Both steps are standard ones with other inner
products. Let [..] keep the entries of two atoms of one class and set all others to 0. Then

    sum_i r = <G, (D'D + [D'D]) G> - 2 <G, C> + 2 |X|^2,    C = D'X + (D_i'X_i in its own block)

so coding is l1 coding with the Gram matrix D'D + [D'D], and atoms are updated by block coordinate
descent with the moments G G' + [G G'] and X G' + (X_i G_i^i'). For means mu_i and mu of codes,

    tr(S_W - S_B) + convexity |G|^2 = (1 + convexity) |G|^2 - 2 sum_i n_i |mu_i|^2 + N |mu|^2.

At given codes G0, -|mu_i|^2 lies below its tangent and N |mu|^2 below its tangent plus |G - G0|^2.
This bound splits into one l1 problem per signal and is exact at G0: J falls with every round. The
l1 problems share the Gram matrix and start from G0. Here signals are rows.

See docs/decisions/038-fddl-l1.md.
"""

from typing import NamedTuple, TypeAlias

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from kernelatoms.coding.lasso import lasso
from kernelatoms.coding.problem import GivenProblem, linear_problems
from kernelatoms.coding.pursuits import Lasso
from kernelatoms.engine import Array, machine
from kernelatoms.learning.loop import PassObserver, each_pass, learn, worst_of_groups
from kernelatoms.learning.mod import BlockDescent
from kernelatoms.learning.state import CoupledState, LearnerState, unit_rows

CSR: TypeAlias = scipy.sparse.csr_array

# A coding step ends with the round that lowers the objective by no more than this share of it.
_CODES_TOL = 1e-4
_MOST_ROUNDS = 20
# Inner products of signals and atoms held at once: 32 MiB.
_VALUES_AT_ONCE = 1 << 22
# Sweeps over all atoms per pass; they are cheap beside coding.
_SWEEPS = 20


class Weights(NamedTuple):
    """Weights of the terms of the objective: lambda_1, lambda_2 and eta of eq. (7)."""

    l1: float
    fisher: float
    convexity: float


class Labelled(NamedTuple):
    """Signals (n, n_features) in float64, the class of each, and of every atom; both in order."""

    rows: Array
    labels: NDArray[np.intp]
    owners: NDArray[np.intp]

    @property
    def n_classes(self) -> int:
        """The number of classes, each of which has atoms."""
        return int(self.owners[-1]) + 1

    def members(self, c: int) -> slice:
        """Return the rows of a class."""
        return slice(*np.searchsorted(self.labels, [c, c + 1]).tolist())

    def own(self, c: int) -> slice:
        """Return the atoms of a class."""
        return slice(*np.searchsorted(self.owners, [c, c + 1]).tolist())


def start_fisher(data: Labelled, atoms: Array, weights: Weights) -> CoupledState:
    """Return atoms of at most unit norm, float64, with codes over them: where to start."""
    # Sums then do not depend on the number of threads, and no BLAS threads spin beside coding.
    with machine(atoms).one_blas_thread():
        codes, _ = code_all(data, atoms, CSR((len(data.rows), len(atoms))), weights)
    return CoupledState(atoms, codes)


def learn_fisher(
    data: Labelled,
    state: CoupledState,
    weights: Weights,
    *,
    max_iter: int,
    tol: float,
    observer: PassObserver | None = None,
) -> CoupledState:
    """Learn atoms and codes; J of every pass is that of both, and never rises.

    - ``state``: where to start (``start_fisher``), or to go on; changed.
    - ``max_iter``: the most passes: an update of all atoms, then of all codes.
    - ``tol``: stop when three passes together lower the objective by no more than this share of it.
    - ``observer``: called before and after every pass; may stop learning.
    """
    engine = machine(state.dictionary)
    for _ in each_pass(state, max_iter, tol=tol, observer=observer):
        with engine.one_blas_thread():
            better = improved_atoms(data, state.dictionary, state.codes)
            state.dictionary = with_replaced(data, better, state.codes)
            state.codes, reached = code_all(data, state.dictionary, state.codes, weights)
        state.objective.append(reached)
    return state


def class_atoms(data: Labelled, atoms: Array, l1: float, *, max_iter: int, tol: float) -> Array:
    """Return atoms learned for each class separately, where r is twice |X_i - D_i G|^2."""

    def learn_class(c: int) -> Array:
        rows = data.rows[data.members(c)]
        state = LearnerState.start(atoms[data.own(c)])
        alpha = l1 / 4  # the weight beside half of |X_i - D_i G|^2
        learn(
            linear_problems, rows, Lasso(alpha), BlockDescent(alpha), state, max_iter=max_iter,
            tol=tol,
        )  # fmt: skip
        return state.best

    return np.concatenate(machine(atoms).each(learn_class, range(data.n_classes)))


def objective(data: Labelled, atoms: Array, codes: CSR, weights: Weights) -> float:
    """Return J of eq. (7), from the signals and codes themselves."""
    whole, total = data.rows - codes @ atoms, 0.0
    by_atom = codes.tocsc()
    for c in range(data.n_classes):
        own, members = data.own(c), data.members(c)
        part = by_atom[:, own] @ atoms[own]
        part[members] -= data.rows[members]
        total += float(np.vdot(part, part))
    means, mean = code_means(codes, data)
    sizes = np.bincount(data.labels)
    scatter = (1 + weights.convexity) * float(codes.power(2).sum())
    scatter += len(data.rows) * float(mean @ mean) - 2 * float(sizes @ np.vecdot(means, means))
    size = float(abs(codes).sum())
    return float(np.vdot(whole, whole)) + total + weights.l1 * size + weights.fisher * scatter


def code_means(codes: CSR, data: Labelled) -> tuple[Array, Array]:
    """Return the mean code of every class (n_classes, n_atoms), and that of all rows."""
    sizes = np.bincount(data.labels)
    marks = CSR(
        (1.0 / sizes[data.labels], (data.labels, np.arange(len(data.labels)))),
        shape=(len(sizes), len(data.labels)),
    )
    means = (marks @ codes).toarray()
    return means, sizes @ means / len(data.labels)


def code_all(data: Labelled, atoms: Array, codes: CSR, weights: Weights) -> tuple[CSR, float]:
    """Return better codes over these atoms, by rounds until these bring nothing more, and J."""
    gram = machine(atoms).gram_matrix(atoms)
    for c in range(data.n_classes):
        gram[data.own(c), data.own(c)] *= 2
    gram[np.diag_indices_from(gram)] += weights.fisher * (2 + weights.convexity)
    now = objective(data, atoms, codes, weights)
    for _ in range(_MOST_ROUNDS):
        found = _one_round(data, atoms, gram, codes, weights)
        reached = objective(data, atoms, found, weights)
        if not reached < now:  # codes are exact up to a duality gap
            break
        gained, codes, now = now - reached, found, reached
        if gained <= _CODES_TOL * now or weights.fisher == 0:
            break
    return codes, now


def _one_round(data: Labelled, atoms: Array, gram: Array, codes: CSR, weights: Weights) -> CSR:
    """Solve every signal's l1 problem, with the scatter's bound at the codes given."""
    ridge = weights.fisher * (2 + weights.convexity)
    means, mean = code_means(codes, data)
    step = max(1, _VALUES_AT_ONCE // len(atoms))
    parts = []
    for c in range(data.n_classes):
        own, members = data.own(c), data.members(c)
        pull = weights.fisher * (2 * means[c] - mean)
        for start in range(members.start, members.stop, step):
            block = slice(start, min(start + step, members.stop))
            before = codes[block].toarray()
            towards = pull + weights.fisher * before
            energy = 2 * np.vecdot(data.rows[block], data.rows[block])
            if ridge > 0:  # which has a target with an energy of its own
                energy += np.vecdot(towards, towards) / ridge
            problem = DrawnProblem(gram, data.rows[block], atoms, towards, energy, own)
            parts.append(lasso(problem, weights.l1 / 2, start=before).to_csr())
    return CSR(scipy.sparse.vstack(parts, format="csr"))


class DrawnProblem(GivenProblem):
    """Signals ``rows`` over atoms, with codes drawn towards given ones.

    ``gram`` includes the ridge; ``towards`` (n, n_atoms) is added to the inner products of signals
    and atoms, which count twice for the atoms ``own``; ``energy`` (n,) is that of all that is to be
    explained.
    """

    def __init__(
        self, gram: Array, rows: Array, atoms: Array, towards: Array, energy: Array,
        own: slice = slice(0),
    ) -> None:  # fmt: skip
        super().__init__(gram, towards, energy, assume_psd=True)
        self._rows, self._atoms, self._own = rows, atoms, own

    def products(self, start: int, stop: int) -> tuple[Array, Array | None]:
        """Return inner products of signals start..stop with all atoms, and their energies."""
        corr = self._rows[start:stop] @ self._atoms.T
        corr[:, self._own] *= 2
        corr += self.corr[start:stop]
        return corr, self.energy(start, stop)


def improved_atoms(data: Labelled, atoms: Array, codes: CSR) -> Array:
    """Return atoms of at most unit norm that fit the codes better."""
    engine = machine(atoms)
    gram, cross = engine.sum_products(
        codes.indptr, codes.indices, codes.data, data.rows, len(atoms)
    )
    gram[data.owners[:, None] == data.owners] *= 2
    own = codes.copy()
    users = np.repeat(data.labels, np.diff(codes.indptr))
    own.data = np.where(data.owners[codes.indices] == users, codes.data, 0.0)
    new = atoms.copy()
    engine.descend_atoms(gram, cross + own.T @ data.rows, new, _SWEEPS)
    return new


def with_replaced(data: Labelled, atoms: Array, codes: CSR) -> Array:
    """Return atoms, with unused ones replaced by the worst represented signals of their class."""
    unused = np.flatnonzero(np.bincount(codes.indices, minlength=len(atoms)) == 0)
    if not len(unused):
        return atoms
    left, new = data.rows - codes @ atoms, atoms.copy()
    replaced, worst = worst_of_groups(unused, np.vecdot(left, left), (data.labels, data.owners))
    new[replaced] = unit_rows(data.rows[worst])
    return new
