"""From rows to codes.

- ``omp``: orthogonal matching pursuit and orthogonal least squares, k-sparse or to a residual.
- ``lasso``: l1 coding to a duality gap.
- ``masked``: the same for signals with missing values, by their observed entries.
"""

from kernelatoms.pursuit.lasso import lasso
from kernelatoms.pursuit.masked import masked_omp, omp_of_observed
from kernelatoms.pursuit.omp import omp

__all__ = ["lasso", "masked_omp", "omp", "omp_of_observed"]
