"""Numbers to bytes and back, within a bound that holds on every row.

- ``bounds``: what was promised, and whether it holds.
- ``models``: how rows are predicted; as bytes, with a digest to refer to them by.
- ``matrix``: one block of rows to bytes and back.
- ``errors``: what every damaged or hostile file ends in.
"""
