"""Tensors with numpy's API, and what all other folders of this machine build on.

- ``device_array``: ``DeviceArray``; numpy's API on tensors is in ``ufuncs``, ``functions`` and
  ``dtypes``. ``csr``: sparse codes.
- ``conversion``: users' tensors to arrays and back. ``streaming``: host rows through a device.
- ``products``, ``linalg``, ``scale`` (``norm_kernels`` in Triton): matrix products, linear algebra,
  squared norms.
- ``work``: blocks of rows, memory of a device, and whether Triton compiles for it.
"""
