"""Compiled loops of the codec: arrays in, arrays out.

- ``entropy``: matrices of small integers and masks to bytes and back; ``integers``: the loop over
  integers; ``range_coder``: the coder, its probabilities, and the loop over masks.
- ``cells``: a value and its prediction to an integer and back. Rows to integers and back, by what
  predicts them: ``rows`` (other rows, or atoms), ``columns`` (least squares per column),
  ``slices`` (symmetric matrices).
- ``text_fields``: the fields of delimited text, and numbers from and to text.
"""
