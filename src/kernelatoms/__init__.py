"""Sparse representations in kernel feature spaces.

Learn a dictionary of atoms, code signals sparsely over it, classify with the codes; under a
kernel through virtual samples. The rooms of the house, from the bottom up: ``engine``,
``similarity``, ``space``, ``pursuit``, ``learning``, ``codec``, ``estimators``, ``files``,
``report``, ``papers``, ``cli``, and ``datasets``, which stands alone. See ARCHITECTURE.md.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Names load when they are first used (PEP 562): importing the package stays cheap.
_HOME_OF = {
    "AtomNumbers": "estimators.atom_numbers",
    "CRCClassifier": "estimators.collaborative",
    "CompressedInfo": "files.inspecting",
    "CompressionSummary": "files.compressed",
    "ClassDictionaryClassifier": "estimators.class_dictionaries",
    "DKSVDClassifier": "estimators.label_dictionaries",
    "Explanation": "estimators.explanation",
    "FDDLClassifier": "estimators.fddl",
    "FillFromNearest": "estimators.filling",
    "FillToLearn": "estimators.filling",
    "KSAD": "estimators.ksad",
    "KSADClassifier": "estimators.ksad_classifier",
    "KSCDL": "estimators.kscdl",
    "KSVD": "estimators.learners",
    "KernelCodec": "estimators.codec",
    "KernelKSVD": "estimators.kernel_learners",
    "KernelLinearizer": "estimators.linearizer",
    "KernelMOD": "estimators.kernel_learners",
    "LCKSVDClassifier": "estimators.label_dictionaries",
    "MOD": "estimators.learners",
    "PRESETS": "estimators.presets",
    "Preset": "estimators.presets",
    "SRCClassifier": "estimators.collaborative",
    "Sizes": "estimators.sizes",
    "SparseCoder": "estimators.sparse_coder",
    "StoredCodes": "estimators.stored_codes",
    "UnitRows": "estimators.unit_rows",
    "atom_numbers": "estimators.atom_numbers",
    "atom_preimages": "estimators.atom_preimages",
    "choose_sizes": "estimators.sizes",
    "compress": "files.compressed",
    "decode": "estimators.decoding",
    "decompress": "files.compressed",
    "default_preset": "estimators.presets",
    "denoise_image": "estimators.denoising",
    "denoise_rows": "estimators.denoising",
    "estimate_sigma": "estimators.noise",
    "explain": "estimators.explanation",
    "inspect_compressed": "files.inspecting",
    "lasso_path": "estimators.encode",
    "load_model": "files.models",
    "make_lkdl": "estimators.lkdl",
    "make_preset": "estimators.presets",
    "n_threads": "engine.cpu.threads",
    "nystrom_error": "estimators.linearizer",
    "preimage": "estimators.preimages",
    "residual_norms": "estimators.residuals",
    "save_model": "files.models",
    "sparse_encode": "estimators.encode",
    "store_codes": "estimators.stored_codes",
    "to_device": "estimators.devices",
    "use_device": "estimators.device_choice",
}
_ROOMS = ("datasets", "files", "pursuit", "report", "similarity")

__all__ = [
    "KSAD",
    "KSCDL",
    "KSVD",
    "MOD",
    "PRESETS",
    "AtomNumbers",
    "CRCClassifier",
    "ClassDictionaryClassifier",
    "CompressedInfo",
    "CompressionSummary",
    "DKSVDClassifier",
    "Explanation",
    "FDDLClassifier",
    "FillFromNearest",
    "FillToLearn",
    "KSADClassifier",
    "KernelCodec",
    "KernelKSVD",
    "KernelLinearizer",
    "KernelMOD",
    "LCKSVDClassifier",
    "Preset",
    "SRCClassifier",
    "Sizes",
    "SparseCoder",
    "StoredCodes",
    "UnitRows",
    "__version__",
    "atom_numbers",
    "atom_preimages",
    "choose_sizes",
    "compress",
    "decode",
    "decompress",
    "default_preset",
    "denoise_image",
    "denoise_rows",
    "estimate_sigma",
    "explain",
    "inspect_compressed",
    "lasso_path",
    "load_model",
    "make_lkdl",
    "make_preset",
    "n_threads",
    "nystrom_error",
    "preimage",
    "residual_norms",
    "save_model",
    "sparse_encode",
    "store_codes",
    "to_device",
    "use_device",
]

if TYPE_CHECKING:
    from kernelatoms.engine.cpu.threads import n_threads
    from kernelatoms.estimators.atom_numbers import AtomNumbers, atom_numbers
    from kernelatoms.estimators.atom_preimages import atom_preimages
    from kernelatoms.estimators.class_dictionaries import ClassDictionaryClassifier
    from kernelatoms.estimators.codec import KernelCodec
    from kernelatoms.estimators.collaborative import CRCClassifier, SRCClassifier
    from kernelatoms.estimators.decoding import decode
    from kernelatoms.estimators.denoising import denoise_image, denoise_rows
    from kernelatoms.estimators.device_choice import use_device
    from kernelatoms.estimators.devices import to_device
    from kernelatoms.estimators.encode import lasso_path, sparse_encode
    from kernelatoms.estimators.explanation import Explanation, explain
    from kernelatoms.estimators.fddl import FDDLClassifier
    from kernelatoms.estimators.filling import FillFromNearest, FillToLearn
    from kernelatoms.estimators.kernel_learners import KernelKSVD, KernelMOD
    from kernelatoms.estimators.ksad import KSAD
    from kernelatoms.estimators.ksad_classifier import KSADClassifier
    from kernelatoms.estimators.kscdl import KSCDL
    from kernelatoms.estimators.label_dictionaries import DKSVDClassifier, LCKSVDClassifier
    from kernelatoms.estimators.learners import KSVD, MOD
    from kernelatoms.estimators.linearizer import KernelLinearizer, nystrom_error
    from kernelatoms.estimators.lkdl import make_lkdl
    from kernelatoms.estimators.noise import estimate_sigma
    from kernelatoms.estimators.preimages import preimage
    from kernelatoms.estimators.presets import (
        PRESETS,
        Preset,
        default_preset,
        make_preset,
    )
    from kernelatoms.estimators.residuals import residual_norms
    from kernelatoms.estimators.sizes import Sizes, choose_sizes
    from kernelatoms.estimators.sparse_coder import SparseCoder
    from kernelatoms.estimators.stored_codes import StoredCodes, store_codes
    from kernelatoms.estimators.unit_rows import UnitRows
    from kernelatoms.files.compressed import CompressionSummary, compress, decompress
    from kernelatoms.files.inspecting import CompressedInfo, inspect_compressed
    from kernelatoms.files.models import load_model, save_model


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        value = getattr(import_module(f"kernelatoms.{_HOME_OF[name]}"), name)
    elif name in _ROOMS:
        value = import_module(f"kernelatoms.{name}")
    else:
        raise AttributeError(f"module 'kernelatoms' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME_OF, *_ROOMS})
