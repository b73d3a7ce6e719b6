"""Models: how rows are predicted, and coded by that.

- ``codec_model``: a predictor with its settings and arrays, its digest and its bytes.
- ``predictors``: the predictors by name; ``dictionaries``: those with atoms, learned from rows.
  ``quantised``: the arrays that they read and fill.
- ``matrix``: rows to bytes and back under a model.
- ``model_selection``: the model that takes the fewest bytes.
"""
