"""Compress tables and arrays within an error bound that holds for every row, and restore them.

The codec is self-contained. It uses the rest of the library; nothing in the library imports it
(the command line and the registry of estimators name its modules as text).

A file is compressed in these steps. ``packed`` reads it as blocks: a matrix of approximate numbers,
and bytes that are kept exactly. ``models`` predicts the rows of the matrix from rows decoded
before; ``loops`` quantises what the prediction leaves and codes it with few bits. Every block is
decoded again and compared with the bound; rows that miss it are stored exactly. ``container``
writes the file.

- ``compressing``, ``decompressing``, ``inspection``: the public functions. ``arguments``: their
  arguments, checked. ``estimator``: ``KernelCodec``, for arrays in memory.
- ``file_writer``: blocks to a compressed file, its models, and the bound that reaches a ratio.
- ``blocks``: blocks of rows to bytes and back, and an open compressed file. ``container``: its
  signature, tail and header. ``packing``: bytes without loss: integers, frames, JSON texts.
- ``bounds``: the error bound, and statistics of errors. ``limits``: what a file may become, and the
  exceptions.
- ``report``: the figure of a compressed matrix.
- ``commands``: ``kernelatoms compress`` and others; ``printing``: what they print.

See docs/codec-format.md.
"""

from typing import TYPE_CHECKING

from kernelatoms.lazy import lazy_names

__all__ = [
    "CodecError",
    "CompressedInfo",
    "CompressionSummary",
    "KernelCodec",
    "compress",
    "compression_figure",
    "decompress",
    "fit_codec",
    "inspect_compressed",
]

_HOMES = {
    "CodecError": "codec.limits",
    "CompressedInfo": "codec.inspection",
    "CompressionSummary": "codec.file_writer",
    "KernelCodec": "codec.estimator",
    "compress": "codec.compressing",
    "compression_figure": "codec.report",
    "decompress": "codec.decompressing",
    "fit_codec": "codec.compressing",
    "inspect_compressed": "codec.inspection",
}

if TYPE_CHECKING:
    from kernelatoms.codec.compressing import compress, fit_codec
    from kernelatoms.codec.decompressing import decompress
    from kernelatoms.codec.estimator import KernelCodec
    from kernelatoms.codec.file_writer import CompressionSummary
    from kernelatoms.codec.inspection import CompressedInfo, inspect_compressed
    from kernelatoms.codec.limits import CodecError
    from kernelatoms.codec.report import compression_figure

__getattr__, __dir__ = lazy_names("kernelatoms.codec", _HOMES)
