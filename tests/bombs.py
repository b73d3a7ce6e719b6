"""Small tables that would become large, as (name of the file, function that writes it)."""

import bz2
import gzip
import struct

import numpy as np
import pyarrow
import zstandard
from pyarrow import feather, ipc, parquet

LONG = "x" * (1 << 20)
ZEROS = np.zeros(1 << 18)
FORMS = {".gz": gzip.compress, ".bz2": bz2.compress, ".zst": zstandard.compress}


def packed_text(suffix):
    """Lines of numbers, 2 MiB of them."""
    lines = b"".join(b"%d\n" % i for i in range(1 << 14))
    return lambda path: path.write_bytes(FORMS[suffix](b"a\n" + lines * 20))


def packed_feather(compression):
    """Zeros, 2 MiB per column."""
    table = pyarrow.table({str(i): ZEROS for i in range(8)})
    return lambda path: feather.write_feather(table, str(path), compression=compression)


def stream(path):
    """Zeros, as a stream of Arrow's under the name of a file."""
    table = pyarrow.table({str(i): ZEROS for i in range(8)})
    options = ipc.IpcWriteOptions(compression="zstd")
    with ipc.new_stream(str(path), table.schema, options=options) as writer:
        writer.write_table(table)


def one_batch_often(path):
    """A file whose list of batches names the first of them over and over."""
    large = pyarrow.record_batch({"a": np.zeros(1 << 18)})
    small = pyarrow.record_batch({"a": np.zeros(1)})
    with ipc.new_file(str(path), large.schema) as writer:
        writer.write_batch(large)
        for _ in range(4096):
            writer.write_batch(small)
    data = path.read_bytes()
    (length,) = struct.unpack("<i", data[-10:-6])
    footer = bytearray(data[-10 - length : -10])
    first = footer.index(struct.pack("<i", 4097)) + 4
    for i in range(4096):
        footer[first + 24 * (i + 1) : first + 24 * (i + 2)] = footer[first : first + 24]
    path.write_bytes(data[: -10 - length] + footer + data[-10:])


def arrow_of(make):
    """Write a column that Arrow holds in a few bytes."""
    return lambda path: feather.write_feather(pyarrow.table({"a": make()}), str(path))


def stream_of(make):
    """Write a column of a kind that Feather does not know."""

    def write(path):
        table = pyarrow.table({"a": make()})
        with ipc.new_stream(str(path), table.schema) as writer:
            writer.write_table(table)

    return write


def parquet_of(make, **options):
    """Write a column that Parquet holds in a few bytes."""
    return lambda path: parquet.write_table(pyarrow.table({"a": make()}), path, **options)


def repeated(n, value=LONG):
    """One value, again and again."""
    return pyarrow.DictionaryArray.from_arrays(np.zeros(n, np.int32), pyarrow.array([value]))


def views():
    """One text, to which all rows refer."""
    view = np.frombuffer(struct.pack("<i4sii", len(LONG), b"xxxx", 0, 0), np.uint8)
    buffers = [None, pyarrow.py_buffer(np.tile(view, 8192)), pyarrow.py_buffer(LONG.encode())]
    return pyarrow.Array.from_buffers(pyarrow.string_view(), 8192, buffers)


def prefixed(path):
    """Long texts that differ in their last letters, of which a file keeps the letters."""
    values = [LONG[: 1 << 16] + str(i) for i in range(256)]
    parts = pyarrow.table({"a": values})
    with parquet.ParquetWriter(
        path, parts.schema, use_dictionary=False, column_encoding={"a": "DELTA_BYTE_ARRAY"}
    ) as file:
        file.write_table(parts)


def many_rows(path):
    """One number, four million times."""
    part = pyarrow.table({"a": repeated(1 << 20, 1.5)})
    with parquet.ParquetWriter(path, part.schema) as file:
        for _ in range(4):
            file.write_table(part)


def archive(path):
    """An archive of zeros, 16 MiB."""
    np.savez_compressed(path, X=np.zeros((1 << 18, 8)))


def sparse(path):
    """A matrix of nothing but zeros, and of all the memory that there is."""
    parts = {"format": b"csr", "shape": [1 << 20, 1 << 20], "data": [1.0], "indices": [0],
             "indptr": np.minimum(np.arange((1 << 20) + 1), 1)}  # fmt: skip
    np.savez_compressed(path, **{name: np.array(part) for name, part in parts.items()})


def keys(path):
    """A key of its own in every line, each of which is a column of all lines."""
    path.write_bytes(b"".join(b'{"k%d": 1}\n' % i for i in range(50_000)))


#: Bombs, by the name of the file and the MiB that they are allowed to become.
BOMBS = {
    "gz.csv.gz": (packed_text(".gz"), 1), "bz2.csv.bz2": (packed_text(".bz2"), 1),
    "zst.csv.zst": (packed_text(".zst"), 1), "lz4.feather": (packed_feather("lz4"), 4),
    "zstd.feather": (packed_feather("zstd"), 4), "stream.arrow": (stream, 4),
    "often.arrow": (one_batch_often, None),
    "nulls.arrow": (stream_of(lambda: pyarrow.nulls(1 << 28)), None),
    "nested.arrow": (stream_of(
        lambda: pyarrow.FixedSizeListArray.from_arrays(pyarrow.nulls(1 << 28), 1 << 20)), None),
    "runs.arrow": (stream_of(
        lambda: pyarrow.RunEndEncodedArray.from_arrays([1 << 30], [1.0])), None),
    "dictionary.feather": (arrow_of(lambda: repeated(1 << 15)), None),
    "views.arrow": (stream_of(views), None),
    "repeated.parquet": (parquet_of(lambda: repeated(1 << 15)), None),
    "texts.parquet": (parquet_of(lambda: repeated(1 << 15), store_schema=False), None),
    "inside.parquet": (parquet_of(lambda: pyarrow.ListArray.from_arrays(
        [0, 1 << 14, 1 << 15], repeated(1 << 15)), store_schema=False), None),
    "lists.parquet": (parquet_of(lambda: pyarrow.ListArray.from_arrays(
        [0, 1 << 14, 1 << 15], repeated(1 << 15))), None),
    "bytes.parquet": (parquet_of(
        lambda: repeated(1 << 15, LONG.encode()).cast(
            pyarrow.dictionary(pyarrow.int32(), pyarrow.binary()))), None),
    "prefixes.parquet": (prefixed, 4), "rows.parquet": (many_rows, 16),
    "zeros.npz": (archive, 4), "sparse.npz": (sparse, None), "keys.jsonl": (keys, None),
}  # fmt: skip


def write_all(folder):
    """Write all bombs; return the sizes of their files."""
    sizes = {}
    for name, (write, _) in BOMBS.items():
        write(folder / name)
        sizes[name] = (folder / name).stat().st_size
    return sizes
