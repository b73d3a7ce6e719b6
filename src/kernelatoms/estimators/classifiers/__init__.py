"""Classifiers that decide by codes.

- ``base``: what all share: answers, explanations, probabilities and their calibration.
- ``class_dictionaries``: ``ClassDictionaryClassifier``, one dictionary per class;
  ``class_learners``: their learners.
- ``collaborative``: ``CRCClassifier``; ``sparse_representation``: ``SRCClassifier``;
  ``representation``: what these two share.
- ``training_dictionary``: training rows as a dictionary; ``row_coding``: signals coded over it;
  ``neighbor_parameters``: over which neighbours.
- ``dksvd``: ``DKSVDClassifier`` and ``LCKSVDClassifier``.
- ``fddl``: ``FDDLClassifier``; ``ksad``: ``KSADClassifier`` (``ksad_state``: its computations).
- ``supervised``: what the classifiers with one dictionary share, and those by K-SVD among them.
- ``lkdl``: ``make_lkdl``, any linear learner under a kernel.
"""
