"""From rows to codes.

- ``omp``: orthogonal matching pursuit and orthogonal least squares, k-sparse or to a residual.
- ``lasso``: l1 coding to a duality gap, at one weight of the penalty or along a path of them.
- ``ksc``: the same as published: coordinate descent, plain and in two stages.
- ``l1``: what those share: blocks of signals, warm starts, the certificate.
- ``masked``: the same for signals with missing values, by their observed entries.
- ``rivals``: what the FKSC paper compares itself with: CD, KFMC, KSR-L2,1, LPM.
"""

from kernelatoms.pursuit.ksc import fksc, ksc
from kernelatoms.pursuit.lasso import lasso, lasso_path
from kernelatoms.pursuit.masked import masked_omp, omp_of_observed
from kernelatoms.pursuit.omp import omp

__all__ = ["fksc", "ksc", "lasso", "lasso_path", "masked_omp", "omp", "omp_of_observed"]
