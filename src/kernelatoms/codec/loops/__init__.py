"""Compiled loops of the codec: arrays in, arrays out.

- ``entropy``: matrices of small integers and masks to bytes and back; ``entropy_loops``: its
  contexts, mixing and range coder.
- ``prediction``: rows to integers and back; ``prediction_loops``: its predictors and steps.
- ``text_fields``: the fields of delimited text, and numbers from and to text.
"""
