"""Model files: a fitted model, and the record of how it came about.

A model file is a skops archive (arrays and the names of known types, no pickle, so that opening
one runs no foreign code) with one more member, ``kernelatoms.json``: the record. It can be read
without building the model, and its format version is looked at before anything else.
"""

import importlib
import io
import json
import platform
import zipfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn
from sklearn.utils.validation import check_is_fitted

from kernelatoms import __version__
from kernelatoms.files.writing import check_target, write_whole
from kernelatoms.similarity import OWN_TYPES

#: Raised when a file of this version can no longer be read by the last release's code; readers
#: of old versions stay in ``load_model``, with a file of each version kept in the tests.
FORMAT_VERSION = 1

_HEADER = "kernelatoms.json"

# What a model file may hold beside the plain data and scikit-learn types that skops trusts.
ALLOWED_TYPES = frozenset(
    {
        "kernelatoms.estimators.class_dictionaries.ClassDictionaryClassifier",
        "kernelatoms.estimators.kernel_learners.KernelKSVD",
        "kernelatoms.estimators.kernel_learners.KernelMOD",
        "kernelatoms.estimators.kscdl.KSCDL",
        "kernelatoms.estimators.learners.KSVD",
        "kernelatoms.estimators.learners.MOD",
        "kernelatoms.estimators.linearizer.KernelLinearizer",
        "kernelatoms.learning.moments.Moments",
        "kernelatoms.learning.state.LearnerState",
        "numpy.random.mtrand.RandomState",
        "numpy.dtype",  # SimpleImputer keeps the dtype that it was fitted with
    }
) | {f"{kind.__module__}.{kind.__qualname__}" for kind in OWN_TYPES}


class ModelFileError(ValueError):
    """A file is no model file, or not one that may be opened; the message says why."""


@dataclass(frozen=True)
class ModelRecord:
    """How a model came about: kept in its file, shown by ``kernelatoms info``.

    Parameters
    ----------
    name : str
        The preset or estimator that was asked for.
    columns : list of str or None
        The features' names, in the order in which the model takes them.
    label : str or None
        The name of the label column.
    left_out : dict of str to str
        Columns of the training file that the model does not use, each with the reason.
    image_shape : (height, width) or None
        The shape of a row, where rows are images.
    data : dict
        The training data: file name, rows, features, missing values, fingerprint (SHA-256).
    fit : dict
        The fit report: seconds, passes, objective, scores, warnings.
    made_with : dict
        Versions of Python and the libraries, platform, date.
    """

    name: str = ""
    columns: list[str] | None = None
    label: str | None = None
    left_out: dict[str, str] = field(default_factory=dict)
    image_shape: tuple[int, int] | None = None
    data: dict[str, Any] = field(default_factory=dict)
    fit: dict[str, Any] = field(default_factory=dict)
    made_with: dict[str, str] = field(default_factory=lambda: _made_with())


def save_model(model: Any, path: Any, record: ModelRecord | None = None) -> Path:
    """Write a fitted model to a file, or leave the file that was there as it was.

    Parameters
    ----------
    model : estimator
        A fitted estimator of the library, or a pipeline of scikit-learn's and the library's. It
        may hold a kernel of your own, a class or function of a module; whoever loads the file
        must then have this module, and name the type in ``load_model(path, trusted=...)``.
    path : str or path
        The file; its folder must exist.
    record : ModelRecord, optional
        How the model came about.

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
    import skops.io

    check_is_fitted(model)
    path = check_target(path)
    try:
        archive = skops.io.dumps(model, compression=zipfile.ZIP_DEFLATED, compresslevel=1)
        foreign = _foreign_types(archive)
    except Exception as error:
        raise TypeError(
            f"the model cannot be written to a file ({error}); estimators of kernelatoms and "
            "scikit-learn with plain parameters can."
        ) from error
    lost = [name for name in foreign if not _can_be_found_again(name)]
    if lost:
        raise TypeError(
            f"the model holds {_enumerate(lost)}, which model files may not. Use plain parameters "
            "and kernels by name, or a class or function at the top of a module (not of a script), "
            "which an import finds again."
        )
    data = io.BytesIO(archive)
    header = {"format_version": FORMAT_VERSION, "record": asdict(record or ModelRecord())}
    with zipfile.ZipFile(data, "a", zipfile.ZIP_DEFLATED) as file:
        file.writestr(_HEADER, json.dumps(header, indent=1, sort_keys=True, default=_plain))
    return write_whole(path, data.getvalue())


def load_model(path: Any, *, trusted: Sequence[str] = ()) -> tuple[Any, ModelRecord]:
    """Read a model file.

    Parameters
    ----------
    path : str or path
        A file that ``save_model`` or ``kernelatoms fit`` wrote.
    trusted : sequence of str
        Types beside the library's that the file may hold, "module.Class" or "module:Class"
        each: kernels of your own. Building them imports the module and runs its code.

    Returns
    -------
    model : estimator
        As it was when it was saved.
    record : ModelRecord
        How it came about.

    Raises
    ------
    ModelFileError
        The file is damaged, of a newer format, no model file at all, or holds types that a model
        file may not hold; the message says which.

    Examples
    --------
    See ``save_model``.
    """
    import skops.io

    allowed = _check_trusted(trusted)
    record = read_record(path)
    data = Path(path).read_bytes()
    try:
        held = _foreign_types(data)
    except Exception as error:
        raise _damaged(path, error) from error
    foreign = [name for name in held if name not in allowed]
    if foreign:
        raise ModelFileError(
            f"{path} holds {_enumerate(foreign)}; it was not opened, since building such objects "
            "can run foreign code. If you know them and who made the file, name them: "
            f"load_model(path, trusted={foreign}), or on the command line "
            f"{' '.join('--trust ' + _with_colon(name) for name in foreign)}."
        )
    for name in held:
        _import_trusted(path, name)
    try:
        return skops.io.loads(data, trusted=sorted({*ALLOWED_TYPES, *held})), record
    except Exception as error:
        # skops lets through what broken archives make its readers raise: any exception.
        raise _damaged(path, error) from error


def read_record(path: Any) -> ModelRecord:
    """Return the record of a model file without building the model."""
    if not Path(path).is_file():
        raise FileNotFoundError(f"there is no model file {path}.")
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            text = archive.read(_HEADER) if _HEADER in names else b""
        header = json.loads(text) if text else {}
        version = header.get("format_version")
    except PermissionError:
        raise
    except Exception as error:
        # Broken archives make zipfile raise exceptions of all kinds.
        raise ModelFileError(
            f"{path} is no kernelatoms model file, or a damaged one ({error}); models are written "
            "by 'kernelatoms fit' or save_model."
        ) from error
    if not header:
        raise ModelFileError(
            f"{path} is an archive, but no kernelatoms model file: it lacks {_HEADER}. Models are "
            "written by 'kernelatoms fit' or save_model."
        )
    if not isinstance(version, int) or version > FORMAT_VERSION:
        raise ModelFileError(
            f"{path} has model format {version!r}; this kernelatoms ({__version__}) reads up to "
            f"{FORMAT_VERSION}. Install a newer kernelatoms to open it."
        )
    known = {entry.name for entry in fields(ModelRecord)}
    record = header.get("record")
    if not isinstance(record, dict):
        raise ModelFileError(f"{path} is damaged: its record is missing.")
    content = {key: value for key, value in record.items() if key in known}
    if content.get("image_shape") is not None:
        content["image_shape"] = tuple(content["image_shape"])
    return ModelRecord(**content)


def foreign_types(path: Any) -> list[str]:
    """Return the types, "module.Class" each, that must be trusted to load a model file."""
    read_record(path)
    try:
        return _foreign_types(Path(path).read_bytes())
    except Exception as error:
        raise _damaged(path, error) from error


def _damaged(path: Any, error: Exception) -> ModelFileError:
    return ModelFileError(
        f"{path} is damaged: its model cannot be read ({error}). Fit it again, or fetch the file "
        "again from where it came."
    )


def _import_trusted(path: Any, name: str) -> None:
    """Import what the file needs and the user trusts, or say what is missing."""
    module, _, attribute = name.rpartition(".")
    try:
        getattr(importlib.import_module(module), attribute)
    except Exception as error:
        # A module of the user's own may raise anything.
        raise ModelFileError(
            f"{path} needs {name!r}, which cannot be imported ({type(error).__name__}: {error}); "
            "its module must be installed or in the folder where Python looks."
        ) from error


def _can_be_found_again(name: str) -> bool:
    """Tell whether a foreign type will be there, by import, for whoever loads the file."""
    module, _, attribute = name.rpartition(".")
    if module.partition(".")[0] in ("__main__", "kernelatoms"):
        return False
    try:
        return hasattr(importlib.import_module(module), attribute)
    except ImportError:
        return False


def _with_colon(name: str) -> str:
    module, _, attribute = name.rpartition(".")
    return f"{module}:{attribute}"


def _foreign_types(archive: bytes) -> list[str]:
    import skops.io

    return sorted(set(skops.io.get_untrusted_types(data=archive)) - ALLOWED_TYPES)


def _check_trusted(trusted: Sequence[str]) -> set[str]:
    """Return names of types as skops writes them."""
    if isinstance(trusted, str) or not all(isinstance(name, str) for name in trusted):
        raise TypeError(
            f"trusted must be a list of names such as ['module.Class'], got {trusted!r}."
        )
    return {name.replace(":", ".") for name in trusted}


def _made_with() -> dict[str, str]:
    return {
        "kernelatoms": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "platform": f"{platform.system()} {platform.machine()}",
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    }


def _plain(value: Any) -> Any:
    """Return numbers and arrays as JSON knows them."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"record must hold plain values, got {value!r}.")


def _enumerate(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:5])
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return f"the type{'s' if len(names) > 1 else ''} {shown}{more}"
