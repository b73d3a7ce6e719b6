"""Small compressed files, and how to take them apart."""

import dataclasses
import io

import numpy as np

from kernelatoms.codec.blocks import encode_block
from kernelatoms.codec.bounds import Bound
from kernelatoms.codec.container import Header, Part, Reader, Tail, Writer
from kernelatoms.codec.models.codec_model import CodecModel, model_bytes
from kernelatoms.codec.packed.arrays import Layout, array_blocks

X = np.cumsum(np.random.default_rng(0).normal(size=(12, 4)), axis=0)
MODEL = CodecModel("lags", 4, settings={"lag": 1, "past": 1})
BOUND = Bound(0.01)


def make(X=X, block_rows=4, model=MODEL, bound=BOUND, **changes):
    """Return a compressed array, in blocks of a few rows; fields of its header may be others."""
    layout = Layout(X.shape, False, X.dtype)
    file = io.BytesIO()
    writer = Writer(file)
    pieces = (X[i : i + block_rows] for i in range(0, len(X), block_rows))
    for block in array_blocks(pieces, layout, 0, True):
        done = encode_block(block, bound, model)
        writer.add(done.part, done.n_rows, done.matrix, done.exact)
    part = Part(head=layout.head(), dtype=layout.matrix_dtype, model=0)
    header = Header(**{"kind": "npy", "by": "", "bound": bound, "parts": (part,), **changes})
    writer.finish(Tail(header.to_bytes(), (model_bytes(model),)))
    return file.getvalue()


def written(blocks, tail, entries=None):
    """Return a file of these blocks and this tail; of other entries than its blocks, if given."""
    file = io.BytesIO()
    writer = Writer(file)
    for block in blocks:
        writer.add(*block)
    if entries is not None:
        writer.entries[:] = entries(writer.entries)
    writer.finish(tail)
    return file.getvalue()


def taken_apart(data):
    """Return the blocks and the tail of a file."""
    reader = Reader(data)
    blocks = [(e.part, e.n_rows, *reader.read(i)) for i, e in enumerate(reader.entries)]
    return blocks, reader.tail


def other_entry(entry, **changes):
    return dataclasses.replace(entry, **changes)
