"""The machine of numpy arrays.

- ``jit``: how everything here is compiled, cached on disk, and announced the first time.
- ``threads``: the one thread pool, and the rule that only the outermost level threads.
- ``products``: the matrix products around the loops (Gram matrices), and blocks of rows.
- ``omp``: greedy pursuits (OMP, OLS) on Gram and correlations.
- ``masked``: the same on the observed entries of signals with missing values.
- ``lasso``: l1 coding on Gram and correlations: the path, coordinate descent, the duality gap.
- ``ksc``: l1 coding as published: coordinate descent (KSC) and its two stages (FKSC).
- ``ksvd``: the K-SVD sweep over atoms, and residuals of padded codes.
- ``atoms``: block coordinate descent on atoms from the sums of their codes.
- ``residuals``: what the atoms of each class leave of the signals.
"""

from kernelatoms.engine.cpu.atoms import descend_atoms
from kernelatoms.engine.cpu.products import for_blocks, gram_matrix
from kernelatoms.engine.cpu.residuals import (
    observed_class_residuals,
    subtract_class_parts,
    subtract_dense_class_parts,
)
from kernelatoms.engine.cpu.threads import each, n_threads, one_blas_thread

__all__ = [
    "descend_atoms",
    "each",
    "for_blocks",
    "gram_matrix",
    "n_threads",
    "observed_class_residuals",
    "one_blas_thread",
    "subtract_class_parts",
    "subtract_dense_class_parts",
]
