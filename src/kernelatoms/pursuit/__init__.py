"""From rows to codes.

- ``omp``: orthogonal matching pursuit and orthogonal least squares, k-sparse or to a residual.
- ``masked``: the same for signals with missing values, by their observed entries.
- ``lasso``: l1 coding to a duality gap, at one weight of the penalty or along a path of them.
- ``ksc``: the same as published: coordinate descent, plain and in two stages.
- ``ridge``: dense codes under |w|^2.
- ``choices``: pursuits with their parameters chosen, as learners use them.
- ``sizes``: is the Gram matrix of all atoms worth its price?
"""

from kernelatoms.pursuit.ksc import fksc, ksc
from kernelatoms.pursuit.lasso import lasso, lasso_path
from kernelatoms.pursuit.omp import omp
from kernelatoms.pursuit.ridge import ridge

__all__ = ["fksc", "ksc", "lasso", "lasso_path", "omp", "ridge"]
