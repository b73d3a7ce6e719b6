"""Files of each kind to blocks and back.

- ``sources``: what the writer asks of a file. ``kinds``: the source and the restorer per kind.
- ``arrays``: arrays as blocks; ``array_files``: NumPy files.
- ``parquet_source``: Parquet files to blocks; ``parquet_rows``: blocks to Parquet files.
  ``arrow_columns``: exact columns as bytes. ``arrow_messages``: checks of Arrow messages of unknown
  origin. ``column_sizes``: what a column becomes when it is written.
- ``csv_source``: text files to blocks; ``csv_survey``: their columns, found by a first pass;
  ``csv_lines``: blocks to lines. ``csv_layout``: what all blocks share. ``csv_dialect``: delimiter,
  line ends, decimal mark and names. ``csv_numbers``: how many digits numbers are written with.
  ``text_columns``: columns of text as bytes.
- ``column_choice``: which columns are approximate.
"""
