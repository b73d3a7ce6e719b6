"""Integers and masks come back from their bytes, which are few; other bytes do no harm."""

from contextlib import suppress

import constriction
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from kernelatoms.codec.loops import entropy
from kernelatoms.codec.loops import range_coder as coding
from oracles import range_coder

SHAPES = st.tuples(st.integers(0, 12), st.integers(0, 9))
SOME = settings(max_examples=60, deadline=None)

INTEGERS = (
    "24a5dc86354a7255a09873a67f8e41238ac5b4ad83b489a5a94dd10c83c0a0e9d68743d3cdcfe928"
    "d71f2dde9eb78797081000000c2d54d554"
)
BITS = "c13cecb3baeaca87f959"
SMALL = "26dcafcee36181"
HALF = "24975d9163783150ba9e9efbf7b8639a59"


@st.composite
def matrices(draw):
    shape = draw(SHAPES)
    limit = draw(st.sampled_from([0, 1, 5, 100, 1 << 30]))
    k = draw(arrays(np.int32, shape, elements=st.integers(-limit, limit)))
    coded = draw(arrays(np.uint8, shape, elements=st.integers(0, 1)))
    steps = draw(arrays(np.int32, shape[:1], elements=st.integers(-(1 << 20), 1 << 20)))
    return k, coded, steps, draw(st.integers(0, 5)), draw(st.integers(0, 20))


@given(matrices())
@SOME
def test_integers_come_back(matrix):
    k, coded, steps, slice_rows, lag = matrix
    data = entropy.encode_integers(k, coded, steps, slice_rows, lag)
    again = entropy.decode_integers(data, coded, steps, slice_rows, lag)
    assert again.dtype == np.int32
    np.testing.assert_array_equal(again, np.where(coded, k, 0))


@given(arrays(np.uint8, SHAPES, elements=st.integers(0, 1)))
@SOME
def test_masks_come_back(mask):
    np.testing.assert_array_equal(entropy.decode_bits(entropy.encode_bits(mask), mask.shape), mask)


@given(arrays(np.int32, st.integers(0, 50), elements=st.integers(-(1 << 30), 1 << 30)))
@SOME
def test_sequences_come_back(values):
    np.testing.assert_array_equal(
        entropy.decode_small(entropy.encode_small(values), len(values)), values
    )


@given(matrices(), st.binary(max_size=300))
@SOME
def test_any_bytes_end(matrix, data):
    k, coded, steps, slice_rows, lag = matrix
    data = np.frombuffer(data, np.uint8)
    with suppress(ValueError):
        entropy.decode_integers(data, coded, steps, slice_rows, lag)
    with suppress(ValueError):
        entropy.decode_bits(data, coded.shape)
    with suppress(ValueError):
        entropy.decode_small(data, k.size)


def sensors(rng, n=300, m=30, size=2.0):
    """Return numbers whose sizes wander, a few of them missing, and steps that go their own way."""
    scale = size * np.exp(0.1 * np.cumsum(rng.standard_normal((n, m)), 0))
    steps = np.cumsum(rng.integers(-5, 6, n)).astype(np.int32)
    k = np.rint(rng.laplace(size=(n, m)) * scale / 2 ** (steps[:, None] / 16)).astype(np.int32)
    return k, (rng.random((n, m)) < 0.9).astype(np.uint8), steps


@pytest.mark.parametrize(
    ("shape", "slice_rows", "lag", "half", "size"),
    [
        ((300, 30), 0, 0, False, 2),
        ((300, 30), 0, 24, False, 0.1),
        ((120, 40), 40, 0, True, 30),
        ((130, 40), 40, 80, True, 1e6),
        ((3, 2500), 0, 1, False, 3),
        ((2500, 3), 1200, 0, False, 3),
    ],
)
def test_numbers_like_those_of_sensors_come_back(rng, shape, slice_rows, lag, half, size):
    k, coded, steps = sensors(rng, *shape, size)
    if half:
        coded *= np.arange(shape[0])[:, None] % shape[1] <= np.arange(shape[1])
    data = entropy.encode_integers(k, coded, steps, slice_rows, lag)
    again = entropy.decode_integers(data, coded, steps, slice_rows, lag)
    np.testing.assert_array_equal(again, np.where(coded, k, 0))


def test_numbers_without_any_law_come_back(rng):
    """They take more bytes than the encoder reckons with at first, and few more than they have."""
    k = rng.integers(-(1 << 30), 1 << 30, (300, 100))
    coded, steps = np.ones(k.shape, np.uint8), np.zeros(300, np.int32)
    data = entropy.encode_integers(k, coded, steps)
    np.testing.assert_array_equal(entropy.decode_integers(data, coded, steps), k)
    assert 2 * k.size < len(data) < 1.02 * 31 / 8 * k.size


@given(matrices())
@settings(max_examples=30, deadline=None)
def test_the_specification_decodes_the_same(matrix):
    """A decoder in plain Python, written after docs/codec-entropy.md."""
    k, coded, *others = matrix
    if coded.any():
        data = entropy.encode_integers(k, coded, *others)
        np.testing.assert_array_equal(
            range_coder.decode_integers(data, coded, *others), np.where(coded, k, 0)
        )
    if coded.size:
        data = entropy.encode_bits(coded)
        np.testing.assert_array_equal(range_coder.decode_bits(data, coded.shape), coded)


@pytest.mark.parametrize(("slice_rows", "lag", "half"), [(0, 0, 0), (0, 7, 0), (15, 30, 1)])
def test_the_specification_decodes_sensors(rng, slice_rows, lag, half):
    k, coded, steps = sensors(rng, 60, 15, 20.0 if lag else 1.0)
    coded[10:12] = 0
    if half:
        coded *= np.arange(60)[:, None] % 15 <= np.arange(15)
    data = entropy.encode_integers(k, coded, steps, slice_rows, lag)
    again = range_coder.decode_integers(data, coded, steps, slice_rows, lag)
    np.testing.assert_array_equal(again, np.where(coded, k, 0))
    np.testing.assert_array_equal(
        range_coder.decode_bits(entropy.encode_bits(coded), coded.shape), coded
    )


def test_few_bytes_more_than_the_entropy(rng):
    """Numbers of one geometric law: nothing can be gained, and little is lost to learning."""
    k = (rng.geometric(0.4, (400, 50)) - 1) * rng.choice([-1, 1], (400, 50))
    coded, steps = np.ones(k.shape, np.uint8), np.zeros(400, np.int32)
    bits = -(0.4 * np.log2(0.4) + 0.6 * np.log2(0.6)) / 0.4 + 0.6
    assert len(entropy.encode_integers(k, coded, steps)) < 1.02 * k.size * bits / 8


def test_rows_without_numbers_change_nothing(rng):
    k, coded, steps = sensors(rng)
    coded[100:110] = 0
    data = entropy.encode_integers(k, coded, steps)
    steps[100:110] = 999_999
    np.testing.assert_array_equal(entropy.encode_integers(k, coded, steps), data)


def test_tables_are_rounded_far_from_halves():
    """Any logarithm that is right to nine digits gives the same numbers."""
    x, logits = np.arange(4096), np.arange(-3071, 3072) / 256
    for values in [
        65536 / (1 + np.exp(-logits)),
        256 * np.log((x + 0.5) / (4095.5 - x)),
        256 * np.log((x + 8) / 256),
        65536 * 2 ** (np.arange(16) / 16),
    ]:
        assert np.abs(values - np.floor(values) - 0.5).min() > 1e-5


def test_bytes_are_what_they_were():
    """The format cannot change unnoticed: old files must stay readable."""
    x = np.arange(96, dtype=np.int32).reshape(12, 8)
    k = (x * x * 7919 % 23 - 11) // (1 + x % 5)
    k[11, 7] = 1 << 30
    coded = (x % 7 > 0).astype(np.uint8)
    data = entropy.encode_integers(k, coded, x[:, 0] // 3, 4, 6)
    assert data.tobytes().hex() == INTEGERS
    assert entropy.encode_bits(coded).tobytes().hex() == BITS
    assert entropy.encode_small(k[:, 1]).tobytes().hex() == SMALL
    half = np.triu(coded)[:8]
    assert entropy.encode_integers(k[:8], half, x[:8, 0], 8).tobytes().hex() == HALF


def test_missing_and_additional_bytes_are_refused(rng):
    k = np.rint(rng.laplace(size=(50, 20)) * 3).astype(np.int32)
    coded, steps = np.ones(k.shape, np.uint8), np.zeros(50, np.int32)
    data = entropy.encode_integers(k, coded, steps)
    for wrong in [data[:-1], data[: len(data) // 2], data[:0], np.append(data, np.uint8(0))]:
        with pytest.raises(ValueError, match="bytes"):
            entropy.decode_integers(wrong, coded, steps)


def test_nothing_missing_costs_nothing():
    mask = np.zeros((10_000, 100), np.uint8)
    assert len(entropy.encode_bits(mask)) < 20
    mask[:, 7] = 1
    assert len(entropy.encode_bits(mask)) < 40


@pytest.mark.parametrize("skew", [0.5, 4, 12])
def test_the_range_coder_is_as_good_as_constriction(rng, skew):
    p = np.clip(65536 / (1 + np.exp(skew * rng.standard_normal(20_000))), 1, 65535).astype(np.int64)
    bits = (rng.integers(0, 65536, len(p)) < p).astype(np.int64)
    data = np.zeros(2 * len(p) + 10, np.uint8)
    coder = coding.start(data, False)
    for bit, probability in zip(bits.tolist(), p.tolist(), strict=True):
        coding.code_bit(coder, data, False, bit, probability)
    size = coding.finish(coder, data)
    oracle = constriction.stream.queue.RangeEncoder()
    oracle.encode(bits.astype(np.int32), constriction.stream.model.Bernoulli(), p / 65536)
    ideal = -np.log2(np.where(bits, p, 65536 - p) / 65536).sum() / 8
    assert size <= 1.001 * ideal + 4
    assert size <= 1.001 * 4 * len(oracle.get_compressed()) + 4
    data = data[:size]
    coder = coding.start(data, True)
    again = [coding.code_bit(coder, data, True, 0, x) for x in p.tolist()]
    assert again == bits.tolist()
