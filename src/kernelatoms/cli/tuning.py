"""The default model and the sizes for the rows at hand: default rule and ``fit --tune``."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from kernelatoms import PRESETS, default_preset
from kernelatoms.cli.console import note, tell
from kernelatoms.cli.models import names_set, parameters_of
from kernelatoms.cli.scoring import OnStep

# Classes of so few rows are learned from whole where others are drawn from.
_FEW = 100
# Sizes are chosen on so many rows.
_MOST_TUNING_ROWS = 5_000


def default_model(
    n_rows: int, *, images: bool, settings: Sequence[str] = (), tune: bool = False
) -> str:
    """Return the default preset for so many rows, and print it.

    ``settings`` (of ``--set``) and ``tune`` that concern atoms need a model that learns atoms.
    """
    name = default_preset(n_rows, as_images=images)
    of_atoms = parameters_of("lkdl") - parameters_of(name)
    wished = ["--tune"] * tune + [setting for setting in names_set(settings) if setting in of_atoms]
    if name == "kcrc" and wished:
        note(f"The model is lkdl, since {wished[0]} is about atoms (--model chooses others).")
        return "lkdl"
    enough = PRESETS[name].enough_rows
    if images:
        note(f"The model is {name}, the default for images (--model chooses others).")
    elif enough is None:
        note(f"The model is {name}, the default for up to 20,000 rows (--model chooses others).")
    else:
        note(
            f"The model is {name}, the default beyond {enough:,} rows; it learns from {enough:,} "
            f"of {n_rows:,} rows, drawn evenly from all classes (--model {name} learns from all)."
        )
    return name


def drawn_rows(chosen: Any, groups: Any, n_rows: int, seed: int) -> tuple[Any, Any]:
    """Return ``n_rows`` rows of a training set, in the order of the file, and their groups.

    Small classes keep all rows.
    """
    if len(chosen.X) <= n_rows:
        return chosen, groups
    some = spread_over_classes(chosen.y, n_rows, seed)
    part = replace(chosen, X=chosen.X[some], y=chosen.y[some], rows=chosen.rows[some])
    return part, None if groups is None else groups[some]


def spread_over_classes(y: Any, n_rows: int, seed: int) -> Any:
    """Return the numbers of ``n_rows`` rows, ascending: each class by its share.

    Classes of up to ``_FEW`` rows keep all, in addition.
    """
    import numpy as np

    rng = np.random.default_rng(seed)
    _, labels, counts = np.unique(y, return_inverse=True, return_counts=True)
    share = n_rows / len(labels)
    wanted = [min(count, max(round(share * count), _FEW)) for count in counts]
    some = [rng.choice(np.flatnonzero(labels == c), n, replace=False) for c, n in enumerate(wanted)]
    return np.sort(np.concatenate(some))


def tune_sizes(pipeline: Any, X: Any, y: Any, seed: int, on_step: OnStep) -> dict[str, Any]:
    """Choose the numbers of atoms and nonzeros by cross-validation, and set them in the pipeline.

    Returns the sizes tried, the mean scores, and the choice. More than 5,000 rows are sampled.
    """
    import numpy as np

    from kernelatoms import choose_sizes

    if not any(name.split("__")[-1].startswith("n_atoms") for name in pipeline.get_params()):
        raise ValueError(
            "--tune chooses how many atoms and nonzeros a model has; this one has neither. Use "
            "--model lkdl, or another that learns atoms."
        )
    if len(X) > _MOST_TUNING_ROWS:
        labels = np.zeros(len(X)) if y is None else y
        some = spread_over_classes(labels, _MOST_TUNING_ROWS, seed)
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
