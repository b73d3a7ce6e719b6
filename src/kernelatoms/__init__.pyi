# Written by tests/house/public_stub.py.

from kernelatoms import codec as codec
from kernelatoms import coding as coding
from kernelatoms import datasets as datasets
from kernelatoms import files as files
from kernelatoms import report as report
from kernelatoms import similarity as similarity
from kernelatoms.codec import compress as compress
from kernelatoms.codec import decompress as decompress
from kernelatoms.codec import inspect_compressed as inspect_compressed
from kernelatoms.codec.estimator import KernelCodec as KernelCodec
from kernelatoms.engine.cpu.threads import n_threads as n_threads
from kernelatoms.estimators.classifiers.class_dictionaries import (
    ClassDictionaryClassifier as ClassDictionaryClassifier,
)
from kernelatoms.estimators.classifiers.collaborative import CRCClassifier as CRCClassifier
from kernelatoms.estimators.classifiers.dksvd import DKSVDClassifier as DKSVDClassifier
from kernelatoms.estimators.classifiers.dksvd import LCKSVDClassifier as LCKSVDClassifier
from kernelatoms.estimators.classifiers.fddl import FDDLClassifier as FDDLClassifier
from kernelatoms.estimators.classifiers.ksad import KSADClassifier as KSADClassifier
from kernelatoms.estimators.classifiers.lkdl import make_lkdl as make_lkdl
from kernelatoms.estimators.classifiers.sparse_representation import SRCClassifier as SRCClassifier
from kernelatoms.estimators.coding.decode import decode as decode
from kernelatoms.estimators.coding.denoising import denoise_image as denoise_image
from kernelatoms.estimators.coding.denoising import denoise_rows as denoise_rows
from kernelatoms.estimators.coding.encode import lasso_path as lasso_path
from kernelatoms.estimators.coding.encode import sparse_encode as sparse_encode
from kernelatoms.estimators.coding.noise import estimate_sigma as estimate_sigma
from kernelatoms.estimators.coding.residual_norms import residual_norms as residual_norms
from kernelatoms.estimators.coding.sparse_coder import SparseCoder as SparseCoder
from kernelatoms.estimators.coding.stored_codes import StoredCodes as StoredCodes
from kernelatoms.estimators.coding.stored_codes import store_codes as store_codes
from kernelatoms.estimators.devices.conversion import to_device as to_device
from kernelatoms.estimators.devices.use_device import use_device as use_device
from kernelatoms.estimators.inspection.atom_numbers import AtomNumbers as AtomNumbers
from kernelatoms.estimators.inspection.atom_numbers import atom_numbers as atom_numbers
from kernelatoms.estimators.inspection.atom_preimages import atom_preimages as atom_preimages
from kernelatoms.estimators.inspection.explanation import Explanation as Explanation
from kernelatoms.estimators.inspection.explanation import explain as explain
from kernelatoms.estimators.inspection.sizes import Sizes as Sizes
from kernelatoms.estimators.inspection.sizes import choose_sizes as choose_sizes
from kernelatoms.estimators.learners.kernel import KernelKSVD as KernelKSVD
from kernelatoms.estimators.learners.kernel import KernelMOD as KernelMOD
from kernelatoms.estimators.learners.ksad import KSAD as KSAD
from kernelatoms.estimators.learners.kscdl import KSCDL as KSCDL
from kernelatoms.estimators.learners.linear import KSVD as KSVD
from kernelatoms.estimators.learners.linear import MOD as MOD
from kernelatoms.estimators.maps.imputers import NearestImputer as NearestImputer
from kernelatoms.estimators.maps.imputers import TrainingImputer as TrainingImputer
from kernelatoms.estimators.maps.linearizer import KernelLinearizer as KernelLinearizer
from kernelatoms.estimators.maps.linearizer import nystrom_error as nystrom_error
from kernelatoms.estimators.maps.preimage import preimage as preimage
from kernelatoms.estimators.maps.row_normalizer import RowNormalizer as RowNormalizer
from kernelatoms.estimators.presets import PRESETS as PRESETS
from kernelatoms.estimators.presets import Preset as Preset
from kernelatoms.estimators.presets import default_preset as default_preset
from kernelatoms.estimators.presets import make_preset as make_preset
from kernelatoms.files.checkpoints import Checkpoint as Checkpoint
from kernelatoms.files.models.model_file import load_model as load_model
from kernelatoms.files.models.model_file import save_model as save_model
from kernelatoms.rows.opening import open_rows as open_rows

__version__: str
