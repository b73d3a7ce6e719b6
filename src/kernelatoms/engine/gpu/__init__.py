"""The machine of device arrays: torch, and Triton where there is a card that it compiles for.

Functions of ``engine.cpu`` by the same names, parameters and results, as far as estimators on
devices need them; they take and return ``DeviceArray``s. Inside the files they are functions of
tensors (``on_tensors``). ``engine.cpu`` documents the parameters.

- ``arrays``: numpy's API on tensors, conversion, linear algebra, memory.
- ``greedy``: greedy pursuits. ``l1``: l1 coding.
- ``updates``: dictionary updates, in plain torch; ``update_kernels``: what Triton does instead.
- ``local``: nearest atoms, one small problem per signal, residuals per class.

See docs/decisions/008-device-arrays.md.
"""

from kernelatoms.engine.gpu import local, updates
from kernelatoms.engine.gpu.arrays import linalg, scale, values, work
from kernelatoms.engine.gpu.arrays.conversion import (
    call_user,
    cpu_as_device,
    on_tensors,
    to_numpy,
)
from kernelatoms.engine.gpu.arrays.device_array import DeviceArray, DeviceCSR, csr, stacked
from kernelatoms.engine.gpu.arrays.linalg import prefers_no_gram
from kernelatoms.engine.gpu.arrays.work import (
    UPDATES_TOGETHER,
    each,
    fair_share,
    for_blocks,
    for_local_blocks,
    for_rows,
    in_short_parts,
    map_rows,
    n_threads,
    one_blas_thread,
)
from kernelatoms.engine.gpu.greedy import omp as _omp
from kernelatoms.engine.gpu.l1 import lasso as _lasso
from kernelatoms.engine.gpu.local import TopK, smallest

all_finite = on_tensors(values.all_finite)
all_in_safe_range = on_tensors(scale.all_in_safe_range)
chi2_distances = on_tensors(linalg.chi2_distances)
cholesky = on_tensors(linalg.cholesky)
cholesky_all = on_tensors(linalg.cholesky_all)
class_parts_local = on_tensors(local.class_parts_local)
count_values = on_tensors(values.count_values)
cross_products = on_tensors(linalg.cross_products)
descend_atoms = on_tensors(updates.descend_atoms)
free_bytes = on_tensors(work.free_bytes)
gather = on_tensors(local.gather)
gaussian_local = on_tensors(local.gaussian_local)
gram_matrix = on_tensors(linalg.gram_matrix)
in_safe_range = on_tensors(scale.in_safe_range)
is_mostly_free = on_tensors(work.is_mostly_free)
l1_distances = on_tensors(linalg.l1_distances)
pad_rows = on_tensors(linalg.pad_rows)
lasso = on_tensors(_lasso.lasso)
lasso_local = on_tensors(_lasso.lasso_local)
lasso_without_gram = on_tensors(_lasso.lasso_without_gram)
least_squares = on_tensors(linalg.least_squares)
linf_distances = on_tensors(linalg.linf_distances)
omp = on_tensors(_omp.omp)
omp_local = on_tensors(_omp.omp_local)
omp_without_gram = on_tensors(_omp.omp_without_gram)
pivoted_cholesky = on_tensors(linalg.pivoted_cholesky)
products_at = on_tensors(local.products_at)
residuals = on_tensors(updates.residuals)
ridge_local = on_tensors(local.ridge_local)
root_of_inverse = on_tensors(linalg.root_of_inverse)
rescale_if_needed = on_tensors(scale.rescale_if_needed)
solve_triangular = on_tensors(linalg.solve_triangular)
solve_triangular_all = on_tensors(linalg.solve_triangular_all)
spread = on_tensors(values.spread)
squared_norms = on_tensors(scale.squared_norms)
subtract_class_parts = on_tensors(local.subtract_class_parts)
subtract_dense_class_parts = on_tensors(local.subtract_dense_class_parts)
sum_products = on_tensors(updates.sum_products)
sweep_atoms = on_tensors(updates.sweep_atoms)
sweep_atoms_all = on_tensors(updates.sweep_atoms_all)
times = on_tensors(linalg.times)
rescale_rows = on_tensors(scale.rescale_rows)
unit_rows = on_tensors(scale.unit_rows)
