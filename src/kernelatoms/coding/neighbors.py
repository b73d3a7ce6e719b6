"""Which atoms are near a signal: the locality constrained dictionary of the KCRC-LCD paper.

- ``nearest_in_space``: by the distance in feature space, from a coding problem alone;
- ``nearest_by``: by any distance of rows, on descriptors that are computed once;
- ``refine``: coarse to fine (Alg. 4): the nearest of every signal's own candidates;
- ``ApproximateNeighbors``: most of the nearest among very many atoms, by pynndescent (an extra).

All return atoms nearest first, int32, and hold one block of distances at a time.

See docs/decisions/027-local-problems.md.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.coding.atom_products import falls_with_l2
from kernelatoms.coding.problem import CodingProblem, KernelProblem, LinearProblem
from kernelatoms.engine import Array, is_array, machine
from kernelatoms.similarity import make_distance
from kernelatoms.similarity.base import is_whole
from kernelatoms.similarity.missing import rows_with_missing

#: Descriptors of rows, one array per part of a distance.
Features = tuple[Any, ...]

# Signals and atoms compared at once: enough for BLAS, and a few MiB of distances.
_ROWS, _ATOMS = 512, 2048
# Bytes of candidates' descriptors held at once.
_ROWS_BYTES = 1 << 22

_NOT_FINITE = "distance returned NaN or infinity; it must be finite on these rows."


def nearest_in_space(problem: CodingProblem, n_neighbors: int) -> NDArray[np.int32]:
    """Return the K atoms nearest to every signal in feature space, nearest first, ties by number.

    |x - d|^2 is |d|^2 - 2 <x, d> up to the signal's energy, which need not be known.
    """
    check_n_neighbors(n_neighbors, problem.n_atoms)
    found = np.empty((problem.n_signals, n_neighbors), np.int32, like=problem.like)
    rows = _as_rows(problem)

    def from_products(start: int, stop: int) -> None:
        corr, _ = problem.products(start, stop)
        engine = machine(corr)
        nearest = engine.TopK.empty(stop - start, n_neighbors, corr.dtype, like=corr)
        nearest.push(corr, 0, offsets=problem.norms2, factor=-2.0)
        found[start:stop] = nearest.sorted()[0]

    if rows is None:
        _ = problem.norms2  # computed before threads ask for it
        machine(found).for_blocks(problem.n_signals, 2 * problem.n_atoms, 8, from_products)
    else:
        _nearest_rows(*rows, found)
    return found


def _as_rows(problem: CodingProblem) -> tuple[Array, Array] | None:
    """Return signals and atoms whose distances as rows rank the atoms, where there are such."""
    if isinstance(problem, LinearProblem):
        signals, atoms = problem.signals, problem.atoms.rows
    elif (
        isinstance(problem, KernelProblem)
        and falls_with_l2(problem.atoms.kernel)
        and problem.atoms.expansion.coef is None
    ):
        signals, atoms = problem.signals, problem.atoms.expansion.anchors
    else:
        return None
    if len(rows_with_missing(signals)):
        if isinstance(problem, LinearProblem):
            raise ValueError("Signals must have no missing values to search for their neighbours.")
        return None
    engine = machine(signals)
    if signals.dtype != atoms.dtype or not (
        engine.all_in_safe_range(engine.squared_norms(signals), signals.dtype)
        and engine.all_in_safe_range(engine.squared_norms(atoms), signals.dtype)
    ):
        return None
    return signals, atoms


def _nearest_rows(signals: Array, atoms: Array, found: NDArray[np.int32]) -> None:
    """Write the atoms nearest to signals by l2 into ``found``, by blocks of one matrix product."""
    engine = machine(signals)
    norms2 = engine.squared_norms(atoms).astype(atoms.dtype)

    def work(start: int, stop: int) -> None:
        rows = signals[start:stop]
        nearest = engine.TopK.empty(len(rows), found.shape[1], rows.dtype, like=rows)
        for first in range(0, len(atoms), _ATOMS):
            part = slice(first, first + _ATOMS)
            products = rows @ atoms[part].T
            nearest.push(products, first, offsets=norms2[part], factor=-2.0)
        found[start:stop] = nearest.sorted()[0]

    engine.for_rows(len(signals), _ROWS, work)


def featurize_by(distance: Any, rows: Array) -> Features:
    """Return the descriptors that ``nearest_by`` and ``refine`` compare, per part of a distance."""
    return tuple(part.featurize(rows) for part in _parts(distance))


def nearest_by(distance: Any, A: Features, B: Features, n_neighbors: int) -> NDArray[np.int32]:
    """Return the K atoms nearest to every signal by a distance, nearest first, ties by number.

    A union of distances holds the K nearest by each part: first the nearest by every part in turn,
    then the second, and so on, each atom once; -1 fills the end.
    """
    check_n_neighbors(n_neighbors, len(B[0]))
    each = zip(_parts(distance), A, B, strict=True)
    return _united([_nearest_descriptors(*part, n_neighbors) for part in each])


def _nearest_descriptors(distance: Any, A: Any, B: Any, n_neighbors: int) -> NDArray[np.int32]:
    found = np.empty((len(A), n_neighbors), np.int32, like=A if is_array(A) else None)

    def work(start: int, stop: int) -> None:
        nearest = machine(found).TopK.empty(stop - start, n_neighbors, np.float64, like=found)
        for first in range(0, len(B), _ATOMS):
            far = distance.compare(A[start:stop], B[first : first + _ATOMS])
            far = np.asarray(far, like=found)
            nearest.push(far.astype(np.float64), first)
        if (nearest.indices < 0).any():
            raise ValueError(_NOT_FINITE)
        found[start:stop] = nearest.sorted()[0]

    machine(found).for_rows(len(A), _ROWS, work)
    return found


def refine(
    distance: Any, A: Features, B: Features, candidates: NDArray[np.int32], n_neighbors: int
) -> NDArray[np.int32]:
    """Return the nearest of every signal's candidates (n, K_c): Alg. 4 of the KCRC-LCD paper."""
    check_n_neighbors(n_neighbors, candidates.shape[1])
    each = zip(_parts(distance), A, B, strict=True)
    return _united([_refined(*part, candidates, n_neighbors) for part in each])


def _refined(
    distance: Any, A: Any, B: Any, candidates: NDArray[np.int32], n_neighbors: int
) -> NDArray[np.int32]:
    found = np.empty((len(A), n_neighbors), np.int32, like=candidates)

    def work(start: int, stop: int) -> None:
        own = candidates[start:stop]
        far = _to_candidates(distance, A[start:stop], B, np.maximum(own, 0))
        if not np.isfinite(far[own >= 0]).all():
            raise ValueError(_NOT_FINITE)
        far[own < 0] = np.inf
        places, _ = machine(far).smallest(far, n_neighbors)
        best = np.take_along_axis(own, np.maximum(places, 0), axis=1)
        found[start:stop] = np.where(places < 0, -1, best)

    each_own = candidates.shape[1] * int(np.prod(np.shape(B)[1:], initial=1))
    rows = max(_ROWS_BYTES // max(8 * each_own, 1), 1)
    machine(found).for_rows(len(A), rows, work)
    return found


def _to_candidates(distance: Any, A: Any, B: Any, own: NDArray[np.int32]) -> Array:
    """Return the distances of every signal to its own candidates, (n, K)."""
    if getattr(distance, "takes_stacks", False):
        return np.array(distance.compare(A[:, None], B[own])[:, 0], np.float64, like=own)
    each = [distance.compare(A[s : s + 1], B[own[s]])[0] for s in range(len(own))]
    return np.array(each, np.float64).reshape(own.shape)


def ascending(candidates: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return lists of atoms in ascending order, as codes have them; -1 fills the end."""
    last = np.iinfo(np.int32).max
    ordered = np.sort(np.where(candidates < 0, last, candidates), axis=1)
    return np.where(ordered == last, -1, ordered).astype(np.int32)


def _parts(distance: Any) -> tuple[Any, ...]:
    """Return the distances whose nearest atoms, together, are the neighbours of a signal."""
    distance = make_distance(distance)
    return tuple(getattr(distance, "parts", (distance,)))


def _united(found: list[NDArray[np.int32]]) -> NDArray[np.int32]:
    """Return lists as one: the first of each, the second of each and so on, every atom once."""
    if len(found) == 1:
        return found[0]
    lists = np.stack(found, axis=2).reshape(len(found[0]), -1)
    order = np.argsort(lists, axis=1, kind="stable")
    again = np.zeros(lists.shape, bool)
    repeats = np.diff(np.take_along_axis(lists, order, axis=1), axis=1) == 0
    np.put_along_axis(again, order[:, 1:], repeats, axis=1)
    lists[again] = -1
    to_the_end = np.argsort(lists < 0, axis=1, kind="stable")
    return np.take_along_axis(lists, to_the_end, axis=1)


def check_n_neighbors(n_neighbors: Any, most: int) -> None:
    """Refuse what is no number of neighbours."""
    if not is_whole(n_neighbors):
        raise TypeError(f"n_neighbors must be a whole number, got {n_neighbors!r}.")
    if not 1 <= n_neighbors <= most:
        raise ValueError(f"n_neighbors must be from 1 to {most}, got {n_neighbors}.")


# Rows are scaled to unit norm for distances that depend on the angle only.
_UNIT_ROWS = {"l2": False, "correlation": True}


class ApproximateNeighbors:
    """An index of atoms (rows without missing values) that finds most of the nearest ones.

    The same ``random_state`` finds the same neighbours with the same number of threads; one thread
    runs queries if ``n_threads()`` is 1, else all of numba's.
    """

    def __init__(
        self, atoms: Array, distance: str = "l2", *, random_state: int | None = None
    ) -> None:
        if distance not in _UNIT_ROWS:
            raise ValueError(
                f"Approximate search knows the distances 'l2' and 'correlation', got {distance!r}; "
                "use one of them, or exact search."
            )
        try:
            from pynndescent import NNDescent
        except ImportError as error:
            raise ImportError(
                "Approximate search needs pynndescent: pip install kernelatoms[ann], or use exact "
                "search."
            ) from error
        self.n_atoms = len(atoms)
        self._unit = _UNIT_ROWS[distance]
        n_threads = machine(atoms).n_threads()
        self._index = NNDescent(
            self._rows(atoms), metric="euclidean", random_state=random_state, compressed=False,
            n_jobs=n_threads, parallel_batch_queries=n_threads > 1,
        )  # fmt: skip
        self._index.prepare()

    def nearest(self, X: Array, n_neighbors: int) -> NDArray[np.int32]:
        """Return K atoms near every row, the nearest first; -1 where fewer were found."""
        check_n_neighbors(n_neighbors, self.n_atoms)
        if not len(X):
            return np.empty((0, n_neighbors), np.int32)
        found, _ = self._index.query(self._rows(X), k=n_neighbors)
        return np.asarray(found, np.int32)

    def _rows(self, rows: Array) -> Array:
        """Return rows as they are compared, in float32 as pynndescent stores them."""
        rows = machine(rows).unit_rows(rows) if self._unit else rows
        return np.ascontiguousarray(rows, np.float32)
