"""Vectors in feature space.

- ``expansion``: phi(anchors) @ coef under a kernel. A Nystroem map, a dictionary in feature
  space and a projection are all this one object.
- ``samplers``: which rows become landmarks.
- ``linearize``: Algorithm 1 of the LKDL paper: landmarks -> expansion whose coordinates are
  "virtual samples"; its error (30); the pre-image.
- ``gram_check``: is this a Gram matrix?
- ``problem``: what a pursuit sees of signals and atoms (Gram, correlations, energies).
- ``codes``: what a pursuit returns.
"""
