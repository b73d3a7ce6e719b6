"""The machine of numpy arrays.

- ``jit``: compilation to the same machine code in every process, its cache on disk, and its
  announcement. ``threads``: the thread pool. ``gang``: threads in step through one loop.
- ``products``: the matrix products around the loops, blocks of rows, padded rows. ``scale``:
  squared norms that fit, and signals scaled by powers of two. ``values``: all values looked at.
- ``greedy``: greedy pursuits (OMP, OLS, non-negative): blocks, threads, memory; with a Gram
  matrix, with a small one per signal, or without. ``greedy_loops``: their steps. ``masked``: the
  same on the observed entries of signals with missing values. ``observed``: reconstructions of
  these.
- ``l1``: l1 coding: blocks, threads and certificates. ``lasso_loops``: its solvers on Gram and
  correlations. ``ksc``: l1 coding as published (KSC, FKSC).
- ``ksvd``: the K-SVD sweep over atoms, approximate and exact, and residuals of padded codes.
  ``atoms``: sums of codes, and block coordinate descent on atoms from them.
- ``class_parts``: residuals of signals per class of atoms. ``nearest``: the smallest values of
  every row of a matrix that is given in blocks.
- ``local``: one small problem per signal: ridge codes, class parts. ``local_grams``: its Gram
  matrix, gathered from that of all atoms or of a Gaussian kernel.
- ``pairs``: distances of all pairs of rows that no matrix product gives. ``tangents``: those of
  rows that may move along tangents.
"""

from kernelatoms.engine.cpu.atoms import descend_atoms, sum_products
from kernelatoms.engine.cpu.class_parts import (
    observed_class_residuals,
    products_at,
    subtract_class_parts,
    subtract_dense_class_parts,
)
from kernelatoms.engine.cpu.greedy import omp, omp_local, omp_without_gram
from kernelatoms.engine.cpu.ksc import fksc_passes, ksc_passes
from kernelatoms.engine.cpu.ksvd import residuals, sweep_atoms, sweep_atoms_exactly
from kernelatoms.engine.cpu.l1 import at_once, code_blocks, lasso, lasso_local, lasso_without_gram
from kernelatoms.engine.cpu.lasso_loops import certify
from kernelatoms.engine.cpu.local import class_parts_local, ridge_local
from kernelatoms.engine.cpu.local_grams import for_local_blocks, gather, gaussian_local
from kernelatoms.engine.cpu.masked import omp_observed
from kernelatoms.engine.cpu.nearest import TopK, smallest
from kernelatoms.engine.cpu.observed import fill_missing, observed_residuals
from kernelatoms.engine.cpu.pairs import (
    assignment_distances,
    chi2_distances,
    l1_distances,
    linf_distances,
)
from kernelatoms.engine.cpu.products import (
    cross_products,
    for_blocks,
    for_rows,
    gram_matrix,
    pad_rows,
    prefers_no_gram,
    times,
)
from kernelatoms.engine.cpu.scale import (
    all_in_safe_range,
    in_safe_range,
    rescale_if_needed,
    rescale_rows,
    squared_norms,
    unit_rows,
)
from kernelatoms.engine.cpu.tangents import tangent_distances
from kernelatoms.engine.cpu.threads import (
    UPDATES_TOGETHER,
    each,
    fair_share,
    in_short_parts,
    n_threads,
    one_blas_thread,
)
from kernelatoms.engine.cpu.values import (
    Spread,
    all_finite,
    count_values,
    holds_nan,
    map_rows,
    spread,
)
