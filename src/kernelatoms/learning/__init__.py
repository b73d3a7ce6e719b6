"""From codes to a better dictionary.

- ``loop``: code, update, repeat, by passes or by batches; the contracts of updates.
- ``state``: all that a learner needs to continue exactly; where atoms start.
- ``moments``: the sums over rows that MOD needs; they add up over blocks, files and machines.
- ``mod``: the best dictionary from moments, for greedy codes (MOD) and for l1 codes (online
  dictionary learning).
- ``ksvd``: K-SVD, atom by atom; needs all rows in memory.
- ``labels``: labels as additional features of the signals: D-KSVD and LC-KSVD.
- ``fddl``: Fisher discriminative dictionary learning, whose codes are coupled.
- ``procrustes``: the best orthonormal dictionary for thresholded codes; its sums add up.
- ``ksad``: K-SAD, whose codes are coupled by their scatter within and between classes
  (``ksad_scatter``: as matrices, or as numbers like in its paper).
- ``gradients``: steps of explicit atoms along a kernel's gradient; their sums add up too.
- ``kscdl``: these steps as an update.
"""
