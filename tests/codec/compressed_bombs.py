"""Small compressed files that would cost much; their checksums are right.

Run as a program, it opens all of them under limits of memory and file size and prints what each
came to: ``python compressed_bombs.py FOLDER [NAME ...]``.
"""

import io
import json
import struct
import sys
import zlib
from pathlib import Path

import numpy as np
import pyarrow
import zstandard

from kernelatoms.codec.bounds import Bound
from kernelatoms.codec.container import Header, Part, Tail, Writer
from kernelatoms.codec.loops.entropy import encode_integers, encode_small
from kernelatoms.codec.models.codec_model import CodecModel, model_bytes
from kernelatoms.codec.packed.arrays import Layout
from kernelatoms.codec.packing import number, pack, squeeze

LAGS = {"lag": 1, "past": 1}
#: Beyond what the child has when it starts, and of every file.
MOST_MEMORY, MOST_FILE = 3 << 29, 128 << 20


def container(kind, parts=(), blocks=(), models=(), table=None, schema=b""):
    """Return a file of these parts, (part, rows, numbers, all else) and models."""
    file = io.BytesIO()
    writer = Writer(file)
    for block in blocks:
        writer.add(*block)
    header = Header(kind, "", Bound(0.01), tuple(parts), table or {})
    stored = tuple(m if isinstance(m, bytes) else model_bytes(m) for m in models)
    writer.finish(Tail(header.to_bytes(), stored, (), schema))
    return file.getvalue()


def array(shape, dtype="<f8", model=0, name=""):
    """Return the part of an array."""
    head = Layout(shape, False, np.dtype(dtype)).head()
    return Part(name, head, "f8" if model >= 0 else "", model)


def raw_zeros(n_values):
    """Return numbers that are stored as they are: zeros, two kilobytes for 64 MiB."""
    return b"\0" + zstandard.ZstdCompressor(level=3).compress(bytes(8 * n_values))


def predicted_zeros(n_rows, n_columns):
    """Return numbers that are all as predicted."""
    steps, k = np.zeros(n_rows, np.int32), np.zeros((n_rows, n_columns), np.int32)
    codes = encode_small(steps).tobytes()
    integers = encode_integers(k, np.ones(k.shape, np.uint8), steps).tobytes()
    integers = number(len(integers)) + integers
    lengths = b"\0\0" + number(len(codes)) + b"\0" + number(len(integers)) + b"\0"
    return b"\1\1\0\0" + lengths + codes + integers


def models_of_zeros():
    """Two hundred models of 16 MiB."""
    history = np.zeros((16 << 17, 1))
    model = model_bytes(CodecModel("lags", 1, settings=LAGS, arrays={"history": history}))
    return container("npy", [array((0, 1))], models=[model] * 200)


def models_of_words():
    """Models that say very much of themselves."""
    said = {"predictor": "lags", "n_columns": 1, "slice_rows": 0, "symmetric": False,
            "settings": {"lag": [0] * 30_000}, "arrays": []}  # fmt: skip
    text = squeeze(said)
    model = b"\1" + number(len(text)) + text + pack(b"")
    return container("npy", [array((0, 1))], models=[model] * 200)


def blocks_of_zeros(n_blocks=100):
    """Blocks of two kilobytes that become 64 MiB each."""
    n, model = 1 << 23, CodecModel("lags", 1, settings=LAGS)
    block = (0, n, raw_zeros(n), b"")
    return container("npy", [array((n_blocks * n, 1))], [block] * n_blocks, [model])


def many_arrays():
    """A hundred arrays of 64 MiB, each within what one may have."""
    n, model = 1 << 23, CodecModel("lags", 1, settings=LAGS)
    parts = [array((n, 1), name=f"{i}.npy") for i in range(100)]
    numbers = raw_zeros(n)
    return container("npz", parts, [(i, n, numbers, b"") for i in range(100)], [model])


def zeros_kept_exactly():
    """Blocks of zeros, packed, that become 64 MiB each."""
    n = 1 << 23
    exact = pack(b"\0" + bytes(8 * n))
    return container("npy", [array((100 * n,), "<i8", -1)], [(0, n, b"", exact)] * 100)


def one_huge_slice():
    """A slice of two gigabytes, which is less than the file may become."""
    n, model = 1 << 14, CodecModel("lags", 1 << 14, 1 << 14, settings=LAGS)
    return container("npy", [array((1, n, n))], [(0, 1, b"\1" + bytes(9), bytes(1 << 18))], [model])


def same_text(letters=b"x"):
    return b"\4" + number(len(letters)) + letters


def csv_of_one_text():
    """Very many columns of one letter."""
    n_columns = 1 << 17
    exact = pack(same_text() * n_columns + number(0))
    table = {"columns": n_columns, "line": ""}
    return container("csv", [Part()], [(0, 1 << 23, b"", exact)], table=table)


def csv_of_rows():
    """A row more than memory has room for, without a letter."""
    exact = pack(same_text(b"") + number(0))
    return container("csv", [Part()], [(0, 1 << 33, b"", exact)], table={"columns": 1})


def csv_of_lines():
    """Lines that belong to no row."""
    n = 20 << 20
    exact = pack(same_text() + number(n) + bytes(n) + same_text(b""))
    return container("csv", [Part()], [(0, 1, b"", exact)], table={"columns": 1})


def csv_of_blocks():
    """Blocks of a few bytes whose texts fill a disk."""
    n = 1 << 22
    exact = pack(same_text(b"x" * 64) + number(0))
    return container("csv", [Part()], [(0, n, b"", exact)] * 1000, table={"columns": 1})


def csv_of_whole_numbers():
    """Empty fields, a bit each."""
    n, n_columns = 1 << 23, 20
    exact = pack((b"\1\1" + b"\xff" * (n // 8) + b"\0") * n_columns + number(0))
    return container("csv", [Part()], [(0, n, b"", exact)] * 40, table={"columns": n_columns})


def parquet_file(columns, blocks, n_blocks=1, **table):
    """Return a table that is kept exactly, of these types and bytes."""
    schema = columns if isinstance(columns, bytes) else bytes(pyarrow.schema(columns).serialize())
    return container("parquet", [Part()], blocks * n_blocks, table=table, schema=pack(schema))


def stream(column, compression=None):
    """Return a column as Arrow writes it, behind its form."""
    batch = pyarrow.record_batch([column], ["0"])
    sink = pyarrow.BufferOutputStream()
    options = pyarrow.ipc.IpcWriteOptions(compression=compression)
    with pyarrow.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    return b"\2" + bytes(sink.getvalue())


def parquet_packed_twice():
    """Columns that are compressed inside of what is packed."""
    column = pyarrow.array([bytes(1 << 24)] * 4)
    return parquet_file({"a": column.type}, [(0, 4, b"", pack(stream(column, "zstd")))], 20)


def parquet_of_one_text():
    """A long text that all rows share by way of a dictionary."""
    text = pyarrow.array(["x" * (1 << 20)])
    column = pyarrow.DictionaryArray.from_arrays(np.zeros(1 << 20, np.int8), text)
    return parquet_file({"a": column.type}, [(0, 1 << 20, b"", pack(stream(column)))])


def parquet_of_nothing():
    """Lists of two billion values of no type."""
    kind = pyarrow.list_(pyarrow.null())
    offsets = pyarrow.py_buffer(np.array([0, 2**31 - 1], np.int32).tobytes())
    child = pyarrow.Array.from_buffers(pyarrow.null(), 2**31 - 1, [None])
    column = pyarrow.Array.from_buffers(kind, 1, [None, offsets], children=[child])
    return parquet_file({"a": kind}, [(0, 1, b"", pack(stream(column)))])


def parquet_of_one_name():
    """A schema whose columns all have the same long name, told once."""
    fields = [(f"c{i}", pyarrow.int8()) for i in range(9_000)]
    fields.append(("x" * (1 << 20), pyarrow.int8()))
    schema = bytearray(pyarrow.schema(fields).serialize())
    at = schema.index(struct.pack("<I", 9_001))
    places = [at + 4 + 4 * i for i in range(9_001)]
    tables = [place + struct.unpack_from("<I", schema, place)[0] for place in places]
    for place in places:
        struct.pack_into("<I", schema, place, tables[-1] - place)
    return parquet_file(bytes(schema), [])


def parquet_of_groups():
    """A group of rows for every row."""
    n = 1 << 19
    exact = pack(b"\0\0" + bytes(n))
    return parquet_file({"a": pyarrow.int8()}, [(0, n, b"", exact)], group=1)


def slow_slices():
    """Symmetric matrices of one number: a call for each."""
    n, model = 1 << 16, CodecModel("lags", 1, 1, True, LAGS)
    block = (0, n, predicted_zeros(n, 1), b"")
    return container("npy", [array((500 * n, 1, 1))], [block] * 500, [model])


def slow_columns():
    """Least squares of very many columns for single rows."""
    settings = {"lags": list(range(1, 9)), "parents": 16}
    model = CodecModel("columns", 7000, settings=settings)
    n = 8_000
    return container("npy", [array((n, 7000))], [(0, 1, predicted_zeros(1, 7000), b"")] * n,
                     [model])  # fmt: skip


def slow_histories():
    """Rows that go on from very many before them, each alone."""
    history = np.zeros((8 << 20, 1), np.float32)
    model = CodecModel("lags", 1, settings=LAGS, arrays={"history": history})
    n = 20_000
    return container("npy", [array((n, 1))], [(0, 1, predicted_zeros(1, 1), b"")] * n, [model])


def many_parts():
    """Five million arrays without a name."""
    tool = zlib.compressobj(9, zlib.DEFLATED, -15)
    header = tool.compress(b'{"kind":"npz","parts":[')
    for _ in range(17_000):  # no more than is believed of so many bytes
        header += tool.compress(b"{}," * 300) + tool.flush(zlib.Z_FULL_FLUSH)
    file = io.BytesIO()
    Writer(file).finish(Tail(header + tool.compress(b"{}]}") + tool.flush()))
    return file.getvalue()


def model_file():
    """A model alone that becomes a gigabyte."""
    tool = zstandard.ZstdCompressor(level=1).compressobj(size=1 << 30)
    frame = b"".join(tool.compress(bytes(1 << 24)) for _ in range(64)) + tool.flush()
    return container("model", models=[b"\0" + frame + bytes(1 << 20)])


BOMBS = {
    name: make for name, make in list(globals().items())
    if callable(make) and make.__doc__ and getattr(make, "__module__", "") == __name__
    and name not in ("container", "array", "parquet_file", "stream", "raw_zeros", "predicted_zeros")
}  # fmt: skip


def _limit():
    import resource

    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MOST_MEMORY,) * 2)
    resource.setrlimit(resource.RLIMIT_FSIZE, (MOST_FILE,) * 2)


def _opened(path):
    """Open a file in every way; say what became of it."""
    from kernelatoms import KernelCodec, compress, decompress, inspect_compressed

    suffix = {"csv": "csv", "parquet": "parquet", "many": "npz"}.get(path.stem.split("_")[0], "npy")
    rows = path.with_name("rows.npy")
    ways = [lambda: decompress(path, path.with_suffix(f".{suffix}"))]
    if suffix == "npy":
        ways.append(lambda: KernelCodec().decode(path.read_bytes()))
    if path.stem.startswith("model"):
        ways.append(lambda: compress(rows, path.with_name("x.kac"), model=path))
        ways.append(lambda: inspect_compressed(path))
    outcomes = []
    for way in ways:
        try:
            way()
            outcomes.append("done")
        except Exception as error:
            outcomes.append(f"{type(error).__name__}: {error}")
    return outcomes


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    np.save(folder / "rows.npy", np.ones((4, 1)))
    _limit()
    for name in sys.argv[2:]:
        print(json.dumps([name, _opened(folder / f"{name}.kac")]), flush=True)
