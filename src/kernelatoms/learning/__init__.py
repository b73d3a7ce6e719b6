"""From codes to a better dictionary.

- ``loop``: code, update, repeat, by passes or by batches.
- ``runs``: learning as generators that ask for what they wait for, and who answers; the contracts
  of updates. ``pass_sums``: what a pass tells of coded rows, block by block.
- ``state``: all that a learner needs to continue exactly; where atoms start.
- ``state_arrays``: states as plain values and arrays, for files.
- ``moments``: sums over rows, which add up over blocks, files and machines; the base of updates
  that need no more than them.
- ``missing``: rows with missing values filled for sums, and how far a step from these goes.
- ``weights``: sums over rows that count differently.
- ``mod``: the best dictionary from moments, for greedy codes (MOD), for l1 codes (online dictionary
  learning), and orthonormal for thresholded codes (Procrustes).
- ``ksvd``: K-SVD, atom by atom, with all rows in memory, and from sums over rows; with labels:
  D-KSVD and LC-KSVD.
- ``fddl``: Fisher discriminative dictionary learning, whose codes are coupled.
- ``ksad``: K-SAD, whose codes are coupled by their scatter within and between classes.
- ``gradients``: KSCDL's steps of explicit atoms along a kernel's gradient; their sums add up too.
- ``descent``: the same with one reading of the rows per pass.
"""
