"""``kernelatoms fit`` on a table that is read in parts: decide on a sample, learn from all rows."""

import hashlib
import time
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kernelatoms.cli import console, scoring, summaries
from kernelatoms.cli.models import find_choice, make_model

if TYPE_CHECKING:
    from kernelatoms.cli.fit import Wishes

# Labels that become text together.
_TOGETHER = 1 << 16
#: Presets that learn from rows in parts.
_CAN = ("lkdl", "lkdl-images", "linear", "linear-images")


def fit(large: Any, wishes: "Wishes", output: Any) -> tuple[Any, Any, Any]:
    """Learn from all rows; return the model, its record, and the sample as a training set."""
    from kernelatoms.cli.fit import checkpoint_of, say_before
    from kernelatoms.files.tables.features import check_wishes, training_set
    from kernelatoms.files.tables.large import sample_rows
    from kernelatoms.files.tables.roles import NUMBERED
    from kernelatoms.files.tables.survey import survey

    # What is not in the first rows is said before all are read.
    check_wishes(next(iter(large)), wishes.label, wishes.drop, wishes.keep)
    with console.progress() as on_step:
        on_step(0, 0, "looking at all rows")
        known = survey(large, wishes.label, sample_rows(large), wishes.seed)
    sample, numbered = known.sample, [n for n in known.numbered if n not in wishes.keep]
    numbered = [name for name in numbered if name not in wishes.drop]
    drop = [*wishes.drop, *numbered]
    n_rows = int((known.numbers >= 0).sum())
    chosen = training_set(
        sample.table, wishes.label, drop, wishes.keep, dates=wishes.dates,
        unlabelled=(sample.n_rows - n_rows, sample.n_rows),
    )  # fmt: skip
    chosen.left_out.update(dict.fromkeys(numbered, NUMBERED))
    grouped = None
    if wishes.groups is not None:
        grouped = scoring.read_groups(sample.table, wishes.groups, chosen.rows, sample.rows)
        chosen.left_out[wishes.groups] = "it names the groups"
    scoring.check_folds(chosen.y, wishes.cv, grouped)
    name = wishes.model or _default(chosen, n_rows)
    pipeline = make_model(
        find_choice(name), wishes.scale, wishes.settings, wishes.seed, chosen.image_shape, n_rows
    )
    described = {"file": large.path.name, **chosen.describe(), "missing": 0}
    record = chosen.record(name=name, data=described)
    say_before(chosen, record, output, pipeline)
    console.note(
        f"Columns are judged{', folds scored' * bool(wishes.cv)} and parameters chosen on a sample "
        f"of {len(chosen.X):,} of {n_rows:,} rows."
    )
    kept = checkpoint_of(wishes, pipeline, name, output)
    report, told = _learn(pipeline, large, record, chosen, known, wishes, grouped, kept)
    told["file"] = described["file"]
    record = replace(record, data=told, fit=report)
    return pipeline, record, chosen


def refuse_model(large: Any, wishes: "Wishes") -> None:
    """Refuse a model that needs all rows at once, before anything is read."""
    from kernelatoms import KSVD, MOD, ClassDictionaryClassifier, KernelLinearizer
    from kernelatoms.limits import in_words

    name = wishes.model or "lkdl"
    model = make_model(find_choice(name), wishes.scale, wishes.settings, wishes.seed)
    last = model[-1]
    can = isinstance(last, KSVD | MOD | KernelLinearizer)
    if isinstance(last, ClassDictionaryClassifier):
        can = last.dictionary is None or isinstance(last.dictionary, KSVD | MOD)
    if not can:
        needs = f"{large.path} takes about {in_words(large.needs)} of memory, more than"
        why, instead = f"{needs} {in_words(large.memory)}", "Or allow more by --memory."
        if large.on_workers:
            why, instead = "workers hold a part of them each", "Or leave the workers out."
        raise ValueError(
            f"--model: {name} learns from all rows at once, and {why}. What learns from rows in "
            f"parts: {', '.join(_CAN)}; KSVD and MOD; ClassDictionaryClassifier over these. "
            f"{instead}"
        )


def _default(chosen: Any, n_rows: int) -> str:
    name = "lkdl" if chosen.image_shape is None else "lkdl-images"
    console.note(
        f"The model is {name}, the default for tables that are read in parts; it learns from all "
        f"{n_rows:,} rows (--model chooses others)."
    )
    return name


def _learn(
    pipeline: Any, large: Any, record: Any, chosen: Any, known: Any, wishes: "Wishes", groups: Any,
    kept: list[Any],
) -> tuple[dict[str, Any], dict[str, Any]]:  # fmt: skip
    """Fit the pipeline; return what is told of the fit, and of the data."""
    from kernelatoms.files.tables.large_rows import LargeRows
    from kernelatoms.files.tables.matching import about_new

    X, y, labelled = chosen.X, chosen.y, known.numbers >= 0
    shown: list[str] = []
    report: dict[str, Any] = {"sample_rows": len(X)}
    with console.warnings_as_notes(shown), console.progress() as on_step:
        on_step(0, 0, "loading")
        if wishes.tune:
            report["tuned"] = scoring.tune_sizes(pipeline, X, y, wishes.seed, on_step)
        start = time.perf_counter()
        rows = LargeRows(large, record, X.shape[1], labelled, X.dtype)
        on_step(0, 0, "scaling")
        seen = _fit_scalers(pipeline, X, rows, known)
        if rows.new:
            console.note(about_new(rows.new))
        note = summaries.note_about_training(seen["missing"], pipeline, len(X))
        if note:
            console.note(note)
        passes = rows.read_by_workers() if large.on_workers else rows
        _fit_last(pipeline, X, passes, known, kept, on_step)
        report["seconds"] = round(time.perf_counter() - start, 3)
        if not large.on_workers:
            report["reads"] = rows.n_passes + 1  # with that of the survey
        report |= summaries.what_was_reached(pipeline, X, y)
        if wishes.cv:
            warnings.simplefilter("ignore")
            from sklearn.base import clone

            report["cross_validation"] = scoring.cross_validate(
                clone(pipeline), X, y, wishes.cv, wishes.seed, on_step, groups
            )
    return {**report, "warnings": shown}, seen


def _fit_scalers(pipeline: Any, X: Any, rows: Any, known: Any) -> dict[str, Any]:
    """Fit all steps but the last: scalers to all rows, others to the sample; describe all rows."""
    steps = [step for _, step in pipeline.steps[:-1]]
    fill = steps[0].fit(X)
    scalers = [step for step in steps[1:] if _is_scaler(step)]
    seen = _Seen(rows, X.dtype)
    for block in rows:
        seen.take(block)
        for step in scalers:
            step.partial_fit(fill.transform(block))
    signals = fill.transform(X)
    for step in steps[1:]:
        if step not in scalers:
            step.fit(signals)
        signals = step.transform(signals)
    return seen.finish(known)


def _is_scaler(step: Any) -> bool:
    """Return whether a step of scikit-learn's adds up what it learns over blocks of rows."""
    return type(step).__module__.startswith("sklearn.") and hasattr(step, "partial_fit")


def _fit_last(pipeline: Any, X: Any, rows: Any, known: Any, kept: list[Any], on_step: Any) -> None:
    """Fit the last step to what the steps before make of all rows, pass after pass."""
    learner, before = pipeline[-1], pipeline[:-1]
    first = before.transform(X[:2])
    signals = rows.map(before.transform, first.shape[1], dtype=first.dtype)
    if hasattr(learner, "set_callbacks"):
        learner.set_callbacks(console.FitProgress(on_step, "learning"), *kept)
    if known.classes is None:
        learner.fit(signals)
    else:
        # By numbers of classes: names of millions of rows take more memory than the rows.
        learner.fit(signals, known.numbers[known.numbers >= 0])
        learner.classes_ = known.classes
    if hasattr(learner, "set_callbacks"):
        learner.set_callbacks()


class _Seen:
    """Describes all rows, as ``TrainingSet.describe`` does rows in memory."""

    def __init__(self, rows: Any, dtype: Any) -> None:
        import numpy as np

        self._shape = (rows.n_rows, rows.n_features)
        self._digest = hashlib.sha256(f"{dtype.str} {self._shape}".encode())
        self._missing, self._marks = 0, np.empty(0, np.uint32)

    def take(self, block: Any) -> None:
        """Look at the next rows."""
        import numpy as np

        from kernelatoms.files.tables.features import MOST_MARKS, row_marks

        self._digest.update(np.ascontiguousarray(block).tobytes())
        self._missing += int(np.isnan(block).sum())
        marks = row_marks(block)
        self._marks = np.unique(np.concatenate([self._marks, marks]))[: MOST_MARKS + 1]

    def finish(self, known: Any) -> dict[str, Any]:
        """Return what a record keeps of the rows."""
        from kernelatoms.files.tables.features import ROW_MARKS, marks_in_text

        if known.classes is not None:
            names = [str(name) for name in known.classes.tolist()]
            numbers, parted = known.numbers[known.numbers >= 0], ""
            for start in range(0, len(numbers), _TOGETHER):
                some = "\n".join([names[i] for i in numbers[start : start + _TOGETHER].tolist()])
                self._digest.update((parted + some).encode())
                parted = "\n"
        return {
            "rows": self._shape[0], "features": self._shape[1], "missing": self._missing,
            "fingerprint": self._digest.hexdigest(), ROW_MARKS: marks_in_text(self._marks),
        }  # fmt: skip
