"""Where rows are, and passes over them.

- ``source``: ``RowSource``, the base class: blocks in a fixed order, as often as they are asked
  for; some rows, a random sample, labels, a fingerprint.
- ``reduction``: a pass as a sum over blocks, the same bits for any number of threads; ``prefetch``:
  the next blocks are read while others are worked on.
- ``arrays``: arrays in memory or on a device, sparse matrices; ``mapped``: what a function makes of
  the rows of another source.
"""

from kernelatoms.rows.arrays import ArrayRows, SparseRows
from kernelatoms.rows.mapped import MappedRows
from kernelatoms.rows.reduction import TreeSum, tree
from kernelatoms.rows.source import RowSource

__all__ = ["ArrayRows", "MappedRows", "RowSource", "SparseRows", "TreeSum", "tree"]
