"""Tables from files, and the features and labels in them.

- ``table``: ``Table``, ``ReadOptions`` and ``read_table``.
- ``csv_tables``: tables of text; ``first_lines``: their delimiters and column names;
  ``text_numbers``: decimal commas and thousands separators; ``json_tables``: one JSON object per
  line; ``arrow_tables``: Parquet and Arrow files; ``arrays``: NumPy files, also sparse matrices.
- ``large``: tables larger than memory, of which ``parts`` and ``text_parts`` read some rows at a
  time; ``survey``: what is found in a first pass over them; ``large_rows``: their rows as a source;
  ``on_workers``: the same rows, read by the workers of a Dask cluster.
- ``typed_sizes``: the memory that Parquet and Arrow files need, by their headers.
- ``features``: the columns that a model learns from, and marks of its rows; ``matching``: the same
  columns of later files.
- ``column_kinds``: what a column holds, and how words and dates (``dates``) become numbers;
  ``roles``: the column of classes, and columns that number or name the rows.
"""
