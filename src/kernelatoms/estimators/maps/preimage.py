"""``preimage``: rows whose phi is about a given vector of feature space."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_array

from kernelatoms.engine import Array
from kernelatoms.estimators.devices.border import on_cpu
from kernelatoms.estimators.validation import (
    FLOATS,
    check_choice,
    check_count,
    check_real,
    refuse_unused,
)
from kernelatoms.features.preimage import preimage_rows
from kernelatoms.similarity import make_kernel
from kernelatoms.similarity.factory import check_kernel, is_precomputed

_METHODS = ("auto", "fixed-point", "distance", "ridge")


class PreImages(NamedTuple):
    """What ``preimage`` returns.

    Attributes
    ----------
    rows : array of shape (m, n_features)
        A row for every vector.
    error : array of shape (m,)
        |phi(x) - v|^2 / |v|^2, reached by these rows.
    """

    rows: Array
    error: Array


def preimage(
    coef: Any,
    anchors: Any,
    *,
    kernel: Any = "rbf",
    gamma: float | str | None = "scale",
    degree: float = 3,
    coef0: float = 1,
    kernel_params: dict[str, Any] | None = None,
    method: str = "auto",
    n_neighbors: int = 10,
    max_iter: int = 100,
    tol: float = 1e-6,
) -> PreImages:
    """Find rows x whose phi(x) is about v = sum_i coef[i] phi(anchors[i]).

    Most vectors of a feature space are phi of no row, so the error that was reached comes with
    the rows: 0 for a true pre-image; at 1 or more, the zero vector would have been as close.

    Parameters
    ----------
    coef : array of shape (n_anchors, m) or (n_anchors,)
        The vectors, one per column: ``dual_coef_`` of a learner, or ``dual_coef_ @ codes.T``.
    anchors : array of shape (n_anchors, n_features)
        The rows that the vectors are made of.
    kernel : str, callable, object or class, default="rbf"
        As in ``KernelLinearizer``; not "precomputed".
    gamma : float, "scale", "auto", "spread" or None, default="scale"
        As in ``KernelLinearizer``, of the anchors in place of training rows. For vectors of a
        fitted model give its ``gamma_``.
    degree, coef0 : float
        Parameters of the kernels by name, as in scikit-learn.
    kernel_params : dict, optional
        Further arguments of a function, or the arguments of a class.
    method : {"auto", "fixed-point", "distance", "ridge"}, default="auto"
        "fixed-point" goes downhill on the error from a few anchors and their weighted mean
        (Mika et al., 1998; Schoelkopf et al., 1999), to a local minimum: RBF, linear and polynomial
        kernels.

        "distance" takes the row that compares with the nearest anchors as v does (Kwok and
        Tsang, 2004): the same kernels, no iteration. It stays among the neighbours, also where
        v is far from all of them. Even degrees do not tell x'a from -x'a (with ``coef0=0``): the
        root from 0 up is taken, which suits data without negative values.

        "ridge" is a ridge regression from feature space to rows, learned from (at most 1,000 of)
        the anchors: any kernel. It shrinks where the kernel is narrow.

        "auto" starts the fixed-point iteration from the results of all others as well, and is never
        worse than any of them; with other kernels, the best of ridge, nearest anchor and weighted
        mean; exact under linear and cosine kernels.
    n_neighbors : int, default=10
        For "distance" and "auto": how many anchors "distance" compares with (all, if there are
        fewer).
    max_iter : int, default=100
        For "fixed-point" and "auto": the most steps tried from every start.
    tol : float, default=1e-6
        For "fixed-point" and "auto": stop when a step promises to lower the error by no more.

    Returns
    -------
    PreImages
        Nothing is rescaled: phi(x) of an RBF kernel has norm 1, so a longer or shorter v has an
        error of at least ``(1 - 1 / |v|)^2``. For v = 0 the row is 0, and the error 0 if phi(0) is
        0, infinite otherwise.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelatoms import preimage
    >>> anchors = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> between = [0.0, 0.5, 0.6]
    >>> result = preimage(between, anchors, gamma=0.5)
    >>> print(result.rows.round(2), result.error.round(2))
    [[0.41 0.59]] [0.13]

    A narrower kernel sees nothing between the anchors: one of them is as near as any row comes.

    >>> result = preimage(between, anchors, gamma=5)
    >>> print(result.rows.round(2), result.error.round(2))
    [[0. 1.]] [0.67]
    """
    coef, anchors = on_cpu("preimage", coef=coef, anchors=anchors)
    check_choice("method", method, _METHODS)
    if method not in ("auto", "distance"):
        why = f"belongs to method='distance' or 'auto', not to {method!r}"
        refuse_unused(preimage, {"n_neighbors": n_neighbors}, why)
    if method not in ("auto", "fixed-point"):
        why = f"belongs to method='fixed-point' or 'auto', not to {method!r}"
        refuse_unused(preimage, {"max_iter": max_iter, "tol": tol}, why)
    n_neighbors = check_count("n_neighbors", n_neighbors)
    max_iter = check_count("max_iter", max_iter)
    tol = check_real("tol", tol, low=0)
    if is_precomputed(kernel):
        raise ValueError(
            "preimage needs the anchors as rows, which kernel='precomputed' does not give; name "
            "the kernel or give its function."
        )
    bound = make_kernel(
        kernel, gamma=gamma, degree=degree, coef0=coef0, kernel_params=kernel_params
    )
    A, C, dtype = _check_vectors(coef, anchors)
    bound = bound.with_gamma_from(A)
    check_kernel(bound, A)
    if bound.inversion(A.shape[1]) is None and method in ("fixed-point", "distance"):
        raise ValueError(
            f"method={method!r} must know how the kernel depends on a row: it works with "
            "kernel='rbf', 'linear' and 'poly' (of a whole degree from 1 and coef0 from 0), got "
            f"kernel={kernel!r}. method='ridge' works with any kernel."
        )
    rows, error = preimage_rows(
        bound, A, C, method=method, n_neighbors=n_neighbors, max_iter=max_iter, tol=tol, dtype=dtype
    )
    return PreImages(rows, error)


def _check_vectors(coef: Any, anchors: Any) -> tuple[Array, Array, Any]:
    """Return anchors and coefficients in double precision, and the dtype of the result."""
    A = check_array(anchors, dtype=FLOATS, order="C", input_name="anchors")
    if np.ndim(coef) == 1:
        coef = np.asarray(coef)[:, None]
    C = check_array(coef, dtype=FLOATS, input_name="coef")
    if len(C) != len(A):
        hint = " Transpose it?" if C.shape[1] == len(A) else ""
        raise ValueError(
            f"coef must have one row for each of the {len(A)} anchors, got shape {C.shape}.{hint}"
        )
    dtype = np.result_type(A, C)
    # Coefficients may be as large as the inverse precision they were computed in.
    return A.astype(np.float64), C.astype(np.float64), dtype
