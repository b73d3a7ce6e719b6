"""What commands say of columns, of missing values and of what a fit reached.

Models fill missing values from the nearest training rows, which was measured to be better than
medians and than coding by the observed values nearly everywhere (docs/guide/missing-values.md).
Models fitted in Python may do otherwise.
"""

from collections.abc import Sequence
from typing import Any

from kernelatoms.cli.console import note

# Names of a line, lines of reasons and values of a category, before "and so many more".
_MOST_NAMES, _MOST_REASONS, _MOST_VALUES = 10, 8, 20


def lines_of_columns(record: Any, model: Any) -> list[str]:
    """Return how a training file's columns are used, one line per group; ``model`` has all."""
    see = f"see 'kernelatoms info {model}'"
    if record.columns is None:
        lines = [f"numbers: {record.data.get('features', 0):,} columns, by their places"]
    else:
        numbers = [name for name in record.sources if name not in record.encoded]
        lines = [_line("numbers", numbers, see), *_encoded_lines(record, see)]
    label = [f"label: {record.label}"] if record.label is not None else []
    return [*label, *filter(None, lines), *_left_out_lines(record.left_out, see)]


def _encoded_lines(record: Any, see: str) -> list[str]:
    shown: dict[str, list[str]] = {"yes/no": [], "category": [], "date": []}
    for name, words in record.uses().items():
        if name in record.encoded:
            how = record.encoded[name]
            detail = words.partition(": ")[2] or words
            if how["kind"] == "category" and len(how["values"]) > _MOST_VALUES:
                more = len(how["values"]) - _MOST_VALUES
                detail = f"{', '.join(how['values'][:_MOST_VALUES])} and {more:,} more: {see}"
            shown[how["kind"]].append(f"{name} ({detail})")
    called = {"yes/no": "yes/no", "category": "categories", "date": "dates"}
    return [_line(called[kind], names, see) for kind, names in shown.items()]


def _left_out_lines(left_out: dict[str, str], see: str) -> list[str]:
    names_of: dict[str, list[str]] = {}
    for name, why in left_out.items():
        names_of.setdefault(why, []).append(name)
    reasons = list(names_of.items())
    lines = [_line("left out", names, see, f" ({why})") for why, names in reasons[:_MOST_REASONS]]
    hidden = sum(len(names) for _, names in reasons[_MOST_REASONS:])
    return lines + ([f"left out: {hidden:,} more columns: {see}"] if hidden else [])


def _line(what: str, names: Sequence[str], see: str, why: str = "") -> str:
    if not names:
        return ""
    shown = [repr(name) if "," in name and not name.endswith(")") else name for name in names]
    more = len(names) - _MOST_NAMES
    cut = f" and {more:,} more: {see}" if more > 0 else ""
    count = f" ({len(names):,})" if len(names) > 1 and not why else ""
    return f"{what}{count}: {', '.join(shown[:_MOST_NAMES])}{cut}{why}"


def note_about_training(n_missing: int, pipeline: Any, n_rows: int) -> str:
    """Return what happens to missing values of training and later rows; "" if there are none."""
    if not n_missing:
        return ""
    words = "missing value is" if n_missing == 1 else "missing values are"
    nearest = min(pipeline["fill"].n_neighbors, n_rows)
    return f"{n_missing:,} {words} filled from the {nearest} nearest rows; so are later ones."


def note_about_rows(fitted: Any, X: Any) -> str:
    """Return what happens to missing values in rows to be coded; "" if there are none."""
    missing = Missing()
    missing.count(X)
    return missing.note(fitted)


class Missing:
    """Counts the missing values of rows to be coded, over parts of a table."""

    def __init__(self) -> None:
        self.n_values = self.n_holed = self.n_empty = self.n_rows = 0

    def count(self, X: Any) -> None:
        """Count those of some rows."""
        import numpy as np

        gone = np.isnan(X)
        self.n_values += int(gone.sum())
        self.n_holed += int(gone.any(axis=1).sum())
        self.n_empty += int(gone.all(axis=1).sum())
        self.n_rows += len(X)

    def note(self, fitted: Any) -> str:
        """Return what happens to them; "" if there are none."""
        n_missing, n_rows, n_empty = self.n_values, self.n_holed, self.n_empty
        if not n_missing:
            return ""
        values = f"{n_missing:,} missing value{'s' * (n_missing != 1)} in {n_rows:,} of "
        values += f"{self.n_rows:,} rows"
        them = "it" if n_rows == 1 else "them"
        how = _how_filled(fitted) or f"coded by what is observed of {them}"
        if not n_empty:
            return f"{values}: {how}."
        hold, are = ("holds", "is") if n_empty == 1 else ("hold", "are")
        return (
            f"{values}: {how}. {n_empty:,} of these rows {hold} nothing that the model knows, and "
            f"{are} taken as medians."
        )


def _how_filled(fitted: Any) -> str:
    """Return how a model fills missing values; "" if it does not."""
    from sklearn.utils import get_tags

    from kernelatoms import NearestImputer

    steps = [step for _, step in getattr(fitted, "steps", [("", fitted)])]
    for step in steps:
        if isinstance(step, NearestImputer):
            nearest = min(step.n_neighbors, len(step.rows_))
            return f"filled from the {nearest} nearest training rows"
        if type(step).__module__.startswith("sklearn.impute"):
            return "filled by what the training rows have"
    allowed = all(get_tags(step).input_tags.allow_nan for step in steps)
    return "" if allowed else "filled by what the training rows have"


def note_copies(pipeline: Any, y: Any) -> None:
    """Note the classes with as many atoms as rows: their dictionaries can be the rows."""
    import numpy as np

    from kernelatoms.files.tables.table import first_few

    learner = pipeline[-1]
    dictionaries = getattr(learner, "dictionaries_", None)
    if y is None or dictionaries is None:
        return
    classes, counts = np.unique(y, return_counts=True)
    full = [
        f"{name!s} ({count:,})"
        for name, count, learned in zip(classes, counts, dictionaries, strict=True)
        if learned.n_atoms_ >= count
    ]
    if full:
        note(
            f"No fewer atoms than rows in {len(full):,} of {len(classes):,} classes: "
            f"{first_few(full, 8)}. Their dictionaries can be their rows themselves; choose fewer "
            "atoms (--set n_atoms=...), or bring more rows."
        )


def what_was_reached(pipeline: Any, X: Any, y: Any) -> dict[str, Any]:
    """Return passes and the share of energy that the codes keep, or the model's sizes."""
    from sklearn.base import clone

    learner = pipeline[-1]
    if hasattr(learner, "codes"):  # over its training rows
        return _what_was_kept(learner)
    dictionaries = getattr(learner, "dictionaries_", [learner])
    if not hasattr(dictionaries[0], "objective_"):
        names = ("n_components", "n_landmarks")
        return {name: int(getattr(learner, f"{name}_")) for name in names}
    signals = clone(pipeline[0]).fit_transform(X)  # as the last step learned from them
    signals = pipeline[1:-1].transform(signals) if len(pipeline) > 2 else signals
    classes = getattr(learner, "classes_", [])
    owned = [signals]  # one dictionary is for all rows, also if it was learned with their labels
    if hasattr(learner, "dictionaries_"):
        owned = [signals[y == name] for name in classes]
    shares = [_energy_kept(*pair) for pair in zip(dictionaries, owned, strict=True)]
    energy = sum(whole for _, whole in shares)
    return {
        "passes": max(d.n_iter_ for d in dictionaries),
        "n_atoms": sum(d.n_atoms_ for d in dictionaries),
        "energy_kept": sum(kept for kept, _ in shares) / energy if energy > 0 else None,
        "classes": [str(name) for name in classes],
    }


def _what_was_kept(learner: Any) -> dict[str, Any]:
    """Return what a model that keeps its training rows chose from them."""
    names = ("mu_", "gamma_", "n_neighbors_", "n_nonzero_coefs_")
    chosen = {name.rstrip("_"): getattr(learner, name, None) for name in names}
    return {
        "rows_kept": len(learner.labels_),
        **{name: value for name, value in chosen.items() if value is not None},
        "classes": [str(name) for name in learner.classes_],
    }


def _energy_kept(learner: Any, signals: Any) -> tuple[float, float]:
    """Return the energy of signals that codes from ``transform`` keep, and all their energy."""
    import numpy as np

    if hasattr(learner, "kernel"):
        energy = float(learner._kernel().diag(signals).sum())
    else:
        energy = float(np.vdot(signals, signals))
    if hasattr(learner, "atom_classes_"):  # its score is an accuracy
        from kernelatoms import residual_norms

        left = residual_norms(signals, learner, learner.transform(signals))
        return energy - float(np.vdot(left, left)), energy
    return float(learner.score(signals)) * energy, energy


def kept_in_words(report: dict[str, Any]) -> str:
    """Say over which training rows others are coded."""
    near = report.get("n_neighbors")
    over = "all of them" if near is None else f"the {near:,} nearest"
    weight = f", with a ridge of {report['mu']:.2g}" if "mu" in report else ""
    return f"{report['rows_kept']:,} training rows are kept; rows are coded over {over}{weight}"
