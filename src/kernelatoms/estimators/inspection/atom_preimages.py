"""``atom_preimages``: atoms of any learner as rows, with what is lost on the way."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelatoms.engine import Array
from kernelatoms.estimators.devices.border import on_cpu
from kernelatoms.estimators.inspection.pipelines import (
    UnwrappedPipeline,
    undo_directions,
    unwrap_pipeline,
)
from kernelatoms.estimators.maps.linearizer import KernelLinearizer
from kernelatoms.estimators.maps.preimage import preimage
from kernelatoms.features.expansion import Expansion
from kernelatoms.similarity import Kernel
from kernelatoms.similarity.inner import LinearKernel
from kernelatoms.similarity.user_kernels import PrecomputedKernel

# Errors of the two signs this near to each other are the same but for where the steps stopped.
_ALIKE = 1e-6
_NO_ROWS = (
    "atoms under kernel='precomputed' have no rows that they could be shown as; name the kernel or "
    "give its function."
)


class AtomPreImages(NamedTuple):
    """What ``atom_preimages`` returns.

    Attributes
    ----------
    rows : array of shape (m, n_features)
        A row for every atom, as rows come to the kernel map, or to the dictionary: steps before
        that are not undone.
    error : array of shape (m,)
        |phi(x) - s d|^2 / |d|^2, reached by the row x with the sign s; 0 where atoms are rows, or
        phi of rows.
    sign : array of shape (m,)
        1 or -1: the sign s that has the better row.
    """

    rows: Array
    error: Array
    sign: NDArray[np.intp]


def atom_preimages(model: Any, atoms: Any = None, *, method: str = "auto") -> AtomPreImages:
    """Return rows that represent atoms, with the error that they reach in feature space.

    An atom d under a kernel is a vector of its feature space, and seldom phi of any row: the row x
    whose phi(x) comes near is found by ``preimage``. d and -d are the same atom, but not to a row:
    under an RBF kernel one of them may be near phi of a row and the other far from all. The sign
    with the smaller error is taken; of two alike (linear kernels, odd degrees) that of the row
    whose largest value is positive. So it is where x and -x are alike (even degrees without
    ``coef0``); many atoms of such data are near no row at all, and their errors say so.

    Parameters
    ----------
    model : estimator
        A fitted learner of dictionaries, or a ``Pipeline`` that ends in one. After a
        ``KernelLinearizer`` (``make_lkdl``), atoms are vectors of the map's feature space; what
        stands between map and learner is undone, and the atoms are scaled to norm 1.
    atoms : int array of shape (m,), optional
        Which atoms, counted through all classes; by default all.
    method : {"auto", "fixed-point", "distance", "ridge"}, default="auto"
        As in ``preimage``.

    Returns
    -------
    AtomPreImages

    Examples
    --------
    >>> from kernelatoms import KernelKSVD, atom_preimages
    >>> from sklearn.datasets import load_digits
    >>> X = load_digits().data[:300] / 16
    >>> model = KernelKSVD(12, gamma=0.02, n_nonzero_coefs=3, random_state=0).fit(X)
    >>> found = atom_preimages(model, [0, 1, 2])
    >>> found.rows.shape, bool(found.error.max() < 0.2)
    ((3, 64), True)
    """
    _, atoms = on_cpu("atom_preimages", model=model, atoms=atoms)
    parts = unwrap_pipeline(model)
    chosen = _check_atoms(atoms, len(parts.places))
    groups = _expansions(parts, chosen)
    width = groups[0][1].anchors.shape[1]
    rows, error = np.empty((len(chosen), width)), np.zeros(len(chosen))
    sign = np.ones(len(chosen), np.intp)
    for places, expansion in groups:
        if expansion.coef is None:
            rows[places] = expansion.anchors
        else:
            rows[places], error[places], sign[places] = _signed(expansion, method)
    return AtomPreImages(rows, error, sign)


def _expansions(
    parts: UnwrappedPipeline, chosen: NDArray[np.intp]
) -> list[tuple[Array, Expansion]]:
    """Return the chosen atoms, by dictionary, as vectors of the first feature space met."""
    maps = [i for i, step in enumerate(parts.before) if isinstance(step, KernelLinearizer)]
    owners = np.array([place[0] for place in parts.places], np.intp)[chosen]
    numbers = np.array([place[1] for place in parts.places], np.intp)[chosen]
    found = []
    for i, coder in enumerate(parts.dictionaries):
        places = np.flatnonzero(owners == i)
        if not len(places):
            continue
        whole = coder._expansion()
        if isinstance(whole.kernel, PrecomputedKernel):
            raise ValueError(_NO_ROWS)
        some = _columns(whole, numbers[places])
        if maps:
            some = _through_map(parts.before[maps[0] :], some)
        found.append((places, some))
    return found


def _columns(expansion: Expansion, chosen: NDArray[np.intp]) -> Expansion:
    """Return some vectors of an expansion."""
    if expansion.coef is None:
        return Expansion(expansion.kernel, expansion.anchors[chosen])
    return Expansion(expansion.kernel, expansion.anchors, expansion.coef[:, chosen])


def _through_map(steps: tuple[Any, ...], atoms: Expansion) -> Expansion:
    """Return atoms over virtual samples as vectors of the map's own feature space."""
    linearizer, *between = steps
    if atoms.coef is not None or not isinstance(atoms.kernel, LinearKernel):
        raise ValueError(
            "a dictionary under a kernel after a KernelLinearizer is in the feature space of a "
            "feature space; only inverse_transform leads back from there."
        )
    if linearizer._precomputed:
        raise ValueError(_NO_ROWS)
    samples = atoms.anchors.astype(np.float64)
    for step in reversed(between):
        samples = undo_directions(step, samples)
    norms = np.linalg.norm(samples, axis=1, keepdims=True)
    samples = samples / np.where(norms > 0, norms, 1)
    coef = linearizer.dual_coef_ @ samples.T
    return Expansion(linearizer._kernel(), linearizer.landmarks_, coef)


def _signed(expansion: Expansion, method: str) -> tuple[Array, Array, NDArray[np.intp]]:
    """Return rows, errors and signs of the better sign of every vector."""
    kernel, anchors, coef = expansion.kernel, expansion.anchors, expansion.coef
    assert coef is not None
    n = coef.shape[1]
    both = preimage(np.hstack([coef, -coef]), anchors, kernel=kernel, method=method)
    rows = both.rows.astype(np.float64).reshape(2, n, -1)
    error = both.error.astype(np.float64).reshape(2, n)
    rows = np.where(_same_mirrored(kernel, rows, anchors) & (_largest(rows) < 0), -rows, rows)
    alike = np.abs(error[0] - error[1]) <= _ALIKE
    upright = _largest(rows)[..., 0] >= 0
    minus = np.where(alike, ~upright[0] & upright[1], error[1] < error[0])
    place = minus.astype(np.intp), np.arange(n)
    return rows[place], error[place], 1 - 2 * minus.astype(np.intp)


def _same_mirrored(kernel: Kernel, rows: Array, anchors: Array) -> Array:
    """Tell for every row whether the kernel takes -x for x."""
    flat = rows.reshape(-1, rows.shape[-1])
    if kernel.non_negative:
        return np.zeros((*rows.shape[:2], 1), bool)
    with np.errstate(all="ignore"):
        there, mirrored = kernel(flat, anchors), kernel(-flat, anchors)
    same = np.isclose(there, mirrored, rtol=1e-9, atol=0).all(axis=1)
    return same.reshape(*rows.shape[:2], 1)


def _largest(rows: Array) -> Array:
    """Return the value of every row that is largest in size, with its sign."""
    return np.take_along_axis(rows, np.abs(rows).argmax(axis=-1)[..., None], axis=-1)


def _check_atoms(atoms: Any, n_atoms: int) -> NDArray[np.intp]:
    if atoms is None:
        return np.arange(n_atoms)
    chosen = np.asarray(atoms)
    if chosen.ndim != 1 or not len(chosen) or chosen.dtype.kind not in "iu":
        raise ValueError(f"atoms must be a list of atoms' numbers, got {atoms!r}.")
    if chosen.min() < 0 or chosen.max() >= n_atoms:
        raise ValueError(f"atoms holds numbers outside 0..{n_atoms - 1}.")
    return chosen.astype(np.intp)
