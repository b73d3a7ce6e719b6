"""Where the work is done: tensors, and numpy rows on a device.

- ``tensors``: methods take and return tensors.
- ``to_device``: ``to_device``, a model or an array on another device.
- ``use_device``: ``use_device``, the device for numpy rows.
- ``streaming``: numpy rows through that device, block by block.
- ``model_arrays``: the arrays that a model holds.
- ``brought``: arrays of models that are on the device already.
"""
