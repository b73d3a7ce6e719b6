"""Model files: a fitted model and the record of how it was made.

- ``model_file``: ``save_model`` and ``load_model``; ``record``: ``ModelRecord``.
- ``archive``: the zip archive and the description of the objects in it, read within bounds.
- ``soundness``: whether the attributes of a model agree; for scikit-learn's estimators by the
  rules of ``sklearn_types``, built from ``sklearn_rules``, ``sklearn_encoders`` and
  ``sklearn_containers``.
"""
