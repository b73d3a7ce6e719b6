"""scikit-learn shells: validate, call, store.

- ``coding``: codes over given atoms; ``learners``: dictionary learners; ``classifiers``;
  ``maps``: into a feature space and back; ``inspection``: look into fitted models;
  ``devices``: tensors and graphics cards.
- ``registry``: the table of all estimators.
- ``base``: ``Estimator`` and its fitted state; ``Transformer``.
- ``presets``: ``PRESETS``, ``make_preset``, ``default_preset``: pipelines for kinds of data.
- ``validation``: checks of arguments and of rows to code, before work starts; ``training_rows``: of
  rows to learn from, with labels and weights.
- ``kept``: how ``fit`` and its passes speak with a ``Checkpoint``; ``fit_identity``: what tells two
  calls of ``fit`` apart.
- ``state_checks``: checks of fitted attributes, which may come from a file.
"""
