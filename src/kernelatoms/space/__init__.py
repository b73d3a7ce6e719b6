"""Vectors in feature space.

- ``expansion``: phi(anchors) @ coef under a kernel. A Nystroem map, a dictionary in feature
  space and a projection are all this one object.
- ``samplers``: which rows become landmarks.
- ``linearize``: Algorithm 1 of the LKDL paper: landmarks -> expansion whose coordinates are
  "virtual samples"; its error (30); the pre-image.
- ``krylov``: leading eigenpairs of a large symmetric matrix by a randomised block Krylov method.
- ``coordinates``: rows F with F F' = K, exact or to an accuracy: kernel methods as linear ones.
- ``rpcholesky``: randomly pivoted Cholesky: few rows that stand for all, without K.
- ``filling``: what is missing of rows, from the rows nearest by what is known.
- ``shrink``: coordinates estimated from a part of a row, shrunk until their norm fits.
- ``memory``: does it fit?
- ``preimage``: the way back from feature space to rows, for vectors over anchors and for sparse
  codes over explicit atoms (eq. (19) of the FKSC paper).
- ``descent``: its fixed-point steps, starts and distance equations.
- ``ridge``: the linear way back, learned from rows.
- ``way_back``: the curved one, from virtual samples to rows.
- ``patches``: patches of planes, taken and put back; cosines of their shape.
- ``linear_algebra``: factors and eigenvectors, by what the machine of an array has.
- ``gram_check``: is this a Gram matrix?
- ``atoms``: dictionaries as pursuits see them: inner products of atoms, computed once.
- ``remembered``: what is computed of a fitted model for later calls, once for every fit.
- ``local_values``: kernel values of rows and their own candidates alone.
- ``problem``: what a pursuit sees of signals and atoms (Gram, correlations, energies).
- ``neighbors``: which atoms are near a signal, by inner products or by any distance.
- ``approximate``: most of them, by pynndescent.
- ``residuals``: what one class's atoms leave of a signal.
- ``projections``: the few vectors of a feature space through which rows are seen.
- ``decisions``: what each class's part of a code leaves of a signal, and what is thought of it.
- ``codes``: what a pursuit returns.
"""
