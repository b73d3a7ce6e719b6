"""Classifiers that decide by codes.

- ``class_dictionaries``: ``ClassDictionaryClassifier``, one dictionary per class.
- ``collaborative``: ``CRCClassifier`` and ``SRCClassifier``, training rows are the dictionary.
- ``representation``: what these two share.
- ``training_dictionary``: training rows as a dictionary, prepared once.
- ``neighbor_choice``: which neighbours they code over.
- ``search_seed``: the seed of approximate search, one per fit.
- ``label_dictionaries``: ``DKSVDClassifier`` and ``LCKSVDClassifier``, K-SVD with labels.
- ``fddl``: ``FDDLClassifier``.
- ``supervised``: what these three share.
- ``ksad``: ``KSADClassifier``.
- ``probabilities``: ``predict_proba`` of every classifier.
- ``lkdl``: ``make_lkdl``, any linear learner under a kernel.
"""
