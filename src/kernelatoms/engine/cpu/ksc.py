"""Kernel sparse coding as published: cyclic coordinate descent (KSC), and its two stages (FKSC).

Both minimise (7) of the FKSC paper, -b'w + 1/2 w'G w + alpha |w|_1, one coefficient at a time:

    z_i = b_i - sum_{j != i} G_ij w_j                       (8)
    w_i = soft(z_i, alpha) / G_ii                           (9), for k(x_i, x_i) of any size

KSC evaluates (8), a sum over all atoms, for every coefficient of every pass. FKSC first updates
the coefficients that (9) would move at w = 0, where z_i = b_i (stage 1), then goes over all of
them but skips those whose z_i is known to stay within alpha (stage 2).

**The bound made safe.** The paper's (14) leans on z_i of the pass before, which a skipped
coefficient does not have. So z_i is kept from its last evaluation, together with S, the running
sum of all |step| taken so far. Since then w has moved by at most S - S_i in the Euclidean norm, and

    |z_i - z_i,last| <= |(G_ij)_{j != i}|_2 (S - S_i)

by Cauchy and Schwarz, at O(1) each. A step of w_i itself does not move z_i, so S_i includes it.

See docs/decisions/025-l1-active-sets.md.
"""

from kernelatoms.engine.cpu.jit import jit


@jit()
def _soften(z, alpha):
    if z > alpha:
        return z - alpha
    return z + alpha if z < -alpha else 0.0


@jit(fastmath=True)
def _evaluate(gram, b, w, i):
    """Return z_i of (8)."""
    z = 0.0
    for j in range(w.shape[0]):
        z += gram[i, j] * w[j]
    return b[i] - z + gram[i, i] * w[i]


@jit()
def ksc_passes(gram, corr, alpha, n_passes, change_tol, codes, n_done, n_updates, settled):
    """Do passes over all coefficients of each signal that has not converged.

    It settles when a pass changes w by no more than ``change_tol`` of its norm.
    """
    n_atoms = gram.shape[0]
    for s in range(corr.shape[0]):
        w = codes[s]
        for _ in range(n_passes):
            if settled[s]:
                break
            moved = 0.0
            size = 0.0
            for i in range(n_atoms):
                size += w[i] * w[i]
                if gram[i, i] > 0.0:
                    new = _soften(_evaluate(gram, corr[s], w, i), alpha) / gram[i, i]
                    n_updates[s] += 1
                    moved += (new - w[i]) ** 2
                    w[i] = new
            n_done[s] += 1
            settled[s] = moved <= change_tol * change_tol * size


@jit()
def fksc_passes(
    gram, corr, alpha, n_passes, change_tol, stage_tol, reach, codes, last_z, last_moved,
    moved_so_far, stage, n_done, n_updates, settled,
):  # fmt: skip
    """Do passes of stage 1 or 2 over each signal that has not settled.

    ``reach`` holds |(G_ij)_{j != i}|_2; ``last_z`` and ``last_moved`` hold z_i and S at its last
    evaluation, ``moved_so_far`` S. Stage 1 ends when a pass changes w by ``stage_tol``.
    """
    n_atoms = gram.shape[0]
    for s in range(corr.shape[0]):
        w = codes[s]
        for _ in range(n_passes):
            if settled[s]:
                break
            moved = 0.0
            size = 0.0
            for i in range(n_atoms):
                size += w[i] * w[i]
                if gram[i, i] <= 0.0:
                    continue
                new = 0.0
                if stage[s] == 1:
                    if abs(corr[s, i]) <= alpha and w[i] == 0.0:
                        continue
                    skip = False
                else:
                    farthest = reach[i] * (moved_so_far[s] - last_moved[s, i])
                    skip = abs(last_z[s, i]) + farthest <= alpha
                if not skip:
                    z = _evaluate(gram, corr[s], w, i)
                    n_updates[s] += 1
                    last_z[s, i] = z
                    new = _soften(z, alpha) / gram[i, i]
                step = new - w[i]
                w[i] = new
                moved += step * step
                moved_so_far[s] += abs(step)
                if not skip:
                    last_moved[s, i] = moved_so_far[s]
            n_done[s] += 1
            if stage[s] == 1:
                if moved <= stage_tol * stage_tol * size:
                    stage[s] = 2
            else:
                settled[s] = moved <= change_tol * change_tol * size
