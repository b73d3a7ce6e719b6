"""The machine of tensors: torch, and Triton where there is a card that it compiles for.

Functions of ``engine.cpu`` by the same names, as far as what runs here needs them; they take and
return ``DeviceArray``s. Inside the files they are functions of tensors (``on_tensors``).

- ``arrays``: ``DeviceArray``, a tensor that speaks numpy; ``ufuncs`` and ``functions``: what
  numpy's are on tensors; ``dtypes``: types by both names; ``exact``: products of float32 that are.
- ``crossing``: how users' tensors come in and go out; ``streaming``: rows of the host, in blocks.
- ``csr``: sparse codes.
- ``work``: blocks, and no threads; ``kernels``: whether Triton makes kernels here.
- ``products``: Gram matrices and sums over rows; ``scale``: squared norms that fit;
  ``norm_kernels``: the same in Triton.
- ``linalg``: factors and solutions that numpy has no names for.
- ``greedy``: greedy pursuits: blocks and memory; ``greedy_blocks``, ``greedy_scale``: both of them;
  ``greedy_coders``: what codes a block; ``greedy_steps``, ``greedy_sources``,
  ``greedy_nonnegative``, ``greedy_atoms``: in plain torch; ``greedy_kernels``,
  ``greedy_exact``, ``screens``, ``many_atoms``: in Triton.
- ``l1``: l1 coding; ``l1_rounds``: working sets and certificates; ``l1_looks``: at all atoms;
  ``l1_parts``: memory; ``l1_solvers``: small problems in plain torch; ``l1_kernels``: in Triton.
- ``ksvd``, ``atoms``: updates of dictionaries; ``ksvd_kernels``, ``atoms_kernels``: in Triton.
- ``class_parts``, ``local``, ``nearest``, ``pairs``: what classes leave of signals, small problems,
  neighbours, distances.

See docs/decisions/008-device-arrays.md.
"""

from kernelatoms.engine.gpu import (
    atoms,
    class_parts,
    greedy,
    ksvd,
    l1,
    linalg,
    local,
    nearest,
    pairs,
    products,
    scale,
    work,
)
from kernelatoms.engine.gpu.arrays import DeviceArray, call_user, on_tensors, to_numpy
from kernelatoms.engine.gpu.crossing import cpu_as_device
from kernelatoms.engine.gpu.csr import DeviceCSR, csr, stacked
from kernelatoms.engine.gpu.products import prefers_no_gram
from kernelatoms.engine.gpu.work import (
    UPDATES_TOGETHER,
    each,
    fair_share,
    for_blocks,
    for_local_blocks,
    for_rows,
    in_short_parts,
    n_threads,
    one_blas_thread,
)

all_ordinary = on_tensors(scale.all_ordinary)
chi2_distances = on_tensors(pairs.chi2_distances)
cholesky = on_tensors(linalg.cholesky)
cholesky_all = on_tensors(linalg.cholesky_all)
class_parts_local = on_tensors(local.class_parts_local)
cross_products = on_tensors(products.cross_products)
descend_atoms = on_tensors(atoms.descend_atoms)
free_bytes = on_tensors(work.free_bytes)
gather = on_tensors(local.gather)
gaussian_local = on_tensors(local.gaussian_local)
gram_matrix = on_tensors(products.gram_matrix)
in_order = on_tensors(nearest.in_order)
in_safe_range = on_tensors(scale.in_safe_range)
is_mostly_free = on_tensors(work.is_mostly_free)
keep_smallest = on_tensors(nearest.keep_smallest)
l1_distances = on_tensors(pairs.l1_distances)
laid_out = on_tensors(products.laid_out)
lasso = on_tensors(l1.lasso)
lasso_local = on_tensors(l1.lasso_local)
lasso_without_gram = on_tensors(l1.lasso_without_gram)
least_squares = on_tensors(linalg.least_squares)
linf_distances = on_tensors(pairs.linf_distances)
none_yet = on_tensors(nearest.none_yet)
omp = on_tensors(greedy.omp)
omp_local = on_tensors(greedy.omp_local)
omp_without_gram = on_tensors(greedy.omp_without_gram)
pivoted_cholesky = on_tensors(linalg.pivoted_cholesky)
products_at = on_tensors(class_parts.products_at)
residuals = on_tensors(ksvd.residuals)
ridge_local = on_tensors(local.ridge_local)
root_of_inverse = on_tensors(linalg.root_of_inverse)
rescale_if_needed = on_tensors(scale.rescale_if_needed)
smallest = on_tensors(nearest.smallest)
solve_triangular = on_tensors(linalg.solve_triangular)
solve_triangular_all = on_tensors(linalg.solve_triangular_all)
squared_norms = on_tensors(scale.squared_norms)
subtract_class_parts = on_tensors(class_parts.subtract_class_parts)
subtract_dense_class_parts = on_tensors(class_parts.subtract_dense_class_parts)
sum_products = on_tensors(atoms.sum_products)
sweep_atoms = on_tensors(ksvd.sweep_atoms)
sweep_atoms_all = on_tensors(ksvd.sweep_atoms_all)
times = on_tensors(products.times)
rescale_rows = on_tensors(scale.rescale_rows)
unit_rows = on_tensors(scale.unit_rows)

__all__ = [
    "UPDATES_TOGETHER",
    "DeviceArray",
    "DeviceCSR",
    "all_ordinary",
    "call_user",
    "chi2_distances",
    "cholesky",
    "cholesky_all",
    "class_parts_local",
    "cpu_as_device",
    "cross_products",
    "csr",
    "descend_atoms",
    "each",
    "fair_share",
    "for_blocks",
    "for_local_blocks",
    "for_rows",
    "free_bytes",
    "gather",
    "gaussian_local",
    "gram_matrix",
    "in_order",
    "in_safe_range",
    "in_short_parts",
    "is_mostly_free",
    "keep_smallest",
    "l1_distances",
    "laid_out",
    "lasso",
    "lasso_local",
    "lasso_without_gram",
    "least_squares",
    "linf_distances",
    "n_threads",
    "none_yet",
    "omp",
    "omp_local",
    "omp_without_gram",
    "one_blas_thread",
    "pivoted_cholesky",
    "prefers_no_gram",
    "products_at",
    "rescale_if_needed",
    "rescale_rows",
    "residuals",
    "ridge_local",
    "root_of_inverse",
    "smallest",
    "solve_triangular",
    "solve_triangular_all",
    "squared_norms",
    "stacked",
    "subtract_class_parts",
    "subtract_dense_class_parts",
    "sum_products",
    "sweep_atoms",
    "sweep_atoms_all",
    "times",
    "to_numpy",
    "unit_rows",
]
