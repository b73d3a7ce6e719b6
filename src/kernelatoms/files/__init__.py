"""What enters and leaves as a file.

- ``tables``: rows, column names, features and labels from files of all kinds.
- ``models``: fitted models, each with a record of how it was made.
- ``checkpoints``: ``Checkpoint``, the state of learning in a file; ``state_files``: its format.
- ``results``: predictions, rows, codes and images; ``result_parts``: written a part at a time.
- ``writing``: files that are complete or absent, and what they may replace; ``locking``: one
  writer at a time for files that grow.
"""

from typing import TYPE_CHECKING

from kernelatoms.lazy import lazy_names

# Names load when they are first used: writing a page needs neither pyarrow nor skops.
_HOMES = {
    "ModelFileError": "files.models.model_file",
    "ModelRecord": "files.models.record",
    "ReadOptions": "files.tables.table",
    "Table": "files.tables.table",
    "TableError": "files.tables.table",
    "TooLargeError": "limits",
    "load_model": "files.models.model_file",
    "read_record": "files.models.model_file",
    "read_table": "files.tables.table",
    "rows_for": "files.tables.matching",
    "save_model": "files.models.model_file",
    "training_set": "files.tables.features",
}

__all__ = [
    "ModelFileError",
    "ModelRecord",
    "ReadOptions",
    "Table",
    "TableError",
    "TooLargeError",
    "load_model",
    "read_record",
    "read_table",
    "rows_for",
    "save_model",
    "training_set",
]

if TYPE_CHECKING:
    from kernelatoms.files.models.model_file import (
        ModelFileError,
        load_model,
        read_record,
        save_model,
    )
    from kernelatoms.files.models.record import ModelRecord
    from kernelatoms.files.tables.features import training_set
    from kernelatoms.files.tables.matching import rows_for
    from kernelatoms.files.tables.table import ReadOptions, Table, TableError, read_table
    from kernelatoms.limits import TooLargeError

__getattr__, __dir__ = lazy_names("kernelatoms.files", _HOMES)
