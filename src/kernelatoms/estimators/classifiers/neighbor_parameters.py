"""The neighbours that a signal is coded over: chosen by parameters, fitted to training rows."""

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from kernelatoms.engine import Array, is_device_array
from kernelatoms.estimators.classifiers.training_dictionary import Locality, check_approximate
from kernelatoms.estimators.maps.kernel_choice import KernelChoice
from kernelatoms.estimators.state_checks import held, require_count
from kernelatoms.estimators.validation import check_choice, check_count, clip_count, refuse_unused
from kernelatoms.similarity import DISTANCES, KERNELS, Distance, Kernel, make_distance, make_kernel
from kernelatoms.similarity.distances import L1, L2, Chi2, LInf

# Distances that are computed on devices, too.
_ON_DEVICES = (L1, L2, LInf, Chi2, type(None))
_LARGEST_SEED = int(np.iinfo(np.int32).max)


class SeededSearch:
    """Estimators with the parameters search and random_state.

    ``search_seed_`` is the seed of approximate search, drawn by ``fit``, so that a model always
    finds the same neighbours.
    """

    search: str
    random_state: Any

    def _fit_search_seed(self) -> None:
        """Draw the seed, if the search needs one."""
        if self.search == "approximate":
            self.search_seed_: int = _drawn(self.random_state)

    def _search_seed(self) -> int:
        """Return the seed that ``fit`` drew.

        Where ``search`` was set after ``fit``, it follows from ``random_state`` at every call.
        """
        known: int | None = getattr(self, "search_seed_", None)
        if known is not None:
            return known
        whole = isinstance(self.random_state, int | np.integer)
        return _drawn(self.random_state if whole else 0)

    def _check_held_seed(self) -> None:
        """Refuse a fitted attribute that is no seed."""
        if "search_seed_" in vars(self):
            require_count(self, "search_seed_", low=0, high=_LARGEST_SEED)


def _drawn(random_state: Any) -> int:
    return int(check_random_state(random_state).randint(_LARGEST_SEED))


class NeighborParameters(SeededSearch, KernelChoice):
    """Estimators that code signals over their neighbours, if asked, among rows that they keep.

    Their parameters: n_neighbors, distance, n_coarse, coarse_distance, search and image_shape, and
    those of a kernel, in whose feature space the neighbours are the nearest without a distance.
    ``n_neighbors_``, ``distance_`` and ``coarse_distance_`` are what ``fit`` found.
    """

    n_neighbors: int | None
    distance: Any
    n_coarse: int | None
    coarse_distance: Any
    image_shape: Any

    def _check_neighbors(self) -> None:
        """Refuse parameters that name no neighbours."""
        check_choice("search", self.search, ("exact", "approximate"))
        if self.n_neighbors is None and (self.n_coarse is not None or self.distance is not None):
            raise ValueError(
                "distance and n_coarse choose each signal's neighbours: they need n_neighbors."
            )
        if self.n_neighbors is not None:
            check_count("n_neighbors", self.n_neighbors)
            if self._precomputed and (self.distance is not None or self.n_coarse is not None):
                raise ValueError(
                    "kernel='precomputed' gives no rows to compare: leave distance and n_coarse "
                    "at None, for the nearest in feature space."
                )
        if self.n_coarse is not None:
            coarse = check_count("n_coarse", self.n_coarse)
            if coarse < check_count("n_neighbors", self.n_neighbors):
                raise ValueError(
                    f"n_coarse must be at least n_neighbors = {self.n_neighbors}, from which the "
                    f"finer distance chooses, got {coarse}."
                )
        if self.image_shape is not None:
            sides = self.image_shape
            if not isinstance(sides, tuple | list) or len(sides) != 2:
                raise ValueError(
                    f"image_shape must be (height, width) in pixels, got {self.image_shape!r}."
                )
            for name, side in zip(("height", "width"), sides, strict=True):
                check_count(f"image_shape's {name}", side)

    def _refuse_unused(self) -> None:
        """Refuse parameters that these leave without use; files may hold such."""
        if self.n_neighbors is None:
            needs = "chooses how each signal's neighbours are found, and needs n_neighbors"
            refuse_unused(type(self), {"search": self.search}, needs)
        if self.n_coarse is None:
            needs = "chooses among which rows neighbours are looked for, and needs n_coarse"
            refuse_unused(type(self), {"coarse_distance": self.coarse_distance}, needs)

    def _fit_neighbors(self, rows: Array) -> None:
        """Find the number of neighbours and the distances, by the training rows."""
        self.n_neighbors_, self.distance_, self.coarse_distance_ = None, None, None
        if self.n_neighbors is None:
            return
        asked = int(self.n_neighbors)
        self.n_neighbors_ = clip_count("n_neighbors", asked, len(rows), "there are training rows")
        if is_device_array(rows):
            self._check_devices()
        if self.distance is not None:
            self.distance_ = self._make_distance(self.distance).fitted_to(rows)
        if self.n_coarse is not None:
            self.coarse_distance_ = self._make_distance(self.coarse_distance).fitted_to(rows)
        for distance in (self.distance_, self.coarse_distance_):
            if distance is not None:
                distance.compare(distance.featurize(rows[:1]), distance.featurize(rows[:2]))
        if self.search == "approximate":
            first = self.distance_ if self.n_coarse is None else self.coarse_distance_
            check_approximate(first, self._kernel())
            self._fit_search_seed()

    def _check_devices(self) -> None:
        """Refuse what finds neighbours on the CPU alone."""
        asked = (self.distance, None if self.n_coarse is None else self.coarse_distance)
        for distance in asked:
            if not isinstance(None if distance is None else make_distance(distance), _ON_DEVICES):
                raise ValueError(
                    f"distance {distance!r} is computed on the CPU alone; use 'l1', 'l2', 'linf' "
                    "or 'chi2', or kernelatoms.to_device(X, 'cpu')."
                )
        if self.search == "approximate":
            raise ValueError(
                "search='approximate' is for rows of the CPU; use search='exact' on a device."
            )

    def _locality(self) -> Locality | None:
        """Return which training rows a signal may use; None for all."""
        if self.n_neighbors_ is None:
            return None
        n_coarse = None if self.n_coarse is None else int(self.n_coarse)
        return Locality(
            self.n_neighbors_, self.distance_, n_coarse, self.coarse_distance_,
            seed=self._search_seed() if self.search == "approximate" else None,
        )  # fmt: skip

    def _asked_kernel(self) -> Kernel:
        """Return the kernel that the parameters ask for; distances of images get their shape."""
        named = isinstance(self.kernel, str) and self.kernel not in KERNELS
        if self.image_shape is None or not named or self.kernel not in DISTANCES:
            return super()._asked_kernel()
        own = {**self._shape_for(self.kernel), **(self.kernel_params or {})}
        return make_kernel(
            self.kernel, gamma=self.gamma, degree=self.degree, coef0=self.coef0, kernel_params=own
        )

    def _make_distance(self, distance: Any) -> Distance:
        if isinstance(distance, str) and distance in DISTANCES:
            return make_distance(distance, **self._shape_for(distance))
        return make_distance(distance)

    def _shape_for(self, name: str) -> dict[str, Any]:
        """Return the shape of images for a distance that compares images."""
        takes = "image_shape" in getattr(DISTANCES[name], "__dataclass_fields__", {})
        if not takes or self.image_shape is None:
            return {}
        return {"image_shape": tuple(int(side) for side in self.image_shape)}

    def _check_held_neighbors(self, rows: Array) -> None:
        """Refuse fitted attributes that choose no neighbours among the rows kept."""
        if (held(self, "n_neighbors_") is None) != (self.n_neighbors is None):
            raise ValueError("n_neighbors and n_neighbors_ must both be None, or neither.")
        if self.n_neighbors_ is not None:
            count = check_count("n_neighbors_", self.n_neighbors_)
            if count > len(rows):
                raise ValueError(f"n_neighbors_ must be at most {len(rows)}, got {count}.")
        self._check_held_seed()
        for name in ("distance_", "coarse_distance_"):
            if held(self, name) is not None:
                make_distance(held(self, name)).featurize(rows[:1])  # refuses what it lacks
