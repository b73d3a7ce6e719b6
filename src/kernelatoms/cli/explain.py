"""``kernelatoms explain``: why rows of a file get their classes."""

from typing import Annotated, Any

import typer

from kernelatoms.cli import options as opt
from kernelatoms.cli.console import errors_as_messages, print_json, tell, warnings_as_notes

EXAMPLES = """**Examples**

`kernelatoms explain model.skops flowers.csv --row 17`

`kernelatoms explain model.skops flowers.csv --row 0 --row 3 --json`

`kernelatoms explain digits.skops digits.npz --rows X_test --label y_test --row 5`
"""


@errors_as_messages
def explain(
    model: opt.Model,
    data: opt.Data,
    row: Annotated[
        list[int],
        typer.Option(
            metavar="NUMBER", help="Which row, counted from 0 as reports and codes do. Repeatable."
        ),
    ],
    label: opt.Label = None,
    rows: opt.Rows = None,
    decimal: opt.Decimal = None,
    encoding: opt.Encoding = None,
    header: opt.Header = None,
    max_size: opt.MaxSize = None,
    trust: opt.Trust = None,
    as_json: opt.Json = False,
) -> None:
    """Say why a row of a file is given its class.

    Shown are the answer and the next best class, with how much of the row's energy each leaves
    unexplained, and the atoms that the row is written in, the largest coefficient first. Atoms are
    counted from 0 through all classes; those of CRC and SRC classifiers are training rows, class
    after class.
    """
    import numpy as np

    from kernelatoms import explain as explain_rows
    from kernelatoms.files.tables.matching import as_written, row_identifiers
    from kernelatoms.files.tables.table import ReadOptions

    with warnings_as_notes([]), opt.at_work(model):
        fitted, record, table, X = opt.open_both(
            model, data, ReadOptions(rows, decimal, encoding, header, max_size), trust
        )
        if not hasattr(fitted, "predict"):
            raise ValueError(
                f"{model} holds {record.name or type(fitted).__name__!r}, which predicts no "
                "classes, so there is none to explain; use 'kernelatoms encode' for its codes."
            )
        for number in row:
            if not 0 <= number < len(X):
                raise ValueError(
                    f"--row must be a row of {data}, counted from 0 to {len(X) - 1:,}, got "
                    f"{number}."
                )
        truth, kept = opt.true_labels(fitted, table, record, label) or ((), np.zeros(len(X), bool))
        explanations = explain_rows(fitted, X[row])
    true_of = dict(zip(np.flatnonzero(kept).tolist(), np.asarray(truth).tolist(), strict=True))
    identifiers = row_identifiers(table, record)
    found = [
        {
            "row": number,
            "identifiers": {name: as_written(held[number]) for name, held in identifiers.items()},
            "true_label": true_of.get(number),
            **why.to_dict(),
        }
        for number, why in zip(row, explanations, strict=True)
    ]
    if as_json:
        print_json({"explanations": found})
        return
    explained = zip(found, explanations, strict=True)
    tell("\n\n".join(f"{_heading(facts)}\n{why}" for facts, why in explained))


def _heading(facts: dict[str, Any]) -> str:
    """Return the row, and whether the answer is right if that is known."""
    words = [f"Row {facts['row']}"]
    words += [f"{name} {value}" for name, value in facts["identifiers"].items()]
    true = facts["true_label"]
    if true is not None:
        right = "right" if str(true) == str(facts["label"]) else "wrong"
        words.append(f"true class {true!r}: the answer is {right}")
    return ", ".join(words).replace("\n", "\\n")  # a name with a line end looks like two facts
