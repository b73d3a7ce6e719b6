"""Predictors with atoms: a row is a mean plus a few atoms, or the pre-image of a few.

Atoms are stored as integers of a step. ``dictionary_model`` makes a model of learned atoms; rows
are coded over the rounded atoms.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.codec.limits import CodecError
from kernelatoms.codec.loops import combinations, entropy
from kernelatoms.codec.loops.cells import step_of
from kernelatoms.codec.models.codec_model import CodecModel, ReadyModel
from kernelatoms.codec.models.quantised import QuantisedBlock
from kernelatoms.coding import Lasso
from kernelatoms.coding.omp import omp
from kernelatoms.coding.problem import KernelProblem, LinearProblem
from kernelatoms.features.expansion import Expansion
from kernelatoms.similarity import RBFKernel

Array = NDArray[Any]

# Greedy codes stop at this share of a row's limit: rounding their coefficients takes the rest.
_SHARE = 0.6
# The step of the weights of a Gaussian expansion; rounds of its pre-image.
_WEIGHT_STEP = 1.0 / 128
_N_ROUNDS = 12
# The most atoms per value of a row; the most numbers in a dictionary.
MOST_TIMES, MOST_NUMBERS = 4, 1 << 22
_MOST_CODE = 16 * 1000


def dictionary_model(
    predictor: str,
    mean: Array,
    atoms: Array,
    error: float,
    *,
    slice_rows: int = 0,
    **settings: Any,
) -> CodecModel:
    """Return the model of a mean and atoms, rounded.

    Atoms have norms near 1. ``error`` is the relative error that rows may have; atoms have half of
    it. ``settings`` are further settings of the predictor.
    """
    m = len(mean)
    atom_code, mean_code = _code_of(0.5 * error * np.sqrt(12 / m)), 0
    largest = float(np.abs(mean).max(initial=0.0))
    if largest > 0:
        size = float(np.linalg.norm(mean / largest))
        mean_code = _code_of(0.1 * error * size * np.sqrt(12 / m), largest)
    steps = [step_of(code) for code in (mean_code, atom_code)]
    k = np.rint(np.concatenate([mean[None] / steps[0], atoms / steps[1]]))
    if not np.abs(k).max(initial=0) < 1 << 30 or k.size > MOST_NUMBERS:
        raise ValueError("atoms and mean do not fit their steps.")
    data = entropy.encode_integers(
        k.astype(np.int32), np.ones(k.shape, np.uint8), np.zeros(len(k), np.int32)
    )
    return CodecModel(
        predictor, m, slice_rows,
        settings={
            "n_atoms": len(atoms), "atom_code": atom_code, "mean_code": mean_code, **settings
        },
        arrays={"atoms": data},
    )  # fmt: skip


def atoms_of(model: CodecModel) -> tuple[Array, Array]:
    """Return a model's mean and atoms."""
    if isinstance(model, ReadyModel) and model.mean_and_atoms is not None:
        return model.mean_and_atoms
    data, settings = model.arrays["atoms"], model.settings
    shape = settings["n_atoms"] + 1, model.n_columns
    k = entropy.decode_integers(data, np.ones(shape, np.uint8), np.zeros(shape[0], np.int32))
    return k[0] * step_of(settings["mean_code"]), k[1:] * step_of(settings["atom_code"])


def check_dictionary(model: CodecModel) -> None:
    """Refuse an invalid dictionary of unknown origin."""
    settings, m = model.settings, model.n_columns
    n_atoms, *codes = (settings.get(name) for name in ("n_atoms", "atom_code", "mean_code"))
    if (
        type(n_atoms) is not int
        or not 0 < n_atoms <= MOST_TIMES * m
        or (n_atoms + 1) * m > MOST_NUMBERS
    ):
        raise CodecError(f"a dictionary cannot have {str(n_atoms)[:40]} atoms of {m} numbers.")
    if not all(type(code) is int and abs(code) <= _MOST_CODE for code in codes):
        raise CodecError("the steps of a dictionary are not integers.")
    data = model.arrays.get("atoms")
    if data is None or data.dtype != np.uint8 or data.ndim != 1:
        raise CodecError("the model has no atoms.")
    for name in ("gamma", "alpha") if model.predictor == "kscdl" else ():
        value = settings.get(name)
        if type(value) is not float or not 0 < value < 1e12:
            raise CodecError(f"a kernel dictionary needs {name} above 0, not {str(value)[:40]}.")


def code_dictionary(block: QuantisedBlock, model: CodecModel) -> None:
    """Code rows over atoms: over all of orthonormal ones, over few of others."""
    mean, atoms = atoms_of(model)
    mean = block.unit.of(mean)
    coefs = np.empty((0, len(atoms)))
    if not block.decoding:
        rows = np.where(block.coded == 1, block.x, np.nan) - mean
        coefs = _projected(rows, atoms) if model.predictor == "pca" else _greedy(block, rows, atoms)
        block.side = np.zeros(coefs.shape, np.int32)
    combinations.code_combinations(
        mean, atoms, np.empty((0, len(mean))), coefs, block.side, *block.arguments
    )


def code_kernel_dictionary(block: QuantisedBlock, model: CodecModel) -> None:
    """Code rows as multiples of pre-images of l1 codes under a Gaussian kernel."""
    mean, atoms = atoms_of(model)
    mean = block.unit.of(mean)
    gamma, alpha = model.settings["gamma"], model.settings["alpha"]
    norms = np.empty((0, 1))
    if not block.decoding:
        rows = _filled(np.where(block.coded == 1, block.x, np.nan) - mean)
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        units = rows / np.where(norms > 0, norms, 1)
        codes = Lasso(alpha, gap_tol=1e-4)(
            KernelProblem(units, Expansion(RBFKernel(gamma), atoms, None))
        )
        weights = np.rint(codes.to_dense() / _WEIGHT_STEP).astype(np.int32)
    else:
        weights = block.side[:, 1:]
    own = np.zeros((len(weights), len(mean)))
    weights = np.ascontiguousarray(weights)
    combinations.preimages(weights, _WEIGHT_STEP, atoms, gamma, _N_ROUNDS, own)
    if not block.decoding:
        # The best multiple: the norm, corrected for the error of the pre-image.
        norms = (rows * own).sum(axis=1, keepdims=True) / np.maximum(
            (own * own).sum(axis=1, keepdims=True), 1e-30
        )
    multiples = np.zeros((len(weights), 1), np.int32)
    if block.decoding:
        multiples[:] = block.side[:, :1]
    combinations.code_combinations(
        mean, np.empty((0, len(mean))), own, norms, multiples, *block.arguments
    )
    block.side = np.concatenate([multiples, weights], axis=1)


def n_side(model: CodecModel) -> int:
    """Return the number of side integers per row."""
    if model.predictor not in ("pca", "ksvd", "kscdl"):
        return 0
    return int(model.settings["n_atoms"]) + (model.predictor == "kscdl")


def _projected(rows: Array, atoms: Array) -> Array:
    return np.asarray(np.linalg.lstsq(atoms.T, _filled(rows).T, rcond=1e-9)[0].T)


def _greedy(block: QuantisedBlock, rows: Array, atoms: Array) -> Array:
    """Return greedy codes of rows (NaN where missing) to a share of their limits."""
    norms = np.linalg.norm(atoms, axis=1)
    seen = ~np.isnan(rows).all(axis=1) & np.nan_to_num(rows).any(axis=1)
    codes = np.zeros((len(rows), len(atoms)))
    if seen.any():
        # Under an absolute bound, the l2 error of uniform errors.
        n_seen = np.count_nonzero(~np.isnan(rows[seen]), axis=1)
        uniform = min(block.absolute, 1e300) * np.sqrt(n_seen / 3)
        stop = _SHARE * np.minimum(block.limits[seen], uniform)
        most = max(1, min(len(atoms), rows.shape[1] // 4))
        found = omp(LinearProblem(rows[seen], atoms / norms[:, None]), most,
                    max_residual=stop, absolute=True)  # fmt: skip
        codes[seen] = found.to_dense() / norms
    return codes


def _filled(rows: Array) -> Array:
    return np.nan_to_num(rows, nan=0.0)


def _code_of(step: float, unit: float = 1.0) -> int:
    """Return the code of the step nearest to ``step * unit``."""
    code = 16 * float(np.log2(step) + np.log2(unit))
    return round(min(max(code, -_MOST_CODE), _MOST_CODE))
