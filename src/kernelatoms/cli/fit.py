"""``kernelatoms fit``: learn a model from a file and keep it."""

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from kernelatoms import PRESETS, default_preset
from kernelatoms.cli import cluster, console, scoring, summaries
from kernelatoms.cli import options as opt
from kernelatoms.cli.models import CHOICES, SCALES, find_choice, make_model

EXAMPLES = """**Examples**

`kernelatoms fit flowers.csv --label species`

`kernelatoms fit flowers.csv --label species --cv 5`

`kernelatoms fit visits.csv --label outcome --cv 5 --groups patient`

`kernelatoms fit flowers.csv --label species --model lkdl --set n_atoms=10 --set gamma=0.5`

`kernelatoms fit flowers.csv --label species --model lkdl --tune`

`kernelatoms fit digits.npz --rows X --label y --model lkdl-images --output digits.skops`

`kernelatoms fit digits.npz --rows X --label y --model kcrc-images --set kernel=tangent`

`kernelatoms fit digits.npz --rows X --label y --model lcksvd --set n_atoms=200`

`kernelatoms fit spectra.csv --model KernelKSVD --set kernel=mykernels:Power`

`kernelatoms fit patches.npy --model KSVD --set n_atoms=128 --set n_nonzero_coefs=6`

`kernelatoms fit patches.npy --model MOD --set n_atoms=512 --checkpoint run.ckpt`

`kernelatoms fit 'big/*.parquet' --label y --memory 2GiB`

`kernelatoms fit 'big/*.parquet' --label y --workers 4`
"""

_MODELS = "; ".join(f"{name}: {choice.what}" for name, choice in PRESETS.items())


def _complete_model(incomplete: str) -> list[str]:
    return [name for name in CHOICES if name.lower().startswith(incomplete.lower())]


@console.errors_as_messages
@opt.works_on_device
def fit(
    data: opt.LargeData,
    label: Annotated[
        str | None, typer.Option(help="Column (or key, in .npz) that names the class.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help=f"A preset, or any estimator by name ({', '.join(CHOICES)}). {_MODELS}. By "
            "default kcrc for up to 20,000 rows, lkdl beyond.",
            autocompletion=_complete_model,
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the model; repeatable."),
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The model file.")] = Path(
        "model.skops"
    ),
    drop: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="Leave a column out; repeatable.")
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Learn from a column that would be left out: an identifier, words of many "
            "values, dates; repeatable.",
        ),
    ] = None,
    dates: Annotated[
        bool, typer.Option("--dates", help="Learn from dates, as days since the earliest one.")
    ] = False,
    rows: opt.Rows = None,
    decimal: opt.Decimal = None,
    encoding: opt.Encoding = None,
    header: opt.Header = None,
    max_size: opt.MaxSize = None,
    memory: opt.Memory = None,
    scale: Annotated[
        str | None,
        typer.Option(
            help="standard: every column to mean 0, variance 1; unit: every row to norm 1; range: "
            "every column to [0, 1], then with a column of ones every row to norm 1; none. "
            "By default what the preset says.",
            autocompletion=lambda: list(SCALES),
        ),
    ] = None,
    cv: Annotated[
        int, typer.Option(min=0, help="Cross-validate with this many folds; 0: do not.")
    ] = 0,
    groups: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Keep rows with the same value there in the same fold of --cv; no feature.",
        ),
    ] = None,
    tune: Annotated[
        bool,
        typer.Option(
            "--tune",
            help="Choose the numbers of atoms and nonzeros by cross-validation, and show the "
            "scores.",
        ),
    ] = False,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the state of learning there after every pass; the same command goes on "
            "from it, to the same model.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seeds everything.")] = 0,
    device: opt.Device = None,
    scheduler: cluster.Scheduler = None,
    workers: cluster.Workers = None,
    force: opt.Force = False,
    as_json: opt.Json = False,
) -> None:
    """Learn a model from a file and keep it.

    Numbers are features; words of few values become features of 0 and 1. Row numbers,
    identifiers, dates, words of many values and columns of one value are left out. How each column
    is used is said. A missing value is filled from the 15 nearest rows, by what both rows have; so
    are those of later files. A row without a label is not learned from.
    """
    choice, settings = find_choice(model or default_preset(0)), settings or []
    if choice.needs_label and label is None:
        raise ValueError(
            f"--label: the model {model or default_preset(0)!r} classifies, so it needs the name "
            "of the column that holds the class. To learn a dictionary without classes, use "
            "--model KSVD."
        )
    from kernelatoms.files.models.model_file import save_model
    from kernelatoms.files.tables.features import ROW_MARKS
    from kernelatoms.files.tables.table import ReadOptions
    from kernelatoms.files.writing import check_result_target

    check_result_target(output, (".skops",), data, force=force)
    options = ReadOptions(rows, decimal, encoding, header, max_size)
    on_workers = cluster.are_asked_for(scheduler, workers, device)
    dropped = [*(drop or []), *([groups] if groups else [])]
    if label is not None and not choice.needs_label:  # a learner without classes ignores it
        dropped, label = [*dropped, label], None
    wishes = Wishes(
        model,
        label,
        dropped,
        keep or [],
        dates,
        settings,
        scale,
        groups,
        cv,
        tune,
        checkpoint,
        seed,
    )
    large = opt.open_large(data, options, memory, on_workers=on_workers)
    if large is not None and not large.fits:
        from kernelatoms.cli import fit_parts

        fit_parts.refuse_model(large, wishes)
        with cluster.connected(scheduler, workers):
            pipeline, record, chosen = fit_parts.fit(large, wishes, output)
    else:
        pipeline, record, chosen = _fit(opt.read_data(data, options, large), wishes, output)
    save_model(pipeline, output, record)
    if as_json:
        console.print_json(
            {"model": str(output), "name": record.name, "columns": chosen.columns,
             "uses": record.uses(), "encoded": chosen.encoded, "left_out": chosen.left_out,
             "fit": record.fit, "notes": chosen.notes,
             "data": {name: said for name, said in record.data.items() if name != ROW_MARKS}}
        )  # fmt: skip
    else:
        _tell(record, output)


@dataclass(frozen=True)
class Wishes:
    """What the user asked for."""

    model: str | None
    label: str | None
    drop: Sequence[str]
    keep: Sequence[str]
    dates: bool
    settings: Sequence[str]
    scale: str | None
    groups: str | None
    cv: int
    tune: bool
    checkpoint: Path | None
    seed: int


def _fit(table: Any, wishes: Wishes, output: Path) -> tuple[Any, Any, Any]:
    """Learn from a table in memory; return the model, its record and the training set."""
    from kernelatoms.files.tables.features import ROW_MARKS, training_set

    model, settings, seed = wishes.model, wishes.settings, wishes.seed
    chosen = training_set(table, wishes.label, wishes.drop, wishes.keep, dates=wishes.dates)
    grouped = None
    if wishes.groups is not None:
        grouped = scoring.read_groups(table, wishes.groups, chosen.rows)
        chosen.left_out[wishes.groups] = "it names the groups"
    scoring.check_folds(chosen.y, wishes.cv, grouped)
    enough = len(chosen.X)
    if model is None:
        images = chosen.image_shape is not None
        model = scoring.default_model(enough, images=images, settings=settings, tune=wishes.tune)
        enough = find_choice(model).enough_rows or enough
    n_rows = min(enough, len(chosen.X))
    choice = find_choice(model)
    pipeline = make_model(choice, wishes.scale, settings, seed, chosen.image_shape, n_rows)
    kept = checkpoint_of(wishes, pipeline, model, output)
    described = {"file": table.path.name, **chosen.describe()}
    record = chosen.record(name=model, data=described)
    say_before(chosen, record, output, pipeline)
    drawn, grouped = scoring.drawn_rows(chosen, grouped, enough, seed)
    if drawn is not chosen:
        chosen = drawn
        # Marks are of the rows learned from, all else is of the file.
        described = {**described, ROW_MARKS: drawn.describe()[ROW_MARKS]}
    report = _learn(pipeline, chosen, grouped, kept, cv=wishes.cv, tune=wishes.tune, seed=seed)
    return pipeline, replace(record, data=described, fit=report), chosen


def checkpoint_of(wishes: Wishes, pipeline: Any, model: str, output: Path) -> list[Any]:
    """Return the callback that keeps the state of learning, if one is asked for."""
    path = wishes.checkpoint
    if path is None:
        return []
    if path.resolve() == output.resolve():
        raise ValueError(f"--checkpoint: {path} is to be the model file, too; choose another name.")
    if not hasattr(pipeline[-1], "set_callbacks"):
        raise ValueError(
            f"--checkpoint: the model {model!r} learns without passes, so there is nothing to go "
            "on from; leave --checkpoint out, or choose a model with a dictionary, such as "
            "--model lkdl."
        )
    from kernelatoms import Checkpoint

    return [Checkpoint(path, on_resume=lambda words: console.note(f"{path}: {words}."))]


def _learn(
    pipeline: Any, chosen: Any, groups: Any, kept: list[Any], *, cv: int, tune: bool, seed: int
) -> dict[str, Any]:
    """Fit the pipeline, its sizes tuned before and scores of folds taken after, as asked.

    ``kept`` are callbacks of the fit alone.
    """
    shown: list[str] = []
    report: dict[str, Any] = {}
    with console.warnings_as_notes(shown), console.progress() as on_step:
        on_step(0, 0, "loading")
        if tune:
            report["tuned"] = scoring.tune_sizes(pipeline, chosen.X, chosen.y, seed, on_step)
        start = time.perf_counter()
        learner = pipeline[-1]
        if hasattr(learner, "set_callbacks"):
            learner.set_callbacks(console.FitProgress(on_step, "learning"), *kept)
        pipeline.fit(chosen.X, chosen.y)
        report["seconds"] = round(time.perf_counter() - start, 3)
        if hasattr(learner, "set_callbacks"):
            learner.set_callbacks()
        summaries.note_copies(pipeline, chosen.y)
        report |= summaries.what_was_reached(pipeline, chosen.X, chosen.y)
        if cv:
            # Sizes that are clipped in the smaller folds are no concern of the user's.
            warnings.simplefilter("ignore")
            from sklearn.base import clone

            report["cross_validation"] = scoring.cross_validate(
                clone(pipeline), chosen.X, chosen.y, cv, seed, on_step, groups
            )
    return {**report, "warnings": shown}


def say_before(chosen: Any, record: Any, output: Path, pipeline: Any) -> None:
    """Say what is learned from, before that takes its time."""
    from kernelatoms.files.tables.roles import NAMED, REASONS

    console.say(f"Columns of {record.data['file']}:")
    for line in summaries.lines_of_columns(record, output):
        console.say(f"  {line}")
    numbered = [name for name, why in chosen.left_out.items() if why in REASONS and why != NAMED]
    if numbered:
        console.note(f"--keep {numbered[0]!r} learns from it nevertheless.")
    filled = summaries.note_about_training(record.data["missing"], pipeline, len(chosen.X))
    for text in (*chosen.notes, filled):
        if text:
            console.note(text)


def _tell(record: Any, output: Path) -> None:
    data, report = record.data, record.fit
    if "tuned" in report:
        scoring.tell_sizes(report["tuned"])
    classes = report.get("classes", [])
    sizes = f"{data['rows']:,} rows, {data['features']:,} features"
    sizes += f", {len(classes)} classes" if classes else ""
    if "reads" in report:
        sizes += f"; read {report['reads']} times"
    console.tell(f"{record.name} on {data['file']}: {sizes}; fitted in {report['seconds']:.2f} s.")
    if report.get("energy_kept") is not None:
        of = "the training rows' energy"
        if "sample_rows" in report:
            of = f"the energy of a sample of {report['sample_rows']:,} rows"
        console.tell(
            f"{report['n_atoms']:,} atoms; their codes keep {report['energy_kept']:.1%} of {of} "
            f"after {report['passes']} passes."
        )
    if "rows_kept" in report:
        console.tell(f"{summaries.kept_in_words(report)}.")
    scores = report.get("cross_validation")
    if scores:
        scoring.tell_scores(scores, data["rows"])
    console.tell(f"Model: {output}")
