"""The table of distances by name, and ``make_distance``, which reads it."""

import dataclasses
from typing import Any

from kernelatoms.similarity.distances import (
    L1,
    L2,
    Chi2,
    Correlation,
    Distance,
    LInf,
    Mahalanobis,
    UserDistance,
)

DISTANCES: dict[str, type[Distance]] = {
    "chi2": Chi2,
    "correlation": Correlation,
    "l1": L1,
    "l2": L2,
    "linf": LInf,
    "mahalanobis": Mahalanobis,
}


def make_distance(distance: Any, **params: Any) -> Distance:
    """Return a distance, by name or as it is.

    Parameters
    ----------
    distance : str or object
        A name in ``DISTANCES``, or an object with ``describe(rows)`` and ``compare(A, B)``.
    **params : object
        Parameters of a distance by name, such as ``image_shape=(16, 16)``.

    Returns
    -------
    Distance

    Examples
    --------
    >>> from kernelatoms.similarity import make_distance
    >>> make_distance("mahalanobis", ridge=0.1).ridge
    0.1
    """
    if isinstance(distance, str) and distance in DISTANCES:
        return _by_name(distance, params)
    if isinstance(distance, Distance) or _compares(distance):
        if params:
            raise ValueError(
                f"{', '.join(sorted(params))} belong to distances by name: this one is an object, "
                "which has its own parameters."
            )
        return distance if isinstance(distance, Distance) else UserDistance(distance)
    names = ", ".join(repr(name) for name in DISTANCES)
    raise ValueError(
        f"distance must be one of {names}, or an object with describe(rows) and compare(A, B), "
        f"got {distance!r}."
    )


def name_of(distance: Any) -> str:
    """Return what a distance is called: its name in ``DISTANCES``, or its class."""
    if isinstance(distance, str):
        return distance
    kind = type(distance.given if isinstance(distance, UserDistance) else distance)
    return next((name for name, own in DISTANCES.items() if own is kind), kind.__name__)


def parameters_of(name: str) -> list[str]:
    """Return which parameters the distance of a name takes, sorted."""
    return sorted(field.name for field in dataclasses.fields(DISTANCES[name]))  # type: ignore[arg-type]


def _by_name(name: str, params: dict[str, Any]) -> Distance:
    known = parameters_of(name)
    unknown = sorted(set(params) - set(known))
    if unknown:
        raise ValueError(
            f"distance {name!r} does not take {', '.join(unknown)}; "
            f"it takes {', '.join(known) or 'no parameters'}."
        )
    return DISTANCES[name](**params)


def _compares(given: Any) -> bool:
    methods = (getattr(given, name, None) for name in ("describe", "compare"))
    return not isinstance(given, str | type) and all(callable(method) for method in methods)
