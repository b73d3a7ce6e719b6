"""Compressed files: damaged blindly, rewritten by somebody who knows the format, or made up.

A file that is refused must be refused by ``CodecError``. One that was damaged blindly is always
refused: its checksums were not made again. One whose checksums fit may be decoded to anything, but
without a crash, a hang, more memory than a few blocks or more bytes on disk than are allowed. Files
of many equal blocks and models, of long repetitions and of sizes that nobody has are among them.
"""

import contextlib
import dataclasses
import errno
import io
import json
import re
import tempfile
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import zstandard
from pyarrow import parquet

from fuzz.mutations import NUMBERS, WORDS, changed_json, damaged, odd_json, word
from fuzz.running import Play, check_words
from kernelatoms import compress, decompress, inspect_compressed
from kernelatoms.codec import fit_codec
from kernelatoms.codec.container import Entry, Reader, Tail, Writer
from kernelatoms.codec.limits import CodecError
from kernelatoms.codec.models.codec_model import CodecModel, model_bytes, read_model_bytes
from kernelatoms.codec.models.model_selection import NAMES
from kernelatoms.codec.packed.arrays import decode_array
from kernelatoms.codec.packing import number, pack, squeeze, unpack, unsqueeze

Rng = np.random.Generator

#: What a file may become here: more takes longer than a case may.
_MAX_SIZE = 1 << 24

#: Part, rows, numbers, all else.
Block = tuple[int, int, bytes, bytes]


@dataclasses.dataclass(frozen=True)
class _Original:
    """A compressed file, and what it is made of."""

    suffix: str
    data: bytes
    blocks: list[Block]
    tail: Tail


def prepare() -> Play:
    """Compress one file of every kind and with every model, and return how a case is played."""
    warnings.simplefilter("ignore")
    pyarrow.set_cpu_count(1)
    with tempfile.TemporaryDirectory() as folder:
        originals = _originals(Path(folder))
        for original in originals:  # loops and pools come with these, not with the first case
            _open_up(original.data, original.suffix, Path(folder))

    def play(rng: Rng, folder: Path) -> str:
        original = originals[rng.integers(len(originals))]
        if rng.random() < 0.5:
            return _mutated(rng, original, folder)
        return _tried(_made_up(rng, original), original.suffix, folder)

    return play


def _originals(folder: Path) -> list[_Original]:
    rng = np.random.default_rng(0)
    t = np.arange(60)[:, None]
    X = (10 + np.sin(t / 5 + np.arange(5)) + 0.1 * rng.normal(size=(60, 5))).astype("f4")
    X[3, 2] = np.nan
    found = []
    for name in NAMES:
        np.save(folder / f"{name}.npy", X)
        found.append(_original(folder / f"{name}.npy", model=name, block_rows=25))
    S = np.cumsum(rng.normal(size=(3, 6, 6)), axis=0)
    np.save(folder / "slices.npy", S + S.transpose(0, 2, 1))
    found.append(_original(folder / "slices.npy", model="lags", symmetric=True))
    np.savez(folder / "a.npz", X=X, y=np.arange(9), w=np.array(["a", "bc"]), z=np.asfortranarray(X))
    found.append(_original(folder / "a.npz", model="lags"))
    lines = ["time,id,a,b,word"]
    lines += [f"2024-{i % 12},{i:03},{row[0]:.2f},{row[2]:.3f},w{i % 3}" for i, row in enumerate(X)]
    (folder / "t.csv").write_text("\n".join([*lines[:9], "# a remark", "", *lines[9:]]))
    found += [_original(folder / "t.csv", model="lags", block_rows=n) for n in (20, None)]
    columns = {
        "id": np.arange(60), "a": X[:, 0], "n": [None if i % 4 else i for i in range(60)],
        "b": [None if i % 5 else float(x) for i, x in enumerate(X[:, 2])],
        "word": [f"w{i % 3}" for i in range(60)], "flag": [True, None] * 30,
    }  # fmt: skip
    parquet.write_table(pyarrow.table(columns), folder / "t.parquet")
    found.append(_original(folder / "t.parquet", model="lags", approximate=["n"]))
    fit_codec(folder / "lags.npy", folder / "m.kam", model="pca")
    data = (folder / "m.kam").read_bytes()
    return [*found, _Original(".npy", data, [], Reader(data).tail)]


def _original(path: Path, **options: Any) -> _Original:
    data = compress(path, path.with_suffix(".kac"), **options).path.read_bytes()
    reader = Reader(data)
    blocks = [(e.part, e.n_rows, *reader.read(i)) for i, e in enumerate(reader.entries)]
    return _Original(path.suffix, data, blocks, reader.tail)


def _open_up(data: bytes, suffix: str, folder: Path) -> None:
    """Do all that can be done with a compressed file."""
    path = folder / "it.kac"
    path.write_bytes(data)
    kind = inspect_compressed(path, max_size=_MAX_SIZE).kind
    if kind == "model":
        return
    if kind in ("npy", "array"):
        with contextlib.suppress(CodecError):  # what does not fit into memory may fit into a file
            decode_array(data, max_size=_MAX_SIZE)
    back = folder / f"back.{'npy' if kind == 'array' else kind}"
    decompress(path, back, max_size=_MAX_SIZE)
    # Heads, footers and names are beside it.
    if back.stat().st_size > _MAX_SIZE + max(len(data), 1 << 16):
        raise AssertionError(f"{len(data):,} bytes became {back.stat().st_size:,}")


def _tried(data: bytes, suffix: str, folder: Path) -> str:
    try:
        _open_up(data, suffix, folder)
    except CodecError as error:
        check_words(error)
        return "refused"
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        return "too large for the disk"
    return "decoded"


def _mutated(rng: Rng, original: _Original, folder: Path) -> str:
    if rng.random() < 0.3:
        data = damaged(rng, original.data)
        outcome = _tried(data, original.suffix, folder)
        if outcome != "refused" and data != original.data:
            raise AssertionError("damage was decoded silently")
        return f"{outcome}, blindly"
    changes = [
        _other_header, _other_model, _other_numbers, _other_exact, _other_index, _other_schema,
        _many_blocks, _many_models, _long_exact,
    ]  # fmt: skip
    blocks, tail, entries = list(original.blocks), original.tail, None
    for change in rng.choice(len(changes), size=int(rng.integers(1, 3)), replace=False):
        with contextlib.suppress(CodecError):  # what is there cannot be read any more
            blocks, tail, entries = changes[change](rng, blocks, tail, entries)
    return _tried(_written(blocks, tail, entries), original.suffix, folder)


#: Blocks, tail, and entries of the index if they are not those of the blocks.
Parts = tuple[list[Block], Tail, Callable[[list[Entry]], list[Entry]] | None]


def _other_header(rng: Rng, blocks: list[Block], tail: Tail, entries: Any) -> Parts:
    tree = changed_json(rng, unsqueeze(tail.header, "it"))
    return blocks, dataclasses.replace(tail, header=_squeezed(rng, tree, tail.header)), entries


def _squeezed(rng: Rng, tree: Any, otherwise: bytes) -> bytes:
    try:
        return squeeze(tree)
    except ValueError:  # infinity is no JSON
        tool = zlib.compressobj(9, zlib.DEFLATED, -15)
        return tool.compress(json.dumps(tree).encode()) + tool.flush()
    except (OverflowError, UnicodeEncodeError, RecursionError):
        return damaged(rng, otherwise)


def _other_model(rng: Rng, blocks: list[Block], tail: Tail, entries: Any) -> Parts:
    models = list(tail.models)
    if not models:
        return blocks, tail, entries
    i = int(rng.integers(len(models)))
    match int(rng.integers(5)):
        case 0:
            models[i] = damaged(rng, models[i])
        case 1:
            models = models[:i] + models[i + 1 :]
        case 2:
            digest = rng.bytes(32) if rng.random() < 0.5 else bytes.fromhex(
                read_model_bytes(models[i]).digest
            )  # fmt: skip
            return blocks, dataclasses.replace(tail, models=(), digests=(digest,)), entries
        case _:
            models[i] = _changed_model(rng, models[i])
    return blocks, dataclasses.replace(tail, models=tuple(models)), entries


def _changed_model(rng: Rng, data: bytes) -> bytes:
    """Return a model of other settings, another layout or other arrays."""
    model = read_model_bytes(data)
    settings = dict(model.settings)
    arrays = dict(model.arrays)
    for _ in range(int(rng.integers(1, 3))):
        match int(rng.integers(6)):
            case 0 if settings:
                settings[str(rng.choice(list(settings)))] = _plain(odd_json(rng))
            case 1 if arrays:
                name = str(rng.choice(list(arrays)))
                arrays[name] = _other_array(rng, arrays[name])
            case 2:
                model = dataclasses.replace(model, n_columns=_small_count(rng))
            case 3:
                model = dataclasses.replace(model, slice_rows=_small_count(rng))
            case 4:
                model = dataclasses.replace(model, symmetric=not model.symmetric)
            case _:
                model = dataclasses.replace(model, predictor=str(rng.choice([*NAMES, word(rng)])))
    model = dataclasses.replace(model, settings=settings, arrays=arrays)
    try:
        return model_bytes(model)
    except (ValueError, TypeError, OverflowError, RecursionError, AttributeError):
        return damaged(rng, data)


def _plain(value: Any) -> Any:
    finite = not isinstance(value, float) or abs(value) < float("inf")
    return value if finite else 0


def _small_count(rng: Rng) -> int:
    return int(rng.choice([0, 1, 2, 3, 5, 6, 7, 60, 1000, 2**31 - 1]))


def _other_array(rng: Rng, array: Any) -> Any:
    match int(rng.integers(5)):
        case 0:
            return np.resize(array, tuple(rng.integers(0, 9, size=int(rng.integers(1, 4)))))
        case 1:
            return np.frombuffer(damaged(rng, array.tobytes()), np.uint8)
        case 2:
            return array.astype(str(rng.choice(["<f8", "<f4", "<i8", "|u1", "<i2"])))
        case 3:
            return np.full_like(array, rng.choice([0, 1, 127]))
        case _:
            changed = array.copy()
            if changed.size:
                changed.flat[rng.integers(changed.size)] = rng.integers(127)
            return changed


def _other_numbers(rng: Rng, blocks: list[Block], tail: Tail, entries: Any) -> Parts:
    return _other_block(rng, blocks, tail, entries, 2, lambda data: damaged(rng, data))


def _other_exact(rng: Rng, blocks: list[Block], tail: Tail, entries: Any) -> Parts:
    def changed(data: bytes) -> bytes:
        if rng.random() < 0.3:
            return damaged(rng, data)
        return pack(damaged(rng, unpack(data, "it")))

    return _other_block(rng, blocks, tail, entries, 3, changed)


def _other_block(
    rng: Rng, blocks: list[Block], tail: Tail, entries: Any, place: int,
    changed: Callable[[bytes], bytes],
) -> Parts:  # fmt: skip
    if blocks:
        i = int(rng.integers(len(blocks)))
        block = list(blocks[i])
        block[place] = changed(block[place])  # type: ignore[arg-type,call-overload]
        blocks = [*blocks[:i], tuple(block), *blocks[i + 1 :]]  # type: ignore[list-item]
    return blocks, tail, entries


def _other_index(rng: Rng, blocks: list[Block], tail: Tail, entries: Any) -> Parts:
    """Tell of other rows, parts and sizes, or of blocks in another order."""
    seed = int(rng.integers(2**32))

    def changed(found: list[Entry]) -> list[Entry]:
        again = np.random.default_rng(seed)
        if not found:
            return found
        i = int(again.integers(len(found)))
        if again.random() < 0.2:
            return [*found[i:], *found[:i]]
        name = str(again.choice(["part", "n_rows", "n_rows", "matrix_size", "exact_size"]))
        counts = [0, 1, 2, 60, 2**20, 2**23, 2**31, 2**40, 2**62, getattr(found[i], name) + 1]
        value = int(counts[again.integers(len(counts))])
        return [*found[:i], dataclasses.replace(found[i], **{name: value}), *found[i + 1 :]]

    if rng.random() < 0.3 and len(blocks) > 1:
        i, j = rng.integers(len(blocks), size=2)
        blocks = list(blocks)
        blocks[i], blocks[j] = blocks[j], blocks[i]
        return blocks, tail, entries
    return blocks, tail, changed


def _other_schema(rng: Rng, blocks: list[Block], tail: Tail, entries: Any) -> Parts:
    schema = tail.schema
    if schema and rng.random() < 0.8:
        schema = pack(damaged(rng, unpack(schema, "it")))
    else:
        schema = damaged(rng, schema)
    return blocks, dataclasses.replace(tail, schema=schema), entries


def _many_blocks(rng: Rng, blocks: list[Block], tail: Tail, entries: Any) -> Parts:
    """Repeat a block very often, perhaps with more rows; a head that tells rows tells these."""
    if not blocks:
        return blocks, tail, entries
    i, times = int(rng.integers(len(blocks))), int(rng.choice([2, 30, 300]))
    part, n_rows, matrix, exact = blocks[i]
    n_rows = int(rng.choice([n_rows, n_rows, 2**16, 2**23]))
    if rng.random() < 0.3:  # numbers that are stored as they are
        n_values = n_rows * int(rng.choice([1, 2, 5]))
        width = int(rng.choice([4, 8]))
        matrix = b"\0" + zstandard.compress(bytes(min(n_values * width, 1 << 26)))
    blocks = [*blocks[:i], *[(part, n_rows, matrix, exact)] * times, *blocks[i + 1 :]]
    tree = unsqueeze(tail.header, "it")
    said = tree.get("parts")
    if isinstance(said, list) and part < len(said) and _has_head(said[part]):
        total = sum(block[1] for block in blocks if block[0] == part)
        head = re.sub(r"'shape': \((\d+)", f"'shape': ({total}", said[part]["head"])
        said[part]["head"] = head.replace(" " * (len(head) - len(said[part]["head"])), "", 1)
    return blocks, dataclasses.replace(tail, header=_squeezed(rng, tree, tail.header)), entries


def _has_head(part: Any) -> bool:
    return isinstance(part, dict) and isinstance(part.get("head"), str)


def _many_models(rng: Rng, blocks: list[Block], tail: Tail, entries: Any) -> Parts:
    """Store a model very often, perhaps with a long history of nothing or long settings."""
    if not tail.models:
        return blocks, tail, entries
    model = read_model_bytes(tail.models[0])
    if rng.random() < 0.5:
        history = np.zeros((int(rng.choice([1, 2**14, 2**19])), model.n_columns))
        arrays = {**model.arrays, "history": history}
        model = dataclasses.replace(model, arrays=arrays)
    if rng.random() < 0.3:
        settings = {**model.settings, "more": [[]] * int(rng.choice([10, 20_000, 60_000]))}
        model = dataclasses.replace(model, settings=settings)
    models = (model_bytes(model),) * int(rng.choice([1, 20, 1000]))
    return blocks, dataclasses.replace(tail, models=models), entries


def _long_exact(rng: Rng, blocks: list[Block], tail: Tail, entries: Any) -> Parts:
    """Put very many equal pieces into what is kept exactly."""

    def changed(data: bytes) -> bytes:
        found = unpack(data, "it")
        at = int(rng.integers(len(found) + 1))
        pieces = [b"\0", b"\4\1x", b"\4\0", b"\2\1", b"\xff", found[at : at + 9]]
        piece = pieces[rng.integers(len(pieces))]
        return pack(found[:at] + piece * int(rng.choice([10, 10**4, 10**7])) + found[at:])

    return _other_block(rng, blocks, tail, entries, 3, changed)


def _written(blocks: list[Block], tail: Tail, entries: Any) -> bytes:
    file = io.BytesIO()
    writer = Writer(file)
    for block in blocks:
        writer.add(*block)
    if entries is not None:
        writer.entries[:] = entries(writer.entries)
    writer.finish(tail)
    return file.getvalue()


def _made_up(rng: Rng, original: _Original) -> bytes:
    """Return a file that nobody wrote: of random parts, some of which are right."""
    n_parts = int(rng.integers(0, 4))
    parts: list[Any] = [_made_up_part(rng) for _ in range(n_parts)]
    tree: dict[str, Any] = {
        "kind": str(rng.choice(["npy", "npz", "csv", "parquet", "array", "model", word(rng)])),
        "bound": [0.01, None], "parts": parts, "table": _made_up_table(rng),
    }  # fmt: skip
    if rng.random() < 0.2:
        tree = changed_json(rng, tree)
    schema = original.tail.schema
    if rng.random() < 0.3:
        schema = pack(rng.bytes(int(rng.integers(60))))
    models = tuple(_made_up_model(rng) for _ in range(int(rng.integers(0, 3))))
    tail = Tail(_squeezed(rng, tree, original.tail.header), models, (), schema)
    blocks = []
    for i in range(int(rng.integers(0, 4))):
        part = int(rng.integers(0, max(1, n_parts))) if rng.random() < 0.3 else min(i, n_parts)
        matrix = _payload(rng, [block[2] for block in original.blocks])
        exact = _payload(rng, [block[3] for block in original.blocks])
        if rng.random() < 0.5:
            exact = pack(_made_up_exact(rng))
        n_rows = int(rng.choice([1, 2, 5, 25, 60, 1000, 2**20, 2**23, 2**40]))
        blocks.append((part, n_rows, matrix, exact))
    return _written(blocks, tail, None)


def _made_up_part(rng: Rng) -> Any:
    if rng.random() < 0.05:
        return odd_json(rng)
    shape = tuple(int(n) for n in rng.choice([0, 1, 2, 5, 25, 60, 2**20, 2**40],
                                             size=int(rng.integers(0, 5))))  # fmt: skip
    descrs = ["<f8", "<f4", ">f8", "<f2", "<i8", "|u1", "<U3", "|O", "<M8[ns]", "<f16"]
    descr = str(rng.choice(descrs))
    fields = {"descr": descr, "fortran_order": bool(rng.integers(2)), "shape": shape}
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, fields)
    text = head.getvalue().decode("latin-1")
    part: dict[str, Any] = {"head": text if rng.random() < 0.9 else word(rng)}
    if rng.random() < 0.7:
        part |= {"dtype": str(rng.choice(["f4", "f8"])), "model": int(rng.integers(0, 2))}
    if rng.random() < 0.3:
        part["name"] = word(rng)
    if rng.random() < 0.3:
        del part["head"]
    return part


def _made_up_table(rng: Rng) -> Any:
    if rng.random() < 0.05:
        return odd_json(rng)
    n = int(rng.choice([0, 1, 2, 5, 6, 1000, 2**24, 2**40]))
    table = {
        "line": "a,b,c\n" if rng.random() < 0.8 else word(rng), "columns": n,
        "delimiter": str(rng.choice([",", ";", "\t", "x"])), "names": int(rng.integers(2)),
        "approximate": sorted(rng.integers(7, size=2 * int(rng.integers(2))).tolist()),
        "whole": [] if rng.random() < 0.5 else [0, 1], "end": str(rng.choice(["\n", "\r\n", "\r"])),
        "codec": str(rng.choice(["zstd", "none", "other"])), "group": _small_count(rng),
        "styles": [] if rng.random() < 0.5 else [0, 1, 2][: int(rng.integers(4))],
        "rest": word(rng),
    }  # fmt: skip
    kept = rng.random(len(table)) < 0.8
    return {key: value for (key, value), keep in zip(table.items(), kept, strict=True) if keep}


def _made_up_model(rng: Rng) -> bytes:
    settings = {
        str(rng.choice(["lag", "past", "lags", "parents", "stride", "n_atoms", "alpha", "gamma",
                        "atom_code", "mean_code", word(rng)])):
        _plain([1, 2, 5, [1, 2], NUMBERS[rng.integers(10)], odd_json(rng)][rng.integers(6)])
        for _ in range(int(rng.integers(0, 5)))
    }  # fmt: skip
    arrays = {
        str(rng.choice(["atoms", "history", word(rng)])):
        np.frombuffer(rng.bytes(8 * int(rng.integers(0, 40))), rng.choice(["<f8", "|u1", "<i4"]))
        for _ in range(int(rng.integers(0, 2)))
    }  # fmt: skip
    try:
        return model_bytes(
            CodecModel(
                str(rng.choice([*NAMES, WORDS[3]])), int(rng.choice([1, 2, 3, 5, 6, 1000, 2**30])),
                int(rng.choice([0, 0, 0, 1, 6, 2**20])), bool(rng.random() < 0.2), settings, arrays,
            )
        )  # fmt: skip
    except (ValueError, TypeError, OverflowError, RecursionError, AttributeError):
        return rng.bytes(int(rng.integers(30)))


def _made_up_exact(rng: Rng) -> bytes:
    """Return bytes that may be taken for columns: small numbers, forms, lengths, texts."""
    pieces = [
        bytes(rng.integers(0, 5, size=int(rng.integers(1, 9))).tolist()),
        number(int(rng.choice([0, 1, 5, 60, 300, 2**20, 2**40, 2**62]))),
        bytes(int(rng.integers(0, 70))),
        word(rng).encode("utf-8", "ignore"),
        rng.bytes(int(rng.integers(0, 70))),
    ]
    return b"".join(pieces[i] for i in rng.integers(len(pieces), size=int(rng.integers(1, 12))))


def _payload(rng: Rng, right: list[bytes]) -> bytes:
    match int(rng.integers(4)):
        case 0 if right:
            return right[rng.integers(len(right))]
        case 1:
            return b""
        case 2:
            return rng.bytes(int(rng.integers(1, 80)))
        case _:
            return bytes(rng.integers(0, 4, size=int(rng.integers(1, 80))).tolist())
