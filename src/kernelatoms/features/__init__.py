"""Vectors of a feature space.

- ``expansion``: phi(anchors) @ coef under a kernel. A Nystroem map, a dictionary in feature
  space and a projection are all this one object.
- ``samplers``: which rows become landmarks.
- ``linearize``: Algorithm 1 of the LKDL paper: landmarks -> expansion whose coordinates are
  "virtual samples"; its error (30).
- ``krylov``: leading eigenpairs of a large symmetric matrix by a randomised block Krylov method.
- ``coordinates``: rows F with F F' = K, exact or to an accuracy: kernel methods as linear ones.
- ``rpcholesky``: randomly pivoted Cholesky: few rows that stand for all, without K.
- ``projections``: the few vectors of a feature space through which rows are seen.
- ``preimage``: rows for vectors over anchors and for sparse codes over explicit atoms (eq. (19)
  of the FKSC paper); ``preimage_descent``: its fixed-point steps, starts and distance equations;
  ``ridge_map``: a linear map back, learned from rows; ``kernel_ridge_preimage``: the curved one,
  from virtual samples to rows.
- ``nearest_imputation``: missing values from the rows nearest by what is known.
- ``consistent_estimates``: coordinates estimated from a part of a row, shrunk until they fit.
- ``patches``: patches of planes, taken and put back; cosines of their shape.
- ``linear_algebra``: factors and eigenvectors, by what the machine of an array has.
- ``gram_check``: is this a Gram matrix? ``memory``: does it fit?
"""
