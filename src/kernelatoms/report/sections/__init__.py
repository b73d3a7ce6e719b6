"""The sections of a report: what is said about a model.

- ``training``: what was fitted, how learning went, the kernel map.
- ``codes``: what dictionaries are made of, and how rows are coded over them.
- ``atoms``: a contact sheet with the numbers of single atoms.
- ``accuracy``: accuracy, confusions, mistakes, the weight of codes; ``scores``: words and tables.
- ``class_dictionaries``: residuals by class, mistakes under two dictionaries.
- ``decisions``: classifiers with ``predict_proba`` and ``explain``; ``decision_kinds``: by one
  dictionary learned with the labels, by training rows.
"""
