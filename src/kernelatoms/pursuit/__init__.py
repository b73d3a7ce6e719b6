"""From rows to codes.

- ``omp``: orthogonal matching pursuit and orthogonal least squares, k-sparse or to a residual.
"""

from kernelatoms.pursuit.omp import omp

__all__ = ["omp"]
