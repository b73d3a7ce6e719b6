"""The codec beside its rivals: bytes at equal largest row error, all of them counted.

Not a paper's tables but an answer to one: appendix A.7 of *A novel kernel sparse coding method with
a two-stage acceleration strategy* (FKSC) stores codes and counts nonzeros.

- ``data``: the four sets as tables, and the error of every row.
- ``views``, ``scalings``: orders and norms that a rival may choose from; ``packing``: integers as
  bytes.
- ``streams``: SZ3, ZFP, SPERR, SZ2, rounding; ``search``: their smallest file within a bound.
- ``factors``: PCA and SVD likewise.
- ``literal``: A.7's file in six steps; ``ratios``: the study of the paper's ratios in real bytes.
- ``methods``: our codec and the rivals, one run each; ``sizes``: the studies.
- ``claims``: what has to hold; ``pictures``: rate-distortion curves; ``figures``: all of it.
"""

from reproduction.codec.figures import FIGURES

__all__ = ["FIGURES"]
