"""Write compressed files for ``test_fixtures``: python tests/codec/make_fixtures.py v1.

One file of every kind, and of every model for arrays. Existing files are not touched.
"""

import hashlib
import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow
from pyarrow import parquet

from kernelatoms import compress, decompress
from kernelatoms.codec import fit_codec

FOLDER = Path(__file__).parent / "fixtures"


def digest_of(path, target, model=None):
    """Return the SHA-256 of what comes out of a file; of some kinds, of the values in that."""
    decompress(path, target, model=model)
    data = target.read_bytes()
    if target.suffix == ".parquet":
        table = parquet.read_table(target).combine_chunks()
        columns = [
            [name, str(table[name].type), table[name].to_pylist()] for name in table.column_names
        ]
        data = repr(columns).encode()
    elif target.suffix == ".npz":
        with np.load(target) as arrays:
            data = b"".join(name.encode() + arrays[name].tobytes() for name in arrays.files)
    return hashlib.sha256(data).hexdigest()


def sources(folder):
    """Write one file of each kind; yield each with how it is to be compressed."""
    from kernelatoms.codec.models.model_selection import NAMES

    rng = np.random.default_rng(15)
    t = np.arange(96)[:, None]
    X = 10 + np.sin(t / 8 + np.arange(7)) + 0.05 * rng.normal(size=(96, 7))
    X[5, 3] = np.nan
    for name in NAMES:
        np.save(folder / f"{name}.npy", X.astype("f4"))
        yield folder / f"{name}.npy", {"model": name, "block_rows": 40}
    S = np.cumsum(rng.normal(size=(4, 9, 9)), axis=0)
    np.save(folder / "slices.npy", S + S.transpose(0, 2, 1))
    yield folder / "slices.npy", {"model": "lags", "symmetric": True}
    np.savez(
        folder / "arrays.npz", X=X, y=np.arange(96), words=np.array(["a", "bc"]), one=np.array(2.5)
    )
    yield folder / "arrays.npz", {"model": "lags"}
    lines = ["time;id;a;b;word"]
    lines += [
        f"2024-01-{i % 28 + 1:02};{i:04};{row[0]:.2f};{row[1]:.3f};w{i % 5}"
        for i, row in enumerate(X)
    ]
    (folder / "table.csv").write_bytes("\r\n".join(lines).encode())
    yield folder / "table.csv", {"model": "lags", "max_absolute": 0.02}
    table = {
        "id": np.arange(96) + 2**60,
        "a": X[:, 0],
        "b": X[:, 3],
        "word": [f"w{i % 5}" for i in range(96)],
    }
    parquet.write_table(pyarrow.table(table), folder / "table.parquet")
    yield folder / "table.parquet", {"model": "columns"}


def main(version):
    """Write what is not there yet."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for source, options in sources(folder):
            target = FOLDER / f"{version}-{source.name}.kac"
            if target.exists():
                continue
            compress(source, target, **options)
            told = {
                "kind": source.suffix[1:],
                "sha256": digest_of(target, folder / f"back{source.suffix}"),
            }
            target.with_suffix(".json").write_text(json.dumps(told, indent=1) + "\n")
        model = FOLDER / f"{version}-model.kam"
        target = FOLDER / f"{version}-referring.npy.kac"
        if not target.exists():
            source = folder / "lags.npy"
            fit_codec(source, model, model="pca")
            compress(source, target, model=model, store_model=False)
            told = {
                "kind": "npy",
                "sha256": digest_of(target, folder / "back.npy", model),
                "model": model.name,
            }
            target.with_suffix(".json").write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
