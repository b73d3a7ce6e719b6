"""Rows of Dask arrays and data frames, worked on where their chunks lie.

A pass is a graph of Dask's: one task per chunk codes and sums up its rows, further tasks add up the
sums along a tree over the chunks. Rows stay where they are; sums travel, and so does what codes
them (the dictionary), once per pass. The bits depend on the chunks alone.

- ``chunks``: Dask arrays and data frames as one array with chunks of rows.
- ``source``: ``DaskRows``, the ``RowSource`` of such an array: passes, samples, fingerprints.
- ``parts``: the same of rows that workers read from files by themselves; answers to rows that
  they are sent. ``connection``: clusters that exist, or are started on this machine.
- ``answers``: lazy arrays of answers (codes, predictions), chunk by chunk.
- ``tasks``: what runs on workers. It imports neither Dask nor anything above ``rows``.
- ``cluster``: workers: their versions and memory, and what is said when they are lost.

This is the only room that imports Dask.

See docs/decisions/066-dask.md.
"""
