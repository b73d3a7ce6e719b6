"""Vectors of a feature space.

- ``expansion``: phi(anchors) @ coef under a kernel. A Nystrom map, a dictionary in feature space
  and a projection are all this one object.
- ``samplers``: which rows become landmarks; randomly pivoted Cholesky.
- ``linearize``: Algorithm 1 of the LKDL paper, from landmarks to an expansion whose coordinates are
  "virtual samples"; its error (30).
- ``krylov``: leading eigenpairs of a large symmetric matrix by a randomised block Krylov method.
- ``coordinates``: rows F with F F' = K, exact or to an accuracy: kernel methods as linear ones.
- ``projections``: Psi of the KCRC-LCD paper, which maps columns of kernel values to few components.
- ``preimage``: rows for vectors over anchors, and for sparse codes over explicit atoms (eq. (19)
  of the FKSC paper); ``preimage_descent``: its fixed-point steps, starts and distance equations;
  ``ridge_preimage``: maps from feature space to rows, learned by regression.
- ``imputation``: estimates for rows with missing values.
- ``patches``: patches of images, taken and put back; a cosine dictionary for them.
- ``linear_algebra``: factorisations on the machine of an array, checks of Gram matrices.
- ``memory``: does it fit?
"""
