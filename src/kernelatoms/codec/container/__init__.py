"""The compressed file.

- ``format``: signature, blocks, tail. ``header``: what a file says about itself.
- ``packing``: varints and zstandard frames. ``json_dictionary``: short JSON texts.
- ``reader``: an open compressed file, checked for consistency.
"""
