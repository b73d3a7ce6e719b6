"""What enters and leaves as a file.

- ``tables``: rows, labels and column names from files of all kinds; ``opening``: which kind it is.
- ``csv_tables``: tables of text; ``first_lines``: their delimiters and names; ``text_numbers``:
  decimal commas and the like; ``json_tables``: one JSON object a line; ``arrow_tables``: Parquet
  and Arrow files; ``array_tables``: NumPy files, sparse ones too.
- ``arrays``: NumPy files of unknown origin, of which sizes are compared before memory is taken;
  ``arrow_sizes``, ``parquet_sizes``: what Arrow's and Parquet files become, by their headers.
- ``features``: which columns a model learns from, and the same columns of other files.
- ``column_kinds``: what columns are, and how words and dates (``dates``) become numbers.
- ``places``: columns of files without names, known by their places.
- ``labels``: labels exactly as they stand.
- ``identifiers``: columns that number or name the rows, which no model should learn from.
- ``row_marks``: which rows of a file a model learned from.
- ``models``: fitted models with the record of how they came about (``records``). A file is taken
  apart within bounds (``archive``), its description looked through (``schema``), and what it
  holds checked against itself (``soundness``): scikit-learn's types by the rules of
  ``sklearn_types``, which are made of ``sklearn_rules``, ``sklearn_encoders`` and
  ``sklearn_containers``.
- ``results``: predictions, codes and rows to files; ``code_files``: codes from files; ``images``:
  pictures, read and written.
- ``writing``: files that are whole or not there at all; ``targets``: what they may replace;
  ``locking``: one writer at a time, where several add to a file.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

# Names load when they are first used: writing a page needs neither pyarrow nor skops.
_HOME_OF = {
    "CODE_SUFFIXES": "results",
    "FORMAT_VERSION": "models",
    "ModelFileError": "models",
    "ModelRecord": "records",
    "NAMED": "identifiers",
    "REASONS": "identifiers",
    "ReadOptions": "tables",
    "ROW_MARKS": "row_marks",
    "RESULT_SUFFIXES": "results",
    "SUFFIXES": "tables",
    "Table": "tables",
    "TableError": "tables",
    "TooLargeError": "tables",
    "check_codes_fit": "results",
    "check_result_target": "targets",
    "check_target": "writing",
    "fingerprint": "features",
    "foreign_types": "models",
    "format_of": "models",
    "is_standard_stream": "writing",
    "is_table": "tables",
    "labels_for": "labels",
    "learned_share": "row_marks",
    "load_model": "models",
    "one_writer": "locking",
    "read_labels": "labels",
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
    "IMAGE_SUFFIXES": "images",
    "Picture": "images",
    "read_array": "images",
    "read_image": "images",
    "write_image": "images",
    "read_codes": "code_files",
    "write_rows": "results",
}

__all__ = [
    "CODE_SUFFIXES",
    "FORMAT_VERSION",
    "IMAGE_SUFFIXES",
    "NAMED",
    "REASONS",
    "RESULT_SUFFIXES",
    "ROW_MARKS",
    "SUFFIXES",
    "ModelFileError",
    "ModelRecord",
    "Picture",
    "ReadOptions",
    "Table",
    "TableError",
    "TooLargeError",
    "check_codes_fit",
    "check_result_target",
    "check_target",
    "fingerprint",
    "foreign_types",
    "format_of",
    "is_standard_stream",
    "is_table",
    "labels_for",
    "learned_share",
    "load_model",
    "one_writer",
    "read_array",
    "read_codes",
    "read_image",
    "read_labels",
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
    "write_image",
    "write_rows",
    "write_whole",
]

if TYPE_CHECKING:
    from kernelatoms.files.code_files import read_codes
    from kernelatoms.files.features import (
        fingerprint,
        row_identifiers,
        rows_for,
        training_set,
        why_left_out,
    )
    from kernelatoms.files.identifiers import NAMED, REASONS
    from kernelatoms.files.images import (
        IMAGE_SUFFIXES,
        Picture,
        read_array,
        read_image,
        write_image,
    )
    from kernelatoms.files.labels import labels_for, read_labels
    from kernelatoms.files.locking import one_writer
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
        write_codes,
        write_columns,
        write_rows,
    )
    from kernelatoms.files.row_marks import ROW_MARKS, learned_share
    from kernelatoms.files.tables import (
        SUFFIXES,
        ReadOptions,
        Table,
        TableError,
        is_table,
        read_table,
    )
    from kernelatoms.files.targets import check_result_target
    from kernelatoms.files.writing import (
        check_target,
        is_standard_stream,
        refuse_to_overwrite,
        write_whole,
    )
    from kernelatoms.limits import TooLargeError


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'kernelatoms.files' has no attribute {name!r}")
    value = getattr(import_module(f"kernelatoms.files.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME_OF})
