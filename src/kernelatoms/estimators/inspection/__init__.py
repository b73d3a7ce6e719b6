"""Look into fitted models.

- ``atom_numbers``: ``atom_numbers``: coherence, energy and class purity of atoms.
- ``atom_preimages``: ``atom_preimages``: atoms of any learner as rows.
- ``explanation``: ``Explanation``, why a row was given its class; ``explain`` for pipelines.
- ``pipelines``: the steps before the dictionaries, and the dictionaries.
- ``sizes``: ``choose_sizes``, numbers of atoms and nonzeros by cross-validation.
"""
