"""One small coding problem per signal: its own Gram matrix, of the atoms near it.

The functions of ``engine.cpu.local`` and ``engine.cpu.gaussian``; the small systems are
factored in batches.
"""

from typing import Any

import torch

from kernelatoms.engine.gpu.arrays.products import matmul
from kernelatoms.engine.gpu.arrays.work import for_blocks, for_local_blocks

# As of engine.cpu.local_loops: pivots above this share of the largest are more than rounding.
_HALF_OF_DIGITS, _CERTAIN = float(torch.finfo(torch.float64).eps) ** 0.5, 1e-11


def gather(gram: Any, candidates: Any) -> Any:
    """Return the Gram matrix of every signal's own atoms."""
    names, known = candidates.clamp(min=0).long(), candidates >= 0
    small = gram[names[:, :, None], names[:, None]]
    return torch.where(known[:, :, None] & known[:, None], small, 0)


def ridge_local(grams: Any, corrs: Any, mu: float, gram_columns: bool) -> Any:
    """Return the ridge codes of signals, each over its own atoms; computed in float64."""
    weights = torch.empty(corrs.shape, dtype=torch.float64, device=corrs.device)
    rounding = float(torch.finfo(grams.dtype).eps)

    def work(start: int, stop: int) -> None:
        G, b = grams[start:stop].double(), corrs[start:stop].double()
        w, doubtful = _by_factors(G, b, mu, gram_columns, rounding)
        some = torch.nonzero(doubtful)[:, 0]
        if len(some):
            w[some] = _by_eigenvectors(G[some], b[some], mu, gram_columns, rounding)
        weights[start:stop] = w

    for_local_blocks(len(corrs), corrs.shape[1], work)
    return weights


def _times(matrices: Any, vectors: Any) -> Any:
    """Return each matrix times its own vector, (n, K)."""
    return matmul(matrices, vectors[:, :, None])[:, :, 0]


def _by_factors(G: Any, b: Any, mu: float, gram_columns: bool, rounding: float) -> tuple[Any, Any]:
    """Solve by Cholesky factors; tell where a pivot is no more than rounding."""
    n_local = G.shape[1]
    matrices = matmul(G, G.mT) if gram_columns else G
    # An atom of zeros (a list is padded) takes no part, also where mu is 0.
    empty = ~G.any(-1)
    A = matrices + torch.diag_embed(torch.full_like(b, mu).masked_fill(empty, 1.0))
    factors, failed = torch.linalg.cholesky_ex(A)
    pivots = torch.diagonal(factors, dim1=1, dim2=2).square()
    smallest, largest = pivots.amin(1), pivots.amax(1)
    faint = rounding * torch.diagonal(G, dim1=1, dim2=2).sum(1)
    ridged = mu > (faint.square() if gram_columns else faint)
    share = torch.full_like(largest, max(_HALF_OF_DIGITS, n_local * rounding))
    share = torch.where(ridged, _CERTAIN, share)
    least = (share * largest).clamp(min=0.5 * mu)
    doubtful = (failed != 0) | ~(smallest > least)
    # What has no factor is solved otherwise; here it must not spoil the others.
    unit = torch.eye(n_local, dtype=A.dtype, device=A.device)
    factors = torch.where(doubtful[:, None, None], unit, factors)

    def solved(right: Any) -> Any:
        return torch.cholesky_solve(right[:, :, None], factors)[:, :, 0]

    if not gram_columns:
        return solved(b), doubtful
    w = solved(_times(G, b))
    # G G has lost half of the digits; a step of correction through G itself brings them back.
    w = w + solved(_times(G, b - _times(G, w)) - mu * w)
    return w, doubtful


def _by_eigenvectors(G: Any, b: Any, mu: float, gram_columns: bool, rounding: float) -> Any:
    """Solve with eigenvectors: slow, and defined where nothing else is."""
    if not bool(torch.isfinite(G).all()):
        raise ValueError("Gram matrices of candidates hold NaN or infinity.")
    values, vectors = torch.linalg.eigh(G)
    if not gram_columns:
        values = values.clamp(min=0.0)
    largest = values.abs().amax(1, keepdim=True)
    # Without a ridge to speak of, eigenvalues that are nothing but rounding take no part.
    needless = values.abs() <= G.shape[1] * rounding * largest
    if gram_columns:
        needless &= mu <= (rounding * largest) ** 2
        bottom, top = values**2 + mu, values
    else:
        needless &= mu <= rounding * largest
        bottom, top = values + mu, torch.ones_like(values)
    needless |= bottom == 0
    factors = torch.where(needless, 0.0, top / torch.where(needless, 1.0, bottom))
    return _times(vectors, factors * _times(vectors.mT, b))


def class_parts_local(
    grams: Any,
    corrs: Any,
    energies: Any,
    weights: Any,
    owners: Any,
    n_classes: int,
    gram_columns: bool,
) -> tuple[Any, Any]:
    """Return what the atoms of every class leave of a signal, and the size of their weights."""
    n, n_local = corrs.shape
    shape = (n, n_classes)
    left, norms2 = (torch.empty(shape, dtype=torch.float64, device=corrs.device) for _ in range(2))
    classes = torch.arange(n_classes, device=corrs.device)[:, None]

    def work(start: int, stop: int) -> None:
        part = slice(start, stop)
        G, b, w = grams[part].double(), corrs[part].double(), weights[part].double()
        # The part of every class, (n, n_classes, K), and what it makes of the atoms.
        parts = torch.where(owners[part][:, None] == classes, w[:, None], 0)
        made, size = matmul(parts, G.mT), parts.square().sum(-1)
        if gram_columns:
            energy, found = b.square().sum(-1), (b[:, None] - made).square().sum(-1)
        else:
            energy = energies[part].double()
            change = ((made - 2 * b[:, None]) * parts).sum(-1)
            found = (energy[:, None] + change).clamp(min=0.0)
        left[part] = torch.where(size == 0, energy[:, None], found)
        norms2[part] = size

    for_blocks(n, n_local * (n_local + 3 * n_classes), 8, work)
    return left, norms2


def gaussian_local(
    X: Any, rows: Any, candidates: Any, gamma: float, *, with_grams: bool = True
) -> tuple[Any, Any]:
    """Return the values of every signal's own atoms among each other, and with the signal."""
    n, n_local = candidates.shape
    corrs = torch.empty((n, n_local), dtype=X.dtype, device=X.device)
    grams = None
    if with_grams:
        grams = torch.empty((n, n_local, n_local), dtype=X.dtype, device=X.device)

    def work(start: int, stop: int) -> None:
        part = slice(start, stop)
        known = candidates[part] >= 0
        # Distances stay the same when all rows move; with the signal as origin they are short.
        own = rows[candidates[part].clamp(min=0).long()].double() - X[part].double()[:, None]
        squares = own.square().sum(-1)
        if not bool(torch.isfinite(4 * squares).all()):
            raise ValueError("The squared distances of rows overflow float64; scale them down.")
        corrs[part] = torch.where(known, torch.exp(-gamma * squares), 0)
        if grams is not None:
            far = squares[:, :, None] + squares[:, None] - 2 * matmul(own, own.mT)
            torch.diagonal(far, dim1=1, dim2=2).zero_()
            values = torch.exp(-gamma * far.clamp(min=0))
            grams[part] = torch.where(known[:, :, None] & known[:, None], values, 0)

    for_blocks(n, n_local * (X.shape[1] + n_local), 8, work)
    return grams, corrs
