"""What is said of missing values: models fill them from the nearest training rows.

That was measured to be better than medians, and than coding by what is observed, nearly everywhere
(docs/guide/missing-values.md): for models that take gaps as for those that do not. Models from
Python may do otherwise.
"""

from typing import Any


def note_about_training(n_missing: int, pipeline: Any, n_rows: int) -> str:
    """Return what becomes of missing values, in training rows and later; "" if there are none.

    Parameters
    ----------
    n_missing : int
        How many values are missing in the rows to learn from.
    pipeline : Pipeline
        A model, not yet fitted, whose step "fill" is a ``NearestImputer``.
    n_rows : int
        How many rows it learns from.

    Returns
    -------
    str
    """
    if not n_missing:
        return ""
    words = "missing value is" if n_missing == 1 else "missing values are"
    nearest = min(pipeline["fill"].n_neighbors, n_rows)
    return f"{n_missing:,} {words} filled from the {nearest} nearest rows; so are later ones."


def note_about_rows(fitted: Any, X: Any) -> str:
    """Return what becomes of missing values in rows to be coded; "" if there are none."""
    import numpy as np

    gone = np.isnan(X)
    n_missing = int(np.count_nonzero(gone))
    if not n_missing:
        return ""
    n_rows = int(np.count_nonzero(gone.any(axis=1)))
    n_empty = int(np.count_nonzero(gone.all(axis=1)))
    values = f"{n_missing:,} missing value{'s' * (n_missing != 1)} in {n_rows:,} of {len(X):,} rows"
    how = _how_filled(fitted)
    if not how:
        how = f"coded by what is observed of {'it' if n_rows == 1 else 'them'}"
    empty = ""
    if n_empty:
        empty = (
            f" {n_empty:,} of these rows {'holds' if n_empty == 1 else 'hold'} nothing that the "
            f"model knows, and {'is' if n_empty == 1 else 'are'} taken as medians."
        )
    return f"{values}: {how}.{empty}"


def _how_filled(fitted: Any) -> str:
    """Return how a model fills missing values; "" if it leaves them."""
    from sklearn.utils import get_tags

    from kernelatoms import NearestImputer

    steps = [step for _, step in getattr(fitted, "steps", [("", fitted)])]
    for step in steps:
        if isinstance(step, NearestImputer):
            nearest = min(step.n_neighbors, len(step.rows_))
            return f"filled from the {nearest} nearest training rows"
        if type(step).__module__.startswith("sklearn.impute"):
            return "filled by what the training rows have"
    if all(get_tags(step).input_tags.allow_nan for step in steps):
        return ""
    return "filled by what the training rows have"
