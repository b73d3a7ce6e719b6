"""Where rows are, and passes over them.

- ``source``: ``RowSource``, the base class: blocks in a fixed order, as often as they are asked
  for; some rows, a random sample, labels, a fingerprint; ``numbers``: the floats of rows,
  checksums.
- ``opening``: ``open_rows``, which finds the kind of source.
- ``reduction``: a pass as a sum over blocks, the same bits for any number of threads; ``prefetch``:
  the next blocks are read while others are worked on; ``regroup``: blocks of chunks of any size.
- ``arrays``: arrays in memory or on a device, sparse matrices; ``mapped``: what a function makes of
  the rows of another source, or of two; ``iterables``: objects that yield rows;
  ``routed``: the rows of one class of a source, and all classes' in one pass.
- ``raw_files``: NumPy files, memory maps, safetensors; ``tables``: columns of tables, which
  ``table_files`` reads (Parquet, Arrow, CSV, data frames); ``zarr_arrays``: arrays of zarr;
  ``stamps``: whether a file is still the same.
"""

from kernelatoms.rows.arrays import ArrayRows, SparseRows
from kernelatoms.rows.mapped import MappedRows, PairedRows
from kernelatoms.rows.opening import open_rows
from kernelatoms.rows.reduction import TreeSum, tree
from kernelatoms.rows.source import RowSource, draw

__all__ = [
    "ArrayRows",
    "MappedRows",
    "PairedRows",
    "RowSource",
    "SparseRows",
    "TreeSum",
    "draw",
    "open_rows",
    "tree",
]
