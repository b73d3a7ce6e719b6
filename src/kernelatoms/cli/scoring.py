"""The default model of ``fit``, its sizes (``--tune``) and its scores (``--cv``).

Scores are those on rows that a model did not learn from, compared with other models.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kernelatoms import PRESETS, default_preset
from kernelatoms.cli.console import note, tell
from kernelatoms.cli.models import names_set, parameters_of

OnStep = Callable[[int, int, str], None]

# A support vector machine takes the square of the rows; of more, so many are drawn for it.
_MOST_SVM_ROWS = 5_000
# Means of folds that differ by more of their standard errors than this differ clearly.
_CLEARLY = 2.0
_MOST_RECALLS = 12
# Classes of so few rows are learned from whole where others are drawn from.
_FEW = 100
# Sizes are chosen on so many rows.
_MOST_TUNING_ROWS = 5_000


def default_model(
    n_rows: int, *, images: bool, settings: Sequence[str] = (), tune: bool = False
) -> str:
    """Print and return the default preset: one that learns atoms if settings or tune ask for it."""
    name = default_preset(n_rows, as_images=images)
    of_atoms = parameters_of("lkdl") - parameters_of(name)
    wished = ["--tune"] * tune + [setting for setting in names_set(settings) if setting in of_atoms]
    if name == "kcrc" and wished:
        note(f"The model is lkdl, since {wished[0]} is about atoms (--model chooses others).")
        return "lkdl"
    enough = PRESETS[name].enough_rows
    if images or enough is None:
        where = "images" if images else "up to 20,000 rows"
        note(f"The model is {name}, the default for {where} (--model chooses others).")
    else:
        note(
            f"The model is {name}, the default beyond {enough:,} rows; it learns from {enough:,} "
            f"of {n_rows:,} rows, drawn evenly from all classes (--model {name} learns from all)."
        )
    return name


def drawn_rows(chosen: Any, groups: Any, n_rows: int, seed: int) -> tuple[Any, Any]:
    """Return ``n_rows`` training rows in file order, small classes whole, and their groups."""
    if len(chosen.X) <= n_rows:
        return chosen, groups
    some = spread_over_classes(chosen.y, n_rows, seed)
    part = replace(chosen, X=chosen.X[some], y=chosen.y[some], rows=chosen.rows[some])
    return part, None if groups is None else groups[some]


def spread_over_classes(y: Any, n_rows: int, seed: int) -> Any:
    """Return ``n_rows`` row numbers, ascending: each class by its share, small ones whole."""
    import numpy as np

    rng = np.random.default_rng(seed)
    _, labels, counts = np.unique(y, return_inverse=True, return_counts=True)
    share = n_rows / len(labels)
    wanted = [min(count, max(round(share * count), _FEW)) for count in counts]
    some = [rng.choice(np.flatnonzero(labels == c), n, replace=False) for c, n in enumerate(wanted)]
    return np.sort(np.concatenate(some))


def tune_sizes(pipeline: Any, X: Any, y: Any, seed: int, on_step: OnStep) -> dict[str, Any]:
    """Choose the numbers of atoms and nonzeros by cross-validation, set them, return the scores."""
    import numpy as np

    from kernelatoms import choose_sizes

    if not any(name.split("__")[-1].startswith("n_atoms") for name in pipeline.get_params()):
        raise ValueError(
            "--tune chooses how many atoms and nonzeros a model has; this one has neither. Use "
            "--model lkdl, or another that learns atoms."
        )
    if len(X) > _MOST_TUNING_ROWS:
        some = spread_over_classes(np.zeros(len(X)) if y is None else y, _MOST_TUNING_ROWS, seed)
        X, y = X[some], None if y is None else y[some]
    sizes = choose_sizes(pipeline, X, y, random_state=seed, on_step=on_step)
    pipeline.set_params(**sizes.parameters)
    return {
        "n_atoms": list(sizes.n_atoms),
        "n_nonzero_coefs": list(sizes.n_nonzero_coefs),
        "scores": sizes.means.tolist(),
        "chosen": {name.split("__")[-1]: value for name, value in sizes.parameters.items()},
        "rows": len(X),
    }


def tell_sizes(tuned: dict[str, Any]) -> None:
    """Print the scores of ``tune_sizes`` and the choice."""
    nonzeros = tuned["n_nonzero_coefs"]
    tell(f"Scores on rows not learned from, 3 folds of {tuned['rows']:,} rows:")
    if any(nonzeros):
        tell(f"{'atoms':>8}" + "".join(f"{n:>4} nonzero{'s' if n != 1 else ' '}" for n in nonzeros))
    for n_atoms, scores in zip(tuned["n_atoms"], tuned["scores"], strict=True):
        tell(f"{n_atoms:>8,}" + "".join(f"{score:>13.1%}" for score in scores))
    chosen = ", ".join(f"{name}={value}" for name, value in tuned["chosen"].items())
    tell(f"Chosen, the smallest within a standard error of the best: {chosen}.")


def check_folds(y: Any, cv: int, groups: Any = None) -> None:
    """Refuse folds that some class, or the groups, cannot fill, before anything is fitted."""
    if not cv:
        if groups is not None:
            raise ValueError("--groups keeps rows together in the folds of --cv: give --cv too.")
        return
    if cv == 1:
        raise ValueError("--cv needs at least 2 folds (or 0 for no cross-validation), got 1.")
    if y is None:
        raise ValueError("--cv scores classifiers; this model has no label to predict.")
    import numpy as np

    classes, counts = np.unique(y, return_counts=True)
    if counts.min() < cv:
        raise ValueError(
            f"--cv {cv} needs at least {cv} rows of every class, but "
            f"{str(classes[counts.argmin()])!r} has {counts.min()}."
        )
    if groups is not None and (n_groups := len(np.unique(groups))) < cv:
        raise ValueError(f"--cv {cv} needs at least {cv} groups, but --groups has {n_groups}.")


def read_groups(table: Any, column: str, rows: Any, numbers: Any = None) -> Any:
    """Return the group of every training row, as numbers; ``rows`` are those rows of the file.

    ``numbers`` says which rows of a larger table those of a sample are.
    """
    import numpy as np

    if column not in table.names:
        known = ", ".join(table.names[:12])
        raise ValueError(f"--groups: there is no column {column!r}; the file has {known}.")
    names = table.column(column)
    gone = np.array([name is None or name != name for name in names])  # NaN
    if gone[rows].any():
        first = rows[gone[rows]][0]
        first = first if numbers is None else numbers[first]
        raise ValueError(
            f"--groups {column}: row {first:,} names no group; give it one, or leave the row out."
        )
    return np.unique([str(name) for name in names[rows]], return_inverse=True)[1]


def cross_validate(
    pipeline: Any, X: Any, y: Any, cv: int, seed: int, on_step: OnStep, groups: Any = None
) -> dict[str, Any]:
    """Return the scores of a model and of an RBF support vector machine on the same folds.

    The result holds plain values. Rows of one group are never in different folds.
    """
    import numpy as np
    from sklearn.base import clone

    folds = _folds(X, y, cv, seed, groups)
    predicted = np.empty_like(y)
    scores, balanced, machine = [], [], []
    machine_rows = min(_MOST_SVM_ROWS, max(len(train) for train, _ in folds))
    for done, (train, test) in enumerate(folds):
        on_step(done, cv, f"fold {done + 1} of {cv}")
        predicted[test] = clone(pipeline).fit(X[train], y[train]).predict(X[test])
        right = predicted[test] == y[test]
        scores.append(float(right.mean()))
        balanced.append(float(np.mean(list(_recalls(y[test], right).values()))))
        on_step(done, cv, f"fold {done + 1} of {cv}, the support vector machine")
        machine.append(_machine_score(X, y, train, test, seed))
    _, counts = np.unique(y, return_counts=True)
    return {
        "folds": scores,
        **_mean_and_error(scores),
        "most_frequent_class": float(counts.max() / counts.sum()),
        "balanced_accuracy": _mean_and_error(balanced),
        "recall": {str(name): share for name, share in _recalls(y, predicted == y).items()},
        "svm": {"folds": machine, **_mean_and_error(machine), "rows": int(machine_rows)},
        "grouped": groups is not None,
    }


def _folds(X: Any, y: Any, cv: int, seed: int, groups: Any) -> list[tuple[Any, Any]]:
    import numpy as np
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

    kind = StratifiedKFold if groups is None else StratifiedGroupKFold
    folds = list(kind(cv, shuffle=True, random_state=seed).split(X, y, groups))
    for train, test in folds:
        absent = np.setdiff1d(y, y[train])
        if len(absent) or not len(test):
            what = f"the class {str(absent[0])!r}" if len(absent) else "the rows to judge by"
            raise ValueError(
                f"--groups: with {cv} folds {what} would be in one fold as a whole; use fewer "
                "folds (--cv), or groups that are smaller."
            )
    return folds


def _machine_score(X: Any, y: Any, train: Any, test: Any, seed: int) -> float:
    """Return the accuracy of scikit-learn's ``SVC()`` on standardised columns."""
    from sklearn.model_selection import train_test_split
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    from kernelatoms import NearestImputer

    if len(train) > _MOST_SVM_ROWS:
        train, _ = train_test_split(train, train_size=_MOST_SVM_ROWS, random_state=seed)
    # What is missing is filled for it as it is for models here that take complete rows only.
    machine = make_pipeline(NearestImputer(random_state=seed), StandardScaler(), SVC())
    return float(machine.fit(X[train], y[train]).score(X[test], y[test]))


def _recalls(y: Any, right: Any) -> dict[Any, float]:
    """Return the share of right predictions per class."""
    import numpy as np

    return {name: float(right[y == name].mean()) for name in np.unique(y)}


def _mean_and_error(values: Any) -> dict[str, float]:
    import numpy as np

    return {
        "mean": float(np.mean(values)),
        "standard_error": float(np.std(values, ddof=1) / np.sqrt(len(values))),
    }


def tell_scores(scores: Mapping[str, Any], n_rows: int) -> None:
    """Print what ``cross_validate`` returned, and what follows from it."""
    n_folds, most = len(scores["folds"]), scores["most_frequent_class"]
    whole = " that keep groups together" * bool(scores.get("grouped"))
    tell(
        f"Accuracy on rows not learned from, {n_folds} folds{whole}: {_words(scores)} (standard "
        f"error); always the most frequent class: {most:.1%}."
    )
    balanced = _words(scores["balanced_accuracy"])
    tell(f"Balanced accuracy, the mean recall of the classes: {balanced}.")
    tell(f"Recall by class: {_recalls_in_words(scores['recall'])}.")
    machine = scores["svm"]
    drawn = machine["rows"] < n_rows * (n_folds - 1) // n_folds
    part = f", learned from {machine['rows']:,} rows" * drawn
    tell(f"An RBF support vector machine (scikit-learn's SVC){part}: {_words(machine)}.")
    for text in verdicts(scores):
        tell(text)


def verdicts(scores: Mapping[str, Any]) -> list[str]:
    """Return whether the model is useful, and whether the other one is clearly better."""
    import numpy as np

    said = []
    mean, most, error = scores["mean"], scores["most_frequent_class"], scores["standard_error"]
    if mean < most - _CLEARLY * error:
        said.append("This model is worse than guessing the most frequent class. Do not use it.")
    elif mean <= most + _CLEARLY * error:
        said.append("This model is no better than guessing the most frequent class.")
    lead = _mean_and_error(np.subtract(scores["svm"]["folds"], scores["folds"]))
    if lead["mean"] > max(_CLEARLY * lead["standard_error"], 0.005):
        said.append(
            f"The support vector machine is clearly better here, by {100 * lead['mean']:.1f} "
            "points. Use it, unless you need atoms, codes or explanations."
        )
    return said


def _words(score: Mapping[str, Any]) -> str:
    return f"{score['mean']:.1%} ± {score['standard_error']:.1%}"


def _recalls_in_words(recall: Mapping[str, float]) -> str:
    """Return the recalls, only the lowest if they are too many for a line."""
    few = len(recall) <= _MOST_RECALLS
    names = recall if few else sorted(recall, key=lambda name: recall[name])[:_MOST_RECALLS]
    shown = ", ".join(f"{name} {recall[name]:.1%}" for name in names)
    hidden = f" (the {_MOST_RECALLS} lowest of {len(recall):,}; --json has all)"
    return shown + hidden * (not few)
