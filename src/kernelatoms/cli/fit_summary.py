"""What a fit reached: passes, the share of energy that codes keep, training rows kept."""

from typing import Any

from kernelatoms.cli.console import note


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
    learner = pipeline[-1]
    if hasattr(learner, "codes"):  # over its training rows
        return _what_was_kept(learner)
    dictionaries = getattr(learner, "dictionaries_", [learner])
    if not hasattr(dictionaries[0], "objective_"):
        names = ("n_components", "n_landmarks")
        return {name: int(getattr(learner, f"{name}_")) for name in names}
    signals = _as_learned_from(pipeline, X)
    classes = getattr(learner, "classes_", None)
    owned = [signals]  # one dictionary is for all rows, also if it was learned with their labels
    if hasattr(learner, "dictionaries_"):
        owned = [signals[y == name] for name in learner.classes_]
    shares = [_energy_kept(*pair) for pair in zip(dictionaries, owned, strict=True)]
    energy = sum(whole for _, whole in shares)
    return {
        "passes": max(d.n_iter_ for d in dictionaries),
        "n_atoms": sum(d.n_atoms_ for d in dictionaries),
        "energy_kept": sum(kept for kept, _ in shares) / energy if energy > 0 else None,
        "classes": [] if classes is None else [str(name) for name in classes],
    }


def _as_learned_from(pipeline: Any, X: Any) -> Any:
    """Return training rows as the last step learned from them."""
    from sklearn.base import clone

    signals = clone(pipeline[0]).fit_transform(X)
    return pipeline[1:-1].transform(signals) if len(pipeline) > 2 else signals


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
    """Return the energy of the signals that their codes from ``transform`` keep, and all energy.

    ``objective_`` is about the codes of the last pass instead.
    """
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
