"""Neighbours among very many atoms by pynndescent, an extra: most of them, in far less time."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.coding.neighbors import check_n_neighbors
from kernelatoms.engine import machine

Array = NDArray[Any]

# Rows are turned to unit norm where the angle between them is what counts.
_UNIT_ROWS = {"l2": False, "correlation": True}


class ApproximateNeighbors:
    """An index of atoms, made once, that finds most of the nearest ones.

    The same ``random_state`` finds the same neighbours with the same number of threads. Queries run
    on one thread where ``n_threads()`` says so, else on all that numba has.

    Parameters
    ----------
    atoms : array of shape (n_atoms, n_features)
        Rows without missing values.
    distance : {"l2", "correlation"}
        The names of these distances; others are searched for exactly (``nearest_by``).
    random_state : int or None
        Seeds the index.
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
        """Return atoms near every row, the nearest first.

        Parameters
        ----------
        X : array of shape (n, n_features)
            Rows without missing values.
        n_neighbors : int
            K, from 1 to the number of atoms.

        Returns
        -------
        (n, K) int32
            -1 where fewer were found.
        """
        check_n_neighbors(n_neighbors, self.n_atoms)
        if not len(X):
            return np.empty((0, n_neighbors), np.int32)
        found, _ = self._index.query(self._rows(X), k=n_neighbors)
        return np.asarray(found, np.int32)

    def _rows(self, rows: Array) -> Array:
        """Return rows as they are compared, float32 as pynndescent has them."""
        return np.ascontiguousarray(
            machine(rows).unit_rows(rows) if self._unit else rows, np.float32
        )
