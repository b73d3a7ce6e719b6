"""What enters and leaves as a file.

- ``tables``: rows, labels and column names from .csv, .parquet, .npy and .npz files.
- ``arrays``: NumPy files of unknown origin, of which sizes are compared before memory is taken.
- ``features``: which columns a model learns from, and the same columns of other files.
- ``identifiers``: columns that number or name the rows, which no model should learn from.
- ``models``: fitted models with the record of how they came about (``records``). A file is taken
  apart within bounds (``archive``), its description looked through (``schema``), and what it
  holds checked against itself (``soundness``).
- ``results``: predictions and codes to files.
- ``writing``: files that are whole or not there at all.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

# Names load when they are first used: writing a page needs neither pyarrow nor skops.
_HOME_OF = {
    "CODE_SUFFIXES": "results",
    "FORMAT_VERSION": "models",
    "ModelFileError": "models",
    "ModelRecord": "records",
    "RESULT_SUFFIXES": "results",
    "REASONS": "identifiers",
    "SUFFIXES": "tables",
    "Table": "tables",
    "TableError": "tables",
    "check_codes_fit": "results",
    "check_result_target": "results",
    "check_target": "writing",
    "fingerprint": "features",
    "foreign_types": "models",
    "format_of": "models",
    "labels_for": "features",
    "load_model": "models",
    "read_record": "models",
    "read_table": "tables",
    "refuse_to_overwrite": "writing",
    "row_identifiers": "features",
    "rows_for": "features",
    "save_model": "models",
    "training_set": "features",
    "why_left_out": "features",
    "write_codes": "results",
    "write_columns": "results",
    "write_whole": "writing",
}

__all__ = [
    "CODE_SUFFIXES",
    "FORMAT_VERSION",
    "REASONS",
    "RESULT_SUFFIXES",
    "SUFFIXES",
    "ModelFileError",
    "ModelRecord",
    "Table",
    "TableError",
    "check_codes_fit",
    "check_result_target",
    "check_target",
    "fingerprint",
    "foreign_types",
    "format_of",
    "labels_for",
    "load_model",
    "read_record",
    "read_table",
    "refuse_to_overwrite",
    "row_identifiers",
    "rows_for",
    "save_model",
    "training_set",
    "why_left_out",
    "write_codes",
    "write_columns",
    "write_whole",
]

if TYPE_CHECKING:
    from kernelatoms.files.features import (
        fingerprint,
        labels_for,
        row_identifiers,
        rows_for,
        training_set,
        why_left_out,
    )
    from kernelatoms.files.identifiers import REASONS
    from kernelatoms.files.models import (
        FORMAT_VERSION,
        ModelFileError,
        foreign_types,
        format_of,
        load_model,
        read_record,
        save_model,
    )
    from kernelatoms.files.records import ModelRecord
    from kernelatoms.files.results import (
        CODE_SUFFIXES,
        RESULT_SUFFIXES,
        check_codes_fit,
        check_result_target,
        write_codes,
        write_columns,
    )
    from kernelatoms.files.tables import SUFFIXES, Table, TableError, read_table
    from kernelatoms.files.writing import check_target, refuse_to_overwrite, write_whole


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'kernelatoms.files' has no attribute {name!r}")
    value = getattr(import_module(f"kernelatoms.files.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME_OF})
