"""What signals have of their own: nearest atoms, a small problem among them, residuals per class.

The functions of ``nearest``, ``local``, ``local_grams`` and ``class_parts`` of ``engine.cpu``,
which have the formulas. Small systems are factored in batches.
"""

from typing import Any

import torch

from kernelatoms.engine.cpu.local import _CERTAIN, _HALF_OF_DIGITS
from kernelatoms.engine.gpu.arrays.conversion import on_tensors
from kernelatoms.engine.gpu.arrays.linalg import matmul
from kernelatoms.engine.gpu.arrays.ufuncs import torch_dtype
from kernelatoms.engine.gpu.arrays.work import for_blocks, for_local_blocks

# Bytes of rows and atoms gathered at once.
_AT_ONCE = 1 << 28


class TopK:
    """The K smallest values of every row, and their columns; as ``engine.cpu.TopK``."""

    def __init__(self, indices: Any, values: Any) -> None:
        self.indices, self.values = indices, values

    @classmethod
    def empty(cls, n_rows: int, n_kept: int, dtype: Any, *, like: Any) -> "TopK":
        """Return the K smallest of no columns, on the device of ``like``."""
        return cls(*_empty(n_rows, n_kept, dtype, like))

    def push(self, block: Any, first: int, *, offsets: Any = None, factor: float = 1.0) -> None:
        """Take the next columns of the matrix into account; parameters as in ``engine.cpu``."""
        _push(block, first, offsets, factor, self.indices, self.values)

    def sorted(self) -> tuple[Any, Any]:
        """Return indices and values, ascending by value, ties by index; -1 comes last."""
        _sort(self.indices, self.values)
        return self.indices, self.values


@on_tensors
def _empty(n_rows: int, n_kept: int, dtype: Any, like: Any) -> tuple[Any, Any]:
    shape, device = (n_rows, n_kept), like.device
    return (
        torch.full(shape, -1, dtype=torch.int32, device=device),
        torch.full(shape, torch.inf, dtype=torch_dtype(dtype), device=device),
    )


@on_tensors
def _push(block: Any, first: int, offsets: Any, factor: float, indices: Any, values: Any) -> None:
    n_kept = values.shape[1]
    if not n_kept or not block.shape[1]:
        return
    compared = block * factor if offsets is None else offsets.to(block.dtype) + factor * block
    compared = torch.where(compared.isnan(), torch.inf, compared)
    best, places = _smallest_of(compared, min(n_kept, block.shape[1]))
    found = torch.where(best.isinf(), -1, places + first).to(torch.int32)
    # Columns kept before come first: of equal values they have the lower numbers.
    both, names = torch.cat([values, best], 1), torch.cat([indices, found], 1)
    order = torch.argsort(both, dim=1, stable=True)[:, :n_kept]
    values.copy_(both.gather(1, order))
    indices.copy_(names.gather(1, order))


def _smallest_of(values: Any, n_kept: int) -> tuple[Any, Any]:
    """Return the smallest values of every row, ascending, and their columns; ties by column."""
    best, places = torch.topk(values, min(n_kept + 1, values.shape[1]), dim=1, largest=False)
    if best.shape[1] > n_kept:
        # Of equal values at the end torch takes any; rows that have such are sorted.
        tied = torch.nonzero((best[:, -1] == best[:, -2]) & best[:, -1].isfinite())[:, 0]
        best, places = best[:, :n_kept], places[:, :n_kept]
        if len(tied):
            places[tied] = torch.argsort(values[tied], dim=1, stable=True)[:, :n_kept]
    places = places.sort(1).values
    best = values.gather(1, places)
    order = torch.argsort(best, dim=1, stable=True)
    return best.gather(1, order), places.gather(1, order)


@on_tensors
def _sort(indices: Any, values: Any) -> None:
    """Sort every row, ascending by value, ties by index; -1 comes last."""
    last = torch.iinfo(torch.int32).max
    by_index = torch.argsort(torch.where(indices < 0, last, indices), dim=1, stable=True)
    sorted_values = values.gather(1, by_index)
    by_value = torch.argsort(sorted_values, dim=1, stable=True)
    order = by_index.gather(1, by_value)
    values.copy_(values.gather(1, order))
    indices.copy_(indices.gather(1, order))


def smallest(values: Any, n_kept: int) -> tuple[Any, Any]:
    """Return the columns (n, K) of the smallest values of every row (n, m), and these values.

    Both are ascending by value, ties by index; K is ``n_kept``, from 1 to m.
    """
    if not 1 <= n_kept <= values.shape[1]:
        raise ValueError(f"n_kept must be from 1 to {values.shape[1]}, got {n_kept}.")
    kept = TopK.empty(len(values), n_kept, values.dtype, like=values)
    kept.push(values, 0)
    return kept.sorted()


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


def products_at(rows: Any, atoms: Any, indptr: Any, indices: Any) -> Any:
    """Return the inner products of rows with the atoms that their codes use, in one list."""
    signals, picked = _of_nonzeros(indptr, indices)
    out = torch.empty(len(picked), dtype=rows.dtype, device=rows.device)
    step = max(_AT_ONCE // max(rows.shape[1] * rows.element_size(), 1), 1)
    for start in range(0, len(picked), step):
        part = slice(start, start + step)
        out[part] = (rows[signals[part]] * atoms[picked[part]]).sum(1)
    return out


def _of_nonzeros(indptr: Any, indices: Any) -> tuple[Any, Any]:
    """Return the signal and the atom of every nonzero from indptr[0] to indptr[-1]."""
    first, last = (int(end) for end in indptr[[0, -1]].tolist())
    numbers = torch.arange(len(indptr) - 1, device=indptr.device)
    signals = torch.repeat_interleave(numbers, torch.diff(indptr), output_size=last - first)
    return signals, indices[first:last].long()


def subtract_class_parts(
    gram: Any, corr: Any, indptr: Any, indices: Any, values: Any, owner: Any, out: Any
) -> None:
    """Take what each class explains off ``out``, which holds the signals' energies."""
    first, last = (int(end) for end in indptr[[0, -1]].tolist())
    if first == last:
        return
    n_signals = len(out)
    counts = torch.diff(indptr)
    width = int(counts.max())
    # In padded rows: the pairs of a signal's nonzeros are then a matrix of their own.
    places = torch.arange(width, device=out.device) < counts[:, None]
    atoms = torch.zeros((n_signals, width), dtype=torch.int64, device=out.device)
    weights, along = (
        torch.zeros((n_signals, width), dtype=torch.float64, device=out.device) for _ in range(2)
    )
    atoms[places] = indices[first:last].long()
    weights[places] = values[first:last].double()
    along[places] = corr.double()
    classes = torch.arange(out.shape[1], device=out.device)[:, None]
    step = max(_AT_ONCE // (8 * width * (width + len(classes))), 1)
    for start in range(0, n_signals, step):
        part = slice(start, start + step)
        w, own, names = weights[part], owner[atoms[part]], atoms[part]
        pairs = gram[names[:, :, None], names[:, None]].double()
        pairs = torch.where(own[:, :, None] == own[:, None], pairs, 0)
        change = w * (matmul(pairs, w[:, :, None])[:, :, 0] - 2 * along[part])
        # Summed up class by class and not scattered: in the same order every time.
        out[part] += torch.where(own[:, None] == classes, change[:, None], 0).sum(-1)


def subtract_dense_class_parts(
    grams: list[Any], corr: Any, codes: Any, members: list[Any], out: Any
) -> None:
    """As ``subtract_class_parts``, for codes where most coefficients are nonzero."""
    for c, atoms in enumerate(members):
        theirs = codes[:, atoms]
        explained = matmul(theirs, grams[c].to(theirs.dtype)) - 2 * corr[:, atoms]
        out[:, c] += (explained * theirs).sum(1)
