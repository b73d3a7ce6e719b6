"""Integers and masks come back from their bytes, which are few; other bytes do no harm."""

from contextlib import suppress

import constriction
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from kernelatoms.engine import cpu
from kernelatoms.engine.cpu import entropy_loops

SHAPES = st.tuples(st.integers(0, 12), st.integers(0, 9))
SOME = settings(max_examples=60, deadline=None)


@st.composite
def matrices(draw):
    shape = draw(SHAPES)
    limit = draw(st.sampled_from([0, 1, 5, 100, 1 << 30]))
    k = draw(arrays(np.int32, shape, elements=st.integers(-limit, limit)))
    coded = draw(arrays(np.uint8, shape, elements=st.integers(0, 1)))
    steps = draw(arrays(np.int32, shape[:1], elements=st.integers(-(1 << 20), 1 << 20)))
    return k, coded, steps, draw(st.integers(0, 5)), draw(st.integers(0, 20)), draw(st.booleans())


@given(matrices())
@SOME
def test_integers_come_back(matrix):
    k, coded, steps, slice_rows, lag, symmetric = matrix
    data = cpu.encode_integers(k, coded, steps, slice_rows, lag, symmetric=symmetric)
    again = cpu.decode_integers(data, coded, steps, slice_rows, lag, symmetric=symmetric)
    assert again.dtype == np.int32
    np.testing.assert_array_equal(again, np.where(coded, k, 0))


@given(arrays(np.uint8, SHAPES, elements=st.integers(0, 1)))
@SOME
def test_masks_come_back(mask):
    np.testing.assert_array_equal(cpu.decode_bits(cpu.encode_bits(mask), mask.shape), mask)


@given(arrays(np.int32, st.integers(0, 50), elements=st.integers(-(1 << 30), 1 << 30)))
@SOME
def test_sequences_come_back(values):
    np.testing.assert_array_equal(cpu.decode_small(cpu.encode_small(values), len(values)), values)


@given(matrices(), st.binary(max_size=300))
@SOME
def test_any_bytes_end(matrix, data):
    k, coded, steps, slice_rows, lag, symmetric = matrix
    data = np.frombuffer(data, np.uint8)
    with suppress(ValueError):
        cpu.decode_integers(data, coded, steps, slice_rows, lag, symmetric=symmetric)
    with suppress(ValueError):
        cpu.decode_bits(data, coded.shape)
    with suppress(ValueError):
        cpu.decode_small(data, k.size)


def test_missing_and_additional_bytes_are_refused(rng):
    k = np.rint(rng.laplace(size=(50, 20)) * 3).astype(np.int32)
    coded, steps = np.ones(k.shape, np.uint8), np.zeros(50, np.int32)
    data = cpu.encode_integers(k, coded, steps)
    for wrong in [data[:-1], data[: len(data) // 2], data[:0], np.append(data, np.uint8(0))]:
        with pytest.raises(ValueError, match="bytes"):
            cpu.decode_integers(wrong, coded, steps)


def test_nothing_missing_costs_nothing():
    mask = np.zeros((10_000, 100), np.uint8)
    assert len(cpu.encode_bits(mask)) < 20
    mask[:, 7] = 1
    assert len(cpu.encode_bits(mask)) < 40


@pytest.mark.parametrize("skew", [0.5, 4, 12])
def test_the_range_coder_is_as_good_as_constriction(rng, skew):
    p = np.clip(65536 / (1 + np.exp(skew * rng.standard_normal(20_000))), 1, 65535).astype(np.int64)
    bits = (rng.integers(0, 65536, len(p)) < p).astype(np.int64)
    data = np.zeros(2 * len(p) + 10, np.uint8)
    coder = entropy_loops.start(data, False)
    for bit, probability in zip(bits.tolist(), p.tolist(), strict=True):
        entropy_loops.code_bit(coder, data, False, bit, probability)
    size = entropy_loops.finish(coder, data)
    oracle = constriction.stream.queue.RangeEncoder()
    oracle.encode(bits.astype(np.int32), constriction.stream.model.Bernoulli(), p / 65536)
    ideal = -np.log2(np.where(bits, p, 65536 - p) / 65536).sum() / 8
    assert size <= 1.001 * ideal + 4
    assert size <= 1.001 * 4 * len(oracle.get_compressed()) + 4
    data = data[:size]
    coder = entropy_loops.start(data, True)
    again = [entropy_loops.code_bit(coder, data, True, 0, x) for x in p.tolist()]
    assert again == bits.tolist()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"k": np.full((2, 3), 2**31 - 1)}, "2\\^30"),
        ({"coded": np.ones((2, 2))}, "shape"),
        ({"steps": np.zeros(3)}, "fit"),
        ({"steps": np.full(2, 1 << 21)}, "steps"),
        ({"lag": -1}, "at least 0"),
    ],
)
def test_wrong_arguments_are_named(wrong, message):
    right = {"k": np.ones((2, 3)), "coded": np.ones((2, 3)), "steps": np.zeros(2)}
    with pytest.raises(ValueError, match=message):
        cpu.encode_integers(**{**right, **wrong})
    with pytest.raises(ValueError, match="mask"):
        cpu.encode_bits(np.full((2, 2), 2))
    with pytest.raises(ValueError, match="sequence"):
        cpu.encode_small(np.ones((2, 2)))
