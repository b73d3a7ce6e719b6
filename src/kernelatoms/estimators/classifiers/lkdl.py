"""``make_lkdl``: any linear learner under a kernel, by virtual samples before it."""

from typing import Any

from sklearn.base import clone
from sklearn.pipeline import Pipeline

from kernelatoms.estimators.maps.linearizer import KernelLinearizer
from kernelatoms.estimators.maps.row_normalizer import RowNormalizer
from kernelatoms.similarity.base import check_flag


def make_lkdl(
    learner: Any, kernel: Any = "rbf", *, unit_rows: bool = False, **map_parameters: Any
) -> Pipeline:
    """Return a pipeline that learns under a kernel: virtual samples, then a linear learner.

    Linearized kernel dictionary learning (A. Golts and M. Elad, 2016): the inner products of
    virtual samples approximate the kernel. The steps are called "map" and "learn" (and "scale",
    with ``unit_rows``), so that grids can name ``map__gamma`` or ``learn__n_atoms``.

    Parameters
    ----------
    learner : estimator
        What learns: ``LCKSVDClassifier()``, ``FDDLClassifier()``, ``ClassDictionaryClassifier()``,
        ``KSVD()``, or any other estimator that takes rows of numbers. It is cloned.
    kernel : str, kernel object or callable, default="rbf"
        As in ``KernelLinearizer``.
    unit_rows : bool, default=False
        Scale every row to unit norm first, as the paper does with images.
    map_parameters : keyword arguments
        Parameters of ``KernelLinearizer``: ``gamma``, ``degree``, ``coef0``, ``n_landmarks``,
        ``n_components``, ``sampling``, ``random_state``, ...

    Returns
    -------
    Pipeline

    Examples
    --------
    >>> from kernelatoms import LCKSVDClassifier, make_lkdl
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> lkdl = make_lkdl(
    ...     LCKSVDClassifier(n_atoms=200, n_nonzero_coefs=8, random_state=0),
    ...     "rbf", gamma=0.5, unit_rows=True, random_state=0,
    ... )
    >>> lkdl.fit(X[:1000], y[:1000]).score(X[1000:], y[1000:]) > 0.9
    True
    """
    if isinstance(learner, type) or not (
        hasattr(learner, "fit") and hasattr(learner, "get_params")
    ):
        raise TypeError(
            f"learner must be an estimator such as LCKSVDClassifier(), got {learner!r}."
        )
    known = sorted(set(KernelLinearizer().get_params()) - {"kernel"})
    unknown = sorted(set(map_parameters) - set(known))
    if unknown:
        raise TypeError(
            f"{unknown[0]} is no parameter of KernelLinearizer, which has {', '.join(known)}; "
            "parameters of the learner are given to the learner itself."
        )
    steps = [("map", KernelLinearizer(kernel, **map_parameters)), ("learn", clone(learner))]
    scale = [("scale", RowNormalizer())] if check_flag("unit_rows", unit_rows) else []
    return Pipeline([*scale, *steps])
