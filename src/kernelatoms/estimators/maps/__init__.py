"""Maps of rows: into a feature space, back from it, to norm 1, without missing values.

- ``linearizer``: ``KernelLinearizer`` (virtual samples) and ``nystrom_error``.
- ``map_learner``: estimators that learn in a low-rank map of a kernel.
- ``kernel_choice``: the kernel of an estimator, with the gamma that ``fit`` found.
- ``bandwidth``: the width of a kernel, chosen on held-out rows.
- ``preimage``: ``preimage``, rows for vectors of a feature space.
- ``row_normalizer``: ``RowNormalizer``, rows to norm 1 by their observed entries.
- ``imputers``: ``NearestImputer`` and ``TrainingImputer``, missing values.
"""
