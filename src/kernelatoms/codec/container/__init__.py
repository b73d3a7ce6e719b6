"""The parts of a compressed file.

- ``format``: signature, blocks, tail. ``header``: what a file says about itself.
- ``packing``: bytes without loss: integers, frames, JSON texts, exact values.
"""
