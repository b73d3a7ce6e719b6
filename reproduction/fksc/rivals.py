"""The codes that the FKSC paper compares with (A.5.2), each after its own paper.

All are functions of inner products. Rows are signals: ``corr`` (n, p) holds <phi(y), phi(d)>,
``gram`` (p, p) <phi(d), phi(d')>, and codes come as a dense array (n, p). The papers write signals
as columns, so their W is our codes transposed. Computed in float64, returned in the dtype of
``corr``.

Only LPM is sparse by itself. The others are cut to the largest |w| of every signal, as the FKSC
paper does it: ``keep_largest``, or ``keep_on_average`` to match the nonzeros of other codes.
"""

from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from kernelatoms.coding import GivenProblem, lasso, solve_ridge

Array = NDArray[Any]

# Row norms are smoothed by this share of the largest one; see ``ksr_l21``.
_SMOOTHING = 1e-6


def linear_cd(gram: Array, corr: Array, energy: Array, alpha: float) -> Array:
    """CD: l1 codes in the input space. Fujiwara et al., AAAI 2016.

        min_w 1/2 |y - D w|^2 + alpha |w|_1

    Their selective coordinate descent differs from other solvers in the way, not in the minimum,
    so this is our own ``lasso``. What makes it the linear rival is what it is given: inner
    products of the rows themselves, ``atoms @ atoms.T`` and ``signals @ atoms.T``.

    Parameters
    ----------
    gram : array of shape (n_atoms, n_atoms)
        Inner products of the atoms, under the linear kernel.
    corr : array of shape (n_signals, n_atoms)
        Inner products of signals with atoms, likewise.
    energy : array of shape (n_signals,)
        |y|^2.
    alpha : float
        Weight of |w|_1, above 0.

    Returns
    -------
    array of shape (n_signals, n_atoms)
    """
    _check_weight("alpha", alpha)
    _check_products(gram, corr)
    return lasso(GivenProblem(gram, corr, energy), alpha).to_dense()


def kfmc(gram: Array, corr: Array, beta: float) -> Array:
    """KFMC: codes under a Frobenius norm. Fan and Udell, CVPR 2019.

        min_W 1/2 |phi(Y) - phi(D) W|_F^2 + beta/2 |W|_F^2

    is flat where K_DD W - K_DY + beta W = 0, so W = (K_DD + beta I)^-1 K_DY: ridge codes, by our
    own ``solve_ridge``.

    Parameters
    ----------
    gram : array of shape (n_atoms, n_atoms)
        K_DD.
    corr : array of shape (n_signals, n_atoms)
        K_YD.
    beta : float
        Weight of the codes' energy, above 0.

    Returns
    -------
    array of shape (n_signals, n_atoms)
        Dense codes.
    """
    _check_weight("beta", beta)
    return solve_ridge(gram, corr, beta)


def ksr_l21(
    gram: Array, corr: Array, alpha: float, *, max_iter: int = 200, tol: float = 1e-6
) -> Array:
    """KSR-L2,1: all signals choose their atoms together. Qian et al., IEEE/ACM TCBB 20 (2023).

        min_W |phi(Y) - phi(X) W|_F^2 + alpha |W|_2,1,   |W|_2,1 = sum_i |w^i|, one row w^i an atom

    by a closed form, reweighted. With s_i = sqrt(|w^i|^2 + eps^2) of the last W,

        sqrt(|u|^2 + eps^2) <= s_i + (|u|^2 - |w^i|^2) / (2 s_i)     for every row u,

    with equality at w^i. So the next W minimises |phi(Y) - phi(X) W|^2 + alpha/2 sum_i |w^i|^2/s_i
    and never raises the smoothed objective (sums of s_i for |w^i|). It is flat where
    K_XX W - K_XY + alpha/2 S^-1 W = 0, and W = (K_XX + alpha/2 S^-1)^-1 K_XY is computed as

        W = T (T K_XX T + alpha/2 I)^-1 T K_XY,   T = S^1/2,

    which stands singular K_XX and rows that vanish. Rows that end at the size of eps are set to 0.
    Rows vanish slowly where the penalty only just outweighs them, and with many atoms alike most
    are still there when the objective has settled: "the overall sparsity is not high enough".

    Parameters
    ----------
    gram : array of shape (n_atoms, n_atoms)
        K_XX.
    corr : array of shape (n_signals, n_atoms)
        K_YX.
    alpha : float
        Weight of |W|_2,1, above 0.
    max_iter : int
        The most closed forms computed, at least 1.
    tol : float
        Stop when one lowers the objective by no more than this share of alpha |W|_2,1.

    Returns
    -------
    array of shape (n_signals, n_atoms)
        Codes; a column of zeros for an atom that no signal uses.
    """
    _check_weight("alpha", alpha)
    _check_products(gram, corr)
    _check_count("max_iter", max_iter)
    K, b = gram.astype(np.float64), corr.astype(np.float64)
    with threadpool_limits(1, "blas"):
        codes = _reweighted(K, b, alpha, np.ones(len(K)))  # S = I: KFMC
        eps = _SMOOTHING * float(np.linalg.norm(codes, axis=0).max(initial=0.0))
        if eps == 0:
            return np.zeros_like(corr)
        before = np.inf
        for _ in range(max_iter - 1):
            norms = np.hypot(np.linalg.norm(codes, axis=0), eps)
            penalty = alpha * norms.sum()
            value = _fit(K, b, codes) + penalty
            if before - value <= tol * penalty:
                break
            before = value
            codes = _reweighted(K, b, alpha, norms)
    codes[:, np.linalg.norm(codes, axis=0) <= 10 * eps] = 0
    return codes.astype(corr.dtype)


def _reweighted(K: Array, b: Array, alpha: float, norms: Array) -> Array:
    """Return the codes T (T K T + alpha/2)^-1 T b' of ``ksr_l21``, transposed; T^2 = norms."""
    roots = np.sqrt(norms)
    A = roots[:, None] * K * roots
    # An alpha lost in the rounding of a singular K would leave A indefinite.
    rounding = len(A) * np.finfo(np.float64).eps * np.trace(A)
    A[np.diag_indices_from(A)] += max(alpha / 2, rounding)
    factor = scipy.linalg.cho_factor(A, overwrite_a=True, check_finite=False)
    solved = scipy.linalg.cho_solve(factor, (b * roots).T, overwrite_b=True, check_finite=False)
    return solved.T * roots


def _fit(K: Array, b: Array, codes: Array) -> float:
    """Return |phi(Y) - phi(X) W|_F^2 less |phi(Y)|_F^2."""
    return float(np.vdot(codes, codes @ K - 2 * b))


def lpm(
    gram: Array, corr: Array, n_nonzero: int, *, max_iter: int = 500, tol: float = 1e-6
) -> Array:
    """LPM: l0 codes by a linearised proximal method. Quan, Bao and Ji, CVPR 2016.

        min_w 1/2 |phi(y) - phi(D) w|^2   with at most n_nonzero nonzeros

    With L the largest eigenvalue of K, the objective f is nowhere above its linearisation at w,

        f(u) <= f(w) + (u - w)'(K w - k) + L/2 |u - w|^2,   k = <phi(D), phi(y)>,

    whose minimiser with so many nonzeros is closed: the largest of w - (K w - k) / L. From w = 0, f
    never rises. (Quan et al. have a penalty lambda |w|_0, which keeps what is above
    sqrt(2 lambda / L); the FKSC paper keeps a preset number instead.)

    Parameters
    ----------
    gram : array of shape (n_atoms, n_atoms)
        K.
    corr : array of shape (n_signals, n_atoms)
        A row k for every signal.
    n_nonzero : int
        The most nonzeros of a code, at least 1.
    max_iter : int
        The most steps, at least 1. Many are needed where L is large (wide kernels).
    tol : float
        A signal stops when a step lowers f by no more than this share of what is explained.

    Returns
    -------
    array of shape (n_signals, n_atoms)
        A critical point, which depends on the start.
    """
    _check_products(gram, corr)
    _check_count("n_nonzero", n_nonzero)
    _check_count("max_iter", max_iter)
    K, b = gram.astype(np.float64), corr.astype(np.float64)
    codes = np.zeros(b.shape)
    with threadpool_limits(1, "blas"):
        p = len(K)
        largest = float(scipy.linalg.eigvalsh(K, subset_by_index=[p - 1, p - 1])[0])
        if largest <= 0:
            return codes.astype(corr.dtype)
        active, value = np.arange(len(b)), np.zeros(len(b))
        gradient = -b
        for _ in range(max_iter):
            w = keep_largest(codes[active] - gradient / largest, n_nonzero)
            gradient = scipy.sparse.csr_array(w) @ K - b[active]
            now = np.vecdot(w, gradient - b[active]) / 2  # f less |phi(y)|^2 / 2
            codes[active] = w
            going = value[active] - now > tol * np.abs(now)
            value[active] = now
            active, gradient = active[going], gradient[going]
            if not len(active):
                break
    return codes.astype(corr.dtype)


def keep_largest(codes: Array, n_nonzero: int) -> Array:
    """Return codes with the largest |w| of every signal and zeros else: the cut of A.5.2.

    Of equal ones the first. Nothing is fitted again.
    """
    _check_count("n_nonzero", n_nonzero)
    return _keep(codes, int(n_nonzero))


def keep_on_average(codes: Array, n_nonzero: float) -> Array:
    """Return codes cut to a mean number of nonzeros that need not be whole.

    A preset compression ratio asks for a total of nonzeros, and 4.3 per signal cannot be had by
    cutting all signals alike. Here every signal keeps its 4 largest |w|, and 3 of 10 a fifth:
    those whose fifth is the largest. (The largest of the whole matrix would be another cut: it
    leaves signals of small weights without any.)
    """
    _check_weight("n_nonzero", n_nonzero)
    n_signals, n_atoms = codes.shape
    n_nonzero = min(n_nonzero, n_atoms)
    whole = int(n_nonzero)
    n_more = round((n_nonzero - whole) * n_signals)
    if not n_more:
        return _keep(codes, whole)
    following = -np.partition(-np.abs(codes), whole, axis=1)[:, whole]
    more = np.zeros((n_signals, 1), bool)
    more[np.argsort(-following, kind="stable")[:n_more]] = True
    return np.where(more, _keep(codes, whole + 1), _keep(codes, whole))


def _keep(codes: Array, count: int) -> Array:
    """Return codes with so many of the largest |w| of every row, the first of equal ones."""
    if count >= codes.shape[1]:
        return codes.copy()
    sizes = np.abs(codes)
    # A sort would be several times slower, and LPM cuts at every step.
    next_largest = -np.partition(-sizes, count, axis=1)[:, count, None]
    above = sizes > next_largest
    ties = sizes == next_largest
    free = count - above.sum(axis=1, keepdims=True)
    return np.where(above | (ties & (ties.cumsum(axis=1) <= free)), codes, 0)


def _check_weight(name: str, value: float) -> None:
    if not (np.isfinite(value) and value > 0):
        raise ValueError(f"{name} must be above 0 and finite, got {value!r}.")


def _check_products(gram: Array, corr: Array) -> None:
    """Refuse what cannot be inner products of atoms, and of signals with them."""
    if gram.ndim != 2 or gram.shape[0] != gram.shape[1] or not gram.size:
        raise ValueError(f"gram must be square, got shape {gram.shape}.")
    if corr.ndim != 2 or corr.shape[1] != len(gram):
        raise ValueError(
            f"corr must have one column for each of the {len(gram)} atoms, got shape {corr.shape}."
        )
    if not np.isfinite(corr).all():
        raise ValueError("corr contains NaN or infinity.")
    GivenProblem(gram, corr)  # refuses what is no Gram matrix


def _check_count(name: str, value: int) -> None:
    if value != int(value) or value < 1:
        raise ValueError(f"{name} must be a whole number from 1, got {value!r}.")
