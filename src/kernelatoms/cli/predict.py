"""``kernelatoms predict``: the classes of further rows, and how many of them are right."""

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

from kernelatoms.cli import cluster, console
from kernelatoms.cli import options as opt

PREDICT_EXAMPLES = """**Examples**

`kernelatoms predict model.skops new.csv`

`kernelatoms predict model.skops new.csv --scores --output predictions.csv`

`kernelatoms predict model.skops 'big/*.parquet' --memory 2GiB --output predictions.parquet`

`kernelatoms predict model.skops 'big/*.parquet' --workers 4 --output predictions.parquet`

`kernelatoms predict own.skops new.csv --trust mykernels:Power`

`kernelatoms predict digits.skops digits.npz --rows X_test --label y_test --output p.npy`
"""


_MOST_CLASSES = 20


@console.errors_as_messages
@opt.works_on_device
def predict(
    model: opt.Model,
    data: opt.LargeData,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help=".csv, .parquet, .npy or .npz; else to the terminal."),
    ] = None,
    scores: Annotated[
        bool, typer.Option("--scores", help="Add how well each class fits (larger is better).")
    ] = False,
    label: opt.Label = None,
    rows: opt.Rows = None,
    decimal: opt.Decimal = None,
    encoding: opt.Encoding = None,
    header: opt.Header = None,
    max_size: opt.MaxSize = None,
    memory: opt.Memory = None,
    trust: opt.Trust = None,
    device: opt.Device = None,
    scheduler: cluster.Scheduler = None,
    workers: cluster.Workers = None,
    force: opt.Force = False,
    as_json: opt.Json = False,
) -> None:
    """Predict the class of every row of a file.

    Columns are found by name, in any order; row identifiers are copied beside the predictions. If
    the file has the label column of the model, the share of right predictions is shown.
    """
    from kernelatoms.files.results import RESULT_SUFFIXES, write_columns
    from kernelatoms.files.tables.table import ReadOptions
    from kernelatoms.files.writing import check_result_target

    options = ReadOptions(rows, decimal, encoding, header, max_size)
    if output is not None:
        check_result_target(output, RESULT_SUFFIXES, model, data, force=force)
        output = None if str(output) == "-" else output
    on_workers = cluster.are_asked_for(scheduler, workers, device)
    large = opt.open_large(data, options, memory, on_workers=on_workers)
    with console.warnings_as_notes([]), opt.at_work(model), cluster.connected(scheduler, workers):
        from kernelatoms.cli import parts

        if large is not None and not large.fits:
            if as_json and output is None:
                raise ValueError("--json: a file that is read in parts needs --output, too.")
            applied = parts.Applied(model, large, trust, max_size)
            check_predicts(applied.fitted, applied.record, model)
            evaluation, learned = parts.predict(applied, output, label, scores)
            columns, n_rows = {}, applied.n_rows
        else:
            fitted, record, table, X = opt.open_both(model, data, options, trust, large)
            check_predicts(fitted, record, model)
            predictions = parts.by_blocks(fitted.predict, X)
            columns = predicted_columns(fitted, record, table, X, predictions, scores)
            evaluation = _evaluate(fitted, table, record, label, predictions)
            learned = 0.0
            if evaluation is not None:
                learned = _learned_from(record, X, table, label or record.label)
            n_rows = len(X)
            if output is not None:
                write_columns(output, columns)
    result: dict[str, Any] = {"rows": n_rows, "accuracy": None}
    if evaluation is not None:
        result |= {**evaluation, "share_learned_from": learned}
    if output is not None:
        result["output"] = str(output)
    if as_json:
        if output is None:
            result |= {name: list(values) for name, values in columns.items()}
        console.print_json(result)
        return
    if output is None and columns:
        opt.write_or_print(Path("-"), lambda stream: write_columns(stream, columns))
    _say(evaluation, learned, n_rows)
    if output is not None:
        console.tell(f"{n_rows:,} predictions: {output}")


def check_predicts(fitted: Any, record: Any, model: Path) -> None:
    """Refuse a model that predicts no classes."""
    if not hasattr(fitted, "predict"):
        raise ValueError(
            f"{model} holds {record.name or type(fitted).__name__!r}, which predicts no "
            "classes; use 'kernelatoms encode' for its codes."
        )


def predicted_columns(
    fitted: Any, record: Any, table: Any, X: Any, predictions: Any, scores: bool
) -> dict[str, Any]:
    """Return identifiers of rows, predictions and, if asked for, scores."""
    from kernelatoms.files.tables.matching import row_identifiers

    columns = {**row_identifiers(table, record), "prediction": predictions}
    return columns | (scores_of(fitted, X) if scores else {})


def _say(evaluation: dict[str, Any] | None, learned: float, n_rows: int) -> None:
    for line in [] if evaluation is None else evaluation_in_words(evaluation, n_rows):
        console.say(line)
    if learned:
        which = "these very rows" if learned == 1 else f"{learned:.1%} of these rows"
        console.note(f"the model learned from {which}; on others it will be less often right.")


def scores_of(fitted: Any, X: Any) -> dict[str, Any]:
    """Return a column per class: how well it fits."""
    from kernelatoms.cli.parts import by_blocks

    if not hasattr(fitted, "decision_function") or not hasattr(fitted, "classes_"):
        raise ValueError("--scores: the model does not say how well each class fits.")
    values, classes = by_blocks(fitted.decision_function, X), fitted.classes_
    if values.ndim == 1:
        return {f"score {classes[1]}": values}
    return {f"score {name}": values[:, i] for i, name in enumerate(classes)}


def _evaluate(
    fitted: Any, table: Any, record: Any, label: str | None, predictions: Any
) -> dict[str, Any] | None:
    """Compare predictions with true classes, where these are known."""
    from kernelatoms.files.tables.table import TableError

    try:
        known = opt.true_labels(fitted, table, record, label)
    except TableError as error:
        if label is not None:
            raise
        console.note(f"The predictions are not compared with labels: {error}")
        return None
    if known is None:
        return None
    truth, kept = known
    return evaluate(predictions[kept], truth, fitted.classes_)


def evaluate(predictions: Any, truth: Any, classes: Any) -> dict[str, Any]:
    """Compare predictions of labelled rows with the truth; those of unknown classes are wrong."""
    return evaluation_of(tally(predictions, truth), classes)


def tally(predictions: Any, truth: Any) -> Counter[tuple[str, bool]]:
    """Count the rows of every true class that are predicted right, and wrong."""
    pairs = zip(map(str, truth.tolist()), map(str, predictions.tolist()), strict=True)
    return Counter((true, true == predicted) for true, predicted in pairs)


def evaluation_of(counts: Counter[tuple[str, bool]], classes: Any) -> dict[str, Any]:
    """Return accuracies and recalls of what ``tally`` counted."""
    names = sorted({name for name, _ in counts})
    count_of = {name: counts[name, True] + counts[name, False] for name in names}
    recall = {name: counts[name, True] / count_of[name] for name in names}
    n_rows = sum(count_of.values())
    most = max(count_of, key=lambda name: count_of[name])
    known = {str(value) for value in classes.tolist()}
    return {
        "labelled_rows": n_rows,
        "accuracy": sum(counts[name, True] for name in names) / n_rows,
        "balanced_accuracy": sum(recall.values()) / len(recall),
        "recall": recall,
        "rows_of_class": count_of,
        "most_frequent_class": {"class": most, "share": count_of[most] / n_rows},
        "unknown_labels": {name: n for name, n in count_of.items() if name not in known},
    }


def evaluation_in_words(found: dict[str, Any], n_rows: int) -> list[str]:
    """Return what ``evaluate`` found, in lines; ``n_rows`` counts rows without a label, too."""
    from kernelatoms.files.tables.table import first_few

    more = "more (--json has all)"
    n_labelled, recall, count_of = found["labelled_rows"], found["recall"], found["rows_of_class"]
    without = n_rows - n_labelled
    without_label = f" ({without:,} of {n_rows:,} rows have no label)" if without else ""
    worst = sorted(recall, key=lambda c: (recall[c], c))
    recalls = [f"{c} {recall[c]:.1%} of {count_of[c]:,}" for c in worst]
    said = [
        f"{found['accuracy']:.1%} of {n_labelled:,} labelled rows are predicted right"
        f"{without_label}; balanced accuracy {found['balanced_accuracy']:.1%}.",
        f"Recall of each class, the worst first: {first_few(recalls, _MOST_CLASSES, more)}.",
    ]
    if unknown := found["unknown_labels"]:
        n = sum(unknown.values())
        names = [f"{name!r} ({count:,})" for name, count in unknown.items()]
        said.append(
            f"{n:,} labelled row{'s are' if n != 1 else ' is'} of classes that the model has never "
            f"seen, and count{'s' * (n == 1)} as wrong: {first_few(names, _MOST_CLASSES, more)}."
        )
    name, guessed = found["most_frequent_class"].values()
    if len(count_of) > 1 and found["accuracy"] <= guessed:
        said.append(
            f"This is no better than guessing: always answering {name!r} would be right for "
            f"{guessed:.1%}."
        )
    return said


def _learned_from(record: Any, X: Any, table: Any, label: str) -> float:
    """Return the known share of labelled rows that the model learned from."""
    from kernelatoms.files.tables.features import ROW_MARKS, learned_share
    from kernelatoms.files.tables.roles import read_labels

    _, kept = read_labels(table, label)
    return learned_share(X[kept], record.data.get(ROW_MARKS)) or 0.0
