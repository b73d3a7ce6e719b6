"""``kernelatoms fit``: learn a model from a file and keep it."""

import time
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from kernelatoms.cli.choosing import CHOICES, PRESETS, SCALES, find_choice, make_model
from kernelatoms.cli.options import Data, Decimal, Encoding, Force, Header, Json, Rows, read_data
from kernelatoms.cli.speaking import (
    FitProgress,
    note,
    print_json,
    progress,
    speaks_plainly,
    tell,
    warnings_as_notes,
)

EXAMPLES = """**Examples**

`kernelatoms fit flowers.csv --label species`

`kernelatoms fit flowers.csv --label species --cv 5 --set n_atoms=10 --set gamma=0.5`

`kernelatoms fit digits.npz --rows X --label y --model lkdl-images --output digits.skops`

`kernelatoms fit digits.npz --rows X --label y --model kcrc-images --set kernel=tangent`

`kernelatoms fit digits.npz --rows X --label y --model lcksvd --set n_atoms=200`

`kernelatoms fit spectra.csv --model KernelKSVD --set kernel=mykernels:Power`

`kernelatoms fit patches.npy --model KSVD --set n_atoms=128 --set n_nonzero_coefs=6`
"""

_MODELS = "; ".join(f"{name}: {choice.what}" for name, choice in PRESETS.items())


def _complete_model(incomplete: str) -> list[str]:
    return [name for name in CHOICES if name.lower().startswith(incomplete.lower())]


@speaks_plainly
def fit(
    data: Data,
    label: Annotated[
        str | None, typer.Option(help="Column (or key, in .npz) that names the class.")
    ] = None,
    model: Annotated[
        str,
        typer.Option(
            help=f"A preset, or any estimator by name ({', '.join(CHOICES)}). {_MODELS}.",
            autocompletion=_complete_model,
        ),
    ] = "lkdl",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the model; repeatable."),
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The model file.")] = Path(
        "model.skops"
    ),
    ignore: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="Leave a column out; repeatable.")
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Learn from a column although it looks like a row number or an identifier; "
            "repeatable.",
        ),
    ] = None,
    rows: Rows = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    header: Header = None,
    scale: Annotated[
        str | None,
        typer.Option(
            help="standard: every column to mean 0, variance 1; unit: every row to norm 1; none. "
            "By default what the preset says.",
            autocompletion=lambda: list(SCALES),
        ),
    ] = None,
    cv: Annotated[
        int, typer.Option(min=0, help="Cross-validate with this many folds; 0: do not.")
    ] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Seeds everything.")] = 0,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Learn a model from a file and keep it.

    Columns of numbers are features; columns of words, row numbers and identifiers are left out,
    and said so. A missing value takes its column's median; a row without a label is not learned
    from.
    """
    choice = find_choice(model)
    _check_label(choice, model, label)
    if cv == 1:
        raise ValueError("--cv needs at least 2 folds (or 0 for no cross-validation), got 1.")

    from kernelatoms.files import (
        ReadOptions,
        check_result_target,
        refuse_to_overwrite,
        training_set,
    )

    refuse_to_overwrite(output, data)
    check_result_target(output, (".skops",), force=force)
    table = read_data(data, ReadOptions(rows, decimal, encoding, header))
    chosen = training_set(
        table, label if choice.needs_label else None, _ignored(label, choice, ignore), keep or []
    )
    for text in chosen.notes:
        note(text)
    pipeline = make_model(choice, scale, settings or [], seed, chosen.image_shape)
    described = {"file": table.path.name, **chosen.describe()}
    _note_missing(described["missing"])
    _check_folds(chosen.y, cv)

    heard: list[str] = []
    report: dict[str, Any] = {}
    with warnings_as_notes(heard), progress() as on_step:
        on_step(0, 0, "loading")
        start = time.perf_counter()
        learner = pipeline[-1]
        if hasattr(learner, "set_callbacks"):
            learner.set_callbacks(FitProgress(on_step, "learning"))
        pipeline.fit(chosen.X, chosen.y)
        report["seconds"] = round(time.perf_counter() - start, 3)
        if hasattr(learner, "set_callbacks"):
            learner.set_callbacks()
        report |= _what_was_reached(pipeline, chosen.X, chosen.y)
        if cv:
            # Folds are smaller than the whole: what is clipped there is nobody's concern.
            warnings.simplefilter("ignore")
            fresh = make_model(choice, scale, settings or [], seed, chosen.image_shape)
            report["cross_validation"] = _cross_validate(fresh, chosen, cv, seed, on_step)
    report["warnings"] = heard
    from kernelatoms.files import ModelRecord, save_model

    record = ModelRecord(
        name=model, columns=chosen.columns, label=label if choice.needs_label else None,
        left_out=chosen.left_out, image_shape=chosen.image_shape, data=described, fit=report,
    )  # fmt: skip
    save_model(pipeline, output, record)
    if as_json:
        print_json(
            {"model": str(output), "name": model, "columns": chosen.columns,
             "left_out": chosen.left_out, "data": described, "fit": report}
        )  # fmt: skip
    else:
        _tell(record, pipeline, output)


def _check_label(choice: Any, model: str, label: str | None) -> None:
    if choice.needs_label and label is None:
        raise ValueError(
            f"--label: the model {model!r} classifies, so it needs the name of the column that "
            "holds the class. To learn a dictionary without classes, use --model KSVD."
        )


def _ignored(label: str | None, choice: Any, ignore: list[str] | None) -> list[str]:
    """Return the columns to leave out; a learner without classes does not learn from a label."""
    return [*(ignore or []), *([label] if label is not None and not choice.needs_label else [])]


def _note_missing(n_missing: int) -> None:
    if n_missing:
        words = "missing value takes its" if n_missing == 1 else "missing values take their"
        note(f"{n_missing:,} {words} column's median over the training rows.")


def _check_folds(y: Any, cv: int) -> None:
    """Refuse folds that some class cannot fill, before anything is fitted."""
    if not cv:
        return
    if y is None:
        raise ValueError("--cv scores classifiers; this model has no label to predict.")
    import numpy as np

    classes, counts = np.unique(y, return_counts=True)
    if counts.min() < cv:
        raise ValueError(
            f"--cv {cv} needs at least {cv} rows of every class, but "
            f"{str(classes[counts.argmin()])!r} has {counts.min()}."
        )


def _what_was_reached(pipeline: Any, X: Any, y: Any) -> dict[str, Any]:
    """Return passes and the share of energy that the codes keep, for models that have them."""
    learner = pipeline[-1]
    if hasattr(learner, "codes"):  # over its training rows
        return _what_was_kept(learner)
    dictionaries = getattr(learner, "dictionaries_", [learner])
    if not hasattr(dictionaries[0], "objective_"):
        return {
            "n_components": int(learner.n_components_),
            "n_landmarks": int(learner.n_landmarks_),
        }
    signals = pipeline[:-1].transform(X)
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


def _what_was_kept(learner: Any) -> dict[str, Any]:
    """Return what a model that keeps its training rows settled by them."""
    names = ("mu_", "gamma_", "n_neighbors_", "n_nonzero_coefs_")
    settled = {name.rstrip("_"): getattr(learner, name, None) for name in names}
    return {
        "rows_kept": len(learner.labels_),
        **{name: value for name, value in settled.items() if value is not None},
        "classes": [str(name) for name in learner.classes_],
    }


def _energy_kept(learner: Any, signals: Any) -> tuple[float, float]:
    """Return how much of the signals' energy their codes keep, as ``transform`` gives them; all.

    ``objective_`` would say what learning reached, with codes that nobody gets to see.
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


def _cross_validate(pipeline: Any, chosen: Any, cv: int, seed: int, on_step: Any) -> dict[str, Any]:
    import numpy as np
    from sklearn.base import clone
    from sklearn.model_selection import StratifiedKFold

    folds = StratifiedKFold(cv, shuffle=True, random_state=seed)
    scores = []
    for done, (train, test) in enumerate(folds.split(chosen.X, chosen.y)):
        on_step(done, cv, f"fold {done + 1} of {cv}")
        fitted = clone(pipeline).fit(chosen.X[train], chosen.y[train])
        scores.append(float(fitted.score(chosen.X[test], chosen.y[test])))
    _, counts = np.unique(chosen.y, return_counts=True)
    return {
        "folds": scores,
        "mean": float(np.mean(scores)),
        "standard_error": float(np.std(scores, ddof=1) / np.sqrt(cv)),
        "most_frequent_class": float(counts.max() / counts.sum()),
    }


def _tell(record: Any, pipeline: Any, output: Path) -> None:
    data, report = record.data, record.fit
    classes = report.get("classes", [])
    sizes = f"{data['rows']:,} rows, {data['features']:,} features"
    sizes += f", {len(classes)} classes" if classes else ""
    tell(f"{record.name} on {data['file']}: {sizes}; fitted in {report['seconds']:.2f} s.")
    if report.get("energy_kept") is not None:
        tell(
            f"{report['n_atoms']:,} atoms; their codes keep {report['energy_kept']:.1%} of the "
            f"training rows' energy after {report['passes']} passes."
        )
    if "rows_kept" in report:
        tell(f"{_kept_in_words(report)}.")
    scores = report.get("cross_validation")
    if scores:
        tell(
            f"Accuracy on rows not learned from, {len(scores['folds'])} folds: "
            f"{scores['mean']:.1%} ± {scores['standard_error']:.1%} (standard error); always the "
            f"most frequent class: {scores['most_frequent_class']:.1%}."
        )
    tell(f"Model: {output}")


def _kept_in_words(report: dict[str, Any]) -> str:
    near = report.get("n_neighbors")
    over = "all of them" if near is None else f"the {near:,} nearest"
    weight = f", with a ridge of {report['mu']:.2g}" if "mu" in report else ""
    return f"{report['rows_kept']:,} training rows are kept; rows are coded over {over}{weight}"
