"""Where the work is done: on the CPU, or on a device of torch.

- ``border``: the functions by which methods take rows of any device: ``by_rows``, ``at_once`` and
  ``learn``; ``on_cpu`` for what works on the CPU alone.
- ``conversion``: users' arrays as the engine's and back; ``to_device``, whole models.
- ``use_device``: ``use_device``, the device for numpy rows.
- ``source_columns``: the columns of a source of rows, and their names.
- ``streaming``: numpy rows through that device, in blocks.
"""
