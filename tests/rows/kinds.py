"""Every kind of source of the same rows."""

import json

import numpy as np
from scipy import sparse

from kernelatoms import open_rows


class Blocks:
    """Yields blocks of uneven size, each time anew; the same array with other numbers in it."""

    def __init__(self, X):
        self.X = X

    def __iter__(self):
        buffer = np.empty_like(self.X)
        for start, stop in ((0, 0), (0, 1), (1, 40), (40, 41), (41, len(self.X))):
            part = buffer[: len(self.X[start:stop])]
            part[:] = self.X[start:stop]
            yield part


class Dicts(Blocks):
    """Yields one dict per row, as data sets of Hugging Face do."""

    def __iter__(self):
        for i, row in enumerate(self.X):
            yield {"id": str(i), "vector": row.tolist(), "y": i % 3}


class Columns(Blocks):
    """Yields dicts of columns."""

    def __iter__(self):
        for start in range(0, len(self.X), 50):
            yield {f"x{j}": column for j, column in enumerate(self.X[start : start + 50].T)}


def parts(X):
    """Return the rows in three parts, of which one is empty."""
    return X[: len(X) // 3], X[:0], X[len(X) // 3 :]


def save_parts(X, folder, suffix, save):
    # By natural order 2, 9, 10.
    for number, part in zip((2, 9, 10), parts(X), strict=True):
        save(part, folder / f"part-{number}{suffix}")
    return f"{folder}/part-*{suffix}"


def table(X, label=False):
    import pyarrow

    columns = {f"x{j}": np.ascontiguousarray(column) for j, column in enumerate(X.T)}
    return pyarrow.table(columns | ({"y": np.arange(len(X)) % 3} if label else {}))


def npy(X, folder):
    return open_rows(save_parts(X, folder, ".npy", lambda part, path: np.save(path, part)))


def npy_by_columns(X, folder):
    np.save(folder / "x.npy", np.asfortranarray(X))
    return open_rows(folder / "x.npy")


def memmap(X, folder):
    np.save(folder / "x.npy", np.concatenate([X[:2], X]))
    return open_rows(np.load(folder / "x.npy", mmap_mode="r")[2:])


def memmap_of_some_columns(X, folder):
    np.save(folder / "x.npy", np.concatenate([X, X], axis=1))
    return open_rows(np.load(folder / "x.npy", mmap_mode="r")[:, : X.shape[1]])


def parquet(X, folder):
    from pyarrow import parquet

    def save(part, path):
        parquet.write_table(table(part), path, row_group_size=37)

    return open_rows(save_parts(X, folder, ".parquet", save))


def parquet_vectors(X, folder):
    import pyarrow
    from pyarrow import parquet

    flat = pyarrow.array(X.reshape(-1))
    fixed = pyarrow.FixedSizeListArray.from_arrays(flat, X.shape[1])
    parquet.write_table(pyarrow.table({"v": fixed}), folder / "x.parquet", row_group_size=41)
    return open_rows(folder / "x.parquet")


def parquet_lists(X, folder):
    import pyarrow
    from pyarrow import parquet

    lists = pyarrow.array(list(X), pyarrow.list_(pyarrow.from_numpy_dtype(X.dtype)))
    parquet.write_table(pyarrow.table({"v": lists}), folder / "x.parquet", row_group_size=41)
    return open_rows(folder / "x.parquet")


def feather(X, folder):
    from pyarrow import feather

    def save(part, path):
        feather.write_feather(table(part), str(path), chunksize=53)

    return open_rows(save_parts(X, folder, ".feather", save))


def arrow_stream(X, folder):
    import pyarrow

    with pyarrow.ipc.new_stream(folder / "x.arrows", table(X).schema) as writer:
        writer.write_table(table(X), 29)
    return open_rows(folder / "x.arrows")


def csv(X, folder):
    def save(part, path):
        lines = [",".join(f"x{j}" for j in range(X.shape[1]))]
        lines += [",".join(map(repr, row)) for row in part.tolist()]
        path.write_text("\n".join(lines) + "\n")

    return open_rows(save_parts(X, folder, ".csv", save), dtype=X.dtype)


def safetensors(X, folder):
    def save(part, path):
        kind = {"float64": "F64", "float32": "F32"}[part.dtype.name]
        other = b"12345678"
        header = {
            "__metadata__": {"a": "b"},
            "other": {"dtype": "U8", "shape": [8], "data_offsets": [0, 8]},
            "acts": {
                "dtype": kind, "shape": list(part.shape), "data_offsets": [8, 8 + part.nbytes]
            },
        }  # fmt: skip
        text = json.dumps(header).encode()
        path.write_bytes(len(text).to_bytes(8, "little") + text + other + part.tobytes())

    return open_rows(save_parts(X, folder, ".safetensors", save), tensor="acts")


def zarr(X, folder):
    import zarr

    array = zarr.create_array(
        folder / "x.zarr", shape=X.shape, chunks=(17, 3), dtype=X.dtype, overwrite=True
    )
    array[:] = X
    return open_rows(folder / "x.zarr")


#: Makes a source of rows, with what it needs in a folder.
KINDS = {
    "array": lambda X, folder: open_rows(X),
    "array by columns": lambda X, folder: open_rows(np.asfortranarray(X)),
    "array of other bytes": lambda X, folder: open_rows(X.astype(X.dtype.newbyteorder())),
    "csr": lambda X, folder: open_rows(sparse.csr_array(X)),
    "csc": lambda X, folder: open_rows(sparse.csc_matrix(X)),
    "data frame": lambda X, folder: open_rows(table(X)),
    "blocks": lambda X, folder: open_rows(Blocks(X)),
    "dicts": lambda X, folder: open_rows(Dicts(X), label="y", drop=["id"], dtype=X.dtype),
    "columns": lambda X, folder: open_rows(Columns(X)),
    "mapped": lambda X, folder: open_rows(X / 2).map(lambda rows: rows * 2, X.shape[1]),
    "npy": npy,
    "npy by columns": npy_by_columns,
    "memmap": memmap,
    "memmap of some columns": memmap_of_some_columns,
    "parquet": parquet,
    "parquet of vectors": parquet_vectors,
    "parquet of lists": parquet_lists,
    "feather": feather,
    "arrow stream": arrow_stream,
    "csv": csv,
    "safetensors": safetensors,
    "zarr": zarr,
}
