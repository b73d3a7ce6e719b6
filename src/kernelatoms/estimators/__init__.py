"""scikit-learn shells: validate, call, store.

- ``coding``: codes over given atoms; ``learners``: dictionary learners; ``classifiers``;
  ``maps``: into a feature space and back; ``inspection``: look into fitted models;
  ``devices``: tensors and graphics cards.
- ``presets``: ``PRESETS``, ``make_preset``, ``default_preset``: pipelines for kinds of data.
- ``validation``: what every argument is checked with, before work starts; ``elsewhere``: checks of
  arrays of any machine; ``sparse_rows``: rows that come as sparse arrays, dense inside.
- ``unused_arguments``: arguments that others leave without use are refused.
- ``state_checks``: checks of fitted attributes, which may come from a file.
- ``rollback``: a ``fit`` begins with nothing of the last one; one that fails leaves the estimator
  as it was.
- ``naming``: errors of Python itself name public classes only.
"""
