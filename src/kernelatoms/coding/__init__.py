"""From rows to codes.

What pursuits take and return:

- ``atom_products``: inner products of atoms, and of signals with atoms, computed once; of signals
  with candidates of their own, for these alone.
- ``problem``: what a pursuit sees of signals and atoms (Gram matrix, correlations, energies).
- ``codes``: what a pursuit returns.
- ``missing_and_tiny``: signals coded apart: with missing values, or so small that their squares
  underflow float64.

Pursuits:

- ``omp``: orthogonal matching pursuit and orthogonal least squares, also of missing values.
- ``lasso``: l1 coding to a duality gap, at one weight of the penalty or along a path of weights;
  also as published, by coordinate descent in one stage and in two.
- ``closed_form``: ridge codes, which are dense; soft-thresholded inner products, which are l1 codes
  over orthonormal atoms.
- ``robust``: ridge and l1 codes with an l1 norm of the residual, also by ``robust_interior``.
- ``leave_one_out``: codes of training rows over all others, and the weight that classifies best.
- ``pursuits``: pursuits with their parameters chosen, as learners use them.

Atoms near a signal, and classes:

- ``neighbors``: which atoms are near a signal, exactly or approximately.
- ``class_residuals``: residuals and scores of classes.
"""

from kernelatoms.coding.closed_form import solve_ridge
from kernelatoms.coding.codes import Codes, PaddedCodes, RaggedCodes
from kernelatoms.coding.lasso import ksc, lasso
from kernelatoms.coding.omp import omp
from kernelatoms.coding.problem import GivenProblem, KernelProblem, LinearProblem
from kernelatoms.coding.pursuits import OMP, Lasso
from kernelatoms.features.expansion import Expansion
from kernelatoms.features.projections import PROJECTIONS

__all__ = [
    "OMP",
    "PROJECTIONS",
    "Codes",
    "Expansion",
    "GivenProblem",
    "KernelProblem",
    "Lasso",
    "LinearProblem",
    "PaddedCodes",
    "RaggedCodes",
    "ksc",
    "lasso",
    "omp",
    "solve_ridge",
]
