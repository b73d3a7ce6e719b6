"""All methods that store a table, our codec and the rivals: one run of each."""

import time
import warnings
from importlib.util import find_spec
from typing import Any

from kernelatoms import KernelCodec
from reproduction.codec.data import Table
from reproduction.codec.factors import smallest_pca, smallest_svd
from reproduction.codec.search import Found, smallest_stream
from reproduction.study import NotAvailable

OURS = "KernelCodec"
#: Our codec's models; the first chooses among the others.
MODELS = {
    OURS: "auto",
    **{
        f"{OURS}, {name}": name
        for name in ("lags", "columns", "interpolation", "pca", "ksvd", "kscdl", "exact")
    },
}
SZ3, ZFP, SPERR, SZ2 = "SZ3", "ZFP", "SPERR", "SZ2"
PCA, SVD = "PCA", "SVD + int8 + zstandard"
ROUNDED, ROUNDED_XZ = "rounding + zstandard", "rounding + xz"
#: Compressors and factorisations that people would pick instead.
RIVALS = (SZ3, ZFP, SPERR, SZ2, PCA, SVD)
#: Not on anybody's list: a grid for the values and a general-purpose compressor.
PLAIN = (ROUNDED, ROUNDED_XZ)

_PACKAGES = {SZ3: "pysz", ZFP: "zfpy", SPERR: "hdf5plugin", SZ2: "hdf5plugin"}
NOT_INSTALLED = "not installed"


def absent() -> dict[str, str]:
    """Return the rivals whose packages are not installed, and what their rows say."""
    return {r: NOT_INSTALLED for r, package in _PACKAGES.items() if find_spec(package) is None}


def run_rival(rival: str, table: Table, bound: float) -> dict[str, float | str]:
    """Return the smallest file of a rival that holds the bound; "met" is 0 where none does."""
    if rival in absent():
        raise NotAvailable(f"{rival} needs {_PACKAGES[rival]}: pip install 'kernelatoms[bench]'.")
    start = time.perf_counter()
    found: Found | None
    if rival in (PCA, SVD):
        found = (smallest_pca if rival == PCA else smallest_svd)(table, bound)
    else:
        found = smallest_stream(rival, table, bound)
    seconds = time.perf_counter() - start
    if found is None:
        return {"met": 0.0, "seconds": seconds}
    return {
        **measures_of(table, found.n_bytes, found.largest, found.mean),
        "setting": found.setting, "seconds": seconds,
    }  # fmt: skip


def run_ours(model: str, table: Table, bound: float) -> dict[str, float | str]:
    """Return what our codec stores and what comes back; "met" is 0 where a model does not fit."""
    codec: Any = KernelCodec(max_error=bound, model=model)
    start = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            codec.fit(table.values)
            fitted = time.perf_counter()
            data = codec.encode(table.values)
    except ValueError as error:
        return {"met": 0.0, "setting": str(error)}
    seconds = time.perf_counter() - fitted
    errors = table.row_errors(KernelCodec().decode(data))
    note = next((note for name, _, note in codec.trials_ if name == codec.model_.predictor), "")
    return {
        **measures_of(table, len(data), float(errors.max()), float(errors.mean())),
        "setting": ", ".join(word for word in (codec.model_.predictor, note) if word),
        "fit_seconds": fitted - start, "seconds": seconds,
    }  # fmt: skip


def measures_of(table: Table, n_bytes: int, largest: float, mean: float) -> dict[str, float | str]:
    """Return the numbers of a file: bits are a value of the table, missing ones included."""
    return {
        "met": 1.0, "bytes": float(n_bytes), "bits": 8 * n_bytes / table.values.size,
        "largest": largest, "mean": mean,
    }  # fmt: skip
