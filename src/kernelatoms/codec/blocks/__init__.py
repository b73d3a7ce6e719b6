"""Blocks of rows to bytes and back.

- ``block``: approximate numbers and exact bytes of a block, checked against the bound.
- ``matrix``: approximate numbers; ``quantised``: the arrays that predictors read and fill.
- ``exact``: values that come back exactly, arranged so that they compress well.
"""
