"""From rows to codes.

- ``omp``: orthogonal matching pursuit and orthogonal least squares, k-sparse or to a residual.
- ``lasso``: l1 coding to a duality gap, at one weight of the penalty or along a path of them.
- ``ksc``: the same as published: coordinate descent, plain and in two stages.
- ``l1``: what those share: blocks of signals, warm starts, the certificate.
- ``ridge``: dense codes under a penalty on their energy, in closed form.
- ``masked``: OMP for signals with missing values, by their observed entries.

For research on pursuits, what they take and return is at hand here too: coding problems
(``LinearProblem``, ``KernelProblem`` over an ``Expansion``, ``GivenProblem``) and ``Codes``.
"""

from kernelatoms.pursuit.ksc import fksc, ksc
from kernelatoms.pursuit.lasso import lasso, lasso_path
from kernelatoms.pursuit.masked import masked_omp, omp_of_observed
from kernelatoms.pursuit.omp import omp
from kernelatoms.pursuit.ridge import solve_ridge
from kernelatoms.space.codes import Codes
from kernelatoms.space.expansion import Expansion
from kernelatoms.space.problem import CodingProblem, GivenProblem, KernelProblem, LinearProblem

__all__ = [
    "Codes",
    "CodingProblem",
    "Expansion",
    "GivenProblem",
    "KernelProblem",
    "LinearProblem",
    "fksc",
    "ksc",
    "lasso",
    "lasso_path",
    "masked_omp",
    "omp",
    "omp_of_observed",
    "solve_ridge",
]
