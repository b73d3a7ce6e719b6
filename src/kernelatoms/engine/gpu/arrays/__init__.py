"""``DeviceArray``, numpy's API on tensors, and what all other folders of this machine build on.

- ``device_array``: the class, on tables of numpy's functions (``ufuncs``, with types, and
  ``functions``); sparse codes.
- ``conversion``: tensors become arrays of the engine, and back. ``streaming``: rows of the host go
  through a device in blocks.
- ``linalg``: products, factors, distances of pairs. ``scale``: norms that fit, signals scaled by
  powers of two (``norm_kernels`` in Triton). ``values``: all values looked at.
- ``work``: blocks of rows, memory of a device, and whether Triton compiles for it.
"""
