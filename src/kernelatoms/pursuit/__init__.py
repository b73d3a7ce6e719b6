"""From rows to codes.

- ``omp``: orthogonal matching pursuit and orthogonal least squares, k-sparse or to a residual.
- ``masked``: the same for signals with missing values, by their observed entries.
- ``lasso``: l1 coding to a duality gap, at one weight of the penalty or along a path of them.
- ``ksc``: the same as published: coordinate descent, plain and in two stages.
- ``ridge``: dense codes under a penalty on their energy, in closed form.
- ``choices``: pursuits with their parameters chosen, as learners use them.
- ``sizes``: is the Gram matrix of all atoms worth its price?

For research on pursuits, what they take and return is at hand here too: coding problems
(``LinearProblem``, ``KernelProblem`` over an ``Expansion``, ``GivenProblem``) and ``Codes``.
"""

from kernelatoms.pursuit.choices import OMP, Lasso, Pursuit, Ridge
from kernelatoms.pursuit.ksc import fksc, ksc
from kernelatoms.pursuit.lasso import lasso, lasso_path
from kernelatoms.pursuit.omp import omp
from kernelatoms.pursuit.ridge import ridge, solve_ridge
from kernelatoms.space.codes import Codes, DenseCodes, PaddedCodes, RaggedCodes
from kernelatoms.space.expansion import Expansion
from kernelatoms.space.problem import CodingProblem, GivenProblem, KernelProblem, LinearProblem

__all__ = [
    "OMP",
    "Codes",
    "CodingProblem",
    "DenseCodes",
    "Expansion",
    "GivenProblem",
    "KernelProblem",
    "Lasso",
    "LinearProblem",
    "PaddedCodes",
    "Pursuit",
    "RaggedCodes",
    "Ridge",
    "fksc",
    "ksc",
    "lasso",
    "lasso_path",
    "omp",
    "ridge",
    "solve_ridge",
]
