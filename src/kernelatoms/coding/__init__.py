"""From rows to codes.

What pursuits are given and return:

- ``atoms``: dictionaries as pursuits see them: inner products of atoms, computed once.
- ``problem``: what a pursuit sees of signals and atoms (Gram matrix, correlations, energies).
- ``codes``: what a pursuit returns.
- ``gram_policy``: is the Gram matrix of all atoms worth its price?
- ``tiny``: signals whose squares float64 does not hold.

Pursuits:

- ``omp``: orthogonal matching pursuit and orthogonal least squares, k-sparse or to a residual.
- ``masked``: the same for signals with missing values, by their observed entries.
- ``lasso``: l1 coding to a duality gap, at one weight of the penalty or along a path of them.
- ``ksc``: the same as published: coordinate descent, plain and in two stages.
- ``threshold``: soft-thresholded inner products, which is l1 coding over orthonormal atoms.
- ``ridge``: dense codes under a penalty on their energy, in closed form.
- ``robust``: ridge and l1 codes with an l1 norm of the residual; ``robust_interior``: the same by
  an interior-point method.
- ``leave_one_out``: ridge codes of every row over all others, and the weight that classifies best;
  ``leave_one_out_robust``: the same for robust codes.
- ``pursuits``: pursuits with their parameters chosen, as learners use them.

Atoms near a signal, and classes:

- ``neighbors``: which atoms are near a signal, by inner products or by any distance;
  ``approximate_neighbors``: most of them, by pynndescent; ``local_values``: kernel values of rows
  and their own candidates alone.
- ``class_residuals``: what the atoms of one class leave of a signal; ``decisions``: scores of
  classes from these.

For research on pursuits, what they take and return is public here: coding problems
(``LinearProblem``, ``KernelProblem`` over an ``Expansion``, ``GivenProblem``) and ``Codes``; and
the projections of the representation classifiers, by name in ``PROJECTIONS``.
"""

from kernelatoms.coding.codes import Codes, DenseCodes, PaddedCodes, RaggedCodes
from kernelatoms.coding.ksc import fksc, ksc
from kernelatoms.coding.lasso import lasso, lasso_path
from kernelatoms.coding.leave_one_out import left_out_codes
from kernelatoms.coding.omp import omp
from kernelatoms.coding.problem import CodingProblem, GivenProblem, KernelProblem, LinearProblem
from kernelatoms.coding.pursuits import KSC, OMP, Lasso, Pursuit, Ridge, Threshold
from kernelatoms.coding.ridge import ridge, solve_ridge
from kernelatoms.coding.robust import RobustCodes, RobustDictionary
from kernelatoms.coding.threshold import soft_threshold, threshold
from kernelatoms.features.expansion import Expansion
from kernelatoms.features.projections import (
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
