"""Files of each kind to blocks and back.

- ``sources``: what the writer asks of a file, and which columns are approximate. ``kinds``: the
  source and the restorer per kind.
- ``arrays``: arrays as blocks; ``array_files``: NumPy files.
- ``parquet_files``: Parquet files. ``arrow_columns``: their columns as bytes, rounding to their
  types, and sizes. ``arrow_messages``: checks of Arrow messages of unknown origin.
- ``csv_source``: text files to blocks; ``csv_survey``: their dialect and columns, found by a first
  pass; ``csv_lines``: blocks to lines; ``csv_columns``: digits of numbers, and texts as bytes.
"""
