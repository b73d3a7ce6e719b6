"""From codes to a better dictionary.

- ``loop``: code, update, repeat, by passes or by batches; the contracts of updates.
- ``state``: all that a run needs to go on exactly; which atoms nobody uses.
- ``moments``: the sums over rows that MOD needs; they add up over blocks, files and machines.
- ``mod``: the best dictionary from moments, for greedy codes (MOD) and for l1 codes (online
  dictionary learning).
- ``ksvd``: K-SVD, atom by atom; needs the rows at hand.
- ``labels``: labels as more rows of the signals: D-KSVD and LC-KSVD.
- ``fddl``: Fisher discriminative dictionary learning, whose codes are coupled.
- ``procrustes``: the best orthonormal dictionary for thresholded codes; its sums add up.
- ``ksad``: K-SAD, whose codes are coupled by their scatter within and between classes
  (``ksad_scatter``: matrices, or numbers as in its paper).
- ``gradients``: explicit atoms under a kernel, moved downhill; its sums add up too.
- ``kscdl``: the same as an update.
- ``dead_atoms``: where atoms start, and what replaces those that nobody uses.
"""
