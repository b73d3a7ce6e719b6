"""Compressors of arrays in common use: SZ3, ZFP, SPERR, SZ2, rounding and zstandard.

A stream takes an array and a size of error and returns bytes and what they decode to. What "a size
of error" is differs (a bound on every value, a mean); it is searched for anyway.
"""

import io
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reproduction.codec.packing import THOROUGH, xz_bytes, zstd_bytes

Array = NDArray[Any]


class Stream(NamedTuple):
    """A compressor under one setting: ``code(array, size) -> (bytes, decoded)``.

    ``finish(array, size)`` returns the bytes where more effort makes the same file smaller.
    """

    name: str
    code: Callable[[Array, float], tuple[int, Array]]
    finish: Callable[[Array, float], int] | None = None


def streams(rival: str, n_axes: int) -> list[Stream]:
    """Return a rival under all of its settings worth trying for arrays of so many axes."""
    return list(_STREAMS[rival](n_axes))


# SZ3 ----------------------------------------------------------------------------------------------


def _sz3_settings(n_axes: int) -> Iterable[Stream]:
    def of(algorithm: str, **more: object) -> Stream:
        words = [f"{key} {value}" for key, value in more.items()]
        name = ", ".join([algorithm.lower(), *words])
        return Stream(name, lambda array, size: _sz3(array, size, algorithm, more))

    yield of("INTERP_LORENZO")
    yield of("LORENZO_REG", Regression="No")
    yield of("NOPRED")
    yield of("LORENZO_REG")
    yield of("LORENZO_REG", Lorenzo2ndOrder="Yes")
    yield of("LORENZO_REG", Lorenzo2ndOrder="Yes", Regression="No")
    yield of("LORENZO_REG", Lorenzo="No", Lorenzo2ndOrder="Yes", Regression="No")
    yield of("LORENZO_REG", Lorenzo="No")
    directions = (1, 1, 2, 6)[n_axes] if n_axes < 4 else 1
    for kind in ("LINEAR", "CUBIC"):
        for direction in range(directions):
            yield of(
                "INTERP",
                InterpolationAlgo=f"INTERP_ALGO_{kind}",
                InterpolationDirection=direction,
            )


def sz3_config(
    shape: tuple[int, ...], size: float, algorithm: str, more: Mapping[str, object]
) -> Any:
    """Return how SZ3 is to code an array within an absolute error; files alone say all of it."""
    from pysz import szConfig, szErrorBoundMode

    config = szConfig(shape)
    lines = [f"{key} = {value}" for key, value in more.items()]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "sz3.ini")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"[GlobalSettings]\nCmprAlgo = ALGO_{algorithm}\n[AlgoSettings]\n")
            file.write("\n".join(lines))
        config.loadcfg(path)
    config.errorBoundMode = szErrorBoundMode.ABS
    config.absErrorBound = size
    return config


def _sz3(
    array: Array, size: float, algorithm: str, more: Mapping[str, object]
) -> tuple[int, Array]:
    from pysz import sz

    data, _ = sz.compress(array, sz3_config(array.shape, size, algorithm, more))
    return data.nbytes, sz.decompress(data.copy(), array.dtype, array.shape)[0]


# ZFP ----------------------------------------------------------------------------------------------


def _zfp_settings(n_axes: int) -> Iterable[Stream]:
    yield Stream("fixed accuracy", _zfp_accuracy)
    yield Stream("fixed precision", _zfp_precision)


def _zfp_accuracy(array: Array, size: float) -> tuple[int, Array]:
    """Code within a tolerance. ZFP takes powers of 2 only; values are stretched to meet any."""
    import zfpy

    data = zfpy.compress_numpy(array / np.float32(size), tolerance=1.0, write_header=True)
    return len(data), zfpy.decompress_numpy(data) * np.float32(size)


def _zfp_precision(array: Array, size: float) -> tuple[int, Array]:
    """Code so many bit planes: about log2 of the largest value over the size."""
    import zfpy

    planes = int(np.clip(np.ceil(np.log2(np.abs(array).max() / size)), 1, 32))
    data = zfpy.compress_numpy(array, precision=planes, write_header=True)
    return len(data), zfpy.decompress_numpy(data)


# Through HDF5 -------------------------------------------------------------------------------------


def _sperr_settings(n_axes: int) -> Iterable[Stream]:
    if n_axes >= 2:
        for swap in (False, True):
            flag = ", swapped" if swap else ""
            yield Stream(f"every value{flag}", partial(_sperr, swap=swap))
            yield Stream(f"on average{flag}", partial(_sperr_mean, swap=swap))


def _sperr(array: Array, size: float, swap: bool) -> tuple[int, Array]:
    import hdf5plugin

    return _through_hdf5(array, hdf5plugin.Sperr(absolute=size, swap=swap))


def _sperr_mean(array: Array, size: float, swap: bool) -> tuple[int, Array]:
    """Code to a mean square error, that of errors spread evenly up to the size."""
    import hdf5plugin

    ratio = 20 * np.log10(np.ptp(array) * np.sqrt(3) / size)
    option = hdf5plugin.Sperr(peak_signal_to_noise_ratio=max(float(ratio), 1e-3), swap=swap)
    return _through_hdf5(array, option)


def _sz2_settings(n_axes: int) -> Iterable[Stream]:
    yield Stream("absolute", _sz2)


def _sz2(array: Array, size: float) -> tuple[int, Array]:
    import hdf5plugin

    return _through_hdf5(array, hdf5plugin.SZ(absolute=size))


def _through_hdf5(array: Array, option: Any) -> tuple[int, Array]:
    """Return the stored bytes of one chunk that is the whole array, and what is read back."""
    import h5py

    memory = io.BytesIO()
    with h5py.File(memory, "w") as file:
        file.create_dataset("x", data=array, chunks=array.shape, compression=option)
    with h5py.File(memory, "r") as file:  # opened anew, since a cache would return the original
        stored = file["x"]
        n_bytes = sum(stored.id.get_chunk_info(i).size for i in range(stored.id.get_num_chunks()))
        return n_bytes, stored[...]


# Rounding -----------------------------------------------------------------------------------------


def _rounding_settings(pack: Callable[[Array], int]) -> Callable[[int], Iterable[Stream]]:
    def settings(n_axes: int) -> Iterable[Stream]:
        for axis in (None, *range(n_axes)):
            name = "values" if axis is None else f"changes along axis {axis}"
            yield _rounding(name, axis, pack)

    return settings


def _rounding(name: str, axis: int | None, pack: Callable[[Array], int]) -> Stream:
    """Return rounding to multiples of twice the size: these, or their changes, packed."""

    def stored(array: Array, size: float) -> tuple[Array, Array]:
        steps = np.rint(array / (2 * size)).astype(np.int32)
        return steps, steps if axis is None else np.diff(steps, axis=axis, prepend=0)

    def code(array: Array, size: float) -> tuple[int, Array]:
        steps, integers = stored(array, size)
        return zstd_bytes(integers), (steps * (2 * size)).astype(np.float32)

    return Stream(name, code, lambda array, size: pack(stored(array, size)[1]))


_STREAMS: dict[str, Callable[[int], Iterable[Stream]]] = {
    "SZ3": _sz3_settings,
    "ZFP": _zfp_settings,
    "SPERR": _sperr_settings,
    "SZ2": _sz2_settings,
    "rounding + zstandard": _rounding_settings(lambda values: zstd_bytes(values, THOROUGH)),
    "rounding + xz": _rounding_settings(xz_bytes),
}
