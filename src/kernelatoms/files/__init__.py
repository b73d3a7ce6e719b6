"""What enters and leaves as a file.

- ``tables``: rows, labels and column names from .csv, .parquet, .npy and .npz files.
- ``features``: which columns a model learns from, and the same columns of other files.
- ``identifiers``: columns that number or name the rows, which no model should learn from.
- ``models``: fitted models with the record of how they came about.
- ``results``: predictions and codes to files.
- ``writing``: files that are whole or not there at all.
"""
