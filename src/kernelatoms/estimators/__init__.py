"""scikit-learn shells: validate, call, store.

- ``linearizer``: ``KernelLinearizer`` (virtual samples) and ``nystrom_error``.
- ``dictionary_coder``: what has atoms and codes rows over them.
- ``dictionary_learner``: what all learners share; ``watching``: callbacks follow their passes.
- ``learners``: ``MOD`` and ``KSVD``.
- ``kernel_learners``: ``KernelMOD`` and ``KernelKSVD``.
- ``kernel_dictionary``: what has atoms in a kernel's feature space.
- ``ksad``: ``KSAD``, orthonormal atoms in a low-rank map of a kernel (``low_rank_map``);
  ``ksad_classifier``: ``KSADClassifier``, the same with labels.
- ``kscdl``: ``KSCDL``, atoms that are rows, moved along the kernel's gradient.
- ``kernel_choice``: the kernel of an estimator, with the gamma that ``fit`` settled.
- ``bandwidth``: the width of a kernel, chosen on held-out rows.
- ``preimages``: ``preimage``, the way back from feature space, by several methods.
- ``decoding``: ``decode``, rows from the codes of whole models.
- ``denoising``: ``denoise_image`` and ``denoise_rows``; ``noise``: ``estimate_sigma``, and images
  as planes of numbers.
- ``encode``: ``sparse_encode``, one function for all pursuits.
- ``coding_arguments``: the problem that its arguments make, and what that may be asked.
- ``sparse_coder``: ``SparseCoder``, the same as a transformer over a given dictionary.
- ``stored_codes``: ``store_codes``, rows as the nonzeros of their codes (A.7 of the FKSC paper).
- ``residuals``: ``residual_norms``, what codes leave of signals.
- ``class_dictionaries``: ``ClassDictionaryClassifier``.
- ``collaborative``: ``CRCClassifier`` and ``SRCClassifier``: training rows are the dictionary;
  ``representation``: what they share; ``neighbor_choice``: which neighbours they code over;
  ``search_seed``: the seed of approximate search, one per fit;
  ``training_dictionary``: how they see rows, prepared once.
- ``label_dictionaries``: ``DKSVDClassifier`` and ``LCKSVDClassifier``, K-SVD with labels;
  ``fddl``: ``FDDLClassifier``; ``supervised``: what they share.
- ``probabilities``: ``predict_proba`` of every classifier, by one rule.
- ``codec``: ``KernelCodec``, arrays to bytes within a bound.
- ``lkdl``: ``make_lkdl``, any linear learner under a kernel.
- ``atom_numbers``: ``atom_numbers``, coherence, energy and class purity of atoms;
  ``atom_preimages``: ``atom_preimages``, atoms of any learner as rows; ``opened``: what both see.
- ``explanation``: ``Explanation``, why a row was given its class; ``explain`` for pipelines.
- ``presets``: ``PRESETS``, ``make_preset``, ``default_preset``: pipelines for kinds of data;
  ``sizes``: ``choose_sizes``, numbers of atoms and nonzeros by cross-validation.
- ``unit_rows``: ``UnitRows``, rows to norm 1 by what is observed of them.
- ``filling``: ``FillFromNearest``, missing values from the nearest rows; ``FillToLearn``, medians
  for missing values in learning only.
- ``naming``: errors of Python itself name public classes only.
- ``unchanged``: a ``fit`` begins with nothing of the last one; one that fails leaves the
  estimator as it was.
- ``tensors``: tensors at the door; ``devices``: ``to_device``; ``model_arrays``: the arrays of
  models; ``elsewhere``: checks of arrays of any machine.
- ``device_choice``: ``use_device``; ``streaming``: numpy rows through the device that is chosen;
  ``brought``: what it holds of models already.
- ``sparse_rows``: rows that come as sparse arrays, dense inside.
- ``checks``: what every argument is checked with, before work starts; ``unused``: arguments that
  others leave without use are refused.
- ``fitted``: what fitted attributes are checked with, which may come from a file.
"""
