"""Numbers to bytes and back, within a bound that holds on every row.

- ``bounds``: what was promised, and whether it holds.
- ``models``: how rows are predicted; as bytes, with a digest to refer to them by.
- ``choosing``: which model takes the fewest bytes; ``learning``: those with atoms.
- ``matrix``: one block of rows to bytes and back, quantised (``quantised``) and predicted
  (``predictors``; by atoms, ``dictionaries``).
- ``exact``: values that come back exactly, arranged to pack well.
- ``blocks``: blocks of rows, approximate numbers and all else, on all threads.
- ``arrays``: arrays as blocks; whole arrays to bytes and back.
- ``measuring``: how far decoded rows are from the original ones.
- ``packing``: whole numbers and zstandard frames behind each other.
- ``usual``: short JSON texts as few bytes; ``stored_models``: models as a file holds them.
- ``header``: what a file says of itself.
- ``format``: the container: signature, blocks, tail.
- ``opened``: a container opened and compared with itself.
- ``budget``: what a file may become, counted by all who decode; ``costs``: how long that takes.
- ``errors``: what every damaged or hostile file ends in.
"""
