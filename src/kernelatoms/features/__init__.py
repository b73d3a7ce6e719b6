"""Vectors of a feature space.

- ``expansion``: phi(anchors) @ coef under a kernel: a Nystrom map, a dictionary in feature space
  and a projection are all this one object.
- ``samplers``: which rows become landmarks; randomly pivoted Cholesky.
- ``linearize``: Algorithm 1 of the LKDL paper, from landmarks to a Nystrom map; its error (30).
- ``krylov``: leading eigenpairs of a large symmetric matrix.
- ``coordinates``: rows F with F F' = K, which make kernel methods linear ones.
- ``projections``: Psi of the KCRC-LCD paper, from columns of kernel values to few components.
- ``preimage``: rows for vectors over anchors, and for sparse codes over atoms (eq. (19) of the FKSC
  paper), by the steps of ``preimage_descent`` or the regressions of ``ridge_preimage``.
- ``imputation``: estimates for rows with missing values.
- ``patches``: patches of images, taken and put back; a cosine dictionary for them.
- ``linear_algebra``: factorisations on the machine of an array, checks of Gram matrices.
- ``memory``: estimates that refuse what cannot fit in memory.
"""
