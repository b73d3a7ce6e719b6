"""Numbers, frames, headers and exact values: what goes in comes out, whatever else is refused."""

import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from kernelatoms.codec.bounds import Bound, ErrorStats, column_sums, row_errors
from kernelatoms.codec.container import Header, Part
from kernelatoms.codec.limits import CodecError
from kernelatoms.codec.packing import (
    Cursor,
    arrange,
    number,
    pack,
    rearrange,
    squeeze,
    unpack,
    unsqueeze,
)


@given(st.lists(st.integers(0, 2**63 - 1)))
def test_numbers(values):
    cursor = Cursor(b"".join(map(number, values)), "it")
    assert [cursor.number() for _ in values] == values
    cursor.end()


@pytest.mark.parametrize("data", [b"", b"\x80", b"\xff" * 9 + b"\x7f", number(2**63), b"\xff" * 12])
def test_numbers_that_are_none(data):
    with pytest.raises(CodecError):
        Cursor(data, "it").number()


@given(st.binary(max_size=300), st.integers(1, 50))
def test_frames(piece, times):
    data = piece * times
    assert unpack(pack(data), "it") == data
    assert len(pack(data)) <= len(data) + 1


def test_frames_that_lie_are_refused():
    packed = pack(b"abc" * 100)
    for data in (packed[:-1], packed[:5], b"\2abc", b"\1" + number(299) + packed[3:],
                 b"\1" + number(1 << 50) + packed[3:]):  # fmt: skip
        with pytest.raises(CodecError):
            unpack(data, "it")
    # A frame may name its own size, which zstandard would believe.
    settings = zstandard.ZstdCompressionParameters(
        format=zstandard.FORMAT_ZSTD1_MAGICLESS, write_content_size=True
    )
    frame = zstandard.ZstdCompressor(compression_params=settings).compress(bytes(1 << 20))
    with pytest.raises(CodecError, match="not of the size"):
        unpack(b"\1" + number(10) + frame, "it")


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=9))
def test_short_texts(value):
    assert unsqueeze(squeeze({"key": value}), "it") == {"key": value}


def test_texts_that_would_become_too_long_are_refused():
    import zlib

    tool = zlib.compressobj(9, zlib.DEFLATED, -15)
    bomb = tool.compress(b'{"a":"' + b"a" * (1 << 25) + b'"}') + tool.flush()
    with pytest.raises(CodecError, match="longer than it should be"):
        unsqueeze(bomb, "it")
    for data in (b"", b"\0\0", squeeze({"a": 1})[:-1], squeeze([1]), b"\xff" * 9):
        with pytest.raises(CodecError):
            unsqueeze(data, "it")
    tool = zlib.compressobj(9, zlib.DEFLATED, -15)
    with pytest.raises(CodecError):
        unsqueeze(tool.compress(b"[" * 100_000) + tool.flush(), "it")
    with pytest.raises(ValueError, match="more than"):
        squeeze({"a": "b" * (1 << 25)})
    assert unsqueeze(squeeze({"a": "b" * (1 << 20)}), "it") == {"a": "b" * (1 << 20)}


HEADER = Header(
    "csv", "1.2", Bound(0.01, 2.5), (Part("é", "head", "f8", 0),), {"a": [1]}, (0.1, 0.2),
    (("lags", 7),), 99,
)  # fmt: skip


def test_headers():
    assert Header.from_bytes(HEADER.to_bytes()) == HEADER
    assert Header.from_bytes(Header("npy", "").to_bytes()) == Header("npy", "")


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "zip"}, {}, {"kind": ["npy"]}, {"kind": "npy", "other": 1},
        {"kind": "npy", "bound": [1]}, {"kind": "npy", "bound": ["a", None]},
        {"kind": "npy", "bound": [1e400, None]}, {"kind": "npy", "parts": {}},
        {"kind": "npy", "parts": [[]]}, {"kind": "npy", "parts": [{"model": "0"}]},
        {"kind": "npy", "parts": [{"model": 0}]}, {"kind": "npy", "parts": [{"dtype": "f2"}]},
        {"kind": "npy", "parts": [{"x": 1}]}, {"kind": "npy", "parts": [{"name": 1}]},
        {"kind": "npy", "size": -1}, {"kind": "npy", "size": 1 << 70}, {"kind": "npy", "by": 1},
        {"kind": "npy", "errors": ["a"]}, {"kind": "npy", "trials": [["a"]]},
        {"kind": "npy", "trials": [[1, 2]]}, {"kind": "npy", "table": []},
        {"kind": "npy", "parts": [{"model": True, "dtype": "f4"}]},
    ],
)  # fmt: skip
def test_headers_that_are_none(wrong):
    try:
        data = squeeze(wrong)
    except ValueError:
        data = squeeze({"kind": "npy", "bound": [None, "inf"]})
    with pytest.raises(CodecError, match="the header cannot be read"):
        Header.from_bytes(data)


TYPES = ["u1", "<i2", ">i2", "<i4", "<u8", ">i8", "<f4", ">f8", "M8[ns]", ">m8[s]", "U3", "S5", "?",
         "c16", [("a", "<i2"), ("b", "f8")]]  # fmt: skip


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("count", [0, 1, 7, 1000])
def test_exact_values(dtype, count, rng):
    dtype = np.dtype(dtype)
    values = np.frombuffer(rng.bytes(count * dtype.itemsize), dtype)
    if dtype.kind == "?":
        values = values.view("u1") % 2 == 1
    data = arrange(values)
    again = rearrange(data, dtype, count)
    assert again.dtype == dtype
    assert again.tobytes() == values.tobytes()
    for wrong in (b"", b"\3" + data[1:], data + b"x", data[:-1] if count else b"\7"):
        with pytest.raises(CodecError):
            rearrange(wrong, dtype, count)


def test_counting_up_takes_no_room():
    assert len(pack(arrange(np.arange(10**5) + 2**60))) < 100
    with pytest.raises(CodecError, match="no whole numbers"):
        rearrange(b"\2" + bytes(8), np.dtype("f8"), 1)


def test_row_errors_of_any_size():
    rows = np.array([[3e-320, 4e-320], [3e300, 4e300], [0, 0], [np.nan, 5], [np.inf, 2]])
    moved = rows.copy()
    moved[:, 1] *= 0.5
    relative, largest = row_errors(rows, moved)
    assert relative[1:].tolist() == [0.4, 0, 0.5, 0.5]
    assert relative[0] == pytest.approx(0.4, rel=1e-3)
    assert largest == 2e300
    relative, _ = row_errors(np.zeros((1, 2)), np.array([[0, 1.0]]))
    assert relative[0] == np.inf


def test_a_tally_tells_the_shares(rng):
    errors = rng.random(3000)
    whole, parts = ErrorStats(), ErrorStats()
    whole.add(errors, 7.0)
    parts.add(errors[:1000], 7.0)
    later = ErrorStats()
    later.add(errors[1000:], 1.0)
    parts.add_summary(later.numbers(), 2000)
    for tally in (whole, parts):
        half, most, nearly, everything, largest = tally.numbers()
        assert (half, most, nearly) == pytest.approx((0.5, 0.9, 0.99), abs=0.05)
        assert (everything, largest) == (pytest.approx(errors.max(), rel=1e-3), 7.0)
    assert ErrorStats().numbers() == ()
    many = ErrorStats()
    for _ in range(5):
        many.add(rng.random(1 << 19), 0.0)
    assert many.numbers()[0] == pytest.approx(0.5, abs=0.01)


def test_the_share_of_variance_that_columns_keep(rng, monkeypatch):
    rows = rng.normal(size=(300, 5)) * [1, 100, 1e-3, 1, 0] + [1e6, 0, 5, 0, 7]
    decoded = rows + rng.normal(size=rows.shape) * [0.5, 1, 1e-2, 0, 0]
    rows[::7, 0] = np.nan
    rows[3, 1] = np.inf
    monkeypatch.setattr("kernelatoms.codec.bounds._PIECE", 37 * 5)
    tally = ErrorStats()
    for start in (0, 100, 150):
        stop = {0: 100, 100: 150, 150: 300}[start]
        tally.add_columns(2, column_sums(rows[start:stop], decoded[start:stop]))
    expected = []
    for x, y in zip(rows.T, decoded.T, strict=True):
        there = np.isfinite(x)
        spread = np.var(x[there])
        expected.append(1 - np.mean((y - x)[there] ** 2) / spread if spread > 0 else 1)
    np.testing.assert_allclose(tally.columns[2].kept(), expected, rtol=1e-6)
    assert expected[2] < 0 < expected[0] < expected[1] < expected[3]
