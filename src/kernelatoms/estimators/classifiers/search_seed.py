"""The seed of approximate search: drawn by ``fit``, so that one model always finds the same."""

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from kernelatoms.estimators.state_checks import require_count

_LARGEST = int(np.iinfo(np.int32).max)


class SeededSearch:
    """Estimators with the parameters search and random_state; ``search_seed_`` is what fit drew."""

    search: str
    random_state: Any

    def _fit_search_seed(self) -> None:
        """Draw the seed, if the search needs one."""
        if self.search == "approximate":
            self.search_seed_: int = _drawn(self.random_state)

    def _search_seed(self) -> int:
        """Return the seed that ``fit`` drew.

        Models kept before there was one, or told only after ``fit`` to search like this, have none:
        theirs follows from ``random_state``, and is always the same too.
        """
        known: int | None = getattr(self, "search_seed_", None)
        if known is not None:
            return known
        whole = isinstance(self.random_state, int | np.integer)
        return _drawn(self.random_state if whole else 0)

    def _check_held_seed(self) -> None:
        """Refuse a fitted attribute that is no seed."""
        if "search_seed_" in vars(self):
            require_count(self, "search_seed_", low=0, high=_LARGEST)


def _drawn(random_state: Any) -> int:
    return int(check_random_state(random_state).randint(_LARGEST))
