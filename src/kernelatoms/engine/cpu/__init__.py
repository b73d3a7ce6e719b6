"""The machine of numpy arrays.

- ``jit``: how everything here is compiled, cached on disk, and announced the first time.
- ``machine_code``: the same machine code in every process, whatever it compiled before.
- ``threads``: the one thread pool, and the rule that only the outermost level threads.
- ``products``: the matrix products around the loops (Gram matrices), and blocks of rows.
- ``scale``: squared norms that fit, and signals at a power of two of themselves.
- ``layout``: rows padded to whole vector lanes, which nothing outside this machine sees.
- ``greedy``: greedy pursuits (OMP, OLS, non-negative): blocks, threads, memory; with a Gram matrix,
  with a small one a signal, or without.
- ``greedy_loops``: their steps.
- ``masked``: the same on the observed entries of signals with missing values.
- ``l1``: l1 coding: blocks, threads and certificates around the solvers.
- ``lasso_loops``: those on Gram and correlations: active sets, coordinate descent, the duality gap.
- ``ksc``: l1 coding as published: coordinate descent (KSC) and its two stages (FKSC).
- ``ksvd``: the K-SVD sweep over atoms, approximate and exact, and residuals of padded codes.
- ``atoms``: the sums of codes that learners need, and block coordinate descent on atoms from them.
- ``pairs``: distances of all pairs of rows that no matrix product gives.
- ``tangents``: distances of rows that may move along tangents.
- ``shapes``: distances of sets of histograms, by assignment.
- ``class_parts``: what one class's atoms leave of signals; products with the atoms of codes.
- ``nearest``: the smallest values of every row of a matrix that passes by in blocks.
- ``local``: a small problem of its own for every signal: Gram matrices, ridge codes, class parts.
- ``gaussian``: values of Gaussian kernels among the atoms of every signal.
- ``local_loops``: small systems solved one after another.
- ``entropy``: matrices of small integers and masks as bytes, and back.
- ``entropy_loops``: their contexts, mixing and range coder.
- ``prediction``: rows to integers and back, by predictions from rows decoded before.
- ``prediction_loops``: their predictors, steps and cells.
- ``text_fields``: fields of delimited text, numbers in them, and numbers as text again.
"""

from kernelatoms.engine.cpu.atoms import descend_atoms, sum_products
from kernelatoms.engine.cpu.class_parts import (
    observed_class_residuals,
    products_at,
    subtract_class_parts,
    subtract_dense_class_parts,
)
from kernelatoms.engine.cpu.entropy import (
    decode_bits,
    decode_integers,
    decode_small,
    encode_bits,
    encode_integers,
    encode_small,
)
from kernelatoms.engine.cpu.gaussian import gaussian_local
from kernelatoms.engine.cpu.greedy import omp, omp_local, omp_without_gram
from kernelatoms.engine.cpu.ksc import fksc_passes, ksc_passes
from kernelatoms.engine.cpu.ksvd import residuals, sweep_atoms, sweep_atoms_exactly
from kernelatoms.engine.cpu.l1 import at_once, code_blocks, lasso, lasso_local, lasso_without_gram
from kernelatoms.engine.cpu.lasso_loops import certify
from kernelatoms.engine.cpu.layout import laid_out
from kernelatoms.engine.cpu.local import (
    class_parts_local,
    for_local_blocks,
    gather,
    ridge_local,
)
from kernelatoms.engine.cpu.masked import omp_observed
from kernelatoms.engine.cpu.nearest import in_order, keep_smallest, none_yet, smallest
from kernelatoms.engine.cpu.pairs import chi2_distances, l1_distances, linf_distances
from kernelatoms.engine.cpu.prediction import (
    EXACT_ROW,
    code_columns,
    code_combinations,
    code_rows,
    code_slice,
    gaussian_preimages,
    predict_slice,
    step_of,
)
from kernelatoms.engine.cpu.products import (
    cross_products,
    for_blocks,
    for_rows,
    gram_matrix,
    prefers_no_gram,
    times,
)
from kernelatoms.engine.cpu.scale import (
    all_ordinary,
    in_safe_range,
    rescale_if_needed,
    rescale_rows,
    squared_norms,
    unit_rows,
)
from kernelatoms.engine.cpu.shapes import assignment_distances
from kernelatoms.engine.cpu.tangents import tangent_distances
from kernelatoms.engine.cpu.threads import (
    UPDATES_TOGETHER,
    each,
    fair_share,
    in_short_parts,
    n_threads,
    one_blas_thread,
)

__all__ = [
    "EXACT_ROW",
    "UPDATES_TOGETHER",
    "all_ordinary",
    "assignment_distances",
    "at_once",
    "certify",
    "chi2_distances",
    "class_parts_local",
    "code_blocks",
    "code_columns",
    "code_combinations",
    "code_rows",
    "code_slice",
    "cross_products",
    "decode_bits",
    "decode_integers",
    "decode_small",
    "descend_atoms",
    "each",
    "encode_bits",
    "encode_integers",
    "encode_small",
    "fair_share",
    "fksc_passes",
    "for_blocks",
    "for_local_blocks",
    "for_rows",
    "gather",
    "gaussian_local",
    "gaussian_preimages",
    "gram_matrix",
    "in_order",
    "in_safe_range",
    "in_short_parts",
    "keep_smallest",
    "ksc_passes",
    "l1_distances",
    "laid_out",
    "lasso",
    "lasso_local",
    "lasso_without_gram",
    "linf_distances",
    "n_threads",
    "none_yet",
    "observed_class_residuals",
    "omp",
    "omp_local",
    "omp_observed",
    "omp_without_gram",
    "one_blas_thread",
    "predict_slice",
    "prefers_no_gram",
    "products_at",
    "rescale_if_needed",
    "rescale_rows",
    "residuals",
    "ridge_local",
    "smallest",
    "squared_norms",
    "step_of",
    "subtract_class_parts",
    "subtract_dense_class_parts",
    "sum_products",
    "sweep_atoms",
    "sweep_atoms_exactly",
    "tangent_distances",
    "times",
    "unit_rows",
]
