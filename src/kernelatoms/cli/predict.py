"""``kernelatoms predict``: the classes of further rows, and how many of them are right."""

import io
from pathlib import Path
from typing import Annotated, Any

import typer

from kernelatoms.cli.applying import at_work, open_both
from kernelatoms.cli.judging import Judgement, judge
from kernelatoms.cli.options import (
    Data,
    Decimal,
    Device,
    Encoding,
    Force,
    Header,
    Json,
    MaxSize,
    Model,
    Rows,
    Trust,
    works_on_device,
)
from kernelatoms.cli.speaking import (
    note,
    print_json,
    say,
    speaks_plainly,
    tell,
    warnings_as_notes,
)

PREDICT_EXAMPLES = """**Examples**

`kernelatoms predict model.skops new.csv`

`kernelatoms predict model.skops new.csv --scores --output predictions.csv`

`kernelatoms predict own.skops new.csv --trust mykernels:Power`

`kernelatoms predict digits.skops digits.npz --rows X_test --label y_test --output p.npy`
"""


@speaks_plainly
@works_on_device
def predict(
    model: Model,
    data: Data,
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
    rows: Rows = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    header: Header = None,
    max_size: MaxSize = None,
    trust: Trust = None,
    device: Device = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Predict the class of every row of a file.

    Columns are found by name, in any order; row identifiers are copied beside the predictions. If
    the file has the label column of the model, the share of right predictions is shown.
    """
    from kernelatoms.files import (
        RESULT_SUFFIXES,
        ReadOptions,
        check_result_target,
        is_standard_stream,
        refuse_to_overwrite,
        row_identifiers,
        write_columns,
    )

    options = ReadOptions(rows, decimal, encoding, header, max_size)
    if output is not None:
        refuse_to_overwrite(output, model, data)
        check_result_target(output, RESULT_SUFFIXES, force=force)
        output = None if is_standard_stream(output) else output
    heard: list[str] = []
    with warnings_as_notes(heard), at_work(model):
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
    judged = _judged(table, label or record.label, label is not None, fitted, predictions)
    learned = 0.0 if judged is None else _learned_from(record, X, table, label or record.label)
    result: dict[str, Any] = {"rows": len(X), "accuracy": None}
    if judged is not None:
        result |= {**judged.to_dict(), "share_learned_from": learned}
    if output is not None:
        write_columns(output, columns)
        result["output"] = str(output)
    if as_json:
        if output is None:
            result |= {name: list(values) for name, values in columns.items()}
        print_json(result)
        return
    if output is None:
        text = io.StringIO()
        write_columns(text, columns)
        tell(text.getvalue(), end="")
    for line in [] if judged is None else judged.lines():
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


def _judged(
    table: Any, label: str | None, asked: bool, fitted: Any, predictions: Any
) -> Judgement | None:
    """Return how right predictions are, where true classes are known."""
    from kernelatoms.files import TableError, labels_for

    if label is None or (not asked and label not in table.names):
        return None
    if not hasattr(fitted, "classes_"):
        raise ValueError("--label: the model predicts no classes that could be right.")
    try:
        truth, kept = labels_for(table, label, fitted.classes_)
    except TableError as error:
        if asked:
            raise
        note(f"How many predictions are right is not said: {error}")
        return None
    return judge(predictions[kept], truth, len(table), fitted.classes_)


def _learned_from(record: Any, X: Any, table: Any, label: str) -> float:
    """Return the share of the labelled rows that the model learned from, as far as is known."""
    from kernelatoms.files import ROW_MARKS, learned_share, read_labels

    _, kept = read_labels(table, label)
    return learned_share(X[kept], record.data.get(ROW_MARKS)) or 0.0
