"""Missing values: coded by what is observed where the model can, filled where it cannot.

What decides was measured (docs/guide/missing-values.md). Models of standardised columns are as
good or better by what is observed, whatever is missing. Models of unit rows are far better on
signals (up to 34 points on images), and worse where one column is most of a row's length, or
where what they learned from was mostly filled.
"""

from typing import Any

# Of the energy of all rows, what one column may have at most for rows to be signals.
_LARGEST_SHARE = 0.1
# Of the values to learn from, what may be filled.
_MOST_FILLED = 0.3


def settle_missing(pipeline: Any, X: Any) -> str:
    """Replace the step that leaves values missing after learning where they had better be filled.

    Parameters
    ----------
    pipeline : Pipeline
        A model, not yet fitted, whose step "fill" is a ``FillToLearn``.
    X : array of shape (n_rows, n_features)
        Rows to learn from.

    Returns
    -------
    str
        Why missing values of later rows are filled; "" if they stay.
    """
    why = _why_filled(pipeline, X)
    if why:
        from sklearn.impute import SimpleImputer

        fill = SimpleImputer(strategy="median", keep_empty_features=True)
        pipeline.set_params(fill=fill)
    return why


def note_about_training(n_missing: int, why: str) -> str:
    """Return what becomes of missing values, in training rows and later."""
    if not n_missing:
        return ""
    words = "missing value takes its" if n_missing == 1 else "missing values take their"
    later = f"also in later files, since {why}" if why else (
        "later rows are coded by what is observed of them"
    )  # fmt: skip
    return f"{n_missing:,} {words} column's median over the training rows; {later}."


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
    if not stay_missing(fitted):
        return f"{values}: filled with the medians of the training rows."
    empty = ""
    if n_empty:
        empty = f" {n_empty:,} of them hold nothing that the model knows, and are taken as medians."
    return f"{values}: coded by what is observed of {'it' if n_rows == 1 else 'them'}.{empty}"


def stay_missing(fitted: Any) -> bool:
    """Tell whether a model codes rows by what is observed of them."""
    from sklearn.utils import get_tags

    steps = [step for _, step in getattr(fitted, "steps", [("", fitted)])]
    return all(get_tags(step).input_tags.allow_nan for step in steps) and not any(
        type(step).__module__.startswith("sklearn.impute") for step in steps
    )


def _why_filled(pipeline: Any, X: Any) -> str:
    import numpy as np
    from sklearn.utils import get_tags

    for _, step in pipeline.steps[1:]:
        if not get_tags(step).input_tags.allow_nan:
            return f"{type(step).__name__} takes complete rows only"
    if type(pipeline.steps[1][1]).__name__ == "StandardScaler":
        return ""
    if np.isnan(X).mean() > _MOST_FILLED:
        return f"more than {_MOST_FILLED:.0%} of the values to learn from are missing"
    largest = np.nanmax(np.abs(X), initial=0.0)
    energies = np.nansum((X / largest if largest > 0 else X) ** 2, axis=0, dtype=np.float64)
    if X.shape[1] > 1 and energies.max(initial=0) > _LARGEST_SHARE * energies.sum():
        return "single columns are large parts of a row's length"
    return ""
