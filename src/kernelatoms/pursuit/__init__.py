"""From rows to codes.

- ``omp``: orthogonal matching pursuit and orthogonal least squares, k-sparse or to a residual.
- ``masked``: the same for signals with missing values, by their observed entries.
- ``lasso``: l1 coding to a duality gap, at one weight of the penalty or along a path of them.
- ``ksc``: the same as published: coordinate descent, plain and in two stages.
- ``threshold``: inner products drawn towards 0, which is l1 coding over orthonormal atoms.
- ``ridge``: dense codes under a penalty on their energy, in closed form.
- ``robust``: ridge and l1 codes that distrust some entries of a signal; ``interior``: those that
  take an interior-point method.
- ``left_out``: ridge codes of rows over all others, and the weight that classifies best;
  ``left_out_robust``: the same for robust codes.
- ``choices``: pursuits with their parameters chosen, as learners use them.
- ``tiny``: signals whose squares float64 does not hold.
- ``sizes``: is the Gram matrix of all atoms worth its price?

For research on pursuits, what they take and return is at hand here too: coding problems
(``LinearProblem``, ``KernelProblem`` over an ``Expansion``, ``GivenProblem``) and ``Codes``; and
the projections of the representation classifiers, by name in ``PROJECTIONS``.
"""

from kernelatoms.pursuit.choices import KSC, OMP, Lasso, Pursuit, Ridge, Threshold
from kernelatoms.pursuit.ksc import fksc, ksc
from kernelatoms.pursuit.lasso import lasso, lasso_path
from kernelatoms.pursuit.left_out import left_out_codes
from kernelatoms.pursuit.omp import omp
from kernelatoms.pursuit.ridge import ridge, solve_ridge
from kernelatoms.pursuit.robust import RobustCodes, RobustDictionary
from kernelatoms.pursuit.threshold import soft_threshold, threshold
from kernelatoms.space.codes import Codes, DenseCodes, PaddedCodes, RaggedCodes
from kernelatoms.space.expansion import Expansion
from kernelatoms.space.problem import CodingProblem, GivenProblem, KernelProblem, LinearProblem
from kernelatoms.space.projections import (
    PROJECTIONS,
    GraphProjection,
    IdentityProjection,
    KFDAProjection,
    KPCAProjection,
    Projection,
    RandomProjection,
)

__all__ = [
    "KSC",
    "OMP",
    "PROJECTIONS",
    "Codes",
    "CodingProblem",
    "DenseCodes",
    "Expansion",
    "GivenProblem",
    "GraphProjection",
    "IdentityProjection",
    "KFDAProjection",
    "KPCAProjection",
    "KernelProblem",
    "Lasso",
    "LinearProblem",
    "PaddedCodes",
    "Projection",
    "Pursuit",
    "RaggedCodes",
    "RandomProjection",
    "Ridge",
    "RobustCodes",
    "RobustDictionary",
    "Threshold",
    "fksc",
    "ksc",
    "lasso",
    "lasso_path",
    "left_out_codes",
    "omp",
    "ridge",
    "soft_threshold",
    "solve_ridge",
    "threshold",
]
