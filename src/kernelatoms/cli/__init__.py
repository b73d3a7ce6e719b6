"""The command line: parse, call the public API, show.

- ``app``: the ``kernelatoms`` command and its subcommands.
- ``stopping``: Ctrl-C, from the first import to the last.
- ``speaking``: words to the user: notes, errors, exit codes, progress, tables.
- ``options``: what commands have in common: how a table is read, what may be written over.
- ``scoring``: ``fit --cv``: folds, a support vector machine beside, what follows.
- ``sizing``: the default model and sizes by the rows at hand, ``fit --tune``.
- ``choosing``: model by name or preset, parameters by ``--set name=value``.
- ``columns``: how columns are used, in words; ``missing``: what becomes of missing values.
- ``judging``: how right predictions are.
- ``fit``: ``kernelatoms fit``; ``reached``: what a fit reached.
- ``predict``: ``kernelatoms predict``; ``encode``: ``kernelatoms encode``;
  ``applying``: a model file and a data file, opened together.
- ``signals``: ``kernelatoms decode`` and ``denoise``.
- ``explaining``: ``kernelatoms explain``.
- ``look``: ``kernelatoms info``, ``report`` and ``datasets``;
  ``page_facts``: what a report says of files.
- ``codec``: ``kernelatoms compress``, ``decompress``, ``inspect`` and ``codec fit``.
- ``demo``: ``kernelatoms demo``.
- ``digits``: the demo's study: learn, corrupt, classify, measure.
- ``digits_page``: the study's table and report.

What takes long to import (scikit-learn, matplotlib, numba) is imported by the functions that use
it: ``kernelatoms --help`` answers at once.
"""
