"""From codes to a better dictionary.

- ``loop``: code, update, repeat, by passes or by batches; the contracts of updates.
- ``state``: all that a learner needs to continue exactly; where atoms start.
- ``moments``: the sums over rows that MOD needs; they add up over blocks, files and machines.
- ``mod``: the best dictionary from moments, for greedy codes (MOD) and for l1 codes (online
  dictionary learning).
- ``ksvd``: K-SVD, atom by atom, with all rows in memory; with labels: D-KSVD and LC-KSVD.
- ``fddl``: Fisher discriminative dictionary learning, whose codes are coupled.
- ``procrustes``: the best orthonormal dictionary for thresholded codes; its sums add up.
- ``ksad``: K-SAD, whose codes are coupled by their scatter (``ksad_scatter``) within and between
  classes.
- ``gradients``: KSCDL's steps of explicit atoms along a kernel's gradient; their sums add up too.
"""
