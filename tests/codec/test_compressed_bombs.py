"""Small files that would become large ones: refused before they cost memory, disk or time."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from codec import compressed_bombs as bombs
from codec.compressed_bombs import BOMBS, blocks_of_zeros, csv_of_blocks, parquet_of_groups
from kernelatoms import KernelCodec, compress, decompress, inspect_compressed
from kernelatoms.codec import CodecError, fit_codec
from kernelatoms.codec.blocks import map_in_order
from kernelatoms.codec.limits import OversizedError
from kernelatoms.codec.packed.arrow_columns import column_size
from kernelatoms.codec.packed.arrow_messages import read_batch, read_schema
from kernelatoms.codec.packing import pack
from kernelatoms.limits import TooLargeError

HARMLESS = {"parquet_of_groups", "csv_of_blocks"}  # of some size, and tested below


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """What each file came to in a process of little memory, and what it left behind."""
    if not Path("/proc/self/statm").exists():
        pytest.skip("memory is limited on Linux only")
    folder = tmp_path_factory.mktemp("bombs")
    names = [name for name in BOMBS if name not in HARMLESS]
    for name in names:
        (folder / f"{name}.kac").write_bytes(BOMBS[name]())
    command = [sys.executable, bombs.__file__, str(folder), *names]
    there = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, sys.path)),
             "MALLOC_ARENA_MAX": "1", "OMP_NUM_THREADS": "2"}  # fmt: skip
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=90, env=there)
        said = done.stdout + done.stderr
    except subprocess.TimeoutExpired as error:
        said = (error.stdout or b"").decode()
    lines = [line for line in said.splitlines() if line.startswith("[")]
    left = [file.name for file in folder.iterdir() if file.suffix not in (".kac", ".npy")]
    return dict(map(json.loads, lines)), left, said


@pytest.mark.parametrize("name", [name for name in BOMBS if name not in HARMLESS])
def test_small_files_stay_small(name, outcomes):
    found, left, said = outcomes
    assert name in found, f"the process ended or hung before: {said[-2000:]}"
    for outcome in found[name]:
        assert outcome.startswith(("OversizedError: ", "CodecError: ")), outcome
        assert "MemoryError" not in outcome
    assert not left


def test_what_is_allowed_is_said_and_can_be_changed(tmp_path):
    """A constant column shrinks ten thousandfold, and is no bomb."""
    np.save(tmp_path / "x.npy", np.ones(60_000))
    path = compress(tmp_path / "x.npy", model="lags").path
    assert path.stat().st_size < 500
    back = decompress(path, tmp_path / "back.npy")
    assert np.allclose(np.load(back), 1, rtol=0.02)
    info = inspect_compressed(path, tmp_path / "x.npy")
    assert info.rows_beyond == 0
    before = back.read_bytes()
    words = r"x\.npy\.kac: its \d+ bytes would become 480,000 bytes or more, and 400,000 bytes are "
    with pytest.raises(OversizedError, match=words + ".*max_size"):
        decompress(path, back, max_size=400_000)
    with pytest.raises(TooLargeError, match=words):
        inspect_compressed(path, tmp_path / "x.npy", max_size=400_000)
    with pytest.raises(CodecError, match="480,000 bytes or more"):
        KernelCodec().decode(path.read_bytes(), max_size=400_000)
    assert back.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["back.npy", "x.npy", "x.npy.kac"]
    assert np.load(decompress(path, back, max_size=480_000)).shape == (60_000,)
    assert len(np.load(decompress(path, back, rows=(5, 9), max_size=480_000))) == 4
    for wrong in (0, -1, 2.5, "4GiB"):
        with pytest.raises((ValueError, TypeError), match="max_size"):
            decompress(path, back, max_size=wrong)


def test_some_rows_of_a_bomb_can_be_read(tmp_path):
    path = tmp_path / "big.kac"
    path.write_bytes(blocks_of_zeros())
    with pytest.raises(OversizedError, match=r"6\.2 GiB"):
        decompress(path, tmp_path / "all.npy")
    some = decompress(path, tmp_path / "some.npy", rows=(10, 20))
    assert np.load(some).tolist() == [[0.0]] * 10


def test_texts_are_counted_while_they_are_written(tmp_path):
    path = tmp_path / "big.kac"
    path.write_bytes(csv_of_blocks())
    with pytest.raises(OversizedError, match=r"or more, and 3\.0 MiB are allowed"):
        decompress(path, tmp_path / "x.csv", rows=(0, 100_000), max_size=3 << 20)
    assert [file.name for file in tmp_path.iterdir()] == ["big.kac"]
    text = decompress(path, tmp_path / "x.csv", rows=(0, 100_000), max_size=7 << 20).read_bytes()
    assert text == (b"x" * 64 + b"\n") * 100_000


def test_a_table_of_very_many_groups_comes_back_in_fewer(tmp_path):
    path = tmp_path / "groups.kac"
    path.write_bytes(parquet_of_groups())
    found = parquet.ParquetFile(decompress(path, tmp_path / "x.parquet"))
    assert found.metadata.num_rows == 1 << 19
    assert found.metadata.num_row_groups <= 1 << 16


def test_sources_that_expand_are_refused(tmp_path):
    X = np.zeros((20_000, 4))
    np.savez_compressed(tmp_path / "x.npz", X=X, y=X)
    columns = {"a": X[:, 0], "w": ["a word that repeats itself"] * len(X)}
    parquet.write_table(pyarrow.table(columns), tmp_path / "x.parquet", compression="zstd")
    for name, most in (("x.npz", 1_260_000), ("x.parquet", 140_000), ("x.parquet", 600_000)):
        for what in (compress, fit_codec):
            target = tmp_path / f"{name}.{'kac' if what is compress else 'kam'}"
            with pytest.raises(TooLargeError, match=rf"{name}: its [\d,]+ bytes .* max_size"):
                what(tmp_path / name, target, model="lags", max_size=most)
            assert not target.exists()
    assert compress(tmp_path / "x.parquet", model="lags", max_size=800_000).n_rows == 20_000
    with zipfile.ZipFile(tmp_path / "zip.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.txt", bytes(10**7))
    with pytest.raises(TooLargeError, match=r"9\.5 MiB"):
        compress(tmp_path / "zip.npz", max_size=10**6)


def test_texts_come_back_the_same_in_pieces_of_any_size(tmp_path, monkeypatch, rng):
    lines = ["id,x,word,some,same"]
    for i in range(60):
        x = ["", "NA", f"{rng.normal() * 1e4:.2f}", "2.50"][int(rng.integers(4))]
        lines.append(f"{i % 7},{x},{'ab' * (i % 3)},{i if i % 4 else ''},k")
        if i % 11 == 0:
            lines += ["# a remark", ""]
    lines += ["# the end", "#"]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(lines))
    exact = compress(path, tmp_path / "exact.kac", max_error=None, block_rows=25).path
    assert decompress(exact, tmp_path / "x.csv").read_bytes() == path.read_bytes()
    whole = compress(path, max_absolute=0.001, model="lags", block_rows=25).path
    expected = decompress(whole, tmp_path / "whole.csv").read_bytes()
    some = decompress(whole, tmp_path / "some.csv", rows=(13, 51)).read_bytes()
    assert expected.decode().splitlines()[0] == lines[0]
    for n_fields in (1, 7, 23, 100):
        monkeypatch.setattr("kernelatoms.codec.packed.csv_lines._PIECE_FIELDS", n_fields)
        assert decompress(exact, tmp_path / "x.csv").read_bytes() == path.read_bytes()
        assert decompress(whole, tmp_path / "x.csv").read_bytes() == expected
        assert decompress(whole, tmp_path / "x.csv", rows=(13, 51)).read_bytes() == some


def test_large_blocks_are_decoded_one_at_a_time(monkeypatch):
    monkeypatch.setattr("kernelatoms.codec.blocks._UNDER_WAY", 10)
    monkeypatch.setenv("KERNELATOMS_NUM_THREADS", "4")
    together = []

    def each(work, items):
        together.append(list(items))
        return [work(item) for item in items]

    monkeypatch.setattr("kernelatoms.codec.blocks.each", each)
    sizes = [3, 30, 15, 20, 500, 1, 1, 1, 1, 1]
    assert list(map_in_order(lambda i: i, sizes, lambda i: i)) == sizes
    assert together == [[3, 30], [15, 20], [1, 1, 1, 1]]  # and 500 and the last alone
    assert list(map_in_order(lambda i: i, sizes)) == sizes
    assert together[3:] == [[3, 30, 15, 20], [500, 1, 1, 1], [1, 1]]


def test_blocks_are_counted_together(tmp_path):
    """Texts that are kept exactly are known when their block is read, and not before."""
    column = pyarrow.array(["x" * 1000] * 1000)
    block = (0, 1000, b"", pack(bombs.stream(column)))
    path = tmp_path / "t.kac"
    path.write_bytes(bombs.parquet_file({"a": column.type}, [block], 40))
    assert path.stat().st_size < 200_000
    for most in (10 << 20, 60 << 20):
        with pytest.raises(OversizedError, match="or more, and"):
            decompress(path, tmp_path / "t.parquet", max_size=most)
    assert [file.name for file in tmp_path.iterdir()] == ["t.kac"]
    found = parquet.read_table(decompress(path, tmp_path / "t.parquet", max_size=90 << 20))
    assert found.num_rows == 40_000


TYPES = [
    (pyarrow.list_(pyarrow.string()), [["a", "bcd"], [], None, ["e"]]),
    (pyarrow.large_list(pyarrow.int16()), [[1, 2], [], None, [3]]),
    (pyarrow.list_(pyarrow.bool_(), 2), [[True, None], None, [False, True], [True, True]]),
    (pyarrow.list_(pyarrow.string(), 2), [["a", "bc"], ["", "d"], ["e", "f"], ["ghi", ""]]),
    (pyarrow.list_view(pyarrow.string()), [["a", "bcd"], [], None, ["e"]]),
    (pyarrow.struct({"a": pyarrow.int32(), "b": pyarrow.binary()}), [{"a": 1, "b": b"xyz"}] * 4),
    (pyarrow.map_(pyarrow.string(), pyarrow.int8()), [[("a", 1)], [], None, [("bc", 2)]]),
    (pyarrow.string_view(), ["a", "a text of more than twelve letters", None, ""]),
    (pyarrow.large_string(), ["a", "bc", None, ""]),
    (pyarrow.dictionary(pyarrow.int8(), pyarrow.string()), ["abc", "d", None, "abc"]),
    (pyarrow.decimal128(9, 2), [None] * 4),
    (pyarrow.null(), [None] * 4),
    (pyarrow.uuid(), None),
]


def declared(value):
    """Return the letters and numbers in a value: fewer bytes than any form of it takes."""
    if isinstance(value, (str, bytes)):
        return len(value)
    if isinstance(value, dict):
        return sum(map(declared, value.values()))
    if isinstance(value, (list, tuple)):
        return sum(map(declared, value))
    return 0 if value is None else 1


@pytest.mark.parametrize(("kind", "values"), TYPES, ids=lambda x: str(x)[:40])
def test_columns_come_back_and_are_as_large_as_their_values(kind, values, monkeypatch):
    if values is None:
        storage = pyarrow.array([b"0123456789abcdef"] * 4, pyarrow.binary(16))
        column, values = pyarrow.ExtensionArray.from_storage(kind, storage), [b"x" * 16] * 4
    else:
        column = pyarrow.array(values, kind)
    again = read_batch(bombs.stream(column)[1:], [kind]).column(0)
    assert again.equals(column)
    monkeypatch.setattr("kernelatoms.codec.packed.arrow_columns._SMALL_DICTIONARY", 1)
    for array in (again, column):
        assert declared(values) <= column_size(array) <= declared(values) + 4 * 40
        assert column_size(array[1:3]) <= column_size(array)


def test_streams_of_other_types_or_batches_are_refused():
    numbers = pyarrow.array([1, 2, 3])
    stream = bombs.stream(numbers)[1:]
    for kind in (pyarrow.string(), pyarrow.list_(pyarrow.int64()), pyarrow.int32()):
        if kind != pyarrow.int32():
            with pytest.raises(CodecError):
                read_batch(stream, [kind])
    with pytest.raises(CodecError):
        read_batch(stream, [numbers.type, numbers.type])
    for data in (b"", stream[:20], stream[: len(stream) // 2], b"\xff" * 30):
        with pytest.raises(CodecError):
            read_batch(data, [numbers.type])
    words = pyarrow.array(["a", "a"]).dictionary_encode()
    with pytest.raises(CodecError, match="twice"):
        read_batch(bombs.stream(words, "zstd")[1:], [words.type])
    # The dictionary alone.
    packed, plain = (
        list(pyarrow.ipc.MessageReader.open_stream(bombs.stream(words, how)[1:]))
        for how in ("zstd", None)
    )
    for messages in ([plain[0], packed[1], plain[2]], [plain[0], plain[1], packed[2]]):
        with pytest.raises(CodecError, match="twice"):
            read_batch(b"".join(bytes(m.serialize()) for m in messages), [words.type])
    whole = b"".join(bytes(m.serialize()) for m in plain)
    assert read_batch(whole, [words.type]).column(0).equals(words)
    with pytest.raises(CodecError, match="one batch"):
        read_batch(whole + bytes(plain[2].serialize()), [words.type])


def test_schemas_come_back():
    inner = pyarrow.field("a", pyarrow.timestamp("s", "Europe/Berlin"), metadata={"k": "v" * 999})
    for fields in ([], [("x", pyarrow.int8())], [("s", pyarrow.struct([inner] * 3)), inner]):
        schema = pyarrow.schema(fields, metadata={"pandas": "{}" * 500})
        assert read_schema(bytes(schema.serialize())).equals(schema, check_metadata=True)
    data = bytes(schema.serialize())
    for wrong in (b"", data[:9], data[:60], bytes(100), b"\xff" * 100):
        with pytest.raises(CodecError):
            read_schema(wrong)


def test_packed_sizes_are_told():
    from kernelatoms.codec.packing import unpacked_size

    for data in (b"", b"a", bytes(5000), bytes(range(256))):
        assert unpacked_size(pack(data)) == len(data)
