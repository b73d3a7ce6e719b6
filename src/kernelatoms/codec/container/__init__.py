"""The parts of a compressed file.

- ``format``: signature, blocks, tail. ``header``: what a file says about itself.
- ``packing``: variable-length integers and zstandard frames. ``json_dictionary``: short JSON texts.
- ``exact``: values that come back exactly, arranged so that they compress well.
"""
