"""The container: what is whole comes back, what is not is never decoded."""

import dataclasses
import io

import numpy as np
import pytest

from codec.containers import BOUND, MODEL, X, make, other_entry, taken_apart, written
from kernelatoms.codec.blocks import Compressed
from kernelatoms.codec.container import END, SIGNATURE, Header, Reader, Tail, Writer, section_sizes
from kernelatoms.codec.limits import CodecError
from kernelatoms.codec.models.codec_model import CodecModel, model_bytes
from kernelatoms.codec.packed.arrays import Layout, decode_array


def test_what_is_whole_comes_back():
    data = make()
    assert not BOUND.broken(X, decode_array(data)).any()
    assert sum(section_sizes(Reader(data)).values()) == len(data)
    with io.BytesIO(data) as file:
        assert Compressed(file).n_rows() == 12


def test_a_small_file_has_little_beside_its_numbers():
    data = make(block_rows=12)
    assert len(data) - Reader(data).entries[0].matrix_size < 90


def test_every_changed_byte_is_noticed():
    data = make(X[:4, :2], 2, CodecModel("exact", 2))
    for place in range(len(data)):
        for change in (1, 16, 128, 255):
            damaged = bytearray(data)
            damaged[place] ^= change
            with pytest.raises(CodecError):
                decode_array(bytes(damaged))


def test_every_cut_and_every_addition_is_noticed():
    data = make(X[:4, :2], 2, CodecModel("exact", 2))
    for size in range(len(data)):
        with pytest.raises(CodecError):
            decode_array(data[:size])
    for more in (b"\0", b"kac", data):
        with pytest.raises(CodecError):
            decode_array(data + more)


def test_blocks_moved_left_out_doubled_or_of_another_file_are_noticed():
    data, other = make(), make(2 * X)
    places = [(e.offset, e.offset + e.size) for e in Reader(data).entries]
    one, two, three = (data[a:b] for a, b in places)
    (a, b), *_ = [(e.offset, e.offset + e.size) for e in Reader(other).entries]
    rest = data[places[-1][1] :]
    start = data[: places[0][0]]
    assert start + one + two + three + rest == data
    for blocks in ((two, one, three), (one, three), (one, one, two, three), (one, one, three),
                   (other[a:b], two, three)):  # fmt: skip
        with pytest.raises(CodecError):
            decode_array(start + b"".join(blocks) + rest)


def test_rows_are_read_without_the_other_blocks():
    data = bytearray(make())
    data[Reader(bytes(data)).entries[2].offset] ^= 1
    opened = Compressed(bytes(data))
    (block,) = opened.blocks(0, 5, 7)
    assert (block.start, block.n_rows) == (4, 4)
    with pytest.raises(CodecError, match="block 2 is damaged"):
        list(opened.blocks(0, 7, 9))
    with pytest.raises(CodecError, match="block 2 is damaged"):
        opened.check()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not a compressed file"),
        (b"PK\3\4" + bytes(40), "not a compressed file"),
        (SIGNATURE, "cut short"),
        (SIGNATURE + b"\x02" + bytes(40) + END, "format 2, which this version"),
        (SIGNATURE + b"\x01" + bytes(40), "end mark is missing"),
        (SIGNATURE + b"\x01" + b"\xff" * 12 + END, "longer than the file"),
    ],
)
def test_other_files_are_refused_in_words(data, message):
    with pytest.raises(CodecError, match=message):
        Reader(data)


HUGE = {
    "rows": {"n_rows": 1 << 60},
    "rows that a number of 63 bits does not hold": {"n_rows": 1 << 62},
    "no rows": {"n_rows": 0},
    "a part that is not there": {"part": 7},
    "bytes that are not there": {"matrix_size": 1 << 50},
    "fewer bytes": {"matrix_size": 3},
    "bytes moved": {"matrix_size": 0, "exact_size": 9},
}


@pytest.mark.parametrize("changes", HUGE.values(), ids=HUGE)
def test_an_index_that_lies_is_refused(changes):
    """Its checksums are right: whoever wrote it knows the format."""
    blocks, tail = taken_apart(make())
    data = written(blocks, tail, lambda e: [e[0], other_entry(e[1], **changes), e[2]])
    with pytest.raises(CodecError):
        decode_array(data)


def part(**changes):
    head = Header.from_bytes(taken_apart(make())[1].header).parts[0]
    return dataclasses.replace(head, **changes)


HEAD = part().head
LIES = {
    "more rows": {"parts": (part(head=HEAD.replace("(12, 4)", "(13, 4)")),)},
    "very many rows": {"parts": (part(head=HEAD.replace("(12, 4)", f"({1 << 60}, 4)")),)},
    "other columns": {"parts": (part(head=HEAD.replace("(12, 4)", "(24, 2)")),)},
    "slices": {"parts": (part(head=HEAD.replace("(12, 4)", "(12, 2, 2)")),)},
    "negative": {"parts": (part(head=HEAD.replace("(12, 4)", "(-12, 4)")),)},
    "another type": {"parts": (part(head=HEAD.replace("<f8", "<f4")),)},
    "whole numbers": {"parts": (part(head=HEAD.replace("<f8", "<i8")),)},
    "objects": {"parts": (part(head=HEAD.replace("<f8", "|O")),)},
    "no head": {"parts": (part(head=""),)},
    "no array": {"parts": ()},
    "two arrays": {"parts": (part(), part())},
    "a model that is not there": {"parts": (part(model=1),)},
    "no model": {"parts": (part(model=-1, dtype=""),)},
    "a table": {"kind": "csv"},
    "a model alone": {"kind": "model"},
}


@pytest.mark.parametrize("changes", LIES.values(), ids=LIES)
def test_a_header_that_lies_is_refused(changes):
    with pytest.raises(CodecError):
        decode_array(make(**changes))


def test_a_model_that_lies_is_refused():
    blocks, tail = taken_apart(make())
    for model in (CodecModel("nothing", 4), CodecModel("lags", 4), CodecModel("lags", 0),
                  CodecModel("lags", 1 << 40, settings={"lag": 1, "past": 1}),
                  CodecModel("lags", 4, 5, settings={"lag": 1, "past": 1}),
                  CodecModel("lags", 4, 0, True, {"lag": 1, "past": 1})):  # fmt: skip
        other = Tail(tail.header, (model_bytes(model),))
        with pytest.raises(CodecError):
            decode_array(written(blocks, other))
    for junk in (b"", b"\0", b"\1", b"\2abc", b"\0" + bytes(40)):
        with pytest.raises(CodecError):
            decode_array(written(blocks, Tail(tail.header, (junk,))))


def test_a_model_may_be_somewhere_else():
    blocks, tail = taken_apart(make())
    data = written(blocks, Tail(tail.header, (), (bytes.fromhex(MODEL.digest),)))
    assert np.array_equal(decode_array(data, MODEL), decode_array(make()))
    with pytest.raises(CodecError, match=f"digest {MODEL.digest}"):
        decode_array(data)
    other = CodecModel("exact", 4)
    with pytest.raises(CodecError, match=f"{MODEL.digest}, and the one given has {other.digest}"):
        decode_array(data, other)


def test_equal_input_makes_equal_bytes():
    assert make() == make()


def test_a_huge_block_of_next_to_no_bytes_is_filled_up(monkeypatch):
    monkeypatch.setattr("kernelatoms.codec.blocks.BLOCK_VALUES", 64)
    constant = np.ones((8, 500))
    model = CodecModel("lags", 500, settings={"lag": 1, "past": 1})
    data = make(constant, 8, model)
    assert np.allclose(decode_array(data), constant, rtol=0.02)


def test_copies_are_checked():
    data = bytearray(make())
    data[20] ^= 1
    with pytest.raises(CodecError, match="block 0 is damaged"):
        Writer(io.BytesIO()).copy(Reader(bytes(data)))


@pytest.mark.parametrize("shape", [(0, 1 << 61), (1 << 40, 0, 1 << 21), (1 << 59,)])
def test_heads_of_arrays_that_numpy_does_not_make_are_refused(shape):
    with pytest.raises(CodecError, match="head of an array is invalid"):
        Layout.from_head(Layout(shape, False, np.dtype("f8")).head())
