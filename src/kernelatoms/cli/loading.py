"""A model file and a data file, opened together."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelatoms.cli.columns import note_about_rows
from kernelatoms.cli.console import note
from kernelatoms.cli.models import trusted_types
from kernelatoms.cli.options import read_data

if TYPE_CHECKING:
    from kernelatoms.files.models.record import ModelRecord
    from kernelatoms.files.tables.table import ReadOptions, Table


def open_both(
    model: Path, data: Path, options: "ReadOptions", trust: list[str] | None
) -> tuple[Any, Any, Any, Any]:
    """Return the model, its record, the table and its rows in the model's columns.

    ``options`` are those of the table; ``max_size`` applies to the model file, too.
    """
    from kernelatoms.files.models.model_file import load_model
    from kernelatoms.files.tables.matching import rows_for

    fitted, record = load_model(model, trusted=trusted_types(trust), max_size=options.max_size)
    table = read_data(data, options)
    n_features = getattr(fitted, "n_features_in_", None)
    if n_features is None and record.columns is None:
        raise ValueError(
            f"{model} says neither how many columns it takes nor which; use it from Python, with "
            "load_model."
        )
    X, notes = rows_for(table, record, n_features or len(record.columns or ()))
    for text in (*notes, note_about_rows(fitted, X)):
        if text:
            note(text)
    return fitted, record, table, X


def true_labels(
    fitted: Any, table: "Table", record: "ModelRecord", label: str | None
) -> tuple[Any, Any] | None:
    """Return the true classes in a table and a mask of the rows with one; None if it has none.

    ``label`` is the column that the user names; else it is that of the model, if it is there.
    """
    from kernelatoms.files.tables.labels import labels_for

    name = label or record.label
    if name is None or (label is None and name not in table.names):
        return None
    if not hasattr(fitted, "classes_"):
        raise ValueError("--label: the model predicts no classes that could be right.")
    return labels_for(table, name, fitted.classes_)


@contextmanager
def at_work(model: Path) -> Iterator[None]:
    """Turn exceptions of a model into one message.

    scikit-learn's types that the user trusts are not checked and may raise anything.
    """
    try:
        yield
    except (LookupError, AttributeError, ArithmeticError, RuntimeError) as error:
        raise ValueError(
            f"{model}: the model cannot be applied ({type(error).__name__}: {error}); its file may "
            "be damaged."
        ) from error
