"""Vectors of a feature space.

- ``expansion``: phi(anchors) @ coef under a kernel: a Nystrom map, a dictionary in feature space
  and a projection are all this one object.
- ``samplers``: which rows become landmarks; randomly pivoted Cholesky.
- ``coordinates``: rows F with F F' = K, which make kernel methods linear ones; Algorithm 1 of the
  LKDL paper, from landmarks to a Nystrom map.
- ``projections``: Psi of the KCRC-LCD paper, from columns of kernel values to few components.
- ``preimage``: rows for vectors over anchors, and for sparse codes over atoms (eq. (19) of the FKSC
  paper), by the steps and regressions of ``preimage_methods``.
- ``imputation``: estimates for rows with missing values.
- ``patches``: patches of images, taken and put back; a cosine dictionary for them.
- ``linear_algebra``: factorisations on the machine of an array, leading eigenpairs of a large
  matrix, checks of Gram matrices.
- ``memory``: estimates that refuse what cannot fit in memory.
"""
