"""The codec's speed beside SZ3 and ZFP, and the memory that a long file streams through.

python -m benchmarks.run codec, with the data sets in KERNELATOMS_DATA. Speed: PlanetLab, 18 slices
of 490 x 490 in float32, every row within a bound; MB are those of the whole array for everybody.
Ours gets the array as it is, with the model that it chose (which is timed apart). SZ3 and ZFP get
the entries above the diagonal in the order and at the norms that suit them best, and the bound on
values that holds every row, all found before they are timed. Memory: rows of made-up sensors in a
.npy file, compressed to a file and back, each way in a process of its own; the peak is that of the
process.
"""

import os
import tempfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Contender, compare

Call = Callable[[], Any]
MODULE = "benchmarks.codec"
BOUNDS = (0.01, 0.05)
N_ROWS, N_COLUMNS, STREAM_BOUND = 1_000_000, 36, 0.01
# Orders and settings that won in the reproduction's codec/planetlab.
ORDERS = {"SZ3": "entry after entry in one line", "ZFP": "slices x entries"}
SETTINGS = {"SZ3": "lorenzo_reg, Regression No", "ZFP": "fixed accuracy"}
SCALING = "nodes at unit norm to 1/32 octave, product of two"


@lru_cache(maxsize=1)
def planetlab() -> Any:
    from reproduction.codec.data import load_table

    return load_table("planetlab", None)


def ours(bound: float, way: str) -> Call:
    """Fit, encode or decode; report seconds' companion, the number of bytes."""
    from kernelatoms import KernelCodec

    X = planetlab().values
    codec = KernelCodec(max_error=bound).fit(X)
    data = codec.encode(X)
    KernelCodec().decode(data)
    if way == "fit":
        return lambda: KernelCodec(max_error=bound).fit(X) and None
    if way == "encode":
        return lambda: len(codec.encode(X))

    def decode() -> Any:
        decoded = KernelCodec().decode(data)
        return lambda: float(planetlab().row_errors(decoded).max())

    return decode


def rival(name: str, bound: float, way: str) -> Call:
    """Encode or decode by SZ3 or ZFP at the size of error that holds the bound."""
    from reproduction.codec.scalings import scalings
    from reproduction.codec.search import at_bound, prepare, size_near
    from reproduction.codec.streams import streams
    from reproduction.codec.views import views

    table = planetlab()
    view = next(v for v in views(table) if v.name.endswith(ORDERS[name]))
    scaling = next(s for s in scalings(table, bound) if s.name == SCALING)
    prepared = prepare(table, view, scaling)
    settings = streams(name, prepared.array.ndim)
    stream = next(s for s in settings if s.name == SETTINGS[name])
    found = at_bound(prepared, stream, bound, size_near(prepared, stream.code, bound, None))
    assert found is not None
    encode, decode = (_sz3 if name == "SZ3" else _zfp)(prepared.array, found.size)
    if way == "encode":
        return lambda: encode() + prepared.extra_bytes
    return lambda: float(prepared.errors(decode()).max())


def _sz3(array: Any, size: float) -> tuple[Call, Call]:
    from pysz import sz

    from reproduction.codec.streams import sz3_config

    config = sz3_config(array.shape, size, "LORENZO_REG", {"Regression": "No"})
    data = sz.compress(array, config)[0].copy()
    return (
        lambda: sz.compress(array, config)[0].nbytes,
        lambda: sz.decompress(data, array.dtype, array.shape)[0],
    )


def _zfp(array: Any, size: float) -> tuple[Call, Call]:
    import zfpy

    stretched = array / np.float32(size)
    data = zfpy.compress_numpy(stretched, tolerance=1.0)
    return (
        lambda: len(zfpy.compress_numpy(stretched, tolerance=1.0)),
        lambda: zfpy.decompress_numpy(data) * np.float32(size),
    )


def stream(folder: str, way: str) -> Call:
    """Compress the rows of a file, or decompress them again."""
    import kernelatoms

    source, packed = Path(folder) / "rows.npy", Path(folder) / "rows.kac"
    if way == "compress":
        return lambda: kernelatoms.compress(source, packed, max_error=STREAM_BOUND).n_bytes
    return lambda: kernelatoms.decompress(packed, Path(folder) / "back.npy") and None


def write_rows(path: Path, n_rows: int) -> None:
    """Write rows of sensors that follow a common course, block by block."""
    rng = np.random.default_rng(0)
    rows = np.lib.format.open_memmap(path, "w+", np.float32, (n_rows, N_COLUMNS))
    level = np.full(N_COLUMNS, 80.0)
    for start in range(0, n_rows, 50_000):
        n = min(50_000, n_rows - start)
        common, own = rng.standard_normal((n, 1)), rng.standard_normal((n, N_COLUMNS))
        walk = level + np.cumsum(common + 0.5 * own, axis=0)
        level = 80 + 0.5 * (walk[-1] - 80)
        rows[start : start + n] = 20 + np.abs(walk)
    rows.flush()


def largest_error(folder: str) -> float:
    """Return the largest relative row error of what came back, block by block."""
    rows, back = (np.load(Path(folder) / f"{name}.npy", mmap_mode="r") for name in ("rows", "back"))
    largest = 0.0
    for start in range(0, len(rows), 50_000):
        X = np.asarray(rows[start : start + 50_000], np.float64)
        missed = np.linalg.norm(X - back[start : start + 50_000], axis=1)
        largest = max(largest, float((missed / np.linalg.norm(X, axis=1)).max()))
    return largest


def speed_table(rounds: int) -> None:
    print("\n## Codec: PlanetLab, MB/s of float32\n")
    print("| bound | who | encode MB/s | decode MB/s | bytes | largest row error |")
    print("|---" * 6 + "|")
    n_mb = 18 * 490 * 490 * 4 / 1e6
    for bound in BOUNDS:
        who = {"ours": ("ours", {}), **{r: ("rival", {"name": r}) for r in ORDERS}}
        got = compare(
            [
                Contender(f"{label} {way}", function, {**more, "bound": bound, "way": way})
                for label, (function, more) in who.items() for way in ("encode", "decode")
            ],
            rounds, 1, module=MODULE,
        )  # fmt: skip
        for label in who:
            encode, decode = got[f"{label} encode"], got[f"{label} decode"]
            print(f"| {bound:.0%} | {label} | {n_mb / encode.seconds:.1f} | "
                  f"{n_mb / decode.seconds:.1f} | {encode.value:,} | {decode.value:.4%} |",
                  flush=True)  # fmt: skip
        choosing = compare(
            [Contender("fit", "ours", {"bound": bound, "way": "fit"}, once=True)],
            1, 1, module=MODULE,
        )["fit"]  # fmt: skip
        print(f"| {bound:.0%} | ours, choosing the model | {n_mb / choosing.seconds:.1f} "
              f"({choosing.seconds:.1f} s) | - | - | - |", flush=True)  # fmt: skip


def stream_table(n_rows: int = N_ROWS) -> None:
    print(f"\n## Codec: {n_rows:,} x {N_COLUMNS} float32 rows through a file, {STREAM_BOUND:.0%}\n")
    print("| way | seconds | MB/s | peak GiB | bytes | largest row error |")
    print("|---" * 6 + "|")
    n_mb = n_rows * N_COLUMNS * 4 / 1e6
    with tempfile.TemporaryDirectory() as folder:
        write_rows(Path(folder) / "rows.npy", n_rows)
        for way in ("compress", "decompress"):
            got = compare(
                [Contender(way, "stream", {"folder": folder, "way": way}, once=True)],
                1, 1, module=MODULE,
            )[way]  # fmt: skip
            n_bytes = f"{got.value:,}" if got.value else "-"
            error = f"{largest_error(folder):.4%}" if way == "decompress" else "-"
            print(f"| {way} | {got.seconds:.1f} | {n_mb / got.seconds:.1f} | {got.peak_gib:.2f} | "
                  f"{n_bytes} | {error} |", flush=True)  # fmt: skip


def codec_tables(rounds: int) -> None:
    """Print both tables; the first needs PlanetLab."""
    if os.environ.get("KERNELATOMS_DATA"):
        speed_table(min(rounds, 3))
    else:
        print("\nCodec: no speeds, since KERNELATOMS_DATA names no folder with PlanetLab.")
    stream_table()
