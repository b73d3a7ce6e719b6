"""The sections of a report: what is said about a model.

- ``training``: what was fitted, how learning went, the kernel map.
- ``atoms``: what dictionaries are made of, how rows are coded over them, a contact sheet.
- ``scores``: accuracy, recall, confusions; ``accuracy``: with shares of classes and the weight of
  codes; mistakes.
- ``decision_kinds``: accuracy and mistakes by kind of classifier; ``decisions``: of those with
  ``predict_proba`` and ``explain``.
"""
