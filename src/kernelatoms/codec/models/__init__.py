"""How rows are predicted.

- ``codec_model``: a predictor with its settings and arrays, and its digest.
- ``predictors``: the predictors by name; ``dictionaries``: those with atoms.
- ``learning``: dictionaries learned from rows.
- ``model_selection``: the model that takes the fewest bytes.
- ``stored_models``: models as a file stores them.
"""
