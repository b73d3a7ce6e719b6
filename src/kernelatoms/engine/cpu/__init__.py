"""The machine of numpy arrays.

- ``jit``: how everything here is compiled, cached on disk, and announced the first time.
- ``threads``: the one thread pool, and the rule that only the outermost level threads.
- ``products``: the matrix products around the loops (Gram matrices), and blocks of rows.
- ``omp``: greedy pursuits (OMP, OLS) on Gram and correlations.
- ``masked``: the same on the observed entries of signals with missing values.
- ``lasso``: l1 coding on Gram and correlations: the path, coordinate descent, the duality gap.
- ``l1``: blocks, threads and certificates around the l1 solvers.
- ``ksc``: l1 coding as published: coordinate descent (KSC) and its two stages (FKSC).
- ``ksvd``: the K-SVD sweep over atoms, and residuals of padded codes.
"""

from kernelatoms.engine.cpu.ksc import fksc_passes, ksc_passes
from kernelatoms.engine.cpu.ksvd import residuals, sweep_atoms
from kernelatoms.engine.cpu.l1 import code_blocks, lasso, lasso_local, lasso_without_gram
from kernelatoms.engine.cpu.lasso import certify
from kernelatoms.engine.cpu.masked import omp_observed
from kernelatoms.engine.cpu.products import for_blocks, gram_matrix
from kernelatoms.engine.cpu.threads import each, n_threads, one_blas_thread

__all__ = [
    "certify",
    "code_blocks",
    "each",
    "fksc_passes",
    "for_blocks",
    "gram_matrix",
    "ksc_passes",
    "lasso",
    "lasso_local",
    "lasso_without_gram",
    "n_threads",
    "omp_observed",
    "one_blas_thread",
    "residuals",
    "sweep_atoms",
]
