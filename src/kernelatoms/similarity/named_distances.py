"""The table of distances by name, ``make_distance``, which reads it, and ``Unified`` of several."""

import dataclasses
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from kernelatoms.similarity.distances import (
    L1,
    L2,
    Chi2,
    Correlation,
    Distance,
    LInf,
    Mahalanobis,
    UserDistance,
    as_rows,
    mean_of_pairs,
)
from kernelatoms.similarity.images import LBPChi2, ShapeContext, Tangent, check_pair

Array = NDArray[Any]

_FORMS = ("product", "sum", "union")


@dataclass(frozen=True)
class Unified(Distance):
    """Several distances as one: the unified measure of Liu et al. (2015), in its three forms.

    - "product": the product of the distances, which asks for no scales;
    - "sum": the sum of the distances, each over its mean between training rows (``fitted_to``);
    - "union": the first distance, while neighbours of a row are the nearest of every distance
      together: a search asks ``parts``.

    Parameters
    ----------
    distances : tuple of str or objects
        Names in ``DISTANCES``, or distances; at least one.
    form : str
        "product", "sum" or "union".
    image_shape : tuple of (height, width), optional
        For distances by name that need one.
    scales : tuple of float, optional
        The number by which the sum divides each distance; None until fitted.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelatoms.similarity import make_distance
    >>> both = make_distance("unified", distances=("l1", "linf"))
    >>> both.compare(both.featurize(np.zeros((1, 2))), both.featurize(np.array([[3.0, 4.0]])))
    array([[28.]])
    """

    distances: tuple[Any, ...] = ("l2", "correlation")
    form: str = "product"
    image_shape: tuple[int, int] | None = None
    scales: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if type(self.distances) not in (tuple, list):
            raise ValueError(
                f"distances must be a tuple of names or distances, got {self.distances!r}."
            )
        if not self.distances:
            raise ValueError("distances must hold at least one distance, got none.")
        object.__setattr__(self, "distances", tuple(self.distances))
        if self.form not in _FORMS:
            forms = ", ".join(repr(form) for form in _FORMS)
            raise ValueError(f"form must be one of {forms}, got {self.form!r}.")
        if self.image_shape is not None:
            shape = check_pair("image_shape", "(height, width)", self.image_shape)
            object.__setattr__(self, "image_shape", shape)
        n_parts = len(self._made())
        if self.scales is not None:
            scales = np.asarray(self.scales)
            right = scales.shape == (n_parts,) and scales.dtype.kind == "f"
            if not right or not (np.isfinite(scales).all() and (scales > 0).all()):
                raise ValueError(
                    f"scales must be {n_parts} numbers above 0, or None, got {self.scales!r}."
                )
            object.__setattr__(self, "scales", tuple(scales.tolist()))

    def _made(self) -> tuple[Distance, ...]:
        """Return the distances, those by name made."""
        return tuple(make_distance(given, **self._shape_for(given)) for given in self.distances)

    def _shape_for(self, given: Any) -> dict[str, Any]:
        """Return the image shape, if it is known and a distance by name asks for it."""
        named = isinstance(given, str) and given in DISTANCES
        if self.image_shape is None or not named or "image_shape" not in parameters_of(given):
            return {}
        return {"image_shape": self.image_shape}

    @property
    def _used(self) -> tuple[Distance, ...]:
        """The distances that ``featurize`` and ``compare`` use."""
        return self._made()[:1] if self.form == "union" else self._made()

    @property
    def parts(self) -> tuple[Distance, ...]:
        """The distances whose nearest rows, together, are the neighbours of a row."""
        if self.form != "union":
            return (self,)
        return tuple(part for made in self._made() for part in made.parts)

    @property
    def non_negative(self) -> bool:  # type: ignore[override]
        """Whether one of them is defined on rows without negative values only."""
        return any(part.non_negative for part in self._made())

    @property
    def takes_stacks(self) -> bool:  # type: ignore[override]
        """Whether all of them take stacks."""
        return all(part.takes_stacks for part in self._used)

    @property
    def semidefinite_to(self) -> float:  # type: ignore[override]
        """1 for a sum whose parts all are to power 1, that of a single part; else not known."""
        to = [part.semidefinite_to for part in self._used]
        if len(to) == 1:
            return to[0]
        return min(1.0, *to) if self.form == "sum" and min(to) >= 1 else 0

    def fitted_to(self, rows: Array) -> Self:
        """Return it with parts fitted to rows (n, n_features), and their scales for a sum."""
        before = self._made()
        after = tuple(part.fitted_to(rows) for part in before)
        scales = self.scales
        if self.form == "sum" and scales is None:
            means = [mean_of_pairs(part, rows) for part in after]
            scales = tuple(mean if 0 < mean < np.inf else 1.0 for mean in means)
        same = all(new is old for new, old in zip(after, before, strict=True))
        if same and scales is self.scales:
            return self
        return dataclasses.replace(self, distances=after, scales=scales)

    def featurize(self, rows: Array) -> Array:
        """Return the descriptors of all parts side by side; how wide each is comes first."""
        rows = as_rows(rows)
        parts = [_flat(part, rows) for part in self._used]
        widths = np.broadcast_to([part.shape[1] for part in parts], (len(rows), len(parts)))
        return np.concatenate([widths, *parts], axis=1).astype(parts[0].dtype, copy=False)

    def compare(self, A: Array, B: Array) -> Array:
        """Return the distances of all pairs of descriptors: (..., n, m)."""
        scales = self.scales
        if self.form == "sum" and scales is None:
            raise ValueError(
                "the sum of distances takes their scales from training rows: use "
                "distance.fitted_to(rows)."
            )
        used = self._used
        if not (A.size and B.size):  # no row says how wide the parts are
            heads = np.broadcast_shapes(A.shape[:-2], B.shape[:-2])
            return np.empty((*heads, A.shape[-2], B.shape[-2]))
        widths = A.reshape(-1, A.shape[-1])[0, : len(used)].astype(np.intp)
        ends = len(used) + np.cumsum(widths)
        each = []
        for part, start, stop in zip(used, ends - widths, ends, strict=True):
            own = A[..., start:stop]
            each.append(np.asarray(part.compare(own, own if A is B else B[..., start:stop])))
        if self.form == "sum" and scales is not None:
            each = [far / scale for far, scale in zip(each, scales, strict=True)]
            return np.sum(each, axis=0)
        return np.prod(each, axis=0)


def _flat(part: Distance, rows: Array) -> Array:
    descriptors = np.asarray(part.featurize(rows))
    if descriptors.ndim != 2:
        raise ValueError(
            f"distances of a unified measure need descriptors (n, p), and those of "
            f"{name_of(part)} have shape {descriptors.shape}."
        )
    return descriptors


DISTANCES: dict[str, type[Distance]] = {
    "chi2": Chi2,
    "correlation": Correlation,
    "l1": L1,
    "l2": L2,
    "lbp-chi2": LBPChi2,
    "linf": LInf,
    "mahalanobis": Mahalanobis,
    "shape-context": ShapeContext,
    "tangent": Tangent,
    "unified": Unified,
}


def make_distance(distance: Any, **params: Any) -> Distance:
    """Return a distance, by name or as it is.

    Parameters
    ----------
    distance : str or object
        A name in ``DISTANCES``, or an object with ``featurize(rows)`` and ``compare(A, B)``.
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
        f"distance must be one of {names}, or an object with featurize(rows) and compare(A, B), "
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
    methods = (getattr(given, name, None) for name in ("featurize", "compare"))
    return not isinstance(given, str | type) and all(callable(method) for method in methods)
