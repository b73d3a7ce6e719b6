"""Arguments of the public functions, checked, and errors that name the file."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kernelatoms.codec.blocks import Compressed
from kernelatoms.codec.bounds import Bound
from kernelatoms.codec.limits import CodecError
from kernelatoms.codec.models.codec_model import CodecModel
from kernelatoms.codec.models.model_selection import NAMES
from kernelatoms.estimators.validation import check_count, check_real
from kernelatoms.files.tables.arrays import UnreadableError
from kernelatoms.files.tables.table import TableError
from kernelatoms.limits import TooLargeError
from kernelatoms.similarity.base import check_flag

#: Suffixes of compressed files and of model files.
COMPRESSED, MODEL = ".kac", ".kam"


def check_max_size(max_size: Any) -> None:
    """Refuse what is not a positive number of bytes."""
    if max_size is not None:
        check_count("max_size", max_size)


def checked_bound(max_error: Any, max_absolute: Any) -> Bound:
    """Return the bound that the arguments ask for."""
    if max_error is not None:
        max_error = check_real("max_error", max_error, low=0, high=1, low_open=True)
    if max_absolute is not None:
        max_absolute = check_real("max_absolute", max_absolute, low=0, low_open=True)
    return Bound(max_error, max_absolute)


def checked_source(source: Any) -> Path:
    """Return the path of an existing file."""
    path = Path(source)
    if path.is_dir():
        raise TableError(f"{path} is a folder; name a file in it.")
    if not path.exists():
        raise TableError(f"there is no file {path}.")
    return path


def checked_model(
    model: Any, store_model: Any = True, max_size: int | None = None
) -> str | CodecModel:
    """Return the name of a model, or the model of a file."""
    check_flag("store_model", store_model)
    if isinstance(model, CodecModel):
        return model
    if not isinstance(model, str | os.PathLike):
        raise TypeError(f"model must be a name or a {MODEL} file, got {model!r}.")
    if str(model) in ("auto", *NAMES):
        if not store_model:
            raise ValueError(
                f"store_model=False needs model to be a {MODEL} file, which decompress can be "
                "given: write one with kernelatoms codec fit."
            )
        return str(model)
    path = Path(model)
    if not path.is_file():
        words = ", ".join(repr(name) for name in ("auto", *NAMES))
        raise ValueError(f"model must be one of {words} or a {MODEL} file, got {str(model)!r}.")
    with open_compressed(path, max_size=max_size) as opened:
        if opened.header.kind != "model" or len(opened.stored) != 1:
            raise ValueError(f"{path} holds compressed rows, and not a model alone.")
        return opened.stored[0]


def checked_model_file(model: Any, max_size: int | None) -> CodecModel | None:
    """Return the model that a compressed file refers to, if one is given."""
    given = None if model is None else checked_model(model, True, max_size)
    if isinstance(given, str):
        raise ValueError(f"model must be a {MODEL} file, got {given!r}.")
    return given


def checked_names(**arguments: Any) -> list[list[str]]:
    """Return the names of columns in each argument as a list."""
    found = []
    for argument, value in arguments.items():
        found.append([value] if isinstance(value, str) else list(value))
        for name in found[-1]:
            if not isinstance(name, str):
                raise TypeError(f"{argument} must be names of columns, got {name!r}.")
    return found


@contextmanager
def open_compressed(
    path: Path, model: CodecModel | None = None, max_size: int | None = None
) -> Iterator[Compressed]:
    """Open a compressed file; errors name it."""
    with path.open("rb") as file:
        try:
            yield Compressed(file, model, max_size)
        except CodecError as error:
            raise type(error)(f"{path}: {error}") from error


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Name the file in errors about reading a source."""
    try:
        yield
    except UnreadableError as error:
        raise TableError(
            f"{path} cannot be read as a NumPy file (damaged, cut short, of another kind): {error}."
        ) from error
    except CodecError:  # about another file
        raise
    except TooLargeError as error:
        raise TooLargeError(f"{path}: {error}.") from error
