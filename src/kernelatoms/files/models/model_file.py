"""Model files: a fitted model and the record of how it was made.

A model file is a skops archive (arrays and the names of known types; no pickle, so opening one
runs no foreign code) with one more member, ``kernelatoms.json``: the format version, the SHA-256
of every other member, the record, and the SHA-256 of these. The record can be read without
building the model.

A file is checked in the order that needs least trust: the sizes and names of its members
and the description of the objects (``archive``), header and digests, their types. Then skops
builds the objects, and they are checked against each other (``soundness``).

See docs/decisions/053-model-files.md.
"""

import hashlib
import importlib
import io
import json
import math
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from kernelatoms import __version__
from kernelatoms.estimators.devices.conversion import on_cpu
from kernelatoms.estimators.registry import types
from kernelatoms.features.projections import PROJECTIONS
from kernelatoms.files.models.archive import (
    HEADER,
    SCHEMA,
    Unpacked,
    check_arrays,
    check_bounds,
    check_weights,
    outline,
    pack,
    read_text,
    unpack,
)
from kernelatoms.files.models.record import ModelRecord
from kernelatoms.files.models.soundness import check_model, forget_machine
from kernelatoms.files.tables.table import shortened
from kernelatoms.files.writing import check_target, write_whole
from kernelatoms.lazy import load_extra
from kernelatoms.limits import TooLargeError
from kernelatoms.similarity import OWN_TYPES

#: Increased when released code cannot read new files; ``load_model`` keeps the readers of released
#: formats, and the tests keep a file of each.
FORMAT_VERSION = 1

# Types that a model file may hold, beside plain data and scikit-learn's types in ``sklearn_types``.
ALLOWED_TYPES = types() | {
    "kernelatoms.codec.models.codec_model.CodecModel",
    "kernelatoms.learning.moments.Moments",
    "kernelatoms.learning.state.LearnerState",
    "numpy.random.mtrand.RandomState",
    "numpy.dtype",  # SimpleImputer keeps the dtype that it was fitted with
    *(f"{kind.__module__}.{kind.__qualname__}" for kind in (*OWN_TYPES, *PROJECTIONS.values())),
}

# The skops nodes that build them; all others are objects with attributes.
_LOADERS = {"numpy.dtype": "DTypeNode", "numpy.random.mtrand.RandomState": "RandomStateNode"}


class ModelFileError(ValueError):
    """A file is no model file, or must not be opened; the message says why."""


def save_model(model: Any, path: Any, record: ModelRecord | None = None) -> Path:
    """Write a fitted model to a file, or leave the file that was there as it was.

    Parameters
    ----------
    model : estimator
        A fitted estimator of the library, or a pipeline of the library's and scikit-learn's. It
        may hold a kernel of your own, a class or function of a module: to load the file, this
        module must be installed and the type named in ``load_model(path, trusted=...)``.
    path : str or path
        The file; its folder must exist.
    record : ModelRecord, optional
        How the model was made.

    Returns
    -------
    Path
        The file written.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from kernelatoms import KSVD, load_model, save_model
    >>> X = np.random.default_rng(0).normal(size=(100, 8))
    >>> ksvd = KSVD(n_atoms=16, n_nonzero_coefs=2, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = save_model(ksvd, f"{folder}/ksvd.skops")
    ...     again, record = load_model(path)
    >>> bool((again.transform(X) != ksvd.transform(X)).nnz == 0)
    True
    """
    skops_io = load_extra("skops.io", "save_model")

    check_is_fitted(model)
    model = on_cpu(model)  # the file does not depend on the device of the model
    record = record or ModelRecord()
    check_model(model)
    _check_record_fits(model, record)
    path = check_target(path)
    try:
        with _without_callbacks(model):
            written = skops_io.dumps(model)
        with zipfile.ZipFile(io.BytesIO(written)) as archive:
            unpacked = unpack(archive)
        foreign = _foreign_types(unpacked)
    except Exception as error:
        raise TypeError(
            f"the model cannot be written to a file ({error}); estimators of kernelatoms and "
            "scikit-learn with plain parameters can."
        ) from error
    missing = [name for name in foreign if not _is_importable(name)]
    if missing:
        raise TypeError(
            f"the model holds {_enumerate(missing)}, which model files cannot hold. Use plain "
            "parameters and kernels by name, or a class or function at the top level of a module "
            "(not of a script), which can be imported."
        )
    plain = json.loads(json.dumps(asdict(record), default=_plain))
    header = {"format_version": FORMAT_VERSION, "members": unpacked.digests, "record": plain}
    header["digest"] = _digest_of(header)
    text = json.dumps(header, indent=1, sort_keys=True).encode()
    return write_whole(path, pack(unpacked, text))


@contextmanager
def _without_callbacks(model: Any) -> Iterator[None]:
    """Take the callbacks of ``fit`` off a model, and what it is made of, for a while."""
    parts = [model, *model.get_params(deep=True).values()]
    taken = []
    for part in parts:
        if isinstance(part, BaseEstimator) and "_skl_callbacks" in vars(part):
            taken.append((part, vars(part).pop("_skl_callbacks")))
    try:
        yield
    finally:
        for part, given in taken:
            vars(part)["_skl_callbacks"] = given


def load_model(
    path: Any, *, trusted: Sequence[str] = (), max_size: int | None = None
) -> tuple[Any, ModelRecord]:
    """Read a model file.

    Parameters
    ----------
    path : str or path
        A file that ``save_model`` or ``kernelatoms fit`` wrote.
    trusted : sequence of str
        Further types that the file may hold, each "module.Class" or "module:Class": your own
        kernels, whose module is imported and runs its code; estimators of scikit-learn, such as
        trees, whose attributes cannot be checked.
    max_size : int, optional
        The most bytes that the file may become when it is unpacked. The default is 256 MiB, or
        20 times its own size if that is more.

    Returns
    -------
    model : estimator
        The saved model, except that ``n_jobs`` and ``memory``, the reader's choice, are None.
    record : ModelRecord
        How it was made.

    Raises
    ------
    ModelFileError
        If it is no model file, is damaged, was changed after it was written, has a newer format, or
        holds no fitted model, attributes that contradict each other, or types not allowed.

    Examples
    --------
    See ``save_model``.
    """
    skops_io = load_extra("skops.io", "load_model")

    allowed = _check_trusted(trusted)
    with _opened(path, max_size) as archive:
        header = _read_header(path, archive)
        record = _record_of(header)
        unpacked = _unpack(archive, header)
        held = _foreign_types(unpacked)
        foreign = [name for name in held if name not in allowed]
        if foreign:
            raise ModelFileError(
                f"{path} holds {_enumerate(foreign)}; it was not opened, since such objects can "
                "run foreign code, or pass unchecked numbers to compiled code. If you know them "
                f"and who made the file, allow them: trusted={foreign}."
            )
        for name in held:
            _import_trusted(path, name)
        model = skops_io.loads(unpacked.stored, trusted=sorted({*ALLOWED_TYPES, *held}))
        forget_machine(model)
        check_model(model, reading=True, trusted=allowed)
        _check_record_fits(model, record)
    return model, record


def read_record(path: Any, max_size: int | None = None) -> ModelRecord:
    """Return the record of a model file without building the model."""
    with _opened(path, max_size) as archive:
        return _record_of(_read_header(path, archive))


def inspect_model(path: Any, max_size: int | None = None) -> tuple[ModelRecord, int, list[str]]:
    """Return record, format version, and the types ("module.Class") to trust to load the model."""
    with _opened(path, max_size) as archive:
        header = _read_header(path, archive)
        foreign = _foreign_types(_unpack(archive, header))
        return _record_of(header), int(header["format_version"]), foreign


@contextmanager
def _opened(path: Any, max_size: int | None = None) -> Iterator[zipfile.ZipFile]:
    """Open an archive; while it is open, every exception becomes a ``ModelFileError``."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no model file {path}.")
    with path.open("rb") as file:
        try:
            archive = zipfile.ZipFile(file)
        except Exception as error:
            raise ModelFileError(
                f"{path} is no kernelatoms model file, or a damaged one ({error}); models are "
                "written by 'kernelatoms fit' or save_model."
            ) from error
        try:
            with archive:
                check_bounds(archive, path.stat().st_size, max_size)
                yield archive
        except ModelFileError:
            raise
        except TooLargeError as error:
            raise ModelFileError(f"{path} was not opened: {error}.") from error
        except Exception as error:
            # Broken archives make zipfile, json, numpy and skops raise exceptions of all kinds.
            raise ModelFileError(
                f"{path} is damaged: {_in_words(error)}. Fit the model again, or get another copy "
                "of the file."
            ) from error


def _in_words(error: Exception) -> str:
    text = " ".join(str(error).split()).rstrip(".")
    plain = isinstance(error, ValueError | TypeError) and bool(text)
    return text if plain else f"{type(error).__name__}{': ' * bool(text)}{text}"


def _read_header(path: Any, archive: zipfile.ZipFile) -> dict[str, Any]:
    if HEADER not in archive.namelist():
        raise ModelFileError(
            f"{path} is an archive, but no kernelatoms model file: it lacks {HEADER}. Models are "
            "written by 'kernelatoms fit' or save_model."
        )
    header = json.loads(read_text(archive, HEADER))
    if not isinstance(header, dict):
        raise ValueError(f"its {HEADER} is no dictionary")
    version = header.get("format_version")
    if type(version) is not int or not 1 <= version <= FORMAT_VERSION:
        raise ModelFileError(
            f"{path} has model format {version!r}; this kernelatoms ({__version__}) reads up to "
            f"{FORMAT_VERSION}. Install a newer kernelatoms to open it."
        )
    if header.get("digest") != _digest_of(header):
        raise ValueError(f"its {HEADER} was changed after it was written")
    return header


def _record_of(header: dict[str, Any]) -> ModelRecord:
    record = header.get("record")
    if not isinstance(record, dict):
        raise ValueError("its record is missing")
    known = {entry.name for entry in fields(ModelRecord)} & record.keys()
    return ModelRecord(**{"made_with": {}, **{name: record[name] for name in known}})


def _unpack(archive: zipfile.ZipFile, header: dict[str, Any]) -> Unpacked:
    """Return the members; refuse any that differ from those that were written."""
    unpacked, written = unpack(archive), header["members"]
    if written != unpacked.digests:
        names = sorted({*written, *unpacked.digests})
        other = next(n for n in names if written.get(n) != unpacked.digests.get(n))
        raise ValueError(f"its member {other!r} was changed after it was written")
    return unpacked


def _foreign_types(unpacked: Unpacked) -> list[str]:
    """Return the types of a schema that must be trusted; refuse a schema that skops cannot walk."""
    skops_io = load_extra("skops.io", "inspect_model")

    schema = json.loads(unpacked.schema)
    described = outline(schema)
    members = set(unpacked.digests) - {SCHEMA}
    if described.files != members:
        odd = sorted(described.files ^ members)[0]
        what = "is missing" if odd in described.files else "belongs to no object"
        raise ValueError(f"its member {odd!r} {what}")
    check_arrays(unpacked.stored, set(described.arrays))
    check_weights(schema, unpacked.sizes)
    for name, loader in sorted(described.loaders):
        if name in ALLOWED_TYPES and loader != _LOADERS.get(name, "ObjectNode"):
            raise ValueError(f"it describes a {name} as if it were another object, by {loader}")
    untrusted = skops_io.get_untrusted_types(data=unpacked.stored)
    return sorted({*untrusted, *described.suspicious} - ALLOWED_TYPES)


def _check_record_fits(model: Any, record: ModelRecord) -> None:
    """Refuse a record of other features than the model's."""
    n_features = getattr(model, "n_features_in_", None)
    if n_features is None:
        return
    if record.columns is not None and len(record.columns) != n_features:
        raise ValueError(
            f"record: columns must name each of the model's {n_features} features, got "
            f"{len(record.columns)} names."
        )
    if record.image_shape is not None and math.prod(record.image_shape) != n_features:
        raise ValueError(
            f"record: image_shape={record.image_shape} must have one pixel for each of the "
            f"model's {n_features} features."
        )


def _digest_of(header: dict[str, Any]) -> str:
    """Return the SHA-256 of a header without its digest."""
    content = {key: value for key, value in header.items() if key != "digest"}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _import_trusted(path: Any, name: str) -> None:
    """Import a type that the file needs and the user trusts."""
    module, _, attribute = name.rpartition(".")
    try:
        getattr(importlib.import_module(module), attribute)
    except Exception as error:
        # A module of the user's own may raise anything.
        raise ModelFileError(
            f"{path} needs {name!r}, which cannot be imported ({type(error).__name__}: {error}); "
            "its module must be installed or on Python's path."
        ) from error


def _is_importable(name: str) -> bool:
    """Tell whether whoever loads the file can import a foreign type."""
    module, _, attribute = name.rpartition(".")
    if module.partition(".")[0] in ("__main__", "kernelatoms"):
        return False
    try:
        return hasattr(importlib.import_module(module), attribute)
    except ImportError:
        return False


def _check_trusted(trusted: Sequence[str]) -> set[str]:
    """Return names of types as skops writes them."""
    if isinstance(trusted, str) or not all(isinstance(name, str) for name in trusted):
        raise TypeError(
            f"trusted must be a list of names such as ['module.Class'], got {trusted!r}."
        )
    return {name.replace(":", ".") for name in trusted}


def _plain(value: Any) -> Any:
    """Return numbers and arrays as JSON knows them."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"record must hold plain values, got {value!r}.")


def _enumerate(names: Sequence[str]) -> str:
    return f"the type{'s' if len(names) > 1 else ''} {shortened(names, 5)}"
