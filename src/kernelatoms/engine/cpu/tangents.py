"""Distances of affine subspaces: a row and orthonormal tangents, against another row and its own.

For rows a, b with tangents S, T (their rows orthonormal, or zero), r = a - b, u = S r, v = T r and
C = S T', the distance of the subspaces a + span S and b + span T is

    min |r + S'x - T'y|^2 = |r|^2 - |u|^2 - w' (I - C'C)^-1 w,   w = v - C'u.

All that is needed are inner products of the rows and tangents of a with those of b: one matrix
product for many pairs, and then a small system for each.

See docs/decisions/014-tangent-distances.md.
"""

import numpy as np

from kernelatoms.engine.cpu.jit import jit
from kernelatoms.engine.cpu.pairs import all_pairs
from kernelatoms.engine.cpu.scale import Array

# Pairs of 64 x 64 rows with 7 tangents each: inner products of 2 MiB, which stay in cache.
_TILE = 64
# Squared sine of an angle between tangents below which they are one direction: a step along their
# difference would be 10^4 times as long as what it changes.
_ONE_DIRECTION = 1e-8
# Squares of distances carry the rounding of the rows' squares and of the tangents. Distances below
# this share of the norms, for either dtype, are computed in another way.
_NEAR = {np.dtype(np.float32): 1e-2, np.dtype(np.float64): 1e-4}


def tangent_distances(A: Array, B: Array, n_tangents: int, two_sided: bool = True) -> Array:
    """Return the distances of all pairs in stacks: (..., n, m) in float64.

    - ``A``, ``B`` (..., n or m, (1 + n_tangents) * n_features): rows, each followed by its
      orthonormal tangents; what there is no tangent for is 0.
    - ``two_sided``: whether both rows move along their tangents; else one of them, whichever comes
      nearer.
    """
    size = 1 + n_tangents
    width, rest = divmod(A.shape[-1], size)
    if rest:
        raise ValueError(f"rows must have {size} parts, got {A.shape[-1]} numbers.")
    fill = _two_sided if two_sided else _one_sided

    def work(A: Array, B: Array, D: Array, *tile: int) -> None:
        head, head_stop, row, row_stop, column, column_stop = tile
        for h in range(head, head_stop):
            rows, others = A[h, row:row_stop], B[h, column:column_stop]
            a, b = (
                part.reshape(len(part), size, width).astype(np.float64, copy=False)
                for part in (rows, others)
            )
            with np.errstate(over="ignore", invalid="ignore"):
                own_a, own_b = (np.vecdot(part, part[:, :1]) for part in (a, b))
            if not (np.isfinite(own_a).all() and np.isfinite(own_b).all()):
                raise ValueError("The squared norms of rows overflow float64; scale them down.")
            out = D[h, row:row_stop, column:column_stop]
            fill(a, b, own_a, own_b, out)
            least = _NEAR[A.dtype] * np.sqrt(np.add.outer(own_a[:, 0], own_b[:, 0]))
            _refine(a, b, least, out, two_sided)

    return all_pairs(work, A, B, _TILE)


def _two_sided(a: Array, b: Array, own_a: Array, own_b: Array, out: Array) -> None:
    size = a.shape[1]
    columns = np.ascontiguousarray(b.swapaxes(0, 1)).reshape(-1, b.shape[2]).T
    inner = (a.reshape(-1, a.shape[2]) @ columns).reshape(len(a), size, size, len(b))
    _solve(inner, own_a, np.ascontiguousarray(own_b.T), out)


def _one_sided(a: Array, b: Array, own_a: Array, own_b: Array, out: Array) -> None:
    of_a = (a.reshape(-1, a.shape[2]) @ b[:, 0].T).reshape(*a.shape[:2], len(b))
    of_b = (b.reshape(-1, b.shape[2]) @ a[:, 0].T).reshape(*b.shape[:2], len(a))
    squares = own_a[:, :1] + own_b[:, 0] - 2 * of_a[:, 0]
    saved = np.square(own_a[:, 1:, None] - of_a[:, 1:]).sum(axis=1)
    np.maximum(saved, np.square(own_b[:, 1:, None] - of_b[:, 1:]).sum(axis=1).T, out=saved)
    np.sqrt(np.maximum(squares - saved, 0), out=out)


@jit(fastmath=True)
def _solve(inner, own_a, own_b, out):
    """Write the distances, from inner products (n, 1 + k, 1 + k, m) and those with oneself.

    Own products are (n, 1 + k) and (1 + k, m). All loops inside are over the m pairs of a row,
    which are independent of each other, so that they vectorise.
    """
    k, m = own_a.shape[1] - 1, out.shape[1]
    S, u, w = np.empty((k, k, m)), np.empty((k, m)), np.empty((k, m))
    square, inverse, step = np.empty(m), np.empty(m), np.empty(m)
    for i in range(out.shape[0]):
        products = inner[i]
        for j in range(m):
            square[j] = own_a[i, 0] + own_b[0, j] - 2.0 * products[0, 0, j]
        for s in range(k):
            u[s] = own_a[i, 1 + s] - products[1 + s, 0]
            w[s] = products[0, 1 + s] - own_b[1 + s]
            _subtract_product(square, u[s], u[s])
        for t in range(k):
            for s in range(k):
                _subtract_product(w[t], products[1 + s, 1 + t], u[s])
            for q in range(t + 1):
                S[t, q] = 1.0 if q == t else 0.0
                for s in range(k):
                    _subtract_product(S[t, q], products[1 + s, 1 + t], products[1 + s, 1 + q])
        _subtract_form(S, w, square, inverse, step)
        for j in range(m):
            out[i, j] = np.sqrt(max(square[j], 0.0))


@jit(fastmath=True)
def _subtract_product(target, x, y):
    for j in range(target.shape[0]):
        target[j] -= x[j] * y[j]


@jit(fastmath=True)
def _subtract_form(S, w, square, inverse, step):
    """Subtract w' S^-1 w of every pair from square, without directions that both have.

    By elimination in S (k, k, m), of which the lower half is used; S and w are overwritten.
    """
    k, m = w.shape
    for q in range(k):
        for j in range(m):
            pivot = S[q, q, j]
            inverse[j] = 1.0 / pivot if pivot > _ONE_DIRECTION else 0.0
            step[j] = w[q, j] * inverse[j]
        _subtract_product(square, w[q], step)
        for t in range(q + 1, k):
            _subtract_product(w[t], S[t, q], step)
        for t in range(k - 1, q, -1):
            for j in range(m):
                step[j] = S[t, q, j] * inverse[j]
            for p in range(q + 1, t + 1):
                _subtract_product(S[t, p], step, S[p, q])


@jit()
def _refine(a, b, near, out, two_sided):
    """Compute distances below ``near`` (n, m) anew, from differences of rows."""
    k = a.shape[1] - 1
    basis, left = np.empty((2 * k, a.shape[2])), np.empty(a.shape[2])
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            if out[i, j] >= near[i, j]:
                continue
            left[:] = a[i, 0] - b[j, 0]
            used = _subtract(left, a[i, 1:], basis, 0)
            if two_sided:
                _subtract(left, b[j, 1:], basis, used)
                out[i, j] = np.sqrt(_inner(left, left))
            else:
                one = np.sqrt(_inner(left, left))
                left[:] = a[i, 0] - b[j, 0]
                _subtract(left, b[j, 1:], basis, 0)
                out[i, j] = min(one, np.sqrt(_inner(left, left)))


@jit(fastmath=True)
def _subtract(left, tangents, basis, used):
    """Take tangents out of a difference by Gram-Schmidt; return how large the basis has become."""
    for t in range(tangents.shape[0]):
        new = basis[used]
        new[:] = tangents[t]
        for _ in range(2):  # what the first pass leaves is rounding
            for q in range(used):
                along = _inner(basis[q], new)
                for f in range(new.shape[0]):
                    new[f] -= along * basis[q, f]
        square = _inner(new, new)
        if square < _ONE_DIRECTION:
            continue
        new /= np.sqrt(square)
        along = _inner(new, left)
        for f in range(left.shape[0]):
            left[f] -= along * new[f]
        used += 1
    return used


@jit(fastmath=True)
def _inner(x, y):
    total = 0.0
    for f in range(x.shape[0]):
        total += x[f] * y[f]
    return total
