"""Sparse representations in kernel feature spaces.

Learn a dictionary of atoms, code signals sparsely over it, classify, denoise, compress and explain
with the codes; under a kernel or without one. ``ARCHITECTURE.md`` shows how the code is organised.
"""

from kernelatoms.estimators.registry import ESTIMATORS
from kernelatoms.lazy import lazy_names

__version__ = "0.1.0"

# Names load when they are first used (PEP 562): importing the package stays cheap. Their types are
# in ``__init__.pyi``, which ``python tests/house/public_stub.py`` writes.
_HOMES = {name: entry.module for name, entry in ESTIMATORS.items()} | {
    "AtomNumbers": "estimators.inspection.atom_numbers",
    "Checkpoint": "files.checkpoints",
    "Explanation": "estimators.inspection.explanation",
    "PRESETS": "estimators.presets",
    "Preset": "estimators.presets",
    "Sizes": "estimators.inspection.sizes",
    "StoredCodes": "estimators.coding.stored_codes",
    "atom_numbers": "estimators.inspection.atom_numbers",
    "atom_preimages": "estimators.inspection.atom_preimages",
    "choose_sizes": "estimators.inspection.sizes",
    "compress": "codec",
    "decode": "estimators.coding.decode",
    "decompress": "codec",
    "default_preset": "estimators.presets",
    "denoise_image": "estimators.coding.denoising",
    "denoise_rows": "estimators.coding.denoising",
    "estimate_sigma": "estimators.coding.noise",
    "explain": "estimators.inspection.explanation",
    "inspect_compressed": "codec",
    "lasso_path": "estimators.coding.encode",
    "load_model": "files.models.model_file",
    "make_lkdl": "estimators.classifiers.lkdl",
    "make_preset": "estimators.presets",
    "n_threads": "engine.cpu.threads",
    "nystrom_error": "estimators.maps.linearizer",
    "open_rows": "rows.opening",
    "preimage": "estimators.maps.preimage",
    "residual_norms": "estimators.coding.residual_norms",
    "save_model": "files.models.model_file",
    "sparse_encode": "estimators.coding.encode",
    "store_codes": "estimators.coding.stored_codes",
    "to_device": "estimators.devices.conversion",
    "use_device": "estimators.devices.use_device",
}
_ROOMS = ("codec", "coding", "datasets", "files", "report", "similarity")

__all__ = ["__version__", *_HOMES]


__getattr__, __dir__ = lazy_names("kernelatoms", _HOMES, _ROOMS)
