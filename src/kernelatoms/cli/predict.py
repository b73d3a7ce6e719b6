"""``kernelatoms predict``: the classes of further rows, and how many of them are right."""

from pathlib import Path
from typing import Annotated, Any

import typer

from kernelatoms.cli import options as opt
from kernelatoms.cli.console import (
    errors_as_messages,
    note,
    print_json,
    say,
    tell,
    warnings_as_notes,
)
from kernelatoms.cli.evaluation import Evaluation, evaluate
from kernelatoms.cli.loading import at_work, open_both, true_labels

PREDICT_EXAMPLES = """**Examples**

`kernelatoms predict model.skops new.csv`

`kernelatoms predict model.skops new.csv --scores --output predictions.csv`

`kernelatoms predict own.skops new.csv --trust mykernels:Power`

`kernelatoms predict digits.skops digits.npz --rows X_test --label y_test --output p.npy`
"""


@errors_as_messages
@opt.works_on_device
def predict(
    model: opt.Model,
    data: opt.Data,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help=".csv, .parquet, .npy or .npz; else to the terminal."),
    ] = None,
    scores: Annotated[
        bool, typer.Option("--scores", help="Add how well each class fits (larger is better).")
    ] = False,
    label: Annotated[
        str | None,
        typer.Option(help="Column of true classes, to count how many predictions are right."),
    ] = None,
    rows: opt.Rows = None,
    decimal: opt.Decimal = None,
    encoding: opt.Encoding = None,
    header: opt.Header = None,
    max_size: opt.MaxSize = None,
    trust: opt.Trust = None,
    device: opt.Device = None,
    force: opt.Force = False,
    as_json: opt.Json = False,
) -> None:
    """Predict the class of every row of a file.

    Columns are found by name, in any order; row identifiers are copied beside the predictions. If
    the file has the label column of the model, the share of right predictions is shown.
    """
    from kernelatoms.files.results import RESULT_SUFFIXES, write_columns
    from kernelatoms.files.tables.matching import row_identifiers
    from kernelatoms.files.tables.table import ReadOptions
    from kernelatoms.files.writing import (
        check_result_target,
        is_standard_stream,
        refuse_to_overwrite,
    )

    options = ReadOptions(rows, decimal, encoding, header, max_size)
    if output is not None:
        refuse_to_overwrite(output, model, data)
        check_result_target(output, RESULT_SUFFIXES, force=force)
        output = None if is_standard_stream(output) else output
    shown: list[str] = []
    with warnings_as_notes(shown), at_work(model):
        fitted, record, table, X = open_both(model, data, options, trust)
        if not hasattr(fitted, "predict"):
            raise ValueError(
                f"{model} holds {record.name or type(fitted).__name__!r}, which predicts no "
                "classes; use 'kernelatoms encode' for its codes."
            )
        predictions = fitted.predict(X)
        columns: dict[str, Any] = {**row_identifiers(table, record), "prediction": predictions}
        if scores:
            columns |= _scores(fitted, X)
    evaluation = _evaluate(fitted, table, record, label, predictions)
    learned = 0.0 if evaluation is None else _learned_from(record, X, table, label or record.label)
    result: dict[str, Any] = {"rows": len(X), "accuracy": None}
    if evaluation is not None:
        result |= {**evaluation.to_dict(), "share_learned_from": learned}
    if output is not None:
        write_columns(output, columns)
        result["output"] = str(output)
    if as_json:
        if output is None:
            result |= {name: list(values) for name, values in columns.items()}
        print_json(result)
        return
    if output is None:
        opt.write_or_print(Path("-"), lambda stream: write_columns(stream, columns))
    for line in [] if evaluation is None else evaluation.lines():
        say(line)
    if learned:
        which = "these very rows" if learned == 1 else f"{learned:.1%} of these rows"
        note(f"the model learned from {which}; on others it will be less often right.")
    if output is not None:
        tell(f"{len(X):,} predictions: {output}")


def _scores(fitted: Any, X: Any) -> dict[str, Any]:
    if not hasattr(fitted, "decision_function") or not hasattr(fitted, "classes_"):
        raise ValueError("--scores: the model does not say how well each class fits.")
    values, classes = fitted.decision_function(X), fitted.classes_
    if values.ndim == 1:
        return {f"score {classes[1]}": values}
    return {f"score {name}": values[:, i] for i, name in enumerate(classes)}


def _evaluate(
    fitted: Any, table: Any, record: Any, label: str | None, predictions: Any
) -> Evaluation | None:
    """Compare predictions with true classes, where these are known."""
    from kernelatoms.files.tables.table import TableError

    try:
        known = true_labels(fitted, table, record, label)
    except TableError as error:
        if label is not None:
            raise
        note(f"The predictions are not compared with labels: {error}")
        known = None
    if known is None:
        return None
    truth, kept = known
    return evaluate(predictions[kept], truth, len(table), fitted.classes_)


def _learned_from(record: Any, X: Any, table: Any, label: str) -> float:
    """Return the known share of labelled rows that the model learned from."""
    from kernelatoms.files.tables.features import ROW_MARKS, learned_share
    from kernelatoms.files.tables.labels import read_labels

    _, kept = read_labels(table, label)
    return learned_share(X[kept], record.data.get(ROW_MARKS)) or 0.0
