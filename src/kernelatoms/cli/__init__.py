"""The command line: parse arguments, call the library, show what it returns.

- ``app``: the ``kernelatoms`` command and its subcommands.
- ``fit``: ``kernelatoms fit``; ``fit_parts``: from a table that is read in parts. ``models``: the
  model and its parameters (``--set``); ``scoring``: the default model, ``--tune`` and ``--cv``.
- ``predict``, and how many predictions are right; ``encode``; ``parts``: both, and reports, on
  tables that are read in parts. ``decode``, also ``denoise``; ``explain``.
- ``info``: ``kernelatoms info``, ``report`` and ``datasets``.
- ``compress``, ``decompress``, ``inspect`` and ``codec fit`` are in ``kernelatoms.codec.commands``.
- ``demo``: ``kernelatoms demo``; ``digits``: its study and its page.
- ``options``: options that commands share, and the opening of files; ``cluster``: commands on the
  workers of a Dask cluster; ``summaries``: what is said of columns, missing values and what a fit
  reached.
- ``console``: notes, errors, exit codes, progress, tables; ``interrupts``: Ctrl-C.

Slow imports (scikit-learn, matplotlib, numba) are inside the functions that need them, so
``kernelatoms --help`` answers at once.
"""
